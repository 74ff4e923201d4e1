//! Examines an authored file at the position to which a source map leads: is a certain word declared there, and in
//! which role?
//!
//! An authored file is the source as a person wrote it. A tool (a bundler, minifier or compiler) generated the code
//! that ran from it, and may have renamed variables to keep their names unique: `Matrix` became `Matrix2`, `Matrix$1`
//! or `_Matrix`. So the word in the generated code isn't always the authored one.
//!
//! Some tools map every token, others only every statement. The word is therefore searched first at the position itself
//! and then on the rest of the line.

use super::words::{first_word, is_word};

/// A word found in an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeclaredWord<'t> {
    /// The word as the author wrote it.
    pub(super) word: &'t str,
    /// The text after the word, up to the end of the text that was searched.
    after: &'t str,
}

/// Which part of a function's name in the generated code, such as `f` or `a.b`, a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The word is the whole name of the function: `f` in `function f()`.
    Whole,
    /// The function's name is a property of an object, and the word is the object: `a` in `a.b`.
    Object,
    /// The function's name is a property of an object, and the word is the property: `b` in `a.b`.
    Property,
    /// The word is the key of a method or property in an object literal or class.
    Key,
}

impl Role {
    /// True if tools may rename words in this role to make them unique ([`is_spelling_of`]). They rename variables, but
    /// neither properties nor keys, by which other code refers to them.
    fn may_be_renamed(self) -> bool {
        matches!(self, Self::Whole | Self::Object)
    }

    /// True if a tool may have made `word` from the word `authored`, or left it as it is.
    fn is_spelling(self, word: &str, authored: &str) -> bool {
        if self.may_be_renamed() { is_spelling_of(word, authored) } else { word == authored && !word.is_empty() }
    }

    /// True if the word at offset `begin`, which has `len` bytes, can have this role, judging by the characters before
    /// and after it. For example, a word before a `.` isn't a whole name.
    fn fits(self, text: &str, begin: usize, len: usize) -> bool {
        let (before, after) = (text[..begin].trim_end(), &text[begin + len..]);
        match self {
            Self::Whole | Self::Key => !after.starts_with(['.', '[']),
            Self::Object => true,
            Self::Property => before.ends_with(['.', '\'', '"']) && !after.starts_with(['.', '[']),
        }
    }
}

/// Keywords that may come before the name in a declaration.
const KEYWORDS: &[&str] = &[
    "abstract",
    "async",
    "class",
    "const",
    "declare",
    "default",
    "enum",
    "export",
    "function",
    "get",
    "let",
    "namespace",
    "override",
    "private",
    "protected",
    "public",
    "readonly",
    "set",
    "static",
    "var",
];

impl<'t> DeclaredWord<'t> {
    /// Finds the authored word in `text` that became `word` in the generated code. Looks at `offset` first, after
    /// keywords such as `async function` that may be there, then at each occurrence on the rest of the line. A word
    /// only counts if it can have the role, and if `word` is equal to it or a unique name that a tool made from it
    /// ([`is_spelling_of`]). `None` if there is no such word.
    pub(super) fn find(text: &'t str, offset: usize, word: &str, role: Role) -> Option<Self> {
        let rest = &text[offset..];
        let first = Self::parse(text, offset + skip_declaration_keywords(rest), word, role);
        if first.is_some() {
            return first;
        }
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        // The tool may have added something to the authored word, as in `Matrix2`. The search is for the part that both
        // words contain.
        let common_part = if role.may_be_renamed() { without_additions(word) } else { word };
        if common_part.is_empty() {
            return None;
        }
        for (offset_in_line, _) in line.match_indices(common_part) {
            let begin = offset + offset_in_line;
            let begins_word = !text[..begin].ends_with(is_word);
            if begins_word && let Some(declared) = Self::parse(text, begin, word, role) {
                return Some(declared);
            }
        }
        None
    }

    /// The word at offset `begin`, if it can have the role and may have become `word`. `None` if it can't, or if it is
    /// only a keyword before the declared word.
    fn parse(text: &'t str, begin: usize, word: &str, role: Role) -> Option<Self> {
        let authored = first_word(&text[begin..]);
        let is_declared = role.is_spelling(word, authored)
            && role.fits(text, begin, authored.len())
            && !is_keyword_before_name(text, begin);
        if is_declared { Some(Self { word: authored, after: &text[begin + authored.len()..] }) } else { None }
    }

    /// True if a `,` or `)` follows the word, as after an argument or parameter.
    pub(super) fn is_argument(&self) -> bool {
        self.after.trim_start().starts_with([',', ')'])
    }

    /// The own name of the function that is assigned to this word: `item` in `word = function item() {}`. `None` if
    /// what follows isn't the assignment of a function or class with a name.
    pub(super) fn function(&self) -> Option<&'t str> {
        let value = self.after.trim_start().strip_prefix(['=', ':'])?;
        own_name(value.trim_start())
    }
}

