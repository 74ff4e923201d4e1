//! Texts before and after rewriting.

use super::*;
use crate::formats::perf_script::cut;
use crate::formats::perf_script::record_lines::FileAddresses;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Names every address of process 5 between 0x1000 and 0x2000 `jit`, up to the time 9 s.
fn namer(wanted: FrameQuery<'_>) -> Answer<'static> {
    if let Some(file) = wanted.file {
        return native(file, wanted.addr);
    }
    let at = wanted.addr.for_lookup().0;
    let named = FrameName {
        name: Cow::Borrowed(b"jit fn (a)"),
        offset: wanted.addr.raw().0.wrapping_sub(0x1000),
        dso: Cow::Borrowed(b"/d/jitted-5.so"),
        source: Some((Cow::Borrowed(b"a b.js"), 7)),
        is_one_of_several: false,
    };
    match wanted.pid {
        Pid(5) if (0x1000..0x2000).contains(&at) && wanted.time <= Some(Nanos(9_000_000_000)) => {
            Answer::Named(named, Nanos(0)..Nanos(9_000_000_000))
        }
        Pid(77) => Answer::NotLoaded,
        Pid(5) => Answer::Unknown(Nanos(9_000_000_001)..Nanos(u64::MAX)),
        _ => Answer::Unknown(Nanos(0)..Nanos(u64::MAX)),
    }
}

/// Knows `main` at 0x100 of /bin/x. Offsets from 0x500 on are not loaded.
fn native(file: &[u8], addr: FrameAddr) -> Answer<'static> {
    let named = |at: u64| FrameName {
        name: Cow::Borrowed(b"main"),
        offset: at - 0x100,
        dso: Cow::Borrowed(b"/bin/x"),
        source: None,
        is_one_of_several: false,
    };
    match (file, addr.for_lookup().0) {
        (b"/bin/x", 0x100..0x200) => Answer::Named(named(addr.raw().0), Nanos(0)..Nanos(u64::MAX)),
        (b"/bin/x", 0x500..) => Answer::NotLoaded,
        _ => Answer::Unknown(Nanos(0)..Nanos(u64::MAX)),
    }
}

fn rewritten(text: &str, style: Style) -> (String, Counts) {
    rewritten_block(text, &RecordLineFacts::default(), style)
}

fn rewritten_block(text: &str, facts: &RecordLineFacts, style: Style) -> (String, Counts) {
    let mut out = Vec::new();
    let layout = Layout::detect(text.as_bytes());
    let rewriter = Rewriter { layout: &layout, style, namer: &namer };
    match rewriter.rewrite(text.as_bytes(), facts, &mut Memo::default(), &mut out) {
        Rewritten::Unchanged(counts) => (text.to_owned(), counts),
        Rewritten::Changed(counts) => (String::from_utf8(out).unwrap(), counts),
        Rewritten::Needs(needs) => (format!("needs {:?} {:?}", needs.pids, needs.places), Counts::default()),
    }
}

const TEXT: &str = "# comment [unknown] ([unknown])\n\
        my app 5 8.000002:    10 cycles:u: \n\
        \t ffffffff8168bb05 fault+0x1 ([kernel.kallsyms])\n\
        \t            1000 [unknown] (//anon)\n\
        \t            2000 [unknown] ([anon:JIT code])\n\
        \t             7f2 [unknown] (/bin/x)\n\
        \t            1fff has a name [unknown] (odd) (/tmp/perf-5.map)\n\
        \n\
        app 6 8.000003:    10 cycles:u: \n\
        \t            1008 [unknown] (/tmp/perf-5.map)\n\
        \t            1000 [unknown] (/tmp/perf-5.map)\n\
        \n";

#[test]
fn frames_without_a_name_in_places_of_jit_code_are_named_and_nothing_else_changes() {
    let (text, counts) = rewritten(TEXT, Style::default());
    let expected = TEXT
        .replace("1000 [unknown] (//anon)", "1000 jit fn (a)+0x0 (/d/jitted-5.so)")
        .replace("2000 [unknown] ([anon:JIT code])", "2000 jit fn (a)+0x1000 (/d/jitted-5.so)")
        .replace("1008 [unknown] (/tmp/perf-5.map)", "1008 jit fn (a)+0x8 (/d/jitted-5.so)");
    assert_eq!(text, expected);
    assert_eq!(counts, Counts { named: 3, unresolved: 1, samples: 2, ..Counts::default() });
    assert_eq!(rewritten(&text, Style::default()).0, text);
}

