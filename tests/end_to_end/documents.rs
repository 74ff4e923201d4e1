//! The documents lead where they state: links and paths exist, and so do the commands' options.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// README.md and those that it leads to; fixtures and tests have READMEs of their own.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let top = ["README.md", "CONTRIBUTING.md", "benches/README.md"].map(|name| root.join(name));
    top.into_iter().chain(docs).map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The target of `[text](link)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split("](").skip(1)).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// The text in backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase().replace(' ', "-");
    letters.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
}

fn has_heading(text: &str, wanted: &str) -> bool {
    text.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' ')).any(|title| anchor(title) == wanted)
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for (path, text) in documents() {
        for link in links(&text).filter(|link| !link.starts_with("https://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(target.exists(), "{}: {link} is not there", path.display());
            let has_it = heading.is_empty() || has_heading(&fs::read_to_string(&target).unwrap(), heading);
            assert!(has_it, "{}: {link} is no heading there", path.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links");
}

#[test]
fn paths_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = ["src/", "tests/", "benches/", "fixtures/", "docs/", ".ci/", ".github/"];
    let mut checked = 0;
    for (document, text) in documents() {
        for path in code(&text).filter(|path| ours.iter().any(|room| path.starts_with(room))) {
            // A place for a file that is to be written: `src/formats/NAME.rs`.
            let path = path.split(|letter: char| letter.is_ascii_uppercase() || " *{".contains(letter)).next().unwrap();
            assert!(root.join(path).exists(), "{}: {path} is not there", document.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} paths");
}

fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args([command, "--help"]).output().unwrap();
    assert!(output.status.success(), "there is no command {command}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_have_the_options_that_are_shown() {
    let (mut helps, mut checked) = (HashMap::new(), 0);
    for (document, text) in documents() {
        let commands = text.lines().flat_map(|line| line.split(['|', '`']).flat_map(|part| part.split(" && ")));
        for command in
            commands.filter_map(|part| part.trim().trim_start_matches("target/release/").strip_prefix("jitgraft "))
        {
            let words: Vec<&str> = command.split("  #").next().unwrap().split_whitespace().collect();
            let help = helps.entry(words[0].to_owned()).or_insert_with(|| help(words[0]));
            for option in words[1..].iter().filter(|word| word.starts_with('-') && word.len() > 1) {
                let known = help.split([' ', ',', '\n', '[', ']']).any(|word| word == *option);
                assert!(known, "{}: jitgraft {} has no {option}", document.display(), words[0]);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} options");
}

#[test]
fn the_readme_is_short() {
    let (_, readme) = &documents()[0];
    assert!(readme.lines().count() <= 70 && readme.split_whitespace().count() <= 700, "the rest goes to docs/");
}
