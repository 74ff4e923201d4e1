//! Trace events: rules of one producer are applied to that producer's traces only, and nothing is skipped in silence.

use crate::support::runner::{jitgraft, stdout};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn file(text: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.json");
    fs::write(&path, text).unwrap();
    (dir, path)
}

/// The stacks of a trace without their roots, with the microseconds of each.
fn stacks(text: &str) -> BTreeMap<String, u64> {
    let (_dir, path) = file(text);
    let folded = stdout(&["collapse", "-q"], &path);
    let line = |line: &str| {
        let (names, weight) = line.rsplit_once(' ').unwrap();
        let (_, names) = names.split_once(';').unwrap();
        (names.to_owned(), weight.parse::<u64>().unwrap() / 1000)
    };
    folded.lines().map(line).collect()
}

fn expected(stacks: &[(&str, u64)]) -> BTreeMap<String, u64> {
    stacks.iter().map(|(names, weight)| ((*names).to_owned(), *weight)).collect()
}

/// Events from their phases, ids, times in microseconds and names.
fn events(list: &[(&str, &str, u64, &str)], more: &str) -> String {
    let event = |(phase, id, time, name): &(&str, &str, u64, &str)| {
        format!(r#"{{"ph":"{phase}","id":"{id}","ts":{time},"name":"{name}","pid":1,"tid":2{more}}}"#)
    };
    format!("[{}]", list.iter().map(event).collect::<Vec<_>>().join(",\n"))
}

/// Says what stderr does, and whether `--strict` fails.
fn said(args: &[&str], text: &str) -> (String, bool) {
    let (_dir, path) = file(text);
    let output = jitgraft(args, &path);
    let strict = jitgraft(&[args, &["--strict"]].concat(), &path);
    (String::from_utf8(output.stderr).unwrap(), !strict.status.success())
}

#[test]
fn operations_of_different_ids_are_side_by_side() {
    // A 20 + db 80, B 30 + parse 10, both at a time, in the middle of `main`.
    let list = [
        ("B", "", 0, "main"),
        ("b", "1", 0, "A"),
        ("b", "1", 10, "db"),
        ("b", "2", 20, "B"),
        ("b", "2", 30, "parse"),
        ("e", "2", 40, "parse"),
        ("e", "2", 60, "B"),
        ("e", "1", 90, "db"),
        ("e", "1", 100, "A"),
        ("b", "2", 150, "C"),
        ("e", "2", 170, "C"),
        ("E", "", 200, "main"),
    ];
    let want = expected(&[("main", 200), ("A", 20), ("A;db", 80), ("B", 30), ("B;parse", 10), ("C", 20)]);
    assert_eq!(stacks(&events(&list, r#","cat":"srv""#)), want);
    // Equal IDs in two categories are two operations. This also applies to the old phases.
    let old = [("S", "5", 0, "req"), ("S", "1", 10, "dns"), ("F", "1", 20, "dns"), ("F", "5", 30, "req")];
    assert_eq!(stacks(&events(&old, "")), expected(&[("req", 30), ("dns", 10)]));
    // What an operation does on another thread is a part of it.
    let across: Vec<String> = [("b", 1, 0, "A"), ("b", 2, 10, "db"), ("e", 2, 30, "db"), ("e", 3, 40, "A")]
        .map(|(phase, tid, time, name)| {
            format!(r#"{{"ph":"{phase}","id":1,"ts":{time},"name":"{name}","pid":1,"tid":{tid}}}"#)
        })
        .to_vec();
    assert_eq!(stacks(&format!("[{}]", across.join(","))), expected(&[("A", 20), ("A;db", 20)]));
    let local: Vec<String> = [(1, "b", 0), (2, "b", 1), (2, "e", 3), (1, "e", 4)]
        .map(|(pid, phase, time)| {
            format!(r#"{{"ph":"{phase}","id2":{{"local":"0x1"}},"ts":{time},"name":"p{pid}","pid":{pid},"tid":1}}"#)
        })
        .to_vec();
    assert_eq!(stacks(&format!("[{}]", local.join(","))), expected(&[("p1", 4), ("p2", 2)]));
}

#[test]
fn frames_and_steps_are_nested_and_hidden_in_miris_traces_only() {
    let list = [("b", "1", 0, "frame"), ("b", "2", 10, "step"), ("e", "2", 20, "step"), ("e", "1", 30, "frame")];
    let game = events(&list, r#","cat":"bevy_app","args":{"frame":"7"}"#);
    let miri = events(&list, r#","args":{"message":"f","step":"eval_place"}"#);
    assert_eq!(stacks(&miri), expected(&[("f", 20), ("f;step", 10)]));
    assert_eq!(stacks(&game), expected(&[("frame", 30), ("step", 10)]));
    let rows = |text: &str, more: &[&str]| {
        let (_dir, path) = file(text);
        let csv = stdout(&[&["stats", "--format", "csv"], more].concat(), &path);
        csv.lines().skip(3).map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&game, &[]), ["frame", "step"]);
    assert!(rows(&miri, &[]).is_empty());
    assert_eq!(rows(&game, &["--exclude", "step"]), ["frame"]);
    assert_eq!(rows(&miri, &["--exclude", ""]), ["frame", "step"]);
}

const CLANG: &str = r#"{"traceEvents":[
{"pid":1,"tid":1,"ph":"X","ts":0,"dur":9000,"name":"ExecuteCompiler"},
{"pid":1,"tid":1,"ph":"X","ts":200,"dur":3000,"name":"Source","args":{"detail":"a/vector"}},
{"pid":1,"tid":1,"ph":"X","ts":300,"dur":1000,"name":"Source","args":{"detail":"a/algo.h"}},
{"pid":1,"tid":1,"ph":"X","ts":3400,"dur":2000,"name":"InstantiateFunction","args":{"detail":"std::sort<int *>"}},
{"pid":1,"tid":1,"ph":"X","ts":6000,"dur":500,"name":"Source","args":{"detail":"a/vector"}},
{"pid":1,"tid":2,"ph":"X","ts":0,"dur":4000,"name":"Total Source","args":{"count":2,"avg ms":2}},
{"cat":"","pid":1,"tid":1,"ts":0,"ph":"M","name":"process_name","args":{"name":"clang-16"}}],"beginningOfTime":1}"#;

#[test]
fn clangs_sums_are_no_work_and_time_by_argument_is_told() {
    let all = stacks(CLANG);
    assert!(all.keys().all(|names| !names.contains("Total")), "{all:?}");
    assert_eq!(all.values().sum::<u64>(), 9000);
    let (_dir, path) = file(CLANG);
    let csv = stdout(&["stats", "--by-arg", "detail", "--format", "csv"], &path);
    let rows: Vec<&str> = csv.lines().map(|line| line.rsplitn(5, ',').last().unwrap()).collect();
    // Name, value, count, sum and self in nanoseconds.
    let want = [
        "name,value,count,sum,self",
        "Source,a/vector,2,3500000,2500000",
        "InstantiateFunction,std::sort<int *>,1,2000000,2000000",
        "Source,a/algo.h,1,1000000,1000000",
    ];
    assert_eq!(rows, want);
    assert!(stdout(&["stats", "--sub", "Source"], &path).contains("a/vector"));
    let preset = stdout(&["stats", "--preset", "clang"], &path);
    assert!(preset.contains("# time by detail") && preset.contains("# all spans"), "{preset}");
    // Another producer's detail is no action, but can be asked for; its totals are work.
    let other = CLANG.replace("clang-16", "game").replace("avg ms", "mean");
    assert!(stacks(&other).contains_key("Total Source"));
    let (_dir, path) = file(&other);
    let output = jitgraft(&["stats", "--sub", "Source"], &path);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout(&["stats", "--by-arg", "detail"], &path).contains("a/vector"));
}

#[test]
fn events_without_a_thread_belong_to_that_of_the_process_and_nameless_spans_are_unnamed() {
    let text = r#"[{"ph":"X","ts":1,"dur":5,"pid":7},{"name":"Parent","ph":"X","ts":1,"dur":10,"pid":7,"tid":7},
        {"name":"","ph":"B","ts":20,"pid":7,"tid":7},{"ph":"E","ts":30,"pid":7}]"#;
    assert_eq!(stacks(text), expected(&[("Parent", 5), ("Parent;[unnamed]", 5), ("[unnamed]", 10)]));
}

#[test]
fn sampled_threads_keep_their_names() {
    let chunk = |id: u32, tid: u32, function: &str| {
        format!(
            r#"{{"name":"Profile","ph":"P","id":"0x{id}","pid":10,"tid":{tid},"args":{{"data":{{"startTime":1000}}}}}},
            {{"name":"ProfileChunk","ph":"P","id":"0x{id}","pid":10,"tid":99,"args":{{"data":{{"cpuProfile":{{"nodes":[{{"id":1,"callFrame":{{"functionName":"(root)"}}}},
            {{"id":2,"parent":1,"callFrame":{{"functionName":"{function}"}}}}],"samples":[2]}},"timeDeltas":[100],"endTime":1400}}}}}}"#
        )
    };
    let name = |tid: u32, name: &str| {
        format!(r#"{{"name":"thread_name","ph":"M","pid":10,"tid":{tid},"args":{{"name":"{name}"}}}}"#)
    };
    // A name may come behind the samples; one thread has none.
    let text = format!(
        "[{},{},{},{},{}]",
        name(1, "Main"),
        chunk(1, 1, "page"),
        chunk(2, 7, "worker"),
        chunk(3, 8, "other"),
        name(7, "Worker thread")
    );
    let (_dir, path) = file(&text);
    let csv = stdout(&["report", "-s", "comm", "--event", "cpu", "--format", "csv"], &path);
    for name in ["Main", "Worker thread", "JavaScript"] {
        assert!(csv.contains(name), "{csv}");
    }
}

/// A function's samples of one thread, as V8 writes them into traces: the start of the profile on its own thread, and a
/// chunk with two samples on another one.
fn v8_profile(id: &str, tid: u32, function: &str, lines: &str) -> [String; 2] {
    let start = format!(
        r#"{{"name":"Profile","ph":"P","id":"{id}","pid":10,"tid":{tid},"ts":1000,"args":{{"data":{{"startTime":1000}}}}}}"#
    );
    let chunk = format!(
        r#"{{"name":"ProfileChunk","ph":"P","id":"{id}","pid":10,"tid":99,"ts":2000,"args":{{"data":{{"endTime":1300,
        "cpuProfile":{{"nodes":[{{"id":1,"callFrame":{{"functionName":"(root)"}}}},
        {{"id":2,"parent":1,"callFrame":{{"functionName":"{function}","url":"a.js","lineNumber":2}}}}],"samples":[2,2]}},
        "timeDeltas":[100,100]{lines}}}}}}}"#
    );
    [start, chunk]
}

