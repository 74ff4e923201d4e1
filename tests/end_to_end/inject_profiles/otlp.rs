//! OpenTelemetry's profiles: a walk over the bytes that shares nothing with the program.

use super::protobuf::{Field, Value, all, encode, number, parse};
use super::recorded::Recorded;
use std::fs;
use std::path::Path;
use std::process::Command;

// Fields of profiles.proto, protocol 1.10.
const RESOURCE_PROFILES: u64 = 1;
const DICTIONARY: u64 = 2;
const MAPPING: u64 = 1;
const LOCATION: u64 = 2;
const FUNCTION: u64 = 3;
const STRING: u64 = 5;
const ATTRIBUTE: u64 = 6;
const STACK: u64 = 7;
/// A field of a location.
const MAPPING_INDEX: u64 = 1;
const ADDRESS: u64 = 2;
const LINE: u64 = 3;
const ATTRIBUTES: u64 = 4;
/// No field of any message: what a later version may have.
const UNKNOWN: u64 = 77;

fn dictionary(message: &[u8]) -> Vec<Field> {
    let message = parse(message);
    parse(all(&message, DICTIONARY).next().unwrap())
}

fn text(dictionary: &[Field], at: u64) -> String {
    String::from_utf8(all(dictionary, STRING).nth(at as usize).unwrap().to_vec()).unwrap()
}

/// The message as a profiler leaves it that has neither names nor code in memory without a file: no location has a
/// line, and those of JIT code are in no mapping. It has some unknown fields.
fn stripped(bytes: &[u8]) -> Vec<u8> {
    let mut message = parse(bytes);
    let tables = dictionary(bytes);
    let mappings: Vec<Vec<Field>> = all(&tables, MAPPING).map(parse).collect();
    let is_jit = |location: &[Field]| {
        let file = text(&tables, number(&mappings[number(location, MAPPING_INDEX) as usize], 4));
        file.contains("jitted-") || file.contains("/perf-") || file.contains("jit-")
    };
    let unknown = || (UNKNOWN, Value::Bytes(b"unknown".to_vec()));
    let bare = |(tag, value): &Field| match *tag {
        LOCATION => {
            let location = parse(value.bytes());
            let is_jit = is_jit(&location);
            let gone: &[u64] = if is_jit { &[MAPPING_INDEX, LINE, ATTRIBUTES] } else { &[] };
            let left = location.into_iter().filter(|(tag, _)| !gone.contains(tag));
            (*tag, Value::Bytes(encode(&left.chain(is_jit.then(unknown)).collect::<Vec<_>>())))
        }
        _ => (*tag, value.clone()),
    };
    let mut tables: Vec<Field> = tables.iter().map(bare).collect();
    tables.insert(0, unknown());
    for (tag, value) in &mut message {
        if *tag == DICTIONARY {
            *value = Value::Bytes(encode(&tables));
        }
    }
    message.push((UNKNOWN, Value::Fixed(vec![1; 8])));
    encode(&message)
}

/// The functions of all locations, innermost first, by place: (address, names).
fn named(bytes: &[u8]) -> Vec<(u64, Vec<String>)> {
    let tables = dictionary(bytes);
    let functions: Vec<Vec<Field>> = all(&tables, FUNCTION).map(parse).collect();
    let name = |line: &[u8]| text(&tables, number(&functions[number(&parse(line), 1) as usize], 1));
    let locations = all(&tables, LOCATION).map(parse);
    locations.map(|location| (number(&location, ADDRESS), all(&location, LINE).map(name).collect())).collect()
}

/// Without the fields that later versions may have.
fn known(message: Vec<Field>) -> Vec<Field> {
    message.into_iter().filter(|(tag, _)| *tag != UNKNOWN).collect()
}

/// The values of each field, in their order.
fn values(message: &[Field], field: u64) -> Vec<Value> {
    message.iter().filter(|(tag, _)| *tag == field).map(|(_, value)| value.clone()).collect()
}

