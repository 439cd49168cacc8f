//! How a series becomes rows: lags, seasonal lags, differences, further columns.

use super::batch::Kind;
use super::schema::{Encoding, InputColumn, Schema};
use super::target::TargetSchema;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A column beside the series whose values help to forecast it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exogenous {
    /// Its name.
    pub name: String,
    /// How many points before the forecast one its values are taken; 0 is the same point, whose value must
    /// then be known ahead. Without a 0, the smallest lag is the largest number of steps that can be forecast.
    pub lags: Vec<usize>,
}

/// What the inputs for a point of a series are made of.
///
/// With w = (1 - B)^d (1 - B^s)^D y, where B shifts by one point, the target at t is w(t) and the
/// inputs are w(t - delay), .., w(t - lags delay), w(t - s), .., w(t - season_lags s), each once, and the further
/// columns at their lags.
///
/// ```
/// use broadlearn::data::Embedding;
/// let embedding = Embedding { season: Some(12), season_lags: 1, ..Embedding::of("sales", 2) };
/// assert_eq!(embedding.input_names(), ["sales[t-1]", "sales[t-2]", "sales[t-12]"]);
/// let differences = Embedding { differences: 1, ..Embedding::of("sales", 1) };
/// assert_eq!(differences.differenced(&[1.0, 4.0, 9.0])[1..], [3.0, 5.0]);
/// assert_eq!(differences.target_name(), "diff(sales)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// The name of the series.
    pub column: String,
    /// The number of lags.
    pub lags: usize,
    /// The distance between two lags.
    pub delay: usize,
    /// The points of a season.
    pub season: Option<usize>,
    /// The number of seasonal lags.
    pub season_lags: usize,
    /// How often neighbouring points are subtracted, d.
    pub differences: usize,
    /// How often the point a season before is subtracted, D.
    pub season_differences: usize,
    /// Further columns.
    pub exogenous: Vec<Exogenous>,
}

/// Points before a row that it may reach back to, at most: a bound on what a model has to keep.
const MOST_REACH: usize = 1_000_000;
/// Inputs, at most, as a table may have columns.
const MOST_INPUTS: usize = 100_000;
/// Differences beyond this amplify noise and nothing else.
const MOST_DIFFERENCES: usize = 3;

impl Embedding {
    /// The last `lags` points of a series.
    pub fn of(column: impl Into<String>, lags: usize) -> Self {
        Self {
            column: column.into(),
            lags,
            delay: 1,
            season: None,
            season_lags: 0,
            differences: 0,
            season_differences: 0,
            exogenous: Vec::new(),
        }
    }

    /// Checks that all of it makes sense.
    ///
    /// # Errors
    /// Of category `Setting`.
    pub fn check(&self) -> Result<()> {
        let wrong = |name: &str, found: usize, expected: String| {
            Err(Error::setting(name, found).expected(expected))
        };
        if self.lags > MOST_INPUTS {
            return wrong("lags", self.lags, format!("at most {MOST_INPUTS}"));
        }
        if self.season_lags > MOST_INPUTS {
            return wrong("season-lags", self.season_lags, format!("at most {MOST_INPUTS}"));
        }
        if self.delay == 0 {
            return wrong("delay", 0, "a delay of 1 or more".into());
        }
        if self.differences > MOST_DIFFERENCES {
            let expected = format!("at most {MOST_DIFFERENCES} differences");
            return wrong("difference", self.differences, expected);
        }
        if self.season_differences > MOST_DIFFERENCES {
            let expected = format!("at most {MOST_DIFFERENCES} differences");
            return wrong("season-difference", self.season_differences, expected);
        }
        match self.season {
            Some(season) if season < 2 => {
                return wrong("season", season, "a season of 2 points or more".into());
            }
            None if self.season_lags > 0 || self.season_differences > 0 => {
                return Err(Error::setting("season", "nothing")
                    .expected("the points of a season, with seasonal lags or differences")
                    .advice("give --season, such as 12 for months"));
            }
            _ => {}
        }
        let mut names = BTreeSet::from([self.column.as_str()]);
        for column in &self.exogenous {
            if !names.insert(&column.name) {
                return Err(Error::setting("with", &column.name)
                    .expected("further columns, each once, and not the series itself"));
            }
            let distinct: BTreeSet<&usize> = column.lags.iter().collect();
            if distinct.is_empty() || distinct.len() < column.lags.len() {
                return Err(Error::setting("with-lags", format!("{:?}", column.lags))
                    .expected("one or more lags, each once"));
            }
        }
        if self.lags == 0 && self.season_lags == 0 && self.exogenous.is_empty() {
            return wrong("lags", 0, "at least one lag, seasonal lag or further column".into());
        }
        let far = |count: usize, distance: usize| count.saturating_mul(distance);
        let season = self.season.unwrap_or(0);
        let farthest = far(self.lags, self.delay)
            .max(far(self.season_lags, season))
            .saturating_add(self.differences)
            .saturating_add(far(self.season_differences, season));
        let exogenous = self.exogenous.iter().flat_map(|column| &column.lags).copied();
        if farthest.max(exogenous.max().unwrap_or(0)).max(season) > MOST_REACH {
            return Err(Error::setting("lags", "a point very far back")
                .expected(format!("lags of at most {MOST_REACH} points")));
        }
        Ok(())
    }

