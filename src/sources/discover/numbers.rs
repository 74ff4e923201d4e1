//! Dumps and maps that go by the numbers of processes.

use super::{Finder, Source, inner_pid};
use crate::io::is_directory;
use crate::model::Pid;
use crate::model::process::Process;
use crate::sources::account::Kind;
use crate::sources::trust::Named;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

impl Finder<'_> {
    /// Processes with JIT memory that have neither dump nor map.
    pub(super) fn without_sources(&self) -> Vec<Pid> {
        self.not_injected().filter(|pid| self.kinds_of(*pid).next().is_none()).collect()
    }

    /// Processes with JIT memory whose code is not in the recording already.
    pub(super) fn not_injected(&self) -> impl Iterator<Item = Pid> {
        let is_injected = |pid: &Pid| self.processes.by_pid.get(pid).is_some_and(Process::is_injected);
        self.jit_processes.iter().copied().filter(move |pid| !is_injected(pid))
    }

    /// Dumps and maps that go by the numbers of processes.
    pub(super) fn by_number(&mut self) {
        for &pid in self.jit_processes {
            let inner_pids = self.inner_pids(pid);
            for &inner in &inner_pids {
                self.dump_by_number(pid, inner);
            }
            for &inner in &inner_pids {
                if self.map_by_number(pid, inner) {
                    break;
                }
            }
        }
    }

    /// The possible numbers of the process in its own namespace, the most likely first.
    pub(super) fn inner_pids(&self, pid: Pid) -> Vec<Pid> {
        let said = self.options.map_pid.iter().filter(|(_, outer)| *outer == pid).map(|(inner, _)| *inner);
        let namespace = self.processes.by_pid.get(&pid).and_then(|process| process.inner_pid);
        // A child inherits its parent's marker: that number is the parent's.
        let own = self.markers.of(pid).iter();
        let marker =
            own.filter_map(|marker| inner_pid(&marker.path)).filter(|inner| !self.processes.by_pid.contains_key(inner));
        let running = self.found.live.get(&pid).and_then(|live| live.inner);
        let mut all: Vec<Pid> = said.chain(running).chain(namespace).collect();
        let is_told = !all.is_empty();
        // A file with the outer number was copied by somebody who knew it.
        all.push(pid);
        if !is_told {
            all.extend(marker);
        }
        let mut seen = BTreeSet::new();
        all.retain(|pid| seen.insert(*pid));
        all
    }

    fn dump_by_number(&mut self, pid: Pid, inner: Pid) {
        let base = format!("jit-{inner}.dump");
        let base = OsStr::new(&base);
        let inside = self.inside(pid, &Path::new("/tmp").join(base));
        let asked = self.asked(base, Some(inner), pid).into_iter();
        let usual = self.dump_places(base).into_iter().filter(|_| !self.shared.contains(&inner));
        let candidates: Vec<_> = asked.chain(inside).chain(usual).collect();
        let has_one = self.kinds.contains(&(pid, Kind::JitDump));
        if has_one || candidates.iter().any(|(path, _)| self.seen.contains(path)) {
            return;
        }
        let inner = Some(inner);
        self.first_good(&candidates, |path, contents| Source {
            inner,
            ..Source::new(path, Kind::JitDump, pid, contents)
        });
    }

    pub(super) fn map_by_number(&mut self, pid: Pid, inner: Pid) -> bool {
        let base = format!("perf-{inner}.map");
        let beside = self.site.beside.map(|dir| (dir.join(&base), Named::Habit));
        let inside = self.inside(pid, &Path::new("/tmp").join(&base));
        let is_shared = self.shared.contains(&inner);
        let asked = self
            .options
            .perf_map
            .iter()
            .filter(|given| given.is_meant_for(pid, is_shared) && is_directory(&given.path));
        let asked = asked.map(|given| (given.path.join(&base), Named::Directory));
        let usual = [(Path::new("/tmp").join(&base), Named::Habit)];
        let by_name = beside.into_iter().chain(usual).filter(|_| !is_shared);
        let candidates: Vec<_> = inside.into_iter().chain(asked).chain(by_name).collect();
        let named = self.kinds.contains(&(pid, Kind::PerfMap));
        let inner = Some(inner);
        named
            || self.first_good(&candidates, |path, contents| Source {
                inner,
                ..Source::new(path, Kind::PerfMap, pid, contents)
            })
    }
}
