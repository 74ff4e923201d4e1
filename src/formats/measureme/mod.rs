//! measureme profiles (`.mm_profdata`): what rustc's `-Zself-profile` and Miri's `-Zmiri-measureme` write.
//!
//! `MMPD` and a version, then pages: tag (u8), size (u32), payload of at most 256 KiB. The payloads of one tag,
//! joined, are one stream: events, string data, or string index, each with a header of 8 bytes. Records and strings
//! straddle pages. Little endian throughout.
//!
//! An event is written when it *ends*: file order is end order within a thread, and an interval that never ended
//! has no record. The file is therefore best read backwards: callers come before what they called.
//!
//! The string index is written when the profiler is dropped: a killed process leaves events whose names are lost.
//! They are shown as `fn#` and their id.
//!
//! Versions 7 to 9 are read. Layout: <https://github.com/rust-lang/measureme>, `measureme/src/{raw_event,stringtable,serialization}.rs`.

mod event;
mod labels;
mod metadata;
mod pages;
mod slices;
mod stacks;
mod strings;
mod summary;
mod tell;

use super::spans::{Spans, Wants};
use crate::error::{Error, Result, Skipped};
use event::{Event, Payload};
use labels::Labels;
use metadata::Metadata;
use pages::{Pages, Stream};
use std::ops::Range;
use strings::Strings;

/// What can be asked of a profile.
pub const SPANS: Spans = Spans {
    wants: Wants::Whole,
    stacks: stacks::stacks,
    timeline: slices::timeline,
    tell: tell::tell,
    summary: Some(summary::summarize),
};

/// Whether an input starts as one of ours, the old ones in three files included.
pub fn sniff(head: &[u8]) -> bool {
    [b"MMPD", b"MMES", b"MMSD", b"MMSI"].iter().any(|magic| head.starts_with(*magic))
}

/// The widths that changed between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VersionLayout {
    /// Bytes of an event: 24 or 32.
    event: usize,
    /// Bytes of a string id: 4 or 8.
    id: usize,
    /// Whether the second highest end value marks an integer; before version 8 it was a time.
    integers: bool,
}

impl VersionLayout {
    fn of(version: u32) -> Result<Self> {
        match version {
            0..7 => Err(Error::new(format!(
                "measureme file version {version} is older than supported (7 to 9): record again with a newer compiler"
            ))),
            7 | 8 => Ok(Self { event: 24, id: 4, integers: version == 8 }),
            9 => Ok(Self { event: 32, id: 8, integers: true }),
            _ => Err(Error::new(format!("measureme file version {version} is newer than supported (7 to 9)"))),
        }
        .map_err(|error| error.at(4))
    }
}

/// An opened profile.
#[derive(Debug)]
struct Profile<'data> {
    layout: VersionLayout,
    events: Stream<'data>,
    strings: Strings<'data>,
    metadata: Metadata,
    skipped: Skipped,
}

impl<'data> Profile<'data> {
    /// Reads header, page table, string index and metadata; the events are read when asked for.
    fn open(bytes: &'data [u8]) -> Result<Self> {
        let layout = VersionLayout::of(version(bytes)?)?;
        let mut skipped = Skipped::new("damaged measureme part");
        let Pages { events, data, index } = Pages::scan(bytes, &mut skipped);
        let strings = Strings::open(data, &index, layout, &mut skipped);
        let metadata = Metadata::read(&strings);
        let tail = events.len().saturating_sub(pages::STREAM_HEADER) % layout.event as u64;
        if tail != 0 {
            let at = events.file_offset(events.len() - tail);
            skipped.add(Error::new(format!("an event has {tail} of its {} bytes", layout.event)).at(at));
        }
        Ok(Self { layout, events, strings, metadata, skipped })
    }

    /// What was recorded, and with which counter.
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The names.
    fn strings(&self) -> &Strings<'data> {
        &self.strings
    }

    /// Whether there are events but no names: the recorded process did not end in good order.
    fn names_are_lost(&self) -> bool {
        self.event_count() > 0 && self.strings.is_empty()
    }

    /// What was cut off or damaged.
    fn into_skipped(self) -> Skipped {
        self.skipped
    }

    /// How many whole events there are.
    fn event_count(&self) -> u64 {
        self.events.len().saturating_sub(pages::STREAM_HEADER) / self.layout.event as u64
    }

    /// The latest time of an interval on the last page that has any; 0 without one.
    fn last_time(&self) -> u64 {
        let size = self.layout.event;
        let ends = (0..self.events.pages.len()).rev().map(|page| {
            let (records, _) = self.events.records(page, size);
            records.chunks_exact(size).map(|bytes| match self.layout.decode(bytes).payload {
                Payload::Interval { end, .. } => end,
                Payload::Instant(_) | Payload::Integer(_) => 0,
            })
        });
        ends.filter_map(Iterator::max).find(|end| *end > 0).unwrap_or(0)
    }

    /// Every event in reverse file order: callers before what they called. `done` hears of the ranges of the file
    /// that will not be looked at again.
    fn backwards(&self, mut each: impl FnMut(Event), done: impl Fn(Range<usize>)) {
        let size = self.layout.event;
        for page in (0..self.events.pages.len()).rev() {
            let (records, straddling) = self.events.records(page, size);
            straddling.iter().for_each(|bytes| each(self.layout.decode(bytes)));
            records.rchunks_exact(size).for_each(|bytes| each(self.layout.decode(bytes)));
            // The kernel maps neighbours along with a page that is touched: what was done with comes back in part.
            let Range { start, end } = self.events.file_range(page);
            done(start..end + 16 * (end - start));
        }
    }
}

fn version(bytes: &[u8]) -> Result<u32> {
    let Some((magic, version)) = bytes.split_at_checked(4) else {
        return Err(Error::new(format!("{} bytes are too few for a measureme header of 8", bytes.len())).at(0));
    };
    let Some(version) = version.first_chunk().map(|version| u32::from_le_bytes(*version)) else {
        return Err(Error::new(format!("{} bytes are too few for a measureme header of 8", bytes.len())).at(0));
    };
    match magic {
        b"MMPD" => Ok(version),
        b"MMES" | b"MMSD" | b"MMSI" => Err(Error::new(format!(
            "one of the three files of measureme file version {version}, older than supported (7 to 9): record again with a newer compiler"
        ))
        .at(0)),
        _ => Err(Error::new("not a measureme profile: it does not start with MMPD").at(0)),
    }
}

#[cfg(test)]
mod tests;
