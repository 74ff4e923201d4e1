//! The facts in outputs beside weights: time, place, process. Asked of the recordings themselves.

use super::case::case_named;
use super::pprof::{File, Message};
use serde_json::Value;

fn firefox(name: &str) -> Value {
    serde_json::from_slice(&case_named(name).run(&["export", "--to", "firefox", "--event", "cpu-clock"])).unwrap()
}

fn texts(column: &Value) -> Vec<&str> {
    column.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn firefox_is_reported_what_ran_when_and_in_which_process() {
    let document = firefox("recording-cpp");
    let meta = &document["meta"];
    // 4,000 Hz, on a day in November 2026.
    assert_eq!(meta["interval"], 0.25);
    assert!(meta["startTime"].as_f64().unwrap() > 1.795e12, "{}", meta["startTime"]);
    assert_eq!((&meta["product"], &meta["sampleUnits"]["threadCPUDelta"]), (&"work-cpp".into(), &"ns".into()));
    let threads = document["threads"].as_array().unwrap();
    let names: Vec<_> = threads.iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["work-cpp", "other one", "work-cpp"]);
    let main: Vec<_> = threads.iter().map(|thread| thread["isMainThread"].as_bool().unwrap()).collect();
    assert_eq!(main, [true, false, true]);
    // The child was forked when both threads had ended.
    assert_eq!(threads[0]["pid"], threads[1]["pid"]);
    assert!(threads[2]["processStartupTime"].as_f64().unwrap() > 100.0);
    for thread in threads {
        let samples = &thread["samples"];
        let times: Vec<f64> = samples["time"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert!(times.is_sorted() && times[0] >= 0.0);
        let deltas = samples["threadCPUDelta"].as_array().unwrap().iter();
        let ran: u64 = deltas.map(|delta| delta.as_u64().unwrap()).sum();
        let weights = samples["weight"].as_array().unwrap().iter();
        let weighed: f64 = weights.map(|weight| weight.as_f64().unwrap()).sum();
        assert_eq!(ran, (weighed * 1e6).round() as u64);
    }
    let markers = &threads[0]["markers"]["name"];
    let strings = texts(&threads[0]["stringArray"]);
    let markers: Vec<_> = markers.as_array().unwrap().iter().map(|at| strings[at.as_u64().unwrap() as usize]).collect();
    assert!(["exec", "fork", "exit"].iter().all(|name| markers.contains(name)), "{markers:?}");
}

#[test]
fn firefox_is_reported_functions_by_name_and_frames_by_line_address_library_and_category() {
    let document = firefox("recording-cpp");
    let libraries = document["libs"].as_array().unwrap();
    let own = libraries.iter().find(|library| library["path"] == "/tmp/demo/work-cpp").unwrap();
    assert_eq!((own["codeId"].as_str().unwrap().len(), own["breakpadId"].as_str().unwrap().len()), (40, 33));
    let categories = document["meta"]["categories"].as_array().unwrap();
    let thread = &document["threads"][0];
    let (strings, functions, frames) = (texts(&thread["stringArray"]), &thread["funcTable"], &thread["frameTable"]);
    let number = |column: &Value, at: usize| column[at].as_u64().unwrap() as usize;
    let named = |name: &str| {
        let all = 0..functions["length"].as_u64().unwrap() as usize;
        all.filter(|at| strings[number(&functions["name"], *at)] == name).collect::<Vec<_>>()
    };
    let [work] = named("work")[..] else { panic!("{strings:?}") };
    let of_work: Vec<usize> =
        (0..frames["length"].as_u64().unwrap() as usize).filter(|at| number(&frames["func"], *at) == work).collect();
    let lines: std::collections::BTreeSet<u64> = of_work.iter().filter_map(|at| frames["line"][*at].as_u64()).collect();
    assert!(lines.len() > 1, "{lines:?}");
    assert!(of_work.iter().all(|at| frames["address"][*at].as_i64().unwrap() > 0));
    let category = |at: usize| categories[number(&frames["category"], at)]["name"].as_str().unwrap();
    assert!(of_work.iter().all(|at| category(*at) == "native"));
    let all = 0..frames["length"].as_u64().unwrap() as usize;
    let kinds: std::collections::BTreeSet<&str> = all.map(category).collect();
    assert!(kinds.contains("kernel") && kinds.contains("inlined"), "{kinds:?}");
}

#[test]
fn pprof_is_reported_the_program_first_and_when_how_often_and_whose_samples() {
    let file = File::parse(&case_named("recording-rust").run(&["export", "--to", "pprof"]));
    let mapping = &file.message.messages(3)[0];
    assert_eq!((file.text(mapping, 5), mapping.number(1)), ("/tmp/demo/work-rs".to_owned(), 1));
    assert_eq!(file.text(mapping, 6).len(), 40, "build ID");
    let (start, limit) = (mapping.number(2), mapping.number(3));
    assert!(start > 0 && limit > start);
    // The addresses of the program lie between.
    let locations = file.message.messages(4);
    let own: Vec<&Message> = locations.iter().filter(|location| location.number(2) == 1).collect();
    assert!(!own.is_empty() && own.iter().all(|location| (start..limit).contains(&location.number(3))));
    // 99 Hz, for a third of a second, on a day in November 2026.
    let counted = &file.message.messages(11)[0];
    assert_eq!((file.text(counted, 1), file.text(counted, 2)), ("cpu-clock:u".to_owned(), "nanoseconds".to_owned()));
    assert_eq!(file.message.number(12), 10_101_010);
    assert!(file.message.number(9) > 1_795_000_000_000_000_000);
    assert!((200_000_000..900_000_000).contains(&file.message.number(10)), "{}", file.message.number(10));
    for sample in file.message.messages(2) {
        let keys: Vec<String> = sample.messages(3).iter().map(|label| file.text(label, 1)).collect();
        assert_eq!(keys, ["pid", "tid", "cpu", "thread"]);
    }
}

#[test]
fn names_of_jit_code_are_for_people_in_viewers_and_the_runtime_s_own_where_asked_for() {
    let names = |arguments: &[&str]| {
        let file = File::parse(&case_named("recording-java").run(&[&["export", "--to", "pprof"], arguments].concat()));
        file.message.messages(5).iter().map(|function| file.text(function, 2)).collect::<Vec<_>>()
    };
    assert!(names(&[]).iter().any(|name| name == "Work.fibonacci"));
    assert!(names(&["--jit-names", "raw"]).iter().any(|name| name == "int Work.fibonacci(int)"));
}

/// The start and end of a thread's spans, in microseconds.
fn extent(document: &Value, tid: &Value) -> (f64, f64) {
    let events = document["traceEvents"].as_array().unwrap();
    let spans = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == *tid);
    let ends =
        spans.map(|span| (span["ts"].as_f64().unwrap(), span["ts"].as_f64().unwrap() + span["dur"].as_f64().unwrap()));
    ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap()
}

