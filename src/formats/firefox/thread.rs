//! A thread with its samples.

use super::categories::Categories;
use super::libraries::Libraries;
use super::markers::MarkerTable;
use super::tables::{FrameTable, FuncTable, ResourceTable, Shared, StackTable, Tables};
use super::writing::{Counted, Writing, millis};
use crate::model::Nanos;
use crate::model::moment::Moment;
use crate::model::stacks::Row;
use crate::model::thread_rows::ThreadRows;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread {
    process_type: &'static str,
    process_name: String,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [(); 0],
    name: String,
    is_main_thread: bool,
    pid: String,
    tid: i64,
    samples: Samples,
    markers: MarkerTable,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    resource_table: ResourceTable,
    native_symbols: NativeSymbols,
    string_array: Vec<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    length: usize,
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Vec<f64>,
    weight_type: &'static str,
    /// What the thread ran since its sample before, where the event tells.
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Vec::is_empty")]
    cpu_delta: Vec<u64>,
}

/// None are told: functions have names already.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeSymbols {
    length: usize,
    address: [(); 0],
    function_size: [(); 0],
    lib_index: [(); 0],
    name: [(); 0],
}

impl Thread {
    pub(super) fn new(
        writing: &Writing<'_>,
        thread: &ThreadRows<'_>,
        moments: &[&Moment],
        libraries: &mut Libraries,
        categories: &mut Categories,
    ) -> Self {
        let mut tables = Tables::default();
        let mut shared = Shared { profile: writing.profile, libraries, categories };
        let samples = Samples::new(writing, &thread.rows, &mut tables, &mut shared);
        let markers = MarkerTable::new(writing, moments, &mut tables.strings, shared.categories);
        let life = thread.pid.and_then(|pid| writing.profile.about.processes.get(&pid));
        let shown = |time: Nanos| writing.since_start(time);
        let started = life.and_then(|life| life.started).map_or(0.0, shown);
        let name = String::from_utf8_lossy(thread.comm).into_owned();
        Self {
            process_type: "default",
            process_name: process_name(writing, thread),
            process_startup_time: started,
            process_shutdown_time: life.and_then(|life| life.ended).map(shown),
            register_time: thread.rows.first().map_or(0.0, |row| writing.time(row)).min(started.max(0.0)),
            unregister_time: None,
            paused_ranges: [],
            name,
            is_main_thread: thread.is_main(),
            pid: thread.pid.map_or_else(|| "0".to_owned(), |pid| pid.to_string()),
            tid: thread.tid.map_or(0, |tid| tid.0.into()),
            samples,
            markers,
            stack_table: tables.stacks,
            frame_table: tables.frames,
            func_table: tables.functions,
            resource_table: tables.resources,
            native_symbols: NativeSymbols::default(),
            string_array: tables.strings.into_list(),
        }
    }
}

/// That of the main thread, if it has samples.
fn process_name(writing: &Writing<'_>, thread: &ThreadRows<'_>) -> String {
    let comm = writing.main(thread.pid).unwrap_or(thread.comm);
    String::from_utf8_lossy(if thread.is_main() { thread.comm } else { comm }).into_owned()
}

impl Samples {
    fn new(writing: &Writing<'_>, rows: &[&Row], tables: &mut Tables, shared: &mut Shared<'_>) -> Self {
        let weight_type = if writing.counted == Counted::Time { "tracing-ms" } else { "samples" };
        let mut samples = Self { weight_type, ..Self::default() };
        for row in rows {
            let weight = writing.weight.of(row);
            samples.stack.push(row.stack.map(|stack| tables.stack(stack, shared)));
            samples.time.push(writing.time(row));
            samples.weight.push(if writing.counted == Counted::Time { millis(weight) } else { weight as f64 });
            if writing.counted != Counted::Other {
                samples.cpu_delta.push(weight);
            }
        }
        samples.length = rows.len();
        samples
    }
}
