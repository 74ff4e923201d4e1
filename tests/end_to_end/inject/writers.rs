//! The writers of the tests themselves: the real perf must read what they write, and the brute-force look-up must
//! agree with the generator, which knows the truth by having made it.

use super::perf::{script, stats};
use super::support::bytes::Order;
use super::support::generated::{Plan, generate, name};
use super::support::jitdump::{Header, JitDump, Line, Load};
use super::support::perf_data::{
    CALLCHAIN, CONTEXT_USER, CPU, Event, ID, IDENTIFIER, IP, KERNEL, Mmap, Mode, PERIOD, PerfData, STREAM_ID, Stamp,
    TID, TIME, USUAL,
};
use super::truth::{Recording, Truth, Verdict, judge, judge_printed, read_script};

fn count(stats: &[(String, u64)], name: &str) -> u64 {
    stats.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count)
}

#[test]
fn perf_reads_what_the_writer_writes() {
    let dir = tempfile::tempdir().unwrap();
    for (order, mode) in
        [(Order::Little, Mode::File), (Order::Big, Mode::File), (Order::Little, Mode::Pipe), (Order::Big, Mode::Pipe)]
    {
        let kinds = IDENTIFIER | USUAL | ID | STREAM_ID | CPU;
        let events = vec![
            Event { name: "cpu-clock", sample_type: kinds, ids: vec![11], ..Event::usual() },
            Event { name: "second", sample_type: kinds & !CALLCHAIN, ids: vec![12, 13], ..Event::usual() },
        ];
        let mut out = PerfData::with_events(order, events);
        let stamp = |time, id| Stamp { id, cpu: 1, ..Stamp::new(77, time) };
        out.comm(stamp(5, 11), "program", true);
        out.mmap2(stamp(6, 11), Mmap { addr: 0x1000, len: 0x2000, pgoff: 0, path: "//anon" });
        out.fork(Stamp { pid: 78, tid: 78, ..stamp(7, 11) }, 77);
        out.sample(stamp(10, 11), &[0x1234, 0x1456]);
        out.finished_round();
        out.sample_of(1, KERNEL, stamp(11, 13), 0x1789, &[]);
        out.sample_of(0, KERNEL, stamp(12, 11), 0x1789, &[CONTEXT_USER, 0x1789]);
        out.exit(Stamp { pid: 78, tid: 78, ..stamp(13, 11) }, 77);
        out.feature(3, [&64u32.to_le_bytes()[..], b"other", &[0; 59]].concat());
        let path = dir.path().join(format!("{order:?}-{mode:?}"));
        std::fs::write(&path, out.into_bytes(mode)).unwrap();
        let stats = stats(&path);
        let counts = ["COMM", "MMAP2", "FORK", "EXIT", "SAMPLE", "FINISHED_ROUND"].map(|kind| count(&stats, kind));
        assert_eq!(counts, [1, 1, 1, 1, 3, 1], "{order:?} {mode:?}: {stats:?}");
        let said = script(&path);
        let text = String::from_utf8(said.out).unwrap();
        assert!(said.err.is_empty(), "{order:?} {mode:?}: {}", said.err);
        assert!(text.contains("1234 [unknown]") && text.contains("1456 [unknown]"), "{order:?} {mode:?}: {text}");
    }
}

#[test]
fn the_brute_force_look_up_agrees_with_the_generator() {
    let plan = Plan {
        loads: 600,
        samples: 900,
        processes: 2,
        heap: None,
        moves: true,
        order: Order::Little,
        mode: Mode::File,
    };
    let made = generate(plan, "/nowhere");
    let recording = Recording::read(&made.perf_data);
    let mut truth = Truth::default();
    made.dumps.iter().for_each(|(pid, dump)| truth.add_dump(*pid, dump));
    truth.add_recording(&recording);
    truth.settle();
    assert_eq!(recording.samples.len(), made.truth.len());
    for (sample, made) in recording.samples.iter().zip(&made.truth) {
        assert_eq!((sample.pid, sample.time), (made.pid, made.time));
        for (addr, frame) in sample.addrs.iter().zip(&made.frames) {
            let found = truth.name(sample.pid, *addr, sample.time).map(String::from_utf8_lossy);
            assert_eq!((*addr, found.as_deref()), (frame.addr, Some(name(frame.function).as_str())));
        }
    }
}

#[test]
fn the_brute_force_reader_has_pipes_compressed_parts_and_killed_recorders() {
    let made = |mode| {
        generate(
            Plan { loads: 50, samples: 90, processes: 2, heap: None, moves: false, order: Order::Little, mode },
            "/",
        )
    };
    let file = made(Mode::File).perf_data;
    let key = |recording: Recording| -> Vec<_> {
        recording.samples.into_iter().map(|sample| (sample.pid, sample.tid, sample.time, sample.addrs)).collect()
    };
    let expected = key(Recording::read(&file));
    assert!(expected.len() > 50);
    assert_eq!(key(Recording::read(&made(Mode::Pipe).perf_data)), expected);

    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (start, end) = (number(40), number(40) + number(48));
    let with_records = |records: &[u8], size: u64| {
        let mut bytes = [&file[..start], records].concat();
        bytes[48..56].copy_from_slice(&size.to_le_bytes());
        bytes
    };
    // A killed recorder: no size, and the last record is cut.
    let killed = key(Recording::read(&with_records(&file[start..end - 4], 0)));
    assert!(killed.len() + 1 >= expected.len() && expected.starts_with(&killed));
    // One stream in two records, cut inside a record: COMPRESSED, then COMPRESSED2 with padding.
    let packed = zstd::encode_all(&file[start..end], 1).unwrap();
    let (one, two) = packed.split_at(packed.len() / 3);
    let record = |kind: u32, body: &[u8]| {
        let head = [kind.to_le_bytes(), ((8 + body.len() as u32) << 16).to_le_bytes()].concat();
        [&head, body].concat()
    };
    let mut padded = [&(two.len() as u64).to_le_bytes(), two].concat();
    padded.resize(padded.len().next_multiple_of(8), 0);
    let records = [record(81, one), record(83, &padded)].concat();
    assert_eq!(key(Recording::read(&with_records(&records, records.len() as u64))), expected);
    // A directory: the samples in a file of their own.
    assert_eq!(key(Recording::read_parts(&with_records(&[], 0), &[file[start..end].to_vec()])), expected);
}

