//! The samples of one event put together by what people ask for: function, module, thread, tier, source line.
//!
//! A group has the weight of the stacks that end in it (its own) and of those that it occurs in (its total); a stack in
//! which it occurs more than once (recursion) counts once. Of threads, every sample ends in the one that it was taken
//! in.

mod keys;
mod sums;
mod tree;
mod walk;

pub use keys::{Grouping, Key, Unnamed, Value, kind};
pub use sums::{CategoryShares, Group, groups};
pub use tree::{GroupTree, Roots};
pub use walk::{Step, Sum, Walk};
