//! Flags of all commands that read an input as stacks.

use super::common::{FileArgs, SourceArgs, one_of};
use super::intervals::IntervalArgs;
use super::times::{TimeRanges, time_ranges};
use crate::analysis::comparison::CompareOptions;
use crate::analysis::filter::Filter;
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::io::{InPath, OutPath};
use crate::jit::SourceOptions;
use crate::model::stacks::Weight;
use crate::model::{Pid, Tid};
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::default_input;
use crate::pipeline::sink::Naming;
use crate::runtimes::jit_names::JitNames;
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::symbols::SymbolOptions;
use clap::Args;
use clap::builder::PossibleValue;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Component, PathBuf};

/// The inputs, and which parts of them to read.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// Profiles of any format [default: stdin if piped, or perf.data]
    ///
    /// They may be compressed with gzip or zstd. `jitgraft formats` lists the formats. Several inputs are merged; `-`
    /// is standard input.
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Another input, as a flag
    ///
    /// Repeatable.
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    input: Vec<PathBuf>,
    /// Only this event (modifiers are optional) [default: all]
    ///
    /// Repeatable.
    #[arg(long, value_name = "NAME", help_heading = "Filters", hide_short_help = true)]
    event: Vec<String>,
    /// Only processes or threads with these names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    comm: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',', help_heading = "Filters")]
    pid: Vec<i32>,
    /// Only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',', help_heading = "Filters", hide_short_help = true)]
    tid: Vec<i32>,
    /// Only these processors
    #[arg(long, value_name = "CPU,…", value_delimiter = ',', help_heading = "Filters", hide_short_help = true)]
    cpu: Vec<u32>,
    /// Only this time: A,B in seconds, or A%-B%
    ///
    /// Percentages are of the recording. Seconds are those of the recording's clock; either end may be left out.
    /// Several ranges: `A,B C,D` or `10%-20%,40%-50%`. `10%` is the first tenth,
    /// and `10%/2` the second. Repeatable.
    #[arg(long, value_name = "A,B|A%-B%", value_parser = time_ranges, help_heading = "Filters")]
    time: Vec<TimeRanges>,
    /// How to show JIT names [default: depends on the output]
    ///
    /// Names from perf.data and perf script are pretty in flame graphs and in exports for viewers, and raw elsewhere.
    #[arg(long, value_parser = one_of(spellings()), value_name = "HOW", hide_short_help = true)]
    jit_names: Option<JitNames>,
    /// Merge the tiers of a JIT function [default in flame graphs of recordings]
    #[arg(long, conflicts_with = "no_merge_tiers", hide_short_help = true)]
    merge_tiers: bool,
    /// Keep the tiers of a JIT function separate
    #[arg(long, hide_short_help = true)]
    no_merge_tiers: bool,
    #[command(flatten)]
    intervals: IntervalArgs,
    /// Show recorded branches (perf record -b) as frames, one iteration per loop
    #[arg(long, help_heading = "Filters", hide_short_help = true)]
    branch_stack: bool,
    /// Maximum number of frames in a stack, counted from the innermost
    ///
    /// Stacks that jitgraft unwinds may have this many frames in the kernel and as many in user space.
    ///
    /// [default: 127 in user space for stacks that jitgraft unwinds; otherwise no limit]
    #[arg(long, value_name = "N", help_heading = "Filters", hide_short_help = true)]
    max_stack: Option<NonZeroUsize>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    sources: SourceArgs,
}

/// Flags for the names of native code.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names of native code")]
struct SymbolArgs {
    /// Do not show inlined calls
    #[arg(long, hide_short_help = true)]
    no_inline: bool,
    /// Show native names mangled
    #[arg(long, hide_short_help = true)]
    no_demangle: bool,
    #[command(flatten)]
    files: FileArgs,
}

