//! `report` as people use it: on a terminal, in a pipe, by other keys than functions, as a tree, before and after.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

/// A directory with inputs, in which the program is run.
struct Dir(TempDir);

/// A terminal's size and environment.
#[derive(Clone, Copy)]
struct Pty {
    columns: usize,
    rows: usize,
    environment: &'static str,
}

const SMALL: Pty = Pty { columns: 80, rows: 24, environment: "NO_COLOR=1" };

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), content).unwrap();
    }

    /// The program in a pipe.
    fn run(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(words.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap()
    }

    fn text(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, words: &str) -> String {
        self.said_with_status(words, 2)
    }

    /// What the program says on stderr. It must exit with this status, and write nothing to stdout.
    fn said_with_status(&self, words: &str, status: i32) -> String {
        let output = self.run(words);
        assert!(output.stdout.is_empty(), "{words}");
        assert_eq!(output.status.code(), Some(status), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    }

    /// The program on a terminal; the lines that it shows, stderr between those of stdout.
    fn shown(&self, words: &str, pty: Pty) -> Vec<String> {
        let Pty { columns, rows, environment } = pty;
        let program = env!("CARGO_BIN_EXE_jitgraft");
        let line =
            format!("stty cols {columns} rows {rows}; env -u NO_COLOR TERM=xterm {environment} '{program}' {words}");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(self.0.path()).stdin(Stdio::null());
        let output = script.output().expect("script (bsdutils) is needed: see tests/run.sh");
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words}: {shown}");
        shown.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
    }
}

/// Hundreds of functions, some with names as long as C++ has them, some with characters that are two columns wide.
fn many_functions() -> String {
    let long = "std::__detail::_Executor<__gnu_cxx::__normal_iterator<char const*, std::string>, true>::_M_dfs";
    let mut lines = format!(
        "main;{long} 400\nmain;计算哈希值的函数名字很长很长很长很长很长很长很长很长很长很长 300\nmain;é\u{301}té 200\n"
    );
    for number in 0..200 {
        lines += &format!("main;function_{number:03} 1\n");
    }
    lines
}

/// The column where that title begins on the terminal; every row has two blanks before it.
fn begins(lines: &[String], title: &str) -> usize {
    let head = lines.iter().find(|line| line.contains("self%")).unwrap();
    head.split(title).next().unwrap().width()
}

/// The text at a column of the terminal.
fn at_column(line: &str, column: usize) -> &str {
    let mut width = 0;
    let byte = line.char_indices().find(|(_, c)| {
        let found = width >= column;
        width += c.to_string().width();
        found
    });
    byte.map_or("", |(byte, _)| &line[byte..])
}

fn rows(lines: &[String]) -> Vec<&String> {
    lines
        .iter()
        .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()) && line.contains('%'))
        .collect()
}

#[test]
fn on_a_terminal_lines_are_as_wide_as_it_is_and_names_lose_their_middle() {
    let dir = Dir::new();
    dir.write("stacks", many_functions());
    for columns in [80, 200] {
        let lines = dir.shown("report stacks", Pty { columns, ..SMALL });
        assert!(lines.iter().all(|line| line.width() <= columns), "{lines:#?}");
        let symbol = begins(&lines, "symbol");
        for row in rows(&lines) {
            let (before, name) = (at_column(row, symbol - 2), at_column(row, symbol));
            assert!(before.starts_with("  ") && !name.starts_with(' '), "{columns}: {row:?}");
        }
        let long = rows(&lines)[0];
        let cut = columns == 80;
        assert_eq!(long.contains('…'), cut, "{long}");
        assert!(long.contains("std::__detail::") && long.ends_with("::_M_dfs"), "{long}");
        assert!(!cut || long.width() == columns, "{long}");
    }
    let wide = dir.shown("report --wide stacks", SMALL);
    assert!(wide.iter().any(|line| line.contains("std::string>, true>::_M_dfs")), "{wide:#?}");
    assert_eq!(wide.len(), 24 - 1);
}

#[test]
fn on_a_terminal_the_table_has_as_many_rows_as_fit_and_states_how_many_are_left() {
    let dir = Dir::new();
    dir.write("stacks", many_functions());
    for height in [24, 50] {
        let lines = dir.shown("report stacks", Pty { rows: height, ..SMALL });
        // The shell's next prompt has a line, too.
        assert_eq!(lines.len(), height - 1, "{lines:#?}");
        assert_eq!(lines.last().unwrap(), &format!("{} more rows (show all with --limit 0)", 204 - rows(&lines).len()));
    }
    assert_eq!(rows(&dir.shown("report --limit 0 stacks", SMALL)).len(), 204);
    let ten = dir.shown("report --limit 10 stacks", SMALL);
    assert_eq!((rows(&ten).len(), ten.len()), (10, 14), "{ten:#?}");
}

