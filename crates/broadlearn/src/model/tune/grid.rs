//! Which settings are compared.

use crate::error::{Error, Result};
use crate::features::{Features, Recipe};
use crate::model::Model;
use crate::solve::automatic::RIDGES;
use crate::solve::{Loss, RobustLoss};
use serde::{Deserialize, Serialize};

/// The values that are tried, all of them with all others. What a recipe does not have is left out for it: `rich` has no
/// feature groups, those with feature groups have no gain, and only the nodes of `rich` may read some of the inputs.
///
/// ```
/// use broadlearn::model::tune::Grid;
/// assert_eq!(Grid::paper().networks().len(), 10 * 20);
/// assert_eq!(Grid::paper().len(true), 10 * 20 * 40 * 11);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// How the network is built.
    pub recipes: Vec<Recipe>,
    /// Numbers of feature groups, N_w in the paper.
    pub feature_groups: Vec<usize>,
    /// Numbers of nodes in a feature group, N_f.
    pub feature_nodes: Vec<usize>,
    /// Numbers of enhancement nodes, N_e.
    pub enhancement_nodes: Vec<usize>,
    /// Sizes of the random weights, for recipes that have a gain.
    pub gains: Vec<f64>,
    /// How many inputs a node of the recipe `rich` reads; `None` for all.
    pub fan_ins: Vec<Option<usize>>,
    /// Ridges gamma.
    pub ridges: Vec<f64>,
    /// Kernel sizes in units of the scaled target; the squared loss has none.
    pub sigmas: Vec<f64>,
}

/// More settings than this are taken for a mistake.
const MOST_SETTINGS: usize = 10_000_000;

impl Grid {
    /// A grid for any table: the recipe `rich` of several gains and sizes, and `classic`.
    pub fn usual() -> Self {
        Self {
            recipes: vec![Recipe::Rich, Recipe::Classic],
            feature_groups: vec![10],
            feature_nodes: vec![10],
            enhancement_nodes: vec![50, 100, 200, 400, 700, 1000],
            gains: vec![0.3, 0.7, 1.5, 3.0],
            fan_ins: vec![None, Some(2)],
            ridges: RIDGES.to_vec(),
            sigmas: (-2..=3).map(|power| f64::exp2(f64::from(power))).collect(),
        }
    }

    /// The grid of the C-BLS paper, Section IV-A: N_f from 1 to 20 in steps of 2, N_w from 1 to 20, N_e
    /// from 1 to 200 in steps of 5, sigma from 2^-5 to 2^5, gamma = 2^-30.
    pub fn paper() -> Self {
        Self {
            recipes: vec![Recipe::Classic],
            feature_groups: (1..=20).collect(),
            feature_nodes: (1..=20).step_by(2).collect(),
            enhancement_nodes: (1..=200).step_by(5).collect(),
            gains: Vec::new(),
            fan_ins: Vec::new(),
            ridges: vec![f64::exp2(-30.0)],
            sigmas: (-5..=5).map(|power| f64::exp2(f64::from(power))).collect(),
        }
    }

    /// The networks, each standing for all its numbers of enhancement nodes.
    pub fn networks(&self) -> Vec<Network> {
        let mut networks = Vec::new();
        for &recipe in &self.recipes {
            let network = recipe.network();
            match recipe.has_feature_groups() {
                true => {
                    for &nodes in &self.feature_nodes {
                        networks.extend(self.feature_groups.iter().map(|&groups| Network {
                            recipe,
                            gain: None,
                            fan_in: None,
                            feature_groups: Some(groups),
                            feature_nodes: Some(nodes),
                        }));
                    }
                }
                false => {
                    let gains = match network.enhancement.gain {
                        Some(_) => self.gains.iter().copied().map(Some).collect(),
                        None => vec![None],
                    };
                    let fan_ins = match (recipe, self.fan_ins.as_slice()) {
                        (Recipe::Rich, fan_ins @ [_, ..]) => fan_ins,
                        _ => &[None],
                    };
                    for gain in gains {
                        networks.extend(fan_ins.iter().map(|&fan_in| Network {
                            recipe,
                            gain,
                            fan_in,
                            feature_groups: None,
                            feature_nodes: None,
                        }));
                    }
                }
            }
        }
        networks
    }

    /// The number of settings, with a robust loss or with the squared one.
    pub fn len(&self, robust: bool) -> usize {
        self.networks().len().saturating_mul(self.per_network(robust))
    }