#[test]
fn any_cut_gives_the_same_text() {
    let (whole, counts) = rewritten(TEXT, Style::default());
    for at in (0..TEXT.len()).filter(|&at| at == 0 || TEXT.as_bytes()[at - 1] == b'\n') {
        let (first, second) = TEXT.split_at(at);
        let mut facts = RecordLineFacts::default();
        let (mut out, first_counts) = rewritten_block(first, &facts, Style::default());
        facts.apply_all(first.as_bytes(), b"");
        let (rest, second_counts) = rewritten_block(second, &facts, Style::default());
        out += &rest;
        let mut sum = first_counts;
        sum += second_counts;
        // Within a sample, the second part doesn't know to which process the frames belong.
        if first.ends_with("\n\n") || first.is_empty() {
            assert_eq!((out, sum), (whole.clone(), counts.clone()), "cut at {at}");
        }
    }
}

#[test]
fn one_line_samples_source_lines_and_other_fields() {
    let line = "    app 5 8.000002:  1 cycles:      1010 [unknown] ([unknown])\r\n";
    let (text, _) = rewritten(line, Style { srcline: true, no_offsets: true, ..Style::default() });
    assert_eq!(text, "    app 5 8.000002:  1 cycles:      1010 jit fn (a) (/d/jitted-5.so)\n  a b.js:7\r\n");
    let no_dso = rewritten("app 5 cycles: \n\t 1010 [unknown]\n", Style::default());
    assert_eq!(no_dso.0, "app 5 cycles: \n\t 1010 jit fn (a)+0x10\n");
    let late = rewritten("app 5 9.000000: c: \n\t 1010 [unknown] (//anon)\n", Style::default());
    assert_eq!(late.1.unresolved, 1);
}

#[test]
fn the_text_after_a_frame_stays() {
    let line = |from: &str, to: &str| {
        format!(
            "app 5 8.000002:  1 branches:uH:  1010 {from} => 1011 {to}\napp 5 8.000002:  1 c:  1012 {from} 0x1/0x2/P/-/-/0 \n"
        )
    };
    let (anon, file) = ("[unknown] (//anon)", "[unknown] (/bin/x (deleted))");
    let named = |offset| format!("jit fn (a)+{offset:#x} (/d/jitted-5.so)");
    let both = line(anon, anon);
    let after = both.replace(&format!("1010 {anon}"), &format!("1010 {}", named(0x10)));
    let after = after.replace(&format!("1011 {anon}"), &format!("1011 {}", named(0x11)));
    let after = after.replace(&format!("1012 {anon}"), &format!("1012 {}", named(0x12)));
    assert_eq!(rewritten(&both, Style::default()).0, after);
    let second = line(file, anon);
    assert_eq!(
        rewritten(&second, Style::default()).0,
        second.replace(&format!("1011 {anon}"), &format!("1011 {}", named(0x11)))
    );
    assert_eq!(rewritten(&both, Style { srcline: true, ..Style::default() }).0, both);
}

#[test]
fn relative_addresses_and_frames_of_nobody_are_left_and_counted() {
    let text = "app 5 8.000002:  1 c: \n\t 719e [unknown] (/memfd:x (deleted))\n\n\t 1010 [unknown] (//anon)\n";
    let (same, counts) = rewritten(text, Style::default());
    assert_eq!(same, text);
    assert_eq!(counts, Counts { unresolved: 2, relative: 1, process_unknown: 1, samples: 1, ..Counts::default() });
    let base = "app 5 8.000001: PERF_RECORD_MMAP2 5/5: [0x1000(0x1000) @ 0x7000 fe:00 1 0]: r-xp /memfd:x (deleted)\n";
    let named = rewritten(&(base.to_owned() + text), Style::default());
    assert!(named.0.contains("\t 719e jit fn (a)+0x19e (/d/jitted-5.so)"), "{}", named.0);
}

#[test]
fn names_that_are_not_loaded_are_requested() {
    assert_eq!(
        rewritten("app 77 8.000002:  1 c: \n\t 1 [unknown] (//anon)\n", Style::default()).0,
        "needs {Pid(77)} {}"
    );
}

#[test]
fn renaming_covers_frames_that_have_a_name() {
    let text = "app 5 8.000002:  1 c: \n\t 1010 old+0x1 (/tmp/perf-5.map)\n\t 1011 f (/bin/x)\n";
    let (text, counts) = rewritten(text, Style { rename: true, ..Style::default() });
    assert!(text.contains("\t 1010 jit fn (a)+0x10 (/d/jitted-5.so)\n\t 1011 f (/bin/x)"), "{text}");
    assert_eq!(counts.named, 1);
}

