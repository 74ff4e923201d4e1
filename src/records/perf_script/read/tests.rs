//! Tests that a text gives the same profile when read as a whole, in parts, and line by line.

use super::*;
use crate::model::backing::tests::those;
use crate::model::stacks::{Renumbered, Taken};
use crate::model::tier::Tier;
use proptest::prelude::*;

#[test]
fn every_sort_of_object_has_its_kind_of_code() {
    let has_kind = |path: &[u8], kind: FrameKind| {
        let frame = Frame { addr: 1, symbol: b"f", offset: None, dso: Some(path), dso_offset: None, inlined: false };
        frame_kind(&frame) == kind
    };
    let kernel = [
        "[uprobes]",
        "[kernel.kallsyms]_text",
        "[guest.kernel.kallsyms]",
        "[ext4]",
        "/lib/modules/6.1/kernel/fs/ext4.ko",
    ];
    assert_eq!(those(|path| has_kind(path, FrameKind::Kernel)), kernel);
    let user = [
        "",
        "//toolong",
        "anon_inode:[perf_event]",
        "[vdso]",
        "[vdso32]",
        "[vsyscall]",
        "/usr/bin/node",
        "/usr/lib/libc.so.6 (deleted)",
        "/dev/shm/code",
        "/tmp/jit-77.dump",
        "/usr/lib/jit-helper.so",
        "/x/core.dump",
        "file",
        "[unknown]",
    ];
    assert_eq!(those(|path| has_kind(path, FrameKind::User)), user);
}

fn read_text(text: &str) -> (Profile, Vec<String>) {
    let mut warnings = Warnings::new();
    let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
    let said = warnings.iter().map(ToString::to_string).collect();
    (profile, said)
}

fn folded(profile: &Profile, series: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &profile.series[series].rows {
        let frames = profile.frames_up(row.stack).map(|id| profile.frame_of(id));
        let mut names: Vec<_> = frames.map(|frame| String::from_utf8_lossy(profile.name_of(frame.name))).collect();
        names.reverse();
        lines.push(format!("{} {}", names.join(";"), row.weight));
    }
    lines
}

#[test]
fn samples_of_two_events_with_and_without_stacks() {
    let (profile, said) = read_text(
        "# ========\nswapper 0 0.000000: PERF_RECORD_COMM: java:5/6\n\
         java 6 1.000002:    10 cycles:u: \n\t 7f1 leaf+0x1 (/tmp/perf-5.map)\n\t 7f2 main+0x1 (/bin/x)\n  x.c:3\n\n\
         java 6 1.000003: faults:  ffffffff8168bb05 fault+0x1 ([kernel.kallsyms])\n\
         java 6 1.000004:    10 cycles:u: \r\n\t 7f2 main+0x1 (/bin/x)\r\n\r\n",
    );
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(folded(&profile, 0), ["main;leaf 10", "main 10"]);
    assert_eq!(folded(&profile, 1), ["fault 1"]);
    let row = profile.series[0].rows[0];
    assert_eq!(profile.track_of(row.track).pid, Some(Pid(5)));
    let frames: Vec<_> = profile.frames_up(row.stack).map(|id| *profile.frame_of(id)).collect();
    assert_eq!((frames[0].kind, frames[1].line), (FrameKind::Jit, 3));
    let kernel = profile.frames_up(profile.series[1].rows[0].stack).next().unwrap();
    assert_eq!(profile.frame_of(kernel).kind, FrameKind::Kernel);
}

#[test]
fn only_jit_code_has_a_tier_and_only_where_its_name_shows() {
    let (profile, _) = read_text(
        "node 6 1.000002: cycles: \n\t 7f1 JS:*f /a.js:1:1+0x1 (/tmp/perf-5.map)\n\t 7f2 JS:^f /a.js:1:1+0x1 (/bin/x)\n\
         \t 7f3 f+0x1 (/tmp/perf-5.map)\n\t 7f4 JS:~g /a.js:9:1+0x1 (/x/jitted-5-3.so)\n\n",
    );
    let tiers: Vec<_> =
        profile.frames_up(profile.series[0].rows[0].stack).map(|id| profile.frame_of(id).tier).collect();
    assert_eq!(tiers, [Some(Tier::Optimised), None, None, Some(Tier::Interpreted)]);
}

