//! Digits and time that updates cost, compared with a refit after every step: the evidence behind
//! carrying a Cholesky factor instead of an inverse.
//!
//! ```sh
//! cargo run --release --example lost_digits
//! ```
//!
//! A broad state as in the recipe `classic`: 50 linear nodes of 8 inputs, which span no more than 9
//! directions, and enhancement nodes with arguments of at most 0.8, which are nearly polynomials.
//! Two ways to the same 4000 rows and 600 nodes: nodes, from 100 in 10 steps of 50; rows, from 2000
//! in 20 steps of 100. One thread. Prints a Markdown table with these columns:
//!
//! - first, last: |U W - U W_refit| / |U W_refit| on 1000 other rows, after the first and the last
//!   step. With a ridge, a refit is Cholesky on fresh normal equations; without one, a fresh
//!   pseudo-inverse.
//! - refit: the same for the last refit, against singular values of U, which square nothing.
//! - time: seconds of all updates, and as a share of the seconds of all refits.

use broadlearn::Result;
use broadlearn::faer::linalg::matmul::triangular::{self, BlockStructure};
use broadlearn::faer::prelude::Solve;
use broadlearn::faer::{self, Accum, Mat, MatRef, Par, Side};
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::increment::published::{CarriedInverse, PseudoInverse, Rows};
use broadlearn::increment::{Knowledge, Ledger};
use broadlearn::state::NormalEquations;
use std::time::Instant;

const ROWS: usize = 4000;
const OTHER_ROWS: usize = 1000;
const NODES: usize = 600;
const RIDGES: [f64; 4] = [1e-1, 1e-3, 1e-5, 1e-7];

/// A way to keep W up to date. A further one needs an implementation and its line in `main`.
trait Update: Sized {
    fn start(u: MatRef<'_, f64>, y: MatRef<'_, f64>, ridge: f64) -> Result<Self>;
    /// `u` and `y` are the rows so far.
    fn add_columns(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        columns: MatRef<'_, f64>,
    ) -> Result<()>;
    fn add_rows(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Result<()>;
    fn w(&self) -> MatRef<'_, f64>;
    fn refit(u: MatRef<'_, f64>, y: MatRef<'_, f64>, ridge: f64) -> Mat<f64> {
        cholesky(u, y, ridge)
    }
}

impl Update for CarriedInverse {
    fn start(u: MatRef<'_, f64>, y: MatRef<'_, f64>, ridge: f64) -> Result<Self> {
        Self::new(Rows { u, y, weights: None }, ridge)
    }

    fn add_columns(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        columns: MatRef<'_, f64>,
    ) -> Result<()> {
        self.add_columns(Rows { u, y, weights: None }, columns)
    }

    fn add_rows(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Result<()> {
        self.add_rows(Rows { u, y, weights: None })
    }

    fn w(&self) -> MatRef<'_, f64> {
        self.w()
    }
}

impl Update for PseudoInverse {
    fn start(u: MatRef<'_, f64>, y: MatRef<'_, f64>, _: f64) -> Result<Self> {
        Self::new(u, y)
    }

    fn add_columns(
        &mut self,
        _: MatRef<'_, f64>,
        _: MatRef<'_, f64>,
        columns: MatRef<'_, f64>,
    ) -> Result<()> {
        self.add_columns(columns)
    }

    fn add_rows(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Result<()> {
        self.add_rows(u, y)
    }

    fn w(&self) -> MatRef<'_, f64> {
        self.w()
    }

    fn refit(u: MatRef<'_, f64>, y: MatRef<'_, f64>, _: f64) -> Mat<f64> {
        Self::new(u, y).expect("a pseudo-inverse").w().to_owned()
    }
}

/// The library's own way: the Cholesky factor, bordered and updated.
struct CholeskyFactor {
    knowledge: Knowledge,
    w: Mat<f64>,
}

impl Update for CholeskyFactor {
    fn start(u: MatRef<'_, f64>, y: MatRef<'_, f64>, ridge: f64) -> Result<Self> {
        let equations = NormalEquations::of(u, y, None);
        let mut knowledge = Knowledge::new(equations, ridge, Ledger::default());
        let w = knowledge.solve()?;
        Ok(Self { knowledge, w })
    }

