//! Plain data that readers fill in and writers output. No I/O, no formats, no threads.

pub mod abi;
pub mod about;
pub mod ancestry;
pub mod bpf;
pub mod chains;
pub mod code;
pub mod code_file;
pub(crate) mod dwarf_depth;
pub mod file_bytes;
pub mod frame_counts;
pub mod interner;
pub mod lasting;
pub mod lazy_list;
pub mod lists;
pub mod mapping_kind;
pub mod perf_command;
pub mod prefix_tree;
pub mod printable;
pub mod process;
pub mod programs;
pub mod ranges;
pub mod recorded;
pub mod recorded_symbols;
pub mod script_map;
pub mod script_scopes;
pub mod shell;
pub mod stacks;
pub mod texts;
pub mod threads;
pub mod tier;
pub mod units;
pub mod wasm_module;

pub use units::{Addr, FrameAddr, Nanos, Pid, Tid};
