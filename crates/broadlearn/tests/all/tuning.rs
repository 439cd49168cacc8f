//! The search over a grid: its scores are those of separate fits, and neither threads nor
//! interruptions change them.

use broadlearn::data::{Schema, TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::tune::{Grid, Setting, Trial, Tuned, Tuning, Validation};
use broadlearn::model::{Labelled, Training};
use broadlearn::{Category, Error, Observer, unobserved};
use std::ops::ControlFlow;
use std::path::Path;

struct Rows {
    x: Mat<f64>,
    targets: Targets,
    weights: Option<Vec<f64>>,
    schema: Schema,
}

impl Rows {
    fn x(count: usize) -> Mat<f64> {
        Mat::from_fn(count, 2, |i, j| ((i * (37 + 48 * j)) % 211) as f64 / 52.0 - 2.0)
    }

    /// A smooth function of two inputs, with some noise; every eighth target is off by `wrong`.
    fn values(count: usize, wrong: f64) -> Self {
        let x = Self::x(count);
        let y = Mat::from_fn(count, 1, |i, _| {
            let noise = ((i * 37) % 11) as f64 / 50.0;
            let off = if i % 8 == 3 { wrong } else { 0.0 };
            5.0 + (1.5 * x[(i, 0)]).sin() + x[(i, 1)] + noise + off
        });
        let target = TargetSchema::Regression { names: vec!["y".into()] };
        let schema = Schema::numeric(2, target);
        Self { x, targets: Targets::Values(y), weights: None, schema }
    }

    fn classes(count: usize) -> Self {
        let x = Self::x(count);
        let codes = (0..count).map(|i| u32::from(x[(i, 0)] * x[(i, 1)] > 0.2)).collect();
        let schema = Schema::numeric(
            2,
            TargetSchema::Classification {
                name: "class".into(),
                kind: broadlearn::data::Kind::Number,
                classes: vec!["0".into(), "1".into()],
            },
        );
        Self { x, targets: Targets::Classes(codes), weights: None, schema }
    }

    fn training(&self) -> Training<'_> {
        let Labelled { x, targets, weights } = self.labelled();
        Training { x, targets, weights, schema: self.schema.clone() }
    }

    fn labelled(&self) -> Labelled<'_> {
        Labelled { x: self.x.as_ref(), targets: &self.targets, weights: self.weights.as_deref() }
    }

    fn run(&self, tuning: &Tuning) -> Tuned {
        tuning.run(self.training(), None, &mut unobserved).unwrap()
    }
}

fn small() -> Tuning {
    let grid = Grid {
        recipes: vec![Recipe::Rich, Recipe::Plain, Recipe::Unscaled],
        feature_groups: vec![2, 3],
        feature_nodes: vec![2],
        enhancement_nodes: vec![0, 5, 12, 20],
        gains: vec![0.7, 1.5],
        fan_ins: vec![None],
        ridges: vec![1e-3, 1.0],
        sigmas: vec![0.25, 1.0],
    };
    Tuning { grid, finalists: 3, seed: 5, automatic: false, members: Some(1), ..Tuning::default() }
}

#[test]
fn the_papers_grid_is_the_papers() {
    let grid = Grid::paper();
    assert_eq!(grid.feature_nodes, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    assert_eq!(grid.feature_groups, (1..=20).collect::<Vec<_>>());
    assert_eq!(grid.enhancement_nodes.len(), 40);
    assert_eq!((grid.enhancement_nodes[0], grid.enhancement_nodes[39]), (1, 196));
    assert_eq!(grid.sigmas.len(), 11);
    assert_eq!((grid.sigmas[0], grid.sigmas[10]), (1.0 / 32.0, 32.0));
    assert_eq!(grid.ridges, [1.0 / f64::from(1 << 30)]);
    assert_eq!((grid.len(true), grid.len(false)), (88_000, 8_000));
}

/// The root mean squared error, or the share of right classes, of a separate fit's leave-one-out.
fn separately(rows: &Rows, tuning: &Tuning, trial: &Trial) -> f64 {
    let model = tuning.settings(&trial.setting).fit(rows.training(), &mut unobserved).unwrap();
    let left_out = model.leave_one_out(rows.labelled(), &mut unobserved).unwrap();
    let weight = |row: usize| rows.weights.as_ref().map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..rows.x.nrows()).map(weight).sum();
    match &rows.targets {
        Targets::Values(y) => {
            let e = y - left_out.predictions.values();
            let sum: f64 = (0..y.nrows()).map(|i| weight(i) * e[(i, 0)].powi(2)).sum();
            (sum / total).sqrt()
        }
        Targets::Classes(codes) => {
            let found = left_out.predictions.classes();
            let right = (0..codes.len()).filter(|&i| found[i] == codes[i]);
            right.map(weight).sum::<f64>() / total
        }
    }
}

