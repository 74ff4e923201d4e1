//! Source maps: what proves that a map is not of a script, and what doesn't; keys that are not plain words.

use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A VLQ, after the text of ECMA-426.
fn vlq(value: i64, out: &mut String) {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut rest = (value.unsigned_abs() << 1) | u64::from(value < 0);
    loop {
        let digit = (rest & 31) as usize | if rest > 31 { 32 } else { 0 };
        out.push(char::from(DIGITS[digit]));
        rest >>= 5;
        if rest == 0 {
            return;
        }
    }
}

/// Column of the script, line and column of the authored text (all from 0), and the name, if the map has one.
type Segment<'a> = (usize, usize, usize, Option<&'a str>);

/// A map of a script of one line.
fn map(segments: &[Segment<'_>], authored: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let (mut mappings, mut last) = (String::new(), [0i64; 4]);
    for (number, (column, line, authored_column, name)) in segments.iter().enumerate() {
        if number > 0 {
            mappings.push(',');
        }
        let mut put = |value: usize, last: &mut i64| {
            vlq(value as i64 - *last, &mut mappings);
            *last = value as i64;
        };
        put(*column, &mut last[0]);
        put(0, &mut 0);
        put(*line, &mut last[1]);
        put(*authored_column, &mut last[2]);
        if let Some(name) = name {
            let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            put(at, &mut last[3]);
        }
    }
    let (names, authored) = (serde_json::to_string(&names).unwrap(), serde_json::to_string(authored).unwrap());
    format!(
        r#"{{"version":3,"sources":["../src/app.ts"],"sourcesContent":[{authored}],"names":{names},"mappings":"{mappings}"}}"#
    )
}

/// The segment of a token of the script that stands for one of the authored text.
fn token<'a>(script: &str, generated: &str, authored: &str, original: &str, name: Option<&'a str>) -> Segment<'a> {
    let column = script.find(generated).unwrap_or_else(|| panic!("{generated}"));
    let at = authored.find(original).unwrap_or_else(|| panic!("{original}"));
    let line = authored[..at].matches('\n').count();
    let start = authored[..at].rfind('\n').map_or(0, |end| end + 1);
    (column, line, at - start, name)
}

struct Project(TempDir);

impl Project {
    fn new(script: &str, map: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dist")).unwrap();
        fs::write(dir.path().join("dist/app.js"), script).unwrap();
        fs::write(dir.path().join("dist/app.js.map"), map).unwrap();
        Self(dir)
    }

    /// How functions are shown that V8 calls by these names, at the parameters that these texts begin with; and what is
    /// said.
    fn shown(&self, script: &str, functions: &[(&str, &str)], more: &[&str]) -> (Vec<String>, String) {
        let root = self.0.path().canonicalize().unwrap();
        let mut folded = String::new();
        for (at, (name, start)) in functions.iter().enumerate() {
            let column = script.find(start).unwrap_or_else(|| panic!("{start}")) + 1;
            folded += &format!("node;JS:*{name} {}:1:{column} {}\n", root.join("dist/app.js").display(), at + 1);
        }
        fs::write(root.join("in.folded"), folded).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(["collapse", "in.folded"])
            .args(more)
            .current_dir(&root)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let text = String::from_utf8(output.stdout).unwrap().replace(&format!("{}/", root.display()), "/");
        let mut lines: Vec<(usize, String)> = Vec::new();
        for line in text.lines() {
            let (name, weight) = line.rsplit_once(' ').unwrap();
            lines.push((weight.parse().unwrap(), name.replacen("node;", "", 1)));
        }
        lines.sort();
        (lines.into_iter().map(|(_, name)| name).collect(), said)
    }
}

const AUTO: &[&str] = &["--source-maps", "auto"];

const AUTHORED: &str = "export function burnCycles(rounds) {\n  return rounds * 2;\n}\nexport function entry(count) {\n  return burnCycles(count);\n}\n";

/// As bundlers write a module with exports: names of their own in front.
const SCRIPT: &str = "var p=Object.defineProperty,q={};x(q,{burnCycles:()=>c,entry:()=>y});function c(r){return r*2}function y(n){return c(n)}";

