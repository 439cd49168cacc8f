//! Every change of a model equals a fit from the beginning with the same sample weights.

use crate::support::{
    Problem, cases, fit, has_groups, problems, relative, rounding, rows_of, scaled_targets, state,
    targets_of, weighted_ridge,
};
use broadlearn::data::{TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Growth, Recipe};
use broadlearn::increment::Route;
use broadlearn::model::{Labelled, Learning, Refinement, Region};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Start;
use broadlearn::{Category, Model, Result, Settings, unobserved};
use proptest::prelude::*;

/// From 1e-5, for which the promise is 1e-8.
const SAFE_RIDGES: std::ops::Range<f64> = -16.6..3.4;
/// Down to 2^-30, for which it is 1e-6.
const TINY_RIDGES: std::ops::Range<f64> = -30.0..-16.6;

fn labelled<'a>(x: &'a Mat<f64>, targets: &'a Targets) -> Labelled<'a> {
    Labelled { x: x.as_ref(), targets, weights: None }
}

fn learn(model: &mut Model, x: &Mat<f64>, targets: &Targets) -> Result<broadlearn::model::Learnt> {
    model.learn(labelled(x, targets), Learning::default(), &mut unobserved)
}

/// Rows of a problem by number, and the weights with which a model has learnt them.
struct History<'a> {
    x: &'a Mat<f64>,
    targets: &'a Targets,
    rows: Vec<(usize, f64)>,
}

impl History<'_> {
    fn rows(&self, rows: &[usize]) -> (Mat<f64>, Targets) {
        (rows_of(self.x, rows), targets_of(self.targets, rows))
    }

    /// How far the outputs of the model are from those of the minimiser by QR, in units of Y and
    /// beyond what rounding of the normal equations explains. Rows count by their weights: of a row
    /// without weight a model knows nothing.
    fn error(&self, model: &Model) -> f64 {
        let numbers: Vec<usize> = self.rows.iter().map(|(row, _)| *row).collect();
        let weights: Vec<f64> = self.rows.iter().map(|(_, weight)| *weight).collect();
        let (x, targets) = self.rows(&numbers);
        let (u, y) = (state(model, &x), scaled_targets(model, &targets));
        let ridge = model.report().ridge.unwrap();
        let w = weighted_ridge(&u, &y, &weights, ridge);
        let root = |matrix: &Mat<f64>| {
            Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| weights[i].sqrt() * matrix[(i, j)])
        };
        excess(&root(&u), &(&w - model.weights()), &w, &root(&y), ridge)
    }
}

/// |U dW| / |Y|, less what rounding errors explain.
fn excess(u: &Mat<f64>, change: &Mat<f64>, w: &Mat<f64>, y: &Mat<f64>, ridge: f64) -> f64 {
    ((u * change).norm_l2() - rounding(u, w, y, ridge)) / y.norm_l2().max(1e-3)
}

/// exp(-|e|^2 / 2 sigma^2), from the definitions.
fn trust(model: &Model, x: &Mat<f64>, targets: &Targets, sigma: Option<f64>) -> Vec<f64> {
    let Some(sigma) = sigma else { return vec![1.0; x.nrows()] };
    let e = scaled_targets(model, targets) - state(model, x) * model.weights();
    e.row_iter().map(|row| (-row.squared_norm_l2() / (2.0 * sigma * sigma)).exp()).collect()
}