/// The fields of all messages in a field, sorted: the order of fields says nothing.
fn sorted(messages: Vec<Value>) -> Vec<String> {
    let fields = |message: &Value| {
        let mut fields: Vec<String> = parse(message.bytes()).iter().map(|field| format!("{field:?}")).collect();
        fields.sort_unstable();
        fields.join(" ")
    };
    messages.iter().map(fields).collect()
}

/// What was there is there; locations without lines got some, and locations, functions, strings and stacks came behind
/// the others of their table. Unknown fields are gone.
fn assert_only_named(bare: &[u8], injected: &[u8]) {
    let (before, after) = (known(parse(bare)), parse(injected));
    assert_eq!(before.len(), after.len());
    // The samples of each profile, and what else a profile states.
    let profiles = |message: &[Field]| -> Vec<Vec<String>> {
        let resources = all(message, 1).map(parse).collect::<Vec<_>>();
        let scopes = resources.iter().flat_map(|resource| all(resource, 2).map(parse)).collect::<Vec<_>>();
        scopes.iter().map(|scope| sorted(values(scope, 2))).collect()
    };
    assert_eq!(profiles(&before), profiles(&after));
    let (before, after) = (known(dictionary(bare)), dictionary(injected));
    for table in 1..=UNKNOWN {
        let (before, after) = (values(&before, table), values(&after, table));
        let (kept, new) = after.split_at(before.len());
        assert!(new.is_empty() || [LOCATION, FUNCTION, STRING, STACK].contains(&table), "{table}: {new:?}");
        for (before, after) in before.iter().zip(kept) {
            if table != LOCATION {
                assert_eq!(before, after);
                continue;
            }
            let (before, after) = (known(parse(before.bytes())), parse(after.bytes()));
            let lines = values(&after, LINE);
            let others: Vec<Field> = after.into_iter().filter(|(tag, _)| *tag != LINE).collect();
            if values(&before, LINE).is_empty() {
                assert_eq!(before, others);
            } else {
                assert_eq!(values(&before, LINE), lines);
            }
        }
    }
}

/// A profile of a recording, by our own export, and the same without its JIT names.
fn exported(recorded: &Recorded) -> (Vec<u8>, Vec<u8>) {
    recorded.jitgraft(&["export", "--jit-names", "raw", "perf.data", "-o", "whole.otlp"]);
    let whole = recorded.read("whole.otlp");
    let bare = stripped(&whole);
    recorded.write("bare.otlp", &bare);
    (whole, bare)
}

#[test]
fn locations_have_the_names_that_perf_shows_after_inject() {
    for recorded in Recorded::all() {
        let (whole, bare) = exported(&recorded);
        let by_perf = recorded.names_by_perf();
        let said = recorded.jitgraft(&["inject", "-i", "bare.otlp", "-o", "injected.otlp"]);
        let injected = recorded.read("injected.otlp");
        assert_only_named(&bare, &injected);
        assert!(said.contains("unknown fields skipped; the first one: field 77 of"), "{said}");
        let (whole, bare, injected) = (named(&whole), named(&bare), named(&injected));
        let (mut found, mut left, mut shown) = (0, 0, 0);
        for (at, (address, names)) in injected.iter().enumerate().take(whole.len()) {
            if !bare[at].1.is_empty() || whole[at].1.is_empty() {
                assert_eq!(names, &bare[at].1, "{address:#x}: {said}");
            } else if names.is_empty() {
                left += 1;
            } else {
                assert_eq!(names, &whole[at].1, "{address:#x}: {said}");
                found += 1;
                let by_perf = by_perf.get(address);
                let last = names.last().unwrap();
                assert!(by_perf.is_none_or(|by_perf| by_perf.contains(last)), "{names:?}, perf: {by_perf:?}");
                shown += usize::from(by_perf.is_some());
            }
        }
        assert!(found > 3 && shown > 2, "{found} named, {shown} of them seen by perf: {said}");
        assert!(said.contains(" unnamed addresses (") && left == 0, "{found}, {left}: {said}");
    }
}