    /// The number of settings of one network.
    pub(super) fn per_network(&self, robust: bool) -> usize {
        let sigmas = if robust { self.sigmas.len() } else { 1 };
        self.enhancement_nodes.len().saturating_mul(self.ridges.len()).saturating_mul(sigmas)
    }

    /// The grid in order and without repetitions, if all of it makes sense.
    pub(super) fn checked(&self, loss: Option<RobustLoss>) -> Result<Self> {
        let grouped = |recipe: &Recipe| recipe.has_feature_groups();
        let gained = |recipe: &Recipe| recipe.network().enhancement.gain.is_some();
        let with_groups = self.recipes.iter().any(grouped);
        let with_gain = self.recipes.iter().any(gained);
        let lists = [
            ("recipes", self.recipes.len(), true),
            ("feature_groups", self.feature_groups.len(), with_groups),
            ("feature_nodes", self.feature_nodes.len(), with_groups),
            ("enhancement_nodes", self.enhancement_nodes.len(), true),
            ("gains", self.gains.len(), with_gain),
            ("ridges", self.ridges.len(), true),
            ("sigmas", self.sigmas.len(), loss.is_some()),
        ];
        if self.fan_ins.contains(&Some(0)) {
            return Err(Error::setting("fan_ins", 0).expected("at least one input for a node"));
        }
        if let Some((name, ..)) = lists.iter().find(|(_, count, needed)| *needed && *count == 0) {
            return Err(Error::setting(name, "no value").expected("at least one value to try"));
        }
        let numbers = [("gains", &self.gains), ("ridges", &self.ridges), ("sigmas", &self.sigmas)];
        for (name, values) in numbers {
            if let Some(value) = values.iter().find(|value| !(**value > 0.0 && value.is_finite())) {
                return Err(Error::setting(name, value).expected("positive numbers"));
            }
        }
        let mut grid = self.clone();
        let mut seen = Vec::new();
        grid.recipes.retain(|recipe| {
            !seen.contains(recipe) && {
                seen.push(*recipe);
                true
            }
        });
        for list in [&mut grid.feature_groups, &mut grid.feature_nodes, &mut grid.enhancement_nodes]
        {
            list.sort_unstable();
            list.dedup();
        }
        grid.fan_ins.sort_unstable();
        grid.fan_ins.dedup();
        for list in [&mut grid.gains, &mut grid.ridges, &mut grid.sigmas] {
            list.sort_unstable_by(f64::total_cmp);
            list.dedup();
        }
        let count = grid.len(loss.is_some());
        if count > MOST_SETTINGS {
            return Err(Error::setting("grid", format!("{count} settings"))
                .expected(format!("at most {MOST_SETTINGS}"))
                .advice("give shorter lists, or larger steps as in 100..1000/100"));
        }
        Ok(grid)
    }
}

/// A network but for the number of its enhancement nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// How it is built.
    pub recipe: Recipe,
    /// The size of its random weights, if the recipe has that setting.
    pub gain: Option<f64>,
    /// How many inputs a node reads, unless all.
    pub fan_in: Option<usize>,
    /// The number of feature groups, if it has any.
    pub feature_groups: Option<usize>,
    /// The number of nodes in a group.
    pub feature_nodes: Option<usize>,
}

/// One setting of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The network but for its size.
    #[serde(flatten)]
    pub network: Network,
    /// The number of enhancement nodes.
    pub enhancement_nodes: usize,
    /// The ridge gamma.
    pub ridge: f64,
    /// The kernel size; none for the squared loss.
    pub sigma: Option<f64>,
}

impl Setting {
    /// That of a model's first network.
    pub(super) fn of(model: &Model) -> Self {
        let (settings, report) = (model.settings(), model.report());
        let enhancement = &settings.network.enhancement;
        let (feature_groups, feature_nodes) = match settings.network.features {
            Features::Groups { groups, nodes, .. } => (Some(groups), Some(nodes)),
            _ => (None, None),
        };
        Self {
            network: Network {
                recipe: settings.recipe,
                gain: enhancement.gain,
                fan_in: enhancement.fan_in,
                feature_groups,
                feature_nodes,
            },
            enhancement_nodes: enhancement.nodes,
            ridge: report.ridge.unwrap_or(0.0),
            sigma: match report.loss {
                Loss::Squared => None,
                Loss::Robust { sigma, .. } => Some(sigma),
            },
        }
    }
}
