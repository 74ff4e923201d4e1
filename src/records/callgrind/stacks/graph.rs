//! Reads a file as a call graph: functions with self costs, and calls with inclusive costs.
//!
//! A function is identified by name, file and object where its ID is defined, or at each use if it has no ID.

use crate::bytes::digits::decimal;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::texts::Texts;
use crate::records::callgrind::grammar::{
    CHUNK_SIZE, Columns, IdSpace, IdTable, Keyword, NameField, PositionDecoder, ReadChunks, Statement, event_names,
    lines, name_field, number,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Read;

/// The call graph of a whole file, including all of its `part:` sections.
#[derive(Debug, Default)]
pub(super) struct CallGraph {
    /// Names of the events. Events of the file come first, derived ones after them.
    pub(super) events: Vec<Vec<u8>>,
    /// (name, formula) of the `event:` headers.
    formulas: Vec<(Vec<u8>, Vec<u8>)>,
    /// The functions in order of appearance.
    pub(super) functions: Vec<GraphFunction>,
    /// Names, files and objects of the functions.
    pub(super) texts: Texts<u32>,
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
    /// callgrind's number of the thread, from `thread:`. `None` for costs that are not attributed to a thread.
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

/// A function. Its fields are numbers of texts in [`CallGraph::texts`].
#[derive(Debug, Clone, Copy)]
pub(super) struct GraphFunction {
    pub(super) name: TextNumber,
    pub(super) file: TextNumber,
    pub(super) object: TextNumber,
}

/// All calls from one function to another.
#[derive(Debug, Default, Clone)]
pub(super) struct Calls {
    /// Number of calls.
    pub(super) count: u64,
    /// Inclusive cost of the calls.
    pub(super) costs: Costs,
}

impl Costs {
    /// The cost in an event, given by its index.
    pub(super) fn get(&self, event: usize) -> i64 {
        self.0.get(event).copied().unwrap_or(0)
    }

    /// Adds the costs of a line, one word per event.
    fn add<'t>(&mut self, words: impl Iterator<Item = &'t [u8]>) -> Result<()> {
        for (event, word) in words.enumerate() {
            let cost = signed_number(word).ok_or_else(not_a_number)?;
            if self.0.len() <= event {
                self.0.resize(event + 1, 0);
            }
            self.0[event] = self.0[event].saturating_add(cost);
        }
        Ok(())
    }
}

/// Parses a cost, which may be negative.
fn signed_number(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => Some(0i64.saturating_sub_unsigned(number(digits)?)),
        None => Some(i64::try_from(number(word)?).unwrap_or(i64::MAX)),
    }
}

/// The formula of a derived event: a sum of other events, each with a factor. Holds their indices and factors.
struct DerivedEvent(Vec<(usize, i64)>);

impl DerivedEvent {
    /// Parses a formula such as `Ir + 10 Bm` over the given events. `None` if it is invalid or names an unknown event.
    fn parse(formula: &[u8], events: &[Vec<u8>]) -> Option<Self> {
        let index_of = |name: &[u8]| events.iter().position(|event| event == name);
        let mut terms = Vec::new();
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
                b"*" if factor.is_some() => {}
                _ if needs_sign => return None,
                word if word[0].is_ascii_digit() => {
                    // `10Bm` without a blank also means 10 times Bm.
                    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = i64::try_from(decimal(&word[..digits])?).ok()?;
                    factor = Some(number);
                    if digits < word.len() {
                        terms.push((index_of(&word[digits..])?, sign.checked_mul(number)?));
                        needs_sign = true;
                    }
                }
                name => {
                    terms.push((index_of(name)?, sign.checked_mul(factor.unwrap_or(1))?));
                    needs_sign = true;
                }
            }
        }
        (needs_sign && !terms.is_empty()).then_some(Self(terms))
    }

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

/// The most derived events that are read; the rest are skipped. Each one adds a cost to every function and call, so a
/// file with many formulas would need a lot of memory.
const MOST_FORMULAS: usize = 64;