/// Random operations on a model, each followed by a comparison with the weighted minimiser.
fn any_sequence(problem: &Problem, robust: bool, operations: &[u8]) -> f64 {
    let (x, targets) = (problem.x(), problem.targets());
    let sigma = robust.then_some(problem.sigma);
    let settings = problem.settings().ridge(problem.ridge);
    let settings = match sigma {
        Some(sigma) => settings.sigma(sigma),
        None => settings.squared(),
    };
    let first: Vec<usize> = (0..problem.rows.div_ceil(3)).collect();
    let mut rest: Vec<usize> = (first.len()..problem.rows).collect();
    let (first_x, first_targets) = (rows_of(&x, &first), targets_of(&targets, &first));
    let Ok(mut model) = fit(settings, &first_x, &first_targets, None, problem.schema()) else {
        return 0.0; // A kernel so narrow that no row lies near the model.
    };
    let weights = model.knowledge().unwrap().ledger().weights().to_vec();
    let mut history =
        History { x: &x, targets: &targets, rows: first.into_iter().zip(weights).collect() };

    let mut worst = history.error(&model);
    for operation in operations {
        match operation % 4 {
            0 | 1 if !rest.is_empty() => {
                let count =
                    if operation % 4 == 0 { 1 } else { 1 + *operation as usize % rest.len() };
                let rows: Vec<usize> = rest.drain(..count).collect();
                let (x, targets) = history.rows(&rows);
                let mut expected = trust(&model, &x, &targets, sigma);
                if let (Targets::Classes(new), Targets::Classes(all)) = (&targets, history.targets)
                {
                    // A class of which no row was learnt cannot be judged.
                    let known =
                        |class: &u32| history.rows.iter().any(|(row, _)| all[*row] == *class);
                    let unknown = (0..new.len()).filter(|&row| !known(&new[row]));
                    unknown.for_each(|row| expected[row] = 1.0);
                }
                let learnt = learn(&mut model, &x, &targets).unwrap();
                for (found, expected) in learnt.trust.iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
                }
                history.rows.extend(rows.into_iter().zip(learnt.trust));
            }
            2 if history.rows.len() > 2 => {
                // Where equal rows have different weights, the latest of them leaves.
                let place = *operation as usize % history.rows.len();
                let (row, _) = history.rows[place];
                let (x, targets) = history.rows(&[row]);
                model.forget(labelled(&x, &targets), &mut unobserved).unwrap();
                let same = |other: &usize| {
                    let (other_x, other_targets) = history.rows(&[*other]);
                    other_x == x && format!("{other_targets:?}") == format!("{targets:?}")
                };
                let latest = history.rows.iter().rposition(|(other, _)| same(other)).unwrap();
                history.rows.remove(latest);
            }
            _ => {
                let groups = usize::from(has_groups(problem.recipe) && operation % 8 < 4);
                let growth = Growth {
                    feature_groups: groups,
                    feature_nodes: 2 * groups,
                    group_enhancement_nodes: 2 * groups,
                    enhancement_nodes: 3,
                };
                let rows: Vec<usize> = history.rows.iter().map(|(row, _)| *row).collect();
                let (x, targets) = history.rows(&rows);
                model = model.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
            }
        }
        worst = worst.max(history.error(&model));
    }
    worst
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn any_sequence_equals_a_refit(
        problem in problems(SAFE_RIDGES),
        robust: bool,
        operations in proptest::collection::vec(any::<u8>(), 1..12),
    ) {
        let error = any_sequence(&problem, robust, &operations);
        prop_assert!(error < 1e-8, "{error:e}");
    }

    #[test]
    fn any_sequence_equals_a_refit_at_tiny_ridges(
        problem in problems(TINY_RIDGES),
        robust: bool,
        operations in proptest::collection::vec(any::<u8>(), 1..12),
    ) {
        let error = any_sequence(&problem, robust, &operations);
        prop_assert!(error < 1e-6, "{error:e}");
    }

    #[test]
    fn learnt_and_forgotten_is_unchanged(problem in problems(SAFE_RIDGES), robust: bool) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let settings = if robust { settings.sigma(4.0) } else { settings.squared() };
        let half: Vec<usize> = (0..problem.rows.div_ceil(2)).collect();
        let rest: Vec<usize> = (half.len()..problem.rows).collect();
        prop_assume!(!rest.is_empty());
        let (first, first_targets) = (rows_of(&x, &half), targets_of(&targets, &half));
        let (second, second_targets) = (rows_of(&x, &rest), targets_of(&targets, &rest));
        let Ok(original) = fit(settings, &first, &first_targets, None, problem.schema()) else {
            return Ok(());
        };
        let mut model = original.clone();
        learn(&mut model, &second, &second_targets).unwrap();
        let removal = model.forget(labelled(&second, &second_targets), &mut unobserved).unwrap();
        prop_assert_eq!(removal.rows_left, half.len() as u64);
        prop_assert!(removal.residual < 1e-9, "{:e}", removal.residual);
        // R held all rows once: their sizes decide what rounding has left.
        let (u, y) = (state(&original, &x), scaled_targets(&original, &targets));
        let w = original.weights().to_owned();
        let known = u.subrows(0, half.len()).to_owned();
        let change = (known * (model.weights() - &w)).norm_l2();
        let change = (change - rounding(&u, &w, &y, problem.ridge)) / y.norm_l2().max(1e-3);
        prop_assert!(change < 1e-9, "{change:e}");
        // Duplicate rows may have left in another order: what is on record is the same.
        let sorted = |model: &Model| {
            let mut prints = model.knowledge().unwrap().ledger().fingerprints().to_vec();
            prints.sort_unstable();
            prints
        };
        prop_assert_eq!(sorted(&model), sorted(&original));
    }

    #[test]
    fn seven_shards_are_the_whole(problem in problems(SAFE_RIDGES), robust: bool) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let settings = if robust { settings.sigma(4.0) } else { settings.squared() };
        let Ok(whole) = fit(settings, &x, &targets, None, problem.schema()) else {
            return Ok(());
        };
        let whole = whole.part(labelled(&x, &targets), &mut unobserved).unwrap();
        // Shards of one step more, so that the weights of all are those of one W.
        let expected = whole.part(labelled(&x, &targets), &mut unobserved).unwrap();
        let parts: Vec<Model> = (0..7)
            .map(|shard| (0..problem.rows).filter(|row| row % 7 == shard).collect::<Vec<_>>())
            .filter(|rows| !rows.is_empty())
            .map(|rows| {
                let (x, targets) = (rows_of(&x, &rows), targets_of(&targets, &rows));
                whole.part(labelled(&x, &targets), &mut unobserved).unwrap()
            })
            .collect();
        let merged = Model::merge(&parts.iter().collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(merged.rows(), problem.rows as u64);
        let (u, y) = (state(&whole, &x), scaled_targets(&whole, &targets));
        let w = expected.weights().to_owned();
        let change = excess(&u, &(merged.weights() - &w), &w, &y, problem.ridge);
        prop_assert!(change < 1e-10, "{change:e}");
    }

    #[test]
    fn the_order_of_learning_and_growing_does_not_matter(problem in problems(SAFE_RIDGES)) {
        // Nodes that are shrunk or fine-tuned depend on the rows on which they were made.
        let mut problem = problem;
        problem.recipe = if problem.seed % 2 == 0 { Recipe::Rich } else { Recipe::Plain };
        let (x, targets) = (problem.x(), problem.targets());
        let half: Vec<usize> = (0..problem.rows.div_ceil(2)).collect();
        let rest: Vec<usize> = (half.len()..problem.rows).collect();
        prop_assume!(!rest.is_empty());
        let (first, first_targets) = (rows_of(&x, &half), targets_of(&targets, &half));
        let (second, second_targets) = (rows_of(&x, &rest), targets_of(&targets, &rest));
        let settings = problem.settings().ridge(problem.ridge).squared();
        let start = fit(settings, &first, &first_targets, None, problem.schema()).unwrap();
        let growth = Growth { enhancement_nodes: 7, ..Growth::default() };

        let mut grown_first =
            start.grow(growth, labelled(&first, &first_targets), &mut unobserved).unwrap();
        learn(&mut grown_first, &second, &second_targets).unwrap();
        let mut learnt_first = start;
        learn(&mut learnt_first, &second, &second_targets).unwrap();
        let grown_last =
            learnt_first.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
        prop_assert_eq!(grown_first.map(), grown_last.map());
        let (u, y) = (state(&grown_last, &x), scaled_targets(&grown_last, &targets));
        let w = grown_last.weights().to_owned();
        let change = excess(&u, &(grown_first.weights() - &w), &w, &y, problem.ridge);
        prop_assert!(change < 1e-8, "{change:e}");
    }

    #[test]
    fn a_grown_network_is_that_of_a_fresh_fit(problem in problems(SAFE_RIDGES)) {
        let (x, targets) = (problem.x(), problem.targets());
        let groups = 2 * usize::from(has_groups(problem.recipe));
        let growth = Growth {
            feature_groups: groups,
            feature_nodes: groups,
            group_enhancement_nodes: 2 * groups,
            enhancement_nodes: 5,
        };
        let settings = problem.settings().ridge(problem.ridge).squared();
        let small = fit(settings.clone(), &x, &targets, None, problem.schema()).unwrap();
        let grown = small.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
        let fresh = fit(settings.growth(growth), &x, &targets, None, problem.schema()).unwrap();
        prop_assert_eq!(grown.map(), fresh.map());
        prop_assert_eq!(grown.settings(), fresh.settings());
        let (u, y) = (state(&fresh, &x), scaled_targets(&fresh, &targets));
        let w = fresh.weights().to_owned();
        let change = excess(&u, &(grown.weights() - &w), &w, &y, problem.ridge);
        prop_assert!(change < 1e-8, "{change:e}");
        if matches!(problem.recipe, Recipe::Rich | Recipe::Plain) && groups == 0 {
            // Independent nodes: 20 and 5 more are the 25 of a larger network.
            let large = problem.settings().enhancement_nodes(25).ridge(problem.ridge).squared();
            let large = fit(large, &x, &targets, None, problem.schema()).unwrap();
            prop_assert!(relative(&state(&grown, &x), &state(&large, &x)) < 1e-15);
        }
    }

    #[test]
    fn saving_changes_nothing_of_what_follows(
        problem in problems(SAFE_RIDGES),
        robust: bool,
        operations in proptest::collection::vec(any::<u8>(), 1..8),
    ) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let settings = if robust { settings.sigma(4.0) } else { settings.squared() };
        let Ok(mut steady) = fit(settings, &x, &targets, None, problem.schema()) else {
            return Ok(());
        };
        let mut saved = Model::from_bytes(&steady.to_bytes().unwrap()).unwrap();
        for (step, operation) in operations.iter().enumerate() {
            let row = [*operation as usize % problem.rows];
            let (one, one_target) = (rows_of(&x, &row), targets_of(&targets, &row));
            for model in [&mut steady, &mut saved] {
                match operation % 3 {
                    0 | 1 => {
                        let forgetting = if operation % 5 == 0 { 0.9 } else { 1.0 };
                        let learning = Learning { forgetting, ..Learning::default() };
                        model.learn(labelled(&one, &one_target), learning, &mut unobserved).unwrap();
                    }
                    _ => {
                        // The row may have left already, which is an error for both.
                        let _ = model.forget(labelled(&one, &one_target), &mut unobserved);
                    }
                }
            }
            let (bytes, other) = (steady.to_bytes().unwrap(), saved.to_bytes().unwrap());
            prop_assert!(bytes == other, "after operation {step}");
            saved = Model::from_bytes(&other).unwrap();
        }
    }
}

