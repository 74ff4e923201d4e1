//! Looks up which functions are at the addresses of a profile that has no names for them, such as pprof's. The command
//! `inject` and the library's `add_names` use it.

mod files;

use crate::contract::unsymbolized::{BareAddress, NamedCall, Unsymbolized};
use crate::error::{Warning, Warnings};
use crate::model::process::CpuMode;
use crate::model::recorded_symbols::RecordedSymbols;
use crate::model::{FrameAddr, Pid};
use crate::parallel::Pool;
use crate::symbolize::Location;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::CodeMap;
use crate::symbolize::frames::{AddressFrame, Frames};
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::resolver::Resolver;
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::SymbolOptions;
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::images::Images;
use files::{Files, dso};
use std::borrow::Cow;

/// Counts of the profile's unnamed addresses, by what was found there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AddressCounts {
    /// Addresses that had no name in the input.
    pub(crate) asked: u64,
    /// Addresses that got a name and aren't in files.
    pub(crate) named: u64,
    /// The subset of `named` where several functions were at the address one after another, so that the name may be
    /// wrong.
    pub(crate) several: u64,
    /// Addresses whose process is unknown.
    pub(crate) without_process: u64,
    /// Addresses in files; a subset of `asked`.
    pub(crate) in_files: u64,
    /// Addresses that got a name and are in files. They aren't included in `named`.
    pub(crate) named_in_files: u64,
    /// Addresses in files that couldn't be looked up: the file is missing on this machine, or has nothing at the
    /// address, or files aren't searched.
    pub(crate) in_missing: u64,
}

/// The functions at all addresses of a profile.
#[derive(Debug)]
pub(crate) struct Answers<'m> {
    /// For each address, an index into `frames`; `None` if nothing was found.
    frame_indices: Vec<Option<usize>>,
    frames: Frames,
    /// For formats that can't express inlined calls: for each index into `frames`, the name of the code, which is the
    /// outermost function there. `None` for other formats.
    code_names: Option<Vec<Cow<'m, [u8]>>>,
    pub(crate) counts: AddressCounts,
}

