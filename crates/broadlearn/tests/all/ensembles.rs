//! An ensemble is its members, each of which is the model that its seed gives alone; one file, one
//! record of rows.

use crate::support::{
    Problem, cases, fit, problems, relative, rows_of, scaled, scaled_targets, targets_of,
};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream, member_seed};
use broadlearn::features::{Growth, Recipe};
use broadlearn::model::{Labelled, Learning, Member, Refinement};
use broadlearn::solve::Loss;
use broadlearn::{Category, Model, Result, Settings, unobserved};
use proptest::prelude::*;
use std::collections::HashSet;
use std::ops::ControlFlow;

const RIDGES: std::ops::Range<f64> = -10.0..3.4;
const MEMBERS: usize = 3;

fn labelled<'a>(x: &'a Mat<f64>, targets: &'a Targets) -> Labelled<'a> {
    Labelled { x: x.as_ref(), targets, weights: None }
}

fn settings(problem: &Problem, robust: bool) -> Settings {
    let settings = problem.settings().ridge(problem.ridge);
    if robust { settings.sigma(problem.sigma) } else { settings.squared() }
}

/// Some rows of a problem.
fn part(problem: &Problem, rows: std::ops::Range<usize>) -> (Mat<f64>, Targets) {
    let rows: Vec<usize> = rows.collect();
    (rows_of(&problem.x(), &rows), targets_of(&problem.targets(), &rows))
}

/// An ensemble, and the same networks as models of their own.
struct Pair {
    ensemble: Model,
    alone: Vec<Model>,
}

impl Pair {
    fn fit(problem: &Problem, robust: bool, x: &Mat<f64>, targets: &Targets) -> Result<Self> {
        let settings = settings(problem, robust);
        let one = |place| {
            let settings = settings.clone().seed(member_seed(problem.seed, place));
            fit(settings, x, targets, None, problem.schema())
        };
        let ensemble = settings.clone().members(MEMBERS);
        Ok(Self {
            ensemble: fit(ensemble, x, targets, None, problem.schema())?,
            alone: (0..MEMBERS).map(one).collect::<Result<_>>()?,
        })
    }

    fn each(&self, change: impl Fn(&Model) -> Result<Model>) -> Result<Self> {
        Ok(Self {
            ensemble: change(&self.ensemble)?,
            alone: self.alone.iter().map(change).collect::<Result<_>>()?,
        })
    }