    /// The lags of the series itself, in ascending order.
    pub fn own_lags(&self) -> Vec<usize> {
        let near = (1..=self.lags).map(|lag| lag * self.delay);
        let season = self.season.unwrap_or(0);
        let far = (1..=self.season_lags).map(|lag| lag * season);
        near.chain(far).collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// w(t) - y(t) = the sum of these coefficients times y(t - lag).
    pub(crate) fn coefficients(&self) -> Vec<(usize, f64)> {
        let mut polynomial = vec![1.0];
        let mut multiply = |shift: usize| {
            let mut product = polynomial.clone();
            product.resize(polynomial.len() + shift, 0.0);
            for (place, coefficient) in polynomial.iter().enumerate() {
                product[place + shift] -= coefficient;
            }
            polynomial = product;
        };
        (0..self.differences).for_each(|_| multiply(1));
        (0..self.season_differences).for_each(|_| multiply(self.season.unwrap_or(1)));
        polynomial.into_iter().enumerate().skip(1).filter(|(_, c)| *c != 0.0).collect()
    }

    /// How many points before t the row of t reaches back to.
    pub fn reach(&self) -> usize {
        let differences = self.coefficients().last().map_or(0, |(lag, _)| *lag);
        let own = self.own_lags().last().map_or(0, |lag| *lag) + differences;
        let exogenous = self.exogenous.iter().flat_map(|column| &column.lags).copied();
        own.max(exogenous.max().unwrap_or(0))
    }

    /// How many of the last points are kept: those that the next row needs, and those that naive forecasts are
    /// made of.
    pub(crate) fn kept(&self) -> usize {
        self.reach().max(self.season.unwrap_or(1)).max(1)
    }

    /// The number of steps that can be forecast; `None` for any number.
    pub fn most_steps(&self) -> Option<usize> {
        let lagged = self.exogenous.iter().filter_map(|column| column.lags.iter().min());
        lagged.copied().filter(|lag| *lag > 0).min()
    }

    /// Whether values of further columns must be known ahead.
    pub fn needs_future(&self) -> bool {
        self.exogenous.iter().any(|column| column.lags.contains(&0))
    }

    /// The name of what is learnt: the series, or its differences.
    pub fn target_name(&self) -> String {
        let mut name = self.column.clone();
        for _ in 0..self.season_differences {
            name = format!("diff{}({name})", self.season.unwrap_or(1));
        }
        for _ in 0..self.differences {
            name = format!("diff({name})");
        }
        name
    }

    /// The names of the inputs, in their order: `y[t-1]` is the point before.
    pub fn input_names(&self) -> Vec<String> {
        let at = |name: &str, lag: usize| match lag {
            0 => format!("{name}[t]"),
            lag => format!("{name}[t-{lag}]"),
        };
        let target = self.target_name();
        let mut names: Vec<String> =
            self.own_lags().into_iter().map(|lag| at(&target, lag)).collect();
        for column in &self.exogenous {
            names.extend(column.lags.iter().map(|&lag| at(&column.name, lag)));
        }
        names
    }

    /// The schema of a table of these rows.
    pub fn schema(&self) -> Schema {
        let column = |name| InputColumn {
            name,
            kind: Kind::Number,
            encoding: Encoding::Number { fill: 0.0, indicator: false },
        };
        Schema {
            inputs: self.input_names().into_iter().map(column).collect(),
            target: TargetSchema::Regression { names: vec![self.target_name()] },
            weight: None,
            missing: Vec::new(),
        }
    }

    /// w of these points; NaN where a point is missing that it takes.
    pub fn differenced(&self, y: &[f64]) -> Vec<f64> {
        let plan = self.plan();
        (0..y.len()).map(|t| plan.difference(y, t)).collect()
    }

    /// y(t) from w(t) and the points before t.
    pub fn integrated(&self, y: &[f64], w: f64) -> f64 {
        self.plan().integrated(y, w)
    }

    /// What is needed for row after row.
    pub(crate) fn plan(&self) -> Plan<'_> {
        Plan {
            exogenous: &self.exogenous,
            own_lags: self.own_lags(),
            coefficients: self.coefficients(),
        }
    }

