//! Reads the lines of a callgrind file one by one, and decodes cost lines. This is the only parser of cost lines.

use super::positions::{Columns, CostLine, Position, PositionDecoder};
use super::statements::{Keyword, Statement, lines};
use crate::error::{Error, Result};

/// A line of a callgrind file. A call and a jump also contain the cost line that follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Line<'a> {
    /// A header: `word: value`.
    Header {
        word: &'a [u8],
        value: &'a [u8],
    },
    /// `fn=`, `cob=` or another statement whose value is a name.
    Name(Keyword, &'a [u8]),
    /// The self cost of a position: the position, then a cost for each event.
    SelfCost(CostLine<'a>),
    Call(CallLine<'a>),
    Jump(JumpLine<'a>),
    /// An empty line.
    Blank,
    /// A comment, or a line that isn't understood.
    Unknown(&'a [u8]),
}

/// `calls=count target`, and the next line: the position of the call and its inclusive cost. The `cob=`, `cfi=` and
/// `cfn=` lines before it name the called function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct CallLine<'a> {
    pub(in super::super) count: &'a [u8],
    /// The position of the callee; `None` if it is malformed.
    pub(in super::super) target: Option<Position>,
    /// The line after `calls=`: the position of the call in the caller, and the inclusive cost.
    pub(in super::super) cost: CostLine<'a>,
}

/// `jump=count target` or `jcnd=counts target`, and the next line: the position of the jump. `jfi=` and `jfn=` lines
/// may precede it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct JumpLine<'a> {
    pub(in super::super) conditional: bool,
    /// The text before the target. The manual writes `executed followed`, valgrind writes `followed/executed`.
    pub(in super::super) counts: &'a [u8],
    /// The position to which the jump leads; `None` if it is malformed.
    pub(in super::super) target: Option<Position>,
    /// The position of the jump itself, from the line after it; `None` if it is malformed.
    pub(in super::super) position: Option<Position>,
}

/// Iterates over the lines of a text. Yields each line's offset, and its content or an error if it is malformed.
pub(in super::super) struct LineReader<'a, 'd> {
    text: &'a [u8],
    /// Offset of the next line.
    offset: usize,
    /// Decodes positions, with the columns and the base position that earlier lines set. Borrowed, because a file is
    /// read in chunks: each chunk has its own reader, and the next reader continues with this decoder.
    decoder: &'d mut PositionDecoder,
}

impl<'a, 'd> LineReader<'a, 'd> {
    pub(in super::super) fn new(text: &'a [u8], decoder: &'d mut PositionDecoder) -> Self {
        Self { text, offset: 0, decoder }
    }

    /// The position columns in effect after the lines that were read so far.
    pub(in super::super) fn columns(&self) -> Columns {
        self.decoder.columns
    }

    /// True if a position in the lines that were read so far is relative.
    pub(in super::super) fn saw_relative(&self) -> bool {
        self.decoder.saw_relative
    }

    /// Classifies a line. For calls and jumps, also reads the line with costs that follows.
    fn read(&mut self, text: &'a [u8]) -> Result<Line<'a>> {
        Ok(match Statement::parse(text) {
            Statement::Header(word, value) => {
                self.apply_header(word, value)?;
                Line::Header { word, value }
            }
            Statement::Cost(text) => Line::SelfCost(self.decoder.read_self_cost(text)),
            Statement::Spec(Keyword::Calls, value) => self.read_call(value)?,
            Statement::Spec(keyword @ (Keyword::Jump | Keyword::Jcnd), value) => self.read_jump(keyword, value)?,
            // `frfn=` and `rec=` lines say nothing about the costs and calls after them, so only their text is kept.
            Statement::Spec(Keyword::Frfn | Keyword::Rec, _) => Line::Unknown(text),
            Statement::Spec(keyword, value) => Line::Name(keyword, value),
            Statement::Other if text.trim_ascii().is_empty() => Line::Blank,
            Statement::Other => Line::Unknown(text),
        })
    }

    /// Tells the decoder what a header line says about positions: their columns, and whether valgrind wrote the file.
    fn apply_header(&mut self, word: &[u8], value: &[u8]) -> Result<()> {
        match word {
            b"positions" => {
                self.decoder.set_columns(Columns::required(value)?);
            }
            // By the manual, the position of a call or jump becomes the base of later relative positions, and other
            // writers follow it. In valgrind's files, it doesn't.
            b"creator" => self.decoder.every_line_is_base = !is_valgrind(value),
            _ => {}
        }
        Ok(())
    }

    /// Reads a `calls=` line and the cost line that follows. `value` is the text after the `=`.
    fn read_call(&mut self, value: &'a [u8]) -> Result<Line<'a>> {
        let (count, target) = split_word(value);
        let target = self.decoder.peek(target).position;
        let next = self.next_cost_line()?;
        Ok(Line::Call(CallLine { count, target, cost: self.decoder.read_site(next) }))
    }

    /// Reads a `jump=` or `jcnd=` line, and the line with the jump's own position that follows. `value` is the text
    /// after the `=`: the counts, then the target's position. The target is only looked at (`peek`), because it never
    /// becomes the base of relative positions; the jump's own position may.
    fn read_jump(&mut self, keyword: Keyword, value: &'a [u8]) -> Result<Line<'a>> {
        let conditional = keyword == Keyword::Jcnd;
        let value = value.trim_ascii();
        let (mut counts, mut target) = split_word(value);
        // The two counts of a conditional jump are one word (`7/9`) or two.
        if conditional && !counts.contains(&b'/') {
            let (_, after_counts) = split_word(target);
            counts = value[..value.len() - after_counts.len()].trim_ascii_end();
            target = after_counts;
        }
        let target = self.decoder.peek(target).position;
        let next = self.next_cost_line()?;
        let position = self.decoder.read_site(next).position;
        Ok(Line::Jump(JumpLine { conditional, counts, target, position }))
    }

    /// Consumes the cost line that must follow a call or a jump. Fails if the next line isn't a cost line, and leaves
    /// that line for the next call of `read`.
    fn next_cost_line(&mut self) -> Result<&'a [u8]> {
        let next = self.text.get(self.offset..).and_then(|rest| lines(rest).next());
        let Some((_, line)) = next else {
            return Err(Error::new("the file ends after a calls= or jump= line, before the line that must follow it"));
        };
        let Statement::Cost(text) = Statement::parse(line) else {
            return Err(Error::new("a calls= or jump= line is not followed by a line with its position"));
        };
        self.offset += line.len() + 1;
        Ok(text)
    }
}

impl<'a> Iterator for LineReader<'a, '_> {
    type Item = (usize, Result<Line<'a>>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.offset;
        let (_, text) = lines(self.text.get(start..)?).next()?;
        self.offset += text.len() + 1;
        Some((start, self.read(text)))
    }
}

/// Splits a text after its first word. The first part has no blanks, the second one starts with the blanks between
/// them.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    text.split_at(text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()))
}

/// True if valgrind wrote the file, according to the value of `creator:`. In valgrind's files, relative positions refer
/// to lines of self cost only.
pub(in super::super) fn is_valgrind(creator: &[u8]) -> bool {
    creator.starts_with(b"callgrind-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all<'a>(text: &'a [u8], decoder: &mut PositionDecoder) -> Vec<(usize, Option<Line<'a>>)> {
        LineReader::new(text, decoder).map(|(offset, line)| (offset, line.ok())).collect()
    }

    fn position(addr: u64, line: u64) -> Option<Position> {
        Some(Position([addr, line, 0]))
    }

    #[test]
    fn a_call_takes_the_line_after_it_only_if_that_has_costs() {
        let mut decoder = PositionDecoder::default();
        let text = b"creator: callgrind-3\npositions: instr line\nfn=f\n0x10 7 5\ncalls=2 +8 9\n+4 * 30\n+1 +1 .\n\
            calls=1 0x20 1\nfn=g\ncalls=1";
        let lines = read_all(text, &mut decoder);
        let costs: Vec<_> = lines[3..6].iter().map(|(_, line)| line.unwrap()).collect();
        let call = CallLine {
            count: b"2",
            target: position(0x18, 9),
            cost: CostLine { position: position(0x14, 7), costs: b"30" },
        };
        let expected = [
            Line::SelfCost(CostLine { position: position(0x10, 7), costs: b"5" }),
            Line::Call(call),
            Line::SelfCost(CostLine { position: position(0x11, 8), costs: b"." }),
        ];
        assert_eq!(costs, expected);
        assert_eq!(lines[6].1, None, "followed by another function");
        assert_eq!(lines[7].1, Some(Line::Name(Keyword::Fn, b"g")));
        assert_eq!(lines[8].1, None, "at the end of the file");
        // By the manual's rule, the line after `calls=` moves the base.
        let text = String::from_utf8_lossy(text).replace("callgrind-3", "other");
        let lines = read_all(text.as_bytes(), &mut decoder);
        assert_eq!(lines[5].1, Some(Line::SelfCost(CostLine { position: position(0x15, 8), costs: b"." })));
    }

    #[test]
    fn both_forms_of_a_conditional_jump() {
        for counts in ["3/4", "4  3"] {
            let text = format!("1 5\njcnd={counts} +2\n+1\njump=7 1\n3\n");
            let lines = read_all(text.as_bytes(), &mut PositionDecoder::default());
            let jump = JumpLine {
                conditional: true,
                counts: counts.as_bytes(),
                target: Some(Position([3, 0, 0])),
                position: Some(Position([2, 0, 0])),
            };
            assert_eq!(lines[1].1, Some(Line::Jump(jump)), "{text}");
            assert!(matches!(lines[2].1, Some(Line::Jump(JumpLine { conditional: false, counts: b"7", .. }))));
        }
    }
}
