//! Second pass: names the JIT code in unknown objects (`ob=???`), chunk by chunk.
//!
//! Blocks that neither contain nor call JIT code with a known name are copied byte for byte. If a block of a known
//! object calls such code, the statements before its `calls=` lines are replaced. A block of an unknown object is
//! decoded and written anew, as [`LineGroups`].

use super::draft::{ChunkDraft, DraftMemory, OutputName, Piece, ReaderContext, RewrittenChunk};
use super::group_writer::write_groups;
use super::index::FileIndex;
use super::jit_functions::{Covered, JitFunctions};
use super::line_groups::LineGroups;
use super::name_resolver::{NameResolver, ResolvedName};
use super::stats::RewriteStats;
use crate::error::Error;
use crate::records::callgrind::grammar::{
    BlockContext, BlockMemory, Chunk, FunctionBlock, Keyword, NameField, NameRef, Statement, name_field, statements,
};
use rustc_hash::FxHashSet;

/// Rewrites a chunk, independently of all others.
pub fn rewrite_chunk<'a>(
    chunk: &Chunk<'a>,
    index: &'a FileIndex<'a>,
    jit: &'a dyn JitFunctions,
    memory: DraftMemory<'a>,
) -> RewrittenChunk<'a> {
    let context = index.chunk_context(chunk.index);
    let names = NameResolver { index, jit };
    let rewriter = ChunkRewriter {
        chunk: *chunk,
        names,
        context,
        draft: ChunkDraft::with_room_for(chunk.bytes.len(), memory),
        stats: RewriteStats::default(),
        copied: 0,
        covered: Covered { range: 0..0, entry: None },
        reader: None,
        lines: Vec::new(),
        callees: Vec::new(),
        memory: BlockMemory::default(),
        defined: FxHashSet::default(),
    };
    rewriter.run()
}

struct ChunkRewriter<'a> {
    chunk: Chunk<'a>,
    names: NameResolver<'a>,
    context: BlockContext<'a>,
    draft: ChunkDraft<'a>,
    stats: RewriteStats,
    /// Offset in the chunk up to which the output is complete.
    copied: usize,
    /// The result of the last address lookup, which often holds for the next address too.
    covered: Covered,
    /// The object and files in effect for readers of the output; `None` if they are the same as in the input.
    reader: Option<ReaderContext<'a>>,
    /// Statements of the current block, each with its offset and text. Empty if the block belongs to an unknown object.
    lines: Vec<(usize, &'a [u8], Statement<'a>)>,
    /// The resolved names of the callees (`cfn=`) in `lines`, in order.
    callees: Vec<ResolvedName<'a>>,
    /// Allocations that are reused to decode the next block of an unknown object.
    memory: BlockMemory<'a>,
    /// IDs of functions that the current block has defined. It is a field only to reuse its allocation.
    defined: FxHashSet<u32>,
}

/// A function's block whose end has not been found yet.
#[derive(Clone, Copy)]
struct OpenBlock<'a> {
    start: usize,
    context: BlockContext<'a>,
    in_unknown: bool,
    /// True if the block contains names to replace.
    renames: bool,
}

