//! By what samples are put together, and what each frame and thread is called then.

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::analysis::namesakes::{StartPlace, places_of_namesakes};
use crate::model::interner::{InternedNumbers, hash_of};
use crate::model::printable::printable;
use crate::model::stacks::{Frame, Function, NameId, Profile, Track, UNKNOWN};
use std::borrow::Cow;
use std::sync::Arc;

/// One thing to put samples together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The name of the thread (or process).
    Comm,
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The processor.
    Cpu,
    /// The file (or what stands for one) that holds the code.
    Module,
    /// The function.
    Function,
    /// The owner of the code: the kernel's, native, inlined, JIT.
    Kind,
    /// The same, and JIT code by its tier.
    Tier,
    /// File and line.
    Line,
}

/// The name of a group by one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Not known.
    None,
    /// A number.
    Number(i64),
    /// A name.
    Text(Arc<str>),
}

/// The way that functions that have no name are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unnamed {
    /// All of a module are one, called `[module]`, as in folded stacks.
    #[default]
    ByModule,
    /// Each address is one, as perf report has it.
    ByAddress,
}

/// The parts of a group's values that a frame, or a thread, decides: equal ones have one number.
#[derive(Debug, Clone)]
struct ValueParts {
    keys: Vec<Key>,
    /// Those of each part, one behind the other.
    values: Vec<Value>,
    /// The function of each part, where functions are distinguished: two may be called alike.
    functions: Vec<Option<Function>>,
    count: u32,
    numbers: InternedNumbers,
    /// By frame, or by track.
    of: Vec<u32>,
}

/// The groups that every frame and thread of a profile belongs to.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// The part and the place in it, for each key.
    places: Vec<ValuePlace>,
    frames: ValueParts,
    tracks: ValueParts,
}

/// The place of a group's value.
#[derive(Debug, Clone, Copy)]
enum ValuePlace {
    OfTrack(usize),
    OfFrame(usize),
}

/// The names of a profile as text, each made once.
struct SpelledNames<'p> {
    profile: &'p Profile,
    texts: Vec<Option<Arc<str>>>,
}

impl Key {
    /// True if the thread decides it; else the frame does.
    fn is_of_track(self) -> bool {
        matches!(self, Self::Comm | Self::Pid | Self::Tid | Self::Cpu)
    }
}

impl Value {
    /// Its text, empty if absent.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Number(_) => "",
        }
    }
}

impl ValueParts {
    fn new(keys: Vec<Key>) -> Self {
        let (values, functions, of) = (Vec::new(), Vec::new(), Vec::new());
        Self { keys, values, functions, count: 0, numbers: InternedNumbers::default(), of }
    }

    /// The part of the next frame, or track.
    fn push(&mut self, function: Option<Function>, value: impl FnMut(Key) -> Value) {
        let first = self.values.len();
        self.values.extend(self.keys.iter().copied().map(value));
        let (known, new) = self.values.split_at(first);
        let (hash, width) = (hash_of(&(new, function)), new.len());
        let is_it = |number: u32| {
            let number = number as usize;
            self.functions[number] == function && known[number * width..][..width] == *new
        };
        let number = self.numbers.find(hash, is_it).inspect(|_| self.values.truncate(first)).unwrap_or_else(|| {
            self.numbers.insert(hash, self.count);
            self.functions.push(function);
            self.count += 1;
            self.count - 1
        });
        self.of.push(number);
    }

    fn values(&self, part: u32) -> &[Value] {
        &self.values[part as usize * self.keys.len()..][..self.keys.len()]
    }
}

impl Grouping {
    /// Looks at every frame and thread once.
    pub fn new(profile: &Profile, keys: &[Key], unnamed: Unnamed) -> Self {
        let (of_track, of_frame): (Vec<Key>, Vec<Key>) = keys.iter().partition(|key| key.is_of_track());
        let (mut frames, mut tracks) = (ValueParts::new(of_frame), ValueParts::new(of_track));
        let mut spelled = SpelledNames { profile, texts: vec![None; profile.name_count()] };
        let by_function = keys.contains(&Key::Function);
        for (_, frame) in profile.frames() {
            let is_named = by_function && profile.name_of(frame.name) != UNKNOWN;
            let function = is_named.then(|| profile.function_of(frame));
            frames.push(function, |key| of_a_frame(&mut spelled, frame, key, unnamed));
        }
        for track in profile.tracks() {
            tracks.push(None, |key| of_a_track(track, key));
        }
        let (mut of_tracks, mut of_frames) = (0.., 0..);
        let mut place = |key: &Key| match key.is_of_track() {
            true => of_tracks.next().map(ValuePlace::OfTrack),
            false => of_frames.next().map(ValuePlace::OfFrame),
        };
        Self { places: keys.iter().filter_map(&mut place).collect(), frames, tracks }
    }

