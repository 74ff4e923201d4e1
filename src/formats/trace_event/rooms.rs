//! Memory for chunks and their events, used again and again: memory that was just used is in a cache and need not be
//! allocated.

use super::events::Seen;
use std::sync::{Arc, Mutex};

/// Rooms of chunks that are done with.
#[derive(Debug, Default, Clone)]
pub(super) struct Rooms(Arc<Mutex<Vec<SpareRoom>>>);

/// For bytes, and for events.
type SpareRoom = (Vec<u8>, Vec<Seen>);

/// Goes back to the others when it is done with.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes: Vec<u8>,
    pub(super) seen: Vec<Seen>,
    home: Rooms,
}

impl Rooms {
    /// An empty one.
    pub(super) fn take(&self) -> Room {
        let spare = self.0.lock().ok().and_then(|mut rooms| rooms.pop());
        let (bytes, seen) = spare.unwrap_or_default();
        Room { bytes, seen, home: self.clone() }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let (mut bytes, mut seen) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.seen));
        bytes.clear();
        seen.clear();
        if let Ok(mut rooms) = self.home.0.lock() {
            rooms.push((bytes, seen));
        }
    }
}
