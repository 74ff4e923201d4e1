//! Properties of any profile and any recording, tried with made-up ones: what is written is read as the same, no
//! conversion loses weight, what inject has done is done, and no output depends on the number of threads.

use super::commands::jitgraft;
use super::scene::{PID, Recording};
use super::scratch::Scratch;
use crate::test_effort::is_thorough;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Weights by stack, root first.
type Sums = BTreeMap<String, u64>;

/// Formats that hold the names and the weights of stacks.
const WHOLE: &[&str] = &["folded", "pprof", "otlp", "otlp-json", "speedscope", "firefox"];

/// Names that mean something to one format or another, and any others; `;` parts frames in folded stacks.
fn name() -> impl Strategy<Value = String> {
    const NAMES: [&str; 15] = [
        "main",
        "f",
        "g::h<T>",
        "operator new(unsigned long)",
        "a b",
        "JS:*f /a.js:1:2",
        "größe",
        "\"q\"",
        "<x>&y",
        "1",
        "[unknown]",
        "a\\b",
        "f,g",
        "=1+1",
        "x:1",
    ];
    prop_oneof![3 => select(&NAMES[..]).prop_map(str::to_owned), 1 => "[!-:<-~]{1,12}"]
}

/// Folded stacks that share frames.
fn stacks() -> impl Strategy<Value = Sums> {
    let names = vec(name(), 2..8);
    let stack = vec(any::<usize>(), 1..9);
    (names, vec((stack, 1..1u64 << 40), 1..20)).prop_map(|(names, stacks)| {
        let spelled = |stack: Vec<usize>| {
            let frames: Vec<&str> = stack.iter().map(|at| &*names[at % names.len()]).collect();
            frames.join(";")
        };
        let mut sums = Sums::new();
        for (stack, weight) in stacks {
            *sums.entry(format!("app;{}", spelled(stack))).or_default() += weight;
        }
        sums
    })
}

fn folded(sums: &Sums) -> String {
    sums.iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect()
}

fn sums(folded: &str) -> Sums {
    let mut sums = Sums::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *sums.entry(stack.to_owned()).or_default() += weight.parse::<u64>().unwrap();
    }
    sums
}

/// The output of a command, or the reason for its failure.
fn run(scratch: &Scratch, words: &[&str], input: &Path) -> Result<Vec<u8>, String> {
    let out = scratch.path("out");
    let mut all: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    all.extend([input.as_os_str(), "-o".as_ref(), out.as_os_str()]);
    jitgraft(&all).map_err(|error| error.to_string())?;
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    Ok(bytes)
}

fn written(scratch: &Scratch, words: &[&str], input: &Path) -> Vec<u8> {
    run(scratch, words, input).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn text(scratch: &Scratch, words: &[&str], input: &Path) -> String {
    String::from_utf8(written(scratch, words, input)).unwrap()
}

/// The stacks of a file of any format.
fn collapsed(scratch: &Scratch, input: &Path) -> Sums {
    sums(&text(scratch, &["collapse", "--jit-names", "raw"], input))
}

/// A file in another format.
fn exported(scratch: &Scratch, input: &Path, format: &str) -> PathBuf {
    let bytes = written(scratch, &["export", "--jit-names", "raw", "--to", format], input);
    scratch.put(&format!("as.{format}"), &bytes)
}

/// The number of cases, the same ones on every machine: others are made by another seed. A quick run tries an eighth.
fn tried(cases: u32) -> ProptestConfig {
    let cases = if is_thorough() { cases } else { cases / 8 };
    ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(17), ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(tried(32))]

    #[test]
    fn a_written_file_is_read_as_the_same(stacks in stacks()) {
        let scratch = Scratch::new();
        let input = scratch.put("stacks.folded", folded(&stacks).as_bytes());
        prop_assert_eq!(&collapsed(&scratch, &input), &stacks);
        for format in WHOLE {
            let file = exported(&scratch, &input, format);
            prop_assert_eq!(&collapsed(&scratch, &file), &stacks, "{}", format);
        }
        // A trace has time only: what has no unit are microseconds.
        let nanos: Sums = stacks.iter().map(|(stack, weight)| (stack.clone(), weight * 1000)).collect();
        prop_assert_eq!(collapsed(&scratch, &exported(&scratch, &input, "chrome")), nanos);
    }

    #[test]
    fn a_profile_stays_the_same_from_format_to_format(stacks in stacks(), way in vec(select(WHOLE), 2..5)) {
        let scratch = Scratch::new();
        let mut file = scratch.put("stacks.folded", folded(&stacks).as_bytes());
        for format in &way {
            file = exported(&scratch, &file, format);
        }
        prop_assert_eq!(&collapsed(&scratch, &file), &stacks, "{:?}", way);
    }
}

/// A recording with what names its code, in a directory.
struct Made {
    scratch: Scratch,
    input: PathBuf,
}

