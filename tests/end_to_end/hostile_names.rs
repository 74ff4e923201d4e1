//! Names that do harm where they are obeyed instead of shown, in every command and every format that it writes.
//!
//! The same is run with names that do nothing, of the same number: what the two outputs are made of must be the same.

use crate::support;
use crate::support::scene;

use base64::Engine;
use roxmltree::{Document, Node, ParsingOptions};
use scene::{AT, PID, Scene, said};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Command, Output};
use support::bytes::Order;
use support::jitdump::{JitDump, Line, Load};
use support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};

/// The kind of an output, and so the conditions that hold for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Read by people: nothing that is obeyed, and no name longer than can be read.
    Text,
    /// Opened by spreadsheets: no cell is a formula.
    Csv,
    /// SVG or HTML: names make no elements and no attributes, and are not longer than can be read.
    Picture,
    /// HTML with packed data: the same for the page, and for the packed data.
    Page,
    /// Names are what they were.
    Json,
    /// Text for other programs: names keep their bytes, and make no lines.
    Lines,
    /// For other programs.
    Binary,
    /// Reports of no input.
    Nameless,
}

use Kind::{Binary, Csv, Json, Lines, Nameless, Page, Picture, Text};

/// Every command with every format that it writes: [`every_command_and_format_is_tried`] finds what is missing.
const RUNS: &[(Kind, &str)] = &[
    (Binary, "inject -v -i perf.data -o -"),
    (Lines, "callgrind -v callgrind.out --jitdump jit-999077.dump -o -"),
    (Lines, "collapse -v perf.data"),
    (Lines, "collapse stacks"),
    (Lines, "collapse trace.json"),
    (Picture, "flamegraph -v perf.data"),
    (Picture, "flamegraph --style page --jit-names pretty perf.data"),
    (Picture, "flamegraph --flamechart perf.data"),
    (Picture, "flamegraph --diff before.data perf.data"),
    (Picture, "flamegraph stacks"),
    (Picture, "flamegraph --style inferno perf.data"),
    (Picture, "flamegraph --style inferno stacks"),
    (Picture, "flamegraph trace.json"),
    (Text, "summary perf.data"),
    (Text, "report -v perf.data"),
    (Text, "report --to text stacks"),
    (Text, "report --sort module,symbol,source perf.data"),
    (Text, "report --diff before.data perf.data"),
    (Text, "report trace.json"),
    (Csv, "report --to csv perf.data"),
    (Csv, "report --to csv stacks"),
    (Json, "report --to json perf.data"),
    (Lines, "script perf.data"),
    (Lines, "script text"),
    (Text, "stats --to text trace.json"),
    (Csv, "stats --to csv trace.json"),
    (Json, "stats --to json trace.json"),
    (Lines, "export --to folded perf.data"),
    (Lines, "export --to callgrind perf.data"),
    (Csv, "export --to csv perf.data"),
    (Csv, "export --to csv stacks"),
    (Json, "export --to json perf.data"),
    (Json, "export --to firefox perf.data"),
    (Json, "export --to speedscope perf.data"),
    (Json, "export --to chrome perf.data"),
    (Picture, "export --to flamegraph perf.data"),
    (Binary, "export --to pprof perf.data"),
    (Binary, "export --to otlp perf.data"),
    (Json, "export --to otlp-json perf.data"),
    #[cfg(feature = "tables")]
    (Binary, "export --to parquet perf.data"),
    (Lines, "merge --to folded stacks stacks"),
    (Lines, "merge --to callgrind perf.data perf.data"),
    (Csv, "merge --to csv stacks stacks"),
    (Json, "merge --to json stacks stacks"),
    (Json, "merge --to firefox stacks stacks"),
    (Json, "merge --to speedscope stacks stacks"),
    (Json, "merge --to chrome stacks stacks"),
    (Picture, "merge --to flamegraph stacks stacks"),
    (Binary, "merge --to pprof stacks stacks"),
    (Binary, "merge --to otlp stacks stacks"),
    (Json, "merge --to otlp-json stacks stacks"),
    #[cfg(feature = "tables")]
    (Binary, "merge --to parquet stacks stacks"),
    (Binary, "pack perf.data -o -"),
    (Text, "pack --list perf.data"),
    (Text, "doctor -v perf.data"),
    (Text, "doctor --to text callgrind.out"),
    (Csv, "doctor --to csv perf.data"),
    (Json, "doctor --to json perf.data"),
    (Text, "annotate --limit 100 perf.data"),
    (Text, "annotate --to text --whole --limit 100 --syntax intel perf.data"),
    (Json, "annotate --to json --limit 100 perf.data"),
    (Page, "view --no-open -o - perf.data"),
    (Page, "view --no-open -o - --diff trace.json trace.json"),
    (Nameless, "record"),
    (Nameless, "runtimes"),
    (Nameless, "formats"),
    (Nameless, "inputs"),
    (Nameless, "completions bash"),
    (Nameless, "man"),
];

