//! Tests that a text gives the same profile when read as a whole, in parts, and with remembered lines.

use super::*;
use crate::contract::format::ReadOptions;
use crate::error::Warnings;
use crate::formats::perf_script::cut;
use crate::model::mapping_kind::tests::paths_where;
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
    assert_eq!(paths_where(|path| has_kind(path, FrameKind::Kernel)), kernel);
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
    assert_eq!(paths_where(|path| has_kind(path, FrameKind::User)), user);
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
    assert_eq!(tiers, [Some(Tier::Optimized), None, None, Some(Tier::Interpreted)]);
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
    fn lines_that_were_read_before_give_the_same(text in lines()) {
        let mut part = PartReader::new(Keep::EachRow, Layout::detect(text.as_bytes()));
        let mut read = || {
            let mut warnings = Warnings::new();
            warnings.extend(part.read(text.as_bytes(), &RecordLineFacts::default()).into_warning());
            let described = describe(part.profile(), &warnings);
            // The reader remembers lines and names that it has read. Take away the rows, as the program does after each
            // block of a text, so that the second reading starts without rows.
            part.profile().take_part(&mut Taken::default());
            described
        };
        prop_assert_eq!(read(), read());
    }

    #[test]
    fn parts_hold_what_the_whole_holds(text in lines(), len in 1..200usize, readers in 1..4usize) {
        let mut warnings = Warnings::new();
        let whole = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let (mut known, mut parts, mut skipped) = (RecordLineFacts::default(), Profile::new(), Skipped::new("line"));
        let (mut rest, mut at) = (text.as_bytes(), 0);
        // The readers take turns, as workers do. `Taken` counts what a reader has already passed on; `Renumbered`
        // translates its IDs to those in `parts`. `known` is what the record lines of all earlier parts say.
        let layout = Layout::detect(text.as_bytes());
        let new = |_| (PartReader::new(Keep::EachRow, layout.clone()), Taken::default(), Renumbered::default());
        let mut readers: Vec<_> = (0..readers).map(new).collect();
        while !rest.is_empty() {
            // Just enough text to find a point where it can be cut.
            let part = (len..rest.len()).map(|len| cut(&rest[..len], &layout)).find(|cut| *cut > 0).unwrap_or(rest.len());
            readers.rotate_left(1);
            let (reader, taken, numbers) = &mut readers[0];
            skipped.append(reader.read(&rest[..part], &known).shifted(at));
            parts.add_part(&reader.profile().take_part(taken), numbers);
            known.apply_all(&rest[..part], &layout.indent);
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
    assert_eq!(said, ["at byte 0x0: 2 lines skipped; the first one: a line with a frame has no sample above it"]);
}

#[test]
fn samples_that_repeat_have_the_stack_that_each_has_alone() {
    let frames = [
        "\t 1000 f (/bin/x)\n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\n  a.c:7\n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\n  a.c:7 (inlined)\n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\nthis is noise\n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\n   \n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\napp 5 1.000000: 1 c: \n\t 7f2 main (/bin/x)\n",
        "\t 1000 f (/bin/x)\napp 5 1.000000: PERF_RECORD_COMM: app:9/8\n\t 7f2 main (/bin/x)\n",
        "",
    ];
    let (mut text, mut expected, mut noise) = (String::new(), Vec::new(), 0);
    for at in 0..100 {
        let sample = format!("app {} {at}.000000: 1 c: \n{}\n", 5 + at % 3, frames[at % 8]);
        let (alone, warnings) = read_text(&sample);
        expected.extend(folded(&alone, 0));
        noise += warnings.len();
        text += &sample;
    }
    let (profile, warnings) = read_text(&text);
    assert_eq!(folded(&profile, 0), expected);
    assert!(noise > 20 && warnings[0].contains(&format!("{noise} lines")), "{noise} {warnings:?}");
}

#[test]
fn stacks_share_callers_by_whole_frames() {
    let header = "j 6 1.000002: cycles: \n";
    let (profile, said) = read_text(&format!(
        "{header}\t 7f1 ab (x)\n\t 7f2 c (x)\n\n{header}\t 7f1 b (x)\n\t 7f2 c (x)\n\n{header}\t 7f2 c (x)\n\n\
         {header}\n{header}\t 7f3 d (x)\n\t 7f1 b (x)\n\t 7f2 c (x)\n\n"
    ));
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(folded(&profile, 0), ["c;ab 1", "c;b 1", "c 1", " 1", "c;b;d 1"]);
    assert_eq!(profile.stack_count(), 4);
}

#[test]
fn the_memory_of_lines_is_bounded() {
    let mut memo = LineMemo::default();
    for at in 0..100_000u32 {
        memo.make_room();
        memo.add(&at.to_le_bytes(), &[FrameId(at)]);
    }
    assert!(memo.lines.len() < 70_000);
    memo.add(&vec![b'x'; 5 << 20], &[FrameId(0)]);
    memo.make_room();
    assert!(memo.lines.is_empty() && memo.get(b"xx").is_none());
}

#[test]
fn the_layout_of_a_text_changes_no_stack() {
    let header = "my app 5/6 1.000002:  7 cycles:u: \n";
    let text = format!(
        "# captured on\n{header}\t    7f0000001234 leaf+0x1 (/tmp/perf-5.map)\n  a.c:3\n\t          401624 [unknown] (/bin/x)\n  x[401624]\n\n\
         {header}\t          401624 main+0x1 (/bin/x+0x1624)\n\n"
    );
    let (expected, said) = read_text(&text);
    assert_eq!((folded(&expected, 0), said), (vec!["[unknown];leaf 7".to_owned(), "main 7".to_owned()], Vec::new()));
    let indented = |indent: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.map(|line| if line == "\n" { line.to_owned() } else { format!("{indent}{line}") }).collect()
    };
    let texts = [
        indented("\t"),
        indented("    "),
        indented("\t").replace('\n', "\r\n"),
        text.replace('\n', "\r\n"),
        text.replace('\t', "        "),
        text.replace('\t', "    "),
        indented("\t").replace("\t\n", "\n"),
        indented("  ").replace("\n\n", "\n  \n"),
    ];
    for text in texts {
        let (profile, said) = read_text(&text);
        assert_eq!((folded(&profile, 0), said), (folded(&expected, 0), Vec::new()), "{text}");
        let lines = |profile: &Profile| profile.frames().map(|(_, frame)| (frame.line, frame.addr)).collect::<Vec<_>>();
        assert_eq!(lines(&profile), lines(&expected), "{text}");
    }
}

