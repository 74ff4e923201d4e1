//! Section `code` of the page: the listings of the hottest code, and which instruction each sample hit.
//!
//! Instructions are numbered across all listings, and nothing is stored twice. Each distinct instruction text, with the
//! instruction's length, is in `texts` and `texts.len`; an instruction is an index into these. Branch targets outside a
//! listing are in `out.*`, and source lines in `line.*`. Values that only few instructions have, such as branch
//! targets, are stored in columns of their own: `*.gap` has the distance to the previous instruction with such a value.
//! Inlined calls whose addresses are unknown are listed as a tree: `expanded` has the lines of these trees for all
//! listings in a row, and `listing.expanded` has the number of lines of each listing.

mod columns;

use super::names::PageNames;
use crate::analysis::category::Category;
use crate::annotate::{Annotation, Code, EventTotal, HotCode, InstructionIndex, Listing, Precision, Version};
use crate::model::printable::readable;
use crate::model::stacks::Profile;
use crate::render::viewer::{Section, category_number};
use columns::InstructionColumns;
use serde_json::{Value, json};

/// The hot code of an input, and the speller for its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedCode<'a> {
    pub(super) names: &'a PageNames,
    pub(super) code: &'a HotCode,
}

/// The page's section with the code listings of all inputs. `None` if no input has listings, or if the user requested
/// none. Also returns, for each event, the numbers of the instructions that its samples hit, counted from 1; 0 for a
/// sample that hit no listed instruction.
pub(super) fn section(all: &[NamedCode<'_>], profile: &Profile, limit: usize) -> (Option<Section>, Vec<Vec<u32>>) {
    if all.is_empty() {
        return (None, Vec::new());
    }
    let listings = Listings::new(all);
    let mut section = listings.columns(Section::new("code").json(listings.json(all, profile, limit)));
    for (event, series) in profile.series.iter().enumerate() {
        // Only exact costs are stored. The page computes the costs of a sampled event itself, from the instructions
        // that samples hit.
        if let Some(total) = find_exact_event(all, &series.name) {
            section = section.numbers(format!("cost.{event}"), listings.costs(total.number));
        }
    }
    (Some(section), listings.hit_instructions(all, profile))
}

/// The totals of the event with this name, if its costs were counted exactly. `None` if they were sampled, or if there
/// is no such event.
fn find_exact_event<'a>(all: &[NamedCode<'a>], name: &str) -> Option<&'a EventTotal> {
    let mut events = annotations(all).flat_map(|annotation| &annotation.events);
    events.find(|total| total.name == name && total.precision == Precision::Exact)
}

/// A listing, and the speller for the names of its recording.
struct NamedListing<'a> {
    listing: &'a Listing,
    names: &'a PageNames,
}

/// The listings of all inputs. Instructions are numbered across all of them.
struct Listings<'a> {
    list: Vec<NamedListing<'a>>,
    /// The number of the first instruction of each listing, counted from 0.
    first_instructions: Vec<u64>,
    /// The earliest time at which any of the listed code was loaded, in nanoseconds. The page stores times as distances
    /// from it.
    base: u64,
}

impl NamedListing<'_> {
    /// The version of the function that the listing shows: the one with most samples.
    fn hottest(&self) -> &Version {
        self.listing.hottest()
    }

    fn name(&self) -> String {
        let Listing { name, module, .. } = self.listing;
        let is_jit = matches!(self.hottest().category, Category::Jit(_));
        self.names.function(name, module.as_deref(), is_jit)
    }

    fn module(&self) -> String {
        self.listing.module.as_deref().map(|module| readable(module).into_owned()).unwrap_or_default()
    }

    /// The address of the code in hexadecimal. Empty if there is no code.
    fn address(&self) -> String {
        match &self.listing.code {
            Code::Instructions { addr, .. } => format!("{addr:x}"),
            Code::SourceLines | Code::Missing(_) => String::new(),
        }
    }

    /// The reason why the listing has no code. Empty if it has.
    fn why_missing(&self) -> &str {
        match &self.listing.code {
            Code::Missing(why) => why,
            Code::Instructions { .. } | Code::SourceLines => "",
        }
    }
}

/// The annotations of all inputs.
fn annotations<'a>(all: &[NamedCode<'a>]) -> impl Iterator<Item = &'a Annotation> {
    all.iter().map(|named| &named.code.annotation)
}

