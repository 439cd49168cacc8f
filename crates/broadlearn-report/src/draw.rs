//! Draws a chart: layout from the outside in, then the layers from back to front.

use crate::axis::{Axis, Extent, Scale};
use crate::chart::{AxisPlan, Chart};
use crate::escape::escape;
use crate::palette::SERIES;
use crate::series::{Series, Shape};
use crate::svg::{EDGE, LETTERS, Names, Place, document, px, text, title, turned_text};
use crate::text::{number, shorten, width as text_width};
use crate::thin;

const LEGEND_ROW: f64 = 19.0;
const SWATCH: f64 = 22.0;
/// Room around the plot that lines and dots at the very end of the range may use.
const BLEED: f64 = 3.0;
/// Up to this many bars each one shows its value when pointed at.
const MOST_HINTS: usize = 200;
/// Above this many bars only the most prominent of each column of pixels is drawn.
const MOST_BARS: usize = 2000;
const DASHES: [&str; 3] = ["6 4", "2 4", "10 4 2 4"];

/// Draws the chart into a picture of this size, which may get higher if the legend needs it.
pub(crate) fn draw(chart: &Chart, place: Place, (width, height): (f64, f64)) -> String {
    let mut out = String::new();
    let mut top = title(&mut out, &chart.title, width);
    top = draw_legend(&mut out, &legend_items(chart), top, width) + 13.0;

    let slot = bar_slot(chart);
    let (x, y) = axes(chart, slot);
    let has_x_label = !chart.x.label.trim().is_empty();
    let has_y_label = !chart.y.label.trim().is_empty();
    let hidden = hidden_values(chart);

    let y_ticks = y.ticks((((height - top - 60.0) / 28.0) as usize).clamp(3, 10));
    let y_tick_width = y_ticks.iter().map(|t| text_width(&t.label, LETTERS)).fold(14.0, f64::max);
    let left = EDGE + if has_y_label { 20.0 } else { 0.0 } + y_tick_width + 8.0;
    let plot_width = (width - left - 2.0 * EDGE).max(60.0);
    let column = plot_width / chart.categories.len().max(1) as f64;
    let names = Names::fit(&chart.categories, column, left);

    let below_ticks = if chart.categories.is_empty() { 20.0 } else { names.height };
    let bottom = below_ticks
        + if has_x_label { 20.0 } else { 0.0 }
        + if hidden > 0 { 17.0 } else { 0.0 }
        + 8.0;
    let plot_height = (height - top - bottom).max(110.0);
    let height = top + plot_height + bottom;
    let plot = Plot { width: plot_width, height: plot_height, x, y };

    // The grid, with the ticks that belong to it.
    let mut grid = String::new();
    let mut fine = String::new();
    for tick in &y_ticks {
        let at = plot.down(tick.at);
        grid += &format!("M{} {}h{}", px(left), px(top + at), px(plot_width));
        out += &text("tick", (left - 7.0, top + at + 4.0), "end", &tick.label);
    }
    for at in plot.y.fine_lines() {
        fine += &format!("M{} {}h{}", px(left), px(top + plot.down(at)), px(plot_width));
    }
    if chart.categories.is_empty() {
        for tick in fitting_ticks(&plot.x, plot_width) {
            let at = left + tick.at * plot_width;
            grid += &format!("M{} {}v{}", px(at), px(top), px(plot_height));
            let half = text_width(&tick.label, LETTERS) / 2.0;
            let at = at.min(width - 2.0 - half);
            out += &text("tick", (at, top + plot_height + 16.0), "middle", &tick.label);
        }
        for at in plot.x.fine_lines() {
            fine += &format!("M{} {}v{}", px(left + at * plot_width), px(top), px(plot_height));
        }
    } else {
        names.draw(&mut out, top + plot_height, |i| left + (i as f64 + 0.5) * column);
    }
    if !fine.is_empty() {
        out += &format!("<path class=\"fine\" d=\"{fine}\"/>\n");
    }
    out += &format!("<path class=\"grid\" d=\"{grid}\"/>\n");

    let mut below = top + plot_height + below_ticks;
    if has_x_label {
        below += 15.0;
        let label = shorten(&chart.x.label, LETTERS, width - 2.0 * EDGE);
        out += &text("label", (left + plot_width / 2.0, below), "middle", &label);
        below += 5.0;
    }
    if hidden > 0 {
        let values = if hidden == 1 { "1 value" } else { &format!("{hidden} values") };
        let note = format!("{values} cannot be shown on this scale");
        out += &text("note", (left + plot_width, below + 12.0), "end", &note);
    }
    if has_y_label {
        let label = shorten(&chart.y.label, LETTERS, plot_height + 20.0);
        let middle = (EDGE + 12.0, top + plot_height / 2.0);
        out += &turned_text("label", middle, "middle", -90.0, &label);
    }

    // An inner picture cuts off what is out of range, without an identifier that another picture
    // of the same page might use, too.
    out += &format!(
        "<svg x=\"{}\" y=\"{}\" width=\"{w}\" height=\"{h}\" viewBox=\"{b} {b} {w} {h}\">\n",
        px(left - BLEED),
        px(top - BLEED),
        w = px(plot_width + 2.0 * BLEED),
        h = px(plot_height + 2.0 * BLEED),
        b = px(-BLEED),
    );
    draw_data(&mut out, chart, &plot, slot);
    out += "</svg>\n";
    out += &format!(
        "<path class=\"axis\" d=\"M{} {}v{}h{}\"/>\n",
        px(left),
        px(top),
        px(plot_height),
        px(plot_width)
    );
    document(place, (width, height), &chart.title, &describe(chart, &plot), &out)
}

