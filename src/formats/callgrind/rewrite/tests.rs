//! Tests both passes on small texts, with JIT functions `f`, `g` and `h` of 0x100 bytes each from 0x1000 on.

use super::*;
use crate::formats::callgrind::grammar::{CHUNK_SIZE, Columns, Line, LineReader, PositionDecoder, chunks};

struct Code;

const NAMES: [&[u8]; 3] = [b"f", b"g", b"h"];

impl JitFunctions for Code {
    fn find_range(&self, addr: u64) -> CodeLookup {
        let start = addr & !0xff;
        let entry = (0x1000..0x1300).contains(&addr).then(|| (start as usize - 0x1000) / 0x100);
        CodeLookup { range: start..start.saturating_add(0x100), entry }
    }

    fn name(&self, entry: usize) -> &[u8] {
        NAMES[entry]
    }

    fn file(&self, entry: usize) -> &[u8] {
        if entry == 0 { b"f.js" } else { b"???" }
    }

    fn object(&self) -> &[u8] {
        b"jit.elf"
    }

    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>> {
        let line = |addr, file, line| CodeLine { addr, file, line };
        if entry == 0 { vec![line(0x1000, b"f.js", 7), line(0x1010, b"inlined.js", 3)] } else { Vec::new() }
    }
}

const HEAD: &str = "version: 1\ncreator: callgrind-3.19.0\npositions: instr line\nevents: Ir\n\n";

/// The rewritten text after the header.
fn rewritten(body: &str) -> (String, RewriteStats) {
    rewritten_in_chunks(body, CHUNK_SIZE)
}

/// Like [`rewritten`], with chunks of about `size` bytes.
fn rewritten_in_chunks(body: &str, size: usize) -> (String, RewriteStats) {
    let text = format!("{HEAD}{body}");
    let mut index = FileIndex::default();
    chunks(text.as_bytes(), size).for_each(|chunk| index.append(scan_chunk(&chunk)));
    let (mut rewriter, mut out) = (Rewriter::new(&index, &Code), Vec::new());
    for chunk in chunks(text.as_bytes(), size) {
        rewriter.write(parse_chunk(&chunk, &index, &Code), &mut out).unwrap();
    }
    (String::from_utf8(out).unwrap().strip_prefix(HEAD).unwrap().to_owned(), rewriter.stats)
}

#[test]
fn a_callee_is_replaced_with_its_object_and_file_and_others_stay() {
    // No code covers 0x9000.
    let (text, stats) = rewritten(
        "ob=(1) real.so\nfl=(1) a.c\nfn=(1) main\n0x10 4 1\n\
         cob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x0000000000001000\ncalls=2 0x1000 0\n* * 30\n\
         cob=(2)\ncfi=(2)\ncfn=(3) 0x0000000000009000\ncalls=1 0x9000 0\n* * 5\n\n\
         ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 20\n+20 0 10\n\nfn=(3)\n0x9000 0 5\n\n\
         ob=(1)\nfl=(1)\nfn=(4) other\n0x80 9 7\n",
    );
    let expected = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) main\n0x10 4 1\ncob=(2) ???\ncfi=(2) ???\ncob=(3) jit.elf\n\
         cfi=(3) f.js\ncfn=(5) f\ncalls=2 0x1000 0\n* * 30\ncob=(2)\ncfi=(2)\n\
         cfn=(3) 0x0000000000009000\ncalls=1 0x9000 0\n* * 5\n\n\
         ob=(2)\nfl=(2)\nob=(3)\nfl=(3)\nfn=(5)\n0x1000 7 20\nfi=(4) inlined.js\n+20 -4 10\n\n\
         ob=(2)\nfl=(2)\nfn=(3)\n0x9000 0 5\n\n\
         ob=(1)\nfl=(1)\nfn=(4) other\n0x80 9 7\n";
    assert_eq!(text, expected);
    assert_eq!((stats.blocks, stats.split, stats.named_cost, stats.unnamed_cost), (1, 0, 30, 5));
}

#[test]
fn a_block_of_several_functions_is_split_and_keeps_its_inclusive_cost() {
    let (text, stats) = rewritten(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000'2\n0x1000 0 5\n+4 0 1\n\
         0x1100 0 3\ncfn=(2) 0x0000000000001200\ncalls=1 0x1200 0\n* * 40\n0x9000 0 2\n\n\
         fn=(2)\n0x1200 0 40\n",
    );
    let expected = "ob=(1) ???\nfl=(1) ???\nob=(2) jit.elf\nfl=(2) f.js\nfn=(3) f'2\n0x1000 7 5\n+4 * 1\n\
         cfi=(3) ???\ncfn=(4) g'2\ncalls=3 0x1100 -7\n-4 * 43\ncob=(1)\ncfi=(1)\n\
         cfn=(5) [not in map] 0x0000000000001000'2\ncalls=2 0x9000 0\n0x1000 7 2\n\n\
         fl=(3)\nfn=(4)\n0x1100 0 3\ncfn=(6) h\ncalls=1 0x1200 0\n* 0 40\n\n\
         ob=(1)\nfl=(1)\nfn=(5)\n0x9000 0 2\n\n\
         ob=(2)\nfl=(3)\nfn=(6)\n0x1200 0 40\n\n";
    assert_eq!(text, expected);
    assert_eq!((stats.blocks, stats.split, stats.synthetic_calls), (2, 1, 2));
    assert_eq!((stats.named_cost, stats.unnamed_cost, stats.functions.len()), (49, 2, 3));
}

