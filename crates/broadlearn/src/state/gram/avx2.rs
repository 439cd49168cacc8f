//! Tiles of 12 x 4 elements with AVX2 and FMA.
#![allow(unsafe_code)]

use super::panels::{self, Block, Kernel, Lanes, Tile};
use std::arch::x86_64::{
    __m256d, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_setzero_pd,
};
use std::ops::Range;

pub(super) struct Tiles;

// SAFETY: `detected` asks for all that the functions enable.
unsafe impl Kernel<4> for Tiles {
    const WIDTH: usize = 96;

    fn detected() -> bool {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn pack(
        plain: &mut [Lanes<4>],
        weighted: Option<(&mut [Lanes<4>], &[f64])>,
        from: &[&[f64]],
        rows: Range<usize>,
    ) {
        // SAFETY: as the caller's.
        unsafe { panels::pack::<Self, 4>(plain, weighted, from, rows) };
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn multiply(
        left: Block<'_, 4>,
        right: Block<'_, 4>,
        first: usize,
        into: &mut [&mut [f64]],
    ) {
        // SAFETY: as the caller's.
        unsafe { panels::multiply::<Self, 4>(left, right, first, into) };
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn transpose(columns: [&[f64; 4]; 4], rows: &mut [Lanes<4>; 4]) {
        let [a, b, c, d] = columns;
        for (i, row) in rows.iter_mut().enumerate() {
            *row = [a[i], b[i], c[i], d[i]];
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn dot<const V: usize>(mut a: [&[Lanes<4>]; V], b: &[Lanes<4>]) -> Tile<4, V> {
        for panel in &mut a {
            *panel = &panel[..b.len()]; // spares the loop a check of the index
        }
        let mut sums = [[_mm256_setzero_pd(); V]; 4];
        for (k, b) in b.iter().enumerate() {
            for (sums, b) in sums.iter_mut().zip(b) {
                for (sum, panel) in sums.iter_mut().zip(a) {
                    // SAFETY: there are four numbers.
                    let a = unsafe { _mm256_loadu_pd(panel[k].as_ptr()) };
                    *sum = _mm256_fmadd_pd(a, _mm256_set1_pd(*b), *sum);
                }
            }
        }
        tile(sums)
    }

    /// Twelve sums, three times four elements of `a` and one element of `b` fill the sixteen registers. The
    /// compiler, given the same in intrinsics, fetches the next element too early and keeps a sum in
    /// memory for want of a seventeenth: that halves the speed, hence the assembler.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn dot3(a: [&[Lanes<4>]; 3], b: &[Lanes<4>]) -> Tile<4, 3> {
        let [a0, a1, a2] = a;
        let mut c: [[__m256d; 3]; 4] = [[_mm256_setzero_pd(); 3]; 4];
        if !b.is_empty() {
            // SAFETY: the offset runs from -size_of_val(b) to 0, exclusive, in steps of four numbers,
            // relative to the ends of four slices of the length of `b`. Nothing is written but registers.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "vmovupd {x0}, [{a0} + {k}]",
                    "vmovupd {x1}, [{a1} + {k}]",
                    "vmovupd {x2}, [{a2} + {k}]",
                    "vbroadcastsd {y}, qword ptr [{b} + {k}]",
                    "vfmadd231pd {c00}, {x0}, {y}",
                    "vfmadd231pd {c01}, {x1}, {y}",
                    "vfmadd231pd {c02}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 8]",
                    "vfmadd231pd {c10}, {x0}, {y}",
                    "vfmadd231pd {c11}, {x1}, {y}",
                    "vfmadd231pd {c12}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 16]",
                    "vfmadd231pd {c20}, {x0}, {y}",
                    "vfmadd231pd {c21}, {x1}, {y}",
                    "vfmadd231pd {c22}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 24]",
                    "vfmadd231pd {c30}, {x0}, {y}",
                    "vfmadd231pd {c31}, {x1}, {y}",
                    "vfmadd231pd {c32}, {x2}, {y}",
                    "add {k}, 32",
                    "jnz 2b",
                    a0 = in(reg) a0[..b.len()].as_ptr_range().end,
                    a1 = in(reg) a1[..b.len()].as_ptr_range().end,
                    a2 = in(reg) a2[..b.len()].as_ptr_range().end,
                    b = in(reg) b.as_ptr_range().end,
                    k = inout(reg) size_of_val(b).wrapping_neg() => _,
                    x0 = out(ymm_reg) _, x1 = out(ymm_reg) _, x2 = out(ymm_reg) _,
                    y = out(ymm_reg) _,
                    c00 = inout(ymm_reg) c[0][0], c01 = inout(ymm_reg) c[0][1],
                    c02 = inout(ymm_reg) c[0][2], c10 = inout(ymm_reg) c[1][0],
                    c11 = inout(ymm_reg) c[1][1], c12 = inout(ymm_reg) c[1][2],
                    c20 = inout(ymm_reg) c[2][0], c21 = inout(ymm_reg) c[2][1],
                    c22 = inout(ymm_reg) c[2][2], c30 = inout(ymm_reg) c[3][0],
                    c31 = inout(ymm_reg) c[3][1], c32 = inout(ymm_reg) c[3][2],
                    options(pure, readonly, nostack),
                );
            }
        }
        tile(c)
    }
}

#[inline(always)]
fn tile<const V: usize>(sums: [[__m256d; V]; 4]) -> Tile<4, V> {
    // SAFETY: a register is to the lanes, in size and meaning, four `f64`.
    unsafe { std::mem::transmute_copy(&sums) }
}