/// The rectangle with the data; inside of it coordinates start at its upper left corner.
struct Plot {
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
}

impl Plot {
    fn down(&self, share: f64) -> f64 {
        (1.0 - share) * self.height
    }

    fn across(&self, x: f64) -> Option<f64> {
        self.x.place(x).map(|at| at * self.width)
    }

    fn point(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(self.y.place(y)?)))
    }

    /// Where bars start: at zero, or at the bottom of an axis that has no zero.
    fn base(&self) -> f64 {
        self.y.place(0.0).map_or(self.height, |at| self.down(at.clamp(0.0, 1.0)))
    }

    /// Place, lower and upper end. A lower end that a logarithmic axis does not reach is at its
    /// bottom: an interval that goes down to zero is still an interval.
    fn interval(&self, &[x, lower, upper]: &[f64; 3]) -> Option<(f64, f64, f64)> {
        let (x, high) = self.point(x, upper)?;
        let low = match self.y.place(lower) {
            Some(at) => self.down(at),
            None if lower <= 0.0 && lower.is_finite() => self.height + BLEED,
            None => return None,
        };
        Some((x, low, high))
    }
}

/// The axes that show all data and reference lines, unless the ranges were given.
fn axes(chart: &Chart, slot: f64) -> (Axis, Axis) {
    let (xs, ys) = (chart.x_scale(), chart.y.scale);
    let (mut across, mut up) = (Extent::default(), Extent::default());
    let mut add = |x: Option<f64>, y: Option<f64>| {
        if let (Some(x), Some(y)) = (x, y) {
            across.add(x);
            up.add(y);
        }
    };
    let zero = ys.inner(0.0);
    for series in &chart.series {
        match &series.shape {
            Shape::Line(items) | Shape::Steps(items) | Shape::Points(items) => {
                items.iter().for_each(|&(x, y)| add(xs.inner(x), ys.inner(y)));
            }
            Shape::Bars(items) => {
                for &(x, y) in items {
                    for side in [-0.5, 0.5] {
                        let x = xs.inner(x).map(|x| x + side * slot);
                        add(x, ys.inner(y));
                        add(x, zero.and(ys.inner(y)).and(zero));
                    }
                }
            }
            Shape::Histogram(items) => {
                for &[from, to, y] in items {
                    add(xs.inner(from), ys.inner(y));
                    add(xs.inner(to), zero.or(ys.inner(y)));
                }
            }
            Shape::Band(items) | Shape::Whiskers(items) => {
                for &[x, lower, upper] in items {
                    add(xs.inner(x), ys.inner(upper));
                    if upper.is_finite() {
                        add(xs.inner(x), ys.inner(lower));
                    }
                }
            }
        }
    }
    for line in &chart.references {
        let (scale, extent) = if line.horizontal { (ys, &mut up) } else { (xs, &mut across) };
        if let Some(at) = scale.inner(line.value) {
            extent.add(at);
        }
    }
    // Half a dot on the axis looks like a fault, a line that starts there does not.
    let has_marks =
        chart.series.iter().any(|s| matches!(s.shape, Shape::Points(_) | Shape::Whiskers(_)));
    let x = if chart.categories.is_empty() {
        chosen(&chart.x).unwrap_or(Axis::around(xs, across, 0.02, !has_marks))
    } else {
        Axis::spanning(Scale::Linear, -0.5, chart.categories.len() as f64 - 0.5)
    };
    (x, chosen(&chart.y).unwrap_or(Axis::around(ys, up, 0.06, true)))
}

