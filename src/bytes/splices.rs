//! Replaces parts of a file and copies all the rest byte for byte.

use crate::error::Result;
use std::io::Write;
use std::ops::Range;

/// Replacements of byte ranges of a file. They may be added in any order.
#[derive(Debug, Default)]
pub struct Splices {
    list: Vec<(Range<usize>, Vec<u8>)>,
}

impl Splices {
    /// Replaces a range of the file by `bytes`. If the range is empty, the bytes are inserted there.
    pub fn replace(&mut self, range: Range<usize>, bytes: Vec<u8>) {
        self.list.push((range, bytes));
    }

    /// Copies the file to `out` with all replacements. Of two replacements that overlap, the one that starts later is
    /// dropped. Insertions at the same offset keep the order in which they were added.
    pub fn write(mut self, file: &[u8], out: &mut dyn Write) -> Result<()> {
        self.list.sort_by_key(|(range, _)| range.start);
        // Everything before this offset has been copied or replaced.
        let mut done_to = 0;
        for (range, bytes) in self.list {
            // Drop a replacement that overlaps the previous one, or that begins beyond the end of the file.
            let Some(unchanged) = file.get(done_to..range.start) else { continue };
            out.write_all(unchanged)?;
            out.write_all(&bytes)?;
            done_to = range.end;
        }
        out.write_all(file.get(done_to..).unwrap_or_default())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unnamed_frame_stays() {
        let mut splices = Splices::default();
        splices.replace(4..4, b"X".to_vec());
        splices.replace(1..2, b"".to_vec());
        splices.replace(4..4, b"Y".to_vec());
        let mut out = Vec::new();
        splices.write(b"abcdef", &mut out).unwrap();
        assert_eq!(out, b"acdXYef");
    }
}
