//! One generated script and its map: a place in it → the authored place; a function in it → its authored name.
//!
//! Nothing is shown that the script doesn't prove:
//!
//! * A name comes from the map's segment at the very token that is the function's name in the script, and only if that
//!   token is what the engine calls the function. Where the authored text is available, it must have the name there,
//!   too.
//! * A function's place comes from a segment within its own declaration. Bundlers wrap modules in functions that nobody
//!   wrote: these have no segment, and the one before them belongs to another file.
//! * The code of a script outside of all functions belongs to all of its files: it stays what it is.
//! * Around each place the map must fit the script ([`Fit`]): its segments begin where words do, and words that are not
//!   renamed are the same on both sides.

use super::declared::{Declared, Role, is_computed_key, own_name, string_key};
use super::fit::Fit;
use super::function::{FunctionText, begins_word};
use super::text::Text;
use super::words::{around, behind, first_word, is_identifier};
use crate::model::script_map::{JsonString, NONE, Place, ScriptMap, Segment};
use crate::model::script_scopes::ScriptScopes;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// So many bytes are looked at to find the classes of constructors.
const EFFORT: usize = 1 << 28;

/// So much of a script before a function is looked at: a class may begin so far before its constructor.
const FAR: usize = 1 << 16;

/// So much of a text before a place is looked at, and so much behind it: more than the names there are long.
const BEFORE: usize = 1 << 8;
const AFTER: usize = 1 << 11;

/// A script and its map.
#[derive(Debug)]
pub struct AuthoredScript {
    text: Text,
    map: ScriptMap,
    /// What the authored files are called, in the order of the map.
    files: Vec<String>,
    /// Their texts, where the map has them.
    contents: Vec<Option<Content>>,
    fit: Fit,
    /// True if the user named the map for this script: then it is used although it seems to be of another one.
    is_given: bool,
    effort: AtomicUsize,
}

/// The text of an authored file, which is decoded when it is requested.
#[derive(Debug)]
struct Content {
    json: JsonString,
    text: OnceLock<Option<Text>>,
}

impl Content {
    fn new(json: JsonString) -> Self {
        Self { json, text: OnceLock::new() }
    }

    fn text(&self) -> Option<&Text> {
        self.text.get_or_init(|| Text::of_json(&self.json)).as_ref()
    }
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
    /// True if the map lists the file as third-party code.
    pub is_third_party: bool,
}

/// Where a function was written, and its name if that is not the script's; `None` if the map does not have it.
pub type FunctionAnswer<'a> = Result<Option<(AuthoredPlace<'a>, Option<String>)>, Contradiction>;

/// Script, map and engine contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

impl AuthoredScript {
    /// Of the text of a script and its map; `files` are the names of the authored files.
    pub fn new(text: String, mut map: ScriptMap, files: Vec<String>) -> Self {
        let text = Text::new(text);
        let contents = map.sources.iter_mut().map(|source| source.content.take().map(Content::new)).collect();
        let mut script =
            Self { text, map, files, contents, fit: Fit::default(), is_given: false, effort: AtomicUsize::new(EFFORT) };
        script.fit = Fit::of(&script.map, |segment| script.check(segment));
        script
    }

    /// The same, if some of its files are scripts with maps themselves: what these were made from instead.
    pub fn through(mut self, scripts: Vec<(u32, Self)>) -> Self {
        let mut segments = self.map.segments().to_vec();
        for (source, script) in scripts {
            let first = (self.files.len() as u32, self.map.name_count() as u32);
            for segment in segments.iter_mut().filter(|segment| segment.source == source) {
                *segment = script.before(segment, first);
            }
            self.files.extend(script.files);
            self.contents.extend(script.contents);
            self.map.push_names_of(&script.map);
            self.map.sources.extend(script.map.sources);
            self.map.scopes = ScriptScopes::default();
        }
        self.map.set_segments(segments);
        self.fit = Fit::of(&self.map, |segment| self.check(segment));
        self
    }

    /// What a segment that leads to this script becomes, if this one's files and names count from `first`.
    fn before(&self, segment: &Segment, (first_source, first_name): (u32, u32)) -> Segment {
        let Some((own, _)) = self.segment_at(segment.authored).filter(|(_, number)| self.fits_at(*number)) else {
            return Segment { source: NONE, name: NONE, ..*segment };
        };
        // A name that the later tool replaced is the author's if this script has it from there, too: the authored text
        // states.
        let is_token = own.generated == segment.authored;
        let name = match own.name {
            NONE if is_token || self.content(own.source).is_some() => segment.name,
            name if name != NONE && is_token => first_name.saturating_add(name),
            _ => NONE,
        };
        Segment { authored: own.authored, source: first_source.saturating_add(own.source), name, ..*segment }
    }

