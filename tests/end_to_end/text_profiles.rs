//! What texts of other tools say about functions: names, kinds of code, threads, shares.

use crate::support::runner::{jitgraft, stdout};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn file(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn linker_names_are_readable_in_every_input() {
    let dir = tempfile::tempdir().unwrap();
    let folded = "main;_ZN3foo3barEi 5\nmain;_RNvCskwGfYPst2Cb_3foo16example_function_[k] 2\nmain;_ZNSt6vectorIiSaIiEE9push_backEOi 1\n";
    let a = file(&dir, "a.folded", folded);
    let script = file(
        &dir,
        "script.txt",
        "prog 77/78 [001] 11371.483014: 201198 cycles:u: \n\t7f00007ad35c _ZN3foo3barEi+0x14 (/bin/x)\n\
         \t7f00007ad36c _RNvCskwGfYPst2Cb_3foo16example_function+0x14 (/bin/x)\n\n",
    );
    let mut others = Vec::new();
    for name in ["a.pb.gz", "a.speedscope.json", "a.firefox.json"] {
        let path = dir.path().join(name);
        stdout(&["export", "-q", "--no-demangle", "-o", path.to_str().unwrap()], &a);
        others.push(path);
    }
    for path in others.iter().chain([&a, &script]) {
        let report = stdout(&["report", "--limit", "0"], path);
        assert!(report.contains("foo::bar") && report.contains("foo::example_function"), "{path:?}: {report}");
        assert!(!report.contains("_ZN") && !report.contains("_RNv"), "{path:?}: {report}");
        let raw = stdout(&["report", "--limit", "0", "--no-demangle"], path);
        assert!(raw.contains("_ZN3foo3barEi"), "{path:?}: {raw}");
        let folded = stdout(&["collapse", "-q"], path);
        assert!(folded.contains("foo::bar") && !folded.contains("_ZN"), "{path:?}: {folded}");
    }
    let svg = stdout(&["flamegraph", "-q", "-o", "-"], &a);
    assert!(svg.contains("foo::bar") && !svg.contains("_ZN"));
    let two = stdout(&["collapse", "-q", a.to_str().unwrap()], &a);
    assert!(two.contains("main;foo::bar 10\n") && !two.contains("_ZN"), "{two}");
}

#[test]
fn kernel_code_is_known_by_its_object_or_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let text = "shop 4711 10.000001:    1000000 cpu-clock: \n\
                \tffffffffb8841383 a+0x143 (/usr/lib/debug/boot/vmlinux-6.1.0-13-amd64)\n\
                \tffffffffc0000040 b+0x1 (/lib/modules/6.8.0/kernel/fs/ext4/ext4.ko.zst)\n\
                \tffffffffc0000050 c+0x1 (/usr/lib/debug/lib/modules/6.8.0/kernel/net/nf_tables.ko.debug)\n\
                \tffff800010081234 d+0x1 (/boot/Image-6.8.0)\n\
                \tffffffff81000010 e+0x1 ([unknown])\n\
                \tffffffffff600000 f+0x1 ([vsyscall])\n\
                \t          401200 main+0x20 (/opt/vmlinux-tools/shop)\n\n";
    let out = stdout(&["collapse", "-q", "--annotate", "kernel"], &file(&dir, "in.txt", text));
    assert_eq!(out, "shop;main;f;e_[k];d_[k];c_[k];b_[k];a_[k] 1000000\n");
    // Where perf found nothing, the address may be any word that a broken call chain led to.
    let text = "shop 4711 10.000001:    1000000 cpu-clock: \n\
                \t          401200 main+0x20 (/opt/shop)\n\
                \tfffffffe00000002 [unknown] ([unknown])\n\
                \tff01f7f0f00cf0f0 [unknown] ([unknown])\n\n";
    let out = stdout(&["collapse", "-q", "--annotate", "kernel"], &file(&dir, "broken.txt", text));
    assert_eq!(out, "shop;[unknown];[unknown];main 1000000\n");
}

