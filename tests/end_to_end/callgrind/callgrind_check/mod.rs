//! An independent reader of callgrind files, as simple as can be: whole file, names as strings, no shared code with
//! the crate. Functions are (object, file, name) as KCachegrind understands them; ids hold for the whole file.

mod graph;

use std::collections::BTreeMap;

pub(crate) type Node = (String, String, String);
pub(crate) type Costs = Vec<u64>;

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// `summary:` and `totals:` lines, in order.
    pub(crate) totals: Vec<String>,
    /// Self cost of each function.
    pub(crate) nodes: BTreeMap<Node, Costs>,
    /// Calls and inclusive cost of each edge.
    pub(crate) edges: BTreeMap<(Node, Node), (u64, Costs)>,
    /// Self cost by address, of blocks in `???`.
    pub(crate) unknown: BTreeMap<u64, Costs>,
    /// Source positions with self cost: (file, line) of each function.
    pub(crate) lines: BTreeMap<(Node, String, u64), Costs>,
    /// Names defined more than once between two part headers, or used without a definition since.
    pub(crate) id_errors: Vec<String>,
}

#[derive(Default)]
struct Reader {
    model: Model,
    names: [BTreeMap<u64, String>; 3],
    defined_here: [std::collections::BTreeSet<u64>; 3],
    check_ids: bool,
    by_valgrind: bool,
    columns: Vec<String>,
    ob: String,
    fl: String,
    file: String,
    function: Option<Node>,
    cob: Option<String>,
    cfi: Option<String>,
    cfn: Option<String>,
    base: Vec<u64>,
    expect: Option<Site>,
    /// The definitions of IDs of functions, if that is what they stand for wherever they are used, as in KCachegrind.
    defined: Option<BTreeMap<u64, Node>>,
    callee: Option<Node>,
}

enum Site {
    Call(u64),
    Jump,
}

impl Model {
    /// Every function that is named anywhere.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Node> {
        self.nodes.keys().chain(self.edges.keys().flat_map(|(caller, callee)| [caller, callee]))
    }
}

pub(crate) fn add(to: &mut Costs, costs: &[u64]) {
    to.resize(to.len().max(costs.len()), 0);
    for (sum, cost) in to.iter_mut().zip(costs) {
        *sum += cost;
    }
}

pub(crate) fn read(text: &[u8]) -> Model {
    let text = String::from_utf8_lossy(text);
    Reader::default().model(&text)
}

/// The same; a function's ID stands for the function that it was defined as, whatever object and file are current.
pub(crate) fn read_as_defined(text: &[u8]) -> Model {
    let text = String::from_utf8_lossy(text);
    Reader { defined: Some(BTreeMap::new()), ..Reader::default() }.model(&text)
}

impl Reader {
    fn model(mut self, text: &str) -> Model {
        self.columns = vec!["line".into()];
        text.lines().for_each(|line| self.line(line.trim_end()));
        self.model
    }

    /// A function that is named in this object and file.
    fn function(&mut self, value: &str, object: String, file: String) -> Node {
        let node = (object, file, self.name(2, value));
        let id = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (Some(defined), Some((Ok(id), name))) =
            (&mut self.defined, id.map(|(id, name)| (id.parse::<u64>(), name.trim_start())))
        else {
            return node;
        };
        if !name.is_empty() {
            defined.insert(id, node.clone());
        }
        defined.get(&id).cloned().unwrap_or(node)
    }

    fn name(&mut self, space: usize, value: &str) -> String {
        let digits = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let Some((Ok(id), name)) = digits.map(|(id, name)| (id.parse::<u64>(), name.trim_start())) else {
            return value.into();
        };
        if name.is_empty() {
            if self.check_ids && !self.defined_here[space].contains(&id) {
                self.model.id_errors.push(format!("undefined {space}/{id}"));
            }
            return self.names[space].get(&id).cloned().unwrap_or_else(|| format!("UNDEFINED {id}"));
        }
        if !self.defined_here[space].insert(id) {
            self.model.id_errors.push(format!("redefined {space}/{id}: {name}"));
        }
        self.names[space].insert(id, name.into());
        name.into()
    }

