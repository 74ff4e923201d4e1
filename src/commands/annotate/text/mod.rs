//! Listings for people: what was sampled, the functions by name, then the code of each.

mod arrows;
mod row;
mod sheet;
mod summary;
mod table;

use super::annotation::{Annotation, Code, Listing, Version};
use super::options::TextOptions;
use crate::error::Result;
use crate::model::printable::printable;
use row::{Paint, Row};
use sheet::{Sheet, grouped};
use std::io::Write;

/// Writes everything.
pub(super) fn write(annotation: &Annotation, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let mut sheet = Sheet { annotation, options, out };
    sheet.summary()?;
    for (at, listing) in annotation.listings.iter().enumerate() {
        sheet.listing(at, listing)?;
    }
    Ok(())
}

impl Sheet<'_> {
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
        let Version { number, category, pid, loaded, .. } = *listing.hottest();
        if listing.all_versions > 1 {
            parts.push(format!("code {number} of {}", listing.all_versions));
        }
        parts.push(category.name().to_owned());
        parts.extend(listing.module.as_ref().map(|module| printable(module).into_owned()));
        parts.push(format!("pid {pid}"));
        if let Code::Listed { addr, bytes, .. } = &listing.code {
            parts.push(format!("{addr:#x}, {} bytes", grouped(bytes.len() as u64)));
        }
        if let (Some(loaded), Some(first)) = (loaded, self.annotation.first) {
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
