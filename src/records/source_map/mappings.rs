//! Decodes the `mappings` of a source map: segments separated by commas, with a semicolon after each line of the
//! script. A segment has one, four or five numbers, each relative to its previous value:
//!
//! ```text
//! column in the script, [source, line in it, column in it, [name]]
//! ```

use super::vlq;
use crate::error::{Error, Result};
use crate::model::script_map::{NONE, Place, Segment};

/// Numbers of sources and names: how many there are, or the index of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) sources: usize,
    pub(super) names: usize,
}

/// Decodes the segments of a script that begins at `begin`. `own` is how many sources and names the map has; their
/// indices start from `first`.
pub(super) fn decode(mappings: &[u8], begin: Place, first: Numbers, own: Numbers) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut state = State { generated: begin, ..State::default() };
    let mut rest = mappings;
    while let Some((byte, behind)) = rest.split_first() {
        match byte {
            b',' => rest = behind,
            b';' => {
                state.generated = Place { line: state.generated.line.saturating_add(1), column: 0 };
                rest = behind;
            }
            _ => {
                let segment = state.segment(&mut rest, first, own);
                segments.push(segment.ok_or_else(|| {
                    let at = mappings.len() - rest.len();
                    Error::new(format!("is not a source map: its mappings are broken at byte {at}"))
                })?);
            }
        }
    }
    Ok(segments)
}

/// What the numbers of the next segment are relative to.
#[derive(Default)]
struct State {
    generated: Place,
    source: i64,
    line: i64,
    column: i64,
    name: i64,
}

impl State {
    #[inline(always)]
    fn segment(&mut self, text: &mut &[u8], first: Numbers, own: Numbers) -> Option<Segment> {
        let generated = i64::from(self.generated.column) + vlq::signed(text)?;
        let (mut source, mut name) = (NONE, NONE);
        if !is_end(text) {
            self.source += vlq::signed(text)?;
            self.line += vlq::signed(text)?;
            self.column += vlq::signed(text)?;
            source = number(self.source, first.sources, own.sources)?;
            if !is_end(text) {
                self.name += vlq::signed(text)?;
                name = number(self.name, first.names, own.names)?;
            }
        }
        // If one of them is negative or too large, so is their bitwise or.
        u32::try_from(generated | self.line | self.column).ok()?;
        self.generated.column = generated as u32;
        let authored = Place { line: self.line as u32, column: self.column as u32 };
        is_end(text).then_some(Segment { generated: self.generated, authored, source, name })
    }
}

#[inline]
fn is_end(text: &[u8]) -> bool {
    matches!(text.first(), None | Some(b',' | b';'))
}

/// Converts an index below `own` within a map to an index among all maps, where the map's first is `first`.
#[inline(always)]
fn number(number: i64, first: usize, own: usize) -> Option<u32> {
    let number = usize::try_from(number).ok().filter(|number| *number < own)?;
    Some((first + number) as u32)
}
