//! Names frames of native code (`--native`), if the text contains the mappings of the files.
//!
//! The text contains no build IDs, so the files on this machine are assumed to be the ones that ran. All addresses that
//! a block needs are looked up at once, and the results are cached.

use crate::error::Warnings;
use crate::formats::perf_script::rewrite::{Answer, FrameName};
use crate::model::lasting::ALWAYS;
use crate::model::recorded_symbols::RecordedSymbols;
use crate::model::{Addr, FrameAddr};
use crate::parallel::Pool;
use crate::symbolize::Location;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::CodeMap;
use crate::symbolize::dso::Dso;
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::resolver::Resolver;
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::SymbolOptions;
use crate::symbolize::symbols::images::Images;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The name of a function, and the offset of an address from its start.
type NativeFunction = (Box<[u8]>, u64);

/// The functions that earlier lookups have found.
#[derive(Debug)]
pub(super) struct Natives<'a> {
    options: &'a SymbolOptions,
    /// The functions, by path of the file and offset in it. `None` for an offset that was looked up but has no
    /// function.
    files: FxHashMap<Vec<u8>, FxHashMap<FrameAddr, Option<NativeFunction>>>,
}

impl<'a> Natives<'a> {
    pub(super) fn new(options: &'a SymbolOptions) -> Self {
        Self { options, files: FxHashMap::default() }
    }

    /// The function at an offset in a file (`addr`), if `look_up` has looked it up: `Named`, or `Unknown` if there is
    /// none. [`Answer::NotLoaded`] if the offset hasn't been looked up yet.
    pub(super) fn answer(&self, file: &[u8], addr: FrameAddr) -> Answer<'_> {
        let Some((path, functions)) = self.files.get_key_value(file) else { return Answer::NotLoaded };
        let Some(function) = functions.get(&addr) else { return Answer::NotLoaded };
        let Some((name, offset)) = function else { return Answer::Unknown(ALWAYS) };
        let named = FrameName {
            name: Cow::Borrowed(name),
            offset: *offset,
            dso: Cow::Borrowed(path),
            source: None,
            is_one_of_several: false,
        };
        Answer::Named(named, ALWAYS)
    }

    /// Looks up the functions at all these places (pairs of a file's path and an offset in the file), and stores them
    /// for [`answer`](Self::answer): `None` for a place without a function. The offset may be that of a return address.
    pub(super) fn look_up(&mut self, places: BTreeSet<(Vec<u8>, FrameAddr)>, pool: &Pool, warnings: &mut Warnings) {
        let paths: BTreeSet<&Vec<u8>> = places.iter().map(|(path, _)| path).collect();
        let spaces = AddressSpaces::from_files(paths.into_iter().map(|path| Dso::from_path(path.clone(), None)));
        let images = Images::new(spaces.dsos().iter(), self.options.search.clone());
        // All that would name JIT code or the kernel is empty, because only offsets in files are looked up.
        let resolver = Resolver {
            symbolizer: Symbolizer { spaces: &spaces, codes: &CodeMap::default() },
            bpf: &[],
            recorded: &RecordedSymbols::default(),
            images: &images,
            options: self.options,
            kernel: &KernelOptions::default(),
        };
        let location = |path: &Vec<u8>, offset: Addr| match images.id_of(&Dso::from_path(path.clone(), None)) {
            Some(dso) => Location::File(dso, offset.0),
            None => Location::Nothing(offset),
        };
        // A return address is first looked up at the byte before it, which belongs to the call. If the instruction that
        // ends there isn't a call, `find_uncalled` returns the location of the address itself (`Some`).
        let locations: Vec<Location> = places.iter().map(|(path, addr)| location(path, addr.for_lookup())).collect();
        let corrections = resolver.find_uncalled(&locations, pool);
        let mut lookups = Vec::with_capacity(places.len());
        for (((_, addr), location), correction) in places.iter().zip(locations).zip(corrections) {
            lookups.push(match (addr, correction) {
                (FrameAddr::Ip(_), _) => Lookup { location, back: 0 },
                (FrameAddr::Return(_), None) => Lookup { location, back: 1 },
                (FrameAddr::Return(_), Some(exact)) => Lookup { location: exact, back: 0 },
            });
        }
        let wanted = lookups.iter().map(|lookup| lookup.location).collect();
        let functions = find_functions(wanted, &resolver, pool, warnings);
        // If there is no function at the byte before a return address, a function may start at the return address.
        let nameless = lookups.iter().filter(|lookup| lookup.back > 0 && !functions.contains_key(&lookup.location));
        let next_locations = nameless.map(|lookup| lookup.next()).collect();
        let next_functions = find_functions(next_locations, &resolver, pool, warnings);
        for ((path, addr), lookup) in places.into_iter().zip(lookups) {
            let function = match (functions.get(&lookup.location), next_functions.get(&lookup.next())) {
                (Some((name, offset)), _) => Some((name.clone(), offset + lookup.back)),
                // Offset 0: the function starts exactly at the return address.
                (None, Some((name, 0))) if lookup.back > 0 => Some((name.clone(), 0)),
                (None, _) => None,
            };
            self.files.entry(path).or_default().insert(addr, function);
        }
        warnings.append(images.into_warnings());
    }
}

/// Where an offset is looked up.
#[derive(Debug, Clone, Copy)]
struct Lookup {
    location: Location,
    /// How many bytes `location` is before the offset: 1 for a return address, otherwise 0.
    back: u64,
}

impl Lookup {
    /// The location of the next byte.
    fn next(self) -> Location {
        match self.location {
            Location::File(dso, offset) => Location::File(dso, offset.saturating_add(1)),
            other => other,
        }
    }
}

/// The innermost function at each of these locations. Locations without a function aren't in the result.
fn find_functions(
    locations: BTreeSet<Location>,
    resolver: &Resolver<'_>,
    pool: &Pool,
    warnings: &mut Warnings,
) -> FxHashMap<Location, NativeFunction> {
    let locations: Vec<Location> = locations.into_iter().collect();
    let frames = resolver.frames(&locations, pool, warnings);
    let mut functions = FxHashMap::default();
    for (index, location) in locations.into_iter().enumerate() {
        if let Some(frame) = frames.get(index).next()
            && let (Some(name), Some(offset)) = (frame.name, frame.offset)
        {
            functions.insert(location, (frames.text(name).into(), offset));
        }
    }
    functions
}
