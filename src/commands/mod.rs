//! The program's commands, one file or folder each. Commands don't use each other.

pub mod annotate;
pub mod callgrind;
pub mod collapse;
pub mod doctor;
pub mod export;
pub mod flamegraph;
pub mod formats;
pub mod inject;
pub mod merge;
pub mod pack;
pub mod record;
pub mod report;
pub mod runtimes;
pub mod script;
#[cfg(test)]
mod sorted_stack_tests;
pub mod stats;
pub mod summary;
pub mod view;
