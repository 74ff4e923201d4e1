//! Counts what profiles hold: of each event, its samples and the sum of their weights. One short function for each
//! format, which looks for the samples only: no stacks, no names.

use crate::support::protobuf::{Field, Value as Protobuf, all, number, parse};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// What a file holds of one event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Held {
    /// The number of entries: samples, or sums of samples.
    pub(crate) samples: u64,
    /// Their sum, in the unit of the report: nanoseconds for times.
    pub(crate) weight: i128,
}

/// Events by name.
pub(crate) type Events = BTreeMap<String, Held>;

impl Held {
    fn add(&mut self, weight: i128) {
        self.samples += 1;
        self.weight += weight;
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn one(name: &str, held: Held) -> Events {
    [(name.to_owned(), held)].into()
}

/// How many nanoseconds a unit has; 1 for units that aren't of time.
fn scale(unit: &str) -> i128 {
    match unit {
        "microseconds" => 1_000,
        "milliseconds" | "tracing-ms" => 1_000_000,
        "seconds" => 1_000_000_000,
        _ => 1,
    }
}

/// A sample lasts until the next one, the last until the end.
pub(crate) fn cpuprofile(bytes: &[u8]) -> Events {
    let file = json(bytes);
    let deltas: Vec<i128> = list(&file, "timeDeltas").iter().map(|delta| delta.as_i64().unwrap().into()).collect();
    if deltas.is_empty() {
        let hits = list(&file, "nodes").iter().map(|node| node["hitCount"].as_i64().unwrap_or(0));
        let hits: Vec<i64> = hits.filter(|hits| *hits > 0).collect();
        return one("hits", Held { samples: hits.len() as u64, weight: hits.iter().sum::<i64>().into() });
    }
    let mut now = i128::from(file["startTime"].as_i64().unwrap());
    let mut times: Vec<i128> = Vec::new();
    for delta in deltas {
        now += delta;
        times.push(now);
    }
    let first = *times.iter().min().unwrap();
    let last = *times.iter().max().unwrap();
    let end = i128::from(file["endTime"].as_i64().unwrap()).max(last);
    one("cpu", Held { samples: list(&file, "samples").len() as u64, weight: (end - first) * 1_000 })
}

/// Each row of a table of samples; without weights, one each.
pub(crate) fn firefox(bytes: &[u8]) -> Events {
    let file = json(bytes);
    let mut events = Events::new();
    for thread in list(&file, "threads") {
        for (table, own) in
            [("samples", ""), ("jsAllocations", "js-allocations"), ("nativeAllocations", "native-allocations")]
        {
            let samples = &thread[table];
            let unit = samples["weightType"].as_str().unwrap_or("samples");
            let name = match (own, unit) {
                ("", "tracing-ms") => "time",
                ("", unit) => unit,
                (own, _) => own,
            };
            for at in 0..list(samples, "stack").len() {
                let weight = list(samples, "weight").get(at).map_or(1.0, |weight| weight.as_f64().unwrap());
                events.entry(name.to_owned()).or_default().add((weight * scale(unit) as f64).round() as i128);
            }
        }
    }
    events
}

/// Samples with their weights; of events, each time between two of them while a frame is open.
pub(crate) fn speedscope(bytes: &[u8]) -> Events {
    let file = json(bytes);
    let mut events = Events::new();
    for profile in list(&file, "profiles") {
        let unit = profile["unit"].as_str().unwrap_or_default();
        let (name, scale) = match unit {
            "none" | "" => ("samples", 1),
            "bytes" => ("bytes", 1),
            unit => ("time", scale(unit)),
        };
        let held = events.entry(name.to_owned()).or_default();
        for at in 0..list(profile, "samples").len() {
            let weight = list(profile, "weights").get(at).map_or(1.0, |weight| weight.as_f64().unwrap());
            held.add((weight * scale as f64).round() as i128);
        }
        let (mut open, mut last) = (0, 0.0);
        for event in list(profile, "events") {
            let now = event["at"].as_f64().unwrap();
            if open > 0 {
                held.add(((now - last) * scale as f64).round() as i128);
            }
            open += if event["type"] == "O" { 1 } else { -1 };
            last = now;
        }
    }
    events
}

fn numbers(fields: &[Field], tag: u64) -> Vec<i64> {
    let mut found = Vec::new();
    for (_, value) in fields.iter().filter(|(field, _)| *field == tag) {
        match value {
            Protobuf::Number(number) => found.push(*number as i64),
            Protobuf::Bytes(packed) => {
                let (mut number, mut shift) = (0u64, 0);
                for byte in packed {
                    number |= u64::from(byte & 0x7f) << shift;
                    shift += 7;
                    if byte & 0x80 == 0 {
                        found.push(number as i64);
                        (number, shift) = (0, 0);
                    }
                }
            }
            Protobuf::Fixed(bytes) => found.push(i64::from_le_bytes(bytes[..].try_into().unwrap())),
        }
    }
    found
}

/// Of each type of values, the samples that have some. A number of samples before another type counts that type's.
pub(crate) fn pprof(bytes: &[u8]) -> Events {
    let mut plain = Vec::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => drop(flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain).unwrap()),
        false => plain.extend(bytes),
    }
    let file = parse(&plain);
    let strings: Vec<&[u8]> = all(&file, 6).collect();
    let mut events = Events::new();
    let types: Vec<Vec<Field>> = all(&file, 1).map(parse).collect();
    let of = |at: usize| [1, 2].map(|tag| text(strings[number(&types[at], tag) as usize]));
    for at in 0..types.len() {
        let [name, unit] = of(at);
        let counts_next = unit == "count" && ["samples", "sample"].contains(&name) && at + 1 < types.len();
        if counts_next {
            continue;
        }
        let held = events.entry(name.to_owned()).or_default();
        for sample in all(&file, 2) {
            let values = numbers(&parse(sample), 2);
            let counts = at.checked_sub(1).filter(|before| of(*before) == ["samples", "count"]);
            let value = i128::from(values[at]);
            if value != 0 || counts.is_some_and(|before| values[before] != 0) {
                held.add(value * scale(unit));
            }
        }
    }
    events
}

