//! Keys for grouping samples (function, module, thread, …), and the values of these keys for each frame and thread.

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::analysis::namesakes::{StartPlace, namesake_locations};
use crate::model::interner::{InternedNumbers, hash_of};
use crate::model::printable::printable;
use crate::model::stacks::{Frame, Function, NameId, Profile, Track, UNKNOWN};
use std::borrow::Cow;
use std::sync::Arc;

/// A property to group samples by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The name of the thread or process.
    Comm,
    /// The process that the sample was taken in.
    Pid,
    /// The thread that the sample was taken in.
    Tid,
    /// The CPU that the sample was taken on.
    Cpu,
    /// The file that contains the code; or the kernel, or the module under which JIT code is shown.
    Module,
    /// The function of the frame.
    Function,
    /// Who owns the code: kernel, native, inlined, JIT.
    Kind,
    /// Like [`Kind`](Self::Kind), with JIT code divided by tier.
    Tier,
    /// Source file and line.
    Line,
}

/// A group's value for one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Not known.
    None,
    /// A number.
    Number(i64),
    /// A name.
    Text(Arc<str>),
}

/// How to group functions without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unnamed {
    /// All unnamed functions of a module form one group, named `[module]`, as in folded stacks.
    #[default]
    ByModule,
    /// Each address is a group of its own, as in perf report.
    ByAddress,
}

/// The values of the keys that depend on frames (such as the function), or of those that depend on threads (such as the
/// process). Each distinct combination of values is called a part, and has an ID.
#[derive(Debug, Clone)]
struct ValueParts {
    /// The keys whose values each part has.
    keys: Vec<Key>,
    /// The values of all parts, one part after the other, each in the order of `keys`.
    values: Vec<Value>,
    /// For each part, its function if one of the keys is [`Key::Function`], otherwise `None`. Parts with equal values
    /// may differ in this, because different functions may have the same name.
    functions: Vec<Option<Function>>,
    /// The number of parts.
    count: u32,
    /// Finds a part's ID by the hash of its values and function.
    ids: InternedNumbers,
    /// For each frame, or for each track, the ID of its part.
    part_ids: Vec<u32>,
}

/// Determines the groups that samples belong to. The key of a group consists of values of a frame (such as its
/// function) and values of a thread (such as its process).
#[derive(Debug, Clone)]
pub struct Grouping {
    /// For each key, where a group's value of that key is stored.
    places: Vec<ValuePlace>,
    frames: ValueParts,
    tracks: ValueParts,
    /// See [`Category::are_known`].
    categories_known: bool,
}

/// Where a group's value of a key is stored: in its track part, which has the values of all keys that depend on the
/// track (thread), or in its frame part, which has those that depend on the frame. The number is the index in that
/// part.
#[derive(Debug, Clone, Copy)]
enum ValuePlace {
    OfTrack(usize),
    OfFrame(usize),
}

/// The names of a profile converted to text. Each is converted once.
struct SpelledNames<'p> {
    profile: &'p Profile,
    /// By name ID; `None` until the name is needed.
    texts: Vec<Option<Arc<str>>>,
    /// See [`Category::are_known`].
    categories_known: bool,
}

impl Key {
    /// True if the key's value depends on the thread, false if it depends on the frame.
    fn is_of_track(self) -> bool {
        matches!(self, Self::Comm | Self::Pid | Self::Tid | Self::Cpu)
    }
}

impl Value {
    /// The value as text; empty for numbers and unknown values.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Number(_) => "",
        }
    }
}

impl ValueParts {
    fn new(keys: Vec<Key>) -> Self {
        let (values, functions, part_ids) = (Vec::new(), Vec::new(), Vec::new());
        Self { keys, values, functions, count: 0, ids: InternedNumbers::default(), part_ids }
    }

