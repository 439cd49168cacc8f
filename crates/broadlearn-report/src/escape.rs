//! Makes any text safe inside HTML and XML, both as content and as an attribute in quotes.

/// Escapes the five special characters and replaces those XML does not allow at all.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            // One stray control character would make a whole SVG file unreadable.
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("<a b='c'>&\"é"), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;é");
    }

    #[test]
    fn characters_xml_forbids_are_replaced() {
        assert_eq!(escape("a\0b\u{1b}c\nd"), "a\u{FFFD}b\u{FFFD}c\nd");
    }
}
