//! The second pass: renames the functions of parsed chunks, and writes the chunks in order.

use super::block::{Block, BlockStatement, ParsedChunk};
use super::group_writer::write_groups;
use super::index::FileIndex;
use super::input_names::{InputContext, InputNames, NewName, ObjectKind};
use super::jit_functions::JitFunctions;
use super::named_block::NamedBlock;
use super::output::{OutputContext, OutputName, RewrittenText};
use super::stats::RewriteStats;
use crate::error::{Error, Result};
use crate::formats::callgrind::grammar::{IdSpace, Keyword, NameField, NameRef, Statement, name_field, statements};
use std::io::Write;

/// Writes a file with names for JIT code, chunk by chunk. The chunks must come in order.
pub struct Rewriter<'a> {
    names: InputNames<'a>,
    /// The object and files in effect at the current line of the input.
    context: InputContext<'a>,
    /// The object and files in effect after the last line that was written, if the last block was split by JIT
    /// function; `None` if they are those of the input (`context`).
    output_context: Option<OutputContext<'a>>,
    output: RewrittenText,
    /// Statistics about what was rewritten so far.
    pub stats: RewriteStats,
}

impl std::fmt::Debug for Rewriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rewriter").field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<'a> Rewriter<'a> {
    /// Prepares to rewrite the file that `index` describes.
    pub fn new(index: &'a FileIndex<'a>, jit: &'a dyn JitFunctions) -> Self {
        Self {
            names: InputNames::new(index, jit),
            context: InputContext::default(),
            output_context: None,
            output: RewrittenText::new(index.max_ids),
            stats: RewriteStats::default(),
        }
    }

    /// Writes the next chunk. Fails if writing fails, or if no ID is left for a new name.
    pub fn write(&mut self, chunk: ParsedChunk<'a>, out: &mut dyn Write) -> Result<()> {
        let ParsedChunk { text, offset, blocks } = chunk;
        let mut end = 0;
        for block in blocks {
            self.copy_between(&text[end..block.range.start]);
            end = block.range.end;
            self.write_block(text, offset, block);
        }
        self.copy_between(&text[end..]);
        if self.output.ran_out_of_ids {
            return Err(Error::new(format!(
                "the file already uses the largest possible ID for a name ({}), so no names can be added",
                u32::MAX
            )));
        }
        out.write_all(&self.output.text)?;
        self.output.text.clear();
        Ok(())
    }

    /// How many distinct new names of functions were written to the file.
    pub fn new_functions(&self) -> usize {
        self.output.new_functions()
    }

    /// Copies the text between two blocks: headers, and statements that set object or file.
    fn copy_between(&mut self, text: &'a [u8]) {
        for (_, statement) in statements(text) {
            match statement {
                Statement::Spec(keyword, value) => self.define(keyword, name_field(value)),
                // Readers may forget all IDs at any of these headers.
                Statement::Header(b"part" | b"thread" | b"pid" | b"positions" | b"events", _) => {
                    self.output.begin_part();
                }
                _ => {}
            }
            self.context.apply(statement);
            // The last block was split into several, one per JIT function, which set other objects and files than the
            // block in the input did. Until the input's are set again, those of the output are tracked separately.
            if let Some(context) = &mut self.output_context {
                context.apply(statement);
            }
        }
        self.output.put(text);
    }

    /// Writes a function's block. A block of the unknown object is split by JIT function; in all other blocks, only
    /// names change.
    fn write_block(&mut self, chunk: &'a [u8], chunk_offset: u64, block: Block<'a>) {
        // The object and files in effect at the start of the block. `self.context` becomes those in effect after it.
        let context = self.context;
        self.context.open_file = block.open_file().or(context.open_file);
        if block.in_unknown {
            self.write_unknown_block(chunk, chunk_offset, block, context);
            return;
        }
        // If a block of a known object has costs at addresses of JIT code, these are misattributed. They stay in the
        // block, but are counted.
        if block.lines.error.is_none() {
            self.stats.misattributed.examine(&block);
        }
        // If the block before was split, the output has another object and file in effect than the input.
        self.restore_context(context);
        self.edit_callees(chunk, &block);
    }

    /// Writes a block of an unknown object. `context` has the object and files in effect before the block.
    fn write_unknown_block(
        &mut self,
        chunk: &'a [u8],
        chunk_offset: u64,
        mut block: Block<'a>,
        context: InputContext<'a>,
    ) {
        // `NamedBlock` looks up the IDs in the block, so the block's own definitions must be known before.
        for (space, id, name) in block.definitions() {
            self.names.define(space, id, name);
        }
        match NamedBlock::new(&mut block, &self.names, context) {
            Ok(named) => {
                named.count(&mut self.stats);
                if named.has_new_names {
                    let before = self.output_context.unwrap_or_else(|| context.into());
                    self.output_context = Some(write_groups(&named, before, &mut self.output));
                    return;
                }
            }
            Err(error) => self.stats.skipped.add(error.at_offset(chunk_offset + block.range.start as u64)),
        }
        // The block is copied as it is: either no name in it changes, or it wasn't understood.
        self.restore_context(context);
        self.output.put(&chunk[block.range]);
    }

    /// Remembers the definition of an ID in a statement that is copied.
    fn define(&mut self, keyword: Keyword, field: NameField<'a>) {
        if let (Some(space), NameField::Define(id, name)) = (keyword.space(), field) {
            self.names.define(space, id, name);
            if space == IdSpace::Function {
                self.output.keep_definition(id);
            }
        }
    }

    /// Prepares for copying text of the input after a block that was split by JIT function. Such a block sets other
    /// objects and files, so `ob=`, `fl=` and `fi=` lines set those of the input (`context`) again.
    fn restore_context(&mut self, context: InputContext<'a>) {
        let Some(current) = self.output_context.take() else { return };
        let wanted = OutputContext::from(context);
        if let Some(object) = wanted.object
            && current.object != wanted.object
        {
            self.output.put_object(b"ob=", object);
        }
        if (current.fl, current.file) == (wanted.fl, wanted.file) {
            return;
        }
        // Written even if only the current file differs: `fl=` is also what ends a file that `fi=` entered.
        if let Some(fl) = context.fl {
            self.output.put_file(b"fl=", OutputName::Input(fl));
        }
        if let Some(open) = context.open_file {
            self.output.put_file(b"fi=", OutputName::Input(open));
        }
    }

    /// Copies a block of a known object. Only two kinds of names are replaced: those of JIT functions that the block
    /// calls, and addresses of callers that are part of a name (`f'0x…`).
    fn edit_callees(&mut self, chunk: &'a [u8], block: &Block<'a>) {
        let mut editor = CalleeEditor { chunk, copied: block.range.start, pending: Vec::new(), cob: None };
        for statement in &block.statements {
            self.define(statement.keyword, statement.field);
            editor.edit_statement(statement, &self.names, &mut self.output);
        }
        editor.finish(block.range.end, &mut self.output);
    }
}