#[test]
fn under_the_squared_loss_every_setting_is_judged_exactly() {
    let mut weighted = Rows::values(90, 0.0);
    weighted.weights = Some((0..90).map(|i| [1.0, 2.0, 0.5][i % 3]).collect());
    for rows in [Rows::values(90, 0.0), weighted, Rows::classes(90)] {
        let tuning = Tuning { loss: None, ..small() };
        let tuned = rows.run(&tuning);
        assert_eq!(tuned.trials.len(), 6 * 2 * 4);
        for trial in &tuned.trials {
            let found = trial.judged.unwrap().metric;
            let right = separately(&rows, &tuning, trial);
            assert!((found - right).abs() < 1e-7 * right, "{found} {right}: {trial:?}");
        }
        let scores: Vec<f64> = tuned.trials.iter().map(|t| t.judged.unwrap().score).collect();
        assert!(scores.windows(2).all(|pair| pair[0] <= pair[1]));
        for finalist in &tuned.finalists {
            assert!((finalist.search.unwrap().score / finalist.exact.score - 1.0).abs() < 1e-6);
        }
        assert_eq!(tuned.finalists[0].setting, tuned.trials[0].setting);
    }
}

#[test]
fn under_a_robust_loss_the_largest_sizes_are_judged_by_their_own_fixed_point() {
    let rows = Rows::values(200, 0.0);
    let grid = Grid { enhancement_nodes: vec![20], ..small().grid };
    let tuning = Tuning { grid, finalists: 100, ..small() };
    for finalist in rows.run(&tuning).finalists {
        let ratio = finalist.search.unwrap().score / finalist.exact.score;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}: {finalist:?}");
    }
}

#[test]
fn wrong_rows_do_not_decide() {
    let (dirty, clean) = (Rows::values(300, 25.0), Rows::values(300, 0.0));
    let Targets::Values(truth) = &clean.targets else { unreachable!() };
    for validation in [Validation::LeaveOneOut, Validation::Folds(4)] {
        let tuned = dirty.run(&Tuning { validation, ..small() });
        let error = tuned.model.predict(&dirty.x).unwrap().values() - truth;
        let rmse = error.norm_l2() / f64::from(300).sqrt();
        assert!(rmse < 0.15, "{validation:?}: {rmse}, {:?}", tuned.finalists);
    }
}

fn same(a: &Tuned, b: &Tuned) {
    assert_eq!(a.trials, b.trials);
    assert_eq!(a.finalists, b.finalists);
    assert!(a.model.to_bytes().unwrap() == b.model.to_bytes().unwrap());
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let rows = Rows::values(150, 9.0);
    for validation in [Validation::LeaveOneOut, Validation::Folds(3)] {
        let tuning = Tuning { validation, ..small() };
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| rows.run(&tuning))
        };
        let one = with(1);
        same(&one, &with(2));
        same(&one, &with(3));
    }
}

