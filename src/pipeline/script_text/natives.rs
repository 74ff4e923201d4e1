//! Names for frames of files, where the text shows their mappings (`--native`).
//!
//! A text has no build IDs: the files that are here are taken for those that ran. What a block asks for is looked up
//! in one go, and kept.

use crate::error::Warnings;
use crate::formats::perf_script::rewrite::{Answer, Named};
use crate::model::FrameAddr;
use crate::model::lasting::ALWAYS;
use crate::parallel::Pool;
use crate::resolve::dso::{Dso, DsoId};
use crate::resolve::symbols::images::Images;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A function, and how far into it.
type NativeFunction = (Box<[u8]>, u64);

/// What was looked up so far.
#[derive(Debug)]
pub(super) struct Natives<'a> {
    options: &'a SymbolOptions,
    files: FxHashMap<Vec<u8>, FxHashMap<u64, Option<NativeFunction>>>,
}

impl<'a> Natives<'a> {
    pub(super) fn new(options: &'a SymbolOptions) -> Self {
        Self { options, files: FxHashMap::default() }
    }

    /// What is at an offset in a file.
    pub(super) fn answer(&self, file: &[u8], addr: FrameAddr) -> Answer<'_> {
        let at = addr.for_lookup();
        let known = self.files.get_key_value(file).and_then(|(path, known)| Some((path, known.get(&at.0)?)));
        let Some((path, function)) = known else { return Answer::NotLoaded };
        let Some((name, offset)) = function else { return Answer::Unknown(ALWAYS) };
        let offset = offset + (addr.raw().0 - at.0);
        let named = Named {
            name: Cow::Borrowed(name),
            offset,
            dso: Cow::Borrowed(path),
            source: None,
            is_one_of_several: false,
        };
        Answer::Named(named, ALWAYS)
    }

    /// Looks these offsets in files up.
    pub(super) fn look_up(&mut self, places: BTreeSet<(Vec<u8>, u64)>, pool: &Pool, warnings: &mut Warnings) {
        let mut wanted: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for (path, offset) in places {
            wanted.entry(path).or_default().push(offset);
        }
        let dso = |path: &Vec<u8>| Dso { path: path.clone(), build_id: None, kind: Dso::kind_of_user_path(path) };
        let dsos: Vec<Dso> = wanted.keys().map(dso).collect();
        let ids = || (0..).map(DsoId);
        let images = Images::new(ids().zip(&dsos), self.options.search.clone());
        let requests: Vec<Request> = ids()
            .zip(wanted.values())
            .map(|(dso, offsets)| Request { dso, offsets: offsets.clone(), base: Base::File })
            .collect();
        let parts = symbols::resolve(&requests, &images, self.options, pool, warnings);
        let mut found = parts.iter().flat_map(|part| (0..part.len()).map(move |at| (part, part.of(at).first())));
        for (path, offsets) in wanted {
            let known = self.files.entry(path).or_default();
            for (offset, (part, frame)) in offsets.into_iter().zip(found.by_ref()) {
                let function = frame.and_then(|frame| Some((part.text(frame.name?).into(), frame.offset?)));
                known.insert(offset, function);
            }
        }
        warnings.append(images.into_warnings());
    }
}
