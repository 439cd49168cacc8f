//! What every picture has: the frame of the document, the title, numbers short enough for SVG.

use crate::escape::escape;
use crate::palette::standalone_css;
use crate::text::{shorten_middle, width, wrap};

/// Size of the title's letters; the others are set in `chart.css`.
const TITLE: f64 = 15.0;
/// Size of all letters but those of the title.
pub(crate) const LETTERS: f64 = 12.0;
/// The free strip around a picture.
pub(crate) const EDGE: f64 = 10.0;

/// Where a picture will be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file of its own, which has to bring its colours.
    File,
    /// In a page that has the colours and rules.
    Page,
}

/// Wraps the drawing into a complete SVG element.
pub(crate) fn document(
    place: Place,
    (width, height): (f64, f64),
    title: &str,
    description: &str,
    drawing: &str,
) -> String {
    let (w, h) = (px(width), px(height));
    let own = match place {
        Place::Page => String::new(),
        Place::File => format!(
            "<style>\n{}</style>\n<rect class=\"bg\" width=\"{w}\" height=\"{h}\"/>\n",
            standalone_css()
        ),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bl\" role=\"img\" \
         viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">\n\
         <title>{}</title>\n<desc>{}</desc>\n{own}{drawing}</svg>\n",
        escape(title),
        escape(description),
    )
}

/// Draws the title and returns where it ends.
pub(crate) fn title(out: &mut String, title: &str, width: f64) -> f64 {
    let mut y = EDGE;
    // Bold letters are wider than the estimate for plain ones.
    for line in wrap(title, TITLE * 1.2, width - 2.0 * EDGE) {
        y += 18.0;
        *out += &text("title", (EDGE, y - 4.0), "start", &line);
    }
    y
}

/// A text element.
pub(crate) fn text(class: &str, (x, y): (f64, f64), anchor: &str, content: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
        px(x),
        px(y),
        escape(content)
    )
}

/// A text element turned around its anchor.
pub(crate) fn turned_text(
    class: &str,
    (x, y): (f64, f64),
    anchor: &str,
    degrees: f64,
    content: &str,
) -> String {
    format!(
        "<text class=\"{class}\" transform=\"translate({} {}) rotate({})\" \
         text-anchor=\"{anchor}\">{}</text>\n",
        px(x),
        px(y),
        px(degrees),
        escape(content)
    )
}

/// A coordinate with one decimal at most. Never anything but a plain number.
pub(crate) fn px(value: f64) -> String {
    // Far outside of the picture the exact place does not matter, only the length of the text.
    let value = if value.is_nan() { 0.0 } else { value.clamp(-1e5, 1e5) };
    format!("{}", (value * 10.0).round() / 10.0 + 0.0)
}

/// Names under equally wide columns: turned, shortened and left out as the room demands.
pub(crate) struct Names {
    /// Column and text.
    pub(crate) shown: Vec<(usize, String)>,
    pub(crate) turned: bool,
    /// Room needed below the axis.
    pub(crate) height: f64,
}

impl Names {
    const SLOPE: f64 = 40.0;

    /// Fits the names into columns `spacing` wide, the first starting `left` from the edge.
    pub(crate) fn fit(names: &[String], spacing: f64, left: f64) -> Names {
        let widest = names.iter().map(|name| width(name, LETTERS)).fold(0.0, f64::max);
        let turned = widest > spacing - 6.0;
        if !turned {
            let shown = names.iter().cloned().enumerate().collect();
            return Names { shown, turned, height: 18.0 };
        }
        let (sin, cos) = Names::SLOPE.to_radians().sin_cos();
        let limit = ((left + spacing / 2.0 - EDGE) / cos).clamp(30.0, 130.0);
        let every = (19.0 / spacing.max(0.01)).ceil().max(1.0) as usize;
        let shown: Vec<(usize, String)> = names
            .iter()
            .enumerate()
            .step_by(every)
            .map(|(i, name)| (i, shorten_middle(name, LETTERS, limit)))
            .collect();
        let longest = shown.iter().map(|(_, name)| width(name, LETTERS)).fold(0.0, f64::max);
        Names { shown, turned, height: longest * sin + 16.0 }
    }

    /// Draws the names; `centre` gives the middle of a column, `top` is where the axis is.
    pub(crate) fn draw(&self, out: &mut String, top: f64, centre: impl Fn(usize) -> f64) {
        for (i, name) in &self.shown {
            *out += &if self.turned {
                turned_text("tick", (centre(*i) + 3.0, top + 13.0), "end", -Names::SLOPE, name)
            } else {
                text("tick", (centre(*i), top + 16.0), "middle", name)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::px;

    #[test]
    fn coordinates_are_always_plain_numbers() {
        for (value, text) in [
            (1.0, "1"),
            (1.26, "1.3"),
            (-0.01, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "100000"),
            (-1e300, "-100000"),
        ] {
            assert_eq!(px(value), text);
        }
    }
}
