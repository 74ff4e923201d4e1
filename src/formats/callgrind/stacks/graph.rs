//! Reads a file as a call graph: functions with self costs, and calls with inclusive costs.

use crate::bytes::digits::decimal;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::callgrind::cost_reader::{CostReader, FunctionName, Record, TextNumber};
use crate::formats::callgrind::grammar::{
    CHUNK_SIZE, Columns, CostLine, LineReader, PositionDecoder, ReadChunks, costs, event_names,
};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Read;

/// The call graph of a whole file, including all of its `part:` sections.
#[derive(Debug, Default)]
pub(super) struct CallGraph {
    /// Names of the events. Events of the file come first, derived ones after them.
    pub(super) events: Vec<Vec<u8>>,
    /// Name and formula of each derived event, from the `event:` headers. Empty once the events are derived.
    formulas: Vec<(Vec<u8>, Vec<u8>)>,
    /// The functions in order of appearance.
    pub(super) functions: Vec<FunctionName>,
    /// Names, files and objects of the functions.
    pub(super) texts: Texts<TextNumber>,
    /// The threads in order of appearance.
    pub(super) threads: Vec<Thread>,
    /// Value of the first `creator:` header.
    pub(super) creator: Vec<u8>,
    /// Value of the first `cmd:` header: the program with its arguments.
    pub(super) command: Vec<u8>,
    /// Value of the first `pid:` header.
    pub(super) pid: Option<i32>,
}

/// The costs of one thread, or of all threads if the file doesn't separate them.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// callgrind's number of the thread, from `thread:`. `None` if the file doesn't attribute the costs to a thread.
    pub(super) number: Option<i32>,
    /// Self cost by function.
    pub(super) costs: Vec<(u32, Costs)>,
    /// For each element of `costs`, the self cost by file and line. Empty if lines are not requested or not in the
    /// file.
    pub(super) lines: Vec<BTreeMap<(TextNumber, u32), Costs>>,
    /// Index of each function in `costs`.
    cost_indices: FxHashMap<u32, usize>,
    /// Calls by (caller, callee).
    pub(super) calls: FxHashMap<(u32, u32), Calls>,
}

/// Costs per event. Trailing events may be missing and are 0. Costs can be negative: freed memory, for example.
#[derive(Debug, Default, Clone)]
pub(super) struct Costs(Vec<i64>);

/// All calls from one function to another.
#[derive(Debug, Default, Clone)]
pub(super) struct Calls {
    /// Number of calls.
    pub(super) count: u64,
    /// Inclusive cost of the calls.
    pub(super) costs: Costs,
}

impl Costs {
    /// The cost in the event with this index; 0 if it is missing.
    pub(super) fn get(&self, event: usize) -> i64 {
        self.0.get(event).copied().unwrap_or(0)
    }

    /// Adds the costs of a line.
    fn add(&mut self, costs: &[i64]) {
        if self.0.len() < costs.len() {
            self.0.resize(costs.len(), 0);
        }
        for (sum, cost) in self.0.iter_mut().zip(costs) {
            *sum = sum.saturating_add(*cost);
        }
    }
}

/// The formula of a derived event: a sum of other events, each with a factor. Each term is the index of an event and
/// its factor.
struct DerivedEvent(Vec<(usize, i64)>);

impl DerivedEvent {
    /// Parses a formula such as `Ir + 10 Bm`. `None` if it is invalid, or uses an event that isn't in `events`.
    fn parse(formula: &[u8], events: &[Vec<u8>]) -> Option<Self> {
        let index_of = |name: &[u8]| events.iter().position(|event| event == name);
        let mut terms = Vec::new();
        // `sign` and `factor` belong to the term that is being read. `factor` is `None` before its number.
        let mut sign = 1i64;
        let mut factor = None;
        // True if the previous word completed a term.
        let mut needs_sign = false;
        for word in space_operators(formula).split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            match word {
                b"+" | b"-" => {
                    sign = if word == b"-" { -1 } else { 1 };
                    factor = None;
                    needs_sign = false;
                }
                // `10 * Bm` means the same as `10 Bm`.
                b"*" if factor.is_some() => {}
                _ if needs_sign => return None,
                word if word[0].is_ascii_digit() => {
                    // `10Bm` without a blank also means 10 times Bm.
                    let digit_count = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = i64::try_from(decimal(&word[..digit_count])?).ok()?;
                    factor = Some(number);
                    if digit_count < word.len() {
                        terms.push((index_of(&word[digit_count..])?, sign.checked_mul(number)?));
                        needs_sign = true;
                    }
                }
                name => {
                    terms.push((index_of(name)?, sign.checked_mul(factor.unwrap_or(1))?));
                    needs_sign = true;
                }
            }
        }
        // A formula that ends in an operator or a factor is incomplete.
        if needs_sign && !terms.is_empty() { Some(Self(terms)) } else { None }
    }

    /// Computes the derived event's cost from the costs of the events in the formula.
    fn cost(&self, costs: &Costs) -> i64 {
        let terms = self.0.iter().map(|(event, factor)| costs.get(*event).saturating_mul(*factor));
        terms.fold(0, i64::saturating_add)
    }
}

