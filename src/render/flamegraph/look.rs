//! The requested look of a flame graph.

use super::fit::Cut;
use crate::analysis::comparison::CompareOptions;
use crate::error::Error;
use inferno::flamegraph::Palette;
use inferno::flamegraph::color::{BackgroundColor, Color, SearchColor, StrokeColor};

/// The owner of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Ours.
    #[default]
    Page,
    /// The page that inferno-flamegraph makes of the same folded stacks.
    Inferno,
}

/// The look of a flame graph. `None` is the default.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The owner of the page. The fields that state it are for inferno's only.
    pub style: Style,
    /// The first line.
    pub title: Option<String>,
    /// The input's name, for a title where neither one is given nor the recorded program known.
    pub subject: Option<String>,
    /// The second line.
    pub subtitle: Option<String>,
    /// Notes kept in the file.
    pub notes: Option<String>,
    /// The palette (inferno's).
    pub colors: Option<Palette>,
    /// The background (inferno's).
    pub bgcolors: Option<BackgroundColor>,
    /// Color by a hash that gives similar names similar colors (inferno's).
    pub hash: bool,
    /// Color by width (inferno's).
    pub color_diffusion: bool,
    /// Color of matches of a search.
    pub search_color: Option<SearchColor>,
    /// Outline of frames (inferno's).
    pub stroke_color: Option<StrokeColor>,
    /// Color of the texts outside the graph (inferno's).
    pub ui_color: Option<Color>,
    /// Roots at the top (an icicle graph).
    pub inverted: bool,
    /// Leaves first, merged.
    pub reversed: bool,
    /// Time from left to right instead of merged stacks.
    pub flame_chart: bool,
    /// Begin stacks at these functions; stacks without them are left out.
    pub base: Vec<String>,
    /// In pixels; that of the window if not given.
    pub width: Option<usize>,
    /// Height of a frame, in pixels.
    pub height: Option<usize>,
    /// Omit frames narrower than this percentage of the whole.
    pub min_width: Option<f64>,
    /// Name of the font.
    pub font_type: Option<String>,
    /// In pixels.
    pub font_size: Option<usize>,
    /// Average width of a letter, relative to the font's size.
    pub font_width: Option<f64>,
    /// The unit of the weights.
    pub count_name: Option<String>,
    /// The word for frames.
    pub name_type: Option<String>,
    /// Weights are shown multiplied by this.
    pub factor: Option<f64>,
    /// The end of names that is cut (ours).
    pub cut: Cut,
    /// Cut names at their right instead of their left end (inferno's).
    pub truncate_right: bool,
    /// Swap the colors of more and less.
    pub negate: bool,
    /// Break lines in the SVG (inferno's).
    pub pretty_xml: bool,
    /// Leave the script out: a picture only.
    pub no_javascript: bool,
}

/// The way a difference is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    /// Scale the profile before to the sum of the one after.
    pub normalize: bool,
    /// Take hexadecimal numbers in names for equal.
    pub strip_hex: bool,
    /// How changes are found.
    pub compare: CompareOptions,
}

/// The error of pictures of nothing.
pub(super) fn nothing() -> Error {
    Error::new("no samples to draw: no event of the input has any that the filters leave")
}
