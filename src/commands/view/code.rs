//! Section `code` of the page: the listings of the hottest code, and which instruction each sample hit.
//!
//! Instructions are numbered across all listings, and nothing is stored twice. Each distinct instruction text, with the
//! instruction's length, is in `texts` and `texts.len`; an instruction is an index into these. Branch targets outside a
//! listing are in `out.*`, and source lines in `line.*`. Values that only few instructions have are stored with the
//! distance from the previous such instruction (`*.gap`). Inlined calls at unknown places are lines of a tree in
//! `expanded`. It has the lines of all listings in a row; `listing.expanded` has the number of lines of each listing.

mod spelled;

use super::names::PageNames;
use crate::analysis::category::Category;
use crate::annotation::{Annotation, Code, EventSpots, EventTotal, HotCode, Listing, Precision, Spot, Version};
use crate::model::printable::readable;
use crate::model::stacks::Profile;
use crate::render::viewer::{Section, category_number};
use serde_json::{Value, json};
use spelled::Spelled;

/// The hot code of an input, and how its names are spelled.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedCode<'a> {
    pub(super) names: &'a PageNames,
    pub(super) code: &'a HotCode,
}

/// The section with the listings of all inputs; `None` if there is no code or no listing was requested. Also returns,
/// for each row of each event, the number of the row's instruction plus one.
pub(super) fn section(all: &[NamedCode<'_>], profile: &Profile, limit: usize) -> (Option<Section>, Vec<Vec<u32>>) {
    if all.is_empty() {
        return (None, Vec::new());
    }
    let listings = Listings::new(all);
    let mut section = listings.columns(Section::new("code").json(listings.json(all, profile, limit)));
    for (at, series) in profile.series.iter().enumerate() {
        if let Some(total) = exact_event(all, &series.name) {
            section = section.numbers(format!("cost.{at}"), listings.costs(total.number));
        }
    }
    (Some(section), listings.spots(all, profile))
}

/// The event with this name. `None` if there is none, or if its costs were sampled and not counted.
fn exact_event<'a>(all: &[NamedCode<'a>], name: &str) -> Option<&'a EventTotal> {
    let mut events = annotations(all).flat_map(|annotation| &annotation.events);
    events.find(|total| total.name == name && total.precision == Precision::Exact)
}

/// A listing, and the recording that it belongs to.
struct OfRecording<'a> {
    listing: &'a Listing,
    names: &'a PageNames,
}

struct Listings<'a> {
    list: Vec<OfRecording<'a>>,
    /// The number of the first instruction of each listing.
    first: Vec<u64>,
    /// The earliest time at which any of the listed code was written.
    base: u64,
}

impl OfRecording<'_> {
    fn hottest(&self) -> &Version {
        &self.listing.versions[0]
    }

    fn name(&self) -> String {
        let Listing { name, module, .. } = self.listing;
        let is_jit = matches!(self.hottest().category, Category::Jit(_));
        self.names.function(name, module.as_deref(), is_jit)
    }

    fn module(&self) -> String {
        self.listing.module.as_deref().map(|module| readable(module).into_owned()).unwrap_or_default()
    }

    fn len(&self) -> usize {
        match &self.listing.code {
            Code::Listed { lines, .. } => lines.len(),
            Code::SourceLines { .. } | Code::Missing(_) => 0,
        }
    }
}

fn annotations<'a>(all: &[NamedCode<'a>]) -> impl Iterator<Item = &'a Annotation> {
    all.iter().map(|named| &named.code.annotation)
}

