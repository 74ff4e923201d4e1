//! Writes the groups of a block, each as a block of its own.

use super::draft::ChunkDraft;
use super::jit_functions::CodeLine;
use super::line_groups::{GroupName, LineGroup, LineGroups};
use super::name_resolver::ResolvedName;
use super::output_name::{OutputName, ReaderContext, put_statement};
use crate::formats::callgrind::grammar::{
    BlockItem, Callee, Columns, IdSpace, ItemKind, NameField, NameRef, Position, PositionEncoder, first_cost, raw_name,
};
use rustc_hash::FxHashSet;

/// Writes the groups; returns where readers of the output stand afterwards.
pub(super) fn write_groups<'a>(
    groups: &LineGroups<'a, '_>,
    draft: &mut ChunkDraft,
    before: ReaderContext<'a>,
) -> ReaderContext<'a> {
    let mut writer = GroupWriter { groups, draft, out: before, defined: FxHashSet::default() };
    writer.hoist_definitions();
    for (at, group) in groups.groups.iter().enumerate() {
        writer.group(group, at == 0);
    }
    writer.out
}

struct GroupWriter<'a, 'b, 'd> {
    groups: &'d LineGroups<'a, 'b>,
    draft: &'d mut ChunkDraft,
    out: ReaderContext<'a>,
    /// Functions that this block defines and that have been written with their names.
    defined: FxHashSet<u32>,
}

impl<'a> GroupWriter<'a, '_, '_> {
    /// The lines change their order: ids of objects and files are defined in front of them all.
    fn hoist_definitions(&mut self) {
        for &(space, id, name) in &self.groups.block.definitions {
            let old = Some(OutputName::Input(NameRef::Id(id)));
            let key = if space == IdSpace::Object { "ob" } else { "fl" };
            self.draft.put(format!("{key}=({id}) ").as_bytes());
            self.draft.put(name);
            self.draft.put(b"\n");
            if space == IdSpace::Object {
                self.out.ob = old;
            } else {
                (self.out.fl, self.out.file) = (old, old);
            }
        }
        if let (NameField::Define(id, _), GroupName::New(_)) =
            (self.groups.block.function, &self.groups.groups[0].function)
        {
            self.draft.dropped_function(id);
        }
    }

    fn group(&mut self, group: &LineGroup<'a, '_>, is_head: bool) {
        let groups = self.groups;
        let (ob, fl) = match group.code {
            Some(entry) => {
                (Some(OutputName::New(groups.names.jit.object())), Some(OutputName::New(groups.names.jit.file(entry))))
            }
            None => (groups.context.ob.map(OutputName::Input), groups.context.fl.map(OutputName::Input)),
        };
        if let Some(ob) = ob.filter(|ob| self.out.ob != Some(*ob)) {
            put_statement(self.draft, b"ob=", ob, IdSpace::Object);
            self.out.ob = Some(ob);
        }
        if let Some(fl) = fl.filter(|fl| self.out.fl != Some(*fl) || self.out.file != Some(*fl)) {
            put_statement(self.draft, b"fl=", fl, IdSpace::File);
            (self.out.fl, self.out.file) = (Some(fl), Some(fl));
        }
        self.draft.put(b"fn=");
        self.function(&group.function);
        let with_lines = group.code.filter(|_| groups.context.columns.line.is_some());
        let lines = with_lines.map_or_else(Vec::new, |entry| groups.names.jit.lines(entry));
        let encoder = PositionEncoder::new(groups.context.columns, groups.block.compressed);
        let mut body = GroupBody { writer: self, encoder, fl, lines, code: group.code };
        for item in &group.items {
            body.item(item);
        }
        if is_head {
            for other in groups.groups.iter().skip(1) {
                body.synthetic_call(group, other);
            }
        }
        self.draft.put(b"\n");
    }

    fn function(&mut self, function: &GroupName<'a>) {
        match function {
            GroupName::New(name) => self.draft.new_name(IdSpace::Function, name),
            GroupName::Input(field) => self.input_function(*field),
        }
        self.draft.put(b"\n");
    }

