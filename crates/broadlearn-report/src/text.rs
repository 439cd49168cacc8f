//! Texts in pictures: how wide they are, how they are shortened, how numbers are written.

/// Estimates the width of a text in pixels, as no font is at hand when the picture is made.
///
/// The classes follow common sans-serif fonts and lean to the wide side: a little spare room looks
/// better than an overlap.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '\u{2009}' => 0.32,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-' | '⁻' | '¹' => 0.40,
        '⁰' | '²'..='³' | '⁴'..='⁹' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
        'A'..='Z' => 0.70,
        c if (c as u32) >= 0x1100 => 1.05,
        _ => 0.60,
    }
}

/// Shortens a text to the given width, with an ellipsis where something was cut.
pub(crate) fn shorten(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = size;
    for c in text.chars() {
        used += em(c) * size;
        if used > limit {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Shortens a name in the middle: names that belong together often differ only at the end.
pub(crate) fn shorten_middle(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let half = |chars: &mut dyn Iterator<Item = char>| -> String {
        let mut used = size * 0.5;
        let fits = |c: &char| {
            used += em(*c) * size;
            used <= limit / 2.0
        };
        chars.take_while(fits).collect()
    };
    let start = half(&mut text.chars());
    let end: String = half(&mut text.chars().rev()).chars().rev().collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// Breaks a text into lines at spaces; a word too long for a line is shortened.
pub(crate) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + 0.4 * size <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, size, limit)),
        }
    }
    lines
}

/// Writes a number for people to read: four significant digits, a power of ten when it is far from
/// one, digits in groups of three, and a dash for what is not a number.
///
/// ```
/// use broadlearn_report::number;
/// assert_eq!(number(0.123456), "0.1235");
/// assert_eq!(number(-2.5e-7), "−2.5×10⁻⁷");
/// assert_eq!(number(f64::NAN), "–");
/// ```
pub fn number(value: f64) -> String {
    significant(value, 4)
}

/// As [`number`], with the number of significant digits given.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.max(1);
    // The exponent is read from the rounded text, so that 9.9996 counts as 10.
    let text = format!("{:.*e}", digits - 1, value);
    let exponent = text.rsplit('e').next().and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    if (-4..=6).contains(&exponent) {
        let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
        return trim_zeros(&fixed(value, decimals));
    }
    let mantissa = text.split('e').next().unwrap_or("0").replace('-', "−");
    format!("{}×10{}", trim_zeros(&mantissa), superscript(exponent))
}

/// Writes a number with a fixed count of decimals, a real minus sign, and grouped digits.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = !text.contains(|c: char| ('1'..='9').contains(&c));
    let mut out = String::from(if value < 0.0 && !is_zero { "−" } else { "" });
    for (i, c) in whole.chars().enumerate() {
        // Four digits read well without a gap.
        if whole.len() > 4 && i > 0 && (whole.len() - i) % 3 == 0 {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    out + rest
}

/// Writes an exponent in raised digits.
pub(crate) fn superscript(exponent: i32) -> String {
    let raise = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    exponent.to_string().chars().map(raise).collect()
}

fn trim_zeros(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (9.99996, "10"),
            (-0.5, "−0.5"),
            (12345.678, "12\u{2009}346"),
            (1234.5, "1234"),
            (1e7, "1×10⁷"),
            (f64::MAX, "1.798×10³⁰⁸"),
            (5e-324, "4.941×10⁻³²⁴"),
            (f64::NEG_INFINITY, "−∞"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn long_texts_are_cut_or_wrapped() {
        assert_eq!(shorten("short", 10.0, 100.0), "short");
        let cut = shorten(&"x".repeat(500), 10.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0) <= 110.0);
        let cut = shorten_middle("dataset with a long name 12", 10.0, 90.0);
        assert!(cut.starts_with("dat") && cut.ends_with("12") && width(&cut, 10.0) <= 100.0);
        assert_eq!(wrap("one two three", 10.0, 50.0), ["one two", "three"]);
        assert!(wrap("  ", 10.0, 50.0).is_empty());
    }
}
