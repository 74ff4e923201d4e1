//! The parts that people see: names on a terminal, and messages when nobody listens.

use crate::support::scene;

use scene::{COMMANDS, Scene, said};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};

/// Clears the screen, turns the line around, rings.
const WILD: &[u8] = b"wild\x1b[2J\xe2\x80\xae\x07";
const TAME: &str = "wild\\x1b[2J\\u{202e}\\x07";

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe that nobody reads.
fn left() -> OwnedFd {
    std::io::pipe().unwrap().1.into()
}

fn never_panics(output: &Output, command: &Command) {
    let code = output.status.code();
    assert!(matches!(code, Some(0..=2)), "{command:?}: {:?}: {}", output.status, said(output));
}

#[test]
fn a_job_is_done_though_nobody_receives_of_it() {
    let scene = Scene::new();
    for words in COMMANDS {
        let told = scene.run(words);
        assert_eq!(told.status.code(), Some(0), "{words}: {}", said(&told));
        for stderr in [full(), left().into()] {
            let mut command = scene.command(words);
            let output = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap().wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{command:?}");
            assert_eq!(output.stdout.len(), told.stdout.len(), "{command:?}");
        }
        // A shell's `2>&-`.
        let program = env!("CARGO_BIN_EXE_jitgraft");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("'{program}' {words} 2>&-")]).current_dir(scene.path("")).stdin(Stdio::null());
        assert_eq!(shell.output().unwrap().status.code(), Some(0), "{shell:?}");
    }
}

#[test]
fn an_error_that_nobody_receives_has_its_exit_code() {
    let scene = Scene::new();
    for (words, code) in [("report missing", 1), ("report --time x perf.data", 2), ("export --to x stacks", 2), ("", 2)]
    {
        for stderr in [full(), left().into()] {
            let mut command = scene.command(words);
            assert_eq!(command.stderr(stderr).status().unwrap().code(), Some(code), "{command:?}");
        }
    }
}

#[test]
fn a_full_disk_under_standard_output_is_an_error_and_a_reader_who_left_is_none() {
    let scene = Scene::new();
    let help = COMMANDS.iter().map(|words| format!("{} --help", words.split(' ').next().unwrap()));
    let help = help.chain(["--help", "--version"].map(str::to_owned));
    let printing = COMMANDS.iter().filter(|words| !words.starts_with("inject")).map(|words| (*words).to_owned());
    for words in help.chain(printing) {
        let mut command = scene.command(&words);
        let output = command.stdout(full()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", said(&output));
        let mut command = scene.command(&words);
        let output = command.stdout(left()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        never_panics(&output, &command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", said(&output));
    }
}

#[test]
fn a_name_does_nothing_to_a_terminal() {
    let scene = Scene::with_function(WILD);
    for words in [
        "script perf.data",
        "collapse perf.data",
        "report perf.data",
        "export --to folded perf.data",
        "export --to callgrind perf.data",
    ] {
        let output = scene.on_terminal(words);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains(TAME), "{words}: {shown:?}");
        assert!(!shown.contains(['\x1b', '\x07', '\u{202e}']), "{words}: {shown:?}");
    }
}

#[test]
fn files_and_pipes_keep_the_bytes_of_names() {
    let scene = Scene::with_function(WILD);
    for words in ["script perf.data", "collapse perf.data"] {
        let output = scene.run(words);
        assert!(output.stdout.windows(WILD.len()).any(|bytes| bytes == WILD), "{words}");
    }
}

#[test]
fn tables_and_pictures_hold_printable_names_only() {
    let scene = Scene::with_function(WILD);
    for words in [
        "report perf.data",
        "report --format csv perf.data",
        "flamegraph perf.data",
        "flamegraph --flamechart perf.data",
    ] {
        let output = scene.run(words);
        assert!(output.status.success(), "{words}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(TAME), "{words}: {text}");
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{words}");
    }
}

#[test]
fn messages_about_a_file_do_nothing_to_a_terminal() {
    let scene = Scene::new();
    scene.write("odd\x1b[2J.data", "hello\n");
    for words in ["report odd\x1b[2J.data", "report missing\x1b[2J"] {
        let said = said(&scene.run(words));
        assert!(said.contains("\\x1b[2J") && !said.contains('\x1b'), "{words:?}: {said:?}");
    }
    for words in ["report --time \x1b[2J", "\x1b[2J"] {
        let shown = String::from_utf8(scene.on_terminal(words).stdout).unwrap();
        assert!(shown.contains("error: ") && !shown.contains('\x1b'), "{words:?}: {shown:?}");
    }
}

#[test]
fn a_terminal_gets_no_binary() {
    let scene = Scene::new();
    for words in ["inject -i perf.data", "inject -i perf.data -o /dev/stdout", "export --to pprof perf.data"] {
        let output = scene.on_terminal(words);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("redirect the output or use -o FILE"), "{words}: {shown:?}");
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(scene.run(words).status.success(), "{words}");
    }
}
