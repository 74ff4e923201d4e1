//! Ranges of addresses, whatever they mean.
//!
//! | type | ranges |
//! |---|---|
//! | [`RangeMap`] | that overwrite each other |
//! | [`SharedRanges`] | the same, for keeping copies |
//! | [`IntervalTree`] | that may overlap |
//! | [`OrderedRanges`] | the same, one after the other: what was there before a moment, and what comes next |

mod interval_tree;
mod ordered_ranges;
mod range_map;
mod shared_ranges;

pub use interval_tree::{IntervalTree, Span};
pub use ordered_ranges::OrderedRanges;
pub use range_map::{Entry, RangeMap};
pub use shared_ranges::{Ranks, SharedRanges};
