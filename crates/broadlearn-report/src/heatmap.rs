//! Heat maps: a matrix of values as coloured cells.

use crate::escape::escape;
use crate::svg::{EDGE, LETTERS, Names, Place, document, px, text, title, turned_text};
use crate::text::{number, shorten, shorten_middle, significant, width as text_width};

/// Dark to bright, even in brightness for every kind of sight (viridis).
const RISING: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2d, 0x7b],
    [0x3b, 0x52, 0x8b],
    [0x2c, 0x72, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x28, 0xae, 0x80],
    [0x5e, 0xc9, 0x62],
    [0xad, 0xdc, 0x30],
    [0xfd, 0xe7, 0x25],
];
/// Blue over white to red, for values on both sides of a centre.
const TWO_SIDED: [[u8; 3]; 7] = [
    [0x21, 0x66, 0xac],
    [0x67, 0xa9, 0xcf],
    [0xd1, 0xe5, 0xf0],
    [0xf7, 0xf7, 0xf7],
    [0xfd, 0xdb, 0xc7],
    [0xef, 0x8a, 0x62],
    [0xb2, 0x18, 0x2b],
];
/// Colours are rounded to so many steps, so that equal cells can share one path.
const STEPS: usize = 64;
/// Up to this many cells each one shows its value when pointed at.
const MOST_HINTS: usize = 1000;
/// A side with more cells is averaged: there are no more pixels to show them.
const MOST_CELLS: usize = 150;

/// A matrix of values as coloured cells, drawn as SVG, for example a confusion matrix or scores
/// over two settings.
///
/// The first row is at the top. Values that are not finite are left blank.
#[derive(Clone, Debug)]
pub struct HeatMap {
    title: String,
    description: String,
    x_label: String,
    y_label: String,
    value_label: String,
    columns: Vec<String>,
    rows: Vec<String>,
    values: Vec<Vec<f64>>,
    centre: Option<f64>,
}

impl HeatMap {
    /// A heat map of `values[row][column]`. Values that are missing count as not finite.
    pub fn new<C: Into<String>, R: Into<String>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = R>,
        values: Vec<Vec<f64>>,
    ) -> HeatMap {
        HeatMap {
            title: title.into(),
            description: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            value_label: String::new(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().map(Into::into).collect(),
            values,
            centre: None,
        }
    }

    /// Names what the columns are.
    pub fn x_label(mut self, label: impl Into<String>) -> HeatMap {
        self.x_label = label.into();
        self
    }

    /// Names what the rows are.
    pub fn y_label(mut self, label: impl Into<String>) -> HeatMap {
        self.y_label = label.into();
        self
    }

    /// Names what the colours are.
    pub fn value_label(mut self, label: impl Into<String>) -> HeatMap {
        self.value_label = label.into();
        self
    }

    /// Uses two-sided colours around this value, for example zero for differences.
    pub fn centered_at(mut self, value: f64) -> HeatMap {
        self.centre = Some(value).filter(|v| v.is_finite());
        self
    }

    /// Says for readers who cannot see the picture what it shows.
    pub fn description(mut self, text: impl Into<String>) -> HeatMap {
        self.description = text.into();
        self
    }

    /// The heat map as a complete SVG file, in light or dark colours as its viewer asks for.
    pub fn to_svg(&self) -> String {
        self.draw(Place::File, 840.0)
    }

    /// The heat map for a page, once for wide and once for narrow screens.
    pub(crate) fn for_page(&self) -> [String; 2] {
        [self.draw(Place::Page, 840.0), self.draw(Place::Page, 380.0)]
    }

    fn draw(&self, place: Place, width: f64) -> String {
        let (columns, rows, cells) = self.averaged();
        let range = Range::of(&cells, self.centre);

        let mut out = String::new();
        let top = title(&mut out, &self.title, width);
        let top = range.draw(&mut out, &self.value_label, top + 4.0) + 10.0;

        let label_room = if self.y_label.trim().is_empty() { 0.0 } else { 20.0 };
        let names: Vec<String> =
            rows.iter().map(|r| shorten_middle(r, LETTERS, width * 0.28)).collect();
        let widest = names.iter().map(|name| text_width(name, LETTERS)).fold(0.0, f64::max);
        let left = EDGE + label_room + widest + 8.0;
        let most = width - left - EDGE;
        let across = columns.len().max(1) as f64;
        let down = rows.len().max(1) as f64;
        // Few columns make no use of the whole width: squat cells read better than long ones.
        let cell_width = (most / across).min(110.0);
        let mut cell_height = cell_width.clamp(15.0, 34.0);
        if down > 40.0 {
            // Too many rows to name each of them, so the shape of the whole matters more.
            cell_height = cell_height.min((0.7 * width / down).max(2.0));
        }
        let (plot_width, plot_height) = (cell_width * across, cell_height * down);

        let every = (15.0 / cell_height).ceil().max(1.0) as usize;
        for (i, name) in names.iter().enumerate().step_by(every) {
            let y = top + (i as f64 + 0.5) * cell_height + 4.0;
            out += &text("tick", (left - 7.0, y), "end", name);
        }
        let below = Names::fit(&columns, cell_width, left);
        below.draw(&mut out, top + plot_height, |i| left + (i as f64 + 0.5) * cell_width);
        let mut height = top + plot_height + below.height + 8.0;
        if !self.x_label.trim().is_empty() {
            height += 18.0;
            let label = shorten(&self.x_label, LETTERS, width - 2.0 * EDGE);
            // Centred under the cells as long as it does not run out of the picture.
            let half = text_width(&label, LETTERS) / 2.0;
            let middle = (left + plot_width / 2.0).clamp(EDGE + half, width - EDGE - half);
            out += &text("label", (middle, height - 11.0), "middle", &label);
        }
        if label_room > 0.0 {
            let label = shorten(&self.y_label, LETTERS, height - 2.0 * EDGE);
            let half = text_width(&label, LETTERS) / 2.0;
            let middle = (top + plot_height / 2.0).max(EDGE + half);
            out += &turned_text("label", (EDGE + 12.0, middle), "middle", -90.0, &label);
        }

        let grid = Grid { left, top, cell_width, cell_height };
        if columns.len() * rows.len() <= MOST_HINTS {
            draw_cells(&mut out, &grid, &range, &columns, &rows, &cells);
        } else {
            draw_many_cells(&mut out, &grid, &range, &cells);
        }
        let description = format!(
            "{} Heat map of {} columns ({}) and {} rows ({}), values from {} to {}.",
            self.description,
            self.columns.len(),
            if self.x_label.is_empty() { "not named" } else { &self.x_label },
            self.rows.len(),
            if self.y_label.is_empty() { "not named" } else { &self.y_label },
            number(range.lo),
            number(range.hi)
        );
        document(place, (width, height), &self.title, description.trim(), &out)
    }

    /// The complete matrix, made smaller by averages of blocks if it has too many cells.
    fn averaged(&self) -> (Vec<String>, Vec<String>, Vec<Vec<f64>>) {
        let wide = self.columns.len().div_ceil(MOST_CELLS).max(1);
        let high = self.rows.len().div_ceil(MOST_CELLS).max(1);
        let value = |r: usize, c: usize| {
            self.values.get(r).and_then(|row| row.get(c)).copied().unwrap_or(f64::NAN)
        };
        let mean = |row: usize, column: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for r in row..(row + high).min(self.rows.len()) {
                for c in column..(column + wide).min(self.columns.len()) {
                    let v = value(r, c);
                    if v.is_finite() && v.abs() < 1e150 {
                        sum += v;
                        count += 1.0;
                    }
                }
            }
            // Zero over zero: a block without values has none.
            sum / count
        };
        let starts = |len: usize, step: usize| (0..len).step_by(step);
        (
            self.columns.iter().step_by(wide).cloned().collect(),
            self.rows.iter().step_by(high).cloned().collect(),
            starts(self.rows.len(), high)
                .map(|r| starts(self.columns.len(), wide).map(|c| mean(r, c)).collect())
                .collect(),
        )
    }
}