    /// Adds the next frame or track: computes its values of all keys, and stores the ID of the part that has these
    /// values and this function. A part is a distinct combination of values and function; it is added if there is none.
    fn push(&mut self, function: Option<Function>, value: impl FnMut(Key) -> Value) {
        // Append the values as if they were a new part's, and take them off again if such a part exists.
        let new_start = self.values.len();
        self.values.extend(self.keys.iter().copied().map(value));
        let (earlier, new) = self.values.split_at(new_start);
        let (hash, width) = (hash_of(&(new, function)), new.len());
        let existing = self.ids.find(hash, |id| {
            let id = id as usize;
            let values = &earlier[id * width..][..width];
            self.functions[id] == function && values == new
        });
        let id = match existing {
            Some(id) => {
                self.values.truncate(new_start);
                id
            }
            None => {
                let id = self.count;
                self.ids.insert(hash, id);
                self.functions.push(function);
                self.count += 1;
                id
            }
        };
        self.part_ids.push(id);
    }

    fn values(&self, part: u32) -> &[Value] {
        &self.values[part as usize * self.keys.len()..][..self.keys.len()]
    }
}

impl Grouping {
    /// Computes the key values of every frame and every track (thread) of the profile.
    pub fn new(profile: &Profile, keys: &[Key], unnamed: Unnamed) -> Self {
        let (track_keys, frame_keys): (Vec<Key>, Vec<Key>) = keys.iter().partition(|key| key.is_of_track());
        let (mut frames, mut tracks) = (ValueParts::new(frame_keys), ValueParts::new(track_keys));
        let mut spelled = SpelledNames {
            profile,
            texts: vec![None; profile.name_count()],
            categories_known: Category::are_known(profile),
        };
        let by_function = keys.contains(&Key::Function);
        for (_, frame) in profile.frames() {
            // If the keys include the function, functions of the same name get different parts if they start at
            // different locations or are in different modules. Unnamed frames have no function: only their values tell
            // them apart.
            let is_named = by_function && profile.name_of(frame.name) != UNKNOWN;
            let function = is_named.then(|| profile.function_of(frame));
            frames.push(function, |key| frame_value(&mut spelled, frame, key, unnamed));
        }
        for track in profile.tracks() {
            tracks.push(None, |key| track_value(track, key));
        }
        let mut places = Vec::with_capacity(keys.len());
        // The values of a group's keys are split into two lists: those of its track part and those of its frame part.
        // So each key gets the next index in the list that it belongs to.
        let (mut track_values, mut frame_values) = (0, 0);
        for key in keys {
            if key.is_of_track() {
                places.push(ValuePlace::OfTrack(track_values));
                track_values += 1;
            } else {
                places.push(ValuePlace::OfFrame(frame_values));
                frame_values += 1;
            }
        }
        Self { places, frames, tracks, categories_known: spelled.categories_known }
    }

    /// See [`Category::are_known`].
    pub(super) fn categories_known(&self) -> bool {
        self.categories_known
    }

    /// True if no key depends on frames: a sample's group then depends on its thread only, not on its stack.
    pub(super) fn is_of_tracks_only(&self) -> bool {
        self.frames.keys.is_empty()
    }

    /// The frame part ID of each frame of the profile, indexed by frame ID.
    pub fn frame_part_ids(&self) -> &[u32] {
        &self.frames.part_ids
    }

    /// The number of frame parts. IDs are `0..frame_parts()`.
    pub fn frame_parts(&self) -> usize {
        self.frames.count as usize
    }

    /// The track part ID of each track of the profile, indexed by track ID.
    pub(super) fn track_part_ids(&self) -> &[u32] {
        &self.tracks.part_ids
    }

    /// The number of track parts. IDs are `0..track_parts()`.
    pub(super) fn track_parts(&self) -> usize {
        self.tracks.count as usize
    }

