//! Adds up folded stacks by sorting their lines, for outputs that need only the sums.

use super::demangled;
use super::job::{Job, Outcome};
use super::lines::{HEAD, each_block};
use super::open::{Opened, shown};
use super::spare::Spare;
use crate::analysis::sorted_stacks::{Run, Runs};
use crate::contract::format::{Read, SortLines};
use crate::error::{Result, Skipped};
use crate::io::{InPath, Stream};

/// What became of an input that might be added up by sorting.
pub(crate) enum Sorted {
    /// The sums of its stacks.
    Sums(Runs),
    /// The opened input, to be read in another way, because it isn't a text that can be added up by sorting.
    Other(Opened),
}

/// How many bytes of text a worker sorts at once.
const BLOCK: usize = 1 << 20;

/// Opens an input. If it is a text of folded stacks, adds them up by sorting. `demangles`: names should be demangled.
pub(crate) fn open(path: &InPath, demangles: bool, job: &Job, outcome: &mut Outcome) -> Result<Sorted> {
    let opened = Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))?;
    let (reader, sort) = match opened {
        Opened::Stream { reader, format, plain } => match format.read {
            Read::Lines { sort, is_plain, .. } => {
                let mut text = Stream::new(reader);
                let head = text.peek_all(HEAD).map_err(|error| error.in_file(&shown(path)))?;
                if !is_plain(head) {
                    return Ok(Sorted::Other(Opened::Stream { reader: text.into_reader(), format, plain }));
                }
                (text.into_reader(), sort)
            }
            _ => return Ok(Sorted::Other(Opened::Stream { reader, format, plain })),
        },
        other => return Ok(Sorted::Other(other)),
    };
    let (runs, skipped) = sums(reader, sort, demangles, job).map_err(|error| error.in_file(&shown(path)))?;
    skipped.report(&shown(path), &mut outcome.warnings);
    Ok(Sorted::Sums(runs))
}

fn sums(text: Box<dyn std::io::Read + Send>, sort: SortLines, demangles: bool, job: &Job) -> Result<(Runs, Skipped)> {
    let unsorted = Spare::default();
    let mut runs = Runs::default();
    let mut all_skipped = Skipped::new("line");
    let sort_block = |at: u64, block: &[u8]| {
        let mut sorting = unsorted.take();
        let mut skipped = Skipped::new("line");
        let demangled = if demangles { demangled::lines(block) } else { None };
        let run = sort(demangled.as_deref().unwrap_or(block), &mut sorting, &mut skipped);
        unsorted.give(sorting);
        (run, skipped.moved(at))
    };
    each_block(text, BLOCK, job, sort_block, |(run, skipped): (Run, Skipped)| {
        runs.push(run);
        all_skipped.append(skipped);
    })?;
    Ok((runs, all_skipped))
}
