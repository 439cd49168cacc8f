//! MNIST through the library's increments: new rows, new nodes, both, as in the paper's Tables IV to VI.

use crate::contamination::{Errors, spoil};
use crate::folder::{Folder, Mnist};
use crate::score::accuracy;
use broadlearn::data::Targets;
use broadlearn::features::{Growth, Recipe};
use broadlearn::model::{Labelled, Learning, Training};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Start;
use broadlearn::{Model, Observer, Result, Settings, unobserved};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// Which increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increment {
    /// Table IV: 20 000 rows, then 10 000 at a time.
    Rows,
    /// Table V: 10 feature nodes, 200 enhancement nodes that read these and 300 that read all, at a time.
    Nodes,
    /// Table VI: 10 000 rows and 1000 enhancement nodes at a time.
    Both,
}

/// Who learns, and from what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learner {
    /// The kernel size; squared loss without one.
    pub sigma: Option<f64>,
    /// The ridge.
    pub ridge: f64,
    /// Whether features are responses to random patches in place of the paper's.
    pub convolution: bool,
    /// The share of training rows that get another class.
    pub wrong: f64,
    /// The seed of the network.
    pub seed: u64,
}

/// What a step gave.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The rows learnt so far.
    pub rows: u64,
    /// The width of the network.
    pub nodes: usize,
    /// The accuracy on the test rows in percent.
    pub accuracy: f64,
    /// The seconds that the step took.
    pub seconds: f64,
}

/// Enhancement nodes that read the responses to patches.
const PATCHES_NODES: usize = 3000;

/// MNIST in memory.
pub struct Increments(Mnist);

impl Increments {
    /// Reads `mnist_train.npz` and `mnist_test.npz`, or the four published files.
    ///
    /// # Errors
    /// If they are not there or hold something else.
    pub fn read(folder: &Path) -> Result<Self> {
        Self::read_from(&Folder::new(folder))
    }

    pub(crate) fn read_from(folder: &Folder) -> Result<Self> {
        Mnist::read(&folder.find_mnist()?).map(Self)
    }

    /// Goes through the five steps of a table.
    ///
    /// # Errors
    /// If the observer asks to stop, or the numbers leave no answer.
    pub fn steps(
        &self,
        increment: Increment,
        learner: Learner,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Step>> {
        let work = Work::new(self, learner);
        let (rows, groups, nodes) = match increment {
            Increment::Rows => (20_000, 10, 5000),
            Increment::Nodes => (60_000, 6, 3000),
            Increment::Both => (20_000, 10, 1000),
        };
        let begun = Instant::now();
        let mut model = work.fit(rows, work.settings(groups, nodes), observer)?;
        let mut steps = vec![work.step(&model, begun)?];
        for step in 1..5 {
            let begun = Instant::now();
            let start = 10_000 * (step + 1);
            if increment != Increment::Nodes {
                work.learn(&mut model, start..start + 10_000, observer)?;
            }
            let growth = match increment {
                Increment::Rows => None,
                Increment::Nodes => Some(Growth {
                    feature_groups: 1,
                    feature_nodes: 10,
                    group_enhancement_nodes: 200,
                    enhancement_nodes: 300,
                }),
                Increment::Both => Some(Growth { enhancement_nodes: 1000, ..Growth::default() }),
            };
            if let Some(growth) = growth {
                let rows = model.rows() as usize;
                model = work.grow(&model, growth, rows, observer)?;
            }
            steps.push(work.step(&model, begun)?);
        }
        Ok(steps)
    }

    /// The time of 10 000 rows to 50 000 in units of a refit of 5100 nodes, best of two.
    ///
    /// # Errors
    /// If the numbers leave no answer.
    pub fn cost_of_rows(&self, learner: Learner) -> Result<f64> {
        let work = Work::new(self, learner);
        let model = work.fit(50_000, work.settings(10, 5000), &mut unobserved)?;
        work.cost(|| work.learn(&mut model.clone(), 50_000..60_000, &mut unobserved))
    }

    /// The time of 500 enhancement nodes to 4600 in such units.
    ///
    /// # Errors
    /// If the numbers leave no answer.
    pub fn cost_of_nodes(&self, learner: Learner) -> Result<f64> {
        let work = Work::new(self, learner);
        let model = work.fit(60_000, work.settings(10, 4500), &mut unobserved)?;
        let growth = Growth { enhancement_nodes: 500, ..Growth::default() };
        work.cost(|| work.grow(&model, growth, 60_000, &mut unobserved).map(|_| ()))
    }
}

/// The rows of a learner.
struct Work<'a> {
    mnist: &'a Mnist,
    classes: Vec<u32>,
    learner: Learner,
}