    /// Everything that the members have learnt is what the models have learnt, to the last bit.
    #[track_caller]
    fn check(&self, x: &Mat<f64>) {
        for (member, model) in self.ensemble.members().iter().zip(&self.alone) {
            assert_eq!(member.seed(), model.settings().seed());
            assert_eq!(member.map(), model.map());
            assert_eq!(member.weights(), model.weights());
            let (ours, theirs) = (member.knowledge().unwrap(), model.knowledge().unwrap());
            assert_eq!(ours.equations().r(), theirs.equations().r());
            assert_eq!(ours.equations().p(), theirs.equations().p());
            assert_eq!(ours.ledger().fingerprints(), theirs.ledger().fingerprints());
            assert_eq!(ours.ledger().weights(), theirs.ledger().weights());
        }
        assert!(self.alone.iter().all(|model| model.rows() == self.ensemble.rows()));
        let mut expected = Mat::zeros(x.nrows(), self.ensemble.weights().ncols());
        for model in &self.alone {
            expected += model.predict(x).unwrap().values();
        }
        expected *= broadlearn::faer::Scale(1.0 / MEMBERS as f64);
        let found = self.ensemble.predict(x).unwrap();
        assert!((found.values() - &expected).norm_max() <= 1e-12 * expected.norm_max().max(1.0));
        // One file, which goes on with the same bits.
        let bytes = self.ensemble.to_bytes().unwrap();
        let again = Model::from_bytes(&bytes).unwrap();
        assert!(again.to_bytes().unwrap() == bytes);
        assert_eq!(again.predict(x).unwrap().values(), found.values());
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn an_ensemble_changes_as_its_members_do(problem in problems(RIDGES), robust: bool) {
        prop_assume!(problem.rows > 5);
        let third = problem.rows / 3;
        let x = problem.x();
        let (first_x, first) = part(&problem, 0..third.max(2));
        let (more_x, more) = part(&problem, third.max(2)..problem.rows);
        let Ok(pair) = Pair::fit(&problem, robust, &first_x, &first) else { return Ok(()) };
        pair.check(&x);

        // In, through a file; all of it is what a refit gives.
        let learnt = pair.each(|model| {
            let mut model = Model::from_bytes(&model.to_bytes()?)?;
            model.learn(labelled(&more_x, &more), Learning::default(), &mut unobserved)?;
            Ok(model)
        }).unwrap();
        learnt.check(&x);
        let targets = problem.targets();
        let all = labelled(&x, &targets);
        let refit = learnt.ensemble.refit(all, &mut unobserved).unwrap();
        let difference = learnt.ensemble.difference(&refit, x.as_ref()).unwrap();
        prop_assert!(difference < 1e-8, "{difference:e}");

        // Out again: no change.
        let back = learnt.each(|model| {
            let mut model = model.clone();
            model.forget(labelled(&more_x, &more), &mut unobserved)?;
            Ok(model)
        }).unwrap();
        back.check(&x);
        let difference = back.ensemble.difference(&pair.ensemble, first_x.as_ref()).unwrap();
        prop_assert!(difference < 1e-8, "{difference:e}");

        // Siblings, merged: the joint fit with these weights.
        let merged = pair.each(|model| {
            let sibling = model.part(labelled(&more_x, &more), &mut unobserved)?;
            Model::merge(&[model, &sibling])
        }).unwrap();
        merged.check(&x);
        let refit = merged.ensemble.refit(all, &mut unobserved).unwrap();
        let difference = merged.ensemble.difference(&refit, x.as_ref()).unwrap();
        prop_assert!(difference < 1e-8, "{difference:e}");

        // More nodes, which a larger network would have had; weights brought up to date.
        let growth = Growth { enhancement_nodes: 5, ..Growth::default() };
        let grown = merged.each(|model| model.grow(growth, all, &mut unobserved)).unwrap();
        grown.check(&x);
        let refined = grown.each(|model| {
            let mut model = model.clone();
            model.refine(all, Refinement::Warm { steps: 3 }, &mut unobserved)?;
            Ok(model)
        });
        if let Ok(refined) = refined {
            refined.check(&x);
        }
    }

    #[test]
    fn what_an_ensemble_says_of_a_row_left_out_is_what_it_says_without_it(
        problem in problems(RIDGES),
        robust: bool,
    ) {
        prop_assume!(problem.rows > 2);
        let (x, targets) = (problem.x(), problem.targets());
        let settings = settings(&problem, robust).members(MEMBERS);
        let Ok(model) = fit(settings, &x, &targets, None, problem.schema()) else { return Ok(()) };
        let all = labelled(&x, &targets);
        let left_out = model.leave_one_out(all, &mut unobserved).unwrap();
        let chosen: Vec<usize> = (0..problem.rows).step_by(1 + problem.rows / 4).collect();
        let effects = model.removal_effects(all, &chosen, &mut unobserved).unwrap();
        let outputs = |model: &Model| -> Mat<f64> {
            let values = model.predict(&x).unwrap().values().clone();
            match problem.classes {
                true => values,
                false => scaled(model.target_scaler(), values.as_ref()),
            }
        };
        for (&row, effect) in chosen.iter().zip(effects) {
            let (one, target) = (rows_of(&x, &[row]), targets_of(&targets, &[row]));
            let mut without = model.clone();
            without.forget(labelled(&one, &target), &mut unobserved).unwrap();
            let rest = 1.0 - left_out.leverage[row];
            let expected = without.predict(&one).unwrap().values().clone();
            let found = left_out.predictions.values().subrows(row, 1).to_owned();
            let difference = (found - &expected).norm_l2() / expected.norm_l2().max(1.0);
            prop_assert!(difference < 1e-7 / rest, "{difference:e}, 1 - h = {rest:e}");
            let change = (outputs(&without) - outputs(&model)).norm_l2();
            let change = change / (problem.rows as f64).sqrt();
            prop_assert!((change - effect).abs() < 1e-7 / rest, "{change} {effect}");
        }
    }

    #[test]
    fn quarantine_is_one_decision_for_all_members(
        problem in problems(RIDGES),
        robust: bool,
        decay: bool,
    ) {
        prop_assume!(problem.rows > 8);
        let half = problem.rows / 2;
        let (first_x, first) = part(&problem, 0..half);
        let (more_x, more) = part(&problem, half..problem.rows);
        let settings = settings(&problem, robust).members(MEMBERS);
        let fitted = fit(settings, &first_x, &first, None, problem.schema());
        let Ok(model) = fitted else { return Ok(()) };
        let learning = Learning {
            quarantine: 0.3,
            one_by_one: true,
            forgetting: if decay { 0.97 } else { 1.0 },
        };
        let mut at_once = model.clone();
        let learnt =
            at_once.learn(labelled(&more_x, &more), learning, &mut unobserved).unwrap();
        let mut singly = model;
        let mut kept_out = Vec::new();
        for row in 0..problem.rows - half {
            let (one, target) = part(&problem, half + row..half + row + 1);
            let found = singly.learn(labelled(&one, &target), learning, &mut unobserved).unwrap();
            // By the residual of the mean of the outputs, and the mean of the members' kernels.
            let reports = || singly.members().iter().map(Member::report);
            let sizes = reports().map(|report| match report.loss {
                Loss::Robust { sigma, .. } => sigma.min(3.0 * report.spread),
                Loss::Squared => 3.0 * report.spread,
            });
            let size = sizes.sum::<f64>() / MEMBERS as f64;
            let f = match problem.classes {
                true => found.predictions.values().clone(),
                false => scaled(singly.target_scaler(), found.predictions.values().as_ref()),
            };
            let e = scaled_targets(&singly, &target) - f;
            let expected = (-e.squared_norm_l2() / (2.0 * size * size)).exp();
            let known = !problem.classes || found.plausibility[0] != 1.0;
            if known && size > 1e-6 {
                let difference = (found.plausibility[0] - expected).abs();
                prop_assert!(difference < 1e-6, "{} {expected}", found.plausibility[0]);
            }
            // A decision on the edge may fall either way.
            prop_assume!((found.plausibility[0] - 0.3).abs() > 1e-6);
            if !found.quarantined.is_empty() {
                kept_out.push(row);
            }
            let trust = learnt.trust[row];
            prop_assert!((found.trust[0] - trust).abs() < 1e-6, "{} {trust}", found.trust[0]);
        }
        prop_assert_eq!(&learnt.quarantined, &kept_out);
        for model in [&at_once, &singly] {
            let prints = |place: usize| {
                model.members()[place].knowledge().unwrap().ledger().fingerprints()
            };
            prop_assert_eq!(prints(0), prints(1));
            prop_assert_eq!(prints(0), prints(2));
            prop_assert_eq!(model.rows() as usize, problem.rows - kept_out.len());
        }
    }
}

/// y = sin(2 a) b with noise, and the truth.
fn noisy(rows: usize, seed: u64, noise: f64) -> (Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 9);
    let x = Mat::from_fn(rows, 2, |_, _| stream.normal());
    let y =
        Mat::from_fn(rows, 1, |i, _| (2.0 * x[(i, 0)]).sin() * x[(i, 1)] + noise * stream.normal());
    (x, y)
}

