//! Writes stacks as a callgrind file: self costs by instruction and line, and for each pair of functions the calls
//! between them.
//!
//! A sampled stack knows no numbers of calls: what stands behind `calls=` is the number of samples that had the call.
//! Readers take a function's inclusive cost to be its own and that of its calls. So that this is the weight of the
//! stacks that it occurs in, only one call of each function is charged for a stack, the last one, and none of the
//! function that ran: the calls of a recursion before it are told, but cost nothing.

use crate::error::Result;
use crate::formats::callgrind::grammar::{Columns, IdSpace, Position, PositionEncoder};
use crate::formats::format::WriteOptions;
use crate::model::label;
use crate::model::stacks::{Frame, FrameId, NameId, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes all events.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let mut sums = CostSums::new(profile);
    for (event, series) in profile.series.iter().enumerate() {
        for row in &series.rows {
            let stack: Vec<FrameId> = profile.frames_up(row.stack).collect();
            sums.add(event, &stack, options.weight.of(row), row.count);
        }
    }
    GraphWriter { profile, sums: &sums, ids: Default::default(), text: Vec::new() }.run(out)
}

type FunctionId = usize;

/// Where in a function: source file, address, line.
type CostSite = (Option<NameId>, u64, u32);

struct CostSums<'a> {
    profile: &'a Profile,
    events: usize,
    has_addrs: bool,
    of_frame: Vec<FunctionId>,
    functions: Vec<FunctionCosts>,
}

struct FunctionCosts {
    /// A frame of it that says its name, module and file.
    frame: FrameId,
    /// Lowest address and line seen.
    entry: (u64, u32),
    own: BTreeMap<CostSite, Vec<u64>>,
    calls: BTreeMap<(CostSite, FunctionId), (u64, Vec<u64>)>,
}

impl<'a> CostSums<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut sums = Self {
            profile,
            events: profile.series.len(),
            has_addrs: false,
            of_frame: Vec::new(),
            functions: Vec::new(),
        };
        let mut numbers = FxHashMap::default();
        for (id, frame) in profile.frames() {
            let next = sums.functions.len();
            let function = *numbers.entry((label::function(profile, frame), frame.module)).or_insert(next);
            let entry = (frame.addr.unwrap_or(0), frame.line);
            if function == next {
                sums.functions.push(FunctionCosts { frame: id, entry, own: BTreeMap::new(), calls: BTreeMap::new() });
            }
            let lowest = &mut sums.functions[function].entry;
            *lowest = (*lowest).min(entry);
            sums.has_addrs |= frame.addr.is_some();
            sums.of_frame.push(function);
        }
        sums
    }

    fn site(&self, frame: FrameId) -> CostSite {
        let frame = self.profile.frame_of(frame);
        (frame.file, frame.addr.unwrap_or(0), frame.line)
    }

    /// `stack` is leaf first.
    fn add(&mut self, event: usize, stack: &[FrameId], weight: u64, count: u64) {
        let Some(&leaf) = stack.first() else { return };
        let leaf_function = self.of_frame[leaf.index()];
        let (events, site) = (self.events, self.site(leaf));
        let own = self.functions[self.of_frame[leaf.index()]].own.entry(site).or_insert_with(|| vec![0; events]);
        own[event] = own[event].saturating_add(weight);
        let (mut seen, mut charged) = (FxHashSet::default(), FxHashSet::from_iter([leaf_function]));
        for pair in stack.windows(2) {
            let (callee, caller) = (self.of_frame[pair[0].index()], self.of_frame[pair[1].index()]);
            if !seen.insert((caller, callee)) {
                continue;
            }
            let cost = if charged.insert(caller) { weight } else { 0 };
            let site = self.site(pair[1]);
            let calls = self.functions[caller].calls.entry((site, callee)).or_insert_with(|| (0, vec![0; events]));
            calls.0 = calls.0.saturating_add(count);
            calls.1[event] = calls.1[event].saturating_add(cost);
        }
    }

    fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0u64; self.events];
        for own in self.functions.iter().flat_map(|function| function.own.values()) {
            for (total, cost) in totals.iter_mut().zip(own) {
                *total = total.saturating_add(*cost);
            }
        }
        totals
    }
}

struct GraphWriter<'a> {
    profile: &'a Profile,
    sums: &'a CostSums<'a>,
    ids: [FxHashMap<Vec<u8>, usize>; 3],
    text: Vec<u8>,
}

