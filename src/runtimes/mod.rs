//! Runtimes with JIT compilers: the signs that a process runs one, the switch that makes it write the names of its
//! code, where they lie then, and what its names report the tier.
//!
//! All of it is one table, [`RUNTIMES`]: a runtime is added in `table.rs` and nowhere else. Its examples are its tests:
//! each must be given the tier that is beside it, and each shape must be met by one of them.

mod command;
mod engines;
pub mod java_calls;
pub mod jit_names;
pub mod record_command;
pub mod run_names;
mod runtime;
pub mod script_name;
mod set;
mod switch;
mod table;
mod tiers;
pub mod wasm_name;

pub use command::{Assignment, CommandLine, CorrectedCommand, Environment, RunFacts, program_at};
pub use runtime::{Callers, FlagVariable, Interpreter, Runtime, Shape, TierRule, UnderValgrind};
pub use set::{ProcessRuntimes, RuntimeSet, named};
pub use switch::{Flag, Stacks, Switch, Version};
pub use table::RUNTIMES;
pub use tiers::{Tiers, frame_type, tier};
