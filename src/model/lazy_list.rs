//! Serializes lists whose elements are created while they are written. Holding all elements at once would take many
//! times the memory of the text.

use serde::ser::{Serialize, Serializer};

/// Serializes as a list: the elements of the iterator that the function returns.
#[derive(Debug)]
pub struct Each<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