#[test]
fn async_profilers_threads_and_marks_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[main tid=1234];java/lang/Thread.run_[j];com/x/App.main_[0];com/x/App.work_[1];memcpy 10\n\
                [main tid=1234];java/lang/Thread.run_[j];com/x/App.main_[j];do_sys_open_[k] 4\n\
                [main tid=1235];com/x/App.main_[1] 1\n[GC Thread#0 tid=1240];GangWorker::run(WorkData) 6\n\
                [tid=77];start_thread;com/x/App.main_[0];[break_deopt] 1\n[unknown_Java] 2\n[frame_buffer_overflow] 1\n";
    let cpu = file(&dir, "cpu.collapsed", text);
    let report = stdout(&["report", "--limit", "0", "--format", "csv"], &cpu);
    assert!(!report.contains("tid=") && report.matches("App.main").count() == 1, "{report}");
    for line in report.lines().filter(|line| line.contains("App.") || line.contains("unknown_Java")) {
        assert!(line.contains("JIT"), "{line}");
    }
    let by_tid = stdout(&["report", "-s", "tid", "--format", "csv"], &cpu);
    assert!(["1234", "1240", "77"].iter().all(|tid| by_tid.contains(tid)), "{by_tid}");
    let unknown = report.lines().find(|line| line.contains("break_deopt")).unwrap();
    assert!(unknown.contains(",unknown,"), "{report}");
    assert_eq!(stdout(&["collapse", "-q", "--tid", "1235"], &cpu), "[main tid=1235];com/x/App.main_[j] 1\n");
    let again = file(&dir, "again.folded", &stdout(&["collapse", "-q"], &cpu));
    assert_eq!(stdout(&["collapse", "-q"], &again), fs::read_to_string(&again).unwrap());
}

#[test]
fn reversed_pictures_have_the_same_shares_of_code() {
    let dir = tempfile::tempdir().unwrap();
    let rv = file(&dir, "rv.folded", "main;work;sys_read_[k] 90\nmain;work;run_[j] 7\nmain;work 3\n");
    let script = file(
        &dir,
        "rv.txt",
        &["sh 7 1.0: 1 c: \n\tffffffff81000010 read ([kernel.kallsyms])\n\t 4011 main (/bin/x)\n\n"; 3]
            .concat()
            .replace("1.0:", "1.000000:")
            .replacen("ffffffff81000010 read ([kernel.kallsyms])", "4012 f (/bin/x)", 1),
    );
    for (path, shares) in
        [(&rv, ["kernel 90", "native 3", "JIT"].as_slice()), (&script, ["kernel 66.67", "native 33.33"].as_slice())]
    {
        for flags in [&["flamegraph", "-q", "-o", "-"][..], &["flamegraph", "-q", "-o", "-", "--reverse"]] {
            let svg = stdout(flags, path);
            for share in shares {
                assert!(svg.contains(share), "{flags:?}: no {share}");
            }
        }
    }
}

#[test]
fn a_rare_function_has_callers_and_callees() {
    let dir = tempfile::tempdir().unwrap();
    let m = file(&dir, "m.folded", "main;a;malloc;brk 9\nmain;b;malloc 991\nmain;c;rare;x 1\nmain;work 9999000\n");
    for (function, near) in [("rare", "c"), ("malloc", "b")] {
        let report = stdout(&["report", "--callers", function], &m);
        assert!(report.lines().any(|line| line.ends_with(function)), "{report}");
        assert!(report.lines().any(|line| line.trim_end().ends_with(near)), "{report}");
    }
    // Less than the usual share of the function itself is left out, or than what is asked for.
    let percent = |limit: &str| stdout(&["report", "--callers", "malloc", "--percent-limit", limit], &m);
    assert!(percent("0").lines().any(|line| line.ends_with(" a")));
    assert!(!percent("1").lines().any(|line| line.ends_with(" a")) && percent("1").contains(" b"));
    let callees = stdout(&["report", "--callees", "rare"], &m);
    assert!(callees.lines().any(|line| line.ends_with("rare")) && callees.contains(" x"), "{callees}");
    assert!(!jitgraft(&["report", "--callers", "nosuch"], &m).status.success());
}

