//! Tiles of 48 x 8 elements with the instruction of AVX-512 that multiplies and adds pairs of sixteen bits.
#![allow(unsafe_code)]

use super::{Block, COLUMNS, Kernel, LANES, PAIRS, Pairs, Tile, multiply};
use crate::state::gram::panels::prefetch;
use std::arch::x86_64::*;

pub(super) struct Tiles;

// SAFETY: `detected` asks for all that the functions enable.
unsafe impl Kernel for Tiles {
    fn detected() -> bool {
        std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vnni")
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512vnni")]
    unsafe fn multiply(block: Block<'_>, first: usize, into: &mut [&mut [f64]]) {
        // SAFETY: as the caller's.
        unsafe { multiply::<Self>(block, first, into) };
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512vnni")]
    #[inline]
    unsafe fn products<const V: usize>(
        mut left: [&[Pairs]; V],
        right: &[Pairs],
        half: usize,
    ) -> Tile {
        for panel in &mut left {
            *panel = &panel[..right.len()]; // spares the loop a check of the index
        }
        let mut tile = [[[0.0; LANES]; super::PANELS]; COLUMNS];
        for (chunk, right) in right.chunks_exact(PAIRS).enumerate() {
            let mut sums = [[_mm512_setzero_si512(); V]; COLUMNS];
            for (k, right) in right.iter().enumerate() {
                let mut a = [_mm512_setzero_si512(); V];
                for (a, panel) in a.iter_mut().zip(left) {
                    let pairs = &panel[chunk * PAIRS + k];
                    prefetch(std::slice::from_ref(pairs), 8);
                    // SAFETY: there are sixteen pairs.
                    *a = unsafe { _mm512_load_si512(pairs.0.as_ptr().cast()) };
                }
                let right = &right.0.as_chunks::<COLUMNS>().0[half];
                for (sums, pair) in sums.iter_mut().zip(right) {
                    let pair = _mm512_set1_epi32(*pair);
                    for (sum, a) in sums.iter_mut().zip(a) {
                        *sum = _mm512_dpwssd_epi32(*sum, a, pair);
                    }
                }
            }
            for (sums, tile) in sums.iter().zip(&mut tile) {
                for (sum, tile) in sums.iter().zip(tile) {
                    let (low, high) = tile.split_at_mut(8);
                    let first = _mm512_cvtepi32_pd(_mm512_castsi512_si256(*sum));
                    let second = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(*sum));
                    for (tile, sum) in [(low, first), (high, second)] {
                        // SAFETY: there are eight numbers.
                        unsafe {
                            let sum = _mm512_add_pd(_mm512_loadu_pd(tile.as_ptr()), sum);
                            _mm512_storeu_pd(tile.as_mut_ptr(), sum);
                        }
                    }
                }
            }
        }
        tile
    }
}