/// Replaces statements that name functions, in a block of a known object.
struct CalleeEditor<'a> {
    chunk: &'a [u8],
    /// Offset in the chunk up to which the text is written.
    copied: usize,
    /// The `cob=` and `cfi=` lines since the last call. They are held back until it is known whether the callee gets
    /// another object and file.
    pending: Vec<BlockStatement<'a>>,
    /// The object of the next callee, from the last `cob=` since the last call; `None` if there was none.
    cob: Option<NameRef<'a>>,
}

impl<'a> CalleeEditor<'a> {
    /// Replaces the name in a statement if the name is that of JIT code. The object and file of a callee precede its
    /// name, so these statements are kept in `pending` until the callee is known.
    fn edit_statement(&mut self, statement: &BlockStatement<'a>, names: &InputNames<'a>, output: &mut RewrittenText) {
        let field = statement.field;
        match statement.keyword {
            Keyword::Cob => {
                self.cob = Some(field.into());
                self.pending.push(*statement);
            }
            Keyword::Cfi => self.pending.push(*statement),
            // `cob=` and `cfi=` lines apply to one call. Those of a call without a `cfn=` stay as they are.
            Keyword::Calls => {
                self.cob = None;
                self.pending.clear();
            }
            Keyword::Cfn => {
                // Without a `cob=`, the callee is in the caller's object, which is known.
                let object = if self.cob.is_some() { names.object_kind(self.cob) } else { ObjectKind::Known };
                let name = names.resolve(field, object);
                if let NewName::Jit(entry, tail) = name {
                    self.replace_callee(statement, entry, &tail, names.jit, output);
                } else {
                    self.replace_name(b"cfn=", statement, name, output);
                }
                self.pending.clear();
            }
            // The block's function and the targets of its jumps are in the block's object. That object is known, so
            // these functions aren't JIT code. But their names may also contain callers (valgrind's
            // `--separate-callers`), and a caller may be JIT code.
            Keyword::Fn => self.replace_name(b"fn=", statement, names.resolve(field, ObjectKind::Known), output),
            Keyword::Jfn => self.replace_name(b"jfn=", statement, names.resolve(field, ObjectKind::Known), output),
            _ => {}
        }
    }

