//! The list of phrases (`phrases.tsv`), and the search for them.

use regex::{Regex, RegexBuilder};

/// A phrase that a reader stumbles over.
pub(crate) struct Phrase {
    pattern: Regex,
    pub(crate) better: String,
    pub(crate) example: String,
    allowed: Option<Regex>,
}

impl Phrase {
    fn parse(row: &str) -> Self {
        let mut fields = row.split('\t');
        let mut field = || fields.next().unwrap_or_else(|| panic!("'{row}' has too few fields"));
        let (pattern, better, example) = (field(), field().to_owned(), field().to_owned());
        // Patterns of a sentence's first word are the only ones for which case matters.
        let pattern = RegexBuilder::new(pattern).case_insensitive(!pattern.starts_with("(^|[.!?]")).build().unwrap();
        Self { pattern, better, example, allowed: fields.next().map(|allowed| Regex::new(allowed).unwrap()) }
    }

    /// Each match, without those that the row allows.
    pub(crate) fn find<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.pattern.find_iter(text).map(|hit| (hit.start(), hit.as_str())).filter_map(|(at, hit)| {
            let allowed = self
                .allowed
                .as_ref()
                .is_some_and(|allowed| allowed.is_match(text[at..].trim_start_matches(['.', ' '])));
            (!allowed).then_some(hit)
        })
    }
}

pub(crate) fn phrases() -> Vec<Phrase> {
    let rows = include_str!("phrases.tsv").lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(Phrase::parse).collect()
}
