//! Tests from files in a directory to names, through all of `jit`.

use super::super::{ClockUse, GivenFile, find};
use super::*;
use crate::model::process::{Clock, CpuMode, Mapping, Marker, Process};
use crate::model::{Nanos, Tid};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A little-endian jitdump of process `pid` with loads of 16 bytes, given as (time, pid, index, address, name).
fn dump(pid: u32, records: &[(u64, u32, u64, u64, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |value: &[u8]| bytes.extend_from_slice(value);
    for word in [0x4A69_5444u32, 1, 40, 62, 0, pid] {
        put(&word.to_le_bytes());
    }
    put(&records.first().map_or(0, |record| record.0).to_le_bytes());
    put(&0u64.to_le_bytes());
    for (time, pid, index, addr, name) in records {
        put(&0u32.to_le_bytes());
        put(&(56 + name.len() as u32 + 1 + 16).to_le_bytes());
        put(&time.to_le_bytes());
        put(&pid.to_le_bytes());
        put(&pid.to_le_bytes());
        for word in [0, *addr, 16, *index] {
            put(&word.to_le_bytes());
        }
        put(name.as_bytes());
        put(&[0; 17]);
    }
    bytes
}

fn processes(pids: &[i32]) -> Processes {
    let process = |_| Process { has_jit_memory: true, ..Process::default() };
    let by_pid = pids.iter().map(|&pid| (Pid(pid), process(pid))).collect();
    Processes { by_pid, clock: Clock { clockid: Some(1), ..Clock::default() }, ..Processes::default() }
}

fn marker(pid: i32, path: &Path, time: u64) -> Marker {
    Marker {
        pid: Pid(pid),
        tid: Tid(pid),
        path: path.to_owned(),
        time: Nanos(time),
        addr: Addr(0),
        file: None,
        offset: time,
    }
}

/// Loads the sources, and looks up each question (process, address, time). Returns the names, the warnings and the
/// accounts.
fn ask(
    processes: &Processes,
    options: &SourceOptions,
    input_dir: &Path,
    questions: &[(i32, u64, u64)],
) -> (Vec<Option<String>>, Vec<String>, Vec<Account>) {
    let pool = Pool::new(NonZeroUsize::new(2)).unwrap();
    let mut warnings = Warnings::new();
    let found = find(processes, options, Some(input_dir), &mut warnings);
    let loaded = found.load(processes, &pool, &mut warnings);
    let name = |&(pid, addr, time): &(i32, u64, u64)| {
        let hit = loaded.map.lookup(Pid(pid), Addr(addr), Some(Nanos(time)))?;
        Some(String::from_utf8_lossy(loaded.map.code(hit.code).name).into_owned())
    };
    let names = questions.iter().map(name).collect();
    (names, warnings.iter().map(ToString::to_string).collect(), loaded.accounts)
}

fn named(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn a_moved_recording_finds_its_dump_beside_it_and_the_map_fills_the_gaps() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("jit-917301.dump"), dump(917_301, &[(10, 917_301, 1, 0x1000, "dumped")])).unwrap();
    std::fs::write(dir.path().join("perf-917301.map"), "1000 10 stale\n2000 10 stub\nbad\n").unwrap();
    let mut processes = processes(&[917_301]);
    processes.markers.push(marker(917_301, Path::new("/gone/jit-917301.dump"), 5));
    let questions = [(917_301, 0x1008, 20), (917_301, 0x2008, 20), (917_301, 0x3000, 20)];
    let (names, said, accounts) = ask(&processes, &SourceOptions::default(), dir.path(), &questions);
    assert_eq!(names, [named("dumped"), named("stub"), None]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("1 line skipped: line 3"), "{said:?}");
    assert!(matches!(accounts[0].state, SourceState::Loaded { codes: 1, skipped: 0, clock: Some(ClockUse::Same), .. }));
}

#[test]
fn a_missing_and_a_broken_dump_do_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("jit-917302.dump"), b"garbage").unwrap();
    std::fs::write(dir.path().join("jit-917303.dump"), dump(917_303, &[(10, 917_303, 1, 0x1000, "good")])).unwrap();
    let mut processes = processes(&[917_301, 917_302, 917_303]);
    for pid in [917_301, 917_302, 917_303] {
        processes.markers.push(marker(pid, &PathBuf::from(format!("/gone/jit-{pid}.dump")), 5));
    }
    let (names, said, accounts) = ask(&processes, &SourceOptions::default(), dir.path(), &[(917_303, 0x1008, 20)]);
    assert_eq!(names, [named("good")]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("jit-917301.dump: process 917301 mapped this jitdump"), "{said:?}");
    assert!(said[1].contains("is not a jitdump"), "{said:?}");
    assert!(accounts.iter().any(|account| matches!(account.state, SourceState::Missing { .. })));
}