#[test]
fn raw_callers_are_replaced_where_they_are_surely_addresses_of_memory() {
    // 0x1200 only occurs among callers, so it may be an address in some object's file.
    let (text, _) = rewritten(
        "ob=(1) real.so\nfl=(1) a.c\nfn=(1) memcpy'0x0000000000001000'0x0000000000001200\n0x10 4 1\n\
         cfn=(3) free'0x0000000000001000\ncalls=1 0x30 0\n* * 2\n\n\
         ob=(2) ???\nfl=(2) ???\nfn=(2) 0x0000000000001000'main'2\n0x1000 0 20\n",
    );
    let expected = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) memcpy'f'0x0000000000001200\n0x10 4 1\ncfn=(3) free'f\n\
         calls=1 0x30 0\n* * 2\n\n\
         ob=(2) ???\nfl=(2) ???\nob=(3) jit.elf\nfl=(3) f.js\nfn=(4) f'main'2\n0x1000 7 20\n\n";
    assert_eq!(text, expected);
}

#[test]
fn jumps_into_code_that_became_another_function_report_it() {
    let (text, _) = rewritten(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000\n0x1000 0 5\n\
         jcnd=3/4 0x1100 0\n* *\njump=2 0x1000 0\n* *\n0x1100 0 1\n",
    );
    let expected = "ob=(1) ???\nfl=(1) ???\nob=(2) jit.elf\nfl=(2) f.js\nfn=(2) f\n0x1000 7 5\njfi=(3) ???\n\
         jfn=(3) g\njcnd=3/4 0x1100 -7\n* *\njump=2 * -7\n* *\ncfi=(3)\ncfn=(3)\ncalls=1 0x1100 -7\n\
         * * 1\n\n\
         fl=(3)\nfn=(3)\n0x1100 0 1\n\n";
    assert_eq!(text, expected);
}

#[test]
fn jumps_out_of_jit_code_report_the_function_that_they_reach() {
    let (text, _) = rewritten(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000\n0x1000 0 5\n\
         jump=2 0x9000 0\n* *\n0x9000 0 1\njump=1 0x1000 0\n* *\njump=1 0x9000 0\n* *\n",
    );
    let expected = "ob=(1) ???\nfl=(1) ???\nob=(2) jit.elf\nfl=(2) f.js\nfn=(2) f\n0x1000 7 5\njfi=(1)\n\
         jfn=(3) [not in map] 0x0000000000001000\njump=2 0x9000 -7\n* *\ncob=(1)\ncfi=(1)\ncfn=(3)\n\
         calls=1 0x9000 -7\n* * 1\n\n\
         ob=(1)\nfl=(1)\nfn=(3)\n0x9000 0 1\njfi=(2)\njfn=(2)\njump=1 0x1000 0\n* 0\njump=1 * 0\n* 0\n\n";
    assert_eq!(text, expected);
}

#[test]
fn lines_are_written_shorter_after_the_first_relative_one() {
    let of_g = |lines: &str| format!("ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001100\n{lines}\n");
    let head = "ob=(1) ???\nfl=(1) ???\nob=(2) jit.elf\nfl=(2) ???\nfn=(2) g\n";
    let same = "0x1100 3 5\n0x1104 4 6 7\n0x1150 12 6\n";
    assert_eq!(rewritten(&of_g(same)).0, format!("{head}{same}\n"));
    let (text, stats) = rewritten(&of_g("0x1100 3 5\n0x1104 4 6 7\n+3 * 1\n0x1190  0x5 6\n+1 5 9\n"));
    assert_eq!(text, format!("{head}0x1100 3 5\n0x1104 4 6 7\n+3 * 1\n0x1190 +1 6\n+1 * 9\n\n"));
    assert_eq!((stats.named_cost, stats.functions), (27, [1].into()));
}

#[test]
fn code_in_functions_of_known_objects_is_counted_and_left() {
    let body = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) trampoline\n0x10 4 1\n+4 4 1\n0x1104 0 3\n+4 0 4\n\
                cfn=(2) leaf\ncalls=1 0x80 0\n0x1108 0 50\n\n\
                fn=(3) embedded\n0x1200 4 9\n\nfn=(4) another\n0x20 4 1\n0x1204 4 1\n";
    let (text, stats) = rewritten(body);
    assert_eq!(text, body);
    assert_eq!(stats.misattributed.total(), (1, 7), "g; h is where a function of the object itself begins");
}

