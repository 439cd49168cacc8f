//! What must hold whatever the data are.

use crate::support::{
    Problem, cases, fit, problems, relative, rounding, rows_of, scaled_targets, schema, state,
    targets_of, weighted_ridge,
};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Growth, NodeGroup, Recipe};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::{Form, Loss, Start};
use broadlearn::{Category, Model, Settings};
use proptest::prelude::*;

const RIDGES: std::ops::Range<f64> = -30.0..3.4;
/// From 1e-5: below, the rounding of the normal equations reaches the predictions.
const SAFE_RIDGES: std::ops::Range<f64> = -16.6..3.4;

/// The difference of predictions in units of the targets: outputs may happen to be near 0.
fn difference(a: &Mat<f64>, b: &Mat<f64>, targets: &Targets) -> f64 {
    let size = match targets {
        Targets::Values(values) => values.norm_l2(),
        Targets::Classes(codes) => (codes.len() as f64).sqrt(),
    };
    (a - b).norm_l2() / size
}

/// C-BLS with fixed ridge and kernel, run until rounding ends it; `None` where the kernel is so
/// narrow that no row lies near the model, which is an answer, too.
fn fit_to_the_end(
    problem: &Problem,
    x: &Mat<f64>,
    targets: &Targets,
    weights: Option<&[f64]>,
) -> Option<Model> {
    let settings = problem.settings().sigma(problem.sigma).ridge(problem.ridge).stop(1e-11, 3000);
    match fit(settings, x, targets, weights, problem.schema()) {
        Ok(model) => Some(model),
        Err(error) if error.category() == Category::Numeric => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// How far the predictions of weighted rows (weights 0 to 3) are from those of repeated rows; or of
/// the share of rows without a say, if that differs more.
fn weights_against_copies(problem: &Problem) -> f64 {
    let (x, targets) = (problem.x(), problem.targets());
    let mut stream = Stream::new(problem.seed, Purpose::Noise, 2);
    let mut counts: Vec<usize> = (0..problem.rows).map(|_| stream.below(4)).collect();
    counts[0] = 2;
    let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    let copies: Vec<usize> =
        (0..problem.rows).flat_map(|row| std::iter::repeat_n(row, counts[row])).collect();
    let (copied_x, copied_targets) = (rows_of(&x, &copies), targets_of(&targets, &copies));

    let weighted = fit_to_the_end(problem, &x, &targets, Some(&weights));
    match (weighted, fit_to_the_end(problem, &copied_x, &copied_targets, None)) {
        (None, None) => 0.0,
        (Some(weighted), Some(copied)) => {
            let outputs =
                difference(&predictions(&weighted, &x), &predictions(&copied, &x), &targets);
            let shares = weighted.report().downweighted - copied.report().downweighted;
            outputs.max(shares.abs())
        }
        _ => f64::INFINITY,
    }
}

fn predictions(model: &Model, x: &Mat<f64>) -> Mat<f64> {
    model.predict(x).unwrap().values().clone()
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn the_weights_of_the_own_residuals_give_the_same_solution(problem in problems(RIDGES)) {
        let (x, targets) = (problem.x(), problem.targets());
        let Some(model) = fit_to_the_end(&problem, &x, &targets, None) else { return Ok(()) };
        prop_assume!(model.report().converged);
        let (u, y) = (state(&model, &x), scaled_targets(&model, &targets));
        let w = model.weights().to_owned();
        let residuals = &y - &u * &w;
        let weights: Vec<f64> = residuals
            .row_iter()
            .map(|row| (-row.squared_norm_l2() / (2.0 * problem.sigma.powi(2))).exp())
            .collect();
        let next = weighted_ridge(&u, &y, &weights, problem.ridge);
        let change = (&u * (&next - &w)).norm_l2();
        let allowed = 1e-8 * y.norm_l2() + rounding(&u, &w, &y, problem.ridge);
        prop_assert!(change <= allowed, "{change:e}, allowed {allowed:e}");
    }

    #[test]
    fn the_objective_never_decreases(problem in problems(RIDGES), zero: bool, anneal: bool) {
        let (x, targets) = (problem.x(), problem.targets());
        let start = if zero { Start::Zero } else { Start::Ridge };
        let settings = problem.settings().sigma(problem.sigma).ridge(problem.ridge);
        let settings = settings.start(start, anneal);
        if let Ok(model) = fit(settings, &x, &targets, None, problem.schema()) {
            for pair in model.report().objective.windows(2) {
                prop_assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs().max(1e-3), "{pair:?}");
            }
        }
    }

    #[test]
    fn a_huge_kernel_gives_the_ridge_solution(problem in problems(SAFE_RIDGES)) {
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().ridge(problem.ridge);
        let wide = fit(settings.clone().sigma(1e6), &x, &targets, None, problem.schema()).unwrap();
        let ridge = fit(settings.squared(), &x, &targets, None, problem.schema()).unwrap();
        let difference = difference(&predictions(&wide, &x), &predictions(&ridge, &x), &targets);
        prop_assert!(difference < 1e-9, "{difference:e}");
    }

    #[test]
    fn weight_two_is_two_copies_and_weight_zero_is_absence(problem in problems(SAFE_RIDGES)) {
        let off = weights_against_copies(&problem);
        prop_assert!(off < 1e-8, "{off:e}");
    }

    #[test]
    fn the_order_of_the_rows_is_irrelevant(problem in problems(SAFE_RIDGES)) {
        let (x, targets) = (problem.x(), problem.targets());
        let order = Stream::new(problem.seed, Purpose::Noise, 3).permutation(problem.rows);
        let sorted = fit_to_the_end(&problem, &x, &targets, None);
        let shuffled =
            fit_to_the_end(&problem, &rows_of(&x, &order), &targets_of(&targets, &order), None);
        prop_assert_eq!(sorted.is_some(), shuffled.is_some());
        if let (Some(sorted), Some(shuffled)) = (sorted, shuffled) {
            let difference =
                difference(&predictions(&shuffled, &x), &predictions(&sorted, &x), &targets);
            prop_assert!(difference < 1e-8, "{difference:e}");
        }
    }

    /// Inputs are integers, so that the new inputs are exact and all differences are the library's.
    #[test]
    fn inputs_may_be_in_any_units(problem in problems(SAFE_RIDGES)) {
        let x = problem.x();
        let x = Mat::from_fn(x.nrows(), x.ncols(), |i, j| (30.0 * x[(i, j)]).round());
        let targets = problem.targets();
        let settings = problem.settings().sigma(1e3).ridge(problem.ridge);
        let outputs = |x: &Mat<f64>| {
            let model = fit(settings.clone(), x, &targets, None, problem.schema()).unwrap();
            predictions(&model, x)
        };
        let original = outputs(&x);

        let stretched = Mat::from_fn(x.nrows(), x.ncols(), |i, j| 1e9 * x[(i, j)]);
        let off = difference(&outputs(&stretched), &original, &targets);
        prop_assert!(off < 1e-8, "times 1e9: {off:e}");

        let shifted = Mat::from_fn(x.nrows(), x.ncols(), |i, j| 1e12 + x[(i, j)]);
        let off = difference(&outputs(&shifted), &original, &targets);
        match problem.recipe {
            // A mean of numbers near 1e12 is rounded to 1e-4, a 3e5th of a deviation of 30 (and of
            // any deviation above 1, a tenth of a thousandth): the same shift in every row, which
            // the fit then absorbs but for the ridge on the constant and the curvature of tanh.
            Recipe::Rich | Recipe::Recurrent | Recipe::Fuzzy => prop_assert!(off < 1e-3, "plus 1e12: {off:e}"),
            // Minimum and maximum are exact, and so is the difference from the minimum.
            _ => prop_assert_eq!(off, 0.0),
        }
    }
}

/// The widest kernel of the annealing once came from the residuals without their weights.
#[test]
fn annealing_heeds_the_sample_weights() {
    for seed in 8_255_095_909_624_102_254..8_255_095_909_624_102_274 {
        let problem = Problem {
            recipe: Recipe::Plain,
            rows: 51,
            columns: 5,
            outputs: 2,
            classes: true,
            constant_column: false,
            duplicate_rows: false,
            ridge: 0.447_574_286_005_958_7,
            sigma: 0.3,
            seed,
        };
        assert!(weights_against_copies(&problem) < 1e-8, "seed {seed}");
    }
}

proptest! {
    #![proptest_config(cases(12))]

    /// With more noisy rows than nodes, for which the choice falls on a ridge that is not tiny:
    /// between tiny ones the rounding errors of the solutions decide.
    #[test]
    fn a_target_may_be_in_any_units_also_when_all_is_automatic(
        problem in problems(RIDGES),
        rows in 60_usize..120,
        scaled: bool,
    ) {
        let problem = Problem {
            recipe: Recipe::Rich,
            rows,
            classes: false,
            duplicate_rows: false,
            ..problem
        };
        let x = problem.x();
        let Targets::Values(y) = problem.targets() else { unreachable!("a regression") };
        let outputs = |y: &Mat<f64>| {
            // Without a scaler, the kernel sizes that are tried must come from the target itself.
            let settings = match scaled {
                true => problem.settings(),
                false => problem.settings().target_scaling(Scaling::None),
            };
            predictions(&settings.fit_regression(&x, y).unwrap(), &x)
        };
        let thousand = Mat::from_fn(y.nrows(), y.ncols(), |i, j| 1000.0 * y[(i, j)]);
        let (one, thousand) = (outputs(&y), outputs(&thousand));
        let expected = Mat::from_fn(one.nrows(), one.ncols(), |i, j| 1000.0 * one[(i, j)]);
        let off = relative(&thousand, &expected);
        prop_assert!(off < 1e-6, "{off:e}");
    }
}

proptest! {
    #![proptest_config(cases(96))]

    /// The library solves N x N equations here, or L x L ones where the ridge is tiny.
    #[test]
    fn fewer_rows_than_nodes_give_the_same_ridge_solution(
        problem in problems(RIDGES),
        rows in 1_usize..20,
    ) {
        let problem = Problem { rows, ..problem };
        let (x, targets) = (problem.x(), problem.targets());
        let settings = problem.settings().squared().ridge(problem.ridge);
        let model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
        let (u, y) = (state(&model, &x), scaled_targets(&model, &targets));
        prop_assert!(u.nrows() < u.ncols());
        let trace = u.squared_norm_l2();
        let expected = if problem.ridge > 1e-5 * trace { Some(Form::Dual) } else { None };
        prop_assert!(expected.is_none_or(|form| model.report().form == form));
        let w = weighted_ridge(&u, &y, &vec![1.0; rows], problem.ridge);
        let change = (&u * (model.weights() - &w)).norm_l2();
        let allowed = 1e-8 * y.norm_l2() + rounding(&u, &w, &y, problem.ridge);
        prop_assert!(change <= allowed, "{change:e}, allowed {allowed:e}");
    }

    #[test]
    fn a_saved_model_predicts_the_same_bits(problem in problems(SAFE_RIDGES)) {
        let (x, targets) = (problem.x(), problem.targets());
        let Some(model) = fit_to_the_end(&problem, &x, &targets, None) else { return Ok(()) };
        let bytes = model.to_bytes().unwrap();
        let again = Model::from_bytes(&bytes).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes.clone());
        prop_assert_eq!(predictions(&again, &x), predictions(&model, &x));
        prop_assert_eq!(again.report(), model.report());

        let compact = model.clone().compact();
        prop_assert!(compact.knowledge().is_none() && model.knowledge().is_some());
        prop_assert_eq!(predictions(&compact, &x), predictions(&model, &x));
        let compact_bytes = compact.to_bytes().unwrap();
        prop_assert!(compact_bytes.len() < bytes.len());
        let again = Model::from_bytes(&compact_bytes).unwrap();
        prop_assert_eq!(predictions(&again, &x), predictions(&model, &x));
    }

    /// Linear nodes only, so that the rank of U is known: one for each column that varies, and one
    /// for the constant.
    #[test]
    fn the_pseudo_inverse_gives_the_projection_of_least_norm(
        problem in problems(RIDGES),
        plain: bool,
        twin_column: bool,
    ) {
        let recipe = if plain { Recipe::Plain } else { Recipe::Rich };
        let problem = Problem { recipe, classes: false, ..problem };
        let mut x = problem.x();
        let twin_column = twin_column && problem.columns > 2;
        for i in 0..x.nrows() {
            if twin_column {
                x[(i, 2)] = 3.0 * x[(i, 1)] - 1.0;
            }
        }
        let distinct = if problem.duplicate_rows { x.nrows().div_ceil(2) } else { x.nrows() };
        let varying = problem.columns
            - usize::from(problem.constant_column)
            - usize::from(twin_column);
        let rank = distinct.min(varying + 1);

        let settings = problem.settings().enhancement_nodes(0).squared();
        let targets = problem.targets();
        let model =
            fit(settings.clone().pseudo_inverse(), &x, &targets, None, problem.schema()).unwrap();
        let (u, y) = (state(&model, &x), scaled_targets(&model, &targets));
        let w = model.weights().to_owned();
        prop_assert_eq!(model.report().rank, Some(rank));
        prop_assert_eq!(model.report().form, Form::Orthogonal);

        let svd = u.thin_svd().unwrap();
        let (left, right) = (svd.U().subcols(0, rank), svd.V().subcols(0, rank));
        let smallest = svd.S().column_vector()[rank - 1];
        let condition = svd.S().column_vector()[0] / smallest;
        let allowed = 1e-13 * condition * condition;
        let projection: Mat<f64> = left * (left.transpose() * &y);
        prop_assert!((&u * &w - &projection).norm_l2() <= allowed * y.norm_l2());
        let within_row_space: Mat<f64> = right * (right.transpose() * &w);
        prop_assert!((&w - within_row_space).norm_l2() <= allowed * w.norm_l2());

        // A ridge far below the smallest singular value's square changes outputs by their ratio.
        let ridge = 1e-7 * smallest * smallest;
        let ridged =
            fit(settings.ridge(ridge), &x, &targets, None, problem.schema()).unwrap();
        let difference = (&u * ridged.weights() - &projection).norm_l2();
        prop_assert!(difference <= (1e-7 + allowed) * y.norm_l2(), "{difference:e}");
    }
}

