//! The program's commands, one file or folder each. Commands don't use each other.

pub mod annotate;
pub mod callgrind;
pub mod collapse;
pub mod doctor;
pub mod export;
pub mod flamegraph;
#[cfg(test)]
mod folded_picture_tests;
pub mod formats;
pub mod inject;
pub mod merge;
pub mod pack;
pub mod record;
pub mod report;
pub mod runtimes;
pub mod script;
pub mod stats;
pub mod summary;
pub mod view;
