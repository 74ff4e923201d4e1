//! What a picture's script reads from the SVG file: the same boxes as in the static picture, as numbers.
//!
//! The element `facts` has JSON ([`facts`]), the element `names` the names of the boxes, one per line. The boxes are in
//! the attribute `data-b` of the groups in `boxes`, separated by spaces. A box is written as
//!
//! ```text
//! row,start,width,name,color[,own[,shares[,before]]]
//! ```
//!
//! `start` is the difference to the start of the previous box in the group. `name` is a line number in `names`, from 0.
//! `color` is a letter and the number of a shade. `own` is the self weight; empty if unknown. `shares` are the letters
//! of tiers, each followed by the tier's amount. `before` is the amount in the earlier profile of a difference; it ends
//! in `~` if the change may be chance. All amounts are divided by their greatest common divisor, which is the field
//! `unit` of `facts`.

use super::amount::Scale;
use super::drawing::{Drawing, PageBox};
use super::fit::Cut;
use super::layout::Layout;
use super::look::Look;
use crate::analysis::category::Category;
use crate::bytes::decimal::push_decimal;
use crate::render::palette::{Swatch, shade};
use serde_json::{Map, Value, json};

/// The JSON of the element `facts`, from which the picture's script learns everything except names and boxes. All
/// amounts in the picture's data are divided by `unit`. `subtitle` is the line below the title.
pub(super) fn facts(drawing: &Drawing, layout: &Layout, look: &Look, unit: u64, subtitle: &str) -> Value {
    let mut legend = Vec::new();
    for (swatch, text) in &drawing.legend {
        legend.push(json!([swatch.letter(), text]));
    }
    // `kinds` has the name of each kind of code by its letter, and `jit` has the letters of those kinds that are JIT
    // code.
    let (mut kinds, mut jit) = (Map::new(), String::new());
    for category in Category::ALL {
        let letter = Swatch::Code(category).letter();
        kinds.insert(letter.to_string(), category.name().into());
        if let Category::Jit(_) = category {
            jit.push(letter);
        }
    }
    let scale = match drawing.amounts.scale {
        Scale::Time => "time",
        Scale::Bytes => "bytes",
        Scale::Whole => "whole",
        Scale::Large => "large",
        Scale::Fraction => "fraction",
    };
    json!({
        "title": drawing.title,
        "facts": subtitle,
        "truncation": drawing.truncation,
        "legend": legend,
        "kinds": kinds,
        "jit": jit,
        "rows": drawing.rows,
        "total": drawing.total / unit,
        "before": drawing.total_before.map(|total| total / unit),
        "unit": unit,
        "factor": drawing.amounts.factor,
        "scale": scale,
        "counts": drawing.amounts.name,
        "inverted": look.inverted,
        "chart": drawing.is_chart,
        "row": layout.row,
        "font": layout.font,
        "family": look.font_family(),
        "width": look.width,
        // True if names that are too long lose their beginning; otherwise, they lose their end.
        "cutBegin": look.cut == Cut::Begin,
        "nameType": look.name_type.as_deref().unwrap_or_default(),
    })
}

/// Writes boxes as the text of the attribute `data-b`, separated by spaces. The fields of a box are separated by
/// commas: row, start, width, name, color, and optional details. Amounts are divided by `unit`.
pub(super) fn write_boxes(drawing: &Drawing, boxes: &[PageBox], unit: u64, out: &mut Vec<u8>) {
    let mut previous = 0;
    for (index, page_box) in boxes.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        push_decimal(page_box.row.into(), out);
        out.push(b',');
        // The script gets the difference to the previous start. In a chart it can be negative, because each thread
        // starts at the left again.
        let start = page_box.start / unit;
        if start < previous {
            out.push(b'-');
        }
        push_decimal(start.abs_diff(previous), out);
        previous = start;
        out.push(b',');
        push_decimal((page_box.end - page_box.start) / unit, out);
        out.push(b',');
        push_decimal(page_box.name.into(), out);
        out.push(b',');
        Color::new(drawing, page_box).write(out);
        write_details(page_box, unit, out);
    }
}

/// Writes the optional fields at the end of a box: self weight, shares of tiers, and amount in the earlier profile. A
/// field that is unknown is left empty or, if no known field follows, left out with its comma.
fn write_details(page_box: &PageBox, unit: u64, out: &mut Vec<u8>) {
    let (has_shares, has_before) = (!page_box.shares.is_empty(), page_box.before.is_some());
    if page_box.own.is_some() || has_shares || has_before {
        out.push(b',');
    }
    if let Some(own) = page_box.own {
        push_decimal(own / unit, out);
    }
    if has_shares || has_before {
        out.push(b',');
    }
    for (swatch, weight) in &page_box.shares {
        out.push(swatch.letter() as u8);
        push_decimal(weight / unit, out);
    }
    if let Some(before) = page_box.before {
        out.push(b',');
        push_decimal(before.amount / unit, out);
        if before.is_noise {
            out.push(b'~');
        }
    }
}

/// The color of a box: a swatch in one of its shades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Color {
    /// The letter of the swatch (ASCII).
    letter: char,
    shade: u32,
}

impl Color {
    /// The color of a box. Functions of the same kind of code get different shades by their names, except in a
    /// difference, where the color shows the change.
    pub(super) fn new(drawing: &Drawing, page_box: &PageBox) -> Self {
        let shade = if page_box.before.is_some() { 0 } else { shade(drawing.name(page_box)) };
        Self { letter: page_box.swatch.letter(), shade }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.push(self.letter as u8);
        push_decimal(self.shade.into(), out);
    }
}
