//! A pool of objects that are reused instead of being allocated anew.

use std::sync::Mutex;

/// A pool of objects shared by threads. If every block of text were allocated by one thread and freed by another, each
/// would need fresh pages; in some runs, the kernel spent as much time clearing these as everything else took.
#[derive(Debug, Default)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// An object from the pool, in the state in which it was returned, or a new one.
    pub(crate) fn take(&self) -> T {
        // The lock is only poisoned if another worker panicked, and the thread scope will report that.
        self.0.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    /// Returns an object to the pool.
    pub(crate) fn give(&self, thing: T) {
        if let Ok(mut spare) = self.0.lock() {
            spare.push(thing);
        }
    }
}

impl Spare<Vec<u8>> {
    /// Returns a buffer to the pool, unless it has grown beyond `most` bytes and should be freed.
    pub(crate) fn give_buffer(&self, buffer: Vec<u8>, most: usize) {
        if buffer.capacity() <= most {
            self.give(buffer);
        }
    }

    /// An empty buffer from the pool.
    pub(crate) fn take_empty(&self) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.clear();
        buffer
    }
}