    fn line(&mut self, line: &str) {
        let Some(first) = line.chars().next() else { return };
        if first.is_ascii_digit() || "+-*".contains(first) {
            return self.cost(line);
        }
        match line.split_once(['=', ':']) {
            Some((key, value)) if line.as_bytes()[key.len()] == b'=' => self.spec(key, value),
            Some((key, value)) => self.header(key, value.trim(), line),
            None => {}
        }
    }

    fn header(&mut self, key: &str, value: &str, line: &str) {
        match key {
            "summary" | "totals" => self.model.totals.push(line.into()),
            "creator" => self.by_valgrind = value.starts_with("callgrind-"),
            "positions" => self.columns = value.split_whitespace().map(Into::into).collect(),
            "part" => {
                self.check_ids = true;
                self.defined_here = Default::default();
            }
            _ => {}
        }
    }

    fn spec(&mut self, key: &str, value: &str) {
        match key {
            "ob" => self.ob = self.name(0, value),
            "fl" => {
                self.fl = self.name(1, value);
                self.file = self.fl.clone();
            }
            "fi" | "fe" => self.file = self.name(1, value),
            "fn" => {
                self.file = self.fl.clone();
                self.function = Some(self.function(value, self.ob.clone(), self.fl.clone()));
                self.base.clear();
            }
            "cob" => self.cob = Some(self.name(0, value)),
            "cfi" | "cfl" => self.cfi = Some(self.name(1, value)),
            "cfn" => {
                let object = self.cob.clone().unwrap_or_else(|| self.ob.clone());
                let file = self.cfi.clone().unwrap_or_else(|| self.file.clone());
                let callee = self.function(value, object, file);
                self.cfn = Some(callee.2.clone());
                self.callee = self.defined.is_some().then_some(callee);
            }
            "calls" => self.expect = Some(Site::Call(value.split_whitespace().next().unwrap().parse().unwrap())),
            "jump" | "jcnd" => self.expect = Some(Site::Jump),
            "jfi" => _ = self.name(1, value),
            "jfn" => _ = self.name(2, value),
            _ => {}
        }
    }

    fn cost(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut position = Vec::new();
        for column in 0..self.columns.len() {
            let word = words.next().unwrap_or_else(|| panic!("short line {line:?}"));
            let base = self.base.get(column).copied();
            position.push(match word.split_at(1) {
                ("*", "") => base.expect(line),
                ("+", n) => base.expect(line) + n.parse::<u64>().unwrap(),
                ("-", n) => base.expect(line) - n.parse::<u64>().unwrap(),
                _ => word
                    .strip_prefix("0x")
                    .map_or_else(|| word.parse().unwrap(), |hex| u64::from_str_radix(hex, 16).unwrap()),
            });
        }
        let costs: Costs = words.map(|word| word.parse().unwrap_or_else(|_| panic!("bad cost in {line:?}"))).collect();
        let site = self.expect.take();
        if site.is_none() || !self.by_valgrind || self.base.is_empty() {
            self.base.clone_from(&position);
        }
        let function = self.function.clone().expect("a cost line outside of any function");
        match site {
            None => self.self_cost(function, &position, &costs),
            Some(Site::Jump) => {}
            Some(Site::Call(count)) => {
                let callee = (
                    self.cob.take().unwrap_or_else(|| self.ob.clone()),
                    self.cfi.take().unwrap_or_else(|| self.file.clone()),
                    self.cfn.take().expect("calls= without cfn="),
                );
                let callee = self.callee.take().unwrap_or(callee);
                let edge = self.model.edges.entry((function, callee)).or_default();
                edge.0 += count;
                add(&mut edge.1, &costs);
            }
        }
    }