impl<'a> Listings<'a> {
    fn new(all: &[NamedCode<'a>]) -> Self {
        let mut list: Vec<OfRecording<'a>> = Vec::new();
        for &NamedCode { names, code } in all {
            list.extend(code.annotation.listings.iter().map(|listing| OfRecording { listing, names }));
        }
        let mut first = Vec::with_capacity(list.len());
        let mut next = 0;
        for of in &list {
            first.push(next);
            next += of.len() as u64;
        }
        let base = list.iter().filter_map(|of| of.hottest().loaded).map(|time| time.0).min().unwrap_or(0);
        Self { list, first, base }
    }

    fn json(&self, all: &[NamedCode<'_>], profile: &Profile, limit: usize) -> Value {
        let mut events = Vec::with_capacity(profile.series.len());
        for series in &profile.series {
            let mut totals = annotations(all).flat_map(|annotation| &annotation.events);
            let total: Option<&EventTotal> = totals.find(|total| total.name == series.name);
            events.push(json!({
                "precision": total.map(|total| total.precision.name()),
                "said": total.map(|total| total.precision.text()),
                "total": total.map(|total| total.total.weight),
                "exact": total.is_some_and(|total| total.precision == Precision::Exact),
            }));
        }
        json!({
            "limit": limit,
            "codes": annotations(all).map(|annotation| annotation.all.1).sum::<usize>(),
            "functions": annotations(all).map(|annotation| annotation.all.0).sum::<usize>(),
            "base": self.base.to_string(),
            "events": events,
        })
    }

    fn columns(&self, section: Section) -> Section {
        let each = || self.list.iter();
        let version = || each().map(OfRecording::hottest);
        let code = |listed: fn(u64, &[u8]) -> String| {
            each().map(move |of| match &of.listing.code {
                Code::Listed { addr, bytes, .. } => listed(*addr, bytes),
                Code::SourceLines { .. } | Code::Missing(_) => String::new(),
            })
        };
        let size = |of: &OfRecording<'_>| match &of.listing.code {
            Code::Listed { bytes, .. } => bytes.len() as u64,
            Code::SourceLines { .. } | Code::Missing(_) => 0,
        };
        let missing = |of: &OfRecording<'_>| match &of.listing.code {
            Code::Missing(why) => why.clone(),
            Code::Listed { .. } | Code::SourceLines { .. } => String::new(),
        };
        let loaded = |version: &Version| version.loaded.map_or(0, |time| time.0 - self.base + 1);
        let section = section
            .texts("listing.name", each().map(OfRecording::name))
            .texts("listing.module", each().map(OfRecording::module))
            .numbers("listing.category", version().map(|version| category_number(version.category)))
            .numbers("listing.version", version().map(|version| version.number as u64))
            .numbers("listing.versions", each().map(|of| of.listing.all_versions as u64))
            .numbers("listing.pid", version().map(|version| u64::try_from(version.pid.0).unwrap_or(0)))
            .numbers("listing.loaded", version().map(loaded))
            .texts("listing.address", code(|addr, _| format!("{addr:x}")))
            .numbers("listing.size", each().map(size))
            .numbers("listing.instructions", each().map(|of| of.len() as u64))
            .texts("listing.missing", each().map(missing))
            .numbers("listing.expanded", version().map(|version| version.expanded.len() as u64))
            .texts("expanded", version().flat_map(Version::expansion));
        let mut spelled = Spelled::default();
        self.list.iter().for_each(|of| spelled.add(of.listing, of.names));
        spelled.columns(section)
    }

    /// The cost of each instruction in an event that was counted, not sampled.
    fn costs(&self, event: usize) -> Vec<u64> {
        let lines = self.list.iter().flat_map(|of| match &of.listing.code {
            Code::Listed { lines, .. } => &lines[..],
            Code::SourceLines { .. } | Code::Missing(_) => &[],
        });
        let mut weights = Vec::new();
        for line in lines {
            let weight = line.costs.as_ref().map_or(0, |costs| costs.get(event).weight);
            weights.push(u64::try_from(weight).unwrap_or(0));
        }
        weights
    }

    fn spots(&self, all: &[NamedCode<'_>], profile: &Profile) -> Vec<Vec<u32>> {
        let mut spots_by_event = Vec::with_capacity(profile.series.len());
        for series in &profile.series {
            let spots = self.event_spots(all, &series.name);
            // Inputs without addresses have no instructions. If the event has samples of such an input, there are fewer
            // spots than rows, and no instructions are stored for the event.
            spots_by_event.push(if spots.len() == series.rows.len() { spots } else { Vec::new() });
        }
        spots_by_event
    }

    /// The instruction numbers of an event's samples, in the order of the inputs.
    fn event_spots(&self, all: &[NamedCode<'_>], event: &str) -> Vec<u32> {
        let mut spots = Vec::new();
        let mut first_listing = 0;
        for NamedCode { code, .. } in all {
            for EventSpots { rows, .. } in code.spots.iter().filter(|spots| spots.event == event) {
                spots.extend(rows.iter().map(|spot| self.spot_number(first_listing, *spot)));
            }
            first_listing += code.annotation.listings.len();
        }
        spots
    }

    /// The number of an instruction, counted from 1 over all listings; 0 if there is no instruction. `first_listing` is
    /// the number of the first listing of the same input.
    fn spot_number(&self, first_listing: usize, spot: Option<Spot>) -> u32 {
        let Some(Spot { listing, line }) = spot else { return 0 };
        u32::try_from(self.first[first_listing + listing as usize]).map_or(0, |first| first + line + 1)
    }
}