struct Grid {
    left: f64,
    top: f64,
    cell_width: f64,
    cell_height: f64,
}

impl Grid {
    fn corner(&self, row: usize, column: usize) -> (f64, f64) {
        let x = self.left + column as f64 * self.cell_width;
        (x, self.top + row as f64 * self.cell_height)
    }
}

/// Cells with borders, values in them if there is room, and hints.
fn draw_cells(
    out: &mut String,
    grid: &Grid,
    range: &Range,
    columns: &[String],
    rows: &[String],
    cells: &[Vec<f64>],
) {
    let written: Vec<Vec<String>> = cells
        .iter()
        .map(|row| row.iter().map(|&v| significant(v, 3)).collect::<Vec<_>>())
        .collect();
    let widest = written.iter().flatten().map(|t| text_width(t, LETTERS)).fold(0.0, f64::max);
    let room = widest + 4.0 <= grid.cell_width && grid.cell_height >= 15.0;
    for (r, row) in cells.iter().enumerate() {
        for (c, &value) in row.iter().enumerate() {
            let (x, y) = grid.corner(r, c);
            let look = match range.step(value) {
                Some(step) => format!("class=\"edge\" fill=\"{}\"", hex(range.colour(step))),
                None => "class=\"gap\"".to_owned(),
            };
            *out += &format!(
                "<rect {look} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
                px(x),
                px(y),
                px(grid.cell_width),
                px(grid.cell_height),
                escape(&format!("{}, {}: {}", rows[r], columns[c], number(value)))
            );
            if room {
                let class = match range.step(value) {
                    Some(step) if is_bright(range.colour(step)) => "dark",
                    Some(_) => "pale",
                    None => "tick",
                };
                let middle = (x + grid.cell_width / 2.0, y + grid.cell_height / 2.0 + 4.0);
                // The letters must not take the pointer away from the cell and its hint.
                *out += &text(class, middle, "middle", &written[r][c]).replacen(
                    "<text",
                    "<text pointer-events=\"none\"",
                    1,
                );
            }
        }
    }
}

