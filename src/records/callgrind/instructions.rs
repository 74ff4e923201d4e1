//! Reads costs and calls of each instruction (`--dump-instr=yes`), by the function to which callgrind attributed them.

use super::grammar::{
    Columns, IdSpace, Keyword, NameField, PositionDecoder, Statement, add_costs, event_names, lines, name_field,
    number, statements, without_recursion,
};
use crate::bytes::digits::decimal;
use crate::error::{Error, Result, Skipped, Warnings};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Costs and calls by instruction, summed over all parts (`part:`) of a callgrind file.
#[derive(Debug, Default)]
pub struct InstructionCosts {
    /// The names of the events that were counted.
    pub events: Vec<Vec<u8>>,
    /// The process ID; `None` if the file doesn't state it.
    pub pid: Option<i32>,
    /// True if positions include addresses.
    pub has_addresses: bool,
    /// The functions in order of appearance. Each combines all its source files and recursion levels.
    pub functions: Vec<CostedFunction>,
    /// The functions as listed in the file: one per source file and recursion level.
    pub stated: Vec<StatedFunction>,
    /// Names of the source files. The index is what [`CostedInstruction::file`] refers to.
    pub files: Vec<Vec<u8>>,
    /// The total cost per event according to the file; empty if the file has no totals.
    pub totals: Vec<u64>,
}

/// A function of an object, with the code from all its source files.
#[derive(Debug)]
pub struct CostedFunction {
    /// The function's name as callgrind spells it.
    pub name: Vec<u8>,
    /// The program or library that contains the function; `???` for memory without a file.
    pub object: Vec<u8>,
    /// Self cost of each instruction, by address. Addresses are absolute in memory without a file, otherwise as in the
    /// object file.
    pub at: BTreeMap<u64, CostedInstruction>,
    /// Calls by the address of the calling instruction.
    pub calls_at: BTreeMap<u64, Vec<CostedCalls>>,
}

/// A function as the file lists it: one source file and recursion level of a [`CostedFunction`].
#[derive(Debug)]
pub struct StatedFunction {
    /// The name with the recursion level, if the file has one: `fib'2`.
    pub name: Vec<u8>,
    /// The index of the source file in [`InstructionCosts::files`].
    pub file: usize,
    /// Index in [`InstructionCosts::functions`] of the [`CostedFunction`] that this one is a part of.
    pub function: usize,
    /// The target address of the first call to this function; `None` if nothing called it.
    pub entry: Option<u64>,
    /// Inclusive cost of all calls to the function, per event. Trailing events may be missing.
    called: Vec<u64>,
    /// The function's self cost plus the cost of the calls it makes, per event.
    calling: Vec<u64>,
}

/// The calls from one instruction to one function.
#[derive(Debug)]
pub struct CostedCalls {
    /// Index of the callee in [`InstructionCosts::stated`].
    pub callee: usize,
    /// The number of calls.
    pub count: u64,
    /// Inclusive cost of the calls, per event. Trailing events may be missing.
    pub costs: Vec<u64>,
}

impl StatedFunction {
    /// The inclusive cost per event: the cost of all calls to the function or, if there are none, its self cost plus
    /// the cost of the calls it makes.
    pub fn inclusive(&self) -> &[u64] {
        if self.entry.is_some() { &self.called } else { &self.calling }
    }
}

/// The self cost of an instruction.
#[derive(Debug, Default)]
pub struct CostedInstruction {
    /// Cost per event. Trailing events may be missing.
    pub costs: Vec<u64>,
    /// The index of the source file in [`InstructionCosts::files`].
    pub file: usize,
    /// The source line; 0 if unknown.
    pub line: u64,
}

/// Reads a whole file. Lines that cannot be understood are skipped with a warning.
pub fn instruction_costs(bytes: &[u8], warnings: &mut Warnings) -> InstructionCosts {
    let mut reader = InstructionReader { ids: definitions(bytes), ..InstructionReader::default() };
    let mut skipped = Skipped::new("line");
    for (offset, text) in lines(bytes) {
        if let Err(error) = reader.read_line(Statement::parse(text)) {
            skipped.add(error.at(offset as u64));
        }
    }
    warnings.extend(skipped.into_warning());
    let InstructionReader { mut costs, totals, summary, .. } = reader;
    costs.totals = if totals.is_empty() { summary } else { totals };
    costs
}

