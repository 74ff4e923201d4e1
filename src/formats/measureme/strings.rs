//! The string table, which maps IDs to texts.
//!
//! An ID up to 100,000,001 is virtual: the string index maps it to an address in the string data. A higher ID stands
//! for such an address itself. The text at an address consists of UTF-8 pieces and references to other strings (`0xFE`
//! and an ID), and ends with `0xFF`.

use super::event::VersionLayout;
use super::pages::{PageStream, STREAM_HEADER};
use crate::error::{Error, Skipped};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;

const REFERENCE: u8 = 0xFE;
const END: u8 = 0xFF;
/// Separates an event's label from its arguments, and the arguments from each other.
const SEPARATOR: u8 = 0x1E;

/// The ID of the recording's metadata, a JSON text.
pub(super) const METADATA: u64 = 100_000_001;
const FIRST_ADDRESS: u64 = METADATA + 2;

/// Limit for nested references. Valid texts have only a few levels, but in a damaged table references can form cycles.
const MAX_DEPTH: u32 = 32;
/// Limits for the length of a text in bytes and for its number of references. Only damaged tables exceed them.
const MAX_LEN: usize = 1 << 20;
const MAX_REFERENCES: u32 = 1 << 12;

/// The string table of a profile.
#[derive(Debug)]
pub(super) struct Strings<'data> {
    data: PageStream<'data>,
    index: StringIndex,
    id_size: usize,
}

/// Maps virtual IDs to addresses in the string data. Addresses are stored plus 1, because 0 is a valid address.
#[derive(Debug)]
struct StringIndex {
    /// The address plus 1, by ID; 0 for IDs that aren't in the index. rustc numbers strings from 0, so this takes half
    /// the memory of a map.
    dense: Vec<u64>,
    /// Entries whose IDs are too high for `dense`: the metadata and, if IDs are scattered, other entries.
    sparse: FxHashMap<u64, u64>,
}

impl<'data> Strings<'data> {
    /// Opens the table of strings: `data` has their texts, and `index` where the text of each string ID is in `data`.
    pub(super) fn open(
        data: PageStream<'data>,
        index: &PageStream<'data>,
        layout: VersionLayout,
        skipped: &mut Skipped,
    ) -> Self {
        let index = StringIndex::read(index, layout.id_size, skipped);
        Self { data, index, id_size: layout.id_size }
    }

    /// The text to show for an ID that can't be resolved: `fn#` and the ID. But if it is a virtual ID and the index
    /// isn't empty, the program has just never named this ID, and the text is `<unknown>`.
    pub(super) fn unknown(&self, id: u64) -> Vec<u8> {
        if id <= METADATA && !self.index.is_empty() { b"<unknown>".to_vec() } else { format!("fn#{id}").into_bytes() }
    }

    /// Whether there are no strings at all.
    pub(super) fn is_empty(&self) -> bool {
        self.data.len() <= STREAM_HEADER
    }

    /// The text of a string, with references expanded. `None` if the ID can't be resolved, because the table was cut
    /// off or never written.
    pub(super) fn text(&self, id: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut references = MAX_REFERENCES;
        self.expand(id, MAX_DEPTH, &mut references, &mut text).then_some(text)
    }

