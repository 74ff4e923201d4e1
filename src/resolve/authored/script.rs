//! One generated script and its source map. Translates positions to authored positions, and functions to their authored
//! names.
//!
//! Nothing is shown unless the script confirms it:
//!
//! * A name is taken only from the segment at the very token that is the function's name in the script, and only if the
//!   engine calls the function by that token. If the authored text is available, it must have the name there, too.
//! * A function's position is taken only from a segment within the function's own declaration. Bundlers wrap modules in
//!   functions that nobody wrote. Those have no segment, and the segment before them belongs to another file.
//! * Code outside of all functions belongs to all files of the script, so it keeps its name and position.
//! * Around each position, the source map must fit the script (see [`Fit`]): segments start where words start, and
//!   words that weren't renamed are equal on both sides.

use super::declared::{Declared, Role, is_computed_key, own_name, string_key};
use super::fit::Fit;
use super::function::{FunctionText, begins_word};
use super::text::Text;
use super::words::{around, behind, first_word, is_identifier};
use crate::model::script_map::{JsonString, NONE, Place, ScriptMap, Segment};
use crate::model::script_scopes::ScriptScopes;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// How many bytes may be read, per script, to find the classes of constructors.
const EFFORT: usize = 1 << 28;

/// How far before a function the script is read. A class may start that far before its constructor.
const FAR: usize = 1 << 16;

/// How far a text is read before and after a position. Longer than any name.
const BEFORE: usize = 1 << 8;
const AFTER: usize = 1 << 11;

/// A script and its source map.
#[derive(Debug)]
pub struct AuthoredScript {
    text: Text,
    map: ScriptMap,
    /// Names of the authored files, in the order of the source map.
    files: Vec<String>,
    /// The numbers of the authored files, sorted by name, for finding a file by its name.
    by_name: OnceLock<Vec<u32>>,
    /// The texts of the authored files, as far as the source map contains them.
    contents: Vec<Option<Content>>,
    fit: Fit,
    /// True if the user chose this source map for the script. It is then used even if it doesn't seem to fit.
    is_given: bool,
    effort: AtomicUsize,
}

/// The text of an authored file, decoded when first needed.
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

/// A position in an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthoredPlace<'a> {
    /// The name of the authored file.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in UTF-16 units.
    pub column: u32,
    /// True if the source map marks the file as third-party code.
    pub is_third_party: bool,
}

/// Where a function was written, and its authored name if that differs from the script's. `None` if the source map
/// doesn't cover the function.
pub type FunctionAnswer<'a> = Result<Option<(AuthoredPlace<'a>, Option<String>)>, Contradiction>;

/// Script, source map and engine contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

impl AuthoredScript {
    /// Creates the script from its text and its source map. `files` are the names of the authored files.
    pub fn new(text: String, mut map: ScriptMap, files: Vec<String>) -> Self {
        let text = Text::new(text);
        let contents = map.sources.iter_mut().map(|source| source.content.take().map(Content::new)).collect();
        let (by_name, effort) = (OnceLock::new(), AtomicUsize::new(EFFORT));
        let mut script = Self { text, map, files, by_name, contents, fit: Fit::default(), is_given: false, effort };
        script.fit = Fit::of(&script.map, |segment| script.check(segment));
        script
    }

