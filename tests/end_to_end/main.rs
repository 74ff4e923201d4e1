//! Runs jitgraft as its users do, and reads what it writes with code that shares nothing with it.
//!
//! A file for each job or kind of input. `support` has what they share: writers of recordings, running programs, limits,
//! a browser. One program, because each test program links the whole crate.

#[path = "../support/mod.rs"]
mod support;

mod annotate;
mod annotate_machines;
mod bpf;
mod callgrind;
mod cli;
mod code_times;
mod collapsers;
mod convert_callchain;
mod cut_chains;
mod distance;
mod doctor;
mod documents;
mod door;
mod first_picture;
mod flamegraph;
mod flamegraph_page;
mod functions_apart;
mod gdb_jit;
mod generated_samples;
mod golden;
mod growth;
mod histories;
mod hostile_directory;
mod hostile_names;
mod hostile_tables;
mod hotspot_logs;
mod inject;
mod inject_profiles;
mod interrupted;
mod licences;
mod luajit_dump;
mod machines;
mod measureme;
mod memory_bounds;
mod merge;
mod mistakes;
mod native_names;
mod otlp;
mod output_names;
mod outputs;
mod perf_frames;
mod perf_report;
mod pypy_log;
mod qemu_guest;
mod read_back;
mod ready_to_run;
mod record;
mod recording;
mod report;
mod runtimes;
mod scarce;
mod script_filter;
mod source_maps;
mod sql;
mod tables;
mod terminal;
mod tiers;
mod trace_event;
mod trust;
mod truth;
mod unfolded_java;
mod unnamed_code;
mod usage;
mod v8_log;
mod view;
mod view_parts;
mod wasm_names;
mod whole_names;
