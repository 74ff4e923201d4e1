//! `script` as a filter: perf script's text in, the same text out, with names for the frames of JIT code.
//!
//! ```text
//! feeder ── blocks cut at samples ──▶ workers: rewrite ──▶ sink, in order
//!                                        │ a process nobody looked for yet
//!                                        ▼
//!                     stop, find and load its dumps and maps, go on with the same blocks
//! ```
//!
//! Memory: a few blocks a thread, and the code map. A slow pipe is passed on as it comes: a block ends where the
//! writer pauses.

use super::{Job, Outcome};
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::perf_script::rewrite::{self, Answer, Counts, Named, Rewritten, State, Style, Wanted};
use crate::io::{self, Bytes, InPath, OutPath, Output, Stream};
use crate::model::code::Line;
use crate::model::process::{Marker, Processes};
use crate::model::{Nanos, Pid};
use crate::resolve::code_map::{CodeMap, Hit, How};
use crate::sources::{self, SourceOptions};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, OnceLock};

/// What to filter, and how.
#[derive(Debug, Clone)]
pub struct FilterOptions {
    /// The text.
    pub input: InPath,
    /// The text with names.
    pub output: OutPath,
    /// How frames are named and printed.
    pub style: Style,
    /// Where names come from.
    pub sources: SourceOptions,
}

/// Bytes that are handed to a worker at once: long enough to make the hand-over cheap, short enough that the first
/// output comes soon. Chosen by whole-process runs over 1 GB of text: 256 KiB to 4 MiB make no difference.
const BLOCK: usize = 1 << 18;

/// A line longer than this is passed on in pieces, so that noise cannot fill the memory.
const LONGEST: usize = 1 << 24;

/// Filters a text.
pub fn run(input: Stream, options: &FilterOptions, job: &Job) -> Result<Outcome> {
    let mut out = Output::create(&options.output)?;
    let mut outcome = Outcome::default();
    let filter = Filter {
        style: options.style,
        sources: &options.sources,
        beside: beside(&options.input),
        images: images_directory(&options.output),
        job,
    };
    let counts = filter.run(input, &mut out, &mut outcome.warnings)?;
    out.commit()?;
    summarise(&counts, &mut outcome);
    Ok(outcome)
}

/// The same for a text that is about to be read as stacks: named, in a temporary file.
pub(super) fn named(
    bytes: Bytes,
    path: &InPath,
    sources: &SourceOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Bytes> {
    let images = images_directory(&OutPath::Stdout);
    let filter = Filter { style: Style::default(), sources, beside: beside(path), images, job };
    let mut spool = tempfile::tempfile()?;
    let input = Stream::new(Box::new(std::io::Cursor::new(bytes)));
    let counts = filter.run(input, &mut spool, &mut outcome.warnings)?;
    if counts.named > 0 {
        summarise(&counts, outcome);
    }
    io::map_spool(&spool)
}

struct Filter<'a> {
    style: Style,
    sources: &'a SourceOptions,
    /// The directory of the input.
    beside: Option<PathBuf>,
    /// The directory of the images that `inject` would write.
    images: PathBuf,
    job: &'a Job,
}

impl Filter<'_> {
    /// Rewrites block by block. Where names of a process are wanted that nobody looked for, it stops, looks, and
    /// goes on with the blocks that were under way.
    fn run(&self, mut input: Stream, out: &mut dyn Write, warnings: &mut Warnings) -> Result<Counts> {
        let mut style = self.style;
        style.learn_offsets(input.peek(1 << 16)?);
        let mut feeder = Feeder::new(input);
        let mut processes = Processes::default();
        // perf script does not print the clock. A jitdump needs the monotonic one, so that is what was recorded if
        // its times are any good.
        processes.clock.clockid = Some(1);
        let (mut counts, mut pending) = (Counts::default(), Vec::new());
        // Each round looks at all sources anew: what it has to say is said by the last one.
        let mut said;
        loop {
            said = Warnings::new();
            let pool = &self.job.pool;
            let found = sources::find(&processes, self.sources, self.beside.as_deref(), pool, &mut said);
            let loaded = found.load(&processes, pool, &mut said);
            let namer = Namer::new(&loaded.map, &processes, &self.images, style.srcline);
            let mut round = Round { again: Vec::new(), needs: Vec::new(), counts: Counts::default() };
            let gate = Gate::new(pending.len());
            let fresh = std::iter::from_fn(|| if gate.may_read(feeder.paused) { feeder.next_block() } else { None });
            pool.stream(
                pending.into_iter().chain(fresh.map(Work::Raw)),
                |work| work.run(style, &namer),
                |work| {
                    let taken = round.take(work, out);
                    gate.taken(taken.is_err() || !round.again.is_empty());
                    taken
                },
            )?;
            counts += round.counts;
            if round.again.is_empty() {
                break;
            }
            pending = round.again;
            for (pids, state) in round.needs {
                ask_for(&mut processes, &pids, &state);
            }
        }
        warnings.append(said);
        feeder.failed.map_or(Ok(counts), Err)
    }
}

