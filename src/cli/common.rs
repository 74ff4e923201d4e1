//! Flags that all commands have, and flags of commands that look up names of JIT code.

use super::stderr;
use crate::analysis::quantity::grouped;
use crate::error::{Result, Warning, Warnings};
use crate::io;
use crate::io::guard::{self, MemoryLimit};
use crate::io::started::Ended;
use crate::jit::{GivenFile, GivenMap, SourceMapOptions, SourceOptions};
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::symbols::files::SearchOptions;
use clap::Args;
use clap::builder::{OsStringValueParser, PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Number of worker threads [default: one per processor]
    ///
    /// The maximum is 64, or eight per processor if that is more.
    #[arg(long, value_name = "N", global = true, hide_short_help = true)]
    threads: Option<NonZeroUsize>,
    /// Memory limit, such as 4G or 50% [default: 90%]
    ///
    /// A percentage refers to the memory of the machine or of its control group. Input files that are mapped into
    /// memory do not count. If the limit is reached, the command fails and outputs stay as they were.
    #[arg(long, value_name = "SIZE", global = true, hide_short_help = true)]
    max_memory: Option<MemoryLimit>,
    /// Fail (status 1) on warnings, or if at least 1% of JIT frames are unnamed
    #[arg(long, global = true, hide_short_help = true)]
    strict: bool,
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    quiet: bool,
    /// Print all warnings in full, and what happened to each source of names
    #[arg(short, long, global = true, action = clap::ArgAction::Count, hide_short_help = true)]
    verbose: u8,
}

impl Common {
    pub(super) fn job(&self) -> Result<Job> {
        guard::limit_memory(self.max_memory.unwrap_or_default())?;
        Ok(Job { pool: Pool::new(self.threads)?, quiet: self.quiet, verbose: self.verbose > 0, strict: self.strict })
    }

