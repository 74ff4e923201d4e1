//! Draws flame graphs and the page of `view`, in the same colors.

pub mod flamegraph;
mod palette;
pub mod viewer;
