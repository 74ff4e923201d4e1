//! Writes a block that was split by JIT function ([`NamedBlock`]): each group of its lines becomes a block of its own.

use super::groups::{Callee, JumpTarget, SourceFile, Target};
use super::input_names::NewName;
use super::named_block::{GroupName, NamedBlock, NamedGroup};
use super::output::{OutputContext, OutputName, RewrittenText};
use crate::formats::callgrind::grammar::{IdSpace, NameField, NameRef, Position, raw_name};
use rustc_hash::{FxHashMap, FxHashSet};

/// Writes all groups of a block. `before` has the object and files that are in effect at the end of the output so far;
/// returns those that are in effect after the block.
pub(super) fn write_groups<'a>(
    block: &NamedBlock<'a, '_>,
    before: OutputContext<'a>,
    output: &mut RewrittenText,
) -> OutputContext<'a> {
    let mut functions = FxHashMap::default();
    for (space, id, name) in block.input.definitions() {
        if space == IdSpace::Function {
            functions.insert(id, name);
        }
    }
    let mut writer = GroupWriter { block, output, context: before, functions, defined: FxHashSet::default() };
    writer.hoist_definitions();
    for index in 0..block.groups.len() {
        writer.write_group(index);
    }
    writer.context
}

/// The object and source file of a function.
struct FunctionHome<'a> {
    object: Option<OutputName<'a>>,
    file: Option<OutputName<'a>>,
}

struct GroupWriter<'a, 'b, 'o> {
    block: &'o NamedBlock<'a, 'b>,
    output: &'o mut RewrittenText,
    context: OutputContext<'a>,
    /// The IDs of functions that the block defines in the input, and their names.
    functions: FxHashMap<u32, &'a [u8]>,
    /// The IDs in `functions` whose definitions have been written already.
    defined: FxHashSet<u32>,
}

impl<'a> GroupWriter<'a, '_, '_> {
    /// Writes the block's definitions of objects and files before the first group. Grouping changes the order of the
    /// lines, so a line could otherwise use an ID before the line that defines it. Definitions of functions are written
    /// where the output first uses their IDs.
    fn hoist_definitions(&mut self) {
        for (space, id, name) in self.block.input.definitions() {
            let input = Some(OutputName::Input(NameRef::Id(id)));
            match space {
                IdSpace::Object => {
                    self.output.put(b"ob=");
                    self.context.object = input;
                }
                IdSpace::File => {
                    self.output.put(b"fl=");
                    (self.context.fl, self.context.file) = (input, input);
                }
                IdSpace::Function => continue,
            }
            self.output.put_definition(id, name);
            self.output.put(b"\n");
        }
        // If the block defines the ID of its function (`fn=(1) name`), that line belongs to the first group. If this
        // group's function gets another name, the line isn't written. The output then defines the ID where a later
        // block uses it.
        if let NameField::Define(id, _) = self.block.input.function
            && let GroupName::New(_) | GroupName::Jit(..) = self.block.groups[0].function
        {
            self.output.drop_definition(id);
        }
    }

