//! Everything that names JIT code, for every command alike: find → trust → clock → pid mapping → load → one
//! [`CodeMap`](crate::resolve::code_map::CodeMap).
//!
//! A command says what its input knows ([`Processes`](crate::model::process::Processes)) and what the user asked
//! for ([`SourceOptions`]); it gets a code map and a list of what became of every dump and map.

use crate::model::{Addr, Pid};
use std::path::PathBuf;

/// Where to look for names, and what to believe. From the command line; the same flags for every command.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// `--jitdump PATH|DIR`: looked at before the runtimes' usual places.
    pub jitdump: Vec<PathBuf>,
    /// `--perf-map PATH|DIR`.
    pub perf_map: Vec<PathBuf>,
    /// `--elf FILE@ADDR`: an ELF object placed at an address.
    pub elf: Vec<(PathBuf, Addr)>,
    /// `--map-pid INNER=OUTER`.
    pub map_pid: Vec<(Pid, Pid)>,
    /// `-f`: use files of other owners too.
    pub force: bool,
}
