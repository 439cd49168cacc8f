//! The colours, once for light and once for dark surroundings.
//!
//! The series colours were chosen by search: at least 3:1 contrast with the background, and as far
//! apart from each other as possible for normal sight and for the three kinds of colour blindness.

/// How many colours there are for series.
pub(crate) const SERIES: usize = 8;

/// Name, light value, dark value.
const COLOURS: [(&str, &str, &str); 16] = [
    ("bg", "#ffffff", "#15181d"),
    ("panel", "#f5f6f8", "#1e2229"),
    ("fg", "#1b1f24", "#e8eaed"),
    ("muted", "#57606a", "#a4acb8"),
    ("border", "#d5d9df", "#363c46"),
    ("grid", "#e7e9ed", "#2a2f37"),
    ("accent", "#0b5cd6", "#7aa7f7"),
    ("best", "#dff3e4", "#1d4029"),
    ("s0", "#0b5cd6", "#4f82e6"),
    ("s1", "#ee4f12", "#dd6212"),
    ("s2", "#00543a", "#5be68c"),
    ("s3", "#a685ae", "#d9acff"),
    ("s4", "#549445", "#efa032"),
    ("s5", "#2f95f5", "#e9eaff"),
    ("s6", "#65655d", "#77b59e"),
    ("s7", "#5f267c", "#937589"),
];

/// The rules for pictures; they name colours as `var(--name)`.
pub(crate) const CHART_CSS: &str = include_str!("chart.css");

/// The colours as CSS variables, for a page that also holds pictures.
pub(crate) fn variables() -> String {
    let list = |pick: fn(&(&str, &str, &str)) -> String| COLOURS.iter().map(pick).collect();
    let light: String = list(|(name, light, _)| format!("--{name}:{light};"));
    let dark: String = list(|(name, _, dark)| format!("--{name}:{dark};"));
    // Paper is white whatever the screen looks like.
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n")
}

/// The picture rules with the colours written out: many SVG viewers know no CSS variables.
pub(crate) fn standalone_css() -> String {
    let write_out = |pick: fn(&(&str, &str, &str)) -> String| {
        COLOURS.iter().fold(CHART_CSS.to_owned(), |css, colour| {
            css.replace(&format!("var(--{})", colour.0), &pick(colour))
        })
    };
    let light = write_out(|c| c.1.to_owned());
    let dark = write_out(|c| c.2.to_owned());
    format!("{light}@media screen and (prefers-color-scheme:dark){{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_used_is_defined() {
        assert!(!standalone_css().contains("var("));
        assert_eq!(COLOURS.iter().filter(|c| c.0.starts_with('s')).count(), SERIES);
    }
}
