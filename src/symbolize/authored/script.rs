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

use super::declared::{DeclaredWord, Role, is_computed_key, leads_to_value, own_name, string_key};
use super::fit::Fit;
use super::function::{FunctionText, begins_word};
use super::text::Text;
use super::words::{first_word, is_identifier, text_after, text_around};
use crate::model::script_map::{JsonString, NONE, Place, ScriptMap, Segment};
use crate::model::script_scopes::ScriptScopes;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// How many bytes of a script may be read for all lookups together to find the classes of its constructors.
const MAX_EFFORT: usize = 1 << 28;

/// How many bytes before a function are read in the script. The class of a constructor is only found if it starts
/// within this distance.
const BEFORE_FUNCTION: usize = 1 << 16;

/// How many bytes before a position are read in an authored file. This is more than the longest name, which may end at
/// the position.
const BEFORE: usize = 1 << 8;
/// How many bytes after a position are read in a script or an authored file.
const AFTER: usize = 1 << 11;

/// A script and its source map.
#[derive(Debug)]
pub struct AuthoredScript {
    text: Text,
    map: ScriptMap,
    /// The names of the authored files, in the order of the source map.
    files: Vec<String>,
    /// The indices of the authored files, sorted by file name, for finding a file by its name.
    by_name: OnceLock<Vec<u32>>,
    /// The texts of the authored files. `None` for those whose text the source map doesn't contain.
    contents: Vec<Option<Content>>,
    /// The results of checking whether the source map belongs to the script.
    fit: Fit,
    /// True if the user chose this source map for the script. It is then used even where it seems to be of another
    /// build.
    is_given: bool,
    /// How many bytes may still be read to find classes; see [`MAX_EFFORT`].
    effort: AtomicUsize,
}

/// The text of an authored file, decoded when first needed.
#[derive(Debug)]
struct Content {
    json: JsonString,
    /// The decoded text; `None` if it can't be decoded.
    text: OnceLock<Option<Text>>,
}

impl Content {
    fn new(json: JsonString) -> Self {
        Self { json, text: OnceLock::new() }
    }

    /// The decoded text; `None` if it can't be decoded.
    fn text(&self) -> Option<&Text> {
        self.text.get_or_init(|| Text::from_json(&self.json)).as_ref()
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

/// The authored position of a function, and its authored name if that differs from its name in the script. `Ok(None)`
/// if the source map doesn't cover the function.
pub type FunctionAnswer<'a> = Result<Option<(AuthoredPlace<'a>, Option<String>)>, Contradiction>;

/// Script, source map and engine contradict each other, so the source map isn't used for this function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

impl AuthoredScript {
    /// Creates the script from its text and its source map, and checks a sample of the map. `files` are the names of
    /// the authored files, in the order of the map.
    pub fn new(text: String, mut map: ScriptMap, files: Vec<String>) -> Self {
        let text = Text::new(text);
        let contents = map.sources.iter_mut().map(|source| source.content.take().map(Content::new)).collect();
        let mut script = Self {
            text,
            map,
            files,
            by_name: OnceLock::new(),
            contents,
            fit: Fit::default(),
            is_given: false,
            effort: AtomicUsize::new(MAX_EFFORT),
        };
        // `check` reads the text and the map of the finished script, so this comes last.
        script.fit = Fit::new(&script.map, |segment| script.check(segment));
        script
    }

    /// Adds the source maps of authored files that are themselves generated, for example by a compiler before the
    /// bundler. `scripts` gives the index of each such file, and the file as a script. Positions in the file are
    /// replaced by positions in the files from which it was generated.
    pub fn compose(mut self, scripts: Vec<(u32, Self)>) -> Self {
        /// A generated script among the authored files, and the indices that its first file and its first name will get
        /// in the composed script.
        struct Numbered<'s> {
            script: &'s AuthoredScript,
            first_file: u32,
            first_name: u32,
        }
        // `by_file` leads from the index of a generated file to its script. It is a hash map, because there may be a
        // script for every authored file, and each segment looks for one. `first_file` and `first_name` are the indices
        // that the first file and the first name of the next script will get: the files and names of all scripts are
        // appended below.
        let (mut first_file, mut first_name) = (self.files.len() as u32, self.map.name_count() as u32);
        let mut by_file: FxHashMap<u32, Numbered<'_>> = FxHashMap::default();
        for (file, script) in &scripts {
            by_file.entry(*file).or_insert(Numbered { script, first_file, first_name });
            first_file = first_file.saturating_add(script.files.len() as u32);
            first_name = first_name.saturating_add(script.map.name_count() as u32);
        }
        let mut segments = self.map.segments().to_vec();
        for segment in &mut segments {
            if let Some(Numbered { script, first_file, first_name }) = by_file.get(&segment.source) {
                *segment = script.translate_segment(segment, *first_file, *first_name);
            }
        }
        for (_, script) in scripts {
            self.files.extend(script.files);
            self.contents.extend(script.contents);
            self.map.push_names_of(&script.map);
            self.map.sources.extend(script.map.sources);
            // The source map's scopes describe functions in the generated files, but segments now lead to the files
            // from which those were generated. So the scopes no longer match.
            self.map.scopes = ScriptScopes::default();
        }
        self.map.set_segments(segments);
        self.fit = Fit::new(&self.map, |segment| self.check(segment));
        self
    }