    fn add_columns(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        columns: MatRef<'_, f64>,
    ) -> Result<()> {
        let (old, new) = (u.ncols(), columns.ncols());
        let mut r = Mat::zeros(new, old + new);
        r.subcols_mut(0, old).copy_from(columns.transpose() * u);
        r.subcols_mut(old, new).copy_from(columns.transpose() * columns);
        let p = columns.transpose() * y;
        self.knowledge = self.knowledge.border(r.as_ref(), p.as_ref())?;
        self.w = self.knowledge.solve()?;
        Ok(())
    }

    fn add_rows(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Result<()> {
        self.knowledge.add_rows(&vec![1.0; u.nrows()], &mut |rows, mut into| {
            into.copy_from(u.subrows(rows.start, rows.len()));
            Ok(y.subrows(rows.start, rows.len()).to_owned())
        })?;
        self.w = self.knowledge.solve()?;
        Ok(())
    }

    fn w(&self) -> MatRef<'_, f64> {
        self.w.as_ref()
    }
}

#[derive(Clone, Copy)]
enum Way {
    Nodes,
    Rows,
}

impl Way {
    /// Rows and nodes after each step, and before the first.
    fn sizes(self) -> Vec<(usize, usize)> {
        match self {
            Self::Nodes => (100..=NODES).step_by(50).map(|nodes| (ROWS, nodes)).collect(),
            Self::Rows => (2000..=ROWS).step_by(100).map(|rows| (rows, NODES)).collect(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Rows => "rows",
        }
    }
}

struct Data {
    u: Mat<f64>,
    y: Mat<f64>,
    other: Mat<f64>,
}

fn main() {
    faer::set_global_parallelism(Par::Seq);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        let data = Data::new(1);
        let exact = Exact::new(&data);
        let cut = ROWS as f64 * f64::EPSILON * exact.s[0];
        let rank = exact.s.iter().filter(|&&s| s > cut).count();
        println!("U: {ROWS} x {NODES}, of rank {rank}, |U| = {:.0}.\n", exact.s[0]);
        println!("| grown by | ridge | update | first | last | refit | seconds | of refits |");
        println!("|---|---|---|---|---|---|---|---|");
        for way in [Way::Nodes, Way::Rows] {
            for ridge in RIDGES {
                run::<CarriedInverse>("carried inverse", way, ridge, &data, Some(&exact));
                run::<CholeskyFactor>("Cholesky factor", way, ridge, &data, Some(&exact));
            }
            run::<PseudoInverse>("pseudo-inverse", way, 0.0, &data, None);
        }
    });
}