fn chosen(plan: &AxisPlan) -> Option<Axis> {
    let (from, to) = plan.range?;
    Some(Axis::spanning(plan.scale, plan.scale.inner(from)?, plan.scale.inner(to)?))
}

impl Chart {
    fn x_scale(&self) -> Scale {
        if self.categories.is_empty() { self.x.scale } else { Scale::Linear }
    }
}

/// As many ticks as fit side by side.
fn fitting_ticks(axis: &Axis, length: f64) -> Vec<crate::axis::Tick> {
    let mut most = ((length / 50.0) as usize).clamp(2, 10);
    loop {
        let ticks = axis.ticks(most);
        let crowded = ticks.windows(2).any(|pair| {
            let letters = pair[0].label.clone() + &pair[1].label;
            (pair[1].at - pair[0].at) * length < text_width(&letters, LETTERS) / 2.0 + 14.0
        });
        if !crowded || most <= 2 {
            return ticks;
        }
        most -= 1;
    }
}

/// The distance between neighbouring bars on the inner scale of the horizontal axis.
fn bar_slot(chart: &Chart) -> f64 {
    let mut places: Vec<f64> = Vec::new();
    for series in &chart.series {
        if let Shape::Bars(items) = &series.shape {
            places.extend(items.iter().filter_map(|item| chart.x_scale().inner(item.0)));
        }
    }
    places.sort_unstable_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let least = gaps.fold(f64::INFINITY, f64::min);
    if least.is_finite() && chart.categories.is_empty() { least } else { 1.0 }
}

/// How many finite values have no place on the axes.
fn hidden_values(chart: &Chart) -> usize {
    let (xs, ys) = (chart.x_scale(), chart.y.scale);
    let hidden = |x: f64, y: f64| {
        x.is_finite() && y.is_finite() && (xs.inner(x).is_none() || ys.inner(y).is_none())
    };
    let count = |series: &Series| match &series.shape {
        Shape::Line(items) | Shape::Steps(items) | Shape::Points(items) | Shape::Bars(items) => {
            items.iter().filter(|item| hidden(item.0, item.1)).count()
        }
        // An empty bin needs no bar, so nothing is missing.
        Shape::Histogram(items) => {
            let counts = |item: &&[f64; 3]| item[2] != 0.0;
            items.iter().filter(counts).filter(|item| hidden(item[0], item[2])).count()
        }
        Shape::Band(items) | Shape::Whiskers(items) => {
            items.iter().filter(|item| hidden(item[0], item[2])).count()
        }
    };
    chart.series.iter().map(count).sum()
}

/// The colour number of each series: chosen ones as they are, the others in order.
fn colours(chart: &Chart) -> Vec<usize> {
    let mut next = 0;
    let mut colour = |series: &Series| {
        series.color.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    chart.series.iter().map(&mut colour).collect()
}

/// Dashes of a line: asked for, or because the colours have started over.
fn dash(series: &Series, colour: usize) -> Option<&'static str> {
    let round = colour / SERIES + usize::from(series.dashed);
    (round > 0).then(|| DASHES[(round - 1) % DASHES.len()])
}

fn dash_attribute(dash: Option<&str>) -> String {
    dash.map_or(String::new(), |dash| format!(" stroke-dasharray=\"{dash}\""))
}

// The legend.

struct LegendItem {
    name: String,
    class: String,
    /// Drawn in a box of `SWATCH` by 12 pixels.
    swatch: String,
}

