//! Firefox Profiler's processed-profile JSON.
//!
//! Threads are under their processes, samples in the order of their times. A function is a name in a library, its
//! frames give lines and addresses; categories are those of [`Category`](crate::analysis::category::Category), with a
//! subcategory for each module. The format has no place for more than one event: the samples of the others are left
//! out.
//!
//! Our own, not fxprof-processed-profile: that crate's weights are whole numbers, while a sample weighs fractions of
//! milliseconds, and its frames that have a name have no line.
//!
//! See <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>, version 55.

mod categories;
mod columns;
mod libraries;
mod markers;
mod meta;
mod read;
mod rewrite;
mod tables;
mod thread;
mod writing;

pub use read::{read, sniff};
pub use rewrite::open as open_unsymbolized;

use crate::analysis::thread_rows::{ThreadRows, threads};
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::process::Moment;
use crate::model::stacks::Profile;
use categories::Categories;
use columns::Object;
use libraries::Libraries;
use rustc_hash::FxHashMap;
use std::io::Write;
use tables::{Shared, ThreadNumbers};
use thread::Thread;
use writing::Writing;

/// Writes one event.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    write_keeping(KEPT, profile, options, out)
}

/// The same; if there are more than this many threads, they are made twice.
fn write_keeping(most: usize, profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else {
        return Err(Error::new("no samples to write"));
    };
    let writing = Writing::new(profile, series, options.weight);
    let mut libraries = Libraries::default();
    let mut categories = Categories::default();
    let rows = threads(profile, series);
    let moments = moments(profile, &rows);
    let mut known = ThreadNumbers::default();
    let mut make = |at: usize, libraries: &mut Libraries, categories: &mut Categories| {
        let mut shared = Shared { writing: &writing, libraries, categories };
        Thread::new(&rows[at], &moments[at], &mut shared, &mut known)
    };
    // Items that are numbered over all of them precede them.
    let mut kept = Vec::new();
    for at in 0..rows.len() {
        let made = make(at, &mut libraries, &mut categories);
        kept.extend((rows.len() <= most).then_some(made));
    }
    const NONE: &[(); 0] = &[];
    Object::write(out, |document| {
        document.object("meta", |meta| meta::write(meta, &writing, &rows, &categories))?;
        document.field("libs", &libraries.list)?;
        ["pages", "profilerOverhead", "counters"].iter().try_for_each(|name| document.field(name, NONE))?;
        let out = document.name("threads")?;
        for at in 0..rows.len() {
            out.write_all(if at == 0 { b"[" } else { b"," })?;
            match kept.get(at) {
                Some(made) => made.write(out)?,
                // In what all threads share nothing is new any more.
                None => make(at, &mut libraries, &mut categories).write(out)?,
            }
        }
        out.write_all(if rows.is_empty() { b"[]" } else { b"]" })
    })?;
    Ok(writeln!(out)?)
}

/// More threads than this are not in memory all at once.
const KEPT: usize = 1 << 12;

/// The other events each thread; what happened in a thread without samples, in the first one of its process, or of all.
fn moments<'p>(profile: &'p Profile, threads: &[ThreadRows<'_>]) -> Vec<Vec<&'p Moment>> {
    let mut of_threads: Vec<Vec<&Moment>> = vec![Vec::new(); threads.len()];
    let (mut first_of_thread, mut first_of_process) = (FxHashMap::default(), FxHashMap::default());
    for (at, thread) in threads.iter().enumerate() {
        first_of_thread.entry((thread.pid, thread.tid)).or_insert(at);
        first_of_process.entry(thread.pid).or_insert(at);
    }
    for moment in &profile.about.moments {
        let (pid, tid) = (Some(moment.pid), Some(moment.tid));
        let place = first_of_thread.get(&(pid, tid)).or_else(|| first_of_process.get(&pid));
        if let Some(list) = of_threads.get_mut(place.copied().unwrap_or(0)) {
            list.push(moment);
        }
    }
    of_threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::MomentKind;
    use crate::model::stacks::{Frame, FrameKind, Row, Track, Unit};
    use crate::model::{Nanos, Pid, Tid};

    #[test]
    fn threads_that_are_made_twice_are_what_they_were() {
        let mut profile = Profile::new();
        let series = profile.series_named("cpu-clock", Unit::Nanos);
        for tid in 0..9 {
            let (comm, pid) = (format!("worker {tid}").into_bytes(), Some(Pid(tid / 4)));
            let track = profile.track(Track { comm, pid, tid: Some(Tid(tid)), ..Track::default() });
            let (name, module) = (profile.name(format!("f{tid}").as_bytes()), profile.name(&[b'a' + tid as u8 % 3]));
            let frame = profile.frame(Frame { module: Some(module), ..Frame::new(name, FrameKind::User) });
            let (stack, time) = (Some(profile.stack(None, frame)), Some(Nanos(tid as u64)));
            profile.push(series, Row { track, stack, weight: 1, count: 1, time });
            let time = Nanos(20);
            let (pid, tid, kind) = (Pid(tid / 4), Tid(tid), MomentKind::Exited);
            profile.about.moments.push(Moment { time, pid, tid, kind });
        }
        let written = |most| {
            let mut out = Vec::new();
            write_keeping(most, &profile, &WriteOptions::default(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(8), written(9));
    }
}