#[test]
fn an_output_that_is_not_a_terminal_gets_every_row_in_full_and_no_colors() {
    let dir = Dir::new();
    dir.write("stacks", many_functions());
    let text = dir.text("report stacks");
    assert_eq!(rows(&text.lines().map(str::to_owned).collect::<Vec<_>>()).len(), 204);
    assert!(text.contains("std::string>, true>::_M_dfs") && !text.contains(['\x1b', '…']));
    let csv = dir.shown("report --format csv stacks", Pty { environment: "", ..SMALL });
    assert_eq!(csv.len(), 205);
    assert!(csv.iter().all(|line| !line.contains(['\x1b', '…'])));
}

#[test]
fn colors_are_for_terminals_where_nobody_forbids_them() {
    let dir = Dir::new();
    dir.write("stacks", "main;f 9\nmain;g 1\n");
    let coloured = |environment| dir.shown("report stacks", Pty { environment, ..SMALL }).concat().contains('\x1b');
    assert!(coloured("") && coloured("NO_COLOR="));
    assert!(!coloured("NO_COLOR=1") && !coloured("TERM=dumb"));
}

/// perf script's text of a function that V8 ran in two tiers, in two threads.
const SCRIPT: &str = "\
node 10/10 1.000000: 1000000 cpu-clock:
\tffff0 JS:*work /srv/app.js:3:9 (/tmp/perf-10.map)
\t400500 main (/usr/bin/node)

node 10/10 1.001000: 1000000 cpu-clock:
\tffff0 JS:*work /srv/app.js:3:9 (/tmp/perf-10.map)
\t400500 main (/usr/bin/node)

node 10/10 1.002000: 1000000 cpu-clock:
\tfff10 JS:~work /srv/app.js:3:9 (/tmp/perf-10.map)
\t400500 main (/usr/bin/node)

worker 10/11 1.003000: 1000000 cpu-clock:
\tffffffff81000000 read ([kernel.kallsyms])
\t400500 main (/usr/bin/node)
\t400900 [unknown] (/usr/lib/libc.so.6)

";

#[test]
fn on_a_terminal_a_function_is_one_row_with_its_tiers() {
    let dir = Dir::new();
    dir.write("script", SCRIPT);
    let lines = dir.shown("report script", Pty { columns: 160, ..SMALL });
    let work = lines.iter().find(|line| line.contains("work app.js:3:9")).unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(work.starts_with("75.00%") && work.contains("optimized 66.67%, interpreted 33.33%"), "{work}");
    let apart = dir.shown("report --no-merge-tiers script", SMALL);
    assert!(apart.iter().any(|line| line.starts_with("50.00%") && line.contains("optimized")), "{apart:#?}");
    let raw = dir.text("report script");
    assert!(raw.contains("JS:*work /srv/app.js:3:9") && raw.contains("JS:~work /srv/app.js:3:9"), "{raw}");
    let merged = dir.text("report --merge-tiers --format csv script");
    assert!(
        merged.contains(",JIT,\"optimized 66.67%, interpreted 33.33%\",/tmp/perf-10.map,work app.js:3:9,"),
        "{merged}"
    );
}

#[test]
fn the_header_shows_what_was_recorded() {
    let dir = Dir::new();
    dir.write("script", SCRIPT);
    let text = dir.text("report script");
    assert!(text.starts_with("# 4 samples of cpu-clock, 4.00 ms\n"), "{text}");
    assert!(
        text.contains(
            "# 100.00% in functions with a name; 75.00% in JIT code, 100.00% of it named (by innermost frame)\n"
        ),
        "{text}"
    );
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tiers-recording/perf.data.zst");
    let text = dir.text(&format!("report --limit 3 {}", recording.display()));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("# ./tiers tiers.lisp"), "{text}");
    let sampled = lines.next().unwrap();
    assert!(sampled.contains(" of cpu-clock:u (20,000 per second), ") && !sampled.contains("lost"), "{text}");
}

