//! The outputs of large inputs: the same for any number of threads, from a file and from a pipe, in memory that does
//! not grow with what is summed.

use crate::support::effort::is_thorough;
use crate::support::limits;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// At most so many bytes of a text are read as one block.
const BLOCK: usize = 1 << 19;

/// A text of perf script of this many samples: three threads, two events, stacks that start and end alike, sources,
/// record lines, samples of one line, and what is none. With it, what is to be reported for each event.
fn text(samples: usize) -> (String, [BTreeMap<String, u64>; 2]) {
    let (mut text, mut sums) = (String::new(), [BTreeMap::new(), BTreeMap::new()]);
    for n in 0..samples {
        let (comm, period, event) = (["app", "app two", "x"][n % 3], n % 5 + 1, ["cycles", "faults"][n / 7 % 2]);
        if n % 50 == 0 {
            writeln!(text, "{comm} {} 1.000002: PERF_RECORD_COMM: {comm}:7/{}", n % 3, n % 3).unwrap();
        }
        write!(text, "{comm} 7/{} {}.{:06}: {period:10} {event}: ", n % 3, n / 1000, n % 1000).unwrap();
        let mut stack = vec![comm.replace(' ', "_")];
        if n % 11 == 0 {
            writeln!(text, " 7f1 alone (/bin/app)").unwrap();
            stack.push("alone".to_owned());
        } else {
            let callers = n % 17;
            let leaf = format!("leaf_{}", n * n % 23);
            writeln!(text, "\n\t 7f1 {leaf}+0x1 (/bin/app)").unwrap();
            for caller in (0..callers).rev() {
                writeln!(text, "\t 7f{caller:x} caller_{}+0x{:x} (/bin/app)", caller * (n % 2 + 1), n % 4).unwrap();
            }
            text.push('\n');
            stack.extend((0..callers).map(|caller| format!("caller_{}", caller * (n % 2 + 1))));
            stack.push(leaf);
        }
        *sums[n / 7 % 2].entry(stack.join(";")).or_insert(0) += period as u64;
    }
    (text, sums)
}

fn folded(sums: &BTreeMap<String, u64>) -> String {
    sums.iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect()
}

fn jitgraft(args: &[&str], input: &Path, piped: bool) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("-q").args(args);
    let mut child = match piped {
        true => command.arg("-").stdin(Stdio::piped()),
        false => command.arg(input),
    }
    .current_dir(input.parent().unwrap())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let (pipe, bytes) = (child.stdin.take(), fs::read(input).unwrap());
    let writer = std::thread::spawn(move || pipe.into_iter().try_for_each(|mut pipe| pipe.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{args:?}");
    output.stdout
}

#[test]
fn texts_of_many_blocks_are_summed_alike_by_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (text, sums) = text(if is_thorough() { 40_000 } else { 8_000 });
    assert!(text.len() > 3 * BLOCK, "{} bytes are no three blocks", text.len());
    let input = dir.path().join("perf.txt");
    fs::write(&input, text).unwrap();
    for (event, sums) in ["cycles", "faults"].into_iter().zip(&sums) {
        let expected = folded(sums);
        let ways = [("1", false), ("3", true), ("2", false), ("8", false)];
        let tried = if is_thorough() { 4 } else { 2 };
        for (threads, piped) in ways.into_iter().take(tried) {
            let out = jitgraft(&["collapse", "--event", event, "--threads", threads], &input, piped);
            assert!(String::from_utf8(out).unwrap() == expected, "{event}, {threads} threads, from a pipe: {piped}");
        }
    }
    let csv = |threads| jitgraft(&["export", "--to", "csv", "--threads", threads], &input, false);
    assert!(csv("1") == csv("3"), "samples stand in the order of the text");
}

#[test]
fn folded_stacks_of_many_blocks_are_summed_alike_by_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("x.folded");
    let (_, [sums, _]) = text(3_000);
    let lines = folded(&sums);
    let times = if is_thorough() { 18 } else { 6 } * BLOCK / lines.len() + 1;
    fs::write(&input, lines.repeat(times)).unwrap();
    let expected: BTreeMap<String, u64> =
        sums.into_iter().map(|(stack, weight)| (stack, weight * times as u64)).collect();
    for (threads, piped) in [("1", false), ("2", true), ("8", false)] {
        let out = jitgraft(&["collapse", "--threads", threads], &input, piped);
        assert!(String::from_utf8(out).unwrap() == folded(&expected), "{threads} threads, from a pipe: {piped}");
    }
}

#[test]
fn a_line_of_noise_is_reported_by_its_place_in_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let (mut text, _) = text(6_000);
    let at = text.len();
    assert!(at > 2 * BLOCK, "{at} bytes are one block");
    text += "\nnoise\n";
    for (name, text) in [("perf.txt", text), ("x.folded", "a;b 1\n".repeat(2 * BLOCK / 6) + "noise\n")] {
        let (input, at) = (dir.path().join(name), text.len() - "noise\n".len());
        fs::write(&input, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(&input).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("at byte {at:#x}: 1 line skipped")), "{said}");
    }
}

/// Runs with so much memory beside what the program itself takes; how many bytes were written.
fn within(mebibytes: u64, args: &[&str], input: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send) -> u64 {
    let limit = limits::loaded_kib() + mebibytes * 1024;
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {limit}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_jitgraft"), "-q"])
        .args(args)
        // Otherwise the C library reserves 64 MB of addresses for each thread.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut pipe, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let len = std::thread::scope(|scope| {
        let writer = scope.spawn(move || input(&mut pipe));
        let len = std::io::copy(&mut out, &mut std::io::sink()).unwrap();
        writer.join().unwrap().unwrap();
        len
    });
    assert!(child.wait().unwrap().success(), "{args:?}");
    len
}

/// Was copied to a file, and read as a whole.
#[test]
fn memory_for_a_text_does_not_grow_with_its_length() {
    let (text, [sums, _]) = text(9_000);
    let written = within(32, &["collapse", "--event", "cycles", "--threads", "2", "-"], |pipe| {
        (0..16).try_for_each(|_| pipe.write_all(text.as_bytes()))
    });
    assert!(16 * text.len() > 36 << 20);
    assert!(written > folded(&sums).len() as u64 && written < 2 * folded(&sums).len() as u64);
}

/// Each sample lists all its frames there: of spans in spans that is half the square of their number.
#[test]
fn memory_for_pprof_does_not_grow_with_the_lists_of_frames() {
    let spans = if is_thorough() { 7_000 } else { 5_000 };
    let span = |n: usize| {
        format!(r#"{{"name":"span {}","ph":"X","ts":{n},"dur":{},"pid":7,"tid":7}}"#, n % 100, 2 * (spans - n))
    };
    let trace = format!("[{}]\n", (0..spans).map(span).collect::<Vec<_>>().join(",\n"));
    // All lists together are 190 MB, or 100 MB in a quick run.
    let args = ["export", "--to", "pprof", "--threads", "1", "-o", "/dev/stdout", "-"];
    assert!(within(64, &args, |pipe| pipe.write_all(trace.as_bytes())) > 10_000);
}
