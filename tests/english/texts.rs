//! Cuts files into what people read: comments, messages, paragraphs of documents.

/// A text without line breaks, and the line of the file that it starts at.
pub(crate) struct Passage {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Comments and string literals of a file.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) comments: Vec<Passage>,
    pub(crate) strings: Vec<Passage>,
}

/// Code in backticks is not English, but a flag's dashes matter ("with `--flag`").
fn without_code(text: &str) -> String {
    let mut inside = true;
    let parts = text.split('`').map(|part| {
        inside = !inside;
        match (inside, part.starts_with("--")) {
            (false, _) => part.to_owned(),
            (true, true) => "`--x`".to_owned(),
            (true, false) => "`x`".to_owned(),
        }
    });
    parts.collect()
}

/// Collects consecutive lines into paragraphs.
#[derive(Default)]
struct Paragraphs {
    done: Vec<Passage>,
    open: Option<Passage>,
    in_code: bool,
}

impl Paragraphs {
    fn end(&mut self) {
        self.done.extend(self.open.take().map(|open| Passage { text: without_code(&open.text), ..open }));
    }

    fn push(&mut self, line: usize, text: &str) {
        let text = text.trim();
        if text.starts_with("```") {
            self.in_code = !self.in_code;
            return self.end();
        }
        if text.is_empty() || self.in_code {
            return self.end();
        }
        let item = text.strip_prefix("* ").or_else(|| text.strip_prefix("- "));
        if item.is_some() || text.starts_with('#') || text.starts_with('|') {
            self.end();
        }
        let text = item.unwrap_or_else(|| text.trim_start_matches('#')).trim();
        match &mut self.open {
            Some(open) => {
                open.text.push(' ');
                open.text.push_str(text);
            }
            None => self.open = Some(Passage { line, text: text.to_owned() }),
        }
    }

    fn finish(mut self) -> Vec<Passage> {
        self.end();
        self.done
    }
}

/// Paragraphs, items and cells of tables of a document, without its code.
pub(crate) fn document(text: &str) -> Vec<Passage> {
    let mut paragraphs = Paragraphs::default();
    for (at, line) in text.lines().enumerate() {
        if !line.trim_start().starts_with('|') {
            paragraphs.push(at + 1, line);
            continue;
        }
        for cell in line.split('|') {
            paragraphs.end();
            paragraphs.push(at + 1, cell);
        }
        paragraphs.end();
    }
    paragraphs.finish()
}

/// Comments of shell and Python, which start with `#`, and Python's documentation strings.
pub(crate) fn script(text: &str) -> Vec<Passage> {
    let mut paragraphs = Paragraphs::default();
    let mut in_string = false;
    for (at, line) in text.lines().enumerate() {
        let quotes = line.matches("\"\"\"").count();
        let line = line.trim();
        let comment = line.strip_prefix("# ").or_else(|| line.split_once("  # ").map(|(_, comment)| comment));
        match comment {
            _ if in_string || quotes > 0 => paragraphs.push(at + 1, &line.replace("\"\"\"", "")),
            Some(comment) => paragraphs.push(at + 1, comment),
            None => paragraphs.end(),
        }
        in_string ^= quotes % 2 == 1;
    }
    paragraphs.finish()
}

