//! Knowledge about runtimes with JIT compilers: how to recognize them in a process, how to make them write names of
//! their code, where they write these names, and which tiers the names indicate.
//!
//! All of it is in one table, [`RUNTIMES`]: to add a runtime, add an entry in `table.rs`. The entries' examples serve
//! as tests: each example name must result in the tier that the entry states for it, and each pattern for names must
//! match at least one example.

mod command;
mod engines;
pub mod java_calls;
pub mod jit_names;
mod lookup;
mod program_plan;
pub mod record_command;
pub mod run_names;
mod runtime;
pub mod script_name;
mod set;
mod switch;
mod table;
mod tiers;
pub mod wasm_name;

pub use command::{Assignment, CommandLine, CorrectedCommand, Environment, RunFacts, find_program};
pub use lookup::{NamedRuntime, find_launched_runtime, find_runtime, find_runtime_of_source, is_misspelled};
pub use program_plan::{ProgramPlan, runtime_of_command};
pub use runtime::{Callers, FlagVariable, Interpreter, Runtime, Shape, TierRule, UnderValgrind};
pub use set::{ProcessRuntimes, RuntimeSet};
pub use switch::{Flag, Stacks, Switch, Version};
pub use table::RUNTIMES;
pub use tiers::{Tiers, frame_type, tier};
