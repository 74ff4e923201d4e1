//! Writes symbolized samples as text like perf script's, sorted by time.
//!
//! For each code location, its lines are formatted once. The text of a sample is its header line and copies of the
//! lines for the locations in its call chain.

use super::Loaded;
use super::named::FrameView;
use super::samples::{Access, KeptRegisters, OtherFields, SampleRow, Samples, TakenBranch};
use crate::error::Result;
use crate::formats::perf_data::{Event, EventAttr};
use crate::formats::perf_script::branches::{BranchEnds, BranchLine, write_branch};
use crate::formats::perf_script::measured::{Measured, data_src_text, write_after_frames};
use crate::formats::perf_script::registers::{RegisterLine, write_registers};
use crate::formats::perf_script::write;
use crate::formats::perf_script::write::{Fields, FramePosition, Header, Line};
use crate::model::chains::PlaceId;
use crate::model::stacks::FrameKind;
use crate::pipeline::job::Job;
use linux_perf_event_reader::constants as abi;
use std::io::Write;

/// Options for text like perf script's.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// The fields to print for each sample.
    pub fields: Fields,
    /// Omit the callers, and print the innermost frame on the same line as the sample.
    pub no_call_graph: bool,
}

/// The number of samples that a worker formats at once: enough to keep it busy for a while, but little enough that the
/// finished texts of all workers, which wait to be written in order, don't take much memory.
const ROWS_A_JOB: usize = 512;

/// Lists those of the fields to print that no event of the recording has. Each comes with the options of `perf record`
/// that record it.
pub(crate) fn unrecorded_fields(loaded: &Loaded, fields: Fields) -> Vec<(&'static str, &'static str)> {
    const WEIGHTS: u64 = abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT;
    let optional = [
        (fields.addr, abi::PERF_SAMPLE_ADDR, "addr", "-d"),
        (fields.iregs, abi::PERF_SAMPLE_REGS_INTR, "iregs", "--intr-regs"),
        (fields.uregs, abi::PERF_SAMPLE_REGS_USER, "uregs", "--user-regs"),
        (fields.brstack, abi::PERF_SAMPLE_BRANCH_STACK, "brstack", "-b"),
        (fields.brstacksym, abi::PERF_SAMPLE_BRANCH_STACK, "brstacksym", "-b"),
        (fields.data_src, abi::PERF_SAMPLE_DATA_SRC, "data_src", "-d"),
        (fields.weight, WEIGHTS, "weight", "-W"),
        (fields.ins_lat, abi::PERF_SAMPLE_WEIGHT_STRUCT, "ins_lat", "-W"),
        (fields.retire_lat, abi::PERF_SAMPLE_WEIGHT_STRUCT, "retire_lat", "-W"),
        (fields.cgroup, abi::PERF_SAMPLE_CGROUP, "cgroup", "--all-cgroups"),
        (fields.phys_addr, abi::PERF_SAMPLE_PHYS_ADDR, "phys_addr", "-d --phys-data"),
        (fields.data_page_size, abi::PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size", "--data-page-size"),
        (fields.code_page_size, abi::PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size", "--code-page-size"),
    ];
    let mut missing = Vec::new();
    for (is_wanted, bits, name, options) in optional {
        if is_wanted && !loaded.events.iter().any(|event| event.attr.has_field(bits)) {
            missing.push((name, options));
        }
    }
    missing
}

/// Writes all samples of a recording as text, in the order of their times. Text for groups of samples is made in
/// parallel.
pub(crate) fn write_text(loaded: &Loaded, options: TextOptions, job: &Job, out: &mut dyn Write) -> Result<()> {
    let Samples { rows, other_fields, .. } = &loaded.samples;
    let mut rows: Vec<_> = rows.iter().enumerate().map(|(index, row)| (row, other_fields.get(index))).collect();
    // perf prints samples in the order of their times. Those with equal times stay in the order of the file.
    rows.sort_by_key(|(row, _)| row.time);
    let writer = TextWriter::new(loaded, options);
    let rows = writer.with_widths(&rows);
    let write_rows = |rows: &[PrintedRow<'_>]| {
        let mut text = Vec::new();
        for row in rows {
            writer.write_sample(row, &mut text);
        }
        text
    };
    job.pool.stream(rows.chunks(ROWS_A_JOB), write_rows, |text| Ok(out.write_all(&text)?))
}

/// A sample to print.
struct PrintedRow<'a> {
    row: &'a SampleRow,
    other_fields: Option<&'a OtherFields>,
    /// The maximum width of the memory access descriptions (`data_src`) printed up to this row. perf aligns the column
    /// to it.
    data_src_width: usize,
}

/// The lines for all code locations, one after the other, and where those of each location end.
struct PlaceLines {
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl PlaceLines {
    /// Formats the lines of every code location, because most locations occur in many samples. A location with inlined
    /// calls has several lines.
    fn new(loaded: &Loaded, options: TextOptions, chain: ChainKind) -> Self {
        let position = if options.no_call_graph { FramePosition::HeaderLine } else { FramePosition::OwnLine };
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        for place in 0..loaded.samples.chains.places().len() as u32 {
            for frame in loaded.named.frames(PlaceId(place)) {
                // A truncated stack ends in a frame that only marks that outer frames are missing. perf prints no such
                // marks, and programs that read its text would take them for functions.
                if !frame.truncated {
                    let line = chain_line(&frame, chain);
                    write::write_frame(&mut lines, options.fields, position, &line);
                }
            }
            ends.push(lines.len());
        }
        Self { lines, ends }
    }

    fn get(&self, place: PlaceId) -> &[u8] {
        let index = place.0 as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.lines[start..self.ends[index]]
    }
}

/// How the call chain of an event was made. This decides which addresses perf prints. If the kernel recorded the chain,
/// perf prints return addresses as they are. If perf unwound user frames itself, it prints the byte before each return
/// address, because it looks up the function there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainKind {
    Recorded,
    Unwound,
}

impl ChainKind {
    fn from_attr(attr: &EventAttr) -> Self {
        if attr.has_field(abi::PERF_SAMPLE_STACK_USER) { Self::Unwound } else { Self::Recorded }
    }
}

struct TextWriter<'a> {
    loaded: &'a Loaded,
    options: TextOptions,
    /// The formatted lines of all code locations for [`ChainKind::Recorded`]. `None` if no event has such call chains.
    recorded: Option<PlaceLines>,
    /// Like `recorded`, for [`ChainKind::Unwound`].
    unwound: Option<PlaceLines>,
    /// The length of the longest name of an event, to which perf pads all of them.
    event_width: usize,
    /// The fields to print for tracepoints.
    tracepoint_fields: Fields,
}

