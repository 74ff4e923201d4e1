//! V8's log beside a recording without jitdump and perf map: every name, every inlined call and every line, held
//! against a second reader of the log, which shares no code with the one under test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const FIXTURE: &str = "fixtures/v8-log/perf.data.zst";
const LOG: &str = "fixtures/v8-log/isolate-0x807ceb0-15895-v8.log";
const WITH_DUMP: &str = "fixtures/v8-log-and-dump/perf.data.zst";
const WITH_DUMP_LOG: &str = "fixtures/v8-log-and-dump/isolate-0x3ef9bf00-16080-v8.log";
/// The kind of bytecode in node 20.
const BYTECODE: &str = "10";

/// A function with the line that it is at.
type Place = (String, u32);

/// One `code-creation` of machine code.
#[derive(Debug)]
struct Made {
    addr: u64,
    size: u64,
    /// `JS:*`, and the rest.
    tag: String,
    name: String,
    script: String,
    positions: Vec<[Option<usize>; 3]>,
    inlined: Vec<[Option<usize>; 3]>,
    /// Names and scripts of the functions that were inlined.
    functions: Vec<(String, String)>,
}

#[derive(Debug, Default)]
struct SecondReader {
    made: Vec<Made>,
    scripts: BTreeMap<String, Vec<u16>>,
}

