//! Checks that the flame graph of folded stacks doesn't depend on the order of their lines.

use crate::contract::options::{ReadOptions, WriteOptions};
use crate::error::Skipped;
use crate::formats::folded;
use crate::model::stacks::Keep;
use crate::render::flamegraph;
use crate::render::flamegraph::{Look, Picture};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

/// Frame names with special properties: bytes that sort before or after the separator, common beginnings, a mark for
/// the kind of code; empty names, and names that are not UTF-8.
fn name() -> impl Strategy<Value = Vec<u8>> {
    const NAMES: [&[u8]; 22] = [
        b"",
        b"a",
        b"a b",
        b"a:b",
        b"a<b",
        b"b",
        b"read_[k]",
        b"a_[k]",
        b"_[k]",
        b"f_[j]",
        b"JS:~f /a.js:1:1_[j]",
        b"JS:*f /a.js:1:1_[j]",
        b"f_[i]",
        b"f]",
        b"[unknown]",
        b"tab\tin it",
        b"\0\x01\x0b",
        b"return\rin it",
        "größe".as_bytes(),
        b"torn \xc3",
        b"\xff",
        b"\xfe",
    ];
    select(&NAMES[..]).prop_map(<[u8]>::to_vec)
}

fn names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    // With few different names, stacks have more frames in common. Names without marks give frames other colors.
    const PLAIN: [&[u8]; 4] = [b"a", b"a b", b"b", b""];
    let plain = select(&PLAIN[..]).prop_map(<[u8]>::to_vec);
    prop_oneof![vec(name(), 1..5), vec(name(), 22), vec(plain, 1..4)]
}

fn weight() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..1000u64).prop_map(|weight| weight.to_string()),
        1 => Just("12345678901".to_owned()),
        1 => Just(u64::MAX.to_string()),
        1 => select(&["", "1.5", "-3", "+7", "x", "99999999999999999999"][..]).prop_map(str::to_owned),
    ]
}

/// Folded stacks, mixed with some lines that aren't folded stacks. The text is cut into parts at line ends.
fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line =
        (vec(any::<usize>(), 1..7), weight(), select(&[" ", "  ", " \t"][..]), select(&["\n", "\n", "\r\n"][..]));
    let other = select(&["\n", "# comment\n", "no stack\n", " \r\n"][..]);
    let line = prop_oneof![15 => line.prop_map(Ok), 1 => other.prop_map(Err)];
    (names(), vec(vec(line, 0..40), 1..6)).prop_map(|(names, parts)| {
        let spelled = |line| match line {
            Ok((frames, weight, blank, end)) => {
                let frames: Vec<usize> = frames;
                let frames: Vec<&[u8]> = frames.iter().map(|at| &names[at % names.len()][..]).collect();
                [&frames.join(&b';')[..], str::as_bytes(blank), String::as_bytes(&weight), str::as_bytes(end)].concat()
            }
            Err(other) => str::as_bytes(other).to_vec(),
        };
        parts.into_iter().map(|lines| lines.into_iter().flat_map(spelled).collect()).collect()
    })
}

fn text_of(picture: &Picture) -> String {
    let pieces = picture.pieces().flat_map(|piece| picture.text(&piece));
    let bytes: Vec<u8> = picture.head().iter().copied().chain(pieces).chain(picture.tail().iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The flame graph of folded stacks, and the number of lines that were skipped. `None` if there are no stacks.
fn draw(text: &[u8], look: &Look) -> Option<(String, u64)> {
    let mut skipped = Skipped::new("line");
    let mut reader = folded::open(&ReadOptions { keep: Keep::Sums, ..ReadOptions::default() }, b"");
    reader.read(text, &mut skipped);
    let picture = flamegraph::draw(reader.profile(), &WriteOptions::default(), look).ok()?;
    Some((text_of(&picture), skipped.count()))
}

proptest! {
    #[test]
    fn the_order_of_lines_does_not_matter(
        texts in texts(),
        min_width in select(&[None, Some(0.0), Some(3.0), Some(30.0)][..]),
    ) {
        let look = Look { min_width, ..Look::default() };
        let reversed: Vec<_> = texts.iter().rev().cloned().collect();
        prop_assert_eq!(draw(&texts.concat(), &look), draw(&reversed.concat(), &look));
    }
}
