//! Writes an annotation as text: the events, the functions by name, then the code of each.

mod arrows;
mod by_line;
mod row;
mod sheet;
mod table;

use super::costs::Costs;
use super::listing::{Calls, Code, Listing, Version};
use super::options::TextOptions;
use super::overview::{Annotation, NameSummary, Precision};
use crate::analysis::quantity::{counted, grouped};
use crate::error::Result;
use crate::model::printable::printable;
use row::{Paint, Row};
use sheet::{Sheet, amount, base_name, short, signed};
use std::io::Write;

/// The maximum number of inlined calls to show per version of a function. A compiler may inline several hundred;
/// usually, those near the top of the tree matter.
const MAX_INLINED_CALLS: usize = 40;

/// Writes the whole annotation.
pub(crate) fn write(annotation: &Annotation, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let mut sheet = Sheet { annotation, options, out };
    sheet.write_summary()?;
    for (index, listing) in annotation.listings.iter().enumerate() {
        sheet.write_listing(index, listing)?;
    }
    Ok(())
}

impl Sheet<'_> {
    /// Writes the heading and the code of one listing.
    fn write_listing(&mut self, index: usize, listing: &Listing) -> Result<()> {
        self.write_line(String::new())?;
        self.write_row(Row::default().with(format!("{}. {}", index + 1, printable(&listing.name)), Paint::Title))?;
        if listing.versions.len() > 1 {
            let count = listing.versions.len();
            self.write_line(format!(
                "   {count} compiled versions merged · {}",
                self.shares(&listing.costs).join(" · ")
            ))?;
        }
        for version in &listing.versions {
            self.write_line(format!("   {}", self.describe(listing, version)))?;
            self.write_inlined_calls(version)?;
        }
        // callgrind may list a function under several names, each with an inclusive cost of its own.
        for inclusive in &listing.inclusive {
            let parts = [vec![inclusive.label()], self.shares(&inclusive.costs)].concat();
            self.write_line(format!("   inclusive: {}", parts.join(" · ")))?;
        }
        match &listing.code {
            Code::Missing(why) => self.write_line(format!("   no listing: {why}")),
            Code::Instructions { .. } => table::write(self, listing),
            Code::SourceLines => by_line::write(self, listing),
        }
    }

    /// Writes the tree of the calls that were inlined into a version of a function, if the addresses of these calls in
    /// the code are unknown. Writes nothing otherwise: `expanded` is then empty.
    fn write_inlined_calls(&mut self, version: &Version) -> Result<()> {
        let count = version.expanded.len();
        if count > 0 {
            let calls = counted(count as u64, "inlined call");
            self.write_line(format!(
                "   contains {calls} (listed by bytecode offset, because their addresses were not recorded):"
            ))?;
        }
        for call in version.inlined_call_lines().take(MAX_INLINED_CALLS) {
            self.write_row(Row::default().with(format!("     {call}"), Paint::Dim))?;
        }
        if count > MAX_INLINED_CALLS {
            let more = count - MAX_INLINED_CALLS;
            self.write_row(Row::default().with(format!("     … {more} more (--to json lists all)"), Paint::Dim))?;
        }
        Ok(())
    }

    /// The description of a version, with its cost.
    fn describe(&self, listing: &Listing, version: &Version) -> String {
        let mut parts = listing.describe_version(version, self.annotation.first);
        parts.extend(self.shares(&version.costs));
        parts.join(" · ")
    }

    /// Writes the calls that an instruction or line makes, with their cost as a percentage of the event's total.
    fn write_calls(&mut self, calls: &[Calls]) -> Result<()> {
        let blank = " ".repeat(self.annotation.events.len() * self.cost_width());
        for calls in calls {
            let text = [vec![calls.label()], self.shares(&calls.costs)].concat().join(" · ");
            self.write_row(Row::default().with(format!("{blank}   => {text}"), Paint::Dim))?;
        }
        Ok(())
    }

    /// For each event in which the costs aren't zero, text such as `cycles 12.00% (34 samples)`: the costs as a
    /// percentage of the event's total, and the number of samples or the exact cost.
    fn shares(&self, costs: &Costs) -> Vec<String> {
        let mut shares = Vec::new();
        for event in &self.annotation.events {
            if costs.get(event.number).count > 0 {
                let (percent, count) = self.share(costs, event);
                let word = if event.precision == Precision::Exact { "" } else { " samples" };
                shares.push(format!("{} {percent:.2}% ({}{word})", event.name, signed(count)));
            }
        }
        shares
    }
}

impl Sheet<'_> {
    /// Writes the events, then a table of the listed functions with their costs.
    fn write_summary(&mut self) -> Result<()> {
        for event in &self.annotation.events {
            let total = amount(event.total.weight, &event.unit);
            let precision = event.precision.text();
            self.write_line(match event.precision {
                Precision::Exact => format!("{}: {total}. {precision}", event.name),
                _ => format!("{}: {} samples, {total}. {precision}", event.name, grouped(event.total.count)),
            })?;
        }
        let shown = self.annotation.listings.len();
        self.write_line(format!(
            "{} in {} {} self {}; {} listed below",
            counted(self.annotation.all_names as u64, "function"),
            counted(self.annotation.all_codes as u64, "code range"),
            if self.annotation.all_names == 1 { "has" } else { "have" },
            self.annotation.words().any,
            grouped(shown as u64)
        ))?;
        self.write_line(String::new())?;
        let width = self.cost_width() + 1;
        let heads: String =
            self.annotation.events.iter().map(|event| format!("{:>width$} ", short(&event.name, width))).collect();
        self.write_row(Row::default().with(format!("{heads}ranges  function"), Paint::Dim))?;
        for name in &self.annotation.names {
            self.write_name(name)?;
        }
        Ok(())
    }

    /// Writes a function's row in the summary: its costs, the number of its versions, its name, and the samples (or
    /// exact cost) of each version.
    fn write_name(&mut self, name: &NameSummary) -> Result<()> {
        let (mut row, digits) = (Row::default(), self.digits() + 1);
        for event in &self.annotation.events {
            let (percent, count) = self.share(&name.costs, event);
            row = row.with(format!("{percent:>7.2}% {count:>digits$} "), Paint::heat(percent));
        }
        row = row.with(format!("{:>6}  {}", name.codes.len(), printable(&name.name)), Paint::Plain);
        if let Some(module) = &name.module {
            row = row.with(format!("  {}", base_name(&printable(module))), Paint::Dim);
        }
        if name.codes.len() > 1 {
            const MAX_VERSIONS: usize = 12;
            let numbers: Vec<String> =
                name.codes.iter().take(MAX_VERSIONS).map(|code| self.annotation.number(code).to_string()).collect();
            let more = if name.codes.len() > MAX_VERSIONS { " …" } else { "" };
            row = row.with(format!("  ({}{more})", numbers.join(" ")), Paint::Dim);
        }
        self.write_row(row)
    }
}