#[test]
fn a_file_is_rewritten_alike_however_it_is_cut() {
    let body = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) main\n0x10 4 1\ncob=(2) ???\ncfi=(2) ???\n\
        cfn=(2) 0x0000000000001000\ncalls=2 0x1000 0\n* * 30\n\n\
        ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 20\n0x1100 0 10\n\nfn=(3) 0x0000000000009000\n0x9000 0 5\nfi=(1)\n+1 2 3\n\n\
        fn=(2)\n0x1000 0 20\n\nob=(1)\nfl=(1)\nfn=(4) other\n0x80 9 7\n\n\
        part: 2\npositions: instr line\nevents: Ir\nob=(2)\nfn=(2)\n0x1000 0 20\n\nfn=(5) 0x0000000000001210\n0x1210 0 1\n";
    let whole = rewritten(body).0;
    assert!(whole.contains("cfn=(6) f\n") && whole.contains("fn=(8) h\n"), "{whole}");
    for size in [1, 40, 90, 200] {
        assert_eq!(rewritten_in_chunks(body, size).0, whole, "size {size}");
    }
}

#[test]
fn ids_mean_what_they_were_last_defined_as() {
    let first = "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001200\n0x1200 0 3\n\n";
    let later = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) 0x0000000000001200\n0x1200 0 3\n\nfn=(2) name\n1 2 2\n\
        cfn=(1)\ncalls=1 0x1200 0\n+1 * 3\n";
    let (text, stats) = rewritten(&[first, later].concat());
    assert!(text.starts_with("ob=(1) ???\nfl=(1) ???\nob=(2) jit.elf\n") && text.ends_with(later), "{text}");
    assert_eq!((stats.named_cost, stats.unnamed_cost), (3, 0));
}

#[test]
fn a_known_object_s_function_is_not_named_after_a_torn_call() {
    let body = "ob=(1) real.so\nfl=(1) a.c\nfn=(1) main\n0x10 4 1\ncob=(2) ???\ncfn=(2) 0x0000000000001000\n\
        calls=1 0x1000 0\ncfn=(3) 0x0000000000001200\ncalls=1 0x1200 0\n* * 5\n";
    let expected = body.replace("cfn=(2) 0x0000000000001000", "cob=(3) jit.elf\ncfi=(2) f.js\ncfn=(4) f");
    assert_eq!(rewritten(body).0, expected);
}

#[test]
fn lines_of_any_form_keep_their_position_and_costs() {
    let head = "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001100\n0x1100 5 1\n";
    for line in [
        "0x01101 1 1",
        "0x110A 1 1",
        "0x1101  1 1",
        "0x1101 1",
        "0x1101 1 ",
        "0x1101 1 1 ",
        "0x1101 01 1",
        "0x1101 1 1\r",
        "0x1101 1 0x5",
        "0x1101 1 12345678901234",
        "+100 1 1",
        "+0 1 1",
        "+04 1 1",
        "-0 * 1",
        "4353 1 1",
        "* +0x10 1 -7",
        "0x1101 1 -5",
        "0x1101 1 .",
    ] {
        for end in ["\n", ""] {
            let (text, stats) = rewritten(&format!("{head}{line}{end}"));
            assert_eq!(stats.skipped.count(), 0, "{line:?}");
            let [before, after] = [&format!("0x1100 5 1\n{line}"), &text].map(|text| {
                let mut decoder = PositionDecoder::new(Columns::INSTR_LINE, false);
                let lines = LineReader::new(text.as_bytes(), &mut decoder);
                let costs = lines.filter_map(|(_, line)| match line {
                    Ok(Line::SelfCost(cost)) => Some((cost.position.unwrap(), cost.costs.to_vec())),
                    _ => None,
                });
                costs.collect::<Vec<_>>()
            });
            assert_eq!((before.len(), &before), (2, &after), "{text}");
        }
    }
    for line in ["0x11111111111111111 1 1", "-4354 1 1", "+x 1 1", "0x1101 y 1", "0x1101 1 1.5"] {
        let body = format!("{head}{line}\n");
        let (text, stats) = rewritten(&body);
        assert_eq!((text, stats.skipped.count()), (body, 1), "a block that isn't understood is copied");
    }
}

#[test]
fn code_in_functions_of_known_objects_is_found_anywhere_in_a_block() {
    let low = "0x10 12 345\n".repeat(50);
    for (before, after) in [(&low[..], ""), ("0x11 1 1\n", &low[..]), (&low[..], &low[..])] {
        for line in ["0x1104 0 7", "0x001104 0 7"] {
            let body = format!("ob=(1) real.so\nfl=(1) a.c\nfn=(1) 0x0000000000001000\n{before}{line}\n{after}");
            let (text, stats) = rewritten(&body);
            assert_eq!((text, stats.misattributed.total()), (body, (1, 7)), "{line}");
        }
    }
}
