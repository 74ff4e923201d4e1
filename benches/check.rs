//! Compares the names that perf prints of an injected recording with a brute-force look-up, for any recording:
//!
//! ```text
//! perf script --no-inline --ns -F pid,tid,time,ip,sym,dso -i OUT > out.txt
//! cargo bench --bench check -- PERF.DATA out.txt [absolute] PID=jit-PID.dump … PID=perf-PID.map …
//! ```
//!
//! PERF.DATA is the recording before it was injected. `absolute`: the text has run-time addresses (newer perf prints
//! them), which are taken instead of the recording's own: needed with copies of user stacks.
//! Prints a line of numbers, and what is wrong. Without arguments nothing is done.

#[path = "../tests/inject/truth.rs"]
mod truth;

use truth::{Recording, Truth, judge, judge_printed, read_script};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let [data, text, options @ ..] = args.as_slice() else {
        println!("usage: cargo bench --bench check -- PERF.DATA SCRIPT.TXT [absolute] PID=DUMP|MAP …");
        return;
    };
    let read = |path: &str| std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let recording = Recording::read(&read(data));
    let mut truth = Truth::default();
    for (pid, path) in options.iter().filter_map(|option| option.split_once('=')) {
        let pid = pid.parse().unwrap_or_else(|_| panic!("not a process: {pid}"));
        let add = if path.ends_with(".map") { Truth::add_map } else { Truth::add_dump };
        add(&mut truth, pid, &read(path));
    }
    truth.add_recording(&recording);
    truth.settle();
    let printed = read_script(&read(text));
    let absolute = options.iter().any(|option| option == "absolute");
    let verdict = if absolute { judge_printed(&truth, &printed) } else { judge(&truth, &recording, &printed) };
    println!(
        "user {} unresolved {} unresolved_jit {} covered {} right {}",
        verdict.user, verdict.unresolved, verdict.unresolved_jit, verdict.covered, verdict.right
    );
    verdict.wrong.iter().for_each(|wrong| println!("wrong: {wrong}"));
}
