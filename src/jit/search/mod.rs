//! Finds the files that name a recording's JIT code: jitdumps, perf maps, runtimes' logs and core dumps.
//!
//! The search has [`ROUNDS`]. Each round plans, from what the earlier rounds have found, which sources may exist
//! ([`Step`]); one loop carries the plan out ([`Search::carry_out`]) and keeps account of everything that isn't used.
//!
//! | round | finds | in |
//! |---|---|---|
//! | `marked_dumps` | jitdumps whose marker a process mapped | see below |
//! | `given::files` | the files that the user named | `--jitdump`, `--perf-map`, `--jit-log` |
//! | `files_named_by_pid` | jitdumps and perf maps of processes with JIT memory | see below |
//! | `unexpected_files` | jitdumps and perf maps of other processes | `--jitdump` and `--perf-map`, the input's directory, `/tmp` |
//! | `maps_of_parents` | perf maps of a running ancestor that shares its JIT memory | as perf maps |
//! | `maps_of_shared_memory` | perf maps of another process with the same JIT memory | – |
//! | `logs_named_by_pid` | runtimes' logs | `--jit-log`, the input's directory, `.`, `/tmp` |
//! | `cores::core_dumps` | core dumps | `--jit-log`, the input's directory, `.`, `/tmp`, systemd's directory |
//! | `registered_objects` | code registered with GDB's JIT interface | the memory of running processes |
//! | `orphans::matched_files` | files with other process IDs, by their contents | all files and directories that the user named, the input's directory, `/tmp` |
//! | `given::placed_objects` | ELF objects | `--elf` |
//!
//! Where a file that is named after its process is looked for, in order of precedence ([`Scene::possible_paths`]):
//!
//! | | jitdump | perf map |
//! |---|---|---|
//! | what the user named | `--jitdump` | `--perf-map` |
//! | the root directory of a process that still runs in a container | the marker's path, or `/tmp` | `/tmp` |
//! | the recorded path | the path of the marker's mmap | – |
//! | the input's directory | the marker's file name, or `jit-PID.dump` | `perf-PID.map` |
//! | usual places | `/tmp`, the current directory, `$JITDUMPDIR`, `~/.debug/jit` and `/tmp/.debug/jit` | `/tmp` |
//!
//! The table in [`crate::runtimes`] says where each runtime writes its files; the usual places cover all of them. To
//! search another place, add it to `possible_paths`; to search in another way, add a round.
//!
//! | question | answered by |
//! |---|---|
//! | May the file be opened? | [`Scene::open`]: type, owner and links, before anything is read |
//! | Which process does it belong to? | its name or marker (`process_ids`), its contents (`given`, `cores`, `orphans`) |
//! | Is it of this run? | [`stale`], and `evidence` for orphans |
//! | What became of it? | `Found::failed` and warnings, written by [`Search`] alone |
//!
//! A forked child inherits the mapping of its parent's marker. The jitdump is then loaded only once, for the process
//! that wrote it.

mod cores;
mod given;
mod given_files;
mod logs;
mod markers;
mod orphans;
mod possible_paths;
mod process_ids;
mod progress;
mod rounds;
mod scene;
mod stale;
mod steps;

pub use markers::inner_pid;
pub(crate) use orphans::goes_with_recordings;

use super::found::Found;
use super::options::SourceOptions;
use super::site::Site;
use crate::error::Warnings;
use crate::model::process::Processes;
use progress::Search;
use scene::Scene;
use std::collections::BTreeSet;
use std::path::Path;
use steps::Step;

/// The rounds of the search, in order of precedence.
const ROUNDS: &[for<'a> fn(&Search<'a>) -> Vec<Step<'a>>] = &[
    rounds::marked_dumps,
    given::files,
    rounds::files_named_by_pid,
    rounds::unexpected_files,
    rounds::maps_of_parents,
    rounds::maps_of_shared_memory,
    rounds::logs_named_by_pid,
    cores::core_dumps,
    rounds::registered_objects,
    orphans::matched_files,
    // Run `maps_of_shared_memory` again, because the round before may have found perf maps by their contents. These
    // maps, too, may name code of other processes that share the JIT memory.
    rounds::maps_of_shared_memory,
    given::placed_objects,
];

/// Finds and opens the sources for a recording. `input_dir` is the input's directory.
pub fn find(
    processes: &Processes,
    options: &SourceOptions,
    input_dir: Option<&Path>,
    warnings: &mut Warnings,
) -> Found {
    find_at(processes, options, &Site { input_dir, ..Site::default() }, warnings)
}

/// Finds all files that name the JIT code of the recorded processes. `site` is what is known about the input: its
/// directory, its samples, and whether its processes still run here.
pub fn find_at(processes: &Processes, options: &SourceOptions, site: &Site<'_>, warnings: &mut Warnings) -> Found {
    let mut search = Search {
        scene: Scene::new(processes, options, site),
        files: Vec::new(),
        failed: Vec::new(),
        kinds: BTreeSet::new(),
        used_paths: BTreeSet::new(),
        unassigned: Vec::new(),
        missing: Vec::new(),
        reported: BTreeSet::new(),
        warnings,
    };
    // The rounds are in order of precedence: each sees what the ones before it have found.
    for plan in ROUNDS {
        for step in plan(&search) {
            search.carry_out(step);
        }
    }
    search.report_missing_dumps();
    search.report_reused_pids();
    search.store_first_times_in_logs();
    let Search { scene: Scene { live, .. }, files, failed, .. } = search;
    Found {
        files,
        failed,
        live,
        options: options.clone(),
        input_dir: site.input_dir.map(Path::to_owned),
        ..Found::none()
    }
}