#[test]
fn a_file_from_the_user_for_a_process_that_was_not_recorded_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (elsewhere, input_dir) = (dir.path().join("elsewhere"), dir.path().join("input"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(&input_dir).unwrap();
    let (dumped, map) = (elsewhere.join("jit-917398.dump"), elsewhere.join("perf-917398.map"));
    std::fs::write(&dumped, dump(917_398, &[(10, 917_398, 1, 0x1000, "foreign")])).unwrap();
    std::fs::write(&map, "1000 10 foreign\n").unwrap();
    let given = |path: &Path, pid: Option<i32>| GivenFile { path: path.to_owned(), pid: pid.map(Pid) };
    // Several processes are recorded. If only one was, the file would be used for it.
    let recorded = Processes { is_recording: true, ..processes(&[917_301, 917_302]) };
    let text = Processes { is_recording: false, ..processes(&[917_301, 917_302]) };
    for (options, said_pid, loaded_pid) in [
        (SourceOptions { jitdump: vec![given(&dumped, None)], ..SourceOptions::default() }, 917_398, None),
        (SourceOptions { perf_map: vec![given(&map, None)], ..SourceOptions::default() }, 917_398, None),
        (SourceOptions { perf_map: vec![given(&map, Some(917_399))], ..SourceOptions::default() }, 917_399, None),
        (SourceOptions { perf_map: vec![given(&map, Some(917_302))], ..SourceOptions::default() }, 0, Some(917_302)),
    ] {
        let (names, said, accounts) =
            ask(&recorded, &options, &input_dir, &[(said_pid, 0x1008, 20), (917_302, 0x1008, 20)]);
        let loaded = accounts.iter().find(|account| matches!(account.state, SourceState::Loaded { .. }));
        assert_eq!(loaded.map(|account| account.pid.0), loaded_pid, "{said:?}");
        assert_eq!(names, [None, loaded_pid.and_then(|_| named("foreign"))]);
        let is_refused =
            said.iter().any(|said| said.contains(&format!("not used: the file is from process {said_pid}, which")));
        assert_eq!((is_refused, said.len()), (loaded_pid.is_none(), usize::from(loaded_pid.is_none())), "{said:?}");
        // Text doesn't contain every process, so there the file is used for the process that it states.
        let (_, _, accounts) = ask(&text, &options, &input_dir, &[]);
        assert!(accounts.iter().all(|account| matches!(account.state, SourceState::Loaded { .. })), "{accounts:?}");
    }
}

#[test]
fn processes_in_namespaces_are_matched_by_marker_namespace_or_option() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("jit-1.dump"), dump(1, &[(10, 1, 1, 0x1000, "inner")])).unwrap();
    std::fs::write(dir.path().join("perf-1.map"), "2000 10 stub\n").unwrap();
    let question = [(917_304, 0x1008, 20), (917_304, 0x2008, 20)];
    let both = vec![named("inner"), named("stub")];
    let mut by_marker = processes(&[917_304]);
    by_marker.markers.push(marker(917_304, &dir.path().join("jit-1.dump"), 5));
    assert_eq!(ask(&by_marker, &SourceOptions::default(), dir.path(), &question).0, both);
    let mut by_namespace = processes(&[917_304]);
    by_namespace.by_pid.get_mut(&Pid(917_304)).unwrap().inner_pid = Some(Pid(1));
    assert_eq!(ask(&by_namespace, &SourceOptions::default(), dir.path(), &question).0, both);
    let by_option = SourceOptions { map_pid: vec![(Pid(1), Pid(917_304))], ..SourceOptions::default() };
    assert_eq!(ask(&processes(&[917_304]), &by_option, dir.path(), &question).0, both);
    assert_eq!(ask(&processes(&[917_304]), &SourceOptions::default(), dir.path(), &question).0, [None, None]);
}