    /// Translates a segment of a script that a later tool generated from this script. Instead of this script, the
    /// result leads to the authored file from which this script was generated. `first_file` and `first_name` are the
    /// indices that this script's first file and first name will get in the later script.
    fn translate_segment(&self, later: &Segment, first_file: u32, first_name: u32) -> Segment {
        // `own` is the segment of this script's own source map at the position to which the later segment leads.
        let Some((own, _)) = self.segment_at(later.authored).filter(|(_, index)| self.fits_at(*index)) else {
            // The source map doesn't tell where the code comes from, so the code belongs to no authored file.
            return Segment { source: NONE, name: NONE, ..*later };
        };
        // The later segment's name is a word of this script, which the later tool replaced. The author may have written
        // yet another word, which is the name of `own` if `own` starts at the word.
        let starts_at_word = own.generated == later.authored;
        let name = if own.name != NONE {
            if starts_at_word { first_name.saturating_add(own.name) } else { NONE }
        } else if starts_at_word || self.content(own.source).is_some() {
            // A segment without a name means that the author wrote the word as it is in this script. If `own` starts
            // before the word, that is less certain, but the authored text can confirm the word later.
            later.name
        } else {
            NONE
        };
        Segment { authored: own.authored, source: first_file.saturating_add(own.source), name, ..*later }
    }

    /// True unless a sample of the source map's segments shows that it belongs to another script.
    pub fn fits(&self) -> bool {
        self.fit.fits_as_whole()
    }

    /// Marks the source map as chosen by the user. It is then used even where it seems to be of another build.
    pub fn given(self) -> Self {
        Self { is_given: true, ..self }
    }

