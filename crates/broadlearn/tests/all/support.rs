//! Random problems, exact solvers for small ones, and Python.

use broadlearn::data::{Kind, Schema, TargetSchema, Targets};
use broadlearn::faer::linalg::solvers::SolveLstsq;
use broadlearn::faer::{Mat, MatRef};
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::Training;
use broadlearn::preprocess::Scaler;
use broadlearn::{Model, Result, Settings, unobserved};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::{Path, PathBuf};

/// Few cases, the same ones in every run; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for others.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = count;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(20_240_229);
    }
    config
}

/// A small problem with all that data can do to a solver.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) recipe: Recipe,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The number of targets, or of classes.
    pub(crate) outputs: usize,
    pub(crate) classes: bool,
    /// Whether the first column is the same in every row.
    pub(crate) constant_column: bool,
    /// Whether every row of the first half comes again in the second.
    pub(crate) duplicate_rows: bool,
    pub(crate) ridge: f64,
    pub(crate) sigma: f64,
    pub(crate) seed: u64,
}

/// Recipes whose networks do not depend on the order of the rows.
const RECIPES: [Recipe; 8] = [
    Recipe::Rich,
    Recipe::Classic,
    Recipe::Unscaled,
    Recipe::Plain,
    Recipe::Direct,
    Recipe::Elm,
    Recipe::Recurrent,
    Recipe::Fuzzy,
];

/// Whether networks of this recipe can grow by feature groups.
pub(crate) fn has_groups(recipe: Recipe) -> bool {
    matches!(recipe, Recipe::Classic | Recipe::Unscaled | Recipe::Plain)
}

/// Problems with a ridge of 2^`exponents`.
pub(crate) fn problems(exponents: std::ops::Range<f64>) -> impl Strategy<Value = Problem> {
    let shape = (1_usize..70, 1_usize..6, 1_usize..4);
    let flags = (any::<bool>(), proptest::bool::weighted(0.3), proptest::bool::weighted(0.3));
    let numbers = (exponents, prop_oneof![Just(0.3), Just(1.0), Just(4.0)], any::<u64>());
    (0..RECIPES.len(), shape, flags, numbers).prop_map(
        |(
            recipe,
            (rows, columns, outputs),
            (classes, constant_column, duplicate_rows),
            numbers,
        )| {
            let (exponent, sigma, seed) = numbers;
            Problem {
                recipe: RECIPES[recipe],
                rows,
                columns,
                outputs: if classes { outputs + 1 } else { outputs },
                classes,
                constant_column,
                duplicate_rows,
                ridge: exponent.exp2(),
                sigma,
                seed,
            }
        },
    )
}

impl Problem {
    /// Inputs: normal numbers, at times with a constant column or with duplicate rows.
    pub(crate) fn x(&self) -> Mat<f64> {
        let mut stream = Stream::new(self.seed, Purpose::Noise, 0);
        let mut x = Mat::from_fn(self.rows, self.columns, |_, _| stream.normal());
        for i in 0..self.rows {
            if self.constant_column {
                x[(i, 0)] = 0.1;
            }
            if self.duplicate_rows && i >= self.rows.div_ceil(2) {
                for j in 0..self.columns {
                    x[(i, j)] = x[(i - self.rows.div_ceil(2), j)];
                }
            }
        }
        x
    }

    /// Smooth functions of the inputs with noise and an outlier in every ninth row; or classes.
    pub(crate) fn targets(&self) -> Targets {
        let x = self.x();
        let mut stream = Stream::new(self.seed, Purpose::Noise, 1);
        let wave = |i: usize, k: usize| -> f64 {
            (0..self.columns).map(|j| ((1 + k) as f64 * x[(i, j)] + j as f64).sin()).sum()
        };
        if self.classes {
            let classes = self.outputs as u32;
            let class = |i| (wave(i, 0).abs() * 1.5 + 0.5 * stream.unit()) as u32 % classes;
            return Targets::Classes((0..self.rows).map(class).collect());
        }
        Targets::Values(Mat::from_fn(self.rows, self.outputs, |i, k| {
            let outlier = if i % 9 == 4 { 5.0 } else { 0.0 };
            wave(i, k) + 0.2 * stream.normal() + outlier
        }))
    }

    /// A network of at most 36 nodes, so that there are problems with fewer and with more rows.
    pub(crate) fn settings(&self) -> Settings {
        let settings = Settings::recipe(self.recipe).enhancement_nodes(20).seed(self.seed);
        match self.recipe {
            Recipe::Rich | Recipe::Recurrent | Recipe::Convolution => settings.gain(0.7),
            Recipe::Direct | Recipe::Elm => settings,
            Recipe::Structured | Recipe::Manifold => settings.feature_nodes(3),
            _ => settings.feature_groups(4).feature_nodes(3),
        }
    }

    pub(crate) fn schema(&self) -> Schema {
        schema(self.columns, &self.targets(), self.outputs)
    }
}

/// The schema of numeric columns with these targets.
pub(crate) fn schema(columns: usize, targets: &Targets, outputs: usize) -> Schema {
    let target = match targets {
        Targets::Values(_) => TargetSchema::Regression {
            names: (0..outputs).map(|output| format!("y{output}")).collect(),
        },
        Targets::Classes(_) => TargetSchema::Classification {
            name: "class".into(),
            kind: Kind::Number,
            classes: (0..outputs).map(|class| class.to_string()).collect(),
        },
    };
    Schema::numeric(columns, target)
}

/// Fits numeric columns.
pub(crate) fn fit(
    settings: Settings,
    x: &Mat<f64>,
    targets: &Targets,
    weights: Option<&[f64]>,
    schema: Schema,
) -> Result<Model> {
    settings.fit(Training { x: x.as_ref(), targets, weights, schema }, &mut unobserved)
}

