//! Finds source files of functions in profiles where only executed lines have a file.
//!
//! In perf.data and other recordings of addresses, a source file is known per executed line rather than per function,
//! and not for all lines. Formats with one file per function would otherwise show such a function twice: with the file
//! and without.

use crate::model::stacks::{Frame, Function, NameId, Profile};
use rustc_hash::FxHashMap;

/// For each function, the first known source file of any of its frames.
#[derive(Debug, Default)]
pub struct FunctionFiles {
    files: FxHashMap<Function, NameId>,
    /// The number of frames of the profile that have been examined.
    seen: usize,
}

impl FunctionFiles {
    /// Examines the frames that were added to the profile since the last call.
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

    /// The source file of a frame; if it has none, that of another frame of the same function. `None` if none has a
    /// file.
    pub fn file_of(&self, profile: &Profile, frame: &Frame) -> Option<NameId> {
        frame.file.or_else(|| self.files.get(&profile.function_of(frame)).copied())
    }
}