    /// Replaces the statements that name the callee of a call by those for a JIT function: its object, file and name.
    /// `cfn` is the statement in the input that named the callee, `tail` the suffix of the new name.
    fn replace_callee(
        &mut self,
        cfn: &BlockStatement<'a>,
        entry: usize,
        tail: &[u8],
        jit: &dyn JitFunctions,
        output: &mut RewrittenText,
    ) {
        for statement in std::mem::take(&mut self.pending) {
            // A statement that defines an ID stays, because later blocks may refer to the ID. It does no harm, because
            // readers use the last of several `cob=` or `cfi=`.
            if !matches!(statement.field, NameField::Define(..)) {
                self.skip_line(&statement, output);
            }
        }
        let has_line_feed = self.skip_line(cfn, output);
        if let NameField::Define(id, _) = cfn.field {
            output.drop_definition(id);
        }
        output.put_object(b"cob=", OutputName::New(jit.object()));
        output.put_file(b"cfi=", OutputName::New(jit.file(entry)));
        output.put(b"cfn=");
        output.put_function(&[jit.name(entry), tail].concat());
        if has_line_feed {
            output.put(b"\n");
        }
    }

    /// Writes a statement with a function's new name; does nothing if the name stays. JIT code doesn't occur here: it
    /// is named by [`Self::replace_callee`].
    fn replace_name(
        &mut self,
        key: &[u8],
        statement: &BlockStatement<'a>,
        name: NewName<'a>,
        output: &mut RewrittenText,
    ) {
        if matches!(name, NewName::Unchanged | NewName::Jit(..)) {
            return;
        }
        let has_line_feed = self.skip_line(statement, output);
        output.put(key);
        match name {
            NewName::CallersReplaced(Some(id), name) => output.put_definition(id, &name),
            NewName::CallersReplaced(None, name) => output.put(&name),
            NewName::Raw(id, name) => output.put_input_function(id, name),
            NewName::Unchanged | NewName::Jit(..) => {}
        }
        if has_line_feed {
            output.put(b"\n");
        }
    }

    /// Copies everything before a statement, and leaves out the statement. Returns true if the statement ends with a
    /// line feed, which the last line of a file may lack.
    fn skip_line(&mut self, statement: &BlockStatement<'a>, output: &mut RewrittenText) -> bool {
        output.put(&self.chunk[self.copied..statement.start]);
        let line = &self.chunk[statement.start..];
        let line_feed = memchr::memchr(b'\n', line);
        self.copied = line_feed.map_or(self.chunk.len(), |len| statement.start + len + 1);
        line_feed.is_some()
    }

    /// Copies the rest of the block, which ends at offset `end`.
    fn finish(self, end: usize, output: &mut RewrittenText) {
        output.put(&self.chunk[self.copied..end]);
    }
}
