//! `callgrind` names the JIT code in a callgrind file, or in a report of another valgrind tool.
//!
//! Next to the named profile it writes an ELF object that has the code at its run-time addresses. The profile refers to
//! the object by its file name only, so both can be moved together: KCachegrind looks for it in the profile's
//! directory.

mod code_sources;
mod object;
mod options;
mod profile;
mod reports;

pub use options::CallgrindOptions;

use crate::error::{Error, Result};
use crate::formats::callgrind::sniff;
use crate::formats::detect;
use crate::formats::valgrind_text::{self, Report};
use crate::io::{InPath, Run, open_rewindable};
use crate::pipeline::callgrind::read_head;
use crate::pipeline::{Job, Outcome, mistaken, open};
use std::path::Path;

/// Names all JIT code of the input that can be named. The input is a callgrind profile, or a report of another valgrind
/// tool.
pub fn run(options: &CallgrindOptions, job: &Job) -> Result<Outcome> {
    // `begin_copying`: the output is a copy of the input with names, so only users who may read the input may read it.
    let run = Run::begin_copying();
    let result = open_rewindable(&options.input).and_then(|mut file| {
        let head = read_head(&mut file)?;
        let report = valgrind_text::sniff(&head);
        // `sniff` also accepts cachegrind's files, which look like callgrind's. They have no addresses, so they are
        // left to `reports`, which refuses them.
        if sniff(&head) && report != Some(Report::Cachegrind) {
            return profile::run(file, options, &run, job);
        }
        match report {
            Some(report) => reports::run(report, &file, &head, options, &run, job),
            None => Err(unknown(&head, &options.input)),
        }
    });
    let shown = options.path().unwrap_or(Path::new("(standard input)"));
    result.map_err(|error| error.in_file(shown))
}

/// The error for an input that isn't from any known valgrind tool.
fn unknown(head: &[u8], input: &InPath) -> Error {
    if head.is_empty() {
        return open::empty(input);
    }
    if let Some((encoding, command)) = byte_order_mark(head) {
        let reason = format!("begins with a byte order mark ({encoding}), which valgrind doesn't write");
        return Error::new(reason).with_remedy(Some(format!("remove it: {command}")));
    }
    let neither = "is neither a callgrind file nor a report of massif, DHAT, memcheck, helgrind or DRD";
    let remedy = match detect(head) {
        Some(format) => format!("the file contains {}; use jitgraft report, view or inject", format.about),
        None => format!("it {}", mistaken::unknown_format(head)),
    };
    Error::new(neither).with_remedy(Some(remedy))
}

/// Detects a byte order mark, such as Windows' PowerShell writes. Returns the name of the text's encoding and a command
/// that removes the mark. `None` if the input has no byte order mark.
fn byte_order_mark(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [0xef, 0xbb, 0xbf, ..] => Some(("UTF-8", r"sed '1s/^\xEF\xBB\xBF//' FILE > NEW")),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(("UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > NEW")),
        _ => None,
    }
}
