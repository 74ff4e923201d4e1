//! Finds, in a script's text, the tokens that are the name of a function whose position the engine reports.
//!
//! The engine reports the position of the function's parameters. For an async arrow function it is the position of
//! `async`, for a class without a constructor the position of `class`. The name comes before that position, in one of
//! these forms:
//!
//! ```text
//! function i(   function*i(   i(){   get i(){   #i(){      the word before the parameters
//! i=function(   i=(a)=>   i=a=>   i=async a=>   i=class{   what it is bound to
//! i:function(   i:a=>   e.i=function(                      the property
//! class i{…constructor(   i=class{…constructor(            the class
//! ```
//!
//! A word counts only if it equals the engine's name for the function. That proves that script and position belong
//! together.

use super::class::enclosing_class;
use super::words::{first_word, is_keyword, is_word, skip_blanks_before, word_before};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

/// What a script's text says about one of its functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FunctionText {
    /// The offset where the function's declaration starts. Segments between here and the parameters belong to the
    /// function.
    pub(super) begin: usize,
    /// `get ` or `set ` if the engine's name for the function starts with that; otherwise empty. The whole name is this
    /// and the words in `name`.
    pub(super) prefix: &'static str,
    /// The offsets of the words that form the function's name, from the outermost object to the property. Empty if the
    /// text doesn't tell the name.
    pub(super) name: Vec<Range<usize>>,
    /// True if `name` isn't the function's own name but that of the variable or property to which it is bound.
    pub(super) is_bound: bool,
    /// True if `name` is a key in an object literal or class. Tools may rename variables but not keys.
    pub(super) is_key: bool,
}

impl FunctionText {
    /// True for a constructor that has the name of its class. Only then is the name before the start of the function
    /// (`begin`).
    pub(super) fn is_named_by_class(&self) -> bool {
        self.name.last().is_some_and(|name| name.end < self.begin)
    }

    /// Adds `bytes` to all offsets, which makes them offsets in a text with this many more bytes at its start.
    pub(super) fn shifted_by(mut self, bytes: usize) -> Self {
        self.begin += bytes;
        self.name.iter_mut().for_each(|word| *word = word.start + bytes..word.end + bytes);
        self
    }

    /// Examines the function at the byte offset `offset` of the script, which the engine calls `name`. `None` if there
    /// is no function, or one that certainly has another name. `effort` is the number of bytes that may still be read
    /// to find classes.
    pub(super) fn find(text: &str, offset: usize, name: &str, effort: &AtomicUsize) -> Option<Self> {
        let rest = text.get(offset..)?;
        let first = rest.chars().next()?;
        // V8 makes up some names, such as `<instance_members_initializer>`, whose position is that of the class or its
        // body. The text can't confirm such a name, so the result has none.
        if name.starts_with('<') {
            return Some(Self { begin: offset, ..Self::default() });
        }
        // Of most functions, the engine reports the position of the parameters.
        if first == '(' {
            return examine_parameters(text, offset, name, effort);
        }
        match first_word(rest) {
            "class" => Some(examine_class(text, offset, name)),
            // The word at `offset` is `async`, or the only parameter of an arrow function without parentheses.
            // A parameter may have `async` before it.
            word if !word.is_empty() && !is_keyword(word) => {
                Some(examine_bound(text, function_start(text, offset), name))
            }
            _ => None,
        }
    }
}