/// Reads the bytes of a file in a language with C's comments and quotes.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    strings: Vec<Passage>,
    comments: Paragraphs,
    /// The line after which a comment continues the one before.
    next_line: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip(&mut self, len: usize) -> &'t str {
        let skipped = &self.rest()[..len];
        self.line += skipped.matches('\n').count();
        self.at += len;
        skipped
    }

    fn comment(&mut self, line: usize, text: &str) {
        if line != self.next_line {
            self.comments.end();
        }
        for (at, text) in text.lines().enumerate() {
            self.comments.push(line + at, text.trim().trim_start_matches(['/', '!']).trim_start_matches("* "));
        }
        self.next_line = self.line + 1;
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let text = self.rest();
        let text = self.skip(text.find('\n').unwrap_or(text.len()));
        self.comment(line, text);
    }

    fn block_comment(&mut self) {
        let line = self.line;
        let text = self.rest();
        let text = self.skip(text.find("*/").map_or(text.len(), |end| end + 2));
        self.comment(line, text.trim_start_matches("/*").trim_end_matches("*/"));
        self.comments.end();
    }

    /// A literal that ends with `end`, in which a backslash may escape it.
    fn string(&mut self, end: &str, escapes: bool) {
        let line = self.line;
        let text = self.rest();
        let mut len = 0;
        while len < text.len() && !text[len..].starts_with(end) {
            let escaped = escapes && text[len..].starts_with('\\');
            len += usize::from(escaped);
            len += text[len..].chars().next().map_or(0, char::len_utf8);
        }
        let string = self.skip(len);
        self.skip(end.len().min(self.rest().len()));
        self.strings.push(Passage { line, text: spoken(string) });
    }
}

/// A literal as it is printed: joined where the source breaks it.
fn spoken(literal: &str) -> String {
    let joined: Vec<&str> = literal.split("\\\n").collect();
    let joined: String =
        joined.iter().enumerate().map(|(at, part)| if at == 0 { part } else { part.trim_start() }).collect();
    without_code(&without_values(&joined.replace("\\n", " ").replace('\n', " ")))
}

/// `{value}` and JavaScript's `${value}` without the name of the value.
fn without_values(text: &str) -> String {
    let mut depth = 0;
    let mut kept = String::new();
    for letter in text.chars() {
        depth -= usize::from(letter == '}' && depth > 0);
        if depth == 0 {
            kept.push(letter);
        }
        depth += usize::from(letter == '{');
    }
    kept
}

/// Comments and strings of Rust, JavaScript, CSS, C and Java.
pub(crate) fn code(text: &str, is_rust: bool) -> Parts {
    let mut scanner =
        Scanner { text, at: 0, line: 1, strings: Vec::new(), comments: Paragraphs::default(), next_line: 0 };
    while let Some(letter) = scanner.rest().chars().next() {
        let rest = scanner.rest();
        match letter {
            '/' if rest.starts_with("//") => scanner.line_comment(),
            '/' if rest.starts_with("/*") => scanner.block_comment(),
            '"' => {
                scanner.skip(1);
                scanner.string("\"", true);
            }
            'r' if is_rust && raw_string(text, scanner.at).is_some() => {
                let hashes = raw_string(text, scanner.at).unwrap();
                scanner.skip(hashes + 2);
                scanner.string(&format!("\"{}", "#".repeat(hashes)), false);
            }
            '\'' if is_rust => {
                let len = char_literal(rest);
                scanner.skip(len);
            }
            '\'' | '`' => {
                scanner.skip(1);
                scanner.string(&letter.to_string(), true);
            }
            '/' if !is_rust => {
                let len = regex_literal(text, scanner.at);
                scanner.skip(len);
            }
            letter => {
                scanner.skip(letter.len_utf8());
            }
        }
    }
    Parts { comments: scanner.comments.finish(), strings: scanner.strings }
}

/// The number of hashes of a raw string that starts here.
fn raw_string(text: &str, at: usize) -> Option<usize> {
    let before = text[..at].chars().next_back().filter(|before| *before != 'b');
    if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
        return None;
    }
    let rest = &text[at + 1..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The length of a character, or of the quote of a lifetime.
fn char_literal(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((at, _))) => rest[at + 1..].find('\'').map_or(1, |end| at + 1 + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The length of a regular expression of JavaScript, or of the sign of a division.
fn regex_literal(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end().chars().next_back();
    if before.is_some_and(|before| !"(,=:[!&|?{};>".contains(before)) {
        return 1;
    }
    let (mut escaped, mut in_class) = (false, false);
    for (len, letter) in text[at..].char_indices().skip(1) {
        match letter {
            '\n' => return 1,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return len + 1,
            _ => {}
        }
    }
    1
}
