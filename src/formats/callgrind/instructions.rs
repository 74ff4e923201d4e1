//! Reads costs and calls of each instruction (`--dump-instr=yes`), by the function to which callgrind attributed them.

use super::cost_reader::{CostReader, FunctionName, Record, TextNumber};
use super::grammar::{Columns, LineReader, PositionDecoder, add_costs, event_names, strip_recursion};
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
    /// The profiled command; empty if the file doesn't state it.
    pub command: Vec<u8>,
    /// True if the file states addresses of instructions (`--dump-instr=yes`), not only lines.
    pub has_addresses: bool,
    /// The functions in order of appearance. Each combines the costs of all its source files and recursion levels.
    pub functions: Vec<CostedFunction>,
    /// The functions as the file states them: one for each source file and recursion level of a function.
    pub stated: Vec<StatedFunction>,
    /// Names of the source files. The index is what [`CostedInstruction::file`] refers to.
    pub files: Vec<Vec<u8>>,
    /// The total cost per event according to the file; empty if the file has no totals.
    pub totals: Vec<i64>,
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
    pub instructions: BTreeMap<u64, CostedInstruction>,
    /// Calls by the address of the calling instruction.
    pub calls: BTreeMap<u64, Vec<CostedCalls>>,
}

/// A function as the file states it: one source file and recursion level of a [`CostedFunction`].
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
    cost_of_calls: Vec<i64>,
    /// The function's self cost plus the cost of the calls it makes, per event. Trailing events may be missing.
    self_and_callees: Vec<i64>,
}

/// The calls from one instruction to one function.
#[derive(Debug)]
pub struct CostedCalls {
    /// Index of the callee in [`InstructionCosts::stated`].
    pub callee: usize,
    /// The number of calls.
    pub count: u64,
    /// Inclusive cost of the calls, per event. Trailing events may be missing.
    pub costs: Vec<i64>,
}

impl StatedFunction {
    /// The inclusive cost per event: the cost of all calls to the function or, if there are none, its self cost plus
    /// the cost of the calls it makes.
    pub fn inclusive(&self) -> &[i64] {
        if self.entry.is_some() { &self.cost_of_calls } else { &self.self_and_callees }
    }
}

/// The self cost of an instruction.
#[derive(Debug, Default)]
pub struct CostedInstruction {
    /// Cost per event. Trailing events may be missing.
    pub costs: Vec<i64>,
    /// The index of the source file in [`InstructionCosts::files`].
    pub file: usize,
    /// The source line; 0 if unknown.
    pub line: u64,
}

/// Reads the costs and calls of each instruction from a whole file. Lines that cannot be understood are skipped with a
/// warning.
pub fn instruction_costs(bytes: &[u8], warnings: &mut Warnings) -> InstructionCosts {
    let mut reader = InstructionReader { names: CostReader::with_definitions(bytes), ..InstructionReader::default() };
    let (mut decoder, mut skipped) = (PositionDecoder::default(), Skipped::new("line"));
    let mut lines = LineReader::new(bytes, &mut decoder);
    while let Some((offset, line)) = lines.next() {
        if let Err(error) = reader.names.read(line).and_then(|record| reader.read_record(record, lines.columns())) {
            skipped.add(error.at_offset(offset as u64));
        }
    }
    warnings.extend(skipped.into_warning());
    let InstructionReader { mut costs, totals, summary, .. } = reader;
    // A file may have `totals:` lines, `summary:` lines or both, in each of its parts. Both sums cover all parts.
    costs.totals = if totals.is_empty() { summary } else { totals };
    costs
}

#[derive(Default)]
struct InstructionReader {
    costs: InstructionCosts,
    names: CostReader,
    /// The sum of the `totals:` lines of all parts, which are at the end of each part.
    totals: Vec<i64>,
    /// The sum of the `summary:` lines of all parts. Used if the file has no `totals:` lines.
    summary: Vec<i64>,
    /// Index in [`InstructionCosts::files`] of each file.
    files: FxHashMap<TextNumber, usize>,
    /// Index in [`InstructionCosts::functions`] of each function, by object and by name without recursion level.
    functions: FxHashMap<(TextNumber, Vec<u8>), usize>,
    /// Index in [`InstructionCosts::stated`] of each function, by the function's index in [`CostReader::functions`].
    stated: FxHashMap<u32, usize>,
    /// For each function, calling address and callee: the index in the list of calls at that address. Avoids searching
    /// the list, because a single instruction may call thousands of functions.
    calls: FxHashMap<(usize, u64, usize), usize>,
}

