//! Takes a block of unknown memory apart by the addresses of its lines.
//!
//! callgrind starts a function only at calls, so code that was reached by a jump is booked on whoever jumped there:
//! one of its functions may hold several of the compiler's. The lines of a block are grouped by the code that covers
//! their address; each group becomes a block of its own. The function that was called keeps its inclusive cost by one
//! made-up call to each other group.

use super::CodeLine;
use super::block::{Block, Callee, Item, Kind, first_cost};
use super::index::{Ref, State};
use super::line::{NameField, Space, raw_name};
use super::piece::{Done, Draft};
use super::positions::{Columns, Encoder, Position};
use super::rewrite::{Displaced, Name, Named, Names, statement};
use crate::error::Error;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The groups of one block.
pub(super) struct Groups<'a, 'b> {
    block: &'b Block<'a>,
    names: Names<'a>,
    state: State<'a>,
    /// As of which ids are looked up: the end of the block, which may define them itself.
    offset: u64,
    /// The one of the function itself first.
    groups: Vec<Group<'a, 'b>>,
}

struct Group<'a, 'b> {
    /// The code that covers it; `None` if none does.
    code: Option<usize>,
    function: Function<'a>,
    items: Vec<&'b Item<'a>>,
    /// Sums of self and inclusive costs; only needed for groups other than the first.
    sums: Vec<u64>,
}

/// The name that a group gets.
enum Function<'a> {
    Old(NameField<'a>),
    New(Vec<u8>),
}

impl<'a, 'b> Groups<'a, 'b> {
    /// `range` is that of the block in the file. `None` if there is nothing to name in the block.
    pub(super) fn of(
        block: &'b Block<'a>,
        names: Names<'a>,
        state: State<'a>,
        range: Range<u64>,
        done: &mut Done,
    ) -> Option<Self> {
        let offset = range.end;
        let head = names.named(block.function, true, offset);
        let (head_code, tail) = match &head {
            Named::Graft(entry, tail) => (Some(*entry), tail.clone()),
            _ => (None, names.tail(tail_of(block.function, names, offset))),
        };
        let mut groups = Self { block, names, state, offset, groups: Vec::new() };
        groups.push_group(head_code, &tail, true);
        let mut places = FxHashMap::from_iter([(head_code, 0)]);
        for item in &block.items {
            let code = groups.code_of(item, head_code);
            let place = *places.entry(code).or_insert_with(|| {
                groups.push_group(code, &tail, false);
                groups.groups.len() - 1
            });
            let group = &mut groups.groups[place];
            group.items.push(item);
            if item.add_costs(&mut group.sums).is_none() {
                done.skipped.add(Error::new("a cost is not a number, or the sum too large").at(range.start));
                return None;
            }
        }
        let anything =
            groups.groups.iter().any(|group| group.code.is_some()) || groups.calls_code() || head != Named::Same;
        groups.count(done, anything);
        anything.then_some(groups)
    }

    /// Unknown lines, and all lines where there are no addresses, belong to the function itself.
    fn code_of(&self, item: &Item<'_>, head: Option<usize>) -> Option<usize> {
        match (item.position, self.state.columns.instr) {
            (Some(position), Some(column)) => self.names.grafts.at(position.0[column]),
            _ => head,
        }
    }

    fn push_group(&mut self, code: Option<usize>, tail: &[u8], is_head: bool) {
        let function = match code {
            Some(entry) => Function::New([self.names.grafts.name(entry), tail].concat()),
            None if is_head => match self.names.named(self.block.function, true, self.offset) {
                Named::Edited(None, name) => Function::New(name),
                _ => Function::Old(self.block.function),
            },
            None => Function::New([b"[not in map] ", full_name(self.block.function, self.names, self.offset)].concat()),
        };
        self.groups.push(Group { code, function, items: Vec::new(), sums: Vec::new() });
    }

    fn calls_code(&self) -> bool {
        self.block.items.iter().any(|item| match item.kind {
            Kind::Call { callee, .. } => self.callee(callee) != Named::Same,
            _ => false,
        })
    }