    /// Writes a function of the input, defined where this block uses it first.
    fn input_function(&mut self, field: NameField<'a>) {
        let offset = self.groups.offset;
        let (NameField::Define(id, _) | NameField::Refer(id)) = field else {
            if let NameField::Plain(name) = field {
                let name = self.groups.names.callers(name);
                self.draft.put(&name);
            }
            return;
        };
        if let Some(name) = self.groups.block.functions.get(&id).filter(|_| self.defined.insert(id)) {
            let name = self.groups.names.callers(name);
            self.draft.put(format!("({id}) ").as_bytes());
            self.draft.put(&name);
        } else if let Some(name) = self.groups.names.index.raw_function(id, offset) {
            self.draft.input_function(id, name);
        } else {
            self.draft.put(format!("({id})").as_bytes());
        }
    }
}

/// The lines of one group.
struct GroupBody<'a, 'b, 'd, 'w> {
    writer: &'w mut GroupWriter<'a, 'b, 'd>,
    encoder: PositionEncoder,
    fl: Option<OutputName<'a>>,
    lines: Vec<CodeLine<'a>>,
    code: Option<usize>,
}

impl<'a> GroupBody<'a, '_, '_, '_> {
    fn columns(&self) -> Columns {
        self.writer.groups.context.columns
    }

    /// Source file and position as the code's own line table has them, or else as they were.
    fn place(&self, item: &BlockItem<'a>, mut position: Position) -> (Option<OutputName<'a>>, Position) {
        if self.code.is_none() {
            return (item.file.map(OutputName::Input).or(self.fl), position);
        }
        let Columns { instr: Some(instr), line: Some(line), .. } = self.columns() else { return (self.fl, position) };
        let after = self.lines.partition_point(|entry| entry.addr <= position.0[instr]);
        match after.checked_sub(1).and_then(|at| self.lines.get(at)) {
            Some(entry) => {
                position.0[line] = u64::from(entry.line);
                (Some(OutputName::New(entry.file)), position)
            }
            None => (self.fl, position),
        }
    }

    fn switch_file(&mut self, file: Option<OutputName<'a>>) {
        let Some(file) = file.filter(|file| self.writer.out.file != Some(*file)) else { return };
        let key: &[u8] = if Some(file) == self.fl { b"fe=" } else { b"fi=" };
        put_statement(self.writer.draft, key, file, IdSpace::File);
        self.writer.out.file = Some(file);
    }

    fn item(&mut self, item: &BlockItem<'a>) {
        let (Some(position), false) = (item.position, matches!(item.kind, ItemKind::Unknown(_))) else {
            if let ItemKind::Unknown(text) = item.kind {
                self.writer.draft.put(text);
                self.writer.draft.put(b"\n");
            }
            return;
        };
        let (file, position) = self.place(item, position);
        self.switch_file(file);
        match item.kind {
            ItemKind::Cost(costs) => {
                self.encoder.cost(position, &mut self.writer.draft.bytes);
                self.costs(costs);
            }
            ItemKind::Call { callee, count, target, costs } => {
                self.callee(callee);
                self.calls(count, target);
                self.encoder.site(position, &mut self.writer.draft.bytes);
                self.costs(costs);
            }
            ItemKind::Jump { conditional, counts, target, file, function } => {
                self.jump_target(file, function, target);
                self.writer.draft.put(if conditional { b"jcnd=" } else { b"jump=" });
                self.writer.draft.put(counts);
                self.writer.draft.put(b" ");
                self.encoder.target(target, &mut self.writer.draft.bytes);
                self.writer.draft.put(b"\n");
                self.encoder.site(position, &mut self.writer.draft.bytes);
                self.writer.draft.put(b"\n");
            }
            ItemKind::Unknown(_) => {}
        }
    }

    fn costs(&mut self, costs: &[u8]) {
        self.writer.draft.put(b" ");
        self.writer.draft.put(costs);
        self.writer.draft.put(b"\n");
    }

    fn calls(&mut self, count: &[u8], target: Position) {
        self.writer.draft.put(b"calls=");
        self.writer.draft.put(count);
        self.writer.draft.put(b" ");
        self.encoder.target(target, &mut self.writer.draft.bytes);
        self.writer.draft.put(b"\n");
    }

    fn callee(&mut self, callee: Callee<'a>) {
        let groups = self.writer.groups;
        match groups.callee(callee) {
            ResolvedName::Jit(entry, tail) => {
                if let NameField::Define(id, _) = callee.function {
                    self.writer.draft.dropped_function(id);
                }
                let name = [groups.names.jit.name(entry), &tail].concat();
                self.callee_place(
                    Some(OutputName::New(groups.names.jit.object())),
                    Some(OutputName::New(groups.names.jit.file(entry))),
                );
                self.writer.draft.put(b"cfn=");
                self.writer.function(&GroupName::New(name));
            }
            _ => {
                self.callee_place(callee.ob.map(OutputName::Input), callee.file.map(OutputName::Input));
                self.writer.draft.put(b"cfn=");
                self.writer.function(&GroupName::Input(callee.function));
            }
        }
    }

    /// Says what a callee does not share with its caller.
    fn callee_place(&mut self, ob: Option<OutputName<'a>>, file: Option<OutputName<'a>>) {
        let out = self.writer.out;
        if let Some(ob) = ob.filter(|ob| out.ob != Some(*ob)) {
            put_statement(self.writer.draft, b"cob=", ob, IdSpace::Object);
        }
        if let Some(file) = file.filter(|file| out.file != Some(*file)) {
            put_statement(self.writer.draft, b"cfi=", file, IdSpace::File);
        }
    }

    /// A jump into code that has become another function says so; others are as before.
    fn jump_target(&mut self, file: Option<NameRef<'a>>, function: Option<NameField<'a>>, target: Position) {
        if let Some(function) = function {
            if let Some(file) = file {
                put_statement(self.writer.draft, b"jfi=", OutputName::Input(file), IdSpace::File);
            }
            self.writer.draft.put(b"jfn=");
            self.writer.function(&GroupName::Input(function));
            return;
        }
        let groups = self.writer.groups;
        let Some(entry) = self.columns().instr.and_then(|column| groups.names.jit.at(target.0[column])) else {
            return;
        };
        let other = groups.groups.iter().find(|group| group.code == Some(entry) && group.code != self.code);
        let Some(LineGroup { function: GroupName::New(name), .. }) = other else { return };
        put_statement(self.writer.draft, b"jfi=", OutputName::New(groups.names.jit.file(entry)), IdSpace::File);
        self.writer.draft.put(b"jfn=");
        self.writer.draft.new_name(IdSpace::Function, name);
        self.writer.draft.put(b"\n");
    }

    /// The call from the function itself to a group that was taken out of it: counted by how often its lowest
    /// address was reached.
    fn synthetic_call(&mut self, head: &LineGroup<'a, '_>, other: &LineGroup<'a, '_>) {
        let groups = self.writer.groups;
        let Some((lowest, count)) = lowest_line(other, self.columns()) else { return };
        let position = head.items.iter().find_map(|item| item.position.map(|position| self.place(item, position)));
        let (file, position) = position.unwrap_or((self.fl, entry_of(groups, self.columns())));
        self.switch_file(file);
        match other.code {
            Some(entry) => self.callee_place(
                Some(OutputName::New(groups.names.jit.object())),
                Some(OutputName::New(groups.names.jit.file(entry))),
            ),
            None => {
                self.callee_place(groups.context.ob.map(OutputName::Input), groups.context.fl.map(OutputName::Input))
            }
        }
        self.writer.draft.put(b"cfn=");
        self.writer.function(&other.function);
        self.calls(count.max(1).to_string().as_bytes(), lowest);
        self.encoder.site(position, &mut self.writer.draft.bytes);
        let sums: Vec<String> = other.sums.iter().map(u64::to_string).collect();
        self.costs(sums.join(" ").as_bytes());
    }
}

/// Where the function itself begins, for a head group without lines.
fn entry_of(groups: &LineGroups<'_, '_>, columns: Columns) -> Position {
    let mut position = Position::default();
    if let (Some(column), Some((addr, _))) =
        (columns.instr, raw_name(groups.names.full_name(groups.block.function, groups.offset)))
    {
        position.0[column] = addr;
    }
    position
}

/// The lowest position of a group and how often it was reached.
fn lowest_line(group: &LineGroup<'_, '_>, columns: Columns) -> Option<(Position, u64)> {
    let column = columns.instr.unwrap_or(0);
    let positions = group.items.iter().filter_map(|item| item.position.map(|position| (position, item)));
    let (position, item) = positions.min_by_key(|(position, _)| position.0[column])?;
    let count = if let ItemKind::Cost(costs) = item.kind { first_cost(costs) } else { 1 };
    Some((position, count))
}
