//! Data structures for address ranges.
//!
//! | type | for ranges |
//! |---|---|
//! | [`RangeMap`] | that overwrite each other |
//! | [`SharedRanges`] | that overwrite each other, with cheap copies |
//! | [`IntervalTree`] | that may overlap |
//! | [`OrderedRanges`] | that may overlap, in a given order: finds the last before a position or the first from it on |

mod interval_tree;
mod ordered_ranges;
mod range_map;
mod shared_ranges;

pub use interval_tree::{IntervalTree, Span};
pub use ordered_ranges::OrderedRanges;
pub use range_map::{Entry, RangeMap};
pub use shared_ranges::{Ranks, SharedRanges};
