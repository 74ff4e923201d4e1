//! Computes where the parts of the static picture are, in pixels.

use super::drawing::{Drawing, PageBox};
use super::look::Look;
use crate::render::palette::Swatch;

/// The width of the static picture if the user requests none. A picture with the script fills the window instead.
const WIDTH: f64 = 1200.0;

/// The space between boxes and the picture's sides, and above the first line of text.
pub(super) const MARGIN: f64 = 8.0;

/// The distance between lines of the title, facts and legend.
const LINE: f64 = 19.0;

/// The height of the time axis below a chart.
const AXIS: f64 = 20.0;

/// The width and height of a color in the legend.
pub(super) const LEGEND_SWATCH: f64 = 12.0;

/// The distance from the left edge of a color in the legend to its text.
pub(super) const LEGEND_TEXT: f64 = 17.0;

/// The dimensions of a picture.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The height of a row of boxes, including the gap to the next row.
    pub(super) row: f64,
    /// The size of the font, and the average width of its letters.
    pub(super) font: f64,
    pub(super) letter: f64,
    pub(super) legend: Vec<LegendEntry>,
    /// The upper edge of the topmost row of boxes.
    top: f64,
    rows: u32,
    inverted: bool,
    /// Pixels per unit of the boxes' amounts.
    scale: f64,
}

/// A color and its meaning.
#[derive(Debug)]
pub(super) struct LegendEntry {
    pub(super) swatch: Swatch,
    pub(super) text: String,
    /// The left edge.
    pub(super) x: f64,
    /// The baseline of the text.
    pub(super) y: f64,
}

/// The left edge and the width of a box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) width: f64,
}

impl Layout {
    /// Places the title, facts and legend from the top down, and the boxes below them.
    pub(super) fn new(drawing: &Drawing, look: &Look) -> Self {
        let width = look.width.map_or(WIDTH, |width| width as f64);
        let font = look.font_size.unwrap_or(12) as f64;
        // 4 pixels more than the font's size leave room above and below the text.
        let row = look.height.map_or(font + 4.0, |height| height as f64).max(2.0);
        // The average width of a letter is estimated from the font's size: texts can't be measured before they are
        // shown.
        let letter = font * look.font_width.unwrap_or(0.62);
        let legend = place_legend(&drawing.legend, width, letter);
        let last_line = legend.last().map_or(facts_baseline(), |entry| entry.y);
        // `last_line` is the baseline of the last text. Letters such as `g` extend below it by about 4 pixels.
        let top = last_line + MARGIN + 4.0;
        let axis_height = if drawing.is_chart { AXIS } else { 0.0 };
        Self {
            width,
            height: top + row * f64::from(drawing.rows) + MARGIN + axis_height,
            row,
            font,
            letter,
            legend,
            top,
            rows: drawing.rows,
            inverted: look.inverted,
            scale: (width - 2.0 * MARGIN) / drawing.total as f64,
        }
    }

    /// The upper edge of a box.
    pub(super) fn top_of(&self, page_box: &PageBox) -> f64 {
        let rows_above = if self.inverted { page_box.row } else { self.rows - 1 - page_box.row };
        self.top + self.row * f64::from(rows_above)
    }

    pub(super) fn extent(&self, page_box: &PageBox) -> Extent {
        let start = page_box.start as f64 * self.scale;
        let end = page_box.end as f64 * self.scale;
        Extent { left: MARGIN + start, width: end - start }
    }

    /// Where an amount is on the horizontal axis.
    pub(super) fn x_of(&self, amount: u64) -> f64 {
        MARGIN + amount as f64 * self.scale
    }
}

/// The baseline of the title.
pub(super) fn title_baseline() -> f64 {
    MARGIN + LINE - 4.0
}

/// The baseline of the facts, which stand below the title.
pub(super) fn facts_baseline() -> f64 {
    title_baseline() + LINE
}

/// Places the entries of the legend below the facts, as many per line as fit.
fn place_legend(legend: &[(Swatch, String)], width: f64, letter: f64) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    // An infinite `x` makes the first entry begin a new line, the one below the facts.
    let (mut x, mut y) = (f64::INFINITY, facts_baseline());
    for (swatch, text) in legend {
        // 2 letters are the gap to the next entry.
        let entry_width = LEGEND_TEXT + (text.chars().count() as f64 + 2.0) * letter;
        if x + entry_width > width - MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        entries.push(LegendEntry { swatch: *swatch, text: text.clone(), x, y });
        x += entry_width;
    }
    entries
}
