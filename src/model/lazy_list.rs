//! Serializes lists whose elements are created one by one while they are written. Creating all of them first would take
//! many times the memory of the written text.

use serde::ser::{Serialize, Serializer};

/// A function that returns an iterator. Serializes as the list of that iterator's elements.
#[derive(Debug)]
pub struct LazyList<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for LazyList<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
