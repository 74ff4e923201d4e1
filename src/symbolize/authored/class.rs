//! Finds the class to which a constructor belongs, by reading the part of a script before the constructor.
//!
//! The text is tokenized from each `class` before the constructor, the nearest one first. The constructor belongs to a
//! class if it is directly in the body of that class. If it is unclear whether a `/` divides or starts a regular
//! expression, the search is given up.

use super::words::{first_word, is_keyword, is_word};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds the class to which a constructor belongs. `text` is the part of the script that may be searched, and
/// `constructor` the offset of the word `constructor` in it. Returns the offset of the class's keyword `class`; `None`
/// if the class can't be determined, or if too much would have to be read. `effort` is the number of bytes that may
/// still be read for this script, and is lowered by what is read.
pub(super) fn enclosing_class(text: &str, constructor: usize, effort: &AtomicUsize) -> Option<usize> {
    for class in memchr::memmem::rfind_iter(&text.as_bytes()[..constructor], b"class") {
        // `class` only counts as a keyword: not as a part of `subclass`, nor as a property such as `a.class`.
        if text[..class].ends_with(|letter| is_word(letter) || letter == '.') || first_word(&text[class..]) != "class" {
            continue;
        }
        let cost = constructor - class;
        // Gives up if fewer than `cost` bytes may still be read.
        effort.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost)).ok()?;
        // How many braces are open at the constructor. If that can't be determined, the search ends without a result.
        match count_open_braces(&text[class + "class".len()..constructor])? {
            1 => return Some(class),
            // `class` isn't the keyword of the constructor's class: that class ended before the constructor, the
            // constructor is nested deeper in it, or `class` was just a word in a comment or string.
            _ => continue,
        }
    }
    None
}

/// Counts the braces that are still open at the end of `text`, which starts after the keyword `class`. The result 1
/// means that the end is directly in the body of the class, 2 that it is in a method, for example. It is 0 if the body
/// has ended or hasn't begun, or if a parenthesis or square bracket is open, too. `None` if the number can't be
/// determined.
fn count_open_braces(text: &str) -> Option<usize> {
    // Open braces, brackets and parentheses. A backquote on this stack stands for the `${` of a template literal.
    let mut open: Vec<u8> = Vec::new();
    // True once the body of the class has begun: at the first `{` that isn't within other brackets.
    let mut in_body = false;
    let bytes = text.as_bytes();
    let mut offset = 0;
    // True after an operand, where a `/` divides. Elsewhere a `/` starts a regular expression.
    let mut divides = false;
    while offset < bytes.len() {
        match bytes[offset] {
            quote @ (b'"' | b'\'') => {
                offset = string_end(bytes, offset + 1, quote)?;
                divides = true;
                continue;
            }
            b'`' => {
                offset = template_end(bytes, offset + 1, &mut open)?;
                divides = true;
                continue;
            }
            b'/' if bytes.get(offset + 1) == Some(&b'/') => {
                offset += memchr::memchr2(b'\n', b'\r', &bytes[offset..])?;
                continue;
            }
            b'/' if bytes.get(offset + 1) == Some(&b'*') => {
                // The 4 bytes are those of `/*` and `*/`.
                offset += 4 + memchr::memmem::find(bytes.get(offset + 2..)?, b"*/")?;
                continue;
            }
            b'/' if !divides => {
                offset = expression_end(bytes, offset + 1)?;
                divides = true;
                continue;
            }
            // After `)` or `}`, a `/` may start a regular expression or be a division. That can't be decided here.
            b'/' if matches!(text[..offset].trim_end().as_bytes().last(), Some(b')' | b'}')) => return None,
            brace @ (b'{' | b'(' | b'[') => {
                in_body |= brace == b'{' && open.is_empty();
                open.push(brace);
                divides = false;
            }
            // The brace ends the `${…}` of a template literal, whose text goes on after it.
            b'}' if open.last() == Some(&b'`') => {
                open.pop();
                offset = template_end(bytes, offset + 1, &mut open)?;
                divides = true;
                continue;
            }
            close @ (b'}' | b')' | b']') => {
                let opened = open.pop()?;
                if !matches!((opened, close), (b'{', b'}') | (b'(', b')') | (b'[', b']')) {
                    return None;
                }
                if open.is_empty() && in_body && close == b'}' {
                    return Some(0);
                }
                divides = true;
            }
            byte if byte.is_ascii_whitespace() => {}
            byte if byte >= 0x80 || is_word(char::from(byte)) => {
                let word = first_word(&text[offset..]);
                if word.is_empty() {
                    return None;
                }
                offset += word.len();
                divides = !is_keyword(word);
                continue;
            }
            _ => divides = false,
        }
        offset += 1;
    }
    let has_only_braces = open.iter().all(|bracket| *bracket == b'{');
    Some(if in_body && has_only_braces { open.len() } else { 0 })
}

