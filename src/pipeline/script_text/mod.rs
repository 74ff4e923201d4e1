//! The filter `script`: reads perf script's text and writes the same text, with names for frames of JIT code.
//!
//! ```text
//! feeder ── blocks cut at samples ──▶ workers: rewrite ──▶ sink, in order
//!                                        │ a process that wasn't looked up yet
//!                                        ▼
//!                     stop, find and load its jitdumps and perf maps, go on with the same blocks
//! ```
//!
//! Each lookup covers all processes so far. So that a text with thousands of processes doesn't need thousands of
//! lookups, more and more blocks are read after the first one that needs a lookup ([`MAX_WAITING`]).
//!
//! Only a few blocks per thread and the code map are in memory. Text from a slow pipe is passed on as it arrives,
//! because a block also ends where the program that writes the text pauses.

mod feeder;
mod namer;
mod natives;
mod stacks;

pub(super) use stacks::read_stacks;

use super::blocks::{Blocks, Cutting, Spare};
use super::job::{Job, Outcome};
use super::terminal::write_text;
use crate::analysis::quantity::counted;
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::formats::perf_script::rewrite::memo::Memo;
use crate::formats::perf_script::rewrite::{Counts, FrameQuery, Needs, Rewriter, Rewritten, Style};
use crate::formats::perf_script::{Layout, cut_without_source_lines, has_lines, sniff};
use crate::io::{InPath, OutPath, Output, Run, Stream};
use crate::jit::{self, SourceOptions};
use crate::model::Pid;
use crate::model::process::{ProcessListState, Processes};
use crate::pipeline::outputs::commit;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::CodeMap;
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::SymbolOptions;
use feeder::{After, BLOCK, Block, Feeder, Gate, LONGEST};
use namer::{Namer, add_processes};
use natives::Natives;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// The options of the filter.
#[derive(Debug, Clone)]
pub struct FilterOptions {
    /// The text to read.
    pub input: InPath,
    /// Where to write the text with names.
    pub output: OutPath,
    /// How to name and print frames.
    pub style: Style,
    /// Where to find names of JIT code.
    pub sources: SourceOptions,
    /// Where to find symbols of native code, if frames of native code should be named as well.
    pub symbols: SymbolOptions,
}

/// Runs the filter: reads a text of perf script, names its frames of JIT code, and writes it to the output.
pub fn run(mut input: Stream, options: &FilterOptions, run: &Run, job: &Job) -> Result<Outcome> {
    let head = input.peek(HEAD)?;
    // True if the start of the text doesn't look like perf script's. Other lines may come before the samples, so the
    // text is only refused, below, if it turns out to have neither samples nor frames.
    let may_be_other = !sniff(head) && has_lines(head);
    let mut out = Output::create(&options.output, run)?;
    let mut outcome = Outcome::default();
    let filter = TextFilter {
        style: options.style,
        sources: &options.sources,
        symbols: &options.symbols,
        input_directory: input_directory(&options.input),
        images: images_directory(&options.output),
        job,
    };
    let Filtered { counts, nameless, map_remarks } =
        write_text(&mut out, |out| filter.write(input, out, &mut outcome.warnings))?;
    let has_frames = counts.named + counts.unresolved + counts.native > 0;
    // `out` isn't committed if this fails, so an output file that exists stays as it is.
    if may_be_other && counts.samples == 0 && !has_frames {
        let remedy = "pass perf.data itself, or the output of perf script".to_owned();
        return Err(Error::new("is not output of perf script: it has no samples").with_remedy(Some(remedy)));
    }
    commit(out, &mut outcome)?;
    outcome.summary.extend(map_remarks);
    summarize(&counts, &mut outcome);
    outcome.summary.extend(report_nameless(&counts, &nameless));
    outcome.summary.extend(report_frameless(&counts));
    Ok(outcome)
}

/// What was counted and noticed while filtering a text.
struct Filtered {
    counts: Counts,
    /// Processes with JIT code for which no source of names was found. Always empty if the text has process events such
    /// as forks and mappings: the message about these processes asks for such events.
    nameless: Vec<Pid>,
    /// Remarks about source maps, for the summary.
    map_remarks: Vec<String>,
}

