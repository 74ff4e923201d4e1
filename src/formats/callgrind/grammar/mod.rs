//! The grammar of callgrind files: lines, names, positions and costs.
//!
//! | file | purpose |
//! |---|---|
//! | `chunks` | cuts a file between the blocks of functions |
//! | [`mod@statements`] | tells the kinds of lines apart |
//! | [`line_reader`] | reads lines, and pairs calls and jumps with their cost lines |
//! | [`names`] | parses names and IDs |
//! | [`positions`] | reads and writes the columns before the costs |
//! | [`numbers`] | reads costs and other numbers |

mod chunks;
mod line_reader;
mod names;
mod numbers;
mod positions;
mod statements;

pub(super) use chunks::ReadChunks;
pub use chunks::{CHUNK_SIZE, Chunk, chunks};
pub(super) use line_reader::{CallLine, JumpLine, Line, LineReader, is_valgrind};
pub(super) use names::{
    IdSpace, NameField, NameRef, UNKNOWN, has_raw_caller, name_field, push_id, raw_name, replace_callers,
    strip_recursion,
};
pub(super) use numbers::{add_costs, costs, event_names, number};
pub(super) use positions::{Columns, CostLine, Position, PositionDecoder, PositionEncoder};
pub(super) use statements::{Keyword, Statement, lines, statements};