    fn callee(&self, callee: Callee<'a>) -> Named<'a> {
        self.names.named(callee.function, self.names.index.is_unknown_object(callee.ob, self.offset), self.offset)
    }

    fn count(&self, done: &mut Done, rewritten: bool) {
        for group in &self.groups {
            let costs = group
                .items
                .iter()
                .filter_map(|item| if let Kind::Cost(costs) = item.kind { Some(first_cost(costs)) } else { None });
            let cost = costs.fold(0, u64::saturating_add);
            match group.code {
                Some(entry) => {
                    done.named_cost = done.named_cost.saturating_add(cost);
                    done.functions.insert(entry);
                }
                None => done.unnamed_cost = done.unnamed_cost.saturating_add(cost),
            }
        }
        if rewritten && self.groups.iter().any(|group| group.code.is_some()) {
            done.blocks += 1;
            done.split += u64::from(self.groups.len() > 1);
            done.synthetic_calls += self.groups.len() as u64 - 1;
        }
    }

    /// Writes the groups; what readers have in mind afterwards.
    pub(super) fn write(&self, draft: &mut Draft, before: Displaced<'a>) -> Displaced<'a> {
        let mut writer = Writer { groups: self, draft, out: before, defined: FxHashSet::default() };
        writer.hoist_definitions();
        for group in &self.groups {
            writer.group(group, std::ptr::eq(group, &self.groups[0]));
        }
        writer.out
    }
}

/// What follows the head of a raw name.
fn tail_of<'a>(function: NameField<'a>, names: Names<'a>, offset: u64) -> &'a [u8] {
    let name = full_name(function, names, offset);
    match raw_name(name) {
        Some((_, tail)) => tail,
        None => name.iter().position(|&byte| byte == b'\'').map_or(&[], |at| &name[at..]),
    }
}

fn full_name<'a>(function: NameField<'a>, names: Names<'a>, offset: u64) -> &'a [u8] {
    match function {
        NameField::Plain(name) | NameField::Define(_, name) => name,
        NameField::Refer(id) => names.index.raw_function(id, offset).unwrap_or(b"(unnamed)"),
    }
}

struct Writer<'a, 'b, 'd> {
    groups: &'d Groups<'a, 'b>,
    draft: &'d mut Draft,
    out: Displaced<'a>,
    /// Functions that this block defines and that have been written with their names.
    defined: FxHashSet<u32>,
}

impl<'a> Writer<'a, '_, '_> {
    /// The lines change their order: ids of objects and files are defined in front of them all.
    fn hoist_definitions(&mut self) {
        for &(space, id, name) in &self.groups.block.definitions {
            let old = Some(Name::Old(Ref::Id(id)));
            let key = if space == Space::Object { "ob" } else { "fl" };
            self.draft.put(format!("{key}=({id}) ").as_bytes());
            self.draft.put(name);
            self.draft.put(b"\n");
            if space == Space::Object {
                self.out.ob = old;
            } else {
                (self.out.fl, self.out.file) = (old, old);
            }
        }
        if let (NameField::Define(id, _), Function::New(_)) =
            (self.groups.block.function, &self.groups.groups[0].function)
        {
            self.draft.dropped_function(id);
        }
    }

