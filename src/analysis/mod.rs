//! Computes everything that is derived from a profile: call graphs and trees, groups, categories, significance,
//! timelines.

pub mod call_graph;
pub mod call_tree;
pub mod category;
pub mod code_shares;
pub mod comparison;
pub mod filter;
pub mod function_files;
pub mod groups;
pub mod indented_tree;
pub mod label;
pub mod mapped_pieces;
pub mod named_frames;
pub mod namesakes;
pub mod pairing;
pub mod quantity;
pub mod significance;
pub mod start_functions;
pub mod thread_rows;
pub mod tier_shares;
pub mod timeline;
