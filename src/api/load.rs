//! Reads profiles: whole, or sample by sample.

use super::formats::{Format, Formats};
use super::profile::{Profile, ProfileBuilder, Sample};
use crate::analysis::filter::{Bound, TimeRange};
use crate::contract::format::{Detail, Read};
use crate::error::{Error, Result, STDIN, Warning, Warnings};
use crate::io::InPath;
use crate::jit::GivenFile;
use crate::model::stacks::{self, Keep};
use crate::model::{Nanos, Pid, Tid};
use crate::parallel::Pool;
use crate::pipeline::any;
use crate::pipeline::inputs::JobInputs;
use crate::pipeline::open::{Input, Opened, PeekedInput, peek_bytes, unpack_bytes};
use crate::pipeline::recording::{self, check_events, is_wanted};
use crate::pipeline::sink::Sink;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::symbols::files::SearchOptions;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a profile in any format, packed or not, and names its addresses.
///
/// The format is detected from the contents. Recordings (`perf.data`, or an archive of `jitgraft pack`) are
/// symbolized: the files that name JIT code are looked for where runtimes write them and next to the recording, and
/// programs and libraries where the recording says. What could not be used is in [`Profile::warnings`]: a missing
/// jitdump or perf map is no error, but leaves frames of the kind [`JitUnnamed`](crate::FrameKind::JitUnnamed).
///
/// All samples are in memory afterwards; see [`LoadOptions::sums`] and [`for_each_sample`].
///
/// ```
/// use jitgraft::{LoadOptions, load};
///
/// let profile = load("src/api/examples/perf.data", &LoadOptions::new())?;
/// for event in profile.events() {
///     println!("{} ({}): {}", event.name(), event.unit().name(), event.total_weight());
///     for sample in event.samples() {
///         let names: Vec<String> = sample.frames().map(|frame| frame.to_string()).collect();
///         println!("{:?} {:?} {}", sample.pid, sample.time, names.join(" < "));
///     }
/// }
/// # let leaf = |sample: &jitgraft::Sample<'_>| sample.frames().next().unwrap().to_string();
/// # let leaves: Vec<String> = profile.samples().map(|sample| leaf(&sample)).collect();
/// # assert_eq!(leaves, ["first", "second", "second"]);
/// # assert!(profile.warnings().is_empty(), "{:?}", profile.warnings());
/// # Ok::<(), jitgraft::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Profile> {
    let path = path.as_ref();
    let opened = OpenInput::open(path, options).map_err(|error| error.in_file(path))?;
    load_opened(opened, InPath::Path(path.to_owned()), options)
}

/// Like [`load`], for a profile whose bytes are in memory.
///
/// ```
/// use jitgraft::{LoadOptions, load_bytes};
///
/// let profile = load_bytes("main;parse 3\nmain;parse;read 4\n", &LoadOptions::new())?;
/// assert_eq!(profile.samples().map(|sample| sample.weight).sum::<i64>(), 7);
/// # Ok::<(), jitgraft::Error>(())
/// ```
pub fn load_bytes(bytes: impl Into<Vec<u8>>, options: &LoadOptions) -> Result<Profile> {
    let opened = OpenInput::from_bytes(bytes.into(), options)?;
    load_opened(opened, InPath::Stdin, options).map_err(Error::without_stdin)
}

