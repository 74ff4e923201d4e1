//! Loads the JIT code that jitdumps, perf maps and logs describe.

use super::SurveyedRecording;
use crate::analysis::quantity::counted;
use crate::commands::inject::options::InjectContext;
use crate::jit::{Found, Kind, Loaded, SourceState};
use crate::model::abi::EM_X86_64;
use crate::model::{Nanos, Pid};
use std::collections::BTreeMap;

/// The JIT code of a recording's processes.
#[derive(Debug)]
pub(in crate::commands::inject) struct JitCode<'data> {
    /// The code, and what became of each source.
    pub(in crate::commands::inject) loaded: Loaded<'data>,
    /// The recorded machine, as ELF's `e_machine`.
    pub(in crate::commands::inject) machine: u16,
    /// The permissions of image files. They allow no more than those of the sources that the code is from.
    pub(in crate::commands::inject) mode: u32,
}

impl<'data> JitCode<'data> {
    /// Reads the sources that were found, and determines the machine that their code is for.
    pub(in crate::commands::inject) fn load(
        found: &'data Found,
        survey: &SurveyedRecording<'_>,
        context: &mut InjectContext<'_>,
    ) -> Self {
        let processes = &survey.first_pass.processes;
        let loaded = found.load(processes, &context.job.pool, &mut context.outcome.warnings);
        context.outcome.summary.extend(loaded.source_maps.remarks());
        // The recording's machine or, if it isn't stated, that of the jitdumps. perf maps don't state any, so take the
        // most common one.
        let machine = processes.machine.or(loaded.machine).unwrap_or(EM_X86_64);
        Self { loaded, machine, mode: found.mode() }
    }

    /// The time of the last record in each process's jitdumps, on the recording's clock.
    pub(in crate::commands::inject) fn dump_ends(&self) -> BTreeMap<Pid, Nanos> {
        let mut ends = BTreeMap::new();
        for account in self.loaded.accounts.iter().filter(|account| account.kind == Kind::JitDump) {
            if let SourceState::Loaded { times: Some((_, last)), .. } = account.state {
                ends.entry(account.pid).and_modify(|end: &mut Nanos| *end = last.max(*end)).or_insert(last);
            }
        }
        ends
    }
}

/// A line for the summary: the number of functions, and the number of files of each kind.
pub(in crate::commands::inject) fn describe_sources(loaded: &Loaded<'_>) -> String {
    let (mut dumps, mut maps, mut logs) = (0, 0, 0);
    for account in &loaded.accounts {
        if !matches!(account.state, SourceState::Loaded { .. }) {
            continue;
        }
        match account.kind {
            Kind::JitDump => dumps += 1,
            Kind::PerfMap => maps += 1,
            Kind::Log(_) => logs += 1,
            // An ELF object that the user placed in memory (`--elf`) isn't any of these kinds, so it isn't listed.
            Kind::PlacedElf => {}
        }
    }
    let mut files: Vec<String> = Vec::new();
    for (count, word) in [(dumps, "jitdump"), (maps, "perf map"), (logs, "log")] {
        if count > 0 {
            files.push(counted(count, word));
        }
    }
    if files.is_empty() {
        return "No dumps, maps or logs of JIT code were loaded".to_owned();
    }
    // A forked process that only inherits its parent's JIT code isn't counted.
    let processes = loaded.map.pids().count();
    let owners = if processes > 1 { format!(" of {processes} processes") } else { String::new() };
    format!("Loaded {}{owners} from {}", counted(loaded.map.code_count() as u64, "function"), files.join(" and "))
}
