//! Stage 1: tables in.
//!
//! A [`TableReader`] reads any format in batches of typed columns. [`TrainingData`] gathers them
//! with their [`Roles`]; its [`Schema`] says how columns become numbers, and [`SchemaReader`] reads
//! further tables by that schema, block by block. A [`TimeSeries`] becomes rows by an [`Embedding`]. [`series`]
//! makes data where there is no file.

mod batch;
mod builder;
mod cell;
mod number;
mod input;
mod records;
mod rows;
mod sniff;
mod delimited;
mod json_lines;
mod npy;
mod npz;
mod arrays;
#[cfg(feature = "parquet")]
mod parquet;
mod reader;
mod roles;
mod oddity;
mod unusable;
mod part;
mod schema;
mod target;
mod sampler;
mod samples;
mod training;
mod schema_reader;
mod embedding;
mod time_series;
pub mod series;

pub use arrays::{ArrayInfo, Arrays};
pub use batch::{Batch, Column, Kind, MISSING};
pub use embedding::{Embedding, Exogenous};
pub use oddity::{Looks, Oddity};
pub use part::Part;
pub use reader::{Format, ReadOptions, TableReader};
pub use roles::Roles;
pub use rows::Skipped;
pub use sampler::Bound;
pub use samples::Samples;
pub use schema::{Encoding, InputColumn, Schema};
pub use schema_reader::{Block, SchemaReader, Surprises};
pub use target::{TargetSchema, Targets, Task};
pub(crate) use time_series::embed;
pub use time_series::{EmbeddedRows, SeriesColumns, TimeSeries};
pub use training::{TrainingData, split};
pub use unusable::{Unusable, Why};