/// What comes out between two looks at the sources.
struct Round {
    /// From the first block on that needs more names: all blocks, done or not, in order.
    again: Vec<Work>,
    needs: Vec<(BTreeSet<Pid>, State)>,
    counts: Counts,
}

impl Round {
    fn take(&mut self, work: Work, out: &mut dyn Write) -> Result<()> {
        match work {
            Work::Done(bytes, counts) if self.again.is_empty() => {
                out.write_all(&bytes)?;
                out.flush()?;
                self.counts += counts;
            }
            Work::Needs(block, pids) => {
                self.needs.push((pids, block.state.clone()));
                self.again.push(Work::Raw(block));
            }
            later => self.again.push(later),
        }
        Ok(())
    }
}

/// Keeps the feeder from waiting for more input while what it gave out may still need names: nobody could stop it
/// then, and a slow writer would see nothing come out.
struct Gate {
    /// Blocks under way, and whether no more shall be read.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn new(under_way: usize) -> Self {
        Self { state: Mutex::new((under_way, false)), changed: Condvar::new() }
    }

    /// Whether the next block may be read; if the writer paused, only when all before it are through.
    fn may_read(&self, paused: bool) -> bool {
        // A poisoned lock means that another worker panicked: the scope will say so.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |(under_way, halted): &mut (usize, bool)| paused && *under_way > 0 && !*halted;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.0 += 1;
        !state.1
    }

    /// A block is through; `halt` if no more shall be read.
    fn taken(&self, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(1);
            state.1 |= halt;
        }
        self.changed.notify_all();
    }
}

/// A stretch of text and what the text before it told.
struct Block {
    bytes: Vec<u8>,
    state: State,
}

/// A block on its way.
enum Work {
    Raw(Block),
    Done(Vec<u8>, Counts),
    Needs(Block, BTreeSet<Pid>),
}

impl Work {
    fn run(self, style: Style, namer: &Namer<'_, '_>) -> Self {
        let Self::Raw(block) = self else { return self };
        match rewrite::rewrite(&block.bytes, &block.state, style, &|wanted| namer.answer(wanted)) {
            Rewritten::Unchanged(counts) => Self::Done(block.bytes, counts),
            Rewritten::Changed(bytes, counts) => Self::Done(bytes, counts),
            Rewritten::Needs(pids) => Self::Needs(block, pids),
        }
    }
}

/// Cuts the input into blocks.
struct Feeder {
    input: Stream,
    state: State,
    /// Read, but behind the last cut.
    rest: Vec<u8>,
    buffer: Vec<u8>,
    ended: bool,
    /// Whether the writer paused behind what was read last.
    paused: bool,
    failed: Option<Error>,
}

impl Feeder {
    fn new(input: Stream) -> Self {
        Self {
            input,
            state: State::default(),
            rest: Vec::new(),
            buffer: vec![0; BLOCK],
            ended: false,
            paused: false,
            failed: None,
        }
    }

    fn next_block(&mut self) -> Option<Block> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut wanted = BLOCK;
        while !self.ended {
            let paused = self.fill(&mut bytes, wanted);
            self.paused = paused;
            let cut = rewrite::cut(&bytes);
            let whole_line = cut > 0 && bytes[cut - 1] == b'\n';
            if !self.ended && (whole_line || bytes.len() >= LONGEST) && (paused || bytes.len() >= wanted) {
                self.rest = bytes.split_off(cut);
                break;
            }
            wanted = bytes.len() + BLOCK;
        }
        if bytes.is_empty() {
            return None;
        }
        let state = self.state.clone();
        self.state.advance(&bytes);
        Some(Block { bytes, state })
    }

    /// Reads until `bytes` are that long, the writer pauses or the input ends; whether it paused.
    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> bool {
        while bytes.len() < wanted {
            let room = (wanted - bytes.len()).min(self.buffer.len());
            match self.input.read(&mut self.buffer[..room]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) => {
                    self.ended = true;
                    return false;
                }
                // A pipe gives at most its capacity at once; less than a page's worth means that there is no more.
                Ok(len) => {
                    bytes.extend_from_slice(&self.buffer[..len]);
                    if len < room && len < PAUSE {
                        return true;
                    }
                }
                Err(error) => {
                    self.failed = Some(Error::new("cannot read on").because(error));
                    self.ended = true;
                    return false;
                }
            }
        }
        false
    }
}

/// What a pipe holds at most: a read that gives less has emptied it.
const PAUSE: usize = 1 << 16;