    /// Prints the summary and the warnings, and determines the exit code. If a program that was run for the command,
    /// such as perf, failed, the exit code is that of the program. Otherwise, the command fails if an input failed, if
    /// `doctor` was asked to fail on findings and has some, or, with `--strict`, if there are warnings or too many
    /// unnamed JIT frames.
    pub(super) fn finish(&self, job: &Job, outcome: &Outcome) -> ExitCode {
        if !job.quiet {
            for warning in outcome.warnings.iter() {
                stderr::say(format_args!("warning: {warning}"));
            }
            outcome
                .estimates
                .iter()
                .chain(&outcome.summary)
                .chain(&code(outcome))
                .chain(&names(outcome))
                .for_each(stderr::say);
            for path in &outcome.written {
                stderr::say(format_args!("wrote {}", path.display()));
            }
        }
        outcome.failed.iter().for_each(stderr::say_error);
        match outcome.ended {
            Some(Ended::Signal(signal)) => guard::end_by(signal),
            Some(Ended::Status(status @ 1..)) => return ExitCode::from(status),
            Some(Ended::Status(0)) | None => {}
        }
        let fails = self.strict && (!outcome.warnings.is_empty() || outcome.frames.lacks_jit_names());
        if fails && job.quiet {
            report_strict_failure(outcome);
        }
        if fails || outcome.found || !outcome.failed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Prints why `--strict` failed. Only needed with `--quiet`: without it, the warnings and the summary were printed
/// already.
fn report_strict_failure(outcome: &Outcome) {
    for warning in outcome.warnings.iter() {
        stderr::say(format_args!("error: {warning}"));
    }
    let frames = &outcome.frames;
    if frames.lacks_jit_names() {
        let (unnamed, all) = (grouped(frames.jit_unnamed), grouped(frames.jit));
        stderr::say(format_args!("error: JIT frames without a name: {unnamed} of {all}"));
        if let Some(hint) = doctor_hint(outcome) {
            stderr::say(format_args!("hint: {hint}"));
        }
    }
}

/// One line per event with the share of each kind of code.
fn code(outcome: &Outcome) -> Vec<String> {
    let counted = outcome.shares.iter().filter(|shares| shares.whole > 0);
    counted.map(|shares| format!("{}: {shares}", shares.event)).collect()
}

/// A line with the number of unnamed frames, and with the command that explains them if so many are unnamed that the
/// user should know why. `None` if there is nothing to say.
fn names(outcome: &Outcome) -> Option<String> {
    let counts = &outcome.frames;
    let why = doctor_hint(outcome);
    // `inject` only counts JIT frames, which its summary already mentions. Its `frames` is 0.
    let counted = (counts.frames > 0).then(|| counts.to_string());
    match (counted, why) {
        (Some(counted), Some(why)) => Some(format!("{counted}; {why}")),
        (counted, why) => counted.or(why),
    }
}

/// A hint to run `jitgraft doctor`, which explains unnamed frames. `None` if too few are unnamed to be worth it.
fn doctor_hint(outcome: &Outcome) -> Option<String> {
    let recording = outcome.lacking.as_ref()?;
    if recording.is_absolute() || io::is_there(recording) {
        return Some(format!("run jitgraft doctor {} to find out why", recording.display()));
    }
    Some("run jitgraft doctor on the recording to find out why".to_owned())
}

/// Flags of commands that look for jitdumps and perf maps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names of JIT code")]
pub struct SourceArgs {
    /// Jitdump, or directory of jitdumps, to try first
    ///
    /// `jitgraft help inputs` lists the places that are searched afterwards. With @PID, the path is only used for this
    /// process of the recording. Repeatable.
    #[arg(long, value_name = "PATH[@PID]", value_parser = existing_given())]
    jitdump: Vec<OsString>,
    /// Perf map, or directory of perf maps, to try first
    ///
    /// `jitgraft help inputs` lists the places that are searched afterwards. With @PID, the path is only used for this
    /// process of the recording. Repeatable.
    #[arg(long, value_name = "PATH[@PID]", value_parser = existing_given())]
    perf_map: Vec<OsString>,
    /// Log of a runtime, or core dump, to try first
    ///
    /// A directory stands for the logs in it. With @PID, the path is only used for this process of the recording.
    /// `jitgraft formats` lists the logs that jitgraft reads. Repeatable.
    #[arg(long, visible_alias = "core", value_name = "PATH[@PID]", value_parser = existing_given())]
    #[arg(hide_short_help = true)]
    jit_log: Vec<OsString>,
    /// ELF file of a program that ran in QEMU user mode
    ///
    /// Needed to name the guest's functions if the recorded command line does not lead to the file. Repeatable.
    #[arg(long, value_name = "FILE", value_parser = existing(), hide_short_help = true)]
    guest: Vec<PathBuf>,
    /// ELF object that was placed at an address (hexadecimal) at run time
    ///
    /// Repeatable.
    #[arg(long, value_name = "FILE@ADDR", value_parser = placed_elf, hide_short_help = true)]
    elf: Vec<(PathBuf, Addr)>,
    /// Treat PID INNER in dumps and maps as PID OUTER in the recording
    ///
    /// Use it for containers, where processes have other PIDs than outside. Repeatable.
    #[arg(long, value_name = "INNER=OUTER", value_parser = pid_pair, hide_short_help = true)]
    map_pid: Vec<(Pid, Pid)>,
    /// Use original names for JavaScript and Wasm
    ///
    /// `auto` uses the source maps that scripts name or that are next to them, and WebAssembly modules next to the
    /// input or in --debug-dir. `off` uses none. The path of a map, of a module, or of a directory with maps and
    /// modules makes jitgraft try these first. FILE=SCRIPT uses the map FILE for this script only, even if the map does
    /// not seem to fit (with a warning). Repeatable. [default: auto in flame graphs, reports, pages, annotate and
    /// exports for viewers; off elsewhere]
    #[arg(long, value_name = "HOW", value_parser = SourceMapArg::parse)]
    source_maps: Vec<SourceMapArg>,
    /// Also use files of other users
    #[arg(short, long)]
    force: bool,
}

/// Flags that say where the files that ran are, and the symbols of the recorded kernel.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names of native code")]
pub(super) struct FileArgs {
    /// Look for recorded files below this root directory
    #[arg(long, value_name = "DIR", value_parser = existing_directory())]
    symfs: Option<PathBuf>,
    /// Directory to search first for debugging information and recorded files (by build ID)
    ///
    /// The directory may have the layout of ~/.debug, of an unpacked archive of perf archive, or of debuginfod's cache.
    /// /usr/lib/debug is searched after it. Repeatable.
    #[arg(long, value_name = "DIR", value_parser = existing_directory(), hide_short_help = true)]
    debug_dir: Vec<PathBuf>,
    /// Kernel symbols: a copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE", value_parser = existing(), hide_short_help = true)]
    kallsyms: Option<PathBuf>,
    /// Kernel symbols and inlined calls: the recorded kernel, uncompressed
    ///
    /// [default: searched for with debugging information, and in /boot]
    #[arg(short = 'k', long, value_name = "FILE", value_parser = existing(), hide_short_help = true)]
    vmlinux: Option<PathBuf>,
}

impl FileArgs {
    pub(super) fn into_options(self, force: bool) -> (SearchOptions, KernelOptions) {
        let Self { symfs, debug_dir: debug_dirs, kallsyms, vmlinux } = self;
        let symfs = symfs.into_iter().collect();
        let search = SearchOptions { symfs, debug_dirs, vmlinux, force, ..SearchOptions::default() };
        (search, KernelOptions { kallsyms, ..KernelOptions::default() })
    }

    /// Where to search for files, for a command that doesn't name kernel functions. Flags about kernel symbols then do
    /// nothing, so each gets a warning: `--kallsyms` and, unless the command reads the kernel's image for another
    /// purpose (`reads_vmlinux`), `--vmlinux`.
    pub(super) fn into_search_options(
        self,
        force: bool,
        command: &str,
        reads_vmlinux: bool,
        warnings: &mut Warnings,
    ) -> SearchOptions {
        let without_effect =
            [("--kallsyms", self.kallsyms.is_some()), ("--vmlinux", self.vmlinux.is_some() && !reads_vmlinux)];
        for (flag, _) in without_effect.into_iter().filter(|(_, is_given)| *is_given) {
            warnings
                .push(Warning::new(format!("{flag} was ignored: jitgraft {command} does not name kernel functions")));
        }
        let (search, _) = self.into_options(force);
        search
    }
}

/// A value of `--source-maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SourceMapArg {
    Auto,
    Off,
    /// A source map, a WebAssembly module, or a directory of these, that the user named.
    Given(GivenMap),
}

impl SourceMapArg {
    /// Parses a value of `--source-maps`: `auto`, `off`, an existing path, or `PATH=SCRIPT`, where SCRIPT is the script
    /// that the map is for. A path may contain `=`, so the whole value is tried as a path first.
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        if io::is_there(Path::new(text)) {
            return Ok(Self::Given(GivenMap { path: text.into(), script: None }));
        }
        let Some((path, script)) = text.split_once('=') else { return Err(format!("{text} does not exist")) };
        if !io::is_there(Path::new(path)) {
            return Err(format!("{path} does not exist"));
        }
        Ok(Self::Given(GivenMap { path: path.into(), script: Some(script.to_owned()) }))
    }

