//! Functions that are called alike are told apart by where they start, in every table, picture and export; and no
//! sample of a profile gets lost between the file and the rows.

use crate::support::runner::{jitgraft, stdout};
use std::path::{Path, PathBuf};

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

/// Symbol, source and self weight of the rows of `report`.
fn rows(path: &Path) -> Vec<(String, String, i64)> {
    let table = stdout(&["report", "--limit", "0", "--format", "csv"], path);
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let [symbol, source, own] =
        ["symbol", "source", "self"].map(|name| head.iter().position(|column| *column == name).unwrap());
    lines.map(|line| (line[symbol].to_owned(), line[source].to_owned(), line[own].parse().unwrap())).collect()
}

const PYTHON: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"py-spy",
    "shared":{"frames":[{"name":"<module>","file":"m.py","line":1},{"name":"__init__","file":"/app/db.py","line":10},
    {"name":"__init__","file":"/app/db.py","line":12},{"name":"__init__","file":"/app/cache.py","line":44}]},
    "profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":10,
    "samples":[[0,1],[0,2],[0,3]],"weights":[3,4,2]}]}"#;

/// Functions without a name in one file, and one name in two files; DevTools counts lines and columns from 0.
const NODE: &str = r#"{"nodes":[
    {"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2,3,4,5]},
    {"id":2,"callFrame":{"functionName":"","url":"a.js","lineNumber":4,"columnNumber":2},
     "positionTicks":[{"line":6,"ticks":1},{"line":7,"ticks":2}]},
    {"id":3,"callFrame":{"functionName":"","url":"a.js","lineNumber":4,"columnNumber":30}},
    {"id":4,"callFrame":{"functionName":"get","url":"a.js","lineNumber":9,"columnNumber":0}},
    {"id":5,"callFrame":{"functionName":"get","url":"b.js","lineNumber":9,"columnNumber":0}}],
    "startTime":0,"endTime":7000,"samples":[2,2,2,3,4,5,5],"timeDeltas":[0,1000,1000,1000,1000,1000,1000]}"#;

#[test]
fn one_function_has_several_lines_and_two_files_are_two_functions() {
    let (_directory, path) = file("p.speedscope.json", PYTHON.as_bytes());
    let expected = [("__init__", "/app/db.py:12", 7), ("__init__", "/app/cache.py:44", 2), ("<module>", "m.py:1", 0)];
    assert_eq!(rows(&path), expected.map(|(name, source, own)| (name.to_owned(), source.to_owned(), own)));
    let lines = stdout(&["report", "-s", "line", "--limit", "0", "--format", "csv"], &path);
    for line in ["/app/db.py:10", "/app/db.py:12", "/app/cache.py:44"] {
        assert!(lines.contains(line), "{lines}");
    }
}

#[test]
fn functions_without_a_name_are_told_apart_by_position() {
    let (_directory, path) = file("p.cpuprofile", NODE.as_bytes());
    let own = |path: &Path| rows(path).into_iter().map(|(name, _, own)| (name, own / 1_000_000)).collect::<Vec<_>>();
    let expected = [("(anonymous)", 3), ("get", 2), ("(anonymous)", 1), ("get", 1)];
    let expected = expected.map(|(name, own)| (name.to_owned(), own));
    let mut sorted = own(&path);
    sorted.sort_by_key(|(name, own)| (-own, name.clone()));
    assert_eq!(sorted, expected);
    let lines = stdout(&["report", "-s", "line", "--limit", "0", "--format", "csv"], &path);
    // The function at 5:31 has no lines of its own: there is only where it starts.
    for row in ["1000000,1,a.js:6\n", "2000000,2,a.js:7\n", "1000000,1,a.js:5\n"] {
        assert!(lines.contains(row), "{lines}");
    }
    let picture = stdout(&["flamegraph", "-o", "-"], &path);
    for title in ["(anonymous) (a.js:5:3)", "(anonymous) (a.js:5:31)", "get (a.js:10)", "get (b.js:10)"] {
        assert!(picture.contains(title), "{title}");
    }
}

