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
    files: FxHashMap<Vec<u8>, FxHashMap<u64, Option<NativeFunction>>>,
}

impl<'a> Natives<'a> {
    pub(super) fn new(options: &'a SymbolOptions) -> Self {
        Self { options, files: FxHashMap::default() }
    }

    /// The function at an offset in a file (`addr`). [`Answer::NotLoaded`] if the offset hasn't been looked up yet.
    pub(super) fn answer(&self, file: &[u8], addr: FrameAddr) -> Answer<'_> {
        let lookup = addr.for_lookup();
        let Some((path, known)) = self.files.get_key_value(file) else { return Answer::NotLoaded };
        let Some(function) = known.get(&lookup.0) else { return Answer::NotLoaded };
        let (name, offset) = match (function, known.get(&addr.raw().0)) {
            (Some((name, offset)), _) => (name, offset + (addr.raw().0 - lookup.0)),
            // The return address is the very start of a function, and no function is known at the byte before it.
            // Signal handlers return to such a function, which nobody called.
            (None, Some(Some((name, 0)))) => (name, 0),
            (None, _) => return Answer::Unknown(ALWAYS),
        };
        let named = FrameName {
            name: Cow::Borrowed(name),
            offset,
            dso: Cow::Borrowed(path),
            source: None,
            is_one_of_several: false,
        };
        Answer::Named(named, ALWAYS)
    }

    /// Looks up all these offsets in files (pairs of path and offset).
    pub(super) fn look_up(&mut self, places: BTreeSet<(Vec<u8>, u64)>, pool: &Pool, warnings: &mut Warnings) {
        let unknown = self.find(places, pool, warnings);
        // If there is no function at the byte before a return address, a function may start at the return address.
        let next_bytes = unknown.into_iter().map(|(path, offset)| (path, offset.saturating_add(1)));
        self.find(next_bytes.collect(), pool, warnings);
    }

    /// Looks up offsets in files. Returns those where no function was found; if they are of return addresses, a
    /// function may start at the next byte.
    fn find(&mut self, places: BTreeSet<(Vec<u8>, u64)>, pool: &Pool, warnings: &mut Warnings) -> Vec<(Vec<u8>, u64)> {
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
        let mut locations = Vec::with_capacity(places.len());
        for (path, offset) in &places {
            locations.push(match images.id_of(&Dso::from_path(path.clone(), None)) {
                Some(dso) => Location::File(dso, *offset),
                None => Location::Nothing(Addr(*offset)),
            });
        }
        let frames = resolver.frames(&locations, pool, warnings);
        let mut unknown = Vec::new();
        for (index, (path, offset)) in places.into_iter().enumerate() {
            // The first frame is the innermost.
            let frame = frames.get(index).next();
            let function = frame.and_then(|frame| Some((frames.text(frame.name?).into(), frame.offset?)));
            if function.is_none() {
                unknown.push((path.clone(), offset));
            }
            self.files.entry(path).or_default().insert(offset, function);
        }
        warnings.append(images.into_warnings());
        unknown
    }
}
