//! Reads a file as a call graph: functions with self costs, and calls with inclusive costs.
//!
//! A function is what its id was defined as: name, file and object at that place. Without ids it is name, file and
//! object at each use.

use super::chunks::{CHUNK, Chunks};
use super::line::{Key, Line, NameField, Space, decimal, line, lines, name_field};
use super::positions::{Columns, number};
use crate::error::{Error, Result, Skipped, Warnings};
use rustc_hash::FxHashMap;
use std::io::Read;
use std::path::Path;

/// The graph of all parts of a file together.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The names of the events.
    pub(super) events: Vec<Vec<u8>>,
    /// The functions in order of appearance.
    pub(super) functions: Vec<Function>,
    /// Calls by (caller, callee), numbers in `functions`.
    pub(super) calls: FxHashMap<(u32, u32), Calls>,
    /// `cmd:`
    pub(super) command: Vec<u8>,
    /// `pid:`
    pub(super) pid: Option<i32>,
}

/// One function.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: Box<[u8]>,
    pub(super) file: Box<[u8]>,
    pub(super) object: Box<[u8]>,
    /// Self cost for each event; events at the end may be missing.
    pub(super) costs: Vec<u64>,
}

/// All calls from one function to another.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Calls {
    /// How many.
    pub(super) count: u64,
    /// Inclusive cost of the first event.
    pub(super) cost: u64,
}

/// Reads a whole stream.
pub(super) fn read(input: impl Read, warnings: &mut Warnings) -> Result<Graph> {
    let mut reader = Reader::default();
    for chunk in Chunks::new(input, CHUNK) {
        let chunk = chunk?;
        for (at, text) in lines(&chunk.bytes) {
            if let Err(error) = reader.line(line(text)) {
                reader.skipped.add(error.at(chunk.offset + at as u64));
            }
        }
    }
    reader.skipped.report(Path::new("callgrind"), warnings);
    Ok(reader.graph)
}

type Text = u32;

struct Reader {
    graph: Graph,
    texts: Vec<Box<[u8]>>,
    numbers: FxHashMap<Box<[u8]>, Text>,
    /// What ids of objects and files stand for.
    ids: [FxHashMap<u32, Text>; 2],
    /// What ids of functions stand for.
    function_ids: FxHashMap<u32, u32>,
    known: FxHashMap<[Text; 3], u32>,
    columns: Columns,
    ob: Text,
    fl: Text,
    file: Text,
    function: Option<u32>,
    cob: Option<Text>,
    cfi: Option<Text>,
    callee: Option<u32>,
    expect: Expect,
    skipped: Skipped,
}

/// What the next cost line is.
#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    SelfCost,
    Inclusive(u64),
    Jump,
}

/// The number of the empty text.
const NOTHING: Text = 0;

impl Default for Reader {
    fn default() -> Self {
        let mut reader = Self {
            graph: Graph::default(),
            texts: Vec::new(),
            numbers: FxHashMap::default(),
            ids: Default::default(),
            function_ids: FxHashMap::default(),
            known: FxHashMap::default(),
            columns: Columns::default(),
            ob: NOTHING,
            fl: NOTHING,
            file: NOTHING,
            function: None,
            cob: None,
            cfi: None,
            callee: None,
            expect: Expect::default(),
            skipped: Skipped::new("line"),
        };
        reader.text(b"");
        reader
    }
}