#[test]
fn other_fields_belong_to_no_stack() {
    let stack = "j 6 1.000002: cycles: \n\t            7f10 f+0x1 (/bin/x)\n";
    let fields = [
        " 0x7f10/0x7f20/P/-/-/37/CALL/-  0x7f10/0x7f20/M/-/-/0/RET/- \n",
        "f+0x1/operator new(unsigned long)+0x2/P/-/-/0/CALL/- \n",
        " ABI:2    AX:0x1    BX:0x7f10\n",
        " insn: 48 01 c8\n",
        "        12345678 4K\n",
        "     old bytes: 90 90\n     new bytes: cc 90\n",
        "\t\t[0/net: 4/0xf0000000, 1/uts: 4/0xeffffffe]\n",
        "\tf+0x4:\n\t0000000000007f14\tinsn: 48 89 e5 \t# PRED 5 cycles [5]\n",
        "j 6 1.000003: PERF_RECORD_SWITCH OUT          next pid/tid:     0/0\n",
    ];
    for field in fields {
        // With fields below the frames, perf may print no empty line.
        for end in ["", "\n"] {
            let (profile, said) = read_text(&format!("{stack}{field}{end}{stack}{field}{end}"));
            assert_eq!((folded(&profile, 0), said), (vec!["f 1".to_owned(), "f 1".to_owned()], Vec::new()), "{field}");
        }
    }
}

#[test]
fn frames_alone_are_stacks_or_samples() {
    let lines = "     556200401937 f\n ffffffff815fd615 g (/bin/x)\n             1234 main\n";
    let (profile, said) = read_text(lines);
    assert_eq!((folded(&profile, 0), said), (["f 1", "g 1", "main 1"].map(str::to_owned).to_vec(), Vec::new()));
    let tabs = lines.replace("\n ", "\n\t").replacen(' ', "\t", 1);
    for stack in [tabs.clone(), tabs.replace('\t', "        ")] {
        let (profile, said) = read_text(&format!("\n{stack}\n\n{stack}\n"));
        assert_eq!((folded(&profile, 0), said), (vec!["main;g;f 1".to_owned(); 2], Vec::new()), "{stack}");
    }
    // Bare addresses look like physical addresses, if they aren't indented as frames are.
    let bare = "\n            556200401937\n        ffffffff815fd615\n\n\n            556200401937\n\n";
    let (profile, said) = read_text(bare);
    assert_eq!(
        (folded(&profile, 0), said),
        (vec!["[unknown];[unknown] 1".to_owned(), "[unknown] 1".to_owned()], Vec::new())
    );
}