/// Examines the function whose parameters open with a parenthesis at `offset`. The word before the parenthesis tells
/// what kind of function it is, in the order of the cases below. `None` if that word is another name than `name`.
/// `effort` is the number of bytes that may still be read to find classes.
fn examine_parameters(text: &str, offset: usize, name: &str, effort: &AtomicUsize) -> Option<FunctionText> {
    // The engine calls an accessor `get x` or `set x`. The word before its parameters is only `x`.
    let (mut prefix, mut bare_name) = ("", name);
    for accessor in ["get ", "set "] {
        if let Some(rest) = name.strip_prefix(accessor) {
            (prefix, bare_name) = (accessor, rest);
            break;
        }
    }
    let word = word_before(text, skip_blanks_before(text, offset));
    let begin = word.start;
    match &text[word.clone()] {
        // `function` is a keyword here, unless it is the name of a method. If the engine calls the function `function`,
        // it is still a keyword if the function is bound to that name, as in `a.function = function() {}`.
        "function" if bare_name != "function" || is_bound_to(text, begin, bare_name) => {
            Some(examine_bound(text, function_start(text, begin), name))
        }
        // `async (…) => …`, an arrow function. It starts at `async`, and has the name of what it is bound to.
        "async" if bare_name != "async" => Some(examine_bound(text, begin, name)),
        // The engine calls a constructor by the name of its class. If the class isn't found, the name stays empty.
        "constructor" if bare_name != "constructor" => {
            let class = enclosing_class(text, begin, effort);
            let class = class.map(|class| examine_class(text, class, name)).unwrap_or_default();
            Some(FunctionText { begin, ..class })
        }
        // The word before the parameters equals the engine's name, so it is the function's own name.
        found if !found.is_empty() && found == bare_name && (prefix.is_empty() || follows(text, begin, prefix)) => {
            let declared = declaration_start(text, begin);
            let is_key = !is_declaration(text, begin);
            Some(FunctionText { begin: declared, prefix, name: vec![word], is_bound: false, is_key })
        }
        // A generator: a `function*` without a name, or a method such as `*["a"](){}`, whose key isn't a word.
        "" if text[..skip_blanks_before(text, offset)].ends_with('*') => {
            let star = skip_blanks_before(text, offset) - 1;
            let function = word_before(text, skip_blanks_before(text, star));
            match &text[function.clone()] {
                "function" => Some(examine_bound(text, function_start(text, function.start), name)),
                _ => Some(FunctionText { begin: star, ..FunctionText::default() }),
            }
        }
        // There is no word before the parameters, but a string or a bracket: the function is a method whose key is a
        // string or computed.
        "" if text[..skip_blanks_before(text, offset)].ends_with([']', '"', '\'']) => {
            Some(FunctionText { begin: key_start(text, skip_blanks_before(text, offset)), ..FunctionText::default() })
        }
        // An arrow function, before whose parameters there is no word. It has the name of what it is bound to.
        "" => Some(examine_bound(text, offset, name)),
        // An arrow function after a keyword, such as `return(a)=>`. It has no name.
        found if is_keyword(found) => Some(FunctionText { begin: offset, ..FunctionText::default() }),
        // A method with a number as its key. The engine spells the number differently: for the key `1e3`, the name is
        // `1000`.
        found if is_numeric_key(found, bare_name) => Some(FunctionText { begin, ..FunctionText::default() }),
        _ => None,
    }
}

/// The offset where a key starts. The key ends at offset `end`, and is a string, or computed and in brackets. If its
/// start can't be found, returns the offset of its last byte.
fn key_start(text: &str, end: usize) -> usize {
    let bytes = text.as_bytes();
    let last = end - 1;
    if bytes[last] != b']' {
        // The key is a string, which starts with the quote that ends it.
        return memchr::memrchr(bytes[last], &bytes[..last]).unwrap_or(last);
    }
    // Goes back to the `[` that belongs to the `]` at the end, past brackets inside the key.
    let mut depth = 1;
    let mut offset = last;
    while let Some(bracket) = memchr::memrchr2(b'[', b']', &bytes[..offset]) {
        offset = bracket;
        depth = if bytes[offset] == b']' { depth + 1 } else { depth - 1 };
        if depth == 0 {
            return offset;
        }
    }
    last
}

/// True if both the word in the script and the engine's name start like a number. The engine may spell a numeric key
/// differently, so they needn't be equal.
fn is_numeric_key(word: &str, name: &str) -> bool {
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    is_number(word) && is_number(name)
}

/// True if the keyword `function`, perhaps with `*`, comes before the name that starts at offset `name`.
fn is_declaration(text: &str, name: usize) -> bool {
    let end = skip_blanks_before(text, name);
    let end = if text[..end].ends_with('*') { skip_blanks_before(text, end - 1) } else { end };
    text[word_before(text, end)] == *"function"
}

/// True if the function that starts at `begin` is bound to a variable or property called `name`. A `function` before
/// its parentheses is then the keyword, not its name.
fn is_bound_to(text: &str, begin: usize, name: &str) -> bool {
    !examine_bound(text, function_start(text, begin), name).name.is_empty()
}

/// The offset where a function starts. `begin` is the offset of its keyword or parameter. If `async` comes before that,
/// the function starts at the `async`.
fn function_start(text: &str, begin: usize) -> usize {
    let word = word_before(text, skip_blanks_before(text, begin));
    if &text[word.clone()] == "async" { word.start } else { begin }
}