/// A profile's samples have values, times, or as many of both.
pub(crate) fn otlp(bytes: &[u8]) -> Events {
    let file = parse(bytes);
    let dictionary = parse(all(&file, 2).next().unwrap());
    let strings: Vec<&[u8]> = all(&dictionary, 5).collect();
    let mut events = Events::new();
    for resource in all(&file, 1) {
        for scope in all(&parse(resource), 2).map(parse) {
            for profile in all(&scope, 2).map(parse) {
                let kind = parse(all(&profile, 1).next().unwrap_or_default());
                let [name, unit] = [1, 2].map(|tag| text(strings[number(&kind, tag) as usize]));
                let held = events.entry(name.to_owned()).or_default();
                for sample in all(&profile, 2).map(parse) {
                    let times: usize =
                        sample.iter().filter(|(tag, _)| *tag == 5).map(|(_, value)| value.bytes().len() / 8).sum();
                    otlp_sample(&numbers(&sample, 4), times, scale(unit), held);
                }
            }
        }
    }
    events
}

/// Counts samples in OTLP as JSON, with one message per line.
pub(crate) fn otlp_json(bytes: &[u8]) -> Events {
    let mut events = Events::new();
    for message in text(bytes).lines().map(|line| json(line.as_bytes())) {
        let string = |at: &Value| {
            list(&message["dictionary"], "stringTable")[at.as_u64().unwrap_or(0) as usize].as_str().unwrap()
        };
        for scope in list(&message, "resourceProfiles").iter().flat_map(|resource| list(resource, "scopeProfiles")) {
            for profile in list(scope, "profiles") {
                let kind = &profile["sampleType"];
                let held = events.entry(string(&kind["typeStrindex"]).to_owned()).or_default();
                for sample in list(profile, "samples") {
                    let value = |value: &Value| {
                        value.as_str().map_or_else(|| value.as_i64(), |text| text.parse().ok()).unwrap()
                    };
                    let values: Vec<i64> = list(sample, "values").iter().map(value).collect();
                    let times = list(sample, "timestampsUnixNano").len();
                    otlp_sample(&values, times, scale(string(&kind["unitStrindex"])), held);
                }
            }
        }
    }
    events
}

fn otlp_sample(values: &[i64], times: usize, scale: i128, held: &mut Held) {
    if values.is_empty() {
        (0..times).for_each(|_| held.add(scale));
    }
    for value in values.iter().filter(|value| times > 0 || **value != 0) {
        held.add(i128::from(*value) * scale);
    }
}

/// The costs of each event, without those of the lines behind `calls=`, which are the callee's.
pub(crate) fn callgrind(bytes: &[u8]) -> Events {
    let (mut names, mut positions, mut events, mut is_call) = (Vec::new(), 1, Events::new(), false);
    for line in text(bytes).lines() {
        if let Some(listed) = line.strip_prefix("events:") {
            names = listed.split_whitespace().map(str::to_owned).collect();
        } else if let Some(listed) = line.strip_prefix("positions:") {
            positions = listed.split_whitespace().count();
        } else if line.starts_with("calls=") || line.starts_with("jump=") || line.starts_with("jcnd=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            for (name, cost) in names.iter().zip(line.split_whitespace().skip(positions)).filter(|_| !is_call) {
                events.entry(name.clone()).or_default().add(cost.parse().unwrap());
            }
            is_call = false;
        }
    }
    events
}

/// The lines of threads count all samples below them.
pub(crate) fn sample(bytes: &[u8]) -> Events {
    let graph = text(bytes).split("Call graph:\n").nth(1).unwrap();
    let lines = graph.lines().take_while(|line| !line.is_empty());
    let threads = lines.filter(|line| line.contains("Thread_"));
    let count = |line: &str| line.split_whitespace().next().unwrap().parse::<i128>().unwrap();
    one("samples", Held { samples: 0, weight: threads.map(count).sum() })
}