    /// The label and the arguments of an event. `None` if the ID can't be resolved.
    pub(super) fn event(&self, id: u64) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
        let text = self.text(id)?;
        let mut parts = text.split(|&byte| byte == SEPARATOR);
        let label = parts.next().unwrap_or_default().to_vec();
        Some((label, parts.map(<[u8]>::to_vec).collect()))
    }

    /// An ID by which the label of an event can be stored. `id` is the ID of the event's text. If the label in it is
    /// just a reference to another string, that string's ID is returned, otherwise `id` itself. rustc writes a new text
    /// for each of millions of events, but the labels of all events of a query refer to one string with the query's
    /// name.
    #[inline]
    pub(super) fn label_id(&self, id: u64) -> u64 {
        let Some(address) = self.address(id) else { return id };
        match self.id_size {
            4 => self.reference_at::<6>(address).unwrap_or(id),
            _ => self.reference_at::<10>(address).unwrap_or(id),
        }
    }

    /// Reads the start of the string at `address` in the string data. If the label (the text before the first argument)
    /// is nothing but a reference to another string, returns that string's ID; otherwise returns `None`.
    ///
    /// Such a label is stored as a byte that marks a reference, the ID, and a byte that ends the label. `MARKED` is the
    /// length of all three in bytes: 6 if IDs have 4 bytes, 10 if they have 8.
    #[inline]
    fn reference_at<const MARKED: usize>(&self, address: u64) -> Option<u64> {
        let mut start = [0; MARKED];
        match self.data.rest_of_page(address).first_chunk() {
            Some(chunk) => start = *chunk,
            None if self.data.copy(address, &mut start) => {}
            None => return None,
        }
        match start[..] {
            // The byte after the reference ends either the whole text or, if the event has arguments, only the label.
            [REFERENCE, ref reference @ .., END | SEPARATOR] => Some(little_endian(reference)),
            _ => None,
        }
    }

    /// Where a string is in the string data; `None` if the ID can't be resolved.
    fn address(&self, id: u64) -> Option<u64> {
        let address = if id <= METADATA { self.index.get(id)? } else { id.checked_sub(FIRST_ADDRESS)? };
        (address < self.data.len()).then_some(address)
    }

    /// Appends the text of a string. `depth` and `references` limit the nesting and the number of references. Returns
    /// false if the string can't be resolved.
    fn expand(&self, id: u64, depth: u32, references: &mut u32, text: &mut Vec<u8>) -> bool {
        let Some(mut address) = self.address(id) else { return false };
        loop {
            let bytes = self.data.rest_of_page(address);
            let plain_len = memchr::memchr2(REFERENCE, END, bytes).unwrap_or(bytes.len());
            text.extend_from_slice(&bytes[..plain_len]);
            address += plain_len as u64;
            match bytes.get(plain_len) {
                Some(&END) => return text.len() <= MAX_LEN,
                // The byte is `REFERENCE`, and the ID of another string follows.
                Some(_) => {
                    let mut id_bytes = [0; 8];
                    let id_bytes = &mut id_bytes[..self.id_size];
                    if !self.data.copy(address + 1, id_bytes) {
                        return false;
                    }
                    let reference = little_endian(id_bytes);
                    let len_before = text.len();
                    let is_allowed = depth > 0 && *references > 0;
                    // `depth` limits each branch, `references` all of the text.
                    *references = references.saturating_sub(1);
                    if !is_allowed || !self.expand(reference, depth - 1, references, text) {
                        // The reference can't be resolved or a limit was exceeded, as by a cyclic reference. Put a
                        // placeholder in its place, and keep the text around it.
                        text.truncate(len_before);
                        text.extend_from_slice(&self.unknown(reference));
                    }
                    address += 1 + self.id_size as u64;
                }
                // The string data ends before the text does, or the text is too long.
                None if bytes.is_empty() || text.len() > MAX_LEN => return false,
                // The text continues on the next page.
                None => {}
            }
        }
    }
}

impl StringIndex {
    /// Reads the string index: pairs of a string's ID and its address in the string data, of `id_size` bytes each. Low
    /// IDs go into a table (`dense`), because rustc assigns them in sequence; others go into a map (`sparse`).
    fn read(stream: &PageStream<'_>, id_size: usize, skipped: &mut Skipped) -> Self {
        let size = 2 * id_size;
        let len = stream.len().saturating_sub(STREAM_HEADER);
        let entries = match id_size {
            4 => entries::<8>(stream),
            _ => entries::<16>(stream),
        };
        let tail = len % size as u64;
        if tail != 0 {
            let message = format!("an entry of the string index has only {tail} of its {size} bytes");
            skipped.add(Error::new(message).at_offset(stream.file_offset(stream.len() - tail)));
        }
        // Limit the table's size, so that a damaged ID can't make us allocate a lot of memory. IDs from `id_limit` on,
        // such as that of the metadata, go into the map.
        let id_limit = (4 * entries.len() as u64 + 1024).min(METADATA);
        let highest = entries.iter().map(|&(id, _)| id).filter(|id| *id < id_limit).max();
        let mut dense = vec![0; highest.map_or(0, |id| id as usize + 1)];
        let mut sparse = FxHashMap::default();
        for (id, address) in entries {
            match dense.get_mut(id as usize) {
                // Addresses are stored plus 1, because 0 stands for an ID without an entry.
                Some(entry) => *entry = address.saturating_add(1),
                None => _ = sparse.insert(id, address.saturating_add(1)),
            }
        }
        Self { dense, sparse }
    }

