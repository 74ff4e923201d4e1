//! The tokens of Rust source files, as far as the rules of the house ask: no comments, no lifetimes.

/// A word, a text, or one character of anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, a keyword or a number.
    Word(String),
    /// The text between the quotes of a string or character, escapes as written.
    Text(String),
    /// Brackets, operators and the like, one character each.
    Mark(char),
}

impl Token {
    /// True if it is this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own == word)
    }

    /// True if it is this character.
    pub(super) fn is_mark(&self, mark: char) -> bool {
        *self == Self::Mark(mark)
    }

    /// The name or keyword that it is.
    pub(super) fn word(&self) -> Option<&str> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }
}

/// All tokens of a file.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: source, tokens: Vec::new() };
    while let Some(first) = lexer.rest.chars().next() {
        lexer.token(first);
    }
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn token(&mut self, first: char) {
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.take(self.rest.find("*/").map_or(self.rest.len(), |at| at + 2));
        } else if first.is_alphanumeric() || first == '_' {
            self.word();
        } else if first == '"' {
            self.text();
        } else if first == '\'' {
            self.quote();
        } else {
            self.take(first.len_utf8());
            if !first.is_whitespace() {
                self.tokens.push(Token::Mark(first));
            }
        }
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    fn word(&mut self) {
        let len = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let word = self.take(len);
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if matches!(word, "r" | "br" | "cr") && self.rest[hashes..].starts_with('"') {
            self.raw_text(hashes);
        } else if !(matches!(word, "b" | "c") && self.rest.starts_with(['"', '\''])) {
            self.tokens.push(Token::Word(word.to_owned()));
        }
    }

    fn raw_text(&mut self, hashes: usize) {
        self.take(hashes + 1);
        let end = format!("\"{}", "#".repeat(hashes));
        let len = self.rest.find(&end).unwrap_or(self.rest.len());
        let text = self.take(len);
        self.take(end.len().min(self.rest.len()));
        self.tokens.push(Token::Text(text.to_owned()));
    }

    /// A text in quotes, or a character in single ones.
    fn text(&mut self) {
        let quote = self.take(1);
        let mut escaped = false;
        let end = self.rest.char_indices().find(|&(_, c)| {
            let ends = !escaped && quote.starts_with(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let text = self.take(end.map_or(self.rest.len(), |(at, _)| at));
        self.take(quote.len().min(self.rest.len()));
        self.tokens.push(Token::Text(text.to_owned()));
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        let mut behind = self.rest.chars().skip(1);
        if behind.next() == Some('\\') || behind.next() == Some('\'') {
            self.text();
        } else {
            self.take(1);
        }
    }
}

/// The tokens without the items behind `#[cfg(test)]`.
pub(super) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mark = self::tokens("#[cfg(test)]");
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(item) = rest.strip_prefix(&mark[..]) {
            rest = &item[item_len(item)..];
        } else {
            kept.push(first.clone());
            rest = behind;
        }
    }
    kept
}

/// The length of an item: up to its semicolon, or to the bracket that closes its body.
pub(super) fn item_len(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        let closes = token.is_mark('}') && !tokens.get(at + 1).is_some_and(|next| next.is_mark(';'));
        if depth == 0 && (closes || token.is_mark(';')) {
            return at + 1;
        }
    }
    tokens.len()
}

#[test]
fn comments_lifetimes_and_test_items_are_not_code() {
    let source = r##"
        use a::{b, c}; // use d;
        /* use e; */
        #[cfg(test)]
        use f::{g};
        fn h<'a>(x: &'a str) -> [char; 3] { ['\'', '"', 'i'] }
        const J: &[u8] = b"/* \" */"; const K: &str = r#""l"#;
        #[cfg(test)]
        mod tests { fn m() {} }
        struct N;"##;
    let code = without_tests(&tokens(source));
    let words: Vec<_> = code.iter().filter_map(Token::word).collect();
    assert_eq!(
        words.join(" "),
        "use a b c fn h a x a str char 3 const J u8 const K str struct N",
        "lifetimes are words here, comments and tests are not"
    );
    let texts: Vec<_> = code.iter().filter(|token| matches!(token, Token::Text(_))).cloned().collect();
    assert_eq!(texts, [r"\'", "\"", "i", r#"/* \" */"#, "\"l"].map(|text| Token::Text(text.to_owned())));
}
