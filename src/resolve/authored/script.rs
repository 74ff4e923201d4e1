//! One generated script and its map: a place in it → the authored place; a function in it → its authored name.
//!
//! Nothing is shown that the script doesn't prove:
//!
//! * A name comes from the map's segment at the very token that is the function's name in the script, and only if that
//!   token is what the engine calls the function. Where the authored text is at hand, it must have the name there, too.
//! * A function's place comes from a segment within its own declaration. Bundlers wrap modules in functions that nobody
//!   wrote: these have no segment, and the one before them belongs to another file.
//! * The code of a script outside of all functions belongs to all of its files: it stays what it is.
//! * Around each place the map must fit the script ([`Fit`]): its segments begin where words do, and words that are not
//!   renamed are the same on both sides.

use super::fit::Fit;
use super::function::FunctionText;
use super::text::Text;
use super::words::{first_word, is_identifier};
use crate::model::script_map::{NONE, Place, ScriptMap, Segment};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// So many bytes are looked at to find the classes of constructors.
const EFFORT: usize = 1 << 28;

/// A script and its map.
#[derive(Debug)]
pub struct AuthoredScript {
    text: Text,
    map: ScriptMap,
    /// What the authored files are called, in the order of the map.
    files: Vec<String>,
    /// Their texts, where the map has them.
    contents: Vec<OnceLock<Option<Text>>>,
    fit: Fit,
    effort: AtomicUsize,
}

/// A place in an authored file; line and column from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthoredPlace<'a> {
    /// The file.
    pub file: &'a str,
    /// The line.
    pub line: u32,
    /// The column, in UTF-16 units.
    pub column: u32,
}

/// Where a function was written, and its name if that is not the script's; `None` if the map says nothing of it.
pub type FunctionAnswer<'a> = Result<Option<(AuthoredPlace<'a>, Option<String>)>, Contradiction>;

/// Script, map and engine contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

impl AuthoredScript {
    /// Of the text of a script and its map; `files` are the names of the authored files.
    pub fn new(text: &[u8], mut map: ScriptMap, files: Vec<String>) -> Self {
        let text = Text::new(text);
        let texts = map.sources.iter_mut().map(|source| source.content.take());
        let content = |text: Option<String>| OnceLock::from(text.map(|text| Text::new(text.as_bytes())));
        let contents = texts.map(content).collect();
        let mut script =
            Self { text, map, files, contents, fit: Fit::default(), effort: AtomicUsize::new(EFFORT) };
        script.fit = Fit::of(&script.map, |segment| script.check(segment));
        script
    }

    /// Whether the map belongs to the script at all.
    pub fn fits(&self) -> bool {
        self.fit.is_whole()
    }

