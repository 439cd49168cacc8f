//! Convolution features: how random patches of the training images respond everywhere in an image, pooled.
//!
//! A patch is cut from a random training image at a random place, and normed to mean 0 and length 1. Its
//! response is max(0, patch . image) at every place; the nodes are the means of the responses over a grid of
//! regions, scaled to mean 0 and deviation 1 on the training rows.
//!
//! Per image 2 positions patch^2 filters flops, as one product of matrices.

use super::draw::Stream;
use crate::error::{Error, Result};
use crate::linalg::{parallelism, row_blocks, slice_of, slice_of_column};
use crate::preprocess::ScaledRows;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The shape of images: inputs are pixels, row by row, all channels of a pixel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Numbers for a pixel.
    pub channels: usize,
}

impl Image {
    /// A square image of one channel if the number of inputs allows, or else of three; or else one row of
    /// pixels, as for a spectrum.
    pub fn of(inputs: usize) -> Self {
        let square = |channels: usize| {
            let side = ((inputs / channels) as f64).sqrt().round() as usize;
            let image = Self { height: side, width: side, channels };
            (side > 1 && image.inputs() == inputs).then_some(image)
        };
        let row = Self { height: 1, width: inputs, channels: 1 };
        square(1).or_else(|| square(3)).unwrap_or(row)
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.height.saturating_mul(self.width).saturating_mul(self.channels)
    }
}

/// The patches with their pooling and the scale of their nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// The shape of the images.
    pub image: Image,
    /// The height and width of a patch.
    pub patch: [usize; 2],
    /// Responses are pooled to so many rows and columns.
    pub pools: [usize; 2],
    /// The patches, one column each, row by row of pixels with all channels of a pixel together.
    pub filters: Mat<f64>,
    /// What is taken from every node, and by what it is multiplied then.
    pub centre: Vec<f64>,
    /// See `centre`.
    pub factor: Vec<f64>,
}

impl Convolution {
    /// Patches of these training images. Which ones depends on the order of the rows; a row of weight 2 is
    /// as likely as two rows.
    pub(super) fn fit(
        (image, filters, patch, pools): (Option<Image>, usize, usize, usize),
        rows: &ScaledRows<'_>,
        user: Option<&[f64]>,
        stream: &mut Stream,
    ) -> Result<Self> {
        let image = image.unwrap_or_else(|| Image::of(rows.columns()));
        let Image { height, width, channels } = image;
        if image.inputs() != rows.columns() || channels == 0 {
            return Err(Error::setting("image", format!("{height}x{width}x{channels}"))
                .expected(format!("a shape of {} numbers, one for every input", rows.columns()))
                .advice("give height x width x channels, for example --image 28x28 or 32x32x3"));
        }
        // No patch is larger than the image, and there are no more regions than places.
        let patch = [patch.min(height), patch.min(width)];
        let pools = [pools.min(height - patch[0] + 1), pools.min(width - patch[1] + 1)];
        let chosen = draw_rows(rows.len(), user, filters, stream);
        let images = rows.select(&chosen);
        let mut weights = Mat::zeros(patch[0] * patch[1] * channels, filters);
        for j in 0..filters {
            let y = stream.below(height - patch[0] + 1);
            let x = stream.below(width - patch[1] + 1);
            for (place, pixel) in patch_pixels(image, patch, y, x).enumerate() {
                weights[(place, j)] = images[(j, pixel)];
            }
            let column = slice_of_column(weights.as_mut().col_mut(j));
            let mean = column.iter().sum::<f64>() / column.len() as f64;
            column.iter_mut().for_each(|value| *value -= mean);
            if !normed(column) {
                // An empty corner of an image: any direction will do.
                column.iter_mut().for_each(|value| *value = stream.normal());
                normed(column);
            }
        }
        let nodes = filters * pools[0] * pools[1];
        let mut group = Self {
            image,
            patch,
            pools,
            filters: weights,
            centre: vec![0.0; nodes],
            factor: vec![1.0; nodes],
        };
        group.scale(rows, user);
        Ok(group)
    }