impl CallGraph {
    /// Adds the derived events. A formula may refer to another derived event.
    fn derive_events(&mut self, skipped: &mut Skipped) {
        let mut remaining = std::mem::take(&mut self.formulas);
        let too_many = remaining.split_off(MOST_FORMULAS.min(remaining.len()));
        // Each round adds the events whose formulas only need those of earlier rounds.
        loop {
            let before = remaining.len();
            remaining.retain(|(name, formula)| {
                if self.events.contains(name) {
                    return false;
                }
                let Some(derived) = DerivedEvent::parse(formula, &self.events) else { return true };
                self.add_derived(name, &derived);
                false
            });
            if remaining.len() == before {
                break;
            }
        }
        for _ in too_many {
            skipped.add(Error::new(format!("the file has more than {MOST_FORMULAS} formulas")));
        }
        for (name, formula) in remaining {
            let [name, formula] = [name, formula].map(|text| String::from_utf8_lossy(&text).into_owned());
            skipped.add(Error::new(format!("event {name} is {formula}, which uses events that are not in the file")));
        }
    }

    /// Adds an event, with its cost in all functions, lines and calls.
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
    fn cost_index(&mut self, function: u32) -> usize {
        let next = self.costs.len();
        let index = *self.cost_indices.entry(function).or_insert(next);
        if index == next {
            self.costs.push((function, Costs::default()));
            self.lines.push(BTreeMap::new());
        }
        index
    }
}

/// Reads a whole callgrind file from a stream.
pub(super) fn read(input: impl Read, with_lines: bool, warnings: &mut Warnings) -> Result<CallGraph> {
    let mut reader = GraphReader { with_lines, skipped: Skipped::new("line"), ..GraphReader::default() };
    // Number 0 is the empty text. It stands for the object and the file until the first `ob=` and `fl=` lines.
    reader.text(b"");
    reader.enter_thread(None);
    for chunk in ReadChunks::new(input, CHUNK_SIZE) {
        let (chunk_offset, bytes) = chunk?;
        for (line_offset, text) in lines(&bytes) {
            if let Err(error) = reader.read_line(Statement::parse(text)) {
                reader.skipped.add(error.at(chunk_offset + line_offset as u64));
            }
        }
    }
    let mut formulas = Skipped::new("formula");
    reader.graph.derive_events(&mut formulas);
    warnings.extend(reader.skipped.into_warning());
    warnings.extend(formulas.into_warning());
    Ok(reader.graph)
}

/// Number of a text in [`CallGraph::texts`]. 32 bits suffice, because every distinct text takes up memory.
type TextNumber = u32;

#[derive(Default)]
struct GraphReader {
    graph: CallGraph,
    /// Names of objects and files by their IDs; the index of the array is an [`IdSpace`].
    ids: [FxHashMap<u32, TextNumber>; 2],
    /// Numbers of functions in the graph, by their IDs in the file.
    function_ids: IdTable,
    /// Numbers of functions in the graph, by object, file and name.
    functions: FxHashMap<[TextNumber; 3], u32>,
    columns: Columns,
    /// True if self costs per line are requested.
    with_lines: bool,
    /// Decodes the positions of cost lines.
    decoder: PositionDecoder,
    /// True if the lines after `calls=` and `jump=` also move the base of relative positions, as the manual says.
    /// callgrind itself writes files in which they don't.
    every_line_moves: bool,
    /// Index of the current thread.
    thread: usize,
    /// Index of each thread by its number.
    threads: FxHashMap<Option<i32>, usize>,
    /// Index of the current function in the thread's self costs; `None` until it has some.
    cost_index: Option<usize>,
    /// The object (`ob=`) and file (`fl=`) of the current function.
    ob: TextNumber,
    fl: TextNumber,
    /// The source file of the next cost lines.
    file: TextNumber,
    /// The current function; `None` if its `fn=` is invalid.
    function: Option<u32>,
    /// The last `cob=`, `cfi=` and `cfn=` since the last call.
    cob: Option<TextNumber>,
    cfi: Option<TextNumber>,
    callee: Option<u32>,
    next_cost: NextCost,
    skipped: Skipped,
}