/// Problems with several blocks of rows, and one with fewer rows than nodes for which everything is
/// chosen automatically; one output, for which products of matrices become those with a vector.
fn problems_for_threads() -> [(Mat<f64>, Targets, usize, Settings); 6] {
    let make = |rows: usize, outputs: usize, classes: bool| {
        let problem = Problem {
            recipe: Recipe::Rich,
            rows,
            columns: 5,
            outputs,
            classes,
            constant_column: false,
            duplicate_rows: false,
            ridge: 0.0,
            sigma: 0.0,
            seed: 4,
        };
        (problem.x(), problem.targets())
    };
    let (x, y) = make(5000, 1, false);
    let (several_x, several_y) = make(2100, 3, false);
    let (few_x, few_y) = make(120, 1, false);
    let (wide_x, wide_y) = make(700, 3, false);
    let (class_x, classes) = make(2500, 3, true);
    let fixed = |settings: Settings| settings.sigma(1.0).ridge(1e-3).stop(1e-8, 8);
    [
        (several_x, several_y, 3, fixed(Settings::new()).enhancement_nodes(200)),
        (x.clone(), y.clone(), 1, fixed(Settings::new()).enhancement_nodes(200)),
        (few_x, few_y, 1, Settings::new().enhancement_nodes(200)),
        (class_x, classes, 3, fixed(Settings::recipe(Recipe::Classic)).enhancement_nodes(150)),
        (x, y, 1, Settings::new().squared().pseudo_inverse().enhancement_nodes(100)),
        (wide_x, wide_y, 3, Settings::new().squared().ridge(1e-3).enhancement_nodes(650)),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for (x, targets, outputs, settings) in problems_for_threads() {
        let with = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let schema = schema(x.ncols(), &targets, outputs);
            let settings = settings.clone().seed(seed);
            pool.install(|| fit(settings, &x, &targets, None, schema).unwrap().to_bytes().unwrap())
        };
        let one = with(1, 7);
        assert!(with(1, 7) == one, "the same seed gives the same bytes: {settings:?}");
        assert!(with(2, 7) == one, "two threads: {settings:?}");
        assert!(with(3, 7) == one, "three threads: {settings:?}");
        assert!(with(1, 8) != one, "another seed gives other bytes: {settings:?}");
    }
}

