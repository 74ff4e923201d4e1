//! Reads, rewrites and writes callgrind profiles.
//!
//! A file is a list of blocks, one per function (`fn=`), which contain cost lines and calls. `ob=` (object) and `fl=`
//! (file) before a block stay in effect until changed. For memory without a file, callgrind writes `ob=???` and names
//! functions by the address at which they were first entered. Only there are addresses absolute, so only those
//! addresses are looked up.
//!
//! | module | purpose |
//! |---|---|
//! | `grammar` | lines, names, positions and costs |
//! | `cost_reader` | reads costs and calls, and resolves the names of their functions |
//! | `instructions` | sums up the costs of each instruction |
//! | `stacks` | converts a file to stacks, and stacks to a file |
//! | `rewrite` | inserts the names of JIT-compiled functions while copying a file |
//!
//! Specification: <https://valgrind.org/docs/manual/cl-format.html>. Where valgrind's writer (callgrind/dump.c)
//! deviates from it, we follow the writer.

mod cost_reader;
mod grammar;
mod instructions;
mod rewrite;
mod stacks;

pub use grammar::{CHUNK_SIZE, Chunk, chunks};
pub use instructions::{
    CostedCalls, CostedFunction, CostedInstruction, InstructionCosts, StatedFunction, instruction_costs,
};
pub use rewrite::{
    ChunkFacts, CodeLine, CodeLookup, FileHeader, FileIndex, JitFunctions, Misattributed, ParsedChunk, RewriteStats,
    Rewriter, parse_chunk, scan_chunk,
};
pub use stacks::{anonymous_kind, function_kind, read, write};

use grammar::{Keyword, Statement, lines};

/// True if an input begins like a callgrind file, from any writer: headers with at least `events:`, then a function.
/// Files of cachegrind and cg_diff count too; they are callgrind files without calls.
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
            Statement::Spec(Keyword::Fn, _) => return events,
            // An `fl=`, `fi=` or `ob=` line after the `events:` header belongs to the first function: the headers are
            // complete.
            Statement::Spec(Keyword::Fl | Keyword::Fi | Keyword::Ob, _) if events => return true,
            // Some writers state the object or file of the first function before the `events:` header.
            Statement::Spec(Keyword::Fl | Keyword::Fi | Keyword::Ob | Keyword::Frfn | Keyword::Rec, _) => {}
            Statement::Other if text.trim_ascii().is_empty() || text.starts_with(b"#") => {}
            Statement::Spec(..) | Statement::Cost(_) | Statement::Other => return false,
        }
    }
    // `head` ends before the first function. Other formats might have an `events:` header, so a second typical header
    // is required.
    events && is_known
}
