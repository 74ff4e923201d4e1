//! Writes a generated recording of any size, for comparisons of whole programs:
//!
//! ```text
//! cargo run --release --features tools --example generate -- DIR LOADS SAMPLES [moves] [processes=N] [heap=BYTES]
//! ```
//!
//! Each process has this many bytes of JIT memory, or 40 for each of its loads. DIR gets `perf.data`, `jit-PID.dump`
//! and `truth.txt`: one line a sample in the order of time, `PID TIME`, then TAB and `ADDRESS NAME` for each frame,
//! leaf first.

#[path = "../support/generated.rs"]
mod generated;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/writers/mod.rs"]
#[expect(dead_code, reason = "the writers can do more than this program needs")]
mod writers;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use bytes::Order;
use generated::{Plan, generate, name};
use perf_data::Mode;
use writers::{bytes, jitdump, perf_data};

fn main() -> std::io::Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, loads, samples, options @ ..] = args.as_slice() else {
        eprintln!("usage: generate DIR LOADS SAMPLES [moves] [processes=N] [heap=BYTES]");
        return Ok(ExitCode::from(2));
    };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("not a number: {text}"));
    let processes = options.iter().find_map(|option| option.strip_prefix("processes=")).map_or(1, number);
    let heap = options.iter().find_map(|option| option.strip_prefix("heap=")).map(|bytes| number(bytes).into());
    let moves = options.iter().any(|option| option == "moves");
    let plan = Plan {
        loads: number(loads).into(),
        samples: number(samples).into(),
        processes,
        heap,
        moves,
        order: Order::Little,
        mode: Mode::File,
    };
    fs::create_dir_all(dir)?;
    let dir = fs::canonicalize(dir)?;
    let made = generate(plan, &dir.to_string_lossy());
    fs::write(dir.join("perf.data"), &made.perf_data)?;
    for (pid, dump) in &made.dumps {
        fs::write(dir.join(format!("jit-{pid}.dump")), dump)?;
    }
    write_truth(&dir.join("truth.txt"), &made.truth)?;
    Ok(ExitCode::SUCCESS)
}

fn write_truth(path: &Path, truth: &[generated::Sample]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for sample in truth {
        write!(out, "{} {}", sample.pid, sample.time)?;
        for frame in &sample.frames {
            write!(out, "\t{:x} {}", frame.addr, name(frame.function))?;
        }
        writeln!(out)?;
    }
    out.flush()
}
