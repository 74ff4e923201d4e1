//! Writes the groups of a block ([`LineGroups`]), each as a block of its own.

use super::draft::{ChunkDraft, OutputName, Piece, ReaderContext};
use super::jit_functions::CodeLine;
use super::line_groups::{GroupName, LineGroup, LineGroups};
use super::name_resolver::ResolvedName;
use crate::records::callgrind::grammar::{
    BlockItem, Callee, Columns, CostLines, IdSpace, ItemKind, NameField, NameRef, Position, PositionEncoder,
    first_cost, raw_name,
};
use rustc_hash::FxHashSet;

/// Writes all groups of a block. `before` is the object and files in effect for readers of the output; returns those in
/// effect afterwards. `defined` is scratch memory.
pub(super) fn write_groups<'a>(
    groups: &LineGroups<'a, '_>,
    draft: &mut ChunkDraft<'a>,
    before: ReaderContext<'a>,
    defined: &mut FxHashSet<u32>,
) -> ReaderContext<'a> {
    defined.clear();
    let mut writer = GroupWriter { groups, draft, out: before, defined };
    writer.hoist_definitions();
    for (index, group) in groups.groups.iter().enumerate() {
        writer.write_group(group, index == 0);
    }
    writer.out
}

/// Object and file of a function.
struct FunctionHome<'a> {
    ob: Option<OutputName<'a>>,
    file: Option<OutputName<'a>>,
}

impl<'a> LineGroups<'a, '_> {
    /// Object and file of the JIT function `code`; those of the block if it is `None`.
    fn home(&self, code: Option<usize>) -> FunctionHome<'a> {
        let jit = self.names.jit;
        match code {
            Some(entry) => {
                FunctionHome { ob: Some(OutputName::New(jit.object())), file: Some(OutputName::New(jit.file(entry))) }
            }
            None => FunctionHome {
                ob: self.context.ob.map(OutputName::Input),
                file: self.context.fl.map(OutputName::Input),
            },
        }
    }
}

struct GroupWriter<'a, 'b, 'd> {
    groups: &'d LineGroups<'a, 'b>,
    draft: &'d mut ChunkDraft<'a>,
    out: ReaderContext<'a>,
    /// IDs of functions that the input's block defines and whose definitions are already written.
    defined: &'d mut FxHashSet<u32>,
}

impl<'a> GroupWriter<'a, '_, '_> {
    /// Writes the block's definitions of objects and files before the first group, because grouping changes the order
    /// of the lines that contain them.
    fn hoist_definitions(&mut self) {
        for &(space, id, name) in &self.groups.block.definitions {
            let old = Some(OutputName::Input(NameRef::Id(id)));
            let key: &[u8] = if space == IdSpace::Object { b"ob=" } else { b"fl=" };
            self.draft.put(key);
            self.draft.put_definition(id, name);
            self.draft.put(b"\n");
            if space == IdSpace::Object {
                self.out.ob = old;
            } else {
                (self.out.fl, self.out.file) = (old, old);
            }
        }
        if let (NameField::Define(id, _), GroupName::New(_) | GroupName::Jit(..)) =
            (self.groups.block.function, &self.groups.groups[0].function)
        {
            self.draft.place(Piece::Dropped(id));
        }
    }

    /// Writes a group. `is_head` is true for the first group, which belongs to the function that callgrind named.
    fn write_group(&mut self, group: &LineGroup<'a, '_>, is_head: bool) {
        let groups = self.groups;
        let FunctionHome { ob, file: fl } = groups.home(group.code);
        if let Some(new_ob) = ob
            && self.out.ob != ob
        {
            self.draft.put_object(b"ob=", new_ob);
            self.out.ob = ob;
        }
        if let Some(new_fl) = fl
            && (self.out.fl != fl || self.out.file != fl)
        {
            self.draft.put_file(b"fl=", new_fl);
            (self.out.fl, self.out.file) = (fl, fl);
        }
        self.draft.put(b"fn=");
        self.write_function(&group.function);
        let mut lines = Vec::new();
        if let Some(entry) = group.code
            && groups.context.columns.line.is_some()
        {
            lines = groups.names.jit.lines(entry);
        }
        let encoder = PositionEncoder::new(groups.context.columns, groups.block.compressed);
        let mut body = GroupBody { writer: self, encoder, fl, lines, code: group.code };
        for item in &group.items {
            body.write_item(item);
        }
        if is_head {
            for other in groups.groups.iter().skip(1) {
                body.write_synthetic_call(group, other);
            }
        }
        self.draft.put(b"\n");
    }

