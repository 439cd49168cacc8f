//! The groups of nodes in a model file: what the description says of each, and its tensors.

use super::container::{Contents, Tensor};
use crate::error::{Error, Result};
use crate::features::convolution::{Convolution, Image};
use crate::features::fuzzy::Fuzzy;
use crate::features::recurrent::{CELL, Recurrent};
use crate::features::{Activation, FeatureMap, NodeGroup, Source};
use serde::{Deserialize, Serialize};

/// What a group is, but for its numbers.
#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase", tag = "kind", deny_unknown_fields)]
pub(super) enum GroupKind {
    Constant,
    Inputs,
    Relevant,
    Dense {
        /// First and one past the last feature group that it reads; `null` for the inputs.
        features: Option<(usize, usize)>,
        /// Whether the nodes read the inputs past the features.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        straight: bool,
        activation: Activation,
    },
    Convolution {
        image: Image,
        patch: [usize; 2],
        pools: [usize; 2],
    },
    Fuzzy,
    Recurrent {
        /// The inputs that are read at a time.
        step: usize,
        activation: Activation,
    },
}

impl GroupKind {
    pub(super) fn of(group: &NodeGroup) -> Self {
        match group {
            NodeGroup::Constant => Self::Constant,
            NodeGroup::Inputs => Self::Inputs,
            NodeGroup::Relevant(_) => Self::Relevant,
            NodeGroup::Dense { source, activation, .. } => Self::Dense {
                features: match source {
                    Source::Inputs | Source::Straight => None,
                    Source::Features(range) => Some((range.start, range.end)),
                },
                straight: *source == Source::Straight,
                activation: *activation,
            },
            NodeGroup::Convolution(group) => {
                Self::Convolution { image: group.image, patch: group.patch, pools: group.pools }
            }
            NodeGroup::Fuzzy(_) => Self::Fuzzy,
            NodeGroup::Recurrent(group) => {
                Self::Recurrent { step: group.weights.nrows(), activation: group.activation }
            }
        }
    }
}

/// Adds the tensors of all groups, in their order.
pub(super) fn add_map_tensors<'a>(
    map: &'a FeatureMap,
    prefix: &str,
    tensors: &mut Vec<(String, Tensor<'a>)>,
) {
    let mut add = |name: &str, tensor| tensors.push((format!("{prefix}{name}"), tensor));
    for (index, group) in map.groups().iter().enumerate() {
        let mut add = |name: &str, tensor| add(&format!("group.{index}.{name}"), tensor);
        match group {
            NodeGroup::Constant | NodeGroup::Inputs => {}
            NodeGroup::Relevant(relevance) => add("relevance", Tensor::Vector(relevance)),
            NodeGroup::Dense { weights, bias, .. } => {
                add("weights", Tensor::Matrix(weights.as_ref()));
                add("bias", Tensor::Vector(bias));
            }
            NodeGroup::Convolution(group) => {
                add("filters", Tensor::Matrix(group.filters.as_ref()));
                add("centre", Tensor::Vector(&group.centre));
                add("factor", Tensor::Vector(&group.factor));
            }
            NodeGroup::Fuzzy(group) => {
                add("centres", Tensor::Matrix(group.centres.as_ref()));
                add("width", Tensor::Vector(std::slice::from_ref(&group.width)));
                add("weights", Tensor::Matrix(group.weights.as_ref()));
                add("bias", Tensor::Vector(&group.bias));
            }
            NodeGroup::Recurrent(group) => {
                add("weights", Tensor::Matrix(group.weights.as_ref()));
                add("recurrent", Tensor::Matrix(group.recurrent.as_ref()));
                add("bias", Tensor::Vector(&group.bias));
            }
        }
    }
}

/// The map that these groups and their tensors make.
pub(super) fn read_map(
    contents: &mut Contents,
    prefix: &str,
    inputs: usize,
    kinds: &[GroupKind],
) -> Result<FeatureMap> {
    let mut groups = Vec::with_capacity(kinds.len());
    let mut feature_widths = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let group = match kind {
            GroupKind::Constant => NodeGroup::Constant,
            GroupKind::Inputs => NodeGroup::Inputs,
            GroupKind::Relevant => {
                let name = format!("{prefix}group.{index}.relevance");
                NodeGroup::Relevant(contents.vector(&name, inputs)?)
            }
            GroupKind::Dense { features, straight, activation } => {
                let name = format!("{prefix}group.{index}.weights");
                let (source, rows) = match *features {
                    None if *straight => (Source::Straight, inputs),
                    None => (Source::Inputs, inputs),
                    Some((start, end)) => {
                        let widths = feature_widths.get(start..end).ok_or_else(|| {
                            Error::model(format!("feature groups {start} to {end}"))
                                .at(format!("group {index}"))
                                .expected("feature groups that come before it")
                        })?;
                        (Source::Features(start..end), widths.iter().sum())
                    }
                };
                let nodes = contents.columns(&name).unwrap_or(0);
                NodeGroup::Dense {
                    source,
                    weights: contents.matrix(&name, rows, nodes)?,
                    bias: contents.vector(&format!("{prefix}group.{index}.bias"), nodes)?,
                    activation: *activation,
                }
            }
            GroupKind::Convolution { image, patch, pools } => {
                let name = |part: &str| format!("{prefix}group.{index}.{part}");
                let size = patch[0].saturating_mul(patch[1]).saturating_mul(image.channels);
                let filters = contents.columns(&name("filters")).unwrap_or(0);
                let nodes = filters.saturating_mul(pools[0]).saturating_mul(pools[1]);
                NodeGroup::Convolution(Convolution {
                    image: *image,
                    patch: *patch,
                    pools: *pools,
                    filters: contents.matrix(&name("filters"), size, filters)?,
                    centre: contents.vector(&name("centre"), nodes)?,
                    factor: contents.vector(&name("factor"), nodes)?,
                })
            }
            GroupKind::Fuzzy => {
                let name = |part: &str| format!("{prefix}group.{index}.{part}");
                let rules = contents.columns(&name("centres")).unwrap_or(0);
                NodeGroup::Fuzzy(Fuzzy {
                    centres: contents.matrix(&name("centres"), inputs, rules)?,
                    width: contents.vector(&name("width"), 1)?[0],
                    weights: contents.matrix(&name("weights"), inputs, rules)?,
                    bias: contents.vector(&name("bias"), rules)?,
                })
            }
            GroupKind::Recurrent { step, activation } => {
                let name = |part: &str| format!("{prefix}group.{index}.{part}");
                let nodes = contents.columns(&name("weights")).unwrap_or(0);
                NodeGroup::Recurrent(Recurrent {
                    weights: contents.matrix(&name("weights"), *step, nodes)?,
                    recurrent: contents.matrix(&name("recurrent"), CELL, nodes)?,
                    bias: contents.vector(&name("bias"), nodes)?,
                    activation: *activation,
                })
            }
        };
        if group.is_feature() {
            feature_widths.push(group.width(inputs));
        }
        groups.push(group);
    }
    FeatureMap::new(inputs, groups).ok_or_else(|| {
        Error::model("groups of nodes that do not fit together").expected("a sound map")
    })
}
