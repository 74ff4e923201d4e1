//! Everything that people read is in plain English: help, messages, documents, comments and names of tests are searched
//! for phrases that a reader stumbles over. `tests/english/phrases.tsv` lists them, each with a better wording.

#[path = "english/phrases.rs"]
mod phrases;
#[path = "english/rooms.rs"]
mod rooms;
#[path = "english/texts.rs"]
mod texts;

use clap::CommandFactory;
use jitgraft::cli::Cli;
use rooms::{Found, Room};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Hits for each 1,000 words of comments.
const OF_COMMENTS: f64 = 2.0;

/// Help as it is printed, without a limit of its width.
fn help() -> Room {
    let mut all = Cli::command().term_width(1000);
    all.build();
    let mut room = Room::named("help");
    for command in [all.clone()].iter().chain(all.get_subcommands().filter(|command| command.get_name() != "help")) {
        let text = command.clone().render_long_help().to_string();
        // Each line is a paragraph, and a flag and its text are far apart.
        let paragraphs = text.lines().flat_map(|line| line.split("  ")).collect::<Vec<_>>().join("\n\n");
        room.add(command.get_name(), &texts::document(&paragraphs));
    }
    room
}

fn check(room: &Room, allowed: usize) {
    let found = room.find();
    println!("{}", found.summary());
    assert!(found.hits.len() <= allowed, "{}\nat most {allowed} are allowed\n{}", found.listed(), found.summary());
    assert!(
        found.hits.len() * 11 / 10 + 3 >= allowed,
        "{}: lower the bound of {allowed} in tests/english.rs",
        found.summary()
    );
}

#[test]
fn help_is_plain() {
    check(&help(), 0);
}

#[test]
fn messages_are_plain() {
    check(&rooms::messages(), 0);
}

#[test]
fn documents_are_plain() {
    check(&rooms::documents(), 0);
}

#[test]
fn test_names_are_plain() {
    check(&rooms::test_names(), 0);
}

#[test]
fn comments_are_plain() {
    let found: Vec<Found> = rooms::comments().iter().map(Room::find).collect();
    for found in &found {
        println!("{}", found.summary());
    }
    let (hits, words) = found.iter().fold((0, 0), |sum, room| (sum.0 + room.hits.len(), sum.1 + room.words));
    let rate = 1000.0 * hits as f64 / words as f64;
    println!("comments: {hits} in {words} words, {rate:.2} per 1,000");
    let listed: String = found.iter().map(Found::listed).collect();
    assert!(rate <= OF_COMMENTS, "{listed}\n{rate:.2} per 1,000 words, at most {OF_COMMENTS} are allowed");
}

#[test]
fn every_pattern_finds_its_example() {
    for phrase in phrases::phrases() {
        assert!(phrase.find(&phrase.example).next().is_some(), "'{}' is not found", phrase.example);
    }
}

#[test]
fn code_is_cut_into_comments_and_strings() {
    let parts = texts::code(
        "//! One,\n//! two.\n\nlet x = \"a \\\"b\\\" c\"; // three\nlet y = r#\"d \"e\"\"#; let z: &'static str;\n'\"' /* four */",
        true,
    );
    let texts_of = |passages: &[texts::Passage]| passages.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts_of(&parts.comments), ["One, two.", "three", "four"]);
    assert_eq!(texts_of(&parts.strings), ["a \\\"b\\\" c", "d \"e\""]);
    assert_eq!(parts.comments[1].line, 4);
}

/// The grammar of the documents, by a checker made for code: `tests/english/accepted.tsv` lists findings that are right.
#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn harper_finds_no_mistake_in_the_documents() {
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/english/harper.mjs");
    fs::copy(script, dir.path().join("harper.mjs")).unwrap();
    fs::write(dir.path().join("texts"), rooms::documents().lines()).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run("npm", &["install", "--silent", "--no-audit", "--no-fund", "harper.js@2.10.0"]);
    let found = run("node", &["harper.mjs", "texts"]);
    let accepted: Vec<&str> = include_str!("english/accepted.tsv").lines().collect();
    let is_new = |line: &&str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let file = fields[2].split(':').next().unwrap();
        !accepted.contains(&format!("{}\t{}\t{file}", fields[0], fields[1]).as_str())
    };
    let new: Vec<&str> = found.lines().filter(is_new).collect();
    assert!(new.is_empty(), "mend these, or accept them in tests/english/accepted.tsv:\n{}", new.join("\n"));
}