    fn group(&mut self, group: &Group<'a, '_>, is_head: bool) {
        let groups = self.groups;
        let (ob, fl) = match group.code {
            Some(entry) => {
                (Some(Name::New(groups.names.grafts.object())), Some(Name::New(groups.names.grafts.file(entry))))
            }
            None => (groups.state.ob.map(Name::Old), groups.state.fl.map(Name::Old)),
        };
        if let Some(ob) = ob.filter(|ob| self.out.ob != Some(*ob)) {
            statement(self.draft, b"ob=", ob, Space::Object);
            self.out.ob = Some(ob);
        }
        if let Some(fl) = fl.filter(|fl| self.out.fl != Some(*fl) || self.out.file != Some(*fl)) {
            statement(self.draft, b"fl=", fl, Space::File);
            (self.out.fl, self.out.file) = (Some(fl), Some(fl));
        }
        self.draft.put(b"fn=");
        self.function(&group.function);
        let with_lines = group.code.filter(|_| groups.state.columns.line.is_some());
        let lines = with_lines.map_or_else(Vec::new, |entry| groups.names.grafts.lines(entry));
        let encoder = Encoder::new(groups.state.columns, groups.block.compressed);
        let mut body = Body { writer: self, encoder, fl, lines, code: group.code };
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

    fn function(&mut self, function: &Function<'a>) {
        match function {
            Function::New(name) => self.draft.new_name(Space::Function, name),
            Function::Old(field) => self.old_function(*field),
        }
        self.draft.put(b"\n");
    }

    /// A function of the input, defined where this block uses it first.
    fn old_function(&mut self, field: NameField<'a>) {
        let offset = self.groups.offset;
        let (NameField::Define(id, _) | NameField::Refer(id)) = field else {
            if let NameField::Plain(name) = field {
                let name = self.groups.names.tail(name);
                self.draft.put(&name);
            }
            return;
        };
        if let Some(name) = self.groups.block.functions.get(&id).filter(|_| self.defined.insert(id)) {
            let name = self.groups.names.tail(name);
            self.draft.put(format!("({id}) ").as_bytes());
            self.draft.put(&name);
        } else if let Some(name) = self.groups.names.index.raw_function(id, offset) {
            self.draft.old_function(id, name);
        } else {
            self.draft.put(format!("({id})").as_bytes());
        }
    }
}

/// The lines of one group.
struct Body<'a, 'b, 'd, 'w> {
    writer: &'w mut Writer<'a, 'b, 'd>,
    encoder: Encoder,
    fl: Option<Name<'a>>,
    lines: Vec<CodeLine<'a>>,
    code: Option<usize>,
}

impl<'a> Body<'a, '_, '_, '_> {
    fn columns(&self) -> Columns {
        self.writer.groups.state.columns
    }

    /// Source file and position as the code's own line table has them, or else as they were.
    fn place(&self, item: &Item<'a>, mut position: Position) -> (Option<Name<'a>>, Position) {
        if self.code.is_none() {
            return (item.file.map(Name::Old).or(self.fl), position);
        }
        let Columns { instr: Some(instr), line: Some(line), .. } = self.columns() else { return (self.fl, position) };
        let after = self.lines.partition_point(|entry| entry.addr <= position.0[instr]);
        match after.checked_sub(1).and_then(|at| self.lines.get(at)) {
            Some(entry) => {
                position.0[line] = u64::from(entry.line);
                (Some(Name::New(entry.file)), position)
            }
            None => (self.fl, position),
        }
    }

    fn switch_file(&mut self, file: Option<Name<'a>>) {
        let Some(file) = file.filter(|file| self.writer.out.file != Some(*file)) else { return };
        let key: &[u8] = if Some(file) == self.fl { b"fe=" } else { b"fi=" };
        statement(self.writer.draft, key, file, Space::File);
        self.writer.out.file = Some(file);
    }

    fn item(&mut self, item: &Item<'a>) {
        let (Some(position), false) = (item.position, matches!(item.kind, Kind::Unknown(_))) else {
            if let Kind::Unknown(text) = item.kind {
                self.writer.draft.put(text);
                self.writer.draft.put(b"\n");
            }
            return;
        };
        let (file, position) = self.place(item, position);
        self.switch_file(file);
        match item.kind {
            Kind::Cost(costs) => {
                self.encoder.cost(position, &mut self.writer.draft.bytes);
                self.costs(costs);
            }
            Kind::Call { callee, count, target, costs } => {
                self.callee(callee);
                self.calls(count, target);
                self.encoder.site(position, &mut self.writer.draft.bytes);
                self.costs(costs);
            }
            Kind::Jump { conditional, counts, target, file, function } => {
                self.jump_target(file, function, target);
                self.writer.draft.put(if conditional { b"jcnd=" } else { b"jump=" });
                self.writer.draft.put(counts);
                self.writer.draft.put(b" ");
                self.encoder.target(target, &mut self.writer.draft.bytes);
                self.writer.draft.put(b"\n");
                self.encoder.site(position, &mut self.writer.draft.bytes);
                self.writer.draft.put(b"\n");
            }
            Kind::Unknown(_) => {}
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
            Named::Graft(entry, tail) => {
                if let NameField::Define(id, _) = callee.function {
                    self.writer.draft.dropped_function(id);
                }
                let name = [groups.names.grafts.name(entry), &tail].concat();
                self.callee_place(
                    Some(Name::New(groups.names.grafts.object())),
                    Some(Name::New(groups.names.grafts.file(entry))),
                );
                self.writer.draft.put(b"cfn=");
                self.writer.function(&Function::New(name));
            }
            _ => {
                self.callee_place(callee.ob.map(Name::Old), callee.file.map(Name::Old));
                self.writer.draft.put(b"cfn=");
                self.writer.function(&Function::Old(callee.function));
            }
        }
    }