/// The error of ten networks together, and the mean of their errors, against the truth behind noisy
/// targets.
fn together_and_alone(settings: &Settings, seed: u64) -> (f64, f64) {
    let ((x, y), (test_x, truth)) =
        (noisy(300, 100 + 2 * seed, 0.5), noisy(500, 101 + 2 * seed, 0.0));
    let ensemble = settings.clone().members(10).seed(seed).fit_regression(&x, &y).unwrap();
    let error = |model: &Model| (model.predict(&test_x).unwrap().values() - &truth).norm_l2();
    let alone = ensemble.members().iter().map(|member| {
        let settings = settings.clone().seed(member.seed());
        let model = settings.fit_regression(&x, &y).unwrap();
        assert_eq!(model.weights(), member.weights());
        error(&model)
    });
    let alone = alone.sum::<f64>() / 10.0;
    (error(&ensemble), alone)
}

#[test]
fn ten_networks_are_better_than_one() {
    // Never worse than their mean, by the triangle inequality; by how much better depends on how much
    // the networks differ, which is little if they are wide.
    let rich = || Settings::new().gain(0.7).ridge(0.1);
    let classic = Settings::recipe(Recipe::Classic).ridge(1e-4).sigma(1.0);
    for settings in [rich().sigma(1.0), classic, rich().squared()] {
        let (together, alone) = together_and_alone(&settings.enhancement_nodes(100), 0);
        assert!(together < alone, "{together} {alone}");
    }
    // Small ones differ more. The bound follows our own output (0.934): it guards against a change, no more.
    let small = rich().sigma(1.0).enhancement_nodes(30);
    let ratios = (0..4).map(|seed| {
        let (together, alone) = together_and_alone(&small, seed);
        together / alone
    });
    let ratio = ratios.sum::<f64>() / 4.0;
    assert!(ratio < 0.96, "{ratio}");
}

