//! The flags of `jitgraft stats`.

use super::common::one_of;
use super::intervals::duration;
use super::report::{layout_of, layouts};
use crate::commands::stats::{self, CLANG, Compare, MIRI, Preset, Question, StatsOptions};
use crate::error::{Error, Result};
use crate::io::{self, InPath};
use crate::pipeline::open::default_input;
use crate::pipeline::table::Layout;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `stats`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without any of the flags under \"Questions\", measureme profiles are summarized by label, and traces by top-level span.\n\nExamples:\n  jitgraft stats app-0000123.mm_profdata\n  jitgraft stats --diff old.mm_profdata \
    new.mm_profdata\n  jitgraft stats --gaps --limit 20 trace.json\n  jitgraft stats --preset miri --format json *.json\n  jitgraft stats --by-arg detail clang.json"
)]
pub(super) struct StatsArgs {
    /// measureme profiles or traces, plain, gzip or zstd; several are merged
    ///
    /// [default: standard input]
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Another input
    ///
    /// Repeatable.
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    input: Vec<PathBuf>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// Layout of the tables [default: by the output's name, else text]
    #[arg(long, value_parser = one_of(layouts()), value_name = "HOW")]
    format: Option<Layout>,
    /// Maximum number of rows in each table; 0: all [default: 0]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Count, total and spread of top-level spans, by name
    #[arg(long, help_heading = "Questions")]
    spans: bool,
    /// Count and total of all spans, by name
    #[arg(long, help_heading = "Questions")]
    all: bool,
    /// Time of spans of this name, by their argument of that name
    ///
    /// For clang's traces, by `detail`. Repeatable.
    #[arg(long, value_name = "NAME", help_heading = "Questions")]
    sub: Vec<String>,
    /// Total and self time of spans, by an argument such as `detail`
    ///
    /// Repeatable.
    #[arg(long, value_name = "KEY", help_heading = "Questions")]
    by_arg: Vec<String>,
    /// Gaps without any span, longest first
    #[arg(long, help_heading = "Questions")]
    gaps: bool,
    /// Take the questions from a file, or those for `miri` or `clang`
    ///
    /// A file has one question per line, such as `spans` or `by-arg detail`. `clang` is for traces of -ftime-trace.
    #[arg(long, value_name = "FILE", help_heading = "Questions")]
    preset: Option<PathBuf>,
    /// Compare two measureme profiles
    #[arg(long, help_heading = "Questions", conflicts_with_all = ["spans", "all", "sub", "by_arg", "gaps", "preset", "runs"])]
    diff: bool,
    /// Show variation between measureme profiles of one program
    #[arg(long, help_heading = "Questions", conflicts_with_all = ["spans", "all", "sub", "by_arg", "gaps", "preset"])]
    runs: bool,
    /// Spans that do not count as top-level [default: frame, step in Miri's traces]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    exclude: Option<Vec<String>>,
    /// Only spans that end after this time, such as 2.5ms
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Filters")]
    from: Option<u64>,
    /// Only spans that start before this time
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Filters")]
    to: Option<u64>,
    /// Count as Perfetto does
    ///
    /// Spans of thread 0 are on the track of the process's main thread, and overlapping spans are dropped.
    #[arg(long, help_heading = "Filters")]
    perfetto_compat: bool,
}

/// The input if the user names none: standard input, if data is piped in. Otherwise fails. Unlike other commands,
/// `stats` has no default file, because perf.data contains no spans.
fn piped_input() -> Result<InPath> {
    match default_input() {
        InPath::Stdin => Ok(InPath::Stdin),
        InPath::Path(_) | InPath::Found(_) => {
            let remedy = "run jitgraft stats trace.json, or pipe a trace into it".to_owned();
            Err(Error::usage("no input given").with_remedy(Some(remedy)))
        }
    }
}

impl StatsArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let compare = match (self.diff, self.runs) {
            (true, _) => Compare::Diff,
            (_, true) => Compare::Runs,
            _ => Compare::Merge,
        };
        let preset = self.preset()?;
        let mut inputs: Vec<InPath> = self.input.into_iter().chain(self.inputs).map(InPath::from).collect();
        if inputs.is_empty() {
            inputs.push(piped_input()?);
        }
        let output = self.output.into();
        let layout = layout_of("stats", self.format, &output)?;
        let options = StatsOptions {
            inputs,
            output,
            preset,
            preset_file: self.preset.filter(|path| path.as_os_str() != "miri" && path.as_os_str() != "clang"),
            compare,
            limit: self.limit.filter(|&rows| rows > 0),
            perfetto_compat: self.perfetto_compat,
            layout,
        };
        stats::run(&options, job)
    }

    /// The questions of the preset, followed by those of the flags. Time limits given by flags override those of the
    /// preset.
    fn preset(&self) -> Result<Preset> {
        let mut preset = match &self.preset {
            None => Preset::default(),
            Some(path) if path.as_os_str() == "miri" => Preset::parse(MIRI, duration)?,
            Some(path) if path.as_os_str() == "clang" => Preset::parse(CLANG, duration)?,
            Some(path) => {
                let text = io::read_typed(path);
                let text = text.map_err(|error| Error::new("cannot read the preset").because(error).in_file(path))?;
                Preset::parse(&text, duration).map_err(|error| error.in_file(path))?
            }
        };
        if self.spans {
            preset.questions.push(Question::Spans);
        }
        if self.all {
            preset.questions.push(Question::All);
        }
        preset.questions.extend(self.sub.iter().cloned().map(Question::Sub));
        preset.questions.extend(self.by_arg.iter().cloned().map(Question::ByArg));
        if self.gaps {
            preset.questions.push(Question::Gaps);
        }
        if preset.exclude.is_none()
            && let Some(names) = &self.exclude
        {
            preset.exclude = Some(names.iter().filter(|name| !name.is_empty()).cloned().collect());
        }
        if let Some(from) = self.from {
            preset.from = Some(i64::try_from(from).unwrap_or(i64::MAX));
        }
        if let Some(to) = self.to {
            preset.to = Some(i64::try_from(to).unwrap_or(i64::MAX));
        }
        Ok(preset)
    }
}
