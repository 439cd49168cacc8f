//! Products of a panel with few columns, in double precision.
//!
//! `values` holds a panel column by column, `height` values each, as whole numbers or in double precision. A tile of sums is kept in registers, so that a value is
//! read from memory once for all outputs: 16 rows or 4 columns times 12 outputs, or twice as many times 6, with AVX-512, 8 rows
//! or 2 columns times 6 outputs with AVX2 and FMA. Without, the same sums are formed one by one. The bits are the same in
//! all three cases.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// What a panel consists of.
///
/// # Safety
/// Functions that load may be called only where the processor has AVX2 (`four`) or AVX512F (the others), and where
/// as many values follow every address: four, eight, twice four.
#[allow(unsafe_code)]
pub(super) unsafe trait Value: Copy {
    fn wide(self) -> f64;
    #[cfg(target_arch = "x86_64")]
    unsafe fn four(from: *const Self) -> __m256d;
    #[cfg(target_arch = "x86_64")]
    unsafe fn eight(from: *const Self) -> __m512d;
    #[cfg(target_arch = "x86_64")]
    unsafe fn twice_four(low: *const Self, high: *const Self) -> __m512d;
}

/// Outputs for which sums are kept in registers, at most.
const MOST_OUTPUTS: usize = 12;
/// Columns that are multiplied together, at most.
const MOST_COLUMNS: usize = 8;
/// Outputs that leave registers for twice as many rows or columns, at most.
const FEW_OUTPUTS: usize = MOST_OUTPUTS / 2;
/// Bytes that come from memory together.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
/// Bytes that are asked for into the second-level cache before they are into the first: by then it would be too late for
/// two threads that read memory (U' T of 30 000 rows, 5100 nodes, 10 outputs: 164 to 183 Gflop/s).
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 8 << 10;
/// Columns whose part of a panel fits into the first-level cache.
const CHUNK: usize = 16;

/// The instructions that are used.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Instructions {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Instructions {
    /// The best that this processor has.
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Outputs and columns in a tile, if there are so many outputs.
    fn tile(self, outputs: usize) -> (usize, usize) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if outputs > FEW_OUTPUTS => (MOST_OUTPUTS, 4),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => (6, 2),
            _ => (MOST_OUTPUTS, MOST_COLUMNS),
        }
    }
}

/// `sums` += values * units * weights: `weights` by rows, one for each column of the panel; `sums` by
/// columns.
pub(super) fn add_outputs<V: Value>(
    values: &[V],
    height: usize,
    units: &[f64],
    weights: &[f64],
    outputs: usize,
    sums: &mut [f64],
) {
    add_outputs_with(Instructions::best(), values, height, units, weights, outputs, sums);
}

#[allow(unsafe_code)]
fn add_outputs_with<V: Value>(
    instructions: Instructions,
    values: &[V],
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
        for tile in tiles(outputs, instructions.tile(outputs).0) {
            let sums = &mut sums[tile.start * height..tile.end * height];
            let weights = &scaled[tile.start..];
            // SAFETY: the instructions are there; the lengths were checked above: `values` holds
            // (end - start) columns, at most `CHUNK`, `weights` a row of `outputs` for each of
            // them, of which tile.len() are read, and `sums` tile.len() columns, all columns of this height.
            match instructions {
                #[cfg(target_arch = "x86_64")]
                Instructions::Avx512 => unsafe {
                    avx512::outputs_tile(values, height, weights, outputs, tile.len(), sums);
                },
                #[cfg(target_arch = "x86_64")]
                Instructions::Avx2 => unsafe {
                    avx2::outputs_tile(values, height, weights, outputs, tile.len(), sums);
                },
                Instructions::Portable => outputs_tile(values, height, weights, outputs, sums),
            }
        }
    }
}

fn outputs_tile<V: Value>(
    values: &[V],
    height: usize,
    weights: &[f64],
    stride: usize,
    sums: &mut [f64],
) {
    for (place, sums) in sums.chunks_exact_mut(height).enumerate() {
        for (row, sum) in sums.iter_mut().enumerate() {
            let columns = values.chunks_exact(height).zip(weights.chunks(stride));
            *sum += columns.fold(0.0, |total: f64, (column, weights)| {
                column[row].wide().mul_add(weights[place], total)
            });
        }
    }
}

/// `sums` += units * (values' * rows): `rows` by columns, `sums` by rows, one for each column of the panel.
pub(super) fn add_inputs<V: Value>(
    values: &[V],
    height: usize,
    units: &[f64],
    rows: &[f64],
    outputs: usize,
    sums: &mut [f64],
) {
    add_inputs_with(Instructions::best(), values, height, units, rows, outputs, sums);
}

fn add_inputs_with<V: Value>(
    instructions: Instructions,
    values: &[V],
    height: usize,
    units: &[f64],
    rows: &[f64],
    outputs: usize,
    sums: &mut [f64],
) {
    let columns = units.len();
    assert!(height.is_multiple_of(8) && values.len() == columns * height);
    assert!(rows.len() == outputs * height && sums.len() == outputs * columns);
    let (most_outputs, together) = instructions.tile(outputs);
    let mut found = [[0.0; MOST_OUTPUTS]; MOST_COLUMNS];
    for start in (0..columns).step_by(together) {
        let end = (start + together).min(columns);
        let values = &values[start * height..end * height];
        for tile in tiles(outputs, most_outputs) {
            let rows = &rows[tile.start * height..tile.end * height];
            products_tile(instructions, values, height, rows, &mut found);
            for (column, found) in (start..end).zip(&found) {
                let sums = &mut sums[column * outputs..][tile.clone()];
                for (sum, found) in sums.iter_mut().zip(found) {
                    *sum += units[column] * found;
                }
            }
        }
    }
}

