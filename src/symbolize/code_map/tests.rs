//! Compares the code map with a simulation that stores, for every address, the history of the code there.

use super::*;
use crate::model::FrameAddr;
use crate::model::code::{Lines, OriginId};
use crate::model::lasting::UNTIMED;
use crate::model::process::{CpuMode, Mapping, Process};
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::calls::find_call_test;
use crate::symbolize::symbolizer::Symbolizer;
use crate::test_effort::step;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use std::num::NonZeroUsize;
use std::ops::Range;

fn code(name: &'static str, addr: u64, size: u64) -> Code<'static> {
    Code {
        name: name.as_bytes(),
        addr: Addr(addr),
        size,
        bytes: None,
        lines: Lines::default(),
        unwind: None,
        origin: OriginId(0),
    }
}

/// A load of code.
struct Load {
    pid: Pid,
    time: Option<Nanos>,
    code: Code<'static>,
}

fn load(pid: i32, time: Option<u64>, code: Code<'static>) -> Load {
    Load { pid: Pid(pid), time: time.map(Nanos), code }
}

fn list(loads: &[Load]) -> CodeList<'static> {
    let mut list = CodeList::default();
    for Load { pid, time, code } in loads {
        list.load(*pid, *time, code);
    }
    list
}

fn build(list: CodeList<'static>, processes: &Processes) -> CodeMap<'static> {
    CodeMap::build(vec![list], processes, &Pool::new(NonZeroUsize::new(2)).unwrap())
}

fn name_at(map: &CodeMap<'_>, pid: i32, addr: u64, time: Option<u64>) -> Option<(String, u64, HitKind)> {
    let hit = map.lookup(Pid(pid), Addr(addr), time.map(Nanos))?;
    let segment = map.segment(hit.segment);
    assert!(segment.start.0 <= addr && addr < segment.end.0 && segment.code == hit.code);
    Some((String::from_utf8_lossy(map.code(hit.code).name).into_owned(), hit.offset, hit.kind))
}

/// Checks that a lookup gives the same answer for as long as the first lookup says.
fn assert_lasting(map: &CodeMap<'_>, pids: std::ops::RangeInclusive<i32>, addrs: Range<u64>, times: u64, step: usize) {
    for (pid, addr) in pids.flat_map(|pid| addrs.clone().map(move |addr| (Pid(pid), Addr(addr)))) {
        for at in (0..times).step_by(step) {
            let Lasting { answer, holds } = map.lookup_lasting(pid, addr, Nanos(at));
            assert!(holds.contains(&Nanos(at)));
            for other in [holds.start.0, at, holds.end.0.min(times) - 1] {
                assert_eq!(map.lookup(pid, addr, Some(Nanos(other))), answer, "{pid}, {addr:?}, {at} as {other}");
            }
        }
    }
}

#[test]
fn a_later_load_takes_only_what_it_overlaps() {
    let map = build(
        list(&[load(1, Some(10), code("a", 0x100, 0x100)), load(1, Some(20), code("b", 0x140, 0x20))]),
        &Processes::default(),
    );
    let at = |addr, time| name_at(&map, 1, addr, Some(time));
    assert_eq!(at(0x150, 15), Some(("a".into(), 0x50, HitKind::Live)));
    assert_eq!(at(0x150, 20), Some(("b".into(), 0x10, HitKind::Live)));
    assert_eq!(at(0x130, 25), Some(("a".into(), 0x30, HitKind::Live)));
    assert_eq!(at(0x1ff, 25), Some(("a".into(), 0xff, HitKind::Live)));
    assert_eq!(at(0x200, 25), None);
    assert_eq!(name_at(&map, 1, 0x150, None), Some(("b".into(), 0x10, HitKind::Live)));
}

#[test]
fn a_load_names_nothing_that_was_sampled_before_it() {
    let map = build(list(&[load(1, Some(10), code("a", 0x100, 0x10))]), &Processes::default());
    assert_eq!(name_at(&map, 1, 0x108, Some(9)), None);
    assert_eq!(name_at(&map, 1, 0x108, Some(10)), Some(("a".into(), 8, HitKind::Live)));
    assert!(map.has_code_at_other_times(Pid(1), Addr(0x108)) && !map.has_code_at_other_times(Pid(1), Addr(0x110)));
    assert!(!map.has_code_at_other_times(Pid(2), Addr(0x108)));
}

#[test]
fn moves_take_the_code_along_and_leave_nothing_behind() {
    let mut list = CodeList::default();
    let a = list.load(Pid(1), Some(Nanos(10)), &code("a", 0x100, 0x10));
    list.move_to(Pid(1), Some(Nanos(20)), a, Addr(0x108));
    list.load(Pid(1), Some(Nanos(30)), &code("b", 0x10c, 0x4));
    list.move_to(Pid(1), Some(Nanos(40)), a, Addr(0x900));
    let map = build(list, &Processes::default());
    let at = |addr, time| name_at(&map, 1, addr, Some(time)).map(|(name, offset, _)| (name, offset));
    assert_eq!(at(0x10c, 15), Some(("a".into(), 0xc)));
    assert_eq!(at(0x10c, 25), Some(("a".into(), 0x4)));
    assert_eq!(at(0x104, 25), None);
    assert_eq!(at(0x10c, 35), Some(("b".into(), 0)));
    assert_eq!(at(0x108, 45), None);
    assert_eq!(at(0x10c, 45), Some(("b".into(), 0)));
    assert_eq!(at(0x90f, 45), Some(("a".into(), 0xf)));
}

fn mapping(time: u64, addr: u64, len: u64, path: &str) -> Mapping {
    Mapping {
        time: Nanos(time),
        addr: Addr(addr),
        len,
        pgoff: 0,
        path: path.into(),
        build_id: None,
        file: None,
        executable: true,
        cpumode: crate::model::process::CpuMode::User,
        offset: 0,
    }
}

#[test]
fn a_file_that_is_mapped_once_more_does_not_end_code_in_it() {
    let mappings = vec![
        mapping(1, 0x1000, 0x2000, "/tmp/code (deleted)"),
        mapping(20, 0x1000, 0x2000, "/tmp/code (deleted)"),
        mapping(30, 0x1000, 0x1000, "/lib/other.so"),
    ];
    let mut processes = Processes::default();
    processes.by_pid.insert(Pid(1), Process { mappings, ..Process::default() });
    let map = build(list(&[load(1, Some(10), code("a", 0x1100, 0x10))]), &processes);
    let at = |time| map.lookup(Pid(1), Addr(0x1108), Some(Nanos(time))).is_some();
    assert_eq!([9, 10, 25, 30].map(at), [false, true, true, false]);
}

#[test]
fn samples_without_a_time_get_the_last_code_even_if_it_is_gone() {
    let mut processes = Processes::default();
    processes.by_pid.insert(Pid(1), Process { execs: vec![Nanos(40)], ..Process::default() });
    let loads = vec![load(1, Some(10), code("a", 0x100, 0x10)), load(1, Some(20), code("b", 0x100, 0x10))];
    let map = build(list(&loads), &processes);
    let symbolizer = Symbolizer { spaces: &AddressSpaces::default(), codes: &map };
    let locate = |time| symbolizer.locate(Pid(1), FrameAddr::Ip(Addr(0x104)), time, CpuMode::User);
    for time in [None, Some(UNTIMED)] {
        let Lasting { answer, holds } = locate(time);
        assert_eq!(map.code(answer.code.unwrap().code).name, b"b");
        assert!(holds.contains(&UNTIMED) && !holds.contains(&Nanos(45)));
    }
    assert!(locate(Some(Nanos(45))).answer.code.is_none());
}

#[test]
fn the_first_byte_of_a_mapping_is_no_return_address() {
    let mut processes = Processes::default();
    let mappings = vec![mapping(1, 0x1000, 0x1000, "/lib/a.so"), mapping(20, 0xf00, 0x100, "/lib/b.so")];
    processes.by_pid.insert(Pid(1), Process { mappings, ..Process::default() });
    let (spaces, map) = (AddressSpaces::new(&processes), build(list(&[]), &processes));
    let symbolizer = Symbolizer { spaces: &spaces, codes: &map };
    let locate =
        |addr, time| symbolizer.locate(Pid(1), FrameAddr::Return(Addr(addr)), Some(Nanos(time)), CpuMode::User);
    let Lasting { answer, holds } = locate(0x1000, 10);
    assert_eq!((answer.addr, holds), (Addr(0x1000), Nanos(1)..Nanos(20)));
    // Once something is mapped before it, a call may be there. Nothing is mapped at the other addresses.
    assert_eq!(
        [(0x1000, 20), (0x1001, 10), (0x2000, 10), (0x800, 10)].map(|(addr, time)| locate(addr, time).answer.addr),
        [0xfff, 0x1000, 0x1fff, 0x7ff].map(Addr)
    );
}

#[test]
fn the_first_byte_of_code_is_a_return_address_only_after_a_call() {
    const X86_64: u16 = 62;
    // `ret`, a call of `rax`, and a direct call, each at the end of its code; then code without bytes, and a gap.
    let with_bytes =
        |name, addr, bytes: &'static [u8]| Code { bytes: Some(bytes), ..code(name, addr, bytes.len() as u64) };
    let loads = [
        load(1, Some(10), with_bytes("returns", 0x100, b"\x90\x90\x90\xc3")),
        load(1, Some(10), with_bytes("calls", 0x104, b"\x90\x90\xff\xd0")),
        load(1, Some(10), with_bytes("calls directly", 0x108, b"\x90\xe8\x01\x02\x03\x70")),
        load(1, Some(10), code("named only", 0x10e, 0x10)),
        load(1, Some(10), code("follows", 0x11e, 0x10)),
        load(1, Some(10), code("after a gap", 0x140, 0x10)),
    ];
    let mut processes = Processes::default();
    processes.by_pid.insert(Pid(1), Process { mappings: vec![mapping(1, 0, 0x1000, "//anon")], ..Process::default() });
    let spaces = AddressSpaces::new(&processes);
    let expected = [
        (0x104, Some("calls")),
        (0x103, Some("returns")),
        (0x108, Some("calls")),
        (0x10e, Some("calls directly")),
        (0x11e, Some("named only")),
        (0x12e, Some("follows")),
        (0x130, None),
        (0x140, Some("after a gap")),
        (0x141, Some("after a gap")),
        (0x150, Some("after a gap")),
    ];
    let mut map = build(list(&loads), &processes);
    map.call_tests = vec![find_call_test(X86_64)];
    let locate = |spaces, addr| {
        let frame = FrameAddr::Return(Addr(addr));
        let located = Symbolizer { spaces, codes: &map }.locate(Pid(1), frame, Some(Nanos(20)), CpuMode::User).answer;
        let name = located.code.map(|hit| str::from_utf8(map.code(hit.code).name).unwrap());
        (name, located.addr == Addr(addr))
    };
    for (addr, name) in expected {
        assert_eq!(locate(&spaces, addr), (name, [0x104, 0x140].contains(&addr)), "{addr:#x}");
    }
    // If the input states no mappings, nothing is known about the memory before code.
    let unstated = AddressSpaces::default();
    assert_eq!([0x104, 0x140].map(|addr| locate(&unstated, addr)), [(Some("calls"), true), (None, false)]);
    // Calls of an unknown machine aren't decoded, so the byte before counts.
    let map = build(list(&loads), &processes);
    let symbolizer = Symbolizer { spaces: &spaces, codes: &map };
    let located = symbolizer.locate(Pid(1), FrameAddr::Return(Addr(0x104)), Some(Nanos(20)), CpuMode::User).answer;
    assert_eq!(map.code(located.code.unwrap().code).name, b"returns");
}

#[test]
fn files_and_execs_end_code_but_anonymous_memory_does_not() {
    let mut processes = Processes::default();
    let process = Process {
        mappings: vec![
            mapping(20, 0, 0x1000, "//anon"),
            mapping(30, 0x100, 0x8, "/lib/x.so"),
            mapping(31, 0x108, 8, "/run/jit-1.dump"),
        ],
        execs: vec![Nanos(40)],
        ..Process::default()
    };
    processes.by_pid.insert(Pid(1), process);
    let map = build(list(&[load(1, Some(10), code("a", 0x100, 0x10))]), &processes);
    let at = |addr, time| name_at(&map, 1, addr, Some(time)).is_some();
    assert!(at(0x104, 25) && !at(0x104, 30) && at(0x10c, 35) && !at(0x10c, 40));
    assert_eq!(name_at(&map, 1, 0x10c, None), Some(("a".into(), 0xc, HitKind::Live)));
}

#[test]
fn children_run_their_parents_code_until_they_exec() {
    let mut processes = Processes::default();
    let fork = |parent, time, execs: &[u64]| Process {
        forked: Some((Pid(parent), Nanos(time))),
        execs: execs.iter().copied().map(Nanos).collect(),
        ..Process::default()
    };
    processes.by_pid.insert(Pid(2), fork(1, 15, &[30]));
    processes.by_pid.insert(Pid(3), fork(2, 20, &[]));
    processes.by_pid.insert(Pid(8), fork(9, 20, &[]));
    processes.by_pid.insert(Pid(9), fork(8, 20, &[]));
    let loads = [
        load(1, Some(10), code("a", 0x100, 0x10)),
        load(1, Some(17), code("after", 0x100, 0x10)),
        load(3, Some(25), code("own", 0x100, 0x8)),
    ];
    let map = build(list(&loads), &processes);
    let at = |pid, addr, time| name_at(&map, pid, addr, Some(time)).map(|(name, _, _)| name);
    assert_eq!(at(2, 0x104, 25), Some("a".into()));
    assert_eq!(at(2, 0x104, 30), None);
    assert_eq!(at(3, 0x104, 26), Some("own".into()));
    assert_eq!(at(3, 0x10c, 26), Some("a".into()));
    assert_eq!(at(1, 0x104, 26), Some("after".into()));
    assert_eq!(at(8, 0x104, 26), None);
    assert_lasting(&map, 1..=9, 0xf0..0x120, 40, 1);
    assert_eq!(map.lookup_lasting(Pid(3), Addr(0x10c), Nanos(26)).holds, Nanos(20)..Nanos(u64::MAX));
}

#[test]
fn untimed_entries_follow_live_code_and_the_later_wins() {
    let loads = [
        load(1, None, code("old", 0x100, 0x100)),
        load(1, None, code("new", 0x180, 0x10)),
        load(1, Some(10), code("dump", 0x100, 0x10)),
        load(1, None, code("empty", 0x1c0, 0)),
    ];
    let map = build(list(&loads), &Processes::default());
    let at = |addr, time| name_at(&map, 1, addr, time);
    assert_eq!(at(0x108, Some(5)), Some(("old".into(), 8, HitKind::Untimed)));
    assert_eq!(at(0x108, Some(15)), Some(("dump".into(), 8, HitKind::Live)));
    assert_eq!(at(0x184, Some(15)), Some(("new".into(), 4, HitKind::Untimed)));
    assert_eq!(at(0x1c0, None), Some(("old".into(), 0xc0, HitKind::Untimed)));
    assert_eq!(map.overlaps(), 1);
    assert_lasting(&map, 1..=1, 0xf0..0x210, 20, 1);
}

#[test]
fn untimed_entries_name_only_the_program_in_whose_memory_they_lie() {
    let map = map_with_memory(&[(21, 0), (41, 0x9000)], &[10, 20, 40]);
    assert_eq!(times_with_name(&map), [25]);
    let children = [2, 3].map(|pid| name_at(&map, pid, 0x100, Some(30)).is_some());
    assert_eq!(children, [false, true], "a child runs what its parent ran at the fork");
    assert!(name_at(&map, 1, 0x100, None).is_some() && map.has_code_at_other_times(Pid(1), Addr(0x100)));
    let map = map_with_memory(&[(0, 0)], &[10, 20, 40]);
    assert_eq!(times_with_name(&map), [5]);
    let map = map_with_memory(&[(11, 0), (21, 0)], &[10, 20]);
    assert_eq!(times_with_name(&map), [25, 45], "the last of equals");
    let map = map_with_memory(&[(11, 0), (12, 0), (12, 0x5000), (21, 0)], &[10, 20]);
    assert_eq!(times_with_name(&map), [15], "the one that has memory for both entries");
    let map = map_with_memory(&[], &[10, 20]);
    assert_eq!(times_with_name(&map), [25, 45], "the last, where nothing is known");
    let map = map_with_memory(&[(0, 0)], &[]);
    assert_eq!(times_with_name(&map), [5, 15, 25, 45]);
}

/// The code map of a process 1 that has untimed entries at 0x100 and 0x5000. `memory` are the times and addresses at
/// which it maps memory, `execs` the times at which it execs. It forks process 2 at 15 and process 3 at 25.
fn map_with_memory(memory: &[(u64, u64)], execs: &[u64]) -> CodeMap<'static> {
    let mappings = memory.iter().map(|(time, addr)| mapping(*time, *addr, 0x1000, "//anon")).collect();
    let execs = execs.iter().copied().map(Nanos).collect();
    let parent = Process { mappings, execs, ..Process::default() };
    let first_child = Process { forked: Some((Pid(1), Nanos(15))), ..Process::default() };
    let second_child = Process { forked: Some((Pid(1), Nanos(25))), ..Process::default() };
    let mut processes = Processes::default();
    processes.by_pid.extend([(Pid(1), parent), (Pid(2), first_child), (Pid(3), second_child)]);
    let loads = [load(1, None, code("a", 0x100, 0x10)), load(1, None, code("b", 0x5000, 0x10))];
    build(list(&loads), &processes)
}