    fn self_cost(&mut self, function: Node, position: &[u64], costs: &[u64]) {
        let column = |name: &str| self.columns.iter().position(|column| column == name).map(|at| position[at]);
        if let (true, Some(addr)) = (self.ob == "???", column("instr")) {
            add(self.model.unknown.entry(addr).or_default(), costs);
        }
        if let Some(line) = column("line") {
            add(self.model.lines.entry((function.clone(), self.file.clone(), line)).or_default(), costs);
        }
        add(self.model.nodes.entry(function).or_default(), costs);
    }
}

/// A code range, as a line of a perf map or a record of a jitdump reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
}

/// The lines of a perf map.
pub(crate) fn perf_map(text: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in String::from_utf8_lossy(text).lines() {
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        let (Some(start), Some(size)) = (number(), number()) else { continue };
        entries.push(Entry { start, end: start + size, name: words.next().unwrap_or_default().to_owned() });
    }
    entries
}

/// The JIT_CODE_LOAD records of a little-endian jitdump.
pub(crate) fn jitdump(bytes: &[u8]) -> Vec<Entry> {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (mut entries, mut at) = (Vec::new(), u32_at(8));
    while at + 16 <= bytes.len() {
        let (id, size) = (u32_at(at), u32_at(at + 4));
        if id == 0 {
            let (start, name) = (u64_at(at + 32), &bytes[at + 56..at + size]);
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            entries.push(Entry { start, end: start + u64_at(at + 40), name });
        }
        at += size;
    }
    entries
}

/// Sorted by address; of overlapping entries the later wins.
pub(crate) fn by_address(all: Vec<Entry>) -> Vec<Entry> {
    let mut entries: BTreeMap<u64, Entry> = BTreeMap::new();
    for Entry { start, end, name } in all {
        let below = entries.range(..start).next_back().map(|(at, _)| *at).filter(|at| entries[at].end > start);
        let covered: Vec<u64> = below.into_iter().chain(entries.range(start..end).map(|(at, _)| *at)).collect();
        for at in covered {
            let Some(old) = entries.remove(&at) else { continue };
            if old.start < start {
                entries.insert(old.start, Entry { end: start, ..old.clone() });
            }
            if old.end > end {
                entries.insert(end, Entry { start: end, ..old });
            }
        }
        if start < end {
            entries.insert(start, Entry { start, end, name });
        }
    }
    entries.into_values().collect()
}

/// The raw address that a function is named by, if that is all its name.
pub(crate) fn raw(name: &str) -> Option<u64> {
    let head = name.split(['\'', ' ']).next()?;
    let digits = head.strip_prefix("0x").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The figures of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) entries_with_cost: usize,
    pub(crate) jit_nodes: usize,
}