/// The rows of CSV, without their numbers but the first.
fn csv(text: &str) -> Vec<String> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{} {}", cells[0].trim_end_matches('0').trim_end_matches('.'), cells[5..].join(","))
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn samples_are_put_together_by_perfs_keys() {
    let dir = Dir::new();
    dir.write("script", SCRIPT);
    let by = |keys: &str| {
        let group = csv(&dir.text(&format!("report --format csv --group-by {keys} script")));
        // perf's spelling is the same.
        assert_eq!(csv(&dir.text(&format!("report --format csv --sort {keys} script"))), group);
        group
    };
    assert_eq!(by("comm"), ["75 node", "25 worker"]);
    assert_eq!(by("pid,tid"), ["75 10,10", "25 10,11"]);
    assert_eq!(by("kind"), ["75 JIT", "25 kernel", "0 native", "0 \"native, unnamed\""]);
    assert_eq!(by("tier"), ["50 optimized", "25 interpreted", "25 kernel", "0 native", "0 \"native, unnamed\""]);
    let of_modules = ["75 /tmp/perf-10.map", "25 [kernel.kallsyms]", "0 /usr/bin/node", "0 /usr/lib/libc.so.6"];
    assert_eq!(by("dso"), of_modules);
    assert_eq!(by("module"), of_modules);
    let both = by("comm,dso,sym");
    assert!(both.contains(&"25 worker,[kernel.kallsyms],read".to_owned()), "{both:?}");
    assert!(both.contains(&"0 worker,/usr/lib/libc.so.6,[libc.so.6]".to_owned()), "{both:?}");
    let total = dir.text("report --format csv --sort total,dso script");
    assert!(total.lines().nth(1).unwrap().ends_with("/usr/bin/node"), "{total}");
    assert!(dir.refused("report --group-by dso --symbol f script").contains("sym"));
    assert!(dir.refused("report --sort nothing script").contains("possible values"));
}

#[test]
fn lines_of_sources_are_groups() {
    let dir = Dir::new();
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cpuprofile-node/input.cpuprofile");
    dir.write("in", fs::read(profile).unwrap());
    let rows = csv(&dir.text("report --format csv --group-by line in"));
    assert!(rows[0].ends_with(" file:///srv/app.js:5"), "{rows:?}");
}

#[test]
fn rows_below_a_percentage_and_of_other_names_are_left_out() {
    let dir = Dir::new();
    dir.write("stacks", many_functions());
    let rows = |words: &str| dir.text(&format!("report --format csv {words} stacks")).lines().count() - 1;
    assert_eq!(rows("--percent-limit 1"), 3);
    // By what is called, too, main is all of it.
    assert_eq!(rows("--percent-limit 1% --sort total"), 4);
    assert_eq!(rows("--symbol ^function_0.[05]$"), 20);
    let filtered = dir.text("report --format csv --symbol _M_dfs stacks");
    assert!(filtered.contains("\n36.3636,"), "percentages stay those of the whole: {filtered}");
    assert!(dir.refused("report --percent-limit 101 stacks").contains("0 to 100"));
    for words in ["", "--group-by symbol ", "--format csv ", "--format json "] {
        let failed = dir.said_with_status(&format!("report {words}--percent-limit 99.5 stacks"), 1);
        assert!(failed.contains("no row has 99.5% or more"), "{words}: {failed}");
    }
}

#[test]
fn perf_reports_own_options_work() {
    let dir = Dir::new();
    dir.write("script", SCRIPT);
    let usual = dir.text("report script");
    assert_eq!(dir.text("report -i script --stdio --no-children"), usual);
    assert_eq!(dir.text("report --children script"), dir.text("report --sort total script"));
    let of = |words: &str| csv(&dir.text(&format!("report --format csv -s comm,dso,sym {words} script")));
    assert_eq!(of("--dsos node,[kernel.kallsyms]").len(), 3);
    assert_eq!(of("-d /usr/bin/node -S main").len(), 2);
    assert_eq!(of("--symbols read,mai"), ["25 worker,[kernel.kallsyms],read"]);
    let lines = dir.shown("report -n script", SMALL);
    assert!(lines.iter().any(|line| line.contains("self%") && line.contains("samples")), "{lines:#?}");
    assert!(dir.refused("report --group-by comm --dso node script").contains("dso"));
}

const CALLS: &str = "main;parse;malloc 30\nmain;eval;call;eval;malloc 20\nmain;eval;call;print 40\nmain;parse 10\n";

