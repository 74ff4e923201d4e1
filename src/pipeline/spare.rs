//! A pool of objects that are reused instead of being allocated anew.

use std::sync::Mutex;

/// A pool of objects that threads share, for reuse. Without it, every block of text would be allocated by one thread
/// and freed by another, and would always need fresh pages from the kernel. In some runs, clearing these took the
/// kernel as much time as everything else.
#[derive(Debug, Default)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// Takes an object from the pool, in the state in which it was given back. Creates one if the pool is empty.
    pub(crate) fn take(&self) -> T {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        self.0.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    /// Gives an object back to the pool.
    pub(crate) fn give(&self, thing: T) {
        if let Ok(mut spare) = self.0.lock() {
            spare.push(thing);
        }
    }
}

impl Spare<Vec<u8>> {
    /// Gives a buffer back to the pool. If its capacity has grown beyond `most` bytes, it is freed instead.
    pub(crate) fn give_buffer(&self, buffer: Vec<u8>, most: usize) {
        if buffer.capacity() <= most {
            self.give(buffer);
        }
    }

    /// Takes a buffer from the pool and empties it.
    pub(crate) fn take_empty(&self) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.clear();
        buffer
    }
}