    fn write_function(&mut self, function: &GroupName<'a>) {
        match function {
            GroupName::Jit(entry, tail) => self.draft.place(Piece::Jit(*entry, tail[..].into())),
            GroupName::New(name) => self.draft.place(Piece::Function(name[..].into())),
            GroupName::Input(NameField::Plain(name)) => {
                let name = self.groups.names.name_callers(name);
                self.draft.put(&name);
            }
            GroupName::Input(NameField::Define(id, _) | NameField::Refer(id)) => self.write_function_id(*id),
        }
        self.draft.put(b"\n");
    }

    /// Writes the ID of a function in the input. If this block defines the ID, its first use is written with the name.
    fn write_function_id(&mut self, id: u32) {
        let groups = self.groups;
        if let Some(name) = groups.block.functions.get(&id)
            && self.defined.insert(id)
        {
            let name = groups.names.name_callers(name);
            self.draft.put_definition(id, &name);
        } else if let Some(name) = groups.names.index.raw_function(id, groups.offset) {
            self.draft.place(Piece::InputFunction(id, name));
        } else {
            self.draft.put_id(id);
        }
    }
}

/// Writes the lines of a group.
struct GroupBody<'a, 'b, 'd, 'w> {
    writer: &'w mut GroupWriter<'a, 'b, 'd>,
    encoder: PositionEncoder,
    /// The file of the group's function.
    fl: Option<OutputName<'a>>,
    /// The code's own line table; empty if it has none.
    lines: Vec<CodeLine<'a>>,
    code: Option<usize>,
}

