//! The operators of the Itanium ABI by their two-letter codes.

/// Where an operator is written, relative to its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    /// `++` and `--`: before the operand if a `_` follows the operator's code, otherwise after the operand.
    BeforeOrAfter,
    Between,
    /// Never in an expression, only in names, such as `operator new`.
    Name,
}

/// The operators, sorted by code. Each has its code, its spelling, and where it is written in an expression.
const OPERATORS: &[(&str, &str, Place)] = &[
    ("aN", "&=", Place::Between),
    ("aS", "=", Place::Between),
    ("aa", "&&", Place::Between),
    ("ad", "&", Place::Before),
    ("an", "&", Place::Between),
    ("aw", "co_await ", Place::Before),
    ("cl", "()", Place::Name),
    ("cm", ",", Place::Between),
    ("co", "~", Place::Before),
    ("dV", "/=", Place::Between),
    ("da", "delete[] ", Place::Before),
    ("de", "*", Place::Before),
    ("dl", "delete ", Place::Before),
    ("ds", ".*", Place::Between),
    ("dt", ".", Place::Between),
    ("dv", "/", Place::Between),
    ("eO", "^=", Place::Between),
    ("eo", "^", Place::Between),
    ("eq", "==", Place::Between),
    ("ge", ">=", Place::Between),
    ("gt", ">", Place::Between),
    ("ix", "[]", Place::Name),
    ("lS", "<<=", Place::Between),
    ("le", "<=", Place::Between),
    ("ls", "<<", Place::Between),
    ("lt", "<", Place::Between),
    ("mI", "-=", Place::Between),
    ("mL", "*=", Place::Between),
    ("mi", "-", Place::Between),
    ("ml", "*", Place::Between),
    ("mm", "--", Place::BeforeOrAfter),
    ("na", "new[]", Place::Name),
    ("ne", "!=", Place::Between),
    ("ng", "-", Place::Before),
    ("nt", "!", Place::Before),
    ("nw", "new", Place::Name),
    ("oR", "|=", Place::Between),
    ("oo", "||", Place::Between),
    ("or", "|", Place::Between),
    ("pL", "+=", Place::Between),
    ("pl", "+", Place::Between),
    ("pm", "->*", Place::Between),
    ("pp", "++", Place::BeforeOrAfter),
    ("ps", "+", Place::Before),
    ("pt", "->", Place::Between),
    ("qu", "?", Place::Name),
    ("rM", "%=", Place::Between),
    ("rS", ">>=", Place::Between),
    ("rm", "%", Place::Between),
    ("rs", ">>", Place::Between),
    ("ss", "<=>", Place::Between),
];

/// The spelling of an operator and its position in an expression, by code. `None` if there is no such operator.
pub(super) fn find(letters: &str) -> Option<(&'static str, Place)> {
    let index = OPERATORS.binary_search_by_key(&letters, |operator| operator.0).ok()?;
    let (_, text, place) = OPERATORS[index];
    Some((text, place))
}

#[cfg(test)]
mod tests {
    use super::OPERATORS;

    #[test]
    fn operators_are_sorted() {
        assert!(OPERATORS.is_sorted_by_key(|operator| operator.0));
    }
}