impl SecondReader {
    fn read(text: &str) -> Self {
        let (mut all, mut names, mut scripts_of) = (Self::default(), BTreeMap::new(), BTreeMap::new());
        let mut lines = text.lines();
        let mut last = (String::new(), false);
        while let Some(line) = lines.next() {
            let (word, rest) = line.split_once(',').unwrap_or((line, ""));
            match word {
                "code-creation" => {
                    let mut rest = rest.to_owned();
                    let ours = rest.starts_with("JS,") || rest.starts_with("Eval,");
                    while ours && !rest.ends_with([',', '~', '^', '*']) {
                        rest = rest + "\n" + lines.next().unwrap();
                    }
                    last = all.created(&rest, ours, &mut names);
                }
                "script-source" => {
                    let fields: Vec<&str> = rest.split(',').collect();
                    all.scripts.insert(fields[0].to_owned(), unescaped(fields[2]));
                }
                "code-source-info" => {
                    let fields: Vec<&str> = rest.split(',').collect();
                    let (function, machine_code) = &last;
                    scripts_of.insert(function.clone(), fields[1].to_owned());
                    if *machine_code {
                        let known = |function: &str| {
                            (names[function].clone(), scripts_of.get(function).cloned().unwrap_or_default())
                        };
                        let made = all.made.last_mut().unwrap();
                        made.script = fields[1].to_owned();
                        made.positions = entries(fields[4], ['C', 'O', 'I']);
                        made.inlined = entries(fields[5], ['F', 'O', 'I']);
                        made.functions = fields[6].split('S').skip(1).map(known).collect();
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// The function's number, and whether it is machine code.
    fn created(&mut self, rest: &str, ours: bool, names: &mut BTreeMap<String, String>) -> (String, bool) {
        let head: Vec<&str> = rest.splitn(6, ',').collect();
        let (mut name, mut function, mut tier) = (head[5].to_owned(), String::new(), "");
        if ours {
            let tail: Vec<&str> = head[5].rsplitn(3, ',').collect();
            (tier, function) = (tail[0], tail[1].to_owned());
            name = tail[2].to_owned();
            names.insert(function.clone(), name.clone());
        } else {
            name = String::from_utf16(&unescaped(&name)).unwrap();
        }
        if ours && head[1] == BYTECODE {
            return (function, false);
        }
        let addr = u64::from_str_radix(&head[3][2..], 16).unwrap();
        self.made.push(Made {
            addr,
            size: head[4].parse().unwrap(),
            tag: format!("{}:{tier}", head[0]),
            name,
            script: String::new(),
            positions: Vec::new(),
            inlined: Vec::new(),
            functions: Vec::new(),
        });
        (function, true)
    }

    fn line(&self, script: &str, offset: Option<usize>) -> u32 {
        let Some((text, offset)) = self.scripts.get(script).zip(offset) else { return 0 };
        1 + text[..offset].iter().filter(|unit| **unit == u16::from(b'\n')).count() as u32
    }

    /// The functions at an address of this code, innermost first.
    fn chain(&self, made: &Made, addr: u64) -> Vec<Place> {
        let own = |offset| (made.tag.clone() + &made.name, self.line(&made.script, offset));
        let mut before = made.positions.iter().filter(|position| made.addr + position[0].unwrap() as u64 <= addr);
        let Some([_, mut offset, mut inside]) = before.next_back().copied() else { return vec![own(None)] };
        let mut chain = Vec::new();
        while let Some(call) = inside.map(|call| made.inlined[call]) {
            // V8 gives some functions no number.
            chain.push(match call[0].map(|function| &made.functions[function]) {
                Some((name, script)) => (made.tag.clone() + name, self.line(script, offset)),
                // V8 gives some functions no number.
                None => ("(unknown)".to_owned(), 0),
            });
            (offset, inside) = (call[1], call[2]);
        }
        chain.push(own(offset));
        chain
    }

    /// The possible code at an address, at any time. Builtins are node's own code, which another machine may not have.
    fn at(&self, addr: u64) -> Vec<Vec<Place>> {
        let made = self.made.iter().filter(|made| made.tag != "Builtin:");
        let there = made.filter(|made| (made.addr..made.addr + made.size).contains(&addr));
        there.map(|made| self.chain(made, addr)).collect()
    }
}

/// `C12O34I5C…`: the last number may be missing.
fn entries(text: &str, letters: [char; 3]) -> Vec<[Option<usize>; 3]> {
    let number = |entry: &str, letter: char| {
        let (_, rest) = entry.split_once(letter)?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    let entries = text.split(letters[0]).skip(1).map(|entry| format!("{}{entry}", letters[0]));
    entries.map(|entry| letters.map(|letter| number(&entry, letter))).collect()
}

fn unescaped(text: &str) -> Vec<u16> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let hexadecimal = |len: usize| u16::from_str_radix(&rest[2..2 + len], 16).unwrap();
        let (unit, len) = match &rest.as_bytes()[..rest.len().min(2)] {
            b"\\n" => (10, 2),
            b"\\\\" => (92, 2),
            b"\\x" => (hexadecimal(2), 4),
            b"\\u" => (hexadecimal(4), 6),
            _ => (letter as u16, letter.len_utf8()),
        };
        units.push(unit);
        rest = &rest[len..];
    }
    units
}

fn jitgraft(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The frames of a text: the address to look up, and the functions there with their lines, innermost first.
fn frames(text: &str) -> Vec<(u64, Vec<Place>)> {
    let (mut frames, mut functions, mut leaf, mut whole) = (Vec::new(), Vec::<Place>::new(), true, None);
    let lines: Vec<&str> = text.lines().chain([""]).collect();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("  ") {
            let place = line.strip_suffix(" (inlined)").unwrap_or(line);
            let number = place.rsplit_once(':').and_then(|(_, number)| number.parse().ok());
            functions.last_mut().unwrap().1 = number.unwrap_or(0);
            continue;
        }
        if let Some(addr) = whole.take() {
            frames.push((addr, std::mem::take(&mut functions)));
        }
        let Some(frame) = line.strip_prefix('\t') else {
            leaf = true;
            continue;
        };
        let (addr, name) = frame.trim_start().split_once(' ').unwrap();
        let addr = u64::from_str_radix(addr, 16).unwrap();
        let own = name.strip_suffix(" (inlined)");
        functions.push((own.unwrap_or(name).to_owned(), 0));
        // perf states it behind the place in the source, if it prints that.
        let is_inlined = own.is_some() || lines[at + 1].starts_with("  ") && lines[at + 1].ends_with(" (inlined)");
        if !is_inlined {
            whole = Some(if leaf { addr } else { addr.wrapping_sub(1) });
            leaf = false;
        }
    }
    frames
}

fn printed(place: &Place) -> Place {
    (place.0.replace('\n', " "), place.1)
}

#[test]
fn every_name_inlined_call_and_line_is_what_a_second_reader_of_the_log_states() {
    let text = jitgraft(&["script", "-F", "ip,sym,srcline", "-i", FIXTURE]);
    let second = SecondReader::read(&fs::read_to_string(LOG).unwrap());
    let (mut covered, mut inlined, mut lines) = (0, 0, 0);
    for (addr, functions) in frames(&text) {
        let wanted = second.at(addr);
        if wanted.is_empty() {
            assert!(!functions.iter().any(|(name, _)| name.starts_with("JS:")), "{addr:x}: {functions:?}");
            continue;
        }
        covered += 1;
        let wanted: Vec<Vec<Place>> = wanted.iter().map(|chain| chain.iter().map(printed).collect()).collect();
        assert!(wanted.contains(&functions), "{addr:x}: {functions:?} instead of {wanted:?}");
        inlined += usize::from(functions.len() > 1);
        lines += usize::from(functions.iter().all(|(_, line)| *line > 0));
    }
    assert!(covered > 1000 && inlined > 50 && lines > 100, "{covered} frames, {inlined} inlined, {lines} lines");
}

#[test]
fn a_call_of_a_function_without_a_number_is_of_nobody_has_whom() {
    let log = "code-creation,JS,5,10,0x1000,64,f /a.js:1:1,0x10,*\ncode-source-info,0x1000,1,0,9,C0O0C4O5I0,FO3,\n";
    let place = |name: &str| (name.to_owned(), 0);
    assert_eq!(SecondReader::read(log).at(0x1008), [[place("(unknown)"), place("JS:*f /a.js:1:1")]]);
}

#[test]
fn the_log_is_found_by_its_name_and_tied_to_the_recording() {
    let said = jitgraft(&["doctor", "-i", FIXTURE]);
    let (named, _) = said.split_once(" frames of JIT code have a name").expect(&said);
    let counts: Vec<&str> = named.rsplit(' ').take(3).collect();
    assert_eq!(counts[0], counts[2], "{said}");
    assert!(said.contains("V8 log") && said.contains("times estimated to within 0.069 ms"), "{said}");
}

/// The weights of all stacks with this function, and of all stacks.
fn weights(folded: &str, function: &str) -> (u64, u64) {
    let stacks = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let stacks: Vec<(&str, u64)> = stacks.map(|(stack, weight)| (stack, weight.parse().unwrap())).collect();
    let with = stacks.iter().filter(|(stack, _)| stack.split(';').any(|frame| frame == function));
    (with.map(|(_, weight)| weight).sum(), stacks.iter().map(|(_, weight)| weight).sum())
}

#[test]
fn inlined_functions_are_frames_of_their_own_unless_nobody_wants_them() {
    let inner = "JS:*inner /tmp/app/points.js:8:15";
    let (with, whole) = weights(&jitgraft(&["collapse", "-i", FIXTURE]), inner);
    let (without, same) = weights(&jitgraft(&["collapse", "--no-inline", "-i", FIXTURE]), inner);
    assert_eq!(whole, same);
    assert!(with > 10 * without && with * 10 > whole, "{with} and {without} of {whole}");
    let pretty = jitgraft(&["collapse", "--jit-names", "pretty", "-i", FIXTURE]);
    assert_eq!(weights(&pretty, "inner points.js:8:15 turbofan"), (with, whole));
}

#[test]
fn a_function_that_was_inlined_is_of_the_tier_of_the_code_around_it() {
    let document: serde_json::Value =
        serde_json::from_str(&jitgraft(&["export", "--to", "json", "-i", FIXTURE])).unwrap();
    let of_inner = |frame: &&serde_json::Value| frame["name"].as_str().unwrap().contains("inner /tmp/app");
    let frames = document["frames"].as_array().unwrap().iter().filter(of_inner);
    let seen: BTreeSet<(&str, &str, &str)> = frames
        .map(|frame| {
            let text = |key: &str| frame[key].as_str().unwrap_or("");
            (text("name"), text("kind"), text("tier"))
        })
        .collect();
    assert!(seen.contains(&("JS:*inner /tmp/app/points.js:8:15", "jit", "optimized")), "{seen:?}");
    assert!(seen.iter().all(|(_, kind, tier)| *kind == "jit" && !tier.is_empty()), "{seen:?}");
}

/// The lines of a text without those of inlined calls.
fn without_inlined(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.ends_with(" (inlined)")).collect()
}

#[test]
fn a_log_beside_a_dump_reports_inlined_calls_and_leaves_every_name_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let alone = dir.path().join("perf.data.zst");
    fs::copy(WITH_DUMP, &alone).unwrap();
    let dump = Path::new(WITH_DUMP).with_file_name("jit-16080.dump");
    fs::copy(&dump, dir.path().join("jit-16080.dump")).unwrap();
    let text = |path: &str| jitgraft(&["script", "-F", "ip,sym", "-i", path]);
    let (both, by_dump) = (text(WITH_DUMP), text(alone.to_str().unwrap()));
    let named = |line: &&&str| line.contains(" JS:*");
    let names = without_inlined(&both);
    assert!(names.iter().filter(named).count() > 150);
    let is_known = |line: &&str| !line.ends_with(" [unknown]");
    let by_dump = without_inlined(&by_dump);
    assert_eq!(names.len(), by_dump.len());
    let kept = names.iter().zip(&by_dump).filter(|(_, line)| is_known(line));
    kept.for_each(|(with, without)| assert_eq!(with, without));
    let second = SecondReader::read(&fs::read_to_string(WITH_DUMP_LOG).unwrap());
    let mut inlined = 0;
    for (addr, functions) in frames(&both).into_iter().filter(|(_, functions)| functions.len() > 1) {
        if !functions.last().unwrap().0.starts_with("JS:") {
            continue;
        }
        inlined += 1;
        let names = |chain: &[Place]| chain.iter().map(|place| printed(place).0).collect::<Vec<_>>();
        let wanted: Vec<_> = second.at(addr).iter().map(|chain| names(chain)).collect();
        assert!(wanted.contains(&names(&functions)), "{addr:x}: {functions:?} instead of {wanted:?}");
    }
    assert!(inlined > 50, "{inlined}");
}

#[test]
fn doctor_states_what_a_log_beside_a_dump_is_good_for() {
    let said = jitgraft(&["doctor", "-i", WITH_DUMP]);
    let line = said.lines().find(|line| line.contains("V8 log")).expect(&said);
    assert!(
        line.contains("adds source lines and inlined calls to") && line.contains("functions of the jitdump"),
        "{line}"
    );
    assert!(said.contains("jitdump fixtures/v8-log-and-dump/jit-16080.dump"), "{said}");
}

#[test]
#[ignore = "needs node: tests/run.sh --all"]
fn a_log_names_what_the_dump_of_the_same_run_names() {
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v8-log/points.js");
    let command = "exec perf record -k mono -e cpu-clock -F 999 -g -o perf.data node --perf-prof --log-code \
        --log-source-position --interpreted-frames-native-stack";
    let command = format!("{command} '{}'", script.display());
    let output = Command::new("sh").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recording = dir.path().join("perf.data");
    let text = || jitgraft(&["script", "--no-inline", "-F", "ip,sym", "-i", recording.to_str().unwrap()]);
    let by_dump = text();
    let is_dump = |path: &Path| path.extension().is_some_and(|extension| extension == "dump");
    let paths = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| is_dump(path)).for_each(|path| fs::remove_file(path).unwrap());
    let by_log = text();
    let (mut jit, mut same) = (0, 0);
    for (one, other) in by_dump.lines().zip(by_log.lines()).filter(|(one, _)| one.contains(" JS:")) {
        jit += 1;
        same += usize::from(one == other);
    }
    assert!(jit > 1000 && same * 1000 >= jit * 999, "{same} of {jit} frames are named alike");
}
