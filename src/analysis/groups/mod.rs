//! Groups the samples of an event by what users ask for: function, module, thread, tier, source line.
//!
//! A group has a self weight, that of stacks whose innermost frame belongs to it, and a total weight, that of stacks
//! with any frame in it. A stack with several such frames (recursion) counts once. When grouping by thread, all of a
//! sample belongs to its thread.

mod keys;
mod sums;
mod tree;
mod walk;

pub use keys::{Grouping, Key, Unnamed, Value, kind};
pub use sums::{CategoryShares, Group, groups};
pub use tree::{GroupTree, Roots};
pub use walk::{Step, Sum, Walk};
