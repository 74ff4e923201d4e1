//! Objects that are used again rather than made anew.

use std::sync::Mutex;

/// Things that threads pass around. Made by one thread and dropped by another, each block of text would cost fresh
/// pages: on some runs the system took as long to clear them as all else together.
#[derive(Debug, Default)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// One that was given back, as it was; else a new one.
    pub(crate) fn take(&self) -> T {
        // A poisoned lock means that another worker panicked: the scope will state it.
        self.0.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    /// Keeps it for the next user.
    pub(crate) fn give(&self, thing: T) {
        if let Ok(mut spare) = self.0.lock() {
            spare.push(thing);
        }
    }
}

impl Spare<Vec<u8>> {
    /// Keeps a buffer, unless it grew so large that it had better be freed.
    pub(crate) fn give_buffer(&self, buffer: Vec<u8>, most: usize) {
        if buffer.capacity() <= most {
            self.give(buffer);
        }
    }

    /// An empty buffer.
    pub(crate) fn take_empty(&self) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.clear();
        buffer
    }
}
