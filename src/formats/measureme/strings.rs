//! The string table: ids to text.
//!
//! An id up to 100,000,001 is virtual and looked up in the index; a higher one is an address in the string data. The
//! text there is made of UTF-8 runs, references to other strings (`0xFE` and an id), and a closing `0xFF`.

use super::event::VersionLayout;
use super::pages::{PageStream, STREAM_HEADER};
use crate::error::{Error, Skipped};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;

const REFERENCE: u8 = 0xFE;
const END: u8 = 0xFF;
/// Between the label of an event and each of its arguments.
const SEPARATOR: u8 = 0x1E;

/// The id of the JSON text about the recording.
pub(super) const METADATA: u64 = 100_000_001;
const FIRST_ADDRESS: u64 = METADATA + 2;

/// References in references: a text nests a handful deep, a damaged table endlessly.
const MAX_DEPTH: u32 = 32;
/// More text, or more references, are the work of a damaged table whose strings refer to each other in bulk.
const MAX_LEN: usize = 1 << 20;
const MAX_REFERENCES: u32 = 1 << 12;

/// The names of a profile.
#[derive(Debug)]
pub(super) struct Strings<'data> {
    data: PageStream<'data>,
    index: StringIndex,
    id_size: usize,
}

/// Virtual id → address + 1.
#[derive(Debug)]
struct StringIndex {
    /// rustc numbers its strings from 0 on: a table without keys takes half the memory. 0 is a hole.
    dense: Vec<u64>,
    /// The metadata's, and all if they are scattered.
    sparse: FxHashMap<u64, u64>,
}

impl<'data> Strings<'data> {
    pub(super) fn open(
        data: PageStream<'data>,
        index: &PageStream<'data>,
        layout: VersionLayout,
        skipped: &mut Skipped,
    ) -> Self {
        let index = StringIndex::read(index, layout.id, skipped);
        Self { data, index, id_size: layout.id }
    }

    /// The text for an id that leads nowhere: its number, unless the table is whole. Then the program never named it,
    /// and all such ids are one.
    pub(super) fn unknown(&self, id: u64) -> Vec<u8> {
        if id <= METADATA && !self.index.is_empty() { b"<unknown>".to_vec() } else { format!("fn#{id}").into_bytes() }
    }

    /// True if not a single name can be looked up.
    pub(super) fn is_empty(&self) -> bool {
        self.data.len() <= STREAM_HEADER
    }

    /// The text of a string, references expanded. `None` if the id leads nowhere (the table was cut off or never
    /// written).
    pub(super) fn text(&self, id: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut references = MAX_REFERENCES;
        self.expand(id, MAX_DEPTH, &mut references, &mut text).then_some(text)
    }

    /// The label of an event and its arguments.
    pub(super) fn event(&self, id: u64) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
        let text = self.text(id)?;
        let mut parts = text.split(|&byte| byte == SEPARATOR);
        let label = parts.next().unwrap_or_default().to_vec();
        Some((label, parts.map(<[u8]>::to_vec).collect()))
    }

    /// A shorter id for the same label, if the event's text starts with a reference that is its whole label. Millions
    /// of events of one query have texts of their own, and all refer to the query's name.
    #[inline]
    pub(super) fn label_id(&self, id: u64) -> u64 {
        let Some(address) = self.address(id) else { return id };
        match self.id_size {
            4 => self.reference_at::<6>(address).unwrap_or(id),
            _ => self.reference_at::<10>(address).unwrap_or(id),
        }
    }

    /// The reference that is all of a label: its bytes are this many with the marks before and behind.
    #[inline]
    fn reference_at<const MARKED: usize>(&self, address: u64) -> Option<u64> {
        let start: [u8; MARKED] = match self.data.at(address).first_chunk() {
            Some(start) => *start,
            None => {
                let mut start = [0; MARKED];
                self.data.copy(address, &mut start).then_some(start)?
            }
        };
        match start[..] {
            [REFERENCE, ref reference @ .., END | SEPARATOR] => Some(little_endian(reference)),
            _ => None,
        }
    }

    fn address(&self, id: u64) -> Option<u64> {
        let address = if id <= METADATA { self.index.get(id)? } else { id.checked_sub(FIRST_ADDRESS)? };
        (address < self.data.len()).then_some(address)
    }

    fn expand(&self, id: u64, depth: u32, references: &mut u32, text: &mut Vec<u8>) -> bool {
        let Some(mut address) = self.address(id) else { return false };
        loop {
            let bytes = self.data.at(address);
            let run = memchr::memchr2(REFERENCE, END, bytes).unwrap_or(bytes.len());
            text.extend_from_slice(&bytes[..run]);
            address += run as u64;
            match bytes.get(run) {
                Some(&END) => return text.len() <= MAX_LEN,
                Some(_) => {
                    let mut reference = [0; 8];
                    let reference = &mut reference[..self.id_size];
                    if !self.data.copy(address + 1, reference) {
                        return false;
                    }
                    let reference = little_endian(reference);
                    let known = text.len();
                    let deeper = depth > 0 && *references > 0;
                    *references = references.saturating_sub(1);
                    if !deeper || !self.expand(reference, depth - 1, references, text) {
                        // A reference that leads nowhere, or in circles, is in the middle of the known text.
                        text.truncate(known);
                        text.extend_from_slice(&self.unknown(reference));
                    }
                    address += 1 + self.id_size as u64;
                }
                None if bytes.is_empty() || text.len() > MAX_LEN => return false,
                None => {}
            }
        }
    }
}

