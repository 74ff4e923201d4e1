//! A second reader of what else HotSpot's log states about compilations: the memory of each compiled method, and the
//! calls that were inlined into it. Like `second_readers/hotspot.rs`, it shares no code with jitgraft.

use super::second_readers::hotspot::{Compiled, one, value};
use std::collections::HashMap;

/// A compiled method, and what only tests of the program compare.
#[derive(Debug, Clone)]
pub(crate) struct Compilation {
    pub(crate) method: Compiled,
    /// The calls inlined into the method, in the order of their positions.
    pub(crate) inlined: Vec<Inlined>,
    /// All memory of the method, including data.
    memory: std::ops::Range<u64>,
}

impl Compilation {
    pub(crate) fn shares_memory_with(&self, other: &Self) -> bool {
        self.memory.start < other.memory.end && other.memory.start < self.memory.end
    }
}

/// An inlined call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inlined {
    pub(crate) depth: usize,
    pub(crate) bytecode: usize,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Log {
    /// When the JVM started, in nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) compilations: Vec<Compilation>,
}

pub(crate) fn read(text: &str) -> Log {
    let header = text.lines().find(|line| line.starts_with("<hotspot_log ")).unwrap();
    let began = value(header, "time_ms").unwrap().parse::<u64>().unwrap() * 1_000_000;
    let mut inlined: HashMap<String, Vec<Inlined>> = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("<task ") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "</task>").collect();
            inlined.insert(value(line, "compile_id").unwrap(), task(&body));
        }
    }
    let elements = text.lines().filter(|line| line.starts_with("<nmethod "));
    let mut compilations = Vec::new();
    for (method, element) in super::second_readers::hotspot::read(text).into_iter().zip(elements) {
        let start = u64::from_str_radix(&value(element, "address").unwrap()[2..], 16).unwrap();
        let size: u64 = value(element, "size").unwrap().parse().unwrap();
        let inlined = inlined.get(&value(element, "compile_id").unwrap()).cloned().unwrap_or_default();
        compilations.push(Compilation { method, inlined, memory: start..start + size });
    }
    Log { began, compilations }
}

/// A call, and the calls inlined into it.
#[derive(Debug, Default)]
struct Call {
    method: String,
    bytecode: usize,
    calls: Vec<Self>,
}

/// The inlined calls in the lines of a compilation task.
fn task(lines: &[&str]) -> Vec<Inlined> {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut root = Call::default();
    let mut lines = lines.iter();
    let mut callers: Vec<(String, usize)> = Vec::new();
    while let Some(line) = lines.next() {
        note(line, &mut names);
        if line.starts_with("<jvms ") {
            callers.push((value(line, "method").unwrap(), value(line, "bci").unwrap().parse().unwrap()));
        } else if line.starts_with("<late_inline ") {
            callers.clear();
        } else if line.starts_with("<parse ") {
            let mut call = parse(line, &mut lines, &mut names);
            if callers.is_empty() {
                root = call;
            } else {
                call.bytecode = callers[0].1;
                insert_call(&mut root, &callers, call);
            }
            callers.clear();
        }
    }
    let mut inlined = Vec::new();
    root.calls.sort_by_key(|call| call.bytecode);
    root.calls.into_iter().for_each(|call| list_call(call, 0, &names, &mut inlined));
    inlined
}

fn insert_call(caller: &mut Call, callers: &[(String, usize)], call: Call) {
    // `callers` lists the callers of `call`, innermost first; the last one is `caller`. If the next one was inlined
    // into `caller`, the call belongs in there.
    if let [.., (method, _), (_, at)] = callers
        && let Some(inner) = caller.calls.iter_mut().find(|inner| inner.method == *method && inner.bytecode == *at)
    {
        return insert_call(inner, &callers[..callers.len() - 1], call);
    }
    caller.calls.push(call);
}

fn list_call(mut call: Call, depth: usize, names: &HashMap<String, String>, inlined: &mut Vec<Inlined>) {
    inlined.push(Inlined { depth, bytecode: call.bytecode, name: names[&format!("method {}", call.method)].clone() });
    call.calls.sort_by_key(|call| call.bytecode);
    call.calls.into_iter().for_each(|call| list_call(call, depth + 1, names, inlined));
}

/// Reads a call up to its end tag.
fn parse<'a>(line: &str, lines: &mut impl Iterator<Item = &'a &'a str>, names: &mut HashMap<String, String>) -> Call {
    let mut call = Call { method: value(line, "method").unwrap(), ..Call::default() };
    let mut at = 0;
    while let Some(line) = lines.next() {
        note(line, names);
        if *line == "</parse>" {
            break;
        } else if line.starts_with("<bc ") {
            at = value(line, "bci").unwrap().parse().unwrap();
        } else if line.starts_with("<parse ") {
            // A trait object: with the iterator's own type, the recursion would need infinitely many types.
            let dynamic: &mut dyn Iterator<Item = &'a &'a str> = lines;
            let inner = parse(line, &mut { dynamic }, names);
            call.calls.push(Call { bytecode: at, ..inner });
        }
    }
    call
}

/// Remembers the name of a type or method ID.
fn note(line: &str, names: &mut HashMap<String, String>) {
    let text = |key: &str| value(line, key).unwrap_or_default();
    let of_type = |id: &str, names: &HashMap<String, String>| names[&format!("type {id}")].clone();
    if line.starts_with("<type ") || line.starts_with("<klass ") {
        let name = text("name");
        let name = if name.starts_with('[') { one(&mut name.chars()) } else { name };
        names.insert(format!("type {}", text("id")), name);
    } else if line.starts_with("<method ") {
        let arguments = text("arguments");
        let arguments: Vec<_> = arguments.split_whitespace().map(|id| of_type(id, names)).collect();
        let (result, class) = (of_type(&text("return"), names), of_type(&text("holder"), names));
        let name = format!("{result} {class}.{}({})", text("name"), arguments.join(", "));
        names.insert(format!("method {}", text("id")), name);
    }
}

/// Wall-clock time minus the recording's time, in nanoseconds, from the CLOCK_DATA feature of perf.data.
pub(crate) fn clock_shift(recording: &[u8]) -> i128 {
    const CLOCK_DATA: u64 = 29;
    let number = |at: usize| u64::from_le_bytes(recording[at..at + 8].try_into().unwrap());
    let features = number(72);
    assert!(features >> CLOCK_DATA & 1 == 1, "no reference time");
    let place = (features & ((1 << CLOCK_DATA) - 1)).count_ones() as usize;
    let sections = (number(40) + number(48)) as usize;
    let at = number(sections + 16 * place) as usize;
    i128::from(number(at + 16)) - i128::from(number(at + 8))
}