impl<'m> Answers<'m> {
    /// Looks up all addresses of the profile. An address in a file is looked up in the file's symbols, any other
    /// address in the code map. `search` says where files with native code are; if it is `None`, addresses in files
    /// stay unnamed. `default_pid` is the process of addresses for which the profile states none.
    pub(crate) fn find(
        profile: &dyn Unsymbolized,
        map: &CodeMap<'m>,
        default_pid: Option<Pid>,
        search: Option<&SearchOptions>,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Self {
        let addresses = profile.addresses();
        let code_files = if search.is_some() { profile.files() } else { &[] };
        let search = search.cloned().unwrap_or_default();
        let spaces = AddressSpaces::from_files(code_files.iter().map(dso));
        let symbolizer = Symbolizer { spaces: &spaces, codes: map };
        let images = Images::new(spaces.dsos().iter(), search.clone());
        let files = Files::new(code_files, &images, warnings);
        let mut counts = AddressCounts { asked: addresses.len() as u64, ..AddressCounts::default() };
        let options = SymbolOptions { lines: true, search, ..SymbolOptions::default() };
        let resolver = Resolver {
            symbolizer,
            bpf: &[],
            recorded: &RecordedSymbols::default(),
            images: &images,
            options: &options,
            kernel: &KernelOptions::default(),
        };
        // For each address, its location; `None` if nothing is known there.
        let mut address_locations: Vec<Option<Location>> = Vec::with_capacity(addresses.len());
        for address in addresses {
            address_locations.push(match address.file {
                Some(file) => files.location(file, address.addr.for_lookup()),
                None => locate_code(address, default_pid, symbolizer, &mut counts),
            });
        }
        // For a return address, the location is that of the byte before it, which is in the call. But what the profile
        // takes for a return address may not be one. If no call ends there, look up the address itself. This is checked
        // only for addresses in files.
        let mut returns: Vec<&mut Location> = Vec::new();
        for (address, location) in addresses.iter().zip(&mut address_locations) {
            if let (FrameAddr::Return(_), Some(location @ Location::File(..))) = (address.addr, location) {
                returns.push(location);
            }
        }
        let locations_before: Vec<Location> = returns.iter().map(|location| **location).collect();
        for (location, exact) in returns.into_iter().zip(resolver.find_uncalled(&locations_before, pool)) {
            // `exact` is the location of the address itself if no call ends there, and otherwise `None`.
            *location = exact.unwrap_or(*location);
        }
        let mut locations: Vec<Location> = address_locations.iter().flatten().copied().collect();
        locations.sort_unstable();
        locations.dedup();
        let frames = resolver.frames(&locations, pool, warnings);
        let mut frame_indices = Vec::with_capacity(addresses.len());
        for (address, location) in addresses.iter().zip(&address_locations) {
            // `locations` is sorted without duplicates, and `frames` has an entry for each location, in the same order.
            // So the index of a location is also the index of its frames.
            let index = location.and_then(|location| locations.binary_search(&location).ok());
            if address.file.is_some() {
                counts.in_files += 1;
                match index {
                    None => counts.in_missing += 1,
                    Some(index) if frames.get(index).any(|frame| frame.name.is_some()) => counts.named_in_files += 1,
                    Some(_) => {}
                }
            }
            frame_indices.push(index);
        }
        warnings.extend(files.missing(counts.in_missing));
        warnings.append(images.into_warnings());
        // Formats that can't express inlined calls get one name for all of a piece of JIT code.
        let mut code_names = None;
        if !profile.expands_calls() {
            let name = |location: &Location| match location {
                Location::Code(code, _) => options.display_name(map.code(*code).name),
                Location::File(..) | Location::Nothing(_) => Cow::default(),
            };
            code_names = Some(locations.iter().map(name).collect());
        }
        Self { frame_indices, frames, code_names, counts }
    }

    /// The functions at the address with this index, innermost first, including inlined ones if the format can express
    /// them. Otherwise, only the outermost one, which contains the code of the others. Empty if there are none.
    pub(crate) fn calls(&self, address: usize) -> Vec<NamedCall<'_>> {
        let Some(index) = self.frame_indices.get(address).copied().flatten() else { return Vec::new() };
        let frames = self.frames.get(index);
        // `None`: the format can express inlined calls, so all frames are returned.
        let Some(code_names) = &self.code_names else {
            return frames.filter_map(|frame| self.call(frame)).collect();
        };
        let outermost = frames.outermost().and_then(|frame| self.call(frame));
        match (outermost, code_names.get(index)) {
            // In a format without inlined calls, the name is that of the whole code, and file and line are those of
            // the code's own function.
            (Some(outermost), Some(name)) => vec![NamedCall { name, ..outermost }],
            _ => Vec::new(),
        }
    }

    /// The call of a frame; `None` if it has no name.
    fn call(&self, frame: AddressFrame) -> Option<NamedCall<'_>> {
        let file = frame.file.map_or(&b""[..], |file| self.frames.text(file));
        Some(NamedCall { name: self.frames.text(frame.name?), file, line: frame.line })
    }
}

/// The JIT code at an address in memory. `None` if there is none, or if the process is unknown. Updates `counts`:
/// addresses that were named, those of them whose name may be wrong, and addresses whose process is unknown.
fn locate_code(
    address: &BareAddress,
    default_pid: Option<Pid>,
    symbolizer: Symbolizer<'_>,
    counts: &mut AddressCounts,
) -> Option<Location> {
    let Some(pid) = address.pid.or(default_pid) else {
        counts.without_process += 1;
        return None;
    };
    // `None`: the profile has no times, so the last code at the address is found.
    let located = symbolizer.locate(pid, address.addr, None, CpuMode::User).answer;
    let hit = located.code?;
    let codes = symbolizer.codes;
    counts.named += 1;
    counts.several += u64::from(hit.kind.is_timed() && codes.has_other_names(pid, located.addr, codes.name(hit.code)));
    Some(located.location())
}

impl AddressCounts {
    /// The warnings about names that may be wrong and addresses that stay unnamed. `remedy` says how to state the
    /// process of addresses for which the profile states none.
    pub(crate) fn warnings(&self, remedy: &str) -> Vec<Warning> {
        let Self { named, several, without_process, .. } = *self;
        let mut warnings = Vec::new();
        if several > 0 {
            warnings.push(Warning::new(format!(
                "{several} of the {named} named addresses held several functions over time; the profile has no times, \
                 so each got the name of the last function"
            )));
        }
        if without_process > 0 {
            warnings.push(Warning::new(format!(
                "addresses that stay unnamed, because the profile does not state their process: {without_process}; \
                 {remedy}"
            )));
        }
        warnings
    }
}
