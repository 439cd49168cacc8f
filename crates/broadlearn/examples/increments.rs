//! The paper's Tables IV, V and VI on MNIST through the library's increments, beside the paper's
//! accuracies, and what the last steps cost in units of a refit.
//!
//! ```sh
//! cargo run --release --example increments -- DATA [SEEDS [SIGMA]]
//! ```
//!
//! DATA is a folder with `mnist_train.npz` and `mnist_test.npz` (`cargo xtask data mnist` makes
//! them), SEEDS the number of networks over which accuracies are averaged, 1 unless given, 0 for the
//! costs alone. SIGMA is
//! the kernel size, 32 in the paper, which gives every row a weight above 0.999; without it the loss
//! is squared. Recipe `classic`, z-score of rows. The paper gives the ridge of Table IV, 1e-5, and
//! none for VI, which is run with 2^-30 as well. Prints Markdown.

use broadlearn::data::{ReadOptions, Roles, Samples, Schema, SchemaReader};
use broadlearn::data::{TableReader, Targets, TrainingData};
use broadlearn::features::{Growth, Recipe};
use broadlearn::model::{Labelled, Learning, Training};
use broadlearn::preprocess::Scaling;
use broadlearn::{Model, Result, Settings, unobserved};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Accuracies of Tables IV, V and VI.
const PAPER: [[f64; 5]; 3] = [
    [97.92, 98.12, 98.19, 98.26, 98.30],
    [97.96, 98.06, 98.16, 98.25, 98.29],
    [97.02, 97.66, 98.04, 98.08, 98.39],
];

const RIDGE: f64 = 1e-5;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map_or_else(|| "data".into(), PathBuf::from);
    let mut number = || arguments.next().and_then(|text| text.to_str()?.parse::<f64>().ok());
    let seeds = number().unwrap_or(1.0) as u64;
    let mut data = Data::read(&folder, number())?;

    // Lines of the table, each with its steps of all seeds.
    let line = |table, ridge, paper| Line { table, ridge, paper, runs: Vec::new() };
    let mut lines = [
        line("IV", RIDGE, PAPER[0]),
        line("V", RIDGE, PAPER[1]),
        line("VI", RIDGE, PAPER[2]),
        line("VI", f64::powi(2.0, -30), PAPER[2]),
    ];
    for seed in 0..seeds {
        data.seed = seed;
        for line in &mut lines {
            line.runs.push(match line.table {
                "IV" => data.table_iv()?,
                "V" => data.table_v()?,
                _ => data.table_vi(line.ridge)?,
            });
            eprintln!("seed {seed}, table {} done", line.table);
        }
    }
    if seeds > 0 {
        print_tables(&lines, seeds);
    }
    let (rows, nodes) = (data.cost_of_rows()?, data.cost_of_nodes()?);
    println!("\nunits of a refit on 60 000 rows with 5100 nodes, best of two:");
    println!("10 000 rows to 50 000: {rows:.2}");
    println!("500 enhancement nodes to 4600: {nodes:.2}");
    Ok(())
}

fn print_tables(lines: &[Line], seeds: u64) {
    println!("| table | ridge | rows | nodes | accuracy, % | paper | difference | seconds |");
    println!("|---|---|---|---|---|---|---|---|");
    for Line { table, ridge, paper, runs } in lines {
        for (step, paper) in paper.iter().enumerate() {
            let steps: Vec<&Step> = runs.iter().map(|run| &run[step]).collect();
            let accuracy = steps.iter().map(|step| step.accuracy).sum::<f64>() / seeds as f64;
            let seconds = steps.iter().map(|step| step.seconds).fold(f64::INFINITY, f64::min);
            println!(
                "| {table} | {ridge:.0e} | {} | {} | {accuracy:.2} | {paper:.2} | {:+.2} | {seconds:.1} |",
                steps[0].rows,
                steps[0].nodes,
                accuracy - paper,
            );
        }
    }
}

/// A table of the paper, its accuracies, and the steps of every seed.
struct Line {
    table: &'static str,
    ridge: f64,
    paper: [f64; 5],
    runs: Vec<Vec<Step>>,
}

/// What a step gave.
struct Step {
    rows: u64,
    nodes: usize,
    accuracy: f64,
    seconds: f64,
}

struct Data {
    schema: Schema,
    train: Samples,
    test: Samples,
    sigma: Option<f64>,
    seed: u64,
}

impl Data {
    fn read(folder: &Path, sigma: Option<f64>) -> Result<Self> {
        let open = |name: &str| TableReader::open(&folder.join(name), &ReadOptions::default());
        let roles = Roles::target("y");
        let data = TrainingData::read(&mut open("mnist_train.npz")?, &roles, &mut unobserved)?;
        let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
        let train = data.into_samples(&schema)?;
        let test = SchemaReader::new(open("mnist_test.npz")?, &schema, true, false)?
            .read_to_end(&mut unobserved)?;
        Ok(Self { schema, train, test, sigma, seed: 0 })
    }