/// The names of all IDs. Collected in advance, because a part may use an ID that only a later part defines.
fn definitions(bytes: &[u8]) -> NamesById<'_> {
    let mut ids = NamesById::default();
    for (_, _, line) in statements(bytes) {
        if let Statement::Spec(key, value) = line
            && let Some(space) = key.space()
            && let NameField::Define(id, name) = name_field(value)
        {
            ids.entry((space, id)).or_insert(name);
        }
    }
    ids
}

type NamesById<'a> = FxHashMap<(IdSpace, u32), &'a [u8]>;

#[derive(Default)]
struct InstructionReader<'a> {
    costs: InstructionCosts,
    /// The sum of the `totals:` lines of all parts.
    totals: Vec<u64>,
    summary: Vec<u64>,
    columns: Columns,
    decoder: PositionDecoder,
    /// True if the lines after `calls=` and `jump=` also move the base of relative positions, as the manual says. In
    /// valgrind's own files they don't.
    every_line_moves: bool,
    ids: NamesById<'a>,
    files: FxHashMap<&'a [u8], usize>,
    /// Indices of functions by object and name.
    functions: FxHashMap<(&'a [u8], &'a [u8]), usize>,
    /// For each function, calling address and callee: the index in the list of calls at that address. Avoids searching
    /// the list, because a single instruction may call thousands of functions.
    calls: FxHashMap<(usize, u64, usize), usize>,
    stated: FxHashMap<StatedName<'a>, usize>,
    /// Indices of stated functions by ID. An ID keeps the object and file of its definition, even if others are in
    /// effect where it is used.
    stated_ids: FxHashMap<u32, usize>,
    object: &'a [u8],
    /// Number of the file in the last `fl=`.
    fl: usize,
    /// Number of the file of the next cost lines.
    file: usize,
    /// Index in `stated` of the current function. `None` if its `fn=` line is invalid; its cost lines are then skipped.
    function: Option<usize>,
    /// The `cob=` since the last `cfn=`: the object of the next callee.
    called_object: Option<&'a [u8]>,
    /// The `cfi=` since the last `cfn=`: the source file of the next callee.
    called_file: Option<usize>,
    /// Index in `stated` of the function that the next call leads to.
    callee: Option<usize>,
    /// What the next cost line means; `None` if it is a self cost.
    next_line: Option<NextLineKind>,
}

/// Identifies a stated function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StatedName<'a> {
    object: &'a [u8],
    file: usize,
    name: &'a [u8],
}

/// What the next cost line means, if it isn't a self cost.
#[derive(Debug, Clone, Copy)]
enum NextLineKind {
    Jump,
    Calls { count: u64, entry: u64 },
}

impl<'a> InstructionReader<'a> {
    fn read_line(&mut self, line: Statement<'a>) -> Result<()> {
        match line {
            Statement::Spec(key, value) => self.read_spec(key, value),
            Statement::Cost(text) => self.read_cost(text),
            Statement::Header(word, value) => self.read_header(word, value),
            Statement::Other => Ok(()),
        }
    }

    fn read_header(&mut self, word: &[u8], value: &[u8]) -> Result<()> {
        let costs = &mut self.costs;
        match word {
            b"positions" => {
                self.columns = Columns::required(value)?;
                costs.has_addresses |= self.columns.instr.is_some();
            }
            b"events" if costs.events.is_empty() => {
                costs.events = event_names(value);
            }
            b"creator" => self.every_line_moves = !value.starts_with(b"callgrind-"),
            b"pid" if costs.pid.is_none() => costs.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            b"totals" => add_costs(value, &mut self.totals).ok_or_else(|| Error::new("totals: are not numbers"))?,
            b"summary" => add_costs(value, &mut self.summary).ok_or_else(|| Error::new("summary: is not a number"))?,
            _ => {}
        }
        Ok(())
    }