#[test]
fn the_order_of_a_sampled_threads_events_in_the_file_does_not_matter() {
    let name = r#"{"name":"thread_name","ph":"M","pid":10,"tid":7,"args":{"name":"Worker"}}"#;
    let process = r#"{"name":"process_name","ph":"M","pid":10,"tid":1,"args":{"name":"Renderer"}}"#;
    let [start, chunk] = v8_profile("0x1", 7, "f", "");
    for (events, thread) in [
        ([&start, &chunk, name], "Worker"),
        ([&chunk, &start, name], "Worker"),
        ([name, &chunk, &start], "Worker"),
        // Without a name of its own, the thread is called like its process.
        ([process, &chunk, &start], "Renderer"),
    ] {
        let (_dir, path) = file(&format!("[{}]", events.join(",")));
        let csv = stdout(&["report", "-s", "comm,tid", "--event", "cpu", "--format", "csv"], &path);
        assert!(csv.contains(&format!(",200000,200000,2,{thread},7\n")), "{csv}");
    }
}

#[test]
fn whole_profiles_of_two_threads_stay_apart() {
    let event = |tid: u32, function: &str| {
        format!(
            r#"{{"name":"CpuProfile","ph":"I","pid":1,"tid":{tid},"ts":1,"args":{{"data":{{"cpuProfile":{{"nodes":[
            {{"id":1,"callFrame":{{"functionName":"(root)"}},"children":[2]}},{{"id":2,"callFrame":{{"functionName":"{function}"}}}}],
            "startTime":0,"endTime":300,"samples":[2],"timeDeltas":[100]}}}}}}}}"#
        )
    };
    for (first, second) in [(2, 3), (2, 2)] {
        let text = format!("[{},{}]", event(first, "f"), event(second, "g"));
        assert_eq!(stacks(&text), expected(&[("f", 200), ("g", 200)]));
    }
}

