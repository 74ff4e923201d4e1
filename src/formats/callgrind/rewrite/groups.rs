//! Reads the lines of a block, groups them by the JIT function that covers their address, and encodes them as they will
//! be written.
//!
//! callgrind begins a function only at a call. Code that is reached by a jump is attributed to the function that
//! jumped, so one of callgrind's functions may contain several of the JIT compiler's. Each group becomes a block of its
//! own. Names are not known here, because an ID may be defined in an earlier chunk. So a group is a text in pieces:
//! between them, the statements that name something are inserted later (see [`group_writer`](super::group_writer)).

use super::jit_functions::{CodeLine, JitFunctions};
use crate::error::{Error, Result};
use crate::formats::callgrind::grammar::{
    CallLine, Columns, CostLine, JumpLine, Keyword, Line, LineReader, NameField, NameRef, Position, PositionDecoder,
    PositionEncoder, add_costs, name_field,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The lines of a block, grouped.
#[derive(Debug, Default)]
pub(super) struct GroupedLines<'a> {
    /// The groups in order of their first lines. In a file without addresses, there is only one, whose `entry` is
    /// `None`.
    pub(super) groups: Vec<Group<'a>>,
    /// The lines before the first cost line that aren't understood, such as comments. Those after it are in the groups.
    pub(super) leading: Vec<u8>,
    /// True if a position in the lines that were read so far is relative. From then on, positions are written as relative
    /// where possible.
    pub(super) has_relative: bool,
    /// Why lines are missing in the groups; `None` if the whole block was understood.
    pub(super) error: Option<Error>,
}

/// The lines of a block that belong to the same JIT function, or to no known code.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Number of the JIT function (see [`JitFunctions`]); `None` if no code is known at the addresses of these lines.
    pub(super) entry: Option<usize>,
    /// The lines as they will be written, without the statements that name something.
    pub(super) text: Vec<u8>,
    /// The consecutive parts of `text` before which statements may have to be inserted.
    pub(super) pieces: Vec<Piece<'a>>,
    /// For each event, the sum of the self costs of these lines and of the inclusive costs of their calls.
    pub(super) sums: Vec<i64>,
    /// The sum of the self costs in the first event, without their signs, so that negative costs don't cancel others
    /// out.
    pub(super) self_cost: u64,
    /// The file and position of the first line, as written. `None` if the group is empty.
    pub(super) first: Option<(SourceFile<'a>, Position)>,
    /// The lowest position in the input, and its self cost in the first event, or 1 if a call or a jump is there.
    /// `None` if the group is empty.
    pub(super) lowest: Option<(Position, i64)>,
    /// The state from which the positions of more lines can be encoded, such as those of synthetic calls.
    pub(super) encoder: PositionEncoder,
    /// The line table of the JIT function. Empty if it has none, or if positions have no source line.
    lines: Vec<CodeLine<'a>>,
}

/// A part of a group's text whose lines are in the same source file. A call or a jump begins a piece.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub(super) file: SourceFile<'a>,
    /// The call or jump whose target must be named before the text; `None` if the text begins with a cost line.
    pub(super) target: Option<Target<'a>>,
    /// Offset in the group's text where the piece ends.
    pub(super) end: usize,
}

/// The source file of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceFile<'a> {
    /// The file of the group's function.
    OfFunction,
    /// The file that the last `fi=` or `fe=` in the block states. In a JIT function, this doesn't count.
    Stated(NameRef<'a>),
    /// The file in the line table of the JIT function.
    OfCode(&'a [u8]),
}

/// Where a call or a jump leads.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Call(Callee<'a>),
    Jump(JumpTarget<'a>),
}

/// A function that a block calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callee<'a> {
    /// The object of the callee, from the last `cob=`. `None` if there was none: then it is the caller's object, as in
    /// KCachegrind.
    pub(super) object: Option<NameRef<'a>>,
    /// The source file of the callee, from the last `cfi=`; if there was none, the caller's current source file, from
    /// the last `fi=` or `fe=`. `None` if there was none of them in the block.
    pub(super) file: Option<NameRef<'a>>,
    pub(super) function: NameField<'a>,
}

/// The function that a jump leads to.
#[derive(Debug, Clone, Copy)]
pub(super) enum JumpTarget<'a> {
    /// The function that the last `jfn=` names, and the file of the last `jfi=` if there was one.
    Named(NameField<'a>, Option<NameRef<'a>>),
    /// A line of the same block, given by the number of the JIT function there (`None` for code in no JIT function).
    Code(Option<usize>),
    /// Unknown, because the file has no addresses.
    NoAddress,
}

