//! Joins the pages of a file into its three streams.

use crate::error::{Error, Skipped};
use std::ops::Range;

/// Size of the magic and version at the start of each stream.
pub(super) const STREAM_HEADER: u64 = 8;

const FILE_HEADER: usize = 8;
const PAGE_HEADER: usize = 5;

/// The three streams of a file.
#[derive(Debug)]
pub(super) struct Pages<'data> {
    /// The pages with tag 0: events.
    pub(super) events: PageStream<'data>,
    /// The pages with tag 1: string data.
    pub(super) data: PageStream<'data>,
    /// The pages with tag 2: the string index.
    pub(super) index: PageStream<'data>,
}

/// The pages with one tag, joined. Positions in the stream include its header.
#[derive(Debug, Clone)]
pub(super) struct PageStream<'data> {
    bytes: &'data [u8],
    pub(super) pages: Vec<Page>,
}

/// A page of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Position of the page's first byte in the stream.
    pub(super) start: u64,
    offset: usize,
    len: usize,
}

impl<'data> Pages<'data> {
    /// Finds all pages. If the last one is cut off, what is left of it is used. A page with an unknown tag is skipped.
    /// If the size in a page header is damaged, the pages after it aren't found.
    pub(super) fn scan(bytes: &'data [u8], skipped: &mut Skipped) -> Self {
        let empty = PageStream { bytes, pages: Vec::new() };
        let mut pages = Self { events: empty.clone(), data: empty.clone(), index: empty };
        let mut page_start = FILE_HEADER;
        while page_start < bytes.len() {
            let Some(header) = bytes[page_start..].first_chunk::<PAGE_HEADER>() else {
                skipped.add(
                    Error::new(format!("a page header has only {} of its 5 bytes", bytes.len() - page_start))
                        .at_offset(page_start as u64),
                );
                break;
            };
            let [tag, size @ ..] = *header;
            let size = u32::from_le_bytes(size) as usize;
            let offset = page_start + PAGE_HEADER;
            let len = size.min(bytes.len() - offset);
            match tag {
                0 => pages.events.push(offset, len),
                1 => pages.data.push(offset, len),
                2 => pages.index.push(offset, len),
                _ => {
                    skipped.add(
                        Error::new(format!("a page has the tag {tag}; only 0, 1 and 2 are known"))
                            .at_offset(page_start as u64),
                    );
                    // A page that is cut off is the last one. Leave the loop, because the check below would report this
                    // page again.
                    if len < size {
                        break;
                    }
                }
            }
            if len < size {
                skipped
                    .add(Error::new(format!("a page has only {len} of its {size} bytes")).at_offset(page_start as u64));
            }
            page_start = offset + len;
        }
        pages
    }
}

impl<'data> PageStream<'data> {
    fn push(&mut self, offset: usize, len: usize) {
        if len > 0 {
            self.pages.push(Page { start: self.len(), offset, len });
        }
    }

    /// Total length in bytes, including the header.
    pub(super) fn len(&self) -> u64 {
        self.pages.last().map_or(0, |page| page.start + page.len as u64)
    }

    /// The payload of a page, without the page header.
    pub(super) fn payload(&self, page: usize) -> &'data [u8] {
        &self.bytes[self.file_range(page)]
    }

    /// Where a page's payload is in the file.
    pub(super) fn file_range(&self, page: usize) -> Range<usize> {
        let Page { offset, len, .. } = self.pages[page];
        offset..offset + len
    }

    /// Converts a position in the stream to an offset in the file.
    pub(super) fn file_offset(&self, position: u64) -> u64 {
        match self.page_at(position) {
            Some(page) => self.pages[page].offset as u64 + (position - self.pages[page].start),
            None => self.bytes.len() as u64,
        }
    }

    /// The bytes from a position to the end of its page; empty beyond the end of the stream.
    pub(super) fn rest_of_page(&self, position: u64) -> &'data [u8] {
        match self.page_at(position) {
            Some(page) => &self.payload(page)[(position - self.pages[page].start) as usize..],
            None => &[],
        }
    }

    /// Fills `out` with the bytes of the stream from a position on, across pages. Returns false if the stream is too
    /// short.
    pub(super) fn copy(&self, mut position: u64, mut out: &mut [u8]) -> bool {
        while !out.is_empty() {
            let bytes = self.rest_of_page(position);
            let len = bytes.len().min(out.len());
            if len == 0 {
                return false;
            }
            let (filled, rest) = out.split_at_mut(len);
            filled.copy_from_slice(&bytes[..len]);
            out = rest;
            position += len as u64;
        }
        true
    }

    /// The records of `SIZE` bytes that start in a page: those that lie completely in it, and, as the second result,
    /// the one that continues on the next page, if there is one.
    pub(super) fn records<const SIZE: usize>(&self, page: usize) -> (&'data [[u8; SIZE]], Option<[u8; SIZE]>) {
        let bytes = self.payload(page);
        let start = self.pages[page].start;
        // The number of bytes before the first record that starts in this page.
        let skip = match start.checked_sub(STREAM_HEADER) {
            // The page, usually the first one, begins within the stream's header.
            None => STREAM_HEADER - start,
            // The page may begin within a record. Records begin at multiples of their size after the header.
            Some(position) => position.next_multiple_of(SIZE as u64) - position,
        };
        let bytes = &bytes[bytes.len().min(skip as usize)..];
        // What is left at the end is the start of a record that continues on the next page, unless the file ends here.
        let (records, rest) = bytes.as_chunks();
        let mut straddling = [0; SIZE];
        let has_straddling = !rest.is_empty() && self.copy(start + skip + size_of_val(records) as u64, &mut straddling);
        (records, if has_straddling { Some(straddling) } else { None })
    }

    /// The index of the page that contains a position; `None` beyond the end of the stream.
    #[inline]
    fn page_at(&self, position: u64) -> Option<usize> {
        // All pages but the last usually have the same length, so dividing by it is tried before searching.
        let guess = (position / self.pages.first()?.len as u64) as usize;
        if let Some(page) = self.pages.get(guess)
            && (page.start..page.start + page.len as u64).contains(&position)
        {
            return Some(guess);
        }
        if position >= self.len() {
            return None;
        }
        // The first page starts at 0, so some page starts at or before the position.
        self.pages.partition_point(|page| page.start <= position).checked_sub(1)
    }
}