/// A value of one of these changes what a command writes.
const FORMAT_FLAGS: &[&str] = &["format", "style", "to"];

/// Names are at most so long where they are read; what people read has a few more beside them in a line.
const LONGEST: usize = 4096;

/// Long enough to be cut, and for every command to be tried in some seconds.
const LONG: usize = 100_000;

fn hostile_names(longest: usize) -> Vec<Vec<u8>> {
    let c1: String = ('\u{80}'..='\u{9f}').collect();
    let texts = [
        "</script><img src=x onerror=alert(1)>",
        "</metadata></style></title></svg><svg onload=alert(1)><script>alert(1)</script>",
        "\"' onmouseover='alert(1)' x=\"",
        "&lt;b&gt;&#x3c;i&#62;&amp;&quot;",
        "]]><!-- --!><?php ?><![CDATA[<!DOCTYPE x [<!ENTITY a \"b\">]>&a;",
        "javascript:alert(1)//${{7*7}}${jndi:ldap://x}%s%n`reboot`",
        "bidi\u{202e}gnp.\u{2066}exe\u{200f}\u{61c}\u{206e}",
        "terminal\x1b]0;title\x07\x1b[2J\x1b[8m\x1bPq\x1b\\\u{9b}31m\u{9d}0;x\u{9c}",
        "no characters\u{fffe}\u{ffff}\u{feff}\u{1fffe}\u{fdd0}\u{fff9}",
        "tags\u{e0001}\u{e0041}\u{e007f}",
        "lines\nfn=(1) x\n\r\nmain 7\n\u{2028}\u{2029}\u{b}\u{c}\u{85}",
        "\ttab\tbed",
        "=cmd|'/C calc'!A0",
        "@SUM(1+1)*cmd|' /C calc'!A0",
        "+1+1",
        "-1+1",
        " =1+1",
        "\t=1+1",
        "\r=1+1",
        "＝1+1",
        "a\",=1+1,\"",
        "a;=1+1;-f",
        "(7) x",
        "{\"a\":\"b\\\"}",
        "../../../../etc/passwd\\..\\x",
        "[unknown]",
        "e\u{301}\u{302}\u{303}\u{304}",
    ];
    let mut names: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    names.push((1..0x20).chain([0x7f]).collect()); // C0
    names.push(c1.into_bytes());
    names.push(b"no UTF-8 \xff\xfe \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \x9b2J \xc3".to_vec());
    names.push([&b"marks"[..], "\u{301}".repeat(5_000).as_bytes()].concat());
    names.push([&b"blanks"[..], " ".repeat(5_000).as_bytes(), b"end"].concat());
    names.push([&b"<long>"[..], "<\u{202e}\x1b[2J&".repeat(2_000).as_bytes()].concat());
    names.push([&b"longest"[..], "a".repeat(longest).as_bytes()].concat());
    names
}

/// As many that are harmless.
fn harmless_names() -> Vec<Vec<u8>> {
    (0..hostile_names(0).len()).map(|number| format!("harmless{number:02}").into_bytes()).collect()
}