#[test]
fn inlined_calls_are_marked_behind_the_source_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = "il   24034   557.434273:   10101010 task-clock:u: \n\t          401624 leaf+0xf\n  il.c:5 (inlined)\n\
                \t          401624 parent+0xf (/opt/il)\n  il.c:9\n\n";
    let path = file(&dir, "il.txt", text);
    assert_eq!(stdout(&["collapse", "-q", "--strict", "--annotate", "inline"], &path), "il;parent;leaf_[i] 10101010\n");
    let lines = stdout(&["report", "-s", "line", "--format", "csv"], &path);
    assert!(lines.contains("il.c:5"), "{lines}");
}

/// The sum of the weights of each innermost function with a name.
fn named_leaves(folded: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let leaf = stack.rsplit(';').next().unwrap();
        if !leaf.starts_with('[') {
            *sums.entry(leaf.to_owned()).or_insert(0) += weight.parse::<u64>().unwrap();
        }
    }
    sums
}

#[test]
fn samples_of_one_line_need_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let recording = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording/perf.data.zst");
    let collapse = |fields: &str| {
        let text = stdout(&["script", "-q", "-G", "-F", fields], &recording);
        let path = file(&dir, "in.txt", &text);
        // The filter finds nothing to change in its own output.
        assert_eq!(stdout(&["script", "-q"], &path), text, "{fields}");
        stdout(&["collapse", "--strict", "-q"], &path)
    };
    let with_event = collapse("comm,event,ip,sym,dso");
    let leaves = named_leaves(&with_event);
    assert!(leaves.len() > 20 && with_event.lines().all(|line| line.starts_with("php;")), "{with_event}");
    for fields in [
        "comm,ip,sym,dso",
        "comm,ip,sym",
        "comm,tid,ip,sym,dso",
        "comm,pid,tid,ip,sym",
        "comm,time,ip,sym,dso",
        "comm,tid,time,ip,sym",
        "comm,ip,sym,symoff,dso",
        "comm,ip,sym,dso,srcline",
    ] {
        let folded = collapse(fields);
        assert_eq!(named_leaves(&folded), leaves, "{fields}");
        assert!(folded.lines().all(|line| line.starts_with("php;")), "{fields}: {folded}");
    }
    for fields in ["tid,ip,sym,dso", "time,ip,sym", "pid,tid,ip,sym", "ip,sym,dso"] {
        assert_eq!(named_leaves(&collapse(fields)), leaves, "{fields}");
    }
    let periods: BTreeMap<String, u64> = leaves.into_iter().map(|(name, count)| (name, count * 1_001_001)).collect();
    for fields in ["comm,period,ip,sym,dso", "comm,tid,time,period,ip,sym", "period,ip,sym"] {
        assert_eq!(named_leaves(&collapse(fields)), periods, "{fields}");
    }
    // A command's name may end with a number.
    let text = " Web Content 12      7f0012345678 run (/usr/lib/x.so)\n      Worker 3  ffffffff81000010 read ([kernel.kallsyms])\n";
    let folded = stdout(&["collapse", "-q", "--by", "comm"], &file(&dir, "in.txt", text));
    assert_eq!(folded, "Web_Content_12;run 1\nWorker_3;read 1\n");
}

#[test]
fn process_and_thread_are_no_part_of_a_commands_name() {
    let dir = tempfile::tempdir().unwrap();
    let recording = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording/perf.data.zst");
    for (fields, comm) in
        [("comm,pid,tid,ip,sym", "php"), ("comm,pid,tid,event,ip,sym", "php"), ("pid,tid,event,ip,sym", "")]
    {
        let path = file(&dir, "in.txt", &stdout(&["script", "-q", "-F", fields], &recording));
        let folded = stdout(&["collapse", "--strict", "-q", "--by", "tid"], &path);
        let root = format!("{comm}-31795/31795;");
        assert!(folded.lines().all(|line| line.starts_with(&root)), "{fields}: {folded}");
    }
}