/// Calls `each` with every sample of a profile, in the order of the input (which need not be by time), and returns the
/// warnings.
///
/// perf.data is read twice, and memory grows with the number of distinct stacks, not with that of samples. Other
/// formats are in memory as a whole before the first call. If `each` fails, reading ends with its error.
///
/// ```
/// use jitgraft::{Addr, LoadOptions, for_each_sample};
///
/// let options = LoadOptions::new().addresses(true);
/// let mut seen = Vec::new();
/// for_each_sample("src/api/examples/perf.data", &options, |sample| {
///     let (pid, tid, time, cpu) = (sample.pid, sample.tid, sample.time, sample.cpu);
///     for frame in sample.frames() {
///         println!("{pid:?} {tid:?} {time:?} {cpu:?} {frame} at {:?}", frame.address);
///     }
///     seen.extend(sample.frames().next().map(|leaf| (leaf.to_string(), leaf.address.unwrap())));
///     Ok(())
/// })?;
/// let [first, second] = ["first", "second"].map(|name| (name.to_owned(), Addr(0x1_0010)));
/// assert_eq!(seen, [first, second.clone(), second]); // other code at the same address, by time
/// # Ok::<(), jitgraft::Error>(())
/// ```
pub fn for_each_sample(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    mut each: impl FnMut(&Sample<'_>) -> Result<()>,
) -> Result<Vec<Warning>> {
    let path = path.as_ref();
    let opened = match OpenInput::open(path, options).map_err(|error| error.in_file(path))? {
        OpenInput::Own(format, bytes) => {
            let profile = read_own(&*format, &bytes, options).map_err(|error| error.in_file(path))?;
            for sample in profile.samples() {
                each(&sample)?;
            }
            return Ok(profile.warnings);
        }
        OpenInput::BuiltIn(opened) => opened,
    };
    let (job, mut outcome) = (options.job()?, Outcome::default());
    // If the input is a recording, its samples are passed on one by one. Inputs in other formats are read as a whole
    // first.
    if let Opened::Whole(input) = &opened
        && matches!(input.format.read, Read::Addresses)
    {
        let on_sample = &mut |sample: &recording::OneSample<'_>| {
            let recording::OneSample { tables, event, row, cpu, addresses } = *sample;
            each(&Sample::from_recording(tables, event, row, cpu, addresses))
        };
        recording::for_each_sample(input, path, &options.readers().recording(), on_sample, &job, &mut outcome)
            .map_err(|error| error.in_file(path))?;
    } else {
        let paths = [InPath::Path(path.to_owned())];
        let mut sink = EachSample { each: &mut each, events: Vec::new(), wanted: &options.any.event };
        any::run(JobInputs::with_first(Some(opened), &paths), &options.readers(), &mut sink, &job, &mut outcome)?;
        // The events of this input are only known once it has been read, so check now whether those that were asked for
        // exist.
        let events: Vec<&str> = sink.events.iter().map(String::as_str).collect();
        check_events(&events, &options.any.event).map_err(|error| error.in_file(path))?;
    }
    Ok(warnings_of(outcome))
}

/// A sink that passes on all rows as samples.
struct EachSample<'a> {
    each: &'a mut dyn FnMut(&Sample<'_>) -> Result<()>,
    /// The names of all events so far.
    events: Vec<String>,
    /// The names of the events that the caller asked for; empty for all.
    wanted: &'a [String],
}

impl Sink for EachSample<'_> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    /// Passes the samples of the wanted events to the caller's function, and notes the names of all events.
    fn take(&mut self, rows: &mut stacks::Profile) -> Result<()> {
        let profile = Profile::new(std::mem::take(rows), &Warnings::new());
        for event in profile.events() {
            self.events.push(event.name().to_owned());
            if is_wanted(event.name(), self.wanted) {
                for sample in event.samples() {
                    (self.each)(&sample)?;
                }
            }
        }
        Ok(())
    }
}

/// An input that has been opened, and whose format is known.
enum OpenInput {
    /// An input in one of the caller's formats, with its unpacked contents.
    Own(Arc<dyn Format>, Vec<u8>),
    /// An input in a built-in format.
    BuiltIn(Opened),
}

impl OpenInput {
    /// Opens a file or a recording's directory. The caller's formats are tried first.
    fn open(path: &Path, options: &LoadOptions) -> Result<Self> {
        let mut file = match PeekedInput::open(&InPath::Path(path.to_owned()))? {
            PeekedInput::Directory(directory) => {
                return Input::open_directory(&directory).map(|input| Self::BuiltIn(Opened::Whole(input)));
            }
            PeekedInput::File(file) => file,
        };
        // Unpacking the first bytes takes time, so only do it if the caller has formats that need to see them.
        let own_format =
            if options.formats.has_own() { options.formats.recognize_own(&file.peek_unpacked()?) } else { None };
        if let Some(format) = own_format {
            let mut bytes = Vec::new();
            file.into_stream()?.read_to_end(&mut bytes)?;
            return Ok(Self::Own(format, bytes));
        }
        Opened::from_peeked(file).map(Self::BuiltIn)
    }

