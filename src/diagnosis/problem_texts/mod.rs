//! The texts about each problem: its key, the line of the documentation, the threshold from which it is a finding, its
//! cause and its remedy. A new problem does not compile without all of these.
//!
//! All names in it are printable.

mod process;
mod recording;
mod text;

use super::problem::Finding;
pub(crate) use recording::problem_text;
pub(crate) use text::ProblemText;
pub(super) use text::{number, source, who};

impl Finding {
    /// True if it is worth a reader's time.
    pub fn is_significant(&self) -> bool {
        self.percent >= problem_text(&self.problem).threshold
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The quoted texts behind a field's name.
    fn values(source: &str, field: &str) -> Vec<String> {
        let start = format!(" {field}: \"");
        let behind = source.split(&start).skip(1);
        behind.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_documentation_has_what_is_reported_of_each_key() {
        let sources = [include_str!("process.rs"), include_str!("recording.rs")];
        let source = sources.concat().split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
        let texts: BTreeSet<(String, String)> =
            values(&source, "key").into_iter().zip(values(&source, "about")).collect();
        assert_eq!(values(&source, "key").len(), values(&source, "about").len());
        assert!(texts.len() > 30, "{texts:?}");
        let document = include_str!("../../../docs/doctor.md");
        let rows = document.split("| problem | what was found |").nth(1).unwrap().split("\n\n").next().unwrap();
        let cells =
            rows.lines().skip(2).filter_map(|row| row.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
        let documented: BTreeSet<(String, String)> =
            cells.map(|(key, about)| (key.to_owned(), about.to_owned())).collect();
        assert_eq!(documented, texts);
    }
}
