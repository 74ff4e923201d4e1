//! `jitgraft inject`, end to end: the real program, the real perf, and a truth that neither of them knows.

mod bad_chains;
mod dumps;
mod finding;
mod forks;
mod generated;
mod memory;
mod odd;
mod options;
use crate::support::perf;
mod rewriting;
mod stays;
use crate::support;
use crate::support::truth;
mod viewers;
mod writers;