    /// Like [`open`](Self::open), for bytes in memory.
    fn from_bytes(bytes: Vec<u8>, options: &LoadOptions) -> Result<Self> {
        let own_format =
            if options.formats.has_own() { options.formats.recognize_own(&peek_bytes(&bytes)) } else { None };
        match own_format {
            Some(format) => Ok(Self::Own(format, unpack_bytes(bytes)?.to_vec())),
            None => Opened::from_bytes(bytes).map(Self::BuiltIn),
        }
    }
}

/// Reads the profile of an opened input. `path` is standard input if the input is in memory; messages then name no
/// file.
fn load_opened(opened: OpenInput, path: InPath, options: &LoadOptions) -> Result<Profile> {
    let in_file = |error: Error| match path.path() {
        Some(path) => error.in_file(path),
        None => error,
    };
    match opened {
        OpenInput::Own(format, bytes) => read_own(&*format, &bytes, options).map_err(in_file),
        OpenInput::BuiltIn(opened) => {
            let (job, mut outcome) = (options.job()?, Outcome::default());
            let keep = if options.sums { Keep::Sums } else { Keep::EachRow };
            let inputs = JobInputs::with_first(Some(opened), std::slice::from_ref(&path));
            let stacks = any::load(inputs, keep, &options.readers(), &job, &mut outcome).map_err(in_file)?;
            Ok(Profile { stacks, warnings: warnings_of(outcome) })
        }
    }
}

/// Reads a profile of one of the caller's formats, and selects the samples that were asked for.
fn read_own(format: &dyn Format, bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
    let mut builder = ProfileBuilder::new();
    format.read(bytes, &mut builder)?;
    let mut profile = builder.build()?;
    any::keep_events(&mut profile.stacks, &options.any.event)?;
    options.any.filter.apply(&mut profile.stacks);
    if options.sums {
        profile.stacks.aggregate();
    }
    Ok(profile)
}

/// The warnings of a finished job. For inputs in memory, they name no file: internally, such inputs are called standard
/// input.
fn warnings_of(outcome: Outcome) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = outcome.warnings.iter().cloned().collect();
    warnings.extend(outcome.estimates.into_iter().map(Warning::new));
    for warning in &mut warnings {
        if warning.file.as_deref() == Some(Path::new(STDIN)) {
            warning.file = None;
        }
    }
    warnings
}

/// What to read of a profile, and where to look for names.
///
/// ```
/// use jitgraft::{LoadOptions, Pid, load};
///
/// let options = LoadOptions::new().process(Pid(77)).lines(true).jitdump("src/api/examples/jit-77.dump");
/// let profile = load("src/api/examples/perf.data", &options)?;
/// # assert_eq!(profile.samples().count(), 3);
/// # let leaf = profile.samples().next().unwrap().frames().next().unwrap();
/// # assert_eq!((leaf.file, leaf.line), (Some(&b"first.js"[..]), Some(12)));
/// # Ok::<(), jitgraft::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct LoadOptions {
    /// The options of the readers, except for the detail of frames, which [`readers`](Self::readers) adds.
    any: any::LoadOptions,
    sums: bool,
    lines: bool,
    addresses: bool,
    threads: Option<NonZeroUsize>,
    formats: Formats,
}

impl LoadOptions {
    /// Reads all samples, names functions, and looks for files where the recorded system had them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only events with this name, with or without modifiers. Call it again for further events. Reading fails if
    /// the profile has no such event.
    pub fn event(mut self, name: impl Into<String>) -> Self {
        self.any.event.push(name.into());
        self
    }

    /// Keeps only samples of this process. Call it again for further processes.
    pub fn process(mut self, pid: Pid) -> Self {
        self.any.filter.pid.push(pid);
        self
    }

    /// Keeps only samples of this thread. Call it again for further threads.
    pub fn thread(mut self, tid: Tid) -> Self {
        self.any.filter.tid.push(tid);
        self
    }

