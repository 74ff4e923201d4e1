//! The commands in README.md and docs/ run as they are printed: they are extracted and run one after the other in a
//! directory that has the files which the documents speak of.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command of a document.
#[derive(Debug)]
struct Printed {
    document: String,
    line: usize,
    text: String,
}

/// The commands in the code blocks of a document. In blocks that show output, they follow a `$`. Lines that end with a
/// backslash, and loops, continue.
fn commands(document: &str, text: &str) -> Vec<Printed> {
    let mut commands: Vec<Printed> = Vec::new();
    let mut block: Option<Vec<(usize, &str)>> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut block) {
            (Some(language), None) if ["", "sh"].contains(&language) => block = Some(Vec::new()),
            // Blocks in other languages end like those of commands, and are dropped.
            (Some(_), None) => block = Some(vec![(0, "")]),
            (Some(_), Some(_)) => {
                let lines = block.take().unwrap_or_default();
                commands.extend(commands_of_block(document, &lines));
            }
            (None, Some(lines)) => lines.push((index + 1, line)),
            (None, None) => {}
        }
    }
    commands
}

fn commands_of_block(document: &str, lines: &[(usize, &str)]) -> Vec<Printed> {
    let is_in_another_language = lines.first().is_some_and(|(number, _)| *number == 0);
    let is_output = lines.first().is_some_and(|(_, line)| line.starts_with(' '));
    if is_in_another_language || is_output {
        return Vec::new();
    }
    let has_prompt = lines.iter().any(|(_, line)| line.starts_with("$ "));
    let mut commands: Vec<Printed> = Vec::new();
    let mut continues = false;
    for (number, line) in lines {
        let typed = if has_prompt { line.strip_prefix("$ ") } else { Some(*line) };
        let Some(typed) = typed.filter(|typed| !typed.trim().is_empty()) else { continue };
        match commands.last_mut().filter(|_| continues) {
            Some(command) => command.text += &format!("\n{typed}"),
            None => commands.push(Printed { document: document.into(), line: *number, text: typed.into() }),
        }
        let text = &commands.last().unwrap().text;
        continues = text.ends_with('\\') || text.starts_with("while ") && !text.contains("\ndone");
    }
    commands
}

/// Commands that are not run here, each with a reason. Each stands for at least one command of the documents.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo build --release", "first_picture.rs runs it"),
    ("tests/run.sh", "runs this test"),
    ("hotspot perf.jit.data", "opens a window"),
    ("samply import", "is no package of Debian, and serves a page"),
    ("kcachegrind ", "opens a window"),
    ("rakudo-m -e '…'", "the program is left out"),
    ("curl ", "needs a Collector"),
    ("spark-submit ", "needs a cluster"),
    ("inferno-flamegraph", "inferno's programs are no packages of Debian"),
    ("duckdb ", "is no package of Debian; sql.rs runs the queries in its module for Python"),
    ("perf report --symfs DIR", "perf needs the files that ran in DIR; recorded_elsewhere.rs runs it"),
];

/// Prepares what the documents speak of. The recording is real; other files are fixtures.
const PREPARE: &str = r#"
zst() { zstd -qdc "$FIXTURES/$1"; }
cp "$ROOT"/docs/getting-started/report.js .
sed 's/makeText(12000)/makeText(2000)/' report.js > app.js
mkdir -p dist build debug DIR dumps maps fleet recordings run
printf 'function splitWords(text){return text.split(" ")}for(let i=0;i<2e5;i++)splitWords("a b c d");' > dist/app.min.js
printf '{"name":"t","version":"1.0.0","scripts":{"test":"node app.js"}}' > package.json
printf '<?php $s = 0; for ($i = 0; $i < 30000000; $i++) { $s += $i %% 7; } echo $s;' > page.php
jitgraft -q record -o first.data -- node app.js
for name in before after old; do cp first.data $name.data; done
zst callgrind-jit/php-tracing.callgrind.zst | sed 's/^pid: .*/pid: 4711/' > callgrind.out.4711
cp "$FIXTURES"/callgrind-jit/php-tracing.map perf-4711.map
cp perf-4711.map app.map
cp perf-4711.map maps/
cp "$FIXTURES"/php-recording/jit-31795.dump dumps/
gzip -c "$FIXTURES"/pprof-go/input.pb > cpu.pb.gz
cp cpu.pb.gz fleet/
touch fleet/cpu.pb.gz
gzip -c "$FIXTURES"/firefox-samply/input.json > profile.json.gz
cp "$FIXTURES"/otlp-1.11/input.otlp collector.otlp
cp "$FIXTURES"/trace-miri/input.json trace.json
printf '[{"name":"Source","ph":"X","ts":1,"dur":5,"pid":1,"tid":1,"args":{"detail":"a.h"}}]' > app.json
zst measureme-rustc/profile.mm_profdata.zst > app-0000123.mm_profdata
for name in big old new; do cp app-0000123.mm_profdata $name.mm_profdata; done
for name in old new before after optimized; do printf 'main;f 30\nmain;g 40\n' > $name.folded; done
cp "$FIXTURES"/wasm-node/app.cpuprofile profile.cpuprofile
cp "$FIXTURES"/wasm-node/app.wasm .
cp "$FIXTURES"/wasm-node/app.wasm build/
printf 'cpu.pb.gz\n' > list.txt
zst php-recording/perf.data.zst > recordings/perf.data
cp "$FIXTURES"/php-recording/jit-31795.dump recordings/
cp "$FIXTURES"/script-layouts/default.txt old.txt
rm first.data
"#;

