//! The neutral middle: what readers fill and writers get. No I/O, no formats, no threads.

pub mod abi;
pub mod about;
pub mod ancestry;
pub mod backing;
pub mod bpf;
pub mod call_tree;
pub mod category;
pub mod chains;
pub mod code;
pub mod filter;
pub mod frame_counts;
pub mod groups;
pub mod interner;
pub mod jit_names;
pub mod label;
pub mod moment;
pub mod named_frames;
pub mod prefix_tree;
pub mod printable;
pub mod process;
pub mod programs;
pub mod quantity;
pub mod ranges;
pub mod rows;
pub mod runtimes;
pub mod significance;
pub mod stacks;
pub mod start_functions;
pub mod thread_rows;
pub mod threads;
pub mod tier;
pub mod tier_shares;
pub mod timeline;
pub mod told_tree;
pub mod units;

pub use units::{Addr, FrameAddr, Nanos, Pid, Tid};
