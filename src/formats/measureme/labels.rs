//! The labels of events, numbered: one number for each different text.

use super::strings::Strings;
use crate::model::texts::{TextList, Texts};
use rustc_hash::FxHashMap;

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
    texts: Texts<u32>,
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
        let label = self.named(&text);
        self.by_id.insert(id, label);
        label
    }

    /// The number of a text.
    pub(super) fn named(&mut self, text: &[u8]) -> u32 {
        self.texts.intern(text)
    }

    /// The text of a number.
    pub(super) fn text(&self, label: u32) -> &[u8] {
        self.texts.get(label)
    }

    /// All texts, by number.
    pub(super) fn texts(&self) -> &TextList {
        self.texts.list()
    }
}