/// Puts blanks around the operators in a formula.
fn space_operators(formula: &[u8]) -> Vec<u8> {
    let mut spaced = Vec::with_capacity(formula.len());
    for &byte in formula {
        match byte {
            b'+' | b'-' | b'*' => spaced.extend([b' ', byte, b' ']),
            _ => spaced.push(byte),
        }
    }
    spaced
}

/// The largest number of derived events; the rest are skipped with a warning. Each one adds a cost to every function
/// and call, so a file with many formulas would need a lot of memory.
const MAX_FORMULAS: usize = 64;

impl CallGraph {
    /// Adds the derived events. A formula may refer to another derived event.
    fn derive_events(&mut self, skipped: &mut Skipped) {
        let mut remaining = std::mem::take(&mut self.formulas);
        let too_many = remaining.split_off(MAX_FORMULAS.min(remaining.len()));
        // Each round adds the events whose formulas only need events that exist by then: the file's, and derived ones
        // that were added before.
        loop {
            let count_before = remaining.len();
            remaining.retain(|(name, formula)| {
                // The event isn't derived: the file states its costs.
                if self.events.contains(name) {
                    return false;
                }
                let Some(derived) = DerivedEvent::parse(formula, &self.events) else { return true };
                self.add_derived(name, &derived);
                false
            });
            if remaining.len() == count_before {
                break; // none of the rest can be derived
            }
        }
        for _ in too_many {
            skipped.add(Error::new(format!("the file has more than {MAX_FORMULAS} formulas of derived events")));
        }
        for (name, _) in remaining {
            let name = String::from_utf8_lossy(&name);
            let message = format!("the formula of event {name} is malformed, or uses events that are not in the file");
            skipped.add(Error::new(message));
        }
    }

    /// Adds a derived event, and computes its cost in all functions, lines and calls.
    fn add_derived(&mut self, name: &[u8], derived: &DerivedEvent) {
        let event = self.events.len();
        self.events.push(name.to_vec());
        for costs in self.threads.iter_mut().flat_map(Thread::all_costs_mut) {
            let cost = derived.cost(costs);
            costs.0.resize(event + 1, 0);
            costs.0[event] = cost;
        }
    }
}

impl Thread {
    /// The costs of all functions, lines and calls.
    fn all_costs_mut(&mut self) -> impl Iterator<Item = &mut Costs> {
        let functions = self.costs.iter_mut().map(|(_, costs)| costs);
        let lines = self.lines.iter_mut().flat_map(BTreeMap::values_mut);
        let calls = self.calls.values_mut().map(|calls| &mut calls.costs);
        functions.chain(lines).chain(calls)
    }

    /// Index of a function in `costs`; added if it is new.
    fn find_or_add_costs(&mut self, function: u32) -> usize {
        let next_index = self.costs.len();
        let index = *self.cost_indices.entry(function).or_insert(next_index);
        if index == next_index {
            self.costs.push((function, Costs::default()));
            self.lines.push(BTreeMap::new());
        }
        index
    }
}

/// Reads a whole callgrind file from a stream. Self costs per source line are only kept if `with_lines` is true. Lines
/// that can't be understood are skipped with a warning.
pub(super) fn read(input: impl Read, with_lines: bool, warnings: &mut Warnings) -> Result<CallGraph> {
    let mut reader = GraphReader { with_lines, ..GraphReader::default() };
    // The costs before the first `thread:` line belong to no thread; many files have no such line.
    reader.enter_thread(None);
    let (mut names, mut decoder, mut skipped) =
        (CostReader::default(), PositionDecoder::default(), Skipped::new("line"));
    for chunk in ReadChunks::new(input, CHUNK_SIZE) {
        let (chunk_offset, bytes) = chunk?;
        let mut lines = LineReader::new(&bytes, &mut decoder);
        while let Some((line_offset, line)) = lines.next() {
            if let Err(error) = names.read(line).and_then(|record| reader.read_record(record, lines.columns())) {
                skipped.add(error.at_offset(chunk_offset + line_offset as u64));
            }
        }
    }
    let mut graph = reader.graph;
    (graph.functions, graph.texts) = (names.functions, names.texts);
    let mut skipped_formulas = Skipped::new("formula");
    graph.derive_events(&mut skipped_formulas);
    warnings.extend(skipped.into_warning());
    warnings.extend(skipped_formulas.into_warning());
    Ok(graph)
}

#[derive(Default)]
struct GraphReader {
    graph: CallGraph,
    /// True if self costs per line are requested.
    with_lines: bool,
    /// Index of the current thread.
    thread: usize,
    /// Index of each thread by its number.
    threads: FxHashMap<Option<i32>, usize>,
    /// Index of the current function in the thread's self costs; `None` until the function has any. A function has many
    /// lines with costs, so the index saves looking up the function for each line.
    current_costs: Option<usize>,
    /// The costs of the current line, one per event.
    line_costs: Vec<i64>,
}