/// Reads the lines of a block and groups them.
pub(super) struct GroupReader<'a> {
    columns: Columns,
    jit: &'a dyn JitFunctions,
    lines: GroupedLines<'a>,
    /// The length of the block's text in bytes.
    text_len: usize,
    /// The index of each JIT function's group after the first; `None` is the key of code that isn't in any JIT
    /// function. Most blocks have only one group, and need no map.
    indices: FxHashMap<Option<usize>, usize>,
    /// The index of the group that has the addresses in `range`.
    current: usize,
    range: Range<u64>,
    /// The source file of the lines that follow, from the last `fi=` or `fe=` in the block. `None` if there was none.
    file: Option<NameRef<'a>>,
    /// The `cob=`, `cfi=`, `cfn=`, `jfi=` and `jfn=` lines since the last call or jump. They describe the target of the
    /// next one.
    cob: Option<NameRef<'a>>,
    cfi: Option<NameRef<'a>>,
    cfn: Option<NameField<'a>>,
    jfi: Option<NameRef<'a>>,
    jfn: Option<NameField<'a>>,
}

impl<'a> GroupReader<'a> {
    pub(super) fn new(columns: Columns, jit: &'a dyn JitFunctions) -> Self {
        Self {
            columns,
            jit,
            lines: GroupedLines::default(),
            text_len: 0,
            indices: FxHashMap::default(),
            current: 0,
            range: 0..0,
            file: None,
            cob: None,
            cfi: None,
            cfn: None,
            jfi: None,
            jfn: None,
        }
    }

    /// Reads all lines of a block. `offset` is that of the block in the file, for errors.
    pub(super) fn read(mut self, text: &'a [u8], offset: u64, every_line_is_base: bool) -> GroupedLines<'a> {
        // The decoder starts without a base. So a first position that is relative to the block before is an error: such
        // a block can't be written anew, because another block may then precede it.
        let mut decoder = PositionDecoder::new(self.columns, every_line_is_base);
        let mut reader = LineReader::new(text, &mut decoder);
        self.text_len = text.len();
        while let Some((start, line)) = reader.next() {
            self.lines.has_relative = reader.saw_relative();
            if let Err(error) = line.and_then(|line| self.read_line(line)) {
                self.lines.error.get_or_insert(error.at_offset(offset + start as u64));
            }
        }
        self.lines
    }

    fn read_line(&mut self, line: Line<'a>) -> Result<()> {
        match line {
            Line::Name(keyword, value) => self.read_name(keyword, name_field(value)),
            Line::SelfCost(line) => self.read_self_cost(line)?,
            Line::Call(line) => self.read_call(line)?,
            Line::Jump(line) => self.read_jump(line)?,
            Line::Unknown(text) => self.copy_unknown(text),
            // Headers don't occur here, because a block ends before the next header.
            Line::Blank | Line::Header { .. } => {}
        }
        Ok(())
    }

    /// Remembers a name for the lines that follow: a file for all of them, the other names for the next call or jump.
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

    fn read_self_cost(&mut self, line: CostLine<'a>) -> Result<()> {
        let position = line.position.ok_or_else(malformed_position)?;
        let (file, compress) = (self.file, self.lines.has_relative);
        let group = self.find_group(position);
        let (file, written) = group.source_position(file, position);
        group.encoder.write_cost(written, compress, &mut group.text);
        let cost = group.end_line(line.costs)?;
        group.self_cost = group.self_cost.saturating_add(cost.unsigned_abs());
        group.note_line(file, written, position, cost);
        match group.pieces.last_mut() {
            Some(piece) if piece.file == file => piece.end = group.text.len(),
            _ => group.pieces.push(Piece { file, target: None, end: group.text.len() }),
        }
        Ok(())
    }

    /// Reads a call. The callee is the function that the preceding `cob=`, `cfi=` and `cfn=` lines named.
    fn read_call(&mut self, line: CallLine<'a>) -> Result<()> {
        let (object, file, function) = (self.cob.take(), self.cfi.take(), self.cfn.take());
        let function = function.ok_or_else(|| Error::new("the calls= line has no cfn= line before it"))?;
        let target = line.target.ok_or_else(malformed_position)?;
        let position = line.cost.position.ok_or_else(malformed_position)?;
        let callee = Callee { object, file: file.or(self.file), function };
        let (file, compress) = (self.file, self.lines.has_relative);
        let group = self.find_group(position);
        let (file, written) = group.source_position(file, position);
        group.write_target(&[b"calls=", line.count, b" "], target, compress);
        group.encoder.write_site(written, compress, &mut group.text);
        group.end_line(line.cost.costs)?;
        group.note_line(file, written, position, 1);
        group.pieces.push(Piece { file, target: Some(Target::Call(callee)), end: group.text.len() });
        Ok(())
    }

    /// Reads a jump. If no `jfn=` names its target, this is in the same block, but perhaps in the code of another
    /// group.
    fn read_jump(&mut self, line: JumpLine<'a>) -> Result<()> {
        let (jump_file, function) = (self.jfi.take(), self.jfn.take());
        let target = line.target.ok_or_else(malformed_position)?;
        let position = line.position.ok_or_else(malformed_position)?;
        let leads_to = match (function, self.columns.instr) {
            (Some(function), _) => JumpTarget::Named(function, jump_file),
            (None, Some(column)) => JumpTarget::Code(self.jit.find(target.0[column])),
            (None, None) => JumpTarget::NoAddress,
        };
        let (file, compress) = (self.file, self.lines.has_relative);
        let group = self.find_group(position);
        let (file, written) = group.source_position(file, position);
        let key: &[u8] = if line.conditional { b"jcnd=" } else { b"jump=" };
        group.write_target(&[key, line.counts, b" "], target, compress);
        group.encoder.write_site(written, compress, &mut group.text);
        group.text.push(b'\n');
        group.note_line(file, written, position, 1);
        group.pieces.push(Piece { file, target: Some(Target::Jump(leads_to)), end: group.text.len() });
        Ok(())
    }

    /// Copies a line that isn't understood to the group of the line before it.
    fn copy_unknown(&mut self, line: &[u8]) {
        let text = match self.lines.groups.get_mut(self.current) {
            Some(group) => {
                if let Some(piece) = group.pieces.last_mut() {
                    piece.end += line.len() + 1;
                }
                &mut group.text
            }
            None => &mut self.lines.leading,
        };
        text.extend_from_slice(line);
        text.push(b'\n');
    }

    /// The group of the JIT function that contains a position; it is created if necessary. In a file without addresses,
    /// all lines are in one group.
    fn find_group(&mut self, position: Position) -> &mut Group<'a> {
        let addr = self.columns.instr.map(|column| position.0[column]);
        // Most lines are in the same group as the line before.
        let is_current = addr.is_none_or(|addr| self.range.contains(&addr));
        if !is_current || self.lines.groups.is_empty() {
            let mut entry = None;
            if let Some(addr) = addr {
                let lookup = self.jit.find_range(addr);
                (entry, self.range) = (lookup.entry, lookup.range);
            }
            let groups = &mut self.lines.groups;
            self.current = match groups.first() {
                Some(first) if first.entry != entry => *self.indices.entry(entry).or_insert(groups.len()),
                _ => 0,
            };
            if self.current == groups.len() {
                groups.push(Group::new(entry, self.columns, self.jit));
                // Most blocks have only one group, which becomes about as long as the block.
                if self.current == 0 {
                    groups[0].text.reserve(self.text_len);
                }
            }
        }
        &mut self.lines.groups[self.current]
    }
}