impl GraphWriter<'_> {
    fn run(mut self, out: &mut dyn Write) -> Result<()> {
        self.header(out)?;
        for at in 0..self.sums.functions.len() {
            self.function(at);
            out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(writeln!(out, "totals: {}", joined(&self.sums.totals()))?)
    }

    fn header(&self, out: &mut dyn Write) -> Result<()> {
        let mut comms: Vec<String> = self
            .profile
            .tracks()
            .iter()
            .map(|track| String::from_utf8_lossy(&track.comm).replace(['\n', '\r'], " "))
            .filter(|comm| !comm.is_empty())
            .collect();
        comms.sort();
        comms.dedup();
        let events: Vec<String> = self.profile.series.iter().map(|series| event_name(&series.name)).collect();
        let positions = if self.sums.has_addrs { "instr line" } else { "line" };
        writeln!(out, "# callgrind format\nversion: 1\ncreator: jitgraft {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "cmd: {}\npart: 1\n\npositions: {positions}", comms.join(", "))?;
        let events = if events.is_empty() { "samples".to_owned() } else { events.join(" ") };
        Ok(writeln!(out, "events: {events}\nsummary: {}\n", joined(&self.sums.totals()))?)
    }

    fn columns(&self) -> Columns {
        if self.sums.has_addrs { Columns::INSTR_LINE } else { Columns::default() }
    }

    fn position(&self, addr: u64, line: u32) -> Position {
        let line = u64::from(line);
        if self.sums.has_addrs { Position([addr, line, 0]) } else { Position([line, 0, 0]) }
    }

    fn function(&mut self, at: FunctionId) {
        let function = &self.sums.functions[at];
        if function.own.is_empty() && function.calls.is_empty() {
            return;
        }
        let frame = self.profile.frame_of(function.frame);
        self.statement("ob", IdSpace::Object, frame);
        self.statement("fl", IdSpace::File, frame);
        self.statement("fn", IdSpace::Function, frame);
        let mut encoder = PositionEncoder::new(self.columns(), true);
        let mut file = frame.file;
        for (&(own_file, addr, line), costs) in &function.own {
            self.switch_file(&mut file, own_file, frame);
            encoder.cost(self.position(addr, line), &mut self.text);
            self.put(&format!(" {}\n", joined(costs)));
        }
        for (&((call_file, addr, line), callee), (count, costs)) in &function.calls {
            self.switch_file(&mut file, call_file, frame);
            self.callee(callee, frame);
            self.put(&format!("calls={count} "));
            let (entry, entry_line) = self.sums.functions[callee].entry;
            encoder.target(self.position(entry, entry_line), &mut self.text);
            self.put("\n");
            encoder.site(self.position(addr, line), &mut self.text);
            self.put(&format!(" {}\n", joined(costs)));
        }
        self.put("\n");
    }

    fn put(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn switch_file(&mut self, current: &mut Option<NameId>, file: Option<NameId>, function: &Frame) {
        if *current != file {
            let key = if file == function.file { "fe" } else { "fi" };
            self.statement(key, IdSpace::File, &Frame { file, ..*function });
            *current = file;
        }
    }

    /// Where the callee is, is always said: nothing is left to what a reader thinks the default.
    fn callee(&mut self, callee: FunctionId, caller: &Frame) {
        let frame = self.profile.frame_of(self.sums.functions[callee].frame);
        if frame.module != caller.module {
            self.statement("cob", IdSpace::Object, frame);
        }
        self.statement("cfi", IdSpace::File, frame);
        self.statement("cfn", IdSpace::Function, frame);
    }

    fn statement(&mut self, key: &str, space: IdSpace, frame: &Frame) {
        let name_of = |id: Option<NameId>| id.map_or_else(|| b"???".to_vec(), |id| one_line(self.profile.name_of(id)));
        let (identity, name) = match space {
            IdSpace::Object => (name_of(frame.module), None),
            IdSpace::File => (name_of(frame.file), None),
            // One name may stand in several objects: each is a function of its own.
            IdSpace::Function => {
                let name = one_line(label::function(self.profile, frame).as_bytes());
                ([name_of(frame.module), name.clone()].join(&b'\n'), Some(name))
            }
        };
        let name = name.unwrap_or_else(|| identity.clone());
        let ids = &mut self.ids[space as usize];
        let next = ids.len() + 1;
        let id = *ids.entry(identity).or_insert(next);
        self.put(&format!("{key}=({id})"));
        if id == next {
            self.put(" ");
            self.text.extend_from_slice(&name);
        }
        self.put("\n");
    }
}

fn one_line(name: &[u8]) -> Vec<u8> {
    name.iter().map(|&byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }).collect()
}

/// Event names are single words.
fn event_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn joined(costs: &[u64]) -> String {
    costs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Warnings;
    use crate::formats::callgrind::{read, sniff};
    use crate::formats::format::ReadOptions;
    use crate::model::stacks::{FrameKind, Row, Series, Track};

    #[test]
    fn stacks_become_functions_and_calls_and_come_back() {
        let mut profile = Profile::new();
        let track = profile.track(Track { comm: b"node".to_vec(), ..Track::default() });
        let mut rows = Vec::new();
        for (names, weight) in [("main;f;g", 5), ("main;g", 3), ("main;f;f", 2)] {
            let mut stack = None;
            for (at, name) in names.split(';').enumerate() {
                let name = profile.name(name.as_bytes());
                let module = Some(profile.name(b"/bin/x"));
                let frame = Frame {
                    module,
                    line: at as u32 + 1,
                    addr: Some(0x1000 + at as u64),
                    ..Frame::new(name, FrameKind::User)
                };
                let frame = profile.frame(frame);
                stack = Some(profile.stack(stack, frame));
            }
            rows.push(Row { track, stack, weight, count: 1, time: None });
        }
        profile.series.push(Series { name: "cpu-clock".into(), rows, ..Series::default() });
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(sniff(&out), "{text}");
        assert!(text.contains("positions: instr line\nevents: cpu_clock\nsummary: 10\n"), "{text}");
        let main = "fn=(1) main\ncfi=(1)\ncfn=(2) f\ncalls=2 0x1001 2\n0x1000 1 7\ncfi=(1)\ncfn=(3) g\ncalls=1 0x1001 2\n0x1000 1 3\n";
        assert!(text.contains(main), "{text}");
        let again = read(&mut &out[..], &ReadOptions::default(), &mut Warnings::new()).unwrap();
        assert_eq!(again.series[0].rows.iter().map(|row| row.weight).sum::<u64>(), 10);
    }
}
