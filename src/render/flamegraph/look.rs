//! Options for how a flame graph looks.

use super::fit::Cut;
use crate::analysis::comparison::CompareOptions;
use crate::error::{Error, ErrorKind};
use crate::model::stacks::Series;
#[cfg(feature = "cli")]
use inferno::flamegraph::Palette;
#[cfg(feature = "cli")]
use inferno::flamegraph::color::{BackgroundColor, Color, SearchColor, StrokeColor};

/// Which page to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Our own page.
    #[default]
    Page,
    /// The page that inferno-flamegraph would make of the same stacks.
    Inferno,
}

/// Options for how a flame graph looks. In all fields, `None` means the default. Fields whose types are from the
/// inferno crate only exist with the feature `cli`, because only that feature uses the crate.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// Which page to draw. Some of the fields below only work on inferno's page; their comments say so.
    pub style: Style,
    /// The title. If `None`, it names the recorded program.
    pub title: Option<String>,
    /// The name of the input. It is in the default title if the recorded program is not known.
    pub subject: Option<String>,
    /// A second line below the title.
    pub subtitle: Option<String>,
    /// Notes that are saved in the file but not shown.
    pub notes: Option<String>,
    /// The color palette. Only works on inferno's page.
    #[cfg(feature = "cli")]
    pub colors: Option<Palette>,
    /// The background color. Only works on inferno's page.
    #[cfg(feature = "cli")]
    pub bgcolors: Option<BackgroundColor>,
    /// Give functions with similar names similar colors. Only works on inferno's page.
    pub hash: bool,
    /// Color boxes by width. Only works on inferno's page.
    pub color_diffusion: bool,
    /// The color of search matches.
    #[cfg(feature = "cli")]
    pub search_color: Option<SearchColor>,
    /// The color of box outlines. Only works on inferno's page.
    #[cfg(feature = "cli")]
    pub stroke_color: Option<StrokeColor>,
    /// The color of texts outside the graph. Only works on inferno's page.
    #[cfg(feature = "cli")]
    pub ui_color: Option<Color>,
    /// Draw the outermost functions at the top (an icicle graph).
    pub inverted: bool,
    /// Reverse the stacks, so that they are merged from the innermost function on.
    pub reversed: bool,
    /// Draw a flame chart: time runs from left to right, and stacks are not merged.
    pub flame_chart: bool,
    /// Start stacks at these functions, and leave out stacks without any of them.
    pub base: Vec<String>,
    /// The width in pixels. By default the picture fills the window.
    pub width: Option<usize>,
    /// The height of a box, in pixels.
    pub height: Option<usize>,
    /// Leave out boxes narrower than this, as a percentage of the total.
    pub min_width: Option<f64>,
    /// The name of the font.
    pub font_type: Option<String>,
    /// The font size, in pixels.
    pub font_size: Option<usize>,
    /// The average width of a letter, as a fraction of the font size.
    pub font_width: Option<f64>,
    /// The unit of the weights, such as `samples`.
    pub count_name: Option<String>,
    /// The word before the name of a box in the texts about it, such as `Function:`.
    pub name_type: Option<String>,
    /// A factor by which shown weights are multiplied.
    pub factor: Option<f64>,
    /// Which end of long names is shortened (our page only).
    pub cut: Cut,
    /// Shorten long names at the right end instead of the left. Only works on inferno's page.
    pub truncate_right: bool,
    /// In a difference, swap the colors for more and less.
    pub negate: bool,
    /// Indent the SVG. Only works on inferno's page.
    pub pretty_xml: bool,
    /// Leave out the script, so that the picture is static.
    pub no_javascript: bool,
}

impl Look {
    /// The font names in a form that works in style sheets as well as on canvases.
    pub(super) fn font_family(&self) -> String {
        let family = self.font_type.as_deref().unwrap_or("Verdana, 'DejaVu Sans', sans-serif");
        family.chars().filter(|c| c.is_alphanumeric() || " ,'-_.".contains(*c)).collect()
    }
}

/// How two profiles are compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    /// Scale the first profile to the total of the second.
    pub normalize: bool,
    /// Treat names as equal if they only differ in hexadecimal numbers, such as addresses.
    pub strip_hex: bool,
    /// How to tell whether a function's change may be chance.
    pub compare: CompareOptions,
}

/// The error for a flame graph of an event that has no samples, or only samples with negative weights.
pub(super) fn no_samples(series: Option<&Series>) -> Error {
    let has_negative = series.is_some_and(|series| !series.negative.is_empty());
    let reason = if has_negative { "no weight is above 0" } else { "none were recorded, or none match the filters" };
    Error::new(format!("no samples to draw: {reason}")).with_kind(ErrorKind::NoSamples)
}
