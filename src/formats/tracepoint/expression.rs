//! Parses the arguments of a tracepoint's print format: C expressions over the fields of a sample.

use super::field::{Field, Place, type_size};
use rustc_hash::FxHashMap;

/// Limit for the depth of nested expressions. A print format with deeper ones is rejected.
const MAX_DEPTH: usize = 100;

/// Limit for the operators in an argument. A print format with more is rejected. `a + b + c` isn't nested in the text,
/// but each operator adds a level to the parsed expression.
const MAX_OPERATORS: usize = 256;

/// An argument of a print format.
#[derive(Debug, Clone)]
pub(super) enum Argument {
    Number(u64),
    Text(Vec<u8>),
    /// A field, by its index in [`TracepointFormat::all_fields`](super::format::TracepointFormat::all_fields).
    Field(usize),
    /// An element of an array: the index of the array's field, and the element's index.
    Element(usize, Box<Self>),
    /// A cast to a shorter type: the type's number of bits, and the operand. Only that many low bits of the operand are
    /// kept.
    Cast(u32, Box<Self>),
    Unary(Op, Box<Self>),
    Binary(Op, Box<Self>, Box<Self>),
    /// `condition ? then : otherwise`, in this order.
    Choice(Box<Self>, Box<Self>, Box<Self>),
    /// `__print_flags`: the names of the bits that are set in a value, with a separator between them.
    Flags {
        value: Box<Self>,
        separator: Vec<u8>,
        names: Vec<(u64, Vec<u8>)>,
    },
    /// `__print_symbolic`: the name of a value.
    Symbol {
        value: Box<Self>,
        names: Vec<(u64, Vec<u8>)>,
    },
    /// `__print_hex` or `__print_hex_str`: the first `len` bytes of an array.
    Hex {
        array: Box<Self>,
        len: Box<Self>,
        separator: &'static [u8],
    },
    /// `__print_array`: the first `count` numbers of an array, of `size` bytes each.
    Numbers {
        array: Box<Self>,
        count: Box<Self>,
        size: Box<Self>,
    },
    /// `__get_dynamic_array` or `__get_str`: the data that a field refers to, which is elsewhere in the sample. Holds
    /// the field's index.
    Data(usize),
    /// `__get_dynamic_array_len`: the length in bytes of the data that a field refers to. Holds the field's index.
    DataLen(usize),
    /// `__get_bitmask`: the bit mask to which a field refers, printed as hexadecimal words. Holds the field's index.
    Bits(usize),
    /// `__get_cpumask`: the bit mask to which a field refers, printed as the numbers of the bits that are set. Holds
    /// the field's index.
    Cpus(usize),
    /// A constant or variable of the kernel. The recording doesn't contain its value.
    Unknown,
}

/// The value of [`Argument::Unknown`] in an expression, as perf assumes it.
pub(super) const UNKNOWN: u64 = 0;

/// The operators of C, unary ones last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    /// `&&`: 1 if both operands are true (not 0), otherwise 0.
    BothTrue,
    /// `||`: 1 if an operand is true (not 0), otherwise 0.
    AnyTrue,
    /// `!`: 1 if the operand is 0, otherwise 0.
    Not,
    /// `~`: the operand with all bits inverted.
    Inverse,
    /// `-` before an operand: its negative.
    Minus,
}

/// Binary operators by precedence. Those in a later row bind tighter.
const BINARY: &[&[(&str, Op)]] = &[
    &[("||", Op::AnyTrue)],
    &[("&&", Op::BothTrue)],
    &[("|", Op::Or)],
    &[("^", Op::Xor)],
    &[("&", Op::And)],
    &[("==", Op::Eq), ("!=", Op::Ne)],
    &[("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)],
    &[("<<", Op::Shl), (">>", Op::Shr)],
    &[("+", Op::Add), ("-", Op::Sub)],
    &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Rem)],
];