    /// The authored positions and names of functions. `functions` are their names and positions in the script, as the
    /// engine reports them. The answers are in the same order, like those of [`Self::function`]. `None` if many of the
    /// functions aren't in the text at their positions, because then another version of the script ran.
    pub fn functions<'n>(&self, functions: impl Iterator<Item = (&'n str, Place)>) -> Option<Vec<FunctionAnswer<'_>>> {
        // `present` counts the functions that the text has at the engine's position and under the engine's name,
        // `missing` those that it doesn't have there. A function whose name the text doesn't tell counts for neither.
        let (mut present, mut missing) = (0usize, 0usize);
        let mut answers = Vec::new();
        for (name, place) in functions {
            // The code outside of all functions keeps its name.
            if is_outermost(name, place) {
                answers.push(Ok(None));
                continue;
            }
            let Some(text) = self.function_text(name, place) else {
                missing += 1;
                answers.push(Err(Contradiction));
                continue;
            };
            present += usize::from(!text.name.is_empty());
            answers.push(self.answer(name, place, &text));
        }
        // At most one function in ten may be missing from the script, unless the user chose the source map.
        if self.is_given || missing * 10 <= present { Some(answers) } else { None }
    }

    /// The authored position of the code at this line and column (both from 1) of the script; `None` if it is unknown.
    pub fn place(&self, line: u32, column: u32) -> Option<AuthoredPlace<'_>> {
        let place = Place::from_one(line, column)?;
        let (segment, index) = self.segment_at(place)?;
        // The position must exist in the script, which may be shorter than the one that ran.
        self.text.byte_offset(place)?;
        if self.fits_at(index) { self.authored_place(segment) } else { None }
    }

    /// The authored position and name of the function that starts at this line and column (both from 1) of the script.
    /// `name` is its name in the script. [`Contradiction`] if there is no such function in the text, or if the source
    /// map doesn't fit there.
    pub fn function(&self, name: &str, line: u32, column: u32) -> FunctionAnswer<'_> {
        let place = Place::from_one(line, column).ok_or(Contradiction)?;
        if is_outermost(name, place) {
            return Ok(None);
        }
        self.answer(name, place, &self.function_text(name, place).ok_or(Contradiction)?)
    }

    /// The authored position and name of the function that the engine calls `name` and reports at `place`.
    /// `function_text` is what the script's text says about it. `Ok(None)` if the source map doesn't cover the
    /// function, [`Contradiction`] if the map doesn't fit there.
    fn answer(&self, name: &str, place: Place, function_text: &FunctionText) -> FunctionAnswer<'_> {
        let Some((segment, index)) = self.segment_at(place) else { return Ok(None) };
        // If the segment starts before the function's declaration, it belongs to other code, and the function has no
        // segment of its own.
        if !self.starts_at_or_after(segment, function_text.begin) {
            return Ok(None);
        }
        let Some(authored_place) = self.authored_place(segment) else { return Ok(None) };
        if !self.fits_at(index) {
            return Err(Contradiction);
        }
        let mut authored_name = self.scoped_name(function_text, place, segment);
        if authored_name.is_none() {
            authored_name = match self.authored_name(function_text, segment) {
                Ok(authored) => authored,
                // If the user chose the source map, drop only the doubtful name: the function keeps its position in the
                // authored file.
                Err(Contradiction) if self.is_given => None,
                Err(Contradiction) => return Err(Contradiction),
            };
        }
        Ok(Some((authored_place, authored_name.filter(|authored| authored != name))))
    }

    /// The text of an authored file, which is given by its name. `Some(None)` if the source map names the file but
    /// doesn't contain its text; `None` if the source map doesn't name the file.
    pub fn source_text(&self, file: &str) -> Option<Option<&str>> {
        let by_name = self.by_name.get_or_init(|| {
            let mut indices: Vec<u32> = (0..self.files.len() as u32).collect();
            indices.sort_by_key(|&index| &self.files[index as usize]);
            indices
        });
        let first = by_name.partition_point(|&index| *self.files[index as usize] < *file);
        let index = *by_name.get(first)?;
        if self.files[index as usize] != file {
            return None;
        }
        Some(self.content(index).map(Text::as_str))
    }

    /// What the script's text says about the function `name` that starts at `place`. `None` if no such function is
    /// there.
    fn function_text(&self, name: &str, place: Place) -> Option<FunctionText> {
        let offset = self.text.byte_offset(place)?;
        let (text, offset_in_text) = text_around(self.text.as_str(), offset, BEFORE_FUNCTION, AFTER);
        Some(FunctionText::find(text, offset_in_text, name, &self.effort)?.shifted_by(offset - offset_in_text))
    }

    /// True if a segment starts at or after this byte offset in the script.
    fn starts_at_or_after(&self, segment: &Segment, byte: usize) -> bool {
        self.text.byte_offset(segment.generated).is_some_and(|start| start >= byte)
    }

    /// The authored position to which a segment leads. `None` if its file has no name.
    fn authored_place(&self, segment: &Segment) -> Option<AuthoredPlace<'_>> {
        let file = self.files.get(segment.source as usize).filter(|file| !file.is_empty())?;
        let Place { line, column } = segment.authored;
        let is_third_party = self.map.sources.get(segment.source as usize).is_some_and(|source| source.is_third_party);
        Some(AuthoredPlace { file, line: line.checked_add(1)?, column: column.checked_add(1)?, is_third_party })
    }

    /// The name that the source map's list of scopes gives to a function. `place` is the position of the function's
    /// parameters, `function_text` what the script's text says about it. `segment` leads to the authored function,
    /// which must be in the same scope. `None` if the list has no usable name.
    fn scoped_name(&self, function_text: &FunctionText, place: Place, segment: &Segment) -> Option<String> {
        let scope = self.map.scopes.function(self.text.place(function_text.begin), place)?;
        // Where the scope starts, only the line is compared: the segment may lead to a keyword or name that is on the
        // same line, but before the start of the scope.
        let contains_segment = scope.source == segment.source
            && scope.start.line <= segment.authored.line
            && segment.authored <= scope.end;
        let name = self.map.name(scope.name)?;
        // For a constructor, the scope has the name `constructor`, but V8 shows the name of the class. The name is then
        // found by `authored_name` instead.
        if !contains_segment || !is_identifier(name) || name == "constructor" {
            return None;
        }
        Some(format!("{}{name}", function_text.prefix))
    }

    /// The name that the author gave to a function. `segment` leads to the function in the authored file. The
    /// function's name in the script consists of one or more words with dots between them, such as `a` and `b` in
    /// `a.b`. Each of them is replaced by the word at the corresponding position in the authored file. `None` if it
    /// isn't certain which word this is. Also `None` if the author didn't give the function this name, but a tool did,
    /// by binding the function to a variable or property. [`Contradiction`] if the source map leads to a wrong position
    /// for one of the words.
    fn authored_name(&self, function_text: &FunctionText, segment: &Segment) -> Result<Option<String>, Contradiction> {
        // In the script, the function has no name of its own, only that of a variable or property (`is_bound`). If the
        // segment leads to a named function, such as `function item() {}`, the author gave it a name, which a tool
        // dropped. The engine would show that name if the authored file were running.
        if function_text.is_bound
            && let Some(own) = self.authored_text(segment).and_then(|(text, offset)| own_name(&text[offset..]))
        {
            return Ok(Some(own.to_owned()));
        }
        let mut words = Vec::with_capacity(function_text.name.len());
        for (index, word) in function_text.name.iter().enumerate() {
            let is_last = index + 1 == function_text.name.len();
            // If a dot is before the word, `authored_word` changes this role to `Property`.
            let role = if is_last { Role::Whole } else { Role::Object };
            let Some(word) = self.authored_word(word, role, function_text.is_key)? else { return Ok(None) };
            // In the authored file, the function isn't bound to this word: a tool made that binding. So the word isn't
            // the function's name.
            if function_text.is_bound
                && is_last
                && !(word.binds(function_text, segment) && self.is_value(&word, function_text, segment))
            {
                return Ok(None);
            }
            // The word's value is a function to which the author gave a name of its own, such as `item` in
            // `word = function item() {}`. The check above didn't find it, because the segment leads to the word, not
            // to the function.
            if let Some(function) = word.function
                && function_text.is_bound
            {
                return Ok(Some(function));
            }
            words.push(word.text);
        }
        if words.is_empty() {
            return Ok(None);
        }
        Ok(Some(format!("{}{}", function_text.prefix, words.join("."))))
    }

    /// True if the function is the value of `word` in the authored text, as in `word = (x) => x`. The word is then the
    /// function's name. False if the function is only a part of an expression after the word, such as
    /// `word = { key: (x) => x }` or `word = ((y) => (x) => x)(1)`. A minifier may simplify such an expression to the
    /// function alone, so the script doesn't show the difference. True if the authored text isn't known. `function` is
    /// the segment that leads to the function.
    fn is_value(&self, word: &AuthoredWord<'_>, function_text: &FunctionText, function: &Segment) -> bool {
        // A constructor has the name of its class, but isn't written as the value of that name.
        if function_text.is_named_by_class() {
            return true;
        }
        let Some(content) = self.content(function.source) else { return true };
        let Some(word_start) = content.byte_offset(word.segment.authored) else { return true };
        let Some(function_start) = content.byte_offset(function.authored) else { return true };
        let content = content.as_str();
        if let Some(between) = content.get(word_start..function_start) {
            return leads_to_value(between);
        }
        // Here, the word comes after the position to which the function is mapped: some tools map a function to the
        // start of its statement, such as `const word = …`. Then only keywords may be between that position and the
        // word.
        match content.get(function_start..word_start) {
            Some(keywords) => !keywords.contains(['(', '{', '=', ';']),
            None => false,
        }
    }

    /// The word that the author wrote for one word of a function's name. `word` is the byte range of the name's word in
    /// the script. `None` if no segment proves an authored word, [`Contradiction`] if the source map leads to a wrong
    /// position. `role` is the word's role, except that a word after a dot always is a property. `is_key` is true if
    /// the word is the key of a property or method.
    fn authored_word(
        &self,
        word: &Range<usize>,
        role: Role,
        is_key: bool,
    ) -> Result<Option<AuthoredWord<'_>>, Contradiction> {
        let generated = &self.text.as_str()[word.clone()];
        let is_private = generated.starts_with('#');
        let role = if self.text.as_str()[..word.start].ends_with('.') { Role::Property } else { role };
        let role = if is_key && role == Role::Whole { Role::Key } else { role };
        // For a private name such as `#x`, some tools put the mapping at the `#`, others at the `x`. Both are looked
        // at.
        let last_start = if is_private { word.start + 1 } else { word.start };
        let segments =
            (word.start..=last_start).flat_map(|start| self.map.segments_starting_at(self.text.place(start)));
        // Several segments may start at the word. One with a name is preferred.
        let Some(segment) = segments.min_by_key(|segment| segment.name == NONE) else { return Ok(None) };
        // The authored word that the tool recorded in the source map; `None` if it recorded none.
        let recorded = match self.map.name(segment.name).filter(|name| is_identifier(name)) {
            Some(name) if is_private && !name.starts_with('#') => Some(Cow::Owned(format!("#{name}"))),
            name => name.map(Cow::Borrowed),
        };
        let Some((text, offset)) = self.authored_text(segment) else {
            // Without the authored text, the source map must be believed, except in one case: for a property, tools may
            // record the name of its object. So if the recorded name differs from the property's, it proves nothing.
            if matches!(role, Role::Property | Role::Key) && recorded.as_deref().is_some_and(|name| name != generated) {
                return Ok(None);
            }
            return Ok(Some(AuthoredWord::new(recorded.unwrap_or(Cow::Borrowed(generated)), segment)));
        };
        if is_computed_key(text, offset) {
            // A key such as `'a b'` or `[x]` isn't a plain word. It proves the recorded name only if it is a string
            // with that value.
            let value = recorded.filter(|name| Some(name.as_ref()) == string_key(text, offset));
            return Ok(value.map(|value| AuthoredWord::new(value, segment)));
        }
        let expected = recorded.as_deref().unwrap_or(generated);
        let mut declared = DeclaredWord::find(text, offset, expected, role);
        // For a key or property, tools may record another word: its object, or a keyword before it. So the script's own
        // word is tried as well.
        if declared.is_none() && matches!(role, Role::Property | Role::Key) {
            declared = DeclaredWord::find(text, offset, generated, role);
        }
        if let Some(declared) = declared {
            let function = declared.function().map(str::to_owned);
            let is_argument = declared.is_argument();
            return Ok(Some(AuthoredWord { text: Cow::Borrowed(declared.word), segment, function, is_argument }));
        }
        // The text doesn't declare the word at this position. For a property, that is normal: the segment may lead to
        // its object.
        if role == Role::Property {
            return Ok(None);
        }
        if recorded.is_none() {
            // Tools don't always record the authored word for a renamed private name, but the segment leads to it.
            let authored = first_word(&text[offset..]);
            if is_private && authored.starts_with('#') {
                return Ok(Some(AuthoredWord::new(Cow::Borrowed(authored), segment)));
            }
            // A word of one letter was invented by a tool, or renamed without recording the authored name. So it proves
            // nothing, even if the letter occurs nearby.
            if generated.len() < 2 {
                return Ok(None);
            }
        }
        // If the expected word is elsewhere nearby, the source map leads to the wrong position.
        if is_near(text, offset, expected.as_bytes()) { Err(Contradiction) } else { Ok(None) }
    }

    /// The part of the authored file around the position to which a segment leads. The second value is the offset of
    /// that position within this part. `None` if the source map doesn't contain the file's text.
    fn authored_text(&self, segment: &Segment) -> Option<(&str, usize)> {
        let content = self.content(segment.source)?;
        let offset = content.byte_offset(segment.authored).unwrap_or(content.as_str().len());
        Some(text_around(content.as_str(), offset, BEFORE, AFTER))
    }

    /// The text of the authored file with this index; `None` if the source map doesn't contain it.
    fn content(&self, source: u32) -> Option<&Text> {
        self.contents.get(source as usize)?.as_ref()?.text()
    }

    /// The segment of the source map that contains a position of the script, and the segment's index. `None` if no
    /// segment does, or if the code at the position belongs to no authored file.
    fn segment_at(&self, place: Place) -> Option<(&Segment, usize)> {
        let index = self.map.segment_index_at(place)?;
        let segment = self.map.segments().get(index).filter(|segment| segment.source != NONE)?;
        Some((segment, index))
    }

    /// True if the source map fits the script around the segment (a source map's entry) with this index, or if the user
    /// chose the source map.
    fn fits_at(&self, index: usize) -> bool {
        self.is_given || self.fit.fits_near(&self.map, index, |segment| self.check(segment))
    }

    /// Checks a segment against both texts. `Some(false)` if it can't be right: it starts past the end of a line or
    /// inside a word, or the authored file has no such position. `Some(true)` if the authored line has the segment's
    /// name or, for a segment without a name, the script's word. `None` if nothing is proven. If the authored line
    /// lacks the segment's name, that proves nothing: the authored text is part of the source map, so both are of the
    /// same build. Tools map names that they invented to the start of the file (bundlers) or to the first statement
    /// (Babel).
    fn check(&self, segment: &Segment) -> Option<bool> {
        let text = self.text.as_str();
        let Some(offset) = self.text.byte_offset(segment.generated) else { return Some(false) };
        // The segment's code belongs to no authored file, so there is nothing to compare.
        if segment.source == NONE {
            return None;
        }
        let generated_word = first_word(text_after(text, offset, AFTER));
        if !generated_word.is_empty() && !begins_word(text, offset) {
            return Some(false);
        }
        let name = self.map.name_bytes(segment.name);
        let Some(content) = self.content(segment.source) else {
            // Without the authored text, a named segment counts as right if it starts at a word.
            return if name.is_some() && !generated_word.is_empty() { Some(true) } else { None };
        };
        let Some(offset) = content.byte_offset(segment.authored) else { return Some(false) };
        let content = content.as_str();
        match name {
            Some(name) if is_on_line(content, offset, name) => Some(true),
            Some(_) => None,
            // A word of one letter may be on the line by chance, so it proves nothing.
            None if generated_word.len() > 1 && is_on_line(content, offset, generated_word.as_bytes()) => Some(true),
            // Tools add and remove keywords, so a word that is missing in the authored line proves nothing.
            None => None,
        }
    }
}