#[test]
fn lines_of_chunks_are_the_lines_that_ran() {
    for (lines, want) in [
        (r#","lines":[5,9]"#, &["100000,1,a.js:5", "100000,1,a.js:9"][..]),
        (r#","lines":[5,5]"#, &["200000,2,a.js:5"]),
        // Unknown lines leave the function's own.
        (r#","lines":[0,9]"#, &["100000,1,a.js:3", "100000,1,a.js:9"]),
        ("", &["200000,2,a.js:3"]),
    ] {
        let (_dir, path) = file(&format!("[{}]", v8_profile("0x1", 7, "f", lines).join(",")));
        let csv = stdout(&["report", "-s", "line", "--event", "cpu", "--format", "csv"], &path);
        for row in want {
            assert!(csv.contains(row), "{lines}: no {row} in {csv}");
        }
        assert_eq!(csv.lines().count(), 1 + want.len(), "{csv}");
    }
}

#[test]
fn arguments_may_be_stated_at_the_end_of_a_span() {
    for (text, want) in [
        (r#"{"name":"r","ph":"B","ts":0},{"ph":"E","ts":5,"args":{"k":"end"}}"#, "r,end,1,5000,"),
        (r#"{"name":"r","ph":"B","ts":0,"args":{"k":"start"}},{"ph":"E","ts":5}"#, "r,start,1,5000,"),
        (r#"{"name":"r","ph":"B","ts":0,"args":{"k":"start"}},{"ph":"E","ts":5,"args":{"k":"end"}}"#, "r,end,1,5000,"),
        (r#"{"name":"r","ph":"b","id":1,"ts":0},{"name":"r","ph":"e","id":1,"ts":5,"args":{"k":7}}"#, "r,7,1,5000,"),
    ] {
        let (_dir, path) = file(&format!("[{text}]"));
        let csv = stdout(&["stats", "--by-arg", "k", "--format", "csv"], &path);
        assert_eq!((csv.contains(want), csv.lines().count()), (true, 2), "{text}: {csv}");
    }
}

#[test]
fn an_argument_that_no_span_has_is_reported() {
    let text = r#"[{"name":"r","ph":"X","ts":0,"dur":5,"args":{"k":"a"}}]"#;
    for (question, word) in [(["--by-arg", "x"], "'x'"), (["--sub", "r"], "'r'"), (["--sub", "none"], "'none'")] {
        let (told, fails) = said(&[&["stats"][..], &question].concat(), text);
        assert!(told.contains("error: no ") && told.contains(word) && fails, "{told}");
    }
    assert!(!said(&["stats", "--by-arg", "k"], text).0.contains("no selected span"));
}

#[test]
fn samples_beside_the_events_are_read() {
    let samples = r#""samples":[{"cpu":0,"name":"cycles","ts":1000,"pid":7,"tid":9,"weight":1,"sf":2},
        {"name":"cycles","ts":2000,"pid":7,"tid":9,"weight":1,"sf":2},{"name":"cycles","ts":3000,"pid":7,"tid":9,"weight":1,"sf":1},
        {"name":"cycles","ts":4000,"pid":7,"tid":9,"weight":1,"sf":77}]"#;
    let frames = r#""stackFrames":{"1":{"category":"JavaScript","name":"render"},"2":{"name":"layout","parent":"1"}}"#;
    let events = r#""traceEvents":[{"name":"thread_name","ph":"M","pid":7,"tid":9,"args":{"name":"mqt_js"}}]"#;
    for text in [
        format!("{{{events},{samples},{frames}}}"),
        format!("{{{frames},{samples},{events}}}"),
        format!("{{{samples},{frames}}}"),
    ] {
        let (_dir, path) = file(&text);
        let folded = stdout(&["collapse", "-q"], &path);
        let root = if text.contains("mqt_js") { "mqt_js" } else { "samples" };
        assert_eq!(folded, format!("{root};render 1\n{root};render;layout 2\n"), "{text}");
        let (said, fails) = said(&["collapse", "-o", "/dev/null"], &text);
        assert!(said.contains("1 sample skipped") && fails, "{said}");
    }
}

#[test]
fn whole_profiles_in_an_event_are_read_and_stacks_of_instants_are_counted() {
    let profile = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},{"id":2,"callFrame":{"functionName":"f"}}],
        "startTime":1000,"endTime":1300,"samples":[2,2],"timestamps":[1100,1200]}"#;
    let text = format!(
        r#"[{{"name":"CpuProfile","ph":"I","pid":1,"tid":2,"ts":1,"args":{{"data":{{"cpuProfile":{profile}}}}}}}]"#
    );
    assert_eq!(stacks(&text), expected(&[("f", 200)]));
    let instants = r#"[{"name":"a","ph":"i","ts":1,"stack":["f","g"]},{"name":"b","ph":"I","ts":2,"sf":3},{"name":"c","ph":"X","ts":2,"dur":1}]"#;
    let (said, fails) = said(&["collapse", "-o", "/dev/null"], instants);
    assert!(said.contains("2 instants with a call stack") && fails, "{said}");
}

#[test]
fn all_spans_says_what_it_leaves_out_and_json_has_one_shape() {
    let text = r#"[{"name":"a","ph":"X","ts":0,"dur":5},{"name":"b","ph":"X","ts":1,"dur":0},{"name":"c","ph":"i","ts":2},
        {"name":"d","ph":"i","ts":3},{"name":"e","ph":"B","ts":4}]"#;
    let (told, _) = said(&["stats", "--all"], text);
    assert!(told.contains("all spans, without 2 instants, 1 span of no duration, 1 span that never ends"), "{told}");
    let (_dir, path) = file(text);
    for (questions, keys) in
        [(&["--all"][..], vec!["all spans", "version"]), (&["--all", "--gaps"], vec!["all spans", "gaps", "version"])]
    {
        let args = [&["stats", "-q", "--format", "json"], questions].concat();
        let json: serde_json::Value = serde_json::from_str(&stdout(&args, &path)).unwrap();
        let found: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(found, keys);
    }
}

#[test]
fn almost_json_is_read_and_damage_is_told_once_without_quoting_it() {
    let good = |name: &str| format!(r#"{{"name":"{name}","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}}"#);
    let almost = [
        "{\"name\":\"tab\there\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":1,\"tid\":1}".to_owned(),
        r#"{"name":"C:\Users","ph":"X","ts":10,"dur":2,"pid":1,"tid":1,"args":{"x":NaN}}"#.to_owned(),
        r#"{"name":"half \ud83d","ph":"X","ts":15,"dur":+2,"pid":1,"tid":1}"#.to_owned(),
    ];
    let text = format!("[{},\n{}\n]", good("a"), almost.join(",\n"));
    let names: Vec<String> = stacks(&text).into_keys().collect();
    assert_eq!(names, ["C:\\Users", "a", "half \u{fffd}", "tab\there"]);
    assert_eq!(said(&["collapse", "-o", "/dev/null"], &text).0, "");
    let secret = r#"{"name":"secret","ph":"X" "ts":9}"#;
    let (told, fails) =
        said(&["collapse", "-o", "/dev/null"], &format!("[{},\n{secret},\n{secret},\n{}", good("a"), good("b")));
    assert!(fails && told.contains("2 trace events skipped") && !told.contains("secret"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn nesting_of_any_depth_does_not_overflow() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!(r#"[{{"name":"a","ph":"X","ts":0,"dur":5,"args":{{"x":{deep}}},"y":{deep}}}]"#);
    assert_eq!(stacks(&text), expected(&[("a", 5)]));
    let open = format!(r#"[{{"ph":"X","ts":1,"dur":1}},{}"#, r#"{"a":["#.repeat(100_000));
    let (told, _) = said(&["collapse", "-o", "/dev/null"], &open);
    assert!(told.contains("skipped"), "{told}");
    for member in ["samples", "stackFrames"] {
        let value = if member == "samples" { format!(r#"[{{"sf":{deep}}}]"#) } else { format!(r#"{{"1":{deep}}}"#) };
        let (told, fails) =
            said(&["collapse", "-o", "/dev/null"], &format!(r#"{{"traceEvents":[],"{member}":{value}}}"#));
        assert!(fails && told.contains("skipped"), "{told}");
    }
}

#[test]
fn samples_come_first_where_spans_take_no_time() {
    let text = r#"{"traceEvents":[{"name":"js","ph":"X","ts":"5","dur":0,"pid":7,"tid":"9"}],
        "samples":[{"cpu":"-1","name":"","ts":"6","pid":7,"tid":"9","weight":"2","sf":5}],"stackFrames":{"5":{"name":"f"}}}"#;
    let (_dir, path) = file(text);
    assert_eq!(stdout(&["collapse"], &path), "samples;f 2\n");
}

#[test]
fn a_gap_is_a_time_in_which_no_track_has_a_span() {
    let span = |name: &str, tid: u32, start: u32, duration: u32| {
        format!(r#"{{"name":"{name}","ph":"X","pid":1,"tid":{tid},"ts":{start},"dur":{duration}}}"#)
    };
    let text =
        format!("[{},{},{},{}]", span("a", 1, 0, 10), span("b", 2, 2, 3), span("c", 1, 14, 2), span("d", 2, 15, 5));
    let (_dir, path) = file(&text);
    let gaps = |arguments: &[&str]| stdout(&[&["stats", "-q", "--gaps", "--format", "csv"], arguments].concat(), &path);
    assert_eq!(gaps(&[]), "ts,dur,thread,after,before\n10000,4000,1,a,c\n");
    let compat = gaps(&["--perfetto-compat"]);
    assert!(compat.contains("\n10000,-8000,1,a,b\n") && compat.contains("\n5000,9000,2,b,c\n"), "{compat}");
}

#[test]
fn limits_of_time_that_select_no_span_say_which_times_there_are() {
    let (_dir, path) = file(r#"[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":2}]"#);
    for limits in [
        &["--time", "5,"][..],
        &["--time", ",1us"],
        &["--all", "--time", "4us,9us"],
        &["--all", "--time", "4us-5us,7us-9us"],
        &["--from", "5s"],
        &["--to", "1us"],
        &["--all", "--from", "4us", "--to", "9us"],
    ] {
        let output = jitgraft(&[&["stats", "-q"], limits].concat(), &path);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(output.stdout.is_empty() && said.contains("0.000001000 to 0.000003000 s"), "{said}");
    }
    for limits in
        [["--time", "2us,"], ["--time", "0.000002,1"], ["--time", "0%-10%"], ["--from", "2us"], ["--to", "2us"]]
    {
        let words = [&["stats", "-q"], &limits[..]].concat();
        assert!(stdout(&words, &path).contains("\na "), "{limits:?}: the span is from 1 to 3 µs");
    }
    // The former names still work, and lead to the one that all commands have.
    for former in [["--from", "2us"], ["--to", "2us"]] {
        let output = jitgraft(&[&["stats"], &former[..]].concat(), &path);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.starts_with("hint: --from and --to for times are now --time"),
            "{said}"
        );
    }
    let json = stdout(&["stats", "-q", "--to", "json"], &path);
    assert_eq!(json, stdout(&["stats", "-q", "--format", "json"], &path));
    assert!(json.starts_with('{'), "{json}");
}

#[test]
fn questions_without_an_answer_say_what_there_is() {
    let spans = r#"[{"name":"step","ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"args":{"step":"add","line":"7"}},
        {"name":"wait","ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"args":{"for":"disk"}}]"#;
    let (_dir, path) = file(spans);
    for (question, reason) in [
        (&["--sub", "nosuch"][..], "no span is named 'nosuch'; spans in this input: step, wait"),
        (
            &["--sub", "wait"],
            "no selected span named 'wait' has an argument that says what it did; spans with an argument that \
             says what they did: step",
        ),
        (
            &["--by-arg", "file"],
            "no selected span has an argument 'file'; arguments of spans in this input: for, line, step",
        ),
        (&["--sub", "a", "--sub", "b"], "no span is named 'a'; spans in this input: step, wait"),
    ] {
        let output = jitgraft(&[&["stats", "-q"], question].concat(), &path);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{question:?}: {said}");
        assert!(said.contains(reason), "{question:?}: {said}");
    }
    // Questions with an answer get it, and the status tells that one is missing.
    let output = jitgraft(&["stats", "-q", "--sub", "step", "--sub", "nosuch"], &path);
    let (answer, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.code() == Some(1) && answer.contains("\nadd "), "{answer}{said}");
    assert!(said.contains("no span is named 'nosuch'"), "{said}");
    // A list of questions for many traces may ask for what this one lacks.
    let output = jitgraft(&["stats", "--preset", "miri"], &path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn threads_whose_ids_have_many_bits_stay_distinct() {
    let span = |pid: &str, tid: &str, duration: u32| {
        format!(r#"{{"name":"f","ph":"X","pid":{pid},"tid":{tid},"ts":0,"dur":{duration}}}"#)
    };
    let spans = [span("1", "1", 1), span("4294967297", "1", 2), span("1", "4294967297", 4), span("\"p\"", "\"t\"", 8)];
    let (_dir, path) = file(&format!("[{}]", spans.join(",")));
    let csv = stdout(&["report", "-q", "--format", "csv", "--by", "pid,tid,comm"], &path);
    let rows: Vec<String> =
        csv.lines().skip(1).map(|row| row.splitn(6, ',').skip(2).collect::<Vec<_>>().join(",")).collect();
    let expected = [
        "8000,8000,1,,,t (p)",
        "4000,4000,1,1,,thread (tid 4294967297)",
        "2000,2000,1,,1,thread (pid 4294967297)",
        "1000,1000,1,1,1,thread",
    ];
    assert_eq!(rows, expected);
}

/// Samples, counters, flows, objects and metadata aren't spans. Events of a phase that the format doesn't have are
/// reported.
#[test]
fn events_of_unknown_phases_are_counted() {
    let event = |phase: &str| format!(r#"{{"name":"x",{phase}"pid":1,"tid":2,"ts":1}}"#);
    let span = r#"{"name":"f","ph":"X","pid":1,"tid":2,"ts":0,"dur":5}"#.to_owned();
    let known = ["C", "s", "t", "f", "T", "p", "N", "O", "D", "M", "V", "v", "c", "(", ")", "=", "i", "I", "R", "n"];
    let known = known.map(|phase| event(&format!(r#""ph":"{phase}","#)));
    for (unknown, count) in [
        (vec![], None),
        (vec![r#""ph":"Q","#], Some("1 event")),
        (vec![r#""ph":"x","#, "", r#""ph":"","#], Some("3 events")),
    ] {
        let unknown = unknown.into_iter().map(event);
        let list: Vec<String> = [span.clone()].into_iter().chain(known.clone()).chain(unknown).collect();
        let (_dir, path) = file(&format!("[{}]", list.join(",")));
        let output = jitgraft(&["--strict", "collapse"], &path);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "thread;f 5000\n");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), count.is_none(), "{said}");
        let expected = count.map(|count| format!("{count} without a known phase (ph), ignored"));
        assert!(expected.is_none_or(|expected| said.contains(&expected)), "{said}");
    }
}

#[test]
fn one_overlap_is_one_span() {
    let span = |start: u32| format!(r#"{{"name":"f{start}","ph":"X","pid":1,"tid":2,"ts":{start},"dur":10}}"#);
    for (starts, said) in [
        (
            vec![0, 5],
            "1 span overlaps an earlier span of its thread without being nested in that span; the later span starts a new stack",
        ),
        (
            vec![0, 5, 9],
            "2 spans overlap an earlier span of their thread without being nested in that span; each later span starts a \
             new stack",
        ),
    ] {
        let (_dir, path) = file(&format!("[{}]", starts.into_iter().map(span).collect::<Vec<_>>().join(",")));
        let output = jitgraft(&["collapse"], &path);
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
