//! Keeps pictures of very many values small without changing how they look.

use crate::svg::px;

/// Above this many vertices a path is thinned regularly; only wildly winding paths get there.
const MOST_VERTICES: usize = 12_000;
/// Above this many pieces only some are drawn; only wildly winding paths with gaps get there.
const MOST_RUNS: usize = 2000;
/// Above this many distinct dots the grid they are rounded to gets coarser.
const MOST_DOTS: usize = 12_000;
/// A gap shorter than this, in pixels, cannot be seen.
const SHORT_GAP: f64 = 0.75;

/// Splits items at missing ones; `x` is the horizontal place of an item in pixels.
pub(crate) fn runs<T: Copy>(
    items: impl IntoIterator<Item = Option<T>>,
    x: impl Fn(T) -> f64,
) -> Vec<Vec<T>> {
    let mut runs: Vec<Vec<T>> = Vec::new();
    let mut gap = true;
    for item in items {
        let Some(item) = item else {
            gap = true;
            continue;
        };
        match runs.last_mut() {
            Some(run)
                if !gap || run.last().is_some_and(|&old| (x(item) - x(old)).abs() < SHORT_GAP) =>
            {
                run.push(item);
            }
            _ => runs.push(vec![item]),
        }
        gap = false;
    }
    let stride = runs.len().div_ceil(MOST_RUNS).max(1);
    runs.into_iter().step_by(stride).collect()
}

/// The `d` of a path through the points; a missing point leaves a gap.
pub(crate) fn path(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let runs = runs(points, |point| point.0);
    let runs: Vec<_> = runs.iter().map(|run| extremes_per_column(run)).collect();
    let vertices: usize = runs.iter().map(Vec::len).sum();
    let stride = vertices.div_ceil(MOST_VERTICES).max(1);
    let mut out = String::new();
    for run in &runs {
        if let [(x, y)] = run[..] {
            // A value between two gaps has no line, but must be seen: it becomes a small ring.
            out += &format!("M{} {}a1 1 0 1 0 2 0a1 1 0 1 0-2 0", px(x - 1.0), px(y));
            continue;
        }
        for (i, (x, y)) in run.iter().step_by(stride).enumerate() {
            out.push(if i == 0 { 'M' } else { ' ' });
            out += &format!("{} {}", px(*x), px(*y));
        }
    }
    out
}

/// Of neighbours in the same column of pixels, keeps the first, lowest, highest and last.
fn extremes_per_column(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for column in run.chunk_by(|a, b| column(a.0) == column(b.0)) {
        if column.len() <= 4 {
            out.extend_from_slice(column);
            continue;
        }
        let (mut low, mut high) = (0, 0);
        for (i, point) in column.iter().enumerate() {
            low = if point.1 < column[low].1 { i } else { low };
            high = if point.1 > column[high].1 { i } else { high };
        }
        let mut keep = [0, low, high, column.len() - 1];
        keep.sort_unstable();
        let mut last = None;
        for i in keep {
            if last != Some(i) {
                out.push(column[i]);
            }
            last = Some(i);
        }
    }
    out
}

fn column(x: f64) -> i64 {
    // What lies far outside of the picture is one column.
    x.clamp(-10.0, 1e4).floor() as i64
}

/// Dots of one density, as the `d` of a path of lines that are nothing but ends.
pub(crate) struct Dots {
    pub(crate) path: String,
    /// From zero for a single point to one for the densest places.
    pub(crate) density: f64,
    /// The least diameter at which dots of a filled area touch.
    pub(crate) cell: f64,
}

/// Groups points by how many fall onto the same place. One path paints a place only once, whatever
/// the number of its points, so the density has to come from the opacity of the group.
pub(crate) fn dots(points: &[(f64, f64)]) -> Vec<Dots> {
    const GROUPS: usize = 5;
    let mut cell = if points.len() <= 4000 { 0.1 } else { 0.5 };
    let mut counted = count_cells(points, cell);
    while counted.len() > MOST_DOTS {
        cell *= 1.5;
        counted = count_cells(points, cell);
    }
    // Groups by ratios of counts: lone points stay visible however dense the cloud is elsewhere.
    let most = counted.iter().map(|(_, count)| *count).fold(12, usize::max) as f64;
    let last = (GROUPS - 1) as f64;
    let group = |count: usize| ((count as f64).ln() / most.ln() * last).round() as usize;
    let mut paths = vec![(String::new(), (0.0, 0.0)); GROUPS];
    for ((row, column), count) in counted {
        let (path, at) = &mut paths[group(count).min(GROUPS - 1)];
        // Steps from dot to dot are shorter to write than places. They start from the rounded
        // place, so that errors do not add up.
        let step = |to: i64, from: f64| ((to as f64 * cell - from) * 10.0).round() / 10.0;
        let (dx, dy) = (step(column, at.0), step(row, at.1));
        *at = (at.0 + dx + 0.1, at.1 + dy);
        // Not quite without length, as PDF has no square ends for lines of no length.
        *path += &format!("m{} {}h.1", px(dx), px(dy));
    }
    paths
        .into_iter()
        .enumerate()
        .map(|(i, (path, _))| Dots { path, density: i as f64 / last, cell })
        .filter(|dots| !dots.path.is_empty())
        .collect()
}

/// Occupied cells, sorted, with the number of points in each.
fn count_cells(points: &[(f64, f64)], cell: f64) -> Vec<((i64, i64), usize)> {
    let index = |v: f64| (v.clamp(-1e4, 1e4) / cell).round() as i64;
    let mut cells: Vec<(i64, i64)> = points.iter().map(|p| (index(p.1), index(p.0))).collect();
    cells.sort_unstable();
    cells.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_lone_points() {
        let points = [Some((0.0, 1.0)), Some((2.0, 3.0)), None, None, Some((9.0, 9.0))];
        assert_eq!(path(points), "M0 1 2 3M8 9a1 1 0 1 0 2 0a1 1 0 1 0-2 0");
        assert_eq!(path([]), "");
        assert_eq!(path([Some((0.0, 1.0)), None, Some((0.1, 3.0))]), "M0 1 0.1 3");
    }

    #[test]
    fn peaks_survive() {
        let points = (0..100_000).map(|i| {
            Some((f64::from(i) / 200.0, if i == 54_321 { -7.0 } else { f64::from(i % 10) }))
        });
        let path = path(points);
        assert!(path.contains(" -7 ") && path.len() < 30_000, "{}", path.len());
    }

    #[test]
    fn dots_are_bounded_and_counted() {
        let many: Vec<(f64, f64)> = (0..200_000)
            .map(|i| (f64::from(i % 700), f64::from(i * 7919 % 300_007) / 1e3))
            .collect();
        assert!(dots(&many).iter().map(|d| d.path.len()).sum::<usize>() < 150_000);
        let same = dots(&[(5.0, 5.0); 3]);
        assert_eq!((same.len(), same[0].density, same[0].path.as_str()), (1, 0.5, "m5 5h.1"));
    }
}