impl<'a> TextWriter<'a> {
    /// Prepares what all samples share: the lines of code locations for the kinds of call chains that the events have,
    /// and the width of the column with event names.
    fn new(loaded: &'a Loaded, options: TextOptions) -> Self {
        let events = &loaded.events;
        let lines_for = |kind: ChainKind| {
            let is_needed = events.iter().any(|event| ChainKind::from_attr(&event.attr) == kind);
            is_needed.then(|| PlaceLines::new(loaded, options, kind))
        };
        let mut tracepoints = events.iter().filter(|event| event.attr.is_tracepoint());
        let have_chains = !options.no_call_graph && tracepoints.any(Event::has_call_chains);
        Self {
            loaded,
            options,
            recorded: lines_for(ChainKind::Recorded),
            unwound: lines_for(ChainKind::Unwound),
            event_width: events.iter().map(|event| event.name.len()).max().unwrap_or(0),
            tracepoint_fields: options.fields.tracepoint_fields(have_chains),
        }
    }

    /// The fields to print for an event. As in perf, tracepoints and raw events have other fields than usual events.
    fn fields_of(&self, attr: &EventAttr) -> Fields {
        if attr.is_tracepoint() {
            self.tracepoint_fields
        } else if attr.is_raw_event() {
            self.options.fields.raw_event_fields()
        } else {
            self.options.fields
        }
    }

    /// Adds to each row the width that perf's column of memory accesses has at that row: perf widens the column
    /// whenever it prints a longer description.
    fn with_widths<'r>(&self, rows: &[(&'r SampleRow, Option<&'r OtherFields>)]) -> Vec<PrintedRow<'r>> {
        let events = &self.loaded.events;
        let mut data_src_width = 0;
        let mut printed = Vec::with_capacity(rows.len());
        for &(row, other_fields) in rows {
            if let Some(data_src) = other_fields.and_then(|other_fields| other_fields.access.data_src)
                && self.fields_of(&events[row.event as usize].attr).data_src
            {
                data_src_width = data_src_width.max(data_src_text(data_src).len());
            }
            printed.push(PrintedRow { row, other_fields, data_src_width });
        }
        printed
    }