    /// Scales the nodes to mean 0 and deviation 1 on these rows; constant nodes become 0.
    fn scale(&mut self, rows: &ScaledRows<'_>, user: Option<&[f64]>) {
        let nodes = self.centre.len();
        let (mut total, mut sums, mut squares) = (0.0, vec![0.0; nodes], vec![0.0; nodes]);
        let mut shift: Option<Vec<f64>> = None;
        for range in row_blocks(rows.len()) {
            let mut values = Mat::zeros(range.len(), nodes);
            self.apply(rows.block(range.clone()).as_ref(), values.as_mut());
            let weight = |i: usize| user.map_or(1.0, |user| user[range.start + i]);
            total += (0..range.len()).map(weight).sum::<f64>();
            // Sums of squares about the first row: about 0 they would cancel.
            let shift = shift.get_or_insert_with(|| values.row(0).iter().copied().collect());
            for j in 0..nodes {
                for i in 0..range.len() {
                    let value = values[(i, j)] - shift[j];
                    sums[j] += weight(i) * value;
                    squares[j] += weight(i) * value * value;
                }
            }
        }
        let shift = shift.unwrap_or_else(|| vec![0.0; nodes]);
        for j in 0..nodes {
            let mean = sums[j] / total;
            let variance = (squares[j] / total - mean * mean).max(0.0);
            self.centre[j] = shift[j] + mean;
            let size = shift[j].abs().max(mean.abs());
            let varies = variance.sqrt() > 1e-9 * size && variance.is_finite();
            self.factor[j] = if varies { 1.0 / variance.sqrt() } else { 0.0 };
        }
    }

    /// Whether its parts fit together, for a map of `inputs` inputs.
    pub(super) fn is_consistent(&self, inputs: usize) -> bool {
        let Image { height, width, channels } = self.image;
        let (patch, pools) = (self.patch, self.pools);
        let nodes = self.filters.ncols().saturating_mul(pools[0]).saturating_mul(pools[1]);
        let fits = |size: usize, patch: usize, pools: usize| {
            (1..=size).contains(&patch) && (1..=size - patch + 1).contains(&pools)
        };
        self.image.inputs() == inputs
            && fits(height, patch[0], pools[0])
            && fits(width, patch[1], pools[1])
            && patch[0].saturating_mul(patch[1]).saturating_mul(channels) == self.filters.nrows()
            && (self.centre.len(), self.factor.len()) == (nodes, nodes)
    }

    /// Rows and columns of places at which a patch fits.
    fn places(&self) -> (usize, usize) {
        (self.image.height - self.patch[0] + 1, self.image.width - self.patch[1] + 1)
    }

    /// The nodes of the rows of `x`.
    pub(super) fn apply(&self, x: MatRef<'_, f64>, nodes: MatMut<'_, f64>) {
        let parts = x.nrows().min(parallelism().degree());
        let parts_of_x = x.par_row_partition(parts.max(1));
        nodes.par_row_partition_mut(parts.max(1)).zip(parts_of_x).for_each(|(mut nodes, x)| {
            let mut work = Work::new(self);
            for (i, image) in x.row_iter().enumerate() {
                work.image.iter_mut().zip(image.iter()).for_each(|(to, from)| *to = *from);
                work.respond(self);
                work.pool(self, |j, value| nodes[(i, j)] = value);
            }
        });
    }

    /// The nodes of one row.
    pub(super) fn apply_to_row(&self, x: &[f64], nodes: &mut [f64]) {
        let mut work = Work::new(self);
        work.image.copy_from_slice(x);
        work.respond(self);
        work.pool(self, |j, value| nodes[j] = value);
    }

    /// Adds to `inputs` the slope along every pixel of sum_j along_j z_j.
    pub(super) fn hand_on(
        &self,
        x: MatRef<'_, f64>,
        along: MatRef<'_, f64>,
        mut inputs: MatMut<'_, f64>,
    ) {
        let mut work = Work::new(self);
        let columns = self.places().1;
        for (i, image) in x.row_iter().enumerate() {
            work.image.iter_mut().zip(image.iter()).for_each(|(to, from)| *to = *from);
            work.respond(self);
            let mut pull = Mat::zeros(work.responses.nrows(), work.responses.ncols());
            for filter in 0..pull.ncols() {
                for place in 0..pull.nrows() {
                    let region = work.regions[place];
                    let node = filter * work.counts.len() + region;
                    if work.responses[(place, filter)] > 0.0 {
                        pull[(place, filter)] =
                            along[(i, node)] * self.factor[node] / work.counts[region];
                    }
                }
            }
            let slopes = pull * self.filters.transpose();
            for place in 0..slopes.nrows() {
                let pixels = patch_pixels(self.image, self.patch, place / columns, place % columns);
                for (k, pixel) in pixels.enumerate() {
                    inputs[(i, pixel)] += slopes[(place, k)];
                }
            }
        }
    }
}