    /// The key values of a group, one per key, in the order of the keys. A group is given by two IDs: `track` selects
    /// the combination of values that depend on the thread (such as process and CPU), `frame` the combination of those
    /// that depend on the frame (such as function and line). `frame` is `None` if no key depends on frames.
    pub(super) fn values(&self, track: u32, frame: Option<u32>) -> impl DoubleEndedIterator<Item = &Value> {
        let track_values = self.tracks.values(track);
        let frame_values = frame.map(|frame| self.frames.values(frame)).unwrap_or_default();
        self.places.iter().map(move |place| match *place {
            ValuePlace::OfTrack(index) => &track_values[index],
            ValuePlace::OfFrame(index) => frame_values.get(index).unwrap_or(&Value::None),
        })
    }

    /// The function of a frame part (which stands for all frames with the same key values). `None` if the function has
    /// no name, or if not grouping by function.
    pub fn function(&self, part: u32) -> Option<Function> {
        self.frames.functions[part as usize]
    }

    /// For each frame part, the start location of its function (`db.py:10`) if other functions have the same name;
    /// otherwise `None`.
    pub fn namesake_locations(&self, profile: &Profile) -> Vec<Option<String>> {
        let functions = self.frames.functions.iter().map(|function| {
            let Some(Function { name, start, .. }) = function else { return ("", None) };
            let name = std::str::from_utf8(profile.name_of(*name)).unwrap_or_default();
            (name, StartPlace::new(profile, *start))
        });
        namesake_locations(functions)
    }

    /// The values of a frame part, for those keys that depend on the frame.
    pub fn frame_values(&self, part: u32) -> &[Value] {
        self.frames.values(part)
    }
}

/// The value that the samples of a thread have for a key. `key` must be one that depends on threads.
fn track_value(track: &Track, key: Key) -> Value {
    let number = match key {
        Key::Pid => track.pid.map(|pid| pid.0.into()),
        Key::Tid => track.tid.map(|tid| tid.0.into()),
        Key::Cpu => track.cpu.map(i64::from),
        // `Key::Comm`: the other keys depend on frames.
        _ => return Value::Text(text_of(&track.comm).into()),
    };
    number.map_or(Value::None, Value::Number)
}

/// The value that samples in a frame have for a key. `key` must be one that depends on frames.
fn frame_value(spelled: &mut SpelledNames<'_>, frame: &Frame, key: Key, unnamed: Unnamed) -> Value {
    let profile = spelled.profile;
    let category = Category::for_table(frame, spelled.categories_known);
    match key {
        Key::Module => frame.module.map_or(Value::None, |module| Value::Text(spelled.text(module))),
        Key::Kind => Value::Text(kind(category).into()),
        Key::Tier => Value::Text(category.name().into()),
        Key::Line => {
            let Some((file, line_number)) = profile.place_of(frame) else { return Value::None };
            Value::Text(line(text_of(profile.name_of(file)), line_number).into())
        }
        // `Key::Function`: the other keys depend on threads.
        _ => Value::Text(match unnamed {
            Unnamed::ByModule if profile.name_of(frame.name) == UNKNOWN => label::unnamed(profile, frame).into(),
            Unnamed::ByAddress if profile.name_of(frame.name) == UNKNOWN => {
                frame.addr.map_or_else(|| label::unnamed(profile, frame), |addr| format!("{addr:#x}")).into()
            }
            _ => spelled.text(frame.name),
        }),
    }
}

impl SpelledNames<'_> {
    fn text(&mut self, id: NameId) -> Arc<str> {
        self.texts[id.index()].get_or_insert_with(|| text_of(self.profile.name_of(id)).into()).clone()
    }
}

/// A name as text. Bytes that aren't UTF-8 are escaped, so that different names stay different.
fn text_of(name: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(name).map_or_else(|_| printable(name), Cow::Borrowed)
}

/// The name of a kind of code, without the tier.
pub fn kind(category: Category) -> &'static str {
    category.without_tier().name()
}

/// A source location as `file:line`, or only the file if the line is 0 (unknown).
pub(super) fn line(file: Cow<'_, str>, line: u32) -> String {
    if line == 0 { file.into_owned() } else { format!("{file}:{line}") }
}
