//! Lists the instructions of a callgrind file with their costs, like `annotate` does.

use super::recorded::hottest;
use crate::annotation::{AnnotateFormat, AnnotateOptions, Code, CodeGrouping, HotCode, counted};
use crate::error::Warnings;
use crate::io::{InPath, OutPath};
use crate::pipeline::Job;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::Input;
use crate::records::callgrind;

/// The `code` hottest listings, if the only input is a callgrind file with instructions. Code that can't be listed is
/// omitted from the page without an error.
pub(super) fn code(inputs: &[InPath], code: usize, load: &LoadOptions, job: &Job) -> Option<HotCode> {
    let [path] = inputs else { return None };
    if code == 0 || *path == InPath::Stdin {
        return None;
    }
    let input = Input::open(path).ok()?;
    if !callgrind::sniff(&input.bytes) {
        return None;
    }
    let asked = AnnotateOptions {
        input: path.clone(),
        output: OutPath::Stdout,
        code: hottest(code),
        recording: load.recording(),
        told: CodeGrouping::default(),
        format: AnnotateFormat::Json,
    };
    // The file was already read for the profile, so its warnings have been reported.
    let mut annotation = counted::annotate(&input.bytes, &asked, job, &mut Warnings::new()).ok()?;
    annotation.listings.retain(|listing| !matches!(listing.code, Code::SourceLines { .. }));
    let is_listed = annotation.listings.iter().any(|listing| matches!(listing.code, Code::Listed { .. }));
    is_listed.then(|| HotCode { annotation, spots: Vec::new() })
}
