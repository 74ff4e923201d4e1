//! The speed at which a callgrind file of any size is named, on 1 thread and on all, with the peak of memory:
//!
//! ```text
//! cargo bench --bench callgrind -- callgrind.out.PID DIRECTORY-OF-MAP
//! ```
//!
//! Without arguments nothing is done. The output goes to /dev/null; for the whole way give a file of several GB on a
//! disk and run the program itself.

use jitgraft::internals::commands::callgrind::{CallgrindOptions, run};
use jitgraft::internals::io::OutPath;
use jitgraft::internals::io::guard::watch_mapped_files;
use jitgraft::internals::jit::SourceOptions;
use jitgraft::internals::parallel::Pool;
use jitgraft::internals::pipeline::Job;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    watch_mapped_files(); // so that files are mapped, as in the program
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let [input, maps] = args.as_slice() else {
        println!("usage: cargo bench --bench callgrind -- callgrind.out.PID DIRECTORY-OF-MAP");
        return;
    };
    let bytes = std::fs::metadata(input).unwrap_or_else(|error| panic!("{input}: {error}")).len();
    let scratch = tempfile::tempdir().unwrap();
    for threads in [NonZeroUsize::new(1), None] {
        let options = CallgrindOptions {
            input: PathBuf::from(input).into(),
            output: Some(OutPath::Path("/dev/null".into())),
            object: Some(scratch.path().join("jitted.elf")),
            pid: None,
            bytecode_dir: None,
            sources: SourceOptions { perf_map: vec![maps.into()], ..SourceOptions::default() },
        };
        let job = Job { pool: Pool::new(threads).unwrap(), ..Job::quiet().unwrap() };
        let start = Instant::now();
        run(&options, &job).unwrap_or_else(|error| panic!("{error}"));
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{} threads: {seconds:.2} s, {:.0} MB/s, {}",
            job.pool.threads(),
            bytes as f64 / seconds / 1e6,
            peak()
        );
    }
}

/// The peak of memory so far, as Linux gives it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
}