#[test]
fn exports_have_an_entry_for_each() {
    for to in ["firefox", "speedscope", "callgrind", "pprof", "otlp"] {
        let (directory, path) = file("p.cpuprofile", NODE.as_bytes());
        let out = directory.path().join(format!("out.{to}"));
        let written = jitgraft(&["export", "-q", "--to", to, "-o", out.to_str().unwrap()], &path);
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let mut own: Vec<i64> = rows(&out).iter().map(|(.., own)| own / 1_000_000).collect();
        own.sort_unstable();
        assert_eq!(own, [1, 1, 2, 3], "{to}");
    }
}

/// Two named functions on one line, and one name in two files. DevTools counts lines and columns from 0.
const GETTERS: &str = r#"{"nodes":[
    {"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2,3,4]},
    {"id":2,"callFrame":{"functionName":"get","url":"a.js","lineNumber":4,"columnNumber":9},
     "positionTicks":[{"line":6,"ticks":2}]},
    {"id":3,"callFrame":{"functionName":"get","url":"a.js","lineNumber":4,"columnNumber":39}},
    {"id":4,"callFrame":{"functionName":"get","url":"b.js","lineNumber":4,"columnNumber":9}}],
    "startTime":0,"endTime":7000,"samples":[2,2,3,4,4,4,4],"timeDeltas":[0,1000,1000,1000,1000,1000,1000]}"#;

#[test]
fn formats_that_only_have_names_append_where_functions_start() {
    let expected = [
        "JavaScript;get (a.js:5:10) 2000000",
        "JavaScript;get (a.js:5:40) 1000000",
        "JavaScript;get (b.js:5:10) 4000000",
    ];
    let (directory, path) = file("p.cpuprofile", GETTERS.as_bytes());
    assert_eq!(stdout(&["collapse"], &path).lines().collect::<Vec<_>>(), expected);
    let csv = stdout(&["export", "--to", "csv", "-o", "-"], &path);
    let mut rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').skip(9).collect()).collect();
    rows.dedup();
    let functions = ["get (a.js:5:10)", "get (a.js:5:40)", "get (b.js:5:10)"];
    assert_eq!(rows, functions.map(|function| vec![function, "", "JIT", "", function]));
    let picture = stdout(&["flamegraph", "--style", "inferno", "-o", "-"], &path);
    let table = stdout(&["report", "-s", "sym", "--format", "csv"], &path);
    let tree = stdout(&["report", "--tree", "--format", "csv"], &path);
    for function in functions {
        assert!(picture.contains(&format!("<title>{function} ")), "{function}");
        assert!(
            table.contains(&format!(",{function}\n")) && tree.contains(&format!(",{function}\n")),
            "{table} {tree}"
        );
        // A function is also found by the name that is shown.
        let callers = stdout(&["report", "--callers", function, "--format", "csv"], &path);
        assert!(callers.contains(function) && callers.lines().count() == 2, "{callers}");
    }
    // What is written from an export is what is written from the file.
    for to in ["firefox", "speedscope", "pprof", "otlp", "chrome", "folded"] {
        let out = directory.path().join(format!("out.{to}"));
        assert!(jitgraft(&["export", "-q", "--to", to, "-o", out.to_str().unwrap()], &path).status.success());
        assert_eq!(stdout(&["collapse"], &out).lines().collect::<Vec<_>>(), expected, "{to}");
    }
}