/// All cells of a colour in one path, as there are too many for an element each.
fn draw_many_cells(out: &mut String, grid: &Grid, range: &Range, cells: &[Vec<f64>]) {
    let mut paths = vec![String::new(); STEPS];
    for (r, row) in cells.iter().enumerate() {
        let mut c = 0;
        for run in row.chunk_by(|a, b| range.step(*a) == range.step(*b)) {
            if let Some(step) = range.step(run[0]) {
                // Absolute places, as rounded lengths would leave slits between neighbours.
                let (left, top) = grid.corner(r, c);
                let (right, bottom) = grid.corner(r + 1, c + run.len());
                paths[step] += &format!(
                    "M{left} {}H{}V{}H{left}z",
                    px(top),
                    px(right),
                    px(bottom),
                    left = px(left)
                );
            }
            c += run.len();
        }
    }
    // The thin stroke closes the hairlines that printing leaves between neighbours.
    *out += "<g shape-rendering=\"crispEdges\" stroke-width=\"0.4\">\n";
    for (step, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let colour = hex(range.colour(step));
        *out += &format!("<path fill=\"{colour}\" stroke=\"{colour}\" d=\"{path}\"/>\n");
    }
    *out += "</g>\n";
}

/// From values to colours.
struct Range {
    lo: f64,
    hi: f64,
    stops: &'static [[u8; 3]],
}

impl Range {
    fn of(cells: &[Vec<f64>], centre: Option<f64>) -> Range {
        let finite = || cells.iter().flatten().copied().filter(|v| v.is_finite());
        let lo = finite().reduce(f64::min).unwrap_or(0.0);
        let hi = finite().reduce(f64::max).unwrap_or(1.0);
        let Some(centre) = centre else {
            return Range { lo, hi, stops: &RISING };
        };
        // Both sides alike, so that equal distances have equally strong colours.
        let reach = (hi - centre).abs().max((lo - centre).abs());
        Range { lo: centre - reach, hi: centre + reach, stops: &TWO_SIDED }
    }

    fn step(&self, value: f64) -> Option<usize> {
        if !value.is_finite() {
            return None;
        }
        let share = if self.hi > self.lo { (value - self.lo) / (self.hi - self.lo) } else { 0.5 };
        Some((share.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize)
    }

    fn colour(&self, step: usize) -> [u8; 3] {
        let at = step as f64 / (STEPS - 1) as f64 * (self.stops.len() - 1) as f64;
        let from = (at as usize).min(self.stops.len() - 2);
        let share = at - from as f64;
        std::array::from_fn(|i| {
            let (a, b) = (f64::from(self.stops[from][i]), f64::from(self.stops[from + 1][i]));
            (a + (b - a) * share).round() as u8
        })
    }

    /// Draws the key to the colours in one row and returns where it ends.
    fn draw(&self, out: &mut String, label: &str, top: f64) -> f64 {
        let (lo, hi) = (significant(self.lo, 3), significant(self.hi, 3));
        let mut x = EDGE;
        if !label.trim().is_empty() {
            let label = shorten(label, LETTERS, 150.0);
            *out += &text("label", (x, top + 11.0), "start", &label);
            x += text_width(&label, LETTERS) + 10.0;
        }
        *out += &text("tick", (x, top + 11.0), "start", &lo);
        x += text_width(&lo, LETTERS) + 5.0;
        if self.hi > self.lo {
            *out += "<g shape-rendering=\"crispEdges\">\n";
            let (count, wide) = (STEPS / 2, 4.0);
            for i in 0..count {
                let step = (i * (STEPS - 1) + (count - 1) / 2) / (count - 1);
                *out += &format!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\" fill=\"{}\"/>\n",
                    px(x + i as f64 * wide),
                    px(top + 1.0),
                    px(wide),
                    hex(self.colour(step))
                );
            }
            *out += "</g>\n";
            x += count as f64 * wide + 5.0;
            *out += &text("tick", (x, top + 11.0), "start", &hi);
        }
        top + 14.0
    }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Whether dark letters have more contrast on this colour than white ones.
fn is_bright(colour: [u8; 3]) -> bool {
    let linear = |v: u8| (f64::from(v) / 255.0).powf(2.2);
    let [r, g, b] = colour.map(linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_cover_the_range() {
        let range = Range::of(&[vec![-1.0, f64::NAN, 3.0]], None);
        assert_eq!(range.step(-1.0).map(|s| range.colour(s)), Some(RISING[0]));
        assert_eq!(range.step(3.0).map(|s| range.colour(s)), Some(RISING[8]));
        assert_eq!(range.step(f64::NAN), None);
        let centred = Range::of(&[vec![-1.0, 3.0]], Some(0.0));
        assert_eq!((centred.lo, centred.hi), (-3.0, 3.0));
    }

    #[test]
    fn constant_and_empty_maps_work() {
        for values in [vec![], vec![vec![1.0]], vec![vec![f64::NAN]], vec![vec![]]] {
            let svg = HeatMap::new("t", ["a"], ["b"], values).to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
        assert!(HeatMap::new("t", [""; 0], [""; 0], vec![]).to_svg().contains("</svg>"));
    }
}