    /// Object and file of the JIT function with the number `entry`. If there is no such function, object and file of
    /// the block.
    fn home(&self, entry: Option<usize>) -> FunctionHome<'a> {
        let jit = self.block.names.jit;
        let context = self.block.context;
        match entry {
            Some(entry) => FunctionHome {
                object: Some(OutputName::New(jit.object())),
                file: Some(OutputName::New(jit.file(entry))),
            },
            None => {
                FunctionHome { object: context.object.map(OutputName::Input), file: context.fl.map(OutputName::Input) }
            }
        }
    }

    /// Writes the group with this index as a block: object and file if they change, the function, then its lines. The
    /// first group (the head) ends with synthetic calls to the others.
    fn write_group(&mut self, index: usize) {
        let block = self.block;
        let group = &block.groups[index];
        let FunctionHome { object, file: fl } = self.home(group.lines.entry);
        if let Some(name) = object
            && self.context.object != object
        {
            self.output.put_object(b"ob=", name);
            self.context.object = object;
        }
        if let Some(name) = fl
            && (self.context.fl != fl || self.context.file != fl)
        {
            self.output.put_file(b"fl=", name);
            (self.context.fl, self.context.file) = (fl, fl);
        }
        self.output.put(b"fn=");
        self.write_function(&group.function);
        if index == 0 {
            self.output.put(&block.leading);
        }
        let mut body = GroupBody { writer: self, fl, group };
        body.write_lines();
        if index == 0 {
            body.write_synthetic_calls();
        }
        self.output.put(b"\n");
    }

    /// Writes the name of a function, without the `fn=` or `cfn=` before it.
    fn write_function(&mut self, function: &GroupName<'a>) {
        let names = self.block.names;
        match function {
            GroupName::Jit(entry, tail) => self.output.put_function(&[names.jit.name(*entry), tail].concat()),
            GroupName::New(name) => self.output.put_function(name),
            GroupName::Input(NameField::Plain(name)) => self.output.put(&names.name_callers(name)),
            GroupName::Input(NameField::Define(id, _) | NameField::Refer(id)) => self.write_function_id(*id),
        }
        self.output.put(b"\n");
    }

    /// Writes the ID of a function in the input. The function's name follows if the output doesn't have the definition
    /// of the ID yet: because the input has it in this block, or because it was left out.
    fn write_function_id(&mut self, id: u32) {
        let names = self.block.names;
        if let Some(name) = self.functions.get(&id)
            && self.defined.insert(id)
        {
            self.output.put_definition(id, &names.name_callers(name));
        } else if let Some(name) = names.raw_function(id) {
            // `raw_function` knows the names that contain an address. Only definitions of such names may be missing in
            // the output: the name of a JIT function took their place.
            self.output.put_input_function(id, name);
        } else {
            self.output.put_id(id);
        }
    }
}

/// Writes the lines of a group.
struct GroupBody<'a, 'b, 'o, 'w> {
    writer: &'w mut GroupWriter<'a, 'b, 'o>,
    group: &'o NamedGroup<'a>,
    /// The file of the group's function.
    fl: Option<OutputName<'a>>,
}

