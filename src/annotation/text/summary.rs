//! The samples, and the functions by name with the samples of each of their versions.

use super::super::annotated::{NameSummary, Precision};
use super::row::{Paint, Row};
use super::sheet::{Sheet, amount, base_name, short};
use crate::analysis::quantity::grouped;
use crate::error::Result;
use crate::model::printable::printable;

impl Sheet<'_> {
    /// Writes it.
    pub(super) fn summary(&mut self) -> Result<()> {
        for event in &self.annotation.events {
            let total = amount(event.total.weight, &event.unit);
            let said = event.precision.said();
            self.plain(match event.precision {
                Precision::Exact => format!("{}: {total}; {said}", event.name),
                _ => format!("{}: {} samples, {total}; each stands {said}", event.name, grouped(event.total.count)),
            })?;
        }
        let (names, codes) = self.annotation.all;
        let shown = self.annotation.listings.len();
        self.plain(format!(
            "{} functions in {} code ranges have {} of their own; {} listed below",
            grouped(names as u64),
            grouped(codes as u64),
            self.annotation.words().any,
            grouped(shown as u64)
        ))?;
        self.plain(String::new())?;
        let width = self.cost_width() + 1;
        let heads: String =
            self.annotation.events.iter().map(|event| format!("{:>width$} ", short(&event.name, width))).collect();
        self.row(Row::default().with(format!("{heads} parts  function"), Paint::Dim))?;
        for name in &self.annotation.names {
            self.name(name)?;
        }
        Ok(())
    }

    fn name(&mut self, name: &NameSummary) -> Result<()> {
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
            const MOST: usize = 12;
            let each: Vec<String> =
                name.codes.iter().take(MOST).map(|code| self.annotation.number(code).to_string()).collect();
            let more = if name.codes.len() > MOST { " …" } else { "" };
            row = row.with(format!("  ({}{more})", each.join(" ")), Paint::Dim);
        }
        self.row(row)
    }
}