/// Grows step by step, with a refit after each, and prints the line.
fn run<U: Update>(name: &str, way: Way, ridge: f64, data: &Data, exact: Option<&Exact>) {
    let sizes = way.sizes();
    let (rows, nodes) = sizes[0];
    let mut update = U::start(data.u.submatrix(0, 0, rows, nodes), data.y.subrows(0, rows), ridge)
        .expect("a first fit");
    let (mut updates, mut refits) = (0.0, 0.0);
    let mut differences = Vec::new();
    let mut failure = None;
    let mut refit = Mat::new();
    for pair in sizes.windows(2) {
        let ((old_rows, old_nodes), (rows, nodes)) = (pair[0], pair[1]);
        let (y, u) = (data.y.subrows(0, rows), data.u.submatrix(0, 0, rows, nodes));
        let begun = Instant::now();
        refit = U::refit(u, y, ridge);
        refits += begun.elapsed().as_secs_f64();
        if failure.is_some() {
            continue;
        }
        let begun = Instant::now();
        let result = match way {
            Way::Nodes => {
                let (old, new) = u.split_at_col(old_nodes);
                update.add_columns(old, y, new)
            }
            Way::Rows => update.add_rows(u.split_at_row(old_rows).1, y.split_at_row(old_rows).1),
        };
        updates += begun.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                let other = data.other.subcols(0, nodes);
                differences.push(relative(&(other * update.w()), &(other * &refit)));
            }
            Err(_) => failure = Some(differences.len() + 1),
        }
    }
    let digits = |value: Option<&f64>| value.map_or("-".into(), |value| format!("{value:.0e}"));
    let ridge_text = if ridge > 0.0 { format!("{ridge:.0e}") } else { "none".into() };
    let last = match failure {
        Some(step) => format!("failed at step {step}"),
        None => digits(differences.last()),
    };
    let of_refit =
        exact.map(|exact| relative(&(&data.other * &refit), &exact.outputs(ridge, data)));
    let time = if failure.is_some() {
        "- | -".into()
    } else {
        format!("{updates:.2} | {:.2}", updates / refits)
    };
    println!(
        "| {} | {ridge_text} | {name} | {} | {last} | {} | {time} |",
        way.name(),
        digits(differences.first()),
        digits(of_refit.as_ref()),
    );
}

/// W by Cholesky on fresh normal equations.
fn cholesky(u: MatRef<'_, f64>, y: MatRef<'_, f64>, ridge: f64) -> Mat<f64> {
    let mut r = Mat::zeros(u.ncols(), u.ncols());
    let whole = BlockStructure::Rectangular;
    triangular::matmul(
        r.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Replace,
        u.transpose(),
        whole,
        u,
        whole,
        1.0,
        Par::Seq,
    );
    for i in 0..u.ncols() {
        r[(i, i)] += ridge;
    }
    r.llt(Side::Lower).expect("positive definite").solve(u.transpose() * y)
}

/// W = V S (S^2 + gamma)^-1 Q' Y with U = Q S V'.
struct Exact {
    s: Vec<f64>,
    v: Mat<f64>,
    qy: Mat<f64>,
}

impl Exact {
    fn new(data: &Data) -> Self {
        let svd = data.u.thin_svd().expect("singular values");
        Self {
            s: svd.S().column_vector().iter().copied().collect(),
            v: svd.V().to_owned(),
            qy: svd.U().transpose() * &data.y,
        }
    }

    fn outputs(&self, ridge: f64, data: &Data) -> Mat<f64> {
        let rotated = Mat::from_fn(self.qy.nrows(), self.qy.ncols(), |i, j| {
            self.s[i] / (self.s[i].powi(2) + ridge) * self.qy[(i, j)]
        });
        &data.other * (&self.v * rotated)
    }
}

fn relative(found: &Mat<f64>, right: &Mat<f64>) -> f64 {
    (found - right).norm_l2() / right.norm_l2()
}

impl Data {
    fn new(seed: u64) -> Self {
        let (inputs, linear, all) = (8, 50, ROWS + OTHER_ROWS);
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let x =
            Mat::from_fn(all, inputs + 1, |_, j| if j < inputs { stream.symmetric() } else { 1.0 });
        let mut draw = |rows, columns| Mat::from_fn(rows, columns, |_, _| stream.symmetric());
        let z = &x * draw(inputs + 1, linear);
        let h = &z * draw(linear, NODES - linear);
        let shrink = 0.8 / h.norm_max();
        let u = Mat::from_fn(all, NODES, |i, j| {
            if j < linear { z[(i, j)] } else { (shrink * h[(i, j - linear)]).tanh() }
        });
        let y = Mat::from_fn(ROWS, 1, |i, _| {
            let x = x.row(i);
            (2.0 * x[0] + x[1]).sin() + x[2] * x[3] + x[4].powi(2) + 0.1 * stream.normal()
        });
        let (u, other) = u.split_at_row(ROWS);
        Self { u: u.to_owned(), y, other: other.to_owned() }
    }
}