    /// Adds the source maps of authored files that are themselves generated scripts, given by file number. Positions in
    /// such a file are replaced by positions in the files from which it was generated.
    pub fn through(mut self, scripts: Vec<(u32, Self)>) -> Self {
        // The numbers that the first file and the first name of each script will get. Every authored file may have such
        // a script.
        let (mut files, mut names) = (self.files.len() as u32, self.map.name_count() as u32);
        let mut places: FxHashMap<u32, (&Self, (u32, u32))> = FxHashMap::default();
        for (source, script) in &scripts {
            places.entry(*source).or_insert((script, (files, names)));
            files = files.saturating_add(script.files.len() as u32);
            names = names.saturating_add(script.map.name_count() as u32);
        }
        let mut segments = self.map.segments().to_vec();
        for segment in &mut segments {
            if let Some((script, first)) = places.get(&segment.source) {
                *segment = script.before(segment, *first);
            }
        }
        for (_, script) in scripts {
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

    /// Translates a segment that leads to this script into one that leads to this script's authored file. `first` has
    /// the numbers that this script's first file and first name will get.
    fn before(&self, segment: &Segment, (first_source, first_name): (u32, u32)) -> Segment {
        let Some((own, _)) = self.segment_at(segment.authored).filter(|(_, number)| self.fits_at(*number)) else {
            return Segment { source: NONE, name: NONE, ..*segment };
        };
        // The segment's name is the name in this script that the later tool replaced. It is also the author's name,
        // unless this script's own source map renames it. If no segment starts at the very token, that is unknown, and
        // the authored text must confirm the name later.
        let is_token = own.generated == segment.authored;
        let name = match own.name {
            NONE if is_token || self.content(own.source).is_some() => segment.name,
            name if name != NONE && is_token => first_name.saturating_add(name),
            _ => NONE,
        };
        Segment { authored: own.authored, source: first_source.saturating_add(own.source), name, ..*segment }
    }

    /// True unless something proves that the source map belongs to another script.
    pub fn fits(&self) -> bool {
        self.fit.is_whole()
    }

    /// Marks the source map as chosen by the user, so that it is used even if it doesn't seem to fit.
    pub fn given(self) -> Self {
        Self { is_given: true, ..self }
    }

    /// The authored positions and names of these functions, given the engine's names and positions. `None` if many
    /// functions aren't at their positions in the text, because then another version of the script ran.
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

    /// The authored position of the code at this position of the script; `None` if it is unknown. Line and column count
    /// from 1.
    pub fn place(&self, line: u32, column: u32) -> Option<AuthoredPlace<'_>> {
        let place = Place::from_one(line, column)?;
        let (segment, number) = self.segment_at(place)?;
        self.text.byte(place).filter(|_| self.fits_at(number))?;
        self.authored(segment)
    }

    /// The authored position and name of the function that starts at this position of the script. `name` is the name in
    /// the script. Line and column count from 1.
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

    /// The text of an authored file. `Some(None)` if the source map doesn't contain the text; `None` if it doesn't name
    /// the file.
    pub fn source_text(&self, file: &str) -> Option<Option<&str>> {
        let by_name = self.by_name.get_or_init(|| {
            let mut numbers: Vec<u32> = (0..self.files.len() as u32).collect();
            numbers.sort_by_key(|&number| &self.files[number as usize]);
            numbers
        });
        let first = by_name.partition_point(|&number| *self.files[number as usize] < *file);
        let source = *by_name.get(first).filter(|&&number| self.files[number as usize] == file)?;
        Some(self.content(source).map(Text::as_str))
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

    /// The name that the source map's scopes give to the function that starts at `place`.
    fn scoped_name(&self, found: &FunctionText, place: Place, segment: &Segment) -> Option<String> {
        let scope = self.map.scopes.function(self.text.place(found.begin), place)?;
        let is_there = scope.source == segment.source
            && scope.start.line <= segment.authored.line
            && segment.authored <= scope.end;
        // V8 calls a constructor by its class's name.
        let name = self.map.name(scope.name).filter(|name| is_identifier(name) && *name != "constructor")?;
        is_there.then(|| format!("{}{name}", found.prefix))
    }

    /// The authored name of the function that `segment` maps. `None` if the words of the name don't prove an authored
    /// name.
    fn name(&self, found: &FunctionText, segment: &Segment) -> Result<Option<String>, Contradiction> {
        // A function bound to a variable may have had its own name in the authored text, which tools drop.
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

    /// The authored counterpart of a word; `None` if no segment proves one. `is_key` says that the word is the key of a
    /// property or method; keys keep their names unless the source map says otherwise.
    fn word(&self, word: &Range<usize>, role: Role, is_key: bool) -> Result<Option<AuthoredWord<'_>>, Contradiction> {
        let own = &self.text.as_str()[word.clone()];
        let role = if self.text.as_str()[..word.start].ends_with('.') { Role::Property } else { role };
        let role = if is_key && role == Role::Whole { Role::Key } else { role };
        // For a private name such as `#x`, some tools put the mapping at the `#`, others at the `x`: look at both.
        let places = [Some(word.start), own.starts_with('#').then_some(word.start + 1)];
        let segments = places.into_iter().flatten().flat_map(|at| self.map.segments_starting_at(self.text.place(at)));
        // If several segments start at the word, one with a name says most.
        let Some(segment) = segments.min_by_key(|segment| segment.name == NONE) else { return Ok(None) };
        let called = self.map.name(segment.name);
        let called = called.filter(|called| is_identifier(called)).map(|called| match own.starts_with('#') {
            true if !called.starts_with('#') => Cow::Owned(format!("#{called}")),
            _ => Cow::Borrowed(called),
        });
        let Some((text, at)) = self.authored_text(segment) else {
            // For a property, tools may record the name of its object instead, so a different name proves nothing.
            let is_known =
                !matches!(role, Role::Property | Role::Key) || called.as_deref().is_none_or(|called| called == own);
            let said = called.unwrap_or(Cow::Borrowed(own));
            return Ok(is_known.then_some(AuthoredWord { said, segment, function: None, is_argument: false }));
        };
        if is_computed_key(text, at) {
            // The recorded name is the string value of the key, which the engine already shows. Only a tool that
            // renamed the key, and recorded that, would know another name.
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
            // Tools don't always record the original of a renamed private name. The segment leads from one to the other
            // all the same.
            None if called.is_none() && own.starts_with('#') && first_word(&text[at..]).starts_with('#') => {
                let said = Cow::Borrowed(first_word(&text[at..]));
                Ok(Some(AuthoredWord { said, segment, function: None, is_argument: false }))
            }
            // A word that a tool invented, or renamed without recording it, proves nothing. A word found elsewhere in
            // the text is a contradiction.
            None if called.is_none() && own.len() < 2 => Ok(None),
            None if !is_near(text, at, called.as_deref().unwrap_or(own).as_bytes()) => Ok(None),
            None => Err(Contradiction),
        }
    }

    /// Part of the authored text around the target of a segment, and the offset of the target in it. `None` if the text
    /// isn't available.
    fn authored_text(&self, segment: &Segment) -> Option<(&str, usize)> {
        let content = self.content(segment.source)?;
        let at = content.byte(segment.authored).unwrap_or(content.as_str().len());
        Some(around(content.as_str(), at, BEFORE, AFTER))
    }

    fn content(&self, source: u32) -> Option<&Text> {
        self.contents.get(source as usize)?.as_ref()?.text()
    }

    /// The segment that contains a position of the script, and the segment's number. `None` if the code at the position
    /// belongs to no authored file.
    fn segment_at(&self, place: Place) -> Option<(&Segment, usize)> {
        let number = self.map.segment_index_at(place)?;
        let segment = self.map.segments().get(number).filter(|segment| segment.source != NONE)?;
        Some((segment, number))
    }

    fn fits_at(&self, number: usize) -> bool {
        self.is_given || self.fit.at(&self.map, number, |segment| self.check(segment))
    }

    /// `Some(false)` if a segment can't be right: it starts past the end of a line or inside a word; the authored text
    /// has no such position; or the authored line lacks the segment's name, while other lines nearby have it.
    /// `Some(true)` if the authored text has the name, or the same word, there. `None` if nothing is proven: bundlers
    /// map names that they invented to the start of a file.
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
            // Keywords may be added and removed by tools, so a missing word proves nothing.
            None => (own.len() > 1 && is_on_line(content.as_str(), at, own.as_bytes())).then_some(true),
        }
    }
}

