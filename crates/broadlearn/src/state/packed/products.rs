//! Products of a panel of whole numbers with few columns, in double precision.
//!
//! `values` holds a panel column by column, `height` values each. With AVX2 and FMA, 8 rows times 6 outputs or
//! 2 columns times 6 outputs are summed in registers, and a value is read from memory once for all
//! outputs. Without, the same sums are formed one by one, to the same bits.

/// Outputs for which sums are kept in registers.
const MOST_OUTPUTS: usize = 6;
/// Columns whose part of a panel fits into the first-level cache.
const CHUNK: usize = 16;

/// `sums` += values * units * weights: `weights` by rows, one for each column of the panel; `sums` by
/// columns.
#[allow(unsafe_code)]
pub(super) fn add_outputs(
    values: &[i32],
    height: usize,
    units: &[f64],
    weights: &[f64],
    outputs: usize,
    sums: &mut [f64],
) {
    let columns = units.len();
    assert!(height.is_multiple_of(8) && values.len() == columns * height);
    assert!(weights.len() == columns * outputs && sums.len() == outputs * height);
    if outputs == 0 {
        return;
    }
    let mut scaled = vec![0.0; CHUNK * outputs];
    for start in (0..columns).step_by(CHUNK) {
        let end = (start + CHUNK).min(columns);
        let values = &values[start * height..end * height];
        let rows = scaled.chunks_exact_mut(outputs).zip(weights[start * outputs..].chunks(outputs));
        for ((scaled, weights), unit) in rows.zip(&units[start..end]) {
            scaled.iter_mut().zip(weights).for_each(|(scaled, weight)| *scaled = weight * unit);
        }
        for tile in tiles(outputs) {
            let sums = &mut sums[tile.start * height..tile.end * height];
            let weights = &scaled[tile.start..];
            #[cfg(target_arch = "x86_64")]
            if avx2::is_there() {
                // SAFETY: AVX2 and FMA are there; the lengths were checked above: `values` holds
                // (end - start) columns, at most `CHUNK`, `weights` a row of `outputs` for each of
                // them, of which tile.len() are read, and `sums` tile.len() columns, all columns of this height.
                unsafe { avx2::outputs_tile(values, height, weights, outputs, tile.len(), sums) };
                continue;
            }
            for (place, sums) in sums.chunks_exact_mut(height).enumerate() {
                for (row, sum) in sums.iter_mut().enumerate() {
                    let columns = values.chunks_exact(height).zip(weights.chunks(outputs));
                    *sum += columns.fold(0.0, |total: f64, (column, weights)| {
                        f64::from(column[row]).mul_add(weights[place], total)
                    });
                }
            }
        }
    }
}

/// `sums` += units * (values' * rows): `rows` by columns, `sums` by rows, one for each column of the panel.
#[allow(unsafe_code)]
pub(super) fn add_inputs(
    values: &[i32],
    height: usize,
    units: &[f64],
    rows: &[f64],
    outputs: usize,
    sums: &mut [f64],
) {
    let columns = units.len();
    assert!(height.is_multiple_of(8) && values.len() == columns * height);
    assert!(rows.len() == outputs * height && sums.len() == outputs * columns);
    let mut found = [[0.0; MOST_OUTPUTS]; 2];
    for start in (0..columns).step_by(2) {
        let end = (start + 2).min(columns);
        let values = &values[start * height..end * height];
        for tile in tiles(outputs) {
            let rows = &rows[tile.start * height..tile.end * height];
            products_tile(values, height, rows, &mut found);
            for (column, found) in (start..end).zip(&found) {
                let sums = &mut sums[column * outputs..][tile.clone()];
                for (sum, found) in sums.iter_mut().zip(found) {
                    *sum += units[column] * found;
                }
            }
        }
    }
}

