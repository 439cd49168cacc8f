//! What a chart shows: named data and how they are drawn.

/// Named data of a [`Chart`](crate::Chart), together with how they are drawn.
///
/// Values that are not finite leave a gap. An empty name keeps the series out of the legend, for
/// example a band that belongs to a line. Colours are given out in order unless
/// [`color`](Series::color) says otherwise.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) dashed: bool,
    pub(crate) opacity: Option<f64>,
    pub(crate) color: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Line(Vec<(f64, f64)>),
    Steps(Vec<(f64, f64)>),
    Points(Vec<(f64, f64)>),
    Bars(Vec<(f64, f64)>),
    /// Left edge, right edge, height.
    Histogram(Vec<[f64; 3]>),
    /// Place, lower, upper.
    Band(Vec<[f64; 3]>),
    Whiskers(Vec<[f64; 3]>),
}

impl Series {
    /// A line through the points, in the given order.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(name, Shape::Line(points.into_iter().collect()))
    }

    /// A line that keeps each value until the next point.
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(name, Shape::Steps(points.into_iter().collect()))
    }

    /// A cloud of points. Where many fall together the cloud is denser.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(name, Shape::Points(points.into_iter().collect()))
    }

    /// Bars from zero to `y`, centred at `x`. Several series of bars stand side by side.
    ///
    /// With [`Chart::categories`](crate::Chart::categories) the category `i` is at `x = i`.
    pub fn bars(name: impl Into<String>, bars: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::new(name, Shape::Bars(bars.into_iter().collect()))
    }

    /// A histogram with given bins: `counts[i]` lies between `edges[i]` and `edges[i + 1]`.
    pub fn histogram(name: impl Into<String>, edges: &[f64], counts: &[f64]) -> Series {
        let bins = edges.windows(2).zip(counts).map(|(e, &count)| [e[0], e[1], count]);
        Series::new(name, Shape::Histogram(bins.collect()))
    }

    /// A histogram of raw values, counted in `bins` bins of equal width.
    ///
    /// Values that are not finite are not counted.
    pub fn histogram_of(
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
        bins: usize,
    ) -> Series {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return Series::histogram(name, &[], &[]);
        }
        // Equal values still fill a bin that can be seen.
        let (lo, hi) = if hi > lo { (lo, hi) } else { (lo - 0.5, hi + 0.5) };
        let bins = bins.max(1);
        // Halves, as the width of the widest range is more than a number can hold.
        let edge = |i: usize| {
            let share = i as f64 / bins as f64;
            lo * (1.0 - share) + hi * share
        };
        let mut counts = vec![0.0; bins];
        for value in values {
            let share = (value / 2.0 - lo / 2.0) / (hi / 2.0 - lo / 2.0);
            counts[((share * bins as f64) as usize).min(bins - 1)] += 1.0;
        }
        Series::histogram(name, &(0..=bins).map(edge).collect::<Vec<_>>(), &counts)
    }

    /// A shaded area between a lower and an upper value: items are `(x, lower, upper)`.
    pub fn band(
        name: impl Into<String>,
        items: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Series {
        Series::new(name, Shape::Band(triples(items)))
    }

    /// Error bars: a vertical line from lower to upper, items are `(x, lower, upper)`.
    pub fn whiskers(
        name: impl Into<String>,
        items: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Series {
        Series::new(name, Shape::Whiskers(triples(items)))
    }

    /// Draws a line with dashes.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }

    /// Sets how opaque the series is, from zero to one.
    pub fn opacity(mut self, opacity: f64) -> Series {
        self.opacity = Some(if opacity.is_nan() { 1.0 } else { opacity.clamp(0.0, 1.0) });
        self
    }

    /// Chooses a colour by its number, for series that belong together. There are eight.
    pub fn color(mut self, number: usize) -> Series {
        self.color = Some(number);
        self
    }

    fn new(name: impl Into<String>, shape: Shape) -> Series {
        Series { name: name.into(), shape, dashed: false, opacity: None, color: None }
    }

    /// The opacity asked for, or one that suits the kind and amount of data.
    pub(crate) fn effective_opacity(&self) -> f64 {
        self.opacity.unwrap_or(match &self.shape {
            Shape::Line(_) | Shape::Steps(_) | Shape::Whiskers(_) => 1.0,
            Shape::Bars(_) => 0.9,
            Shape::Histogram(_) => 0.65,
            Shape::Band(_) => 0.22,
            Shape::Points(points) if points.len() <= 200 => 0.85,
            Shape::Points(points) if points.len() <= 2000 => 0.55,
            Shape::Points(_) => 0.3,
        })
    }

    /// What the series is called in the description for screen readers.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.shape {
            Shape::Line(_) => "line",
            Shape::Steps(_) => "steps",
            Shape::Points(_) => "points",
            Shape::Bars(_) => "bars",
            Shape::Histogram(_) => "histogram",
            Shape::Band(_) => "band",
            Shape::Whiskers(_) => "error bars",
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.shape {
            Shape::Line(items) | Shape::Steps(items) => items.len(),
            Shape::Points(items) | Shape::Bars(items) => items.len(),
            Shape::Histogram(items) | Shape::Band(items) | Shape::Whiskers(items) => items.len(),
        }
    }
}

fn triples(items: impl IntoIterator<Item = (f64, f64, f64)>) -> Vec<[f64; 3]> {
    items.into_iter().map(|(a, b, c)| [a, b, c]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_every_finite_value() {
        for values in [vec![], vec![3.0; 4], vec![0.0, 1.0, 2.0, f64::NAN], vec![-1e308, 1e308]] {
            let finite = values.iter().filter(|v| v.is_finite()).count() as f64;
            let Shape::Histogram(bins) = Series::histogram_of("", values, 7).shape else {
                unreachable!()
            };
            assert_eq!(bins.iter().map(|b| b[2]).sum::<f64>(), finite);
        }
    }
}