    /// Whether the script is the one that ran: of these functions, as the engine names them, hardly any stands elsewhere.
    pub fn ran<'n>(&self, functions: impl Iterator<Item = (&'n str, Place)>) -> bool {
        let (mut here, mut elsewhere) = (0usize, 0usize);
        for (name, place) in functions.filter(|(name, place)| !is_outermost(name, *place)) {
            match self.function_text(name, place) {
                Some(found) => here += usize::from(!found.name.is_empty()),
                None => elsewhere += 1,
            }
        }
        elsewhere * 10 <= here
    }

    /// Where code at a place was written. Line and column count from 1.
    pub fn place(&self, line: u32, column: u32) -> Option<AuthoredPlace<'_>> {
        let place = Place::from_one(line, column)?;
        let segment = self.map.at(place).filter(|segment| segment.source != NONE)?;
        self.text.byte(place).filter(|_| self.fits_at(segment))?;
        self.authored(segment)
    }

    /// Where the function was written that starts at a place (from 1), and how it was called, if the script calls it
    /// `name`.
    pub fn function(&self, name: &str, line: u32, column: u32) -> FunctionAnswer<'_> {
        let place = Place::from_one(line, column).ok_or(Contradiction)?;
        if is_outermost(name, place) {
            return Ok(None);
        }
        let found = self.function_text(name, place).ok_or(Contradiction)?;
        let segment = self.map.at(place).filter(|segment| self.is_within(segment, found.begin));
        let Some((segment, authored)) = segment.and_then(|segment| Some((segment, self.authored(segment)?))) else {
            return Ok(None);
        };
        if !self.fits_at(segment) {
            return Err(Contradiction);
        }
        let words = self.words(&found.name)?;
        let name = (!words.is_empty()).then(|| format!("{}{}", found.prefix, words.join(".")));
        Ok(Some((authored, name)))
    }

    /// An authored line, without its end.
    pub fn source_line(&self, file: &str, line: u32) -> Option<&str> {
        let source = self.files.iter().position(|name| name == file)?;
        self.content(source as u32)?.line(line.checked_sub(1)?)
    }

    fn function_text(&self, name: &str, place: Place) -> Option<FunctionText> {
        FunctionText::find(self.text.as_str(), self.text.byte(place)?, name, &self.effort)
    }

    fn is_within(&self, segment: &Segment, begin: usize) -> bool {
        self.text.byte(segment.generated).is_some_and(|byte| byte >= begin)
    }

    fn authored(&self, segment: &Segment) -> Option<AuthoredPlace<'_>> {
        let file = self.files.get(segment.source as usize).filter(|file| !file.is_empty())?;
        let Place { line, column } = segment.authored;
        Some(AuthoredPlace { file, line: line.checked_add(1)?, column: column.checked_add(1)? })
    }

    /// The authored words of a function's name; none if no word is called otherwise.
    fn words(&self, name: &[Range<usize>]) -> Result<Vec<&str>, Contradiction> {
        let (mut words, mut renamed) = (Vec::with_capacity(name.len()), false);
        for word in name {
            let own = &self.text.as_str()[word.clone()];
            let place = self.text.place(word.start);
            let mut said = own;
            for segment in self.map.exactly_at(place) {
                let called = self.map.names.get(segment.name as usize).map(String::as_str);
                if self.contradicts(segment, called.unwrap_or(own)) {
                    return Err(Contradiction);
                }
                said = called.filter(|called| is_identifier(called)).unwrap_or(said);
            }
            renamed |= said != own;
            words.push(said);
        }
        if !renamed {
            words.clear();
        }
        Ok(words)
    }

    /// Whether the authored text has another word where a segment says that `word` is.
    fn contradicts(&self, segment: &Segment, word: &str) -> bool {
        let Some(content) = self.content(segment.source) else { return false };
        content.from(segment.authored).is_none_or(|rest| declared_word(rest) != word)
    }

    fn content(&self, source: u32) -> Option<&Text> {
        self.contents.get(source as usize)?.get()?.as_ref()
    }

    fn fits_at(&self, segment: &Segment) -> bool {
        self.fit.at(&self.map, segment, |segment| self.check(segment))
    }

    /// Whether a segment begins where a word does, and the authored text has the same word; `None` if it doesn't tell.
    fn check(&self, segment: &Segment) -> Option<bool> {
        let text = self.text.as_str();
        let Some(byte) = self.text.byte(segment.generated) else { return Some(false) };
        if segment.source == NONE {
            return None;
        }
        let own = first_word(&text[byte..]);
        let inside = !own.is_empty() && !super::function::begins_word(text, byte);
        let called = self.map.names.get(segment.name as usize);
        let quoted = text[byte..].starts_with(['"', '\'', '[']);
        if inside || called.is_some() && own.is_empty() && !quoted {
            return Some(false);
        }
        let Some(content) = self.content(segment.source) else { return called.map(|_| true) };
        let Some(rest) = content.from(segment.authored) else { return Some(false) };
        let word = called.map_or(own, String::as_str);
        match first_word(rest) {
            found if found == word && !word.is_empty() => Some(true),
            _ if called.is_some() => Some(declared_word(rest) == word),
            // Words of the language come and go.
            _ => None,
        }
    }
}

/// Whether it is the code outside of all functions, or the function that an engine wraps around it.
fn is_outermost(name: &str, place: Place) -> bool {
    name.is_empty() && place == Place::default()
}

/// The word that is declared at the start of a text: behind the keywords of a declaration.
fn declared_word(text: &str) -> &str {
    const KEYWORDS: &[&str] = &[
        "abstract", "async", "class", "const", "declare", "default", "export", "function", "get", "let", "private",
        "protected", "public", "readonly", "set", "static", "var", "override", "enum", "namespace",
    ];
    let mut rest = text;
    for _ in 0..6 {
        let word = first_word(rest);
        let after = rest[word.len()..].trim_start_matches([' ', '\t', '\n', '\r', '*']);
        let is_declared = !KEYWORDS.contains(&word) || first_word(after).is_empty();
        if is_declared {
            return word;
        }
        rest = after;
    }
    first_word(rest)
}