struct TextFilter<'a> {
    style: Style,
    sources: &'a SourceOptions,
    symbols: &'a SymbolOptions,
    input_directory: Option<PathBuf>,
    /// The directory where `inject` would write its images of JIT code. Named frames show the image as their module.
    images: PathBuf,
    job: &'a Job,
}

/// A block in which frames have been named.
struct NamedBlock {
    /// The block's text, with names.
    bytes: Vec<u8>,
    /// The block's text as it was read; `None` if it needed no changes.
    before: Option<Vec<u8>>,
    /// What the record lines (forks, execs, mappings) before the block say about processes.
    facts: RecordLineFacts,
    /// The offset of the block in the text, in bytes.
    offset: u64,
}

/// How to cut the text, and what to do with the blocks.
struct BlockHandling<'f, T> {
    layout: &'f Layout,
    cutting: Cutting<'f>,
    /// Buffers for blocks, for reuse.
    buffers: &'f Spare<Vec<u8>>,
    /// Called by workers with each block, in parallel.
    make: &'f (dyn Fn(NamedBlock) -> T + Sync),
    /// Called with the results of `make`, in the order of the text.
    take: &'f mut dyn FnMut(T) -> Result<()>,
}

/// The number of bytes at the beginning of a text by which its layout is detected.
const HEAD: usize = 1 << 16;

/// The maximum number of blocks that wait for the first lookup. Each further lookup is made for up to twice as many
/// blocks as the one before. Where the program that writes the text pauses, fewer wait, so that its text is passed on.
const FIRST_WAITING: usize = 4;

/// The maximum number of blocks that wait for any lookup.
const MAX_WAITING: usize = 64;

