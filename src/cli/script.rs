//! The flags of `jitgraft script`.

use super::input::InputArgs;
use super::output::check_name;
use crate::commands::script::{self, ScriptOptions};
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::formats::perf_script::write::Fields;
use crate::pipeline::open::check_further;
use crate::pipeline::recording::TextOptions;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `script`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft script perf.data > named.txt\n  \
    jitgraft script -F +srcline --time 10%-20% perf.data\n  \
    perf script | jitgraft script | inferno-collapse-perf > out.folded\n  \
    jitgraft script --jitdump dumps/ --perf-map maps/ < old.txt > named.txt")]
pub(super) struct ScriptArgs {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// Fields to print; + and - change the defaults
    ///
    /// Fields: comm, pid, tid, cpu, time, period, event, trace, ip, sym, symoff, dso, dsoff, srcline, addr, data_src,
    /// weight, ins_lat, retire_lat, cgroup, iregs, uregs, brstack, brstacksym, bpf-output, phys_addr, data_page_size,
    /// code_page_size, misc, flags, synth, callindent, ipc.
    #[arg(short = 'F', long, value_name = "FIELD,…", default_value = "", hide_default_value = true,
        allow_hyphen_values = true, value_parser = fields)]
    fields: Fields,
    /// Print the innermost frame only, on one line
    #[arg(short = 'G', long)]
    hide_call_graph: bool,
    /// Text input: rename frames that already have names
    #[arg(long)]
    rename: bool,
    /// Text input: also name native frames
    ///
    /// The text must come from perf script --show-mmap-events. Such text has no build IDs, so jitgraft assumes that the
    /// files on this machine are those that ran.
    #[arg(long)]
    native: bool,
    /// Print source lines (-F +srcline)
    #[arg(long)]
    srcline: bool,
    /// Print times to the nanosecond
    #[arg(long)]
    ns: bool,
    #[command(flatten)]
    input: InputArgs,
}

fn fields(list: &str) -> Result<Fields, Error> {
    if list.is_empty() { Ok(Fields::default()) } else { list.parse() }
}

impl ScriptArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let fields = Fields { ns: self.ns, srcline: self.srcline || self.fields.srcline, ..self.fields };
        let detail = if fields.srcline { Detail::Lines } else { Detail::Names };
        let output = self.output.into();
        check_name(&output, "script", &["txt"])?;
        // `false`: single samples are printed, so threads needn't be divided by CPU.
        let (mut inputs, load) = self.input.into_options(detail, false);
        // If the user forgot `-o`, the second path is the output and probably doesn't exist, which this reports.
        check_further(&inputs)?;
        let input = inputs.pop().filter(|_| inputs.is_empty());
        let input = input.ok_or_else(|| Error::usage("script prints one recording at a time; pass a single input"))?;
        let mut recording = load.recording();
        // `script` prints samples one by one with their addresses, and reads fields that other commands don't need only
        // if they are printed.
        recording.keep_addr = true;
        recording.keep_branches = self.fields.brstack || self.fields.brstacksym;
        recording.keep_trace = fields.trace;
        recording.keep_other_fields = fields.need_other_fields();
        let text = TextOptions { fields, no_call_graph: self.hide_call_graph };
        let (rename, native) = (self.rename, self.native);
        script::run(&ScriptOptions { input, output, recording, text, rename, native }, job)
    }
}