/// A directory with inputs in which functions, files, processes, events and arguments are called so.
fn scene(names: &[Vec<u8>]) -> Scene {
    let scene = Scene::new();
    let dump = scene.path(&format!("jit-{PID}.dump"));
    scene.write(&format!("jit-{PID}.dump"), dump_of(names));
    for name in ["before.data", "perf.data"] {
        scene.write(name, recording(names, dump.to_str().unwrap()).into_bytes(Mode::File));
    }
    scene.write("stacks", folded(names));
    scene.write("trace.json", trace(names));
    scene.write("text", script(names));
    scene.write("callgrind.out", callgrind(names));
    scene
}

fn address(number: usize) -> u64 {
    AT + 0x40 * number as u64
}

fn dump_of(names: &[Vec<u8>]) -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    for (number, name) in names.iter().enumerate() {
        let addr = address(number);
        dump.debug_info(9, addr, &[Line { addr, line: 7, discriminator: 0, file: name }]);
        dump.load(10, Load { tid: PID, addr, index: number as u64, name, code: &[0x90; 0x40] });
    }
    dump.into_bytes()
}

/// Each function is sampled as the leaf and as the caller of the next; each process, and each module, is called after
/// a function, too.
fn recording(names: &[Vec<u8>], marker: &str) -> PerfData {
    let short = |name: &Vec<u8>, most: usize| String::from_utf8_lossy(name).chars().take(most).collect::<String>();
    let mut data = PerfData::new(Order::Little, Event { name: "<e>\u{202e}\x1b[2J&=", ..Event::usual() });
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.mmap2(Stamp::new(PID, 3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker });
    for (number, name) in names.iter().enumerate() {
        let (leaf, caller) = (address(number), address((number + 1) % names.len()));
        let stamp = Stamp { tid: PID + number as u32, ..Stamp::new(PID, 20 + number as u64) };
        data.comm(stamp, &short(name, 15), false);
        let library = 0x7000_0000 + 0x1000 * number as u64;
        data.mmap2(stamp, Mmap { addr: library, len: 0x1000, pgoff: 0, path: &format!("/{}", short(name, 1000)) });
        data.sample_of(0, USER, stamp, leaf, &[CONTEXT_USER, leaf, caller + 4]);
        data.sample_of(0, USER, stamp, library, &[CONTEXT_USER, library, caller + 4]);
    }
    data
}

/// A name where lines, and frames, cannot be determined from those of the text.
fn one_line(name: &[u8]) -> Vec<u8> {
    name.iter().map(|&byte| if matches!(byte, b'\n' | b'\r' | b';' | 0xb | 0xc) { b' ' } else { byte }).collect()
}

fn folded(names: &[Vec<u8>]) -> Vec<u8> {
    let lines =
        names.iter().map(|name| [b"main;", &one_line(name)[..], b";f 3\nmain;", &one_line(name), b" 2\n"].concat());
    lines.collect::<Vec<_>>().concat()
}

fn trace(names: &[Vec<u8>]) -> String {
    let events = names.iter().enumerate().map(|(number, name)| {
        let name = String::from_utf8_lossy(name);
        let (ts, args) = (number * 10, serde_json::json!({ &*name: &*name }));
        serde_json::json!({"name": name, "cat": name, "ph": "X", "ts": ts, "dur": 7, "pid": 1, "tid": 1, "args": args})
    });
    serde_json::json!({ "traceEvents": events.collect::<Vec<_>>() }).to_string()
}

fn script(names: &[Vec<u8>]) -> Vec<u8> {
    let samples = names.iter().map(|name| {
        let name = &one_line(name)[..];
        [b"program 77 1.000000: 1 cycles: \n\t    10040 ", name, b"+0x4 (/usr/lib/", name, b")\n\n"].concat()
    });
    samples.collect::<Vec<_>>().concat()
}