impl<'a> ChunkRewriter<'a> {
    fn run(mut self) -> RewrittenChunk<'a> {
        let mut open: Option<OpenBlock<'a>> = None;
        let mut cob = None;
        let text = self.chunk.bytes;
        let mut lines = statements(text);
        while let Some((start, line_text, line)) = lines.next() {
            let offset = self.chunk.offset + start as u64;
            if matches!(line, Statement::Spec(Keyword::Fn | Keyword::Ob | Keyword::Fl, _) | Statement::Header(..)) {
                self.end_block(open.take(), start);
                cob = None;
            }
            match line {
                Statement::Spec(Keyword::Fn, value) => {
                    let in_unknown = self.names.index.is_unknown_object(self.context.ob, offset);
                    if in_unknown && let Some(end) = self.regroup(start) {
                        lines.seek(end);
                        continue;
                    }
                    open = Some(self.begin_block(start, value, in_unknown));
                }
                Statement::Spec(Keyword::Cob, value) => cob = Some(name_field(value).into()),
                Statement::Spec(key @ (Keyword::Cfn | Keyword::Jfn), value) => {
                    if let Some(open) = open.as_mut().filter(|open| !open.in_unknown) {
                        open.renames |= self.renames_callee(key, value, cob, offset);
                    }
                }
                Statement::Spec(Keyword::Calls, _) => cob = None,
                Statement::Header(b"part" | b"thread" | b"pid" | b"positions" | b"events", _) => {
                    self.copy_until(start);
                    self.draft.place(Piece::Forget);
                }
                _ => {}
            }
            if open.is_some_and(|open| !open.in_unknown) {
                self.lines.push((start, line_text, line));
            }
            self.context.apply(line);
        }
        self.end_block(open, text.len());
        self.copy_until(text.len());
        if !self.chunk.last {
            self.restore(self.context);
        }
        self.draft.finish(self.stats)
    }

    /// Begins the block whose `fn=` line is at `start`.
    fn begin_block(&mut self, start: usize, function: &'a [u8], in_unknown: bool) -> OpenBlock<'a> {
        let offset = self.chunk.offset + start as u64;
        let renames = !in_unknown && self.names.resolve(name_field(function), false, offset) != ResolvedName::Unchanged;
        self.lines.clear();
        self.callees.clear();
        OpenBlock { start, context: self.context, in_unknown, renames }
    }

    /// Resolves the name of a function that a block of a known object calls or jumps to. Returns true if the function
    /// gets another name.
    fn renames_callee(&mut self, key: Keyword, value: &'a [u8], cob: Option<NameRef<'a>>, offset: u64) -> bool {
        let in_unknown = cob.is_some() && self.names.index.is_unknown_object(cob, offset);
        let name = self.names.resolve(name_field(value), in_unknown, offset);
        let renames = name != ResolvedName::Unchanged;
        if key == Keyword::Cfn {
            self.callees.push(name);
        }
        renames
    }

    /// Copies everything up to `end` unchanged.
    fn copy_until(&mut self, end: usize) {
        let Some(bytes) = self.chunk.bytes.get(self.copied..end) else { return };
        if let Some(reader) = &mut self.reader {
            for (_, _, line) in statements(bytes) {
                apply_copied(reader, line);
            }
        }
        self.draft.copy(bytes);
        self.copied = end;
    }

    /// Writes `ob=`, `fl=` and `fi=` lines if readers of the output would otherwise be in another object or file than
    /// readers of the input, for which `context` is in effect.
    fn restore(&mut self, context: BlockContext<'a>) {
        let Some(reader) = self.reader.take() else { return };
        let inherited = ReaderContext::from(context);
        if let Some(ob) = inherited.ob.filter(|ob| reader.ob != Some(*ob)) {
            self.draft.put_object(b"ob=", ob);
        }
        if (reader.fl, reader.file) == (inherited.fl, inherited.file) {
            return;
        }
        if let Some(fl) = context.fl {
            self.draft.put_file(b"fl=", OutputName::Input(fl));
        }
        if let Some(open) = context.open_file {
            self.draft.put_file(b"fi=", OutputName::Input(open));
        }
    }

    /// Finishes the open block, if there is one. It ends at offset `end`.
    fn end_block(&mut self, open: Option<OpenBlock<'a>>, end: usize) {
        let Some(open) = open else { return };
        if !open.in_unknown {
            let (text, names) = (&self.chunk.bytes[open.start..end], self.names);
            self.stats.misattributed.examine(text, open.context, !names.index.is_by_valgrind(), names.jit);
        }
        self.restore_before(open.start, open.context);
        if open.renames {
            self.copy_until(open.start);
            self.edit_block(open, end);
            self.copied = end;
        }
    }

    /// Restores the object and files in effect, if blocks written so far changed them. To be called before the block at
    /// `start` is copied or edited.
    fn restore_before(&mut self, start: usize, context: BlockContext<'a>) {
        if self.reader.is_some() {
            self.copy_until(start);
            self.restore(context);
        }
    }

    /// Processes the block of an unknown object at `start`. It is written anew if anything in it gets a name. Returns
    /// the offset of its end, or `None` if the block can't be decoded.
    fn regroup(&mut self, start: usize) -> Option<usize> {
        let (offset, context) = (self.chunk.offset + start as u64, self.context);
        let (jit, covered) = (self.names.jit, &mut self.covered);
        let find_range = &mut |addr| {
            *covered = jit.find_range(addr);
            covered.range.clone()
        };
        let text = &self.chunk.bytes[start..];
        let every_line_moves = !self.names.index.is_by_valgrind();
        let memory = std::mem::take(&mut self.memory);
        let Some(block) = FunctionBlock::parse(text, context, every_line_moves, find_range, memory) else {
            self.stats.skipped.add(Error::new("its positions do not add up").at(offset));
            return None;
        };
        let end = start + block.len;
        self.context.open_file = block.open_file.or(context.open_file);
        let (range, covered) = (offset..self.chunk.offset + end as u64, &mut self.covered);
        if let Some(groups) = LineGroups::new(&block, self.names, context, range, covered, &mut self.stats) {
            self.copy_until(start);
            let before = self.reader.unwrap_or_else(|| ReaderContext::from(context));
            self.reader = Some(write_groups(&groups, &mut self.draft, before, &mut self.defined));
            self.copied = end;
        } else {
            self.restore_before(start, context);
        }
        self.memory = block.into_memory();
        Some(end)
    }

    /// Replaces names in a block of a known object.
    fn edit_block(&mut self, open: OpenBlock<'a>, end: usize) {
        let block = &self.chunk.bytes[open.start..end];
        let (lines, mut callees) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.callees));
        let mut callee_names = callees.drain(..);
        let mut callee = PendingCallee::default();
        let mut done = 0;
        for &(start, text, line) in &lines {
            match line {
                Statement::Spec(Keyword::Calls, _) if callee.is_empty() => callee.cob = None,
                Statement::Spec(key, value) if is_edited(key) => {
                    let start_in_block = start - open.start;
                    self.draft.copy(&block[done..start_in_block]);
                    done = (start_in_block + text.len() + 1).min(block.len());
                    let line = EditedLine { key, value, text, offset: self.chunk.offset + start as u64 };
                    self.edit_line(line, &mut callee, &mut callee_names);
                }
                _ => {}
            }
        }
        drop(callee_names);
        (self.lines, self.callees) = (lines, callees);
        self.draft.copy(&block[done..]);
        // If the last line of the file lacks its line feed, so must the copy.
        let is_torn = !block.ends_with(b"\n");
        if is_torn && done < block.len() {
            self.draft.put(b"\n");
        }
        callee.release(&mut self.draft);
        if is_torn {
            self.draft.unput();
        }
    }

    /// Writes a line that names a function or precedes a call, with its new name if there is one.
    fn edit_line(
        &mut self,
        line: EditedLine<'a>,
        callee: &mut PendingCallee<'a>,
        callee_names: &mut impl Iterator<Item = ResolvedName<'a>>,
    ) {
        match line.key {
            Keyword::Cob => callee.hold(line.text, Some(line.value)),
            Keyword::Cfi => callee.hold(line.text, None),
            Keyword::Cfn => {
                let name = callee_names.next().unwrap_or(ResolvedName::Unchanged);
                self.edit_callee(callee, line.text, name, name_field(line.value));
            }
            Keyword::Fn => self.edit_name(b"fn=", line),
            Keyword::Jfn => self.edit_name(b"jfn=", line),
            _ => {
                callee.release(&mut self.draft);
                callee.cob = None;
                self.put_line(line.text);
            }
        }
    }

    fn put_line(&mut self, text: &[u8]) {
        self.draft.put_all(&[text, b"\n"]);
    }

    fn edit_callee(
        &mut self,
        callee: &mut PendingCallee<'a>,
        text: &'a [u8],
        name: ResolvedName<'a>,
        field: NameField<'a>,
    ) {
        let ResolvedName::Jit(entry, tail) = name else {
            callee.release(&mut self.draft);
            self.put_name(b"cfn=", text, name);
            return;
        };
        callee.release_definitions(&mut self.draft);
        if let NameField::Define(id, _) = field {
            self.draft.place(Piece::Dropped(id));
        }
        self.draft.place(Piece::Callee(entry, tail.into()));
    }

    fn edit_name(&mut self, key: &[u8], line: EditedLine<'a>) {
        let name = self.names.resolve(name_field(line.value), false, line.offset);
        self.put_name(key, line.text, name);
    }

    /// Writes a line with a function's new name; `text` is the old line.
    fn put_name(&mut self, key: &[u8], text: &[u8], name: ResolvedName<'a>) {
        match name {
            ResolvedName::CallersReplaced(id, name) => {
                self.draft.put(key);
                if let Some(id) = id {
                    self.draft.put_id(id);
                    self.draft.put(b" ");
                }
                self.put_line(&name);
            }
            ResolvedName::Raw(id, name) => {
                self.draft.put(key);
                self.draft.place(Piece::InputFunction(id, name));
                self.draft.put(b"\n");
            }
            ResolvedName::Unchanged | ResolvedName::Jit(..) => self.put_line(text),
        }
    }
}