/// The own name of the function or class at the start of `text`, such as `f` in `async function* f()`. `None` if there
/// is no function or class, or if it has no name.
pub(super) fn own_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("async").map_or(text, str::trim_start);
    let rest = rest.strip_prefix("function").or_else(|| rest.strip_prefix("class"));
    let rest = rest.filter(|rest| !rest.starts_with(is_word))?;
    let name = first_word(rest.trim_start().trim_start_matches('*').trim_start());
    (!name.is_empty() && name != "extends").then_some(name)
}

/// True if the method or property at `offset` has a computed key, or a string or number as its key. The key's spelling
/// may then differ from its value. The opening bracket or quote may be at `offset` or just before it: tools map to
/// either.
pub(super) fn is_computed_key(text: &str, offset: usize) -> bool {
    let before = &text[..offset];
    if before.trim_end_matches(' ').ends_with('[') || before.ends_with(['\'', '"', '`']) {
        return true;
    }
    let key = skip_keywords(&text[offset..]);
    key.starts_with(['[', '\'', '"', '`']) || key.starts_with(|first: char| first.is_ascii_digit())
}

/// The value of the key at `offset` if it is a string literal, such as `'a b'` or `["a"]`. `None` for any other key,
/// and for literals with escapes.
pub(super) fn string_key(text: &str, offset: usize) -> Option<&str> {
    let key = skip_keywords(&text[offset..]);
    let key = key.strip_prefix('[').map_or(key, str::trim_start);
    let quote = key.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let (value, after) = key[1..].split_once(quote)?;
    let is_whole = after.trim_start().starts_with([']', '(', ':', '=']);
    (is_whole && !value.contains('\\')).then_some(value)
}

/// What is left of `text` after the keywords of a declaration at its start, and the blanks and `*` between them.
fn skip_keywords(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '*']);
        let word = first_word(rest);
        if word.is_empty() || !KEYWORDS.contains(&word) {
            return rest;
        }
        rest = &rest[word.len()..];
    }
}

/// True if the word at `offset` is a keyword before the name of a declaration, as in `async run() {}`. Some tools
/// record the keyword as the name of the method.
fn is_keyword_before_name(text: &str, offset: usize) -> bool {
    let word = first_word(&text[offset..]);
    let after = text[offset + word.len()..].trim_start_matches([' ', '\t', '*']);
    KEYWORDS.contains(&word) && (!first_word(after).is_empty() || after.starts_with(['[', '\'', '"']))
}

/// True if a function is the value of a word. `between` is the authored text from the start of the word to the start of
/// the function, such as `word = (async `. The function is the word's value if no bracket is open at the end of this
/// text, except for parentheses directly around the function. Otherwise it is only a part of the value, as in `word = {
/// key: `.
pub(super) fn leads_to_value(between: &str) -> bool {
    let mut rest = between.trim_end();
    // Drops the keywords with which the function itself begins, such as `async function*`, from the last to the first.
    for keyword in ["function", "class", "async"] {
        let before_star = rest.trim_end_matches('*').trim_end();
        let before_keyword = before_star.strip_suffix(keyword).filter(|before| !before.ends_with(is_word));
        rest = before_keyword.unwrap_or(rest).trim_end();
    }
    let outside = rest.trim_end_matches(['(', ' ', '\t', '\n', '\r']);
    // After a word or a `)`, a parenthesis opens the arguments of a call, as in `word = make((x) => x)`. The function
    // is then an argument.
    if outside.len() < rest.len() && outside.ends_with(|last| is_word(last) || last == ')') {
        return false;
    }
    // The number of brackets that are open at the end. Negative if more are closed than opened, which happens if the
    // word itself is in brackets, as in `['word']: `.
    let mut open = 0i32;
    for letter in outside.chars() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open -= 1,
            _ => {}
        }
    }
    open <= 0
}

/// The offset of the declared word in `text`, after the keywords (`async`, `function` and so on) at the start of a
/// declaration. If no word follows a keyword, the keyword itself is the declared word; [`skip_keywords`] would skip
/// that one, too.
fn skip_declaration_keywords(text: &str) -> usize {
    let mut offset = 0;
    // A declaration has each keyword at most once.
    for _ in 0..KEYWORDS.len() {
        let word = first_word(&text[offset..]);
        let after = text[offset + word.len()..].trim_start_matches([' ', '\t', '\n', '\r', '*']);
        let is_declared = !KEYWORDS.contains(&word) || first_word(after).is_empty();
        if is_declared {
            return offset;
        }
        offset = text.len() - after.len();
    }
    offset
}

