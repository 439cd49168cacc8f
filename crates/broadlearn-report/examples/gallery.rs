//! Writes a page with every kind of element, and each picture as a file beside it.
//!
//! `cargo run --example gallery -- /tmp/gallery.html`

use std::path::Path;

use broadlearn_report::{Best, Block, Card, Chart, HeatMap, Page, Series, Table, number};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "gallery.html".to_owned());
    let path = Path::new(&path);
    for (name, svg) in [
        ("errors", errors().to_svg()),
        ("cloud", cloud().to_svg()),
        ("confusion", confusion().to_svg()),
    ] {
        std::fs::write(path.with_file_name(format!("{name}.svg")), svg)?;
    }
    std::fs::write(path, page().to_html())
}

fn page() -> Page {
    Page::new("Gallery of a broadlearn report")
        .lead("Every kind of element once, to look at in light and dark, wide and narrow.")
        .section("Key figures")
        .paragraph(
            "The robust model was trained on 12 000 rows, of which a fifth had been made dirty \
             on purpose.\n\nA second paragraph follows an empty line.",
        )
        .cards([
            Card::new("Test RMSE", number(0.04217)).note("plain: 0.3141"),
            Card::new("Rows", number(12_000.0)).note("2400 of them dirty"),
            Card::new("Condition number", number(3.2e9)),
            Card::new("Training time", "1.84 s").note("two threads, without reading the file"),
        ])
        .note("17 rows had missing values and were left out.")
        .list(["features: 10 × 20", "enhancement nodes: 500", "regularisation: 2⁻³⁰"])
        .section("Tables")
        .table(
            Table::new(["Model", "Loss", "RMSE", "MAE", "Accuracy", "Time", "Remarks"])
                .caption("Five models on the same split; best values are bold.")
                .row(["plain", "squares", "0.3141", "0.2204", "81.2 %", "0.9 s", "baseline"])
                .row(["robust", "Huber", "0.0522", "0.0401", "95.4 %", "1.4 s", ""])
                .row(["robust", "Cauchy", "0.0422 ± 0.0031", "0.0317", "96.1 %", "1.8 s", "chosen"])
                .row(["robust", "Welsch", "0.0431", "0.0322", "96.1 %", "1.9 s", ""])
                .row(["forest", "–", "0.0907", "0.0711", "92.0 %", "12 s", "other library"])
                .best(2, Best::Smallest)
                .best(3, Best::Smallest)
                .best(4, Best::Largest)
                .best(5, Best::Smallest),
        )
        .section("Lines")
        .chart(errors(), "Mean over ten seeds; the band is one standard deviation.")
        .chart(decay(), "Both axes logarithmic, with values a logarithm does not have.")
        .chart(eight(), "All eight colours, then they start over with dashes.")
        .section("Points")
        .chart(cloud(), "A hundred thousand points.")
        .chart(few_points(), "Few points with error bars.")
        .section("Bars and histograms")
        .chart(bars(), "Point at a bar to see its value.")
        .chart(gains(), "Bars in both directions and long names.")
        .chart(residuals(), "Two histograms over each other.")
        .section("Heat maps")
        .heat_map(confusion(), "A confusion matrix.")
        .heat_map(differences(), "Differences around zero, one value missing.")
        .heat_map(large(), "Many cells.")
        .section("Degenerate")
        .chart(
            Chart::new("Nothing at all").x_label("x").y_label("y").series(Series::line("empty", [])),
            "An empty series.",
        )
        .chart(
            Chart::new("A constant, with a gap and a lone point, and a title that is much too long for a single line of a narrow screen")
                .series(Series::line(
                    "constant",
                    [1.0, 1.0, 1.0, f64::NAN, 1.0, f64::INFINITY, 1.0, 1.0]
                        .into_iter()
                        .enumerate()
                        .map(|(i, y)| (i as f64, y)),
                )),
            "",
        )
        .section("Text")
        .code("broadlearn fit train.csv --target y --loss cauchy --features 10x20 --enhance 500 --ridge 1e-9\nbroadlearn report model.json --out report.html")
        .details(
            "All settings",
            vec![
                Block::Paragraph("As they were used.".into()),
                Block::Table(Table::new(["setting", "value"]).row(["seed", "42"]).row(["ridge", "1e-9"])),
                Block::Code("{ \"seed\": 42 }".into()),
            ],
        )
        .footer("Made by broadlearn 0.1.0 from train.csv (sha256 0f3a…).")
}

fn errors() -> Chart {
    let mean = |n: f64| 0.05 + 0.9 * (-n / 120.0).exp();
    let nodes = || (0..=50).map(|i| f64::from(i) * 10.0);
    let spread = |n: f64| 0.02 + 0.1 * (-n / 200.0).exp();
    Chart::new("Error over width")
        .x_label("enhancement nodes")
        .y_label("RMSE on held-out rows")
        .series(
            Series::band("", nodes().map(|n| (n, mean(n) - spread(n), mean(n) + spread(n))))
                .color(0),
        )
        .series(Series::line("robust, test", nodes().map(|n| (n, mean(n)))))
        .series(
            Series::line("robust, train", nodes().map(|n| (n, 0.8 * mean(n)))).color(0).dashed(),
        )
        .series(Series::line(
            "plain, test",
            nodes().map(|n| (n, 0.35 + 0.4 * mean(n) + n / 4000.0)),
        ))
        .series(Series::steps(
            "best so far",
            (0..=10).map(|i| (f64::from(i) * 50.0, 1.1 * mean(f64::from(i) * 50.0))),
        ))
        .h_line("noise level", 0.05)
        .v_line("chosen width", 310.0)
}