/// Everything that must hold between a file and its named copy. `map` is what names its code, by address.
/// `object` is the new object's name.
pub(crate) fn compare(before: &Model, after: &Model, map: &[Entry], object: &str) -> Found {
    assert_eq!(before.totals, after.totals, "summary and totals");
    let covered = |addr: u64| {
        let at = map.partition_point(|entry| entry.start <= addr);
        at.checked_sub(1).map(|at| &map[at]).filter(|entry| addr < entry.end)
    };
    let jit = |node: &Node| node.0 == object;
    // No covered raw name is left where the object is unknown.
    for (ob, _, name) in after.nodes.keys().chain(after.edges.keys().map(|(_, callee)| callee)) {
        assert!(ob != "???" || raw(name).and_then(covered).is_none(), "{name} is covered and was left");
    }
    // Self cost by entry name. Entries of one name are summed: their nodes are distinguished by a suffix.
    let mut by_addr: BTreeMap<&str, Costs> = BTreeMap::new();
    for (addr, costs) in &before.unknown {
        if let Some(entry) = covered(*addr) {
            add(by_addr.entry(&entry.name).or_default(), costs);
        }
    }
    let mut by_node: BTreeMap<&str, Costs> = BTreeMap::new();
    for (node, costs) in after.nodes.iter().filter(|(node, _)| jit(node)) {
        let name = by_addr.keys().filter(|name| is_node_of(&node.2, name)).max_by_key(|name| name.len());
        let name = name.unwrap_or_else(|| panic!("{node:?} has cost, its entry has none"));
        add(by_node.entry(name).or_default(), costs);
    }
    assert_eq!(by_addr, by_node, "self cost by map entry");
    // Functions that are not in the map stay.
    let real = |node: &Node| node.0 != "???" && node.0 != object;
    let nodes = |model: &Model| -> BTreeMap<Node, Costs> {
        model.nodes.clone().into_iter().filter(|(node, _)| real(node)).collect()
    };
    assert_eq!(renamed(nodes(before), after), nodes(after), "functions of real objects");
    for model in [before, after] {
        for (caller, callee) in model.edges.keys() {
            assert!(!jit(callee) || !jit(caller) || std::ptr::eq(model, after));
        }
    }
    let edges = |model: &Model| -> BTreeMap<(String, String), (u64, Costs)> {
        let mut sums: BTreeMap<(String, String), (u64, Costs)> = BTreeMap::new();
        for ((caller, callee), (calls, costs)) in &model.edges {
            let end = |node: &Node| {
                if real(node) { format!("{}|{}|{}", node.0, node.1, head(&node.2)) } else { "unknown".into() }
            };
            let (caller, callee) = (end(caller), end(callee));
            if caller != "unknown" {
                let sum = sums.entry((caller, callee)).or_default();
                sum.0 += calls;
                add(&mut sum.1, costs);
            }
        }
        sums
    };
    assert_eq!(edges(before), edges(after), "edges of functions of real objects");
    let files: BTreeMap<&str, &str> =
        after.nodes.keys().filter(|node| jit(node)).map(|node| (&node.2[..], &node.1[..])).collect();
    for (_, callee) in after.edges.keys().filter(|(_, callee)| jit(callee)) {
        if let Some(file) = files.get(&callee.2[..]) {
            assert_eq!(callee.1, *file, "{} is split in two", callee.2);
        }
    }
    Found { entries_with_cost: by_addr.len(), jit_nodes: files.len() }
}

/// A name without its callers (`--separate-callers`), which may be raw.
fn head(name: &str) -> &str {
    name.split('\'').next().unwrap_or(name)
}

fn renamed(nodes: BTreeMap<Node, Costs>, after: &Model) -> BTreeMap<Node, Costs> {
    // Raw callers in a chain are replaced: such names are compared by their heads only.
    let chain = |name: &str| name.contains("'0x");
    if !nodes.keys().any(|node| chain(&node.2)) {
        return nodes;
    }
    let heads = |nodes: &BTreeMap<Node, Costs>| {
        let mut sums: BTreeMap<String, Costs> = BTreeMap::new();
        for (node, costs) in nodes.iter().filter(|(node, _)| node.0 != "???") {
            add(sums.entry(format!("{}|{}|{}", node.0, node.1, head(&node.2))).or_default(), costs);
        }
        sums
    };
    let object = after.nodes.keys().map(|node| &node.0).find(|ob| ob.contains("jitted-")).cloned().unwrap_or_default();
    let real: BTreeMap<Node, Costs> =
        after.nodes.clone().into_iter().filter(|(node, _)| node.0 != "???" && node.0 != object).collect();
    assert_eq!(heads(&nodes), heads(&real), "functions of real objects by head");
    real
}

/// True if a node is of that entry: its name, `#address` for duplicates, `'N` for recursion, `'caller…`.
fn is_node_of(node: &str, name: &str) -> bool {
    let Some(rest) = node.strip_prefix(name) else { return false };
    rest.is_empty() || rest.starts_with('\'') || rest.starts_with("#0x") || rest.starts_with(' ')
}