    /// True if nothing disproves that the map belongs to the script.
    pub fn fits(&self) -> bool {
        self.fit.is_whole()
    }

    /// The same, used although it may not fit: the user named it.
    pub fn given(self) -> Self {
        Self { is_given: true, ..self }
    }

    /// What the map states about these functions, as the engine names them. `None` if the script is not the one that
    /// ran: of its functions, hardly any stands elsewhere.
    pub fn functions<'n>(&self, functions: impl Iterator<Item = (&'n str, Place)>) -> Option<Vec<FunctionAnswer<'_>>> {
        let (mut here, mut elsewhere, mut answers) = (0usize, 0usize, Vec::new());
        for (name, place) in functions {
            if is_outermost(name, place) {
                answers.push(Ok(None));
                continue;
            }
            let found = self.function_text(name, place);
            match &found {
                Some(found) => here += usize::from(!found.name.is_empty()),
                None => elsewhere += 1,
            }
            answers.push(found.ok_or(Contradiction).and_then(|found| self.answer(name, place, &found)));
        }
        (self.is_given || elsewhere * 10 <= here).then_some(answers)
    }

    /// Where code at a place was written. Line and column count from 1.
    pub fn place(&self, line: u32, column: u32) -> Option<AuthoredPlace<'_>> {
        let place = Place::from_one(line, column)?;
        let (segment, number) = self.segment_at(place)?;
        self.text.byte(place).filter(|_| self.fits_at(number))?;
        self.authored(segment)
    }

    /// Where the function was written that starts at a place (from 1), and how it was called, if the script calls it
    /// `name`.
    pub fn function(&self, name: &str, line: u32, column: u32) -> FunctionAnswer<'_> {
        let place = Place::from_one(line, column).ok_or(Contradiction)?;
        if is_outermost(name, place) {
            return Ok(None);
        }
        self.answer(name, place, &self.function_text(name, place).ok_or(Contradiction)?)
    }

    fn answer(&self, name: &str, place: Place, found: &FunctionText) -> FunctionAnswer<'_> {
        let segment = self.segment_at(place).filter(|(segment, _)| self.is_within(segment, found.begin));
        let authored = segment.and_then(|(segment, number)| Some((segment, number, self.authored(segment)?)));
        let Some((segment, number, authored)) = authored else { return Ok(None) };
        if !self.fits_at(number) {
            return Err(Contradiction);
        }
        let own = match self.scoped_name(found, place, segment) {
            None => match self.name(found, segment) {
                Err(Contradiction) if self.is_given => None,
                name => name?,
            },
            scoped => scoped,
        };
        Ok(Some((authored, own.filter(|own| own != name))))
    }

    /// The text of an authored file, where the map contains it; `None` if the map names no such file.
    pub fn source_text(&self, file: &str) -> Option<Option<&str>> {
        let source = self.files.iter().position(|name| name == file)?;
        Some(self.content(source as u32).map(Text::as_str))
    }

    fn function_text(&self, name: &str, place: Place) -> Option<FunctionText> {
        let at = self.text.byte(place)?;
        let (text, within) = around(self.text.as_str(), at, FAR, AFTER);
        Some(FunctionText::find(text, within, name, &self.effort)?.behind(at - within))
    }

    fn is_within(&self, segment: &Segment, begin: usize) -> bool {
        self.text.byte(segment.generated).is_some_and(|byte| byte >= begin)
    }

    fn authored(&self, segment: &Segment) -> Option<AuthoredPlace<'_>> {
        let file = self.files.get(segment.source as usize).filter(|file| !file.is_empty())?;
        let Place { line, column } = segment.authored;
        let is_third_party = self.map.sources.get(segment.source as usize).is_some_and(|source| source.is_third_party);
        Some(AuthoredPlace { file, line: line.checked_add(1)?, column: column.checked_add(1)?, is_third_party })
    }

    /// The name that the map's scopes have for a function which starts at `place`.
    fn scoped_name(&self, found: &FunctionText, place: Place, segment: &Segment) -> Option<String> {
        let scope = self.map.scopes.function(self.text.place(found.begin), place)?;
        let is_there = scope.source == segment.source
            && scope.start.line <= segment.authored.line
            && segment.authored <= scope.end;
        // V8 calls a constructor by its class.
        let name = self.map.name(scope.name).filter(|name| is_identifier(name) && *name != "constructor")?;
        is_there.then(|| format!("{}{name}", found.prefix))
    }

    /// The authored name of a function whose place is in `segment`; `None` if its words don't state.
    fn name(&self, found: &FunctionText, segment: &Segment) -> Result<Option<String>, Contradiction> {
        // What was bound to a name may have had one of its own, which tools leave out.
        if found.is_bound
            && let Some(own) = self.authored_text(segment).and_then(|(text, at)| own_name(&text[at..]))
        {
            return Ok(Some(own.to_owned()));
        }
        let mut words = Vec::with_capacity(found.name.len());
        for (at, word) in found.name.iter().enumerate() {
            let role = if at + 1 < found.name.len() { Role::Object } else { Role::Whole };
            let Some(word) = self.word(word, role, found.is_key)? else { return Ok(None) };
            if found.is_bound && at + 1 == found.name.len() && !word.binds(found, segment) {
                return Ok(None);
            }
            if let Some(function) = word.function.filter(|_| found.is_bound) {
                return Ok(Some(function));
            }
            words.push(word.said);
        }
        Ok((!words.is_empty()).then(|| format!("{}{}", found.prefix, words.join("."))))
    }

    /// What the authored file has instead of a word; `None` if nothing states it.
    /// `is_key`: it is the key of a property or method, which nothing renames unless it says so.
    fn word(&self, word: &Range<usize>, role: Role, is_key: bool) -> Result<Option<AuthoredWord<'_>>, Contradiction> {
        let own = &self.text.as_str()[word.clone()];
        let role = if self.text.as_str()[..word.start].ends_with('.') { Role::Property } else { role };
        let role = if is_key && role == Role::Whole { Role::Key } else { role };
        // Some tools map a private name behind its `#`.
        let places = [Some(word.start), own.starts_with('#').then_some(word.start + 1)];
        let segments = places.into_iter().flatten().flat_map(|at| self.map.exactly_at(self.text.place(at)));
        // Of several segments, one that has a name states most.
        let Some(segment) = segments.min_by_key(|segment| segment.name == NONE) else { return Ok(None) };
        let called = self.map.name(segment.name);
        let called = called.filter(|called| is_identifier(called)).map(|called| match own.starts_with('#') {
            true if !called.starts_with('#') => Cow::Owned(format!("#{called}")),
            _ => Cow::Borrowed(called),
        });
        let Some((text, at)) = self.authored_text(segment) else {
            // Tools name properties by the objects that they are of.
            let is_known =
                !matches!(role, Role::Property | Role::Key) || called.as_deref().is_none_or(|called| called == own);
            let said = called.unwrap_or(Cow::Borrowed(own));
            return Ok(is_known.then_some(AuthoredWord { said, segment, function: None, is_argument: false }));
        };
        if is_computed_key(text, at) {
            // Its value is the name, which the engine has, unless a tool has renamed it and says so.
            let value = called.filter(|called| Some(called.as_ref()) == string_key(text, at));
            return Ok(value.map(|said| AuthoredWord { said, segment, function: None, is_argument: false }));
        }
        let declared = Declared::find(text, at, called.as_deref().unwrap_or(own), role);
        let declared = declared.or_else(|| Declared::find(text, at, own, role).filter(|_| role == Role::Property));
        match declared {
            Some(declared) => {
                let (said, function) = (Cow::Borrowed(declared.word), declared.function().map(str::to_owned));
                Ok(Some(AuthoredWord { said, segment, function, is_argument: declared.is_argument() }))
            }
            None if role == Role::Property => Ok(None),
            // Tools that rename private names don't always say so: the map leads from one to the other.
            None if called.is_none() && own.starts_with('#') && first_word(&text[at..]).starts_with('#') => {
                let said = Cow::Borrowed(first_word(&text[at..]));
                Ok(Some(AuthoredWord { said, segment, function: None, is_argument: false }))
            }
            // A word that a tool invented, or renamed without saying so, proves nothing; one that stands elsewhere does.
            None if called.is_none() && own.len() < 2 => Ok(None),
            None if !is_near(text, at, called.as_deref().unwrap_or(own).as_bytes()) => Ok(None),
            None => Err(Contradiction),
        }
    }

    /// The authored text about where a segment leads, and the place in it; `None` without the text.
    fn authored_text(&self, segment: &Segment) -> Option<(&str, usize)> {
        let content = self.content(segment.source)?;
        let at = content.byte(segment.authored).unwrap_or(content.as_str().len());
        Some(around(content.as_str(), at, BEFORE, AFTER))
    }

    fn content(&self, source: u32) -> Option<&Text> {
        self.contents.get(source as usize)?.as_ref()?.text()
    }

    /// The segment that a place of the script is in, and its number, if its code belongs to a file.
    fn segment_at(&self, place: Place) -> Option<(&Segment, usize)> {
        let number = self.map.number_at(place)?;
        let segment = self.map.segments().get(number).filter(|segment| segment.source != NONE)?;
        Some((segment, number))
    }

    fn fits_at(&self, number: usize) -> bool {
        self.is_given || self.fit.at(&self.map, number, |segment| self.check(segment))
    }

    /// False if a segment cannot be right: it begins behind the end of a line or in the middle of a word, leads to a place
    /// that the authored text doesn't have, or to a line without its name, which stands elsewhere in the text. True if the
    /// authored text has the name, or the same word, there. `None` if nothing proves anything: bundlers name what they
    /// invent, and map it to the start of a file.
    fn check(&self, segment: &Segment) -> Option<bool> {
        let text = self.text.as_str();
        let Some(byte) = self.text.byte(segment.generated) else { return Some(false) };
        if segment.source == NONE {
            return None;
        }
        let own = first_word(behind(text, byte, AFTER));
        if !own.is_empty() && !begins_word(text, byte) {
            return Some(false);
        }
        let called = self.map.name_bytes(segment.name);
        let Some(content) = self.content(segment.source) else {
            return called.filter(|_| !own.is_empty()).map(|_| true);
        };
        let Some(at) = content.byte(segment.authored) else { return Some(false) };
        match called {
            Some(called) if is_on_line(content.as_str(), at, called) => Some(true),
            Some(called) => {
                let is_elsewhere = at > 0 && is_near(content.as_str(), at, called);
                is_elsewhere.then_some(false)
            }
            // Words of the language come and go.
            None => (own.len() > 1 && is_on_line(content.as_str(), at, own.as_bytes())).then_some(true),
        }
    }
}

