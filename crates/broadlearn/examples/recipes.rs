//! Test scores of the recipes on the small sets of the paper, clean and contaminated: the evidence
//! behind the default recipe.
//!
//! ```sh
//! cargo run --release --example recipes -- data 10
//! ```
//!
//! Regression: RMSE on targets scaled to [0, 1]; contamination adds a uniform [0, 1] outlier to a
//! share of the training targets. Classification: error rate in percent; contamination gives a share
//! of the training rows another class. Splits: two thirds for training, drawn anew for every seed.

use broadlearn::data::{ReadOptions, Roles, TableReader, Targets, Task, TrainingData, split};
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::Training;
use broadlearn::{Result, Settings, unobserved};
use std::path::{Path, PathBuf};
use std::time::Instant;

const SETS: [(&str, Task); 13] = [
    ("airfoil", Task::Regression),
    ("bodyfat", Task::Regression),
    ("cleveland", Task::Regression),
    ("forestfires", Task::Regression),
    ("mortgage", Task::Regression),
    ("quake", Task::Regression),
    ("weather_izmir", Task::Regression),
    ("balance_scale", Task::Classification),
    ("chess", Task::Classification),
    ("diabetes_pima", Task::Classification),
    ("ecoli", Task::Classification),
    ("horse_colic_train", Task::Classification),
    ("wireless", Task::Classification),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "data".into()));
    let seeds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let variants: Vec<(String, Settings)> = match arguments.next() {
        None => {
            let named = |recipe: Recipe| (recipe.name().to_owned(), Settings::recipe(recipe));
            let automatic = ("automatic".to_owned(), Settings::new());
            std::iter::once(automatic).chain(Recipe::ALL.map(named)).collect()
        }
        Some(list) => list
            .split(',')
            .map(|item| {
                if item == "automatic" {
                    return (item.to_owned(), Settings::new());
                }
                let (nodes, gain) = item.split_once('x').expect("NODESxGAIN");
                let settings = Settings::new()
                    .enhancement_nodes(nodes.parse().expect("a number"))
                    .gain(gain.parse().expect("a number"));
                (item.to_owned(), settings)
            })
            .collect(),
    };
    println!("{:<18} {:>4}  {}", "set", "p", header(&variants));
    for (name, task) in SETS {
        let Some(path) = find(&folder, name) else {
            println!("{name:<18} not found in {}", folder.display());
            continue;
        };
        let mut reader = TableReader::open(&path, &ReadOptions::default())?;
        let roles = Roles { task: Some(task), ..Roles::target("last") };
        let data = TrainingData::read(&mut reader, &roles, &mut unobserved)?;
        for share in [0.0, 0.2, 0.4] {
            print!("{name:<18} {share:>4}  ");
            for (_, settings) in &variants {
                let begun = Instant::now();
                let mut scores = Vec::new();
                let mut failed = 0;
                for seed in 0..seeds {
                    match score(&data, settings.clone().seed(seed), share, seed) {
                        Ok(score) => scores.push(score),
                        Err(_) => failed += 1,
                    }
                }
                let mean = scores.iter().sum::<f64>() / scores.len() as f64;
                let seconds = begun.elapsed().as_secs_f64() / seeds as f64;
                print!("{mean:>10.4} {seconds:>5.2}s{}", if failed > 0 { "!" } else { " " });
            }
            println!();
        }
    }
    Ok(())
}

fn header(variants: &[(String, Settings)]) -> String {
    variants.iter().map(|(name, _)| format!("{name:>10}       ")).collect()
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let base = name.trim_end_matches("_train");
    [folder.join(format!("{name}.csv")), folder.join(base).join(format!("{name}.csv"))]
        .into_iter()
        .find(|path| path.exists())
}

fn score(data: &TrainingData, settings: Settings, share: f64, seed: u64) -> Result<f64> {
    let (train, test) = split(data.len(), 1.0 / 3.0, seed);
    let schema = data.schema(&train)?;
    let mut samples = data.samples(&schema, &train)?;
    let held_out = data.samples(&schema, &test)?;
    let mut stream = Stream::new(seed, Purpose::Noise, 0);
    let (mut low, mut range) = (0.0, 1.0);
    match &mut samples.targets {
        Targets::Values(y) => {
            let values: Vec<f64> = y.col(0).iter().copied().collect();
            low = values.iter().copied().fold(f64::INFINITY, f64::min);
            range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
            *y = Mat::from_fn(y.nrows(), 1, |i, _| (values[i] - low) / range);
            for i in 0..y.nrows() {
                if stream.unit() < share {
                    y[(i, 0)] += stream.unit();
                }
            }
        }
        Targets::Classes(codes) => {
            let classes = schema.target.outputs();
            for code in codes {
                if stream.unit() < share {
                    *code = (*code + 1 + stream.below(classes - 1) as u32) % classes as u32;
                }
            }
        }
    }
    let training =
        Training { x: samples.x.as_ref(), targets: &samples.targets, weights: None, schema };
    let model = settings.fit(training, &mut unobserved)?;
    let predictions = model.predict(&held_out.x)?;
    Ok(match held_out.targets {
        Targets::Values(y) => {
            let squares: f64 = (0..y.nrows())
                .map(|i| ((y[(i, 0)] - low) / range - predictions.values()[(i, 0)]).powi(2))
                .sum();
            (squares / y.nrows() as f64).sqrt()
        }
        Targets::Classes(codes) => {
            let wrong = codes.iter().zip(predictions.classes()).filter(|(a, b)| **a != *b).count();
            100.0 * wrong as f64 / codes.len() as f64
        }
    })
}
