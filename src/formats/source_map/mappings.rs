//! Decodes the `mappings` of a source map: segments separated by commas, with a semicolon after each line of the
//! script. A segment has one, four or five numbers, each relative to its previous value:
//!
//! ```text
//! column in the script, [source, line in it, column in it, [name]]
//! ```

use super::vlq;
use crate::error::{Error, Result};
use crate::model::script_map::{NONE, Place, Segment};

/// Two numbers about the sources and the names of a section: either how many there are, or the indices of the first
/// ones in the whole map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) sources: usize,
    pub(super) names: usize,
}

/// Decodes the mappings of a script, or of a section of it, that begins at `start`. `counts` is how many sources and
/// names the section has, and `first` where they begin in the lists of the whole map.
pub(super) fn decode(mappings: &[u8], start: Place, first: Numbers, counts: Numbers) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut state = State { generated: start, ..State::default() };
    let mut rest = mappings;
    while let Some((byte, after)) = rest.split_first() {
        match byte {
            b',' => rest = after,
            b';' => {
                state.generated = Place { line: state.generated.line.saturating_add(1), column: 0 };
                rest = after;
            }
            _ => {
                let Some(segment) = state.decode_segment(&mut rest, first, counts) else {
                    let offset = mappings.len() - rest.len();
                    let message = format!("is not a source map: its mappings are broken at byte {offset}");
                    return Err(Error::new(message));
                };
                segments.push(segment);
            }
        }
    }
    Ok(segments)
}

/// The values of the previous segment, to which the numbers of the next one are relative. `line` and `column` are in
/// the authored file.
#[derive(Default)]
struct State {
    generated: Place,
    source: i64,
    line: i64,
    column: i64,
    name: i64,
}

impl State {
    /// Decodes one segment of the `mappings` field. Each number is relative to that of the previous segment. `first`
    /// and `counts` are where the section's sources and names start in the lists of the whole map, and how many there
    /// are. A segment has one number (the column in the script), four (also source, line and column there) or five (also
    /// a name). `None` if the segment is invalid.
    #[inline(always)]
    fn decode_segment(&mut self, text: &mut &[u8], first: Numbers, counts: Numbers) -> Option<Segment> {
        let generated = i64::from(self.generated.column) + vlq::signed(text)?;
        // `global_index` returns `None` if the section has no such source or name, which makes the segment invalid.
        let (mut source, mut name) = (NONE, NONE);
        if !is_end(text) {
            self.source += vlq::signed(text)?;
            self.line += vlq::signed(text)?;
            self.column += vlq::signed(text)?;
            source = global_index(self.source, first.sources, counts.sources)?;
            if !is_end(text) {
                self.name += vlq::signed(text)?;
                name = global_index(self.name, first.names, counts.names)?;
            }
        }
        // Check three numbers at once: if one of them is negative or exceeds 32 bits, so does their bitwise or.
        u32::try_from(generated | self.line | self.column).ok()?;
        self.generated.column = generated as u32;
        // A segment without a source (code of no authored file) repeats the last authored position, which then has no
        // meaning.
        let authored = Place { line: self.line as u32, column: self.column as u32 };
        if !is_end(text) {
            return None;
        }
        Some(Segment { generated: self.generated, authored, source, name })
    }
}

#[inline]
fn is_end(text: &[u8]) -> bool {
    matches!(text.first(), None | Some(b',' | b';'))
}

/// Converts an index in one section's list of `count` elements to an index in the list of all sections, in which the
/// section's elements start at `first`. `None` if the index is out of range.
#[inline(always)]
fn global_index(index: i64, first: usize, count: usize) -> Option<u32> {
    let index = usize::try_from(index).ok().filter(|index| *index < count)?;
    Some((first + index) as u32)
}
