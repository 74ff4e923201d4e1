//! A callgrind file with the names of its JIT code, for those who read it as stacks: the maps and dumps beside it are
//! used as by `jitgraft callgrind`, and nothing is written.

use super::names::CodeNames;
use super::{pid_in_name, processes, stream};
use crate::analysis::code_shares::CodeShares;
use crate::error::{Result, Warnings};
use crate::io::{self, Bytes, InPath, Stream};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::model::shell::quoted;
use crate::model::stacks::{Profile, Weight};
use crate::pipeline::Job;
use crate::sources::{Found, SourceOptions, find};
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// As much of a file as is looked at for its process.
const HEAD: usize = 1 << 14;

/// The file as it is, or with names.
pub(crate) fn with_names(
    reader: Box<dyn Read + Send>,
    path: &InPath,
    options: &SourceOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Box<dyn Read + Send>> {
    let mut text = Stream::new(reader);
    let head = text.peek(HEAD)?;
    let path = path.path();
    let pid = stream::pid_at_start(head).or_else(|| pid_in_name(path?)).map(Pid);
    let Some(pid) = pid.or_else(|| options.names_files().then_some(Pid(0))) else {
        return Ok(text.into_reader());
    };
    let processes = processes(pid);
    let beside = path.and_then(Path::parent).map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
    let found = find(&processes, options, beside, warnings);
    if found.is_empty() {
        return Ok(text.into_reader());
    }
    let text = io::spool(text.into_reader())?;
    let named = rewrite(&text, pid, &found, job, warnings)?;
    Ok(Box::new(std::io::Cursor::new(named.unwrap_or(text))))
}

/// `None` if there is nothing to name, or nothing that names it.
fn rewrite(text: &Bytes, pid: Pid, found: &Found, job: &Job, warnings: &mut Warnings) -> Result<Option<Bytes>> {
    let index = stream::index(text, job)?;
    if index.unknown_functions().is_empty() {
        return Ok(None);
    }
    let processes = processes(pid);
    let loaded = found.load(&processes, &job.pool, warnings);
    let names = CodeNames::new(&loaded.map, pid, format!("jitted-{pid}.elf").into_bytes(), &job.pool);
    if names.is_empty() {
        return Ok(None);
    }
    let mut spool = io::temporary()?;
    let mut out = BufWriter::new(&mut spool);
    stream::rewrite(text, &index, &names, &mut out, job)?;
    out.flush()?;
    drop(out);
    spool.map().map(Some)
}

/// A cost below this share of the whole, in percent, is not worth a word.
const LEAST: f64 = 1.0;

/// Says how much of the first event's cost is in code without a name and without a file, and which command shows why.
pub(crate) fn unnamed(profile: &Profile, path: &Path) -> Option<String> {
    let series = profile.series.first()?;
    let CodeShares { whole, jit, jit_named, no_file, .. } = CodeShares::of(profile, series, Weight::Period);
    let unnamed = (jit - jit_named).saturating_add(no_file);
    let percent = 100.0 * unnamed as f64 / whole.max(1) as f64;
    let path = quoted(path.as_os_str().as_bytes());
    let event = readable(series.name.as_bytes());
    (percent >= LEAST).then(|| {
        format!("{percent:.1}% of {event} is in JIT code without a name; run jitgraft doctor {path} to find out why")
    })
}