/// The percentage and the drawn name of every line of a tree, whose column is the last one.
fn drawn(text: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| !line.contains("symbol"));
    let symbol = lines.next().unwrap().split("symbol").next().unwrap().width();
    let share = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    lines.map(|line| format!("{} {}", share(line), at_column(line, symbol))).collect()
}

#[test]
fn calls_are_reported_as_a_tree_from_above_and_from_below() {
    let dir = Dir::new();
    dir.write("stacks", CALLS);
    assert_eq!(
        drawn(&dir.text("report --tree stacks")),
        [
            "100.00% main",
            "60.00% ├ eval",
            "60.00% │ call",
            "40.00% │ ├ print",
            "20.00% │ └ eval",
            "20.00% │   malloc",
            "40.00% └ parse",
            "30.00%   malloc",
        ]
    );
    assert_eq!(
        drawn(&dir.text("report --callers malloc stacks")),
        [
            "50.00% malloc",
            "30.00% ├ parse",
            "30.00% │ main",
            "20.00% └ eval",
            "20.00%   call",
            "20.00%   eval",
            "20.00%   main"
        ]
    );
    assert_eq!(
        drawn(&dir.text("report --callees eval stacks")),
        ["60.00% eval", "60.00% call", "40.00% ├ print", "20.00% └ eval", "20.00%   malloc"]
    );
    let csv = dir.text("report --callees parse --format csv stacks");
    assert_eq!(
        csv,
        "depth,total%,self%,total,self,samples,module,symbol\n0,40.0000,10.0000,40,10,40,,parse\n1,30.0000,30.0000,30,30,30,,malloc\n"
    );
    let json: serde_json::Value = serde_json::from_str(&dir.text("report --tree --format json stacks")).unwrap();
    assert_eq!((&json[1]["symbol"], &json[1]["depth"]), (&"eval".into(), &1.into()));
}

#[test]
fn a_function_is_found_by_its_name_or_a_part_of_it() {
    let dir = Dir::new();
    dir.write("stacks", "main;push list.js:3:5 5\nmain;pushAll;x 3\nmain;y 2\n");
    assert_eq!(drawn(&dir.text("report --callers push stacks")), ["50.00% push list.js:3:5", "50.00% main"]);
    assert_eq!(drawn(&dir.text("report --callers ushA stacks")), ["30.00% pushAll", "30.00% main"]);
    let said = dir.said_with_status("report --callers PUSH stacks", 1);
    assert!(said.contains("no function named PUSH; did you mean: push list.js:3:5, pushAll"), "{said}");
}

#[test]
fn callers_of_an_unknown_function_list_what_there_is() {
    let dir = Dir::new();
    dir.write("stacks", "main;parse 5\nmain;\"a, b\" 3\nmain;eval 2\n");
    dir.write("calls", "events: Ir\nfn=main\n1 5\ncfn=parse\ncalls=2 1\n1 9\nfn=parse\n1 9\n");
    for option in ["--callers", "--callees"] {
        for format in ["text", "csv", "json"] {
            let said = dir.said_with_status(&format!("report -q --format {format} {option} nothing stacks"), 1);
            let expected = "no function named nothing; functions in this input: parse, '\"a, b\"', eval, main";
            assert!(said.contains(expected), "{said}");
            let said = dir.said_with_status(&format!("report -q --format {format} {option} nothing calls"), 1);
            assert!(said.contains("no function named nothing; functions in this input: parse, main"), "{said}");
        }
    }
    dir.write("events", EVENTS);
    assert!(dir.text("report -q --callers hot events").contains("hot"), "another event has no such function");
}

#[test]
fn rows_are_grouped_with_by_and_its_former_name_works_with_a_hint() {
    let dir = Dir::new();
    dir.write("stacks", "main;parse 5\n");
    let (now, before) = (dir.run("report --by sym stacks"), dir.run("report --group-by sym stacks"));
    assert!(now.status.success() && now.stdout == before.stdout);
    assert!(!String::from_utf8_lossy(&now.stderr).contains("hint:"));
    assert!(String::from_utf8_lossy(&before.stderr).contains("hint: --group-by is now called --by"));
}

#[test]
fn every_row_of_json_states_its_version_and_event() {
    let dir = Dir::new();
    dir.write("stacks", "main;parse 5\nmain;eval 2\n");
    dir.write("before", "main;parse 4\nmain;eval 4\n");
    dir.write("events", EVENTS);
    for words in
        ["stacks", "events", "--by kind stacks", "--tree stacks", "--callers eval stacks", "--diff before stacks"]
    {
        let json: serde_json::Value =
            serde_json::from_str(&dir.text(&format!("report -q --format json {words}"))).unwrap();
        let rows = json.as_array().unwrap();
        assert!(!rows.is_empty(), "{words}");
        assert!(rows.iter().all(|row| row["version"] == 1 && row["event"].is_string()), "{words}: {json}");
    }
}