    /// Keeps only samples of these times. Call it again for further times.
    pub fn times(mut self, times: RangeInclusive<Nanos>) -> Self {
        let (from, to) = (Some(Bound::At(*times.start())), Some(Bound::At(*times.end())));
        self.any.filter.time.push(TimeRange { from, to });
        self
    }

    /// Adds up samples with the same thread and stack while reading, so that memory doesn't grow with their number.
    /// Sums have no times.
    pub fn sums(mut self, sums: bool) -> Self {
        self.sums = sums;
        self
    }

    /// Looks up source files and lines of the frames of recordings, which takes longer. Without this option or
    /// [`addresses`](Self::addresses), these frames have no file and line. Frames of other formats have what the input
    /// says.
    pub fn lines(mut self, lines: bool) -> Self {
        self.lines = lines;
        self
    }

    /// Keeps the address of each frame, and looks up source files and lines. Stacks then differ if their addresses do,
    /// which takes more memory.
    pub fn addresses(mut self, addresses: bool) -> Self {
        self.addresses = addresses;
        self
    }

    /// Shows inlined calls as frames. This is the default.
    pub fn inlined_calls(mut self, inlined_calls: bool) -> Self {
        self.any.symbols.inlines = inlined_calls;
        self
    }

    /// Demangles names. This is the default.
    pub fn demangle(mut self, demangle: bool) -> Self {
        self.any.symbols.demangle = demangle;
        self
    }

    /// Tries this jitdump, or the jitdumps in this directory, before those that are found.
    pub fn jitdump(mut self, path: impl Into<PathBuf>) -> Self {
        self.any.sources.jitdump.push(GivenFile::from(path));
        self
    }

    /// Tries this perf map, or the perf maps in this directory, before those that are found.
    pub fn perf_map(mut self, path: impl Into<PathBuf>) -> Self {
        self.any.sources.perf_map.push(GivenFile::from(path));
        self
    }

    /// Tries this log of a runtime, or the logs in this directory, before those that are found.
    pub fn jit_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.any.sources.jit_log.push(GivenFile::from(path));
        self
    }

    /// Looks for programs and libraries below this directory: the root of the recorded system.
    pub fn symfs(mut self, directory: impl Into<PathBuf>) -> Self {
        self.search(|search, directory| search.symfs.push(directory), directory.into());
        self
    }

    /// Looks for debug information in this directory, which is laid out like `/usr/lib/debug`.
    pub fn debug_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.search(|search, directory| search.debug_dirs.push(directory), directory.into());
        self
    }

    /// Uses files that name code even if another user than root and the current one owns them. Whoever owns such a
    /// file decides what it says.
    pub fn trust_all_owners(mut self, trust: bool) -> Self {
        self.any.sources.force = trust;
        self.any.sources.search.force = trust;
        self.any.symbols.search.force = trust;
        self
    }

    /// The maximum number of frames per stack of a recording. Stacks that jitgraft unwinds may have this many in the
    /// kernel and as many in user space.
    pub fn max_stack(mut self, frames: usize) -> Self {
        self.any.max_stack = Some(frames);
        self
    }

    /// The number of threads to use. By default there is one per CPU.
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Also reads your own formats, which are tried first.
    pub fn formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// The options for the readers.
    fn readers(&self) -> any::LoadOptions {
        let detail = match (self.addresses, self.lines) {
            (true, _) => Detail::Addresses,
            (false, true) => Detail::Lines,
            (false, false) => Detail::Names,
        };
        any::LoadOptions { detail, ..self.any.clone() }
    }

    /// Changes where symbols are looked for. Readers have separate search options for JIT code and for native code;
    /// `change` is applied to both, so that they are always the same here.
    fn search(&mut self, change: impl Fn(&mut SearchOptions, PathBuf), path: PathBuf) {
        change(&mut self.any.sources.search, path.clone());
        change(&mut self.any.symbols.search, path);
    }

    /// A job that prints nothing and uses the requested number of threads.
    fn job(&self) -> Result<Job> {
        Ok(Job { pool: Pool::new(self.threads)?, quiet: true, verbose: false, strict: false })
    }
}
