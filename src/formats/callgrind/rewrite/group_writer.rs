//! Writes a block that was split by JIT function ([`BlockGroups`]): each group of its lines becomes a block of its own.

use super::block::{Call, Item, ItemKind, Jump};
use super::groups::{BlockGroups, Group, GroupName};
use super::input_names::NewName;
use super::jit_functions::CodeLine;
use super::output::{OutputContext, OutputName, RewrittenText};
use crate::formats::callgrind::grammar::{
    Columns, IdSpace, NameField, NameRef, Position, PositionEncoder, first_cost, raw_name,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Writes all groups of a block. `before` has the object and files that are in effect at the end of the output so far;
/// returns those that are in effect after the block.
pub(super) fn write_groups<'a>(
    groups: &BlockGroups<'a, '_>,
    before: OutputContext<'a>,
    output: &mut RewrittenText,
) -> OutputContext<'a> {
    let mut functions = FxHashMap::default();
    for (space, id, name) in groups.block.definitions() {
        if space == IdSpace::Function {
            functions.insert(id, name);
        }
    }
    let mut writer = GroupWriter { groups, output, context: before, functions, defined: FxHashSet::default() };
    writer.hoist_definitions();
    for index in 0..groups.groups.len() {
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
    groups: &'o BlockGroups<'a, 'b>,
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
        for (space, id, name) in self.groups.block.definitions() {
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
        if let NameField::Define(id, _) = self.groups.block.function
            && let GroupName::New(_) | GroupName::Jit(..) = self.groups.groups[0].function
        {
            self.output.drop_definition(id);
        }
    }

    /// Object and file of the JIT function with the number `entry`. If there is no such function, object and file of
    /// the block.
    fn home(&self, entry: Option<usize>) -> FunctionHome<'a> {
        let jit = self.groups.names.jit;
        let context = self.groups.context;
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
        let groups = self.groups;
        let group = &groups.groups[index];
        let FunctionHome { object, file: fl } = self.home(group.entry);
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
        let block = self.groups.block;
        let mut lines = Vec::new();
        if let Some(entry) = group.entry
            && block.columns.line.is_some()
        {
            lines = self.groups.names.jit.lines(entry);
        }
        // The encoder writes relative positions only if the block has some in the input.
        let encoder = PositionEncoder::new(block.columns, block.has_relative);
        let mut body = GroupBody { writer: self, encoder, fl, lines, entry: group.entry };
        for item in &group.items {
            body.write_item(item);
        }
        if index == 0 {
            body.write_synthetic_calls(group);
        }
        self.output.put(b"\n");
    }

    /// Writes the name of a function, without the `fn=` or `cfn=` before it.
    fn write_function(&mut self, function: &GroupName<'a>) {
        let names = self.groups.names;
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
        let names = self.groups.names;
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
    encoder: PositionEncoder,
    /// The file of the group's function.
    fl: Option<OutputName<'a>>,
    /// The line table of the JIT function. Empty if it has none, or if positions in the file have no source line.
    lines: Vec<CodeLine<'a>>,
    /// Number of the group's JIT function (see `JitFunctions`); `None` if the group's code isn't in any.
    entry: Option<usize>,
}