/// True if a text has a word around a place.
fn is_near(text: &str, at: usize, word: &[u8]) -> bool {
    let (near, _) = around(text, at, FAR, FAR);
    let is_whole = |found: usize| {
        near.is_char_boundary(found) && begins_word(near, found) && first_word(&near[found..]).as_bytes() == word
    };
    memchr::memmem::find_iter(near.as_bytes(), word).any(is_whole)
}

/// True if a word is in what follows a place on its line; in most cases, right there.
fn is_on_line(text: &str, at: usize, word: &[u8]) -> bool {
    let rest = behind(text, at, AFTER).as_bytes();
    let line = || &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    rest.starts_with(word) || memchr::memmem::find(line(), word).is_some()
}

/// A word of an authored name.
struct AuthoredWord<'a> {
    said: Cow<'a, str>,
    /// Where it stands.
    segment: &'a Segment,
    /// The function that is bound to it there, if it has a name of its own.
    function: Option<String>,
    /// True if it is one of several words in parentheses.
    is_argument: bool,
}

impl AuthoredWord<'_> {
    /// True if a function that was written at `function` was bound to this word by its author. Tools that put a
    /// function's body in the place of a call bind its parameters to the arguments: these were written elsewhere.
    fn binds(&self, found: &FunctionText, function: &Segment) -> bool {
        let (word, function_line) = (self.segment, function.authored.line);
        // The name of a class may stand far before its constructor.
        let is_class = found.name.last().is_some_and(|name| name.end < found.begin);
        let lines = function_line.checked_sub(word.authored.line);
        word.source == function.source && !self.is_argument && lines.is_some_and(|lines| is_class || lines < 2)
    }
}

/// True if it is the code outside of all functions, or the function that an engine wraps around it.
fn is_outermost(name: &str, place: Place) -> bool {
    name.is_empty() && place == Place::default()
}