/// Ten thousand rows one by one, a hundred growths, a thousand deletions.
#[test]
fn errors_do_not_add_up() {
    let (rows, columns, ridge) = (10_400, 3, 1e-5);
    let mut stream = Stream::new(5, Purpose::Noise, 0);
    let x = Mat::from_fn(rows, columns, |_, _| stream.normal());
    let y = Mat::from_fn(rows, 1, |i, _| {
        (2.0 * x[(i, 0)]).sin() + x[(i, 1)] * x[(i, 2)] + 0.1 * stream.normal()
    });
    let targets = Targets::Values(y);
    let part = |range: std::ops::Range<usize>| {
        let rows: Vec<usize> = range.collect();
        (rows_of(&x, &rows), targets_of(&targets, &rows))
    };
    let (first, first_targets) = part(0..400);
    let Targets::Values(first_y) = &first_targets else { unreachable!() };
    let settings = Settings::new().enhancement_nodes(30).ridge(ridge).sigma(1.0);
    let mut model = settings.fit_regression(&first, first_y).unwrap();
    let mut routes = [0, 0];
    for row in 400..rows {
        let (one, target) = part(row..row + 1);
        match learn(&mut model, &one, &target).unwrap().route {
            Some(Route::Updated) => routes[0] += 1,
            _ => routes[1] += 1,
        }
    }
    assert!(routes[0] > 9_000, "{routes:?}");
    for row in 0..1000 {
        let (one, target) = part(row..row + 1);
        model.forget(labelled(&one, &target), &mut unobserved).unwrap();
    }
    let (left, left_targets) = part(1000..rows);
    for _ in 0..100 {
        let growth = Growth { enhancement_nodes: 1, ..Growth::default() };
        model = model.grow(growth, labelled(&left, &left_targets), &mut unobserved).unwrap();
    }
    let refit = model.refit(labelled(&left, &left_targets), &mut unobserved).unwrap();
    let difference = model.difference(&refit, left.as_ref()).unwrap();
    assert!(difference < 1e-8, "{difference:e}");
    // The refit itself against QR, on rows enough to tell.
    let ledger = model.knowledge().unwrap().ledger();
    let (u, y) = (state(&model, &left), scaled_targets(&model, &left_targets));
    let w = weighted_ridge(&u, &y, ledger.weights(), ridge);
    let error = (&u * (&w - model.weights())).norm_l2() / y.norm_l2();
    assert!(error < 1e-8, "{error:e}");
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn left_out_is_forgotten(problem in problems(SAFE_RIDGES), robust: bool) {
        prop_assume!(problem.rows > 1);
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let settings = if robust { settings.sigma(1.0) } else { settings.squared() };
        let Ok(model) = fit(settings, &x, &targets, None, problem.schema()) else { return Ok(()) };
        let all = labelled(&x, &targets);
        let left_out = model.leave_one_out(all, &mut unobserved).unwrap();
        let chosen: Vec<usize> = (0..problem.rows).step_by(1 + problem.rows / 5).collect();
        let effects = model.removal_effects(all, &chosen, &mut unobserved).unwrap();
        for (&row, effect) in chosen.iter().zip(effects) {
            let (one, target) = (rows_of(&x, &[row]), targets_of(&targets, &[row]));
            let mut without = model.clone();
            without.forget(labelled(&one, &target), &mut unobserved).unwrap();
            // The smaller 1 - h, the more the row decided by itself, and the more rounding counts.
            let rest = 1.0 - left_out.leverage[row];
            let expected = without.predict(&one).unwrap().values().clone();
            let found = left_out.predictions.values().subrows(row, 1).to_owned();
            let size = expected.norm_l2().max(1.0);
            let difference = (found - expected).norm_l2() / size;
            prop_assert!(difference < 1e-8 / rest, "{difference:e}, 1 - h = {rest:e}");
            let change = state(&model, &x) * (without.weights() - model.weights());
            let change = change.norm_l2() / (problem.rows as f64).sqrt();
            prop_assert!((change - effect).abs() < 1e-8 / rest, "{change} {effect}");
        }
    }

    #[test]
    fn one_by_one_in_one_call_is_one_by_one(
        problem in problems(SAFE_RIDGES),
        robust: bool,
        forget: bool,
        quarantine: bool,
    ) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let settings = if robust { settings.sigma(1.0) } else { settings.squared() };
        let first: Vec<usize> = (0..problem.rows.div_ceil(3)).collect();
        let rest: Vec<usize> = (first.len()..problem.rows).collect();
        prop_assume!(!rest.is_empty());
        let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
        let Ok(model) = fit(settings, &fx, &ft, None, problem.schema()) else { return Ok(()) };
        let learning = Learning {
            forgetting: if forget { 0.97 } else { 1.0 },
            quarantine: if quarantine { 0.3 } else { 0.0 },
            one_by_one: true,
        };
        let (rx, rt) = (rows_of(&x, &rest), targets_of(&targets, &rest));
        let mut at_once = model.clone();
        let learnt = at_once.learn(labelled(&rx, &rt), learning, &mut unobserved).unwrap();

        let mut singly = model;
        let mut out = Vec::new();
        // Weights of rows far from the model feel every rounding error of the residual.
        let tolerance = 1e-7;
        for (place, row) in rest.iter().enumerate() {
            let (one, target) = (rows_of(&x, &[*row]), targets_of(&targets, &[*row]));
            let predicted = singly.predict(&one).unwrap().values().clone();
            let given = learnt.predictions.values().subrows(place, 1).to_owned();
            prop_assert!((predicted - given).norm_max() < tolerance);
            let single = singly.learn(labelled(&one, &target), learning, &mut unobserved).unwrap();
            prop_assert!((single.trust[0] - learnt.trust[place]).abs() < tolerance);
            if !single.quarantined.is_empty() {
                out.push(place);
            }
        }
        prop_assert_eq!(out, learnt.quarantined);
        prop_assert_eq!(singly.rows(), at_once.rows());
        let change = singly.difference(&at_once, x.as_ref()).unwrap();
        prop_assert!(change < tolerance, "{change:e}");
    }
}

