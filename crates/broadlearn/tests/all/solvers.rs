//! Conjugate gradients reach the same fixed point as a factor in every step, whatever is kept in
//! memory.

use super::support::{Problem, cases, fit, problems, relative, schema};
use broadlearn::Settings;
use broadlearn::features::Recipe;
use broadlearn::solve::{RobustLoss, Solver, Start};
use proptest::prelude::*;

/// Predictions, whether the fixed point was reached, and the steps.
fn solve(
    problem: &Problem,
    settings: Settings,
    solver: Solver,
) -> (broadlearn::faer::Mat<f64>, bool, f64) {
    let (x, targets) = (problem.x(), problem.targets());
    let schema = schema(x.ncols(), &targets, problem.outputs);
    let model = fit(settings.solver(solver), &x, &targets, None, schema).unwrap();
    let report = model.report();
    let objective = report.objective.last().copied().unwrap_or(f64::NAN);
    (model.predict(&x).unwrap().values().to_owned(), report.converged, objective)
}

proptest! {
    #![proptest_config(cases(40))]

    /// Small problems of every kind, from the same start. A wide kernel has one optimum only, so that both must
    /// find the same.
    #[test]
    fn both_solvers_find_the_same_fixed_point(problem in problems(-12.0..2.0)) {
        let settings = problem
            .settings()
            .sigma(8.0)
            .ridge(problem.ridge)
            .start(Start::Ridge, false)
            .stop(1e-9, 500);
        let (direct, reached, _) = solve(&problem, settings.clone(), Solver::Direct);
        let (iterative, reached_too, _) = solve(&problem, settings, Solver::Iterative);
        prop_assert!(reached && reached_too);
        let difference = relative(&iterative, &direct);
        prop_assert!(difference < 1e-6, "{difference:e}");
    }
}

/// More rows than the sample has, several outputs, outliers.
fn large(classes: bool, outputs: usize) -> Problem {
    Problem {
        recipe: Recipe::Rich,
        rows: 3000,
        columns: 5,
        outputs,
        classes,
        constant_column: true,
        duplicate_rows: true,
        ridge: 1e-3,
        sigma: 0.5,
        seed: 3,
    }
}

#[test]
fn narrow_kernels_lead_to_the_same_optimum_on_many_rows() {
    for (classes, outputs) in [(false, 1), (false, 3), (true, 4)] {
        let problem = large(classes, outputs);
        for sigma in [0.5, 1.0, 3.0] {
            let settings = Settings::recipe(Recipe::Rich)
                .gain(0.7)
                .enhancement_nodes(150)
                .sigma(sigma)
                .ridge(1e-3)
                .stop(1e-9, 500);
            let (direct, reached, best) = solve(&problem, settings.clone(), Solver::Direct);
            let (iterative, reached_too, found) = solve(&problem, settings, Solver::Iterative);
            assert!(reached && reached_too, "{classes} {outputs} {sigma}");
            // A kernel much narrower than the residuals has many optima, and small things decide between
            // them; one that is no worse will do.
            let (least, same) = if sigma < 1.0 { (1e-3, f64::INFINITY) } else { (1e-9, 1e-6) };
            assert!(found > best - least, "{classes} {outputs} {sigma}: {found} for {best}");
            let difference = relative(&iterative, &direct);
            assert!(difference < same, "{classes} {outputs} {sigma}: {difference:e}");
        }
    }
}

/// U of more than 5 MiB is kept in 32 bits, or computed in every pass where there is no memory, and near the end the gradient is corrected by
/// U itself.
#[test]
fn a_state_in_32_bits_leads_to_the_same_fixed_point() {
    for (classes, outputs) in [(false, 1), (true, 4)] {
        let problem = Problem { rows: 6000, ..large(classes, outputs) };
        let settings = Settings::recipe(Recipe::Rich)
            .gain(0.7)
            .enhancement_nodes(150)
            .sigma(3.0)
            .ridge(1e-3)
            .stop(1e-9, 500);
        let (direct, reached, best) = solve(&problem, settings.clone(), Solver::Direct);
        for memory in [u64::MAX, 0] {
            let settings = settings.clone().memory(memory);
            let (iterative, reached_too, found) = solve(&problem, settings, Solver::Iterative);
            assert!(reached && reached_too, "{classes} {outputs} {memory}");
            assert!(found > best - 1e-9, "{classes} {outputs} {memory}: {found} for {best}");
            let difference = relative(&iterative, &direct);
            assert!(difference < 1e-7, "{classes} {outputs} {memory}: {difference:e}");
        }
    }
}

/// So many flops that R, which preconditions only, is one of U in sixteen bits.
#[test]
fn a_rough_preconditioner_leads_to_the_same_fixed_point() {
    let problem = Problem { rows: 3000, duplicate_rows: false, ..large(true, 4) };
    let (x, targets) = (problem.x(), problem.targets());
    let weights: Vec<f64> = (0..3000).map(|row| [1.0, 0.3, 2.0][row % 3]).collect();
    // Rounding amounts to a ridge of some 1e-6: too much for the smaller ridge.
    for ridge in [1e-2, 1e-5] {
        let solve = |solver| {
            let settings = Settings::recipe(Recipe::Rich)
                .gain(0.7)
                .enhancement_nodes(850)
                .sigma(3.0)
                .ridge(ridge)
                .stop(1e-6, 60)
                .solver(solver);
            let schema = schema(x.ncols(), &targets, 4);
            let model = fit(settings, &x, &targets, Some(&weights), schema).unwrap();
            assert!(model.report().converged, "{ridge:e}");
            model.predict(&x).unwrap().values().to_owned()
        };
        let difference = relative(&solve(Solver::Iterative), &solve(Solver::Direct));
        assert!(difference < 1e-5, "{ridge:e}: {difference:e}");
    }
}

#[test]
fn every_loss_is_climbed() {
    let problem = large(false, 1);
    let kinds = [
        RobustLoss::Huber,
        RobustLoss::Absolute,
        RobustLoss::Bisquare,
        RobustLoss::Generalised { shape: 1.0 },
        RobustLoss::Mixture { share: 0.8, ratio: 4.0 },
    ];
    for kind in kinds {
        let settings = Settings::recipe(Recipe::Rich)
            .gain(0.7)
            .enhancement_nodes(100)
            .sigma(1.5)
            .loss(kind)
            .ridge(1e-3)
            .stop(1e-7, 300);
        let (direct, _, best) = solve(&problem, settings.clone(), Solver::Direct);
        let (iterative, _, found) = solve(&problem, settings, Solver::Iterative);
        assert!(found > best - 1e-6, "{kind:?}: {found} instead of {best}");
        let difference = relative(&iterative, &direct);
        assert!(difference < 1e-4, "{kind:?}: {difference:e}");
    }
}

#[test]
fn a_model_does_not_depend_on_what_was_kept_in_memory() {
    let problem = Problem { rows: 9000, ..large(true, 3) };
    let (x, targets) = (problem.x(), problem.targets());
    let with = |bytes: u64| {
        let settings = Settings::recipe(Recipe::Rich)
            .gain(0.7)
            .enhancement_nodes(80)
            .sigma(0.6)
            .ridge(1e-3)
            .solver(Solver::Iterative)
            .memory(bytes);
        let schema = schema(x.ncols(), &targets, 3);
        fit(settings, &x, &targets, None, schema).unwrap().to_bytes().unwrap()
    };
    let all = with(u64::MAX);
    assert!(with(0) == all, "nothing is kept");
    // Inputs, targets, blocks of rows and the program come first, then some of the state.
    assert!(with(60 << 20) == all, "some of it is kept");
}
