//! The callgrind profile format.
//!
//! A file is a list of blocks, one for each function (`fn=`), of cost lines and calls; `ob=` and `fl=` before it
//! stay in force until changed. callgrind calls memory that no file backs `ob=???` and its functions by the address
//! where they were first entered. Only there are addresses absolute, so only there are they looked up.
//!
//! | room | what it is for |
//! |---|---|
//! | `grammar` | lines, names, positions and costs |
//! | `instructions` | reads what each instruction cost |
//! | `stacks` | reads a file as stacks, and writes stacks as one |
//! | `rewrite` | puts the names of JIT-compiled functions into a file as it streams by |
//!
//! Specification: <https://valgrind.org/docs/manual/cl-format.html>; where valgrind's writer (callgrind/dump.c) does
//! otherwise, the writer is followed.

mod grammar;
mod instructions;
mod rewrite;
mod stacks;

pub use grammar::{CHUNK_SIZE, Chunk, chunks};
pub use instructions::{
    CostedCalls, CostedFunction, CostedInstruction, InstructionCosts, StatedFunction, instruction_costs,
};
pub use rewrite::{
    Assembler, ChunkFacts, CodeLine, Covered, DraftMemory, EntrySet, FileHeader, FileIndex, JitFunctions,
    Misattributed, RewriteStats, RewrittenChunk, rewrite_chunk, scan_chunk,
};
pub use stacks::{read, write};

use grammar::{Keyword, Statement, lines};

/// True if an input begins like a file of this format, from any writer: headers, of which only `events:` must be there,
/// and behind them a function. cachegrind's files and those of cg_diff are such files without calls.
pub fn sniff(head: &[u8]) -> bool {
    if head.starts_with(b"# callgrind format") {
        return true;
    }
    let (mut events, mut is_known) = (false, false);
    for (_, text) in lines(head) {
        match Statement::parse(text) {
            Statement::Header(b"events", value) => events |= !value.is_empty(),
            Statement::Header(b"positions" | b"creator" | b"part", _) => is_known = true,
            Statement::Header(b"version", value) => is_known |= value == b"1",
            Statement::Header(..) => {}
            Statement::Spec(Keyword::Fn | Keyword::Fl | Keyword::Fi | Keyword::Ob, _) => return events,
            Statement::Other if text.trim_ascii().is_empty() || text.starts_with(b"#") => {}
            Statement::Spec(..) | Statement::Cost(_) | Statement::Other => return false,
        }
    }
    // Its headers may be longer than what is looked at.
    events && is_known
}
