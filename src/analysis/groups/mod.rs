//! Groups the samples of an event by what users ask for: function, module, thread, tier, source line.
//!
//! The self weight of a group is that of all stacks whose innermost frame belongs to it. Its total weight is that of
//! all stacks with any frame in it; a stack with several such frames (recursion) counts once. When grouping by thread,
//! all of a sample belongs to its thread.

mod keys;
mod sums;
mod tree;
mod walk;

pub use keys::{Grouping, Key, Unnamed, Value, kind};
pub use sums::{CategoryShares, Group, groups};
pub use tree::{GroupTree, Roots};
pub use walk::{Step, Sum, Walk};
