//! Tiles of 8 rows or 2 columns, with AVX2 and FMA.

use super::{LINE, Products, Value};
use std::arch::x86_64::*;

/// Columns in `values` times the first `tile` of every `stride` weights.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn outputs_tile<V: Value>(
    values: &[V],
    height: usize,
    weights: &[f64],
    stride: usize,
    tile: usize,
    sums: &mut [f64],
) {
    // SAFETY: as the caller's.
    unsafe {
        match tile {
            1 => outputs_of::<1, V>(values, height, weights, stride, sums),
            2 => outputs_of::<2, V>(values, height, weights, stride, sums),
            3 => outputs_of::<3, V>(values, height, weights, stride, sums),
            4 => outputs_of::<4, V>(values, height, weights, stride, sums),
            5 => outputs_of::<5, V>(values, height, weights, stride, sums),
            _ => outputs_of::<6, V>(values, height, weights, stride, sums),
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn outputs_of<const TILE: usize, V: Value>(
    values: &[V],
    height: usize,
    weights: &[f64],
    stride: usize,
    sums: &mut [f64],
) {
    let columns = values.len() / height;
    let (values, weights) = (values.as_ptr(), weights.as_ptr());
    for row in (0..height).step_by(8) {
        // SAFETY: row + 8 <= height; column < columns; the caller vouches for the rest. Prefetching
        // may touch any address.
        unsafe {
            // The columns lie too far apart for the processor to guess what comes next.
            let next = values.add(columns * height).cast::<i8>();
            let lines = |row: usize| row * columns * size_of::<V>() / LINE;
            for line in lines(row)..lines(row + 8) {
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(LINE * line));
            }
            let mut totals = [[_mm256_setzero_pd(); 2]; TILE];
            for column in 0..columns {
                let values = values.add(column * height + row);
                let (low, high) = (V::four(values), V::four(values.add(4)));
                for (place, total) in totals.iter_mut().enumerate() {
                    let weight = _mm256_set1_pd(*weights.add(column * stride + place));
                    total[0] = _mm256_fmadd_pd(low, weight, total[0]);
                    total[1] = _mm256_fmadd_pd(high, weight, total[1]);
                }
            }
            for (place, total) in totals.iter().enumerate() {
                let sums = sums.as_mut_ptr().add(place * height + row);
                _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), total[0]));
                let sums = sums.add(4);
                _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), total[1]));
            }
        }
    }
}

/// Two columns of `values` times all columns of `rows`.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn products_tile<V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    // SAFETY: as the caller's.
    unsafe {
        match rows.len() / height {
            1 => products_of::<1, V>(values, height, rows, found),
            2 => products_of::<2, V>(values, height, rows, found),
            3 => products_of::<3, V>(values, height, rows, found),
            4 => products_of::<4, V>(values, height, rows, found),
            5 => products_of::<5, V>(values, height, rows, found),
            _ => products_of::<6, V>(values, height, rows, found),
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn products_of<const TILE: usize, V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    let mut totals = [[_mm256_setzero_pd(); 2]; TILE];
    let (values, rows) = (values.as_ptr(), rows.as_ptr());
    for row in (0..height).step_by(4) {
        // SAFETY: row + 4 <= height, and there are two columns and TILE others.
        unsafe {
            let first = V::four(values.add(row));
            let second = V::four(values.add(height + row));
            for (place, total) in totals.iter_mut().enumerate() {
                let rows = _mm256_loadu_pd(rows.add(place * height + row));
                total[0] = _mm256_fmadd_pd(first, rows, total[0]);
                total[1] = _mm256_fmadd_pd(second, rows, total[1]);
            }
        }
    }
    for (place, total) in totals.iter().enumerate() {
        for (sum, found) in total.iter().zip(found.iter_mut()) {
            let mut lanes = [0.0; 4];
            // SAFETY: there is room for four numbers.
            unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), *sum) };
            found[place] = super::total(lanes);
        }
    }
}
