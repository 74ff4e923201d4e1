//! Names as text of a page.

use crate::model::printable::readable;

/// A name in which nothing is markup, between tags and in an attribute, or does anything else.
pub(super) fn escaped(name: &[u8]) -> String {
    let readable = readable(name);
    let mut text = String::with_capacity(readable.len());
    for c in readable.chars() {
        match c {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let name = "</script><img src=x onerror='alert(\"1\")'>\u{202e}\x1b[2J&";
        let text = "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(&quot;1&quot;)&#39;&gt;\\u{202e}\\x1b[2J&amp;";
        assert_eq!(escaped(name.as_bytes()), text);
    }
}