#[test]
fn a_forgetting_factor_is_a_weight_for_every_row() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    for robust in [false, true] {
        let settings = problem.settings().ridge(1e-3);
        let settings = if robust { settings.sigma(1.0) } else { settings.squared() };
        let first: Vec<usize> = (0..30).collect();
        let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
        let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
        let mut weights = model.knowledge().unwrap().ledger().weights().to_vec();
        for batch in [30..31, 31..40, 40..60] {
            let rows: Vec<usize> = batch.collect();
            let (bx, bt) = (rows_of(&x, &rows), targets_of(&targets, &rows));
            let fresh = trust(&model, &bx, &bt, robust.then_some(1.0));
            for weight in fresh {
                weights.iter_mut().for_each(|weight| *weight *= 0.95);
                weights.push(weight);
            }
            let learning = Learning { forgetting: 0.95, ..Learning::default() };
            model.learn(labelled(&bx, &bt), learning, &mut unobserved).unwrap();
        }
        let rows = (0..60).zip(weights).collect();
        let error = History { x: &x, targets: &targets, rows }.error(&model);
        assert!(error < 1e-9, "{error:e}");
    }
}

#[test]
fn new_classes_leave_the_old_outputs_alone_until_their_rows_come() {
    let problem = Problem { classes: true, outputs: 4, ..example() };
    let x = problem.x();
    let Targets::Classes(codes) = problem.targets() else { unreachable!() };
    let old: Vec<usize> = (0..problem.rows).filter(|&row| codes[row] < 2).collect();
    let new: Vec<usize> = (0..problem.rows).filter(|&row| codes[row] >= 2).collect();
    assert!(old.len() > 10 && new.len() > 10);
    let targets = Targets::Classes(codes);
    let mut schema = problem.schema();
    schema.target = match schema.target {
        TargetSchema::Classification { name, kind, mut classes } => {
            classes.truncate(2);
            TargetSchema::Classification { name, kind, classes }
        }
        other => other,
    };
    let (ox, ot) = (rows_of(&x, &old), targets_of(&targets, &old));
    let settings = problem.settings().ridge(1e-3).sigma(0.5);
    let mut model = fit(settings, &ox, &ot, None, schema).unwrap();
    let before = model.predict(&x).unwrap().values().clone();
    model.add_classes(&["two".into(), "three".into()]).unwrap();
    let after = model.predict(&x).unwrap().values().clone();
    assert_eq!(after.subcols(0, 2), before);
    assert_eq!(after.subcols(2, 2).norm_max(), 0.0);

    let (nx, nt) = (rows_of(&x, &new), targets_of(&targets, &new));
    let learnt = learn(&mut model, &nx, &nt).unwrap();
    assert!(learnt.trust.iter().all(|&trust| trust == 1.0), "new classes cannot be judged");
    let weights = model.knowledge().unwrap().ledger().weights().to_vec();
    let rows = old.iter().chain(&new).copied().zip(weights).collect();
    let error = History { x: &x, targets: &targets, rows }.error(&model);
    assert!(error < 1e-9, "{error:e}");
    let found = model.predict(&nx).unwrap().classes();
    let Targets::Classes(truth) = &nt else { unreachable!() };
    let right = found.iter().zip(truth).filter(|(a, b)| a == b).count();
    assert!(2 * right > truth.len(), "{right} of {}", truth.len());
    assert!(model.add_classes(&["two".into()]).is_err());
}

