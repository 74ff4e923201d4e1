//! Second pass: names the code in unknown objects, chunk by chunk.
//!
//! Blocks that neither contain nor call named code are copied byte for byte. If a block of a known object calls named
//! code, the statements before its `calls=` lines are replaced. A block of an unknown object is decoded and written
//! anew, as [`LineGroups`].

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
    let context = index.context_at(chunk.index);
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
    /// The chunk has been processed up to this offset.
    copied: usize,
    /// The result of the last address lookup.
    covered: Covered,
    /// What readers of the output inherit, if this differs from the input.
    reader: Option<ReaderContext<'a>>,
    /// The statements of the current block with their offsets, if it belongs to a known object.
    lines: Vec<(usize, &'a [u8], Statement<'a>)>,
    /// New names of the callees in `lines`.
    callees: Vec<ResolvedName<'a>>,
    /// Allocations for decoding blocks of unknown objects; `defined` are the functions that such a block defined.
    memory: BlockMemory<'a>,
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
        while let Some((at, line_text, line)) = lines.next() {
            let offset = self.chunk.offset + at as u64;
            if matches!(line, Statement::Spec(Keyword::Fn | Keyword::Ob | Keyword::Fl, _) | Statement::Header(..)) {
                self.close(open.take(), at);
                cob = None;
            }
            match line {
                Statement::Spec(Keyword::Fn, value) => {
                    let in_unknown = self.names.index.is_unknown_object(self.context.ob, offset);
                    if in_unknown && let Some(end) = self.regroup(at) {
                        lines.go_on_at(end);
                        continue;
                    }
                    open = Some(self.open(at, value, in_unknown));
                }
                Statement::Spec(Keyword::Cob, value) => cob = Some(NameRef::of(name_field(value))),
                Statement::Spec(key @ (Keyword::Cfn | Keyword::Jfn), value) => {
                    if let Some(open) = open.as_mut().filter(|open| !open.in_unknown) {
                        open.renames |= self.renames_callee(key, value, cob, offset);
                    }
                }
                Statement::Spec(Keyword::Calls, _) => cob = None,
                Statement::Header(b"part" | b"thread" | b"pid" | b"positions" | b"events", _) => {
                    self.copy_to(at);
                    self.draft.place(Piece::Forget);
                }
                _ => {}
            }
            if open.is_some_and(|open| !open.in_unknown) {
                self.lines.push((at, line_text, line));
            }
            self.context.apply(line);
        }
        self.close(open, text.len());
        self.copy_to(text.len());
        if !self.chunk.last {
            self.restore(self.context);
        }
        self.draft.finish(self.stats)
    }

    /// Begins the block whose `fn=` line is at `start`.
    fn open(&mut self, start: usize, function: &'a [u8], in_unknown: bool) -> OpenBlock<'a> {
        let offset = self.chunk.offset + start as u64;
        let resolved = || self.names.resolve(name_field(function), false, offset);
        let renames = !in_unknown && resolved() != ResolvedName::Unchanged;
        self.lines.clear();
        self.callees.clear();
        OpenBlock { start, context: self.context, in_unknown, renames }
    }

    /// Resolves a function that a block of a known object calls or jumps to. True if it gets another name.
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
    fn copy_to(&mut self, end: usize) {
        let Some(bytes) = self.chunk.bytes.get(self.copied..end) else { return };
        if let Some(reader) = &mut self.reader {
            statements(bytes).for_each(|(_, _, line)| follow(reader, line));
        }
        self.draft.copy(bytes);
        self.copied = end;
    }

    /// Writes statements so that readers of the output inherit the same as readers of the input.
    fn restore(&mut self, context: BlockContext<'a>) {
        let Some(reader) = self.reader.take() else { return };
        let inherited = ReaderContext::of(context);
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

    /// Finishes a block that ends at `end`.
    fn close(&mut self, open: Option<OpenBlock<'a>>, end: usize) {
        let Some(open) = open else { return };
        if !open.in_unknown {
            let (text, names) = (&self.chunk.bytes[open.start..end], self.names);
            self.stats.misattributed.look(text, open.context, !names.index.is_by_valgrind(), names.jit);
        }
        self.leave(open.start, open.context);
        if open.renames {
            self.copy_to(open.start);
            self.edit(open, end);
            self.copied = end;
        }
    }

    /// Leaves a block unchanged.
    fn leave(&mut self, start: usize, context: BlockContext<'a>) {
        if self.reader.is_some() {
            self.copy_to(start);
            self.restore(context);
        }
    }

    /// Processes a block of an unknown object; it is written anew if it contains anything to name. Returns its end, or
    /// `None` if the block cannot be decoded.
    fn regroup(&mut self, start: usize) -> Option<usize> {
        let (offset, context) = (self.chunk.offset + start as u64, self.context);
        let (jit, covered) = (self.names.jit, &mut self.covered);
        let stretch_of = &mut |addr| {
            *covered = jit.around(addr);
            covered.range.clone()
        };
        let text = &self.chunk.bytes[start..];
        let by_others = !self.names.index.is_by_valgrind();
        let parsed = FunctionBlock::parse(text, context, by_others, stretch_of, std::mem::take(&mut self.memory));
        let Some(block) = parsed else {
            self.stats.skipped.add(Error::new("its positions do not add up").at(offset));
            return None;
        };
        let end = start + block.len;
        self.context.open_file = block.open_file.or(context.open_file);
        let (range, covered) = (offset..self.chunk.offset + end as u64, &mut self.covered);
        if let Some(groups) = LineGroups::of(&block, self.names, context, range, covered, &mut self.stats) {
            self.copy_to(start);
            let before = self.reader.unwrap_or_else(|| ReaderContext::of(context));
            self.reader = Some(write_groups(&groups, &mut self.draft, before, &mut self.defined));
            self.copied = end;
        } else {
            self.leave(start, context);
        }
        self.memory = block.into_memory();
        Some(end)
    }

    /// Replaces names in a block of a known object.
    fn edit(&mut self, open: OpenBlock<'a>, end: usize) {
        let base = self.chunk.offset + open.start as u64;
        let block = &self.chunk.bytes[open.start..end];
        let (lines, mut callees) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.callees));
        let (mut callee, mut named, mut done) = (PendingCallee::default(), callees.drain(..), 0);
        for &(at, text, line) in &lines {
            let at = at - open.start;
            match line {
                Statement::Spec(Keyword::Calls, _) if callee.is_empty() => callee.cob = None,
                Statement::Spec(key, value) if is_edited(key) => {
                    self.draft.copy(&block[done..at]);
                    done = (at + text.len() + 1).min(block.len());
                    self.edit_line((key, text, value), &mut callee, &mut named, base + at as u64);
                }
                _ => {}
            }
        }
        drop(named);
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

    /// Writes a line that names a function, or that precedes a call.
    fn edit_line(
        &mut self,
        (key, text, value): (Keyword, &'a [u8], &'a [u8]),
        callee: &mut PendingCallee<'a>,
        named: &mut impl Iterator<Item = ResolvedName<'a>>,
        offset: u64,
    ) {
        match key {
            Keyword::Cob => callee.hold(text, Some(value)),
            Keyword::Cfi => callee.hold(text, None),
            Keyword::Cfn => {
                let named = named.next().unwrap_or(ResolvedName::Unchanged);
                self.edit_callee(callee, text, named, name_field(value));
            }
            Keyword::Fn => self.edit_name(b"fn=", text, value, offset),
            Keyword::Jfn => self.edit_name(b"jfn=", text, value, offset),
            _ => {
                callee.release(&mut self.draft);
                callee.cob = None;
                self.put_line(text);
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
        named: ResolvedName<'a>,
        field: NameField<'a>,
    ) {
        let ResolvedName::Jit(entry, tail) = named else {
            callee.release(&mut self.draft);
            self.put_named(b"cfn=", text, named);
            return;
        };
        callee.release_definitions(&mut self.draft);
        if let NameField::Define(id, _) = field {
            self.draft.place(Piece::Dropped(id));
        }
        self.draft.place(Piece::Callee(entry, tail.into()));
    }

    fn edit_name(&mut self, key: &[u8], text: &'a [u8], value: &'a [u8], offset: u64) {
        let named = self.names.resolve(name_field(value), false, offset);
        self.put_named(key, text, named);
    }

    fn put_named(&mut self, key: &[u8], text: &[u8], named: ResolvedName<'a>) {
        match named {
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

/// Statements before a `cfn=` line, held back until the callee is known.
#[derive(Debug, Default)]
struct PendingCallee<'a> {
    held: Vec<&'a [u8]>,
    cob: Option<NameRef<'a>>,
}

impl<'a> PendingCallee<'a> {
    fn hold(&mut self, text: &'a [u8], cob: Option<&'a [u8]>) {
        self.held.push(text);
        if let Some(value) = cob {
            self.cob = Some(NameRef::of(name_field(value)));
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

    /// Writes only the statements that define an ID, because later blocks may refer to it. If more statements of the
    /// same kind follow, readers use the last.
    fn release_definitions(&mut self, draft: &mut ChunkDraft<'_>) {
        self.held.retain(
            |text| matches!(Statement::parse(text), Statement::Spec(_, value) if matches!(name_field(value), NameField::Define(..))),
        );
        self.release(draft);
    }
}

/// True if lines with this keyword are handled individually in a block with names to replace.
fn is_edited(key: Keyword) -> bool {
    use Keyword::{Calls, Cfi, Cfn, Cob, Fn, Jfn};
    matches!(key, Cob | Cfi | Cfn | Fn | Jfn | Calls)
}

/// Updates what readers of the output inherit after a copied line.
fn follow<'a>(reader: &mut ReaderContext<'a>, line: Statement<'a>) {
    let Statement::Spec(key, value) = line else { return };
    let name = || Some(OutputName::Input(NameRef::of(name_field(value))));
    match key {
        Keyword::Ob => reader.ob = name(),
        Keyword::Fl => {
            reader.file = name();
            reader.fl = reader.file;
        }
        Keyword::Fi | Keyword::Fe => reader.file = name(),
        _ => {}
    }
}