#[test]
fn trace_events_are_in_real_time() {
    let case = case_named("recording-rust");
    let trace: Value = serde_json::from_slice(&case.run(&["export", "--to", "chrome"])).unwrap();
    let plain: Value = serde_json::from_slice(&case.run(&["export", "--to", "json"])).unwrap();
    for name in ["work-rs", "sorter"] {
        let of = |event: &&Value| event["name"] == "thread_name" && event["args"]["name"] == name;
        let tid = &trace["traceEvents"].as_array().unwrap().iter().find(of).unwrap()["tid"];
        let rows = plain["events"][0]["stacks"].as_array().unwrap().iter().filter(|row| row["tid"] == *tid);
        let mut times: Vec<f64> = rows.map(|row| row["time"].as_f64().unwrap() / 1000.0).collect();
        times.sort_by(f64::total_cmp);
        let (first, last) = (times[0], times[times.len() - 1]);
        let (start, end) = extent(&trace, tid);
        // A sample stands for the 10.1 ms before it, and comes half of that late at most.
        assert!((first - 10_102.0..first).contains(&start), "{name}: {start} for {first}");
        assert!((last - 5_051.0..last + 5_051.0).contains(&end), "{name}: {end} for {last}");
    }
    let all = &trace["otherData"];
    assert_eq!((&all["event"], &all["unit"]), (&"cpu-clock:u".into(), &"nanoseconds".into()));
}

#[test]
fn speedscope_begins_with_the_thread_that_ran_most() {
    let text = case_named("recording-rust").run(&["export", "--to", "speedscope"]);
    let document: Value = serde_json::from_slice(&text).unwrap();
    let shown = &document["profiles"][document["activeProfileIndex"].as_u64().unwrap() as usize];
    assert_eq!(shown["name"], "sorter 12580/12585");
}