impl<'a> Listings<'a> {
    /// Collects the listings of all inputs, and numbers their instructions.
    fn new(all: &[NamedCode<'a>]) -> Self {
        let mut list: Vec<NamedListing<'a>> = Vec::new();
        for &NamedCode { names, code } in all {
            list.extend(code.annotation.listings.iter().map(|listing| NamedListing { listing, names }));
        }
        let mut first_instructions = Vec::with_capacity(list.len());
        let mut next = 0;
        for named in &list {
            first_instructions.push(next);
            next += named.listing.rows.len() as u64;
        }
        let base = list.iter().filter_map(|named| named.hottest().loaded).map(|time| time.0).min().unwrap_or(0);
        Self { list, first_instructions, base }
    }

    /// The values of the section that aren't columns: totals of events, and counts over all listings. `limit` is the
    /// number of listings that the user requested.
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
            "codes": annotations(all).map(|annotation| annotation.all_codes).sum::<usize>(),
            "functions": annotations(all).map(|annotation| annotation.all_names).sum::<usize>(),
            "base": self.base.to_string(),
            "events": events,
        })
    }

    /// Adds the columns with a value for each listing (`listing.…`), and those with a value for each instruction.
    fn columns(&self, section: Section) -> Section {
        let listings = || self.list.iter().map(|named| named.listing);
        let versions = || self.list.iter().map(NamedListing::hottest);
        // The time when the code was loaded, counted from `base` and plus one; 0 if it is unknown.
        let loaded = |version: &Version| version.loaded.map_or(0, |time| time.0 - self.base + 1);
        let section = section
            .texts("listing.name", self.list.iter().map(NamedListing::name))
            .texts("listing.module", self.list.iter().map(NamedListing::module))
            .numbers("listing.category", versions().map(|version| category_number(version.category)))
            .numbers("listing.version", versions().map(|version| version.number as u64))
            .numbers("listing.versions", listings().map(|listing| listing.all_versions as u64))
            .numbers("listing.pid", versions().map(|version| u64::try_from(version.pid.0).unwrap_or(0)))
            .numbers("listing.loaded", versions().map(loaded))
            .texts("listing.address", self.list.iter().map(NamedListing::address))
            .numbers("listing.size", listings().map(|listing| listing.bytes().len() as u64))
            .numbers("listing.instructions", listings().map(|listing| listing.rows.len() as u64))
            .texts("listing.missing", self.list.iter().map(NamedListing::why_missing))
            .numbers("listing.expanded", versions().map(|version| version.expanded.len() as u64))
            .texts("expanded", versions().flat_map(Version::inlined_call_lines));
        let mut instructions = InstructionColumns::default();
        for named in &self.list {
            instructions.add(named.listing, named.names);
        }
        instructions.write(section)
    }

    /// The exact cost of each instruction, for an event whose costs were counted and not sampled.
    fn costs(&self, event: usize) -> Vec<u64> {
        let mut weights = Vec::new();
        for row in self.list.iter().flat_map(|named| &named.listing.rows) {
            let weight = row.costs.as_ref().map_or(0, |costs| costs.get(event).weight);
            weights.push(u64::try_from(weight).unwrap_or(0));
        }
        weights
    }

    /// For each event of the profile, the number of the instruction that each sample hit. The list of an event is empty
    /// if the numbers of some samples are unknown.
    fn hit_instructions(&self, all: &[NamedCode<'_>], profile: &Profile) -> Vec<Vec<u32>> {
        let mut by_event = Vec::with_capacity(profile.series.len());
        for series in &profile.series {
            let numbers = self.hits_of_event(all, &series.name);
            // Samples of an input that has no addresses get no instruction numbers. If an event has such samples, it
            // has fewer numbers than rows, and it is unknown which number belongs to which row. Then no numbers are
            // stored for the event.
            by_event.push(if numbers.len() == series.rows.len() { numbers } else { Vec::new() });
        }
        by_event
    }

    /// The instruction numbers of an event's samples, in the order of the inputs.
    fn hits_of_event(&self, all: &[NamedCode<'_>], event: &str) -> Vec<u32> {
        let mut numbers = Vec::new();
        // The index of the current input's first listing in `self.list`.
        let mut first_listing = 0;
        for NamedCode { code, .. } in all {
            for hit in code.instructions.iter().filter(|hit| hit.event == event) {
                numbers.extend(hit.samples.iter().map(|index| self.instruction_number(first_listing, *index)));
            }
            first_listing += code.annotation.listings.len();
        }
        numbers
    }

    /// The number of an instruction, counted from 1 over all listings; 0 if there is no instruction. `first_listing` is
    /// the number of the first listing of the same input.
    fn instruction_number(&self, first_listing: usize, index: Option<InstructionIndex>) -> u32 {
        let Some(InstructionIndex { listing, row }) = index else { return 0 };
        let first_instruction = self.first_instructions[first_listing + listing as usize];
        u32::try_from(first_instruction).map_or(0, |first| first + row + 1)
    }
}
