//! Ranges of addresses, whatever they mean: one type for ranges that overwrite each other, one for ranges that may
//! overlap.

mod overlaps;
mod range_map;

pub use overlaps::{Overlaps, Span};
pub use range_map::{Entry, RangeMap};
