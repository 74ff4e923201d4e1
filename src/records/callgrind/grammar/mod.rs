//! The grammar of callgrind files: lines, names, positions and costs, and the statements that stay in effect.
//!
//! | file | purpose |
//! |---|---|
//! | `chunks` | cuts a stream between the blocks of functions |
//! | [`mod@statements`] | parses a line |
//! | [`id_table`] | looks up what an ID stands for |
//! | [`names`] | parses names and IDs |
//! | [`positions`] | reads and writes the columns before the costs |
//! | [`numbers`] | reads and writes costs and other numbers |
//! | [`cost_lines`] | reads runs of cost lines that can be copied unchanged |
//! | [`block`] | decodes all lines of a function, and tracks the statements in effect |

mod block;
mod chunks;
mod cost_lines;
mod id_table;
mod names;
mod numbers;
mod positions;
mod statements;

pub(super) use block::{BlockContext, BlockItem, BlockMemory, Callee, FunctionBlock, ItemKind};
pub(super) use chunks::ReadChunks;
pub use chunks::{CHUNK_SIZE, Chunk, chunks};
pub(super) use cost_lines::{AddressText, CostLines, cannot_overflow};
pub(super) use id_table::IdTable;
pub(super) use names::{
    IdSpace, NameField, NameRef, UNKNOWN, has_raw_caller, name_field, push_id, raw_name, replace_callers, same_name,
    without_recursion,
};
pub(super) use numbers::{add_costs, event_names, first_cost, number};
pub(super) use positions::{Columns, Position, PositionDecoder, PositionEncoder};
pub(super) use statements::{Keyword, Statement, line_len, lines, statements};