/// JIT code at the dump's addresses, and a function of a real object for each name.
fn callgrind(names: &[Vec<u8>]) -> Vec<u8> {
    let mut text = format!(
        "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: {PID}\ncmd: program\npart: 1\n\n\
         desc: Trigger: Program termination\n\npositions: instr line\nevents: Ir\nsummary: {}\n\n",
        8 * names.len()
    )
    .into_bytes();
    for (number, name) in names.iter().enumerate() {
        let (addr, name) = (address(number), &one_line(name)[..]);
        text.extend_from_slice(format!("ob=???\nfl=???\nfn=0x{addr:016x}\n{addr:#x} 0 5\n\nob=/").as_bytes());
        text.extend_from_slice(&[name, b"\nfl=/x/", name, b"\nfn=f", name, b"\n0x7 1 3\n\n"].concat());
    }
    text.extend_from_slice(format!("totals: {}\n", 8 * names.len()).as_bytes());
    text
}

/// Characters that a terminal, an editor or a browser obeys, or does not show: not as the program has it, but by the
/// Unicode standard's ranges.
fn is_obeyed(c: char) -> bool {
    let ranges: [(u32, u32); 11] = [
        (0x00, 0x1f),
        (0x7f, 0x9f),
        (0x61c, 0x61c),
        (0x200e, 0x200f),
        (0x2028, 0x202e),
        (0x2066, 0x206f),
        (0xfdd0, 0xfdef),
        (0xfeff, 0xfeff),
        (0xfff9, 0xfffb),
        (0xfffe, 0xffff),
        (0xe0000, 0xe007f),
    ];
    let code = u32::from(c);
    c != '\n' && (ranges.iter().any(|(first, last)| (*first..=*last).contains(&code)) || code % 0x10000 >= 0xfffe)
}

/// True if the output shows names as text instead of obeying them, in lines of at most this many characters.
fn check_text(words: &str, text: &str, longest: usize) {
    let obeyed = text.chars().find(|c| is_obeyed(*c));
    assert_eq!(obeyed, None, "{words}: {:?}", around(text, obeyed));
    let line = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
    assert!(line.chars().count() <= longest, "{words}: {} characters: {line:.200}", line.chars().count());
}

fn around(text: &str, c: Option<char>) -> String {
    let at = c.and_then(|c| text.find(c)).map_or(0, |at| text[..at].chars().count());
    text.chars().skip(at.saturating_sub(50)).take(100).collect()
}

/// Cells by RFC 4180, and again where a spreadsheet takes `;` for what separates them.
fn check_csv(words: &str, text: &str) {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    assert!(!is_quoted, "{words}: a quote is left open");
    let computed = |cell: &str| cell.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r']);
    let number = |cell: &str| cell.parse::<f64>().is_ok();
    for cell in cells.iter().flat_map(|cell| cell.split(';')) {
        assert!(!computed(cell) || number(cell), "{words}: {cell:.200}");
    }
}

/// The parts of a document: elements with their attributes, and the values of those that could run something.
fn parts(words: &str, document: &str) -> BTreeSet<String> {
    let tree = document_of(words, document);
    tree.descendants().filter(Node::is_element).map(|node| part(&node)).collect()
}

/// inferno's pictures name SVG's document type.
fn document_of<'a>(words: &str, text: &'a str) -> Document<'a> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn part(node: &Node) -> String {
    let runs = |name: &str| name.starts_with("on") || name.contains("href") || name == "src";
    let attributes = node.attributes().map(|attribute| match attribute.name() {
        name if runs(name) => format!("{name}={}", attribute.value()),
        name => name.to_owned(),
    });
    let attributes: BTreeSet<String> = attributes.collect();
    let script = if node.has_tag_name("script") { node.text().unwrap_or("") } else { "" };
    format!("{} {attributes:?} {script}", node.tag_name().name())
}