#[test]
fn cost_centers_of_ghc_are_told_apart_by_their_source() {
    let text = "COST CENTRE MODULE SRC no. entries %time %alloc %time %alloc ticks bytes\n\n\
        MAIN MAIN <built-in> 1 0 0.0 0.0 100.0 100.0 0 0\n CAF A <entire-module> 2 0 0.0 0.0 0.0 0.0 3 0\n\
        \x20go A a.hs:(4,1)-(6,40) 3 0 0.0 0.0 0.0 0.0 5 0\n go A a.hs:9:1-20 4 0 0.0 0.0 0.0 0.0 7 0\n\
        \x20go B b/c.hs:4:1-9 5 0 0.0 0.0 0.0 0.0 11 0\n";
    let (_directory, path) = file("p.prof", text.as_bytes());
    let folded = stdout(&["collapse", "-q"], &path);
    let expected = "MAIN;CAF 3000000\nMAIN;go (a.hs:4) 5000000\nMAIN;go (a.hs:9) 7000000\nMAIN;go (c.hs:4) 11000000\n";
    assert_eq!(folded, expected);
}

/// callgrind's format has no field for the start of a function: our writer appends it to the names of namesakes.
#[test]
fn a_callgrind_file_of_ours_tells_where_namesakes_start() {
    let (directory, path) = file("p.cpuprofile", GETTERS.as_bytes());
    let out = directory.path().join("callgrind.out.1");
    assert!(jitgraft(&["export", "-q", "--to", "callgrind", "-o", out.to_str().unwrap()], &path).status.success());
    let expected = ["get (a.js:5:10) 2000000", "get (a.js:5:40) 1000000"];
    let folded = |path: &Path| {
        let text = stdout(&["collapse", "-q"], path);
        text.lines().map(|line| line.trim_start_matches("JavaScript;").to_owned()).collect::<Vec<_>>()
    };
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("get:5:10") && text.contains("get:5:40"), "{text}");
    assert_eq!(folded(&out)[..2], expected);
    // What others wrote keeps its names, and so does a function that is the only one of its name.
    let other = directory.path().join("callgrind.out.2");
    std::fs::write(&other, text.replace("creator: jitgraft", "creator: other")).unwrap();
    assert!(folded(&other).contains(&"get:5:10 2000000".to_owned()), "{:?}", folded(&other));
    std::fs::write(&other, "creator: jitgraft 0\nevents: Ir\nfl=a.js\nfn=get:5:10\n1 7\nfn=set:6\n1 2\n").unwrap();
    assert_eq!(folded(&other), ["get:5:10 7", "set:6 2"]);
}

#[test]
fn exports_state_where_named_functions_start() {
    let (_directory, path) = file("p.cpuprofile", GETTERS.as_bytes());
    let export = |to: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(&["export", "-q", "--to", to, "-o", "-"], &path)).unwrap()
    };
    let place = |value: &serde_json::Value, keys: [&str; 3]| {
        let [file, line, column] = keys.map(|key| value[key].clone());
        (file.as_str().unwrap_or_default().to_owned(), line.as_u64(), column.as_u64())
    };
    let expected = [("a.js", 10), ("a.js", 40), ("b.js", 10)];
    let expected = expected.map(|(file, column)| (file.to_owned(), Some(5), Some(column)));
    let speedscope = export("speedscope");
    let frames = speedscope["shared"]["frames"].as_array().unwrap();
    let mut found: Vec<_> = frames.iter().map(|frame| place(frame, ["file", "line", "col"])).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, expected);
    let trace = export("chrome");
    let spans = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let mut found: Vec<_> = spans.map(|span| place(&span["args"], ["file", "line", "column"])).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, expected);
}