/// Which of the times 5, 15, 25 and 45 have code of process 1 at 0x100. An exec may be between any two of them.
fn times_with_name(map: &CodeMap<'_>) -> Vec<u64> {
    assert_lasting(map, 1..=3, 0xf0..0x120, 60, 1);
    [5, 15, 25, 45].into_iter().filter(|time| name_at(map, 1, 0x100, Some(*time)).is_some()).collect()
}

/// What is at an address: the index of a load, and the offset of the byte in the code that it loaded. `None` if no code
/// is there.
type Held = Option<(usize, u64)>;

/// A simulated process: for each address, the times at which its code changed and the code from then on. The newest
/// comes last.
struct Simulation {
    cells: Vec<Vec<(u64, Held)>>,
}

impl Simulation {
    fn put(&mut self, time: u64, range: Range<u64>, code: Option<(usize, u64)>) {
        for (at, addr) in range.enumerate() {
            let what = code.map(|(code, offset)| (code, offset + at as u64));
            self.cells[addr as usize].push((time, what));
        }
    }

    fn at(&self, addr: u64, time: u64) -> Option<(usize, u64)> {
        self.cells[addr as usize].iter().rev().find(|(from, _)| *from <= time).and_then(|(_, what)| *what)
    }
}

/// A random event in the life of a process.
#[derive(Debug, Clone)]
enum Step {
    Load(Range<u64>),
    /// Code is moved to an address. The number, modulo the number of loads so far, is the index of the load. Does
    /// nothing if there is no load yet.
    Move(usize, u64),
    /// A file is mapped over this range.
    Cover(Range<u64>),
}

