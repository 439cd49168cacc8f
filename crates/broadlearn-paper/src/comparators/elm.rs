//! ELM: ridge solutions on the first 1, 2, ... of some random nodes, all from one factor.

use super::perceptron::sigmoid;
use broadlearn::faer::dyn_stack::{MemBuffer, MemStack};
use broadlearn::faer::linalg::cholesky::llt::factor;
use broadlearn::faer::linalg::matmul::matmul;
use broadlearn::faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use broadlearn::faer::{Accum, Mat, Par, Spec};
use broadlearn::features::draw::{Purpose, Stream};

/// The outputs of sigmoid nodes with weights uniform in [-1, 1] and biases in [0, 1]: those of the library's
/// recipe `elm` for this seed, of which the first do not depend on their number.
pub fn nodes(x: &Mat<f64>, count: usize, seed: u64) -> Mat<f64> {
    let mut stream = Stream::new(seed, Purpose::Enhancement, 0);
    let mut weights = Mat::zeros(x.ncols(), count);
    let mut biases = vec![0.0; count];
    for j in 0..count {
        for i in 0..x.ncols() {
            weights[(i, j)] = stream.symmetric();
        }
        biases[j] = 0.5 * (stream.symmetric() + 1.0);
    }
    let mut h = Mat::zeros(x.nrows(), count);
    matmul(h.as_mut(), Accum::Replace, x.as_ref(), weights.as_ref(), 1.0, Par::Seq);
    Mat::from_fn(x.nrows(), count, |i, j| sigmoid(h[(i, j)] + biases[j]))
}

/// H'H and H'y of training rows.
pub struct Sums {
    gram: Mat<f64>,
    moments: Mat<f64>,
}

impl Sums {
    /// From the nodes of training rows and their targets.
    pub fn new(h: &Mat<f64>, y: &[f64]) -> Self {
        let count = h.ncols();
        let (mut gram, mut moments) = (Mat::zeros(count, count), Mat::zeros(count, 1));
        let y = Mat::from_fn(y.len(), 1, |i, _| y[i]);
        matmul(gram.as_mut(), Accum::Replace, h.transpose(), h.as_ref(), 1.0, Par::Seq);
        matmul(moments.as_mut(), Accum::Replace, h.transpose(), y.as_ref(), 1.0, Par::Seq);
        Self { gram, moments }
    }

    /// Outputs for other rows by their nodes: column k - 1 has those of the first k nodes. `None` if the
    /// normal equations are not positive definite.
    ///
    /// With L L' = H'H + ridge I the first k rows and columns of L are the factor for k nodes. So the outputs
    /// of k nodes are the sum of the first k products in (L^-1 h)'(L^-1 H'y).
    pub fn nested_outputs(&self, ridge: f64, h: &Mat<f64>) -> Option<Mat<f64>> {
        let count = self.gram.nrows();
        let mut lower = self.gram.clone();
        (0..count).for_each(|i| lower[(i, i)] += ridge);
        let need = factor::cholesky_in_place_scratch::<f64>(count, Par::Seq, Spec::default());
        factor::cholesky_in_place(
            lower.as_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(need)),
            Spec::default(),
        )
        .ok()?;
        let mut z = self.moments.clone();
        let mut t = h.transpose().to_owned();
        solve_lower_triangular_in_place(lower.as_ref(), z.as_mut(), Par::Seq);
        solve_lower_triangular_in_place(lower.as_ref(), t.as_mut(), Par::Seq);
        let mut outputs = Mat::zeros(h.nrows(), count);
        for i in 0..h.nrows() {
            let mut sum = 0.0;
            for k in 0..count {
                sum += t[(k, i)] * z[(k, 0)];
                outputs[(i, k)] = sum;
            }
        }
        Some(outputs)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use broadlearn::data::{Schema, TargetSchema, Targets};
    use broadlearn::features::Recipe;
    use broadlearn::model::Training;
    use broadlearn::preprocess::Scaling;
    use broadlearn::{Settings, unobserved};

    #[test]
    fn every_number_of_nodes_is_what_the_library_fits() {
        let mut stream = Stream::new(4, Purpose::Noise, 0);
        let mut drawn = |rows: usize| Mat::from_fn(rows, 5, |_, _| stream.symmetric());
        let (x, test) = (drawn(40), drawn(15));
        let y: Vec<f64> = (0..40).map(|i| x[(i, 0)] - 2.0 * x[(i, 3)] * x[(i, 1)]).collect();
        let target = TargetSchema::Regression { names: vec!["y".into()] };
        let sums = Sums::new(&nodes(&x, 60, 9), &y);
        for ridge in [1e-3, 1.0, 100.0] {
            let outputs = sums.nested_outputs(ridge, &nodes(&test, 60, 9)).unwrap();
            for count in [1, 5, 39, 60] {
                let settings = Settings::recipe(Recipe::Elm)
                    .enhancement_nodes(count)
                    .input_scaling(Scaling::None)
                    .target_scaling(Scaling::None)
                    .squared()
                    .ridge(ridge)
                    .seed(9);
                let targets = Targets::Values(Mat::from_fn(40, 1, |i, _| y[i]));
                let schema = Schema::numeric(5, target.clone());
                let training = Training { x: x.as_ref(), targets: &targets, weights: None, schema };
                let model = settings.fit(training, &mut unobserved).unwrap();
                let predictions = model.predict(&test).unwrap();
                for i in 0..15 {
                    let difference = predictions.values()[(i, 0)] - outputs[(i, count - 1)];
                    assert!(difference.abs() < 1e-8, "{difference} with {count} nodes, {ridge}");
                }
            }
        }
    }
}
