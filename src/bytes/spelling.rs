//! Finds the word that a user meant by a misspelled one.

/// True if the words have four letters or more and differ in a single letter, which may also be missing or swapped with
/// the next one.
pub(crate) fn is_misspelled(typed: &str, known: &str) -> bool {
    let (typed, known) = (typed.as_bytes(), known.as_bytes());
    if typed.len().min(known.len()) < 4 {
        return false;
    }
    let start = typed.iter().zip(known).take_while(|(one, other)| one == other).count();
    let (typed, known) = (&typed[start..], &known[start..]);
    let end = typed.iter().rev().zip(known.iter().rev()).take_while(|(one, other)| one == other).count();
    let (typed, known) = (&typed[..typed.len() - end], &known[..known.len() - end]);
    // What is left is where the words differ: two letters each if these are swapped, otherwise at most one letter.
    match (typed, known) {
        ([one, other], [same, too]) => (one, other) == (too, same),
        _ => typed.len() <= 1 && known.len() <= 1,
    }
}