impl SymbolArgs {
    fn into_options(self, force: bool) -> (SymbolOptions, KernelOptions) {
        let Self { no_inline, no_demangle, files } = self;
        let (search, kernel) = files.into_options(force);
        (SymbolOptions { search, inlines: !no_inline, lines: false, demangle: !no_demangle }, kernel)
    }
}

fn spellings() -> [(PossibleValue, JitNames); 2] {
    let (raw, pretty) = (PossibleValue::new("raw"), PossibleValue::new("pretty"));
    let pretty = pretty.help("Readable: without signatures, prefixes and directories");
    [(raw.help("Names as the runtime wrote them"), JitNames::Raw), (pretty, JitNames::Pretty)]
}

/// The output file. With several events, there may be several files.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Output file [default: standard output]
    ///
    /// If there are several events and the format holds only one, each event gets its own file.
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

impl OutputArgs {
    /// The path of the output; `-` is standard output.
    pub(super) fn path(&self) -> PathBuf {
        self.output.clone()
    }

    /// The file name of the output, without its directory. `None` for standard output.
    pub(super) fn file_name(&self) -> Option<&[u8]> {
        self.output.file_name().map(|name| name.as_encoded_bytes())
    }
}

impl From<OutputArgs> for OutPath {
    fn from(args: OutputArgs) -> Self {
        args.output.into()
    }
}

/// Which weight of the samples to sum.
#[derive(Debug, Args)]
pub(super) struct WeightArgs {
    /// Weight of a sample: its period (or the input's own weight), or 1
    #[arg(long, default_value = "period", value_name = "WHAT", value_parser = one_of(
        [("period".into(), Weight::Period), ("samples".into(), Weight::Samples)]
    ))]
    #[arg(hide_short_help = true)]
    pub(super) weight: Weight,
}

/// How two profiles are compared.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Compare only functions with exactly the same name
    ///
    /// By default, names that differ only in addresses or numbers of one run (HotSpot's lambdas, Julia's counters …)
    /// are the same function.
    #[arg(long, requires = "diff", help_heading = "Differences", hide_short_help = true)]
    exact_names: bool,
    /// Weight of one sample, for inputs that do not state it, such as folded stacks
    ///
    /// Pass 1 for folded stacks whose numbers are counts of samples. Without this option, changes in such inputs cannot
    /// be told from noise.
    #[arg(long, value_name = "N", requires = "diff", help_heading = "Differences", hide_short_help = true)]
    sample_weight: Option<NonZeroU64>,
}

impl CompareArgs {
    pub(super) fn options(&self) -> CompareOptions {
        CompareOptions { exact_names: self.exact_names, sample_weight: self.sample_weight }
    }
}

/// Fails if the earlier profile (`before`) is also one of the inputs. A profile would then be compared with itself;
/// probably the user forgot one of the two profiles.
pub(super) fn check_comparison(before: Option<&InPath>, inputs: &[InPath]) -> Result<()> {
    // Standard input has no path, so it is never the same as another input.
    let Some(before) = before.and_then(normalized_path) else { return Ok(()) };
    if inputs.iter().filter_map(normalized_path).all(|input| input != before) {
        return Ok(());
    }
    let shown = before.display();
    Err(Error::usage(format!(
        "{shown} would be compared with itself; pass the earlier profile as --diff BEFORE and the later one as INPUT"
    )))
}

/// The path without `.` components. `None` for standard input.
fn normalized_path(path: &InPath) -> Option<PathBuf> {
    let path = path.path()?;
    Some(path.components().filter(|part| *part != Component::CurDir).collect())
}

