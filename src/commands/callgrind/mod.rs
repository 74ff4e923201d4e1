//! `callgrind`: names the JIT code in a callgrind file, or in a report of another of valgrind's tools.
//!
//! Beside the named profile goes an ELF object with the code at the addresses where it ran. The profile refers to it
//! by its bare name, so that the two can be moved together: KCachegrind looks in the profile's directory.

mod names;
mod object;
mod raw_code;
mod reports;
mod stream;

use crate::error::{Error, Result, Warning};
use crate::formats::callgrind::{Index, sniff};
use crate::formats::valgrind_text;
use crate::io::{InPath, OutPath, Output, open_rewindable};
use crate::model::Pid;
use crate::model::code::OriginId;
use crate::model::process::{Process, Processes};
use crate::pipeline::{Job, Outcome};
use crate::sources::{Account, Found, Kind, SourceOptions, find};
use names::CodeNames;
use raw_code::RawCode;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use stream::Rewritten;

/// What to name, and where to.
#[derive(Debug)]
pub struct CallgrindOptions {
    /// What to read.
    pub input: InPath,
    /// Where to write; `None` means the input's name with `.jit` behind it.
    pub output: Option<OutPath>,
    /// Where the ELF object goes; `None` means `jitted-PID.elf` beside the output.
    pub object: Option<PathBuf>,
    /// The process, if neither the file nor its name says so.
    pub pid: Option<Pid>,
    /// A directory of raw machine code, one file a function.
    pub bytecode_dir: Option<PathBuf>,
    /// Where the names come from.
    pub sources: SourceOptions,
}

impl CallgrindOptions {
    fn path(&self) -> Option<&Path> {
        match &self.input {
            InPath::Path(path) => Some(path),
            InPath::Stdin => None,
        }
    }

    fn output(&self) -> OutPath {
        match (&self.output, self.path()) {
            (Some(output), _) => output.clone(),
            (None, Some(path)) => OutPath::Path(with_suffix(path, ".jit")),
            (None, None) => OutPath::Stdout,
        }
    }

    /// The number behind `.out.` in the input's name, or else the last part that is one: `x.callgrind.out.4711-02`.
    fn pid_in_name(&self) -> Option<i32> {
        let name = self.path()?.file_name()?.to_str()?;
        let number = |part: &str| part.split('-').next().and_then(|digits| digits.parse().ok());
        let behind = name.split_once(".out.").and_then(|(_, rest)| rest.split('.').next()).and_then(number);
        behind.or_else(|| name.rsplit('.').find_map(number))
    }

