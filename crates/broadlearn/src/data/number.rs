//! Decimal numbers straight from bytes.

/// The powers of ten that a double holds exactly.
const EXACT: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The number that `text` spells: `3`, `+3`, `-.5`, `5.`, `1e-5`, `inf`, `NaN`; no blanks around
/// it, no separators of thousands, no decimal comma. The nearest double, as the standard library
/// finds it; too large a number gives an infinity.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    short(text).or_else(|| long(text))
}

/// Numbers of few digits and a small exponent: both the digits and the power of ten are exact
/// doubles then, so that one multiplication or division rounds correctly. `None` for the others.
#[inline]
fn short(text: &[u8]) -> Option<f64> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut mantissa = 0u64;
    let whole = digits(&mut rest, &mut mantissa);
    let mut fraction = 0;
    if let [b'.', after @ ..] = rest {
        rest = after;
        fraction = digits(&mut rest, &mut mantissa);
    }
    // Up to 19 digits cannot overflow the mantissa; leading zeros are counted, to keep it simple.
    if whole + fraction == 0 || whole + fraction > 19 || mantissa > 1 << 53 {
        return None;
    }
    let mut exponent = -(fraction as i64);
    if let [b'e' | b'E', after @ ..] = rest {
        let (down, mut after) = match after {
            [b'-', after @ ..] => (true, after),
            [b'+', after @ ..] => (false, after),
            _ => (false, after),
        };
        let mut power = 0u64;
        if !(1..=4).contains(&digits(&mut after, &mut power)) {
            return None;
        }
        exponent += if down { -(power as i64) } else { power as i64 };
        rest = after;
    }
    let scale = *EXACT.get(exponent.unsigned_abs() as usize)?;
    if !rest.is_empty() {
        return None;
    }
    let size = if exponent < 0 { mantissa as f64 / scale } else { mantissa as f64 * scale };
    Some(if negative { -size } else { size })
}

/// Takes the digits from the front of `rest` into `number` and says how many there were.
#[inline]
fn digits(rest: &mut &[u8], number: &mut u64) -> usize {
    let mut count = 0;
    for byte in *rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    *rest = &rest[count..];
    count
}

/// All other numbers, the words for infinity and not-a-number included.
#[cold]
fn long(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_what_people_write() {
        for (text, value) in [
            ("0", 0.0),
            ("-0", 0.0),
            ("+3", 3.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e5", 1e5),
            ("1E+05", 1e5),
            ("-1.5e-3", -1.5e-3),
            ("0.1", 0.1),
            ("9007199254740993", 9007199254740992.0),
            ("123456789012345678901234567890", 1.2345678901234568e29),
            ("1e-400", 0.0),
            ("1e999", f64::INFINITY),
            ("inf", f64::INFINITY),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse(b"NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", ".", "-", "e5", "1e", "1e+", "1,5", "1_000", "0x10", " 1", "1 ", "1.2.3"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"1\xff"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(text in "[+-]?[0-9]{0,21}[.]?[0-9]{0,9}([eE][+-]?[0-9]{0,3})?") {
            prop_assert_eq!(parse(text.as_bytes()), text.parse().ok());
        }

        #[test]
        fn reads_back_what_was_written(bits: u64) {
            let value = f64::from_bits(bits);
            let text = format!("{value:e}");
            prop_assert_eq!(parse(text.as_bytes()).map(f64::to_bits),
                text.parse::<f64>().ok().map(f64::to_bits));
        }
    }
}