/// Random steps within `space` addresses, each a little later than the one before. With few addresses, all code is in
/// one group with many overlaps. With many, there are many groups.
fn history(space: u64) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let range = || (0..space - 40, 0..40u64).prop_map(|(start, size)| start..start + size);
    let step = prop_oneof![
        8 => range().prop_map(Step::Load),
        1 => (any::<usize>(), 0..space - 40).prop_map(|(which, to)| Step::Move(which, to)),
        1 => range().prop_map(Step::Cover),
    ];
    proptest::collection::vec((1..4u64, step), 0..150)
}

fn every_address_and_time_is_as_simulated(space: u64, history: Vec<(u64, Step)>) {
    let mut simulation = Simulation { cells: vec![Vec::new(); space as usize] };
    let mut list = CodeList::default();
    // For each load, its position in the list, and where its code is now.
    let mut places: Vec<(usize, Range<u64>)> = Vec::new();
    let mut covers = Vec::new();
    let mut time = 0;
    for (later, step) in history {
        time += later;
        match step {
            Step::Move(..) if places.is_empty() => {}
            Step::Move(which, to) => {
                let which = which % places.len();
                let (event, old) = places[which].clone();
                let size = old.end - old.start;
                for addr in old {
                    if simulation.at(addr, time).is_some_and(|(code, _)| code == event) {
                        simulation.put(time, addr..addr + 1, None);
                    }
                }
                simulation.put(time, to..to + size, Some((event, 0)));
                places[which].1 = to..to + size;
                list.move_to(Pid(1), Some(Nanos(time)), event, Addr(to));
            }
            Step::Cover(range) => {
                // Each file is a different one, because mapping a file again where it is would end no code.
                covers.push(mapping(time, range.start, range.end - range.start, &format!("/lib/{time}.so")));
                simulation.put(time, range, None);
            }
            Step::Load(range) => {
                let code = code("x", range.start, range.end - range.start);
                let event = list.load(Pid(1), Some(Nanos(time)), &code);
                simulation.put(time, range.clone(), Some((event, 0)));
                places.push((event, range));
            }
        }
    }
    let mut processes = Processes::default();
    processes.by_pid.insert(Pid(1), Process { mappings: covers, ..Process::default() });
    let map = build(list, &processes);
    assert_lasting(&map, 1..=1, 0..space / 16, time + 2, 7);
    for (at, addr) in (0..time + 2).flat_map(|at| (0..space).map(move |addr| (at, addr))) {
        let hit = map.lookup(Pid(1), Addr(addr), Some(Nanos(at))).filter(|hit| hit.kind == HitKind::Live);
        let found = hit.map(|hit| (places[hit.code.0 as usize].0, hit.offset));
        assert_eq!(found, simulation.at(addr, at), "address {addr}, time {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16 / step(4) as u32))]

    #[test]
    fn code_that_hides_code_is_as_simulated(history in history(240)) {
        every_address_and_time_is_as_simulated(240, history);
    }

    #[test]
    fn code_far_apart_is_as_simulated(history in history(1000)) {
        every_address_and_time_is_as_simulated(1000, history);
    }
}

#[test]
fn code_farther_from_its_neighbors_than_32_bits_count_is_found() {
    // The distance between code ranges, 8 GiB, doesn't fit into 32 bits.
    const FAR: u64 = 1 << 33;
    let loads = [
        load(1, Some(10), code("long", 0x1000, 2 * FAR)),
        load(1, Some(20), code("a", FAR, 0x10)),
        load(1, Some(30), code("b", FAR + 0x8, 0x10)),
        load(1, Some(40), code("c", FAR + 0x100, 0x10)),
    ];
    let map = build(list(&loads), &Processes::default());
    let at = |addr, time| name_at(&map, 1, addr, Some(time)).map(|(name, offset, _)| (name, offset));
    assert_eq!(at(FAR + 4, 15), Some(("long".into(), FAR + 4 - 0x1000)));
    assert_eq!([at(FAR + 4, 35), at(FAR + 0x9, 35)], [Some(("a".into(), 4)), Some(("b".into(), 1))]);
    assert_eq!([at(FAR + 0x20, 45), at(0x1000 + 2 * FAR, 45)], [Some(("long".into(), FAR + 0x20 - 0x1000)), None]);
}

#[test]
fn a_layer_that_fills_in_is_queried_if_nothing_else_was_live() {
    let own = list(&[load(1, Some(20), code("own", 0x100, 0x10)), load(1, None, code("map", 0x200, 0x10))]);
    let mut filler = list(&[
        load(1, Some(10), code("filler", 0x100, 0x10)),
        load(1, Some(30), code("filler", 0x100, 0x10)),
        load(1, Some(30), code("filler", 0x200, 0x10)),
        load(1, Some(30), code("filler", 0x300, 0x10)),
        load(1, Some(40), code("again", 0x300, 0x10)),
        load(1, None, code("untimed", 0x200, 0x20)),
    ]);
    filler.fill_in();
    let pool = Pool::new(NonZeroUsize::new(2)).unwrap();
    let map = CodeMap::build(vec![own, filler], &Processes::default(), &pool);
    let at = |addr, time| name_at(&map, 1, addr, Some(time)).map(|(name, _, how)| (name, how));
    let found = |name: &str, how| Some((name.to_owned(), how));
    assert_eq!([at(0x108, 15), at(0x108, 25)], [found("filler", HitKind::FilledIn), found("own", HitKind::Live)]);
    assert_eq!(at(0x108, 35), found("own", HitKind::Live), "though it comes later");
    assert_eq!([at(0x208, 25), at(0x208, 35)], [found("map", HitKind::Untimed), found("filler", HitKind::FilledIn)]);
    assert_eq!(
        [at(0x218, 25), at(0x308, 35)],
        [found("untimed", HitKind::Untimed), found("filler", HitKind::FilledIn)]
    );
    let others = |addr, name: &[u8]| map.has_other_names(Pid(1), Addr(addr), name);
    assert!(!others(0x108, b"own") && others(0x308, b"filler"));
    let doubtful = |from, until| map.may_be_other(Pid(1), Addr(0x308), b"filler", Nanos(from)..Nanos(until));
    assert!(doubtful(35, 41) && !doubtful(31, 40));
    assert_lasting(&map, 1..=1, 0xf0..0x320, 50, 1);
}