#[test]
fn a_profile_stays_as_packed_as_it_was_and_twice_is_once() {
    let recorded = Recorded::all().next().unwrap();
    let (_, bare) = exported(&recorded);
    recorded.jitgraft(&["inject", "-i", "bare.otlp", "-o", "once.otlp"]);
    recorded.jitgraft(&["inject", "-i", "once.otlp", "-o", "twice.otlp"]);
    let once = recorded.read("once.otlp");
    assert!(once == recorded.read("twice.otlp"));
    // Behind lengths, plain and packed; what is cut off stays, and is reported.
    let behind = |message: &[u8]| [&(message.len() as u32).to_be_bytes()[..], message].concat();
    let zstd = |message: &[u8]| zstd::encode_all(message, 3).unwrap();
    recorded.write("lengths", &[behind(&bare), behind(&zstd(&bare)), behind(&bare)[..99].to_vec()].concat());
    let said = recorded.jitgraft(&["inject", "-i", "lengths", "-o", "lengths.out"]);
    assert!(said.contains("1 message skipped"), "{said}");
    let out = recorded.read("lengths.out");
    let (first, rest) = out.split_at(4 + once.len());
    assert!(first == behind(&once));
    let (packed, cut) = rest.split_at(rest.len() - 99);
    assert!(zstd::decode_all(&packed[4..]).unwrap() == once && cut == &behind(&bare)[..99]);
    assert_eq!(packed[..4], (packed.len() as u32 - 4).to_be_bytes());
}

/// JSON is not rewritten: the refusal says what is, and that gets the names.
#[test]
fn json_is_refused_and_its_binary_form_is_named() {
    let recorded = Recorded::all().next().unwrap();
    let (_, bare) = exported(&recorded);
    let message = r#"{"resourceProfiles":[],"dictionary":{"stringTable":[""]}}"#;
    let behind = |message: &[u8]| [&(message.len() as u32).to_be_bytes()[..], message].concat();
    let inputs = [
        ("line", message.as_bytes().to_vec()),
        ("lines", format!("{message}\n{message}\n").into_bytes()),
        ("length", behind(message.as_bytes())),
    ];
    for (name, bytes) in inputs {
        recorded.write(name, &bytes);
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(["inject", "-i", name, "-o", "out"])
            .current_dir(recorded.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("in JSON") && said.contains("jitgraft export"), "{name}: {said}");
    }
    // Among others, such a message stays as it is, and is counted.
    recorded.write("both", &[behind(&bare), behind(message.as_bytes())].concat());
    let said = recorded.jitgraft(&["inject", "-i", "both", "-o", "both.out"]);
    assert!(said.contains("1 message skipped"), "{said}");
    assert!(recorded.read("both.out").ends_with(message.as_bytes()));
    recorded.jitgraft(&["export", "--jit-names", "raw", "bare.otlp", "-o", "bare.otlp.json"]);
    recorded.jitgraft(&["export", "--jit-names", "raw", "bare.otlp.json", "-o", "again.otlp"]);
    recorded.jitgraft(&["inject", "-i", "bare.otlp", "-o", "injected.otlp"]);
    recorded.jitgraft(&["inject", "-i", "again.otlp", "-o", "again.injected.otlp"]);
    let names = |name: &str| -> std::collections::BTreeSet<Vec<String>> {
        let names = named(&recorded.read(name)).into_iter().map(|(_, names)| names);
        names.filter(|names| !names.is_empty() && *names != ["[unknown]"]).collect()
    };
    assert!(names("injected.otlp").len() > 3);
    assert_eq!(names("again.injected.otlp"), names("injected.otlp"));
}