fn check_picture(words: &str, hostile: &str, harmless: &str) {
    let (hostile_parts, harmless_parts) = (parts(words, hostile), parts(words, harmless));
    let new: Vec<_> = hostile_parts.difference(&harmless_parts).collect();
    assert!(new.is_empty(), "{words}: {new:.300?}");
    let document = document_of(words, hostile);
    for text in document.descendants().filter(|node| !node.has_tag_name("script")).filter_map(|node| node.text()) {
        let obeyed = text.chars().find(|c| is_obeyed(*c));
        assert_eq!(obeyed, None, "{words}: {:?}", around(text, obeyed));
    }
    // Each name is there a few times; the page's boxes are short.
    assert!(hostile.len() < harmless.len() + 100 * 6 * LONGEST, "{words}: {} bytes", hostile.len());
}

/// Tags as they stand, scripts and all.
fn tags(html: &str) -> BTreeSet<&str> {
    html.split('<').skip(1).map(|piece| piece.split_inclusive('>').next().unwrap_or_default()).collect()
}

fn check_page(words: &str, hostile: &str, harmless: &str) {
    let data = |html: &str| packed_data(html).unwrap_or_else(|| panic!("{words}: no data: {html:.200}")).to_owned();
    let (packed, other) = (data(hostile), data(harmless));
    let (page, expected) = (hostile.replace(&packed, ""), harmless.replace(&other, ""));
    let new: Vec<_> = tags(&page).difference(&tags(&expected)).copied().collect();
    assert!(new.is_empty(), "{words}: {new:.300?}");
    check_text(words, &page.replace('\t', " "), usize::MAX);
    let deflated = base64::engine::general_purpose::STANDARD.decode(packed.trim()).unwrap();
    let mut block = Vec::new();
    flate2::read::DeflateDecoder::new(&deflated[..]).read_to_end(&mut block).unwrap();
    check_block(words, &block);
}

fn packed_data(html: &str) -> Option<&str> {
    html.split_once("<script id=\"data\"")?.1.split(['>', '<']).nth(1)
}

/// The length of a JSON text, that text, and the columns that it reports.
fn check_block(words: &str, block: &[u8]) {
    let end = 4 + u32::from_le_bytes(block[..4].try_into().unwrap()) as usize;
    let head: serde_json::Value = serde_json::from_slice(&block[4..end]).unwrap();
    let mut at = end;
    for column in head["columns"].as_array().unwrap() {
        let bytes = &block[at..][..column["bytes"].as_u64().unwrap() as usize];
        at += bytes.len();
        if column["kind"] == "texts" {
            let text = std::str::from_utf8(bytes).unwrap();
            check_text(words, text, LONGEST);
            let count = if text.is_empty() && column["length"] == 0 { 0 } else { text.split('\n').count() };
            assert_eq!(count as u64, column["length"], "{words}: {column}");
        }
    }
    check_text(words, &head["sections"].to_string(), usize::MAX);
}

/// That no name is missing from what holds names as they are; some are cut into frames, or begin with blanks.
fn check_json(words: &str, text: &str) {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{words}: {error}"));
    let text = value.to_string();
    for name in ["</script><img src=x onerror=alert(1)>", "]]><!--"] {
        assert!(words.starts_with("doctor") || text.contains(name), "{words} lost {name}");
    }
}