/// The products of one or two columns with up to [`MOST_OUTPUTS`] others.
#[allow(unsafe_code)]
fn products_tile(
    values: &[i32],
    height: usize,
    rows: &[f64],
    found: &mut [[f64; MOST_OUTPUTS]; 2],
) {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() && values.len() == 2 * height {
        // SAFETY: AVX2 and FMA are there; there are two columns of this height, a multiple of 8, and
        // at most `MOST_OUTPUTS` others in `rows`, as the caller has checked.
        return unsafe { avx2::products_tile(values, height, rows, found) };
    }
    for (column, found) in values.chunks_exact(height).zip(found) {
        for (rows, found) in rows.chunks_exact(height).zip(found) {
            let mut lanes = [0.0_f64; 4];
            for (values, rows) in column.chunks_exact(4).zip(rows.chunks_exact(4)) {
                for ((lane, value), row) in lanes.iter_mut().zip(values).zip(rows) {
                    *lane = f64::from(*value).mul_add(*row, *lane);
                }
            }
            *found = total(lanes);
        }
    }
}

fn total([a, b, c, d]: [f64; 4]) -> f64 {
    (a + c) + (b + d)
}

/// The columns 0 .. n in tiles of nearly equal size, none of them too large for the registers.
fn tiles(columns: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = columns.div_ceil(MOST_OUTPUTS);
    (0..count).map(move |tile| tile * columns / count..(tile + 1) * columns / count)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use super::MOST_OUTPUTS;
    use std::arch::x86_64::*;

    pub(super) fn is_there() -> bool {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }

    /// Columns in `values` times the first `tile` of every `stride` weights.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn outputs_tile(
        values: &[i32],
        height: usize,
        weights: &[f64],
        stride: usize,
        tile: usize,
        sums: &mut [f64],
    ) {
        // SAFETY: as the caller's.
        unsafe {
            match tile {
                1 => outputs_of::<1>(values, height, weights, stride, sums),
                2 => outputs_of::<2>(values, height, weights, stride, sums),
                3 => outputs_of::<3>(values, height, weights, stride, sums),
                4 => outputs_of::<4>(values, height, weights, stride, sums),
                5 => outputs_of::<5>(values, height, weights, stride, sums),
                _ => outputs_of::<MOST_OUTPUTS>(values, height, weights, stride, sums),
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn outputs_of<const TILE: usize>(
        values: &[i32],
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
                for line in row / 8 * columns / 2..(row / 8 + 1) * columns / 2 {
                    _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(64 * line));
                }
                let mut totals = [[_mm256_setzero_pd(); 2]; TILE];
                for column in 0..columns {
                    let values = values.add(column * height + row);
                    let low = _mm256_cvtepi32_pd(_mm_loadu_si128(values.cast()));
                    let high = _mm256_cvtepi32_pd(_mm_loadu_si128(values.add(4).cast()));
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
    pub(super) unsafe fn products_tile(
        values: &[i32],
        height: usize,
        rows: &[f64],
        found: &mut [[f64; MOST_OUTPUTS]; 2],
    ) {
        // SAFETY: as the caller's.
        unsafe {
            match rows.len() / height {
                1 => products_of::<1>(values, height, rows, found),
                2 => products_of::<2>(values, height, rows, found),
                3 => products_of::<3>(values, height, rows, found),
                4 => products_of::<4>(values, height, rows, found),
                5 => products_of::<5>(values, height, rows, found),
                _ => products_of::<MOST_OUTPUTS>(values, height, rows, found),
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn products_of<const TILE: usize>(
        values: &[i32],
        height: usize,
        rows: &[f64],
        found: &mut [[f64; MOST_OUTPUTS]; 2],
    ) {
        let mut totals = [[_mm256_setzero_pd(); 2]; TILE];
        let (values, rows) = (values.as_ptr(), rows.as_ptr());
        for row in (0..height).step_by(4) {
            // SAFETY: row + 4 <= height, and there are two columns and TILE others.
            unsafe {
                let first = _mm256_cvtepi32_pd(_mm_loadu_si128(values.add(row).cast()));
                let second = _mm256_cvtepi32_pd(_mm_loadu_si128(values.add(height + row).cast()));
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
}