#[test]
fn predictions_do_not_depend_on_the_number_of_threads_or_on_the_other_rows() {
    let [_, (x, targets, outputs, settings), ..] = problems_for_threads();
    let model = fit(settings, &x, &targets, None, schema(5, &targets, outputs)).unwrap();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| predictions(&model, &x))
    };
    let one = with(1);
    assert_eq!(with(2), one);
    assert_eq!(with(3), one);
    let rows = [0, 1, 1999, 2000, 2047, 2048, 4999];
    let alone = predictions(&model, &rows_of(&x, &rows));
    assert!(relative(&alone, &rows_of(&one, &rows)) < 1e-12);
}

fn dense(group: &NodeGroup) -> (&Mat<f64>, &[f64]) {
    match group {
        NodeGroup::Dense { weights, bias, .. } => (weights, bias),
        other => panic!("not a dense group: {other:?}"),
    }
}

#[test]
fn more_enhancement_nodes_begin_with_the_same_ones() {
    let x = Mat::from_fn(50, 3, |i, j| ((i * (j + 2)) % 13) as f64);
    let y = Mat::from_fn(50, 1, |i, _| x[(i, 0)] - x[(i, 1)]);
    for recipe in [Recipe::Rich, Recipe::Unscaled, Recipe::Plain] {
        let map = |nodes: usize| {
            let mut network = recipe.network();
            network.enhancement.nodes = nodes;
            let settings = Settings::recipe(recipe).network(network).squared().ridge(1.0);
            settings.fit_regression(&x, &y).unwrap().map().clone()
        };
        let (small, large) = (map(11), map(64));
        let (weights, bias) = dense(small.groups().last().unwrap());
        let (more, more_bias) = dense(large.groups().last().unwrap());
        assert_eq!((weights.ncols(), more.ncols()), (11, 64));
        assert_eq!(more.subcols(0, 11), weights.as_ref(), "{recipe:?}");
        assert_eq!(&more_bias[..11], bias);
        assert_ne!(more.subcols(11, 11), weights.as_ref());
    }
}

