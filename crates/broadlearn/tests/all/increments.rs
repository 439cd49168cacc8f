//! Every change of a model equals a fit from the beginning with the same sample weights.

use crate::support::{
    Problem, cases, fit, has_groups, problems, relative, rounding, rows_of, scaled_targets, state,
    targets_of, weighted_ridge,
};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Growth, Recipe};
use broadlearn::increment::Route;
use broadlearn::model::{Labelled, Learning};
use broadlearn::{Model, Result, Settings, unobserved};
use proptest::prelude::*;

/// From 1e-5, for which the promise is 1e-8.
const SAFE_RIDGES: std::ops::Range<f64> = -16.6..3.4;
/// Down to 2^-30, for which it is 1e-6.
const TINY_RIDGES: std::ops::Range<f64> = -30.0..-16.6;

pub(crate) fn labelled<'a>(x: &'a Mat<f64>, targets: &'a Targets) -> Labelled<'a> {
    Labelled { x: x.as_ref(), targets, weights: None }
}

pub(crate) fn learn(
    model: &mut Model,
    x: &Mat<f64>,
    targets: &Targets,
) -> Result<broadlearn::model::Learnt> {
    model.learn(labelled(x, targets), Learning::default(), &mut unobserved)
}

/// Rows of a problem by number, and the weights with which a model has learnt them.
pub(crate) struct History<'a> {
    pub(crate) x: &'a Mat<f64>,
    pub(crate) targets: &'a Targets,
    pub(crate) rows: Vec<(usize, f64)>,
}

impl History<'_> {
    fn rows(&self, rows: &[usize]) -> (Mat<f64>, Targets) {
        (rows_of(self.x, rows), targets_of(self.targets, rows))
    }

    /// How far the outputs of the model are from those of the minimiser by QR, in units of Y and
    /// beyond what rounding of the normal equations explains. Rows count by their weights: of a row
    /// without weight a model knows nothing.
    pub(crate) fn error(&self, model: &Model) -> f64 {
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
pub(crate) fn trust(
    model: &Model,
    x: &Mat<f64>,
    targets: &Targets,
    sigma: Option<f64>,
) -> Vec<f64> {
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