/// Lines of every kind.
const LINES: [&str; 14] = [
    "j 6 1.000002: 7 cycles: \n",
    "j 5/6 1.000003: faults: \n",
    "k 7 1.000004: 7 cycles:  7f1 one (x)\n",
    "\t 7f1 a+0x1 (/bin/x)\n",
    "\t 7f1 a+0x1 (/bin/x)\n",
    "\t 7f2 La;::b->Lc;::d+0x1 (/tmp/perf-6.map)\n",
    "\t 7f3 [unknown] (/lib/y)\n",
    "\t zzz\n",
    "  x.c:3\n",
    "\n",
    "\n",
    "\r\n",
    "j 6 1.000002: PERF_RECORD_COMM: j:5/6\n",
    "noise\n",
];
fn lines() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&LINES[..]), 0..40).prop_map(|lines| lines.concat())
}

/// The profile of a text, read line by line without state from earlier lines.
fn by_lines(text: &str) -> Vec<String> {
    let mut warnings = Warnings::new();
    let known = RecordLineFacts::default();
    let mut part = PartReader::new(Keep::EachRow).without_headers(has_no_headers(text.as_bytes()));
    let mut reader = TextReader::new(text.as_bytes(), &known, &mut part);
    let mut start = 0;
    for line in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len();
        reader.read_line(line.trim_ascii_end(), &text.as_bytes()[end..], start as u64);
        start = end;
    }
    reader.end_sample();
    warnings.extend(reader.skipped.into_warning());
    describe(&part.profile, &warnings)
}

/// Everything in a profile, and the warnings, as text.
fn describe(profile: &Profile, warnings: &Warnings) -> Vec<String> {
    let series = (0..profile.series.len()).flat_map(|series| folded(profile, series));
    let frames = profile.frames().map(|(_, frame)| format!("{frame:?}"));
    let rows = profile.series.iter().flat_map(|series| series.rows.iter().map(|row| format!("{row:?}")));
    let tracks = profile.tracks().iter().map(|track| format!("{track:?}"));
    series.chain(frames).chain(rows).chain(tracks).chain(warnings.iter().map(ToString::to_string)).collect()
}

proptest! {
    #[test]
    fn the_state_of_lines_before_changes_nothing(text in lines()) {
        let mut warnings = Warnings::new();
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        prop_assert_eq!(describe(&profile, &warnings), by_lines(&text));
    }

    #[test]
    fn parts_hold_what_the_whole_holds(text in lines(), len in 1..200usize, readers in 1..4usize) {
        let mut warnings = Warnings::new();
        let whole = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let (mut known, mut parts, mut skipped) = (RecordLineFacts::default(), Profile::new(), Skipped::new("line"));
        let (mut rest, mut at) = (text.as_bytes(), 0);
        // The readers take turns.
        let of_frames = has_no_headers(text.as_bytes());
        let new = |_| (PartReader::new(Keep::EachRow).without_headers(of_frames), Taken::default(), Renumbered::default());
        let mut readers: Vec<_> = (0..readers).map(new).collect();
        while !rest.is_empty() {
            // Just enough text to find a point where it can be cut.
            let part = (len..rest.len()).map(|len| cut(&rest[..len])).find(|cut| *cut > 0).unwrap_or(rest.len());
            readers.rotate_left(1);
            let (reader, taken, numbers) = &mut readers[0];
            skipped.append(reader.read(&rest[..part], &known).moved(at));
            parts.add_part(&reader.profile().take_part(taken), numbers);
            rest[..part].split(|byte| *byte == b'\n').filter(|line| is_record_line(line)).for_each(|line| known.apply(line));
            (rest, at) = (&rest[part..], at + part as u64);
        }
        let mut of_parts = Warnings::new();
        of_parts.extend(skipped.into_warning());
        prop_assert_eq!(describe(&parts, &of_parts), describe(&whole, &warnings));
    }
}

#[test]
fn noise_is_counted_with_its_first_place() {
    let (profile, said) = read_text("\t 7f1 lost (x)\nj 6 1.000002: cycles: \n\t zzz\n\t 7f1 kept (x)\n");
    assert_eq!(folded(&profile, 0), ["kept 1"]);
    assert_eq!(said, ["at byte 0x0: 2 lines skipped, the first here: a frame without a sample above it"]);
}
