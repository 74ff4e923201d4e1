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
fn mappings(script: &str, tokens: &[(&str, &str, bool)]) -> (String, Vec<String>) {
    let (mut mappings, mut names) = (String::new(), Vec::new());
    let mut last = [0i64; 4];
    for (generated, authored, named) in tokens {
        let column = script.find(generated).unwrap_or_else(|| panic!("{generated}")) as i64;
        let at = AUTHORED.find(authored).unwrap_or_else(|| panic!("{authored}"));
        let line = AUTHORED[..at].matches('\n').count() as i64;
        let in_line = (at - AUTHORED[..at].rfind('\n').map_or(0, |end| end + 1)) as i64;
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
    let (mappings, names) = mappings(script, tokens);
    let names = serde_json::to_string(&names).unwrap();
    let content = json(AUTHORED);
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
    assert!(said.contains("6 of 8 functions have authored names, 2 more only authored positions"), "{said}");
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
        said: "its debugId is bbbb, the script's is aaaa",
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
        said: "outside of the script's directory",
    },
    Attack {
        name: "outside by URL",
        make: |project| mention(project, "file:///etc/passwd"),
        said: "outside of the script's directory",
    },
    Attack {
        name: "outside by escapes",
        make: |project| mention(project, "%2e%2e/%2e%2e/etc/passwd"),
        said: "outside of the script's directory",
    },
    Attack {
        name: "far away",
        make: |project| mention(project, "https://example.org/app.map"),
        said: "nothing is fetched",
    },
    Attack {
        name: "broken data",
        make: |project| mention(project, "data:application/json;base64,%%%"),
        said: "cannot be decoded",
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

#[test]
fn the_functions_of_a_v8_profile_are_found_by_their_columns() {
    let project = Project::new(SCRIPT, whole_map().as_bytes());
    let node = |(at, (name, start, _)): (usize, &(&str, &str, &str))| {
        let name = name.trim_start_matches("JS:").trim_start_matches(['*', '+', '^', '~']).trim_start_matches("get ");
        let (column, id) = (SCRIPT.find(start).unwrap(), at + 2);
        let url = project.path("dist/app.min.js").display().to_string();
        format!(
            r#"{{"id":{id},"callFrame":{{"functionName":"{name}","scriptId":"1","url":"{url}","lineNumber":0,"columnNumber":{column}}},"hitCount":1,"children":[]}}"#
        )
    };
    let nodes: Vec<String> =
        FUNCTIONS.iter().enumerate().filter(|(_, (name, ..))| !name.contains("get ")).map(node).collect();
    let ids: Vec<String> =
        (0..FUNCTIONS.len()).filter(|at| !FUNCTIONS[*at].0.contains("get ")).map(|at| (at + 2).to_string()).collect();
    let ids = ids.join(",");
    let deltas = vec!["1000"; nodes.len()].join(",");
    let root = format!(
        r#"{{"id":1,"callFrame":{{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1}},"children":[{ids}]}}"#
    );
    let text = format!(
        r#"{{"nodes":[{root},{}],"startTime":0,"endTime":9000,"samples":[{ids}],"timeDeltas":[{deltas}]}}"#,
        nodes.join(",")
    );
    let input = project.path("in.cpuprofile");
    fs::write(&input, text).unwrap();
    let report = |arguments: &[&str]| report(&input, arguments);
    let shown = report(&[]);
    for name in ["splitWords", "Matrix", "dotProduct", "addOne", "runRound", "exports.late", "(anonymous)"] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    let off = report(&["--source-maps", "off"]);
    assert!(!off.contains("splitWords") && off.contains("a.l"), "{off}");
    let lines = report(&["--sort", "line"]);
    assert!(lines.contains("words.ts:10"), "{lines}");
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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/source_maps/run.sh");
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
