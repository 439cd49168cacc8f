//! Tiles of 24 x 8 elements with AVX-512.
#![allow(unsafe_code)]

use super::panels::{self, Block, Kernel, Lanes, Tile};
use std::arch::x86_64::{
    __m512d, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_setzero_pd,
    _mm512_shuffle_f64x2, _mm512_storeu_pd, _mm512_unpackhi_pd, _mm512_unpacklo_pd,
};
use std::ops::Range;

pub(super) struct Tiles;

/// Quarters 0 and 2 of two registers, and quarters 1 and 3.
const EVEN: i32 = 0b10_00_10_00;
const ODD: i32 = 0b11_01_11_01;

// SAFETY: `detected` asks for all that the functions enable.
unsafe impl Kernel<8> for Tiles {
    /// Processors with AVX-512 have a megabyte of L2 cache or more.
    const WIDTH: usize = 168;

    fn detected() -> bool {
        std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl")
    }

    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn pack(
        plain: &mut [Lanes<8>],
        weighted: Option<(&mut [Lanes<8>], &[f64])>,
        from: &[&[f64]],
        rows: Range<usize>,
    ) {
        // SAFETY: as the caller's.
        unsafe { panels::pack::<Self, 8>(plain, weighted, from, rows) };
    }

    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn multiply(
        left: Block<'_, 8>,
        right: Block<'_, 8>,
        first: usize,
        into: &mut [&mut [f64]],
    ) {
        // SAFETY: as the caller's.
        unsafe { panels::multiply::<Self, 8>(left, right, first, into) };
    }

    #[target_feature(enable = "avx512f,avx512vl")]
    #[inline]
    unsafe fn transpose(columns: [&[f64; 8]; 8], rows: &mut [Lanes<8>; 8]) {
        // SAFETY: eight numbers are there for every load and store.
        unsafe {
            let mut pairs = [_mm512_setzero_pd(); 8];
            for i in (0..8).step_by(2) {
                let a = _mm512_loadu_pd(columns[i].as_ptr());
                let b = _mm512_loadu_pd(columns[i + 1].as_ptr());
                pairs[i] = _mm512_unpacklo_pd(a, b); // columns i and i + 1 of rows 0, 2, 4, 6
                pairs[i + 1] = _mm512_unpackhi_pd(a, b); // and of rows 1, 3, 5, 7
            }
            for odd in 0..2 {
                let [a, b] = [pairs[odd], pairs[odd + 2]];
                let [c, d] = [pairs[odd + 4], pairs[odd + 6]];
                // Columns 0 to 3, then 4 to 7, of two rows at a time.
                let a04 = _mm512_shuffle_f64x2::<EVEN>(a, b);
                let b04 = _mm512_shuffle_f64x2::<EVEN>(c, d);
                let a26 = _mm512_shuffle_f64x2::<ODD>(a, b);
                let b26 = _mm512_shuffle_f64x2::<ODD>(c, d);
                for (row, a, b) in [(odd, a04, b04), (odd + 2, a26, b26)] {
                    _mm512_storeu_pd(rows[row].as_mut_ptr(), _mm512_shuffle_f64x2::<EVEN>(a, b));
                    _mm512_storeu_pd(rows[row + 4].as_mut_ptr(), _mm512_shuffle_f64x2::<ODD>(a, b));
                }
            }
        }
    }

    /// Twenty-four sums, three times eight elements of `a` and an element of `b` are in registers, of which there are
    /// thirty-two (without AVX512VL the compiler uses seventeen). Four panels of 512 rows are more than the
    /// L1 cache holds, so it is asked for what comes next: worth 5 %.
    #[target_feature(enable = "avx512f,avx512vl")]
    #[inline]
    unsafe fn dot<const V: usize>(mut a: [&[Lanes<8>]; V], b: &[Lanes<8>]) -> Tile<8, V> {
        for panel in &mut a {
            *panel = &panel[..b.len()]; // spares the loop a check of the index
        }
        let mut sums = [[_mm512_setzero_pd(); V]; 8];
        for (k, elements) in b.iter().enumerate() {
            let mut left = [_mm512_setzero_pd(); V];
            for (left, panel) in left.iter_mut().zip(a) {
                panels::prefetch(&panel[k..], 8);
                // SAFETY: there are eight numbers.
                *left = unsafe { _mm512_loadu_pd(panel[k].as_ptr()) };
            }
            panels::prefetch(&b[k..], 8);
            for (sums, element) in sums.iter_mut().zip(elements) {
                let element = _mm512_set1_pd(*element);
                for (sum, left) in sums.iter_mut().zip(left) {
                    *sum = _mm512_fmadd_pd(left, element, *sum);
                }
            }
        }
        tile(sums)
    }
}

#[inline(always)]
fn tile<const V: usize>(sums: [[__m512d; V]; 8]) -> Tile<8, V> {
    // SAFETY: a register is to the lanes, in size and meaning, eight `f64`.
    unsafe { std::mem::transmute_copy(&sums) }
}
