//! Names frames of JIT code in perf script's text by asking the symbolizer. The text doesn't state where memory for JIT
//! code is mapped, so the symbolizer gets no mappings and only looks into the code map.

use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::formats::perf_script::rewrite::{Answer, FrameName, FrameQuery};
use crate::model::code::Line;
use crate::model::code_file::code_file;
use crate::model::lasting::{Lasting, UNTIMED, intersect};
use crate::model::process::{CpuMode, Marker, Processes};
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::HitKind;
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::SymbolOptions;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Looks up frames in the code map, and caches what is needed for their names.
pub(super) struct Namer<'m> {
    symbolizer: Symbolizer<'m>,
    /// The processes whose JIT code was looked up. What was found is in the code map.
    looked_up: &'m Processes,
    /// For each process, the two names that may be shown as the module of its JIT code: the image that `inject` would
    /// write, and the perf map.
    dsos: BTreeMap<Pid, (Vec<u8>, Vec<u8>)>,
    /// The number of jitdumps that each process had mapped when the code map was built.
    jitdump_counts: BTreeMap<Pid, usize>,
    /// For each piece of code, its source lines, decoded when they are first needed. Empty if source lines aren't
    /// wanted.
    lines: Vec<OnceLock<Vec<Line<'m>>>>,
    symbols: &'m SymbolOptions,
}

impl<'m> Namer<'m> {
    /// Prepares naming with the code map in `symbolizer`. `images` is the directory where `inject` would write its
    /// images; `srcline` says whether source lines are wanted.
    pub(super) fn new(
        symbolizer: Symbolizer<'m>,
        looked_up: &'m Processes,
        images: &Path,
        srcline: bool,
        symbols: &'m SymbolOptions,
    ) -> Self {
        let codes_with_lines = if srcline { symbolizer.codes.code_count() } else { 0 };
        let lines = (0..codes_with_lines).map(|_| OnceLock::new()).collect();
        let mut dsos = BTreeMap::new();
        for &pid in looked_up.by_pid.keys() {
            // `true` gives the image of code from a jitdump, `false` the perf map.
            dsos.insert(pid, (code_file(pid, true, images), code_file(pid, false, images)));
        }
        Self { symbolizer, looked_up, dsos, jitdump_counts: count_jitdumps(looked_up), lines, symbols }
    }

    /// Finds the name of a frame in JIT code. Also says how long the answer holds for the same address, so that it can
    /// be reused.
    pub(super) fn answer(&self, wanted: FrameQuery<'_>) -> Answer<'_> {
        // If the process has mapped another jitdump since the code map was built, the code map must be built again.
        let jitdumps = self.jitdump_counts.get(&wanted.pid).copied().unwrap_or(0);
        if !self.looked_up.by_pid.contains_key(&wanted.pid) || wanted.markers > jitdumps {
            return Answer::NotLoaded;
        }
        let Lasting { answer: located, holds } =
            self.symbolizer.locate(wanted.pid, wanted.addr, wanted.time, CpuMode::User);
        // Frames without a time are looked up at the time `UNTIMED`, where the answer may be another one. So the answer
        // for a frame with a time must not be reused for them.
        let holds = if wanted.time.is_some() { intersect(holds, Nanos(0)..UNTIMED) } else { holds };
        let Some(hit) = located.code else { return Answer::Unknown(holds) };
        let codes = self.symbolizer.codes;
        let code = codes.code(hit.code);
        // A forked child may run code that it inherited from its parent. The module of such code is named after the
        // parent.
        let owner = codes.segment(hit.segment).pid;
        let (image, perf_map) = self.dsos.get(&owner).unwrap_or(&self.dsos[&wanted.pid]);
        // `inject` would put code with times into an image. Code without times is from a perf map.
        let dso = if hit.kind == HitKind::Untimed { perf_map } else { image };
        let lines = self.lines.get(hit.code.0 as usize).map(|lines| lines.get_or_init(|| code.lines.entries()));
        let lines = lines.map_or(&[][..], Vec::as_slice);
        // Lines are sorted by the offset at which their code starts. The last one that starts at or before the frame's
        // offset is that of the frame.
        let line = lines[..lines.partition_point(|line| line.offset <= hit.offset)].last();
        let named = FrameName {
            name: self.symbols.display_name(code.name),
            // For a return address, the byte before it was looked up. Add that byte again.
            offset: hit.offset + (wanted.addr.raw().0 - located.addr.0),
            dso: Cow::Borrowed(dso.as_slice()),
            source: line.map(|line| (Cow::Borrowed(line.file), line.line)),
            // Without a time, other functions that were at the address at other times may be meant.
            is_one_of_several: wanted.time.is_none()
                && hit.kind.is_timed()
                && codes.has_other_names(wanted.pid, located.addr, code.name),
        };
        Answer::Named(named, holds)
    }
}

/// The number of jitdumps that each process has mapped so far.
fn count_jitdumps(processes: &Processes) -> BTreeMap<Pid, usize> {
    let mut count = BTreeMap::new();
    for marker in &processes.markers {
        *count.entry(marker.pid).or_default() += 1;
    }
    count
}

/// Adds the processes `pids`, and their ancestors, to those whose JIT code is loaded. What `facts` says about their
/// forks, execs and mapped jitdumps is added to the processes.
pub(super) fn add_processes(processes: &mut Processes, pids: &BTreeSet<Pid>, facts: &RecordLineFacts) {
    let mut jitdump_counts = count_jitdumps(processes);
    let mut waiting: Vec<Pid> = pids.iter().copied().collect();
    while let Some(pid) = waiting.pop() {
        let process = processes.by_pid.entry(pid).or_default();
        process.has_jit_memory = true;
        process.execs = facts.execs(pid).to_vec();
        // A forked child runs the code of its parent, so the parent's JIT code is needed as well.
        let forked = facts.forked(pid);
        if forked.is_some() && process.forked != forked {
            process.forked = forked;
            waiting.extend(forked.map(|(parent, _)| parent));
        }
        // An earlier call may have added some of the process's jitdumps. They are the first ones of the list, because
        // the list only grows at its end.
        let mapped_jitdumps = facts.markers(pid);
        let already_known = jitdump_counts.insert(pid, mapped_jitdumps.len()).unwrap_or(0);
        for jitdump in mapped_jitdumps.iter().skip(already_known) {
            let path = PathBuf::from(std::ffi::OsString::from_vec(jitdump.path.clone()));
            let (tid, time, addr) = (jitdump.tid, jitdump.time, jitdump.addr);
            processes.markers.push(Marker { pid, tid, path, time, addr, file: None, offset: 0 });
        }
    }
}
