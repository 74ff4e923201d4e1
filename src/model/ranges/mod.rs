//! Ranges of addresses, whatever they mean: one type for ranges that overwrite each other, one for ranges that may
//! overlap.

mod interval_tree;
mod range_map;

pub use interval_tree::{IntervalTree, Span};
pub use range_map::{Entry, RangeMap};