/// Answers from the code map.
struct Namer<'m, 'data> {
    map: &'m CodeMap<'data>,
    asked: &'m Processes,
    /// What JIT code of each process is shown under: its image, and its perf map.
    dsos: BTreeMap<Pid, (Vec<u8>, Vec<u8>)>,
    /// Decoded once each, if they are asked for; else empty.
    lines: Vec<OnceLock<Vec<Line<'data>>>>,
}

impl<'m, 'data> Namer<'m, 'data> {
    fn new(map: &'m CodeMap<'data>, asked: &'m Processes, images: &'m Path, srcline: bool) -> Self {
        let lines = (0..if srcline { map.code_count() } else { 0 }).map(|_| OnceLock::new()).collect();
        let dsos = asked.by_pid.keys().map(|&pid| {
            let image = images.join(format!("jitted-{pid}.so")).into_os_string().into_vec();
            (pid, (image, format!("/tmp/perf-{pid}.map").into_bytes()))
        });
        Self { map, asked, dsos: dsos.collect(), lines }
    }

    fn answer(&self, wanted: Wanted) -> Answer<'_> {
        if !self.asked.by_pid.contains_key(&wanted.pid) {
            return Answer::NotLoaded;
        }
        let at = wanted.addr.for_lookup();
        let Some(hit) = self.map.lookup(wanted.pid, at, wanted.time) else { return Answer::Unknown };
        let code = self.map.code(hit.code);
        let (image, map) = &self.dsos[&wanted.pid];
        let dso = if hit.how == How::Untimed { map } else { image };
        let lines = self.lines.get(hit.code.0 as usize).map(|lines| lines.get_or_init(|| code.lines.entries()));
        let lines = lines.map_or(&[][..], Vec::as_slice);
        let line = lines[..lines.partition_point(|line| line.offset <= hit.offset)].last();
        let named = Named {
            name: Cow::Borrowed(code.name),
            offset: hit.offset + (wanted.addr.raw().0 - at.0),
            dso: Cow::Borrowed(dso.as_slice()),
            source: line.map(|line| (Cow::Borrowed(line.file), line.line)),
        };
        Answer::Named(named, self.valid(&wanted, hit))
    }

    /// At which times the answer is the same.
    fn valid(&self, wanted: &Wanted, hit: Hit) -> Range<Nanos> {
        let always = Nanos(0)..Nanos(u64::MAX);
        let last = || self.map.lookup(wanted.pid, wanted.addr.for_lookup(), None);
        match (hit.how, wanted.time) {
            (_, None) => always,
            (How::Live, Some(_)) => {
                let segment = self.map.segment(hit.segment);
                segment.from..segment.until
            }
            // No load with a time was ever there.
            (How::Untimed, Some(_)) if last().is_some_and(|last| last.how == How::Untimed) => always,
            (How::Untimed | How::Later, Some(time)) => time..Nanos(time.0.saturating_add(1)),
        }
    }
}

/// Marks processes as asked for, with the jitdumps that the text says they mapped.
fn ask_for(processes: &mut Processes, pids: &BTreeSet<Pid>, state: &State) {
    for &pid in pids {
        processes.by_pid.entry(pid).or_default().has_jit_memory = true;
        let of_process = state.known().markers().iter().filter(|marked| marked.pid == pid);
        for marked in of_process {
            let path = PathBuf::from(std::ffi::OsString::from_vec(marked.path.clone()));
            let marker = Marker { pid, tid: marked.tid, path, time: marked.time, addr: marked.addr, offset: 0 };
            if !processes.markers.contains(&marker) {
                processes.markers.push(marker);
            }
        }
    }
}

/// Where `inject` would put its images: beside the output, else in the current directory.
fn images_directory(output: &OutPath) -> PathBuf {
    let here = || std::env::current_dir().unwrap_or_default();
    match output {
        OutPath::Stdout => here(),
        OutPath::Path(path) => {
            std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned())).unwrap_or_else(here)
        }
    }
}

fn beside(input: &InPath) -> Option<PathBuf> {
    match input {
        InPath::Stdin => None,
        InPath::Path(path) => Some(path.parent()?.to_owned()),
    }
}

fn summarise(counts: &Counts, outcome: &mut Outcome) {
    let Counts { named, unresolved, relative, nobodys } = *counts;
    let jit = named + unresolved;
    if jit == 0 {
        outcome.summary.push("no frame in a place of JIT code lacks a name".to_owned());
        return;
    }
    let percent = named as f64 * 100.0 / jit as f64;
    outcome.summary.push(format!("{named} of {jit} frames of JIT code named ({percent:.1} %)"));
    if relative > 0 {
        outcome.warnings.push(Warning::new(format!(
            "{relative} frames left: their addresses are relative to a file and the text does not tell where it was mapped \
             (print it with --show-mmap-events)"
        )));
    }
    if nobodys > 0 {
        outcome.warnings.push(Warning::new(format!(
            "{nobodys} frames left: the text does not tell whose they are (print it with -F +pid,tid)"
        )));
    }
}
