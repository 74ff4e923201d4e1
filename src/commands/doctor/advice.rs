//! Causes in words, and what to do about each.

use super::causes::Cause;
use super::examined::Examined;
use crate::model::Pid;
use crate::model::programs::Programs;
use crate::model::runtimes::{Runtime, RuntimeSet};
use crate::resolve::dso::{Dso, DsoId};
use crate::sources::{Account, ClockUse, Kind, SourceState};

/// What was asked of the recorder, and all that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoctorContext<'a> {
    pub(super) examined: &'a Examined<'a>,
    /// What its processes ran.
    pub(super) programs: &'a Programs<'a>,
    /// Whether user stacks were copied.
    pub(super) dwarf: bool,
}

impl DoctorContext<'_> {
    fn dso(&self, id: DsoId) -> &Dso {
        self.examined.resolution.spaces.dsos().get(id)
    }

    /// What the process runs, if it is a runtime.
    pub(super) fn runtime(&self, pid: Pid) -> Option<&'static Runtime> {
        RuntimeSet::of_process(self.programs, pid).first()
    }

    fn who(&self, pid: Pid) -> String {
        format!("process {pid} ({})", self.programs.name(pid))
    }
}

/// What is the matter.
pub(super) fn cause(cause: Cause, asked: DoctorContext<'_>) -> String {
    let file = |id| format!("{}{}", String::from_utf8_lossy(asked.dso(id).label()), build_id(asked.dso(id)));
    match cause {
        Cause::Memory(pid) if loaded(asked.examined.accounts(), pid).next().is_some() => {
            format!("memory without a file in {}, at addresses that its dumps and maps do not cover", asked.who(pid))
        }
        Cause::Memory(pid) => {
            format!("memory without a file in {}, and no dump or map that tells of it", asked.who(pid))
        }
        Cause::Nowhere(pid) => format!("addresses where nothing was mapped in {}", asked.who(pid)),
        Cause::Missing(id) => format!("{} is not here", file(id)),
        Cause::OtherVersion(id) => format!("{} is here in another version than the one that ran", file(id)),
        Cause::Stripped(id) => format!("{} has no symbol table", file(id)),
        Cause::Gap(id) => format!("{} has no symbol at these addresses", file(id)),
        Cause::Kernel => "the kernel's symbols are not known".to_owned(),
        Cause::Guest => "code of a virtual machine's guest".to_owned(),
    }
}

/// What to do.
pub(super) fn advice(cause: Cause, asked: DoctorContext<'_>) -> String {
    match cause {
        Cause::Memory(pid) => memory(pid, asked),
        Cause::Nowhere(_) if asked.dwarf => {
            "the stack was unwound wrongly or the memory was never reported: nothing can name these".to_owned()
        }
        Cause::Nowhere(_) => "no return addresses, most likely: a caller keeps no frame pointer; record with --call-graph dwarf, \
                              or build with -fno-omit-frame-pointer"
            .to_owned(),
        Cause::Missing(_) => "bring the recorded machine's files: --symfs DIR; or there `perf archive`, unpacked into ~/.debug".to_owned(),
        Cause::OtherVersion(_) => {
            "find the file with the recorded build ID (perf archive on the recorded machine, or debuginfod-find executable ID) \
             and put it into ~/.debug, or give its root by --symfs DIR"
                .to_owned()
        }
        Cause::Stripped(_) => "install the debugging symbols of these (Debian: the packages' -dbgsym), or fetch them by build ID \
             (debuginfod-find debuginfo ID) and give their directory by --debug-dir"
            .to_owned(),
        Cause::Gap(_) => "padding, or code that its authors gave no symbol: debugging information may tell more (--debug-dir DIR)".to_owned(),
        Cause::Kernel => "give --kallsyms a copy of the recorded machine's /proc/kallsyms, read by root (kernel.kptr_restrict hides \
                          its addresses from others)"
            .to_owned(),
        Cause::Guest => "its symbols are inside the guest: record there".to_owned(),
    }
}

fn memory(pid: Pid, asked: DoctorContext<'_>) -> String {
    let runtime = asked.runtime(pid);
    let failed = asked.examined.accounts().iter().find(|account| {
        account.pid == pid && matches!(account.state, SourceState::Missing { .. } | SourceState::Refused(_))
    });
    if let Some(account) = failed {
        let path = account.path.display();
        return match &account.state {
            SourceState::Refused(why) => format!("{path}: {why}"),
            _ => format!("{path} was written but is gone: say where it is with --jitdump, or record again and keep it"),
        };
    }
    let covered = loaded(asked.examined.accounts(), pid).next().is_some();
    match (covered, runtime) {
        (true, _) => "code that the runtime does not log (stubs, trampolines), or that it made before it began to log".to_owned(),
        (false, Some(runtime)) => match runtime.advice() {
            Some(how) => format!("{how}; or give what it left by --jitdump or --perf-map"),
            None => runtime.unnamed.to_owned(),
        },
        (false, None) => "if a JIT compiler runs there, make it write a perf map or a jitdump, and give it by --perf-map or --jitdump \
                          if it is not in a usual place"
            .to_owned(),
    }
}

/// By which a file can be found in the version that ran.
fn build_id(dso: &Dso) -> String {
    let Some(id) = dso.build_id else { return String::new() };
    let hex: String = id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(" (build ID {hex})")
}

fn loaded(accounts: &[Account], pid: Pid) -> impl Iterator<Item = &Account> {
    accounts.iter().filter(move |account| account.pid == pid && matches!(account.state, SourceState::Loaded { .. }))
}

/// What became of a dump or map.
pub(super) fn source(account: &Account) -> String {
    let kind = match account.kind {
        Kind::JitDump => "jitdump",
        Kind::PerfMap => "perf map",
        Kind::PlacedElf => "ELF object",
    };
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let places: Vec<_> = looked_at.iter().map(|path| path.display().to_string()).collect();
            format!("missing; looked for at {}", places.join(", "))
        }
        SourceState::Refused(why) => format!("not used: {why}"),
        SourceState::Loaded { codes, skipped, clock } => {
            let skipped = if *skipped > 0 { format!(", {skipped} records skipped") } else { String::new() };
            format!("{codes} pieces of code{skipped}{}", clock_used(*clock))
        }
    };
    format!("{kind} {}: {state}", account.path.display())
}

fn clock_used(clock: Option<ClockUse>) -> String {
    match clock {
        Some(ClockUse::Same) => String::new(),
        None => ", without times".to_owned(),
        Some(ClockUse::Tsc) => ", times converted from the processor's counter".to_owned(),
        Some(ClockUse::Estimated { error }) => {
            format!(", times estimated to within {:.3} ms: record with -k mono", error as f64 / 1e6)
        }
        Some(ClockUse::Dropped) => ", times not usable: record with -k mono".to_owned(),
    }
}
