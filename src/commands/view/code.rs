//! Section `code` of the page: the hottest code as instructions, and the instruction of each sample.
//!
//! Instructions are numbered across all listings, and nothing is stored twice. Each text of an instruction, with its
//! length, is in `texts` and `texts.len`, and an instruction is an index into these. Branch targets outside a listing
//! are in `out.*`, and source lines in `line.*`. Values that only few instructions have are stored with the distance
//! from the previous such instruction (`*.gap`). Inlined calls at unknown places are lines of a tree in `expanded`, for
//! all listings in a row; `listing.expanded` has the number of lines of each listing.

mod spelled;

use super::recorded::Recorded;
use crate::analysis::category::Category;
use crate::annotation::{Annotation, Code, EventSpots, EventTotal, Listing, Spot, Version};
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Series};
use crate::render::viewer::{Section, category_number};
use serde_json::{Value, json};
use spelled::Spelled;

/// The listings of all recordings, and for each row of each event the number of its instruction plus one (0: none).
/// Without listings, returns `None` and no rows.
pub(super) fn section(recorded: &[Recorded], profile: &Profile, limit: usize) -> (Option<Section>, Vec<Vec<u32>>) {
    let all: Vec<&Recorded> = recorded.iter().filter(|recorded| recorded.code.is_some()).collect();
    if all.is_empty() {
        return (None, Vec::new());
    }
    let listings = Listings::new(&all);
    let section = listings.columns(Section::new("code").json(listings.json(&all, profile, limit)));
    (Some(section), listings.spots(&all, profile))
}

/// A listing, and the recording that it is from.
struct OfRecording<'a> {
    listing: &'a Listing,
    recorded: &'a Recorded,
}

struct Listings<'a> {
    list: Vec<OfRecording<'a>>,
    /// The number of each listing's first instruction.
    first: Vec<u64>,
    /// The earliest time at which any of the code was written.
    base: u64,
}

impl OfRecording<'_> {
    fn hottest(&self) -> &Version {
        &self.listing.versions[0]
    }

    fn name(&self) -> String {
        let Listing { name, module, .. } = self.listing;
        let is_jit = matches!(self.hottest().category, Category::Jit(_));
        self.recorded.names.function(name, module.as_deref(), is_jit)
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

fn annotations<'a>(all: &[&'a Recorded]) -> impl Iterator<Item = &'a Annotation> {
    all.iter().filter_map(|recorded| recorded.code.as_ref()).map(|code| &code.annotation)
}

impl<'a> Listings<'a> {
    fn new(all: &[&'a Recorded]) -> Self {
        let mut list: Vec<OfRecording<'a>> = Vec::new();
        for &recorded in all {
            let listings = recorded.code.iter().flat_map(|code| &code.annotation.listings);
            list.extend(listings.map(|listing| OfRecording { listing, recorded }));
        }
        let first = list.iter().scan(0, |next, of| {
            let first = *next;
            *next += of.len() as u64;
            Some(first)
        });
        let first = first.collect();
        let base = list.iter().filter_map(|of| of.hottest().loaded).map(|time| time.0).min().unwrap_or(0);
        Self { list, first, base }
    }

    fn json(&self, all: &[&Recorded], profile: &Profile, limit: usize) -> Value {
        let totals = || annotations(all).flat_map(|annotation| &annotation.events);
        let event = |series: &Series| {
            let total: Option<&EventTotal> = totals().find(|total| total.name == series.name);
            json!({
                "precision": total.map(|total| total.precision.name()),
                "said": total.map(|total| total.precision.text()),
            })
        };
        json!({
            "limit": limit,
            "codes": annotations(all).map(|annotation| annotation.all.1).sum::<usize>(),
            "functions": annotations(all).map(|annotation| annotation.all.0).sum::<usize>(),
            "base": self.base.to_string(),
            "events": profile.series.iter().map(event).collect::<Vec<_>>(),
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
        self.list.iter().for_each(|of| spelled.add(of.listing, &of.recorded.names));
        spelled.columns(section)
    }

    fn spots(&self, all: &[&Recorded], profile: &Profile) -> Vec<Vec<u32>> {
        let of_event = |series: &Series| {
            let spots = self.of_event(all, &series.name);
            // Inputs without addresses have no instructions. If there are such inputs, the rows of the event don't
            // match, and it gets none.
            if spots.len() == series.rows.len() { spots } else { Vec::new() }
        };
        profile.series.iter().map(of_event).collect()
    }

    /// The instructions of an event's samples, in the order of the inputs.
    fn of_event(&self, all: &[&Recorded], event: &str) -> Vec<u32> {
        let (mut spots, mut first) = (Vec::new(), 0);
        for code in all.iter().filter_map(|recorded| recorded.code.as_ref()) {
            let own = code.spots.iter().filter(|spots| spots.event == event);
            let spot = |spot: &Option<Spot>| {
                let Some(Spot { listing, line }) = *spot else { return 0 };
                u32::try_from(self.first[first + listing as usize]).map_or(0, |first| first + line + 1)
            };
            spots.extend(own.flat_map(|EventSpots { rows, .. }| rows.iter().map(spot)));
            first += code.annotation.listings.len();
        }
        spots
    }
}
