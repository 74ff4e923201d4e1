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

use grammar::{Statement, lines};

/// True if an input begins like a file of this format, from any writer. cachegrind's files, which look alike, lack
/// every one of these headers.
pub fn sniff(head: &[u8]) -> bool {
    if head.starts_with(b"# callgrind format") {
        return true;
    }
    let mut headers = lines(head)
        .map(|(_, text)| Statement::parse(text))
        .take_while(|line| !matches!(line, Statement::Spec(..) | Statement::Cost(_)));
    let mut events = false;
    let known = headers.any(|line| {
        events |= matches!(line, Statement::Header(b"events", _));
        matches!(line, Statement::Header(b"positions" | b"creator" | b"part", _))
            || matches!(line, Statement::Header(b"version", value) if value == b"1")
    });
    known && (events || headers.any(|line| matches!(line, Statement::Header(b"events", _))))
}
