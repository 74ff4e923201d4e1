//! The flags of `jitgraft inject`.

use super::common::{FileArgs, SourceArgs};
use super::output::check_name;
use crate::commands::inject::{self, BuildIdMode, InjectOptions, KnownBuildIds};
use crate::error::{Error, Result, Warnings};
use crate::io::{InPath, OutPath};
use crate::jit::SourceOptions;
use crate::pipeline::open::default_input;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `inject`. Those that perf inject has, too, mean the same.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "Examples:\n  perf record -k mono -g -- node --perf-prof app.js\n  \
    jitgraft inject perf.data -o perf.jit.data && perf report -i perf.jit.data\n  \
    perf record -k mono -g -o - -- node --perf-prof app.js | jitgraft inject > perf.jit.data\n  \
    jitgraft inject -i cpu.pb.gz -o named.pb.gz --perf-map perf-4711.map"
)]
pub(super) struct InjectArgs {
    /// Recording, or a pprof, OpenTelemetry or Firefox profile [default: stdin if a pipe, else perf.data]
    ///
    /// Profiles in these formats get names for their bare addresses. `-` is standard input.
    #[arg(value_name = "INPUT", conflicts_with = "input")]
    recording: Option<PathBuf>,
    /// The recording, as a flag
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    input: Option<PathBuf>,
    /// Output file; `-` is standard output, in pipe form
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Inject JIT code (the default unless only build IDs are requested)
    #[arg(short, long, hide_short_help = true)]
    jit: bool,
    /// Put all JIT functions, not just sampled ones, into the images jitted-PID.so
    #[arg(long, hide_short_help = true)]
    all_functions: bool,
    /// Directory for the images jitted-PID.so [default: below --symfs, or next to the output]
    ///
    /// Without --symfs and without an output file, it is the current directory.
    #[arg(long, value_name = "DIR")]
    image_dir: Option<PathBuf>,
    /// Also copy images to the build-ID cache (~/.debug), for perf archive
    #[arg(long, hide_short_help = true)]
    cache: bool,
    /// Unwind copied user stacks (--call-graph dwarf) into call chains
    #[arg(long)]
    convert_callchain: bool,
    /// Give each JIT function a unique address, for KDAB hotspot and samply
    ///
    /// These viewers assume that every file is loaded only once, so they confuse JIT functions that had the same
    /// address one after the other. This option also unwinds copied user stacks (--call-graph dwarf) into call chains.
    #[arg(long)]
    relocate: bool,
    /// Remove entries that make perf drop entire call chains (needed for PHP)
    #[arg(long, hide_short_help = true)]
    drop_bad_chain_entries: bool,
    #[command(flatten)]
    build_ids: BuildIdArgs,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// Flags for build IDs of files that aren't JIT code.
#[derive(Debug, Args)]
#[command(next_help_heading = "Build IDs of programs and libraries")]
struct BuildIdArgs {
    /// Add build-ID records for files that have samples
    #[arg(short, long, group = "build_id_mode")]
    build_ids: bool,
    /// Add build-ID records for all mapped files
    #[arg(long, group = "build_id_mode", hide_short_help = true)]
    buildid_all: bool,
    /// Put build IDs into the mapping records of files that have samples
    ///
    /// Mapping records of other files stay as they are.
    #[arg(short = 'B', long, group = "build_id_mode")]
    mmap2_buildids: bool,
    /// Put build IDs into all mapping records
    #[arg(long, group = "build_id_mode", hide_short_help = true)]
    mmap2_buildid_all: bool,
    /// Known build IDs, used instead of reading the files
    ///
    /// FILE has one `ID PATH` per line.
    #[arg(long, value_name = "ID PATH[,ID PATH…]|file://FILE", hide_short_help = true)]
    known_build_ids: Option<String>,
}

impl BuildIdArgs {
    /// Which build IDs to add, and where.
    fn mode(&self) -> BuildIdMode {
        match (self.build_ids, self.buildid_all, self.mmap2_buildids, self.mmap2_buildid_all) {
            (true, ..) => BuildIdMode::Hit,
            (_, true, ..) => BuildIdMode::All,
            (_, _, true, _) => BuildIdMode::HitMappings,
            (.., true) => BuildIdMode::AllMappings,
            _ => BuildIdMode::None,
        }
    }
}

/// Options of perf inject that jitgraft doesn't support. They are declared so that the error message can name them.
#[derive(Debug, Args)]
struct ForeignArgs {
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    itrace: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true)]
    strip: bool,
    /// Not supported
    #[arg(short, long, hide = true)]
    sched_stat: bool,
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    vm_time_correlation: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    guest_data: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true)]
    guestmount: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    unwind_style: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    aslr: bool,
    /// Not supported
    #[arg(long, hide = true)]
    ignore_vmlinux: bool,
}

impl ForeignArgs {
    /// Fails if the user passed an option of perf inject that jitgraft doesn't support.
    fn refuse(&self) -> Result<()> {
        let given = [
            ("--itrace", self.itrace.is_some()),
            ("--strip", self.strip),
            ("--sched-stat (-s)", self.sched_stat),
            ("--vm-time-correlation", self.vm_time_correlation.is_some()),
            ("--guest-data", self.guest_data.is_some()),
            ("--guestmount", self.guestmount.is_some()),
            ("--unwind-style", self.unwind_style.is_some()),
            ("--aslr", self.aslr),
            ("--ignore-vmlinux", self.ignore_vmlinux),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Error::usage(format!("jitgraft does not support {name}; use perf inject for it"))),
            None => Ok(()),
        }
    }
}

impl InjectArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        self.foreign.refuse()?;
        let build_ids = self.build_ids.mode();
        let mut sources = SourceOptions::from(self.sources);
        let mut warnings = Warnings::new();
        // `true`: inject doesn't name kernel functions, but it reads the kernel's image for its build ID.
        sources.search = self.files.into_search_options(sources.force, "inject", true, &mut warnings);
        let output = OutPath::from(self.output);
        check_name(&output, "inject", &["data", "gz", "json", "pb", "pb.gz", "pprof", "otlp", "firefox.json", "zst"])?;
        // perf report looks for the images below the directory of `--symfs`, so the mapping records name them relative
        // to it.
        let image_root = sources.search.symfs.first().cloned();
        let options = InjectOptions {
            input: self.input.or(self.recording).map_or_else(default_input, InPath::from),
            output,
            image_dir: self.image_dir,
            image_root,
            all_functions: self.all_functions,
            cache: self.cache,
            convert_callchain: self.convert_callchain,
            relocate: self.relocate,
            drop_bad_chain_entries: self.drop_bad_chain_entries,
            // As in perf inject, a request for build IDs turns off injecting JIT code, unless `--jit` requests that as
            // well.
            jit: self.jit || build_ids == BuildIdMode::None,
            build_ids,
            known_build_ids: self.build_ids.known_build_ids.as_deref().map(KnownBuildIds::from),
            sources,
        };
        let mut outcome = inject::run(&options, job)?;
        outcome.warnings.append(warnings);
        Ok(outcome)
    }
}
