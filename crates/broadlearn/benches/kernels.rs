//! Single steps of the library in shares of what the machine can do.
//!
//! ```sh
//! cargo xtask bench kernels
//! ```
//!
//! The multiply-add peak and the bandwidth of memory are measured in the same rounds as the steps, because a shared
//! machine is not equally fast all the time. One line per figure, a name and a number: the least, the median and the most of
//! all rounds, in 1e9 flops or bytes a second. The number of threads is that of `RAYON_NUM_THREADS`.

use broadlearn::data::{ReadOptions, TableReader};
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::preprocess::Scaling;
use broadlearn::solve;
use broadlearn::state::NormalEquations;
use broadlearn::{Model, Result, Settings};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 9;
/// Inputs, feature nodes, enhancement nodes and outputs of the map.
const SHAPE: [usize; 4] = [784, 100, 5000, 10];
/// Rows of a large prediction, and of a block of the state.
const MANY: usize = 10_000;
const BLOCK: usize = 2000;
/// Numbers that are in no cache.
const BIG: usize = 32 << 20;

/// A step: its name, its flops or bytes, and how it is done once.
struct Step<'a> {
    name: String,
    amount: f64,
    run: Box<dyn FnMut() -> Result<()> + 'a>,
}

fn main() -> Result<()> {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let threads = rayon::current_num_threads();
    let (model, x) = (&model()?, &random(MANY, SHAPE[0]));
    let states = [random(BLOCK, 600), random(BLOCK, 1000), random(BLOCK, 5100)];
    let y = random(BLOCK, SHAPE[3]);
    let sample_weights: Vec<f64> = (0..BLOCK).map(|row| (row % 7) as f64 * 0.1).collect();
    let equations = states.each_ref().map(|u| {
        let mut equations = NormalEquations::empty(u.ncols(), y.ncols());
        equations.add_rows(u.as_ref(), y.as_ref(), None);
        equations
    });
    let table = csv();
    let big = vec![1.0; BIG];

    let [inputs, features, enhancement, outputs] = SHAPE;
    let map = (inputs * features + features * enhancement) as f64;
    let weights = map + ((features + enhancement) * outputs) as f64;
    let mut steps = vec![
        step("peak", threads as f64 * multiply_add().0, || {
            rayon::broadcast(|_| black_box(multiply_add()));
            Ok(())
        }),
        step("memory", 8.0 * BIG as f64, || {
            rayon::broadcast(|part| {
                let len = big.len() / part.num_threads();
                black_box(sum(&big[part.index() * len..][..len]))
            });
            Ok(())
        }),
    ];
    // As a fit does it: block by block, with weights, into the same equations.
    for u in &states {
        let name = format!("gram_{}", u.ncols());
        let flops = (u.nrows() * u.ncols() * u.ncols()) as f64;
        let (y, sample_weights) = (y.as_ref(), &sample_weights);
        let mut equations = NormalEquations::empty(u.ncols(), y.ncols());
        steps.push(step(&name, flops, move || {
            equations.add_rows(u.as_ref(), y, Some(sample_weights));
            Ok(())
        }));
    }
    for equations in &equations {
        let [nodes, outputs] = [equations.p().nrows(), equations.p().ncols()].map(|n| n as f64);
        let flops = nodes.powi(3) / 3.0 + 2.0 * nodes * nodes * outputs;
        steps.push(step(&format!("solve_{nodes}"), flops, move || {
            black_box(solve::ridge(equations, 1.0)?);
            Ok(())
        }));
    }
    steps.push(step("state", 2.0 * map * BLOCK as f64, || {
        black_box(model.map().state(x.subrows(0, BLOCK)));
        Ok(())
    }));
    let flops = 2.0 * weights * MANY as f64;
    steps.push(step("predict_many", flops, || {
        black_box(model.predict(x)?);
        Ok(())
    }));
    steps.push(step("predict_one", 8.0 * weights, || {
        black_box(model.predict(x.subrows(0, 1))?);
        Ok(())
    }));
    steps.push(step("csv", table.len() as f64, || {
        let input = Box::new(std::io::Cursor::new(table.clone()));
        let mut reader = TableReader::from_reader("table.csv", input, &ReadOptions::default())?;
        while let Some(batch) = reader.next_batch(4096)? {
            black_box(batch);
        }
        Ok(())
    }));
    report(&mut steps)
}

