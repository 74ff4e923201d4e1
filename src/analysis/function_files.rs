//! The source file of functions of which only lines state one.
//!
//! Recordings of addresses know the file of a line, not that of a function, and not for every line. Formats that have a
//! file for each function would make two functions of one whose lines are partly unknown.

use crate::model::stacks::{Frame, Function, NameId, Profile};
use rustc_hash::FxHashMap;

/// By function, the first file that one of its frames states.
#[derive(Debug, Default)]
pub struct FunctionFiles {
    files: FxHashMap<Function, NameId>,
    /// The number of frames that were looked at.
    seen: usize,
}

impl FunctionFiles {
    /// Looks at the frames that are new in a profile.
    pub fn update(&mut self, profile: &Profile) {
        if profile.frame_count() < self.seen {
            *self = Self::default();
        }
        for (_, frame) in profile.frames().skip(self.seen) {
            if let Some(file) = frame.file {
                self.files.entry(profile.function_of(frame)).or_insert(file);
            }
        }
        self.seen = profile.frame_count();
    }

    /// The file of a frame, or else of its function.
    pub fn file_of(&self, profile: &Profile, frame: &Frame) -> Option<NameId> {
        frame.file.or_else(|| self.files.get(&profile.function_of(frame)).copied())
    }
}
