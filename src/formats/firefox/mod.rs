//! Firefox Profiler's processed-profile JSON.
//!
//! Threads stand under their processes, samples in the order of their times. A function is a name in a library, its
//! frames tell lines and addresses; categories are those of [`Category`](crate::model::category::Category), with a
//! subcategory for each module. The format has no place for more than one event: the samples of the others are left
//! out.
//!
//! Our own, not fxprof-processed-profile: that crate's weights are whole numbers, while a sample weighs fractions of
//! milliseconds, and its frames that have a name have no line.
//!
//! See <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>, version 55.

mod categories;
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

use super::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::moment::Moment;
use crate::model::stacks::Profile;
use crate::model::thread_rows::{ThreadRows, threads};
use categories::Categories;
use libraries::{Libraries, Library};
use meta::Meta;
use serde::Serialize;
use std::io::Write;
use thread::Thread;
use writing::Writing;

#[derive(Serialize)]
struct Document<'a> {
    meta: Meta<'a>,
    libs: &'a [Library],
    pages: [(); 0],
    #[serde(rename = "profilerOverhead")]
    overhead: [(); 0],
    counters: [(); 0],
    threads: Vec<Thread>,
}

/// Writes one event.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else {
        return Err(Error::new("no samples to write"));
    };
    let writing = Writing::new(profile, series, options.weight);
    let mut libraries = Libraries::default();
    let mut categories = Categories::default();
    let rows = threads(profile, series);
    let moments = moments(profile, &rows);
    let threads = rows.iter().zip(moments);
    let threads =
        threads.map(|(rows, moments)| Thread::new(&writing, rows, &moments, &mut libraries, &mut categories)).collect();
    let document = Document {
        meta: Meta::new(&writing, &rows, categories),
        libs: libraries.list(),
        pages: [],
        overhead: [],
        counters: [],
        threads,
    };
    serde_json::to_writer(&mut *out, &document).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// What else happened in each thread; what happened in a thread without samples, in the first one of its process, or of
/// all.
fn moments<'p>(profile: &'p Profile, threads: &[ThreadRows<'_>]) -> Vec<Vec<&'p Moment>> {
    let mut of_threads: Vec<Vec<&Moment>> = vec![Vec::new(); threads.len()];
    let first_of = |is: &dyn Fn(&ThreadRows<'_>) -> bool| threads.iter().position(is);
    for moment in &profile.about.moments {
        let own = first_of(&|thread| thread.pid == Some(moment.pid) && thread.tid == Some(moment.tid));
        let thread = own.or_else(|| first_of(&|thread| thread.pid == Some(moment.pid))).unwrap_or(0);
        if let Some(list) = of_threads.get_mut(thread) {
            list.push(moment);
        }
    }
    of_threads
}
