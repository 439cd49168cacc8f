//! Tiles of 48 x 8 elements with AVX2, in parts of 16 x 4.
#![allow(unsafe_code)]

use super::{Block, COLUMNS, Kernel, LANES, PAIRS, Pairs, Tile, multiply};
use std::arch::x86_64::*;

pub(super) struct Tiles;

/// Columns whose sums are in registers: eight of them, two of `left`, one of `right` and a product.
const PART: usize = 4;

// SAFETY: `detected` asks for all that the functions enable.
unsafe impl Kernel for Tiles {
    fn detected() -> bool {
        std::is_x86_feature_detected!("avx2")
    }

    #[target_feature(enable = "avx2")]
    unsafe fn multiply(block: Block<'_>, first: usize, into: &mut [&mut [f64]]) {
        // SAFETY: as the caller's.
        unsafe { multiply::<Self>(block, first, into) };
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn products<const V: usize>(left: [&[Pairs]; V], right: &[Pairs], half: usize) -> Tile {
        let mut tile = [[[0.0; LANES]; super::PANELS]; COLUMNS];
        for (panel, left) in left.into_iter().enumerate() {
            for start in (0..COLUMNS).step_by(PART) {
                let chunks = left.chunks_exact(PAIRS).zip(right.chunks_exact(PAIRS));
                for (left, right) in chunks {
                    let mut sums = [[_mm256_setzero_si256(); 2]; PART];
                    for (left, right) in left.iter().zip(right) {
                        let halves = left.0.as_chunks::<8>().0;
                        // SAFETY: there are twice eight pairs.
                        let a = unsafe {
                            [
                                _mm256_load_si256(halves[0].as_ptr().cast()),
                                _mm256_load_si256(halves[1].as_ptr().cast()),
                            ]
                        };
                        let right = &right.0[half * COLUMNS + start..][..PART];
                        for (sums, pair) in sums.iter_mut().zip(right) {
                            let pair = _mm256_set1_epi32(*pair);
                            for (sum, a) in sums.iter_mut().zip(a) {
                                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(a, pair));
                            }
                        }
                    }
                    for (sums, tile) in sums.iter().zip(&mut tile[start..]) {
                        let tile = tile[panel].as_chunks_mut::<4>().0;
                        for (sum, tile) in sums.iter().zip(tile.chunks_exact_mut(2)) {
                            let low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(*sum));
                            let high = _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(*sum));
                            for (tile, sum) in tile.iter_mut().zip([low, high]) {
                                // SAFETY: there are four numbers.
                                unsafe {
                                    let sum = _mm256_add_pd(_mm256_loadu_pd(tile.as_ptr()), sum);
                                    _mm256_storeu_pd(tile.as_mut_ptr(), sum);
                                }
                            }
                        }
                    }
                }
            }
        }
        tile
    }
}