fn decay() -> Chart {
    Chart::new("Convergence")
        .log_x()
        .log_y()
        .x_label("iteration")
        .y_label("residual")
        .series(Series::line(
            "reweighted",
            (1..2000).map(|i| (f64::from(i), 3.0 / f64::from(i).powf(1.7))),
        ))
        .series(Series::line(
            "plain",
            (-5..2000).map(|i| (f64::from(i), 1.0 / f64::from(i).abs().sqrt())),
        ))
}

fn eight() -> Chart {
    (0..11).fold(Chart::new("Many series").x_label("t").y_label("value"), |chart, k| {
        let wave = (0..200).map(|i| {
            let t = f64::from(i) / 20.0;
            (t, (t + f64::from(k) * 0.5).sin() + f64::from(k))
        });
        chart.series(Series::line(format!("series {k}"), wave.collect::<Vec<_>>()))
    })
}

fn cloud() -> Chart {
    let mut random = Random(7);
    let points: Vec<(f64, f64)> = (0..100_000)
        .map(|_| {
            let x = random.normal();
            (x, 0.8 * x + 0.3 * random.normal())
        })
        .collect();
    let dirty: Vec<(f64, f64)> =
        (0..300).map(|_| (2.0 * random.normal(), 4.0 + random.normal())).collect();
    Chart::new("Predicted over measured")
        .x_label("measured")
        .y_label("predicted")
        .series(Series::points("clean rows", points))
        .series(Series::points("dirty rows", dirty))
        .series(Series::line("perfect", [(-4.0, -4.0), (4.0, 4.0)]).dashed())
}

fn few_points() -> Chart {
    let xs = || [0.0, 0.1, 0.2, 0.3, 0.4, 0.5].into_iter();
    Chart::new("Error over share of dirty rows")
        .x_label("share of dirty rows")
        .y_label("RMSE")
        .series(Series::whiskers("", xs().map(|x| (x, 0.04 + 0.1 * x, 0.06 + 0.3 * x))).color(0))
        .series(Series::points("robust", xs().map(|x| (x, 0.05 + 0.2 * x))).opacity(1.0))
        .series(Series::points("plain", xs().map(|x| (x, 0.05 + 1.4 * x))).opacity(1.0))
        .y_range(0.0, 0.8)
}

fn bars() -> Chart {
    Chart::new("Error by model and dataset")
        .categories(["abalone", "bodyfat", "housing", "mortgage", "weather in Izmir", "strike"])
        .y_label("RMSE")
        .series(Series::bars(
            "plain",
            [0.31, 0.12, 0.41, 0.22, 0.3, 0.5].into_iter().enumerate().map(|(i, y)| (i as f64, y)),
        ))
        .series(Series::bars(
            "robust",
            [0.11, 0.1, 0.2, 0.12, 0.13, 0.31].into_iter().enumerate().map(|(i, y)| (i as f64, y)),
        ))
        .series(Series::bars(
            "forest",
            [0.15, 0.1, 0.24, 0.18, 0.1, 0.4].into_iter().enumerate().map(|(i, y)| (i as f64, y)),
        ))
}

fn gains() -> Chart {
    let gains = [0.2, 0.02, -0.11, 0.1, 0.17, -0.03, 0.08, 0.3, 0.01, -0.2, 0.11, 0.06];
    Chart::new("Gain of the robust model")
        .categories((1..=12).map(|i| format!("dataset with a long name {i}")))
        .y_label("difference of RMSE")
        .series(Series::bars("", gains.into_iter().enumerate().map(|(i, y)| (i as f64, y))))
}

fn residuals() -> Chart {
    let mut random = Random(3);
    let mut sample =
        |spread: f64| -> Vec<f64> { (0..4000).map(|_| spread * random.normal()).collect() };
    let (robust, plain) = (sample(0.4), sample(1.0));
    Chart::new("Residuals")
        .x_label("residual")
        .y_label("rows")
        .series(Series::histogram_of("plain", plain, 40))
        .series(Series::histogram_of("robust", robust, 40))
        .v_line("zero", 0.0)
}

fn confusion() -> HeatMap {
    let names = ["airplane", "automobile", "bird", "cat", "deer", "dog"];
    let values = (0..6)
        .map(|r| {
            (0..6)
                .map(|c| {
                    if r == c {
                        900.0 + f64::from(r * 11)
                    } else {
                        f64::from((r * 7 + c * 13) % 40)
                    }
                })
                .collect()
        })
        .collect();
    HeatMap::new("Confusion", names, names, values)
        .x_label("predicted class")
        .y_label("true class")
        .value_label("rows")
}

fn differences() -> HeatMap {
    let mut values: Vec<Vec<f64>> = (0..5)
        .map(|r| (0..10).map(|c| (f64::from(r) - 2.0) * (f64::from(c) - 4.0) * 0.013).collect())
        .collect();
    values[2][7] = f64::NAN;
    HeatMap::new(
        "Gain over the plain model",
        (0..10).map(|c| format!("{}", 100 * (c + 1))),
        (0..5).map(|r| format!("ridge 1e-{r}")),
        values,
    )
    .x_label("enhancement nodes")
    .value_label("difference")
    .centered_at(0.0)
}

fn large() -> HeatMap {
    let wave = |r: i32, c: i32| (f64::from(r) / 9.0).sin() * (f64::from(c) / 14.0).cos();
    HeatMap::new(
        "A wave",
        (0..120).map(|c| c.to_string()),
        (0..80).map(|r| r.to_string()),
        (0..80).map(|r| (0..120).map(|c| wave(r, c)).collect()).collect(),
    )
}

/// A small generator, good enough for pictures.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
