//! The grammar of callgrind files: lines, names, positions and costs, and what a line inherits from those before it.
//!
//! | file | what it reads |
//! |---|---|
//! | `chunks` | a stream, cut between the blocks of functions |
//! | [`mod@statements`] | a line |
//! | [`id_table`] | no text: finds what ids stand for |
//! | [`names`] | the value of a line that names something |
//! | [`positions`] | the columns in front of the costs; it writes them, too |
//! | [`numbers`] | costs and other numbers |
//! | [`cost_lines`] | cost lines that need not be written anew |
//! | [`block`] | all lines of one function, and what holds until it is changed |

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
pub(super) use cost_lines::{AddressText, CostLines, surely_fit};
pub(super) use id_table::IdTable;
pub(super) use names::{
    IdSpace, NameField, NameRef, UNKNOWN, has_raw_caller, name_field, push_id, raw_name, replace_callers, same_name,
    without_recursion,
};
pub(super) use numbers::{add_costs, event_names, first_cost, number};
pub(super) use positions::{Columns, Position, PositionDecoder, PositionEncoder};
pub(super) use statements::{Keyword, Statement, line_len, lines, statements};
