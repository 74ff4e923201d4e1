//! Finds source files for functions of which only the executed lines have a file.
//!
//! In recordings of addresses, the file belongs to a line rather than to a function, and isn't known for all lines.
//! Formats with one file per function would otherwise split a function whose lines are partly unknown.

use crate::model::stacks::{Frame, Function, NameId, Profile};
use rustc_hash::FxHashMap;

/// For each function, the first file that one of its frames has.
#[derive(Debug, Default)]
pub struct FunctionFiles {
    files: FxHashMap<Function, NameId>,
    /// The number of frames examined so far.
    seen: usize,
}

impl FunctionFiles {
    /// Examines frames that are new in the profile.
    pub fn update(&mut self, profile: &Profile) {
        if profile.frame_count() < self.seen {
            *self = Self::default();
        }
        for frame in profile.frames_after(self.seen) {
            if let Some(file) = frame.file {
                self.files.entry(profile.function_of(frame)).or_insert(file);
            }
        }
        self.seen = profile.frame_count();
    }

    /// The file of a frame, or of another frame of the same function.
    pub fn file_of(&self, profile: &Profile, frame: &Frame) -> Option<NameId> {
        frame.file.or_else(|| self.files.get(&profile.function_of(frame)).copied())
    }
}
