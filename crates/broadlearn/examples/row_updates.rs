//! Rows learnt per second at 600 nodes and one output: one in each call, one by one in calls of many
//! (each weighed by the model that has learnt the rows before it), and in batches.
//! `cargo xtask bench rows` runs it against recursive least squares in NumPy.
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release --example row_updates
//! ```
//!
//! One line per figure: a name and a number. The model is the library's, with scaling, map, weights
//! and record; NumPy's recursion gets its state for nothing.

use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::{Labelled, Learning};
use broadlearn::{Model, Result, Settings, unobserved};
use std::time::Instant;

const NODES: usize = 600;
const INPUTS: usize = 10;

fn main() -> Result<()> {
    let rows = 40_000;
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    let x = Mat::from_fn(rows, INPUTS, |_, _| stream.normal());
    let y = Mat::from_fn(rows, 1, |i, _| {
        (x[(i, 0)] + x[(i, 1)]).sin() + x[(i, 2)] * x[(i, 3)] + 0.1 * stream.normal()
    });
    // With the constant and the inputs there are 600 nodes in all.
    let model = Settings::new()
        .enhancement_nodes(NODES - INPUTS - 1)
        .sigma(1.0)
        .ridge(1e-3)
        .stop(1e-6, 50)
        .fit_regression(x.subrows(0, 4000), y.subrows(0, 4000))?;
    println!("nodes {}", model.map().width());
    for (name, one_by_one, batch, rows) in [
        ("single", true, 1, 4000),
        ("one_by_one", true, 1000, 20_000),
        ("batched", false, 256, 30_000),
    ] {
        let learning = Learning { one_by_one, ..Learning::default() };
        let mut model = model.clone();
        // The first rows pay for the factor.
        learn(&mut model, &x, &y, 4000..4000 + batch, learning)?;
        let begun = Instant::now();
        for start in (5000..5000 + rows).step_by(batch) {
            learn(&mut model, &x, &y, start..start + batch, learning)?;
        }
        let learnt = rows.div_ceil(batch) * batch;
        println!("{name} {:.0}", learnt as f64 / begun.elapsed().as_secs_f64());
    }
    Ok(())
}

fn learn(
    model: &mut Model,
    x: &Mat<f64>,
    y: &Mat<f64>,
    rows: std::ops::Range<usize>,
    learning: Learning,
) -> Result<()> {
    let targets = Targets::Values(y.subrows(rows.start, rows.len()).to_owned());
    let x = x.subrows(rows.start, rows.len());
    let rows = Labelled { x, targets: &targets, weights: None };
    model.learn(rows, learning, &mut unobserved).map(|_| ())
}
