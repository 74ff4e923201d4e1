//! Names frames in perf script's text by looking them up in the code map.

use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::formats::perf_script::rewrite::{Answer, Named, Wanted};
use crate::model::code::Line;
use crate::model::lasting::{ALWAYS, UNTIMED};
use crate::model::process::{Marker, Processes};
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::{CodeMap, Hit, HitKind};
use crate::symbolize::symbols::SymbolOptions;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Looks up frames in the code map, and caches what is needed for their names.
pub(super) struct Namer<'m, 'data> {
    map: &'m CodeMap<'data>,
    asked: &'m Processes,
    /// For each process, the two names that may be shown as the module of its JIT code: the image that `inject` would
    /// write, and the perf map.
    dsos: BTreeMap<Pid, (Vec<u8>, Vec<u8>)>,
    /// The number of jitdumps that each process had mapped when the code map was built.
    markers: BTreeMap<Pid, usize>,
    /// For each piece of code, its source lines, decoded when they are first needed. Empty if source lines aren't
    /// wanted.
    lines: Vec<OnceLock<Vec<Line<'data>>>>,
    symbols: &'m SymbolOptions,
}

impl<'m, 'data> Namer<'m, 'data> {
    pub(super) fn new(
        map: &'m CodeMap<'data>,
        asked: &'m Processes,
        images: &Path,
        srcline: bool,
        symbols: &'m SymbolOptions,
    ) -> Self {
        let lines = (0..if srcline { map.code_count() } else { 0 }).map(|_| OnceLock::new()).collect();
        let dsos = asked.by_pid.keys().map(|&pid| {
            let image = images.join(format!("jitted-{pid}.so")).into_os_string().into_vec();
            (pid, (image, format!("/tmp/perf-{pid}.map").into_bytes()))
        });
        let dsos = dsos.collect();
        Self { map, asked, dsos, markers: markers_by_process(asked), lines, symbols }
    }

    pub(super) fn answer(&self, wanted: Wanted<'_>) -> Answer<'_> {
        let asked = self.asked.by_pid.get(&wanted.pid);
        // If the process has mapped another jitdump since the code map was built, the code map must be built again.
        let markers = self.markers.get(&wanted.pid).copied().unwrap_or(0);
        let Some(process) = asked.filter(|_| wanted.markers <= markers) else { return Answer::NotLoaded };
        let at = self.map.lookup_address(wanted.pid, wanted.addr, wanted.time);
        let Some(hit) = self.map.lookup(wanted.pid, at, wanted.time) else {
            // A forked child may run its parent's program at one time and its own at another. An address without code
            // at this time may therefore have code at another.
            let never = process.forked.is_none() && self.map.lookup(wanted.pid, at, None).is_none();
            return Answer::Unknown(if never { ALWAYS } else { moment(wanted.time.unwrap_or(UNTIMED)) });
        };
        let code = self.map.code(hit.code);
        // Inherited code belongs to the modules of the parent.
        let owner = self.map.segment(hit.segment).pid;
        let (image, map) = self.dsos.get(&owner).unwrap_or(&self.dsos[&wanted.pid]);
        let dso = if hit.kind == HitKind::Untimed { map } else { image };
        let lines = self.lines.get(hit.code.0 as usize).map(|lines| lines.get_or_init(|| code.lines.entries()));
        let lines = lines.map_or(&[][..], Vec::as_slice);
        let line = lines[..lines.partition_point(|line| line.offset <= hit.offset)].last();
        let named = Named {
            name: self.symbols.display_name(code.name),
            offset: hit.offset + (wanted.addr.raw().0 - at.0),
            dso: Cow::Borrowed(dso.as_slice()),
            source: line.map(|line| (Cow::Borrowed(line.file), line.line)),
            is_one_of_several: wanted.time.is_none()
                && hit.kind.is_timed()
                && self.map.has_other_names(wanted.pid, at, code.name),
        };
        Answer::Named(named, self.valid(&wanted, hit))
    }

    /// The time range in which looking up the same address gives the same answer.
    fn valid(&self, wanted: &Wanted<'_>, hit: Hit) -> Range<Nanos> {
        let last = || self.map.lookup(wanted.pid, wanted.addr.for_lookup(), None);
        match (hit.kind, wanted.time) {
            (_, None) => moment(UNTIMED),
            // Only for code of the process itself: a child may replace inherited code at any time.
            (HitKind::Live, Some(_)) if self.map.segment(hit.segment).pid == wanted.pid => {
                let segment = self.map.segment(hit.segment);
                segment.from..segment.until.min(UNTIMED)
            }
            // If even the last code at this address has no time, no code with a time was ever there. The answer then
            // holds as long as the process runs the program to which the untimed names belong.
            (HitKind::Untimed, Some(time)) if last().is_some_and(|last| last.kind == HitKind::Untimed) => {
                let owner = self.map.segment(hit.segment).pid;
                let named = self.map.untimed_period(owner);
                if owner == wanted.pid || named == ALWAYS { named } else { moment(time) }
            }
            (_, Some(time)) => moment(time),
        }
    }
}

/// The time range that only contains `time`.
fn moment(time: Nanos) -> Range<Nanos> {
    time..Nanos(time.0.saturating_add(1))
}

/// The number of jitdumps that each process has mapped so far.
fn markers_by_process(processes: &Processes) -> BTreeMap<Pid, usize> {
    let mut count = BTreeMap::new();
    for marker in &processes.markers {
        *count.entry(marker.pid).or_default() += 1;
    }
    count
}

/// Adds processes and their ancestors to those whose JIT code is loaded, with the forks, execs and mappings of jitdumps
/// that are known from the text.
pub(super) fn ask_for(processes: &mut Processes, pids: &BTreeSet<Pid>, facts: &RecordLineFacts) {
    let mut known = markers_by_process(processes);
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
        let markers = facts.markers(pid);
        let known = known.insert(pid, markers.len()).unwrap_or(0);
        for marked in markers.iter().skip(known) {
            let path = PathBuf::from(std::ffi::OsString::from_vec(marked.path.clone()));
            let (tid, time, addr) = (marked.tid, marked.time, marked.addr);
            processes.markers.push(Marker { pid, tid, path, time, addr, file: None, offset: 0 });
        }
    }
}