/// Products of columns with others: what of the first there are and of the second, up to a tile.
type Products = [[f64; MOST_OUTPUTS]; MOST_COLUMNS];

#[allow(unsafe_code)]
fn products_tile<V: Value>(
    instructions: Instructions,
    values: &[V],
    height: usize,
    rows: &[f64],
    found: &mut Products,
) {
    // SAFETY: the instructions are there; there are as many columns of this height, a multiple of 8, as a tile has, and
    // at most as many others in `rows`, as the caller has checked.
    match instructions {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 if values.len() == 4 * height => unsafe {
            return avx512::products_tile(values, height, rows, found);
        },
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512
            if values.len() == 8 * height && rows.len() <= FEW_OUTPUTS * height =>
        unsafe {
            return avx512::wide_products_tile(values, height, rows, found);
        },
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 if values.len() == 2 * height => unsafe {
            return avx2::products_tile(values, height, rows, found);
        },
        _ => {}
    }
    for (column, found) in values.chunks_exact(height).zip(found) {
        for (rows, found) in rows.chunks_exact(height).zip(found) {
            let mut lanes = [0.0_f64; 4];
            for (values, rows) in column.chunks_exact(4).zip(rows.chunks_exact(4)) {
                for ((lane, value), row) in lanes.iter_mut().zip(values).zip(rows) {
                    *lane = value.wide().mul_add(*row, *lane);
                }
            }
            *found = total(lanes);
        }
    }
}

// SAFETY: the functions load what the trait says.
#[allow(unsafe_code)]
unsafe impl Value for i32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn four(from: *const Self) -> __m256d {
        // SAFETY: as the caller's.
        unsafe { _mm256_cvtepi32_pd(_mm_loadu_si128(from.cast())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2")]
    #[inline]
    unsafe fn eight(from: *const Self) -> __m512d {
        // SAFETY: as the caller's.
        unsafe { _mm512_cvtepi32_pd(_mm256_loadu_si256(from.cast())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2")]
    #[inline]
    unsafe fn twice_four(low: *const Self, high: *const Self) -> __m512d {
        // SAFETY: as the caller's.
        unsafe {
            let low = _mm256_castsi128_si256(_mm_loadu_si128(low.cast()));
            let high = _mm_loadu_si128(high.cast());
            _mm512_cvtepi32_pd(_mm256_inserti128_si256::<1>(low, high))
        }
    }
}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Value for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn four(from: *const Self) -> __m256d {
        // SAFETY: as the caller's.
        unsafe { _mm256_loadu_pd(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2")]
    #[inline]
    unsafe fn eight(from: *const Self) -> __m512d {
        // SAFETY: as the caller's.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2")]
    #[inline]
    unsafe fn twice_four(low: *const Self, high: *const Self) -> __m512d {
        // SAFETY: as the caller's.
        unsafe {
            let low = _mm512_castpd256_pd512(_mm256_loadu_pd(low));
            _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(high))
        }
    }
}

fn total([a, b, c, d]: [f64; 4]) -> f64 {
    (a + c) + (b + d)
}

/// The columns 0 .. n in tiles of nearly equal size, none of them too large for the registers.
fn tiles(columns: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = columns.div_ceil(most);
    (0..count).map(move |tile| tile * columns / count..(tile + 1) * columns / count)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers and others without pattern.
    fn noise(count: usize) -> impl Iterator<Item = i32> {
        let step = |state: &u64| {
            Some(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        };
        std::iter::successors(Some(7), step).map(|state| (state >> 32) as i32).skip(1).take(count)
    }

    fn numbers(count: usize) -> Vec<f64> {
        noise(count).map(|value| f64::from(value) / f64::from(1 << 20)).collect()
    }

    /// All that this processor has, the portable way first.
    fn ways() -> Vec<Instructions> {
        let mut ways = vec![Instructions::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                ways.push(Instructions::Avx2);
            }
            if Instructions::best() == Instructions::Avx512 {
                ways.push(Instructions::Avx512);
            }
        }
        ways
    }

    #[test]
    fn all_instructions_give_the_same_bits() {
        for height in [8, 16, 24, 248] {
            for columns in [1, 2, 3, 4, 7, 16, 37] {
                for outputs in [0, 1, 2, 5, 6, 7, 10, 11, 12, 13, 25] {
                    let values: Vec<i32> = noise(columns * height).collect();
                    let wide: Vec<f64> = values.iter().map(|value| value.wide()).collect();
                    let found = bits(&values, height, columns, outputs);
                    // Whole numbers are what they are in double precision.
                    let found = [found, bits(&wide, height, columns, outputs)].concat();
                    for (way, other) in found.iter().enumerate() {
                        assert!(*other == found[0], "{way}: {height} x {columns}, {outputs}");
                    }
                }
            }
        }
    }

    /// What all ways make of a panel.
    fn bits<V: Value>(
        values: &[V],
        height: usize,
        columns: usize,
        outputs: usize,
    ) -> Vec<Vec<u64>> {
        let units = numbers(columns);
        let (weights, rows) = (numbers(columns * outputs), numbers(outputs * height));
        let found = ways().into_iter().map(|way| {
            let mut there = numbers(outputs * height);
            add_outputs_with(way, values, height, &units, &weights, outputs, &mut there);
            let mut back = numbers(outputs * columns);
            add_inputs_with(way, values, height, &units, &rows, outputs, &mut back);
            there.iter().chain(&back).map(|sum| sum.to_bits()).collect()
        });
        found.collect()
    }
}