    /// Combines all values of `--source-maps`. The last value decides whether source maps are used. All maps that were
    /// named are used.
    fn to_options(args: Vec<Self>) -> SourceMapOptions {
        let asked = args.last().map(|last| *last != Self::Off);
        let mut given = Vec::new();
        for arg in args {
            if let Self::Given(map) = arg {
                given.push(map);
            }
        }
        SourceMapOptions { asked, given, ..SourceMapOptions::default() }
    }
}

impl From<SourceArgs> for SourceOptions {
    fn from(args: SourceArgs) -> Self {
        let SourceArgs { jitdump, perf_map, jit_log, guest, elf, map_pid, source_maps, force } = args;
        Self {
            jitdump: parse_given_files(&jitdump),
            perf_map: parse_given_files(&perf_map),
            jit_log: parse_given_files(&jit_log),
            guest,
            elf,
            map_pid,
            source_maps: SourceMapArg::to_options(source_maps),
            force,
            // For commands without flags for files. The other commands replace these options by those of their flags.
            search: SearchOptions { force, ..SearchOptions::default() },
        }
    }
}

fn parse_given_files(files: &[OsString]) -> Vec<GivenFile> {
    files.iter().map(|text| GivenFile::parse(text)).collect()
}

/// A parser for a flag with a fixed set of values. `values` pairs each of them with what it stands for.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    values: impl Into<Vec<(PossibleValue, T)>>,
) -> impl TypedValueParser<Value = T> {
    let values = values.into();
    PossibleValuesParser::new(values.iter().map(|(name, _)| name.clone())).try_map(move |typed| {
        let matching = values.iter().find(|(name, _)| name.matches(&typed, false));
        matching.map(|(_, value)| *value).ok_or("not one of these")
    })
}