/// Room for one image, its patches and their responses; which region each place belongs to, and how many
/// places each region has.
struct Work {
    image: Vec<f64>,
    patches: Mat<f64>,
    responses: Mat<f64>,
    regions: Vec<usize>,
    counts: Vec<f64>,
    sums: Vec<f64>,
}

impl Work {
    fn new(group: &Convolution) -> Self {
        let (rows, columns) = group.places();
        let pools = group.pools;
        // Region k has the places from k size / pools on.
        let region = |place: usize, places: usize, pools: usize| {
            (0..pools).rfind(|k| k * places / pools <= place).unwrap_or(0)
        };
        let mut counts = vec![0.0; pools[0] * pools[1]];
        let mut regions = Vec::with_capacity(rows * columns);
        for place in 0..rows * columns {
            let (y, x) = (place / columns, place % columns);
            let number = region(y, rows, pools[0]) * pools[1] + region(x, columns, pools[1]);
            counts[number] += 1.0;
            regions.push(number);
        }
        Self {
            image: vec![0.0; group.image.inputs()],
            patches: Mat::zeros(rows * columns, group.filters.nrows()),
            responses: Mat::zeros(rows * columns, group.filters.ncols()),
            regions,
            sums: vec![0.0; counts.len()],
            counts,
        }
    }

    /// The mean responses of every region, scaled.
    fn pool(&mut self, group: &Convolution, mut write: impl FnMut(usize, f64)) {
        let mut node = 0;
        for column in self.responses.col_iter() {
            self.sums.fill(0.0);
            for (response, region) in slice_of(column).iter().zip(&self.regions) {
                self.sums[*region] += response.max(0.0);
            }
            for (sum, count) in self.sums.iter().zip(&self.counts) {
                write(node, (sum / count - group.centre[node]) * group.factor[node]);
                node += 1;
            }
        }
    }

    fn respond(&mut self, group: &Convolution) {
        let (rows, columns) = group.places();
        let Image { width, channels, .. } = group.image;
        let across = group.patch[1] * channels;
        for (k, column) in self.patches.col_iter_mut().enumerate() {
            let (dy, dx, channel) = (k / across, k % across / channels, k % channels);
            let values = slice_of_column(column);
            for y in 0..rows {
                let first = ((y + dy) * width + dx) * channels + channel;
                let values = &mut values[y * columns..(y + 1) * columns];
                let pixels = self.image[first..].iter().step_by(channels);
                values.iter_mut().zip(pixels).for_each(|(value, pixel)| *value = *pixel);
            }
        }
        let (patches, filters) = (self.patches.as_ref(), group.filters.as_ref());
        matmul(self.responses.as_mut(), Accum::Replace, patches, filters, 1.0, Par::Seq);
    }
}

/// Norms a patch to length 1, if it has any length.
fn normed(values: &mut [f64]) -> bool {
    let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let sound = norm > 1e-6 && norm.is_finite();
    if sound {
        values.iter_mut().for_each(|value| *value /= norm);
    }
    sound
}

/// The inputs that a patch at this place covers.
fn patch_pixels(
    image: Image,
    patch: [usize; 2],
    y: usize,
    x: usize,
) -> impl Iterator<Item = usize> {
    let Image { width, channels, .. } = image;
    (0..patch[0] * patch[1] * channels).map(move |k| {
        let (dy, rest) = (k / (patch[1] * channels), k % (patch[1] * channels));
        ((y + dy) * width + x) * channels + rest
    })
}

/// Rows at random, in proportion to their weights.
fn draw_rows(rows: usize, user: Option<&[f64]>, count: usize, stream: &mut Stream) -> Vec<usize> {
    let cumulative: Vec<f64> = (0..rows)
        .scan(0.0, |sum, row| {
            *sum += user.map_or(1.0, |user| user[row]);
            Some(*sum)
        })
        .collect();
    let total = cumulative.last().copied().unwrap_or(0.0);
    (0..count)
        .map(|_| {
            let wanted = stream.unit() * total;
            cumulative.partition_point(|sum| *sum <= wanted).min(rows.saturating_sub(1))
        })
        .collect()
}
