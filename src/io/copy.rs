//! Copies files that another user may change at any time.

use super::spool::Spool;
use crate::error::{Error, Result};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;

/// Copies the data of a file to the same offsets of another file, so that holes (parts that were never written) stay
/// holes. A hole at the end is left out. Fails if another hole is larger than `largest_hole` bytes.
pub(super) fn copy_data(file: &File, copy: &mut Spool, largest_hole: u64) -> Result<()> {
    let mut end = 0;
    while let Some(data) = next_data(file, end)? {
        check_hole(end..data.start, largest_hole)?;
        copy_range(file, copy, data.clone())?;
        end = data.end;
    }
    Ok(())
}

/// How many ranges of data are looked at to find the holes between them.
const PIECES: usize = 10_000;

/// The offset where a file's last data ends, so that a hole at the end can be left out. Fails if another hole is larger
/// than `largest_hole` bytes. If the file has more than [`PIECES`] ranges of data, the rest isn't checked, and the
/// file's length is returned.
pub(super) fn data_end(file: &File, largest_hole: u64) -> Result<u64> {
    let mut end = 0;
    for _ in 0..PIECES {
        match next_data(file, end)? {
            Some(data) => {
                check_hole(end..data.start, largest_hole)?;
                end = data.end;
            }
            None => return Ok(end),
        }
    }
    Ok(file.metadata()?.len())
}

/// Fails if a hole in a file is larger than `largest` bytes.
fn check_hole(hole: Range<u64>, largest: u64) -> Result<()> {
    if hole.end - hole.start <= largest {
        return Ok(());
    }
    let message =
        format!("not read: it is sparse, with a hole of {} bytes, which is unusual for a log", hole.end - hole.start);
    let remedy = "to use it anyway, pass a copy without holes (cp --sparse=never)".to_owned();
    Err(Error::new(message).with_remedy(Some(remedy)).at_offset(hole.start))
}

/// The first range of data at or after an offset; `None` if only a hole follows.
fn next_data(file: &File, from: u64) -> Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        // Only a hole follows, or the file ends here.
        Err(Errno::NXIO) => return Ok(None),
        // The file system doesn't report holes, so all of the file counts as data.
        Err(_) => from,
    };
    let end = match seek(file, SeekFrom::Hole(start)) {
        Ok(end) => end,
        Err(_) => file.metadata()?.len(),
    };
    // Without support for holes, `from` may already be the end of the file.
    Ok((start < end).then_some(start..end))
}

fn copy_range(file: &File, copy: &mut Spool, range: Range<u64>) -> Result<()> {
    let mut from = file;
    let copy = copy.file_for(range.end - range.start)?;
    from.seek(io::SeekFrom::Start(range.start))?;
    copy.seek(io::SeekFrom::Start(range.start))?;
    io::copy(&mut from.take(range.end - range.start), copy)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file(len: u64, data: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        data.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        file.set_len(len).unwrap();
        file
    }

    /// The contents of the copy. Fails if the copy takes more than a hundred kilobytes on disk.
    fn copied(file: &File) -> Result<Vec<u8>> {
        let mut copy = super::super::spool::temporary().unwrap();
        copy_data(file, &mut copy, 16 << 20)?;
        let mut copy = copy.into_file();
        assert!(copy.metadata().unwrap().len() < 100_000);
        let mut bytes = Vec::new();
        copy.rewind().unwrap();
        copy.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    #[test]
    fn a_copy_has_what_is_there_and_no_hole_of_gigabytes() {
        let small = copied(&file(70_000, &[(0, b"head"), (65_536, b"tail")])).unwrap();
        assert_eq!((&small[..4], &small[65_536..65_540]), (&b"head"[..], &b"tail"[..]));
        assert!(copied(&file(60 << 30, &[(0, b"head")])).unwrap().starts_with(b"head"));
        let within = copied(&file(60 << 30, &[(0, b"head"), ((60 << 30) - 4, b"tail")])).unwrap_err();
        assert!(within.to_string().contains("with a hole of"), "{within}");
        assert!(copied(&file(0, &[])).unwrap().is_empty());
        let end = data_end(&file(60 << 30, &[(0, b"head"), (1 << 20, b"tail")]), 16 << 20).unwrap();
        assert!((1 << 20..2 << 20).contains(&end), "{end}");
        assert_eq!(data_end(&file(4, &[(0, b"head")]), 16 << 20).unwrap(), 4);
        let sparse = file(60 << 30, &[(0, b"head"), (50 << 30, b"tail")]);
        assert!(data_end(&sparse, 16 << 20).is_err() && data_end(&sparse, u64::MAX).is_ok());
    }
}