impl InputArgs {
    /// How JIT names are spelled. `usual` is the default, which flags override. `--merge-tiers` overrides any choice of
    /// `--jit-names` and spells all names without tiers. `--no-merge-tiers` keeps tiers, whether the names are chosen
    /// by flag or by default.
    pub(super) fn naming(&self, usual: Naming) -> Naming {
        // `resolved` are the names that jitgraft looks up, `given` those that the input already has. Spellings are
        // ordered from raw to pretty to merged.
        match (self.jit_names, self.merge_tiers, self.no_merge_tiers) {
            // Raw names state the tier, so the tiers of a function can't be merged.
            (Some(JitNames::Raw), false, _) => JitNames::Raw.into(),
            (_, true, _) => JitNames::Merged.into(),
            (Some(pretty), _, true) => pretty.into(),
            // Pretty names for the input's own names, and at least pretty ones for those that jitgraft looks up: if the
            // command merges tiers by default, it still does.
            (Some(_), _, false) => Naming { resolved: usual.resolved.max(JitNames::Pretty), given: JitNames::Pretty },
            // `min` turns `Merged` into `Pretty`, which keeps tiers apart. Raw names stay raw.
            (None, _, true) => {
                Naming { resolved: usual.resolved.min(JitNames::Pretty), given: usual.given.min(JitNames::Pretty) }
            }
            (None, _, false) => usual,
        }
    }

    /// Checks the flags. Returns the inputs and the options for reading them. `detail` is how much of a frame the
    /// output needs; `by_cpu` says whether the output distinguishes CPUs.
    pub(super) fn into_options(self, detail: Detail, by_cpu: bool) -> (Vec<InPath>, LoadOptions) {
        let jit_names = self.naming(Naming::default());
        let asks_for_names = self.jit_names.is_some() || self.merge_tiers;
        let mut inputs: Vec<InPath> = self.input.into_iter().chain(self.inputs).map(InPath::from).collect();
        if inputs.is_empty() {
            inputs.push(default_input());
        }
        let filter = Filter {
            comm: self.comm.into_iter().map(String::into_bytes).collect(),
            pid: self.pid.into_iter().map(Pid).collect(),
            tid: self.tid.into_iter().map(Tid).collect(),
            cpu: self.cpu,
            time: self.time.into_iter().flat_map(|TimeRanges(ranges)| ranges).collect(),
        };
        let read = self.intervals.into_options(&filter.time);
        let sources = SourceOptions::from(self.sources);
        let (symbols, kernel) = self.symbols.into_options(sources.force);
        let options = LoadOptions {
            event: self.event,
            by_cpu: by_cpu || !filter.cpu.is_empty(),
            by_input: false,
            filter,
            detail,
            keep_modules: false,
            jit_names,
            asks_for_names,
            branch_stack: self.branch_stack,
            max_stack: self.max_stack.map(NonZeroUsize::get),
            kernel,
            // Sources that name JIT code are searched with the same flags as files with symbols.
            sources: SourceOptions { search: symbols.search.clone(), ..sources },
            symbols,
            read,
        };
        (inputs, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        input: InputArgs,
    }

    fn naming(words: &str, usual: Naming) -> Naming {
        let words = ["x"].into_iter().chain(words.split_whitespace());
        <Line as clap::Parser>::parse_from(words).input.naming(usual)
    }

    #[test]
    fn names_of_jit_code_are_as_asked_for_or_as_usual() {
        let (all, picture) = (Naming::default(), Naming { resolved: JitNames::Merged, given: JitNames::Raw });
        for (words, of_all, of_picture) in [
            ("", all, picture),
            ("--jit-names raw", JitNames::Raw.into(), JitNames::Raw.into()),
            ("--jit-names raw --no-merge-tiers", JitNames::Raw.into(), JitNames::Raw.into()),
            ("--no-merge-tiers", all, Naming { resolved: JitNames::Pretty, given: JitNames::Raw }),
            ("--merge-tiers", JitNames::Merged.into(), JitNames::Merged.into()),
            ("--merge-tiers --jit-names pretty", JitNames::Merged.into(), JitNames::Merged.into()),
            (
                "--jit-names pretty",
                JitNames::Pretty.into(),
                Naming { resolved: JitNames::Merged, given: JitNames::Pretty },
            ),
        ] {
            assert_eq!((naming(words, all), naming(words, picture)), (of_all, of_picture), "{words}");
        }
    }
}
