//! Tiles of 16 or 32 rows, 4 or 8 columns, with AVX-512.

use super::{AHEAD, LINE, Products, Value};
use std::arch::x86_64::*;

/// `$function::<N>` for the number that `$count` is, up to [`super::MOST_OUTPUTS`].
macro_rules! with_count {
    ($count:expr, $function:ident($($argument:expr),*)) => {
        match $count {
            1 => $function::<1, V>($($argument),*),
            2 => $function::<2, V>($($argument),*),
            3 => $function::<3, V>($($argument),*),
            4 => $function::<4, V>($($argument),*),
            5 => $function::<5, V>($($argument),*),
            6 => $function::<6, V>($($argument),*),
            7 => $function::<7, V>($($argument),*),
            8 => $function::<8, V>($($argument),*),
            9 => $function::<9, V>($($argument),*),
            10 => $function::<10, V>($($argument),*),
            11 => $function::<11, V>($($argument),*),
            _ => $function::<12, V>($($argument),*),
        }
    };
}

/// Columns in `values` times the first `tile` of every `stride` weights.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
pub(super) unsafe fn outputs_tile<V: Value>(
    values: &[V],
    height: usize,
    weights: &[f64],
    stride: usize,
    tile: usize,
    sums: &mut [f64],
) {
    // SAFETY: as the caller's.
    unsafe { with_count!(tile, outputs_of(values, height, weights, stride, sums)) }
}

#[target_feature(enable = "avx512f,avx512vl,avx2")]
unsafe fn outputs_of<const TILE: usize, V: Value>(
    values: &[V],
    height: usize,
    weights: &[f64],
    stride: usize,
    sums: &mut [f64],
) {
    let columns = values.len() / height;
    let next = values.as_ptr_range().end.cast::<i8>();
    let mut row = 0;
    // SAFETY: the rows of a part are less than `height`; the caller vouches for the rest. Prefetching
    // may touch any address.
    unsafe {
        while row < height {
            let rows = match height - row {
                32.. if TILE <= super::FEW_OUTPUTS => 32,
                16.. => 16,
                _ => 8,
            };
            // The columns lie too far apart for the processor to guess what comes next.
            let lines = |row: usize| row * columns * size_of::<V>() / LINE;
            for line in lines(row)..lines(row + rows) {
                _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(LINE * line));
            }
            let (values, sums) = (values.as_ptr().add(row), sums.as_mut_ptr().add(row));
            let weights = weights.as_ptr();
            match rows {
                32 => part::<TILE, 4, V>(values, columns, height, weights, stride, sums),
                16 => part::<TILE, 2, V>(values, columns, height, weights, stride, sums),
                _ => part::<TILE, 1, V>(values, columns, height, weights, stride, sums),
            }
            row += rows;
        }
    }
}

/// Eight rows, `PARTS` times.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
#[inline]
unsafe fn part<const TILE: usize, const PARTS: usize, V: Value>(
    values: *const V,
    columns: usize,
    height: usize,
    weights: *const f64,
    stride: usize,
    sums: *mut f64,
) {
    // SAFETY: as the caller's.
    unsafe {
        let mut totals = [[_mm512_setzero_pd(); PARTS]; TILE];
        for column in 0..columns {
            let mut found = [_mm512_setzero_pd(); PARTS];
            for (part, found) in found.iter_mut().enumerate() {
                *found = V::eight(values.add(column * height + 8 * part));
            }
            for (place, totals) in totals.iter_mut().enumerate() {
                let weight = _mm512_set1_pd(*weights.add(column * stride + place));
                for (total, found) in totals.iter_mut().zip(found) {
                    *total = _mm512_fmadd_pd(found, weight, *total);
                }
            }
        }
        for (place, totals) in totals.iter().enumerate() {
            for (part, total) in totals.iter().enumerate() {
                let sums = sums.add(place * height + 8 * part);
                _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), *total));
            }
        }
    }
}

