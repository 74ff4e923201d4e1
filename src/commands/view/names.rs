//! Spells function names in the same way in the page's stacks, listings and list of compiled code.

use crate::analysis::label;
use crate::model::chains::PlaceId;
use crate::model::printable::readable;
use crate::model::stacks::{FrameKind, UNKNOWN};
use crate::pipeline::recording::Examined;
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use crate::symbolize::code_map::CodeId;
use crate::symbolize::symbols::SymbolOptions;
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// Spells the function names of one recording in the same way as the page's profile does.
#[derive(Debug)]
pub(super) struct PageNames {
    /// Makes names of JIT code readable. `None` if names are kept as the runtime wrote them.
    readable: Option<ReadableNames>,
    /// All names of JIT code, sampled or not, as the runtime wrote them (but demangled).
    jit: FxHashSet<Vec<u8>>,
    symbols: SymbolOptions,
}

impl PageNames {
    /// Creates a speller for the names of a recording. `jit_names` says how to spell names of JIT code.
    pub(super) fn new(examined: &Examined<'_>, jit_names: JitNames, symbols: &SymbolOptions) -> Self {
        // Names of JIT code are made readable in the light of all names in the profile, so collect the sampled ones
        // first.
        let mut sampled: FxHashSet<Vec<u8>> = FxHashSet::default();
        for place in 0..examined.samples.chains.places().len() as u32 {
            for frame in examined.named.frames(PlaceId(place)) {
                if frame.kind == FrameKind::Jit && !frame.inlined {
                    let name = frame.name.unwrap_or(UNKNOWN);
                    if !sampled.contains(name) {
                        sampled.insert(name.to_vec());
                    }
                }
            }
        }
        let readable = (jit_names != JitNames::Raw)
            .then(|| ReadableNames::new(sampled.iter().map(Vec::as_slice), jit_names == JitNames::Merged));
        let map = &examined.resolution.sources.map;
        let codes =
            (0..map.code_count() as u32).map(|code| symbols.display_name(map.code(CodeId(code)).name).into_owned());
        // `jit` tells which names are those of JIT code, sampled or not. Names without samples are added only now that
        // `readable` is made, so they have no influence on it.
        let mut jit = sampled;
        jit.extend(codes);
        Self { readable, jit, symbols: symbols.clone() }
    }

    /// A speller for an input whose names stay as they are.
    pub(super) fn plain() -> Self {
        Self { readable: None, jit: FxHashSet::default(), symbols: SymbolOptions::default() }
    }

    /// Spells the name of JIT code. The module is only shown if the code has no name.
    pub(super) fn jit(&self, name: &[u8], module: Option<&[u8]>) -> String {
        let name = self.symbols.display_name(name);
        let name = self.readable.as_ref().map_or(Cow::Borrowed(&*name), |readable| readable.convert(&name));
        readable(label::function_name(&name, module).as_bytes()).into_owned()
    }

    /// Spells the name of any function.
    pub(super) fn function(&self, name: &[u8], module: Option<&[u8]>, is_jit: bool) -> String {
        if is_jit {
            self.jit(name, module)
        } else {
            readable(label::function_name(name, module).as_bytes()).into_owned()
        }
    }

    /// Spells the name of a branch target, for which neither module nor kind is known.
    pub(super) fn target(&self, name: &[u8]) -> String {
        self.function(name, None, self.jit.contains(name))
    }
}