#[test]
fn rounds_across_shards_reach_the_joint_fixed_point() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-2).sigma(1.0).stop(1e-12, 5000);
    // The best start may lead shards of few rows to another optimum than all rows together.
    let settings = settings.start(Start::L1, true);
    let joint = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    assert!(joint.report().converged);
    let shards: Vec<(Mat<f64>, Targets)> = (0..3)
        .map(|shard| (0..problem.rows).filter(|row| row % 3 == shard).collect::<Vec<_>>())
        .map(|rows| (rows_of(&x, &rows), targets_of(&targets, &rows)))
        .collect();
    // Each shard by itself, merged: a start that is not the joint optimum.
    let siblings: Vec<Model> = shards
        .iter()
        .map(|(x, t)| joint.sibling(labelled(x, t), &mut unobserved).unwrap())
        .collect();
    let mut model = Model::merge(&siblings.iter().collect::<Vec<_>>()).unwrap();
    let start = model.difference(&joint, x.as_ref()).unwrap();
    for _ in 0..400 {
        let parts: Vec<Model> = shards
            .iter()
            .map(|(x, t)| model.part(labelled(x, t), &mut unobserved).unwrap())
            .collect();
        model = Model::merge(&parts.iter().collect::<Vec<_>>()).unwrap();
    }
    let end = model.difference(&joint, x.as_ref()).unwrap();
    assert!(start > 1e-4 && end < 1e-8, "{start:e} {end:e}");
}

