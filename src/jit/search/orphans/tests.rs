//! Tests with generated recordings and files: only files that really belong to a process may be used, and files that
//! fit but aren't used must be reported.

use super::*;
use crate::jit::clock::MONOTONIC;
use proptest::prelude::*;
use std::time::UNIX_EPOCH;

const SECOND: u64 = 1_000_000_000;
/// Wall-clock time at time 0 of the recording's clock.
const WALL: u64 = 1_700_000_000 * SECOND;
/// Samples are taken from FROM to TO, in seconds on the recording's clock.
const FROM: u64 = 100;
const TO: u64 = 200;

/// Where a generated file comes from; the code under test doesn't know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// From this process of the recording.
    Of(usize),
    /// From another run of the same program, with all code at the same addresses.
    Twin,
    /// From an unrecorded program that ran at the same time, with its code at the same addresses.
    Neighbor,
    /// From another program.
    Other,
}

#[derive(Debug, Clone)]
struct Made {
    processes: Vec<MadeProcess>,
    files: Vec<(Truth, MadeFile)>,
}

#[derive(Debug, Clone)]
struct MadeProcess {
    base: u64,
    functions: u64,
    life: (u64, u64),
    has_own: bool,
}

#[derive(Debug, Clone)]
struct MadeFile {
    base: u64,
    functions: u64,
    is_dump: bool,
    has_times: bool,
    /// The times of its first and last record and when it was written, in seconds on the recording's clock.
    times: (u64, u64),
    written: u64,
    asked: bool,
}

fn made() -> impl Strategy<Value = Made> {
    let base = prop::sample::select(vec![0x1000_0000u64, 0x1000_0400, 0x2000_0000]);
    let process = (base.clone(), 1..9u64, FROM..150u64, 160..TO, prop::bool::weighted(0.2)).prop_map(
        |(base, functions, began, ended, has_own)| MadeProcess { base, functions, life: (began, ended), has_own },
    );
    let shape = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.3), any::<bool>());
    let file = (0..6usize, 0..4usize, base, shape);
    (prop::collection::vec(process, 1..4), prop::collection::vec(file, 1..6)).prop_map(|(processes, drawn)| {
        let mut files = Vec::new();
        for (what, of, base, (is_dump, has_times, copied, asked, before)) in drawn {
            let process = &processes[of % processes.len()];
            let MadeProcess { functions, life, .. } = *process;
            let own = MadeFile {
                base: process.base,
                functions,
                is_dump,
                has_times,
                times: life,
                // A copied file has the time of copying.
                written: if copied { 90_000 } else { life.1 },
                asked,
            };
            let of = of % processes.len();
            let is_there = files
                .iter()
                .any(|(truth, file): &(Truth, MadeFile)| *truth == Truth::Of(of) && file.is_dump == is_dump);
            match what {
                // A process writes only one file of a kind.
                0..=2 if !is_there => files.push((Truth::Of(of), own)),
                3 => {
                    let times = if before { (10, 60) } else { (500, 600) };
                    // Users are trusted when they pass a later file, so don't generate that.
                    let (written, asked) = if before { (60, asked) } else { (600, false) };
                    files.push((Truth::Twin, MadeFile { times, written, asked, ..own }));
                }
                // Indistinguishable from the process's own file, which also exists.
                4 if !is_there => {
                    files.push((Truth::Of(of), own.clone()));
                    files.push((Truth::Neighbor, own));
                }
                5 => files.push((Truth::Other, MadeFile { base: base + 0x100_0000, asked: false, ..own })),
                _ => {}
            }
        }
        Made { processes, files }
    })
}

fn ranges(base: u64, functions: u64) -> Vec<(u64, u64)> {
    (0..functions).map(|at| (base + at * 0x100, base + at * 0x100 + 0x80)).collect()
}

fn process(at: usize, made: &MadeProcess) -> PossibleOwner {
    let MadeProcess { base, functions, life, has_own } = *made;
    PossibleOwner {
        pid: Pid(4000 + at as i32),
        is_wanted: !has_own,
        mapped: vec![(base, base + 0x1_0000)],
        samples: ranges(base, functions).into_iter().map(|(start, _)| (Addr(start + 8), 3)).collect(),
        began: Some(Nanos(life.0 * SECOND)),
        ended: Some(Nanos(life.1 * SECOND)),
        markers: Vec::new(),
        inner: None,
        memory: None,
    }
}

