//! The chart as its user describes it; `draw.rs` turns it into a picture.

use crate::axis::Scale;
use crate::draw::draw;
use crate::series::Series;
use crate::svg::Place;

/// A chart with two axes, drawn as SVG.
///
/// It shows any number of [`Series`] in one plot. The legend stands above the plot and never covers
/// data. Values that are not finite leave gaps; an empty chart is still a chart.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) x: AxisPlan,
    pub(crate) y: AxisPlan,
    pub(crate) categories: Vec<String>,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<Reference>,
    size: (u32, u32),
}

/// What is asked of an axis.
#[derive(Clone, Debug)]
pub(crate) struct AxisPlan {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) range: Option<(f64, f64)>,
}

/// A line across the whole plot.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) horizontal: bool,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>) -> Chart {
        let axis = AxisPlan { label: String::new(), scale: Scale::Linear, range: None };
        Chart {
            title: title.into(),
            description: String::new(),
            x: axis.clone(),
            y: axis,
            categories: Vec::new(),
            series: Vec::new(),
            references: Vec::new(),
            size: (840, 400),
        }
    }

    /// Names the horizontal axis.
    pub fn x_label(mut self, label: impl Into<String>) -> Chart {
        self.x.label = label.into();
        self
    }

    /// Names the vertical axis.
    pub fn y_label(mut self, label: impl Into<String>) -> Chart {
        self.y.label = label.into();
        self
    }

    /// Says for readers who cannot see the chart what it shows; ranges and names are added to it.
    pub fn description(mut self, text: impl Into<String>) -> Chart {
        self.description = text.into();
        self
    }

    /// Makes the horizontal axis logarithmic. Values that are not positive are left out, and a
    /// note under the chart says how many.
    pub fn log_x(mut self) -> Chart {
        self.x.scale = Scale::Log10;
        self
    }

    /// Makes the vertical axis logarithmic, as [`log_x`](Chart::log_x) does for the horizontal one.
    pub fn log_y(mut self) -> Chart {
        self.y.scale = Scale::Log10;
        self
    }

    /// Fixes the range of the horizontal axis. A range that cannot be shown is ignored.
    pub fn x_range(mut self, from: f64, to: f64) -> Chart {
        self.x.range = Some((from, to));
        self
    }

    /// Fixes the range of the vertical axis. A range that cannot be shown is ignored.
    pub fn y_range(mut self, from: f64, to: f64) -> Chart {
        self.y.range = Some((from, to));
        self
    }

    /// Puts names in place of numbers on the horizontal axis: name `i` is at `x = i`.
    pub fn categories<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Chart {
        self.categories = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds data.
    pub fn series(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// Adds a reference line at a height; the name is shown in the legend.
    pub fn h_line(mut self, name: impl Into<String>, y: f64) -> Chart {
        self.references.push(Reference { name: name.into(), value: y, horizontal: true });
        self
    }

    /// Adds an upright reference line; the name is shown in the legend.
    pub fn v_line(mut self, name: impl Into<String>, x: f64) -> Chart {
        self.references.push(Reference { name: name.into(), value: x, horizontal: false });
        self
    }

    /// Sets the size in pixels, 840 by 400 if not set. A long legend may add to the height.
    pub fn size(mut self, width: u32, height: u32) -> Chart {
        self.size = (width.clamp(200, 4000), height.clamp(150, 4000));
        self
    }

    /// The chart as a complete SVG file, in light or dark colours as its viewer asks for.
    pub fn to_svg(&self) -> String {
        draw(self, Place::File, (f64::from(self.size.0), f64::from(self.size.1)))
    }

    /// The chart for a page, once for wide and once for narrow screens: scaling the wide one down
    /// would make its letters too small to read.
    pub(crate) fn for_page(&self) -> [String; 2] {
        let wide = (f64::from(self.size.0), f64::from(self.size.1));
        [draw(self, Place::Page, wide), draw(self, Place::Page, (380.0, 320.0))]
    }
}
