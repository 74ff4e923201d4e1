//! The flags of `jitgraft stats`.

use super::input::check_comparison;
use super::intervals::duration;
use super::report::{layout_of, layouts};
use super::stderr;
use super::times::{TimeRanges, time_ranges};
use crate::analysis::filter::{Bound, TimeRange};
use crate::commands::stats::{self, CLANG, Compare, MIRI, Preset, Question, StatsOptions};
use crate::error::{Error, Result};
use crate::io::{self, InPath};
use crate::model::Nanos;
use crate::pipeline::open::default_input;
use crate::pipeline::table::Layout;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "By default, measureme profiles are summarized by label and traces by top-level span.\n\n\
    Examples:\n  jitgraft stats app-0000123.mm_profdata\n  \
    jitgraft stats --diff old.mm_profdata new.mm_profdata\n  \
    jitgraft stats --gaps --limit 20 trace.json\n  \
    jitgraft stats --preset miri --to json *.json")]
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
    /// Format of the tables [default: by the output's name, else text]
    #[arg(long, visible_alias = "format", value_parser = To::parse, value_name = "text|csv|json")]
    to: Vec<To>,
    /// Maximum number of rows in each table; 0: all [default: 0]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Count, total and spread of top-level spans, by name
    #[arg(long, help_heading = "Tables")]
    spans: bool,
    /// Count and total of all spans, by name
    #[arg(long, help_heading = "Tables")]
    all: bool,
    /// Time of spans called NAME, by the value of one of their arguments
    ///
    /// The argument with the same name as the span is used, with three exceptions: `message` for Miri's spans called
    /// `frame`, `detail` in clang's traces, and the first argument in measureme profiles. Repeatable.
    #[arg(long, value_name = "NAME", help_heading = "Tables")]
    sub: Vec<String>,
    /// Total and self time of spans, by an argument such as `detail`
    ///
    /// Repeatable.
    #[arg(long, value_name = "KEY", help_heading = "Tables")]
    by_arg: Vec<String>,
    /// Gaps without any span, longest first
    #[arg(long, help_heading = "Tables")]
    gaps: bool,
    /// Print the tables that a file lists, or `miri`, or `clang`
    ///
    /// The file has one flag per line, without dashes, such as `spans` or `by-arg detail`. `miri` and `clang` are
    /// built-in lists, for traces of Miri and of clang -ftime-trace.
    #[arg(long, value_name = "FILE", help_heading = "Tables")]
    preset: Option<PathBuf>,
    /// Compare with this earlier measureme profile
    #[arg(long, value_name = "BEFORE", num_args = 0..=1)]
    #[arg(help_heading = "Tables", conflicts_with_all = ["spans", "all", "sub", "by_arg", "gaps", "preset", "runs"])]
    diff: Option<Option<PathBuf>>,
    /// Show variation between profiles of one program
    #[arg(long, help_heading = "Tables", conflicts_with_all = ["spans", "all", "sub", "by_arg", "gaps", "preset"])]
    runs: bool,
    /// Spans that do not count as top-level [default: none; in Miri's traces, frame and step]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    exclude: Option<Vec<String>>,
    /// Only spans that overlap this time: A,B in seconds or with units (2.5ms), or A%-B%
    ///
    /// Percentages are of the trace. Either end may be left out. Several ranges: `A,B C,D` or `10%-20%,40%-50%`.
    /// Repeatable.
    #[arg(long, value_name = "A,B|A%-B%", value_parser = time_ranges, help_heading = "Filters")]
    time: Vec<TimeRanges>,
    /// The former flag for the start of --time
    #[arg(long, value_name = "TIME", value_parser = duration, hide = true)]
    from: Option<u64>,
    /// Count as Perfetto does
    ///
    /// Spans of thread 0 are on the track of the process's main thread, and overlapping spans are dropped.
    #[arg(long, help_heading = "Filters")]
    perfetto_compat: bool,
}

/// A value of `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// The format of the tables, as in other commands.
    Layout(Layout),
    /// The end of the time in nanoseconds, which `--to` stated formerly.
    Time(u64),
}

impl To {
    fn parse(text: &str) -> Result<Self, String> {
        let layouts = layouts();
        let asked = layouts.iter().find(|(name, _)| name.matches(text, true));
        if let Some((_, layout)) = asked {
            return Ok(Self::Layout(*layout));
        }
        duration(text).map(Self::Time).map_err(|_| "expected text, csv or json".to_owned())
    }
}