impl InstructionReader {
    /// Adds the costs or the call in a record. `columns` are the position columns of its line; if instruction addresses
    /// aren't among them, the record is ignored. Fails if a number is malformed.
    fn read_record(&mut self, record: Option<Record<'_>>, columns: Columns) -> Result<()> {
        match record {
            Some(Record::Header { word, value }) => self.read_header(word, value, columns),
            Some(Record::Function(function)) => {
                let stated = self.stated_index(function);
                // The function's ID may have been defined where another object was current, but the addresses that
                // follow are in the object that is current here.
                let name = self.names.functions[function as usize].name;
                self.costs.stated[stated].function = self.function_index(self.names.object, name);
                Ok(())
            }
            Some(Record::SelfCost { function, file, cost }) => {
                // The numbers in the position columns, such as address and line; `columns` has the index of each.
                let position = cost.position.ok_or_else(malformed)?;
                let Some(column) = columns.instr else { return Ok(()) };
                let source =
                    Source { file: self.file_index(file), line: columns.line.map_or(0, |line| position.0[line]) };
                let stated = self.stated_index(function);
                self.add_self_cost(stated, position.0[column], source, cost.costs).ok_or_else(not_a_cost)
            }
            Some(Record::Call { caller, callee, count, target, cost }) => {
                let position = cost.position.ok_or_else(malformed)?;
                let target = target.ok_or_else(|| Error::new("the calls= line has no valid target position"))?;
                let Some(column) = columns.instr else { return Ok(()) };
                let (caller, callee) = (self.stated_index(caller), self.stated_index(callee));
                let call = Call { caller, callee, addr: position.0[column], count, entry: target.0[column] };
                self.add_call(&call, cost.costs).ok_or_else(not_a_cost)
            }
            None => Ok(()),
        }
    }

