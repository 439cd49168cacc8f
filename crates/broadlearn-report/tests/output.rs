//! What must hold for everything the crate writes: well-formed, escaped, small, always the same.

use broadlearn_report::{Best, Block, Card, Chart, HeatMap, Page, Series, Table};

const NASTY: &str = "<script>alert(\"1\")</script> & 'x' ]]> \u{0} é";

/// Checks that tags nest, attributes are quoted and no stray `<` or `&` is left. Written for what
/// this crate makes, not for XML in general.
fn assert_well_formed(text: &str) {
    let body = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    let mut open: Vec<String> = Vec::new();
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        assert_entities(&rest[..start]);
        let end = start + tag_end(&rest[start..]);
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
        } else {
            let inner = tag.trim_end_matches('/');
            let name: String = inner.chars().take_while(|c| c.is_alphanumeric()).collect();
            assert!(!name.is_empty(), "tag without a name: {tag}");
            assert_attributes(&inner[name.len()..]);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert_entities(rest);
    assert!(open.is_empty(), "left open: {open:?}");
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    assert!(!text.contains(forbidden), "control character");
}

fn tag_end(text: &str) -> usize {
    let mut quoted = false;
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return i,
            '<' => assert!(i == 0, "< inside of a tag"),
            _ => {}
        }
    }
    panic!("tag without an end");
}

fn assert_attributes(text: &str) {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").expect("attribute without a quoted value");
        assert!(name.chars().all(|c| c.is_alphanumeric() || c == '-'), "attribute {name}");
        let (value, after) = after.split_once('"').expect("value without an end");
        assert_entities(value);
        rest = after.trim_start();
    }
}

fn assert_entities(text: &str) {
    for (i, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|e| text[i..].starts_with(e)), "stray &: {}", &text[i..]);
    }
}

fn assert_no_odd_numbers(svg: &str) {
    for word in ["NaN", "nan", "inf", "-0 ", "\"-0\""] {
        assert!(!svg.contains(word), "{word} in {svg}");
    }
}

fn awkward_values() -> Vec<f64> {
    vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-320,
        1e-12,
        1e12,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        3.0,
        3.0,
    ]
}

fn all_kinds(xs: &[f64], ys: &[f64]) -> Vec<Series> {
    let pairs = || xs.iter().copied().zip(ys.iter().copied()).collect::<Vec<_>>();
    let triples = || pairs().into_iter().map(|(x, y)| (x, y - 1.0, y + 1.0)).collect::<Vec<_>>();
    vec![
        Series::line("line", pairs()),
        Series::line("dashes", pairs()).dashed(),
        Series::steps("steps", pairs()),
        Series::points("points", pairs()),
        Series::bars("bars", pairs()),
        Series::bars("more bars", pairs()),
        Series::histogram("histogram", xs, ys),
        Series::histogram_of("counted", ys.to_vec(), 10),
        Series::band("band", triples()),
        Series::whiskers("whiskers", triples()),
    ]
}

#[test]
fn every_kind_survives_every_value() {
    let awkward = awkward_values();
    let mut reversed = awkward.clone();
    reversed.reverse();
    let cases: [(&[f64], &[f64]); 8] = [
        (&[], &[]),
        (&[1.0], &[2.0]),
        (&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]),
        (&[2.0, 2.0, 2.0], &[1.0, 2.0, 3.0]),
        (&[f64::NAN; 3], &[f64::INFINITY; 3]),
        (&[1e-300, 2e-300], &[1e150, -1e150]),
        (&awkward, &reversed),
        (&reversed, &awkward),
    ];
    for (xs, ys) in cases {
        for series in all_kinds(xs, ys) {
            for logs in 0..4 {
                let mut chart = Chart::new("t").series(series.clone());
                chart = if logs & 1 == 1 { chart.log_x() } else { chart };
                chart = if logs & 2 == 2 { chart.log_y() } else { chart };
                for chart in [
                    chart.clone(),
                    chart.clone().x_range(0.5, 1e9).y_range(-1.0, f64::NAN),
                    chart.clone().h_line("h", f64::NAN).v_line("v", 2.0),
                    chart.categories(["a", "b"]),
                ] {
                    let svg = chart.to_svg();
                    assert_no_odd_numbers(&svg);
                    assert_well_formed(&svg);
                }
            }
        }
    }
}

#[test]
fn heat_maps_survive_every_value() {
    let row = awkward_values();
    for centre in [None, Some(0.0), Some(f64::NAN)] {
        for rows in [0, 1, 3, 200] {
            let map = HeatMap::new(
                "t",
                row.iter().map(|_| "column"),
                (0..rows).map(|r| r.to_string()),
                vec![row.clone(); 2],
            );
            let svg = match centre {
                Some(centre) => map.centered_at(centre),
                None => map,
            }
            .to_svg();
            assert_no_odd_numbers(&svg);
            assert_well_formed(&svg);
        }
    }
}