/// A message with the samples of two processes, which share a stack of JIT code, and a leaf that is a caller elsewhere.
fn shared() -> Vec<u8> {
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let list = |numbers: &[u8]| Value::Bytes(numbers.to_vec());
    let pid = |pid: u64| {
        let value = message(&[(3, Value::Number(pid))]);
        let attribute = message(&[(1, Value::Bytes(b"process.pid".to_vec())), (2, value)]);
        message(&[(1, attribute)])
    };
    let resource = |of: u64| {
        let sample = |stack: u64| (2, message(&[(1, Value::Number(stack)), (4, list(&[5]))]));
        let kind = message(&[(1, Value::Number(1)), (2, Value::Number(2))]);
        let profile = message(&[(1, kind), sample(1), sample(2)]);
        message(&[(1, pid(of)), (2, message(&[(2, profile)]))])
    };
    let empty = || message(&[]);
    let location = |address: u64| (LOCATION, message(&[(ADDRESS, Value::Number(address))]));
    let stack = |locations: &[u8]| (STACK, message(&[(1, list(locations))]));
    let strings = ["", "cpu", "nanoseconds"].map(|text| (STRING, Value::Bytes(text.into())));
    let tables = [
        vec![(MAPPING, empty()), (LOCATION, empty()), location(0x1000), location(0x2000), (FUNCTION, empty())],
        strings.to_vec(),
        vec![(ATTRIBUTE, empty()), (STACK, empty()), stack(&[1, 2]), stack(&[2, 1])],
    ];
    encode(&[(1, resource(77)), (1, resource(78)), (2, message(&tables.concat()))])
}

/// The names of the stacks of each sample, leaf first.
fn stacks(bytes: &[u8]) -> Vec<String> {
    let (message, tables, names) = (parse(bytes), dictionary(bytes), named(bytes));
    let stacks: Vec<Vec<u8>> =
        all(&tables, STACK).map(|stack| all(&parse(stack), 1).next().unwrap_or_default().to_vec()).collect();
    let mut found = Vec::new();
    for resource in all(&message, RESOURCE_PROFILES).map(parse) {
        for profile in all(&resource, 2).flat_map(|scope| all(&parse(scope), 2).map(parse).collect::<Vec<_>>()) {
            for sample in all(&profile, 2).map(parse) {
                let of = |at: &u8| names[*at as usize].1.join("+");
                found.push(stacks[number(&sample, 1) as usize].iter().map(of).collect::<Vec<_>>().join(";"));
            }
        }
    }
    found
}