#[test]
fn renaming_covers_samples_of_one_line() {
    let style = Style { rename: true, ..Style::default() };
    for head in ["app 5 8.000002:  1 branch:u:  ", "app 5 8.000002: c: ", "app 5 8.000002: ", "app 5 c: "] {
        for symbol in ["[unknown]", "f(int, (a))+0x9", "Eval: main b (c)"] {
            let line = format!("{head} 1010 {symbol} (/tmp/perf-5.map)\n");
            let (text, counts) = rewritten(&line, style);
            assert_eq!((text, counts.named), (format!("{head} 1010 jit fn (a)+0x10 (/d/jitted-5.so)\n"), 1), "{line}");
        }
    }
    for rest in
        ["1010 f (/bin/x)", "1010 f (/tmp/perf-5.map) => 1011 g (/tmp/perf-5.map)", "1010 f", "1010 f (//anon) 0x1/0x2"]
    {
        let line = format!("app 5 8.000002:  1 c: {rest}\n");
        assert_eq!(rewritten(&line, style).0, line);
    }
}

#[test]
fn an_unknown_address_is_not_queried_again() {
    let stack = |seconds: u64| {
        format!("app 6 {seconds}.000002: 1 c: \n{}\n", "\t            1010 [unknown] (//anon)\n".repeat(3))
    };
    let (asked, text) = (std::sync::atomic::AtomicU64::new(0), stack(1) + &stack(2) + &stack(3));
    let namer = |wanted: FrameQuery<'_>| {
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        namer(wanted)
    };
    let rewriter = Rewriter { layout: &Layout::default(), style: Style::default(), namer: &namer };
    let found = rewriter.rewrite(text.as_bytes(), &RecordLineFacts::default(), &mut Memo::default(), &mut Vec::new());
    assert_eq!(found, Rewritten::Unchanged(Counts { unresolved: 9, samples: 3, ..Counts::default() }));
    // Once as the sampled address, once as a return address.
    assert_eq!(asked.into_inner(), 2);
}

#[test]
fn samples_that_repeat_become_what_each_becomes_alone() {
    let frames = [
        "\t            1000 [unknown] (//anon)\n\t             7f2 main (/bin/x)\n\t            1010 [unknown] (//anon)\n",
        "\t             100 main (/bin/x)\n\t            2000 [unknown] (//anon)\n\t            3000 [unknown] (//anon)\n",
        "\t             7f2 [unknown] (/bin/x)\n app 5 1.0: 1 c:\n",
        "\t            1000 [unknown] (//anon)\n app 6 1.0: 1 c: \n\t            1000 [unknown] (//anon)\n  a.js:7\n",
        "\t             7f2 main (/bin/x)\n",
        " ABI:2    AX:0x1    BX:0x2\n",
        "",
    ];
    let headers = [
        "app 5 3.0: 1 c: state=1\n",
        "app 5 3.0: 1 c: \n",
        "app 6 3.0: 1 c: \n",
        "app 5 9.5: 1 c: \n",
        "no header\n",
        "app 5/8 4.0: 1 c: \n",
    ];
    // All pairs of a header and frames.
    let samples = |at: usize| format!("{}{}\n", headers[at % 6], frames[at % 7]);
    let (mut text, mut expected, mut sum) = (String::new(), String::new(), Counts::default());
    for at in (0..42).chain(0..42).chain(0..42).chain(10..20) {
        let (named, counts) = rewritten(&samples(at), Style::default());
        text += &samples(at);
        expected += &named;
        sum += counts;
    }
    let (named, counts) = rewritten(&text, Style::default());
    assert_eq!(named, expected);
    assert_eq!(counts, sum);
    assert!(counts.named > 10 && counts.unresolved > 20 && counts.frameless > 0, "{counts:?}");
}

/// A frame's name depends on the time and on the owner of its sample, also if samples with the same frames came before.
#[test]
fn samples_with_the_same_frames_are_named_for_their_own_time_and_process() {
    let sample = |header: &str| format!("{header}\t            1010 [unknown] (//anon)\n\n");
    let (mut text, mut expected) = (String::new(), String::new());
    for round in 0..3 {
        for owner in ["5", "6", "7", "5/8", "6/8"] {
            for time in [0, 1, 3, 5, 7, 8, 9, 20] {
                let sample = sample(&format!("app {owner} {time}.{round:06}: 1 c: \n"));
                expected += &rewritten(&sample, Style::default()).0;
                text += &sample;
            }
        }
    }
    assert_eq!(rewritten(&text, Style::default()).0, expected);
    assert_ne!(expected, text);
}

