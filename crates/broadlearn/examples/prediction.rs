//! Rows predicted per second by 5100 nodes with 10 outputs, one batch of 60 000 rows in memory.
//! `cargo xtask bench prediction` runs it against a perceptron of scikit-learn; `docs/benchmarks.md` has the table.
//!
//! ```sh
//! cargo run --release --example prediction -- [REPEATS]
//! ```
//!
//! 784 inputs, the network of `mnist.rs`. What the inputs are and how well the model was fitted makes no difference to
//! the time, so both are random. One line per figure: a name and a number, the most rows per second of all repeats, in
//! double precision (the default) and in single precision; and how far the latter is off: the largest difference of an
//! output, and the number of rows that get another class.

use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::Precision;
use broadlearn::preprocess::Scaling;
use broadlearn::{Result, Settings};
use std::time::Instant;

const ROWS: usize = 60_000;

fn main() -> Result<()> {
    let repeats = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    let x = Mat::from_fn(ROWS, 784, |_, _| stream.unit());
    let classes: Vec<u32> = (0..1000).map(|row| row % 10).collect();
    let model = Settings::recipe(Recipe::Classic)
        .feature_groups(10)
        .feature_nodes(10)
        .enhancement_nodes(5000)
        .input_scaling(Scaling::RowZScore)
        .squared()
        .ridge(1.0)
        .fit_classes(x.subrows(0, classes.len()), &classes)?;
    println!("nodes {}", model.map().width());
    let (double, single) = (model.predictor(Precision::Double), model.predictor(Precision::Single));
    let mut least = [f64::INFINITY; 2];
    for _ in 0..repeats {
        for (least, predictor) in least.iter_mut().zip([&double, &single]) {
            let begun = Instant::now();
            std::hint::black_box(predictor.predict(&x)?.probabilities());
            *least = least.min(begun.elapsed().as_secs_f64());
        }
    }
    println!("rows_per_second {:.0}", ROWS as f64 / least[0]);
    println!("single.rows_per_second {:.0}", ROWS as f64 / least[1]);
    let (double, single) = (double.predict(&x)?, single.predict(&x)?);
    assert!(!single.fell_back(), "single precision was not good enough");
    println!("single.difference {:e}", (single.values() - double.values()).norm_max());
    let (classes, others) = (double.classes(), single.classes());
    let changed = classes.iter().zip(&others).filter(|(class, other)| class != other).count();
    println!("single.changed_classes {changed}");
    Ok(())
}