/// True if the text contains this word near an offset.
fn is_near(text: &str, at: usize, word: &[u8]) -> bool {
    let (near, _) = around(text, at, FAR, FAR);
    let is_whole = |found: usize| {
        near.is_char_boundary(found) && begins_word(near, found) && first_word(&near[found..]).as_bytes() == word
    };
    memchr::memmem::find_iter(near.as_bytes(), word).any(is_whole)
}

/// True if the rest of the line after an offset contains this word. Usually the word is the first one on the rest of
/// the line.
fn is_on_line(text: &str, at: usize, word: &[u8]) -> bool {
    let rest = behind(text, at, AFTER).as_bytes();
    let line = || &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    rest.starts_with(word) || memchr::memmem::find(line(), word).is_some()
}

/// A word of an authored name.
struct AuthoredWord<'a> {
    said: Cow<'a, str>,
    /// The segment that leads to it.
    segment: &'a Segment,
    /// The own name of the function that the author bound to this word; `None` if it has none.
    function: Option<String>,
    /// True if the word is one of several words in parentheses in the authored text.
    is_argument: bool,
}

impl AuthoredWord<'_> {
    /// True if the author bound the function written at `function` to this word. Tools that inline a call bind the
    /// called function's parameters to the arguments, which were written elsewhere.
    fn binds(&self, found: &FunctionText, function: &Segment) -> bool {
        let (word, function_line) = (self.segment, function.authored.line);
        // A class may be named far before its constructor.
        let is_class = found.name.last().is_some_and(|name| name.end < found.begin);
        let lines = function_line.checked_sub(word.authored.line);
        word.source == function.source && !self.is_argument && lines.is_some_and(|lines| is_class || lines < 2)
    }
}

/// True for the code outside of all functions. Engines treat it as a function of its own, or wrap one around it.
fn is_outermost(name: &str, place: Place) -> bool {
    name.is_empty() && place == Place::default()
}