    /// Writes a sample as `perf script` prints it: the header with the fields that the options request, the frames,
    /// registers, branches, and an empty line.
    fn write_sample(&self, printed: &PrintedRow<'_>, out: &mut Vec<u8>) {
        let Loaded { events, samples, .. } = self.loaded;
        let &PrintedRow { row, other_fields, .. } = printed;
        let event = &events[row.event as usize];
        let track = &samples.tracks.items()[row.track as usize];
        let fields = self.fields_of(&event.attr);
        let prints_chain = !self.options.no_call_graph && event.has_call_chains();
        let mut trace = Vec::new();
        if let Some(raw) = other_fields.and_then(|other_fields| other_fields.trace.as_deref())
            && event.attr.is_tracepoint()
            && fields.trace
        {
            self.loaded.tracepoints.print(event.attr.config, raw, &mut trace);
        }
        let mut addr_symbol = Vec::new();
        if let Some(place) = other_fields.and_then(|other_fields| other_fields.addr_place)
            && fields.addr
        {
            self.write_data_symbol(place, fields, &mut addr_symbol);
        }
        let header = Header {
            comm: &track.comm,
            pid: track.pid,
            tid: track.tid,
            cpu: row.cpu,
            time: row.time,
            period: printed_period(&event.attr, row.period),
            event: &event.name,
            event_width: self.event_width,
            trace: &trace,
            addr: other_fields.and_then(|other_fields| other_fields.addr).map(|addr| addr.0),
            chain: prints_chain,
            addr_symbol: &addr_symbol,
            measured: self.measured(printed, event),
            mode: other_fields.map(|other_fields| other_fields.mode).unwrap_or_default(),
            // As in perf, the thread's name is padded if this event has no call chains, even if other events have some.
            pads_comm: !event.attr.has_field(abi::PERF_SAMPLE_CALLCHAIN),
        };
        write::write_header(out, fields, &header);
        if !fields.ip {
            // Like perf, print no frames if the field for addresses wasn't requested.
        } else if prints_chain {
            let lines = match ChainKind::from_attr(&event.attr) {
                ChainKind::Recorded => &self.recorded,
                ChainKind::Unwound => &self.unwound,
            };
            let lines = lines.as_ref().expect("lines are formatted for each kind of chain that an event has");
            for place in samples.chains.places_up(row.chain) {
                out.extend_from_slice(lines.get(place));
            }
        } else if let Some(place) = samples.chains.places_up(row.chain).next() {
            // perf shows only the function itself, without calls inlined into it, but with the source line of the
            // innermost call, which is the first frame.
            let source = self.loaded.named.frames(place).next().and_then(|innermost| line(&innermost).source);
            for frame in self.loaded.named.frames(place) {
                if !frame.inlined && !frame.truncated {
                    write::write_frame(out, fields, FramePosition::HeaderLine, &Line { source, ..line(&frame) });
                }
            }
        }
        if let Some(other_fields) = other_fields {
            if fields.iregs
                && let Some(interrupted) = &other_fields.interrupted
            {
                self.write_registers(interrupted, out);
            }
            if fields.uregs
                && let Some(user) = &other_fields.user
            {
                self.write_registers(user, out);
            }
        }
        let (start, end) = row.branches;
        for taken in &samples.branches[start as usize..end as usize] {
            self.write_branch(taken, out);
        }
        write_after_frames(out, fields, &header.measured);
        write::write_end(out);
    }

    /// Writes the symbol of a data address: that of a function or, if there is none, of a variable.
    fn write_data_symbol(&self, place: PlaceId, fields: Fields, out: &mut Vec<u8>) {
        // If there is no function at the address, `functions` yields a frame without a name.
        for frame in self.functions(place) {
            // The module is the memory's own name (`[heap]`) if no file backs the memory. `frame.module` would then be
            // the perf map that names JIT code in this memory, but here the address is one of data.
            let dso = self.loaded.named.memory_name(place).or(frame.module);
            let mut line = Line { dso, ..line(&frame) };
            if line.symbol.is_none()
                && let Some(variable) = self.loaded.variables.get(&place)
            {
                line.symbol = Some(&variable.name);
                line.offset = variable.offset;
            }
            write::write_symbol(out, fields, &line);
        }
    }