/// Where a named function or method starts: at the first keyword before its name. `name` is the offset of the name.
fn declaration_start(text: &str, name: usize) -> usize {
    let mut begin = name;
    loop {
        let end = skip_blanks_before(text, begin);
        let end = if text[..end].ends_with('*') { end - 1 } else { end };
        let word = word_before(text, skip_blanks_before(text, end));
        match &text[word.clone()] {
            "function" | "async" | "static" | "get" | "set" => begin = word.start,
            _ => return begin,
        }
    }
}

/// True if the word before offset `begin` is `prefix` (`get ` or `set `).
fn follows(text: &str, begin: usize, prefix: &str) -> bool {
    text[word_before(text, skip_blanks_before(text, begin))] == *prefix.trim_end()
}

/// Describes a function or class that starts at `begin` and has no name of its own. It gets the name of the variable or
/// property to which it is bound: the words before a `=` or `:`, if all of them together or the last one is the
/// engine's `name`. Otherwise the name stays empty.
fn examine_bound(text: &str, begin: usize, name: &str) -> FunctionText {
    let nameless = FunctionText { begin, is_bound: true, ..FunctionText::default() };
    let end = skip_blanks_before(text, begin);
    // `left` is the offset where the left side of the assignment or property ends, which is what the function is bound
    // to.
    let (left, has_colon) = match text[..end].chars().next_back() {
        // An assignment; not an operator such as `==` or `+=`.
        Some('=') if !text[..end - 1].ends_with(['=', '!', '<', '>', '+', '-', '*', '/', '%', '&', '|', '^', '?']) => {
            (skip_blanks_before(text, end - 1), false)
        }
        Some(':') => (skip_blanks_before(text, end - 1), true),
        _ => return nameless,
    };
    let last = word_before(text, left);
    if last.is_empty() && text[..left].ends_with([']', '"', '\'']) {
        // The key isn't a word, so it tells no name. But the function begins at the key: segments from there on belong
        // to it. Before a colon, brackets are a key only after `{` or `,`. Elsewhere they belong to an expression such
        // as `a?b["i"]:()=>…`.
        let key = key_start(text, left);
        let is_key = !has_colon || text[..skip_blanks_before(text, key)].ends_with(['{', ',']);
        return if is_key { FunctionText { begin: key, ..nameless } } else { nameless };
    }
    if last.is_empty() || name.is_empty() {
        return nameless;
    }
    // The words of the left side, such as `a`, `b` and `c` of `a.b.c`.
    let mut words = vec![last.clone()];
    while text[..words[0].start].ends_with('.') {
        let end = words[0].start - 1;
        let word = word_before(text, end);
        if word.is_empty() {
            break;
        }
        words.insert(0, word);
    }
    // Before a colon, the key of an object literal is a single word. Several words belong to an expression such as
    // `a?b.i:()=>…`.
    if has_colon && words.len() > 1 {
        return nameless;
    }
    let begin = words[0].start;
    let whole = &text[begin..last.end];
    if whole == name {
        return FunctionText { begin, prefix: "", name: words, is_bound: true, is_key: has_colon };
    }
    if text[last.clone()] == *name {
        return FunctionText { begin: last.start, prefix: "", name: vec![last], is_bound: true, is_key: has_colon };
    }
    nameless
}

/// Examines the class whose keyword starts at offset `class`, and which the engine calls `name`. A class without a name
/// of its own gets the name of the variable to which it is bound. If the class has a name other than `name`, the name
/// in the result is empty.
fn examine_class(text: &str, class: usize, name: &str) -> FunctionText {
    let rest = &text[class + "class".len()..];
    let blank = rest.len() - rest.trim_start().len();
    let class_name = first_word(&rest[blank..]);
    if class_name == name && !name.is_empty() {
        let start = class + "class".len() + blank;
        let word = start..start + class_name.len();
        return FunctionText { begin: class, name: vec![word], ..FunctionText::default() };
    }
    if class_name.is_empty() || class_name == "extends" {
        return examine_bound(text, class, name);
    }
    FunctionText { begin: class, ..FunctionText::default() }
}