    /// True if frames decide nothing: then a sample belongs to its thread's group, wherever it was taken.
    pub(super) fn is_of_tracks_only(&self) -> bool {
        self.frames.keys.is_empty()
    }

    /// The numbers of the parts that frames decide.
    pub fn of_frames(&self) -> &[u32] {
        &self.frames.of
    }

    /// The number of parts that frames decide.
    pub fn frame_parts(&self) -> usize {
        self.frames.count as usize
    }

    /// The numbers of the parts that threads decide.
    pub(super) fn of_tracks(&self) -> &[u32] {
        &self.tracks.of
    }

    /// The number of parts that threads decide.
    pub(super) fn track_parts(&self) -> usize {
        self.tracks.count as usize
    }

    /// The name of a group of these parts, key by key.
    pub(super) fn values(&self, track: u32, frame: Option<u32>) -> impl DoubleEndedIterator<Item = &Value> {
        let tracks = self.tracks.values(track);
        let frames = frame.map(|frame| self.frames.values(frame)).unwrap_or_default();
        self.places.iter().map(move |place| match *place {
            ValuePlace::OfTrack(at) => &tracks[at],
            ValuePlace::OfFrame(at) => frames.get(at).unwrap_or(&Value::None),
        })
    }

    /// The function of a frame's part; `None` if functions are not distinguished, or it has no name.
    pub fn function(&self, part: u32) -> Option<Function> {
        self.frames.functions[part as usize]
    }

    /// By part, where its function starts, if functions that start elsewhere are called like it.
    pub fn places_of_namesakes(&self, profile: &Profile) -> Vec<Option<String>> {
        let functions = self.frames.functions.iter().map(|function| {
            let Some(Function { name, start, .. }) = function else { return ("", None) };
            let name = std::str::from_utf8(profile.name_of(*name)).unwrap_or_default();
            let place = |file| StartPlace { file: profile.name_of(file), line: start.line, column: start.column };
            (name, start.file.map(place))
        });
        places_of_namesakes(functions)
    }

    /// The name of a frame's part, by those keys that frames decide.
    pub fn frame_values(&self, part: u32) -> &[Value] {
        self.frames.values(part)
    }
}

fn of_a_track(track: &Track, key: Key) -> Value {
    let number = |number: Option<i64>| number.map_or(Value::None, Value::Number);
    match key {
        Key::Pid => number(track.pid.map(|pid| pid.0.into())),
        Key::Tid => number(track.tid.map(|tid| tid.0.into())),
        Key::Cpu => number(track.cpu.map(i64::from)),
        _ => Value::Text(text_of(&track.comm).into()),
    }
}

fn of_a_frame(spelled: &mut SpelledNames<'_>, frame: &Frame, key: Key, unnamed: Unnamed) -> Value {
    let profile = spelled.profile;
    match key {
        Key::Module => frame.module.map_or(Value::None, |module| Value::Text(spelled.text(module))),
        Key::Kind => Value::Text(kind(Category::of(frame)).into()),
        Key::Tier => Value::Text(Category::of(frame).name().into()),
        Key::Line => {
            let place = profile.place_of(frame);
            place.map_or(Value::None, |(file, at)| Value::Text(line(text_of(profile.name_of(file)), at).into()))
        }
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

/// A name as text; what is none is written out, so that two names stay two.
fn text_of(name: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(name).map_or_else(|_| printable(name), Cow::Borrowed)
}

/// The word for whose code it is, all tiers alike.
pub fn kind(category: Category) -> &'static str {
    category.of_any_tier().name()
}

/// A place in a source file; line 0 is none.
pub(super) fn line(file: Cow<'_, str>, line: u32) -> String {
    if line == 0 { file.into_owned() } else { format!("{file}:{line}") }
}
