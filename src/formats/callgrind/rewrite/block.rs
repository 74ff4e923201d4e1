//! Parses the blocks of functions in a chunk, independently of all other chunks.
//!
//! Names stay as the file states them, because an ID may be defined in an earlier chunk. For the same reason, an object
//! or file is `None` in these types where a statement before the block determines it. Most blocks are only copied, so
//! the cost lines of a block are decoded only if it may have to be written anew or contains costs of JIT code.

use super::groups::{GroupReader, GroupedLines};
use super::index::{ChunkStart, FileIndex, UnknownObjects};
use super::jit_functions::JitFunctions;
use crate::bytes::digits::hex;
use crate::formats::callgrind::grammar::{
    Chunk, Columns, IdSpace, Keyword, NameField, NameRef, Statement, UNKNOWN, lines, name_field, statements,
};
use std::ops::Range;

/// A chunk of a file, parsed.
#[derive(Debug)]
pub struct ParsedChunk<'a> {
    pub(super) text: &'a [u8],
    /// Offset of the chunk in the file.
    pub(super) offset: u64,
    /// The blocks in the order of the text. Between them are headers, and statements that set object or file.
    pub(super) blocks: Vec<Block<'a>>,
}

/// A function's block: from its `fn=` line to the next `fn=`, `fl=`, `ob=` or header.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The block's range in the chunk.
    pub(super) range: Range<usize>,
    /// The function's name, after `fn=`.
    pub(super) function: NameField<'a>,
    /// True if the object in effect is `???`.
    pub(super) in_unknown: bool,
    pub(super) columns: Columns,
    /// The statements of the block that name something, and its `calls=` lines. In file order, beginning with `fn=`.
    pub(super) statements: Vec<BlockStatement<'a>>,
    /// The cost lines, calls and jumps. Empty if the block is only copied: if its object is known and no address is in
    /// JIT code.
    pub(super) lines: GroupedLines<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BlockStatement<'a> {
    pub(super) keyword: Keyword,
    /// What the statement names. For `calls=`, which names nothing, it is the plain value.
    pub(super) field: NameField<'a>,
    /// Offset of the line in the chunk.
    pub(super) start: usize,
}

impl<'a> Block<'a> {
    /// The IDs that the block defines, with their names, in file order.
    pub(super) fn definitions(&self) -> impl Iterator<Item = (IdSpace, u32, &'a [u8])> {
        self.statements.iter().filter_map(|statement| match statement.field {
            NameField::Define(id, name) => Some((statement.keyword.space()?, id, name)),
            _ => None,
        })
    }

    /// The source file that the block's last `fi=` or `fe=` states. Some readers assume that the next function is in
    /// this file.
    pub(super) fn open_file(&self) -> Option<NameRef<'a>> {
        let is_file = |statement: &&BlockStatement<'_>| matches!(statement.keyword, Keyword::Fi | Keyword::Fe);
        let last = self.statements.iter().rfind(is_file)?;
        Some(last.field.into())
    }
}

/// Parses a chunk of a file. `index` is what the first pass found out about this file, `jit` tells which addresses are
/// JIT code.
pub fn parse_chunk<'a>(chunk: &Chunk<'a>, index: &FileIndex<'a>, jit: &'a dyn JitFunctions) -> ParsedChunk<'a> {
    let text = chunk.bytes;
    let ChunkStart { columns, object, unknown_objects } = index.chunk_start(chunk.index);
    let every_line_is_base = !index.is_by_valgrind();
    let mut parser = ChunkParser { text, jit, every_line_is_base, columns, object, unknown_objects };
    let mut blocks = Vec::new();
    // The statements of the current block, until its end is found. The first one is `fn=`, where the block begins.
    // Empty between blocks.
    let mut open: Vec<BlockStatement<'_>> = Vec::new();
    for (start, statement) in statements(text) {
        let is_function = matches!(statement, Statement::Spec(Keyword::Fn, _));
        // `fl=` and `ob=` lines state file and object of the next function, so they come before its block and end this
        // one.
        let ends_block =
            is_function || matches!(statement, Statement::Spec(Keyword::Fl | Keyword::Ob, _) | Statement::Header(..));
        if ends_block {
            blocks.extend(parser.parse_block(std::mem::take(&mut open), start, chunk.offset));
        }
        // Of a block's statements, those with names are kept, and `calls=`, after which the names of a callee no longer
        // apply.
        if let Statement::Spec(keyword, value) = statement
            && (is_function || !open.is_empty())
            && (keyword.space().is_some() || keyword == Keyword::Calls)
        {
            open.push(BlockStatement { keyword, field: name_field(value), start });
        }
        parser.apply(statement);
    }
    blocks.extend(parser.parse_block(open, text.len(), chunk.offset));
    ParsedChunk { text, offset: chunk.offset, blocks }
}