    /// Says what a callee does not share with its caller.
    fn callee_place(&mut self, ob: Option<Name<'a>>, file: Option<Name<'a>>) {
        let out = self.writer.out;
        if let Some(ob) = ob.filter(|ob| out.ob != Some(*ob)) {
            statement(self.writer.draft, b"cob=", ob, Space::Object);
        }
        if let Some(file) = file.filter(|file| out.file != Some(*file)) {
            statement(self.writer.draft, b"cfi=", file, Space::File);
        }
    }

    /// A jump into code that has become another function says so; others are as before.
    fn jump_target(&mut self, file: Option<Ref<'a>>, function: Option<NameField<'a>>, target: Position) {
        if let Some(function) = function {
            if let Some(file) = file {
                statement(self.writer.draft, b"jfi=", Name::Old(file), Space::File);
            }
            self.writer.draft.put(b"jfn=");
            self.writer.function(&Function::Old(function));
            return;
        }
        let groups = self.writer.groups;
        let Some(entry) = self.columns().instr.and_then(|column| groups.names.grafts.at(target.0[column])) else {
            return;
        };
        let other = groups.groups.iter().find(|group| group.code == Some(entry) && group.code != self.code);
        let Some(Group { function: Function::New(name), .. }) = other else { return };
        statement(self.writer.draft, b"jfi=", Name::New(groups.names.grafts.file(entry)), Space::File);
        self.writer.draft.put(b"jfn=");
        self.writer.draft.new_name(Space::Function, name);
        self.writer.draft.put(b"\n");
    }

    /// The call from the function itself to a group that was taken out of it: counted by how often its lowest
    /// address was reached.
    fn synthetic_call(&mut self, head: &Group<'a, '_>, other: &Group<'a, '_>) {
        let groups = self.writer.groups;
        let Some((lowest, count)) = lowest_line(other, self.columns()) else { return };
        let position = head.items.iter().find_map(|item| item.position.map(|position| self.place(item, position)));
        let (file, position) = position.unwrap_or((self.fl, entry_of(groups, self.columns())));
        self.switch_file(file);
        match other.code {
            Some(entry) => self.callee_place(
                Some(Name::New(groups.names.grafts.object())),
                Some(Name::New(groups.names.grafts.file(entry))),
            ),
            None => self.callee_place(groups.state.ob.map(Name::Old), groups.state.fl.map(Name::Old)),
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
fn entry_of(groups: &Groups<'_, '_>, columns: Columns) -> Position {
    let mut position = Position::default();
    if let (Some(column), Some((addr, _))) =
        (columns.instr, raw_name(full_name(groups.block.function, groups.names, groups.offset)))
    {
        position.0[column] = addr;
    }
    position
}

/// The lowest position of a group and how often it was reached.
fn lowest_line(group: &Group<'_, '_>, columns: Columns) -> Option<(Position, u64)> {
    let column = columns.instr.unwrap_or(0);
    let positions = group.items.iter().filter_map(|item| item.position.map(|position| (position, item)));
    let (position, item) = positions.min_by_key(|(position, _)| position.0[column])?;
    let count = if let Kind::Cost(costs) = item.kind { first_cost(costs) } else { 1 };
    Some((position, count))
}