impl StringIndex {
    fn read(stream: &PageStream<'_>, id_size: usize, skipped: &mut Skipped) -> Self {
        let size = 2 * id_size;
        let len = stream.len().saturating_sub(STREAM_HEADER);
        let entries = match id_size {
            4 => entries::<8>(stream),
            _ => entries::<16>(stream),
        };
        let tail = len % size as u64;
        if tail != 0 {
            let message = format!("an entry of the string index has {tail} of its {size} bytes");
            skipped.add(Error::new(message).at(stream.file_offset(stream.len() - tail)));
        }
        // An id beyond the number of entries would make the file choose our memory.
        let bound = (4 * entries.len() as u64 + 1024).min(METADATA);
        let highest = entries.iter().map(|&(id, _)| id).filter(|id| *id < bound).max();
        let mut dense = vec![0; highest.map_or(0, |id| id as usize + 1)];
        let mut sparse = FxHashMap::default();
        for (id, address) in entries {
            match dense.get_mut(id as usize) {
                Some(place) => *place = address.saturating_add(1),
                None => _ = sparse.insert(id, address.saturating_add(1)),
            }
        }
        Self { dense, sparse }
    }

    fn is_empty(&self) -> bool {
        self.dense.is_empty() && self.sparse.is_empty()
    }

    fn get(&self, id: u64) -> Option<u64> {
        let place = self.dense.get(usize::try_from(id).ok()?).filter(|place| **place > 0);
        place.or_else(|| self.sparse.get(&id))?.checked_sub(1)
    }
}

/// The index, each entry an id and an address of the same width.
fn entries<const SIZE: usize>(stream: &PageStream<'_>) -> Vec<(u64, u64)> {
    let len = stream.len().saturating_sub(STREAM_HEADER);
    let mut entries = Vec::with_capacity((len / SIZE as u64) as usize);
    for page in 0..stream.pages.len() {
        let (records, straddling) = stream.records::<SIZE>(page);
        let both = records.iter().chain(&straddling).map(|entry| entry.split_at(SIZE / 2));
        entries.extend(both.map(|(id, address)| (little_endian(id), little_endian(address))));
    }
    entries
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The number of ids that the small table in front remembers. Interpreters repeat a few thousand functions.
const RECENT: usize = 1 << 13;

/// The number of no label: any id may be in a file, the one of an empty place, too.
const NONE: u32 = u32::MAX;

/// Numbers the labels that are requested, in the order in which they are first seen.
#[derive(Debug)]
pub(super) struct Labels<'s, 'data> {
    strings: &'s Strings<'data>,
    recent: Vec<(u64, u32)>,
    by_id: FxHashMap<u64, u32>,
    pub(super) texts: Texts<u32>,
}

impl<'s, 'data> Labels<'s, 'data> {
    /// No label yet.
    pub(super) fn new(strings: &'s Strings<'data>) -> Self {
        let recent = vec![(u64::MAX, NONE); RECENT];
        Self { strings, recent, by_id: FxHashMap::default(), texts: Texts::default() }
    }

    /// The number of an event's label, arguments left out. The label of an id that leads nowhere is `fn#` and the id.
    #[inline]
    pub(super) fn of(&mut self, id: u64) -> u32 {
        // Addresses of strings lie a text apart: the low bits alone would collide less well than a product's high ones.
        let place = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as usize % RECENT;
        let (recent, label) = self.recent[place];
        if recent == id && label != NONE {
            return label;
        }
        let label = self.look_up(id);
        self.recent[place] = (id, label);
        label
    }

    fn look_up(&mut self, id: u64) -> u32 {
        let id = self.strings.label_id(id);
        if let Some(&label) = self.by_id.get(&id) {
            return label;
        }
        let text = match self.strings.event(id) {
            Some((label, _)) if label.is_empty() => b"<unnamed>".to_vec(),
            Some((label, _)) => label,
            None => self.strings.unknown(id),
        };
        let label = self.texts.intern(&text);
        self.by_id.insert(id, label);
        label
    }

    /// The text of a number.
    pub(super) fn text(&self, label: u32) -> &[u8] {
        self.texts.get(label)
    }
}