/// A page with the text in every place that takes one.
fn page_of(text: &str) -> Page {
    let chart = all_kinds(&[1.0, 2.0], &[3.0, 4.0])
        .into_iter()
        .fold(Chart::new(text), Chart::series)
        .series(Series::line(text, [(0.0, 1.0)]))
        .series(Series::bars(text, [(0.0, 1.0)]))
        .x_label(text)
        .y_label(text)
        .description(text)
        .categories([text, text])
        .h_line(text, 1.0)
        .v_line(text, 1.0);
    let map = HeatMap::new(text, [text], [text, text], vec![vec![1.0], vec![2.0]])
        .x_label(text)
        .y_label(text)
        .value_label(text)
        .description(text);
    let table = Table::new([text, "n"])
        .row([text, "1"])
        .row([text, "2"])
        .caption(text)
        .best(1, Best::Largest)
        .highlight(0, 0);
    Page::new(text)
        .lead(text)
        .footer(text)
        .section(text)
        .section(text)
        .section(text)
        .section(text)
        .paragraph(text)
        .note(text)
        .list([text, text])
        .cards([Card::new(text, text).note(text)])
        .table(table.clone())
        .chart(chart.clone(), text)
        .heat_map(map, text)
        .code(text)
        .details(text, vec![Block::Table(table), Block::Chart(chart, text.into())])
}

#[test]
fn all_text_is_escaped() {
    let html = page_of(NASTY).to_html();
    assert_well_formed(&html);
    assert!(!html.contains("<script"));
    assert!(html.contains("&lt;script&gt;"));
    for svg in [
        Chart::new(NASTY).x_label(NASTY).series(Series::points(NASTY, [(0.0, 0.0)])).to_svg(),
        HeatMap::new(NASTY, [NASTY], [NASTY], vec![vec![0.0]]).to_svg(),
    ] {
        assert_well_formed(&svg);
        assert!(!svg.contains("<script"));
    }
}

#[test]
fn pages_need_nothing_from_elsewhere() {
    let html = page_of("plain").to_html().replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "url(", "@import", "<link", "<script", "<img"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn texts_of_any_length_work() {
    for text in ["", " ", &"word ".repeat(200), &"longword".repeat(200), "中文标题"] {
        assert_well_formed(&page_of(text).to_html());
    }
    let many = (0..60).fold(Chart::new("t"), |chart, i| {
        chart.series(Series::line(format!("series number {i}"), [(0.0, f64::from(i))]))
    });
    assert_well_formed(&many.to_svg());
}

#[test]
fn pictures_of_many_values_stay_small() {
    // A fixed sequence that fills the plot without a pattern.
    let noise = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
    let walk = || (0..100_000u64).map(|i| (i as f64, noise(i)));
    let scattered = || (0..100_000u64).map(|i| (noise(i), noise(i + 1_000_000)));
    let triples = || walk().map(|(x, y)| (x, y, y + 1.0));
    let gaps = |i: usize| if i.is_multiple_of(2) { f64::NAN } else { 0.0 };
    for series in [
        Series::line("", walk()),
        Series::line("", scattered()),
        Series::line("", walk().enumerate().map(|(i, (x, y))| (x, y + gaps(i)))),
        Series::line("", scattered().enumerate().map(|(i, (x, y))| (x, y + gaps(i)))),
        Series::band("", triples().enumerate().map(|(i, (x, y, z))| (x, y + gaps(i), z))),
        Series::steps("", walk()),
        Series::points("", walk()),
        Series::points("", scattered()),
        Series::bars("", walk()),
        Series::band("", triples()),
        Series::whiskers("", triples()),
        Series::histogram_of("", walk().map(|(_, y)| y), 5000),
    ] {
        let kind = format!("{series:.0?}").chars().take(60).collect::<String>();
        let length = Chart::new("t").series(series).to_svg().len();
        assert!(length < 200_000, "{kind}: {length}");
    }
    let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    let values = (0..1000).map(|r| (0..1000).map(|c| noise(r * 1000 + c)).collect()).collect();
    let length = HeatMap::new("t", many.clone(), many, values).to_svg().len();
    assert!(length < 600_000, "{length}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(page_of("a").to_html(), page_of("a").to_html());
}

#[test]
fn values_left_out_are_announced() {
    let chart = Chart::new("t").log_y().series(Series::line("", [(0.0, 1.0), (1.0, 0.0)]));
    assert!(chart.to_svg().contains("1 value cannot be shown on this scale"));
    let gap = Chart::new("t").series(Series::line("", [(0.0, 1.0), (1.0, f64::NAN)]));
    assert!(!gap.to_svg().contains("cannot be shown"));
}

#[test]
fn pictures_are_named_for_screen_readers() {
    let svg = Chart::new("Loss").series(Series::line("train", [(0.0, 1.0)])).to_svg();
    assert!(svg.contains("role=\"img\"") && svg.contains("<title>Loss</title>"));
    assert!(svg.contains("<desc>") && svg.contains("train (line, 1 value)"));
}
