//! What all parts of the text output need: writing lines, formatting columns of costs, and formatting amounts.

use super::super::costs::Costs;
use super::super::listing::Listing;
use super::super::options::TextOptions;
use super::super::overview::{Annotation, EventTotal};
use super::row::{Paint, Row};
use crate::analysis::quantity::grouped;
use crate::error::Result;
use crate::model::stacks::Unit;
use std::io::Write;

/// The annotation, its layout, and where it is written.
pub(super) struct Sheet<'a> {
    pub(super) annotation: &'a Annotation,
    pub(super) options: &'a TextOptions,
    pub(super) out: &'a mut dyn Write,
}

impl Sheet<'_> {
    /// Writes a line.
    pub(super) fn write_row(&mut self, row: Row) -> Result<()> {
        Ok(writeln!(self.out, "{}", row.finish(self.options))?)
    }

    /// Writes a line without colors.
    pub(super) fn write_line(&mut self, text: String) -> Result<()> {
        self.write_row(Row::default().with(text, Paint::Plain))
    }

    /// The width of the column for numbers of samples or exact costs, in characters. Exact costs can be much larger
    /// than numbers of samples.
    pub(super) fn digits(&self) -> usize {
        let largest = self.annotation.events.iter().map(|event| event.total.count).max().unwrap_or(0);
        largest.to_string().len().max(7)
    }

    /// The width of one event's columns (percentage and number) in characters.
    pub(super) fn cost_width(&self) -> usize {
        self.digits() + 9
    }

    /// The costs as a percentage of the event's total, and as a number: the number of samples or the exact cost.
    pub(super) fn share(&self, costs: &Costs, event: &EventTotal) -> (f64, i64) {
        let cost = costs.get(event.number);
        (cost.percent_of(event.total, self.annotation.weight), event.figure(cost))
    }

    /// The columns of costs: for each event, the percentage of the function's cost, and the number of samples or the
    /// exact cost. The columns of an event with zero cost are blank.
    pub(super) fn costs(&self, listing: &Listing, costs: Option<&Costs>) -> Row {
        let (mut row, digits) = (Row::default(), self.digits());
        for event in &self.annotation.events {
            let cost = costs.map(|costs| costs.get(event.number)).filter(|cost| cost.count > 0);
            row = match cost {
                Some(cost) => {
                    let percent = cost.percent_of(listing.costs.get(event.number), self.annotation.weight);
                    row.with(format!("{percent:>6.2}% {:>digits$} ", event.figure(cost)), Paint::heat(percent))
                }
                None => row.with(" ".repeat(self.cost_width()), Paint::Plain),
            };
        }
        row
    }
}

/// Formats a weight with its unit.
pub(super) fn amount(weight: i64, unit: &Unit) -> String {
    match unit {
        Unit::Nanos => format!("{:.3} s", weight as f64 / 1e9),
        Unit::Samples => signed(weight),
        Unit::Named(name) => format!("{} {name}", signed(weight)),
    }
}

/// Formats a number that may be negative, with commas between groups of three digits.
pub(super) fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// The last component of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The first `most` characters of the text.
pub(super) fn short(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