impl<'a> Group<'a> {
    /// Creates an empty group.
    pub(super) fn new(entry: Option<usize>, columns: Columns, jit: &'a dyn JitFunctions) -> Self {
        let lines = match (entry, columns.instr, columns.line) {
            (Some(entry), Some(_), Some(_)) => jit.lines(entry),
            _ => Vec::new(),
        };
        Self {
            entry,
            text: Vec::new(),
            pieces: Vec::new(),
            sums: Vec::new(),
            self_cost: 0,
            first: None,
            lowest: None,
            encoder: PositionEncoder::new(columns),
            lines,
        }
    }

    /// The source file and position to write for a line. In a JIT function, they are from the function's line table; if
    /// that has no line for the address, the file is the function's own, and the position stays. In code that isn't in
    /// any JIT function, both stay as in the input, where the last `fi=` or `fe=` states `file`.
    fn source_position(&self, file: Option<NameRef<'a>>, mut position: Position) -> (SourceFile<'a>, Position) {
        if self.entry.is_none() {
            return (file.map_or(SourceFile::OfFunction, SourceFile::Stated), position);
        }
        let Columns { instr: Some(instr), line: Some(line), .. } = self.encoder.columns() else {
            return (SourceFile::OfFunction, position);
        };
        let after = self.lines.partition_point(|code_line| code_line.addr <= position.0[instr]);
        let Some(code_line) = self.lines[..after].last() else { return (SourceFile::OfFunction, position) };
        position.0[line] = u64::from(code_line.line);
        (SourceFile::OfCode(code_line.file), position)
    }

    /// Writes a `calls=`, `jump=` or `jcnd=` line, given the text before the target's position.
    fn write_target(&mut self, before: &[&[u8]], target: Position, compress: bool) {
        for text in before {
            self.text.extend_from_slice(text);
        }
        self.encoder.write_target(target, compress, &mut self.text);
        self.text.push(b'\n');
    }

    /// Writes the costs after a position, adds them to the sums, and returns the first one.
    fn end_line(&mut self, costs: &[u8]) -> Result<i64> {
        self.text.push(b' ');
        self.text.extend_from_slice(costs);
        self.text.push(b'\n');
        add_costs(costs, &mut self.sums).ok_or_else(|| Error::new("a cost is not a number, or a sum is too large"))
    }

    /// Keeps a line's file and positions for synthetic calls, if it is the group's first line or that with the lowest
    /// address. `written` and `position` are its positions in the output and in the input. `cost` is its self cost in
    /// the first event, or 1 for a call or a jump.
    fn note_line(&mut self, file: SourceFile<'a>, written: Position, position: Position, cost: i64) {
        let column = self.encoder.columns().instr.unwrap_or(0);
        self.first.get_or_insert((file, written));
        if self.lowest.is_none_or(|(lowest, _)| position.0[column] < lowest.0[column]) {
            self.lowest = Some((position, cost));
        }
    }
}

fn malformed_position() -> Error {
    Error::new("a position is not a number, or is relative although no position precedes it")
}
