//! Pictures and pages for `broadlearn`: charts as SVG, reports as one HTML file.
//!
//! Everything here turns plain numbers and texts into a `String`; nothing reads a clock, a file or
//! the network, so the same input gives the same bytes. A [`Page`] is one self-contained file
//! without scripts or remote parts: it opens from a disk without a network, follows the reader's
//! light or dark setting, and prints. Every text is escaped.
//!
//! ```
//! use broadlearn_report::{Card, Chart, Page, Series, Table};
//!
//! let loss = [0.9, 0.4, 0.25, 0.2];
//! let chart = Chart::new("Training error")
//!     .x_label("nodes")
//!     .y_label("RMSE")
//!     .series(Series::line("train", loss.iter().enumerate().map(|(i, &y)| (i as f64, y))))
//!     .h_line("noise level", 0.15);
//! let html = Page::new("Run 7")
//!     .lead("The model is as good as the noise allows.")
//!     .section("Results")
//!     .cards([Card::new("RMSE", "0.20").note("on 500 held-out rows")])
//!     .table(Table::new(["model", "RMSE"]).row(["plain", "0.31"]).row(["robust", "0.20"]))
//!     .chart(chart, "Error falls with width.")
//!     .to_html();
//! assert!(html.starts_with("<!DOCTYPE html>"));
//! ```

mod axis;
mod chart;
mod draw;
mod escape;
mod heatmap;
mod page;
mod palette;
mod series;
mod svg;
mod table;
mod text;
mod thin;

pub use chart::Chart;
pub use heatmap::HeatMap;
pub use page::{Block, Card, Page};
pub use series::Series;
pub use table::{Best, Table};
pub use text::number;
