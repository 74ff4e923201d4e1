//! Renames functions and replaces frames in profiles.

use super::{Frame, FrameId, FunctionStart, Keep, NameId, Profile, StackId, Track, TrackId};
use crate::model::interner::Interner;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// What to replace a frame by.
#[derive(Debug)]
pub struct ChangedFrame {
    /// The function's new name.
    pub name: Vec<u8>,
    /// The new source file; `None` keeps the old one.
    pub file: Option<Vec<u8>>,
    /// The executed line; 0 if unknown.
    pub line: u32,
    /// Line and column where the function starts in the source file; `None` keeps the old ones.
    pub start: Option<(u32, u32)>,
}

impl Profile {
    /// Merges another profile into this one, and gives each of its frames the function name that `rename` returns.
    /// `rename` gets the frame and its old name. Apart from that, like [`Profile::merge`].
    pub fn merge_renamed(&mut self, other: &Self, rename: impl for<'n> Fn(&Frame, &'n [u8]) -> Cow<'n, [u8]>) {
        let names: Vec<_> = other.names.list().iter().map(|name| self.name(name)).collect();
        let name = |id: NameId| names[id.index()];
        let mut frames: Vec<FrameId> = Vec::with_capacity(other.frame_count());
        for frame in other.frames.items() {
            let old_name = other.name_of(frame.name);
            let function = match rename(frame, old_name) {
                // Usually the name stays unchanged, and its ID is known already.
                Cow::Borrowed(same) if std::ptr::eq(same, old_name) => name(frame.name),
                new_name => self.name(&new_name),
            };
            let [module, build, file] = [frame.module, frame.build, frame.file].map(|id| id.map(name));
            let start = frame.start.map_names(name);
            frames.push(self.frame(Frame { name: function, module, build, file, start, ..*frame }));
        }
        self.merge_translated(other, &frames);
    }

    /// Renames functions. `rename` returns the new name of a frame's function. Frames that become equal are merged.
    pub fn rename_functions(&mut self, rename: impl for<'n> Fn(&Frame, &'n [u8]) -> Cow<'n, [u8]> + Copy) {
        if self.has_distinct_series() && self.rename_in_place(rename) {
            return;
        }
        let other = std::mem::replace(self, Self::empty(self.keep));
        self.merge_renamed(&other, rename);
    }

    /// Replaces frames. `change` returns a frame's replacement, or `None` to keep the frame; it gets the profile in
    /// order to look up names. Frames that become equal are merged.
    pub fn change_frames(&mut self, change: impl Fn(&Self, &Frame) -> Option<ChangedFrame>) {
        let other = std::mem::replace(self, Self::empty(self.keep));
        let mut frames: Vec<FrameId> = Vec::with_capacity(other.frame_count());
        for frame in other.frames.items() {
            let [module, build, file, start_file] = [frame.module, frame.build, frame.file, frame.start.file]
                .map(|name| name.map(|name| self.name(other.name_of(name))));
            let start = FunctionStart { file: start_file, ..frame.start };
            // In `new`, the name is still an ID of the old profile; it is replaced below. The column is dropped: it is
            // only needed until source maps have been applied.
            let mut new = Frame { module, build, file, column: 0, start, ..*frame };
            match change(&other, frame) {
                None => new.name = self.name(other.name_of(frame.name)),
                Some(changed) => {
                    new.name = self.name(&changed.name);
                    let changed_file = changed.file.map(|file| self.name(&file));
                    new.file = changed_file.or(file);
                    new.line = changed.line;
                    if let Some((line, column)) = changed.start {
                        new.start = FunctionStart { file: changed_file.or(start_file), line, column };
                    }
                }
            }
            frames.push(self.frame(new));
        }
        self.merge_translated(&other, &frames);
    }

    /// Returns a copy of the profile with other frames. `replace` gets the copy, the ID of an old frame and the frame,
    /// and returns the new frame, whose names it interns in the copy. Frames that become equal are merged.
    pub fn with_frames(&self, mut replace: impl FnMut(&mut Self, FrameId, &Frame) -> Frame) -> Self {
        let mut copy = Self::empty(self.keep);
        let mut frames: Vec<FrameId> = Vec::with_capacity(self.frame_count());
        for (id, frame) in self.frames() {
            let replaced = replace(&mut copy, id, frame);
            frames.push(copy.frame(replaced));
        }
        copy.merge_translated(self, &frames);
        copy
    }

    /// Translates a frame of this profile to the IDs of `other`, in which it interns names.
    pub fn frame_in(&self, other: &mut Self, frame: &Frame) -> Frame {
        let name = other.name(self.name_of(frame.name));
        let [module, build, file, start_file] = [frame.module, frame.build, frame.file, frame.start.file]
            .map(|id| id.map(|id| other.name(self.name_of(id))));
        let start = FunctionStart { file: start_file, ..frame.start };
        Frame { name, module, build, file, start, ..*frame }
    }

    /// Merges another profile whose frames are already in this one. `frames` has their IDs here, in the order of
    /// `other`.
    fn merge_translated(&mut self, other: &Self, frames: &[FrameId]) {
        self.perf_names |= other.perf_names;
        self.rows_have_durations |= other.rows_have_durations;
        self.cut_to_time |= other.cut_to_time;
        self.about.merge(&other.about);
        let mut stacks: Vec<StackId> = Vec::with_capacity(other.stack_count());
        // The parent of a stack comes before it, so its new ID is known.
        for (parent, frame) in other.stacks.iter() {
            let parent = parent.map(|parent| stacks[parent as usize]);
            stacks.push(self.stack(parent, frames[frame.index()]));
        }
        let tracks: Vec<_> = other.tracks.items().iter().map(|track| self.track(track.clone())).collect();
        self.add_rows(&other.series, &stacks, &tracks);
        if other.calls.is_empty() {
            return;
        }
        // The calls refer to series by name. A series may have got another name in the merged profile, because one with
        // another unit already had its name.
        let mut new_names: FxHashMap<&str, String> = FxHashMap::default();
        for series in &other.series {
            let index = self.series_with_unit(&series.name, &series.unit);
            new_names.entry(&series.name).or_insert_with(|| self.series[index].name.clone());
        }
        for calls in &other.calls {
            let events = calls.events.iter().map(|name| new_names.get(name.as_str()).unwrap_or(name).clone());
            self.calls.push(calls.translate(frames, &tracks, events.collect()));
        }
    }

    /// Changes the track of every row. If the profile keeps sums, rows whose tracks become equal are added up.
    pub fn map_tracks(&mut self, change: impl Fn(&Track) -> Track) {
        let old_tracks = std::mem::take(&mut self.tracks);
        let new_ids: Vec<TrackId> = old_tracks.items().iter().map(|track| self.track(change(track))).collect();
        for series in &mut self.series {
            for row in series.rows.iter_mut().chain(&mut series.negative) {
                row.track = new_ids[row.track.index()];
            }
        }
        for calls in &mut self.calls {
            calls.track = new_ids[calls.track.index()];
        }
        // Fewer tracks than before: some have become equal.
        if self.keep == Keep::Sums && self.tracks.items().len() < old_tracks.items().len() {
            self.aggregate();
        }
    }

    /// True if all series have different names.
    fn has_distinct_series(&self) -> bool {
        let mut names: FxHashSet<&str> = FxHashSet::default();
        self.series.iter().all(|series| names.insert(&series.name))
    }

    /// Renames functions in place and returns true, provided that different frames stay different. Stacks and rows are
    /// then unchanged, and the result is the same as of [`merge_renamed`](Self::merge_renamed) into an empty profile.
    /// Otherwise returns false, and changes nothing except that the new names are interned.
    fn rename_in_place(&mut self, rename: impl for<'n> Fn(&Frame, &'n [u8]) -> Cow<'n, [u8]>) -> bool {
        // The new names of the frames to rename, each with the index of its frame.
        let mut new_names: Vec<(usize, Vec<u8>)> = Vec::new();
        for (index, frame) in self.frames.items().iter().enumerate() {
            let name = self.name_of(frame.name);
            match rename(frame, name) {
                Cow::Borrowed(same) if std::ptr::eq(same, name) => {}
                new_name => new_names.push((index, new_name.into_owned())),
            }
        }
        let mut new_names = new_names.into_iter().peekable();
        let mut frames = Interner::default();
        for (index, frame) in self.frames.items().iter().enumerate() {
            let mut frame = *frame;
            if let Some((_, name)) = new_names.next_if(|(renamed, _)| *renamed == index) {
                frame.name = self.names.intern(&name);
            }
            // A smaller ID means that the frame has become equal to an earlier one.
            let FrameId(number) = frames.intern(frame);
            if number as usize != index {
                return false;
            }
        }
        self.frames = frames;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile_of;
    use super::*;
    use crate::model::stacks::{Counting, MILLION, MILLIONTHS, Row, Unit};
    use proptest::prelude::*;

    /// All tables and rows.
    fn describe(profile: &Profile) -> String {
        let Profile { names, frames, stacks, tracks, series, .. } = profile;
        format!("{:?} {:?} {stacks:?} {:?} {series:?}", names.list(), frames.items(), tracks.items())
    }

    /// Converts upper case to lower case.
    fn lower<'n>(_: &Frame, name: &'n [u8]) -> Cow<'n, [u8]> {
        if name.iter().any(u8::is_ascii_uppercase) { name.to_ascii_lowercase().into() } else { name.into() }
    }

    proptest! {
        #[test]
        fn a_renamed_profile_is_one_that_was_merged_into_nothing(
            stacks in prop::collection::vec(("[a-dA-D](;[a-dA-D]){0,3}", 1..9u64), 0..12),
        ) {
            let stacks: Vec<(&str, u64)> = stacks.iter().map(|(names, weight)| (names.as_str(), *weight)).collect();
            let mut profile = profile_of(&stacks);
            let mut merged = Profile::new();
            merged.merge_renamed(&profile, lower);
            let remain = profile.frame_count() == merged.frame_count();
            prop_assert_eq!(profile.rename_in_place(lower), remain);
            if !remain {
                // The profile can still be merged.
                let left = std::mem::replace(&mut profile, Profile::new());
                profile.merge_renamed(&left, lower);
            }
            prop_assert_eq!(describe(&profile), describe(&merged));
        }
    }

    #[test]
    fn a_merged_profile_still_knows_that_its_rows_are_cut_to_a_time() {
        let cut = Profile { cut_to_time: true, ..Profile::new() };
        let mut merged = Profile::new();
        merged.merge(&cut);
        assert!(merged.cut_to_time && cut.with_frames(|_, _, frame| *frame).cut_to_time);
        merged.merge(&Profile::new());
        assert!(merged.cut_to_time);
    }

    /// A profile of one row without a stack.
    fn profile_of_row(unit: Unit, counting: Counting, weight: u64) -> Profile {
        let mut profile = Profile::new();
        let series = profile.series_named("samples", unit);
        profile.series[series].counting = counting;
        let track = profile.track(Track::default());
        profile.push(series, Row { track, stack: None, weight, count: 1, time: None });
        profile
    }

    #[test]
    fn whole_weights_become_millionths_unless_they_are_samples_or_too_large() {
        let millionths = profile_of_row(Unit::Named(MILLIONTHS.to_owned()), Counting::Unknown, 500_000);
        for (counting, weight, are_one) in [
            (Counting::Unknown, 3, true),
            (Counting::Sampled, 3, false),
            (Counting::Unknown, u64::MAX / MILLION, true),
            (Counting::Unknown, u64::MAX / MILLION + 1, false),
        ] {
            let whole = profile_of_row(Unit::Samples, counting, weight);
            for (first, second) in [(&whole, &millionths), (&millionths, &whole)] {
                let mut merged = Profile::new();
                merged.merge(first);
                merged.merge(second);
                assert_eq!(merged.series.len(), if are_one { 1 } else { 2 }, "{counting:?} {weight}");
                if are_one {
                    let mut weights: Vec<u64> = merged.series[0].rows.iter().map(|row| row.weight).collect();
                    weights.sort_unstable();
                    assert_eq!(weights, [500_000, weight * MILLION]);
                }
            }
        }
    }
}
