//! The flags of `jitgraft record`.

use super::output::check_name;
use super::stderr;
use crate::commands::record::{self, RecordOptions};
use crate::error::{Error, Result};
use crate::io::OutPath;
use crate::model::perf_command::PerfCommand;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Flags of `record`.
#[derive(Debug, Args)]
#[command(
    override_usage = "jitgraft record [OPTIONS] [PERF OPTIONS] -- COMMAND...\n       jitgraft record [OPTIONS] -p PID [-- sleep 10]",
    after_help = "Examples:\n  jitgraft record -- node app.js\n  jitgraft record --runtime node -- npm test\n  \
    jitgraft record -o run/perf.data -F 499 --call-graph dwarf -- java -jar app.jar\n  jitgraft record -p 4711 -- sleep 10\n  \
    jitgraft record --dry-run -- php -f page.php"
)]
pub(super) struct RecordArgs {
    /// The runtime, if COMMAND does not show it (npm, scripts, build tools)
    ///
    /// `jitgraft runtimes` lists the names.
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// The recording; dumps and maps are saved next to it
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,
    /// Samples per second; max for as many as the kernel allows
    #[arg(short = 'F', long, value_name = "N", default_value = "999", value_parser = frequency)]
    freq: String,
    /// Record running processes (comma-separated)
    #[arg(short, long, value_name = "PID")]
    pid: Option<String>,
    /// Only print the command
    #[arg(long)]
    dry_run: bool,
    /// More perf record options, then the program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PERF OPTIONS -- COMMAND")]
    words: Vec<OsString>,
}

impl RecordArgs {
    /// Separates the flags of `jitgraft record` from those of perf, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let Self { mut runtime, mut output, mut freq, mut pid, mut dry_run, words } = self;
        let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_vec).collect();
        // No words precede the options, because the user didn't type `perf record`.
        let typed = PerfCommand::parse_options(&[], &words);
        // clap passes on all words after the first unknown flag. So flags of `jitgraft record` may be among those of
        // perf.
        let mut perf = Vec::new();
        for option in typed.each_option() {
            match option.value.map(|value| String::from_utf8_lossy(value).into_owned()) {
                Some(value) if option.is(&["runtime"]) => runtime = Some(value),
                Some(value) if option.is(&["o", "output"]) => output = value.into(),
                Some(value) if option.is(&["p", "pid"]) => pid = Some(value),
                Some(value) if option.is(&["F", "freq"]) => {
                    freq = frequency(&value).map_err(|why| Error::usage(format!("-F {value}: {why}")))?;
                }
                _ if option.is(&["dry-run"]) => dry_run = true,
                _ => perf.extend(option.words()),
            }
        }
        check_name(&OutPath::from(output.clone()), "record", &["data"])?;
        let program = typed.program.to_vec();
        let options = RecordOptions { runtime, perf, program, output, frequency: freq, pid, dry_run };
        record::run(&options, job, &mut |line| stderr::say(line))
    }
}

/// Checks a value of `-F`.
fn frequency(text: &str) -> Result<String, String> {
    match text.parse::<u32>() {
        Ok(1..) => {}
        Ok(0) => return Err("must be at least 1".to_owned()),
        Err(_) if text == "max" => {}
        Err(_) => return Err("must be a whole number, or max".to_owned()),
    }
    Ok(text.to_owned())
}
