//! Looks up which functions are at a profile's addresses.

use super::files::{Files, dso};
use crate::contract::unsymbolized::{BareAddress, NamedCall, Unsymbolized};
use crate::error::{Warning, Warnings};
use crate::model::Pid;
use crate::model::recorded_symbols::RecordedSymbols;
use crate::pipeline::Job;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{CodeMap, Hit};
use crate::resolve::frames::Frames;
use crate::resolve::kernel::KernelOptions;
use crate::resolve::symbols::SymbolOptions;
use crate::resolve::symbols::images::Images;
use crate::resolve::{Location, Resolver};
use crate::sources::SourceOptions;
use std::borrow::Cow;

/// Counts of the profile's unnamed addresses, by what was found there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AddressCounts {
    /// Addresses that had no name in the input.
    pub(super) asked: u64,
    /// Addresses that are not in files and were named.
    pub(super) named: u64,
    /// The subset of `named` where several functions were at the address one after another, so that the name may be
    /// wrong.
    pub(super) several: u64,
    /// Addresses whose process is unknown.
    pub(super) nobodys: u64,
    /// Addresses in files; a subset of `asked`.
    pub(super) in_files: u64,
    /// Addresses in files that were named. Not included in `named`.
    pub(super) named_in_files: u64,
    /// Addresses in files that are missing on this machine.
    pub(super) in_missing: u64,
}

/// The functions at all addresses of a profile.
#[derive(Debug)]
pub(super) struct Answers<'m> {
    /// For each address, an index into `frames`; `None` if nothing was found.
    places: Vec<Option<usize>>,
    frames: Frames,
    /// The name of the outermost function by index into `frames`, for formats that can't express inlined calls. `None`
    /// for other formats.
    codes: Option<Vec<Cow<'m, [u8]>>>,
    pub(super) counts: AddressCounts,
}

impl<'m> Answers<'m> {
    /// Looks up all addresses of the profile.
    pub(super) fn find(
        profile: &dyn Unsymbolized,
        map: &CodeMap<'m>,
        sources: &SourceOptions,
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let addresses = profile.addresses();
        let meant = process_meant(addresses, map, sources);
        let mut counts = AddressCounts { asked: addresses.len() as u64, ..AddressCounts::default() };
        let mut hits: Vec<Option<Location>> = Vec::with_capacity(addresses.len());
        let spaces = AddressSpaces::from_files(profile.files().iter().map(dso));
        let images = Images::new(spaces.dsos().iter(), sources.search.clone());
        let files = Files::new(profile.files(), &images, warnings);
        for address in addresses {
            if let Some(file) = address.file {
                hits.push(files.location(file, address.addr.for_lookup()));
                continue;
            }
            let hit = address.pid.or(meant).and_then(|pid| lookup(map, pid, address, &mut counts));
            counts.nobodys += u64::from(address.pid.or(meant).is_none());
            hits.push(hit.map(|hit| Location::Code(hit.code, hit.offset)));
        }
        let mut locations: Vec<Location> = hits.iter().flatten().copied().collect();
        locations.sort_unstable();
        locations.dedup();
        let options = SymbolOptions { lines: true, search: sources.search.clone(), ..SymbolOptions::default() };
        let kernel = &KernelOptions::default();
        let recorded = &RecordedSymbols::default();
        let resolver =
            Resolver { spaces: &spaces, codes: map, bpf: &[], recorded, images: &images, options: &options, kernel };
        let frames = resolver.resolve(&locations, &job.pool, warnings);
        let places: Vec<_> = hits.iter().map(|hit| locations.binary_search(hit.as_ref()?).ok()).collect();
        let is_named =
            |place: &Option<usize>| place.is_some_and(|place| frames.get(place).any(|frame| frame.name.is_some()));
        let in_files = places.iter().zip(addresses).filter(|(_, address)| address.file.is_some());
        counts.in_files = in_files.clone().count() as u64;
        counts.in_missing = in_files.clone().filter(|(place, _)| place.is_none()).count() as u64;
        counts.named_in_files = in_files.filter(|(place, _)| is_named(place)).count() as u64;
        warnings.extend(files.missing(counts.in_missing));
        warnings.append(images.into_warnings());
        let name = |location: &Location| match location {
            Location::Code(code, _) => options.display_name(map.code(*code).name),
            Location::File(..) | Location::Nothing(_) => Cow::default(),
        };
        let codes = (!profile.expands_calls()).then(|| locations.iter().map(name).collect());
        Self { places, frames, codes, counts }
    }

    /// The functions at the address with index `at`, including inlined ones if the format can express them.
    pub(super) fn calls(&self, at: usize) -> Vec<NamedCall<'_>> {
        let Some(place) = self.places.get(at).copied().flatten() else { return Vec::new() };
        let frames = self.frames.get(place);
        let call = |frame: crate::resolve::frames::Frame| {
            let file = frame.file.map_or(&b""[..], |file| self.frames.text(file));
            Some(NamedCall { name: self.frames.text(frame.name?), file, line: frame.line })
        };
        match self.codes.as_ref().and_then(|codes| codes.get(place)) {
            Some(name) => frames.outermost().and_then(call).map(|own| NamedCall { name, ..own }).into_iter().collect(),
            None => frames.filter_map(call).collect(),
        }
    }
}

fn lookup(map: &CodeMap<'_>, pid: Pid, address: &BareAddress, counts: &mut AddressCounts) -> Option<Hit> {
    let at = address.addr.for_lookup();
    let hit = map.lookup(pid, at, None)?;
    counts.named += 1;
    counts.several += u64::from(hit.how.is_timed() && map.has_other_names(pid, at, map.code(hit.code).name));
    Some(hit)
}

/// The process to assume for addresses that state no process: the only one that has code. `None` unless the user named
/// a source file and no address belongs to another process.
fn process_meant(addresses: &[BareAddress], map: &CodeMap<'_>, sources: &SourceOptions) -> Option<Pid> {
    let mut with_code = map.pids();
    let only = with_code.next().filter(|_| sources.names_files() && with_code.next().is_none())?;
    addresses.iter().all(|address| address.pid.is_none_or(|pid| pid == only)).then_some(only)
}

impl AddressCounts {
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let Self { named, several, nobodys, .. } = *self;
        let several = (several > 0).then(|| {
            format!(
                "{several} of the {named} named addresses had several functions one after the other; the profile has \
                 no times, so they got the last one's name"
            )
        });
        let nobodys = (nobodys > 0).then(|| {
            format!(
                "{nobodys} addresses stay unnamed: the profile does not say which process they belong to; pass \
                 --jitdump FILE@PID or --perf-map FILE@PID"
            )
        });
        several.into_iter().chain(nobodys).map(Warning::new)
    }
}
