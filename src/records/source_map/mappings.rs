//! The `mappings` of a source map: segments with commas between them, and a semicolon at the end of each line of the script.
//! A segment has one, four or five numbers, each relative to the one before:
//!
//! ```text
//! column in the script, [source, line in it, column in it, [name]]
//! ```

use super::vlq;
use crate::error::{Error, Result};
use crate::model::script_map::{NONE, Place, Segment};

/// Numbers of sources and names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) sources: usize,
    pub(super) names: usize,
}

/// The segments of a script that begins at `begin`. The map has `own` sources and names, which get numbers from `first` on.
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
    source: u32,
    authored: Place,
    name: u32,
}

impl State {
    #[inline(always)]
    fn segment(&mut self, text: &mut &[u8], first: Numbers, own: Numbers) -> Option<Segment> {
        let generated = &mut self.generated;
        generated.column = moved(generated.column, text)?;
        if is_end(text) {
            return Some(Segment { generated: *generated, authored: self.authored, source: NONE, name: NONE });
        }
        self.source = moved(self.source, text).filter(|source| (*source as usize) < own.sources)?;
        self.authored.line = moved(self.authored.line, text)?;
        self.authored.column = moved(self.authored.column, text)?;
        let mut name = NONE;
        if !is_end(text) {
            self.name = moved(self.name, text).filter(|name| (*name as usize) < own.names)?;
            name = (first.names + self.name as usize) as u32;
        }
        let source = (first.sources + self.source as usize) as u32;
        is_end(text).then_some(Segment { generated: *generated, authored: self.authored, source, name })
    }
}

#[inline]
fn is_end(text: &[u8]) -> bool {
    matches!(text.first(), None | Some(b',' | b';'))
}

/// A number and the difference at the start of a text.
#[inline(always)]
fn moved(number: u32, text: &mut &[u8]) -> Option<u32> {
    u32::try_from(i64::from(number) + vlq::signed(text)?).ok()
}
