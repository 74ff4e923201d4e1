//! The grammar of callgrind files: lines, names, positions and costs, and what a line inherits from those before it.
//!
//! | file | what it reads |
//! |---|---|
//! | [`chunks`] | a stream, cut between the blocks of functions |
//! | [`mod@statements`] | a line |
//! | [`names`] | the value of a line that names something |
//! | [`positions`] | the columns in front of the costs; it writes them, too |
//! | [`numbers`] | costs and other numbers |
//! | [`context`] | what holds until it is changed |
//! | [`block`] | all lines of one function |

mod block;
mod chunks;
mod context;
mod names;
mod numbers;
mod positions;
mod statements;

pub(super) use block::{BlockItem, Callee, FunctionBlock, ItemKind};
pub use chunks::{CHUNK_SIZE, Chunk, Chunks};
pub(super) use context::{BlockContext, OwnedBlockContext};
pub(super) use names::{
    IdSpace, NameField, NameRef, OwnedNameRef, UNKNOWN, has_raw_part, name_field, raw_name, replace_callers,
};
pub(super) use numbers::{add_costs, decimal, event_names, first_cost, hex, number};
pub(super) use positions::{Columns, Position, PositionDecoder, PositionEncoder};
pub(super) use statements::{Keyword, Statement, lines, statements};