/// Whether the next cost line is a self cost, the inclusive cost of a call, or a jump.
#[derive(Debug, Default, Clone, Copy)]
enum NextCost {
    #[default]
    SelfCost,
    /// Holds the number of calls.
    Inclusive(u64),
    Jump,
}

impl GraphReader {
    fn text(&mut self, text: &[u8]) -> TextNumber {
        self.graph.texts.intern(text)
    }

    /// Attributes the costs that follow to this thread.
    fn enter_thread(&mut self, number: Option<i32>) {
        let threads = &mut self.graph.threads;
        self.thread = *self.threads.entry(number).or_insert(threads.len());
        if self.thread == threads.len() {
            threads.push(Thread { number, ..Thread::default() });
        }
        self.cost_index = None;
    }

    fn read_line(&mut self, line: Statement<'_>) -> Result<()> {
        match line {
            Statement::Spec(key, value) => self.read_spec(key, value),
            Statement::Cost(text) => self.read_cost(text),
            Statement::Header(word, value) => self.read_header(word, value),
            Statement::Other => Ok(()),
        }
    }

    fn read_header(&mut self, word: &[u8], value: &[u8]) -> Result<()> {
        let graph = &mut self.graph;
        match word {
            b"positions" => {
                self.columns = Columns::required(value)?;
                self.decoder = PositionDecoder::new(self.columns, self.every_line_moves);
            }
            b"creator" => {
                self.every_line_moves = !value.starts_with(b"callgrind-");
                if graph.creator.is_empty() {
                    graph.creator = value.to_vec();
                }
            }
            b"events" => {
                let events = event_names(value);
                if graph.events.is_empty() {
                    graph.events = events;
                } else if graph.events != events {
                    return Err(Error::new(
                        "the events of this part differ from those of the first; its costs count as those of the first",
                    ));
                }
            }
            // In a file that separates threads, each `part:` is followed by a `thread:` line.
            b"part" => self.enter_thread(None),
            b"thread" => self.enter_thread(decimal(value).and_then(|number| i32::try_from(number).ok())),
            b"event" => {
                if let Some((name, formula)) = parse_formula(value)
                    && (graph.formulas.len() > MOST_FORMULAS || !graph.formulas.iter().any(|(known, _)| *known == name))
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

    fn read_spec(&mut self, key: Keyword, value: &[u8]) -> Result<()> {
        match key {
            Keyword::Ob => self.ob = self.object_or_file(IdSpace::Object, value)?,
            Keyword::Fl => {
                self.fl = self.object_or_file(IdSpace::File, value)?;
                self.file = self.fl;
            }
            Keyword::Fi | Keyword::Fe => self.file = self.object_or_file(IdSpace::File, value)?,
            Keyword::Cob => self.cob = Some(self.object_or_file(IdSpace::Object, value)?),
            Keyword::Cfi => self.cfi = Some(self.object_or_file(IdSpace::File, value)?),
            Keyword::Jfi => _ = self.object_or_file(IdSpace::File, value)?,
            Keyword::Fn => {
                self.file = self.fl;
                (self.function, self.cost_index) = (None, None);
                self.decoder = PositionDecoder::new(self.columns, self.every_line_moves);
                self.function = Some(self.function(value, self.ob, self.fl)?);
            }
            Keyword::Cfn => {
                let (ob, file) = (self.cob.unwrap_or(self.ob), self.cfi.unwrap_or(self.file));
                self.callee = Some(self.function(value, ob, file)?);
            }
            Keyword::Jfn => _ = self.function(value, self.ob, self.file)?,
            Keyword::Calls => {
                let count = value.split(u8::is_ascii_whitespace).next().and_then(number);
                self.next_cost = NextCost::Inclusive(count.ok_or_else(|| Error::new("calls= has no count"))?);
            }
            Keyword::Jump | Keyword::Jcnd => self.next_cost = NextCost::Jump,
            Keyword::Frfn | Keyword::Rec => {}
        }
        Ok(())
    }

    /// The name of an object or file, given the value of its statement. Fails if that is an undefined ID.
    fn object_or_file(&mut self, space: IdSpace, value: &[u8]) -> Result<TextNumber> {
        match name_field(value) {
            NameField::Define(id, name) => {
                let text = self.text(name);
                self.ids[space as usize].insert(id, text);
                Ok(text)
            }
            NameField::Refer(id) => self.ids[space as usize].get(&id).copied().ok_or_else(|| undefined(id)),
            NameField::Plain(name) => Ok(self.text(name)),
        }
    }

    /// The number of a function, given the value of its statement. A new function is added. `ob` and `file` are ignored
    /// if the value refers to an ID that is already defined.
    fn function(&mut self, value: &[u8], ob: TextNumber, file: TextNumber) -> Result<u32> {
        let (id, name) = match name_field(value) {
            NameField::Refer(id) => return self.function_ids.get(id).ok_or_else(|| undefined(id)),
            NameField::Define(id, name) => (Some(id), name),
            NameField::Plain(name) => (None, name),
        };
        let name = self.text(name);
        let next = u32::try_from(self.graph.functions.len()).map_err(|_| Error::new("more than 2^32 functions"))?;
        let function = *self.functions.entry([ob, file, name]).or_insert(next);
        if function == next {
            self.graph.functions.push(GraphFunction { name, file, object: ob });
        }
        if let Some(id) = id {
            self.function_ids.insert(id, function);
        }
        Ok(function)
    }

    /// The source line of a cost line; 0 if it has none or belongs to a call.
    fn source_line(&mut self, text: &[u8], next_cost: NextCost) -> u32 {
        match next_cost {
            NextCost::SelfCost => {
                let (Some((position, _)), Some(column)) = (self.decoder.cost(text), self.columns.line) else {
                    return 0;
                };
                u32::try_from(position.0[column]).unwrap_or(0)
            }
            NextCost::Inclusive(_) | NextCost::Jump => {
                self.decoder.site(text);
                0
            }
        }
    }

    fn read_cost(&mut self, text: &[u8]) -> Result<()> {
        let next_cost = std::mem::take(&mut self.next_cost);
        let line = if self.with_lines { self.source_line(text, next_cost) } else { 0 };
        let costs = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(self.columns.count);
        let Some(function) = self.function else {
            return Err(Error::new("a cost line before any valid fn="));
        };
        let costs = costs.take(self.graph.events.len().max(1));
        let thread = &mut self.graph.threads[self.thread];
        match next_cost {
            NextCost::Jump => Ok(()),
            NextCost::SelfCost => {
                let index = *self.cost_index.get_or_insert_with(|| thread.cost_index(function));
                if line > 0 {
                    thread.lines[index].entry((self.file, line)).or_default().add(costs.clone())?;
                }
                thread.costs[index].1.add(costs)
            }
            NextCost::Inclusive(count) => {
                (self.cob, self.cfi) = (None, None);
                let callee = self.callee.take().ok_or_else(|| Error::new("calls= without a valid cfn="))?;
                let calls = thread.calls.entry((function, callee)).or_default();
                calls.count = calls.count.saturating_add(count);
                calls.costs.add(costs)
            }
        }
    }
}

/// Parses `NAME = FORMULA : LONG NAME`, the value of an `event:` header. `None` if it has no formula; then it is just
/// the long name of an event in the file.
fn parse_formula(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = value.split(|byte| *byte == b':').next().unwrap_or_default();
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, formula) = (&text[..equals], &text[equals + 1..]);
    Some((name.trim_ascii().to_vec(), formula.trim_ascii().to_vec()))
}

fn undefined(id: u32) -> Error {
    Error::new(format!("id ({id}) is not defined"))
}

fn not_a_number() -> Error {
    Error::new("a cost is not a whole number")
}