#[test]
fn offsets_are_printed_where_the_text_prints_them() {
    let learnt = |text: &str| {
        let mut style = Style::default();
        style.detect(text.as_bytes());
        style.no_offsets
    };
    assert!(learnt("h\n\t 1 main (/x)\n\t 1 f (/x)\n"));
    assert!(!learnt("h\n\t 1 main+0x1 (/x)\n\t 2 f (/x)\n"));
    assert!(!learnt("h\n\t 1 [unknown] (/x)\n"));
}

#[test]
fn frames_of_files_are_named_where_the_mappings_are_shown() {
    let style = Style { native: true, ..Style::default() };
    let frames = "app 5 8.000002:  1 c: \n\t 120 [unknown] (/bin/x)\n\t 7f0000000280 [unknown] (/bin/x)\n\n";
    let (same, counts) = rewritten(frames, style);
    assert_eq!((same.as_str(), counts.native_left), (frames, 2));
    let map = "app 5 8.000001: PERF_RECORD_MMAP2 5/5: [0x7f0000000100(0x1000) @ 0x0 fe:00 1 0]: r-xp /bin/x\n";
    let (text, counts) = rewritten(&(map.to_owned() + frames), style);
    assert!(text.ends_with("\t 120 main+0x20 (/bin/x)\n\t 7f0000000280 main+0x80 (/bin/x)\n\n"), "{text}");
    assert_eq!((counts.native, counts.native_left), (2, 0));
    let later = map.to_owned() + "app 5 8.000002:  1 c: \n\t 510 [unknown] (/bin/x)\n\n";
    let needed = BTreeSet::from([(b"/bin/x".to_vec(), FrameAddr::Ip(Addr(0x510)))]);
    assert_eq!(rewritten(&later, style).0, format!("needs {{}} {needed:?}"));
    assert_eq!(rewritten(&later, Style::default()).0, later);
}

#[test]
fn the_addressing_of_files_follows_shared_libraries() {
    let learnt = |text: &str| {
        let mut style = Style::default();
        style.detect(text.as_bytes());
        style.file_addresses
    };
    assert_eq!(learnt("h\n\t 7f0000001234 f+0x1 (/lib/x.so.6)\n"), Some(FileAddresses::Absolute));
    assert_eq!(
        learnt("h\n\t 1234 f+0x1 (/lib/x.so.6)\n\t 7f0000000000 [unknown] (//anon)\n"),
        Some(FileAddresses::Relative)
    );
    assert_eq!(learnt("h\n\t 1234 f+0x1 (/lib/x.so)\n\t 7f0000000000 g (/lib/y.so)\n"), None);
    assert_eq!(learnt("h\n\t 1234 f+0x1 (/bin/x)\n"), None);
}

/// A stack in perf's layout, given the address and the rest of each frame.
fn stack(header: &str, frames: &[(u64, &str)]) -> String {
    let frames = frames.iter().map(|(addr, rest)| format!("\t{addr:16x} {rest}\n"));
    format!("{header}\n{}\n", frames.collect::<String>())
}

#[test]
fn frames_below_each_other_are_named_each_for_itself() {
    const ANON: &str = "[unknown] (//anon)";
    const FILE: &str = "[unknown] (/memfd:x)";
    let again = [(0x1010, ANON), (0x1008, ANON), (0x1008, ANON)];
    let map = "app 5 8.000004: PERF_RECORD_MMAP2 5/5: [0x1800(0x800) @ 0x1000 fe:00 1 0]: r-xp /memfd:x\n";
    let text = [
        // All but the first are return addresses. The functions that end at 0x1000 and those at 0x3000 are unknown.
        stack(
            "app 5 8.000002: 1 c: ",
            &[(0x1000, ANON), (0x1000, ANON), (0x1008, ANON), (0x3000, ANON), (0x1008, ANON)],
        ),
        stack("app 5 8.000003: 1 c: ", &again),
        stack("app 6 8.000004: 1 c: ", &again),
        stack("app 5 9.000000: 1 c: ", &again),
        // The same numbers mean other places in a file.
        map.to_owned(),
        stack("app 5 8.000005: 1 c: ", &[(0x1010, FILE), (0x1008, FILE), (0x1008, FILE)]),
    ];
    let named = |offset| format!("jit fn (a)+{offset:#x} (/d/jitted-5.so)");
    let (at0, at8, at10, in8, in10) = (named(0), named(8), named(0x10), named(0x808), named(0x810));
    let expected = [
        stack(
            "app 5 8.000002: 1 c: ",
            &[(0x1000, &at0), (0x1000, ANON), (0x1008, &at8), (0x3000, ANON), (0x1008, &at8)],
        ),
        stack("app 5 8.000003: 1 c: ", &[(0x1010, &at10), (0x1008, &at8), (0x1008, &at8)]),
        text[2].clone(),
        text[3].clone(),
        text[4].clone(),
        stack("app 5 8.000005: 1 c: ", &[(0x1010, &in10), (0x1008, &in8), (0x1008, &in8)]),
    ];
    let (after, counts) = rewritten(&text.concat(), Style::default());
    assert_eq!(after, expected.concat());
    assert_eq!((counts.named, counts.unresolved), (9, 8));
}

