//! What Tables IV to VI have in common: MNIST, learnt step by step.

use super::seeds_shown;
use crate::Plan;
use crate::engine::{Done, Run, Values};
use crate::increments::{Increment, Learner};
use crate::report::{Grid, Part};
use crate::statistics::{Spread, figure};
use broadlearn::Result;
use broadlearn::data::Task;
use broadlearn_report::{Chart, Series};

/// A table of steps.
pub(crate) struct Steps {
    pub(crate) increment: Increment,
    pub(crate) file: &'static str,
    /// What the steps are called, in the paper's words.
    pub(crate) names: [&'static str; 5],
    /// The paper's accuracies and their standard deviations.
    pub(crate) paper: [(f64, f64); 5],
    /// The paper's seconds.
    pub(crate) seconds: [f64; 5],
    /// The accuracies of an independent implementation and their standard deviations, ridge 1e-5:
    /// four networks of `reference/mnist_increments.py`.
    pub(crate) reference: [(f64, f64); 5],
    /// Ridges that are tried: the paper's first.
    pub(crate) ridges: &'static [f64],
    /// The ridge with which random patches take the place of the paper's features, beyond the paper.
    pub(crate) convolution: Option<f64>,
    pub(crate) note: &'static str,
}

/// The paper's kernel size for 0/1 targets, and one that gives wrong labels less weight.
const WIDE: f64 = 32.0;
const NARROW: f64 = 0.5;

struct Variant {
    name: String,
    convolution: bool,
    sigma: Option<f64>,
    ridge: f64,
    wrong: f64,
}

impl Steps {
    /// Whether wrong labels are looked at: in quick mode only with new rows.
    fn with_wrong_labels(&self, plan: &Plan) -> bool {
        !plan.quick || self.increment == Increment::Rows
    }

    fn variants(&self, plan: &Plan) -> Vec<Variant> {
        let variant = |name: &str, sigma, ridge, wrong| Variant {
            name: name.into(),
            convolution: false,
            sigma,
            ridge,
            wrong,
        };
        let mut variants: Vec<Variant> = self
            .ridges
            .iter()
            .map(|ridge| {
                variant(&format!("C-BLS, ridge {}", shown(*ridge)), Some(WIDE), *ridge, 0.0)
            })
            .collect();
        if let Some(ridge) = self.convolution {
            let name = format!("BLS, random patches, ridge {}", shown(ridge));
            variants.push(Variant { convolution: true, ..variant(&name, None, ridge, 0.0) });
        }
        let wrong = [("BLS", None), ("C-BLS, sigma 1/2", Some(NARROW))];
        for (name, sigma) in wrong.into_iter().filter(|_| self.with_wrong_labels(plan)) {
            variants.push(variant(&format!("{name}, 20 % wrong"), sigma, self.ridges[0], 0.2));
        }
        variants
    }
}

fn shown(ridge: f64) -> String {
    if ridge < 1e-8 { "2^-30".into() } else { format!("{ridge:e}") }
}

fn seeds(plan: &Plan) -> u64 {
    plan.seeds(10, 1)
}

pub(crate) fn runs(plan: &Plan, steps: &'static Steps) -> Result<Vec<Run>> {
    let found = plan.mnist()?;
    let mut runs = Vec::new();
    for variant in steps.variants(plan) {
        for seed in 0..seeds(plan) {
            let labels = vec![("variant", variant.name.clone()), ("seed", seed.to_string())];
            let Variant { convolution, sigma, ridge, wrong, .. } = variant;
            let learner = Learner { sigma, ridge, convolution, wrong, seed };
            let key = format!("{learner:?}");
            let found = found.clone();
            let run = Run::new(labels, &key, 60.0, move |stop| {
                let data = found.get()?;
                let done = data.steps(steps.increment, learner, &mut stop.observer())?;
                let mut values = Values::default();
                values.set_all("test", done.iter().map(|step| Some(step.accuracy)));
                values.set_all("seconds", done.iter().map(|step| Some(step.seconds)));
                Ok(values)
            });
            runs.push(run.alone());
        }
    }
    Ok(runs)
}

pub(crate) fn report(plan: &Plan, steps: &Steps, done: &[Done]) -> Result<Vec<Part>> {
    let task = Task::Classification;
    let variants = steps.variants(plan);
    let of = |variant: &Variant, measure: &str, step: usize| {
        Spread::step(done, &[("variant", &variant.name)], measure, step)
    };
    let (first, others) = (&variants[0], &variants[1..]);
    let mut grid = Grid::new(
        format!(
            "Test accuracy in percent with the paper's settings (sigma 2^5, ridge 1e-5), {}. Seconds are those of \
             different machines. Independent: NumPy, squared loss, 4 seeds (crates/broadlearn-paper/reference/mnist_increments.py).",
            seeds_shown(seeds(plan))
        ),
        &["step", "paper", "ours", "difference", "independent", "seconds: paper", "ours"],
    );
    let mut more = Grid::new(
        "Beyond the paper, test accuracy in percent. 20 % wrong: so many training labels are another digit. Random \
         patches: 100 of 7 x 7 pixels, pooled to 4 x 4 regions, and 3000 enhancement nodes.",
        &std::iter::once("step")
            .chain(others.iter().map(|variant| variant.name.as_str()))
            .collect::<Vec<_>>(),
    );
    for (step, name) in steps.names.iter().enumerate() {
        let shown = |(mean, deviation): (f64, f64)| {
            format!("{} ± {}", figure(mean, task), figure(deviation, task))
        };
        let ours = of(first, "test", step);
        grid.row([
            (*name).to_owned(),
            shown(steps.paper[step]),
            ours.shown(task),
            ours.above(steps.paper[step].0, task),
            shown(steps.reference[step]),
            format!("{:.1}", steps.seconds[step]),
            format!("{:.1}", of(first, "seconds", step).mean),
        ]);
        let mut cells = vec![(*name).to_owned()];
        cells.extend(others.iter().map(|variant| of(variant, "test", step).shown(task)));
        more.row(cells);
    }
    let numbers = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        (0..5).map(|step| (step as f64, value(step))).collect()
    };
    let mut chart = Chart::new("Test accuracy after every step")
        .y_label("accuracy, %")
        .categories(steps.names)
        .series(Series::line("paper", numbers(&|step| steps.paper[step].0)).dashed());
    for variant in &variants {
        let means = numbers(&|step| of(variant, "test", step).mean);
        chart = chart.series(Series::line(variant.name.as_str(), means));
    }
    let mut text = String::from(
        "With the paper's kernel size every weight exceeds 0.999, so that its C-BLS is plain ridge here.",
    );
    if let (true, [.., plain, robust]) = (steps.with_wrong_labels(plan), variants.as_slice()) {
        let shown = |variant, step| of(variant, "test", step).shown(task);
        text.push_str(&format!(
            " With a fifth of the labels wrong, BLS has {} after the first step and {} after the last; C-BLS with a kernel of \
             1/2, which distrusts wrong labels, {} and {}.",
            shown(plain, 0),
            shown(plain, 4),
            shown(robust, 0),
            shown(robust, 4)
        ));
    }
    if !steps.with_wrong_labels(plan) {
        text.push_str(" Wrong labels are looked at in full mode only.");
    }
    if !steps.note.is_empty() {
        text.push_str(&format!(" {}", steps.note));
    }
    let mut parts = vec![
        Part::Text(text),
        Part::picture(steps.file, chart, "Dashed: the paper."),
        Part::Table(grid),
    ];
    if !others.is_empty() {
        parts.push(Part::Table(more));
    }
    Ok(parts)
}