    /// What perf prints of a sample besides the usual fields: the values that hardware measured (memory access, weight,
    /// page sizes), the cgroup, and the output of BPF programs. Some are printed in the header and others below the
    /// frames.
    fn measured<'r>(&'r self, printed: &PrintedRow<'r>, event: &Event) -> Measured<'r> {
        let attr = &event.attr;
        let Some(other_fields) = printed.other_fields else { return Measured::NONE };
        let Access { data_src, weight, phys_addr, data_page_size, code_page_size } = other_fields.access;
        // A weight in three parts has the weight itself in its lower 32 bits. The upper bits are the latencies of the
        // instruction and of its retirement.
        let parts = weight.filter(|_| attr.has_field(abi::PERF_SAMPLE_WEIGHT_STRUCT));
        let cgroups = &self.loaded.cgroups;
        Measured {
            data_src,
            data_src_width: printed.data_src_width,
            weight: parts.map(|parts| parts & u64::from(u32::MAX)).or(weight),
            ins_lat: parts.map(|parts| (parts >> 32) as u16),
            retire_lat: parts.map(|parts| (parts >> 48) as u16),
            cgroup: other_fields.cgroup.map(|cgroup| cgroups.get(&cgroup).map_or(&b"unknown"[..], |path| path)),
            // The raw data of `offcpu-time` samples has been read as their fields and call chain, so it isn't printed.
            bpf_output: other_fields.trace.as_deref().filter(|_| attr.is_bpf_output() && !event.is_off_cpu_raw()),
            phys_addr,
            data_page_size,
            code_page_size,
        }
    }

    fn write_registers(&self, kept: &KeptRegisters, out: &mut Vec<u8>) {
        let KeptRegisters { abi, mask, values } = kept;
        write_registers(out, &RegisterLine { machine: self.loaded.machine, abi: *abi, mask: *mask, values });
    }

    /// Writes a taken branch as from/to pairs: one pair for each combination of the functions at its ends, because
    /// either end may be in inlined calls.
    fn write_branch(&self, taken: &TakenBranch, out: &mut Vec<u8>) {
        let fields = self.options.fields;
        let ends = if fields.brstack { BranchEnds::Addresses } else { BranchEnds::Symbols };
        for from in self.functions(taken.from) {
            for to in self.functions(taken.to) {
                let line = BranchLine { from: line(&from), to: line(&to), flags: taken.flags };
                write_branch(out, fields, ends, &line);
            }
        }
    }

    /// The frame of the function whose machine code contains a code location; a frame without a name if no function is
    /// known there. Functions that the compiler inlined there are left out.
    fn functions(&self, place: PlaceId) -> impl Iterator<Item = FrameView<'_>> {
        self.loaded.named.frames(place).filter(|frame| !frame.inlined)
    }
}

/// The period that perf prints for a sample. If samples of this event come without a period, and the event has a fixed
/// frequency, perf prints the frequency.
fn printed_period(attr: &EventAttr, period: u64) -> Option<u64> {
    let has_period = attr.has_field(abi::PERF_SAMPLE_PERIOD) || !attr.is_frequency();
    Some(if has_period { period } else { attr.period_or_frequency })
}

/// The line to print for a frame of a call chain. If perf unwound the chain ([`ChainKind`]), it prints a return address
/// minus 1. So the address and offsets move back by `frame.back`, which is 1 for return addresses and 0 otherwise.
fn chain_line<'a>(frame: &FrameView<'a>, chain: ChainKind) -> Line<'a> {
    let line = line(frame);
    // Only user code is unwound; the kernel's frames are always recorded ones.
    if chain == ChainKind::Recorded || frame.kind == FrameKind::Kernel {
        return line;
    }
    Line {
        addr: line.addr.wrapping_sub(frame.back),
        offset: line.offset.saturating_sub(frame.back),
        file_offset: line.file_offset.map(|offset| offset.wrapping_sub(frame.back)),
        ..line
    }
}

/// A frame as the writer of perf script's text takes it.
fn line<'a>(frame: &FrameView<'a>) -> Line<'a> {
    Line {
        addr: frame.ip,
        symbol: frame.name,
        offset: frame.offset,
        dso: frame.module,
        inlined: frame.inlined,
        source: frame.file.map(|file| (file, frame.line)),
        // perf knows no file offsets for kernel code, only symbols.
        file_offset: frame.addr.filter(|_| frame.kind != FrameKind::Kernel),
    }
}
