//! Whole commands, as they are typed, over files: they may fail, and nothing else.

use super::framed::Bytes;
use super::scratch::{Scratch, parts};
use crate::error::Result;
use crate::internals::cli::Cli;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

/// Runs a command quietly, with one thread unless its words state otherwise.
pub fn jitgraft(words: &[&OsStr]) -> Result<ExitCode> {
    let (job, rest) = words.split_first().expect("a job");
    let first = ["jitgraft".as_ref(), *job, "-q".as_ref(), "--threads".as_ref(), "1".as_ref()];
    let words = first.iter().chain(rest).map(|&word: &&OsStr| word.to_owned());
    let cli = Cli::from_words(words).unwrap_or_else(|error| panic!("{error}"));
    cli.run()
}

/// A recording with what names its code.
pub(super) struct Given<'a> {
    pub(super) perf_data: &'a [u8],
    pub(super) dump: &'a [u8],
    pub(super) map: &'a [u8],
    /// The process of the dump and map.
    pub(super) pid: u32,
}

/// The commands for a recording. The kernel's list is a small one, binaries are looked for where none are.
const OVER_RECORDINGS: &[&[&str]] = &[
    &["collapse"],
    &["script"],
    &["script", "-F", "+srcline,+brstack,+brstacksym,+addr,+uregs,+iregs"],
    &["report"],
    &["report", "--tree"],
    &["export", "--to", "firefox"],
    &["export", "--to", "speedscope"],
    &["export", "--to", "pprof"],
    &["export", "--to", "json"],
    &["export", "--to", "chrome"],
    &["export", "--to", "callgrind"],
    &["export", "--to", "csv"],
    &["flamegraph"],
    &["view"],
    &["collapse", "--by", "tid", "--annotate", "pid,kernel,jit,inline,addrs", "--jit-names", "pretty", "--merge-tiers"],
    &["annotate"],
    &["annotate", "--by", "line", "--format", "json"],
    &["doctor"],
    &["flamegraph", "--style", "inferno"],
    #[cfg(feature = "tables")]
    &["export", "--to", "parquet"],
];

const INJECTIONS: &[&[&str]] = &[
    &[],
    &["--all-functions"],
    &["--convert-callchain"],
    &["--relocate"],
    &["--drop-bad-chain-entries"],
    &["-b"],
    &["--mmap2-buildid-all"],
];

/// Runs one command over a recording: which, the byte states. The output of inject is read again.
pub(super) fn over_recording(given: &Given<'_>, command: u8) {
    let scratch = Scratch::new();
    let input = scratch.put("perf.data", given.perf_data);
    if !given.dump.is_empty() {
        scratch.put(&format!("jit-{}.dump", given.pid), given.dump);
    }
    if !given.map.is_empty() {
        scratch.put(&format!("perf-{}.map", given.pid), given.map);
    }
    let at = usize::from(command >> 1);
    match command & 1 {
        0 => inject_and_read(&scratch, &input, INJECTIONS[at % INJECTIONS.len()]),
        _ => {
            let list = scratch.put("kallsyms", b"ffffffff81000000 T _text\nffffffff81000040 t do_it\n");
            let out = scratch.path("out");
            let words = OVER_RECORDINGS[at % OVER_RECORDINGS.len()];
            let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            let nothing = scratch.path("nothing");
            std::fs::create_dir_all(&nothing).unwrap();
            words.extend([
                OsStr::new("-i"),
                input.as_os_str(),
                OsStr::new("-o"),
                out.as_os_str(),
                OsStr::new("--kallsyms"),
                list.as_os_str(),
            ]);
            words.extend([OsStr::new("--symfs"), nothing.as_os_str()]);
            let _ = jitgraft(&words);
        }
    }
}

fn inject_and_read(scratch: &Scratch, input: &Path, options: &[&str]) {
    let injected = |input: &Path, out: &Path| {
        let mut words: Vec<&OsStr> = vec![OsStr::new("inject"), input.as_os_str(), OsStr::new("-o"), out.as_os_str()];
        words.extend(options.iter().map(OsStr::new));
        jitgraft(&words)
    };
    let (once, twice) = (scratch.path("once.data"), scratch.path("twice.data"));
    if injected(input, &once).is_ok() {
        let again = injected(&once, &twice);
        assert!(again.is_ok(), "what inject has written, inject reads: {:?}", again.err());
    }
}