#[test]
fn costs_below_zero_are_carried_and_pictures_say_what_they_leave_out() {
    let text = "version: 1\ncreator: x\npositions: line\nevents: Time Bytes\nfl=a.php\nfn=take\n2 5 4000\n\n\
        fn=free\n9 3 -3000\n\nfn={main}\n1 2 196\ncfn=take\ncalls=1 0 0\n3 5 4000\ncfn=free\ncalls=1 0 0\n4 3 -3000\n";
    let (directory, path) = file("cachegrind.out.7", text.as_bytes());
    let table = |path: &Path| stdout(&["report", "--limit", "0", "--format", "csv", "--event", "Bytes"], path);
    let costs = |table: &str, name: &str| -> (i64, i64) {
        let line = table.lines().find(|line| line.contains(name)).unwrap();
        let cells: Vec<&str> = line.split(',').collect();
        (cells[2].parse().unwrap(), cells[3].parse().unwrap())
    };
    assert_eq!((costs(&table(&path), "{main}"), costs(&table(&path), "free")), ((196, 1196), (-3000, -3000)));
    for to in ["callgrind", "pprof"] {
        let out = directory.path().join(format!("out.{to}"));
        assert!(jitgraft(&["export", "-q", "--to", to, "-o", out.to_str().unwrap()], &path).status.success());
        assert_eq!(costs(&table(&out), "free"), (-3000, -3000), "{to}");
        assert_eq!(costs(&table(&out), "{main}"), (196, 1196), "{to}");
    }
    let (page, picture) = (directory.path().join("x.html"), directory.path().join("x.svg"));
    let (page, picture) = (page.to_str().unwrap(), picture.to_str().unwrap());
    for command in [
        &["collapse", "--event", "Bytes"][..],
        &["view", "-o", page],
        &["flamegraph", "--event", "Bytes", "-o", picture],
        &["flamegraph", "--event", "Bytes", "--style", "inferno", "-o", picture],
    ] {
        let output = jitgraft(command, &path);
        assert!(output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 negative weight (-3,000 in total)"), "{command:?}: {said}");
    }
    // Where there is nothing else, the reason is not that filters left nothing.
    let (_directory, only) = file("cachegrind.out.8", b"events: Bytes\nfl=a.php\nfn=free\n9 -7\n");
    for style in ["page", "inferno"] {
        let output = jitgraft(&["flamegraph", "--style", style, "-o", picture], &only);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !said.contains("filters"), "{style}: {said}");
    }
}

#[test]
fn tables_have_all_negative_costs_and_totals_have_their_sign() {
    struct Costs {
        text: &'static str,
        event: &'static str,
        total: &'static str,
        functions: &'static [(&'static str, i64)],
    }
    let cases = [
        Costs {
            text: "events: Time Bytes\nfl=a.php\nfn=take\n2 5 1000\nfn=free\n9 3 -3000\n",
            event: "Bytes",
            total: "# -2,000 Bytes\n",
            functions: &[("free", -3000), ("take", 1000)],
        },
        Costs {
            text: "events: Bytes\nfl=a.php\nfn=free\n9 -7\nfn=drop\n9 -2\n",
            event: "Bytes",
            total: "# -9 Bytes\n",
            functions: &[("drop", -2), ("free", -7)],
        },
        Costs {
            text: "events: Ir\nfl=a.c\nfn=f\n1 -100\nfn=g\n3 100\n",
            event: "Ir",
            total: "# 0 Ir\n",
            functions: &[("f", -100), ("g", 100)],
        },
    ];
    for Costs { text, event, total, functions: expected } in cases {
        let (directory, path) = file("cachegrind.out.7", text.as_bytes());
        let output = jitgraft(&["--strict", "report", "--limit", "0", "--event", event], &path);
        let (table, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.is_empty(), "{said}");
        assert!(table.starts_with(total) && table.contains("100.00% in functions with a name"), "{table}");
        let csv = stdout(&["report", "--limit", "0", "--format", "csv", "--event", event], &path);
        let mut found: Vec<(String, i64)> = Vec::new();
        for line in csv.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            found.push((cells[8].to_owned(), cells[2].parse().unwrap()));
        }
        found.sort();
        let expected: Vec<(String, i64)> = expected.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect();
        assert_eq!(found, expected, "{csv}");
        // A difference has the same functions, also those whose share of a negative total is negative.
        let before = directory.path().join("before.out");
        std::fs::write(&before, text).unwrap();
        let diff = ["report", "--limit", "0", "--format", "csv", "--event", event, "--diff", before.to_str().unwrap()];
        assert_eq!(stdout(&diff, &path).lines().count(), 1 + expected.len());
        let folded = jitgraft(&["collapse", "--event", event], &path);
        assert!(String::from_utf8_lossy(&folded.stderr).contains("negative weight"));
    }
}

