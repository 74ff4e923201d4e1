//! Draws profiles as flame graphs.

use super::profile::Profile;
use crate::contract::format::WriteOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::render::flamegraph::{Look, draw};

/// How a flame graph looks.
///
/// ```
/// use jitgraft::{FlameGraph, Frame, ProfileBuilder, Sample};
///
/// let mut builder = ProfileBuilder::new();
/// builder.add(Sample::new("samples", 30), ["parse", "main"]); // the innermost frame first
/// builder.add(Sample::new("samples", 12), ["write", "main"]);
/// let profile = builder.build()?;
///
/// let svg = profile.flame_graph(&FlameGraph::new().title("A small program"))?;
/// assert!(svg.contains("<title>A small program</title>") && svg.contains("parse"));
/// # Ok::<(), jitgraft::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct FlameGraph {
    look: Look,
}

impl FlameGraph {
    /// A flame graph that fills the window and has a script for searching and zooming.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title. By default it names the recorded program.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.look.title = Some(title.into());
        self
    }

    /// Sets the line below the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.look.subtitle = Some(subtitle.into());
        self
    }

    /// Sets the width in pixels.
    pub fn width(mut self, pixels: usize) -> Self {
        self.look.width = Some(pixels);
        self
    }

    /// Draws the outermost functions at the top.
    pub fn inverted(mut self, inverted: bool) -> Self {
        self.look.inverted = inverted;
        self
    }

    /// Merges stacks from the innermost function on.
    pub fn reversed(mut self, reversed: bool) -> Self {
        self.look.reversed = reversed;
        self
    }

    /// Draws a chart: time runs from left to right, and stacks aren't merged.
    pub fn over_time(mut self, over_time: bool) -> Self {
        self.look.flame_chart = over_time;
        self
    }

    /// Starts stacks at this function, and leaves out stacks without it. Call it again for further functions.
    pub fn base(mut self, function: impl Into<String>) -> Self {
        self.look.base.push(function.into());
        self
    }

    /// Leaves out the script, so that the picture is static.
    pub fn without_script(mut self) -> Self {
        self.look.no_javascript = true;
        self
    }
}

impl Profile {
    /// Draws a flame graph as SVG. Fails if there are no samples, or if the profile has several events
    /// ([`Profile::with_event`]).
    pub fn flame_graph(&self, options: &FlameGraph) -> Result<String> {
        if self.stacks.series.len() > 1 {
            let names: Vec<&str> = self.stacks.series.iter().map(|series| series.name.as_str()).collect();
            let message = format!(
                "a flame graph shows one event, but the profile has {}; choose one with Profile::with_event",
                names.join(", ")
            );
            return Err(Error::new(message).with_kind(ErrorKind::InvalidArgument));
        }
        let picture = draw(&self.stacks, &WriteOptions::default(), &options.look)?;
        let mut svg = picture.head().to_vec();
        for piece in picture.pieces() {
            svg.extend(picture.text(&piece));
        }
        svg.extend(picture.tail());
        String::from_utf8(svg).map_err(|error| Error::new("cannot draw").because(error))
    }
}