#[test]
fn spans_are_called_spans_and_exact_costs_have_no_samples() {
    let dir = Dir::new();
    dir.write("trace.json", r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":5}]"#);
    dir.write("costs", "events: Ir\nfn=main\n1 5\n");
    dir.write("stacks", "main;parse 5\n");
    for (input, heading) in [("trace.json", Some("spans")), ("costs", None), ("stacks", Some("samples"))] {
        for option in ["", "--by sym"] {
            let text = dir.text(&format!("report -q {option} {input}"));
            let head = text.lines().find(|line| line.contains("self%")).unwrap();
            let found = ["spans", "samples"].into_iter().find(|word| head.contains(word));
            assert_eq!(found, heading, "{option} {input}: {head}");
            let csv = dir.text(&format!("report -q --format csv {option} {input}"));
            assert!(csv.lines().next().unwrap().contains(",samples,"), "{csv}");
        }
    }
}

#[test]
fn on_a_terminal_a_tree_shows_what_is_heaviest_and_folds_what_only_leads_there() {
    let dir = Dir::new();
    let deep: Vec<String> = (0..60).map(|level| format!("level_{level}")).collect();
    let deep = deep.join(";");
    dir.write("stacks", format!("{deep};hot 70\n{deep};warm;a 20\n{deep};warm;b 10\n"));
    let lines = dir.shown("report --tree stacks", SMALL);
    assert_eq!(
        drawn(&lines.join("\n")),
        ["⋮ ⋮ 59 frames", "100.00% level_59", "70.00% ├ hot", "30.00% └ warm", "20.00%   ├ a", "10.00%   └ b"]
    );
    let mut wide: String = (0..100).map(|n| format!("main;f{n:02} {}\n", 100 + n)).collect();
    wide += "main;f99;below 1000\n";
    dir.write("wide", wide);
    let lines = dir.shown("report --tree wide", SMALL);
    assert!(lines.len() < 24 && lines.len() > 20, "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("├ f99")) && lines.iter().any(|line| line.ends_with("below")));
    assert!(lines.last().unwrap().ends_with(" more rows (show all with --limit 0)"), "{lines:#?}");
}

#[test]
fn a_change_that_sampling_alone_makes_is_called_noise() {
    let dir = Dir::new();
    dir.write("perf.data.old", "main;same 500\nmain;slower 100\nmain;faster 300\nmain;gone 97\nmain;chance 3\n");
    dir.write("after", "main;same 520\nmain;slower 400\nmain;faster 30\nmain;new 46\nmain;chance 4\n");
    let text = dir.text("report --sample-weight 1 --diff -- after");
    let rows: Vec<Vec<&str>> = text.lines().skip(5).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            ["10.00%", "40.00%", "+30.00", "more", "100", "400", "slower"],
            ["30.00%", "3.00%", "-27.00", "less", "300", "30", "faster"],
            ["9.70%", "0.00%", "-9.70", "gone", "97", "0", "gone"],
            ["0.00%", "4.60%", "+4.60", "new", "0", "46", "new"],
            ["50.00%", "52.00%", "+2.00", "noise", "500", "520", "same"],
            ["0.30%", "0.40%", "+0.10", "noise", "3", "4", "chance"],
        ]
    );
    assert!(
        text.contains("# 4 of 6 functions changed by more than sampling noise (3 standard deviations)\n"),
        "{text}"
    );
    assert_eq!(dir.text("report --sample-weight 1 --diff perf.data.old after"), text);
    let coloured = dir.shown("report --sample-weight 1 --diff perf.data.old after", Pty { environment: "", ..SMALL });
    assert!(coloured.iter().any(|line| line.starts_with("\x1b[2m 50.00%")), "{coloured:#?}");
    let json: serde_json::Value =
        serde_json::from_str(&dir.text("report --sample-weight 1 --format json --diff perf.data.old after")).unwrap();
    assert_eq!((&json[0]["delta"], &json[4]["change"]), (&30.0.into(), &"noise".into()));
}