/// A line that may have to be replaced. It is in a block of a known object.
#[derive(Debug, Clone, Copy)]
struct EditedLine<'a> {
    key: Keyword,
    value: &'a [u8],
    /// The whole line.
    text: &'a [u8],
    /// Offset of the line in the file.
    offset: u64,
}

/// Statements that precede a `cfn=` line. They are held back until it is known whether the callee gets a new name.
#[derive(Debug, Default)]
struct PendingCallee<'a> {
    held: Vec<&'a [u8]>,
    cob: Option<NameRef<'a>>,
}

impl<'a> PendingCallee<'a> {
    fn hold(&mut self, text: &'a [u8], cob: Option<&'a [u8]>) {
        self.held.push(text);
        if let Some(value) = cob {
            self.cob = Some(name_field(value).into());
        }
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn release(&mut self, draft: &mut ChunkDraft<'_>) {
        for text in self.held.drain(..) {
            draft.put_all(&[text, b"\n"]);
        }
    }

    /// Writes those of the held statements that define an ID, because later blocks may refer to it, and drops the
    /// others. The callee's new `cob=` and `cfi=` follow, and readers use the last ones.
    fn release_definitions(&mut self, draft: &mut ChunkDraft<'_>) {
        self.held.retain(
            |text| matches!(Statement::parse(text), Statement::Spec(_, value) if matches!(name_field(value), NameField::Define(..))),
        );
        self.release(draft);
    }
}

/// True if lines with this keyword are edited one by one. In a block with names to replace, all other lines are copied.
fn is_edited(key: Keyword) -> bool {
    use Keyword::{Calls, Cfi, Cfn, Cob, Fn, Jfn};
    matches!(key, Cob | Cfi | Cfn | Fn | Jfn | Calls)
}

/// Updates the object and files in effect for readers of the output, after `line` was copied.
fn apply_copied<'a>(reader: &mut ReaderContext<'a>, line: Statement<'a>) {
    let Statement::Spec(key @ (Keyword::Ob | Keyword::Fl | Keyword::Fi | Keyword::Fe), value) = line else { return };
    let name = Some(OutputName::Input(name_field(value).into()));
    match key {
        Keyword::Ob => reader.ob = name,
        Keyword::Fl => (reader.fl, reader.file) = (name, name),
        _ => reader.file = name,
    }
}
