//! Escapes control characters in text that is written to a terminal. Files and pipes get the text unchanged.

use crate::error::{Error, Result};
use crate::io::Output;
use crate::model::printable::{printable, without_middle};
use std::io::{self, Write};

/// The error if output that isn't text (`what`) would go to a terminal.
pub(crate) fn refuse_terminal(what: &str) -> Error {
    Error::usage(format!("refusing to write {what} to a terminal; redirect the output or use -o FILE"))
}

/// The maximum length in bytes of a line, or of a column between tabs, on a terminal. The middle of longer ones is left
/// out. A stack of a thousand frames fits.
const LONGEST: usize = 1 << 16;

/// Writes text to an output. If the output is a terminal, control characters are escaped.
pub(crate) fn write_text<T>(out: &mut Output, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    if !out.is_terminal() {
        return write(out);
    }
    let mut lines = PrintableLines { out, line: Vec::new() };
    let result = write(&mut lines)?;
    lines.finish()?;
    Ok(result)
}

/// A writer that escapes each line, column by column, when the line is complete.
struct PrintableLines<'a, W: Write + ?Sized> {
    out: &'a mut W,
    line: Vec<u8>,
}

impl<W: Write + ?Sized> PrintableLines<'_, W> {
    fn finish(mut self) -> io::Result<()> {
        self.write_part(None)?;
        self.out.flush()
    }

    /// Writes the line collected so far in printable form, followed by `end`. Very long lines are cut in the middle.
    fn write_part(&mut self, end: Option<u8>) -> io::Result<()> {
        match printable(&self.line) {
            // At either end, a quarter of the limit stays.
            text if text.len() > LONGEST => {
                self.out.write_all(without_middle(&text, LONGEST, LONGEST / 4).as_bytes())?;
            }
            text => self.out.write_all(text.as_bytes())?,
        }
        self.line.clear();
        end.map_or(Ok(()), |end| self.out.write_all(&[end]))
    }
}

impl<W: Write + ?Sized> Write for PrintableLines<'_, W> {
    /// Collects bytes until a line break or tab, then writes what was collected in printable form. Line breaks and tabs
    /// themselves aren't escaped.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\t')) {
            match part {
                [text @ .., end @ (b'\n' | b'\t')] => {
                    self.line.extend_from_slice(text);
                    self.write_part(Some(*end))?;
                }
                text => self.line.extend_from_slice(text),
            }
        }
        Ok(bytes.len())
    }

    /// Flushes what has been escaped. An incomplete line isn't escaped yet: it may end within a character, which would
    /// look invalid.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_made_printable_wherever_they_are_cut() {
        let text = "node 77\t\x1b[2Jgone \u{e9}\n\tf\u{202e}\nno end \x07".as_bytes();
        for size in 1..text.len() {
            let mut out = Vec::new();
            let mut lines = PrintableLines { out: &mut out, line: Vec::new() };
            text.chunks(size).for_each(|piece| lines.write_all(piece).unwrap());
            lines.finish().unwrap();
            let shown = String::from_utf8(out).unwrap();
            assert_eq!(shown, "node 77\t\\x1b[2Jgone \u{e9}\n\tf\\u{202e}\nno end \\x07");
        }
    }
}