#[test]
fn everything_is_chosen_once_and_the_first_member_is_the_model_of_one() {
    let (x, y) = noisy(200, 3, 0.3);
    let one = Settings::new().seed(5).members(1).fit_regression(&x, &y).unwrap();
    let three = Settings::new().seed(5).members(3).fit_regression(&x, &y).unwrap();
    assert_eq!(three.weights(), one.weights());
    assert!(!three.report().candidates.is_empty());
    for member in &three.members()[1..] {
        assert!(member.report().candidates.is_empty());
        assert_eq!(member.report().loss, one.report().loss);
        assert_eq!(member.report().ridge, one.report().ridge);
        assert_ne!(member.map(), one.map());
    }
    // A file of one does not know that there could be more.
    assert!(!String::from_utf8_lossy(&one.to_bytes().unwrap()).contains("members"));
}

#[test]
fn a_chosen_network_has_company_and_a_given_one_is_alone() {
    let (x, y) = noisy(200, 3, 0.3);
    let members = |settings: Settings| settings.fit_regression(&x, &y).unwrap().members().len();
    assert_eq!(members(Settings::new()), 5);
    assert_eq!(members(Settings::new().members(2)), 2);
    assert_eq!(members(Settings::new().enhancement_nodes(20)), 1);
    // All members believe the same rows.
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let weights = |member: &Member| member.knowledge().unwrap().ledger().weights().to_vec();
    let first = weights(&model.members()[0]);
    assert!(model.members().iter().all(|member| weights(member) == first));
}

#[test]
fn no_two_seeds_have_a_member_in_common() {
    let mut seen = HashSet::new();
    for seed in (0..200).chain(u64::MAX - 20..=u64::MAX) {
        assert_eq!(member_seed(seed, 0), seed);
        assert!((0..1000).all(|member| seen.insert(member_seed(seed, member))), "{seed}");
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (x, y) = noisy(400, 4, 0.3);
    let targets = Targets::Values(y.subrows(300, 100).to_owned());
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let settings = Settings::new().members(3).ridge(1e-3);
            let mut model = settings.fit_regression(x.subrows(0, 300), y.subrows(0, 300)).unwrap();
            let rows = Labelled { x: x.subrows(300, 100), targets: &targets, weights: None };
            model.learn(rows, Learning::default(), &mut unobserved).unwrap();
            model.to_bytes().unwrap()
        })
    };
    let one = bytes(1);
    assert!(bytes(2) == one);
    assert!(bytes(3) == one);
}