/// The rows of these numbers, in this order.
pub(crate) fn rows_of(matrix: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])
}

/// The targets of these rows, in this order.
pub(crate) fn targets_of(targets: &Targets, rows: &[usize]) -> Targets {
    match targets {
        Targets::Values(values) => Targets::Values(rows_of(values, rows)),
        Targets::Classes(codes) => Targets::Classes(rows.iter().map(|&row| codes[row]).collect()),
    }
}

/// What a scaler does, by its definition.
pub(crate) fn scaled(scaler: &Scaler, x: MatRef<'_, f64>) -> Mat<f64> {
    match scaler {
        Scaler::Columns { centre, factor, offset, tamed } => {
            Mat::from_fn(x.nrows(), x.ncols(), |i, j| {
                let z = (x[(i, j)] - centre[j]) * factor[j] + offset[j];
                if *tamed && z.abs() > 5.0 {
                    z.signum() * (5.0 + (z.abs() - 4.0).ln()).min(8.0)
                } else {
                    z
                }
            })
        }
        Scaler::Rows => {
            let m = x.ncols() as f64;
            Mat::from_fn(x.nrows(), x.ncols(), |i, j| {
                let mean = x.row(i).iter().sum::<f64>() / m;
                let variance = x.row(i).iter().map(|v| (v - mean).powi(2)).sum::<f64>() / m;
                if variance > 0.0 { (x[(i, j)] - mean) / variance.sqrt() } else { 0.0 }
            })
        }
    }
}

/// U of these rows in this model.
pub(crate) fn state(model: &Model, x: &Mat<f64>) -> Mat<f64> {
    model.map().state(scaled(model.input_scaler(), x.as_ref()).as_ref())
}

/// Y as the solver sees it: scaled, or 0 and 1 in one column per class.
pub(crate) fn scaled_targets(model: &Model, targets: &Targets) -> Mat<f64> {
    match targets {
        Targets::Values(values) => scaled(model.target_scaler(), values.as_ref()),
        Targets::Classes(codes) => {
            let classes = model.schema().target.outputs();
            Mat::from_fn(codes.len(), classes, |i, j| f64::from(u8::from(codes[i] as usize == j)))
        }
    }
}

/// The minimiser of sum_i w_i |y_i - u_i W|^2 + ridge |W|^2, by QR of the stacked system
/// [Λ^(1/2) U; ridge^(1/2) I] W = [Λ^(1/2) Y; 0]: never by normal equations.
pub(crate) fn weighted_ridge(u: &Mat<f64>, y: &Mat<f64>, weights: &[f64], ridge: f64) -> Mat<f64> {
    let (n, l) = (u.nrows(), u.ncols());
    let stacked = Mat::from_fn(n + l, l, |i, j| match i.checked_sub(n) {
        None => weights[i].sqrt() * u[(i, j)],
        Some(k) if k == j => ridge.sqrt(),
        Some(_) => 0.0,
    });
    let right =
        Mat::from_fn(
            n + l,
            y.ncols(),
            |i, j| {
                if i < n { weights[i].sqrt() * y[(i, j)] } else { 0.0 }
            },
        );
    stacked.qr().solve_lstsq(right)
}

/// The change of the outputs U W that rounding errors of the normal equations explain: with R off by
/// eps |U|^2 and P by eps |U| |Y|, and |U (R + gamma I)^-1| <= 1 / (2 gamma^(1/2)).
pub(crate) fn rounding(u: &Mat<f64>, w: &Mat<f64>, y: &Mat<f64>, ridge: f64) -> f64 {
    let size = u.norm_l2();
    f64::EPSILON * size * (size * w.norm_l2() + y.norm_l2()) / (2.0 * ridge.sqrt())
}

/// |a - b| / |b| in the Frobenius norm; 0 if both are 0.
pub(crate) fn relative(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let difference = (a - b).norm_l2();
    if difference == 0.0 { 0.0 } else { difference / b.norm_l2() }
}

/// The Python to call: `BROADLEARN_PYTHON`, else that of `target/venv`, else none, which is said.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("BROADLEARN_PYTHON") {
        return Some(path.into());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("target/venv/bin/python");
    if !path.exists() {
        println!("{test}: skipped, for there is neither BROADLEARN_PYTHON nor target/venv");
        return None;
    }
    Some(path)
}

/// Runs a script of `tests/python`; what it writes to its standard output.
pub(crate) fn run_python(python: &Path, script: &str, arguments: &[&Path]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let output = std::process::Command::new(python).arg(&script).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{} failed: {}",
        script.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a `.npy` file of version 1.0: magic, header, numbers column by column.
pub(crate) fn write_npy(path: &Path, matrix: &Mat<f64>) {
    let shape = (matrix.nrows(), matrix.ncols());
    let mut header = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape:?}, }}");
    // Magic, length, header and its line end fill a multiple of 64 bytes.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header += &" ".repeat(length - 1 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for column in matrix.col_iter() {
        column.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    std::fs::write(path, bytes).unwrap();
}

/// Reads a `.npy` file of two dimensions as NumPy writes it.
pub(crate) fn read_npy(path: &Path, rows: usize, columns: usize) -> Mat<f64> {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..start]).into_owned();
    assert!(
        header.contains("'<f8'") && header.contains(&format!("({rows}, {columns})")),
        "{header}"
    );
    let number =
        |k: usize| f64::from_le_bytes(bytes[start + 8 * k..start + 8 * k + 8].try_into().unwrap());
    let by_columns = header.contains("'fortran_order': True");
    Mat::from_fn(rows, columns, |i, j| {
        number(if by_columns { i + j * rows } else { i * columns + j })
    })
}
