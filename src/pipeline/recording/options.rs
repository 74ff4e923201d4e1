//! What to read of a recording, and how.

use crate::analysis::filter::Filter;
use crate::pipeline::open::Input;
use crate::resolve::kernel::KernelOptions;
use crate::resolve::symbols::SymbolOptions;
use crate::sources::SourceOptions;
use std::borrow::Cow;

/// What to read of a recording, and how.
#[derive(Debug, Clone)]
pub struct RecordingOptions {
    /// The events whose samples count, by name with or without modifiers; empty: all.
    pub event: Vec<String>,
    /// Which samples count.
    pub filter: Filter,
    /// Whether addresses are kept, or equal offsets of one file are one.
    pub keep_addr: bool,
    /// Whether what was mapped is told, though neither addresses nor lines are.
    pub keep_modules: bool,
    /// What is wanted of native code.
    pub symbols: SymbolOptions,
    /// Where kernel symbols come from.
    pub kernel: KernelOptions,
    /// Whether samples of different processors are kept apart.
    pub by_cpu: bool,
    /// Whether samples of different control groups are kept apart.
    pub by_cgroup: bool,
    /// Whether the last branches are told above the callers.
    pub branch_stack: bool,
    /// How many frames a stack may have; `None`: as many as were recorded, or
    /// [`MAX_DEPTH`](crate::resolve::unwind::MAX_DEPTH) if it is unwound.
    pub max_stack: Option<usize>,
    /// Whether the last branches are kept beside the stacks.
    pub keep_branches: bool,
    /// Whether data addresses and registers are kept beside the stacks.
    pub keep_beside: bool,
    /// Where the names of JIT code come from.
    pub sources: SourceOptions,
}

impl RecordingOptions {
    /// The same for this input: an archive has files of its own.
    pub(crate) fn for_input(&self, input: &Input) -> Cow<'_, Self> {
        let Some(packed) = &input.packed else { return Cow::Borrowed(self) };
        let mut own = self.clone();
        packed.add_to_sources(&mut own.sources);
        packed.add_to_search(&mut own.symbols.search);
        Cow::Owned(own)
    }
}