/// Runs a script in the directory. `jitgraft` is this build.
fn bash(script: &str, directory: &Path) -> std::process::Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_BIN_EXE_jitgraft"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -euo pipefail\n{script}")]).current_dir(directory);
    command.env("PATH", path).env("ROOT", root).env("FIXTURES", root.join("fixtures")).env("PAGER", "cat");
    command.stdin(Stdio::null()).env_remove("DISPLAY").output().unwrap()
}

#[test]
#[ignore = "needs node and php: tests/run.sh --all"]
fn every_command_in_the_documents_runs_as_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![("README.md".to_owned(), root.join("README.md"))];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".md") {
            documents.push((name, path));
        }
    }
    documents.sort();
    let mut running = Command::new("sleep").arg("300").spawn().unwrap();
    let (mut ran, mut failed, mut unused) = (0, Vec::new(), BTreeSet::from_iter(NOT_RUN.iter().map(|(part, _)| *part)));
    for (name, path) in documents {
        let directory = tempfile::tempdir().unwrap();
        let printed = commands(&name, &fs::read_to_string(path).unwrap());
        if printed.is_empty() {
            continue;
        }
        let prepared = bash(PREPARE, directory.path());
        assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        // Most commands read a recording that is there already; getting-started.md makes its own.
        if name != "getting-started.md" {
            fs::copy(directory.path().join("before.data"), directory.path().join("perf.data")).unwrap();
        }
        for Printed { document, line, text } in printed {
            if let Some((part, _)) = NOT_RUN.iter().find(|(part, _)| text.contains(part)) {
                unused.remove(part);
                continue;
            }
            // In these, 4711 is a process that runs.
            let is_of_process = text.starts_with("jitgraft doctor 4711") || text.contains("-p 4711");
            let script = if is_of_process { text.replace("4711", &running.id().to_string()) } else { text.clone() };
            let output = bash(&script, directory.path());
            ran += 1;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() && !is_expected(&text, output.status.code(), &said) {
                failed.push(format!("{document}:{line}: {text}\n{}: {said}", output.status));
            }
        }
    }
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(failed.is_empty(), "{} of {ran} commands failed:\n{}", failed.len(), failed.join("\n"));
    assert!(ran > 60 && unused.is_empty(), "{ran} commands ran; not in the documents: {unused:?}");
}

/// True if the command is meant to end with this status here.
fn is_expected(command: &str, status: Option<i32>, said: &str) -> bool {
    // Whether there are findings depends on the recording.
    let has_findings = command.contains("--exit-code");
    // This recording has no such function, thread or time, and the message says which there are.
    let is_absent = ["--callers malloc", "--tid 77", "--time 10ms,20ms", "annotate --by line splitWords"]
        .iter()
        .any(|part| command.contains(part));
    let names_others =
        is_absent && (said.contains(" in this input: ") || said.contains("hint: the hottest functions are: "));
    status == Some(1) && (has_findings || names_others)
}

#[test]
fn commands_are_told_from_what_they_print() {
    let text = "```\na  # b\nc \\\n  d\n```\n```python\nx\n```\n```\n$ e\nout\n$ f\n```\n```\n 1.0%  g\n```\n\
        ```\nwhile read x; do\n  h\ndone < y\ni\n```\n";
    let commands: Vec<_> = commands("D", text).into_iter().map(|command| (command.line, command.text)).collect();
    let expected =
        [(2, "a  # b"), (3, "c \\\n  d"), (10, "e"), (12, "f"), (18, "while read x; do\n  h\ndone < y"), (21, "i")];
    assert_eq!(commands, expected.map(|(line, text)| (line, text.to_owned())));
}