/// True if a word starts at this byte offset. For a private name such as `#x`, this holds both at the `#` and at the
/// `x`.
pub(super) fn begins_word(text: &str, offset: usize) -> bool {
    text[offset..].starts_with(is_word) && !text[..offset].ends_with(|letter| is_word(letter) && letter != '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the function at the `|` in the text. Returns the text from the function's start to the `|`, and its name.
    fn found(marked: &str, name: &str) -> Option<(String, String)> {
        let at = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let effort = AtomicUsize::new(1 << 20);
        let FunctionText { begin, prefix, name, .. } = FunctionText::find(&text, at, name, &effort)?;
        let words: Vec<&str> = name.into_iter().map(|word| &text[word]).collect();
        Some((text[begin..at].to_owned(), format!("{prefix}{}", words.join("."))))
    }

    #[test]
    fn a_name_is_found_in_every_form() {
        for (text, name, begin, found_name) in [
            ("x;function i|(e){}", "i", "function i", "i"),
            ("async function*i |(e){}", "i", "async function*i ", "i"),
            ("{i|(){}}", "i", "i", "i"),
            ("{async i|(){}}", "i", "async i", "i"),
            ("class a{static async*i|(){}}", "i", "static async*i", "i"),
            ("{get i|(){}}", "get i", "get i", "get i"),
            ("class a{#i|(){}}", "#i", "#i", "#i"),
            ("var i=function|(e){}", "i", "i=function", "i"),
            ("var i=async function|(e){}", "i", "i=async function", "i"),
            ("i = function* |(e){}", "i", "i = function* ", "i"),
            ("a=1,i=|e=>e", "i", "i=", "i"),
            ("i=|(e)=>e", "i", "i=", "i"),
            ("i=|async e=>e", "i", "i=", "i"),
            ("i=|async(e)=>e", "i", "i=", "i"),
            ("{i:|e=>e}", "i", "i:", "i"),
            ("{i:function|(e){}}", "i", "i:", "i"),
            ("e.i=function|(){}", "e.i", "e.i=", "e.i"),
            ("this.i=|()=>1", "i", "i=", "i"),
            ("e.t.i=/*x*/|()=>1", "e.t.i", "e.t.i=/*x*/", "e.t.i"),
            ("i=|class{}", "i", "i=", "i"),
            ("|class i{}", "i", "", "i"),
            ("|class i extends a{}", "i", "", "i"),
            ("i=|class extends a{}", "i", "i=", "i"),
            ("x(function |(e){})", "", "function ", ""),
            ("x(|(e)=>e)", "", "", ""),
            ("x(|e=>e)", "", "", ""),
            ("return|(e)=>e", "", "", ""),
            ("class n{constructor|(e){}}", "n", "constructor", "n"),
            ("n=class extends a{f(){}constructor|(e){}}", "n", "constructor", "n"),
            ("{'a b'|(){}}", "a b", "'a b'", ""),
            ("{[x]|(){}}", "", "[x]", ""),
            ("{[x[1]+2]|(){}}", "", "[x[1]+2]", ""),
            ("x;]|(){}", "", "]", ""),
            ("{['x']:|e=>e}", "x", "['x']:", ""),
            ("{y,'x y':function|(){}}", "x y", "'x y':function", ""),
            ("class a{['x']=|e=>e}", "x", "['x']=", ""),
            ("a?b['x']:|e=>e", "", "", ""),
            ("{1e3|(){}}", "1000", "1e3", ""),
        ] {
            let begin = begin.to_owned();
            let (begin, found_name) = match text.contains("i:function") || text.ends_with("e.i=function|(){}") {
                true => (begin + "function", found_name.to_owned()),
                false => (begin, found_name.to_owned()),
            };
            assert_eq!(found(text, name), Some((begin, found_name)), "{text}");
        }
    }

    #[test]
    fn another_name_is_another_function_or_has_no_name_here() {
        for (text, name) in [("function i|(e){}", "j"), ("i|(){}", ""), ("x;|;", "i"), ("x|", "i"), ("7|(){}", "i")] {
            assert_eq!(found(text, name), None, "{text}");
        }
        for (text, name) in [
            ("j=|e=>e", "i"),
            ("i==|e=>e", "i"),
            ("i+=function|(){}", "i"),
            ("a?b.i:|e=>e", "i"),
            ("x(i,|e=>e)", "i"),
            ("class m{constructor|(e){}}", "n"),
            ("class n{f(){class m{constructor|(e){}}}}", "n"),
        ] {
            assert_eq!(found(text, name).unwrap().1, "", "{text}");
        }
    }
}