/// True if a tool may have made `word` from the authored word to get a unique name: `_Matrix`, `Matrix2` or `Matrix$1`
/// from `Matrix`.
fn is_spelling_of(word: &str, authored: &str) -> bool {
    if word == authored {
        return !word.is_empty();
    }
    // Tools that turn a private method into a function leave out the `#`.
    let authored = authored.strip_prefix('#').unwrap_or(authored);
    let Some(offset) = word.find(authored).filter(|_| !authored.is_empty()) else { return false };
    let (before, after) = (&word[..offset], &word[offset + authored.len()..]);
    let digits = after.strip_prefix('$').unwrap_or(after);
    before.bytes().all(|byte| byte == b'_') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A word without what tools may have added to make it unique: `_` before it, and a number, or `$` and a number, after
/// it.
fn without_additions(word: &str) -> &str {
    let plain = word.trim_start_matches('_').trim_end_matches(|last: char| last.is_ascii_digit());
    plain.strip_suffix('$').unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(marked: &str, word: &str, role: Role) -> Option<(String, Option<String>)> {
        let at = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let declared = DeclaredWord::find(&text, at, word, role)?;
        Some((declared.word.to_owned(), declared.function().map(str::to_owned)))
    }

    #[test]
    fn a_key_that_is_not_a_plain_word_is_computed() {
        for text in [
            "['a' + 1]() {}",
            "async *[k]() {}",
            "static ['a']() {}",
            "'a b'() {}",
            "\"a\": 1",
            "1() {}",
            "get\n[`x`]() {}",
        ] {
            assert!(is_computed_key(text, 0), "{text}");
        }
        for text in ["x = {[PLAIN](n) {}", "x = {'plain'(n) {}", "x[ `a${b}`] = f"] {
            assert!(is_computed_key(text, text.find(['P', 'p', '`']).unwrap()), "{text}");
        }
        for text in ["a() {}", "async a() {}", "*a() {}", "get", "#a() {}", ""] {
            assert!(!is_computed_key(text, 0), "{text}");
        }
        assert_eq!(found("|['dyn' + 1]() {}", "dyn1", Role::Key), None);
        assert_eq!(string_key("static ['a']() {}", 0), Some("a"));
        assert_eq!((string_key("'a' + 1", 0), string_key("a", 0), string_key("['a' + 1]", 0)), (None, None, None));
        assert_eq!(found("|x['dyn' + 1] = f", "dyn1", Role::Property), None);
        assert_eq!(found("|dyn = f", "dyn1", Role::Key), None, "keys get no numbers");
        assert_eq!(found("|dyn1() {}", "dyn1", Role::Key), Some(("dyn1".to_owned(), None)));
    }

    #[test]
    fn a_keyword_of_a_declaration_is_not_the_name_of_a_method() {
        for (text, keyword) in [
            ("|async later(n) {}", "async"),
            ("|static async later(n) {}", "static"),
            ("|get size() {}", "get"),
            ("|async *several(n) {}", "async"),
            ("|async ['later'](n) {}", "async"),
        ] {
            assert_eq!(found(text, keyword, Role::Key), None, "{text}");
        }
        for (text, key) in [("|async(n) {}", "async"), ("|get: (n) => n", "get"), ("|static = 1", "static")] {
            assert_eq!(found(text, key, Role::Key).map(|(word, _)| word), Some(key.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_function_within_an_expression_is_not_the_value_of_the_word_before_it() {
        for between in [
            "f = ",
            "f: (n: number) => string = ",
            "f: Record<string, { a: [b] }> = ",
            "f = async function* ",
            "f = (",
            "f = (async function",
            "f: ",
            "f = cond ? ",
            "f = class ",
            "",
        ] {
            assert!(leads_to_value(between), "{between}");
        }
        for between in [
            "table = { key: ",
            "made = ((n: number) => ",
            "list = [",
            "f = call(1, ",
            "f = call(",
            "f = g()(",
            "f = { g: [(",
            "f = { g: async ",
        ] {
            assert!(!leads_to_value(between), "{between}");
        }
    }

    #[test]
    fn a_word_is_found_at_its_place_or_on_its_line() {
        let plain = |word: &str| Some((word.to_owned(), None));
        assert_eq!(found("a |words = 1", "words", Role::Whole), plain("words"));
        assert_eq!(found("|export async function words()", "words", Role::Whole), plain("words"));
        assert_eq!(found("|class Matrix {", "_Matrix2", Role::Whole), plain("Matrix"));
        assert_eq!(found("|const words$1 = 1", "words$1", Role::Whole), plain("words$1"));
        assert_eq!(found("|#hidden(n) {", "hidden", Role::Whole), plain("#hidden"));
        assert_eq!(found("|#hidden(n) {", "_hidden2", Role::Whole), plain("#hidden"));
        assert_eq!(found("|#hidden(n) {", "other", Role::Whole), None);
        assert_eq!(found("|function f(obj) { return obj }", "obj", Role::Whole), plain("obj"));
        assert_eq!(found("|f(words2)\nwords", "words", Role::Whole), None, "another word, another line");
        assert_eq!(found("|lexer.act = f", "lexer", Role::Property), None, "an object is no property");
        assert_eq!(found("|lexer.act = f", "lexer", Role::Whole), None, "its property is named");
        assert_eq!(found("|lexer.act = f", "act", Role::Property), plain("act"));
        assert_eq!(found("|lexer.act = f", "lexer", Role::Object), plain("lexer"));
        assert_eq!(found("|x = function item() {}", "x", Role::Whole), Some(("x".to_owned(), Some("item".to_owned()))));
        assert_eq!(
            found("|x: async function* item() {}", "x", Role::Whole),
            Some(("x".to_owned(), Some("item".to_owned())))
        );
        assert_eq!(own_name("function (x) {}"), None);
        assert_eq!(own_name("functional(x)"), None);
    }
}
