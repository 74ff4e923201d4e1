//! Writes the groups of a block, each as a block of its own.

use super::draft::{ChunkDraft, OutputName, Piece, ReaderContext};
use super::jit_functions::CodeLine;
use super::line_groups::{GroupName, LineGroup, LineGroups};
use super::name_resolver::ResolvedName;
use crate::records::callgrind::grammar::{
    BlockItem, Callee, Columns, CostLines, IdSpace, ItemKind, NameField, NameRef, Position, PositionEncoder,
    first_cost, raw_name,
};
use rustc_hash::FxHashSet;

/// Writes the groups, and returns what readers of the output then inherit. `defined` is scratch memory.
pub(super) fn write_groups<'a>(
    groups: &LineGroups<'a, '_>,
    draft: &mut ChunkDraft<'a>,
    before: ReaderContext<'a>,
    defined: &mut FxHashSet<u32>,
) -> ReaderContext<'a> {
    defined.clear();
    let mut writer = GroupWriter { groups, draft, out: before, defined };
    writer.hoist_definitions();
    for (at, group) in groups.groups.iter().enumerate() {
        writer.group(group, at == 0);
    }
    writer.out
}

/// Object and file of a function.
type FunctionHome<'a> = (Option<OutputName<'a>>, Option<OutputName<'a>>);

impl<'a> LineGroups<'a, '_> {
    /// Object and file of a JIT function; without one, those of the block.
    fn home(&self, code: Option<usize>) -> FunctionHome<'a> {
        let jit = self.names.jit;
        match code {
            Some(entry) => (Some(OutputName::New(jit.object())), Some(OutputName::New(jit.file(entry)))),
            None => (self.context.ob.map(OutputName::Input), self.context.fl.map(OutputName::Input)),
        }
    }
}

struct GroupWriter<'a, 'b, 'd> {
    groups: &'d LineGroups<'a, 'b>,
    draft: &'d mut ChunkDraft<'a>,
    out: ReaderContext<'a>,
    /// Functions defined in this block whose name has already been written.
    defined: &'d mut FxHashSet<u32>,
}

impl<'a> GroupWriter<'a, '_, '_> {
    /// Defines the block's IDs of objects and files before all groups, because lines change their order.
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

    fn group(&mut self, group: &LineGroup<'a, '_>, is_head: bool) {
        let groups = self.groups;
        let (ob, fl) = groups.home(group.code);
        if let Some(ob) = ob.filter(|ob| self.out.ob != Some(*ob)) {
            self.draft.put_object(b"ob=", ob);
            self.out.ob = Some(ob);
        }
        if let Some(fl) = fl.filter(|fl| self.out.fl != Some(*fl) || self.out.file != Some(*fl)) {
            self.draft.put_file(b"fl=", fl);
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
            GroupName::Jit(entry, tail) => self.draft.place(Piece::Jit(*entry, tail[..].into())),
            GroupName::New(name) => self.draft.place(Piece::Function(name[..].into())),
            GroupName::Input(field) => self.input_function(*field),
        }
        self.draft.put(b"\n");
    }

    /// Writes a function of the input, with its name where this block first uses it.
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
            self.draft.put_definition(id, &name);
        } else if let Some(name) = self.groups.names.index.raw_function(id, offset) {
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
    fl: Option<OutputName<'a>>,
    lines: Vec<CodeLine<'a>>,
    code: Option<usize>,
}