impl Op {
    /// Evaluates the operator with unsigned 64-bit numbers, like libtraceevent. A unary operator is applied to `right`;
    /// `left` must then be 0, from which `-` subtracts. `None` for a division by zero.
    pub(super) fn apply(self, left: u64, right: u64) -> Option<u64> {
        Some(match self {
            Self::Mul => left.wrapping_mul(right),
            Self::Div => left.checked_div(right)?,
            Self::Rem => left.checked_rem(right)?,
            Self::Add => left.wrapping_add(right),
            Self::Sub | Self::Minus => left.wrapping_sub(right),
            Self::Shl => left.wrapping_shl(right as u32),
            Self::Shr => left.wrapping_shr(right as u32),
            Self::Lt => (left < right).into(),
            Self::Gt => (left > right).into(),
            Self::Le => (left <= right).into(),
            Self::Ge => (left >= right).into(),
            Self::Eq => (left == right).into(),
            Self::Ne => (left != right).into(),
            Self::And => left & right,
            Self::Xor => left ^ right,
            Self::Or => left | right,
            Self::BothTrue => (left != 0 && right != 0).into(),
            Self::AnyTrue => (left != 0 || right != 0).into(),
            Self::Not => (right == 0).into(),
            Self::Inverse => !right,
        })
    }
}

/// A token of C. The text of a string is without quotes and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Number(u64),
    Text(Vec<u8>),
    Sign(&'static str),
}

/// The operators and brackets that the parser knows. Longer ones come first, because the first that matches is taken.
const SIGNS: &[&str] = &[
    "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", "?", ":", "+", "-", "*",
    "/", "%", "&", "|", "^", "~", "!", "<", ">", ".",
];

/// Parses the text of a print format and its arguments.
pub(super) struct Parser<'f> {
    tokens: Vec<Token>,
    /// Index of the next token.
    position: usize,
    fields: &'f [Field],
    /// For each name, the index in `fields` of the first field that has it.
    field_indices: FxHashMap<&'f str, usize>,
    /// How deeply the current expression is nested.
    depth: usize,
    /// The number of operators in the current argument. Each operator nests the operands before it one level deeper.
    operators: usize,
}

impl<'f> Parser<'f> {
    /// Starts at the beginning of a print format. `fields` are the fields that it may refer to. `None` if the format
    /// can't be split into tokens.
    pub(super) fn new(line: &str, fields: &'f [Field]) -> Option<Self> {
        // In reverse order, so that of several fields with one name the first one stays.
        let field_indices = fields.iter().enumerate().rev().map(|(index, field)| (&field.name[..], index)).collect();
        Some(Self { tokens: tokenize(line)?, position: 0, fields, field_indices, depth: 0, operators: 0 })
    }

    /// Parses one or more string literals, which C joins. `None` if there is none.
    pub(super) fn parse_texts(&mut self) -> Option<Vec<u8>> {
        let Some(Token::Text(mut text)) = self.next() else { return None };
        while let Some(Token::Text(more)) = self.tokens.get(self.position) {
            text.extend(more);
            self.position += 1;
        }
        Some(text)
    }

    /// Parses the arguments up to the end of the print format, each after a comma. `None` if one of them isn't
    /// understood.
    pub(super) fn parse_arguments(&mut self) -> Option<Vec<Argument>> {
        let mut list = Vec::new();
        while self.position < self.tokens.len() {
            self.expect_sign(",")?;
            // The limit for the number of operators applies to each argument.
            self.operators = 0;
            list.push(self.parse_argument()?);
        }
        Some(list)
    }