fn orphan(at: usize, made: &MadeFile) -> Orphan {
    let times = (Nanos(made.times.0 * SECOND + 1), Nanos(made.times.1 * SECOND - 1));
    Orphan {
        path: PathBuf::from(format!("perf-{at}.map")),
        kind: if made.is_dump { Kind::JitDump } else { Kind::PerfMap },
        named: Named::User,
        is_from_user: made.asked,
        id: Some(FileId { major: 8, minor: 1, inode: at as u64 + 1 }),
        written: UNIX_EPOCH.checked_add(Duration::from_nanos(WALL + made.written * SECOND)),
        ranges: ranges(made.base, made.functions),
        times: (made.is_dump && made.has_times).then_some(times),
    }
}

fn when() -> SampledTimes {
    let clock = Clock { clockid: Some(MONOTONIC), reference: Some((Nanos(WALL), Nanos(0))), tsc: None };
    SampledTimes { clock, extent: TimeExtent { first: Nanos(FROM * SECOND), last: Nanos(TO * SECOND) } }
}

fn compare_made(made: &Made) -> (Vec<Fit>, Vec<Orphan>) {
    let processes: Vec<_> = made.processes.iter().enumerate().map(|(at, made)| process(at, made)).collect();
    let files: Vec<_> = made.files.iter().enumerate().map(|(at, (_, made))| orphan(at, made)).collect();
    (compare_all(&files, &processes, &when()), files)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn used_files_are_right_and_possible_ones_are_offered(made in made()) {
        let (fits, files) = compare_made(&made);
        for (at, (truth, _)) in made.files.iter().enumerate() {
            let may_be_meant = fits.iter().any(|fit| fit.file == at && fit.is_wanted && fit.has_addresses());
            match judge(at, &fits) {
                Verdict::Used(fit) => {
                    let is_its = matches!(truth, Truth::Of(of) if fit.pid == Pid(4000 + *of as i32));
                    prop_assert!(is_its && fit.is_wanted, "{truth:?} used for {}", fit.pid);
                }
                Verdict::Unmatched => {
                    let others = fits.iter().any(|fit| fit.file == at && !fit.is_wanted && fit.has_addresses());
                    prop_assert!(!may_be_meant || others, "{} is passed over without a word", files[at].path.display());
                }
                Verdict::Offered(_) | Verdict::Refused(_) => {}
            }
        }
    }
}

/// A server's worker: where its parent has its memory (random for each run, or always the same without address space
/// randomization), how many functions it has compiled there, and how many more its sibling has.
fn workers() -> impl Strategy<Value = (u64, u64, u64)> {
    let base = prop_oneof![Just(0x7fff_f7c0_0000u64), (0..1u64 << 28).prop_map(|page| 0x7000_0000_0000 + page * 4096)];
    (base, 1..200u64, 0..200u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A perf map without times looks the same whether the process or its sibling wrote it. A rule that accepted the
    /// one would also accept the other, whose names are wrong. So it is only offered, however well it fits.
    #[test]
    fn a_siblings_map_is_not_reported_from_a_processs_own((base, functions, more) in workers()) {
        let worker = MadeProcess { base, functions, life: (110, 190), has_own: false };
        let own = MadeFile { base, functions, is_dump: false, has_times: false, ..one().1 };
        let sibling = MadeFile { functions: functions + more, ..own.clone() };
        let fit = |file: &MadeFile| compare_all(&[orphan(1, file)], &[process(0, &worker)], &when());
        let (of_own, of_sibling) = (fit(&own), fit(&sibling));
        prop_assert_eq!(&of_own, &of_sibling);
        prop_assert!(of_own[0].covered == of_own[0].samples && of_own[0].is_mapped && of_own[0].contradiction.is_none());
        prop_assert!(matches!(judge(0, &of_sibling), Verdict::Offered(_)));
    }

    /// A perf map of another run of the program, at other addresses, never fits.
    #[test]
    fn another_runs_map_fits_nowhere((base, functions, _) in workers(), shift in 1..1u64 << 28) {
        let worker = MadeProcess { base, functions, life: (110, 190), has_own: false };
        let elsewhere = 0x7000_0000_0000 + ((base >> 12) + shift) % (1 << 28) * 4096;
        prop_assume!(elsewhere.abs_diff(base) > functions * 0x100);
        let file = MadeFile { base: elsewhere, functions, is_dump: false, ..one().1 };
        let fits = compare_all(&[orphan(1, &file)], &[process(0, &worker)], &when());
        prop_assert!(matches!(judge(0, &fits), Verdict::Unmatched));
    }
}

/// One process and its own file.
fn one() -> (MadeProcess, MadeFile) {
    let process = MadeProcess { base: 0x1000_0000, functions: 5, life: (110, 190), has_own: false };
    let (base, functions, times) = (process.base, process.functions, process.life);
    (process, MadeFile { base, functions, is_dump: true, has_times: true, times, written: 90_000, asked: false })
}

fn verdicts(processes: &[MadeProcess], files: &[MadeFile]) -> Vec<&'static str> {
    let files = files.iter().map(|file| (Truth::Other, file.clone())).collect();
    let (fits, files) = compare_made(&Made { processes: processes.to_vec(), files });
    let verdict = |file| match judge(file, &fits) {
        Verdict::Used(_) => "used",
        Verdict::Offered(_) => "offered",
        Verdict::Refused(_) => "refused",
        Verdict::Unmatched => "unmatched",
    };
    (0..files.len()).map(verdict).collect()
}