impl TextFilter<'_> {
    /// Reads a text and writes it with names added to its frames. Each block is written as soon as it is done, so that
    /// the text of a running perf is passed on without delay.
    fn write(&self, mut input: Stream, out: &mut dyn Write, warnings: &mut Warnings) -> Result<Filtered> {
        let layout = &Layout::detect(input.peek(HEAD)?);
        let buffers = &Spare::default();
        // If names were added, `before` is the buffer with the original text. It is reused, unless it has grown beyond
        // `4 * BLOCK`.
        let make = &|block: NamedBlock| {
            if let Some(before) = block.before {
                buffers.give_buffer(before, 4 * BLOCK);
            }
            block.bytes
        };
        let take = &mut |bytes: Vec<u8>| {
            // Each block is flushed, so that readers of the output see the text of a running perf at once.
            out.write_all(&bytes)?;
            out.flush()?;
            buffers.give_buffer(bytes, 4 * BLOCK);
            Ok(())
        };
        // A source line may follow a one-line sample. If perf pauses after such a sample (`at_pauses`), end the block
        // there instead of waiting for that line.
        let cut = &|bytes: &[u8]| cut_without_source_lines(bytes, layout);
        let cutting = Cutting { block: BLOCK, cut, longest: LONGEST, at_pauses: true };
        self.run(input, BlockHandling { layout, cutting, buffers, make, take }, warnings)
    }

    /// Names frames in the text, in rounds. A round names block after block until one needs names that haven't been
    /// loaded: those of another process, or of functions in a file. Then these are loaded, and the next round goes on
    /// with the blocks that have to wait for them.
    fn run<T: Send>(
        &self,
        mut input: Stream,
        handling: BlockHandling<'_, T>,
        warnings: &mut Warnings,
    ) -> Result<Filtered> {
        let BlockHandling { layout, cutting, buffers, make, take } = handling;
        let mut style = self.style;
        style.detect(input.peek(HEAD)?);
        let mut feeder = Feeder::new(Blocks::new(input, cutting, buffers), layout);
        let mut processes = Processes::default();
        // The text doesn't say which clock its times are from. Assume the monotonic one (1), which jitdumps must use.
        // If it was another clock, the times in jitdumps couldn't be compared with those in the text anyway.
        processes.clock.clockid = Some(1);
        processes.list_state = ProcessListState::Partial(None);
        let pool = &self.job.pool;
        let mut counts = Counts::default();
        let mut pending = Vec::new();
        let mut natives = Natives::new(self.symbols);
        let mut native_warnings = Warnings::new();
        let mut max_waiting = FIRST_WAITING;
        loop {
            // Each lookup covers the sources of all processes so far, and repeats earlier warnings. So only those of
            // the last lookup are reported.
            let mut source_warnings = Warnings::new();
            // The outer loop runs once for each code map: it finds and loads the jitdumps and perf maps of all
            // processes that are known to be needed. The inner loop runs one round after the other with this map.
            let directory = self.input_directory.as_deref();
            let found = jit::find(&processes, self.sources, directory, &mut source_warnings);
            let loaded = found.load(&processes, pool, &mut source_warnings);
            let symbolizer = Symbolizer { spaces: &AddressSpaces::default(), codes: &loaded.map };
            let namer = Namer::new(symbolizer, &processes, &self.images, style.srcline, self.symbols);
            let needs = loop {
                let answer = |wanted: FrameQuery<'_>| match wanted.file {
                    Some(file) => natives.answer(file, wanted.addr),
                    None => namer.answer(wanted),
                };
                let rewriter = Rewriter { layout, style, namer: &answer };
                let worker = Worker { rewriter, buffers, block: cutting.block, make };
                let round = self.run_round(&mut feeder, pending, max_waiting, &worker, take)?;
                counts += round.counts;
                // A round without blocks that wait for names has reached the end of the text.
                if round.again.is_empty() {
                    warnings.append(source_warnings);
                    warnings.append(native_warnings);
                    let nameless = processes_without_code(&loaded.map, &processes, &feeder.facts);
                    let map_remarks = loaded.source_maps.remarks().collect();
                    return match feeder.blocks.error {
                        Some(error) => Err(Error::new("cannot read the rest").because(error)),
                        None => Ok(Filtered { counts, nameless, map_remarks }),
                    };
                }
                pending = round.again;
                max_waiting = MAX_WAITING.min(2 * max_waiting);
                // The places in native code at which function names are needed: pairs of a file and an offset in it.
                let places = round.needs.iter().flat_map(|(needs, _)| needs.places.iter().cloned()).collect();
                natives.look_up(places, pool, &mut native_warnings);
                // Names of native code were added above. The code map is only built again if blocks need further
                // processes.
                if round.needs.iter().any(|(needs, _)| !needs.pids.is_empty()) {
                    break round.needs;
                }
            };
            if processes.by_pid.is_empty() {
                // `Partial`: more processes may follow. It states the process of the first unnamed frames, if that is
                // only one.
                processes.list_state = ProcessListState::Partial(first_needed(&needs));
            }
            for (needs, facts) in needs {
                add_processes(&mut processes, &needs.pids, &facts);
            }
        }
    }

    /// Names frames block by block, and passes the blocks on. The first block that needs names which aren't loaded yet
    /// is kept for the next round, and so are all blocks after it. The round ends when `max_waiting` blocks are kept,
    /// or at the end of the text. `pending` are the blocks that the previous round kept. They come before the blocks
    /// that the feeder returns.
    fn run_round<T: Send>(
        &self,
        feeder: &mut Feeder<'_>,
        mut pending: Vec<Work<T>>,
        max_waiting: usize,
        worker: &Worker<'_, '_, T>,
        take: &mut dyn FnMut(T) -> Result<()>,
    ) -> Result<Round<T>> {
        let layout = worker.rewriter.layout;
        let mut round = Round { again: Vec::new(), needs: Vec::new(), counts: Counts::default() };
        // Unless text must be passed on as it arrives, read one block ahead, to see whether it is the only one.
        if !feeder.blocks.cutting.at_pauses && pending.is_empty() {
            pending.extend(feeder.next_block().map(Work::Raw));
        }
        // Don't start threads for a text that fits in one block: there may be many such texts.
        if feeder.blocks.ended && pending.len() < 2 {
            for last in pending {
                round.take(worker.run(last, &mut Memo::default()), layout, take)?;
            }
            return Ok(round);
        }
        // The gate stops reading when enough blocks wait for names. If the program that writes the text has paused, the
        // next read may take long. So the gate first waits until all blocks have been processed, and stops if any of
        // them waits for names.
        let gate = Gate::new(pending.len());
        let fresh = std::iter::from_fn(|| if gate.may_read(feeder.blocks.paused) { feeder.next_block() } else { None });
        self.job.pool.stream_with(
            pending.into_iter().chain(fresh.map(Work::Raw)),
            Memo::default,
            |memo, work| worker.run(work, memo),
            |work| {
                let result = round.take(work, layout, take);
                if result.is_err() || round.again.len() >= max_waiting {
                    gate.finish_block(After::Stop);
                } else if round.again.is_empty() {
                    gate.finish_block(After::ReadOn);
                } else {
                    gate.finish_block(After::ReadUnlessPaused);
                }
                result
            },
        )?;
        Ok(round)
    }
}

