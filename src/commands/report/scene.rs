//! What all kinds of tables share: the event to report on, and the finished report with its lines above and below the
//! table.

use super::header;
use super::options::{Limit, ReportOptions};
use crate::analysis::call_graph::CallGraph;
use crate::analysis::groups::Grouping;
use crate::analysis::quantity::{counted, row_word};
use crate::error::{Error, Result};
use crate::model::stacks::{FrameId, MILLIONTHS, Profile, Series, Unit, Weight};
use crate::pipeline::table::{Cell, Layout, Table};
use std::io::Write;

/// One event of a profile, and the options for its report.
pub(super) struct Scene<'a> {
    pub(super) profile: &'a Profile,
    pub(super) series: &'a Series,
    /// What the table's rows stand for: groups of the keys that the user chose, or functions.
    pub(super) grouping: &'a Grouping,
    /// For each frame part of the grouping, the source location that distinguishes its function from others of its name
    /// ([`Grouping::namesake_locations`]).
    pub(super) places: &'a [Option<String>],
    /// The calls with their costs. `None` if the input states no calls, or if the table doesn't need them.
    pub(super) graph: Option<&'a CallGraph>,
    /// The event's total weight.
    pub(super) whole: i64,
    pub(super) options: &'a ReportOptions,
    /// The number of terminal lines that messages on stderr take, above the table.
    pub(super) lines_above: usize,
}

/// A table, and the lines around it in text output.
pub(super) struct Report {
    /// The lines above the table, without comment marks.
    pub(super) head: Vec<String>,
    pub(super) table: Table,
    /// The number of rows that were left out because they didn't fit the terminal. 0 if the user set the limit.
    pub(super) left_out: usize,
}

impl Scene<'_> {
    /// The lines above the table.
    pub(super) fn head(&self) -> Vec<String> {
        let mut lines = header::header_lines(self.profile, self.series, self.options.weight);
        // The profile's notes are about its stacks. They are left out if the table is of recorded calls, which don't
        // use stacks.
        if self.graph.is_none() {
            lines.extend(self.profile.about.notes.iter().cloned());
        }
        lines
    }

    /// True if text goes to a terminal.
    pub(super) fn is_on_terminal(&self) -> bool {
        self.options.layout == Layout::Text && self.options.reader.height.is_some()
    }

    /// True if the table is fitted to a width, of a terminal or with `--width`: then it only has the columns that
    /// people need, and short module names.
    pub(super) fn is_fitted(&self) -> bool {
        self.is_on_terminal() || self.options.layout == Layout::Text && self.options.reader.style.width.is_some()
    }

    /// The maximum number of table rows: the user's limit or, on a terminal, as many as have room below `head_lines`
    /// header lines.
    pub(super) fn row_limit(&self, head_lines: usize) -> usize {
        /// The number of other lines on the screen: a blank line, the column names, the line about omitted rows, and
        /// the shell's next prompt.
        const OTHERS: usize = 4;
        /// The number of rows to show even if the terminal must scroll for them.
        const LEAST: usize = 5;
        match (self.options.selection.limit, self.options.reader.height) {
            (Limit::Rows(rows), _) => rows,
            (Limit::Fitting, Some(height)) if self.is_on_terminal() => {
                height.saturating_sub(head_lines + OTHERS + self.lines_above).max(LEAST)
            }
            _ => usize::MAX,
        }
    }

    /// True if the output must say how many rows are missing: the table was shortened only because the terminal is too
    /// small.
    pub(super) fn tells_what_is_left_out(&self) -> bool {
        self.is_on_terminal() && self.options.selection.limit == Limit::Fitting
    }

    /// The heading of the column with the number of samples. In CSV and JSON it is always `samples`, because programs
    /// expect the same columns. In text, it is `spans` if the rows are spans; exact costs aren't samples, so the column
    /// is left out (`None`).
    pub(super) fn count_column(&self) -> Option<&'static str> {
        match row_word(self.profile, self.series) {
            _ if self.options.layout != Layout::Text => Some("samples"),
            Some("span") => Some("spans"),
            Some(_) => Some("samples"),
            None => None,
        }
    }

    /// A weight as a percentage of the event's total.
    pub(super) fn share(&self, weight: i64) -> Cell {
        Cell::Percent(header::percent(weight, self.whole))
    }

    /// A weight in the event's unit. If the input has fractional weights, which are counted in millionths, this is a
    /// fraction again.
    pub(super) fn weight(&self, weight: i64) -> Cell {
        match &self.series.unit {
            Unit::Named(unit) if unit == MILLIONTHS && self.options.weight == Weight::Period => {
                Cell::Millionths(weight)
            }
            _ => Cell::Signed(weight),
        }
    }

    /// The source file of a function.
    pub(super) fn source(&self, frame: FrameId) -> Cell {
        let file = self.profile.frame_of(frame).file;
        file.map_or(Cell::None, |file| Cell::text(String::from_utf8_lossy(self.profile.name_of(file))))
    }

    /// The smallest weight that a row must have: the user's percentage of the event's total, or by default
    /// `default_percent`.
    pub(super) fn min_weight(&self, default_percent: f64) -> f64 {
        self.min_weight_of(default_percent, self.whole)
    }

    /// Like [`Self::min_weight`], but the percentage is of `whole` instead of the event's total.
    pub(super) fn min_weight_of(&self, default_percent: f64, whole: i64) -> f64 {
        self.options.selection.percent.unwrap_or(default_percent) / 100.0 * whole.unsigned_abs() as f64
    }
}