#[test]
fn more_feature_groups_leave_the_earlier_ones_as_they_were() {
    let x = Mat::from_fn(50, 3, |i, j| ((i * (j + 2)) % 13) as f64);
    let y = Mat::from_fn(50, 1, |i, _| x[(i, 0)] - x[(i, 1)]);
    for recipe in [Recipe::Classic, Recipe::Unscaled, Recipe::Plain] {
        let map = |groups: usize| {
            let settings = Settings::recipe(recipe).feature_groups(groups).feature_nodes(4);
            let settings = settings.enhancement_nodes(5).squared().ridge(1.0);
            settings.fit_regression(&x, &y).unwrap().map().clone()
        };
        let (few, many) = (map(3), map(8));
        for (group, same) in few.groups().iter().zip(many.groups()).take(3) {
            assert_eq!(dense(group), dense(same), "{recipe:?}");
        }
        assert_ne!(dense(&many.groups()[0]), dense(&many.groups()[1]));
    }
}

/// With fewer enhancement nodes than features the columns are orthonormal, with more the rows; the
/// bias is 0.1 times a weight.
#[test]
fn classic_enhancement_weights_are_orthonormal_and_their_largest_argument_is_0_8() {
    let x = Mat::from_fn(50, 3, |i, j| ((i * (j + 2)) % 13) as f64);
    let y = Mat::from_fn(50, 1, |i, _| x[(i, 0)] - x[(i, 1)]);
    for nodes in [5, 13, 40] {
        let settings = Settings::recipe(Recipe::Classic).feature_groups(3).feature_nodes(4);
        let settings = settings.enhancement_nodes(nodes).squared().ridge(1.0);
        let model = settings.fit_regression(&x, &y).unwrap();
        let (weights, bias) = dense(model.map().groups().last().unwrap());
        let stacked =
            Mat::from_fn(13, nodes, |i, j| if i < 12 { weights[(i, j)] } else { bias[j] / 0.1 });
        let gram: Mat<f64> = if nodes <= 13 {
            stacked.transpose() * &stacked
        } else {
            &stacked * stacked.transpose()
        };
        let n = gram.nrows();
        let scale = (0..n).map(|i| gram[(i, i)]).sum::<f64>() / n as f64;
        let identity = Mat::from_fn(n, n, |i, j| if i == j { scale } else { 0.0 });
        assert!(relative(&gram, &identity) < 1e-12, "{nodes} nodes");

        let u = state(&model, &x);
        let arguments = u.subcols(0, 12) * weights;
        let mut largest = f64::NEG_INFINITY;
        for i in 0..50 {
            for j in 0..nodes {
                largest = largest.max(arguments[(i, j)] + bias[j]);
            }
        }
        assert!((largest - 0.8).abs() < 1e-12, "{nodes} nodes: {largest}");
    }
}

