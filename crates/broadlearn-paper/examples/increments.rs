//! The paper's Tables IV, V and VI on MNIST through the library's increments, and what the last steps
//! cost in units of a refit. `broadlearn paper table4 table5 table6` compares them with the paper.
//!
//! ```sh
//! cargo run --release -p broadlearn-paper --example increments -- DATA [SEEDS [SIGMA]]
//! ```
//!
//! DATA is a folder with `mnist_train.npz` and `mnist_test.npz` (`cargo xtask data mnist` makes
//! them), SEEDS the number of networks over which accuracies are averaged, 1 unless given, 0 for the
//! costs alone. SIGMA is the kernel size, 32 in the paper, which gives every row a weight above 0.999;
//! without it the loss is squared. The paper gives the ridge of Table IV, 1e-5, and none for VI, which
//! is run with 2^-30 as well. Prints Markdown.

use broadlearn::{Result, unobserved};
use broadlearn_paper::increments::{Increment, Increments, Learner, Step};
use std::path::PathBuf;

const RIDGE: f64 = 1e-5;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map_or_else(|| "data".into(), PathBuf::from);
    let mut number = || arguments.next().and_then(|text| text.to_str()?.parse::<f64>().ok());
    let seeds = number().unwrap_or(1.0) as u64;
    let (sigma, ridge, convolution) = (number(), RIDGE, false);
    let learner = Learner { sigma, ridge, convolution, wrong: 0.0, seed: 0 };
    let data = Increments::read(&folder)?;
    if seeds > 0 {
        println!(
            "| table | ridge | rows | nodes | accuracy, % | seconds |\n|---|---|---|---|---|---|"
        );
    }
    for (table, increment, ridge) in [
        ("IV", Increment::Rows, RIDGE),
        ("V", Increment::Nodes, RIDGE),
        ("VI", Increment::Both, RIDGE),
        ("VI", Increment::Both, f64::powi(2.0, -30)),
    ] {
        let run = |seed| data.steps(increment, Learner { ridge, seed, ..learner }, &mut unobserved);
        let runs = (0..seeds).map(run).collect::<Result<Vec<Vec<Step>>>>()?;
        let Some(first) = runs.first() else { break };
        for (place, Step { rows, nodes, .. }) in first.iter().enumerate() {
            let steps = || runs.iter().map(|run| run[place]);
            let accuracy = steps().map(|step| step.accuracy).sum::<f64>() / seeds as f64;
            let seconds = steps().map(|step| step.seconds).fold(f64::INFINITY, f64::min);
            println!("| {table} | {ridge:.0e} | {rows} | {nodes} | {accuracy:.2} | {seconds:.1} |");
        }
    }
    println!(
        "\n| change, best of two | of the time of a refit on 60 000 rows with 5100 nodes |\n|---|---|"
    );
    println!("| 10 000 rows to 50 000 | {:.2} |", data.cost_of_rows(learner)?);
    println!("| 500 enhancement nodes to 4600 | {:.2} |", data.cost_of_nodes(learner)?);
    Ok(())
}