/// A row with a weight, or with a reference to one.
pub(crate) fn xctrace(bytes: &[u8]) -> Events {
    let (mut weights, mut held) = (BTreeMap::new(), Held::default());
    for row in text(bytes).split("<row>").skip(1) {
        let weight = &row[row.find("<weight ").unwrap()..];
        let attribute = |name: &str| {
            weight
                .split_once('>')
                .unwrap()
                .0
                .split_once(&format!(" {name}=\""))
                .map(|(_, rest)| rest.split_once('"').unwrap().0)
        };
        if let Some(id) = attribute("id") {
            let nanos: i128 = weight.split_once('>').unwrap().1.split_once('<').unwrap().0.parse().unwrap();
            weights.insert(id, nanos);
        }
        held.add(weights[attribute("id").or(attribute("ref")).unwrap()]);
    }
    one("time", held)
}

/// A count is alone on its line.
pub(crate) fn dtrace(bytes: &[u8]) -> Events {
    let mut held = Held::default();
    text(bytes).lines().filter_map(|line| line.trim().parse().ok()).for_each(|count| held.add(count));
    one("samples", held)
}

/// Seconds in the second column.
pub(crate) fn vtune(bytes: &[u8]) -> Events {
    let mut held = Held::default();
    let seconds = |line: &str| line.rsplit(',').nth(1).unwrap().parse::<f64>().unwrap();
    for seconds in text(bytes).lines().skip(1).map(seconds).filter(|seconds| *seconds > 0.0) {
        held.add((seconds * 1e9).round() as i128);
    }
    one("time", held)
}

/// Ticks of a millisecond in the last column but one.
pub(crate) fn ghcprof(bytes: &[u8]) -> Events {
    let total = |unit: &str| {
        let words: Vec<&str> = text(bytes).split_whitespace().collect();
        let at = words.iter().position(|word| *word == unit).unwrap();
        words[at - 1].trim_start_matches('(').replace(',', "").parse::<i128>().unwrap()
    };
    [
        ("time".to_owned(), Held { samples: 0, weight: total("ticks") * 1_000_000 }),
        ("alloc".to_owned(), Held { samples: 0, weight: total("bytes") }),
    ]
    .into()
}

/// Samples begin at the start of a line; the number before the event is a sample's period.
pub(crate) fn perf_script(bytes: &[u8]) -> Events {
    let mut events = Events::new();
    let is_head = |line: &&str| !line.is_empty() && !line.starts_with([' ', '\t', '#']);
    for line in text(bytes).lines().filter(is_head) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let event = words
            .iter()
            .rposition(|word| word.ends_with(':') && !word.starts_with(|first: char| first.is_ascii_digit()));
        let Some(event) = event else { continue };
        let period = words[event - 1].parse().unwrap_or(1);
        events.entry(words[event].trim_end_matches(':').to_owned()).or_default().add(period);
    }
    events
}

/// A count at the end of each line.
pub(crate) fn folded(bytes: &[u8]) -> Events {
    let mut held = Held::default();
    text(bytes).lines().for_each(|line| held.add(line.rsplit(' ').next().unwrap().parse().unwrap()));
    one("samples", held)
}

/// The records of type 9 in the data section.
pub(crate) fn perf_data(bytes: &[u8]) -> Held {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    assert!(bytes.starts_with(b"PERFILE2"));
    let (start, size) = (word(40), word(48));
    let (mut at, mut held) = (start, Held::default());
    while at < start + size {
        let header = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        held.samples += u64::from(header as u32 == 9);
        at += (header >> 48) as usize;
    }
    held
}

/// The spans of version 9: 32 bytes each, with an end that is none of the two marks of instants and integers.
pub(crate) fn measureme(bytes: &[u8]) -> Held {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut events, mut at) = (Vec::new(), 8);
    while at < bytes.len() {
        let len = word(bytes, at + 1) as usize;
        if bytes[at] == 0 {
            events.extend(&bytes[at + 5..at + 5 + len]);
        }
        at += 5 + len;
    }
    let mut held = Held::default();
    for event in events[8..].chunks_exact(32) {
        let [low, end, upper] = [20, 24, 28].map(|at| u64::from(word(event, at)));
        let (start, end) = (low | (upper & 0xffff_0000) << 16, end | (upper & 0xffff) << 32);
        if end < (1 << 48) - 2 {
            held.add(i128::from(end - start));
        }
    }
    held
}

/// Spans of trace events, whole or with a beginning.
pub(crate) fn chrome(bytes: &[u8]) -> Held {
    let file = json(bytes);
    let events = file.as_array().map_or_else(|| list(&file, "traceEvents"), Vec::as_slice);
    let is_one = |event: &&Value| ["X", "B", "b"].contains(&event["ph"].as_str().unwrap());
    Held { samples: events.iter().filter(is_one).count() as u64, weight: 0 }
}