    /// Where the object goes and how the profile calls it.
    fn object(&self, pid: Pid) -> (PathBuf, Vec<u8>) {
        use std::os::unix::ffi::OsStrExt;
        let beside = match (self.output(), self.path()) {
            (OutPath::Path(path), _) => path.parent().map(Path::to_owned),
            (OutPath::Stdout, path) => path.and_then(Path::parent).map(Path::to_owned),
        };
        let beside = beside.unwrap_or_default();
        let path = self.object.clone().unwrap_or_else(|| beside.join(format!("jitted-{pid}.elf")));
        let is_beside = path.parent().is_none_or(|parent| parent == beside);
        let name = if is_beside { Path::new(path.file_name().unwrap_or_default()) } else { &path };
        let name = name.as_os_str().as_bytes().to_vec();
        (path, name)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Names what can be named.
pub fn run(options: &CallgrindOptions, job: &Job) -> Result<Outcome> {
    let result = open_rewindable(&options.input).and_then(|mut file| {
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head)?;
        std::io::Seek::rewind(&mut file)?;
        if sniff(&head) {
            return name_profile(&file, options, job);
        }
        match valgrind_text::sniff(&head) {
            Some(report) => reports::run(report, &file, &head, options, job),
            None => {
                Err(Error::new("is neither a callgrind file nor a report of massif, DHAT, memcheck, helgrind or DRD"))
            }
        }
    });
    let shown = options.path().unwrap_or(Path::new("(standard input)"));
    result.map_err(|error| error.in_file(shown))
}

/// Enough for the headers of all reports.
const HEAD: u64 = 1 << 16;

fn name_profile(file: &File, options: &CallgrindOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let index = stream::index(file, job)?;
    let pid = index.about.pid.or_else(|| options.pid_in_name()).map(Pid);
    let Named { found, processes, pid } = sources_of(pid, options, job, &mut outcome)?;
    let raw = raw_code(options, pid)?;
    let loaded = found.load(&processes, &job.pool, &mut outcome.warnings);
    warn_of_others(&loaded.accounts, pid, options, &mut outcome);
    let (path, name) = options.object(pid);
    let names = CodeNames::new(&loaded.map, pid, name, &job.pool);
    let mut out = Output::create(&options.output())?;
    let rewritten = stream::graft(file, &index, &names, &mut out, job)?;
    if rewritten.functions > 0 {
        let map = loaded.accounts.iter().position(|account| account.kind == Kind::PerfMap);
        let raw = raw.as_ref().zip(map.map(|at| OriginId(at as u32)));
        let object = object::write(&names, raw, loaded.machine, &path, &mut outcome.warnings)?;
        outcome.summary.push(said_of_object(&path, &object));
    }
    out.commit()?;
    say(&index, &names, rewritten, pid, &mut outcome);
    Ok(outcome)
}

/// `CLOCK_MONOTONIC` of time.h, by which jitdumps are meant to be timed.
const CLOCK_MONOTONIC: i32 = 1;

/// The process and the sources that name its code.
struct Named {
    found: Found,
    processes: Processes,
    pid: Pid,
}

fn sources_of(pid: Option<Pid>, options: &CallgrindOptions, job: &Job, outcome: &mut Outcome) -> Result<Named> {
    let said = options.pid.or(pid);
    let Some(pid) = said
        .or_else(|| (!options.sources.perf_map.is_empty() || !options.sources.jitdump.is_empty()).then_some(Pid(0)))
    else {
        return Err(Error::new("neither the file nor its name tells the process: say it with --pid"));
    };
    let mut processes = Processes::default();
    // callgrind has no clock. A dump's times are wanted for their order only, so any clock is the right one.
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    processes.by_pid.insert(pid, Process { has_jit_memory: true, ..Process::default() });
    let beside = options
        .path()
        .map(|path| path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let found = find(&processes, &options.sources, beside, &job.pool, &mut outcome.warnings);
    if found.is_empty() {
        return Err(Error::new(format!(
            "no perf-{pid}.map and no jit-{pid}.dump is beside it, in /tmp or where --perf-map and --jitdump say: run the \
             program again with its runtime's switch for perf (such as MVM_JIT_PERF_MAP=1, node --perf-basic-prof, \
             php -d opcache.jit_debug=48, python -X perf)"
        )));
    }
    Ok(Named { found, processes, pid })
}

/// A map tells its process only by its name.
fn warn_of_others(accounts: &[Account], pid: Pid, options: &CallgrindOptions, outcome: &mut Outcome) {
    for account in accounts.iter().filter(|account| account.kind == Kind::PerfMap) {
        let name = account.path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.strip_prefix("perf-"));
        let Some(inner) = name.and_then(|digits| digits.parse().ok()).map(Pid) else { continue };
        if inner != pid && !options.sources.map_pid.contains(&(inner, pid)) {
            let message = format!(
                "by its name this map is of process {inner}; it is used for process {pid} (--map-pid {inner}={pid} says that \
                 they are the same)"
            );
            outcome.warnings.push(Warning::new(message).in_file(&account.path, None));
        }
    }
}

/// The directory of raw code, as asked for or where MoarVM puts it.
fn raw_code(options: &CallgrindOptions, pid: Pid) -> Result<Option<RawCode>> {
    if let Some(directory) = &options.bytecode_dir {
        return RawCode::open(directory).map(Some);
    }
    let name = format!("moar-jit.{pid}");
    let beside = options.path().and_then(Path::parent).unwrap_or(Path::new("")).join(&name);
    let usual = [beside, Path::new("/tmp").join(&name)].into_iter().find(|directory| directory.is_dir());
    Ok(usual.and_then(|directory| RawCode::open(&directory).ok()))
}

fn said_of_object(path: &Path, object: &object::Object) -> String {
    let object::Object { pieces, with_code } = object;
    let code = if *with_code == 0 {
        "names only: a jitdump or --bytecode-dir would give the machine code".to_owned()
    } else {
        format!("{with_code} with machine code")
    };
    format!("{}: {pieces} functions, {code}", path.display())
}

/// What was done, and what should be known about it.
fn say(index: &Index, names: &CodeNames<'_, '_>, rewritten: Rewritten, pid: Pid, outcome: &mut Outcome) {
    let Rewritten { done, functions } = rewritten;
    let unknown = index.unknown_functions().len();
    let event = index.about.events.first().map_or("cost".into(), |event| String::from_utf8_lossy(event));
    let all = done.named_cost.saturating_add(done.unnamed_cost);
    let percent = if all == 0 { 0.0 } else { done.named_cost as f64 / all as f64 * 100.0 };
    outcome.summary.push(format!(
        "{functions} functions named, {percent:.1} % of the {all} {event} in unknown memory; {} blocks split, {} calls made up \
         to keep inclusive costs",
        done.split, done.synthetic_calls
    ));
    let (strays, stray_cost) = done.strays.found();
    if strays > 0 {
        outcome.summary.push(format!(
            "{stray_cost} {event} of {strays} pieces of this code stay in functions of known objects, which had jumped there: \
             callgrind begins a function only at a call"
        ));
    }
    let warnings = &mut outcome.warnings;
    if names.is_empty() {
        warnings.push(Warning::new(format!(
            "process {pid} has no code in the sources found ({} pieces of others): nothing is changed",
            names.known()
        )));
    } else if functions == 0 && unknown > 0 {
        warnings.push(Warning::new(format!(
            "none of the {unknown} unknown functions is in the code of process {pid}: are map and profile of the same run?"
        )));
    }
    if functions > 0 && !index.about.has_instr {
        warnings.push(Warning::new(
            "the profile has no instruction addresses, so code was named by where callgrind entered it: code that was \
             reached by a jump is booked on the function that jumped; record again with --dump-instr=yes",
        ));
    }
    let ambiguous = done.functions.iter().filter(|&&entry| names.is_ambiguous(entry)).count();
    if ambiguous > 0 {
        warnings.push(Warning::new(format!(
            "{ambiguous} of the functions named took over addresses of others before them: callgrind has no times, so costs \
             of both are theirs"
        )));
    }
    done.skipped.report(Path::new("callgrind"), warnings);
}