#[test]
fn processes_that_share_a_location_do_not_share_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("bare.otlp", &shared());
    // Code that ends at 0x2000 is what a caller at 0x2000 is in.
    write("perf-77.map", b"1000 1000 f\n2000 10 g\n");
    write("perf-78.map", b"1000 1000 f\n2000 10 other\n");
    let run = |input: &str, output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let output = command.args(["inject", "-i", input, "-o", output]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("bare.otlp", "injected.otlp");
    let injected = fs::read(dir.path().join("injected.otlp")).unwrap();
    // A caller at 0x1000 is in the unknown code before it.
    assert_eq!(stacks(&injected), ["f;f", "g;", "f;f", "other;"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["collapse", "--by", "pid", "injected.otlp"]).current_dir(dir.path());
    let folded = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(folded.contains("f;f 5") && folded.contains("other 5") && folded.contains("g 5"), "{folded}");
}

#[test]
fn a_damaged_message_is_reported_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for pid in [77, 78] {
        fs::write(dir.path().join(format!("perf-{pid}.map")), b"f00 1100 f\n2000 10 g\n").unwrap();
    }
    let whole = shared();
    let damaged = &whole[..whole.len() - 3];
    // Each message follows its length, as the collector writes them.
    for (parts, is_damaged) in [
        ([&whole[..], &whole, &whole], false),
        ([damaged, &whole, &whole], true),
        ([&whole, damaged, &whole], true),
        ([damaged, &whole, damaged], true),
    ] {
        let framed = parts.iter().flat_map(|part| [&(part.len() as u32).to_be_bytes()[..], part].concat());
        fs::write(dir.path().join("bare.otlp"), framed.collect::<Vec<u8>>()).unwrap();
        let run = |strict: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
            command.args(["inject", "-f", "-i", "bare.otlp", "-o", "out.otlp"]).args(strict).current_dir(dir.path());
            command.output().unwrap()
        };
        let output = run(&[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let count = parts.iter().filter(|part| part.len() < whole.len()).count();
        let stated = if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
        assert_eq!(said.contains(&stated), is_damaged, "{said}");
        assert_eq!(run(&["--strict"]).status.success(), !is_damaged);
    }
}

/// A message with one sample: process 77 entered the kernel at 0x2000.
fn interrupted() -> Vec<u8> {
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let text = |text: &str| Value::Bytes(text.into());
    let pid = message(&[(1, text("process.pid")), (2, message(&[(3, Value::Number(77))]))]);
    let sample = message(&[(1, Value::Number(1)), (4, Value::Bytes(vec![5]))]);
    let profile = message(&[(1, message(&[(1, Value::Number(1)), (2, Value::Number(2))])), (2, sample)]);
    let resource = message(&[(1, message(&[(1, pid)])), (2, message(&[(2, profile)]))]);
    let empty = || message(&[]);
    let address = |address: u64| (ADDRESS, Value::Number(address));
    let kernel = message(&[address(0xffff_ffff_8100_0000), (ATTRIBUTES, Value::Bytes(vec![1]))]);
    let tables = [
        vec![(MAPPING, empty()), (LOCATION, empty()), (LOCATION, kernel), (LOCATION, message(&[address(0x2000)]))],
        vec![(FUNCTION, empty())],
        ["", "cpu", "nanoseconds", "profile.frame.type"].map(|one| (STRING, text(one))).to_vec(),
        vec![
            (ATTRIBUTE, empty()),
            (ATTRIBUTE, message(&[(1, Value::Number(3)), (2, message(&[(1, text("kernel"))]))])),
        ],
        vec![(STACK, empty()), (STACK, message(&[(1, Value::Bytes(vec![1, 2]))]))],
    ];
    encode(&[(1, resource), (2, message(&tables.concat()))])
}

#[test]
fn the_kernel_is_entered_at_the_address_itself_and_not_before_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bare.otlp"), interrupted()).unwrap();
    fs::write(dir.path().join("perf-77.map"), b"1000 1000 f\n2000 10 g\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output =
        command.args(["inject", "-i", "bare.otlp", "-o", "out.otlp"]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stacks(&fs::read(dir.path().join("out.otlp")).unwrap()), [";g"]);
}

#[test]
fn named_code_in_memory_without_a_file_is_jit_code_whatever_its_profiler_calls_it() {
    let dir = tempfile::tempdir().unwrap();
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let text = |text: &str| Value::Bytes(text.into());
    let list = |numbers: &[u8]| Value::Bytes(numbers.to_vec());
    let pid = message(&[(1, text("process.pid")), (2, message(&[(3, Value::Number(77))]))]);
    let sample = message(&[(1, Value::Number(1)), (4, list(&[5]))]);
    let profile = message(&[(1, message(&[(1, Value::Number(1)), (2, Value::Number(2))])), (2, sample)]);
    let resource = message(&[(1, message(&[(1, pid)])), (2, message(&[(2, profile)]))]);
    let empty = || message(&[]);
    let mapping = message(&[(1, Value::Number(4096)), (2, Value::Number(8192)), (4, Value::Number(3))]);
    let location =
        message(&[(MAPPING_INDEX, Value::Number(1)), (ADDRESS, Value::Number(4100)), (ATTRIBUTES, list(&[1]))]);
    let native = message(&[(1, Value::Number(4)), (2, message(&[(1, text("native"))]))]);
    let strings = ["", "cpu", "nanoseconds", "//anon", "profile.frame.type"].map(|one| (STRING, text(one)));
    let tables = [
        vec![(MAPPING, empty()), (MAPPING, mapping), (LOCATION, empty()), (LOCATION, location), (FUNCTION, empty())],
        strings.to_vec(),
        vec![(ATTRIBUTE, empty()), (ATTRIBUTE, native), (STACK, empty()), (STACK, message(&[(1, list(&[1]))]))],
    ];
    let bare = encode(&[(RESOURCE_PROFILES, resource), (DICTIONARY, message(&tables.concat()))]);
    fs::write(dir.path().join("bare.otlp"), bare).unwrap();
    fs::write(dir.path().join("perf-77.map"), b"1000 1000 f\n").unwrap();
    let jitgraft = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    jitgraft(&["inject", "-i", "bare.otlp", "-o", "out.otlp"]);
    let rows = jitgraft(&["report", "--format", "json", "out.otlp"]);
    let rows: serde_json::Value = serde_json::from_slice(&rows).unwrap();
    assert!(rows[0]["symbol"] == "f" && rows[0]["kind"] == "JIT", "{rows}");
}

const PROGRAM: &str = "
#include <cstdio>
namespace shop {
static inline int __attribute__((always_inline)) price(int item) { return item * 7 + item / 3; }
int __attribute__((noinline)) total(int items) {
    int sum = 0;
    for (int item = 0; item < items; item++)
        sum += price(item);
    return sum;
}
}
int main(int argc, char **) { std::printf(\"%d\\n\", shop::total(argc * 1000)); }
";

fn tool(name: &str, args: &[&str], dir: &Path) -> String {
    let output =
        Command::new(name).args(args).current_dir(dir).output().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A profile with addresses in a file, which was linked for them, by build ID.
fn of_file(name: &str, attribute: (&str, &str), addresses: &[u64], range: Option<[u64; 3]>) -> Vec<u8> {
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let text = |text: &str| Value::Bytes(text.into());
    let place = |[start, limit, offset]: [u64; 3]| {
        vec![(1, Value::Number(start)), (2, Value::Number(limit)), (3, Value::Number(offset))]
    };
    let mapping =
        [range.map(place).unwrap_or_default(), vec![(4, Value::Number(3)), (5, Value::Bytes(vec![1]))]].concat();
    let attribute_value = message(&[(1, text(attribute.1))]);
    let attribute_of = message(&[(1, Value::Number(4)), (2, attribute_value)]);
    let location =
        |address: &u64| (LOCATION, message(&[(MAPPING_INDEX, Value::Number(1)), (ADDRESS, Value::Number(*address))]));
    let places: Vec<u8> = (1..=addresses.len() as u8).collect();
    let stack = |at: &u8| (STACK, message(&[(1, Value::Bytes(vec![*at]))]));
    let sample = |at: &u8| (2, message(&[(1, Value::Number((*at).into())), (4, Value::Bytes(vec![1]))]));
    let kind = (1, message(&[(1, Value::Number(1)), (2, Value::Number(2))]));
    let profile = [vec![kind], places.iter().map(sample).collect()].concat();
    let tables = [
        vec![(MAPPING, message(&[])), (MAPPING, message(&mapping)), (LOCATION, message(&[]))],
        addresses.iter().map(location).collect(),
        vec![(FUNCTION, message(&[]))],
        ["", "samples", "count", name, attribute.0].map(|one| (STRING, text(one))).to_vec(),
        vec![(ATTRIBUTE, message(&[])), (ATTRIBUTE, attribute_of), (STACK, message(&[]))],
        places.iter().map(stack).collect(),
    ];
    let scope = message(&[(2, message(&profile))]);
    encode(&[(1, message(&[(2, scope)])), (2, message(&tables.concat()))])
}

#[test]
fn a_stripped_program_is_named_by_its_build_id_as_addr2line_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("shop.cc"), PROGRAM).unwrap();
    tool("g++", &["-O2", "-g", "-Wl,--build-id", "-o", "shop.debug", "shop.cc"], dir);
    let notes = tool("readelf", &["-n", "shop.debug"], dir);
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap().to_owned();
    tool("strip", &["-o", "shop", "shop.debug"], dir);
    // Addresses in the function, one in each line that it has.
    let symbols = tool("nm", &["-S", "shop.debug"], dir);
    let total = symbols.lines().find(|line| line.contains("total")).unwrap();
    let [start, size] = [0, 1].map(|at| u64::from_str_radix(total.split_whitespace().nth(at).unwrap(), 16).unwrap());
    let addresses: Vec<u64> = (start..start + size).step_by(3).collect();
    let by_id = format!("debug/.build-id/{}", &id[..2]);
    fs::create_dir_all(dir.join(&by_id)).unwrap();
    fs::copy(dir.join("shop"), dir.join(format!("{by_id}/{}", &id[2..]))).unwrap();
    fs::copy(dir.join("shop.debug"), dir.join(format!("{by_id}/{}.debug", &id[2..]))).unwrap();
    fs::create_dir_all(dir.join(format!("home/.cache/debuginfod_client/{id}"))).unwrap();
    fs::copy(dir.join("shop"), dir.join(format!("home/.cache/debuginfod_client/{id}/executable"))).unwrap();
    fs::copy(dir.join("shop.debug"), dir.join(format!("home/.cache/debuginfod_client/{id}/debuginfo"))).unwrap();
    let addr2line = |address: u64| -> Vec<(String, u64)> {
        let said = tool("addr2line", &["-e", "shop.debug", "-f", "-i", "-C", &format!("{address:x}")], dir);
        let lines: Vec<&str> = said.lines().collect();
        let line = |place: &str| place.rsplit(':').next().unwrap().split(' ').next().unwrap().parse().unwrap_or(0);
        // The names of DWARF have no arguments.
        let name = |name: &str| name.split('(').next().unwrap().to_owned();
        let mut calls: Vec<_> = lines.chunks(2).map(|pair| (name(pair[0]), line(pair[1]))).collect();
        // It calls what is expanded there, and has no symbol, after the function around it.
        calls.iter_mut().rev().skip(1).for_each(|(name, _)| "price".clone_into(name));
        calls
    };
    let inject = |message: &[u8], flags: &[&str], home: &str| {
        fs::write(dir.join("bare.otlp"), message).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["inject", "-i", "bare.otlp", "-o", "out.otlp"]).args(flags);
        let home = dir.join(home);
        command.current_dir(dir).env("HOME", home).env_remove("XDG_CACHE_HOME").env_remove("DEBUGINFOD_CACHE_PATH");
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        (fs::read(dir.join("out.otlp")).unwrap(), said)
    };
    let gnu = ("process.executable.build_id.gnu", &id[..]);
    let message = of_file("gone-shop", gnu, &addresses, None);
    for (flags, home) in [(&["--debug-dir", "debug"][..], "."), (&[], "home")] {
        let (out, said) = inject(&message, flags, home);
        assert_only_named(&message, &out);
        assert!(said.contains(&format!("named {0} of {0} unnamed addresses", addresses.len())), "{said}");
        let tables = dictionary(&out);
        let functions: Vec<Vec<Field>> = all(&tables, FUNCTION).map(parse).collect();
        let mut inlined = 0;
        for location in all(&tables, LOCATION).map(parse).skip(1) {
            let line = |line: &[u8]| {
                let line = parse(line);
                (text(&tables, number(&functions[number(&line, 1) as usize], 1)), number(&line, 2))
            };
            let lines: Vec<(String, u64)> = all(&location, LINE).map(line).collect();
            assert_eq!(lines, addr2line(number(&location, ADDRESS)));
            inlined += usize::from(lines.len() > 1);
        }
        assert!(inlined > 2, "{inlined} places with calls that were expanded");
    }
    // In memory, at a place of its own, what the loader put there.
    let segments = tool("readelf", &["-lW", "shop.debug"], dir);
    let code = segments.lines().find(|line| line.contains("LOAD") && line.contains(" R E ")).unwrap();
    let hex = |at: usize| u64::from_str_radix(&code.split_whitespace().nth(at).unwrap()[2..], 16).unwrap();
    let (offset, vaddr, size) = (hex(1), hex(2), hex(4));
    let moved = |address: &u64| 0x7f00_0000_0000 + address - vaddr;
    let range = [0x7f00_0000_0000, 0x7f00_0000_0000 + size, offset];
    let places: Vec<u64> = addresses.iter().map(moved).collect();
    let by_hash = of_file(
        dir.join("shop").to_str().unwrap(),
        ("process.executable.build_id.htlhash", &htl_hash(&dir.join("shop"))),
        &places,
        Some(range),
    );
    let in_memory = of_file("shop", gnu, &places, Some(range));
    for message in [&by_hash, &in_memory] {
        let (out, said) = inject(message, &["--debug-dir", "debug"], ".");
        let names = named(&out);
        let wanted =
            addresses.iter().map(|address| addr2line(*address).into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_eq!(
            names[1..].iter().map(|(_, names)| names.clone()).collect::<Vec<_>>(),
            wanted.collect::<Vec<_>>(),
            "{said}"
        );
    }
    // Another version of the file names nothing, and neither does one of which nothing gives the version.
    let other = of_file("shop", ("process.executable.build_id.gnu", &"77".repeat(20)), &addresses, None);
    let (out, said) = inject(&other, &["--debug-dir", "debug"], "home");
    assert!(
        out == other && said.contains("files are missing") && said.contains("debuginfod-find executable 7777"),
        "{said}"
    );
    let wrong_hash = of_file(
        dir.join("shop").to_str().unwrap(),
        ("process.executable.build_id.htlhash", &"77".repeat(16)),
        &addresses,
        None,
    );
    let (out, said) = inject(&wrong_hash, &[], ".");
    assert!(out == wrong_hash && said.contains("its hash (htlhash) is not the one in the profile"), "{said}");
    let unversioned = of_file(dir.join("shop").to_str().unwrap(), ("other", "1"), &addresses, None);
    let (out, said) = inject(&unversioned, &[], ".");
    assert!(
        out == unversioned && said.contains("neither a build ID nor the attribute process.executable.build_id.htlhash"),
        "{said}"
    );
}

/// The hashes of files that mappings have as attributes.
fn htl_hashes(bytes: &[u8]) -> Vec<String> {
    let tables = dictionary(bytes);
    let attributes = all(&tables, ATTRIBUTE).map(parse);
    let of_hash = |attribute: &Vec<Field>| text(&tables, number(attribute, 1)) == "process.executable.build_id.htlhash";
    let hash = |attribute: Vec<Field>| {
        let value = parse(all(&attribute, 2).next().unwrap());
        String::from_utf8(all(&value, 1).next().unwrap().to_vec()).unwrap()
    };
    attributes.filter(of_hash).map(hash).collect()
}

#[test]
fn a_mapping_has_the_hash_of_its_file_if_that_is_here() {
    let recorded = Recorded::of_tiers();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tiers-recording/tiers");
    fs::create_dir_all(recorded.path("root/tmp/demo")).unwrap();
    fs::copy(&program, recorded.path("root/tmp/demo/tiers")).unwrap();
    recorded.jitgraft(&["export", "--symfs", "root", "perf.data", "-o", "whole.otlp"]);
    assert_eq!(htl_hashes(&recorded.read("whole.otlp")), [htl_hash(&program)]);
    recorded.jitgraft(&["export", "whole.otlp", "-o", "again.otlp"]);
    assert_eq!(htl_hashes(&recorded.read("again.otlp")), [htl_hash(&program)]);
    fs::create_dir(recorded.path("empty")).unwrap();
    // A copy by its build ID may be another file of the same build.
    let fixture = program.parent().unwrap().to_str().unwrap();
    recorded.jitgraft(&["export", "--symfs", "empty", "--debug-dir", fixture, "perf.data", "-o", "by-id.otlp"]);
    assert!(htl_hashes(&recorded.read("by-id.otlp")).is_empty());
}

/// By another implementation: `process.executable.build_id.htlhash`.
fn htl_hash(path: &Path) -> String {
    let script = "f=$1; n=$(stat -c %s $f); { head -c 4096 $f; tail -c 4096 $f; printf $(printf %016x $n | sed 's/../\\\\x&/g'); } | sha256sum | head -c 32";
    tool("bash", &["-c", script, "-", path.to_str().unwrap()], path.parent().unwrap())
}
