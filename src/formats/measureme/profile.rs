//! An opened measureme file, with access to its events.

use super::event::{NARROW, VersionLayout, WIDE};
use super::event::{Payload, RawEvent};
use super::metadata::Metadata;
use super::pages::{self, PageStream, Pages};
use super::strings::Strings;
use crate::contract::spans::Done;
use crate::error::{Error, Result, Skipped};
use std::ops::Range;

/// An opened file.
#[derive(Debug)]
pub(super) struct MeasuremeFile<'data> {
    layout: VersionLayout,
    events: PageStream<'data>,
    pub(super) strings: Strings<'data>,
    pub(super) metadata: Metadata,
    pub(super) skipped: Skipped,
}

impl<'data> MeasuremeFile<'data> {
    /// Reads the header, the page headers, the string index and the metadata. Events are read on demand.
    pub(super) fn open(bytes: &'data [u8]) -> Result<Self> {
        let layout = VersionLayout::new(parse_version(bytes)?)?;
        let mut skipped = Skipped::new("damaged measureme part");
        let Pages { events, data, index } = Pages::scan(bytes, &mut skipped);
        let strings = Strings::open(data, &index, layout, &mut skipped);
        let metadata = Metadata::read(&strings);
        // The number of bytes of an incomplete event at the end. It is reported here, since readers of events skip it.
        let tail = events.len().saturating_sub(pages::STREAM_HEADER) % layout.event_size as u64;
        if tail != 0 {
            let message = format!("an event has only {tail} of its {} bytes", layout.event_size);
            skipped.add(Error::new(message).at_offset(events.file_offset(events.len() - tail)));
        }
        Ok(Self { layout, events, strings, metadata, skipped })
    }

    /// Whether there are events but no names, because the recorded process was killed.
    pub(super) fn names_are_lost(&self) -> bool {
        self.event_count() > 0 && self.strings.is_empty()
    }

    /// The number of complete events.
    pub(super) fn event_count(&self) -> u64 {
        self.events.len().saturating_sub(pages::STREAM_HEADER) / self.layout.event_size as u64
    }

    /// The time at which the last interval ended, in the counter's unit; 0 if there are no intervals. Only looks at the
    /// last page that has intervals, because events are written when they end.
    pub(super) fn last_time(&self) -> u64 {
        for page in self.pages().rev() {
            let mut last = 0;
            self.for_each_event(page..page + 1, |event| {
                if let Payload::Interval { end, .. } = event.payload {
                    last = last.max(end);
                }
            });
            if last > 0 {
                return last;
            }
        }
        0
    }

    /// The range of pages with events.
    pub(super) fn pages(&self) -> Range<usize> {
        0..self.events.pages.len()
    }

    /// Calls `each` with the events that start in these pages, in file order.
    pub(super) fn for_each_event(&self, pages: Range<usize>, each: impl FnMut(RawEvent)) {
        match self.layout.event_size {
            NARROW => self.for_each_sized::<NARROW>(pages, each),
            _ => self.for_each_sized::<WIDE>(pages, each),
        }
    }

    fn for_each_sized<const EVENT: usize>(&self, pages: Range<usize>, mut each: impl FnMut(RawEvent)) {
        for page in pages {
            let (records, straddling) = self.events.records::<EVENT>(page);
            for record in records.iter().chain(&straddling) {
                each(self.layout.decode(record));
            }
        }
    }

    /// Calls `each` with all events in reverse file order, so that callers come before their callees. Tells `done`
    /// which ranges of the file are no longer needed, so that their memory can be released.
    pub(super) fn for_each_event_reversed(&self, done: &Done, each: impl FnMut(RawEvent)) {
        match self.layout.event_size {
            NARROW => self.for_each_sized_reversed::<NARROW>(done, each),
            _ => self.for_each_sized_reversed::<WIDE>(done, each),
        }
    }

    /// Passes all events to `each`, the last one first. `EVENT` is the length of an event in the file. Ranges of the
    /// file that aren't needed any more are reported to `done`.
    fn for_each_sized_reversed<const EVENT: usize>(&self, done: &Done, mut each: impl FnMut(RawEvent)) {
        for page in self.pages().rev() {
            let (records, straddling) = self.events.records::<EVENT>(page);
            // The record that continues on the next page is the last one that starts in this page.
            for record in records.iter().chain(&straddling).rev() {
                each(self.layout.decode(record));
            }
            // Pages are read backwards, so this page and those after it aren't needed any more. Memory isn't released
            // after every page of the stream, since each release interrupts the other threads. Each release covers
            // twice as many pages as were read since the last one, so what that one covered is released again: when the
            // kernel maps memory that is read, it maps the neighbors as well, and so brings back some of it.
            if page % PAGES_PER_RELEASE == 0 {
                let Range { start, end } = self.events.file_range(page);
                done.release(start..end + 2 * PAGES_PER_RELEASE * (end - start));
            }
        }
    }
}

/// Memory is released each time this many pages have been read.
const PAGES_PER_RELEASE: usize = 16;

/// The version in the file's header. Fails if the magic number isn't that of a measureme profile.
fn parse_version(bytes: &[u8]) -> Result<u32> {
    // Four bytes of magic number, then the version in four bytes.
    let Some([magic @ .., a, b, c, d]) = bytes.first_chunk::<8>() else {
        return Err(Error::new(format!("the file has {} bytes, fewer than the 8 of a measureme header", bytes.len()))
            .at_offset(0));
    };
    let version = u32::from_le_bytes([*a, *b, *c, *d]);
    match magic {
        b"MMPD" => Ok(version),
        // Events, string data and string index. Newer versions have all three in one file.
        b"MMES" | b"MMSD" | b"MMSI" => Err(Error::new(format!(
            "is one of the three files that measureme wrote in file version {version} (versions 7 to 9 are \
             supported); record again with a newer compiler"
        ))
        .at_offset(0)),
        _ => Err(Error::new("the file is not a measureme profile: it does not start with MMPD").at_offset(0)),
    }
}
