//! Source maps: functions and lines of generated scripts are shown as their authors wrote them, or as they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const AUTHORED: &str = r#"export function splitWords(text) {
  return text.split(" ");
}
export class Matrix {
  constructor(size) { this.size = size; }
  dotProduct(other) { return other; }
  get total() { return this.size; }
}
export const helpers = { addOne: (count) => count + 1 };
const runRound = (round) => helpers.addOne(round);
each(function (item) { return item; });
exports.late = function () { return 1; };
"#;

const SCRIPT: &str = "\"use strict\";function i(e){return e.split(\" \")}class n{constructor(e){this.size=e}\
dotProduct(e){return e}get t(){return this.size}}var o={r:e=>e+1},u=e=>o.r(e);w(function(e){return e}),a.l=function(){return 1};";

/// Token of the script, the one of the authored text, and whether the map names it.
const TOKENS: &[(&str, &str, bool)] = &[
    ("function i", "function splitWords", false),
    ("i(e)", "splitWords", true),
    ("e){return e.split", "text) {", true),
    ("class n", "class Matrix", false),
    ("n{con", "Matrix", true),
    ("constructor(e)", "constructor(size)", false),
    ("e){this", "size) {", true),
    ("dotProduct(e)", "dotProduct(other)", false),
    ("e){return e}get", "other) {", true),
    ("get t()", "get total()", false),
    ("t(){", "total", true),
    ("o={r", "helpers", true),
    ("r:e", "addOne", true),
    ("e=>e+1", "(count)", false),
    ("e+1", "count + 1", true),
    ("u=e=>", "runRound", true),
    ("e=>o.r", "(round) =>", false),
    ("o.r(e)", "helpers.addOne(round)", true),
    ("w(fun", "each(", true),
    ("function(e){return e})", "function (item)", false),
    ("e){return e})", "item) {", true),
    ("a.l", "exports.late", true),
    ("l=function", "late", true),
    ("function(){return 1", "function () { return 1", false),
];

/// What V8 calls the functions of the script, each by the text at its start; and what they are shown as.
const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("JS:*i", "(e){return e.split", "JS:*splitWords /src/words.ts:1:17"),
    ("JS:^n", "(e){this", "JS:^Matrix /src/words.ts:5:3"),
    ("JS:+dotProduct", "(e){return e}get", "JS:+dotProduct /src/words.ts:6:3"),
    ("JS:~get t", "(){return this", "JS:~get total /src/words.ts:7:7"),
    ("JS:*r", "e=>e+1", "JS:*addOne /src/words.ts:9:34"),
    ("JS:*u", "e=>o.r", "JS:*runRound /src/words.ts:10:18"),
    ("JS:*", "(e){return e})", "JS:* /src/words.ts:11:6"),
    ("JS:*a.l", "(){return 1", "JS:*exports.late /src/words.ts:12:16"),
];

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

fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

