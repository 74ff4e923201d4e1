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
    /// The file of each function for which one is known.
    files: FxHashMap<Function, NameId>,
    /// The number of frames of the profile that have been examined.
    seen: usize,
}

impl FunctionFiles {
    /// Examines the frames that were added to the profile since the last call. For each function, remembers the file of
    /// its first frame that states a file.
    pub fn update(&mut self, profile: &Profile) {
        // If there are fewer frames than before, the profile was emptied or replaced.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::FrameKind;

    /// Adds a frame of the function `f` and returns it.
    fn add_frame(profile: &mut Profile, line: u32, file: Option<&[u8]>) -> Frame {
        let name = profile.name(b"f");
        let file = file.map(|file| profile.name(file));
        let id = profile.frame(Frame { file, line, ..Frame::new(name, FrameKind::User) });
        *profile.frame_of(id)
    }

    #[test]
    fn each_frame_is_examined_once_however_often_frames_are_added() {
        let (mut profile, mut files, mut examined) = (Profile::new(), FunctionFiles::default(), 0);
        for line in 1..=500 {
            add_frame(&mut profile, line, Some(b"a.c"));
            examined += profile.frames_after(files.seen).len();
            files.update(&profile);
        }
        assert_eq!((examined, profile.frame_count()), (500, 500));
    }

    #[test]
    fn a_function_has_the_first_file_of_its_frames_and_none_of_another_profile() {
        let (mut profile, mut files) = (Profile::new(), FunctionFiles::default());
        let bare = add_frame(&mut profile, 0, None);
        files.update(&profile);
        assert_eq!(files.file_of(&profile, &bare), None);
        let first = add_frame(&mut profile, 3, Some(b"a.c"));
        let second = add_frame(&mut profile, 4, Some(b"b.c"));
        files.update(&profile);
        assert_eq!(files.file_of(&profile, &bare), first.file);
        assert_eq!(files.file_of(&profile, &second), second.file);
        let mut other = Profile::new();
        let bare = add_frame(&mut other, 0, None);
        files.update(&other);
        assert_eq!(files.file_of(&other, &bare), None, "a profile with fewer frames is another one");
    }
}
