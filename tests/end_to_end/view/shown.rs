//! An input, the page that is made of it, and what `jitgraft report` states about the same.

use crate::support::browser::Page;
use crate::support::runner::stdout;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The figures of a table for a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) own: u64,
    pub(crate) total: u64,
    /// Samples in the function itself.
    pub(crate) samples: u64,
}

/// By module and name. Functions that are called alike are added up.
pub(crate) type Table = BTreeMap<(String, String), Sums>;

/// A page of an input.
pub(crate) struct Shown {
    pub(crate) page: Page,
    input: PathBuf,
    /// The arguments with which every command reads the input alike.
    arguments: Vec<String>,
    /// The directories that are removed with it.
    dirs: Vec<TempDir>,
}

impl Shown {
    /// The page of a fixture, which is the recording with what was recorded beside it.
    pub(crate) fn fixture(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let beside = path.parent().unwrap().to_str().unwrap().to_owned();
        Self::of(&path, &["--debug-dir", &beside])
    }

    /// The page of folded stacks.
    pub(crate) fn folded(stacks: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("input.folded");
        fs::write(&input, stacks).unwrap();
        let mut shown = Self::of(&input, &[]);
        shown.dirs.push(dir);
        shown
    }

    /// The page of an input that is read with these arguments.
    pub(crate) fn of(input: &Path, arguments: &[&str]) -> Self {
        Self::with(input, arguments, &[])
    }

    /// Opens a page of the input. `of_page` are arguments for `view` that `report` does not get.
    pub(crate) fn with(input: &Path, arguments: &[&str], of_page: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("page.html");
        let write = ["view", "--quiet", "--no-open", "-o", file.to_str().unwrap()];
        stdout(&[&write[..], arguments, of_page].concat(), input);
        let mut page = Page::open(&file);
        page.evaluate("jitgraft.ready.then(() => 0)");
        page.settle();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { page, input: input.to_owned(), arguments, dirs: vec![dir] }
    }

    /// From now on, compares the page with what `jitgraft report` prints about another of its inputs.
    pub(crate) fn against(&mut self, input: &Path) -> &mut Self {
        input.clone_into(&mut self.input);
        self
    }

    /// The page with the tab of a part in front.
    pub(crate) fn part(mut self, name: &str) -> Self {
        self.page.click_on(&format!("#tab-{name}"));
        self
    }

    /// The text of an element.
    pub(crate) fn text_of(&mut self, selector: &str) -> String {
        self.page.text(&format!("document.querySelector({}).textContent", json!(selector)))
    }

    /// Clicks on a button that copies, and returns what the clipboard gets.
    pub(crate) fn copied_by(&mut self, button: &str) -> String {
        self.page
            .evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }");
        self.page.evaluate("delete window.copied");
        self.page.click_on(button);
        self.page.wait_until("window.copied !== undefined");
        self.page.text("window.copied")
    }

    /// Changes what the reader has chosen.
    pub(crate) fn set(&mut self, changes: &Value) {
        self.page.evaluate(&format!("jitgraft.page.store.set({changes})"));
        self.page.settle();
    }

    /// The reader's choices.
    pub(crate) fn state(&mut self, key: &str) -> Value {
        self.page.evaluate(&format!("jitgraft.page.store.state[{}]", json!(key)))
    }

    /// The output of a command that reads the input as the page does.
    pub(crate) fn output(&self, command: &[&str]) -> String {
        let own: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        stdout(&[command, &["--quiet"], &own].concat(), &self.input)
    }

    /// The output of `jitgraft report`.
    pub(crate) fn report(&self, arguments: &[&str]) -> String {
        let own: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let tiers: &[&str] = if self.is_resolved() { &["--merge-tiers"] } else { &[] };
        stdout(&[&["report", "--quiet", "--limit", "0"], tiers, &own, arguments].concat(), &self.input)
    }

    /// Names of perf.data are the recording's addresses resolved, which the page merges by function.
    fn is_resolved(&self) -> bool {
        self.input.to_str().unwrap().contains("perf.data")
    }

    /// The table that `jitgraft report` prints.
    pub(crate) fn reported(&self, arguments: &[&str]) -> Table {
        let rows: Vec<Value> =
            serde_json::from_str(&self.report(&[&["--format", "json"], arguments].concat())).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let mut table = Table::new();
        // The page shows one event at a time, at first the first one.
        for row in rows.iter().filter(|row| row["event"] == rows[0]["event"]) {
            let sums = Sums { own: number(row, "self"), total: number(row, "total"), samples: number(row, "samples") };
            add(&mut table, (text(row, "module"), text(row, "symbol")), sums);
        }
        table
    }

    /// The table of the page, of the samples that count now.
    pub(crate) fn table(&mut self) -> Table {
        let rows = self.page.evaluate(
            "{ const { page } = jitgraft, { profile } = page, groups = page.groups(), sums = page.sums(); \
             Array.from(groups.first, (number, group) => [profile.functions.module[number], \
             profile.functions.name[number], sums.self[group], sums.total[group], sums.selfCount[group], \
             sums.totalCount[group]]).filter((row) => row[5] > 0) }",
        );
        let mut table = Table::new();
        for row in rows.as_array().unwrap() {
            let text = |at: usize| row[at].as_str().unwrap().to_owned();
            let number = |at: usize| row[at].as_f64().unwrap() as u64;
            let sums = Sums { own: number(2), total: number(3), samples: number(4) };
            add(&mut table, (text(0), text(1)), sums);
        }
        table
    }

    /// Fails unless the page's table is that of `jitgraft report` with these filters.
    pub(crate) fn assert_as_reported(&mut self, filters: &[&str]) {
        let (shown, reported) = (self.table(), self.reported(filters));
        let differing: Vec<_> =
            shown.keys().chain(reported.keys()).filter(|key| shown.get(*key) != reported.get(*key)).collect();
        let told: Vec<_> = differing.iter().take(5).map(|key| (key, shown.get(*key), reported.get(*key))).collect();
        assert!(differing.is_empty(), "{:?} {filters:?}: {} differ: {told:#?}", self.input, differing.len());
        assert!(!reported.is_empty(), "{:?} {filters:?}: nothing is left", self.input);
    }

    /// Loads the page again from its address, and checks that it shows the same.
    pub(crate) fn assert_reload_shows_the_same(&mut self) {
        let (table, address) = (self.table(), self.page.text("location.hash"));
        self.reload();
        assert_eq!(self.page.text("location.hash"), address);
        assert!(table == self.table(), "the page at {address} shows something else");
    }

    /// Loads the page anew.
    pub(crate) fn reload(&mut self) {
        self.page.reload();
        self.page.evaluate("jitgraft.ready.then(() => 0)");
        self.page.settle();
    }
}

fn add(table: &mut Table, function: (String, String), sums: Sums) {
    let sum = table.entry(function).or_default();
    *sum = Sums { own: sum.own + sums.own, total: sum.total + sums.total, samples: sum.samples + sums.samples };
}