impl Report {
    /// Makes a report. Cuts the table to the rows that fit the terminal.
    pub(super) fn new(scene: &Scene<'_>, head: Vec<String>, mut table: Table) -> Self {
        let head = header::wrap(head, scene.options.reader.style.width);
        let left_out = table.rows.len().saturating_sub(scene.row_limit(head.len()));
        table.rows.truncate(table.rows.len() - left_out);
        Self { head, table, left_out: if scene.tells_what_is_left_out() { left_out } else { 0 } }
    }

    /// Inserts a first column with the name of the event: in JSON always, in CSV if the profile has several events.
    /// Text has the name above the table.
    pub(super) fn with_event(mut self, profile: &Profile, event: usize, has_several: bool, layout: Layout) -> Self {
        if layout == Layout::Json || layout == Layout::Csv && has_several {
            let name = profile.series.get(event).map_or("", |series| &series.name);
            self.table.insert_column(0, "event", &Cell::text(name));
        }
        self
    }

    /// Drops empty columns if the table is fitted to a terminal or to `--width`. Other tables keep all columns, because
    /// programs read them.
    pub(super) fn fitted(mut self, scene: &Scene<'_>) -> Self {
        if scene.is_fitted() && !self.table.rows.is_empty() {
            self.table.drop_empty_columns();
        }
        self
    }

    /// Writes the report. In text, lines above and below the table are comments about it.
    pub(super) fn write(&self, options: &ReportOptions, out: &mut dyn Write) -> Result<()> {
        if options.layout != Layout::Text {
            return self.table.write(options.layout, out);
        }
        header::write(&self.head, out)?;
        self.table.write_text(options.reader.style, out)?;
        if self.left_out > 0 {
            writeln!(out, "{} (show all with --limit 0)", counted(self.left_out as u64, "more row"))?;
        }
        Ok(())
    }
}

/// The total weight of an event. Negative weights are subtracted.
pub(super) fn whole(series: &Series, weight: Weight) -> i64 {
    series.signed_total(weight)
}

/// The file name of a module's path.
pub(super) fn base_name(module: &str) -> &str {
    module.rsplit('/').next().filter(|base| !base.is_empty()).unwrap_or(module)
}

/// Finds the event with this name. Fails if the profile has none.
pub(super) fn series_of<'a>(profile: &'a Profile, name: &str) -> Result<&'a Series> {
    let named = profile.series.iter().find(|series| series.name == name);
    named.ok_or_else(|| {
        let known: Vec<_> = profile.series.iter().map(|series| series.name.as_str()).collect();
        let known = known.join(", ");
        Error::new(format!(
            "the input to compare with has no event {name}, only {known}; with --event, choose one that both have"
        ))
    })
}