    fn read_spec(&mut self, key: Keyword, value: &'a [u8]) -> Result<()> {
        match key {
            Keyword::Calls => {
                // Even if this line is invalid, the next cost line is not a self cost.
                self.next_line = Some(NextLineKind::Jump);
                self.next_line = Some(self.parse_calls(value)?);
            }
            Keyword::Jump | Keyword::Jcnd => self.next_line = Some(NextLineKind::Jump),
            _ => self.next_line = None,
        }
        // If a function's name can't be parsed, its costs must not be added to another function.
        match key {
            Keyword::Fn => self.function = None,
            Keyword::Cfn => self.callee = None,
            _ => {}
        }
        let Some(space) = key.space() else { return Ok(()) };
        let name = match name_field(value) {
            NameField::Define(id, name) => {
                self.ids.insert((space, id), name);
                Some(name)
            }
            NameField::Refer(id) => self.ids.get(&(space, id)).copied(),
            NameField::Plain(name) => Some(name),
        };
        let name = name.ok_or_else(|| Error::new("refers to an undefined name"))?;
        match key {
            Keyword::Ob => self.object = name,
            Keyword::Fl => {
                self.fl = self.file_number(name);
                self.file = self.fl;
            }
            Keyword::Fi | Keyword::Fe => self.file = self.file_number(name),
            Keyword::Fn => {
                self.decoder = PositionDecoder::new(self.columns, self.every_line_moves);
                self.file = self.fl;
                let stated_name = StatedName { object: self.object, file: self.fl, name };
                let stated = self.stated_number(value, stated_name);
                // The definition of the ID may be in another object, but the addresses that follow are in the current
                // one.
                self.costs.stated[stated].function = self.function_number(self.object, without_recursion(name));
                self.function = Some(stated);
            }
            Keyword::Cob => self.called_object = Some(name),
            Keyword::Cfi => self.called_file = Some(self.file_number(name)),
            Keyword::Cfn => {
                let object = self.called_object.take().unwrap_or(self.object);
                let file = self.called_file.take().unwrap_or(self.file);
                self.callee = Some(self.stated_number(value, StatedName { object, file, name }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Parses the value of `calls=`: number of calls, and position of the called function.
    fn parse_calls(&mut self, value: &[u8]) -> Result<NextLineKind> {
        let value = value.trim_ascii_start();
        let (count, target) = value.split_at(value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len()));
        let (target, _) = self.decoder.peek(target).ok_or_else(|| Error::new("calls= has no position"))?;
        let count = number(count).ok_or_else(|| Error::new("calls= has no count"))?;
        Ok(NextLineKind::Calls { count, entry: target.0[self.columns.instr.unwrap_or(0)] })
    }

    fn file_number(&mut self, name: &'a [u8]) -> usize {
        let next = self.costs.files.len();
        let number = *self.files.entry(name).or_insert(next);
        if number == next {
            self.costs.files.push(name.to_vec());
        }
        number
    }

    /// Index in [`InstructionCosts::stated`] of the function that `value` (after `fn=` or `cfn=`) names. Adds the
    /// function as `stated_name` if it is new. If `value` is just the ID of a known function, `stated_name` is ignored.
    fn stated_number(&mut self, value: &'a [u8], stated_name: StatedName<'a>) -> usize {
        let field = name_field(value);
        if let NameField::Refer(id) = field
            && let Some(number) = self.stated_ids.get(&id)
        {
            return *number;
        }
        let next = self.costs.stated.len();
        let number = *self.stated.entry(stated_name).or_insert(next);
        if let NameField::Define(id, _) = field {
            self.stated_ids.insert(id, number);
        }
        if number == next {
            let StatedName { object, file, name } = stated_name;
            let function = self.function_number(object, without_recursion(name));
            let (name, entry) = (name.to_vec(), None);
            self.costs.stated.push(StatedFunction { name, file, function, entry, called: vec![], calling: vec![] });
        }
        number
    }

    fn function_number(&mut self, object: &'a [u8], name: &'a [u8]) -> usize {
        let next = self.costs.functions.len();
        let number = *self.functions.entry((object, name)).or_insert(next);
        if number == next {
            let (name, object) = (name.to_vec(), object.to_vec());
            let (at, calls_at) = (BTreeMap::new(), BTreeMap::new());
            self.costs.functions.push(CostedFunction { name, object, at, calls_at });
        }
        number
    }

    fn read_cost(&mut self, text: &[u8]) -> Result<()> {
        let kind = self.next_line.take();
        let position = if kind.is_some() { self.decoder.site(text) } else { self.decoder.cost(text) };
        let (position, words) =
            position.ok_or_else(|| Error::new("a position is not a number, or is relative to a missing one"))?;
        let callee = self.callee.take();
        if matches!(kind, Some(NextLineKind::Jump)) {
            return Ok(());
        }
        let Some(stated) = self.function else {
            return Err(Error::new("a cost line before any valid fn="));
        };
        if kind.is_some() && callee.is_none() {
            return Err(Error::new("calls= without a valid cfn="));
        }
        let Some(instr) = self.columns.instr else { return Ok(()) };
        let addr = position.0[instr];
        let added = match (kind, callee) {
            (Some(NextLineKind::Calls { count, entry }), Some(callee)) => {
                self.add_call(stated, addr, &CallLine { callee, count, entry }, words)
            }
            _ => {
                let line = self.columns.line.map_or(0, |line| position.0[line]);
                self.add_self_cost(stated, addr, line, words)
            }
        };
        added.ok_or_else(|| Error::new("a cost is not an integer, or the sum is too large"))
    }

    /// Adds the self cost of an instruction. `None` if a cost is not a number or a sum overflows.
    fn add_self_cost(&mut self, stated: usize, addr: u64, line: u64, words: &[u8]) -> Option<()> {
        let caller = &mut self.costs.stated[stated];
        add_costs(words, &mut caller.calling)?;
        let instruction = self.costs.functions[caller.function].at.entry(addr).or_default();
        instruction.file = self.file;
        instruction.line = line;
        add_costs(words, &mut instruction.costs)
    }

    /// Adds calls from an instruction. `None` if a cost is not a number or a sum overflows.
    fn add_call(&mut self, stated: usize, addr: u64, call: &CallLine, words: &[u8]) -> Option<()> {
        let callee = call.callee;
        let caller = &mut self.costs.stated[stated];
        add_costs(words, &mut caller.calling)?;
        let calls = self.costs.functions[caller.function].calls_at.entry(addr).or_default();
        let index = *self.calls.entry((caller.function, addr, callee)).or_insert_with(|| {
            calls.push(CostedCalls { callee, count: 0, costs: Vec::new() });
            calls.len() - 1
        });
        calls[index].count = calls[index].count.saturating_add(call.count);
        add_costs(words, &mut calls[index].costs)?;
        self.costs.stated[callee].entry.get_or_insert(call.entry);
        add_costs(words, &mut self.costs.stated[callee].called)
    }
}

/// A call as described by the `cfn=` and `calls=` lines before its cost line.
struct CallLine {
    /// Index of the called function in [`InstructionCosts::stated`].
    callee: usize,
    count: u64,
    /// Target address of the call.
    entry: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_summed_by_address_whatever_calls_are_between() {
        let text = b"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 77\npositions: instr line\n\
            events: Ir Dr\n\nob=(1) /lib/x.so\nfl=(1) a.c\nfn=(1) fib\n0x1000 7 10 1\n+4 +1 5\n\
            cfn=(1)\ncalls=3 0x1000 7\n+4 * 900 9\n+2 * 2\nfi=(2) b.h\n0x2000 3 1\n\nfn=(2) fib'2\n0x1000 7 30 2\n\n\
            ob=(2) ???\nfn=(3) 0x0000000000007000\n0x7000 0 4\njump=1 +5 *\n+5 *\n+1 0 6\n";
        let mut warnings = Warnings::new();
        let costs = instruction_costs(text, &mut warnings);
        assert!(warnings.is_empty() && costs.has_addresses && costs.pid == Some(77));
        assert_eq!(costs.events, [b"Ir", b"Dr"]);
        let mut functions = Vec::new();
        for function in &costs.functions {
            let instructions: Vec<_> =
                function.at.iter().map(|(addr, one)| (*addr, one.costs.clone(), one.file, one.line)).collect();
            functions.push((String::from_utf8_lossy(&function.name).into_owned(), instructions));
        }
        let fib = vec![
            (0x1000, vec![40, 3], 0, 7),
            (0x1004, vec![5], 0, 8),
            (0x1006, vec![2], 0, 8),
            (0x2000, vec![1], 1, 3),
        ];
        let jit = vec![(0x7000, vec![4], 0, 0), (0x7001, vec![6], 0, 0)];
        assert_eq!(functions, [("fib".to_owned(), fib), ("0x0000000000007000".to_owned(), jit)]);
        assert_eq!(costs.functions[1].object, b"???");
    }
}
