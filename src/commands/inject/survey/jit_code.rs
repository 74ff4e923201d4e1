//! Loads the JIT code that jitdumps, perf maps and logs describe.

use super::SurveyedRecording;
use crate::analysis::quantity::counted;
use crate::commands::inject::options::InjectContext;
use crate::jit::{self, Account, Found, Kind, SourceState};
use crate::model::abi::EM_X86_64;
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::CodeMap;
use std::collections::BTreeMap;

/// The JIT code of a recording's processes.
#[derive(Debug)]
pub(in crate::commands::inject) struct JitCode<'data> {
    /// The code, to look up by process, address and time.
    pub(in crate::commands::inject) map: CodeMap<'data>,
    /// The recorded machine, as ELF's `e_machine`.
    pub(in crate::commands::inject) machine: u16,
    /// The file permissions that images get, taken from the sources.
    pub(in crate::commands::inject) mode: u32,
    pub(in crate::commands::inject) loaded: LoadedSources,
}

/// The sources that were loaded, for the summary at the end.
#[derive(Debug)]
pub(in crate::commands::inject) struct LoadedSources {
    pub(in crate::commands::inject) functions: usize,
    /// The number of processes that have JIT code that isn't inherited from a parent.
    pub(in crate::commands::inject) processes: usize,
    /// How much each source (a jitdump, perf map or log) contributed, or why it was not used.
    pub(in crate::commands::inject) accounts: Vec<Account>,
}

impl LoadedSources {
    pub(in crate::commands::inject) fn new(map: &CodeMap<'_>, accounts: Vec<Account>) -> Self {
        Self { functions: map.code_count(), processes: map.pids().count(), accounts }
    }

    /// A line for the summary: the number of functions, and the number of files of each kind.
    pub(in crate::commands::inject) fn remark(&self) -> String {
        let Self { functions, processes, .. } = self;
        let (mut dumps, mut maps, mut logs) = (0, 0, 0);
        for account in &self.accounts {
            if !matches!(account.state, SourceState::Loaded { .. }) {
                continue;
            }
            match account.kind {
                Kind::JitDump => dumps += 1,
                Kind::PerfMap => maps += 1,
                Kind::Log(_) => logs += 1,
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
        let of = if *processes > 1 { format!(" of {processes} processes") } else { String::new() };
        format!("Loaded {}{of} from {}", counted(*functions as u64, "function"), files.join(" and "))
    }

    /// The time of the last record in each process's jitdumps, on the recording's clock.
    pub(in crate::commands::inject) fn dump_ends(&self) -> BTreeMap<Pid, Nanos> {
        let mut ends = BTreeMap::new();
        for account in self.accounts.iter().filter(|account| account.kind == Kind::JitDump) {
            if let SourceState::Loaded { times: Some((_, last)), .. } = account.state {
                ends.entry(account.pid).and_modify(|end: &mut Nanos| *end = last.max(*end)).or_insert(last);
            }
        }
        ends
    }
}

impl<'data> JitCode<'data> {
    /// Reads the sources that were found.
    pub(in crate::commands::inject) fn load(
        found: &'data Found,
        survey: &SurveyedRecording<'_>,
        context: &mut InjectContext<'_>,
    ) -> Self {
        let jit::Loaded { map, accounts, machine, maps, .. } =
            found.load(&survey.processes, &context.job.pool, &mut context.outcome.warnings);
        context.outcome.summary.extend(maps.remarks());
        let machine = survey.processes.machine.or(machine).unwrap_or(EM_X86_64);
        let loaded = LoadedSources::new(&map, accounts);
        Self { map, machine, mode: found.mode(), loaded }
    }
}
