//! The parts of a recording that are read, and the options.

use crate::analysis::filter::Filter;
use crate::pipeline::open::Input;
use crate::resolve::kernel::KernelOptions;
use crate::resolve::symbols::SymbolOptions;
use crate::sources::SourceOptions;
use std::borrow::Cow;

/// The parts of a recording that are read, and the options.
#[derive(Debug, Clone)]
pub struct RecordingOptions {
    /// The events whose samples count, by name with or without modifiers; empty: all.
    pub event: Vec<String>,
    /// The samples that count.
    pub filter: Filter,
    /// True if addresses are kept, or equal offsets of one file are one.
    pub keep_addr: bool,
    /// True if what was mapped is reported, though neither addresses nor lines are.
    pub keep_modules: bool,
    /// The options for symbols of native code.
    pub symbols: SymbolOptions,
    /// The sources of kernel symbols.
    pub kernel: KernelOptions,
    /// True if samples of different processors are kept apart.
    pub by_cpu: bool,
    /// True if samples of different control groups are kept apart.
    pub by_cgroup: bool,
    /// True if the last branches are reported above the callers.
    pub branch_stack: bool,
    /// The number of frames that a stack may have; `None`: as many as were recorded, or
    /// [`MAX_DEPTH`](crate::resolve::unwind::MAX_DEPTH) if it is unwound.
    pub max_stack: Option<usize>,
    /// True if the last branches are kept beside the stacks.
    pub keep_branches: bool,
    /// True if data addresses and registers are kept beside the stacks.
    pub keep_beside: bool,
    /// True if the data of tracepoints are kept beside the stacks.
    pub keep_trace: bool,
    /// The sources of names of JIT code.
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