impl Made {
    fn new(recording: &Recording) -> Self {
        let scratch = Scratch::new();
        let input = scratch.put("perf.data", &recording.perf_data);
        scratch.put(&format!("jit-{PID}.dump"), &recording.dump);
        scratch.put(&format!("perf-{PID}.map"), recording.map.as_bytes());
        scratch.put("kallsyms", b"ffffffff81000000 T _text\nffffffff81000040 t do_it\n");
        Self { scratch, input }
    }

    /// The output of a command that reads nothing from this machine.
    fn run(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let (list, nothing) = (self.scratch.path("kallsyms"), self.scratch.path("nothing"));
        std::fs::create_dir_all(&nothing).unwrap();
        let alone = ["--kallsyms", list.to_str().unwrap(), "--symfs", nothing.to_str().unwrap()];
        run(&self.scratch, &[words, &alone[..]].concat(), &self.input)
    }

    /// The output of inject for a file, with the files that it writes beside it.
    fn injected(&self, input: &Path, threads: &str) -> (Vec<u8>, BTreeMap<String, Vec<u8>>) {
        let data = written(&self.scratch, &["inject", "--threads", threads], input);
        let dir = std::fs::read_dir(self.input.parent().unwrap()).unwrap();
        let names = dir.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let images = names.filter(|name| name.ends_with(".so"));
        (data, images.map(|name| (name.clone(), std::fs::read(self.scratch.path(&name)).unwrap())).collect())
    }
}

/// The records of perf.data: pipes have nothing else behind their magic and size.
fn records(file: &[u8], order: fn([u8; 8]) -> u64) -> &[u8] {
    let word = |at: usize| order(file[at..at + 8].try_into().unwrap()) as usize;
    if word(8) == 16 { &file[16..] } else { &file[word(40)..word(40) + word(48)] }
}

/// The way it was recorded: one event, since several go into files of their own.
fn how() -> impl Strategy<Value = u8> {
    any::<u8>().prop_map(|how| how & !32)
}

/// The events of a recording: a sample, and anything else.
fn steps() -> impl Strategy<Value = Vec<u8>> {
    const SAMPLE: [u8; 11] = [0, 0, 1, 5, 6, 1, 2, 3, 4, 1, 2];
    vec(any::<u8>(), 20..400).prop_map(|rest| [&SAMPLE[..], &rest].concat())
}

proptest! {
    #![proptest_config(tried(16))]

    #[test]
    fn inject_changes_an_injected_recording_no_more(how in how(), steps in steps()) {
        let made = Made::new(&super::scene::recording(how, &steps, 1));
        let (once, _) = made.injected(&made.input, "1");
        let (twice, _) = made.injected(&made.scratch.put("once.data", &once), "1");
        let order = if how & 1 == 0 { u64::from_le_bytes } else { u64::from_be_bytes };
        prop_assert!(records(&once, order) == records(&twice, order));
    }

    #[test]
    fn no_conversion_loses_weight(how in how(), steps in steps()) {
        let made = Made::new(&super::scene::recording(how, &steps, 1));
        let whole = |sums: Sums| sums.values().sum::<u64>();
        let all = whole(sums(&String::from_utf8(made.run(&["collapse"]).unwrap()).unwrap()));
        // Counters that stood still are not weight, and no stack.
        let formats: &[&str] = if all == 0 { &[] } else { &["folded", "pprof", "otlp", "speedscope", "firefox", "callgrind"] };
        for format in formats {
            let bytes = made.run(&["export", "--to", format]).unwrap();
            let file = made.scratch.put(&format!("as.{format}"), &bytes);
            prop_assert_eq!(whole(collapsed(&made.scratch, &file)), all, "{}", format);
        }
    }

    #[test]
    fn no_output_depends_on_the_number_of_threads(how in how(), steps in steps(), times in select(&[1, 300][..])) {
        let recording = super::scene::recording(how, &steps, times);
        const COMMANDS: [&[&str]; 6] = [
            &["collapse", "--by", "tid", "--annotate", "pid,kernel,jit,inline,addrs"],
            &["script"],
            &["report", "--format", "csv"],
            &["export", "--to", "json"],
            &["export", "--to", "firefox"],
            &["flamegraph"],
        ];
        let made = Made::new(&recording);
        for words in COMMANDS {
            let [one, two, eight] =
                ["1", "2", "8"].map(|threads| made.run(&[words, &["--threads", threads]].concat()));
            prop_assert!(one == two && two == eight, "{:?}: {:?}", words, one.err().or(two.err()).or(eight.err()));
        }
        let [one, two, eight] = ["1", "2", "8"].map(|threads| {
            let injected = made.injected(&made.input, threads);
            injected.1.keys().for_each(|name| std::fs::remove_file(made.scratch.path(name)).unwrap());
            injected
        });
        prop_assert!(one == two && two == eight, "inject");
    }
}
