//! Lists the instructions of a callgrind file with their costs, like `annotate` does.

use super::recording::hottest;
use crate::annotate::callgrind::annotate;
use crate::annotate::{AnnotateFormat, AnnotateOptions, Code, CodeGrouping, HotCode};
use crate::error::Warnings;
use crate::formats::callgrind::sniff;
use crate::io::{InPath, OutPath};
use crate::pipeline::Job;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::Input;

/// The `limit` hottest listings, if the only input is a callgrind file with instructions. Code that can't be listed is
/// omitted from the page without an error.
pub(super) fn list_code(inputs: &[InPath], limit: usize, load: &LoadOptions, job: &Job) -> Option<HotCode> {
    let [path] = inputs else { return None };
    // No listings from standard input: it was read for the profile, and can't be read again.
    if limit == 0 || *path == InPath::Stdin {
        return None;
    }
    let input = Input::open(path).ok()?;
    if !sniff(&input.bytes) {
        return None;
    }
    let options = AnnotateOptions {
        input: path.clone(),
        output: OutPath::Stdout,
        code: hottest(limit),
        recording: load.recording(),
        grouping: CodeGrouping::default(),
        format: AnnotateFormat::Json,
    };
    // Drop the warnings: they were already reported when the same file was loaded for the page's profile.
    let annotation = annotate(&input.bytes, &options, job, &mut Warnings::new()).ok()?;
    let is_listed = annotation.listings.iter().any(|listing| matches!(listing.code, Code::Instructions { .. }));
    is_listed.then(|| HotCode { annotation, instructions: Vec::new() })
}
