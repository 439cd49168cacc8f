//! Models of disjoint sets of rows as one: R and P add.

use super::discriminant::Discriminant;
use super::{Member, Model};
use crate::error::{Error, Result};

const FIT_LIKE: &str = "fit the shards with `broadlearn fit SHARD --like FIRST --model OUT`";

impl Model {
    /// The model of all rows of these models, which must have the same settings, schema, scalers,
    /// nodes, kernel size and ridge: those that [`sibling`](Self::sibling) and [`part`](Self::part)
    /// make. Every row keeps its weight, so that the result is that of a joint fit with these
    /// weights. Ensembles are merged member by member. L^2 flops for each model, L^3 / 3 once.
    ///
    /// # Errors
    /// No model at all, compact models, models that differ in more than their rows.
    pub fn merge(models: &[&Self]) -> Result<Self> {
        let count = models.first().map_or(1, |first| first.members.len());
        if let Some(place) = models.iter().position(|model| model.members.len() != count) {
            let members = |count| match count {
                1 => "1 member".to_owned(),
                count => format!("{count} members"),
            };
            return Err(Error::model(members(models[place].members.len()))
                .at(format!("model {}", place + 1))
                .expected(format!("{}, as the first model has", members(count)))
                .advice(FIT_LIKE));
        }
        let members = (0..count).map(|member| {
            Member::merge(&models.iter().map(|model| &model.members[member]).collect::<Vec<_>>())
        });
        let members = members.collect::<Result<_>>()?;
        // Parts of a joint fit have all read their outputs in the same way.
        let discriminant = models.first().and_then(|first| first.discriminant.clone());
        let shared = |own: &Discriminant| {
            models.iter().all(|model| model.discriminant.as_ref() == Some(own))
        };
        let discriminant = discriminant.filter(shared);
        // Nobody has judged rows with the model that comes of it.
        Ok(Self { members, discriminant, calibration: None, continuation: None })
    }
}

impl Member {
    fn merge(models: &[&Self]) -> Result<Self> {
        let Some((first, others)) = models.split_first() else {
            return Err(Error::model("no model").expected("models to merge"));
        };
        first.updatable().map_err(|error| error.within("model 1"))?;
        let mut merged = (*first).clone();
        for (place, other) in others.iter().enumerate() {
            let place = format!("model {}", place + 2);
            other.updatable().map_err(|error| error.within(&place))?;
            first.check_sibling(other).map_err(|error| error.at(place))?;
            if let (Some(all), Some(more)) = (&mut merged.knowledge, &other.knowledge) {
                all.merge(more);
            }
            merged.rows += other.rows;
        }
        if let Some(knowledge) = &mut merged.knowledge {
            merged.w = knowledge.solve()?;
        }
        Ok(merged)
    }

    /// An error unless the models differ in nothing but what they have learnt from.
    fn check_sibling(&self, other: &Self) -> Result<()> {
        let names = |model: &Self| -> Vec<String> {
            model.schema.inputs.iter().map(|input| input.name.clone()).collect()
        };
        let differing = if names(self) != names(other) {
            Some("columns")
        } else if self.schema != other.schema {
            Some("categories, classes or medians (each was fitted on its own rows)")
        } else if self.settings.seed != other.settings.seed {
            Some("seed")
        } else if !self.settings.agrees_with(&other.settings) {
            Some("settings")
        } else if self.input_scaler != other.input_scaler
            || self.target_scaler != other.target_scaler
        {
            Some("scalers (each was fitted on its own rows)")
        } else if self.map != other.map {
            Some("nodes")
        } else if self.report.loss != other.report.loss || self.report.ridge != other.report.ridge {
            Some("kernel size or ridge")
        } else {
            None
        };
        match differing {
            None => Ok(()),
            Some(what) => Err(Error::model(format!("other {what} than in the first model"))
                .expected("models that differ only in the rows that they have learnt")
                .advice(FIT_LIKE)),
        }
    }
}