#[test]
fn ensembles_of_other_sizes_are_not_merged() {
    let (x, y) = noisy(80, 5, 0.1);
    let fit = |members| {
        Settings::new().members(members).ridge(0.1).sigma(1.0).fit_regression(&x, &y).unwrap()
    };
    let error = Model::merge(&[&fit(3), &fit(2)]).unwrap_err();
    assert_eq!(error.category(), Category::Model);
    assert!(error.to_string().contains("model 2: found 2 members; expected 3 members"), "{error}");
    let other = Settings::new().members(3).ridge(0.1).sigma(1.0).seed(1).fit_regression(&x, &y);
    let error = Model::merge(&[&fit(3), &other.unwrap()]).unwrap_err();
    assert!(error.to_string().contains("other seed"), "{error}");
    for members in [0, 1001] {
        let error = Settings::new().members(members).fit_regression(&x, &y).unwrap_err();
        assert_eq!(error.category(), Category::Setting);
        assert!(error.to_string().contains("1 to 1000"), "{error}");
    }
}

#[test]
fn an_interrupted_change_leaves_all_members_as_they_were() {
    let (x, y) = noisy(120, 6, 0.2);
    let settings = Settings::new().members(3).ridge(0.1).sigma(1.0).enhancement_nodes(30);
    let mut model = settings.fit_regression(x.subrows(0, 80), y.subrows(0, 80)).unwrap();
    let before = model.to_bytes().unwrap();
    let targets = Targets::Values(y.subrows(80, 40).to_owned());
    let rows = Labelled { x: x.subrows(80, 40), targets: &targets, weights: None };
    let mut seen = Vec::new();
    let error = model
        .learn(rows, Learning::default(), &mut |progress| {
            seen.push(progress.member);
            match (progress.stage, progress.member) {
                ("adding up rows", Some((3, 3))) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })
        .unwrap_err();
    assert_eq!(error.category(), Category::Interrupted);
    assert!(seen.contains(&Some((1, 3))) && seen.contains(&Some((2, 3))));
    assert!(model.to_bytes().unwrap() == before);
    // Rows of which the model knows nothing are refused by all.
    assert!(model.forget(rows, &mut unobserved).is_err());
    assert!(model.to_bytes().unwrap() == before);
    let removal = {
        model.learn(rows, Learning::default(), &mut unobserved).unwrap();
        model.forget(rows, &mut unobserved).unwrap()
    };
    assert_eq!((removal.members.len(), removal.rows_left), (3, 80));
    assert!(removal.members.iter().all(|member| member.fingerprints == removal.fingerprints));
    assert!(removal.members.iter().all(|member| member.residual <= removal.residual));
    let again = Model::from_bytes(&before).unwrap();
    let (f, g) = (model.predict(&x).unwrap(), again.predict(&x).unwrap());
    assert!(relative(f.values(), g.values()) < 1e-9);
}

#[test]
fn new_classes_and_compact_ensembles() {
    let (x, y) = noisy(120, 7, 0.0);
    let classes: Vec<u32> = (0..120).map(|i| u32::from(y[(i, 0)] > 0.0)).collect();
    let settings = Settings::new().members(3).ridge(0.01).sigma(1.0).enhancement_nodes(30);
    let mut model = settings.fit_classes(&x, &classes).unwrap();
    let sums = model.predict(&x).unwrap().probabilities();
    assert!((0..120).all(|i| (sums[(i, 0)] + sums[(i, 1)] - 1.0).abs() < 1e-12));
    model.add_classes(&["2".into()]).unwrap();
    let targets = Targets::Classes(vec![2; 40]);
    let far = Mat::from_fn(40, 2, |i, j| 4.0 + (i * (j + 2) % 7) as f64 / 7.0);
    let learning = Learning { quarantine: 0.1, ..Learning::default() };
    let learnt = model.learn(labelled(&far, &targets), learning, &mut unobserved).unwrap();
    assert!(learnt.quarantined.is_empty());
    assert!(model.predict(&far).unwrap().classes().iter().all(|class| *class == 2));
    let bytes = model.to_bytes().unwrap().len();
    let compact = model.compact();
    assert!(compact.to_bytes().unwrap().len() < bytes);
    let mut compact = Model::from_bytes(&compact.to_bytes().unwrap()).unwrap();
    assert_eq!(compact.members().len(), 3);
    let error = compact.learn(labelled(&far, &targets), learning, &mut unobserved).unwrap_err();
    assert_eq!(error.category(), Category::Model);
}