impl<'a> Work<'a> {
    fn new(Increments(mnist): &'a Increments, learner: Learner) -> Self {
        let mut targets = Targets::Classes(mnist.train.classes.clone());
        spoil(&mut targets, Errors::Paper, learner.wrong, 10, learner.seed);
        let Targets::Classes(classes) = targets else { unreachable!("they were classes before") };
        Self { mnist, classes, learner }
    }

    fn settings(&self, groups: usize, nodes: usize) -> Settings {
        let network = match self.learner.convolution {
            true => Settings::recipe(Recipe::Convolution).enhancement_nodes(PATCHES_NODES),
            false => Settings::recipe(Recipe::Classic)
                .feature_groups(groups)
                .feature_nodes(10)
                .enhancement_nodes(nodes),
        };
        let settings = network
            .input_scaling(Scaling::RowZScore)
            .ridge(self.learner.ridge)
            .stop(1e-6, 20)
            .seed(self.learner.seed);
        match self.learner.sigma {
            None => settings.squared(),
            Some(sigma) => settings.sigma(sigma).start(Start::Ridge, false),
        }
    }

    fn targets(&self, rows: Range<usize>) -> Targets {
        Targets::Classes(self.classes[rows].to_vec())
    }

    fn fit(&self, rows: usize, settings: Settings, observer: &mut Observer<'_>) -> Result<Model> {
        let targets = self.targets(0..rows);
        let x = self.mnist.train.x.subrows(0, rows);
        let schema = self.mnist.schema.clone();
        let training = Training { x, targets: &targets, weights: None, schema };
        settings.fit(training, observer)
    }

    fn learn(
        &self,
        model: &mut Model,
        rows: Range<usize>,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        let targets = self.targets(rows.clone());
        let x = self.mnist.train.x.subrows(rows.start, rows.len());
        let rows = Labelled { x, targets: &targets, weights: None };
        model.learn(rows, Learning::default(), observer).map(|_| ())
    }

    fn grow(
        &self,
        model: &Model,
        growth: Growth,
        rows: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Model> {
        let targets = self.targets(0..rows);
        let x = self.mnist.train.x.subrows(0, rows);
        model.grow(growth, Labelled { x, targets: &targets, weights: None }, observer)
    }

    fn step(&self, model: &Model, begun: Instant) -> Result<Step> {
        let seconds = begun.elapsed().as_secs_f64();
        let found = model.predict(&self.mnist.test.x)?.classes();
        let accuracy = accuracy(&found, &self.mnist.test.classes);
        Ok(Step { rows: model.rows(), nodes: model.map().width(), accuracy, seconds })
    }

    /// The time of a change in units of a refit, in turn, the best of two.
    fn cost(&self, mut change: impl FnMut() -> Result<()>) -> Result<f64> {
        let (mut least_change, mut least_refit) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..2 {
            let begun = Instant::now();
            change()?;
            least_change = least_change.min(begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            self.fit(60_000, self.settings(10, 5000), &mut unobserved)?;
            least_refit = least_refit.min(begun.elapsed().as_secs_f64());
        }
        Ok(least_change / least_refit)
    }
}
