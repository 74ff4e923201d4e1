//! By what samples are put together, and what each frame and thread is called then.

use crate::model::category::Category;
use crate::model::label;
use crate::model::printable::printable;
use crate::model::stacks::{Frame, Profile, Track, UNKNOWN};
use rustc_hash::FxHashMap;

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
    /// Whose code it is: the kernel's, native, inlined, JIT.
    Kind,
    /// The same, and JIT code by its tier.
    Tier,
    /// File and line.
    Line,
}

/// What a group is called by one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Not known.
    None,
    /// A number.
    Number(i64),
    /// A name.
    Text(String),
}

/// How functions that have no name are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unnamed {
    /// All of a module are one, called `[module]`, as in folded stacks.
    #[default]
    ByModule,
    /// Each address is one, as perf report has it.
    ByAddress,
}

/// The parts of a group's values that a frame, or a thread, decides: equal ones have one number.
#[derive(Debug, Clone, Default)]
struct Parts {
    values: Vec<Vec<Value>>,
    numbers: FxHashMap<Vec<Value>, u32>,
    /// By frame, or by track.
    of: Vec<u32>,
}

/// What every frame and thread of a profile belongs to.
#[derive(Debug, Clone)]
pub struct Grouping {
    keys: Vec<Key>,
    frames: Parts,
    tracks: Parts,
}

impl Key {
    /// Whether the thread decides it; else the frame does.
    fn is_of_track(self) -> bool {
        matches!(self, Self::Comm | Self::Pid | Self::Tid | Self::Cpu)
    }
}

impl Value {
    /// Its text, empty if there is none.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Number(_) => "",
        }
    }
}

impl Parts {
    fn push(&mut self, values: Vec<Value>) {
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(values).or_insert_with_key(|values| {
            self.values.push(values.clone());
            next
        });
        self.of.push(number);
    }
}

impl Grouping {
    /// Looks at every frame and thread once.
    pub fn new(profile: &Profile, keys: &[Key], unnamed: Unnamed) -> Self {
        let (mut frames, mut tracks) = (Parts::default(), Parts::default());
        let (of_track, of_frame): (Vec<Key>, Vec<Key>) = keys.iter().partition(|key| key.is_of_track());
        for (_, frame) in profile.frames() {
            frames.push(of_frame.iter().map(|key| of_a_frame(profile, frame, *key, unnamed)).collect());
        }
        for track in profile.tracks() {
            tracks.push(of_track.iter().map(|key| of_a_track(track, *key)).collect());
        }
        Self { keys: keys.to_vec(), frames, tracks }
    }

    /// Whether frames decide nothing: then a sample belongs to its thread's group, wherever it was taken.
    pub(super) fn is_of_tracks_only(&self) -> bool {
        self.keys.iter().all(|key| key.is_of_track())
    }

    /// The number of what a frame decides.
    pub fn of_frames(&self) -> &[u32] {
        &self.frames.of
    }

    /// How many numbers there are of what frames decide.
    pub fn frame_parts(&self) -> usize {
        self.frames.values.len()
    }

    /// The number of what a thread decides.
    pub(super) fn of_tracks(&self) -> &[u32] {
        &self.tracks.of
    }

    /// How many numbers there are of what threads decide.
    pub(super) fn track_parts(&self) -> usize {
        self.tracks.values.len()
    }

    /// What a group is called, key by key.
    pub(super) fn values(&self, track: u32, frame: Option<u32>) -> Vec<Value> {
        let mut tracks = self.tracks.values[track as usize].iter();
        let mut frames = frame.map(|frame| self.frames.values[frame as usize].iter()).unwrap_or_default();
        let value = |key: &Key| if key.is_of_track() { tracks.next() } else { frames.next() };
        self.keys.iter().map(value).map(|value| value.cloned().unwrap_or(Value::None)).collect()
    }

    /// What a frame's part is called, by those keys that frames decide.
    pub fn frame_values(&self, part: u32) -> &[Value] {
        &self.frames.values[part as usize]
    }
}

fn of_a_track(track: &Track, key: Key) -> Value {
    let number = |number: Option<i64>| number.map_or(Value::None, Value::Number);
    match key {
        Key::Pid => number(track.pid.map(|pid| pid.0.into())),
        Key::Tid => number(track.tid.map(|tid| tid.0.into())),
        Key::Cpu => number(track.cpu.map(i64::from)),
        _ => Value::Text(text_of(&track.comm)),
    }
}

fn of_a_frame(profile: &Profile, frame: &Frame, key: Key, unnamed: Unnamed) -> Value {
    let text = |id| text_of(profile.name_of(id));
    match key {
        Key::Module => frame.module.map_or(Value::None, |module| Value::Text(text(module))),
        Key::Kind => Value::Text(kind(Category::of(frame)).to_owned()),
        Key::Tier => Value::Text(Category::of(frame).name().to_owned()),
        Key::Line => frame.file.map_or(Value::None, |file| Value::Text(line(text(file), frame.line))),
        _ => Value::Text(match unnamed {
            Unnamed::ByModule if profile.name_of(frame.name) == UNKNOWN => label::unnamed(profile, frame),
            Unnamed::ByAddress if profile.name_of(frame.name) == UNKNOWN => {
                frame.addr.map_or_else(|| label::unnamed(profile, frame), |addr| format!("{addr:#x}"))
            }
            _ => text(frame.name),
        }),
    }
}

/// A name as text; what is none is written out, so that two names stay two.
fn text_of(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).unwrap_or_else(|_| printable(name).into_owned())
}

/// The word for whose code it is, all tiers alike.
pub fn kind(category: Category) -> &'static str {
    match category {
        Category::Jit(_) => Category::Jit(None).name(),
        other => other.name(),
    }
}

/// A place in a source file; line 0 is none.
pub(super) fn line(file: String, line: u32) -> String {
    if line == 0 { file } else { format!("{file}:{line}") }
}
