//! Lists whose elements are made one after the other while they are written: all of them at once take many times the
//! room of their text.

use serde::ser::{Serialize, Serializer};

/// The elements that the iterator gives that this makes.
#[derive(Debug)]
pub struct Each<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