/// Four columns of `values` times all columns of `rows`.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
pub(super) unsafe fn products_tile<V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    // SAFETY: as the caller's.
    unsafe { with_count!(rows.len() / height, products_of(values, height, rows, found)) }
}

#[target_feature(enable = "avx512f,avx512vl,avx2")]
unsafe fn products_of<const TILE: usize, V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    // SAFETY: as the caller's.
    unsafe { products_of_pairs::<TILE, 2, V>(values, height, rows, found) }
}

/// Eight columns of `values` times all columns of `rows`, of which there are few.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
pub(super) unsafe fn wide_products_tile<V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    // SAFETY: as the caller's.
    unsafe {
        match rows.len() / height {
            1 => products_of_pairs::<1, 4, V>(values, height, rows, found),
            2 => products_of_pairs::<2, 4, V>(values, height, rows, found),
            3 => products_of_pairs::<3, 4, V>(values, height, rows, found),
            4 => products_of_pairs::<4, 4, V>(values, height, rows, found),
            5 => products_of_pairs::<5, 4, V>(values, height, rows, found),
            _ => products_of_pairs::<6, 4, V>(values, height, rows, found),
        }
    }
}

/// A register holds four rows of two columns: the sums are those of the other ways, to the bit.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
#[inline]
unsafe fn products_of_pairs<const TILE: usize, const PAIRS: usize, V: Value>(
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    let mut totals = [[_mm512_setzero_pd(); PAIRS]; TILE];
    let next = values.as_ptr_range().end.cast::<i8>();
    let (values, rows) = (values.as_ptr(), rows.as_ptr());
    for row in (0..height).step_by(4) {
        // SAFETY: row + 4 <= height, and there are PAIRS times two columns and TILE others. Prefetching may touch any address.
        unsafe {
            // Four rows of all columns are some bytes of the columns that follow, which come nearer in two steps.
            for line in 0..(8 * PAIRS * size_of::<V>()).div_ceil(LINE) {
                let ahead = 2 * PAIRS * size_of::<V>() * row + LINE * line;
                _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(ahead + AHEAD));
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(ahead));
            }
            let mut pairs = [_mm512_setzero_pd(); PAIRS];
            for (pair, into) in pairs.iter_mut().enumerate() {
                let first = values.add(2 * pair * height + row);
                *into = V::twice_four(first, first.add(height));
            }
            for (place, total) in totals.iter_mut().enumerate() {
                let rows = _mm256_loadu_pd(rows.add(place * height + row));
                let rows = _mm512_broadcast_f64x4(rows);
                for (total, pair) in total.iter_mut().zip(pairs) {
                    *total = _mm512_fmadd_pd(pair, rows, *total);
                }
            }
        }
    }
    for pair in 0..PAIRS {
        for place in (0..TILE).step_by(2) {
            let first = halved(totals[place][pair]);
            // The last one stands for one that is missing: nobody looks at it.
            let second = halved(totals[(place + 1).min(TILE - 1)][pair]);
            let low = _mm512_unpacklo_pd(first, second);
            let both = _mm512_add_pd(low, _mm512_unpackhi_pd(first, second));
            let columns = [
                _mm512_castpd512_pd128(both),
                _mm256_castpd256_pd128(_mm512_extractf64x4_pd::<1>(both)),
            ];
            for (column, sums) in columns.into_iter().enumerate() {
                let into = &mut found[2 * pair + column][place..place + 2];
                // SAFETY: there is room for two numbers.
                unsafe { _mm_storeu_pd(into.as_mut_ptr(), sums) };
            }
        }
    }
}

/// Of twice four numbers a, b, c, d: a + c and b + d, as in [`super::total`].
#[target_feature(enable = "avx512f,avx512vl,avx2")]
#[inline]
fn halved(lanes: __m512d) -> __m512d {
    _mm512_add_pd(lanes, _mm512_permutex_pd::<0b01_00_11_10>(lanes))
}