/// The process whose names the first waiting block needs; `None` if the block needs names of several processes. Only
/// the first block counts, because which others are in the same round depends on the number of threads.
fn first_needed(needs: &[(Needs, RecordLineFacts)]) -> Option<Pid> {
    let (needs, _) = needs.iter().find(|(needs, _)| !needs.pids.is_empty())?;
    if needs.pids.len() == 1 { needs.pids.first().copied() } else { None }
}

/// The result of processing blocks between two lookups of names.
struct Round<T> {
    /// The blocks for the next round: the first one that needs more names, and all after it, finished or not, in order.
    again: Vec<Work<T>>,
    /// For each block that needs names: what it needs, and what record lines up to its end say about processes.
    needs: Vec<(Needs, RecordLineFacts)>,
    counts: Counts,
}

impl<T> Round<T> {
    /// Receives a block, in the order of the text. Passes the block on if it and all blocks before it are done;
    /// otherwise keeps it for the next round.
    fn take(&mut self, work: Work<T>, layout: &Layout, take: &mut dyn FnMut(T) -> Result<()>) -> Result<()> {
        match work {
            // The block is done, and no earlier block waits for names.
            Work::Done(result, counts) if self.again.is_empty() => {
                take(result)?;
                self.counts += counts;
            }
            Work::Needs(block, needs) => {
                // What the block needs may be explained by record lines in the block itself, such as a fork.
                let mut facts = block.facts.clone();
                facts.apply_all(&block.bytes, &layout.indent);
                self.needs.push((needs, facts));
                self.again.push(Work::Raw(block));
            }
            // The block is done, but an earlier block waits for names.
            later => self.again.push(later),
        }
        Ok(())
    }
}

/// A block of the text, which is cut into blocks between samples, in one of its states.
enum Work<T> {
    /// The block hasn't been processed, at least not since the last names were looked up.
    Raw(Block),
    /// The block's frames are named. Holds what was made of the new text, and the counts of the block's samples and
    /// frames.
    Done(T, Counts),
    /// The block can't be finished before the names that it needs are looked up.
    Needs(Block, Needs),
}

/// What the workers do with a block.
struct Worker<'a, 'n, T> {
    rewriter: Rewriter<'a, 'n>,
    buffers: &'a Spare<Vec<u8>>,
    /// The size of a block in bytes.
    block: usize,
    make: &'a (dyn Fn(NamedBlock) -> T + Sync),
}

impl<T> Worker<'_, '_, T> {
    /// Names the frames of a block, unless an earlier round has done so. If the block needs names that haven't been
    /// looked up yet, returns the block unchanged, with what it needs.
    fn run(&self, work: Work<T>, memo: &mut Memo) -> Work<T> {
        let Work::Raw(Block { bytes, facts, offset }) = work else { return work };
        let mut out = self.buffers.take_empty();
        let rewritten = self.rewriter.rewrite(&bytes, &facts, memo, &mut out);
        let (named, counts) = match rewritten {
            Rewritten::Changed(counts) => (NamedBlock { bytes: out, before: Some(bytes), facts, offset }, counts),
            Rewritten::Unchanged(counts) => {
                self.buffers.give_buffer(out, 4 * self.block);
                (NamedBlock { bytes, before: None, facts, offset }, counts)
            }
            Rewritten::Needs(needs) => {
                self.buffers.give_buffer(out, 4 * self.block);
                return Work::Needs(Block { bytes, facts, offset }, needs);
            }
        };
        Work::Done((self.make)(named), counts)
    }
}

