//! A thread with its samples.

use super::columns::{Column, Object};
use super::markers::MarkerTable;
use super::tables::{Shared, Tables, ThreadNumbers, ThreadTables};
use super::writing::{Counted, Writing, millis};
use crate::analysis::thread_rows::ThreadRows;
use crate::model::process::Moment;
use crate::model::stacks::{Row, Unit, Weight};
use std::io::{self, Write};

/// A thread with its samples. Long columns are already serialized.
pub(super) struct Thread<'p> {
    process_name: String,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    rows: &'p ThreadRows<'p>,
    samples: SampleColumns,
    markers: MarkerTable,
    tables: ThreadTables,
}

#[derive(Default)]
struct SampleColumns {
    length: usize,
    stack: Column,
    time: Column,
    weight: Column,
    weight_type: &'static str,
    /// The CPU time or cycles since the thread's previous sample; `None` if the event counts neither.
    cpu_delta: Option<Column>,
}

impl<'p> Thread<'p> {
    /// Makes the thread of the output: its samples, and markers for its other events. `known` is cleared first.
    pub(super) fn new(
        thread: &'p ThreadRows<'p>,
        moments: &[&Moment],
        shared: &mut Shared<'_>,
        known: &mut ThreadNumbers,
    ) -> Self {
        let writing = shared.writing;
        let mut tables = Tables::new(known);
        let samples = SampleColumns::new(&thread.rows, &mut tables, shared);
        let markers = MarkerTable::new(writing, moments, &mut tables.own.strings);
        let life = thread.pid.and_then(|pid| writing.profile.about.processes.get(&pid));
        let started = life.and_then(|life| life.started).map_or(0.0, |time| writing.since_start(time));
        let ended = life.and_then(|life| life.ended).map(|time| writing.since_start(time));
        let first_sample = thread.rows.first().map_or(0, |row| writing.time(row));
        Self {
            process_name: process_name(writing, thread),
            process_startup_time: started,
            process_shutdown_time: ended,
            // The file must state when the thread started, which isn't known. The start of its process stands in for it
            // (or 0 if that was before the first sample of all), unless the thread has samples before that.
            register_time: millis(first_sample).min(started.max(0.0)),
            rows: thread,
            samples,
            markers,
            tables: tables.own,
        }
    }

    /// Writes the thread as JSON.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        const NONE: &[(); 0] = &[];
        let ThreadRows { pid, tid, comm, .. } = self.rows;
        Object::write(out, |thread| {
            thread.field("processType", "default")?;
            thread.field("processName", &self.process_name)?;
            thread.field("processStartupTime", &self.process_startup_time)?;
            thread.field("processShutdownTime", &self.process_shutdown_time)?;
            thread.field("registerTime", &self.register_time)?;
            thread.field("unregisterTime", &None::<f64>)?;
            thread.field("pausedRanges", NONE)?;
            thread.field("name", &String::from_utf8_lossy(comm))?;
            thread.field("isMainThread", &self.rows.is_main())?;
            thread.field("pid", &pid.map_or_else(|| "0".to_owned(), |pid| pid.to_string()))?;
            thread.field("tid", &tid.map_or(0, |tid| tid.0))?;
            thread.object("samples", |samples| self.samples.write(samples))?;
            thread.field("markers", &self.markers)?;
            thread.object("stackTable", |table| self.tables.stacks.write(table))?;
            thread.object("frameTable", |table| self.tables.frames.write(table))?;
            thread.object("funcTable", |table| self.tables.functions.write(table))?;
            thread.object("resourceTable", |table| self.tables.resources.write(table))?;
            // The table of native symbols is left empty, because functions already have names.
            thread.object("nativeSymbols", |table| {
                table.field("length", &0)?;
                ["address", "functionSize", "libIndex", "name"].iter().try_for_each(|name| table.field(name, NONE))
            })?;
            thread.column("stringArray", &self.tables.strings.list)
        })
    }
}

/// The process name: the name of the main thread if that has samples, otherwise this thread's name.
fn process_name(writing: &Writing<'_>, thread: &ThreadRows<'_>) -> String {
    let comm = match writing.main_thread_name(thread.pid) {
        Some(name) if !thread.is_main() => name,
        _ => thread.comm,
    };
    String::from_utf8_lossy(comm).into_owned()
}

impl SampleColumns {
    /// Builds the columns of a thread's samples. Adds the stacks of the samples to `tables`.
    fn new(rows: &[&Row], tables: &mut Tables<'_>, shared: &mut Shared<'_>) -> Self {
        let writing = shared.writing;
        let counts_time = writing.counted == Counted::Time;
        // The numbers are the usual lengths of the cells in bytes.
        let mut stack = Column::with_capacity(rows.len(), 7);
        let mut time = Column::with_capacity(rows.len(), 12);
        let mut weight = Column::with_capacity(rows.len(), 8);
        // The viewer draws how busy a thread was, which CPU time and cycles tell. With other events, there is no such
        // column.
        let mut cpu_delta = None;
        if writing.counted != Counted::Other && !rows.is_empty() {
            cpu_delta = Some(Column::with_capacity(rows.len(), 7));
        }
        for row in rows {
            stack.number_or_null(row.stack.map(|stack| tables.stack(stack, shared)));
            time.millis(writing.time(row));
            let counted = writing.weight.value(row);
            if counts_time {
                weight.millis(counted)
            } else {
                weight.count(counted)
            }
            if let Some(cpu_delta) = &mut cpu_delta {
                cpu_delta.number(counted);
            }
        }
        let weight_type = match &writing.series.unit {
            _ if counts_time => "tracing-ms",
            Unit::Named(unit) if unit == "bytes" && writing.weight == Weight::Period => "bytes",
            // The viewer knows no other units, so other weights are shown as numbers of samples.
            _ => "samples",
        };
        Self { length: rows.len(), stack, time, weight, weight_type, cpu_delta }
    }

    /// Writes the columns of `samples`.
    fn write(&self, samples: &mut Object<'_>) -> io::Result<()> {
        samples.field("length", &self.length)?;
        samples.column("stack", &self.stack)?;
        samples.column("time", &self.time)?;
        samples.column("weight", &self.weight)?;
        samples.field("weightType", self.weight_type)?;
        match &self.cpu_delta {
            Some(deltas) => samples.column("threadCPUDelta", deltas),
            None => Ok(()),
        }
    }
}