#[test]
fn events_are_computed_from_others_and_only_events_must_be_stated() {
    let text = "events: Ir Bm\nevent: CEst = Ir + 10 Bm : Cycles\nevent: Both = 2 CEst - Ir\nevent: No = Ir + Dr\n\
        fn=main\n1 100 5\ncfn=f\ncalls=1 1\n2 50 2\nfn=f\n1 50 2\n";
    let (_directory, path) = file("callgrind.out.1", text.as_bytes());
    let own = |event: &str| {
        let table = stdout(&["report", "--limit", "0", "--format", "csv", "--event", event], &path);
        table.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((own("CEst"), own("Both")), (vec!["150".to_owned(), "70".into()], vec!["200".to_owned(), "90".into()]));
    assert!(!jitgraft(&["--strict", "report"], &path).status.success(), "a formula of an unknown event");
}

#[test]
fn cachegrind_s_files_have_functions_lines_and_all_events() {
    let text = "desc: I1 cache: 32768 B\ncmd: ./a.out\nevents: Ir I1mr\nfl=/src/a.c\nfn=main\n3 10 1\n4 20 0\n\
        fl=/src/b.c\nfn=init\n7 5 2\nfl=/src/c.c\nfn=init\n9 6 3\nsummary: 41 6\n";
    let (_directory, path) = file("cachegrind.out.1", text.as_bytes());
    let mut functions = rows(&path);
    functions.sort();
    // Both events, Ir and I1mr.
    let expected = [
        ("init", "/src/b.c", 2),
        ("init", "/src/b.c", 5),
        ("init", "/src/c.c", 3),
        ("init", "/src/c.c", 6),
        ("main", "/src/a.c", 1),
        ("main", "/src/a.c", 30),
    ];
    assert_eq!(functions, expected.map(|(name, source, own)| (name.to_owned(), source.to_owned(), own)));
    let lines = stdout(&["report", "-s", "line", "--limit", "0", "--format", "csv"], &path);
    for line in [",20,20,20,/src/a.c:4", ",10,10,10,/src/a.c:3", ",5,5,5,/src/b.c:7", ",6,6,6,/src/c.c:9"] {
        assert!(lines.contains(line), "{lines}");
    }
    let misses = stdout(&["report", "--limit", "0", "--format", "csv", "--event", "I1mr"], &path);
    assert!(misses.contains(",3,3,3,unknown,,,init,/src/c.c"), "{misses}");
}

/// Every sample of the file is in a row or was reported, by how many there are in the text below.
#[test]
fn no_sample_is_lost() {
    let firefox = r#"{"meta":{"preprocessedProfileVersion":58},"shared":{"stringArray":["f"],
        "stackTable":{"frame":[0],"prefix":[null]},"frameTable":{"func":[0]},"funcTable":{"name":[0]}},
        "threads":[{"name":"a","samples":{"stack":[0,null,0,7],"weight":[5,2,-3,1]}}]}"#;
    let speedscope = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f"}]},
        "profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":5,
        "samples":[[0],[],[0],[9]],"weights":[5,2,-3,1]}]}"#;
    for (name, text) in [("a.json", firefox), ("a.speedscope.json", speedscope)] {
        let (_directory, path) = file(name, text.as_bytes());
        let output = jitgraft(&["report", "--limit", "0", "--format", "csv"], &path);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 sample skipped"), "{name}: {said}");
        let sums: Vec<(String, i64)> = rows(&path).into_iter().map(|(name, _, own)| (name, own)).collect();
        assert_eq!(sums, [("[unknown]".to_owned(), 2), ("f".to_owned(), 2)], "{name}");
        assert!(!jitgraft(&["--strict", "report"], &path).status.success(), "{name}");
    }
}