#[test]
fn blanks_for_a_tab_and_offsets_in_objects_change_no_name() {
    let (named, counts) = rewritten(TEXT, Style::default());
    let (expanded, of_expanded) = rewritten(&TEXT.replace('\t', "        "), Style::default());
    assert_eq!((expanded, of_expanded), (named.replace('\t', "        "), counts.clone()));
    let unindented: String = TEXT.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let wanted: String = named.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    assert_eq!(rewritten(&unindented, Style::default()), (wanted, counts.clone()));
    let with_offset = TEXT.replace("(//anon)", "(//anon+0x7)").replace("-5.map)", "-5.map+0x1fff)");
    let (text, of_offsets) = rewritten(&with_offset, Style::default());
    assert_eq!(of_offsets, counts);
    assert!(text.contains("1000 jit fn (a)+0x0 (/d/jitted-5.so)"), "{text}");
}

#[test]
fn an_offset_in_the_object_names_frames_of_files() {
    let style = Style { native: true, ..Style::default() };
    let text = "app 5 8.000002:  1 c: \n\t 7f0000000120 [unknown] (/bin/x+0x120)\n\n";
    let (named, counts) = rewritten(text, style);
    assert_eq!((counts.native, counts.native_left), (1, 0));
    assert!(named.contains("7f0000000120 main+0x20 (/bin/x)"), "{named}");
}

#[test]
fn samples_without_empty_lines_between_them_belong_to_the_nearest_header() {
    let frame = "\t            1000 [unknown] (//anon)\n ABI:2    AX:0x1\n";
    let headers =
        ["app 6 8.000002: 1 c: \n", "app 5 8.000002: 1 c: \n", "app 6 8.000002: 1 c: \n", "app 5 \n", "app \n"];
    let text: String = headers.iter().map(|header| format!("{header}{frame}")).collect();
    for text in [text.clone(), format!("\n\n{text}\n"), text + "\n|5   a += b;\n"] {
        let (named, counts) = rewritten(&text, Style::default());
        assert_eq!((counts.named, counts.unresolved, counts.process_unknown), (2, 3, 1), "{named}");
        for (at, header) in headers.iter().enumerate() {
            let of_header = named.match_indices(header).nth(usize::from(at == 2)).unwrap().0;
            let behind = &named[of_header + header.len()..];
            assert_eq!(behind.lines().next().unwrap().contains("jit fn"), header.starts_with("app 5"), "{named}");
        }
    }
}

const HEADER: &str = "php 27930 35804.338135:    2004008 cpu-clock: \n";
const FRAME: &str = "\t            2234 f+0x54 (/x)\n";

/// The number of samples in a text, and how many of them have no frames.
fn counted(text: &str) -> (u64, u64) {
    let counts = rewritten(text, Style::default()).1;
    (counts.samples, counts.frameless)
}

#[test]
fn samples_whose_header_nothing_follows_are_frameless() {
    let record = "php 27930 35804.338135: PERF_RECORD_COMM: php:27930/27930\n";
    let texts = [
        (format!("{HEADER}{FRAME}\n{HEADER}\n{HEADER}{FRAME}{FRAME}\n"), (3, 1)),
        (format!("{record}{HEADER}\n"), (1, 1)),
        (format!("{HEADER}{FRAME}  a.c:\n\n"), (1, 0)),
        // Each sample is one line with its only frame.
        ("php 27930 35804.3381:  1 c:  2234 f (/x)\n".repeat(3), (0, 0)),
        ("# captured on: \n#\n#\n\n".to_owned(), (0, 0)),
        (String::new(), (0, 0)),
    ];
    for (text, expected) in texts {
        assert_eq!(counted(&text), expected, "{text}");
        assert_eq!(counted(&text.replace('\n', "\r\n")), expected, "{text}");
        assert_eq!(counted(&text.replace('\t', "        ")), expected, "{text}");
    }
}