impl GraphReader {
    /// Attributes the costs that follow to this thread.
    fn enter_thread(&mut self, number: Option<i32>) {
        let threads = &mut self.graph.threads;
        self.thread = *self.threads.entry(number).or_insert(threads.len());
        if self.thread == threads.len() {
            threads.push(Thread { number, ..Thread::default() });
        }
        self.current_costs = None;
    }

    /// Adds a record to the graph of the current thread. Fails if a cost is not a number. Also fails if a line has more
    /// costs than there are events, but only after adding the costs that fit.
    fn read_record(&mut self, record: Option<Record<'_>>, columns: Columns) -> Result<()> {
        match record {
            Some(Record::Header { word, value }) => self.read_header(word, value),
            Some(Record::Function(_)) => {
                self.current_costs = None;
                Ok(())
            }
            Some(Record::SelfCost { function, file, cost }) => {
                // The function is looked up first, so that the graph contains it even if its costs are malformed.
                let index = self.self_cost_index(function);
                let fits_events = self.parse_costs(cost.costs)?;
                let thread = &mut self.graph.threads[self.thread];
                if self.with_lines
                    && let Some(line) = source_line(cost, columns)
                {
                    thread.lines[index].entry((file, line)).or_default().add(&self.line_costs);
                }
                let (_, self_costs) = &mut thread.costs[index];
                self_costs.add(&self.line_costs);
                check_excess_costs(fits_events)
            }
            Some(Record::Call { caller, callee, count, cost, .. }) => {
                // Calls are counted even if their costs are malformed, so the error is only returned after counting.
                let fits_events = self.parse_costs(cost.costs);
                let calls = self.graph.threads[self.thread].calls.entry((caller, callee)).or_default();
                calls.count = calls.count.saturating_add(count);
                let fits_events = fits_events?;
                calls.costs.add(&self.line_costs);
                check_excess_costs(fits_events)
            }
            None => Ok(()),
        }
    }

    /// Parses the costs of a line into `line_costs`, at most one per event. Returns false if the line has more. Fails
    /// if a cost is not a number.
    fn parse_costs(&mut self, text: &[u8]) -> Result<bool> {
        let events = self.graph.events.len().max(1);
        self.line_costs.clear();
        let mut parsed = costs(text);
        for cost in parsed.by_ref().take(events) {
            self.line_costs.push(cost.ok_or_else(|| Error::new("a cost is not a whole number"))?);
        }
        Ok(parsed.next().is_none())
    }

    /// Applies a header line: facts about the program, the names of events, or the start of another part or thread.
    fn read_header(&mut self, word: &[u8], value: &[u8]) -> Result<()> {
        let graph = &mut self.graph;
        match word {
            b"creator" if graph.creator.is_empty() => graph.creator = value.to_vec(),
            b"events" => {
                let events = event_names(value);
                if graph.events.is_empty() {
                    graph.events = events;
                } else if graph.events != events {
                    return Err(Error::new(
                        "the events of this part differ from those of the first part; this part's costs were \
                         counted as costs of the first part's events, in the same order",
                    ));
                }
            }
            // Until a `thread:` line, the costs of a part belong to no thread. In a file that separates threads, that
            // line follows each `part:`.
            b"part" => self.enter_thread(None),
            b"thread" => self.enter_thread(decimal(value).and_then(|number| i32::try_from(number).ok())),
            b"event" => {
                // Each part of the file repeats the formulas. Once there are too many, don't search them any more,
                // because the search would take long; they are reported by `derive_events`.
                if let Some((name, formula)) = parse_formula(value)
                    && (graph.formulas.len() > MAX_FORMULAS || !graph.formulas.iter().any(|(known, _)| *known == name))
                {
                    graph.formulas.push((name, formula));
                }
            }
            b"cmd" if graph.command.is_empty() => graph.command = value.to_vec(),
            b"pid" if graph.pid.is_none() => graph.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            _ => {}
        }
        Ok(())
    }

    /// Index of the current function, `function`, in the self costs of the current thread; added if it has none yet.
    fn self_cost_index(&mut self, function: u32) -> usize {
        let thread = &mut self.graph.threads[self.thread];
        *self.current_costs.get_or_insert_with(|| thread.find_or_add_costs(function))
    }
}

/// Fails if a line has more costs than there are events. This is checked after the costs that fit were added, so that
/// they count.
fn check_excess_costs(fits_events: bool) -> Result<()> {
    if fits_events {
        Ok(())
    } else {
        Err(Error::new("the line has more costs than there are events, so the surplus costs were ignored"))
    }
}

/// The source line of a cost line; `None` if it is 0 or unknown. The cost then counts for the function only.
fn source_line(cost: CostLine<'_>, columns: Columns) -> Option<u32> {
    let line = u32::try_from(cost.position?.0[columns.line?]).ok()?;
    (line > 0).then_some(line)
}

/// Parses `NAME = FORMULA : LONG NAME`, the value of an `event:` header. `None` if it has no formula; then it is just
/// the long name of an event in the file.
fn parse_formula(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = value.split(|byte| *byte == b':').next().unwrap_or_default();
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, formula) = (&text[..equals], &text[equals + 1..]);
    Some((name.trim_ascii().to_vec(), formula.trim_ascii().to_vec()))
}