#[test]
fn a_second_sign_is_needed_and_enough() {
    let (process, dump) = one();
    let map = MadeFile { is_dump: false, ..dump.clone() };
    let alone = |file: &MadeFile| verdicts(std::slice::from_ref(&process), std::slice::from_ref(file))[0];
    assert_eq!(alone(&dump), "used", "by its times");
    assert_eq!(alone(&MadeFile { has_times: false, ..dump.clone() }), "offered", "addresses alone");
    assert_eq!(alone(&MadeFile { times: (10, 60), ..dump.clone() }), "refused", "of an earlier run");
    assert_eq!(alone(&MadeFile { times: (500, 600), ..dump.clone() }), "refused", "of a later run");
    assert_eq!(alone(&map), "offered", "addresses alone");
    assert_eq!(alone(&MadeFile { written: 205, ..map.clone() }), "used", "written just after");
    assert_eq!(alone(&MadeFile { written: 60, ..map.clone() }), "refused", "written before");
    assert_eq!(
        alone(&MadeFile { written: 60, asked: true, ..map.clone() }),
        "refused",
        "written before, though asked for"
    );
    assert_eq!(alone(&MadeFile { asked: true, ..map.clone() }), "used", "asked for");
    assert_eq!(alone(&MadeFile { base: 0x5000_0000, asked: true, ..map }), "unmatched", "elsewhere");
}

#[test]
fn two_that_may_be_meant_are_reported_and_not_used() {
    let (process, dump) = one();
    let map = MadeFile { is_dump: false, written: 190, ..dump };
    let two = [process.clone(), process.clone()];
    assert_eq!(verdicts(&two, std::slice::from_ref(&map)), ["offered"], "two processes");
    assert_eq!(verdicts(&two[..1], &[map.clone(), map.clone()]), ["offered"; 2], "two files");
    let old = MadeFile { written: 60, ..map.clone() };
    assert_eq!(verdicts(&two[..1], &[old, map.clone()]), ["refused", "used"], "one of them with a sign");
    let elsewhere = MadeProcess { base: 0x2000_0000, ..process.clone() };
    let its = MadeFile { base: 0x2000_0000, ..map.clone() };
    assert_eq!(verdicts(&[process, elsewhere], &[its, map]), ["used"; 2], "each its own");
}

#[test]
fn the_file_that_a_process_had_mapped_is_its_own_whatever_else_fits() {
    let (made, dump) = one();
    let files: Vec<_> = (0..2).map(|at| orphan(at, &MadeFile { has_times: false, ..dump.clone() })).collect();
    let marked = PossibleOwner { markers: files[1].id.into_iter().collect(), ..process(0, &made) };
    // Another process has code at the same addresses.
    let fits = compare_all(&files, &[marked, process(1, &made)], &when());
    let its = |fit: &Fit| fit.sign == Some(Sign::Inode) && fit.pid == Pid(4000);
    assert!(matches!(judge(1, &fits), Verdict::Used(fit) if its(fit)), "{fits:?}");
    assert!(matches!(judge(0, &fits), Verdict::Offered(_)), "{fits:?}");
}

#[test]
fn a_running_process_states_by_which_number_its_files_go() {
    let (made, dump) = one();
    let files = [orphan(0, &MadeFile { is_dump: false, written: 195, ..dump })];
    for (inner, is_its) in [(None, true), (Some(Pid(0)), true), (Some(Pid(7)), false)] {
        let fits = compare_all(&files, &[PossibleOwner { inner, ..process(0, &made) }], &when());
        match judge(0, &fits) {
            Verdict::Used(_) => assert!(is_its, "{inner:?}"),
            Verdict::Refused(fit) => {
                assert!(!is_its && fit.contradiction.as_ref().unwrap().contains("has PID 7 in its container"))
            }
            other => panic!("{other:?}"),
        }
    }
}
