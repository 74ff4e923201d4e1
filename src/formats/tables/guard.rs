//! The crate that reads Parquet takes some numbers of a file for granted and panics where they are wrong. Such a file is
//! damaged, as others are.

use crate::error::{Error, Result};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// True if this thread reads what may make it panic.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads; a panic is an error, and nobody is reported for it in other words.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                told(panic);
            }
        }));
    });
    GUARDED.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    read.unwrap_or_else(|_| Err(Error::new("cannot be read: its description lists more, or less, than it contains")))
}