#[test]
fn the_count_does_not_depend_on_where_the_text_is_cut() {
    let text = format!("{HEADER}{FRAME}\n{HEADER}\n{HEADER}\n{HEADER}{FRAME}\n");
    for len in 0..=text.len() {
        let (first, second) = text.split_at(cut(&text.as_bytes()[..len], &Layout::default()));
        let [first, second] = [counted(first), counted(second)];
        assert_eq!((first.0 + second.0, first.1 + second.1), (4, 2), "cut at {len}");
    }
}

#[test]
fn frames_without_symbols_are_named() {
    let header = "app 5/5 8.000002: c: \n";
    for (rest, named) in [
        (" (//anon)", " jit fn (a)+0x10 (/d/jitted-5.so)"),
        (" ([unknown])", " jit fn (a)+0x10 (/d/jitted-5.so)"),
        ("", " jit fn (a)+0x10"),
    ] {
        for indent in ["\t", "        "] {
            let text = format!("{header}{indent}            1010{rest}\n{indent}             7f2 (/bin/x)\n\n");
            let expected = text.replace(&format!("1010{rest}"), &format!("1010{named}"));
            assert_eq!(rewritten(&text, Style::default()).0, expected);
        }
    }
    let one_line = "app 5/5 8.000002: c:             1010 (//anon)\n";
    assert_eq!(
        rewritten(one_line, Style::default()).0,
        one_line.replace(" (//anon)", " jit fn (a)+0x10 (/d/jitted-5.so)")
    );
    // Not every address in a text without symbols and objects is JIT code.
    let text = format!("{header}\t            5010\n\n");
    assert_eq!(rewritten(&text, Style::default()), (text, Counts { samples: 1, ..Counts::default() }));
}

#[test]
fn files_whose_path_is_unknown_may_hold_jit_code() {
    for object in ["//toolong", "//enomem", "anon_inode:[perf_event]"] {
        let map = format!("app 5 8.000001: PERF_RECORD_MMAP2 5/5: [0x1000(0x1000) @ 0 fe:00 1 0]: r-xp {object}\n");
        let text = format!("{map}app 5 8.000002: c: \n\t 1010 [unknown] ({object})\n\t 9010 [unknown] ({object})\n\n");
        let named = text.replace(&format!("1010 [unknown] ({object})"), "1010 jit fn (a)+0x10 (/d/jitted-5.so)");
        for native in [false, true] {
            let (text, counts) = rewritten(&text, Style { native, ..Style::default() });
            assert_eq!((text, counts.named, counts.unresolved, counts.native_left), (named.clone(), 1, 0, 0));
        }
    }
}

#[test]
fn frames_alone_on_their_lines_are_no_return_addresses() {
    // Nothing else shows the process.
    let frame = |addr: u64, rest: &str| format!(" {addr:16x} {rest}\n");
    let text = frame(0x1000, "[unknown] (/tmp/perf-5.map)").repeat(2) + &frame(0x1000, "f (/bin/x)");
    let expected = frame(0x1000, "jit fn (a)+0x0 (/d/jitted-5.so)").repeat(2) + &frame(0x1000, "f (/bin/x)");
    assert_eq!(rewritten(&text, Style::default()).0, expected);
}

#[test]
fn the_indentation_of_a_document_stays() {
    let (named, counts) = rewritten(TEXT, Style::default());
    let indented = |text: &str, indent: &str| -> String {
        text.split_inclusive('\n')
            .map(|line| if line == "\n" { line.to_owned() } else { format!("{indent}{line}") })
            .collect()
    };
    for indent in ["\t", "\t\t", "    ", "  \t"] {
        assert_eq!(rewritten(&indented(TEXT, indent), Style::default()), (indented(&named, indent), counts.clone()));
    }
    let one_line = "   app 5 8.000002:  1 cycles:      1010 [unknown] ([unknown])\n";
    let named = rewritten(one_line, Style::default());
    assert_eq!(rewritten(&format!("\t{one_line}"), Style::default()), (format!("\t{}", named.0), named.1));
}
