//! Merges the results of several workers that read parts of one input.
//!
//! Each worker keeps its own tables from part to part, so that it interns most names and stacks only once. Its rows and
//! new table entries are merged in input order, no matter which worker read which part. IDs are therefore assigned by
//! first appearance in the input.

use super::{Frame, FrameId, NameId, Profile, Series, StackId, Track, TrackId};
use crate::model::about::About;
use crate::model::texts::TextList;

/// One part of an input: its rows, and the table entries and facts that are new since the worker's previous part.
#[derive(Debug, Default)]
pub struct Part {
    about: About,
    names: TextList,
    frames: Vec<Frame>,
    /// For each stack, the ID of its caller's stack and its innermost frame.
    stacks: Vec<(Option<u32>, FrameId)>,
    tracks: Vec<Track>,
    series: Vec<Series>,
    perf_names: bool,
}

/// For each table of a worker's profile, how many of its entries were copied to parts so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    names: usize,
    frames: usize,
    stacks: usize,
    tracks: usize,
}

/// For each ID in a worker's profile, the ID of the same entry in the merged profile.
#[derive(Debug, Default)]
pub struct Renumbered {
    names: Vec<NameId>,
    frames: Vec<FrameId>,
    stacks: Vec<StackId>,
    tracks: Vec<TrackId>,
}

impl Profile {
    /// Moves the rows of this worker's profile to a new part, and copies the table entries that are new since the
    /// previous call with the same `taken`.
    pub fn take_part(&mut self, taken: &mut Taken) -> Part {
        let part = Part {
            about: std::mem::take(&mut self.about),
            names: self.names.list().since(taken.names),
            frames: self.frames.items()[taken.frames..].to_vec(),
            stacks: self.stacks.since(taken.stacks).collect(),
            tracks: self.tracks.items()[taken.tracks..].to_vec(),
            series: std::mem::take(&mut self.series),
            perf_names: self.perf_names,
        };
        // The rows are gone, so the indices of sums among them no longer apply.
        self.sums.iter_mut().for_each(|indices| indices.clear());
        *taken = Taken {
            names: self.names.len(),
            frames: self.frames.items().len(),
            stacks: self.stacks.len(),
            tracks: self.tracks.items().len(),
        };
        part
    }

    /// Merges a worker's part into this profile. `merged_ids` translates the IDs of that worker. It must have the
    /// entries of the worker's earlier parts, and gets those of this part.
    pub fn add_part(&mut self, part: &Part, merged_ids: &mut Renumbered) {
        self.about.merge(&part.about);
        merged_ids.names.extend(part.names.iter().map(|name| self.name(name)));
        for frame in &part.frames {
            let name = |id: NameId| merged_ids.names[id.index()];
            let [module, build, file] = [frame.module, frame.build, frame.file].map(|id| id.map(name));
            let start = frame.start.map_names(name);
            merged_ids.frames.push(self.frame(Frame { name: name(frame.name), module, build, file, start, ..*frame }));
        }
        // The parent of a stack comes before it, so its new ID is known.
        for (parent, frame) in &part.stacks {
            let parent = parent.map(|parent| merged_ids.stacks[parent as usize]);
            merged_ids.stacks.push(self.stack(parent, merged_ids.frames[frame.index()]));
        }
        merged_ids.tracks.extend(part.tracks.iter().map(|track| self.track(track.clone())));
        self.perf_names |= part.perf_names;
        self.add_rows(&part.series, &merged_ids.stacks, &merged_ids.tracks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{FrameKind, Keep, Row, Unit};
    use proptest::prelude::*;

    fn push(profile: &mut Profile, names: &str) {
        let mut stack = None;
        for name in names.chars() {
            let name = profile.name(name.to_string().as_bytes());
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            stack = Some(profile.stack(stack, frame));
        }
        let track = profile.track(Track { comm: names.as_bytes()[..1].to_vec(), ..Track::default() });
        let series = profile.series_named("cycles", Unit::Samples);
        profile.push(series, Row { track, stack, weight: names.len() as u64, count: 1, time: None });
    }

    /// All tables and rows.
    fn describe(profile: &Profile) -> String {
        let Profile { names, frames, stacks, tracks, series, .. } = profile;
        format!("{:?} {:?} {stacks:?} {:?} {series:?}", names.list(), frames.items(), tracks.items())
    }

    proptest! {
        /// The merged profile doesn't depend on which worker reads which part.
        #[test]
        fn numbers_do_not_depend_on_who_read_a_part(
            parts in prop::collection::vec((0usize..3, prop::collection::vec("[a-d]{1,5}", 0..6)), 1..12),
            sums in any::<bool>(),
        ) {
            let keep = if sums { Keep::Sums } else { Keep::EachRow };
            let (mut one, mut sum) = (Profile::empty(keep), Profile::empty(keep));
            let mut readers: Vec<_> =
                (0..3).map(|_| (Profile::empty(keep), Taken::default(), Renumbered::default())).collect();
            for (reader, stacks) in &parts {
                let (profile, taken, numbers) = &mut readers[*reader];
                for names in stacks {
                    push(profile, names);
                    push(&mut one, names);
                }
                sum.add_part(&profile.take_part(taken), numbers);
            }
            prop_assert_eq!(describe(&sum), describe(&one));
        }
    }
}
