//! Names JIT code in a callgrind file that is going to be read as stacks. Like `jitgraft callgrind`, this uses the perf
//! maps and jitdumps next to the file, but the file with names is only a temporary one.

use super::names::CodeNames;
use super::passes::{IndexedProfile, pid_in_header};
use super::{CodeSources, HEAD, find_pid};
use crate::analysis::code_shares::CodeShares;
use crate::error::{Result, Warnings};
use crate::io::{self, Bytes, InPath, Stream};
use crate::jit::SourceOptions;
use crate::model::Pid;
use crate::model::code_file::object_name;
use crate::model::printable::readable;
use crate::model::shell::quoted;
use crate::model::stacks::{Profile, Weight};
use crate::pipeline::Job;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns a reader of the callgrind file's text, with names for JIT code if any are found, otherwise unchanged.
pub(crate) fn with_names(
    reader: Box<dyn Read + Send>,
    path: &InPath,
    options: &SourceOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Box<dyn Read + Send>> {
    let mut text = Stream::new(reader);
    let path = path.path();
    let pid = match find_pid(pid_in_header(text.peek(HEAD)?), path) {
        Some(pid) => pid,
        // The file states no process ID. Still, its functions get names if the user said which jitdump or perf map to
        // use. 0 then stands for the unknown ID.
        None if options.names_files() => Pid(0),
        None => return Ok(text.into_reader()),
    };
    let sources = CodeSources::find(Some(pid), path, options, warnings);
    if sources.found.is_empty() {
        return Ok(text.into_reader());
    }
    let text = io::spool(text.into_reader())?;
    let named = rewrite(&text, &sources, job, warnings)?;
    Ok(Box::new(std::io::Cursor::new(named.unwrap_or(text))))
}

/// Adds names to the text of a callgrind file. `None` if all its functions have names, or if there is no JIT code to
/// name them with.
fn rewrite(text: &Bytes, sources: &CodeSources, job: &Job, warnings: &mut Warnings) -> Result<Option<Bytes>> {
    let profile = IndexedProfile::read(text, job)?;
    if profile.unknown_functions() == 0 {
        return Ok(None);
    }
    let loaded = sources.load(&job.pool, warnings);
    let names = CodeNames::new(&loaded.map, sources.pid, object_name(sources.pid).into_bytes(), &job.pool);
    if names.is_empty() {
        return Ok(None);
    }
    let mut spool = io::temporary()?;
    let mut out = BufWriter::new(&mut spool);
    profile.rewrite(&names, &mut out, job)?;
    out.flush()?;
    drop(out);
    spool.map().map(Some)
}

/// The smallest percentage of the cost that [`report_unnamed`] reports.
const MIN_PERCENT: f64 = 1.0;

/// A message that says how much of the first event's cost is in unnamed code outside of files, and that `doctor`
/// explains why. `None` if it is less than [`MIN_PERCENT`].
pub(crate) fn report_unnamed(profile: &Profile, path: &Path) -> Option<String> {
    let series = profile.series.first()?;
    let CodeShares { whole, jit, jit_named, no_file, .. } = CodeShares::count(profile, series, Weight::Period);
    let unnamed_jit = jit - jit_named;
    // Unnamed code outside any file is certainly JIT code only if the program is a known runtime. Only then does it
    // count in `unnamed_jit`, and the message calls it JIT code.
    let (unnamed, code) = if unnamed_jit >= no_file {
        (unnamed_jit, "JIT code without a name")
    } else {
        (no_file, "unnamed code outside any file")
    };
    // `max` avoids a division by zero: without any cost, the percentage is 0.
    let percent = 100.0 * unnamed as f64 / whole.max(1) as f64;
    if percent < MIN_PERCENT {
        return None;
    }
    let path = quoted(path.as_os_str().as_bytes());
    let event = readable(series.name.as_bytes());
    Some(format!("{percent:.1}% of {event} is in {code}; run jitgraft doctor {path} to find out why"))
}