fn legend_items(chart: &Chart) -> Vec<LegendItem> {
    let mut items = Vec::new();
    for (series, colour) in chart.series.iter().zip(colours(chart)) {
        let opacity = (series.effective_opacity() * 100.0).round() / 100.0;
        let swatch = match &series.shape {
            Shape::Line(_) | Shape::Steps(_) => format!(
                "<path d=\"M0 6h20\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.5\"{}/>",
                dash_attribute(dash(series, colour))
            ),
            Shape::Points(_) => format!(
                "<path d=\"M10 6h.1\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"8\" \
                 stroke-linecap=\"{}\"/>",
                cap(colour)
            ),
            Shape::Bars(_) | Shape::Histogram(_) => format!(
                "<rect x=\"4\" width=\"12\" height=\"12\" rx=\"2\" fill=\"currentColor\" \
                 fill-opacity=\"{opacity}\"/>"
            ),
            Shape::Band(_) => format!(
                "<rect width=\"20\" height=\"12\" fill=\"currentColor\" \
                 fill-opacity=\"{opacity}\"/>"
            ),
            Shape::Whiskers(_) => "<path d=\"M6 0h8M10 0v12M6 12h8\" fill=\"none\" \
                 stroke=\"currentColor\" stroke-width=\"1.5\"/>"
                .to_owned(),
        };
        let class = format!("s{}", colour % SERIES);
        items.push(LegendItem { name: series.name.clone(), class, swatch });
    }
    for (i, line) in chart.references.iter().enumerate() {
        let run = if line.horizontal { "M0 6h20" } else { "M10 -2v16" };
        let swatch = format!(
            "<path d=\"{run}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"{}/>",
            dash_attribute(Some(DASHES[i % DASHES.len()]))
        );
        items.push(LegendItem { name: line.name.clone(), class: "ref".to_owned(), swatch });
    }
    items.retain(|item| !item.name.trim().is_empty());
    items
}

/// Draws the legend in as many rows as needed and returns where it ends.
fn draw_legend(out: &mut String, items: &[LegendItem], top: f64, width: f64) -> f64 {
    let (mut x, mut y) = (EDGE, top + 4.0);
    for item in items {
        let name = shorten(&item.name, LETTERS, width - 2.0 * EDGE - SWATCH - 6.0);
        let length = SWATCH + 4.0 + text_width(&name, LETTERS);
        if x > EDGE && x + length > width - EDGE {
            x = EDGE;
            y += LEGEND_ROW;
        }
        *out += &format!(
            "<g class=\"{}\" transform=\"translate({} {})\">{}<text x=\"{}\" y=\"10\">{}</text></g>\n",
            item.class,
            px(x),
            px(y),
            item.swatch,
            px(SWATCH + 4.0),
            escape(&name)
        );
        x += length + 16.0;
    }
    if items.is_empty() { top } else { y + LEGEND_ROW - 4.0 }
}

// The data.

fn draw_data(out: &mut String, chart: &Chart, plot: &Plot, slot: f64) {
    let colours = colours(chart);
    let is_bars = |series: &Series| matches!(series.shape, Shape::Bars(_));
    let bar_series = chart.series.iter().filter(|series| is_bars(series)).count();
    // Clouds lie behind lines, areas behind both; within a layer the later series is in front.
    for layer in 0..5 {
        if layer == 2 {
            // Bars that point down need a line to stand on.
            if bar_series > 0 && plot.base() < plot.height {
                let base = px(plot.base());
                *out += &format!("<path class=\"axis\" d=\"M0 {base}h{}\"/>\n", px(plot.width));
            }
            draw_references(out, chart, plot);
        }
        let mut bar_number = 0;
        for (series, &colour) in chart.series.iter().zip(&colours) {
            let group = (bar_number, bar_series);
            bar_number += usize::from(is_bars(series));
            if layer_of(series) == layer {
                *out += &format!("<g class=\"s{}\">\n", colour % SERIES);
                draw_series(out, chart, plot, series, colour, (slot, group));
                *out += "</g>\n";
            }
        }
    }
}

fn layer_of(series: &Series) -> usize {
    match series.shape {
        Shape::Band(_) => 0,
        Shape::Bars(_) | Shape::Histogram(_) => 1,
        Shape::Points(_) => 2,
        Shape::Line(_) | Shape::Steps(_) => 3,
        Shape::Whiskers(_) => 4,
    }
}

fn draw_references(out: &mut String, chart: &Chart, plot: &Plot) {
    for (i, line) in chart.references.iter().enumerate() {
        let run = if line.horizontal {
            plot.y
                .place(line.value)
                .map(|at| format!("M0 {}h{}", px(plot.down(at)), px(plot.width)))
        } else {
            plot.across(line.value).map(|at| format!("M{} 0v{}", px(at), px(plot.height)))
        };
        if let Some(run) = run {
            *out += &format!(
                "<g class=\"ref\"><path d=\"{run}\" fill=\"none\" stroke=\"currentColor\" \
                 stroke-width=\"1.5\"{}/></g>\n",
                dash_attribute(Some(DASHES[i % DASHES.len()]))
            );
        }
    }
}

