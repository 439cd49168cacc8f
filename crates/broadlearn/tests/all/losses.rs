//! What must hold for every robust loss.

use crate::support::{
    Problem, cases, fit, problems, rounding, rows_of, scaled_targets, state, targets_of,
    weighted_ridge,
};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::{Labelled, Learning, Refinement};
use broadlearn::solve::{Loss, RobustLoss, Start};
use broadlearn::{Category, Model, Settings, unobserved};
use proptest::prelude::*;

const LOSSES: [RobustLoss; 7] = [
    RobustLoss::Correntropy,
    RobustLoss::Huber,
    RobustLoss::Absolute,
    RobustLoss::Bisquare,
    RobustLoss::Generalised { shape: 1.0 },
    RobustLoss::Generalised { shape: 1.6 },
    RobustLoss::Mixture { share: 0.8, ratio: 4.0 },
];

/// From 1e-5: below, the rounding of the normal equations shows.
const SAFE_RIDGES: std::ops::Range<f64> = -16.6..3.4;

/// The weight of a residual norm in units of sigma, from the definitions.
fn weight(loss: RobustLoss, r: f64) -> f64 {
    let smooth = r.hypot(0.01);
    match loss {
        RobustLoss::Correntropy => (-r * r / 2.0).exp(),
        RobustLoss::Huber => (1.0 / r).min(1.0),
        RobustLoss::Absolute => 1.0 / smooth,
        RobustLoss::Bisquare if r < 1.0 => (1.0 - r * r).powi(2),
        RobustLoss::Bisquare => 0.0,
        RobustLoss::Generalised { shape } => {
            smooth.powf(shape) / smooth.powi(2) * (-smooth.powf(shape) / 2.0).exp()
        }
        RobustLoss::Mixture { share, ratio } => {
            let kernel = |size: f64| (-(r / size).powi(2) / 2.0).exp() / (size * size);
            (share * kernel(1.0) + (1.0 - share) * kernel(ratio))
                / (share + (1.0 - share) / (ratio * ratio))
        }
    }
}

/// The weights of all rows by the model's own residuals.
fn weights(
    model: &Model,
    x: &Mat<f64>,
    targets: &Targets,
    loss: RobustLoss,
    sigma: f64,
) -> Vec<f64> {
    let e = scaled_targets(model, targets) - state(model, x) * model.weights();
    e.row_iter().map(|row| weight(loss, row.norm_l2() / sigma)).collect()
}

