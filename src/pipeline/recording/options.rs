//! Options for reading a recording.

use crate::analysis::filter::Filter;
use crate::jit::SourceOptions;
use crate::pipeline::open::Input;
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::symbols::SymbolOptions;
use std::borrow::Cow;

/// Options for reading a recording.
#[derive(Debug, Clone)]
pub struct RecordingOptions {
    /// The names of the events to keep, with or without modifiers (`cycles:u` or `cycles`); empty for all.
    pub event: Vec<String>,
    /// The samples to keep.
    pub filter: Filter,
    /// Keep addresses. Otherwise, equal offsets in a file are the same location in all processes.
    pub keep_addr: bool,
    /// Keep what is known of modules, such as where their files were mapped, even if neither addresses nor lines are
    /// kept.
    pub keep_modules: bool,
    /// Where to find symbols of native code, and how to use them.
    pub symbols: SymbolOptions,
    /// Where to find kernel symbols.
    pub kernel: KernelOptions,
    /// Keep samples of different CPUs apart.
    pub by_cpu: bool,
    /// Keep samples of different control groups apart.
    pub by_cgroup: bool,
    /// Add the branches that the CPU recorded before a sample to the sample's stack. They become its innermost frames,
    /// as if the sample's callers had called them.
    pub branch_stack: bool,
    /// The maximum number of frames per stack. If jitgraft unwinds the user's part of a stack, the kernel's part may
    /// have as many. `None` means: no limit for recorded frames, and
    /// [`MAX_DEPTH`](crate::symbolize::unwind::MAX_DEPTH) for unwound ones.
    pub max_stack: Option<usize>,
    /// Keep the branches that the CPU recorded before each sample in a list of their own, for commands that print them.
    pub keep_branches: bool,
    /// Keep data addresses, registers and other fields of samples, for commands that print them.
    pub keep_other_fields: bool,
    /// Keep the data of tracepoints.
    pub keep_trace: bool,
    /// Where to find names of JIT code.
    pub sources: SourceOptions,
}

impl RecordingOptions {
    /// The options for an input. If it is an archive, its files are added to where jitgraft searches.
    pub(crate) fn for_input(&self, input: &Input) -> Cow<'_, Self> {
        let Some(packed) = &input.packed else { return Cow::Borrowed(self) };
        let mut own = self.clone();
        packed.add_to_sources(&mut own.sources);
        packed.add_to_search(&mut own.symbols.search);
        Cow::Owned(own)
    }
}
