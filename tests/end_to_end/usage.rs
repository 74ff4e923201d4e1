//! The texts about the command line itself, and its defaults.

use crate::support::scene;

use scene::{Scene, said};
use std::fs;
use std::process::Output;

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The names of all commands, as the help lists them.
fn commands(scene: &Scene) -> Vec<String> {
    let help = printed(&scene.run("--help"));
    let list = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> = names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(names.len() > 10, "{names:?}");
    names.into_iter().filter(|name| name != "help").collect()
}

#[test]
fn every_help_ends_in_examples() {
    let scene = Scene::new();
    assert!(printed(&scene.run("--help")).contains("Examples:"));
    for command in commands(&scene).iter().filter(|command| *command != "inputs") {
        let help = printed(&scene.run(&format!("{command} --help")));
        let (_, examples) = help.rsplit_once("Examples:").unwrap_or_else(|| panic!("{command}: {help}"));
        assert!(examples.contains(&format!("jitgraft {command}")), "{command}: {examples}");
    }
}

#[test]
fn the_page_on_inputs_is_help_and_a_command() {
    let scene = Scene::new();
    let page = printed(&scene.run("inputs"));
    assert!(page.contains("perf-data") && page.contains("--jitdump") && page.contains("/usr/lib/debug"), "{page}");
    let help = printed(&scene.run("help inputs"));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&page), words(&help));
}

#[test]
fn completions_know_every_command() {
    let scene = Scene::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&scene.run(&format!("completions {shell}")));
        for command in commands(&scene) {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scene = Scene::new();
    printed(&scene.run("man pages/man1"));
    for command in commands(&scene) {
        let page = fs::read_to_string(scene.path(&format!("pages/man1/jitgraft-{command}.1"))).unwrap();
        assert!(page.contains(".TH"), "{command}: {page}");
    }
    let inject = fs::read_to_string(scene.path("pages/man1/jitgraft-inject.1")).unwrap();
    assert!(inject.contains("relocate"), "{inject}");
}

#[test]
fn defaults_come_from_the_environment_and_what_is_typed_wins() {
    let scene = Scene::new();
    let run = |defaults: &str, words: &str| scene.command(words).env("JITGRAFT_OPTS", defaults).output().unwrap();
    let limited = printed(&scene.run("report --limit 1 --format csv stacks"));
    assert_eq!(printed(&run("--limit 1 --format csv", "report stacks")), limited);
    assert_eq!(printed(&run("--format=csv --limit 9", "report --limit 1 stacks")), limited);
    // collapse has no such flags, and other commands have them.
    assert_eq!(printed(&run("--limit 1 --format csv", "collapse stacks")), printed(&scene.run("collapse stacks")));
    // Flags of all commands, before and behind the command's name.
    assert_eq!(said(&run("-q", "--threads 1 collapse perf.data")), "");
    assert_eq!(said(&run("--quiet --no-merge-tiers", "flamegraph --merge-tiers perf.data")), "");
}

#[test]
fn a_default_that_no_command_has_is_a_mistake() {
    let scene = Scene::new();
    let output = scene.command("report stacks").env("JITGRAFT_OPTS", "--colour js").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("JITGRAFT_OPTS contains --colour, but no command has that flag"),
        "{}",
        said(&output)
    );
}