/// A fit with fixed ridge and kernel; `None` where no row lies near the model.
fn fitted(
    problem: &Problem,
    settings: Settings,
    x: &Mat<f64>,
    targets: &Targets,
    weights: Option<&[f64]>,
) -> Option<Model> {
    let settings = settings.sigma(problem.sigma).ridge(problem.ridge);
    match fit(settings, x, targets, weights, problem.schema()) {
        Ok(model) => Some(model),
        Err(error) if error.category() == Category::Numeric => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn predictions(model: &Model, x: &Mat<f64>) -> Mat<f64> {
    model.predict(x).unwrap().values().clone()
}

fn losses() -> impl Strategy<Value = RobustLoss> {
    proptest::sample::select(&LOSSES[..])
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn the_objective_never_decreases(
        problem in problems(SAFE_RIDGES),
        loss in losses(),
        zero: bool,
        anneal: bool,
    ) {
        let start = if zero { Start::Zero } else { Start::Ridge };
        let settings = problem.settings().loss(loss).start(start, anneal);
        let model = fitted(&problem, settings, &problem.x(), &problem.targets(), None);
        for pair in model.iter().flat_map(|model| model.report().objective.windows(2)) {
            prop_assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs().max(1.0), "{pair:?}");
        }
    }

    #[test]
    fn the_weights_of_the_own_residuals_give_the_same_solution(
        problem in problems(SAFE_RIDGES),
        loss in losses(),
    ) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().loss(loss).stop(1e-11, 3000);
        let Some(model) = fitted(&problem, settings, &x, &targets, None) else { return Ok(()) };
        prop_assume!(model.report().converged);
        let (u, y) = (state(&model, &x), scaled_targets(&model, &targets));
        let w = model.weights().to_owned();
        let weights = weights(&model, &x, &targets, loss, problem.sigma);
        let next = weighted_ridge(&u, &y, &weights, problem.ridge);
        let change = (&u * (&next - &w)).norm_l2();
        // Weights above 1 magnify the rounding errors of R and P.
        let largest = weights.iter().copied().fold(1.0, f64::max);
        let allowed = 1e-8 * y.norm_l2() + largest * rounding(&u, &w, &y, problem.ridge);
        prop_assert!(change <= allowed, "{change:e}, allowed {allowed:e}");
    }

    #[test]
    fn weight_two_is_two_copies_and_weight_zero_is_absence(
        problem in problems(-10.0..3.4),
        loss in losses(),
    ) {
        let (x, targets) = (problem.x(), problem.targets());
        let mut stream = Stream::new(problem.seed, Purpose::Noise, 2);
        let mut counts: Vec<usize> = (0..problem.rows).map(|_| stream.below(4)).collect();
        counts[0] = 2;
        let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let copies: Vec<usize> =
            (0..problem.rows).flat_map(|row| std::iter::repeat_n(row, counts[row])).collect();
        let (copied_x, copied_targets) = (rows_of(&x, &copies), targets_of(&targets, &copies));
        let settings = problem.settings().loss(loss).stop(1e-11, 3000);
        let weighted = fitted(&problem, settings.clone(), &x, &targets, Some(&weights));
        let copied = fitted(&problem, settings, &copied_x, &copied_targets, None);
        prop_assert_eq!(weighted.is_some(), copied.is_some());
        if let (Some(weighted), Some(copied)) = (weighted, copied) {
            let off = (predictions(&weighted, &x) - predictions(&copied, &x)).norm_max();
            prop_assert!(off < 1e-6, "{off:e}");
        }
    }

    /// Absolute and generalised losses have no quadratic middle that a huge kernel could stretch.
    #[test]
    fn a_huge_kernel_gives_the_ridge_solution(problem in problems(SAFE_RIDGES), which in 0_usize..3) {
        let loss = [
            RobustLoss::Huber,
            RobustLoss::Bisquare,
            RobustLoss::Mixture { share: 0.8, ratio: 4.0 },
        ][which];
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let wide = settings.clone().loss(loss).sigma(1e6);
        let wide = fit(wide, &x, &targets, None, problem.schema()).unwrap();
        let ridge = fit(settings.squared(), &x, &targets, None, problem.schema()).unwrap();
        let off = (predictions(&wide, &x) - predictions(&ridge, &x)).norm_max();
        prop_assert!(off < 1e-7, "{off:e}");
    }
}

/// A wave with normal noise of 0.1, to which 2 to 20 is added in every fifth row, up or down.
fn wave(rows: usize, outliers: bool, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 0);
    let x = Mat::from_fn(rows, 2, |_, _| 2.0 * stream.symmetric());
    let y = Mat::from_fn(rows, 1, |i, _| {
        let clean = (2.0 * x[(i, 0)]).sin() + x[(i, 1)].powi(2) / 2.0 + 0.1 * stream.normal();
        let size = 2.0 + 18.0 * stream.unit();
        match (outliers, i % 10) {
            (true, 0) => clean + size,
            (true, 5) => clean - size,
            _ => clean,
        }
    });
    (x, y)
}

#[test]
fn each_robust_loss_beats_the_squared_one_on_a_fifth_of_outliers() {
    let ((x, y), (test_x, test_y)) = (wave(300, true, 1), wave(400, false, 2));
    let rmse = |settings: Settings| {
        let model = settings.enhancement_nodes(60).fit_regression(&x, &y).unwrap();
        (predictions(&model, &test_x) - &test_y).norm_l2() / (test_y.nrows() as f64).sqrt()
    };
    let squared = rmse(Settings::new().squared());
    assert!(squared > 0.5, "{squared}");
    for loss in LOSSES {
        let robust = rmse(Settings::new().loss(loss));
        assert!(robust < 0.16, "{loss:?}: {robust}, squared {squared}");
    }
}