fn text_of(words: &str, output: Output) -> String {
    assert!(output.status.success(), "{words}: {}: {:.1000}", output.status, said(&output));
    // Messages are for people, in any output.
    check_text(words, std::str::from_utf8(&output.stderr).unwrap(), 2 * LONGEST);
    String::from_utf8(output.stdout).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[test]
fn a_name_does_nothing_anywhere() {
    let (hostile, harmless) = (scene(&hostile_names(LONG)), scene(&harmless_names()));
    for &(kind, words) in RUNS.iter().filter(|(kind, _)| *kind != Nameless) {
        let output = hostile.run(words);
        let is_text = std::str::from_utf8(&output.stdout).is_ok();
        let text = text_of(words, output);
        assert!(!text.is_empty(), "{words}");
        assert!(is_text || matches!(kind, Lines | Binary), "{words} writes what is not text");
        let expected = || text_of(words, harmless.run(words));
        match kind {
            Text => check_text(words, &text, 4 * LONGEST),
            Csv => {
                check_text(words, &text, usize::MAX);
                check_csv(words, &text);
            }
            Picture => check_picture(words, &text, &expected()),
            Page => check_page(words, &text, &expected()),
            Json => check_json(words, &text),
            // Some names are the same without the line breaks in them.
            Lines => assert!(text.lines().count() <= expected().lines().count(), "{words}: lines"),
            Binary | Nameless => {}
        }
    }
}

#[test]
fn a_name_does_nothing_to_a_terminal_and_does_not_fill_it() {
    let scene = scene(&hostile_names(LONG));
    // Nobody looks at the source of a picture.
    for &(kind, words) in RUNS.iter().filter(|(kind, _)| !matches!(kind, Binary | Nameless | Picture | Page)) {
        let shown = scene.on_terminal(words).stdout;
        let shown = std::str::from_utf8(&shown).unwrap_or_else(|error| panic!("{words}: {error}"));
        // The terminal's own ends of lines; columns that tabs part.
        let shown = shown.replace("\r\n", "\n").replace('\t', " ");
        let longest = if kind == Text { 4 * LONGEST } else { 1 << 16 };
        check_text(words, &shown, longest);
    }
}

#[test]
fn files_and_pipes_get_all_of_a_name() {
    let scene = scene(&hostile_names(1 << 20));
    let longest = "a".repeat(1 << 20);
    for words in ["collapse perf.data", "script perf.data", "export --to csv perf.data", "export --to json perf.data"] {
        let text = text_of(words, scene.run(words));
        assert!(text.contains(&longest), "{words} cut the longest name");
    }
}

#[test]
fn people_read_which_names_were_cut() {
    let scene = scene(&hostile_names(1 << 20));
    for words in ["report perf.data", "flamegraph perf.data", "flamegraph --style inferno perf.data"] {
        let text = text_of(words, scene.run(words));
        let cut = format!("{}…[{} more]…{}", "a".repeat(1993), (1 << 20) + 7 - 4000, "a".repeat(2000));
        assert!(text.contains(&format!("longest{cut}")), "{words}");
    }
}

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = help(&["--help"]);
    let list = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let rows = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = rows.map(|row| row.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The values that a command's help lists below a flag.
fn values(help: &str, flag: &str) -> Vec<String> {
    let Some(start) = help.find(&format!("--{flag} <")) else { return Vec::new() };
    let own = help[start..].split("\n      --").next().unwrap();
    if let Some((_, list)) = own.split_once("[possible values: ") {
        let list = list.split(']').next().unwrap();
        return list.split(',').map(|value| value.trim().to_owned()).collect();
    }
    let rows = own.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("- "));
    rows.map(|row| row.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_and_format_is_tried() {
    let runs: Vec<Vec<&str>> = RUNS.iter().map(|(_, words)| words.split(' ').collect()).collect();
    let mut checked = 0;
    for command in commands() {
        let runs: Vec<_> = runs.iter().filter(|words| words[0] == command).collect();
        assert!(!runs.is_empty(), "{command} is not in RUNS");
        let help = help(&[&command, "--help"]);
        for flag in FORMAT_FLAGS {
            for value in values(&help, flag) {
                let words = [&format!("--{flag}"), &value];
                let tried = runs.iter().any(|run| run.windows(2).any(|pair| pair == words));
                assert!(tried, "{command} --{flag} {value} is not in RUNS");
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} values");
}

#[test]
fn images_that_inject_writes_keep_names_that_do_not_leave_the_directory() {
    let scene = scene(&hostile_names(1 << 20));
    let output = scene.run("inject -i perf.data -o new.data");
    text_of("inject", output);
    let listed: BTreeSet<String> =
        fs::read_dir(scene.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let new: Vec<_> = listed.iter().filter(|name| name.contains("jitted") || name.contains("new")).collect();
    assert_eq!(new, [&format!("jitted-{PID}.so"), &"new.data".to_owned()], "{listed:?}");
}