/// The directory where `inject` would write its images of JIT code: that of the output file, or else the current
/// directory.
fn images_directory(output: &OutPath) -> PathBuf {
    if let OutPath::Path(path) = output
        && !output.is_stream()
        && let Ok(path) = std::path::absolute(path)
        && let Some(directory) = path.parent()
    {
        return directory.to_owned();
    }
    std::env::current_dir().unwrap_or_default()
}

fn input_directory(input: &InPath) -> Option<PathBuf> {
    Some(input.directory()?.to_owned())
}

/// Processes for which no JIT code was found although they were looked up. Empty if the text contains process events.
fn processes_without_code(map: &CodeMap<'_>, processes: &Processes, facts: &RecordLineFacts) -> Vec<Pid> {
    if !facts.is_empty() {
        return Vec::new();
    }
    let known: BTreeSet<Pid> = map.pids().collect();
    processes.by_pid.keys().copied().filter(|pid| !known.contains(pid)).collect()
}

/// A message about processes for which neither a jitdump nor a perf map was found (`nameless`). `None` if there are
/// none, or if no frame is unnamed because of that.
fn report_nameless(counts: &Counts, nameless: &[Pid]) -> Option<String> {
    let first = nameless.first()?;
    // Some unnamed frames have no address in the process, or no process ID. No dump or map could name those. If there
    // are no others, the missing files aren't to blame.
    if counts.unresolved <= counts.relative + counts.process_unknown {
        return None;
    }
    let more = if nameless.len() > 1 { format!(" and {} more", nameless.len() - 1) } else { String::new() };
    Some(format!(
        "no dump or map found for process {first}{more}. If {first} is in fact the ID of a thread, run perf script \
         again with -F +pid. If the process was forked, or its dump is elsewhere, run perf script again with \
         --show-task-events --show-mmap-events. If the file's name has another PID, pass the file with --jitdump or \
         --perf-map FILE@PID"
    ))
}

/// A message about samples for which perf printed no frames; `None` if there are none.
fn report_frameless(counts: &Counts) -> Option<String> {
    let Counts { samples, frameless, .. } = *counts;
    (frameless > 0).then(|| {
        format!(
            "perf printed no frames for {frameless} of {samples} samples. It probably dropped call chains with \
             invalid entries, which come from code without frame pointers, such as PHP's JIT code; jitgraft inject \
             --drop-bad-chain-entries removes such entries from the recording"
        )
    })
}

/// Adds lines to the summary that say how many frames were named, and warnings about frames that couldn't be.
fn summarize(counts: &Counts, outcome: &mut Outcome) {
    let Counts { named, ambiguous, unresolved, relative, process_unknown, native, native_left, .. } = *counts;
    let jit = named + unresolved;
    if native + native_left > 0 {
        outcome.summary.push(format!("named {native} of {} native frames", native + native_left));
    }
    if jit == 0 && native == 0 {
        outcome.summary.push("nothing to do: no unnamed JIT frames".to_owned());
        return;
    }
    if jit > 0 {
        let percent = named as f64 * 100.0 / jit as f64;
        outcome.summary.push(format!("named {named} of {jit} frames of JIT code ({percent:.1}%)"));
    }
    if ambiguous > 0 {
        outcome.warnings.push(Warning::new(format!(
            "{ambiguous} of the {named} named frames are at addresses that held several functions over time. The text \
             has no times, so each frame got the name of the last function; run perf script again with -F +time"
        )));
    }
    if relative > 0 {
        outcome.warnings.push(Warning::new(format!(
            "frames stay unnamed, because their addresses are relative to a file and the text has no mappings ({}); \
             run perf script again with --show-mmap-events",
            counted(relative, "frame")
        )));
    }
    if process_unknown > 0 {
        outcome.warnings.push(Warning::new(format!(
            "frames stay unnamed, because the text does not state their process ({}); run perf script again with \
             -F +pid,tid",
            counted(process_unknown, "frame")
        )));
    }
}
