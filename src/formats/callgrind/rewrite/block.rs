//! Parses the blocks of functions in a chunk, independently of all other chunks.
//!
//! Names stay as the file states them, because an ID may be defined in an earlier chunk. For the same reason, an object
//! or file is `None` in these types where a statement before the block determines it. Most blocks are only copied, so
//! the cost lines of a block are decoded only if it may have to be written anew or contains costs of JIT code.

use super::index::{ChunkStart, FileIndex, UnknownObjects};
use super::jit_functions::JitFunctions;
use crate::bytes::digits::hex;
use crate::error::{Error, Result};
use crate::formats::callgrind::grammar::{
    CallLine, Chunk, Columns, CostLine, IdSpace, JumpLine, Keyword, Line, LineReader, NameField, NameRef, Position,
    PositionDecoder, Statement, UNKNOWN, lines, name_field, statements,
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
    /// The cost lines, calls, jumps and unknown lines, in file order. Only filled if the object is `???` or some
    /// address is in JIT code, because other blocks are copied without being decoded.
    pub(super) items: Vec<Item<'a>>,
    /// True if some positions are relative; then the rewritten block has relative positions, too.
    pub(super) has_relative: bool,
    /// Why the items are incomplete; `None` if the whole block was understood.
    pub(super) error: Option<Error>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BlockStatement<'a> {
    pub(super) keyword: Keyword,
    /// What the statement names. For `calls=`, which names nothing, it is the plain value.
    pub(super) field: NameField<'a>,
    /// Offset of the line in the chunk.
    pub(super) start: usize,
}

/// A cost line, a call, a jump, or an unknown line.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// Position of the line; `None` for unknown lines, which belong to the function as a whole.
    pub(super) position: Option<Position>,
    /// The source file that the last `fi=` or `fe=` above the line states; `None` if the block has none there.
    pub(super) file: Option<NameRef<'a>>,
    pub(super) kind: ItemKind<'a>,
}

#[derive(Debug)]
pub(super) enum ItemKind<'a> {
    /// A line of self cost. Holds the costs as the text in the input.
    SelfCost(&'a [u8]),
    Call(Box<Call<'a>>),
    Jump(Box<Jump<'a>>),
    /// A line that isn't understood. It is copied unchanged.
    Unknown(&'a [u8]),
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) callee: Callee<'a>,
    /// The number of calls, as the text in the input.
    pub(super) count: &'a [u8],
    pub(super) target: Position,
    /// The inclusive costs, as the text in the input.
    pub(super) costs: &'a [u8],
}

/// A function that an item calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callee<'a> {
    /// The object of the callee, from the last `cob=`. `None` if there was none: then it is the caller's object, as in
    /// KCachegrind.
    pub(super) object: Option<NameRef<'a>>,
    /// The source file of the callee, from the last `cfi=`. `None` if there was none: then it is the caller's current
    /// source file.
    pub(super) file: Option<NameRef<'a>>,
    pub(super) function: NameField<'a>,
}

#[derive(Debug)]
pub(super) struct Jump<'a> {
    pub(super) conditional: bool,
    /// How often the jump was taken or, if it is conditional, executed and followed; as the text in the input.
    pub(super) counts: &'a [u8],
    pub(super) target: Position,
    /// The file and function of the target, from the last `jfi=` and `jfn=` before the jump, if any.
    pub(super) file: Option<NameRef<'a>>,
    pub(super) function: Option<NameField<'a>>,
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

impl<'a> Item<'a> {
    /// The item's costs, as the text in the input. For a call, these are its inclusive costs. Empty for jumps and for
    /// lines that weren't understood.
    pub(super) fn costs(&self) -> &'a [u8] {
        match &self.kind {
            ItemKind::SelfCost(costs) => costs,
            ItemKind::Call(call) => call.costs,
            ItemKind::Jump(_) | ItemKind::Unknown(_) => b"",
        }
    }
}