    /// Takes the next token. `None` at the end.
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token
    }

    /// True if this sign is next.
    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.position), Some(Token::Sign(found)) if *found == sign)
    }

    /// Moves past a sign. `None` if something else is there.
    fn expect_sign(&mut self, sign: &str) -> Option<()> {
        let is_next = self.is_sign(sign);
        self.position += 1;
        is_next.then_some(())
    }

    /// Parses an expression, which may be `condition ? a : b`. `None` if it isn't understood. The whole print format is
    /// then given up, so `depth` needn't be right any more.
    fn parse_argument(&mut self) -> Option<Argument> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let condition = self.parse_binary(0)?;
        let argument = if self.is_sign("?") {
            self.position += 1;
            let then = self.parse_argument()?;
            self.expect_sign(":")?;
            Argument::Choice(Box::new(condition), Box::new(then), Box::new(self.parse_argument()?))
        } else {
            condition
        };
        self.depth -= 1;
        Some(argument)
    }

    /// Parses an expression whose operators are in row `level` of [`BINARY`] or in a later one. Operators in later rows
    /// bind tighter.
    fn parse_binary(&mut self, level: usize) -> Option<Argument> {
        // Beyond the last row there are no binary operators, so an operand with its signs is next.
        let Some(operators) = BINARY.get(level) else { return self.parse_unary() };
        let mut left = self.parse_binary(level + 1)?;
        while let Some((_, op)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.position += 1;
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return None;
            }
            let right = self.parse_binary(level + 1)?;
            left = Argument::Binary(*op, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    /// Parses an operand with the signs before it, such as `!` and `-`. `None` if it isn't supported.
    fn parse_unary(&mut self) -> Option<Argument> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let op =
            [("!", Op::Not), ("~", Op::Inverse), ("-", Op::Minus)].into_iter().find(|(sign, _)| self.is_sign(sign));
        let argument = match op {
            Some((_, op)) => {
                self.position += 1;
                Argument::Unary(op, Box::new(self.parse_unary()?))
            }
            None if self.is_sign("+") => {
                self.position += 1;
                self.parse_unary()?
            }
            None => self.parse_operand()?,
        };
        self.depth -= 1;
        Some(argument)
    }

    /// Parses an operand: a number, text, field or call, or an expression in parentheses. `None` if it isn't
    /// supported.
    fn parse_operand(&mut self) -> Option<Argument> {
        if let Some(Token::Text(_)) = self.tokens.get(self.position) {
            return Some(Argument::Text(self.parse_texts()?));
        }
        match self.next()? {
            Token::Number(number) => Some(Argument::Number(number)),
            Token::Sign("(") => {
                if let Some(bits) = self.parse_cast() {
                    let operand = self.parse_unary()?;
                    // Numbers have 64 bits, so a cast to as many changes nothing.
                    return Some(if bits < 64 { Argument::Cast(bits, Box::new(operand)) } else { operand });
                }
                let inner = self.parse_argument()?;
                self.expect_sign(")")?;
                self.parse_index(inner)
            }
            // `REC->field` is a field of the sample.
            Token::Word(word) if word == "REC" => {
                self.expect_sign("->")?;
                let field = Argument::Field(self.parse_field()?);
                self.parse_index(field)
            }
            Token::Word(word) if self.is_sign("(") => {
                self.position += 1;
                let call = self.parse_call(&word)?;
                self.expect_sign(")")?;
                self.parse_index(call)
            }
            // A constant of the kernel's source, whose value isn't in the format.
            Token::Word(_) => Some(Argument::Unknown),
            _ => None,
        }
    }

    /// Parses `[index]` after an operand. Returns the operand itself if no bracket follows, and `None` if the operand
    /// can't be indexed.
    fn parse_index(&mut self, operand: Argument) -> Option<Argument> {
        if !self.is_sign("[") {
            return Some(operand);
        }
        self.position += 1;
        let index = self.parse_argument()?;
        self.expect_sign("]")?;
        match operand {
            // An array in the sample is a field itself, or data elsewhere to which a field refers.
            Argument::Field(field) | Argument::Data(field) => Some(Argument::Element(field, Box::new(index))),
            _ => None,
        }
    }

    /// Tries to parse the rest of a cast after its opening parenthesis, and returns the number of bits of its type.
    /// `None`, without moving on, if the parenthesis doesn't begin a cast.
    fn parse_cast(&mut self) -> Option<u32> {
        // A cast is a type in parentheses, followed by an operand. A type consists of words and stars.
        let end = (self.position..self.tokens.len()).find(|&index| self.tokens[index] == Token::Sign(")"))?;
        let mut kind = Vec::new();
        for token in &self.tokens[self.position..end] {
            match token {
                Token::Word(word) if word != "REC" => kind.push(&word[..]),
                Token::Sign("*") if !kind.is_empty() => kind.push("*"),
                _ => return None,
            }
        }
        // If no operand follows the parentheses, they hold a constant, as in `(A) + 1`. A `-` counts as the start of an
        // operand, although `(A) - 1` is possible, too.
        let is_operand = match self.tokens.get(end + 1)? {
            Token::Word(_) | Token::Number(_) | Token::Text(_) => true,
            Token::Sign(sign) => ["(", "~", "!", "-"].contains(sign),
        };
        if kind.is_empty() || !is_operand {
            return None;
        }
        let kind = kind.join(" ");
        self.position = end + 1;
        // A `long` counts as eight bytes whatever kernel was recorded, so a cast to it cuts nothing off.
        let bytes = if kind.contains('*') { 8 } else { type_size(&kind, 8) };
        Some(8 * bytes as u32)
    }

    /// Parses a field's name and returns the field's index. `None` if there is no such field.
    fn parse_field(&mut self) -> Option<usize> {
        let Token::Word(name) = self.next()? else { return None };
        self.field_indices.get(&name[..]).copied()
    }

    /// Parses the name of a field whose data are elsewhere in the sample, and returns the field's index. `None` for
    /// other fields.
    fn parse_far_field(&mut self) -> Option<usize> {
        let field = self.parse_field()?;
        (self.fields[field].place != Place::Inline).then_some(field)
    }

    /// Parses the call of the function `name` from its arguments up to the closing parenthesis. `None` if the function
    /// isn't known, or an argument isn't understood.
    fn parse_call(&mut self, name: &str) -> Option<Argument> {
        match name {
            "__print_flags" => {
                let value = Box::new(self.parse_argument()?);
                self.expect_sign(",")?;
                let separator = self.parse_texts()?;
                Some(Argument::Flags { value, separator, names: self.parse_names()? })
            }
            "__print_symbolic" => {
                let value = Box::new(self.parse_argument()?);
                Some(Argument::Symbol { value, names: self.parse_names()? })
            }
            "__print_hex" | "__print_hex_str" => {
                let array = Box::new(self.parse_argument()?);
                self.expect_sign(",")?;
                let len = Box::new(self.parse_argument()?);
                Some(Argument::Hex { array, len, separator: if name == "__print_hex" { b" " } else { b"" } })
            }
            "__print_array" => {
                let array = Box::new(self.parse_argument()?);
                self.expect_sign(",")?;
                let count = Box::new(self.parse_argument()?);
                self.expect_sign(",")?;
                Some(Argument::Numbers { array, count, size: Box::new(self.parse_argument()?) })
            }
            // All these functions, down to `__get_rel_cpumask`, take a far field: one that only states where in the
            // sample its data are.
            "__get_str" | "__get_rel_str" | "__get_dynamic_array" | "__get_rel_dynamic_array" => {
                Some(Argument::Data(self.parse_far_field()?))
            }
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                Some(Argument::DataLen(self.parse_far_field()?))
            }
            "__get_bitmask" | "__get_rel_bitmask" => Some(Argument::Bits(self.parse_far_field()?)),
            "__get_cpumask" | "__get_rel_cpumask" => Some(Argument::Cpus(self.parse_far_field()?)),
            // The second argument only tells the compiler which value is likely.
            "__builtin_expect" => {
                let value = self.parse_argument()?;
                self.expect_sign(",")?;
                self.parse_argument()?;
                Some(value)
            }
            "sizeof" => {
                let mut kind = Vec::new();
                while let Some(Token::Word(word)) = self.tokens.get(self.position) {
                    kind.push(word.clone());
                    self.position += 1;
                }
                if kind.is_empty() {
                    return None;
                }
                // As in casts, a `long` counts as eight bytes.
                Some(Argument::Number(type_size(&kind.join(" "), 8) as u64))
            }
            _ => None,
        }
    }

    /// Parses a list of values and names, such as `, { 1, "a" }, { 2, "b" }`. Entries without a constant value or
    /// without a name are left out. `None` if the list isn't understood.
    fn parse_names(&mut self) -> Option<Vec<(u64, Vec<u8>)>> {
        let mut names = Vec::new();
        while self.is_sign(",") {
            self.position += 1;
            self.expect_sign("{")?;
            // The expression for the value is only evaluated; nothing but the resulting number is kept. Therefore, its
            // operators don't count towards the limit for the expression that contains the list.
            let outer_operators = std::mem::take(&mut self.operators);
            let value = self.parse_argument()?;
            self.operators = outer_operators;
            self.expect_sign(",")?;
            let name = match self.parse_argument()? {
                Argument::Text(name) => Some(name),
                // Some lists end with an entry that has a null pointer for its name.
                _ => None,
            };
            self.expect_sign("}")?;
            let value = match value {
                // If the value is nothing but an unknown constant, perf takes it for -1.
                Argument::Unknown => Some(u64::MAX),
                value => value.constant(),
            };
            if let Some(value) = value
                && let Some(name) = name
            {
                names.push((value, name));
            }
        }
        Some(names)
    }
}