#[test]
fn names_that_perf_does_not_know_are_counted() {
    let plan = Plan {
        loads: 100,
        samples: 50,
        processes: 1,
        heap: None,
        moves: false,
        order: Order::Little,
        mode: Mode::File,
    };
    let made = generate(plan, "/nowhere");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    std::fs::write(&path, &made.perf_data).unwrap();
    let recording = Recording::read(&made.perf_data);
    let mut truth = Truth::default();
    made.dumps.iter().for_each(|(pid, dump)| truth.add_dump(*pid, dump));
    truth.settle();
    let printed = read_script(&script(&path).out);
    let verdict = judge(&truth, &recording, &printed);
    let frames = made.truth.iter().map(|sample| sample.frames.len() as u64).sum();
    let Verdict { user, unresolved, unresolved_jit, covered, right, wrong } = &verdict;
    assert_eq!([*user, *unresolved, *unresolved_jit, *covered, *right], [frames, frames, frames, frames, 0]);
    assert!(wrong[0].contains("\"[unknown]\" (/tmp/perf-"), "{wrong:?}");
    assert_eq!(judge_printed(&truth, &printed), verdict, "perf 6.1 prints run-time addresses of anonymous memory");
}

#[test]
fn the_brute_force_look_up_has_maps_forks_execs_and_files() {
    let mut dump = JitDump::with_header(Order::Little, Header { total_size: 48, ..Header::of(7) });
    dump.load(10, Load { tid: 7, addr: 0x1000, index: 0, name: b"first", code: &[0x90; 32] });
    dump.load(20, Load { tid: 7, addr: 0x1010, index: 1, name: b"second", code: &[0x90; 32] });
    dump.moved(30, 0, (0x1000, 0x3000), 32);
    let event = Event { sample_type: IP | TID | TIME | PERIOD, ..Event::usual() };
    let mut out = PerfData::new(Order::Little, event);
    out.fork(Stamp::new(8, 25), 7);
    out.comm(Stamp::new(8, 40), "other", true);
    out.mmap2(Stamp::new(7, 50), Mmap { addr: 0x1000, len: 0x1000, pgoff: 0, path: "/lib/x.so" });
    let mut truth = Truth::default();
    truth.add_dump(7, &dump.into_bytes());
    truth.add_map(7, b"1000 30 old name\n0x3010 0x20 early\n3020 20 late\r\nnonsense\n");
    truth.add_recording(&Recording::read(&out.into_bytes(Mode::File)));
    truth.settle();
    let name = |pid, addr, time| truth.name(pid, addr, time).map(|name| String::from_utf8(name.to_vec()).unwrap());
    for (pid, addr, time, expected) in [
        (7, 0x1018, 9, Some("old name")),
        (7, 0x1018, 10, Some("first")),
        (7, 0x1018, 20, Some("second")),
        (7, 0x1008, 31, Some("old name")),
        (7, 0x3008, 31, Some("first")),
        (7, 0x3028, 31, Some("late")),
        (7, 0x1018, 50, Some("old name")),
        (8, 0x1008, 31, Some("first")),
        (8, 0x1008, 41, None),
        (9, 0x1008, 31, None),
    ] {
        assert_eq!(name(pid, addr, time).as_deref(), expected, "{pid} {addr:x} {time}");
    }
}

#[test]
fn other_records_of_a_dump_are_stepped_over() {
    let mut dump = JitDump::new(7);
    let load = |addr, name| Load { tid: 7, addr, index: 0, name, code: &[0x90; 16] };
    dump.debug_info(8, 0x1000, &[Line { addr: 0x1040, line: 3, discriminator: 0, file: b"/a.js" }]);
    dump.unwinding(9, (&[], &[0; 20]), 0);
    dump.load(10, load(0x1000, b"first"));
    dump.close(11);
    dump.record(99, 12, b"what is this?");
    dump.load(13, load(0x2000, b"second"));
    dump.lying_record(0, 4096, 14, &[]);
    dump.load(15, load(0x3000, b"third"));
    let mut truth = Truth::default();
    truth.add_dump(7, &dump.into_bytes());
    truth.settle();
    let names = [0x1000, 0x2000, 0x3000].map(|addr| truth.name(7, addr, 20));
    assert_eq!(names, [Some(&b"first"[..]), Some(b"second"), None]);
}

#[test]
fn perf_scripts_text_is_understood() {
    let text =
        b"  7/8     1.000000005: \n\t    1234 JS:*f (x) /a.js:1 (/tmp/perf-7.map)\n\t 99 [unknown] ([unknown])\n\n";
    let samples = read_script(text);
    assert_eq!((samples.len(), samples[0].pid, samples[0].time), (1, 7, 1_000_000_005));
    let frame = |addr, name: &[u8], dso: &[u8]| (addr, name.to_vec(), dso.to_vec());
    let expected = [frame(0x1234, b"JS:*f (x) /a.js:1", b"/tmp/perf-7.map"), frame(0x99, b"[unknown]", b"[unknown]")];
    assert_eq!(samples[0].frames, expected);
}