impl<'a> GroupBody<'a, '_, '_, '_> {
    fn columns(&self) -> Columns {
        self.writer.groups.context.columns
    }

    /// The source file and position of an item, according to the code's own line table. Without one, they stay as in
    /// the input.
    fn source_position(&self, item: &BlockItem<'a>, mut position: Position) -> (Option<OutputName<'a>>, Position) {
        if self.code.is_none() {
            return (item.file.map(OutputName::Input).or(self.fl), position);
        }
        let Columns { instr: Some(instr), line: Some(line), .. } = self.columns() else { return (self.fl, position) };
        let after = self.lines.partition_point(|entry| entry.addr <= position.0[instr]);
        let Some(entry) = self.lines[..after].last() else { return (self.fl, position) };
        position.0[line] = u64::from(entry.line);
        (Some(OutputName::New(entry.file)), position)
    }

    fn switch_file(&mut self, file: Option<OutputName<'a>>) {
        let Some(new_file) = file else { return };
        if self.writer.out.file == file {
            return;
        }
        let key: &[u8] = if file == self.fl { b"fe=" } else { b"fi=" };
        self.writer.draft.put_file(key, new_file);
        self.writer.out.file = file;
    }

    fn write_item(&mut self, item: &BlockItem<'a>) {
        match &item.kind {
            ItemKind::Unknown(text) => return self.writer.draft.put_all(&[text, b"\n"]),
            ItemKind::Lines(lines) => return self.write_cost_lines(item, lines),
            _ => {}
        }
        let Some(position) = item.position else { return };
        let (file, position) = self.source_position(item, position);
        self.switch_file(file);
        match item.kind {
            ItemKind::Cost(costs) => self.write_cost(position, costs),
            ItemKind::Call { callee, count, target, costs } => {
                self.write_callee(callee);
                self.write_calls(count, target);
                self.encoder.site(position, &mut self.writer.draft.own);
                self.write_costs(costs);
            }
            ItemKind::Jump { conditional, counts, target, file, function } => {
                self.write_jump_target(file, function, target);
                self.writer.draft.put_all(&[if conditional { b"jcnd=" } else { b"jump=" }, counts, b" "]);
                self.encoder.target(target, &mut self.writer.draft.own);
                self.writer.draft.put(b"\n");
                self.encoder.site(position, &mut self.writer.draft.own);
                self.writer.draft.put(b"\n");
            }
            ItemKind::Lines(_) | ItemKind::Unknown(_) => {}
        }
    }

    fn write_cost_lines(&mut self, item: &BlockItem<'a>, lines: &CostLines<'a>) {
        // If the code has a line table, each line may get another source position.
        if self.lines.is_empty() && self.encoder.would_copy(lines.in_full) {
            let (file, position) = self.source_position(item, lines.first);
            self.switch_file(file);
            self.write_cost(position, lines.first_costs);
            self.writer.draft.copy(lines.others);
            return self.encoder.move_to(lines.last);
        }
        for (position, costs) in lines.each() {
            let (file, position) = self.source_position(item, position);
            self.switch_file(file);
            self.write_cost(position, costs);
        }
    }

    fn write_cost(&mut self, position: Position, costs: &[u8]) {
        self.encoder.cost(position, &mut self.writer.draft.own);
        self.write_costs(costs);
    }

    fn write_costs(&mut self, costs: &[u8]) {
        self.writer.draft.put_all(&[b" ", costs, b"\n"]);
    }

    fn write_calls(&mut self, count: &[u8], target: Position) {
        self.writer.draft.put_all(&[b"calls=", count, b" "]);
        self.encoder.target(target, &mut self.writer.draft.own);
        self.writer.draft.put(b"\n");
    }

    fn write_callee(&mut self, callee: Callee<'a>) {
        let groups = self.writer.groups;
        let (home, name) = match groups.callee(callee) {
            ResolvedName::Jit(entry, tail) => {
                if let NameField::Define(id, _) = callee.function {
                    self.writer.draft.place(Piece::Dropped(id));
                }
                (groups.home(Some(entry)), GroupName::Jit(entry, tail))
            }
            _ => {
                let (ob, file) = (callee.ob.map(OutputName::Input), callee.file.map(OutputName::Input));
                (FunctionHome { ob, file }, GroupName::Input(callee.function))
            }
        };
        self.write_callee_home(home);
        self.writer.draft.put(b"cfn=");
        self.writer.write_function(&name);
    }

    /// Writes object and file of a callee where they differ from the caller's.
    fn write_callee_home(&mut self, home: FunctionHome<'a>) {
        let out = self.writer.out;
        if let Some(ob) = home.ob
            && out.ob != home.ob
        {
            self.writer.draft.put_object(b"cob=", ob);
        }
        if let Some(file) = home.file
            && out.file != home.file
        {
            self.writer.draft.put_file(b"cfi=", file);
        }
    }

    /// A jump into code that is now another function gets that function's name; other jumps stay as they are.
    fn write_jump_target(&mut self, file: Option<NameRef<'a>>, function: Option<NameField<'a>>, target: Position) {
        if let Some(function) = function {
            if let Some(file) = file {
                self.writer.draft.put_file(b"jfi=", OutputName::Input(file));
            }
            self.writer.draft.put(b"jfn=");
            self.writer.write_function(&GroupName::Input(function));
            return;
        }
        let groups = self.writer.groups;
        let Some(column) = self.columns().instr else { return };
        let Some(entry) = groups.names.jit.find(target.0[column]) else { return };
        if self.code == Some(entry) {
            return;
        }
        let Some(group) = groups.groups.iter().find(|group| group.code == Some(entry)) else { return };
        self.writer.draft.put_file(b"jfi=", OutputName::New(groups.names.jit.file(entry)));
        self.writer.draft.put(b"jfn=");
        self.writer.write_function(&group.function);
    }

    /// Writes a call from the function that callgrind named to a group that was split off. Its count is how often the
    /// group's lowest address was executed.
    fn write_synthetic_call(&mut self, head: &LineGroup<'a, '_>, other: &LineGroup<'a, '_>) {
        let groups = self.writer.groups;
        let Some((lowest, count)) = lowest_line(other, self.columns()) else { return };
        let first = head.items.iter().find_map(|item| Some((item, item.position?)));
        let (file, position) = match first {
            Some((item, position)) => self.source_position(item, position),
            None => (self.fl, function_start(groups, self.columns())),
        };
        self.switch_file(file);
        self.write_callee_home(groups.home(other.code));
        self.writer.draft.put(b"cfn=");
        self.writer.write_function(&other.function);
        self.write_calls(count.max(1).to_string().as_bytes(), lowest);
        self.encoder.site(position, &mut self.writer.draft.own);
        let sums: Vec<String> = other.sums.iter().map(u64::to_string).collect();
        self.write_costs(sums.join(" ").as_bytes());
    }
}

/// The start address of the function that callgrind named. Its calls are written there if its own group has no lines.
fn function_start(groups: &LineGroups<'_, '_>, columns: Columns) -> Position {
    let mut position = Position::default();
    let name = groups.names.full_name(groups.block.function, groups.offset);
    if let Some(column) = columns.instr
        && let Some((addr, _)) = raw_name(name)
    {
        position.0[column] = addr;
    }
    position
}

/// The lowest position of a group, and how often it was executed; `None` if no item has a position.
fn lowest_line(group: &LineGroup<'_, '_>, columns: Columns) -> Option<(Position, u64)> {
    let column = columns.instr.unwrap_or(0);
    let lines = group.items.iter().filter_map(|item| match item.kind {
        ItemKind::Lines(lines) => Some(lines.lowest),
        ItemKind::Cost(costs) => Some((item.position?, first_cost(costs))),
        _ => Some((item.position?, 1)),
    });
    lines.min_by_key(|(position, _)| position.0[column])
}
