//! A second reader of HotSpot's log, slow and obvious, line by line. It shares no code with jitgraft.

use std::collections::HashMap;

/// A compiled method.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) id: u32,
    /// The method's name, followed by the compiler.
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// In nanoseconds since the JVM started.
    pub(crate) stamp: u64,
    /// All memory of the method, including data.
    memory: std::ops::Range<u64>,
}

impl Compiled {
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
    /// In nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) methods: Vec<Compiled>,
    tasks: HashMap<u32, Vec<Inlined>>,
}

impl Log {
    pub(crate) fn inlined(&self, id: u32) -> Vec<Inlined> {
        self.tasks.get(&id).cloned().unwrap_or_default()
    }
}

pub(crate) fn read(text: &str) -> Log {
    let header = text.lines().find(|line| line.starts_with("<hotspot_log ")).unwrap();
    let began = value(header, "time_ms").unwrap().parse::<u64>().unwrap() * 1_000_000;
    let methods = text.lines().filter(|line| line.starts_with("<nmethod ")).map(method).collect();
    let mut tasks = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("<task ") {
            let id = value(line, "compile_id").unwrap().parse().unwrap();
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "</task>").collect();
            tasks.insert(id, task(&body));
        }
    }
    Log { began, methods, tasks }
}

fn value(line: &str, key: &str) -> Option<String> {
    let begin = line.find(&format!(" {key}='"))? + key.len() + 3;
    let raw = &line[begin..begin + line[begin..].find('\'')?];
    let mut plain = raw.replace("&lt;", "<").replace("&gt;", ">").replace("&apos;", "'").replace("&amp;", "&");
    while let Some(at) = plain.find("\\u") {
        let letter = char::from_u32(u32::from_str_radix(&plain[at + 2..at + 6], 16).unwrap()).unwrap();
        plain.replace_range(at..at + 6, &letter.to_string());
    }
    Some(plain)
}

fn method(line: &str) -> Compiled {
    let text = |key: &str| value(line, key).unwrap_or_else(|| panic!("no {key} in {line}"));
    let hex = |key: &str| u64::from_str_radix(&text(key)[2..], 16).unwrap();
    let (entry, address, size) = (hex("entry"), hex("address"), text("size").parse::<u64>().unwrap());
    let name = text("method");
    let words: Vec<&str> = name.split(' ').collect();
    let [class, method, descriptor] = words[..] else { panic!("{name}") };
    let mark = match &text("compiler")[..] {
        "" => String::new(),
        compiler => format!(" [{compiler}]"),
    };
    // JDK 25 keeps its other data elsewhere.
    let end = value(line, "oops_offset").map_or(size, |offset| offset.parse().unwrap());
    let (seconds, millis) = {
        let stamp = text("stamp");
        let (seconds, millis) = stamp.split_once('.').unwrap();
        (seconds.parse::<u64>().unwrap(), millis.parse::<u64>().unwrap())
    };
    Compiled {
        id: text("compile_id").parse().unwrap(),
        name: spelled(class, method, descriptor) + &mark,
        start: entry,
        size: address + end - entry,
        stamp: (seconds * 1000 + millis) * 1_000_000,
        memory: address..address + size,
    }
}

fn spelled(class: &str, method: &str, descriptor: &str) -> String {
    let mut letters = descriptor[1..].chars().peekable();
    let mut arguments = Vec::new();
    while letters.peek() != Some(&')') {
        arguments.push(one(&mut letters));
    }
    letters.next();
    format!("{} {class}.{method}({})", one(&mut letters), arguments.join(", "))
}

fn one(letters: &mut impl Iterator<Item = char>) -> String {
    match letters.next().unwrap() {
        '[' => one(letters) + "[]",
        'L' => letters.take_while(|letter| *letter != ';').collect::<String>().replace('/', "."),
        letter => {
            let names = [
                ('B', "byte"),
                ('C', "char"),
                ('D', "double"),
                ('F', "float"),
                ('I', "int"),
                ('J', "long"),
                ('S', "short"),
                ('V', "void"),
                ('Z', "boolean"),
            ];
            names.iter().find(|(own, _)| *own == letter).unwrap().1.to_owned()
        }
    }
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
                put(&mut root, &callers, call);
            }
            callers.clear();
        }
    }
    let mut told = Vec::new();
    root.calls.sort_by_key(|call| call.bytecode);
    root.calls.into_iter().for_each(|call| tell(call, 0, &names, &mut told));
    told
}

fn put(caller: &mut Call, callers: &[(String, usize)], call: Call) {
    // `callers` lists the callers of `call`, innermost first; the last one is `caller`. If the next one was inlined
    // into `caller`, the call belongs in there.
    if let [.., (method, _), (_, at)] = callers
        && let Some(inner) = caller.calls.iter_mut().find(|inner| inner.method == *method && inner.bytecode == *at)
    {
        return put(inner, &callers[..callers.len() - 1], call);
    }
    caller.calls.push(call);
}

fn tell(mut call: Call, depth: usize, names: &HashMap<String, String>, told: &mut Vec<Inlined>) {
    told.push(Inlined { depth, bytecode: call.bytecode, name: names[&format!("method {}", call.method)].clone() });
    call.calls.sort_by_key(|call| call.bytecode);
    call.calls.into_iter().for_each(|call| tell(call, depth + 1, names, told));
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