#[test]
fn programs_that_moved_and_dumps_of_other_processes_are_compared() {
    let dir = Dir::new();
    dir.write("before", SCRIPT);
    dir.write(
        "after",
        SCRIPT.replace("perf-10", "perf-77").replace("/usr/bin/node", "/opt/bin/node").replace("10/1", "77/1"),
    );
    let rows = dir.text("report --sort total --diff before after");
    assert!(rows.lines().skip(5).all(|line| line.contains(" +0.00 ")), "{rows}");
    assert!(rows.contains("[JIT]") && rows.contains("  node  "), "{rows}");
}

#[test]
fn an_event_that_only_one_side_has_is_named() {
    let dir = Dir::new();
    dir.write("before", SCRIPT);
    dir.write("after", SCRIPT.replace("cpu-clock", "page-faults"));
    let said = dir.said_with_status("report --diff before after", 1);
    assert!(said.contains("no event page-faults, only cpu-clock"), "{said}");
}

/// Samples of two events.
const EVENTS: &str = "prog 7/7 [000] 100.000000: 1000 cycles: \n\t  4010 hot+0x1 (/bin/prog)\n\n\
                      prog 7/7 [000] 100.100000: 10 faults: \n\t  4010 cold+0x1 (/bin/prog)\n\n";

#[test]
fn standard_output_has_the_tables_of_all_events() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("two.txt");
    std::fs::write(&input, EVENTS).unwrap();
    let text = crate::support::runner::stdout(&["report", "-q"], &input);
    let [cycles, faults] = ["of cycles", "of faults"].map(|event| text.find(event).unwrap());
    let [hot, cold] = ["hot", "cold"].map(|name| text.find(name).unwrap());
    assert!(cycles < hot && hot < faults && faults < cold, "{text}");
    let csv = crate::support::runner::stdout(&["report", "-q", "--format", "csv"], &input);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("event,self%,") && lines.len() == 3, "{csv}");
    assert!(lines[1].starts_with("cycles,") && lines[2].starts_with("faults,"), "{csv}");
    let json = crate::support::runner::stdout(&["report", "-q", "--format", "json"], &input);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let told: Vec<_> =
        rows.iter().map(|row| (row["event"].as_str().unwrap(), row["symbol"].as_str().unwrap())).collect();
    assert_eq!(told, [("cycles", "hot"), ("faults", "cold")]);
    // What one event has none of is no failure as long as another has it.
    let one = crate::support::runner::stdout(&["report", "-q", "-S", "cold"], &input);
    assert!(one.contains("cold") && !one.contains("hot"), "{one}");
    let chosen = crate::support::runner::stdout(&["report", "-q", "--format", "csv", "--event", "faults"], &input);
    assert!(chosen.starts_with("self%,"), "{chosen}");
}

#[test]
fn a_width_cuts_names_in_the_middle_in_pipes_too() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.folded");
    let long = format!("begin_{}_end", "x".repeat(300));
    std::fs::write(&input, format!("main;{long} 3\nmain;f 1\n")).unwrap();
    let whole = crate::support::runner::stdout(&["report", "-q"], &input);
    assert!(whole.contains(&long), "{whole}");
    assert!(whole.lines().all(|line| line.len() < 200 || line.contains(&long)), "{whole}");
    for width in [80, 90, 100, 120] {
        let head = crate::support::runner::stdout(&["report", "--width", &width.to_string()], &input);
        assert!(head.lines().all(|line| line.chars().count() <= width), "{head}");
        let cut = crate::support::runner::stdout(&["report", "-q", "--width", &width.to_string()], &input);
        assert!(cut.lines().filter(|line| !line.starts_with('#')).all(|line| line.chars().count() <= width), "{cut}");
        assert!(cut.contains("begin") && cut.contains('…') && cut.contains("_end"), "{cut}");
    }
}

#[test]
fn kinds_and_tiers_are_meant_in_any_spelling() {
    let input = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tiers-recording/perf.data.zst");
    let beside = input.parent().unwrap().to_str().unwrap();
    let rows = |filter: &[&str]| {
        let csv = ["report", "-q", "--format", "csv", "--debug-dir", beside];
        crate::support::runner::stdout(&[&csv[..], filter].concat(), &input)
    };
    assert_eq!(rows(&["--kind", "JIT"]), rows(&["--kind", "jit"]));
    assert_eq!(rows(&["--tier", "optimised"]), rows(&["--tier", "Optimized"]));
    assert!(rows(&["--kind", "native, unnamed"]).contains("[vdso]"));
}