#[test]
fn refining_brings_frozen_weights_up_to_date() {
    let problem = Problem { rows: 200, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-2).sigma(1.0).stop(1e-12, 5000);
    let first: Vec<usize> = (0..20).collect();
    let rest: Vec<usize> = (20..200).collect();
    let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
    let (rx, rt) = (rows_of(&x, &rest), targets_of(&targets, &rest));
    let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
    assert!(model.drift(labelled(&fx, &ft), &mut unobserved).unwrap().largest < 1e-8);
    learn(&mut model, &rx, &rt).unwrap();
    let all = labelled(&x, &targets);
    let before = model.drift(all, &mut unobserved).unwrap();
    assert!(before.mean > 0.01, "{before:?}");

    let mut annealed = model.clone();
    annealed.refine(all, Refinement::Anneal, &mut unobserved).unwrap();
    let expected = model.sibling(all, &mut unobserved).unwrap();
    assert_eq!(annealed.weights(), expected.weights());

    let mut one_step = model.clone();
    one_step.refine(all, Refinement::Warm { steps: 1 }, &mut unobserved).unwrap();
    let expected = model.part(all, &mut unobserved).unwrap();
    assert!(one_step.difference(&expected, x.as_ref()).unwrap() < 1e-9);

    model.refine(all, Refinement::Warm { steps: 5000 }, &mut unobserved).unwrap();
    let after = model.drift(all, &mut unobserved).unwrap();
    assert!(after.largest < 1e-8, "{after:?}");
    assert_eq!(model.rows(), 200);
}

#[test]
fn threads_do_not_change_a_bit_of_what_is_learnt() {
    let problem = Problem { rows: 5000, columns: 6, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let first: Vec<usize> = (0..2000).collect();
            let rest: Vec<usize> = (2000..5000).collect();
            let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
            let (rx, rt) = (rows_of(&x, &rest), targets_of(&targets, &rest));
            let settings = Settings::new().enhancement_nodes(150).ridge(1e-2).sigma(1.0);
            let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
            learn(&mut model, &rx, &rt).unwrap();
            let growth = Growth { enhancement_nodes: 60, ..Growth::default() };
            model = model.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
            model.forget(labelled(&fx, &ft), &mut unobserved).unwrap();
            model.to_bytes().unwrap()
        })
    };
    assert!(bytes(1) == bytes(3));
}