/// Parses a chunk of a file. `index` is what the first pass found out about this file, `jit` tells which addresses are
/// JIT code.
pub fn parse_chunk<'a>(chunk: &Chunk<'a>, index: &FileIndex<'a>, jit: &dyn JitFunctions) -> ParsedChunk<'a> {
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

struct ChunkParser<'a, 'j> {
    text: &'a [u8],
    jit: &'j dyn JitFunctions,
    every_line_is_base: bool,
    columns: Columns,
    /// The current object, from the last `ob=`, which may be in an earlier chunk. `None` if there was none.
    object: Option<NameRef<'a>>,
    unknown_objects: UnknownObjects,
}

impl<'a> ChunkParser<'a, '_> {
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
            items: Vec::new(),
            has_relative: false,
            error: None,
            range,
        };
        if !block.in_unknown && !self.has_jit_address(text) {
            return Some(block);
        }
        // The decoder starts without a base. So a first position that is relative to the block before is an error: such
        // a block can't be written anew, because another block may then precede it.
        let mut decoder = PositionDecoder::new(self.columns, self.every_line_is_base);
        let mut parser = ItemParser::default();
        for (start, line) in LineReader::new(text, &mut decoder) {
            if let Err(error) = line.and_then(|line| parser.read_line(line)) {
                let offset = chunk_offset + (block.range.start + start) as u64;
                block.error.get_or_insert(error.at_offset(offset));
            }
        }
        block.has_relative = decoder.saw_relative;
        block.items = parser.items;
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

/// Reads the items of a block.
#[derive(Default)]
struct ItemParser<'a> {
    items: Vec<Item<'a>>,
    /// The source file of the items that follow, from the last `fi=` or `fe=` in the block. `None` if there was none.
    file: Option<NameRef<'a>>,
    /// The `cob=`, `cfi=`, `cfn=`, `jfi=` and `jfn=` lines since the last call or jump. They describe the target of the
    /// next one.
    cob: Option<NameRef<'a>>,
    cfi: Option<NameRef<'a>>,
    cfn: Option<NameField<'a>>,
    jfi: Option<NameRef<'a>>,
    jfn: Option<NameField<'a>>,
}

impl<'a> ItemParser<'a> {
    /// Reads one line of the block: a name applies to the items that follow, everything else becomes an item.
    fn read_line(&mut self, line: Line<'a>) -> Result<()> {
        match line {
            Line::Name(keyword, value) => self.read_name(keyword, name_field(value)),
            Line::SelfCost(CostLine { position, costs }) => {
                self.push(position.ok_or_else(malformed)?, ItemKind::SelfCost(costs));
            }
            Line::Call(line) => self.read_call(line)?,
            Line::Jump(line) => self.read_jump(line)?,
            Line::Unknown(text) => {
                self.items.push(Item { position: None, file: self.file, kind: ItemKind::Unknown(text) });
            }
            // Headers don't occur here, because a block ends before the next header.
            Line::Blank | Line::Header { .. } => {}
        }
        Ok(())
    }

    /// Remembers a name for the items that follow: a file for all of them, the other names for the next call or jump.
    fn read_name(&mut self, keyword: Keyword, field: NameField<'a>) {
        match keyword {
            Keyword::Fi | Keyword::Fe => self.file = Some(field.into()),
            Keyword::Cob => self.cob = Some(field.into()),
            Keyword::Cfi => self.cfi = Some(field.into()),
            Keyword::Cfn => self.cfn = Some(field),
            Keyword::Jfi => self.jfi = Some(field.into()),
            Keyword::Jfn => self.jfn = Some(field),
            _ => {}
        }
    }

    /// Adds a call as an item. The callee is the function that the preceding `cob=`, `cfi=` and `cfn=` lines named.
    fn read_call(&mut self, line: CallLine<'a>) -> Result<()> {
        let (object, file, function) = (self.cob.take(), self.cfi.take(), self.cfn.take());
        let function = function.ok_or_else(|| Error::new("the calls= line has no cfn= line before it"))?;
        let call = Call {
            callee: Callee { object, file, function },
            count: line.count,
            target: line.target.ok_or_else(malformed)?,
            costs: line.cost.costs,
        };
        self.push(line.cost.position.ok_or_else(malformed)?, ItemKind::Call(Box::new(call)));
        Ok(())
    }

    fn read_jump(&mut self, line: JumpLine<'a>) -> Result<()> {
        let (file, function) = (self.jfi.take(), self.jfn.take());
        let JumpLine { conditional, counts, target, position } = line;
        let target = target.ok_or_else(malformed)?;
        let jump = Jump { conditional, counts, target, file, function };
        self.push(position.ok_or_else(malformed)?, ItemKind::Jump(Box::new(jump)));
        Ok(())
    }

    fn push(&mut self, position: Position, kind: ItemKind<'a>) {
        self.items.push(Item { position: Some(position), file: self.file, kind });
    }
}

fn malformed() -> Error {
    Error::new("a position is not a number, or is relative although no position precedes it")
}