    /// How far before the last known point lie those points that the forecast of this step, one after the end,
    /// takes; 0 is the last.
    pub(crate) fn points_taken(&self, step: usize) -> Vec<usize> {
        let coefficients = self.coefficients();
        let lags: Vec<usize> = std::iter::once(0).chain(coefficients.iter().map(|c| c.0)).collect();
        let mut taken: BTreeSet<usize> = lags.iter().copied().filter(|lag| *lag >= step).collect();
        for own in self.own_lags() {
            taken.extend(lags.iter().map(|lag| own + lag).filter(|lag| *lag >= step));
        }
        taken.into_iter().map(|lag| lag - step).collect()
    }
}

/// An embedding with its lags and coefficients at hand.
pub(crate) struct Plan<'a> {
    exogenous: &'a [Exogenous],
    own_lags: Vec<usize>,
    coefficients: Vec<(usize, f64)>,
}

impl Plan<'_> {
    fn before(&self, y: &[f64], t: usize) -> f64 {
        let term = |&(lag, c): &(usize, f64)| t.checked_sub(lag).map_or(f64::NAN, |at| c * y[at]);
        self.coefficients.iter().map(term).sum()
    }

    pub(crate) fn difference(&self, y: &[f64], t: usize) -> f64 {
        y[t] + self.before(y, t)
    }

    pub(crate) fn integrated(&self, y: &[f64], w: f64) -> f64 {
        w - self.before(y, y.len())
    }

    /// The inputs of point `t`, of which `y` holds the points before and `exogenous` what the lags ask for;
    /// NaN where one is missing.
    pub(crate) fn inputs(&self, y: &[f64], exogenous: &[Vec<f64>], t: usize) -> Vec<f64> {
        let own = |&lag: &usize| match t.checked_sub(lag) {
            Some(at) if at < y.len() => self.difference(y, at),
            _ => f64::NAN,
        };
        let mut row: Vec<f64> = self.own_lags.iter().map(own).collect();
        for (column, values) in self.exogenous.iter().zip(exogenous) {
            let value = |lag: &usize| {
                t.checked_sub(*lag).and_then(|at| values.get(at)).copied().unwrap_or(f64::NAN)
            };
            row.extend(column.lags.iter().map(value));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seasonal_and_plain_differences_commute_and_are_undone() {
        let embedding = Embedding {
            season: Some(4),
            differences: 2,
            season_differences: 1,
            ..Embedding::of("y", 1)
        };
        let y: Vec<f64> = (0..40).map(|t| f64::from((t * t * 7) % 23)).collect();
        // By hand: one operator after the other.
        let subtract = |y: &[f64], lag: usize| -> Vec<f64> {
            (0..y.len()).map(|t| if t < lag { f64::NAN } else { y[t] - y[t - lag] }).collect()
        };
        let by_hand = subtract(&subtract(&subtract(&y, 4), 1), 1);
        let w = embedding.differenced(&y);
        for t in 0..y.len() {
            assert!(w[t] == by_hand[t] || (w[t].is_nan() && by_hand[t].is_nan()), "{t}");
            if t >= 6 {
                assert_eq!(embedding.integrated(&y[..t], w[t]), y[t]);
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = Embedding::of("y", 3);
        assert!(good.check().is_ok());
        let bad = [
            Embedding { lags: 0, ..good.clone() },
            Embedding { delay: 0, ..good.clone() },
            Embedding { season_lags: 1, ..good.clone() },
            Embedding { season: Some(1), ..good.clone() },
            Embedding { lags: usize::MAX, ..good.clone() },
            Embedding { delay: usize::MAX, ..good.clone() },
            Embedding { differences: 9, ..good.clone() },
            Embedding {
                exogenous: vec![Exogenous { name: "y".into(), lags: vec![1] }],
                ..good.clone()
            },
            Embedding { exogenous: vec![Exogenous { name: "z".into(), lags: vec![] }], ..good },
        ];
        for embedding in bad {
            assert!(embedding.check().is_err(), "{embedding:?}");
        }
    }

    #[test]
    fn a_step_takes_the_points_that_its_inputs_are_made_of() {
        let embedding = Embedding { differences: 1, delay: 2, ..Embedding::of("y", 2) };
        // w(t-2), w(t-4) and the integration: y(t-1), y(t-2), y(t-3), y(t-4), y(t-5).
        assert_eq!(embedding.points_taken(1), [0, 1, 2, 3, 4]);
        assert_eq!(embedding.points_taken(4), [0, 1]);
    }
}