/// Where the tokens are in the script, and what each is in the authored text.
fn mappings(script: &str, text: &str, tokens: &[(&str, &str, bool)]) -> (String, Vec<String>) {
    let (mut mappings, mut names) = (String::new(), Vec::new());
    let mut last = [0i64; 4];
    for (generated, authored, named) in tokens {
        let column = script.find(generated).unwrap_or_else(|| panic!("{generated}")) as i64;
        let at = text.find(authored).unwrap_or_else(|| panic!("{authored}"));
        let line = text[..at].matches('\n').count() as i64;
        let in_line = (at - text[..at].rfind('\n').map_or(0, |end| end + 1)) as i64;
        if !mappings.is_empty() {
            mappings.push(',');
        }
        for (value, last) in [column, 0, line, in_line].into_iter().zip(&mut last) {
            vlq(value - *last, &mut mappings);
            *last = value;
        }
        if *named {
            // Each name is one more than the last.
            vlq(i64::from(!names.is_empty()), &mut mappings);
            names.push(word(authored).to_owned());
        }
    }
    (mappings, names)
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A map of these tokens. `more` are further members.
fn map_of(script: &str, tokens: &[(&str, &str, bool)], more: &str) -> String {
    map_of_text(script, AUTHORED, tokens, more)
}

fn map_of_text(script: &str, text: &str, tokens: &[(&str, &str, bool)], more: &str) -> String {
    let (mappings, names) = mappings(script, text, tokens);
    let names = serde_json::to_string(&names).unwrap();
    let content = json(text);
    format!(
        r#"{{"version":3,{more}"sources":["../src/words.ts"],"sourcesContent":[{content}],"names":{names},"mappings":"{mappings}"}}"#
    )
}

fn whole_map() -> String {
    map_of(SCRIPT, TOKENS, "")
}

/// A directory with `dist/app.min.js`, its map, and folded stacks with V8's names of its functions.
struct Project(tempfile::TempDir);

impl Project {
    fn new(script: &str, map: &[u8]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::create_dir(project.path("dist")).unwrap();
        fs::write(project.path("dist/app.min.js"), script).unwrap();
        fs::write(project.path("dist/app.min.js.map"), map).unwrap();
        let script = project.path("dist/app.min.js");
        let line = |(at, (name, start, _)): (usize, &(&str, &str, &str))| {
            let column = SCRIPT.find(start).unwrap() + 1;
            format!("node;{name} {}:1:{column} {}\n", script.display(), at + 1)
        };
        fs::write(project.path("in.folded"), FUNCTIONS.iter().enumerate().map(line).collect::<String>()).unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Names in the order of [`FUNCTIONS`], and what was said.
    fn names(&self, arguments: &[&str]) -> (Vec<String>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(["collapse", "in.folded"])
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{said}");
        let mut lines: Vec<(usize, String)> = text
            .lines()
            .map(|line| {
                let (name, weight) = line.rsplit_once(' ').unwrap();
                let name = name.strip_prefix("node;").unwrap();
                (weight.parse().unwrap(), name.replace(&self.path("").display().to_string(), "/"))
            })
            .collect();
        lines.sort();
        (lines.into_iter().map(|(_, name)| name).collect(), said)
    }

    /// What the names are without maps.
    fn generated(&self) -> Vec<String> {
        self.names(&["--source-maps", "off"]).0
    }
}

fn authored() -> Vec<String> {
    FUNCTIONS.iter().map(|(_, _, shown)| (*shown).to_owned()).collect()
}

#[test]
fn functions_have_the_names_and_places_that_their_authors_gave_them() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let (names, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!(names, authored());
    assert!(
        said.contains("6 of 8 functions have names from the original source, 2 more have only positions from it"),
        "{said}"
    );
    // Folded stacks are somebody else's format: nothing changes unasked.
    let (unasked, said) = project.names(&[]);
    assert_eq!((unasked, said.contains("map")), (project.generated(), false));
    assert!(project.generated()[0].starts_with("JS:*i /dist/app.min.js:1:"));
}

#[test]
fn a_map_is_found_wherever_it_may_be() {
    let map = whole_map();
    let mentions: &[(&str, &str)] = &[
        ("sourceMappingURL=maps/the.map", "dist/maps/the.map"),
        ("sourceMappingURL=the%20one.map", "dist/the one.map"),
        ("sourceMappingURL=old.map\n//# sourceMappingURL=new.map", "dist/new.map"),
    ];
    for (mention, place) in mentions {
        let project = Project::new(&format!("{SCRIPT}\n//# {mention}\n"), b"");
        fs::remove_file(project.path("dist/app.min.js.map")).unwrap();
        fs::create_dir(project.path("dist/maps")).unwrap();
        let content = if place.contains("maps/") { map.replace("../src", "../../src") } else { map.clone() };
        fs::write(project.path(place), content).unwrap();
        assert_eq!(project.names(&["--source-maps", "auto"]).0, authored(), "{mention}");
    }
    // In the script itself, and by a URL of a file.
    let data = data_encoding::BASE64.encode(map.as_bytes());
    let inline = format!("{SCRIPT}\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,{data}");
    let project = Project::new(&inline, b"{}");
    assert_eq!(project.names(&["--source-maps", "auto"]).0, authored());
    let project = Project::new(SCRIPT, map.as_bytes());
    let url = format!("{SCRIPT}\n//# sourceMappingURL=file://{}\n", project.path("dist/app.min.js.map").display());
    fs::write(project.path("dist/app.min.js"), url).unwrap();
    assert_eq!(project.names(&["--source-maps", "auto"]).0, authored());
}

#[test]
fn hidden_maps_are_given() {
    let id = "85314830-023f-4cf1-a267-535f4e37bb17";
    let script = format!("{SCRIPT}\n//# debugId={id}\n");
    let project = Project::new(&script, b"");
    fs::remove_file(project.path("dist/app.min.js.map")).unwrap();
    fs::create_dir(project.path("hidden")).unwrap();
    let map = map_of(SCRIPT, TOKENS, &format!(r#""debugId":"{id}","#));
    fs::write(project.path("hidden/x1.map"), map_of(SCRIPT, TOKENS, r#""debugId":"00000000","#)).unwrap();
    fs::write(project.path("hidden/x2.map"), &map).unwrap();
    assert_eq!(project.names(&["--source-maps", "auto"]).0, project.generated());
    assert_eq!(project.names(&["--source-maps", "hidden"]).0, authored(), "by debugId");
    assert_eq!(project.names(&["--source-maps", "hidden/x2.map=dist/app.min.js"]).0, authored());
    assert_eq!(project.names(&["--source-maps", "hidden/x2.map=other.js"]).0, project.generated());
    assert_eq!(project.names(&["--source-maps", "hidden/x2.map"]).0, authored());
    fs::rename(project.path("hidden/x2.map"), project.path("hidden/app.min.js.map")).unwrap();
    assert_eq!(project.names(&["--source-maps", "hidden"]).0, authored(), "by name");
}

#[test]
fn a_script_beside_the_input_is_as_good_and_one_below_symfs() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let moved = fs::read_to_string(project.path("in.folded")).unwrap();
    let moved = moved.replace(&project.path("dist/app.min.js").display().to_string(), "/nowhere/dist/app.min.js");
    fs::write(project.path("dist/in.folded"), moved).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["collapse", "--source-maps", "auto"])
        .arg(project.path("dist/in.folded"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("JS:*splitWords /nowhere/src/words.ts:1:17 1"), "{text}");
}

/// Minifiers put the body of a function in the place of its call: its parameters become variables of the caller.
#[test]
fn a_function_is_not_called_like_the_parameter_that_it_was_passed_for() {
    let passed = AUTHORED.replace("each(function (item)", "each(list, callback) {}\neach(function (item)");
    let script = SCRIPT.replace("w(function(e){return e})", "b=function(e){return e}");
    let tokens: Vec<(&str, &str, bool)> = TOKENS
        .iter()
        .map(|token| match token.0 {
            "w(fun" => ("b=fun", "callback) {}", true),
            "function(e){return e})" => ("function(e){return e}", token.1, token.2),
            "e){return e})" => ("e){return e},a", token.1, token.2),
            _ => *token,
        })
        .collect();
    let map = map_of_text(&script, &passed, &tokens, "");
    let project = Project::new(&script, map.as_bytes());
    let column = script.find("(e){return e},a").unwrap() + 1;
    let name = format!("JS:*b {}:1:{column}", project.path("dist/app.min.js").display());
    fs::write(project.path("in.folded"), format!("node;{name} 1\n")).unwrap();
    let (shown, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!(shown, ["JS:*b /src/words.ts:12:6"], "{said}");
}

/// Webpack calls what a module imports by the module's name and the word, and has that in its maps.
#[test]
fn imported_words_may_have_the_name_of_their_module_in_front() {
    let words = ["text", "size", "other", "item", "count", "helpers"];
    let map = words.iter().fold(whole_map(), |map, word| map.replace(&format!("\"{word}\""), &format!("\"m_{word}\"")));
    let (names, said) = Project::new(SCRIPT, map.as_bytes()).names(&["--source-maps", "auto"]);
    assert_eq!(names, authored(), "{said}");
}

/// A file that must not stop or mislead anybody: what it does to the project, and what is said.
struct Attack {
    name: &'static str,
    make: fn(&Project),
    said: &'static str,
}

fn write_map(project: &Project, map: impl AsRef<[u8]>) {
    fs::write(project.path("dist/app.min.js.map"), map).unwrap();
}

fn mention(project: &Project, url: &str) {
    fs::write(project.path("dist/app.min.js"), format!("{SCRIPT}\n//# sourceMappingURL={url}\n")).unwrap();
    fs::remove_file(project.path("dist/app.min.js.map")).unwrap();
}

fn with_mappings(mappings: &str) -> String {
    format!(r#"{{"version":3,"sources":["a.ts"],"names":["x"],"mappings":"{mappings}"}}"#)
}

const ATTACKS: &[Attack] = &[
    Attack { name: "empty", make: |project| write_map(project, ""), said: "is not a source map" },
    Attack { name: "not JSON", make: |project| write_map(project, "<html>"), said: "is not a source map" },
    Attack { name: "cut", make: |project| write_map(project, &whole_map()[..200]), said: "is not a source map" },
    Attack { name: "deep", make: |project| write_map(project, "[".repeat(1 << 20)), said: "is not a source map" },
    Attack {
        name: "version 2",
        make: |project| write_map(project, whole_map().replace(":3,", ":2,")),
        said: "version",
    },
    Attack { name: "binary", make: |project| write_map(project, [0, 159, 146, 150]), said: "is not" },
    Attack {
        name: "a column before the line",
        make: |project| write_map(project, with_mappings("D")),
        said: "is not a source map",
    },
    Attack {
        name: "a file that is not there",
        make: |project| write_map(project, with_mappings("ACAA")),
        said: "is not a source map",
    },
    Attack {
        name: "a name that is not there",
        make: |project| write_map(project, with_mappings("AAAAC")),
        said: "is not a source map",
    },
    Attack {
        name: "an endless number",
        make: |project| write_map(project, with_mappings(&"g".repeat(1000))),
        said: "is not a source map",
    },
    Attack {
        name: "sections in no order",
        make: |project| {
            let section = |line: u32| format!(r#"{{"offset":{{"line":{line},"column":0}},"map":{}}}"#, whole_map());
            write_map(project, format!(r#"{{"version":3,"sections":[{},{}]}}"#, section(1), section(0)));
        },
        said: "not in order",
    },
    Attack {
        name: "another build",
        make: |project| {
            let id = |id: &str| format!(r#""debugId":"{id}","#);
            fs::write(project.path("dist/app.min.js"), format!("{SCRIPT}\n//# debugId=aaaa\n")).unwrap();
            write_map(project, map_of(SCRIPT, TOKENS, &id("bbbb")));
        },
        said: "the map's debugId differs from the script's",
    },
    Attack {
        name: "a map of a later script",
        make: |project| write_map(project, map_of(&SCRIPT.replacen(';', ";var later=1;", 1), TOKENS, "")),
        said: "does not fit the script",
    },
    Attack {
        name: "a later script",
        make: |project| fs::write(project.path("dist/app.min.js"), SCRIPT.replacen(';', ";var later=1;", 1)).unwrap(),
        said: "does not fit the script",
    },
    Attack {
        name: "a later script and its map",
        make: |project| {
            let later = SCRIPT.replacen(';', ";var later=1;", 1);
            fs::write(project.path("dist/app.min.js"), &later).unwrap();
            write_map(project, map_of(&later, TOKENS, ""));
        },
        said: "the script is not the one that ran",
    },
    Attack {
        name: "other authored texts",
        make: |project| write_map(project, whole_map().replace("function splitWords", "function\\n\\nsplitWords")),
        said: "does not fit the script",
    },
    Attack {
        name: "outside",
        make: |project| mention(project, "../../../../etc/passwd"),
        said: "outside the script's directory",
    },
    Attack {
        name: "outside by URL",
        make: |project| mention(project, "file:///etc/passwd"),
        said: "outside the script's directory",
    },
    Attack {
        name: "outside by escapes",
        make: |project| mention(project, "%2e%2e/%2e%2e/etc/passwd"),
        said: "outside the script's directory",
    },
    Attack {
        name: "far away",
        make: |project| mention(project, "https://example.org/app.map"),
        said: "jitgraft does not download source maps",
    },
    Attack {
        name: "broken data",
        make: |project| mention(project, "data:application/json;base64,%%%"),
        said: "cannot decode the data: URL of the script's source map",
    },
    Attack {
        name: "a pipe",
        make: |project| {
            fs::remove_file(project.path("dist/app.min.js.map")).unwrap();
            let made = Command::new("mkfifo").arg(project.path("dist/app.min.js.map")).status().unwrap();
            assert!(made.success());
        },
        said: "is not a regular file",
    },
    Attack {
        name: "a device",
        make: |project| {
            fs::remove_file(project.path("dist/app.min.js.map")).unwrap();
            symlink("/dev/zero", project.path("dist/app.min.js.map")).unwrap();
        },
        said: "is not a regular file",
    },
    Attack {
        name: "a hole",
        make: |project| {
            let file = fs::File::create(project.path("dist/app.min.js.map")).unwrap();
            file.set_len(2 << 30).unwrap();
        },
        said: "larger than 1 GiB",
    },
    Attack {
        name: "names that break lines",
        make: |project| {
            let map = whole_map().replace("\"splitWords\"", "\"split;Words\\nroot\"");
            write_map(project, map.replace(r#""sourcesContent":["#, r#""content":["#));
        },
        said: "",
    },
    Attack {
        name: "files that break lines",
        make: |project| write_map(project, whole_map().replace("words.ts", "words\\n;.ts")),
        said: "",
    },
];

/// Whoever named a function differently than its author did was wrong.
#[test]
fn no_map_makes_a_wrong_name() {
    for Attack { name, make, said } in ATTACKS {
        let project = Project::new(SCRIPT, whole_map().as_bytes());
        make(&project);
        let (names, messages) = project.names(&["--source-maps", "auto"]);
        assert!(messages.contains(said), "{name}: {messages}");
        let generated = project.generated();
        for (at, shown) in names.iter().enumerate() {
            // A function without a proof keeps its name, at the place where it was written.
            let place = |name: &str| name.rsplit_once(' ').map(|(_, place)| place.to_owned());
            let kept =
                shown.split(' ').next() == generated[at].split(' ').next() && place(shown) == place(&authored()[at]);
            let is_right = *shown == generated[at] || *shown == authored()[at] || kept;
            assert!(is_right, "{name}: {shown}");
        }
        if !said.is_empty() {
            assert_eq!(names, generated, "{name}");
        }
    }
}

/// A function as profiles state it: its name without marks, and the column at which it starts, from 1.
fn stated() -> Vec<(&'static str, usize)> {
    let plain = |name: &'static str| name.trim_start_matches("JS:").trim_start_matches(['*', '+', '^', '~']);
    let functions = FUNCTIONS.iter().map(|(name, start, _)| (plain(name), SCRIPT.find(start).unwrap() + 1));
    functions.filter(|(name, _)| !name.starts_with("get ")).collect()
}

/// The numbers from 0 on, and one number again and again, as JSON.
fn count_up(len: usize) -> String {
    (0..len).map(|at| at.to_string()).collect::<Vec<_>>().join(",")
}

fn again(text: &str, len: usize) -> String {
    vec![text; len].join(",")
}

/// The nodes of V8's profile with one sample of each function, and the members `samples` and `timeDeltas`.
fn v8_nodes(url: &str) -> (String, String, String) {
    let root = r#"{"id":1,"callFrame":{"functionName":"(root)","scriptId":0}}"#.to_owned();
    let node = |(at, (name, column)): (usize, (&str, usize))| {
        let (id, column) = (at + 2, column - 1);
        format!(
            r#"{{"id":{id},"parent":1,"callFrame":{{"functionName":"{name}","scriptId":1,"url":"{url}","lineNumber":0,"columnNumber":{column}}}}}"#
        )
    };
    let nodes: Vec<String> = [root].into_iter().chain(stated().into_iter().enumerate().map(node)).collect();
    let ids: Vec<String> = (0..stated().len()).map(|at| (at + 2).to_string()).collect();
    (nodes.join(","), ids.join(","), again("1000", ids.len()))
}

fn cpuprofile(url: &str) -> Vec<u8> {
    let (nodes, samples, deltas) = v8_nodes(url);
    format!(r#"{{"nodes":[{nodes}],"startTime":0,"endTime":9000,"samples":[{samples}],"timeDeltas":[{deltas}]}}"#)
        .into_bytes()
}

/// In two pieces, the second on another thread, as DevTools records them.
fn trace(url: &str) -> Vec<u8> {
    let (nodes, samples, deltas) = v8_nodes(url);
    let event = |name: &str, tid: u32, data: &str| {
        format!(
            r#"{{"ph":"P","cat":"disabled-by-default-v8.cpu_profiler","name":"{name}","pid":7,"tid":{tid},"ts":{tid},"id":"0x1","args":{{"data":{{{data}}}}}}}"#
        )
    };
    let chunk =
        format!(r#""cpuProfile":{{"nodes":[{nodes}],"samples":[{samples}]}},"timeDeltas":[{deltas}],"endTime":9000"#);
    let events = [event("Profile", 7, r#""startTime":0"#), event("ProfileChunk", 8, &chunk)];
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")).into_bytes()
}

/// Functions have their lines and columns, frames may have others.
fn firefox(url: &str) -> Vec<u8> {
    let functions = stated();
    let len = functions.len();
    let names: Vec<String> = functions.iter().map(|(name, _)| json(name)).collect();
    let columns: Vec<String> = functions.iter().map(|(_, column)| column.to_string()).collect();
    let (up, ones, nulls, zeros) = (count_up(len), again("1", len), again("null", len), again("0", len));
    let (names, columns, url) = (names.join(","), columns.join(","), json(url));
    let (named, is_js, none) =
        ((1..=len).map(|at| at.to_string()).collect::<Vec<_>>().join(","), again("true", len), again("-1", len));
    format!(
        r#"{{"meta":{{"preprocessedProfileVersion":50,"interval":1}},"libs":[],"threads":[{{"name":"t","pid":"1","tid":2,
        "stringArray":[{url},{names}],"samples":{{"length":{len},"stack":[{up}],"time":[{up}]}},
        "stackTable":{{"length":{len},"frame":[{up}],"prefix":[{nulls}]}},
        "frameTable":{{"length":{len},"func":[{up}],"address":[{none}],"line":[{nulls}],"column":[{nulls}]}},
        "funcTable":{{"length":{len},"name":[{named}],"isJS":[{is_js}],"resource":[{none}],"fileName":[{zeros}],
          "lineNumber":[{ones}],"columnNumber":[{columns}]}}}}]}}"#
    )
    .into_bytes()
}

fn speedscope(url: &str) -> Vec<u8> {
    let frame = |(name, column): (&str, usize)| {
        format!(r#"{{"name":{},"file":{},"line":1,"col":{column}}}"#, json(name), json(url))
    };
    let frames: Vec<String> = stated().into_iter().map(frame).collect();
    let len = frames.len();
    let samples: Vec<String> = (0..len).map(|at| format!("[{at}]")).collect();
    format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{}]}},"profiles":[
        {{"type":"sampled","name":"a","unit":"none","startValue":0,"endValue":{len},"samples":[{}],"weights":[{}]}}]}}"#,
        frames.join(","),
        samples.join(","),
        again("1", len)
    )
    .into_bytes()
}

fn message(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag * 8 + 2];
    varint(bytes.len() as u64, &mut out);
    out.extend(bytes);
    out
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn numbers(fields: &[(u8, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, number) in fields {
        out.push(tag * 8);
        varint(*number, &mut out);
    }
    out
}

/// The column of every second function stands above its line, as one profiler packs it.
fn pprof(url: &str) -> Vec<u8> {
    let mut out = message(1, &numbers(&[(1, 1), (2, 2)]));
    let mut strings: Vec<&str> = vec!["", "samples", "count", url];
    for (at, (name, column)) in stated().into_iter().enumerate() {
        let (id, column) = (at as u64 + 1, column as u64);
        let place = if at % 2 == 0 { vec![(1, id), (2, 1), (3, column)] } else { vec![(1, id), (2, column << 32 | 1)] };
        out.extend(message(2, &numbers(&[(1, id), (2, 1)])));
        out.extend(message(4, &[numbers(&[(1, id)]), message(4, &numbers(&place))].concat()));
        out.extend(message(5, &numbers(&[(1, id), (2, strings.len() as u64), (4, 3)])));
        strings.push(name);
    }
    out.extend(strings.iter().flat_map(|text| message(6, text.as_bytes())));
    out
}

#[test]
fn profiles_that_state_where_functions_start_get_authored_names_and_lines() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let script = project.path("dist/app.min.js").display().to_string();
    type Write = fn(&str) -> Vec<u8>;
    let formats: &[(&str, Write)] = &[
        ("in.cpuprofile", cpuprofile),
        ("in.trace.json", trace),
        ("firefox.json", firefox),
        ("in.speedscope.json", speedscope),
        ("in.pprof", pprof),
    ];
    for (name, profile) in formats {
        for url in [script.clone(), format!("file://{script}")] {
            let input = project.path(name);
            fs::write(&input, profile(&url)).unwrap();
            let event: &[&str] = if name.contains("trace") { &["--event", "cpu"] } else { &[] };
            let shown = report(&input, event);
            for authored in ["splitWords", "Matrix", "dotProduct", "addOne", "runRound", "exports.late"] {
                assert!(shown.contains(authored), "{name}, {authored}: {shown}");
            }
            let off = report(&input, &[event, &["--source-maps", "off"]].concat());
            assert!(!off.contains("splitWords") && off.contains("a.l"), "{name}: {off}");
            let lines = report(&input, &[event, &["--sort", "line"]].concat());
            assert!(lines.contains("words.ts:10") && !lines.contains("app.min.js:"), "{name}: {lines}");
        }
    }
}

/// What ran is shown by the line where it ran, not by where its function starts.
#[test]
fn a_line_within_a_function_is_authored_too() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let script = project.path("dist/app.min.js").display().to_string();
    let text = String::from_utf8(firefox(&script)).unwrap();
    let (total, len) = (SCRIPT.find("o.r(e)").unwrap() + 1, stated().len());
    let at = |number: usize| {
        (0..len).map(|at| if at == 4 { number.to_string() } else { "null".to_owned() }).collect::<Vec<_>>().join(",")
    };
    let nulls = again("null", len);
    let ran = format!(r#""line":[{}],"column":[{}]"#, at(1), at(total));
    let input = project.path("firefox.json");
    fs::write(&input, text.replace(&format!(r#""line":[{nulls}],"column":[{nulls}]"#), &ran)).unwrap();
    let lines = report(&input, &["--sort", "line"]);
    assert!(lines.contains("words.ts:10"), "{lines}");
}

#[test]
fn a_script_of_a_server_is_one_beside_the_profile() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let input = project.path("dist/in.cpuprofile");
    fs::write(&input, cpuprofile("https://example.org/dist/app.min.js?v=3")).unwrap();
    let lines = report(&input, &["--sort", "line"]);
    assert!(lines.contains("words.ts:10"), "{lines}");
    let away = project.path("in.cpuprofile");
    fs::rename(&input, &away).unwrap();
    assert!(!report(&away, &["--sort", "line"]).contains("words.ts"));
}

/// An unsigned VLQ, as scopes have them.
fn unsigned_vlq(mut number: u64, out: &mut String) {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    loop {
        let digit = (number & 31) as usize | if number > 31 { 32 } else { 0 };
        out.push(char::from(DIGITS[digit]));
        number >>= 5;
        if number == 0 {
            return;
        }
    }
}

/// The scopes of a script and an authored file with two functions, `splitWords` and `runRound`: in the script they
/// start at their parameters.
fn scopes_of_two(names: &[&str]) -> String {
    let mut out = String::new();
    let mut item = |tag: char, unsigned: &[usize], signed: &[i64]| {
        if !out.is_empty() {
            out.push(',');
        }
        out.push(tag);
        unsigned.iter().for_each(|number| unsigned_vlq(*number as u64, &mut out));
        signed.iter().for_each(|number| vlq(*number, &mut out));
    };
    let name = |name: &str| names.iter().position(|known| *known == name).unwrap() as i64;
    // The file, and in it each function: flags (named, a function), lines, columns; its end.
    item('B', &[0, 0, 0], &[]);
    item('B', &[5, 0, 26], &[name("splitWords")]);
    item('C', &[2, 1], &[]);
    item('B', &[5, 7, 17], &[name("runRound") - name("splitWords")]);
    item('C', &[0, 45], &[]);
    item('C', &[3, 0], &[]);
    // The script, and in it each function: flags (of a scope, a function), columns, scope; its end.
    let (first, second) = (SCRIPT.find("(e){return e.split").unwrap(), SCRIPT.find("e=>o.r").unwrap());
    item('F', &[2, 0], &[0]);
    item('F', &[6, first], &[1]);
    item('G', &[20], &[]);
    item('F', &[6, second - first - 20], &[1]);
    item('G', &[9], &[]);
    item('G', &[9], &[]);
    out
}

/// Maps with scopes need no names at tokens.
#[test]
fn scopes_of_a_map_name_functions() {
    let unnamed: Vec<(&str, &str, bool)> = TOKENS.iter().map(|(own, authored, _)| (*own, *authored, false)).collect();
    let names = ["runRound", "splitWords"];
    let map = map_of(SCRIPT, &unnamed, &format!(r#""scopes":"{}","#, scopes_of_two(&names)));
    let map = map.replace(r#""names":[]"#, &format!(r#""names":{}"#, serde_json::to_string(&names).unwrap()));
    let project = Project::new(SCRIPT, map.as_bytes());
    let (shown, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!((&shown[0], &shown[5]), (&authored()[0], &authored()[5]), "{said}");
    // The map says nothing of the others.
    assert!(shown[1].starts_with("JS:^n ") && shown[7].starts_with("JS:*a.l "), "{shown:?}");
    write_map(&project, map.replace(r#""scopes":"B"#, r#""scopes":"!"#));
    let (shown, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!(shown, project.generated());
    assert!(said.contains("the scopes in the source map are damaged at item 0"), "{said}");
}

/// A compiler made `mid.js` of `later.ts`, a minifier `app.min.js` of that.
#[test]
fn the_map_of_a_map_leads_to_what_was_written_first() {
    let first =
        format!("// First of all\n{}", AUTHORED.replace("splitWords", "splitAll").replace("runRound", "startRound"));
    let (mut mappings, mut names, mut last) = (String::new(), Vec::new(), [0i64; 4]);
    for (line, text) in AUTHORED.lines().enumerate() {
        if line > 0 {
            mappings.push(';');
            last[0] = 0;
        }
        let words = ["splitWords", "runRound", "Matrix", "helpers", "addOne", "constructor", "dotProduct", "total"];
        let mut tokens: Vec<(usize, &str)> = words.iter().filter_map(|word| Some((text.find(word)?, *word))).collect();
        tokens.extend(
            ["(count)", "(round)", "(text)", "function ()", "late", "exports", "get "]
                .iter()
                .filter_map(|word| Some((text.find(word)?, *word))),
        );
        tokens.sort_unstable();
        for (number, (column, word)) in tokens.into_iter().enumerate() {
            let renamed = word.replace("splitWords", "splitAll").replace("runRound", "startRound");
            let column_before = first.lines().nth(line + 1).unwrap().find(&renamed).unwrap();
            if number > 0 {
                mappings.push(',');
            }
            for (value, last) in [column as i64, 0, line as i64 + 1, column_before as i64].into_iter().zip(&mut last) {
                vlq(value - *last, &mut mappings);
                *last = value;
            }
            if renamed != word {
                vlq(i64::from(!names.is_empty()), &mut mappings);
                names.push(renamed);
            }
        }
    }
    let earlier = format!(
        r#"{{"version":3,"sources":["../src/first.ts"],"sourcesContent":[{}],"names":{},"mappings":"{mappings}"}}"#,
        json(&first),
        serde_json::to_string(&names).unwrap()
    );
    let project = Project::new(SCRIPT, whole_map().replace("../src/words.ts", "mid.js").as_bytes());
    fs::write(project.path("dist/mid.js.map"), &earlier).unwrap();
    let (shown, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!(shown[0], "JS:*splitAll /src/first.ts:2:17", "{said}");
    assert_eq!(shown[5], "JS:*startRound /src/first.ts:11:20", "{said}");
    assert_eq!(shown[3], "JS:~get total /src/first.ts:8:7", "{said}");
    // One of another build is not believed.
    fs::write(project.path("dist/mid.js.map"), earlier.replace("// First of all", "// First\\n\\n of all")).unwrap();
    assert!(project.names(&["--source-maps", "auto"]).0[0].contains("splitWords /dist/mid.js:1:17"));
}

#[test]
fn functions_of_third_parties_are_counted() {
    let map = map_of(SCRIPT, TOKENS, r#""x_google_ignoreList":[0],"#);
    let project = Project::new(SCRIPT, map.as_bytes());
    let (shown, said) = project.names(&["--source-maps", "auto"]);
    assert_eq!(shown, authored());
    assert!(said.contains("8 functions are from third-party sources"), "{said}");
    write_map(&project, map.replace("[0]", "[7]"));
    assert_eq!(project.names(&["--source-maps", "auto"]).0, project.generated());
}

fn report(input: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("report").args(arguments).arg(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Real bundles of a program with libraries, by each tool, judged by npm's `source-map` and Babel's parser.
#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn names_of_real_bundles_are_those_of_independent_readers() {
    let work = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/source_maps/run.sh");
    let output = Command::new(script)
        .arg(env!("CARGO_BIN_EXE_jitgraft"))
        .arg(work.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut bundles = 0;
    for line in text.lines().filter(|line| line.contains('{')) {
        let (bundle, counts) = line.split_once(' ').unwrap();
        let counts: serde_json::Value = serde_json::from_str(counts).unwrap();
        let count = |key: &str| counts[key].as_u64().unwrap();
        assert_eq!((count("wrong"), count("wrong place"), count("not judged")), (0, 0, 0), "{bundle}\n{text}");
        // Minified bundles have hardly a name of their own left.
        let renamed = count("renamed") + count("renamed, statement mapped");
        let least = if bundle.contains(".min.") { count("functions") / 3 } else { 1 };
        assert!(renamed >= least, "{bundle}: {renamed} of {}", count("functions"));
        bundles += 1;
    }
    assert_eq!(bundles, 10, "{text}");
}

#[test]
fn each_function_of_a_recorded_bundle_is_called_as_it_was_written() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/source-maps");
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["collapse", "--source-maps", "auto"])
        .arg(fixture.join("dist/recorded.folded"))
        .output()
        .unwrap();
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<String>>();
    let authored = fs::read_to_string(fixture.join("authored.folded")).unwrap();
    assert_eq!(sorted(&String::from_utf8(output.stdout).unwrap()), sorted(&authored));
}

#[test]
fn a_flame_graph_of_folded_stacks_shows_authored_names() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/source-maps/dist/recorded.folded");
    for (source_maps, shown) in
        [("auto", "JS:*tally /srv/app/src/words.ts:16:17"), ("off", "/srv/app/dist/app.min.js:1:159")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(["flamegraph", "--source-maps", source_maps])
            .arg(&input)
            .output()
            .unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains(shown), "{source_maps}");
    }
}