impl Argument {
    /// The value of an expression without fields; `None` if it contains a field. Constants whose value isn't known
    /// count as [`UNKNOWN`].
    fn constant(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Unknown => Some(UNKNOWN),
            Self::Cast(bits, operand) => Some(keep_low_bits(operand.constant()?, *bits)),
            Self::Unary(op, operand) => op.apply(0, operand.constant()?),
            Self::Binary(op, left, right) => op.apply(left.constant()?, right.constant()?),
            Self::Choice(condition, then, otherwise) => {
                if condition.constant()? != 0 {
                    then.constant()
                } else {
                    otherwise.constant()
                }
            }
            _ => None,
        }
    }
}

/// Keeps only the lowest `bits` bits of a number.
pub(super) fn keep_low_bits(number: u64, bits: u32) -> u64 {
    if bits >= 64 { number } else { number & ((1 << bits) - 1) }
}

/// Splits the C expressions of a format into tokens. `None` if a byte can't start a token, or a number is too large.
fn tokenize(line: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = line.as_bytes();
    while let Some(&byte) = rest.first() {
        if byte.is_ascii_whitespace() {
            rest = &rest[1..];
        } else if byte == b'"' {
            let (text, after) = parse_literal(&rest[1..], b'"')?;
            tokens.push(Token::Text(text));
            rest = after;
        } else if byte == b'\'' {
            let (text, after) = parse_literal(&rest[1..], b'\'')?;
            // In C, a character literal is the number of that character.
            tokens.push(Token::Number((*text.first()?).into()));
            rest = after;
        } else if byte.is_ascii_alphanumeric() || byte == b'_' {
            let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            let (word, after) = rest.split_at(len);
            let word = std::str::from_utf8(word).ok()?;
            tokens.push(if byte.is_ascii_digit() {
                Token::Number(parse_number(word)?)
            } else {
                Token::Word(word.to_owned())
            });
            rest = after;
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes()))?;
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        }
    }
    Some(tokens)
}