    /// Reads a header line. `columns` are the position columns in effect after the line.
    fn read_header(&mut self, word: &[u8], value: &[u8], columns: Columns) -> Result<()> {
        let costs = &mut self.costs;
        match word {
            b"positions" => costs.has_addresses |= columns.instr.is_some(),
            b"events" if costs.events.is_empty() => costs.events = event_names(value),
            b"pid" if costs.pid.is_none() => costs.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            b"cmd" if costs.command.is_empty() => costs.command = value.to_vec(),
            b"totals" => {
                add_costs(value, &mut self.totals)
                    .ok_or_else(|| Error::new("the totals: line has a value that is not a number"))?;
            }
            b"summary" => {
                add_costs(value, &mut self.summary)
                    .ok_or_else(|| Error::new("the summary: line has a value that is not a number"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Index in [`InstructionCosts::files`] of a file; added if it is new.
    fn file_index(&mut self, file: TextNumber) -> usize {
        let next_index = self.costs.files.len();
        let index = *self.files.entry(file).or_insert(next_index);
        if index == next_index {
            self.costs.files.push(self.names.texts.get(file).to_vec());
        }
        index
    }

    /// Returns the index in [`InstructionCosts::stated`] of a function, and adds the function if it is new. `function`
    /// is its index in [`CostReader::functions`].
    fn stated_index(&mut self, function: u32) -> usize {
        if let Some(index) = self.stated.get(&function) {
            return *index;
        }
        let FunctionName { name, file, object } = self.names.functions[function as usize];
        let stated = StatedFunction {
            name: self.names.texts.get(name).to_vec(),
            file: self.file_index(file),
            function: self.function_index(object, name),
            entry: None,
            cost_of_calls: Vec::new(),
            self_and_callees: Vec::new(),
        };
        let index = self.costs.stated.len();
        self.stated.insert(function, index);
        self.costs.stated.push(stated);
        index
    }

    /// Index in [`InstructionCosts::functions`] of the function with this object and name, whatever its recursion
    /// level; added if it is new.
    fn function_index(&mut self, object: TextNumber, name: TextNumber) -> usize {
        let name = strip_recursion(self.names.texts.get(name)).to_vec();
        let next_index = self.costs.functions.len();
        let index = *self.functions.entry((object, name.clone())).or_insert(next_index);
        if index == next_index {
            self.costs.functions.push(CostedFunction {
                name,
                object: self.names.texts.get(object).to_vec(),
                instructions: BTreeMap::new(),
                calls: BTreeMap::new(),
            });
        }
        index
    }

    /// Adds the self cost of an instruction of a stated function. `None` if a cost is not a number or a sum overflows.
    fn add_self_cost(&mut self, stated: usize, addr: u64, source: Source, costs: &[u8]) -> Option<()> {
        let stated = &mut self.costs.stated[stated];
        add_costs(costs, &mut stated.self_and_callees)?;
        let instruction = self.costs.functions[stated.function].instructions.entry(addr).or_default();
        instruction.file = source.file;
        instruction.line = source.line;
        add_costs(costs, &mut instruction.costs)?;
        Some(())
    }

    /// Adds calls from an instruction, and their cost to the caller's and the callee's sums, from which
    /// [`StatedFunction::inclusive`] chooses. The target of the first call is kept as the callee's entry. `None` if a
    /// cost is not a number or a sum overflows.
    fn add_call(&mut self, call: &Call, costs: &[u8]) -> Option<()> {
        let &Call { caller, callee, addr, count, entry } = call;
        let caller = &mut self.costs.stated[caller];
        add_costs(costs, &mut caller.self_and_callees)?;
        let calls = self.costs.functions[caller.function].calls.entry(addr).or_default();
        let index = *self.calls.entry((caller.function, addr, callee)).or_insert_with(|| {
            calls.push(CostedCalls { callee, count: 0, costs: Vec::new() });
            calls.len() - 1
        });
        calls[index].count = calls[index].count.saturating_add(count);
        add_costs(costs, &mut calls[index].costs)?;
        let callee = &mut self.costs.stated[callee];
        callee.entry.get_or_insert(entry);
        add_costs(costs, &mut callee.cost_of_calls)?;
        Some(())
    }
}

/// The source position of an instruction: an index into [`InstructionCosts::files`], and the line.
#[derive(Debug, Clone, Copy)]
struct Source {
    file: usize,
    line: u64,
}

/// Calls from an instruction. The functions are indices into [`InstructionCosts::stated`].
#[derive(Debug, Clone, Copy)]
struct Call {
    caller: usize,
    callee: usize,
    /// Address of the calling instruction.
    addr: u64,
    count: u64,
    /// Target address of the call.
    entry: u64,
}

fn malformed() -> Error {
    Error::new("a position is not a number, or is relative although no position precedes it")
}

fn not_a_cost() -> Error {
    Error::new("a cost is not an integer, or the sum is too large")
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
            let instructions: Vec<_> = function
                .instructions
                .iter()
                .map(|(addr, one)| (*addr, one.costs.clone(), one.file, one.line))
                .collect();
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

    #[test]
    fn costs_may_be_negative_and_positions_refer_to_the_function_before() {
        // As pprof writes: without a creator, each function relative to the one before.
        let text =
            b"positions: instr line\nevents: cpu(nanoseconds)\n\nob=(1) x\nfl=(1) a.go\nfn=(1) f\n0x1000 7 -10\n\
            cfn=(2) g\ncalls=0 +32 9\n* * -5\n\nfn=(2)\n+32 9 -5\n* * .\n+4 9 8\ntotals: -7\n";
        let mut warnings = Warnings::new();
        let costs = instruction_costs(text, &mut warnings);
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(costs.totals, [-7]);
        let mut found = Vec::new();
        for function in &costs.functions {
            found.push(function.instructions.iter().map(|(addr, one)| (*addr, one.costs[0])).collect::<Vec<_>>());
        }
        assert_eq!(found, [vec![(0x1000, -10)], vec![(0x1020, -5), (0x1024, 8)]]);
        let inclusive: Vec<_> = costs.stated.iter().map(StatedFunction::inclusive).collect();
        assert_eq!(inclusive, [[-15], [-5]]);
    }
}
