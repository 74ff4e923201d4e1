//! The instructions of a callgrind file, with what they cost, as `annotate` lists them.

use super::ViewOptions;
use super::recorded::hottest;
use crate::annotation::{AnnotateFormat, AnnotateOptions, Code, CodeGrouping, HotCode, counted};
use crate::error::Warnings;
use crate::io::{InPath, OutPath};
use crate::pipeline::Job;
use crate::pipeline::open::Input;
use crate::records::callgrind;

/// The hottest code of the only input, if that is a callgrind file with instructions. What cannot be listed is what the
/// page has no part for: it is no failure.
pub(super) fn code(options: &ViewOptions, job: &Job) -> Option<HotCode> {
    let [path] = &options.inputs[..] else { return None };
    if options.code == 0 || *path == InPath::Stdin {
        return None;
    }
    let input = Input::open(path).ok()?;
    if !callgrind::sniff(&input.bytes) {
        return None;
    }
    let asked = AnnotateOptions {
        input: path.clone(),
        output: OutPath::Stdout,
        code: hottest(options.code),
        recording: options.load.recording(),
        told: CodeGrouping::default(),
        format: AnnotateFormat::Json,
    };
    // The profile was read before: what is wrong with the file has been said.
    let mut annotation = counted::annotate(&input.bytes, &asked, job, &mut Warnings::new()).ok()?;
    annotation.listings.retain(|listing| !matches!(listing.code, Code::SourceLines { .. }));
    let is_listed = annotation.listings.iter().any(|listing| matches!(listing.code, Code::Listed { .. }));
    is_listed.then(|| HotCode { annotation, spots: Vec::new() })
}
