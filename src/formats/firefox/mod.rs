//! The processed-profile JSON of the Firefox Profiler.
//!
//! Threads are grouped by process, and samples sorted by time. A function is a name in a library; its frames have lines
//! and addresses. The categories are those of [`Category`](crate::analysis::category::Category), with one subcategory
//! per module. The format holds only one event, so the samples of other events are left out.
//!
//! We don't use the crate fxprof-processed-profile, because its weights are integers while we need fractions of
//! milliseconds, and because its frames with a name have no line.
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

/// Writes the event that the options select ([`WriteOptions::series`]). Fails if there is no such event.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    write_threads(MOST_KEPT, profile, options, out)
}

/// Writes the event that the options select; fails if there is no such event. All threads are built before anything is
/// written, because the libraries and categories of all threads come first in the file. Up to `most_kept` threads stay
/// in memory until they are written. If the profile has more, none is kept, and each is built again when it is written.
fn write_threads(most_kept: usize, profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else {
        return Err(Error::new("no samples to write"));
    };
    let writing = Writing::new(profile, series, options.weight);
    let mut libraries = Libraries::default();
    let mut categories = Categories::default();
    let threads = threads(profile, series);
    let moments = moments(profile, &threads);
    // Indices for the thread that is being built. They are cleared for each thread, but keep their memory.
    let mut numbers = ThreadNumbers::default();
    let mut build = |index: usize, libraries: &mut Libraries, categories: &mut Categories| {
        let mut shared = Shared { writing: &writing, libraries, categories };
        Thread::new(&threads[index], &moments[index], &mut shared, &mut numbers)
    };
    let mut kept = Vec::new();
    for index in 0..threads.len() {
        let thread = build(index, &mut libraries, &mut categories);
        if threads.len() <= most_kept {
            kept.push(thread);
        }
    }
    const NONE: &[(); 0] = &[];
    Object::write(out, |document| {
        document.object("meta", |meta| meta::write(meta, &writing, &threads, &categories))?;
        document.field("libs", &libraries.list)?;
        ["pages", "profilerOverhead", "counters"].iter().try_for_each(|name| document.field(name, NONE))?;
        let out = document.field_name("threads")?;
        for index in 0..threads.len() {
            out.write_all(if index == 0 { b"[" } else { b"," })?;
            match kept.get(index) {
                Some(thread) => thread.write(out)?,
                // All libraries and categories are known by now, so building a thread again adds none.
                None => build(index, &mut libraries, &mut categories).write(out)?,
            }
        }
        out.write_all(if threads.is_empty() { b"[]" } else { b"]" })
    })?;
    Ok(writeln!(out)?)
}

/// The largest number of threads that are kept in memory together.
const MOST_KEPT: usize = 1 << 12;

/// The events other than samples, such as forks and exits, for each thread. An event of a thread without samples goes
/// to the first thread of its process, or else to the first thread of all.
fn moments<'p>(profile: &'p Profile, threads: &[ThreadRows<'_>]) -> Vec<Vec<&'p Moment>> {
    let mut moments_by_thread: Vec<Vec<&Moment>> = vec![Vec::new(); threads.len()];
    // A thread whose name changed is listed once for each name. Its events go to the first of these.
    let (mut first_of_thread, mut first_of_process) = (FxHashMap::default(), FxHashMap::default());
    for (index, thread) in threads.iter().enumerate() {
        first_of_thread.entry((thread.pid, thread.tid)).or_insert(index);
        first_of_process.entry(thread.pid).or_insert(index);
    }
    for moment in &profile.about.moments {
        let (pid, tid) = (Some(moment.pid), Some(moment.tid));
        let index = first_of_thread.get(&(pid, tid)).or_else(|| first_of_process.get(&pid));
        let index = index.copied().unwrap_or(0);
        if let Some(moments) = moments_by_thread.get_mut(index) {
            moments.push(moment);
        }
    }
    moments_by_thread
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
        let written = |most_kept| {
            let mut out = Vec::new();
            write_threads(most_kept, &profile, &WriteOptions::default(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(8), written(9));
    }
}
