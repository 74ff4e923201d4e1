//! Writes a profile's stacks as lines: labels of frames, outermost first.

use super::Unsorted;
use crate::analysis::label::{Annotate, By, Tidied, is_java, label, roots};
use crate::model::stacks::{FrameId, Profile, Row, TrackId, Weight};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Writes stacks as lines. Caches the labels of frames and tracks, so each `Speller` must only be used for a single
/// profile.
#[derive(Debug)]
pub struct Speller {
    by: By,
    annotate: Annotate,
    tidied: Tidied,
    /// All cached labels, one after the other.
    text: Vec<u8>,
    /// For each frame, the range of its label in `text`: without Java's naming rules, and with them. Empty ranges
    /// haven't been spelled yet.
    labels: [Vec<Range<usize>>; 2],
    /// For each track, the text on the outer side of its stacks, and whether Java's naming rules apply to their frames.
    roots: FxHashMap<TrackId, (Vec<u8>, bool)>,
    /// The frames of the current stack, innermost first.
    frames: Vec<FrameId>,
}

impl Speller {
    /// Creates a speller with empty caches.
    pub fn new(by: By, annotate: Annotate, tidied: Tidied) -> Self {
        let (text, labels, frames) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
        Self { by, annotate, tidied, text, labels, roots: FxHashMap::default(), frames }
    }

    /// Adds the stacks of `rows` to `lines`, with their weights.
    pub fn spell(&mut self, profile: &Profile, rows: &[Row], weight: Weight, lines: &mut Unsorted) {
        self.labels.iter_mut().for_each(|labels| labels.resize(profile.frame_count(), 0..0));
        for row in rows {
            let (by, annotate, tidied) = (self.by, self.annotate, self.tidied);
            let (root, java) = self.roots.entry(row.track).or_insert_with(|| {
                let track = profile.track_of(row.track);
                (roots(track, by, annotate).join(";").into_bytes(), is_java(&track.comm))
            });
            self.frames.clear();
            self.frames.extend(profile.frames_up(row.stack));
            let labels = &mut self.labels[usize::from(*java)];
            for frame in &self.frames {
                let place = &mut labels[frame.index()];
                if place.end == place.start {
                    let start = self.text.len();
                    let spelled = label(profile, profile.frame_of(*frame), *java, annotate, tidied);
                    self.text.extend_from_slice(spelled.as_bytes());
                    *place = start..self.text.len();
                }
            }
            let frames = self.frames.iter().rev().map(|frame| &self.text[labels[frame.index()].clone()]);
            lines.push_line(Some(&root[..]).filter(|root| !root.is_empty()).into_iter().chain(frames), weight.of(row));
        }
    }
}