#[test]
fn sigma_and_loss_may_be_set_in_any_order() {
    let (x, y) = wave(40, true, 3);
    let settings = Settings::new().enhancement_nodes(5).ridge(0.1);
    for settings in [
        settings.clone().loss(RobustLoss::Huber).sigma(0.7),
        settings.clone().sigma(0.7).loss(RobustLoss::Huber),
    ] {
        let model = settings.fit_regression(&x, &y).unwrap();
        assert_eq!(model.report().loss, Loss::Robust { kind: RobustLoss::Huber, sigma: 0.7 });
    }
}

/// Learning, forgetting and refining use the loss of the model, also after a visit to a file.
#[test]
fn models_of_every_loss_go_on_learning() {
    let ((x, y), (new_x, new_y)) = (wave(120, true, 4), wave(30, true, 5));
    let (new_targets, sigma) = (Targets::Values(new_y), 0.5);
    let new = Labelled { x: new_x.as_ref(), targets: &new_targets, weights: None };
    for loss in LOSSES {
        let settings =
            Settings::new().enhancement_nodes(20).gain(0.7).ridge(1e-2).loss(loss).sigma(sigma);
        let mut model = settings.fit_regression(&x, &y).unwrap();
        let first = model.clone();
        let mut loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let expected = weights(&model, &new_x, &new_targets, loss, sigma);
        for model in [&mut model, &mut loaded] {
            model.learn(new, Learning::default(), &mut unobserved).unwrap();
        }
        assert!(model.to_bytes().unwrap() == loaded.to_bytes().unwrap(), "{loss:?}");

        let ledger = model.knowledge().unwrap().ledger();
        for (weight, expected) in ledger.weights()[120..].iter().zip(&expected) {
            assert!((weight - expected).abs() <= 1e-9 * expected.max(1.0), "{loss:?}");
        }
        let all_x =
            Mat::from_fn(150, 2, |i, j| if i < 120 { x[(i, j)] } else { new_x[(i - 120, j)] });
        let Targets::Values(new_y) = &new_targets else { unreachable!() };
        let all_y =
            Mat::from_fn(150, 1, |i, j| if i < 120 { y[(i, j)] } else { new_y[(i - 120, j)] });
        let all_targets = Targets::Values(all_y);
        let all = Labelled { x: all_x.as_ref(), targets: &all_targets, weights: None };
        let refit = model.refit(all, &mut unobserved).unwrap();
        assert!(model.difference(&refit, x.as_ref()).unwrap() < 1e-9, "{loss:?}");

        let mut refined = model.clone();
        refined.refine(all, Refinement::Warm { steps: 500 }, &mut unobserved).unwrap();
        assert!(refined.drift(all, &mut unobserved).unwrap().largest < 1e-4, "{loss:?}");

        model.forget(new, &mut unobserved).unwrap();
        assert!(model.difference(&first, x.as_ref()).unwrap() < 1e-8, "{loss:?}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let (x, y) = wave(20, false, 6);
    for (loss, name) in [
        (RobustLoss::Generalised { shape: 0.0 }, "shape"),
        (RobustLoss::Generalised { shape: 2.1 }, "shape"),
        (RobustLoss::Generalised { shape: f64::NAN }, "shape"),
        (RobustLoss::Mixture { share: 0.0, ratio: 2.0 }, "share"),
        (RobustLoss::Mixture { share: 1.1, ratio: 2.0 }, "share"),
        (RobustLoss::Mixture { share: 0.5, ratio: 0.9 }, "ratio"),
        (RobustLoss::Mixture { share: 0.5, ratio: f64::INFINITY }, "ratio"),
    ] {
        let error = Settings::new().loss(loss).fit_regression(&x, &y).unwrap_err();
        assert_eq!(error.category(), Category::Setting);
        assert!(error.to_string().contains(name), "{error}");
    }
    let settings = Settings::recipe(Recipe::Plain).loss(RobustLoss::Huber).pseudo_inverse();
    assert!(settings.fit_regression(&x, &y).is_err());
}