#[test]
fn the_kernel_size_is_chosen_in_units_of_the_residuals() {
    // Noise of 0.1 and every fifth target wild: a kernel between the two sizes tells them apart.
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    let x = Mat::from_fn(300, 1, |_, _| 3.0 * stream.symmetric());
    let clean = |i: usize| x[(i, 0)].sin();
    let y = Mat::from_fn(300, 1, |i, _| {
        clean(i) + 0.1 * stream.normal() + if i % 5 == 0 { 20.0 * stream.normal() } else { 0.0 }
    });
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let f = predictions(&model, &x);
    let squares: f64 = (0..300).map(|i| (f[(i, 0)] - clean(i)).powi(2)).sum();
    assert!((squares / 300.0).sqrt() < 0.05);
    assert!(matches!(model.report().loss, Loss::Robust { .. }));
    assert!((0.1..0.4).contains(&model.report().downweighted));
}

#[test]
fn a_row_alone_is_predicted_like_one_of_many() {
    for (recipe, classes, members) in Recipe::ALL.map(|recipe| {
        (recipe, recipe == Recipe::Classic, 1 + 2 * usize::from(recipe == Recipe::Rich))
    }) {
        let problem = Problem {
            recipe,
            rows: 60,
            columns: 3,
            outputs: 3,
            classes,
            constant_column: true,
            duplicate_rows: false,
            ridge: 0.0,
            sigma: 0.0,
            seed: 9,
        };
        let (x, targets) = (problem.x(), problem.targets());
        let growth = Growth { enhancement_nodes: 7, ..Growth::default() };
        for scaling in [Scaling::Tamed, Scaling::RowZScore, Scaling::MinMaxSymmetric] {
            let settings = problem.settings().ridge(1e-2).sigma(2.0).members(members);
            let settings = settings.growth(growth).input_scaling(scaling);
            let model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
            let many = model.predict(&x).unwrap();
            let mut predictor = model.row_predictor();
            for row in 0..60 {
                let inputs: Vec<f64> = x.row(row).iter().copied().collect();
                let alone = predictor.predict(&inputs).unwrap();
                for (output, value) in alone.iter().enumerate() {
                    let difference = (value - many.values()[(row, output)]).abs();
                    assert!(difference < 1e-11, "{recipe:?} {scaling:?}: {difference:e}");
                }
            }
            assert!(predictor.predict(&[1.0]).is_err());
            assert!(predictor.predict(&[1.0, f64::NAN, 0.0]).is_err());
        }
    }
}