fn draw_series(
    out: &mut String,
    chart: &Chart,
    plot: &Plot,
    series: &Series,
    colour: usize,
    (slot, (bar_number, bar_series)): (f64, (usize, usize)),
) {
    let opacity = series.effective_opacity();
    match &series.shape {
        Shape::Line(items) => {
            let path = thin::path(items.iter().map(|&(x, y)| plot.point(x, y)));
            stroke(out, &path, 2.0, opacity, dash(series, colour));
        }
        Shape::Steps(items) => {
            let path = thin::path(corners(items.iter().map(|&(x, y)| plot.point(x, y))));
            stroke(out, &path, 2.0, opacity, dash(series, colour));
        }
        Shape::Points(items) => {
            let inside = |p: &(f64, f64)| {
                (-BLEED..=plot.width + BLEED).contains(&p.0)
                    && (-BLEED..=plot.height + BLEED).contains(&p.1)
            };
            let points: Vec<(f64, f64)> =
                items.iter().filter_map(|&(x, y)| plot.point(x, y)).filter(inside).collect();
            let size = if points.len() <= 400 { 6.0 } else { 4.0 };
            for dots in thin::dots(&points) {
                let dense = opacity + (0.97f64.max(opacity) - opacity) * dots.density;
                *out += &format!(
                    "<path d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"{}\" \
                     stroke-opacity=\"{}\" stroke-linecap=\"{}\"/>\n",
                    dots.path,
                    px(dots.cell.max(size)),
                    (dense * 100.0).round() / 100.0,
                    cap(colour)
                );
            }
        }
        Shape::Bars(items) => {
            let scale = chart.x_scale();
            let whole = 0.8 * slot;
            let thick = whole / bar_series.max(1) as f64;
            let bars = items.iter().filter_map(|&(x, y)| {
                let start = scale.inner(x)? - whole / 2.0 + bar_number as f64 * thick;
                let from = plot.x.place_inner(start) * plot.width;
                let to = plot.x.place_inner(start + 0.94 * thick) * plot.width;
                let name = category(chart, x).unwrap_or_else(|| number(x));
                let hint = format!("{}: {}", name, number(y));
                Some(Bar { from, to, end: plot.down(plot.y.place(y)?), hint })
            });
            draw_bars(out, plot, series, bars.collect(), opacity);
        }
        Shape::Histogram(items) => {
            let bars = items.iter().filter_map(|&[from, to, y]| {
                let hint = format!("{} to {}: {}", number(from), number(to), number(y));
                let (from, to) = (plot.across(from)?, plot.across(to)?);
                Some(Bar { from, to, end: plot.down(plot.y.place(y)?), hint })
            });
            let bars: Vec<Bar> = bars.collect();
            // The outline keeps histograms apart that lie over each other.
            let outline = bars.iter().flat_map(|bar| [(bar.from, bar.end), (bar.to, bar.end)]);
            let outline = thin::path(outline.map(Some));
            draw_bars(out, plot, series, bars, opacity);
            stroke(out, &outline, 1.2, 1.0, None);
        }
        Shape::Band(items) => {
            for run in thin::runs(items.iter().map(|item| plot.interval(item)), |item| item.0) {
                // An area of no width would be invisible.
                let run = if let [(x, low, high)] = run[..] {
                    vec![(x - 1.0, low, high), (x + 1.0, low, high)]
                } else {
                    run
                };
                let upper = thin::path(run.iter().map(|&(x, _, high)| Some((x, high))));
                let lower = thin::path(run.iter().rev().map(|&(x, low, _)| Some((x, low))));
                let area = format!("{upper}L{}Z", lower.trim_start_matches('M'));
                *out += &format!(
                    "<path d=\"{area}\" fill=\"currentColor\" fill-opacity=\"{}\"/>\n",
                    (opacity * 100.0).round() / 100.0
                );
            }
        }
        Shape::Whiskers(items) => {
            let mut path = String::new();
            let stride = items.len().div_ceil(MOST_BARS).max(1);
            let places = items.iter().step_by(stride).filter_map(|item| plot.interval(item));
            for (x, low, high) in places {
                path += &format!(
                    "M{left} {high}h8M{left} {low}h8M{} {low}V{high}",
                    px(x),
                    left = px(x - 4.0),
                    low = px(low),
                    high = px(high)
                );
            }
            stroke(out, &path, 1.5, opacity, None);
        }
    }
}