#[test]
fn a_forked_child_that_writes_on_is_known_by_its_own_number() {
    let dir = tempfile::tempdir().unwrap();
    let records = [(10, 917_305, 1, 0x1000, "parents"), (20, 917_306, 1, 0x2000, "childs")];
    std::fs::write(dir.path().join("jit-917305.dump"), dump(917_305, &records)).unwrap();
    let mut processes = processes(&[917_305, 917_306]);
    processes.by_pid.get_mut(&Pid(917_306)).unwrap().forked = Some((Pid(917_305), Nanos(15)));
    for pid in [917_306, 917_305] {
        processes.markers.push(marker(pid, &dir.path().join("jit-917305.dump"), 5));
    }
    let questions = [(917_306, 0x1000, 30), (917_306, 0x2000, 30), (917_305, 0x2000, 30), (917_305, 0x1000, 30)];
    let (names, said, _) = ask(&processes, &SourceOptions::default(), dir.path(), &questions);
    assert_eq!(names, [named("parents"), named("childs"), None, named("parents")]);
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn another_clock_is_estimated_and_files_named_outright_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("somewhere.dump");
    std::fs::write(&file, dump(77, &[(1000, 77, 1, 0x1000, "early"), (2000, 77, 2, 0x1000, "late")])).unwrap();
    let mut processes = processes(&[917_307]);
    processes.clock = Clock::default();
    let options = SourceOptions { jitdump: vec![file.clone().into()], ..SourceOptions::default() };
    let (names, said, accounts) = ask(&processes, &options, dir.path(), &[(917_307, 0x1000, 5)]);
    assert_eq!(names, [named("late")]);
    assert!(said.iter().any(|said| said.contains("record with -k mono")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("from process 77")), "{said:?}");
    assert!(matches!(
        accounts[0].state,
        SourceState::Loaded { codes: 2, skipped: 0, clock: Some(ClockUse::Dropped), .. }
    ));
    std::fs::rename(&file, dir.path().join("jit-917307.dump")).unwrap();
    processes.markers.push(marker(917_307, &dir.path().join("jit-917307.dump"), 500_000));
    let (names, said, _) = ask(
        &processes,
        &SourceOptions::default(),
        dir.path(),
        &[(917_307, 0x1000, 500_999), (917_307, 0x1000, 501_000)],
    );
    assert_eq!(names, [named("early"), named("late")]);
    assert!(said.iter().any(|said| said.contains("accurate to about 1 ms")), "{said:?}");
}

#[test]
fn files_that_go_by_the_outer_number_count_where_a_namespace_shows_another() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("jit-917308.dump"), dump(917_308, &[(10, 917_308, 1, 0x1000, "dumped")])).unwrap();
    std::fs::write(dir.path().join("perf-917308.map"), "2000 10 mapped\n").unwrap();
    let mut processes = processes(&[917_308]);
    processes.by_pid.get_mut(&Pid(917_308)).unwrap().inner_pid = Some(Pid(917_399));
    let questions = [(917_308, 0x1008, 20), (917_308, 0x2008, 20)];
    let (names, said, _) = ask(&processes, &SourceOptions::default(), dir.path(), &questions);
    assert_eq!((names, said), (vec![named("dumped"), named("mapped")], vec![]));
}

#[test]
fn code_listed_by_a_dump_that_opens_late_was_there_since_its_memory_was_mapped() {
    const PID: u32 = 917_391;
    const S: u64 = 1_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let answers = |opened: u64, execs: &[u64], functions: u64| {
        let listed = (0..functions).map(|at| (opened + at * 1000, PID, at, 0x10_0000 + at * 16, "listed"));
        let later = (opened + 2 * S, PID, functions, 0x10_8000, "later");
        let records: Vec<_> = listed.chain([later]).collect();
        std::fs::write(dir.path().join(format!("jit-{PID}.dump")), dump(PID, &records)).unwrap();
        let mut processes = processes(&[PID as i32]);
        let process = processes.by_pid.get_mut(&Pid(PID as i32)).unwrap();
        process.execs = execs.iter().copied().map(Nanos).collect();
        let memory = |time| Mapping {
            time: Nanos(time),
            addr: Addr(0x10_0000),
            len: 0x1_0000,
            pgoff: 0,
            path: b"//anon".into(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        process.mappings = vec![memory(11 * S), memory(12 * S)];
        processes.markers.push(marker(PID as i32, Path::new("/gone/jit-917391.dump"), opened));
        let asked = [(11, 0x10_0008), (13, 0x10_0008), (13, 0x10_8008), (90, 0x10_0008), (90, 0x10_8008)];
        let questions = asked.map(|(second, addr)| (PID as i32, addr, second * S + 5));
        ask(&processes, &SourceOptions::default(), dir.path(), &questions)
            .0
            .into_iter()
            .map(|name| name.is_some())
            .collect::<Vec<_>>()
    };
    let as_it_says: Vec<bool> = vec![false, false, false, true, true];
    let since_it_was_mapped: Vec<bool> = vec![false, true, false, true, true];
    assert_eq!(answers(50 * S, &[10 * S], 100), since_it_was_mapped);
    assert_eq!(answers(50 * S, &[], 100), since_it_was_mapped, "it ran before the recording");
    assert_eq!(answers(50 * S, &[10 * S], 20), as_it_says, "no more than a compiler makes in a moment");
    assert_eq!(answers(50 * S, &[49 * S + S / 2], 100), as_it_says, "its program has just begun");
}
