//! The names of threads over time.
//!
//! A thread has the name from its most recent COMM record. A new thread has the name that its parent had at the fork.
//! An exec renames the thread. perf shows a thread without a name as `:TID`.

use super::texts::Texts;
use super::{Nanos, Pid, Tid};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The names of a recording's threads. Add all records first, then call [`Threads::settle`], then look up names.
#[derive(Debug, Default, Clone)]
pub struct Threads {
    events: Vec<ThreadEvent>,
    texts: Texts<ThreadNameNo>,
    /// For each thread, the range of indices in `names` that are its names.
    threads: FxHashMap<Tid, (u32, u32)>,
    /// Names and the times from which they apply, thread by thread and sorted by time.
    names: Vec<(Nanos, ThreadNameNo)>,
}

/// Index of a name in `texts`.
type ThreadNameNo = u32;

#[derive(Debug, Clone, Copy)]
struct ThreadEvent {
    time: Nanos,
    tid: Tid,
    kind: ThreadEventKind,
}

#[derive(Debug, Clone, Copy)]
enum ThreadEventKind {
    Named(ThreadNameNo),
    ForkedFrom(Tid),
}

impl Threads {
    /// Adds a COMM record. Returns the name's ID; IDs are assigned in order of first appearance.
    pub fn add_name(&mut self, time: Nanos, tid: Tid, name: &[u8]) -> usize {
        let name = self.texts.intern(name);
        self.events.push(ThreadEvent { time, tid, kind: ThreadEventKind::Named(name) });
        name as usize
    }

    /// Adds a FORK record.
    pub fn add_fork(&mut self, time: Nanos, tid: Tid, parent: Tid) {
        self.events.push(ThreadEvent { time, tid, kind: ThreadEventKind::ForkedFrom(parent) });
    }

    /// Prepares lookups: sorts the records by time. Records with the same time keep the order in which they were added.
    /// Call it once, before looking up names.
    pub fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| event.time);
        let nameless = self.texts.intern(b"");
        // The name that each thread has after the events so far.
        let mut current: FxHashMap<Tid, ThreadNameNo> = FxHashMap::default();
        let mut changes: Vec<(Tid, Nanos, ThreadNameNo)> = Vec::with_capacity(events.len());
        for ThreadEvent { time, tid, kind } in events {
            let name = match kind {
                ThreadEventKind::Named(name) => name,
                // If nothing is known about the parent, the thread gets no name, rather than keep that of an earlier
                // thread with the same ID.
                ThreadEventKind::ForkedFrom(parent) => current.get(&parent).copied().unwrap_or(nameless),
            };
            current.insert(tid, name);
            changes.push((tid, time, name));
        }
        // The sort is stable, so each thread's changes stay in the order of time.
        changes.sort_by_key(|(tid, ..)| *tid);
        self.threads.reserve(current.len());
        for of_thread in changes.chunk_by(|(one, ..), (other, ..)| one == other) {
            let (tid, ..) = of_thread[0];
            let start = self.names.len() as u32;
            self.names.extend(of_thread.iter().map(|&(_, time, name)| (time, name)));
            self.threads.insert(tid, (start, self.names.len() as u32));
        }
    }

    /// The names of a thread, by time. If the thread has none, those of its process's first thread.
    fn names(&self, pid: Option<Pid>, tid: Option<Tid>) -> &[(Nanos, ThreadNameNo)] {
        let main_thread = pid.map(|pid| Tid(pid.0));
        for tid in [tid, main_thread].into_iter().flatten() {
            if let Some(&(start, end)) = self.threads.get(&tid) {
                return &self.names[start as usize..end as usize];
            }
        }
        &[]
    }

    /// The name of a thread at `time` (`None`: at the end of the recording). Before its first recorded name, a thread
    /// is assumed to have had that name already, because recorders may write down existing threads late. As in perf,
    /// the idle task (ID 0) is called `swapper`, and a thread whose name isn't known is called `:TID`. Empty if neither
    /// ID is known.
    pub fn name(&self, pid: Option<Pid>, tid: Option<Tid>, time: Option<Nanos>) -> Cow<'_, [u8]> {
        if tid == Some(Tid(0)) && pid.is_none_or(|pid| pid.0 == 0) {
            return Cow::Borrowed(b"swapper");
        }
        let Some(tid) = tid.or(pid.map(|pid| Tid(pid.0))) else { return Cow::Borrowed(b"") };
        let names = self.names(pid, Some(tid));
        // The index of the first name after `time`; the number of names if there is no `time`.
        let next = names.partition_point(|(from, _)| time.is_none_or(|time| *from <= time));
        // If `time` is before the first name, `next` is 0, and the first name is taken.
        if let Some((_, name)) = names.get(next.saturating_sub(1)) {
            let name = self.texts.get(*name);
            if !name.is_empty() {
                return Cow::Borrowed(name);
            }
        }
        Cow::Owned(format!(":{tid}").into_bytes())
    }

    /// The first time after `time` at which [`Threads::name`] may give another answer.
    pub fn holds_until(&self, pid: Option<Pid>, tid: Option<Tid>, time: Nanos) -> Nanos {
        let names = self.names(pid, tid);
        let next = names.get(names.partition_point(|(from, _)| *from <= time));
        next.map_or(Nanos(u64::MAX), |(from, _)| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_from_their_time_and_are_inherited() {
        let mut threads = Threads::default();
        threads.add_fork(Nanos(20), Tid(8), Tid(7));
        threads.add_name(Nanos(10), Tid(7), b"bash");
        threads.add_name(Nanos(30), Tid(8), b"node");
        threads.add_name(Nanos(40), Tid(7), b"sh");
        threads.settle();
        let name = |tid, time| threads.name(Some(Pid(7)), Some(Tid(tid)), Some(Nanos(time))).into_owned();
        assert_eq!(name(8, 25), b"bash");
        assert_eq!(name(8, 30), b"node");
        assert_eq!(name(7, 39), b"bash");
        assert_eq!(name(7, 5), b"bash");
        assert_eq!(threads.holds_until(None, Some(Tid(7)), Nanos(10)), Nanos(40));
        assert_eq!(threads.name(None, Some(Tid(9)), None).into_owned(), b":9");
        assert_eq!(threads.name(Some(Pid(0)), Some(Tid(0)), None).into_owned(), b"swapper");
    }
}
