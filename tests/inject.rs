//! `jitgraft inject`, end to end: the real program, the real perf, and a truth that neither of them knows.

#[path = "inject/bad_chains.rs"]
mod bad_chains;
#[path = "inject/cut.rs"]
mod cut;
#[path = "inject/dumps.rs"]
mod dumps;
#[path = "inject/finding.rs"]
mod finding;
#[path = "inject/forks.rs"]
mod forks;
#[path = "inject/generated.rs"]
mod generated;
#[path = "inject/memory.rs"]
mod memory;
#[path = "inject/odd.rs"]
mod odd;
#[path = "inject/options.rs"]
mod options;
#[path = "inject/perf.rs"]
mod perf;
#[path = "inject/rewriting.rs"]
mod rewriting;
#[path = "inject/stays.rs"]
mod stays;
#[expect(dead_code, reason = "the writers can do more than these tests need")]
mod support;
#[path = "inject/truth.rs"]
mod truth;
#[path = "inject/viewers.rs"]
mod viewers;
#[path = "inject/writers.rs"]
mod writers;
