//! Listings for people: what was sampled, the functions by name, then the code of each.

mod arrows;
mod row;
mod table;

use super::TextOptions;
use super::annotation::{Annotation, Code, EventTotal, Listing, NameSummary};
use super::costs::Costs;
use crate::error::Result;
use crate::model::printable::printable;
use crate::model::stacks::Unit;
use row::{Paint, Row};
use std::io::Write;

/// Writes everything.
pub(super) fn write(annotation: &Annotation, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let mut text = Text { annotation, options, out };
    text.summary()?;
    for (at, listing) in annotation.listings.iter().enumerate() {
        text.listing(at, listing)?;
    }
    Ok(())
}

struct Text<'a> {
    annotation: &'a Annotation,
    options: &'a TextOptions,
    out: &'a mut dyn Write,
}

impl Text<'_> {
    fn row(&mut self, row: Row) -> Result<()> {
        Ok(writeln!(self.out, "{}", row.finish(self.options))?)
    }

    fn plain(&mut self, text: String) -> Result<()> {
        self.row(Row::default().with(text, Paint::Plain))
    }

    fn summary(&mut self) -> Result<()> {
        for event in &self.annotation.events {
            let total = amount(event.total.weight, &event.unit);
            self.plain(format!(
                "{}: {} samples, {total}; each stands {}",
                event.name,
                grouped(event.total.count),
                event.precision.said()
            ))?;
        }
        let (names, codes) = self.annotation.all;
        let shown = self.annotation.listings.len();
        self.plain(format!(
            "{} functions in {} pieces of code have samples of their own; {} listed below",
            grouped(names as u64),
            grouped(codes as u64),
            grouped(shown as u64)
        ))?;
        self.plain(String::new())?;
        let heads: String =
            self.annotation.events.iter().map(|event| format!("{:>17} ", short(&event.name, 17))).collect();
        self.row(Row::default().with(format!("{heads} codes  function"), Paint::Dim))?;
        for name in &self.annotation.names {
            self.name(name)?;
        }
        Ok(())
    }

    fn name(&mut self, name: &NameSummary) -> Result<()> {
        let mut row = Row::default();
        for event in &self.annotation.events {
            let (percent, count) = self.share(&name.costs, event);
            row = row.with(format!("{percent:>7.2}% {count:>8} "), Paint::heat(percent));
        }
        row = row.with(format!("{:>6}  {}", name.codes.len(), printable(&name.name)), Paint::Plain);
        if let Some(module) = &name.module {
            row = row.with(format!("  {}", base_name(&printable(module))), Paint::Dim);
        }
        if name.codes.len() > 1 {
            const MOST: usize = 12;
            let each: Vec<String> = name.codes.iter().take(MOST).map(|code| code.samples().to_string()).collect();
            let more = if name.codes.len() > MOST { " …" } else { "" };
            row = row.with(format!("  ({}{more})", each.join(" ")), Paint::Dim);
        }
        self.row(row)
    }

    /// Share of the whole event, and samples.
    fn share(&self, costs: &Costs, event: &EventTotal) -> (f64, u64) {
        let cost = costs.get(event.number);
        (cost.percent_of(event.total, self.annotation.weight), cost.count)
    }

    fn listing(&mut self, at: usize, listing: &Listing) -> Result<()> {
        self.plain(String::new())?;
        self.row(Row::default().with(format!("{}. {}", at + 1, printable(&listing.name)), Paint::Title))?;
        self.plain(format!("   {}", self.about(listing)))?;
        match &listing.code {
            Code::Missing(why) => self.plain(format!("   no listing: {why}")),
            Code::Listed { .. } => table::write(self, listing),
        }
    }

    /// Version, tier, process, place, time and share.
    fn about(&self, listing: &Listing) -> String {
        let mut parts = Vec::new();
        if listing.version.1 > 1 {
            parts.push(format!("code {} of {}", listing.version.0, listing.version.1));
        }
        parts.push(listing.category.name().to_owned());
        parts.extend(listing.module.as_ref().map(|module| printable(module).into_owned()));
        parts.push(format!("pid {}", listing.pid));
        if let Code::Listed { addr, bytes, .. } = &listing.code {
            parts.push(format!("{addr:#x}, {} bytes", grouped(bytes.len() as u64)));
        }
        if let (Some(loaded), Some(first)) = (listing.loaded, self.annotation.first) {
            let after = loaded.0 as f64 - first.0 as f64;
            let side = if after < 0.0 { "before" } else { "after" };
            parts.push(format!("written {:.3} s {side} the first sample", after.abs() / 1e9));
        }
        for event in &self.annotation.events {
            let (percent, count) = self.share(&listing.costs, event);
            parts.push(format!("{} {percent:.2}% ({} samples)", event.name, grouped(count)));
        }
        parts.join(" · ")
    }
}

fn amount(weight: u64, unit: &Unit) -> String {
    match unit {
        Unit::Nanos => format!("{:.3} s", weight as f64 / 1e9),
        Unit::Samples => grouped(weight),
        Unit::Named(name) => format!("{} {name}", grouped(weight)),
    }
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The first characters of a text.
fn short(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