/// Runs all steps in turn and prints their rates.
fn report(steps: &mut [Step<'_>]) -> Result<()> {
    let mut rates = vec![Vec::new(); steps.len()];
    for _ in 0..ROUNDS {
        for (step, rates) in steps.iter_mut().zip(&mut rates) {
            let begun = Instant::now();
            (step.run)()?;
            rates.push(step.amount / begun.elapsed().as_secs_f64() / 1e9);
        }
    }
    println!("rounds {ROUNDS}");
    for (step, rates) in steps.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let at = [("least", 0), ("median", ROUNDS / 2), ("most", ROUNDS - 1)];
        for (name, place) in at {
            println!("{}.{name} {:.3}", step.name, rates[place]);
        }
    }
    Ok(())
}

fn step<'a>(name: &str, amount: f64, run: impl FnMut() -> Result<()> + 'a) -> Step<'a> {
    Step { name: name.to_owned(), amount, run: Box::new(run) }
}

/// The network of `examples/mnist.rs`. How well it was fitted makes no difference.
fn model() -> Result<Model> {
    let classes: Vec<u32> = (0..500).map(|row| row % SHAPE[3] as u32).collect();
    Settings::recipe(Recipe::Classic)
        .feature_groups(SHAPE[1] / 10)
        .feature_nodes(10)
        .enhancement_nodes(SHAPE[2])
        .input_scaling(Scaling::RowZScore)
        .squared()
        .ridge(1.0)
        .fit_classes(random(classes.len(), SHAPE[0]).as_ref(), &classes)
}

fn random(rows: usize, columns: usize) -> Mat<f64> {
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    Mat::from_fn(rows, columns, |_, _| stream.unit() - 0.5)
}

/// A table of 20 numeric columns, some 20 MB.
fn csv() -> Vec<u8> {
    let x = random(100_000, 20);
    let mut text = (0..20).map(|j| format!("c{j}")).collect::<Vec<_>>().join(",");
    for row in x.row_iter() {
        for (j, value) in row.iter().enumerate() {
            let _ = write!(text, "{}{value:.7}", if j == 0 { '\n' } else { ',' });
        }
    }
    text.into_bytes()
}

/// The sum of many numbers, as fast as they come.
fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; 32];
    for chunk in values.chunks_exact(32) {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().sum()
}

/// Repeats of [`multiply_add`].
const REPEATS: usize = 4_000_000;

/// Independent chains of multiply-adds, as many and as wide as the processor can do at once. Returns the number of flops and something
/// that keeps the compiler from leaving them out.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn multiply_add() -> (f64, f64) {
    use std::arch::x86_64::{_mm256_cvtsd_f64, _mm256_fmadd_pd, _mm256_set1_pd};
    use std::arch::x86_64::{_mm512_cvtsd_f64, _mm512_fmadd_pd, _mm512_set1_pd};

    // Not `map`: its closure would be compiled without these instructions.
    macro_rules! chains {
        ($features:literal, $count:literal, $set:ident, $fmadd:ident, $get:ident) => {{
            #[target_feature(enable = $features)]
            fn chains() -> f64 {
                let (mut sums, factor) = ([$set(1.0); $count], $set(1.000_000_1));
                for (sum, start) in sums.iter_mut().zip(1..) {
                    *sum = $set(f64::from(start)); // the compiler would do equal chains once
                }
                for _ in 0..REPEATS {
                    for sum in &mut sums {
                        *sum = $fmadd(*sum, factor, factor);
                    }
                }
                let mut total = 0.0;
                for sum in sums {
                    total += $get(sum);
                }
                total
            }
            // SAFETY: the processor was asked for these instructions.
            unsafe { chains() }
        }};
    }

    if std::is_x86_feature_detected!("avx512f") {
        let total = chains!("avx512f", 16, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_cvtsd_f64);
        return (2.0 * 8.0 * 16.0 * REPEATS as f64, total);
    }
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        let total = chains!("avx2,fma", 12, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_cvtsd_f64);
        return (2.0 * 4.0 * 12.0 * REPEATS as f64, total);
    }
    (f64::NAN, f64::NAN)
}

/// Not measured elsewhere.
#[cfg(not(target_arch = "x86_64"))]
fn multiply_add() -> (f64, f64) {
    (f64::NAN, f64::NAN)
}