/// The input if the user names none: standard input, if data is piped in. Otherwise fails, because `stats` has no
/// default file: the usual one, perf.data, contains no spans.
fn piped_input(compare: Compare) -> Result<InPath> {
    match default_input() {
        InPath::Stdin => Ok(InPath::Stdin),
        InPath::Path(_) | InPath::Found(_) => {
            let remedy = match compare {
                Compare::Diff => "run jitgraft stats --diff BEFORE AFTER",
                Compare::Merge | Compare::Runs => "pass measureme profiles or traces, or pipe one into jitgraft stats",
            };
            Err(Error::usage("no input given").with_remedy(Some(remedy.to_owned())))
        }
    }
}

impl StatsArgs {
    /// Checks the flags, prints hints about flags with a former meaning, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let compare = match (&self.diff, self.runs) {
            (Some(_), _) => Compare::Diff,
            (_, true) => Compare::Runs,
            _ => Compare::Merge,
        };
        // `--to` states the format of the tables or, as in earlier versions, the end of the time range.
        let (preset, asked) = (self.preset()?, self.layout());
        let mut hints = Vec::new();
        if self.from.is_some() || self.end().is_some() {
            hints.push("--from and --to for times are now --time FROM,TO, as in the other commands");
        }
        let mut inputs: Vec<InPath> = self.input.into_iter().chain(self.inputs).map(InPath::from).collect();
        if inputs.is_empty() {
            inputs.push(piped_input(compare)?);
        }
        match self.diff {
            // `--diff` without a value: in earlier versions, both profiles were inputs (`stats OLD NEW --diff`). That
            // still works, with a hint.
            Some(None) => {
                hints.push("--diff now takes the earlier profile, as in the other commands: --diff BEFORE AFTER");
            }
            Some(Some(before)) => {
                let before = InPath::from(before);
                check_comparison(Some(&before), &inputs)?;
                inputs.insert(0, before);
            }
            None => {}
        }
        if !job.quiet {
            hints.iter().for_each(|hint| stderr::say(format_args!("hint: {hint}")));
        }
        let output = self.output.into();
        let layout = layout_of("stats", asked, &output)?;
        let options = StatsOptions {
            inputs,
            output,
            preset,
            // The built-in presets have no file.
            preset_file: self.preset.filter(|path| path.as_os_str() != "miri" && path.as_os_str() != "clang"),
            compare,
            limit: self.limit.filter(|&rows| rows > 0),
            perfetto_compat: self.perfetto_compat,
            layout,
        };
        stats::run(&options, job)
    }

    /// The format that `--to` asks for.
    fn layout(&self) -> Option<Layout> {
        let mut layouts = self.to.iter().filter_map(|to| match to {
            To::Layout(layout) => Some(*layout),
            To::Time(_) => None,
        });
        layouts.next_back()
    }

    /// The end of the time range, which `--to` stated in earlier versions.
    fn end(&self) -> Option<u64> {
        let mut ends = self.to.iter().filter_map(|to| match to {
            To::Layout(_) => None,
            To::Time(end) => Some(*end),
        });
        ends.next_back()
    }

    /// The questions of the preset, followed by those of the flags. Time limits and excluded spans that flags give
    /// override those of the preset.
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
        // The preset's own questions are first; a trace that can't answer one of them isn't a failure.
        preset.optional = preset.questions.len();
        if self.spans {
            preset.questions.push(Question::Spans);
        }
        if self.all {
            preset.questions.push(Question::All);
        }
        preset.questions.extend(self.sub.iter().cloned().map(Question::Action));
        preset.questions.extend(self.by_arg.iter().cloned().map(Question::ByArg));
        if self.gaps {
            preset.questions.push(Question::Gaps);
        }
        if let Some(names) = &self.exclude {
            // `--exclude ''` gives an empty list: nothing is excluded, not even by default.
            preset.exclude = Some(names.iter().filter(|name| !name.is_empty()).cloned().collect());
        }
        let mut times: Vec<TimeRange> = self.time.iter().flat_map(|TimeRanges(ranges)| ranges).copied().collect();
        if self.from.is_some() || self.end().is_some() {
            let [from, to] = [self.from, self.end()].map(|time| time.map(|time| Bound::At(Nanos(time))));
            times.push(TimeRange { from, to });
        }
        if !times.is_empty() {
            preset.times = times;
        }
        Ok(preset)
    }
}