struct ChunkParser<'a> {
    text: &'a [u8],
    jit: &'a dyn JitFunctions,
    every_line_is_base: bool,
    columns: Columns,
    /// The current object, from the last `ob=`, which may be in an earlier chunk. `None` if there was none.
    object: Option<NameRef<'a>>,
    unknown_objects: UnknownObjects,
}

impl<'a> ChunkParser<'a> {
    /// Updates what is in effect after a statement: the object, the columns, and the IDs of unknown objects.
    fn apply(&mut self, statement: Statement<'a>) {
        match statement {
            Statement::Header(b"positions", value) => self.columns = Columns::parse(value).unwrap_or(self.columns),
            Statement::Spec(keyword @ (Keyword::Ob | Keyword::Cob), value) => {
                let field = name_field(value);
                if let NameField::Define(id, name) = field {
                    self.unknown_objects.define(id, name == UNKNOWN);
                }
                if keyword == Keyword::Ob {
                    self.object = Some(field.into());
                }
            }
            _ => {}
        }
    }

    /// Parses the block of these statements, the first of which is `fn=`. The block reaches up to the offset `end` in
    /// the chunk. Its costs are only parsed if it may contain JIT code: in a block of an unknown object, they may have
    /// to be split by function; in any other block, those at addresses of JIT code are counted as misattributed.
    /// `chunk_offset` is the offset of the chunk in the file, for errors. `None` if there is no statement, so no block.
    fn parse_block(&self, statements: Vec<BlockStatement<'a>>, end: usize, chunk_offset: u64) -> Option<Block<'a>> {
        let BlockStatement { start, field: function, .. } = *statements.first()?;
        let range = start..end;
        let text = &self.text[range.clone()];
        let mut block = Block {
            function,
            in_unknown: self.unknown_objects.contain(self.object),
            columns: self.columns,
            statements,
            lines: GroupedLines::default(),
            range,
        };
        if !block.in_unknown && !self.has_jit_address(text) {
            return Some(block);
        }
        let offset = chunk_offset + block.range.start as u64;
        block.lines = GroupReader::new(self.columns, self.jit).read(text, offset, self.every_line_is_base);
        Some(block)
    }

    /// True if a cost line begins with an absolute address in JIT code. Relative addresses needn't be looked at: a jump
    /// from an object into JIT code is far, so the first address there is absolute.
    fn has_jit_address(&self, text: &[u8]) -> bool {
        // Only an address in the first column is at the beginning of a line.
        if self.columns.instr != Some(0) {
            return false;
        }
        // A lookup holds for all addresses in its range, so most lines need no new one.
        let mut lookup = self.jit.find_range(0);
        for (_, line) in lines(text) {
            let Some(digits) = line.strip_prefix(b"0x") else { continue };
            let len = digits.iter().position(u8::is_ascii_whitespace).unwrap_or(digits.len());
            let Some(addr) = hex(&digits[..len]) else { continue };
            if !lookup.range.contains(&addr) {
                lookup = self.jit.find_range(addr);
            }
            if lookup.entry.is_some() {
                return true;
            }
        }
        false
    }
}