fn segments(script: &'static str) -> Vec<Segment<'static>> {
    let token = |generated, original, name| token(script, generated, AUTHORED, original, name);
    vec![
        // What the bundler invents, mapped to the start of the file: 6 of 13.
        (4, 0, 0, Some("__defProp")),
        (script.find("q=").unwrap(), 0, 0, Some("lib_exports")),
        (script.find("x(q").unwrap(), 0, 0, Some("__export")),
        (script.find("q,{").unwrap(), 0, 0, Some("lib_exports")),
        (script.find("burnCycles").unwrap(), 0, 0, Some("burnCycles")),
        (script.find("entry").unwrap(), 0, 0, Some("entry")),
        token("function c", "function burnCycles", None),
        token("c(r)", "burnCycles", Some("burnCycles")),
        token("r){", "rounds) {", Some("rounds")),
        token("function y", "function entry", None),
        token("y(n)", "entry", Some("entry")),
        token("n){", "count) {", Some("count")),
        token("c(n)", "burnCycles(count)", Some("burnCycles")),
    ]
}

const FUNCTIONS: &[(&str, &str)] = &[("c", "(r){"), ("y", "(n){")];

fn authored() -> Vec<String> {
    ["JS:*burnCycles /src/app.ts:1:17", "JS:*entry /src/app.ts:4:17"].map(str::to_owned).to_vec()
}

#[test]
fn names_that_a_bundler_invents_are_no_reason_to_refuse_a_map() {
    let project = Project::new(SCRIPT, &map(&segments(SCRIPT), AUTHORED));
    assert_eq!(project.shown(SCRIPT, FUNCTIONS, AUTO).0, authored());
}

#[test]
fn scripts_and_maps_may_be_utf_16() {
    let map = map(&segments(SCRIPT), AUTHORED);
    let little = |text: &str| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
    for (script, map) in [
        (SCRIPT.as_bytes().to_vec(), little(&map)),
        (SCRIPT.as_bytes().to_vec(), big(&map)),
        (big(SCRIPT), little(&map)),
        (marked(SCRIPT), marked(&map)),
    ] {
        let project = Project::new(SCRIPT, "");
        fs::write(project.0.path().join("dist/app.js"), script).unwrap();
        fs::write(project.0.path().join("dist/app.js.map"), map).unwrap();
        for how in [AUTO, &["--source-maps", "dist/app.js.map"], &["--source-maps", "dist"]] {
            let (names, said) = project.shown(SCRIPT, FUNCTIONS, how);
            assert_eq!(names, authored(), "{said}");
        }
    }
    // Without a mark, it is nothing that we read.
    let project = Project::new(SCRIPT, "");
    fs::write(project.0.path().join("dist/app.js.map"), &little(&map)[2..]).unwrap();
    let (names, said) = project.shown(SCRIPT, FUNCTIONS, AUTO);
    assert!(names.iter().all(|name| name.contains("/dist/app.js")) && said.contains("was not used"), "{said}");
}

#[test]
fn a_map_of_another_build_is_refused_unless_the_user_names_it() {
    // The script has grown since.
    let grown: &'static str = Box::leak(SCRIPT.replace("var p", "var added=function(){return 1},p").into_boxed_str());
    let project = Project::new(grown, &map(&segments(SCRIPT), AUTHORED));
    let (names, said) = project.shown(grown, FUNCTIONS, AUTO);
    assert!(said.contains("was not used: the map does not fit the script"), "{said}");
    assert!(names.iter().all(|name| name.contains("/dist/app.js")), "{names:?}");
    for file in ["dist/app.js.map", "dist/app.js.map=app.js"] {
        let (_, said) = project.shown(grown, FUNCTIONS, &["--source-maps", file]);
        assert!(said.contains("doesn't seem to fit") && !said.contains("was not used"), "{said}");
    }
    // A script that isn't the one that ran says nothing, whatever the user names. The warning doesn't claim otherwise.
    let other: &'static str = Box::leak(format!("var banner=1;{SCRIPT}").into_boxed_str());
    let project = Project::new(other, &map(&segments(SCRIPT), AUTHORED));
    let (names, said) = project.shown(SCRIPT, FUNCTIONS, &["--source-maps", "dist/app.js.map"]);
    assert!(said.contains("2 functions don't match the script or the map") && !said.contains("but was used"), "{said}");
    assert!(names.iter().all(|name| name.contains("/dist/app.js")), "{names:?}");
    // A map that fits the script is used without a warning; one that belongs to no script is reported.
    let project = Project::new(SCRIPT, &map(&segments(SCRIPT), AUTHORED));
    let (names, said) = project.shown(SCRIPT, FUNCTIONS, &["--source-maps", "dist/app.js.map"]);
    assert!(names == authored() && !said.contains("doesn't seem to fit"), "{said}");
    fs::copy(project.0.path().join("dist/app.js.map"), project.0.path().join("other.map")).unwrap();
    let (_, said) = project.shown(SCRIPT, FUNCTIONS, &["--source-maps", "other.map"]);
    assert!(said.contains("other.map matches none of the scripts"), "{said}");
}

#[test]
fn keys_that_are_not_plain_words_keep_their_place_and_the_engines_name() {
    const AUTHORED: &str = "enum Kind { Num = 'visitNumber' }\nconst PLAIN = 'plain', dyn = 1;\nclass Widget {\n  ['dyn' + 1](a) {}\n  [`tpl${2}`](b) {}\n  [PLAIN](c) {}\n  [Kind.Num](d) {}\n  'quoted name'(e) {}\n  1e3(f) {}\n  #priv(g) {}\n  plainKey(h) {}\n}\nconst table = { ['obj' + 1]: (i) => i };\ntable['set' + 1] = (j) => j;\n";
    const SCRIPT: &str = "class W{dyn1(a){}tpl2(b){}[u](c){}visitNumber(d){}\"quoted name\"(e){}1e3(f){}#r(g){}plainKey(h){}}var t={obj1:i=>i};t.set1=j=>j;";
    let token = |generated, original, name| token(SCRIPT, generated, AUTHORED, original, name);
    let bracket = vec![
        token("W{", "Widget", Some("Widget")),
        token("dyn1", "['dyn'", None),
        token("a){", "a) {", None),
        token("tpl2", "[`tpl", None),
        token("b){", "b) {", None),
        token("[u]", "[PLAIN]", None),
        token("visitNumber", "[Kind.Num]", None),
        token("d){", "d) {", None),
        token("\"quoted", "'quoted", None),
        token("e){", "e) {", None),
        token("1e3", "1e3", None),
        token("#r", "#priv", None),
        token("plainKey", "plainKey", None),
        token("t={", "table", Some("table")),
        token("obj1", "['obj'", None),
        token("i=>", "(i)", Some("i")),
        token("t.set1", "table['set'", Some("table")),
        token("set1", "'set'", None),
        token("j=>", "(j)", Some("j")),
    ];
    let functions = [
        ("dyn1", "(a)"),
        ("tpl2", "(b)"),
        ("plain", "(c)"),
        ("visitNumber", "(d)"),
        ("quoted name", "(e)"),
        ("1000", "(f)"),
        ("#r", "(g)"),
        ("plainKey", "(h)"),
        ("obj1", "i=>"),
        ("t.set1", "j=>"),
    ];
    let shown = |segments: &[Segment<'_>]| {
        let project = Project::new(SCRIPT, &map(segments, AUTHORED));
        let (names, said) = project.shown(SCRIPT, &functions, AUTO);
        let short = |name: &String| {
            let (name, place) = name.rsplit_once(' ').unwrap();
            let place: Vec<&str> = place.split(':').collect();
            format!("{} {}", name.trim_start_matches("JS:*"), place[..2].join(":").replace("/src/app.ts:", ""))
        };
        (names.iter().map(short).collect::<Vec<_>>(), said)
    };
    let expected = [
        "dyn1 4",
        "tpl2 5",
        "plain 6",
        "visitNumber 7",
        "quoted name 8",
        "1000 9",
        "#priv 10",
        "plainKey 11",
        "obj1 13",
        "t.set1 14",
    ];
    let (names, said) = shown(&bracket);
    assert_eq!(names, expected, "{said}");
    // Other tools map to what is in the brackets, with its name.
    let mut inner = bracket.clone();
    for (generated, original, name) in [
        ("dyn1", "'dyn'", None),
        ("[u]", "PLAIN](", Some("PLAIN")),
        ("visitNumber", "Kind.Num](", Some("Kind")),
        ("obj1", "'obj'", Some("'obj'")),
    ] {
        let new = token(generated, original, name);
        inner.iter_mut().filter(|segment| segment.0 == new.0).for_each(|segment| *segment = new);
    }
    let (names, said) = shown(&inner);
    assert_eq!(names, expected, "{said}");
}

#[test]
fn a_name_is_taken_only_for_the_value_of_its_word() {
    const AUTHORED: &str = "const table = { key: (n) => n };\nconst made = ((n) => (m) => m + n)(38);\nconst curry = (k) => (l) => l, bound = curry(1);\nclass A {\n  async later(a) {}\n}\nconst plain: (x: { p: 1 }) => [] = (p) => p;\nconst wrapped = ((w) => w);\n";
    // As minifiers inline objects and calls.
    const SCRIPT: &str = "var D=n=>n,y=m=>m+38,b=l=>l;class A{async later(a){}}var q=p=>p,v=w=>w;";
    let token = |generated, original, name| token(SCRIPT, generated, AUTHORED, original, name);
    let segments = [
        token("D=", "table", Some("table")),
        token("n=>n", "(n) => n }", None),
        token("y=", "made", Some("made")),
        token("m=>m", "(m) =>", None),
        token("b=", "bound", Some("bound")),
        token("l=>l", "(l) =>", None),
        token("later", "async later", Some("async")),
        token("a){", "a) {}", None),
        token("q=", "plain", Some("plain")),
        token("p=>p", "(p) =>", None),
        token("v=", "wrapped", Some("wrapped")),
        token("w=>w", "(w) =>", None),
    ];
    let project = Project::new(SCRIPT, &map(&segments, AUTHORED));
    let functions = [("D", "n=>n"), ("y", "m=>m"), ("b", "l=>l"), ("later", "(a)"), ("q", "p=>p"), ("v", "w=>w")];
    let (names, said) = project.shown(SCRIPT, &functions, AUTO);
    let shown: Vec<String> = names.iter().map(|name| name.rsplit_once(':').unwrap().0.replace("JS:*", "")).collect();
    let expected = ["D 1", "y 2", "b 3", "later 5", "plain 7", "wrapped 8"];
    assert_eq!(shown, expected.map(|name| name.replace(' ', " /src/app.ts:")), "{said}");
}

#[test]
fn names_of_helpers_at_the_first_statement_are_no_reason_to_refuse_a_map() {
    const AUTHORED: &str = "// First.\nconst unused = 1;\nexport function work(r, value) {\n  return r * value;\n}\n";
    // As Babel writes its helpers: with their own names, all at the first statement.
    const SCRIPT: &str =
        "function h(r,value){var a=r,t=value;return r(value,t,r)}function work(r,value){return r*value}";
    let own = SCRIPT.rfind("function work").unwrap();
    let mut segments: Vec<Segment<'_>> = Vec::new();
    for (column, _) in SCRIPT[..own].match_indices(|letter: char| letter.is_ascii_alphabetic()) {
        let word = SCRIPT[column..].split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap();
        let begins = !SCRIPT[..column].ends_with(|letter: char| letter.is_ascii_alphabetic());
        if begins && ["r", "value"].contains(&word) {
            segments.push((column, 1, 0, Some(word)));
        }
    }
    assert!(segments.len() > 5);
    segments.push((own, 2, 7, None));
    segments.push((own + "function ".len(), 2, 16, Some("work")));
    // The name once more at the parameters, before which it is.
    segments.push((own + "function work".len(), 2, 20, Some("work")));
    segments.push((own + "function work(".len(), 2, 21, Some("r")));
    let project = Project::new(SCRIPT, &map(&segments, AUTHORED));
    let (names, said) = project.shown(SCRIPT, &[("work", "(r,value){return")], AUTO);
    assert_eq!(names, ["JS:*work /src/app.ts:3:21"], "{said}");
    assert!(!said.contains("was not used"), "{said}");
}