#[test]
fn quarantine_keeps_a_poisoned_stream_from_doing_harm() {
    let mut stream = Stream::new(11, Purpose::Noise, 0);
    let rows = 6000;
    let x = Mat::from_fn(rows, 4, |_, _| stream.symmetric());
    let truth = |i: usize| (3.0 * x[(i, 0)]).sin() + x[(i, 1)] * x[(i, 2)] + 0.5 * x[(i, 3)];
    let clean = Mat::from_fn(rows, 1, |i, _| truth(i) + 0.1 * stream.normal());
    // Every fifth batch of fifty rows reads 4 too high.
    let poisoned = Mat::from_fn(rows, 1, |i, _| {
        clean[(i, 0)] + if i >= 1000 && i / 50 % 5 == 0 { 4.0 } else { 0.0 }
    });
    let run = |y: &Mat<f64>, quarantine: f64| -> (f64, usize) {
        let first = y.subrows(0, 1000);
        let mut model = Settings::new().fit_regression(x.subrows(0, 1000), first).unwrap();
        let mut kept_out = 0;
        for batch in 20..80 {
            let bx = x.subrows(50 * batch, 50);
            let targets = Targets::Values(y.subrows(50 * batch, 50).to_owned());
            let rows = Labelled { x: bx, targets: &targets, weights: None };
            let learning = Learning { quarantine, ..Learning::default() };
            kept_out += model.learn(rows, learning, &mut unobserved).unwrap().quarantined.len();
        }
        let test = x.subrows(4000, 2000);
        let f = model.predict(test).unwrap().values().clone();
        let square: f64 = (0..2000).map(|i| (f[(i, 0)] - truth(4000 + i)).powi(2)).sum();
        ((square / 2000.0).sqrt(), kept_out)
    };
    let (reference, _) = run(&clean, 0.1);
    let (robust, kept_out) = run(&poisoned, 0.1);
    assert!((580..640).contains(&kept_out), "{kept_out} of 600 poisoned rows kept out");
    assert!(robust <= 1.2 * reference, "{robust} against {reference}");
}

/// What must be refused, and must leave the model as it was.
#[test]
fn a_grown_model_is_calibrated_anew() {
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 50.0);
    let targets = Targets::Values(Mat::from_fn(300, 1, |i, _| (2.0 * x[(i, 0)]).sin()));
    let settings = Settings::new().gain(2.0).enhancement_nodes(2).squared().ridge(1e-6);
    let model = fit(settings, &x, &targets, None, crate::support::schema(1, &targets, 1)).unwrap();
    let growth = Growth { enhancement_nodes: 60, ..Growth::default() };
    let grown = model.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
    // Two nodes cannot follow a sine over two periods, sixty can.
    let width = |model: &Model| {
        let Region::HalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
        2.0 * half[0]
    };
    assert!(width(&model) > 0.5, "{}", width(&model));
    assert!(width(&grown) < 0.05, "{}", width(&grown));
}

