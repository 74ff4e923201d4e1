//! Threads over time: whose they are, and what they are called when.
//!
//! A thread has the name of its last COMM record before; a new one has its parent's at the fork, until it gets one of
//! its own; a process that execs names all anew. perf shows a thread without a name as `:TID`.

use super::texts::Texts;
use super::{Nanos, Pid, Tid};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The names of a recording's threads. Fill it, then [`Threads::settle`], then ask.
#[derive(Debug, Default, Clone)]
pub struct Threads {
    events: Vec<ThreadEvent>,
    texts: Texts<ThreadNameNo>,
    /// By thread, where its names are in `names`.
    threads: FxHashMap<Tid, (u32, u32)>,
    /// In time order for each thread: from when, and which.
    names: Vec<(Nanos, ThreadNameNo)>,
}

/// The number of a name in the texts.
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
    /// A COMM record. Gives the name's number: names are counted as they come first.
    pub fn named(&mut self, time: Nanos, tid: Tid, name: &[u8]) -> usize {
        let name = self.texts.intern(name);
        self.events.push(ThreadEvent { time, tid, kind: ThreadEventKind::Named(name) });
        name as usize
    }

    /// A FORK record.
    pub fn forked(&mut self, time: Nanos, tid: Tid, parent: Tid) {
        self.events.push(ThreadEvent { time, tid, kind: ThreadEventKind::ForkedFrom(parent) });
    }

    /// Puts what was reported into the order of time (equal times in the order reported).
    pub fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| event.time);
        let nameless = self.texts.intern(b"");
        let mut last: FxHashMap<Tid, ThreadNameNo> = FxHashMap::default();
        let mut named: Vec<(Tid, Nanos, ThreadNameNo)> = Vec::with_capacity(events.len());
        for ThreadEvent { time, tid, kind } in events {
            let name = match kind {
                ThreadEventKind::Named(name) => name,
                // Numbers are used again: what the former thread was called holds no longer.
                ThreadEventKind::ForkedFrom(parent) => last.get(&parent).copied().unwrap_or(nameless),
            };
            last.insert(tid, name);
            named.push((tid, time, name));
        }
        named.sort_by_key(|(tid, ..)| *tid);
        self.threads.reserve(last.len());
        for names in named.chunk_by(|(one, ..), (other, ..)| one == other) {
            let start = self.names.len() as u32;
            self.names.extend(names.iter().map(|&(_, time, name)| (time, name)));
            self.threads.insert(names[0].0, (start, self.names.len() as u32));
        }
    }

    /// A thread's names; of one that was never named, none.
    fn names(&self, pid: Option<Pid>, tid: Option<Tid>) -> &[(Nanos, ThreadNameNo)] {
        let of = |tid: Tid| self.threads.get(&tid);
        let found = tid.and_then(of).or_else(|| pid.and_then(|pid| of(Tid(pid.0))));
        found.map_or(&[], |&(start, end)| &self.names[start as usize..end as usize])
    }

    /// The name of a thread at a time (without one: at the end). A thread that was named only later is called that
    /// before, too: recorders may write down late who was there.
    pub fn name(&self, pid: Option<Pid>, tid: Option<Tid>, time: Option<Nanos>) -> Cow<'_, [u8]> {
        if tid == Some(Tid(0)) && pid.is_none_or(|pid| pid.0 == 0) {
            return Cow::Borrowed(b"swapper");
        }
        let Some(tid) = tid.or(pid.map(|pid| Tid(pid.0))) else { return Cow::Borrowed(b"") };
        let names = self.names(pid, Some(tid));
        let until = names.partition_point(|(from, _)| time.is_none_or(|time| *from <= time));
        let name = names.get(until.saturating_sub(1)).map(|(_, name)| self.texts.get(*name));
        match name {
            Some(name) if !name.is_empty() => Cow::Borrowed(name),
            _ => Cow::Owned(format!(":{tid}").into_bytes()),
        }
    }

    /// For how long the answer of [`Threads::name`] at `time` holds: until this time, exclusive.
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
        threads.forked(Nanos(20), Tid(8), Tid(7));
        threads.named(Nanos(10), Tid(7), b"bash");
        threads.named(Nanos(30), Tid(8), b"node");
        threads.named(Nanos(40), Tid(7), b"sh");
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