fn cap(colour: usize) -> &'static str {
    // A second sign beside the colour to tell clouds apart.
    if colour.is_multiple_of(2) { "round" } else { "square" }
}

fn stroke(out: &mut String, path: &str, width: f64, opacity: f64, dash: Option<&str>) {
    if path.is_empty() {
        return;
    }
    let opacity = if opacity < 1.0 {
        format!(" stroke-opacity=\"{}\"", (opacity * 100.0).round() / 100.0)
    } else {
        String::new()
    };
    // Round ends would close the gaps of a dashed line.
    let cap = if dash.is_none() { " stroke-linecap=\"round\"" } else { "" };
    *out += &format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"{}\" \
         stroke-linejoin=\"round\"{cap}{opacity}{}/>\n",
        px(width),
        dash_attribute(dash)
    );
}

/// Puts a corner before each point, at the height of the one before.
fn corners(
    points: impl Iterator<Item = Option<(f64, f64)>>,
) -> impl Iterator<Item = Option<(f64, f64)>> {
    let mut before: Option<(f64, f64)> = None;
    points.flat_map(move |point| {
        let corner = before.zip(point).map(|(old, new)| (new.0, old.1));
        before = point;
        corner.map(Some).into_iter().chain([point])
    })
}

fn category(chart: &Chart, x: f64) -> Option<String> {
    (x >= 0.0 && x.fract() == 0.0).then(|| chart.categories.get(x as usize).cloned()).flatten()
}

struct Bar {
    from: f64,
    to: f64,
    end: f64,
    hint: String,
}

fn draw_bars(out: &mut String, plot: &Plot, series: &Series, mut bars: Vec<Bar>, opacity: f64) {
    let base = plot.base();
    if bars.len() > MOST_BARS {
        bars.sort_by(|a, b| a.from.total_cmp(&b.from));
        let mut kept: Vec<Bar> = Vec::new();
        for bar in bars {
            match kept.last_mut() {
                Some(last) if last.from.floor() == bar.from.floor() => {
                    if (bar.end - base).abs() > (last.end - base).abs() {
                        *last = bar;
                    }
                }
                _ => kept.push(bar),
            }
        }
        bars = kept;
    }
    *out += &format!(
        "<g fill=\"currentColor\" fill-opacity=\"{}\" shape-rendering=\"crispEdges\">\n",
        (opacity * 100.0).round() / 100.0
    );
    let hints = bars.len() <= MOST_HINTS;
    for bar in &bars {
        // The width of the rounded places, as a rounded width would leave slits between bins.
        let (from, to) = (tenths(bar.from.min(bar.to)), tenths(bar.from.max(bar.to)));
        let place = format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            px(from),
            px(bar.end.min(base)),
            px((to - from).max(0.4)),
            px((bar.end - base).abs())
        );
        *out += &if hints {
            let name = if series.name.is_empty() { "" } else { &format!("{}, ", series.name) };
            format!("{place}><title>{}</title></rect>\n", escape(&format!("{name}{}", bar.hint)))
        } else {
            format!("{place}/>\n")
        };
    }
    *out += "</g>\n";
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// What the chart shows, for readers who cannot see it.
fn describe(chart: &Chart, plot: &Plot) -> String {
    let mut out = chart.description.trim().to_owned();
    let mut say = |sentence: String| {
        if !out.is_empty() {
            out.push(' ');
        }
        out += &sentence;
    };
    let axis = |name: &str, plan: &AxisPlan, axis: &Axis| {
        let (from, to) = axis.ends();
        let label = if plan.label.is_empty() { "" } else { &format!(" ({})", plan.label) };
        let kind = if plan.scale == Scale::Log10 { ", logarithmic" } else { "" };
        format!("{name} axis{label} from {} to {}{kind}.", number(from), number(to))
    };
    if chart.categories.is_empty() {
        say(axis("Horizontal", &chart.x, &plot.x));
    } else {
        say(format!("Horizontal axis: {}.", chart.categories.join(", ")));
    }
    say(axis("Vertical", &chart.y, &plot.y));
    for series in chart.series.iter().filter(|series| !series.name.is_empty()) {
        let (kind, count) = (series.kind(), series.len());
        let values = if count == 1 { "value" } else { "values" };
        say(format!("{} ({kind}, {count} {values}).", series.name));
    }
    for line in &chart.references {
        say(format!("{}: line at {}.", line.name, number(line.value)));
    }
    out
}
