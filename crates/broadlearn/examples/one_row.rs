//! Microseconds for the prediction of one row by a model of 600 nodes with ten inputs and one output, on one
//! thread: alone, in memory of its own, and through [`Model::predict`](broadlearn::Model::predict).
//!
//! ```sh
//! cargo run --release --example one_row
//! ```

use broadlearn::faer::Mat;
use broadlearn::{Result, Settings};
use std::time::Instant;

fn main() -> Result<()> {
    let x = Mat::from_fn(2000, 10, |i, j| ((i * (7 + j) + 31 * j) % 97) as f64);
    let y = Mat::from_fn(2000, 1, |i, _| (x[(i, 0)] / 20.0).sin() + x[(i, 1)]);
    let settings = Settings::recipe(Default::default()).gain(0.7).enhancement_nodes(589);
    let model = settings.squared().ridge(1e-3).fit_regression(&x, &y)?;
    let rows: Vec<Vec<f64>> =
        (0..x.nrows()).map(|row| x.row(row).iter().copied().collect()).collect();
    let mut predictor = model.row_predictor();
    println!("nodes {}", model.map().width());
    let mut sum = 0.0;
    let mut alone: Vec<f64> = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        for row in &rows {
            sum += predictor.predict(row)?[0];
        }
        alone.push(begun.elapsed().as_secs_f64() / rows.len() as f64 * 1e6);
    }
    let mut matrix: Vec<f64> = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        for row in 0..200 {
            sum += model.predict(x.subrows(row, 1))?.values()[(0, 0)];
        }
        matrix.push(begun.elapsed().as_secs_f64() / 200.0 * 1e6);
    }
    for (name, mut figures) in [("alone", alone), ("by_predict", matrix)] {
        figures.sort_by(f64::total_cmp);
        println!("{name} {:.2} {:.2}", figures[0], figures[figures.len() - 1]);
    }
    assert!(sum.is_finite());
    Ok(())
}