/// A parser for a path that must exist.
fn existing() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| if io::is_there(&path) { Ok(path) } else { Err(NOT_THERE) })
}

/// A parser for a directory that must exist. It rejects archives, because no files would be found in them.
fn existing_directory() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(check_directory)
}

/// Fails if the path isn't a directory.
fn check_directory(path: PathBuf) -> Result<PathBuf, &'static str> {
    if io::is_directory(&path) {
        Ok(path)
    } else if io::is_there(&path) {
        Err("not a directory; unpack an archive first (mkdir DIR && tar xf FILE -C DIR)")
    } else {
        Err(NOT_THERE)
    }
}

/// A parser for an existing path, optionally followed by `@PID`.
fn existing_given() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|text| {
        let is_there = io::is_there(&GivenFile::parse(&text).path);
        if is_there { Ok(text) } else { Err(NOT_THERE) }
    })
}

const NOT_THERE: &str = "it does not exist";

/// Parses `FILE@ADDR`. The address is hexadecimal.
fn placed_elf(text: &str) -> Result<(PathBuf, Addr), String> {
    let (file, addr) = text.rsplit_once('@').ok_or("expected FILE@ADDR, such as libjit.so@7f0012340000")?;
    let digits = addr.strip_prefix("0x").unwrap_or(addr);
    let addr = u64::from_str_radix(digits, 16).map_err(|error| format!("address {addr}: {error}"))?;
    if io::is_there(Path::new(file)) { Ok((file.into(), Addr(addr))) } else { Err(format!("{file} does not exist")) }
}

/// Parses `INNER=OUTER`, two process IDs.
fn pid_pair(text: &str) -> Result<(Pid, Pid), String> {
    let expected = "expected INNER=OUTER, the PID in the container and the PID in the recording, such as 1=4711";
    let (inner, outer) = text.split_once('=').ok_or(expected)?;
    Ok((parse_pid(inner)?, parse_pid(outer)?))
}

fn parse_pid(text: &str) -> Result<Pid, String> {
    text.parse().map(Pid).map_err(|error| format!("pid {text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_not_an_archive() {
        assert!(check_directory("Cargo.toml".into()).unwrap_err().contains("tar xf"));
        assert!(check_directory("src".into()).is_ok());
        assert_eq!(check_directory("/nonexistent".into()), Err(NOT_THERE));
    }

    #[test]
    fn the_last_source_maps_decides_and_each_map_is_used() {
        let parse = |text: &str| SourceMapArg::parse(text);
        let given =
            |path: &str, script: Option<&str>| GivenMap { path: path.into(), script: script.map(str::to_owned) };
        assert_eq!(parse("Cargo.toml=d/app.js"), Ok(SourceMapArg::Given(given("Cargo.toml", Some("d/app.js")))));
        assert!(parse("no.such.map").unwrap_err().contains("does not exist"));
        assert!(parse("no.such.map=x.js").is_err());
        let options =
            |words: &[&str]| SourceMapArg::to_options(words.iter().map(|word| parse(word).unwrap()).collect());
        assert_eq!(options(&[]), SourceMapOptions::default());
        assert_eq!(options(&["off"]).asked, Some(false));
        let both = options(&["off", "src", "auto"]);
        assert_eq!((both.asked, both.given), (Some(true), vec![given("src", None)]));
        assert_eq!(options(&["src", "off"]).asked, Some(false));
    }

    #[test]
    fn values_with_two_parts() {
        assert_eq!(placed_elf("Cargo.toml@0x1f"), Ok(("Cargo.toml".into(), Addr(0x1f))));
        assert!(placed_elf("a@b.so@0x1f").unwrap_err().contains("a@b.so does not exist"));
        assert!(placed_elf("a.so").is_err());
        assert_eq!(pid_pair("1=4711"), Ok((Pid(1), Pid(4711))));
        assert!(pid_pair("1=x").is_err());
    }
}
