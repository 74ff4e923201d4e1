//! The formats that can be queried.

use crate::contract::spans::Spans;
use crate::formats::FORMATS;

/// The names of the formats that hold spans of which something holds.
pub(super) fn holding(holds: impl Fn(&Spans) -> bool) -> String {
    let formats = FORMATS.iter().filter(|format| format.read.spans().is_some_and(&holds));
    formats.map(|format| format.name).collect::<Vec<_>>().join(", ")
}
