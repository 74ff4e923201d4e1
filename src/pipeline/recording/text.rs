//! Writes symbolized samples as perf script's text, sorted by time.
//!
//! The lines for each location are formatted once. A sample's text is its header and copies of the lines in its call
//! chain.

use super::Loaded;
use super::named::FrameView;
use super::samples::{KeptRegisters, OtherFields, SampleRow, Samples, Taken};
use crate::error::Result;
use crate::model::chains::PlaceId;
use crate::pipeline::job::Job;
use crate::records::perf_data::{Event, EventAttr};
use crate::records::perf_script::branches::{BranchLine, branch};
use crate::records::perf_script::registers::{RegisterLine, registers};
use crate::records::perf_script::write;
use crate::records::perf_script::write::{Fields, Header, Line};
use linux_perf_event_reader::constants as abi;
use std::io::Write;

/// Options for the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Which fields to print.
    pub fields: Fields,
    /// Print only the innermost frame, on the sample's own line.
    pub no_call_graph: bool,
}

/// Samples per task: enough to keep a thread busy for a while, and few enough that little text waits to be written.
const ROWS_A_JOB: usize = 512;

/// Writes all samples.
pub(crate) fn write_text(loaded: &Loaded, options: TextOptions, job: &Job, out: &mut dyn Write) -> Result<()> {
    let Samples { rows, beside, .. } = &loaded.samples;
    let mut rows: Vec<_> = rows.iter().enumerate().map(|(at, row)| (row, beside.get(at))).collect();
    rows.sort_by_key(|(row, _)| row.time);
    let writing = TextWriter::new(loaded, options);
    let rows = rows.as_slice();
    let text = |rows: &[(&SampleRow, Option<&OtherFields>)]| {
        let mut text = Vec::new();
        rows.iter().for_each(|(row, beside)| writing.sample(row, *beside, &mut text));
        text
    };
    job.pool.stream(rows.chunks(ROWS_A_JOB), text, |text| Ok(out.write_all(&text)?))
}

struct TextWriter<'a> {
    loaded: &'a Loaded,
    options: TextOptions,
    /// The lines of all locations, and where those of each location end.
    lines: Vec<u8>,
    ends: Vec<usize>,
    event_width: usize,
    /// The fields to print for tracepoints.
    tracepoint_fields: Fields,
}

impl<'a> TextWriter<'a> {
    fn new(loaded: &'a Loaded, options: TextOptions) -> Self {
        let mut lines = Vec::new();
        let places = 0..loaded.samples.chains.places().len() as u32;
        let ends = places.map(|place| {
            loaded.named.each(PlaceId(place), |shown| {
                // perf has no such mark, and programs that read its text would take it for a frame.
                if shown.truncated {
                    return;
                }
                write::frame(&mut lines, options.fields, !options.no_call_graph, &line(shown));
            });
            lines.len()
        });
        let ends = ends.collect();
        let event_width = loaded.recording.events.iter().map(|event| event.name.len()).max().unwrap_or(0);
        let mut tracepoints = loaded.recording.events.iter().filter(|event| event.attr.is_tracepoint());
        let have_chains = !options.no_call_graph && tracepoints.any(Event::has_call_chains);
        let tracepoint_fields = options.fields.of_tracepoints(have_chains);
        Self { loaded, options, lines, ends, event_width, tracepoint_fields }
    }

    fn sample(&self, row: &SampleRow, beside: Option<&OtherFields>, out: &mut Vec<u8>) {
        let Loaded { recording, samples, .. } = self.loaded;
        let event = &recording.events[row.event as usize];
        let track = &samples.tracks.items()[row.track as usize];
        let is_tracepoint = event.attr.is_tracepoint();
        let fields = if is_tracepoint { self.tracepoint_fields } else { self.options.fields };
        let chain = !self.options.no_call_graph && event.has_call_chains();
        let mut trace = Vec::new();
        if let Some(raw) = beside.and_then(|beside| beside.trace.as_deref()).filter(|_| fields.trace) {
            self.loaded.tracepoints.print(event.attr.config, raw, &mut trace);
        }
        let mut addr_symbol = Vec::new();
        if let Some(place) = beside.and_then(|beside| beside.addr_place).filter(|_| fields.addr) {
            self.function(place, |shown| {
                let dso = self.loaded.named.memory_name(place).or(shown.module);
                let mut line = Line { dso, ..line(shown) };
                if let Some(variable) = self.loaded.variables.get(&place).filter(|_| line.symbol.is_none()) {
                    (line.symbol, line.offset) = (Some(&variable.name[..]), variable.offset);
                }
                write::symbol(&mut addr_symbol, fields, &line);
            });
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
            addr: beside.and_then(|beside| beside.addr).map(|addr| addr.0),
            chain,
            addr_symbol: &addr_symbol,
            // perf only looks at the event's own fields.
            pads_comm: !event.attr.samples(abi::PERF_SAMPLE_CALLCHAIN),
        };
        write::header(out, fields, &header);
        if !fields.ip {
            // No frames.
        } else if chain {
            samples.chains.up(row.chain).for_each(|place| out.extend_from_slice(self.lines_of(place)));
        } else if let Some(place) = samples.chains.up(row.chain).next() {
            // perf shows only the function, without calls inlined in it.
            self.function(place, |shown| {
                if !shown.truncated {
                    write::frame(out, fields, false, &line(shown));
                }
            });
        }
        self.registers(beside.filter(|_| fields.iregs).and_then(|beside| beside.interrupted.as_ref()), out);
        self.registers(beside.filter(|_| fields.uregs).and_then(|beside| beside.user.as_ref()), out);
        let (start, end) = row.branches;
        for taken in &samples.branches[start as usize..end as usize] {
            self.branch(taken, out);
        }
        write::end(out);
    }

    fn registers(&self, kept: Option<&KeptRegisters>, out: &mut Vec<u8>) {
        if let Some(KeptRegisters { abi, mask, values }) = kept {
            let line = RegisterLine { machine: self.loaded.machine, abi: *abi, mask: *mask, values };
            registers(out, &line);
        }
    }

    fn branch(&self, taken: &Taken, out: &mut Vec<u8>) {
        let fields = self.options.fields;
        self.function(taken.from, |from| {
            self.function(taken.to, |to| {
                let line = BranchLine { from: line(from), to: line(to), flags: taken.flags };
                branch(out, fields, !fields.brstack, &line);
            });
        });
    }

    /// The function at a location, without calls inlined in it.
    fn function(&self, place: PlaceId, mut with: impl FnMut(&FrameView<'_>)) {
        self.loaded.named.each(place, |shown| {
            if !shown.inlined {
                with(shown);
            }
        });
    }

    fn lines_of(&self, place: PlaceId) -> &[u8] {
        let at = place.0 as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.lines[start..self.ends[at]]
    }
}

/// The period that perf prints: that of the event if its samples have none.
fn printed_period(attr: &EventAttr, period: u64) -> Option<u64> {
    let has_own = attr.samples(abi::PERF_SAMPLE_PERIOD) || !attr.is_frequency();
    Some(if has_own { period } else { attr.period_or_frequency })
}

fn line<'a>(shown: &FrameView<'a>) -> Line<'a> {
    Line {
        addr: shown.ip,
        symbol: shown.name,
        offset: shown.offset,
        dso: shown.module,
        inlined: shown.inlined,
        source: shown.file.map(|file| (file, shown.line)),
    }
}