impl<'a> GroupBody<'a, '_, '_, '_> {
    fn columns(&self) -> Columns {
        self.writer.groups.block.columns
    }

    /// The source file and position to write for an item. In a JIT function, they are from the function's line table;
    /// if that has no line for the address, the file is the function's own, and the position stays. In code that isn't
    /// in any JIT function, both stay as in the input.
    fn source_position(&self, item: &Item<'a>, mut position: Position) -> (Option<OutputName<'a>>, Position) {
        if self.entry.is_none() {
            let file = item.file.or(self.writer.groups.context.fl);
            return (file.map(OutputName::Input).or(self.fl), position);
        }
        // Without addresses nothing can be looked up, and without a column for lines there is no place for the result.
        let Columns { instr: Some(instr), line: Some(line), .. } = self.columns() else { return (self.fl, position) };
        let after = self.lines.partition_point(|code_line| code_line.addr <= position.0[instr]);
        let Some(code_line) = self.lines[..after].last() else { return (self.fl, position) };
        position.0[line] = u64::from(code_line.line);
        (Some(OutputName::New(code_line.file)), position)
    }

    /// Writes an `fi=` or `fe=` line if the items that follow are in another file than those before.
    fn switch_file(&mut self, file: Option<OutputName<'a>>) {
        let Some(name) = file else { return };
        if self.writer.context.file == file {
            return;
        }
        let key: &[u8] = if file == self.fl { b"fe=" } else { b"fi=" };
        self.writer.output.put_file(key, name);
        self.writer.context.file = file;
    }

    /// Writes an item, preceded by a line that names its source file if that file changes. A line that wasn't
    /// understood is copied unchanged; only such items have no position.
    fn write_item(&mut self, item: &Item<'a>) {
        let Some(position) = item.position else {
            if let ItemKind::Unknown(text) = item.kind {
                self.writer.output.put_all(&[text, b"\n"]);
            }
            return;
        };
        let (file, position) = self.source_position(item, position);
        self.switch_file(file);
        match &item.kind {
            ItemKind::SelfCost(costs) => {
                self.encoder.write_cost(position, &mut self.writer.output.text);
                self.write_costs(costs);
            }
            ItemKind::Call(call) => {
                self.write_callee(item, call);
                self.write_calls(call.count, call.target);
                self.encoder.write_site(position, &mut self.writer.output.text);
                self.write_costs(call.costs);
            }
            ItemKind::Jump(jump) => self.write_jump(jump, position),
            ItemKind::Unknown(_) => {}
        }
    }

    fn write_costs(&mut self, costs: &[u8]) {
        self.writer.output.put_all(&[b" ", costs, b"\n"]);
    }

    fn write_calls(&mut self, count: &[u8], target: Position) {
        self.writer.output.put_all(&[b"calls=", count, b" "]);
        self.encoder.write_target(target, &mut self.writer.output.text);
        self.writer.output.put(b"\n");
    }

    /// Writes the lines before a call that name the callee, with its object and file.
    fn write_callee(&mut self, item: &Item<'a>, call: &Call<'a>) {
        let groups = self.writer.groups;
        let callee = call.callee;
        let (home, name) = match groups.callee_name(callee) {
            NewName::Jit(entry, tail) => {
                // The JIT function's name replaces the definition of this ID, so the next use of the ID has to define
                // it.
                if let NameField::Define(id, _) = callee.function {
                    self.writer.output.drop_definition(id);
                }
                (self.writer.home(Some(entry)), GroupName::Jit(entry, tail))
            }
            _ => {
                let object = callee.object.or(groups.context.object).map(OutputName::Input);
                let file = callee.file.or(item.file).or(groups.context.fl).map(OutputName::Input);
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

    /// Writes a jump, with the position of its target and its own.
    fn write_jump(&mut self, jump: &Jump<'a>, position: Position) {
        self.write_jump_target(jump);
        let key: &[u8] = if jump.conditional { b"jcnd=" } else { b"jump=" };
        self.writer.output.put_all(&[key, jump.counts, b" "]);
        self.encoder.write_target(jump.target, &mut self.writer.output.text);
        self.writer.output.put(b"\n");
        self.encoder.write_site(position, &mut self.writer.output.text);
        self.writer.output.put(b"\n");
    }

    /// Writes the lines before a jump that name the function of its target. If the input has such lines, they stay.
    /// Otherwise the target was in the same block, but its code may now be in another group, whose function must be
    /// named.
    fn write_jump_target(&mut self, jump: &Jump<'a>) {
        if let Some(function) = jump.function {
            if let Some(file) = jump.file {
                self.writer.output.put_file(b"jfi=", OutputName::Input(file));
            }
            self.writer.output.put(b"jfn=");
            self.writer.write_function(&GroupName::Input(function));
            return;
        }
        let groups = self.writer.groups;
        let Some(column) = self.columns().instr else { return };
        // `None` if the target is in code that isn't in any JIT function: such code is a group, too.
        let entry = groups.names.jit.find(jump.target.0[column]);
        if self.entry == entry {
            return; // it is in this group
        }
        // Nothing is written if no group of this block contains the target. Without a `jfn=`, the target is in the
        // function that is being written.
        let Some(group) = groups.groups.iter().find(|group| group.entry == entry) else { return };
        if let Some(file) = self.writer.home(entry).file {
            self.writer.output.put_file(b"jfi=", file);
        }
        self.writer.output.put(b"jfn=");
        self.writer.write_function(&group.function);
    }

    /// Writes a call from the head to each of the other groups. Each call costs the sum of the called group, so that
    /// the head keeps its inclusive cost. The calls are written at the position of the head's first line.
    fn write_synthetic_calls(&mut self, head: &Group<'a, '_>) {
        let groups = self.writer.groups;
        let first = head.items.iter().find_map(|item| Some((item, item.position?)));
        let (file, position) = match first {
            Some((item, position)) => self.source_position(item, position),
            None => (self.fl, function_start(groups)),
        };
        for other in &groups.groups[1..] {
            // Never `None`: all lines without a position are in the head, so each line of this group has one.
            let Some((lowest, lowest_cost)) = lowest_line(other, self.columns()) else { continue };
            self.switch_file(file);
            let home = self.writer.home(other.entry);
            self.write_callee_home(home);
            self.writer.output.put(b"cfn=");
            self.writer.write_function(&other.function);
            // The first event is usually the number of executed instructions, so the cost of the lowest instruction
            // tells how often the code was entered: at least once, even if the cost is 0 or negative.
            let count = lowest_cost.max(1);
            self.write_calls(count.to_string().as_bytes(), lowest);
            self.encoder.write_site(position, &mut self.writer.output.text);
            let sums: Vec<String> = other.sums.iter().map(i64::to_string).collect();
            self.write_costs(sums.join(" ").as_bytes());
        }
    }
}

/// The start address of the function that callgrind named, as a position. Synthetic calls are written there if the head
/// has no lines.
fn function_start(groups: &BlockGroups<'_, '_>) -> Position {
    let mut position = Position::default();
    let name = groups.names.full_name(groups.block.function);
    if let Some(column) = groups.block.columns.instr
        && let Some((addr, _)) = raw_name(name)
    {
        position.0[column] = addr;
    }
    position
}

/// The lowest position of a group, and its self cost in the first event, or 1 if the item there is a call or a jump.
/// `None` if no item has a position.
fn lowest_line(group: &Group<'_, '_>, columns: Columns) -> Option<(Position, i64)> {
    let column = columns.instr.unwrap_or(0);
    let lines = group.items.iter().filter_map(|item| match item.kind {
        ItemKind::SelfCost(costs) => Some((item.position?, first_cost(costs))),
        _ => Some((item.position?, 1)),
    });
    lines.min_by_key(|(position, _)| position.0[column])
}