    fn is_empty(&self) -> bool {
        self.dense.is_empty() && self.sparse.is_empty()
    }

    fn get(&self, id: u64) -> Option<u64> {
        match self.dense.get(usize::try_from(id).ok()?) {
            None | Some(0) => self.sparse.get(&id)?.checked_sub(1),
            Some(address) => address.checked_sub(1),
        }
    }
}

/// Reads the entries of the string index. Each has `SIZE` bytes: an ID and an address, half of the bytes each.
fn entries<const SIZE: usize>(stream: &PageStream<'_>) -> Vec<(u64, u64)> {
    let len = stream.len().saturating_sub(STREAM_HEADER);
    let mut entries = Vec::with_capacity((len / SIZE as u64) as usize);
    for page in 0..stream.pages.len() {
        let (records, straddling) = stream.records::<SIZE>(page);
        for record in records.iter().chain(&straddling) {
            let (id, address) = record.split_at(SIZE / 2);
            entries.push((little_endian(id), little_endian(address)));
        }
    }
    entries
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The number of entries of [`Labels::recent`], a cache that is searched before the map of all labels. Interpreters
/// repeat a few thousand functions.
const RECENT: usize = 1 << 13;

/// The label number of an unused entry of the cache. The entry's ID can't show that it is unused, since a file may
/// contain any ID.
const NONE: u32 = u32::MAX;

/// Numbers event labels in the order of their first use.
#[derive(Debug)]
pub(super) struct Labels<'s, 'data> {
    strings: &'s Strings<'data>,
    /// A cache of events' string IDs and the numbers of their labels. A hash of the ID is the index.
    recent: Vec<(u64, u32)>,
    /// The number of each label, by [`Strings::label_id`].
    by_id: FxHashMap<u64, u32>,
    pub(super) texts: Texts<u32>,
}

impl<'s, 'data> Labels<'s, 'data> {
    /// Starts without any labels.
    pub(super) fn new(strings: &'s Strings<'data>) -> Self {
        let recent = vec![(u64::MAX, NONE); RECENT];
        Self { strings, recent, by_id: FxHashMap::default(), texts: Texts::default() }
    }

    /// The number of an event's label, without its arguments. If the ID can't be resolved, the label is that of
    /// [`Strings::unknown`].
    #[inline]
    pub(super) fn number(&mut self, id: u64) -> u32 {
        // Find the ID's slot in the cache of recent labels. IDs are addresses of texts. Texts often have the same
        // length, so the low bits of their addresses would often collide. The upper 13 bits of a product, as many as
        // `RECENT` needs, collide less.
        let slot = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as usize % RECENT;
        let (recent_id, label) = self.recent[slot];
        // `NONE` marks an unused entry, whose `recent_id` means nothing.
        if recent_id == id && label != NONE {
            return label;
        }
        let label = self.look_up(id);
        self.recent[slot] = (id, label);
        label
    }

    /// Like [`Self::number`], but looks in the map of all labels (`by_id`), not in the cache of recent ones. Adds the
    /// label to the map if it is new.
    fn look_up(&mut self, id: u64) -> u32 {
        // If the event's label is a reference to a string, which many events share, this is the ID of that string.
        // Otherwise it is `id` itself.
        let label_id = self.strings.label_id(id);
        if let Some(&label) = self.by_id.get(&label_id) {
            return label;
        }
        let text = match self.strings.event(label_id) {
            Some((label, _)) if label.is_empty() => b"<unnamed>".to_vec(),
            Some((label, _)) => label,
            None => self.strings.unknown(label_id),
        };
        let label = self.texts.intern(&text);
        self.by_id.insert(label_id, label);
        label
    }

    /// The text of a label.
    pub(super) fn text(&self, label: u32) -> &[u8] {
        self.texts.get(label)
    }
}