impl Reader {
    fn text(&mut self, text: &[u8]) -> Text {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        // Each takes more than a byte of memory: they cannot be as many as that.
        let number = u32::try_from(self.texts.len()).unwrap_or(NOTHING);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    fn line(&mut self, line: Line<'_>) -> Result<()> {
        match line {
            Line::Spec(key, value) => self.spec(key, value),
            Line::Cost(text) => self.cost(text),
            Line::Header(word, value) => self.header(word, value),
            Line::Other => Ok(()),
        }
    }

    fn header(&mut self, word: &[u8], value: &[u8]) -> Result<()> {
        let graph = &mut self.graph;
        match word {
            b"positions" => {
                self.columns =
                    Columns::parse(value).ok_or_else(|| Error::new("positions: lists more than instr, bb and line"))?;
            }
            b"events" => {
                let events: Vec<_> =
                    value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect();
                if graph.events.is_empty() {
                    graph.events = events;
                } else if graph.events != events {
                    return Err(Error::new(
                        "the events: of this part are not those of the first: its costs are counted as those",
                    ));
                }
            }
            b"cmd" if graph.command.is_empty() => graph.command = value.to_vec(),
            b"pid" if graph.pid.is_none() => graph.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            _ => {}
        }
        Ok(())
    }

    fn spec(&mut self, key: Key, value: &[u8]) -> Result<()> {
        match key {
            Key::Ob => self.ob = self.place(Space::Object, value)?,
            Key::Fl => {
                self.fl = self.place(Space::File, value)?;
                self.file = self.fl;
            }
            Key::Fi | Key::Fe => self.file = self.place(Space::File, value)?,
            Key::Cob => self.cob = Some(self.place(Space::Object, value)?),
            Key::Cfi => self.cfi = Some(self.place(Space::File, value)?),
            Key::Jfi => _ = self.place(Space::File, value)?,
            Key::Fn => {
                self.file = self.fl;
                self.function = None;
                self.function = Some(self.function(value, self.ob, self.fl)?);
            }
            Key::Cfn => {
                let (ob, file) = (self.cob.unwrap_or(self.ob), self.cfi.unwrap_or(self.file));
                self.callee = Some(self.function(value, ob, file)?);
            }
            Key::Jfn => _ = self.function(value, self.ob, self.file)?,
            Key::Calls => {
                let count = value.split(u8::is_ascii_whitespace).next().and_then(number);
                self.expect = Expect::Inclusive(count.ok_or_else(|| Error::new("calls= has no count"))?);
            }
            Key::Jump | Key::Jcnd => self.expect = Expect::Jump,
            Key::Frfn | Key::Rec => {}
        }
        Ok(())
    }

    fn place(&mut self, space: Space, value: &[u8]) -> Result<Text> {
        let ids = space as usize;
        match name_field(value) {
            NameField::Define(id, name) => {
                let text = self.text(name);
                self.ids[ids].insert(id, text);
                Ok(text)
            }
            NameField::Refer(id) => self.ids[ids].get(&id).copied().ok_or_else(|| undefined(id)),
            NameField::Plain(name) => Ok(self.text(name)),
        }
    }

    fn function(&mut self, value: &[u8], ob: Text, file: Text) -> Result<u32> {
        let (id, name) = match name_field(value) {
            NameField::Refer(id) => return self.function_ids.get(&id).copied().ok_or_else(|| undefined(id)),
            NameField::Define(id, name) => (Some(id), name),
            NameField::Plain(name) => (None, name),
        };
        let name = self.text(name);
        let next = u32::try_from(self.graph.functions.len()).map_err(|_| Error::new("more than 2^32 functions"))?;
        let function = *self.known.entry([ob, file, name]).or_insert(next);
        if function == next {
            let text = |text: Text| self.texts[text as usize].clone();
            self.graph.functions.push(Function {
                name: text(name),
                file: text(file),
                object: text(ob),
                costs: Vec::new(),
            });
        }
        if let Some(id) = id {
            self.function_ids.insert(id, function);
        }
        Ok(function)
    }

    fn cost(&mut self, text: &[u8]) -> Result<()> {
        let expect = std::mem::take(&mut self.expect);
        let costs = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(self.columns.count);
        let Some(function) = self.function else {
            return Err(Error::new("a cost line before any fn= that is understood"));
        };
        match expect {
            Expect::Jump => Ok(()),
            Expect::SelfCost => {
                let sums = &mut self.graph.functions[function as usize].costs;
                for (event, word) in costs.enumerate().take(self.graph.events.len().max(1)) {
                    let cost = number(word).ok_or_else(not_a_number)?;
                    match sums.get_mut(event) {
                        Some(sum) => *sum = sum.saturating_add(cost),
                        None => sums.push(cost),
                    }
                }
                Ok(())
            }
            Expect::Inclusive(count) => {
                (self.cob, self.cfi) = (None, None);
                let callee =
                    self.callee.take().ok_or_else(|| Error::new("calls= without a cfn= that is understood"))?;
                let cost = costs.map(number).next().unwrap_or(Some(0)).ok_or_else(not_a_number)?;
                let calls = self.graph.calls.entry((function, callee)).or_default();
                calls.count = calls.count.saturating_add(count);
                calls.cost = calls.cost.saturating_add(cost);
                Ok(())
            }
        }
    }
}

fn undefined(id: u32) -> Error {
    Error::new(format!("id ({id}) is not defined"))
}

fn not_a_number() -> Error {
    Error::new("a cost is not a whole number")
}