/// The offset after the string literal whose opening quote, `quote`, is just before `offset`. `None` if the literal
/// doesn't end on its line.
fn string_end(bytes: &[u8], mut offset: usize, quote: u8) -> Option<usize> {
    loop {
        match *bytes.get(offset)? {
            b'\\' => offset += 2,
            b'\n' => return None,
            byte if byte == quote => return Some(offset + 1),
            _ => offset += 1,
        }
    }
}

/// Skips the text of a template literal, from `offset` to its end or to its next `${`, whichever comes first, and
/// returns the offset after that. For `${`, pushes a backquote to `open`, as a sign that the literal's text goes on
/// after the matching `}`. `None` if the literal never ends.
fn template_end(bytes: &[u8], mut offset: usize, open: &mut Vec<u8>) -> Option<usize> {
    loop {
        match *bytes.get(offset)? {
            b'\\' => offset += 2,
            b'`' => return Some(offset + 1),
            b'$' if bytes.get(offset + 1) == Some(&b'{') => {
                open.push(b'`');
                return Some(offset + 2);
            }
            _ => offset += 1,
        }
    }
}

/// The offset after the regular expression whose opening slash is just before `offset`. `None` if the expression
/// doesn't end on its line.
fn expression_end(bytes: &[u8], mut offset: usize) -> Option<usize> {
    // True between `[` and `]`, where a slash is an ordinary character.
    let mut in_class = false;
    loop {
        match *bytes.get(offset)? {
            b'\\' => offset += 2,
            b'\n' => return None,
            b'/' if !in_class => return Some(offset + 1),
            byte => {
                in_class = byte == b'[' || (in_class && byte != b']');
                offset += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Option<&str> {
        let constructor = text.find("constructor").unwrap();
        enclosing_class(text, constructor, &AtomicUsize::new(1 << 20)).map(|class| &text[class..][..7])
    }

    #[test]
    fn a_constructor_belongs_to_the_class_whose_body_it_is_in() {
        assert_eq!(class("class a{constructor(){}}"), Some("class a"));
        assert_eq!(class("class a{f(){return class b{}}constructor(){}}"), Some("class a"));
        assert_eq!(class("class a extends f({x:1}){s='}';t=`}${'}'}`;u=/[/}]}/;constructor(){}}"), Some("class a"));
        assert_eq!(
            class("class a{f(){x('class z{')}constructor(){}}"),
            None,
            "a word in a string is taken for a class"
        );
        assert_eq!(class("class a{f(x){return x/2}constructor(){}}"), Some("class a"));
        assert_eq!(class("class a{}class b{}({constructor(){}})"), None);
        assert_eq!(class("class a{f(){x={constructor(){}}}}"), None, "of an object");
        assert_eq!(class("class a{f(){(x)/y/2}constructor(){}}"), None, "may be a regular expression");
        assert_eq!(class("x.class a{constructor(){}}"), None);
        assert_eq!(enclosing_class("class a{constructor(){}}", 8, &AtomicUsize::new(3)), None, "too much effort");
    }
}
