//! The texts about each problem: its key, its line in the documentation, the threshold from which it is a finding, its
//! cause and its remedy. A new problem doesn't compile until it has all of these.
//!
//! Names in the texts are escaped so that they are printable.

mod process;
mod recording;
mod text;

use super::problem::Finding;
pub(crate) use recording::problem_text;
pub(crate) use text::ProblemText;
pub(super) use text::{number, source, who};

impl Finding {
    /// True if the problem affects enough of the recording to be worth reporting.
    pub fn is_significant(&self) -> bool {
        self.percent >= problem_text(&self.problem).threshold
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_documentation_has_what_is_reported_of_each_key() {
        let sources = [include_str!("process.rs"), include_str!("recording.rs")];
        let source = sources.concat().split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
        // The key of a problem and its line in the documentation are the first two arguments of each call.
        let problems: Vec<&str> = source.split("ProblemText::new(").skip(1).collect();
        let two = |problem: &str| {
            let (key, rest) = problem.trim_start().strip_prefix('"')?.split_once("\", \"")?;
            Some((key.to_owned(), rest.split_once('"')?.0.to_owned()))
        };
        assert!(problems.iter().all(|problem| two(problem).is_some()));
        let texts: BTreeSet<(String, String)> = problems.into_iter().filter_map(two).collect();
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
