//! Texts before and after rewriting.

use super::*;
use crate::model::Nanos;
use crate::records::perf_script::known::FileAddresses;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Names every address of process 5 between 0x1000 and 0x2000 `jit`, up to the time 9 s.
fn namer(wanted: Wanted<'_>) -> Answer<'static> {
    if let Some(file) = wanted.file {
        return native(file, wanted.addr);
    }
    let at = wanted.addr.for_lookup().0;
    let named = Named {
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
    let named = |at: u64| Named {
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
    let mut out = Vec::new();
    let records = State::default().advance(text.as_bytes());
    let block = (text.as_bytes(), &*records);
    match rewrite(block, &State::default(), style, &namer, &mut Memo::default(), &mut out) {
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
        let (first, second) = TEXT.as_bytes().split_at(at);
        let mut state = State::default();
        let mut out = Vec::new();
        let mut sum = Counts::default();
        let mut memo = Memo::default();
        for block in [first, second] {
            let mut changed = Vec::new();
            let before = state.clone();
            let records = state.advance(block);
            let named = rewrite((block, &records), &before, Style::default(), &namer, &mut memo, &mut changed);
            let (bytes, counts) = match named {
                Rewritten::Changed(counts) => (changed, counts),
                Rewritten::Unchanged(counts) => (block.to_vec(), counts),
                Rewritten::Needs(_) => unreachable!("all processes are loaded"),
            };
            out.extend_from_slice(&bytes);
            sum += counts;
        }
        // If the line above is cut off, a frame no longer knows that it is a return address. This matters for 0x2000
        // and 0x1000 in the second sample, which are right after the end and at the start of their function.
        if first.ends_with(b"\n\n") || first.is_empty() {
            assert_eq!((String::from_utf8(out).unwrap(), sum), (whole.clone(), counts.clone()), "cut at {at}");
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
    assert_eq!(counts, Counts { unresolved: 2, relative: 1, nobodys: 1, samples: 1, ..Counts::default() });
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
    let namer = |wanted: Wanted<'_>| {
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        namer(wanted)
    };
    let (mut memo, mut out) = (Memo::default(), Vec::new());
    let found = rewrite((text.as_bytes(), &[]), &State::default(), Style::default(), &namer, &mut memo, &mut out);
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
        "",
    ];
    let headers =
        ["app 5 3.0: 1 c: \n", "app 6 3.0: 1 c: \n", "app 5 9.5: 1 c: \n", "no header\n", "app 5/8 4.0: 1 c: \n"];
    let samples = |at: usize| format!("{}{}\n", headers[at * 7 % 5], frames[at * 11 % 6]);
    let (mut text, mut expected, mut sum) = (String::new(), String::new(), Counts::default());
    for at in (0..30).chain(0..30).chain(10..20) {
        // The first sample of a block has no empty line before it, so one is added.
        let (named, counts) = rewritten(&format!("\n\n{}", samples(at)), Style::default());
        text += &samples(at);
        expected += &named[2..];
        sum += Counts { samples: counts.samples - 1, ..counts };
    }
    sum.samples += 1;
    let (named, counts) = rewritten(&format!("\n\n{text}"), Style::default());
    assert_eq!(&named[2..], expected);
    assert_eq!(counts, sum);
    assert!(counts.named > 20 && counts.unresolved > 20 && counts.frameless > 0, "{counts:?}");
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
fn blocks_end_with_samples_if_they_can() {
    assert_eq!(cut(b"a\n\nb\nc"), 3);
    assert_eq!(cut(b"a\r\n\r\nb"), 5);
    assert_eq!(cut(b"a\nb"), 2);
    assert_eq!(cut(b"endless"), 7);
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
    assert_eq!(rewritten(&later, style).0, format!("needs {{}} {:?}", BTreeSet::from([(b"/bin/x".to_vec(), 0x510)])));
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
        assert_eq!((counts.named, counts.unresolved, counts.nobodys), (2, 3, 1), "{named}");
        for (at, header) in headers.iter().enumerate() {
            let of_header = named.match_indices(header).nth(usize::from(at == 2)).unwrap().0;
            let behind = &named[of_header + header.len()..];
            assert_eq!(behind.lines().next().unwrap().contains("jit fn"), header.starts_with("app 5"), "{named}");
        }
    }
}
