//! The (virtual) threads of a profile.

use super::profile::MeasuremeFile;
use crate::model::stacks::Track;
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;

/// Numbers threads in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct ThreadNumbers {
    numbers: FxHashMap<u32, usize>,
    ids: Vec<u32>,
    /// The thread for which [`Self::number`] was called last, and its number.
    last: Option<(u32, usize)>,
}

impl ThreadNumbers {
    /// The number of the thread with this ID. For a thread that is new, `new` is called, and its result is the number.
    #[inline]
    pub(super) fn number(&mut self, id: u32, new: impl FnOnce() -> usize) -> usize {
        // Most events are of the same thread as the one before.
        match self.last {
            Some((last, number)) if last == id => number,
            _ => {
                let number = *self.numbers.entry(id).or_insert_with(|| {
                    self.ids.push(id);
                    new()
                });
                self.last = Some((id, number));
                number
            }
        }
    }

    /// The threads, by number.
    pub(super) fn tracks(&self, profile: &MeasuremeFile<'_>) -> Vec<Track> {
        let metadata = &profile.metadata;
        let comm = metadata.program().as_bytes();
        let pid = metadata.process_id.map(|pid| Pid(pid as i32));
        let mut tracks = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            tracks.push(Track { comm: comm.to_vec(), pid, tid: Some(Tid(*id as i32)), ..Track::default() });
        }
        tracks
    }
}