impl<'a> GroupBody<'a, '_, '_, '_> {
    fn columns(&self) -> Columns {
        self.writer.groups.context.columns
    }

    /// Source file and position according to the code's own line table, else as in the input.
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
        self.writer.draft.put_file(key, file);
        self.writer.out.file = Some(file);
    }

    fn item(&mut self, item: &BlockItem<'a>) {
        let (Some(position), false) = (item.position, matches!(item.kind, ItemKind::Unknown(_))) else {
            if let ItemKind::Unknown(text) = item.kind {
                self.writer.draft.put_all(&[text, b"\n"]);
            }
            return;
        };
        if let ItemKind::Lines(lines) = &item.kind {
            return self.cost_lines(item, lines);
        }
        let (file, position) = self.place(item, position);
        self.switch_file(file);
        match item.kind {
            ItemKind::Cost(costs) => self.cost(position, costs),
            ItemKind::Call { callee, count, target, costs } => {
                self.callee(callee);
                self.calls(count, target);
                self.encoder.site(position, &mut self.writer.draft.own);
                self.costs(costs);
            }
            ItemKind::Jump { conditional, counts, target, file, function } => {
                self.jump_target(file, function, target);
                self.writer.draft.put_all(&[if conditional { b"jcnd=" } else { b"jump=" }, counts, b" "]);
                self.encoder.target(target, &mut self.writer.draft.own);
                self.writer.draft.put(b"\n");
                self.encoder.site(position, &mut self.writer.draft.own);
                self.writer.draft.put(b"\n");
            }
            ItemKind::Lines(_) | ItemKind::Unknown(_) => {}
        }
    }

    fn cost_lines(&mut self, item: &BlockItem<'a>, lines: &CostLines<'a>) {
        // If the code has a line table, each line may get another source position.
        if self.lines.is_empty() && self.encoder.would_copy(lines.in_full) {
            let (file, position) = self.place(item, lines.first);
            self.switch_file(file);
            self.cost(position, lines.first_costs);
            self.writer.draft.copy(lines.others);
            return self.encoder.move_to(lines.last);
        }
        for (position, costs) in lines.each() {
            let (file, position) = self.place(item, position);
            self.switch_file(file);
            self.cost(position, costs);
        }
    }

    fn cost(&mut self, position: Position, costs: &[u8]) {
        self.encoder.cost(position, &mut self.writer.draft.own);
        self.costs(costs);
    }

    fn costs(&mut self, costs: &[u8]) {
        self.writer.draft.put_all(&[b" ", costs, b"\n"]);
    }

    fn calls(&mut self, count: &[u8], target: Position) {
        self.writer.draft.put_all(&[b"calls=", count, b" "]);
        self.encoder.target(target, &mut self.writer.draft.own);
        self.writer.draft.put(b"\n");
    }

    fn callee(&mut self, callee: Callee<'a>) {
        let groups = self.writer.groups;
        match groups.callee(callee) {
            ResolvedName::Jit(entry, tail) => {
                if let NameField::Define(id, _) = callee.function {
                    self.writer.draft.place(Piece::Dropped(id));
                }
                self.callee_place(groups.home(Some(entry)));
                self.writer.draft.put(b"cfn=");
                self.writer.function(&GroupName::Jit(entry, tail));
            }
            _ => {
                self.callee_place((callee.ob.map(OutputName::Input), callee.file.map(OutputName::Input)));
                self.writer.draft.put(b"cfn=");
                self.writer.function(&GroupName::Input(callee.function));
            }
        }
    }

    /// Writes object and file of a callee where they differ from the caller's.
    fn callee_place(&mut self, (ob, file): FunctionHome<'a>) {
        let out = self.writer.out;
        if let Some(ob) = ob.filter(|ob| out.ob != Some(*ob)) {
            self.writer.draft.put_object(b"cob=", ob);
        }
        if let Some(file) = file.filter(|file| out.file != Some(*file)) {
            self.writer.draft.put_file(b"cfi=", file);
        }
    }

    /// A jump into code that is now another function gets that function's name; other jumps stay as they are.
    fn jump_target(&mut self, file: Option<NameRef<'a>>, function: Option<NameField<'a>>, target: Position) {
        if let Some(function) = function {
            if let Some(file) = file {
                self.writer.draft.put_file(b"jfi=", OutputName::Input(file));
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
        let Some(LineGroup { function, .. }) = other else { return };
        self.writer.draft.put_file(b"jfi=", OutputName::New(groups.names.jit.file(entry)));
        self.writer.draft.put(b"jfn=");
        self.writer.function(function);
    }

    /// Writes a call from the function itself to a group that was split off. Its count is how often the group's lowest
    /// address was executed.
    fn synthetic_call(&mut self, head: &LineGroup<'a, '_>, other: &LineGroup<'a, '_>) {
        let groups = self.writer.groups;
        let Some((lowest, count)) = lowest_line(other, self.columns()) else { return };
        let position = head.items.iter().find_map(|item| item.position.map(|position| self.place(item, position)));
        let (file, position) = position.unwrap_or((self.fl, entry_of(groups, self.columns())));
        self.switch_file(file);
        self.callee_place(groups.home(other.code));
        self.writer.draft.put(b"cfn=");
        self.writer.function(&other.function);
        self.calls(count.max(1).to_string().as_bytes(), lowest);
        self.encoder.site(position, &mut self.writer.draft.own);
        let sums: Vec<String> = other.sums.iter().map(u64::to_string).collect();
        self.costs(sums.join(" ").as_bytes());
    }
}

/// The start of the function itself, for a first group without lines.
fn entry_of(groups: &LineGroups<'_, '_>, columns: Columns) -> Position {
    let mut position = Position::default();
    if let (Some(column), Some((addr, _))) =
        (columns.instr, raw_name(groups.names.full_name(groups.block.function, groups.offset)))
    {
        position.0[column] = addr;
    }
    position
}

/// The lowest position of a group, and how often it was executed.
fn lowest_line(group: &LineGroup<'_, '_>, columns: Columns) -> Option<(Position, u64)> {
    let column = columns.instr.unwrap_or(0);
    let lowest_of = |item: &BlockItem<'_>| match item.kind {
        ItemKind::Lines(lines) => Some(lines.lowest.0),
        _ => item.position,
    };
    let positions = group.items.iter().filter_map(|item| Some((lowest_of(item)?, item)));
    let (position, item) = positions.min_by_key(|(position, _)| position.0[column])?;
    Some(match item.kind {
        ItemKind::Lines(lines) => lines.lowest,
        ItemKind::Cost(costs) => (position, first_cost(costs)),
        _ => (position, 1),
    })
}