/// True if the text contains `word` as a whole word near the offset `offset`.
fn is_near(text: &str, offset: usize, word: &[u8]) -> bool {
    /// How many bytes are searched before the offset, and how many after it.
    const NEAR: usize = 1 << 16;
    let (near, _) = text_around(text, offset, NEAR, NEAR);
    let is_whole_word = |start: usize| {
        near.is_char_boundary(start) && begins_word(near, start) && first_word(&near[start..]).as_bytes() == word
    };
    memchr::memmem::find_iter(near.as_bytes(), word).any(is_whole_word)
}

/// True if the text contains `word` between the offset `offset` and the end of the line.
fn is_on_line(text: &str, offset: usize, word: &[u8]) -> bool {
    let rest = text_after(text, offset, AFTER).as_bytes();
    // Usually the word is at the offset itself.
    if rest.starts_with(word) {
        return true;
    }
    let line = &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    memchr::memmem::find(line, word).is_some()
}

/// The word in the authored file that corresponds to a word of a function's name in the script. A script's name may
/// consist of several words, such as `a.b`.
struct AuthoredWord<'a> {
    text: Cow<'a, str>,
    /// The segment (entry of the source map) that leads from the script to this word in the authored file.
    segment: &'a Segment,
    /// The function's own name, if the author wrote a named function as the value of this word; otherwise `None`.
    function: Option<String>,
    /// True if a `,` or `)` follows the word in the authored file, as after an argument.
    is_argument: bool,
}

impl<'a> AuthoredWord<'a> {
    /// An authored word of which only the spelling and the segment are known.
    fn new(text: Cow<'a, str>, segment: &'a Segment) -> Self {
        Self { text, segment, function: None, is_argument: false }
    }

    /// True if the author bound the function to this word, as in `word = () => …`. False if only a tool did. Tools bind
    /// functions when they inline a call: the parameters of the called function become variables, which are bound to
    /// the arguments of the call. So the word must not be an argument. It must also be in the same file as the
    /// function, at most one line before it. `function` is the function's segment, `function_text` what the script's
    /// text says about it.
    fn binds(&self, function_text: &FunctionText, function: &Segment) -> bool {
        if self.segment.source != function.source || self.is_argument {
            return false;
        }
        match function.authored.line.checked_sub(self.segment.authored.line) {
            // The name of a class may be many lines before its constructor.
            Some(lines_between) => function_text.is_named_by_class() || lines_between < 2,
            None => false,
        }
    }
}

/// True for the code outside of all functions. Engines report it as a function of its own, or wrap a function around
/// it.
fn is_outermost(name: &str, place: Place) -> bool {
    name.is_empty() && place == Place::default()
}