    fn settings(&self, groups: usize, nodes: usize) -> Settings {
        let settings = Settings::recipe(Recipe::Classic)
            .feature_groups(groups)
            .feature_nodes(10)
            .enhancement_nodes(nodes)
            .input_scaling(Scaling::RowZScore)
            .ridge(RIDGE)
            .stop(1e-6, 20)
            .seed(self.seed);
        match self.sigma {
            None => settings.squared(),
            Some(sigma) => settings.sigma(sigma).start(broadlearn::solve::Start::Ridge, false),
        }
    }

    fn targets(&self, rows: std::ops::Range<usize>) -> Targets {
        match &self.train.targets {
            Targets::Classes(codes) => Targets::Classes(codes[rows].to_vec()),
            Targets::Values(_) => unreachable!("MNIST has classes"),
        }
    }

    fn fit(&self, rows: usize, settings: Settings) -> Result<Model> {
        let targets = self.targets(0..rows);
        let x = self.train.x.subrows(0, rows);
        let schema = self.schema.clone();
        let training = Training { x, targets: &targets, weights: None, schema };
        settings.fit(training, &mut unobserved)
    }

    fn learn(&self, model: &mut Model, rows: std::ops::Range<usize>) -> Result<()> {
        let targets = self.targets(rows.clone());
        let x = self.train.x.subrows(rows.start, rows.len());
        let rows = Labelled { x, targets: &targets, weights: None };
        model.learn(rows, Learning::default(), &mut unobserved).map(|_| ())
    }

    fn grow(&self, model: &Model, growth: Growth, rows: usize) -> Result<Model> {
        let targets = self.targets(0..rows);
        let x = self.train.x.subrows(0, rows);
        model.grow(growth, Labelled { x, targets: &targets, weights: None }, &mut unobserved)
    }

    fn cost_of_rows(&self) -> Result<f64> {
        let settings = self.settings(10, 5000);
        let model = self.fit(50_000, settings)?;
        self.cost(|| self.learn(&mut model.clone(), 50_000..60_000))
    }

    fn cost_of_nodes(&self) -> Result<f64> {
        let model = self.fit(60_000, self.settings(10, 4500))?;
        let growth = Growth { enhancement_nodes: 500, ..Growth::default() };
        self.cost(|| self.grow(&model, growth, 60_000).map(|_| ()))
    }

    /// The time of a change in units of a refit, in turn, the best of two.
    fn cost(&self, mut change: impl FnMut() -> Result<()>) -> Result<f64> {
        let (mut least_change, mut least_refit) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..2 {
            let begun = Instant::now();
            change()?;
            least_change = least_change.min(begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            self.fit(60_000, self.settings(10, 5000))?;
            least_refit = least_refit.min(begun.elapsed().as_secs_f64());
        }
        eprintln!("{least_change:.2} s against {least_refit:.2} s");
        Ok(least_change / least_refit)
    }

    fn step(&self, model: &Model, begun: Instant) -> Result<Step> {
        let seconds = begun.elapsed().as_secs_f64();
        let found = model.predict(&self.test.x)?.classes();
        let Targets::Classes(truth) = &self.test.targets else { unreachable!("classes") };
        let right = found.iter().zip(truth).filter(|(found, truth)| found == truth).count();
        let accuracy = 100.0 * right as f64 / truth.len() as f64;
        Ok(Step { rows: model.rows(), nodes: model.map().width(), accuracy, seconds })
    }

    /// New samples: 20 000, then 10 000 at a time.
    fn table_iv(&self) -> Result<Vec<Step>> {
        let begun = Instant::now();
        let mut model = self.fit(20_000, self.settings(10, 5000))?;
        let mut steps = vec![self.step(&model, begun)?];
        for step in 1..5 {
            let begun = Instant::now();
            let start = 10_000 * (step + 1);
            self.learn(&mut model, start..start + 10_000)?;
            steps.push(self.step(&model, begun)?);
        }
        Ok(steps)
    }

    /// New nodes: 10 feature nodes, 200 enhancement nodes that read these, 300 that read all.
    fn table_v(&self) -> Result<Vec<Step>> {
        let begun = Instant::now();
        let mut model = self.fit(60_000, self.settings(6, 3000))?;
        let mut steps = vec![self.step(&model, begun)?];
        for _ in 1..5 {
            let begun = Instant::now();
            let growth = Growth {
                feature_groups: 1,
                feature_nodes: 10,
                group_enhancement_nodes: 200,
                enhancement_nodes: 300,
            };
            model = self.grow(&model, growth, 60_000)?;
            steps.push(self.step(&model, begun)?);
        }
        Ok(steps)
    }

    /// New samples and new nodes: 10 000 and 1000 at a time.
    fn table_vi(&self, ridge: f64) -> Result<Vec<Step>> {
        let begun = Instant::now();
        let mut model = self.fit(20_000, self.settings(10, 1000).ridge(ridge))?;
        let mut steps = vec![self.step(&model, begun)?];
        for step in 1..5 {
            let begun = Instant::now();
            let start = 10_000 * (step + 1);
            self.learn(&mut model, start..start + 10_000)?;
            let growth = Growth { enhancement_nodes: 1000, ..Growth::default() };
            model = self.grow(&model, growth, start + 10_000)?;
            steps.push(self.step(&model, begun)?);
        }
        Ok(steps)
    }
}