/// Runs with a file for the progress and stops after so many reports of the search.
fn interrupted(rows: &Rows, tuning: &Tuning, file: &Path, reports: usize) -> Error {
    let mut left = reports;
    let observer: &mut Observer<'_> = &mut |progress| {
        left -= usize::from(progress.stage == "searching");
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    tuning.run(rows.training(), Some(file), observer).unwrap_err()
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let rows = Rows::values(120, 9.0);
    let tuning = small();
    let whole = rows.run(&tuning);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("progress");

    // Four networks at a time take 2 ridges and 2 kernels: the first four are done, the others not.
    assert_eq!(interrupted(&rows, &tuning, &file, 7).category(), Category::Interrupted);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 1 + 4);

    // A line that was cut short is judged again, the others are not.
    for cut in [0, 10] {
        std::fs::write(&file, &text.as_bytes()[..text.len() - cut]).unwrap();
        let mut first = None;
        let observer: &mut Observer<'_> = &mut |progress| {
            if progress.stage == "searching" && first.is_none() {
                first = Some(progress.done);
            }
            ControlFlow::Continue(())
        };
        let resumed = tuning.run(rows.training(), Some(&file), observer).unwrap();
        assert_eq!(first, Some(if cut == 0 { 4 * 16 } else { 3 * 16 }));
        same(&whole, &resumed);
    }
    // With all networks known, only the finalists are fitted.
    same(&whole, &tuning.run(rows.training(), Some(&file), &mut unobserved).unwrap());

    // Another search must not go on with it, nor with a file of another kind.
    let others = [Tuning { seed: 6, ..small() }, Tuning { loss: None, ..small() }];
    for other in others {
        let error = other.run(rows.training(), Some(&file), &mut unobserved).unwrap_err();
        assert!(error.to_string().contains("another search"), "{error}");
    }
    let fewer = Rows::values(119, 9.0);
    let error = tuning.run(fewer.training(), Some(&file), &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("another search"), "{error}");
    std::fs::write(&file, "a,b\n1,2\n").unwrap();
    let error = tuning.run(rows.training(), Some(&file), &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("something else"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a,b\n1,2\n");
}

#[test]
fn a_search_that_makes_no_sense_is_refused() {
    let rows = Rows::values(60, 0.0);
    let refused = |tuning: Tuning, part: &str| {
        let error = tuning.run(rows.training(), None, &mut unobserved).unwrap_err();
        assert_eq!(error.category(), Category::Setting, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let with = |change: fn(&mut Grid)| {
        let mut tuning = small();
        change(&mut tuning.grid);
        tuning
    };
    refused(with(|grid| grid.recipes.clear()), "recipes");
    refused(with(|grid| grid.enhancement_nodes.clear()), "enhancement_nodes");
    refused(with(|grid| grid.gains.clear()), "gains");
    refused(with(|grid| grid.ridges = vec![0.0]), "ridges");
    refused(with(|grid| grid.sigmas = vec![f64::NAN]), "sigmas");
    refused(with(|grid| grid.feature_groups = vec![0]), "feature_groups");
    refused(with(|grid| grid.enhancement_nodes = vec![70_000]), "nodes");
    refused(with(|grid| grid.enhancement_nodes = (0..2_000_000).collect()), "settings");
    refused(Tuning { validation: Validation::Folds(1), ..small() }, "score");
    refused(Tuning { validation: Validation::Folds(61), ..small() }, "score");
    refused(Tuning { finalists: 0, ..small() }, "finalists");
    let few = Rows::values(9, 0.0);
    let error = small().run(few.training(), None, &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("at least 10"), "{error}");
}

/// What no network of the grid can do, a fit with nothing given may: a product of two inputs among six.
#[test]
fn what_fit_chooses_takes_part_and_members_follow() {
    let x = Mat::from_fn(150, 6, |i, j| {
        2.0 * ((i * i * 17 + i * (7 + 4 * j) + j * j * 5) as f64).sin()
    });
    let y = Mat::from_fn(150, 1, |i, _| x[(i, 0)] * x[(i, 1)]);
    let target = TargetSchema::Regression { names: vec!["y".into()] };
    let schema = Schema::numeric(6, target);
    let rows = Rows { x, targets: Targets::Values(y), weights: None, schema };
    let grid = Grid { enhancement_nodes: vec![0, 5], gains: vec![0.7], ..small().grid };
    let tuning = Tuning { grid, automatic: true, members: None, ..small() };
    let tuned = rows.run(&tuning);
    assert_eq!(tuned.finalists.len(), 4);
    let winner = &tuned.finalists[0];
    assert!(winner.search.is_none(), "{:?}", tuned.finalists);
    assert!(winner.exact.score < 0.1 * tuned.finalists[1].exact.score, "{:?}", tuned.finalists);
    assert_eq!(tuned.model.members().len(), 5);
    let alone = rows.run(&Tuning { members: Some(1), ..tuning });
    assert_eq!(alone.finalists, tuned.finalists);
    assert_eq!(alone.model.members().len(), 1);
}

/// A narrow kernel believes the rows that its own fit passes by, and leave-one-out with their weights believes it.
#[test]
fn a_kernel_is_not_taken_because_it_believes_itself() {
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    let x = Mat::from_fn(200, 3, |_, _| stream.normal());
    let y = Mat::from_fn(200, 1, |i, _| x[(i, 0)] + (2.0 * x[(i, 1)]).sin() + stream.normal());
    let target = TargetSchema::Regression { names: vec!["y".into()] };
    let rows =
        Rows { x, targets: Targets::Values(y), weights: None, schema: Schema::numeric(3, target) };
    let grid = Grid { sigmas: vec![1.0 / 32.0, 0.125, 2.0, 8.0], ..small().grid };
    let tuned = rows.run(&Tuning { grid, ..small() });
    let narrow = |setting: Setting| setting.sigma.unwrap() < 1.0;
    assert!(narrow(tuned.trials[0].setting), "leave-one-out takes a narrow one");
    assert!(!narrow(tuned.finalists[0].setting), "{:?}", tuned.finalists);
}

#[test]
fn numbers_of_inputs_a_node_are_an_axis() {
    let rows = Rows::values(60, 0.0);
    let grid = |fan_ins: Vec<Option<usize>>| Grid { fan_ins, ..small().grid };
    let count = |fan_ins| rows.run(&Tuning { grid: grid(fan_ins), ..small() }).trials.len();
    let all = count(vec![None]);
    // There are two inputs: nodes that read two read all.
    assert_eq!(count(vec![None, Some(2), Some(3)]), all);
    assert_eq!(count(vec![Some(1), None]), all + 2 * 2 * 2 * 4);
}