/// A recording, its dump, its map: parts of any bytes. The dump's header shows whose it is.
pub(super) fn inject(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let command = bytes.byte();
    let [perf_data, dump, map] = parts(bytes.0);
    let pid = dump.get(20..24).and_then(|bytes| bytes.first_chunk()).map_or(4_300_000, |pid| u32::from_le_bytes(*pid));
    over_recording(&Given { perf_data, dump, map, pid }, command);
}

/// The process that a text of perf script or valgrind begins with.
fn first_number(text: &[u8]) -> u32 {
    let head = &text[..text.len().min(4096)];
    let mut words = head.split(|byte| !byte.is_ascii_digit()).filter(|word| !word.is_empty());
    words.find_map(|word| str::from_utf8(word).ok()?.parse().ok().filter(|&number| number > 1)).unwrap_or(1)
}

/// A text of perf script, and a map for its first process.
pub(super) fn script(bytes: &[u8]) {
    const OPTIONS: [&[&str]; 4] = [&[], &["--rename"], &["--native", "--symfs", "/dev"], &["-F", "+srcline"]];
    let mut bytes = Bytes(bytes);
    let options = OPTIONS[usize::from(bytes.byte() & 3)];
    named(&["script"], options, bytes.0);
}

/// A profile of callgrind, or a report of another of valgrind's tools, and a map for its process.
pub(super) fn callgrind(bytes: &[u8]) {
    named(&["callgrind"], &[], bytes);
}

fn named(command: &[&str], options: &[&str], bytes: &[u8]) {
    let [map, text] = parts(bytes);
    let scratch = Scratch::new();
    let pid = first_number(text);
    let input = scratch.put(&format!("callgrind.out.{pid}"), text);
    let map = scratch.put(&format!("perf-{pid}.map"), map);
    let out = scratch.path("out");
    let mut words: Vec<&OsStr> = command.iter().chain(options).map(OsStr::new).collect();
    words.extend([input.as_os_str(), OsStr::new("-o"), out.as_os_str(), OsStr::new("--perf-map"), map.as_os_str()]);
    let _ = jitgraft(&words);
}

/// Two files, added up or compared.
pub(super) fn merge(bytes: &[u8]) {
    const TO: [&str; 4] = ["folded", "pprof", "json", "speedscope"];
    const COMPARE: [&str; 3] = ["flamegraph", "report", "view"];
    let mut bytes = Bytes(bytes);
    let how = bytes.byte();
    let to = TO[usize::from(how & 3)];
    let [one, other] = parts(bytes.0);
    let scratch = Scratch::new();
    let (one, other, out) = (scratch.put("one", one), scratch.put("other", other), scratch.path("out"));
    if let Some(command) = COMPARE.get(usize::from(how >> 2 & 7)) {
        let before = [OsStr::new(command), OsStr::new("--diff"), one.as_ref()];
        let words = before.into_iter().chain([OsStr::new("-i"), other.as_ref(), OsStr::new("-o"), out.as_ref()]);
        let _ = jitgraft(&words.collect::<Vec<_>>());
        return;
    }
    let words: [&OsStr; 7] = [
        OsStr::new("merge"),
        one.as_ref(),
        other.as_ref(),
        OsStr::new("--to"),
        to.as_ref(),
        OsStr::new("-o"),
        out.as_ref(),
    ];
    let _ = jitgraft(&words);
}

/// Any file, packed or not, as whatever it is taken for.
pub(super) fn convert(bytes: &[u8]) {
    const COMMANDS: &[&[&str]] = &[
        &["collapse"],
        &["flamegraph"],
        &["view"],
        &["report"],
        &["report", "--tree"],
        &["stats"],
        &["export", "--to", "firefox"],
        &["export", "--to", "speedscope"],
        &["export", "--to", "pprof"],
        &["export", "--to", "json"],
        &["export", "--to", "chrome"],
        &["export", "--to", "callgrind"],
        &["export", "--to", "csv"],
        &["annotate"],
        &["doctor"],
        &["inject"],
    ];
    let mut bytes = Bytes(bytes);
    let which = COMMANDS[usize::from(bytes.byte()) % COMMANDS.len()];
    let scratch = Scratch::new();
    let (input, out) = (scratch.put("input", bytes.0), scratch.path("out"));
    let mut words: Vec<&OsStr> = which.iter().map(OsStr::new).collect();
    words.extend([OsStr::new("-i"), input.as_os_str(), OsStr::new("-o"), out.as_os_str()]);
    let _ = jitgraft(&words);
}