#[test]
fn shards_of_a_fit_that_went_about_it_in_another_way_are_merged() {
    let problem = Problem { rows: 60, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let half = |from: usize| {
        let rows: Vec<usize> = (from..from + 30).collect();
        (rows_of(&x, &rows), targets_of(&targets, &rows))
    };
    let (x1, t1) = half(0);
    let (x2, t2) = half(30);
    let settings = problem.settings().ridge(0.1).sigma(1.0).memory(1 << 30);
    let model = fit(settings, &x1, &t1, None, problem.schema()).unwrap();
    // A file does not say how much memory there was.
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let sibling = loaded.sibling(labelled(&x2, &t2), &mut unobserved).unwrap();
    assert_eq!(Model::merge(&[&model, &sibling]).unwrap().rows(), 60);
}

#[test]
fn what_cannot_be_learnt_is_refused_and_changes_nothing() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let all = labelled(&x, &targets);
    // Tamed inputs would not overflow.
    let settings = problem.settings().ridge(1e-3).sigma(1.0).input_scaling(Scaling::Standard);
    let model = fit(settings.clone(), &x, &targets, None, problem.schema()).unwrap();
    let original = model.to_bytes().unwrap();
    let refuse = |what: &str, category, operation: &dyn Fn(&mut Model) -> Result<()>| {
        let mut model = model.clone();
        let error = operation(&mut model).expect_err(what);
        assert_eq!(error.category(), category, "{what}: {error}");
        assert!(model.to_bytes().unwrap() == original, "{what} changed the model");
        error.to_string()
    };
    let quiet = &mut unobserved;

    let narrow = Mat::from_fn(2, problem.columns + 1, |_, _| 0.0);
    let two = targets_of(&targets, &[0, 1]);
    refuse("other columns", Category::Data, &|model| learn(model, &narrow, &two).map(|_| ()));
    let mut wild = rows_of(&x, &[0, 1]);
    wild[(1, 0)] = f64::NAN;
    refuse("NaN", Category::Data, &|model| learn(model, &wild, &two).map(|_| ()));
    wild[(1, 0)] = 1e300;
    refuse("overflow", Category::Data, &|model| learn(model, &wild, &two).map(|_| ()));

    let mut other = rows_of(&x, &[3, 4]);
    other[(1, 0)] += 1e-9;
    let pair = targets_of(&targets, &[3, 4]);
    let message = refuse("rows never learnt", Category::Data, &|model| {
        model.forget(labelled(&other, &pair), &mut unobserved).map(|_| ())
    });
    assert!(message.contains("row 2"), "{message}");
    refuse("everything forgotten", Category::Data, &|model| {
        model.forget(all, &mut unobserved).map(|_| ())
    });
    let growth = Growth { enhancement_nodes: 4, ..Growth::default() };
    refuse("grown on some of the rows", Category::Data, &|model| {
        let (some, some_targets) = (rows_of(&x, &[0, 1, 2]), targets_of(&targets, &[0, 1, 2]));
        model.grow(growth, labelled(&some, &some_targets), &mut unobserved).map(|_| ())
    });
    refuse("no growth", Category::Setting, &|model| {
        model.grow(Growth::default(), all, &mut unobserved).map(|_| ())
    });
    refuse("interrupted", Category::Interrupted, &|model| {
        let stop = &mut |_| std::ops::ControlFlow::Break(());
        model.learn(all, Learning::default(), stop).map(|_| ())
    });
    for forgetting in [0.0, -1.0, 1.1, f64::NAN] {
        refuse("forgetting factor", Category::Setting, &|model| {
            let learning = Learning { forgetting, ..Learning::default() };
            model.learn(all, learning, &mut unobserved).map(|_| ())
        });
    }

    let compact = model.clone().compact();
    let error = compact.clone().learn(all, Learning::default(), quiet).unwrap_err();
    assert!(error.help().unwrap().contains("--compact"), "{error:?}");
    for error in [
        compact.clone().forget(all, quiet).unwrap_err(),
        compact.grow(growth, all, quiet).unwrap_err(),
        Model::merge(&[&compact]).unwrap_err(),
        compact.drift(all, quiet).unwrap_err(),
        compact.part(all, quiet).unwrap_err(),
    ] {
        assert_eq!(error.category(), Category::Model, "{error}");
    }
    let seeded = fit(settings.seed(99), &x, &targets, None, problem.schema()).unwrap();
    let error = Model::merge(&[&model, &seeded]).unwrap_err();
    assert!(error.to_string().contains("seed"), "{error}");
    let pseudo = problem.settings().squared().pseudo_inverse();
    let mut pseudo = fit(pseudo, &x, &targets, None, problem.schema()).unwrap();
    assert!(learn(&mut pseudo, &x, &targets).unwrap_err().help().unwrap().contains("--ridge"));
}

/// Rows that are off the record show themselves where what remains is no sum of squares.
#[test]
fn rows_never_learnt_show_as_indefiniteness() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-3).squared();
    let mut model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    model.keep_on_record(0);
    let bytes = model.to_bytes().unwrap();
    let far = Mat::from_fn(1, problem.columns, |_, j| 40.0 + j as f64);
    let one = targets_of(&targets, &[0]);
    let error = model.forget(labelled(&far, &one), &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("cannot have learnt"), "{error}");
    assert!(model.to_bytes().unwrap() == bytes);
    // A row that it has learnt leaves without a record, for its weight is 1.
    let first = rows_of(&x, &[0]);
    model.forget(labelled(&first, &one), &mut unobserved).unwrap();
    let rows = (1..problem.rows).map(|row| (row, 1.0)).collect();
    let error = History { x: &x, targets: &targets, rows }.error(&model);
    assert!(error < 1e-8, "{error:e}");
}

fn example() -> Problem {
    Problem {
        recipe: Recipe::Rich,
        rows: 60,
        columns: 3,
        outputs: 1,
        classes: false,
        constant_column: false,
        duplicate_rows: false,
        ridge: 1e-3,
        sigma: 1.0,
        seed: 7,
    }
}