/// Parses a string or character literal after its opening quote, and returns the rest of the text as well. `None` if
/// the closing quote is missing.
fn parse_literal(bytes: &[u8], quote: u8) -> Option<(Vec<u8>, &[u8])> {
    let mut text = Vec::new();
    let mut rest = bytes;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                text.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'0' => 0,
                    other => other,
                });
            }
            _ if byte == quote => return Some((text, rest)),
            _ => text.push(byte),
        }
    }
}

/// Parses a decimal, hexadecimal or octal number of C, such as `16`, `0x10`, `020` or `16UL`. `None` if the word isn't
/// one, or has more than 64 bits.
fn parse_number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_argument_uses_up_the_stack() {
        const DEEP: usize = 100_000;
        let around = |open: &str, close: &str| [&open.repeat(DEEP), "1", &close.repeat(DEEP)].concat();
        let lines = [
            around("1+", ""),
            around("1*2+", ""),
            around("1&&", ""),
            around("(", ")"),
            around("!", ""),
            around("(int)", ""),
            around("1?2:", ""),
            around("1?", ":2"),
            around("__builtin_expect(", ",0)"),
            format!("__print_symbolic(1, {{ {}, \"a\" }})", around("1|", "")),
        ];
        let parse = move || {
            for line in lines {
                let parsed = Parser::new(&format!(", {line}"), &[]).unwrap().parse_arguments();
                assert!(parsed.is_none(), "{}…", &line[..20]);
            }
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(parse).unwrap().join().unwrap();
    }

    /// A worker has 2 MiB, of which its callers may have used a part.
    #[test]
    fn the_deepest_arguments_need_half_a_worker_s_stack() {
        let parse = || {
            let accepted = |open: &str, close: &str| {
                let line = |times: usize| format!(", {}1{}", open.repeat(times), close.repeat(times));
                let number = (1..=MAX_DEPTH).take_while(|times| {
                    let arguments = Parser::new(&line(*times), &[]).unwrap().parse_arguments();
                    arguments.is_some_and(|arguments| arguments.iter().all(|argument| argument.constant().is_some()))
                });
                number.count()
            };
            assert!(accepted("(", ")") >= 40);
            assert!(accepted("(1+2*3||", ")") >= 40);
            assert!(accepted("!(", ")") >= 30);
            assert!(accepted("-", "") >= 90);
            assert!(accepted("1?", ":2") >= 90);
            assert!(accepted("(1?2:", ")") >= 30);
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(parse).unwrap().join().unwrap();
    }

    #[test]
    fn many_arguments_may_have_many_operators() {
        let flags: String = (0..MAX_OPERATORS).map(|at| format!(", {{ 1 << {at}, \"f\" }}")).collect();
        let sum = "1 + ".repeat(MAX_OPERATORS) + "1";
        let number_of_arguments = |line: &str| Some(Parser::new(line, &[])?.parse_arguments()?.len());
        let fitting = format!(", {sum}, {sum}, __print_flags(1, \"|\"{flags})");
        assert_eq!(number_of_arguments(&fitting), Some(3));
        assert_eq!(number_of_arguments(&format!("{fitting}, 1 + {sum}")), None);
    }
}