impl<'a> GroupBody<'a, '_, '_, '_> {
    /// Writes the text of the group, with the statements that name files, callees and targets of jumps.
    fn write_lines(&mut self) {
        let lines = &self.group.lines;
        let mut start = 0;
        for piece in &lines.pieces {
            self.switch_file(self.output_file(piece.file));
            match piece.target {
                Some(Target::Call(callee)) => self.write_callee(callee),
                Some(Target::Jump(target)) => self.write_jump_target(target),
                None => {}
            }
            self.writer.output.put(&lines.text[start..piece.end]);
            start = piece.end;
        }
    }

    /// The source file to write for lines of the group.
    fn output_file(&self, file: SourceFile<'a>) -> Option<OutputName<'a>> {
        match file {
            SourceFile::OfCode(file) => Some(OutputName::New(file)),
            SourceFile::Stated(file) if self.group.lines.entry.is_none() => Some(OutputName::Input(file)),
            SourceFile::Stated(_) | SourceFile::OfFunction => self.fl,
        }
    }

    /// Writes an `fi=` or `fe=` line if the lines that follow are in another file than those before.
    fn switch_file(&mut self, file: Option<OutputName<'a>>) {
        let Some(name) = file else { return };
        if self.writer.context.file == file {
            return;
        }
        let key: &[u8] = if file == self.fl { b"fe=" } else { b"fi=" };
        self.writer.output.put_file(key, name);
        self.writer.context.file = file;
    }

    /// Writes the lines before a call that name the callee, with its object and file.
    fn write_callee(&mut self, callee: Callee<'a>) {
        let block = self.writer.block;
        let (home, name) = match block.callee_name(callee) {
            NewName::Jit(entry, tail) => {
                // The JIT function's name replaces the definition of this ID, so the next use of the ID has to define
                // it.
                if let NameField::Define(id, _) = callee.function {
                    self.writer.output.drop_definition(id);
                }
                (self.writer.home(Some(entry)), GroupName::Jit(entry, tail))
            }
            _ => {
                let object = callee.object.or(block.context.object).map(OutputName::Input);
                let file = callee.file.or(block.context.fl).map(OutputName::Input);
                (FunctionHome { object, file }, GroupName::Input(callee.function))
            }
        };
        self.write_callee_home(home);
        self.writer.output.put(b"cfn=");
        self.writer.write_function(&name);
    }

    /// Writes the statements for a callee's object and file, if they differ from the caller's.
    fn write_callee_home(&mut self, home: FunctionHome<'a>) {
        let context = self.writer.context;
        if let Some(object) = home.object
            && context.object != home.object
        {
            self.writer.output.put_object(b"cob=", object);
        }
        if let Some(file) = home.file
            && context.file != home.file
        {
            self.writer.output.put_file(b"cfi=", file);
        }
    }

    /// Writes the lines before a jump that name the function of its target. If the input has such lines, they stay.
    /// Otherwise the target was in the same block, but its code may now be in another group, whose function must be
    /// named.
    fn write_jump_target(&mut self, target: JumpTarget<'a>) {
        let entry = match target {
            JumpTarget::Named(function, file) => {
                if let Some(file) = file {
                    self.writer.output.put_file(b"jfi=", OutputName::Input(file));
                }
                self.writer.output.put(b"jfn=");
                self.writer.write_function(&GroupName::Input(function));
                return;
            }
            JumpTarget::Code(entry) => entry,
            JumpTarget::NoAddress => return,
        };
        if self.group.lines.entry == entry {
            return; // it is in this group
        }
        // Name the function of the group that contains the target. If the target is in none of the block's groups,
        // write no `jfn=`: without one, a jump stays within the function that is being written.
        let groups = &self.writer.block.groups;
        let Some(group) = groups.iter().find(|group| group.lines.entry == entry) else { return };
        if let Some(file) = self.writer.home(entry).file {
            self.writer.output.put_file(b"jfi=", file);
        }
        self.writer.output.put(b"jfn=");
        self.writer.write_function(&group.function);
    }

    /// Writes a call from the head, which is this group, to each of the other groups. Each call costs the sum of the
    /// called group, so that the head keeps its inclusive cost. The calls are written at the position of the head's
    /// first line.
    fn write_synthetic_calls(&mut self) {
        let block = self.writer.block;
        let (file, position) = match self.group.lines.first {
            Some((file, position)) => (self.output_file(file), position),
            None => (self.fl, function_start(block)),
        };
        let mut encoder = self.group.lines.encoder.clone();
        for other in &block.groups[1..] {
            // Never `None`: only the head may be empty.
            let Some((lowest, lowest_cost)) = other.lines.lowest else { continue };
            self.switch_file(file);
            let home = self.writer.home(other.lines.entry);
            self.write_callee_home(home);
            self.writer.output.put(b"cfn=");
            self.writer.write_function(&other.function);
            // The first event is usually the number of executed instructions, so the cost of the lowest instruction
            // tells how often the code was entered: at least once, even if the cost is 0 or negative.
            let text = &mut self.writer.output.text;
            text.extend_from_slice(format!("calls={} ", lowest_cost.max(1)).as_bytes());
            encoder.write_target(lowest, block.has_relative, text);
            text.push(b'\n');
            encoder.write_site(position, block.has_relative, text);
            for sum in &other.lines.sums {
                text.extend_from_slice(format!(" {sum}").as_bytes());
            }
            text.push(b'\n');
        }
    }
}

/// The start address of the function that callgrind named, as a position. Synthetic calls are written there if the head
/// has no lines.
fn function_start(block: &NamedBlock<'_, '_>) -> Position {
    let mut position = Position::default();
    let name = block.names.full_name(block.input.function);
    if let Some(column) = block.input.columns.instr
        && let Some((addr, _)) = raw_name(name)
    {
        position.0[column] = addr;
    }
    position
}
