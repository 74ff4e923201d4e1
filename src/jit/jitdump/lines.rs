//! Decodes the entries of a JIT_CODE_DEBUG_INFO record, on demand.
//!
//! An entry is `addr u64 · line u32 · discriminator u32 · file name NUL`. It has no length field; the name's NUL ends
//! it.
//!
//! V8 (Node.js 20) logs names from memory that it has already freed. In most records the allocator has overwritten the
//! first 16 bytes with its own pointers, which contain NULs. The rest of the name is enough to check whether it was the
//! script in the function's own name (`JS:*inner /app/main.js:2:15`); if so, that script is used. Otherwise the entry
//! is left out because its file is unknown, and decoding continues where the next entry can be.

use crate::bytes::cursor::{Cursor, Endian};
use crate::model::code::{Line, Lines};

/// Stands for "the same file as the previous entry" (`jitdump.h`; V8 writes it).
const SAME_FILE: &[u8] = b"\xff";

/// Length in bytes of the shortest entry, whose name is empty: address, line, discriminator, NUL.
const SHORTEST: usize = 8 + 4 + 4 + 1;

/// How many bytes of freed memory the allocator overwrites: two pointers.
const OVERWRITTEN: usize = 16;

/// The longest file name to look for after overwritten bytes (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Decodes the source lines of a piece of code, sorted by offset. Stops at the first entry that is damaged or outside
/// the code. Leaves out entries whose file name is lost.
pub fn decode<'data>(lines: &Lines<'data>) -> Vec<Line<'data>> {
    let endian = if lines.big_endian { Endian::Big } else { Endian::Little };
    let mut cursor = Cursor::new(lines.raw, 0, endian);
    // The record may claim more entries than fit into its bytes. Don't reserve memory for more than fit.
    let room = (lines.raw.len() / SHORTEST) as u64;
    let mut entries: Vec<Line<'data>> = Vec::with_capacity(lines.count.min(room) as usize);
    let mut last_file = None;
    for _ in 0..lines.count {
        let Some(Entry { line, file }) = read_entry(&mut cursor, lines) else { break };
        // A file name that is a mark (`SAME_FILE`) stands for the file of the entry before, which may be lost, too.
        let file = if file == Some(SAME_FILE) { last_file } else { file };
        if let Some(file) = file {
            entries.push(Line { file, ..line });
        }
        last_file = file;
    }
    entries.sort_by_key(|line| line.offset);
    entries
}

/// An entry as it was read.
struct Entry<'data> {
    /// The line, still without its file.
    line: Line<'data>,
    /// The name of the file, or [`SAME_FILE`]. `None` if V8's allocator has overwritten the name.
    file: Option<&'data [u8]>,
}

/// Reads the next entry of a piece of code. `None` at the end, if the entry is damaged, or if its address is outside
/// the code.
///
/// Old versions of V8 log file names from freed memory, whose first bytes the allocator may have overwritten with
/// pointers. The function's own name contains the path of a script (`JS:*inner /app/main.js:2:15`). If the intact rest
/// of the file name matches the end of that path, the script is the entry's file. Otherwise, the file is unknown.
fn read_entry<'data>(cursor: &mut Cursor<'data>, lines: &Lines<'data>) -> Option<Entry<'data>> {
    let addr = cursor.u64("addr").ok()?;
    let line = cursor.u32("line").ok()?;
    let discriminator = cursor.u32("discriminator").ok()?;
    let offset = code_offset(addr, lines)?;
    let name_start = *cursor;
    let name = cursor.cstr("file name").ok()?;
    let line = Line { offset, file: b"", line, discriminator, inlined: None };
    // An intact name has no control characters and is followed by another entry or by the end. In a name whose start
    // was overwritten by a pointer, the pointer's bytes look like control characters.
    let is_clean = !name.is_empty() && !has_control(name);
    if is_clean && can_be_next(cursor, lines) {
        return Some(Entry { line, file: Some(name) });
    }
    let (name_len, file) = if let Some(script) = find_script(name_start, lines) {
        (script.len(), Some(script))
    } else if is_clean {
        // The name is intact, so what follows it is damaged. The next call finds no entry there and ends the list.
        (name.len(), Some(name))
    } else {
        (find_name_len(name_start, lines).unwrap_or(name.len()), None)
    };
    *cursor = name_start;
    cursor.bytes(name_len as u64 + 1, "file name").ok()?;
    Some(Entry { line, file })
}

/// True if a name contains control characters. Looks at the whole name instead of stopping early, so that the compiler
/// vectorizes the loop.
fn has_control(name: &[u8]) -> bool {
    name.iter().fold(false, |found, byte| found | byte.is_ascii_control())
}

/// Offset of an address in the code. `None` if the address is outside; the end of the code counts as inside.
fn code_offset(addr: u64, lines: &Lines<'_>) -> Option<u64> {
    addr.checked_sub(lines.base).filter(|offset| *offset <= lines.size)
}

/// True if the cursor is at the end of all entries, or at an address in this code, with which another entry would
/// begin.
fn can_be_next(cursor: &Cursor<'_>, lines: &Lines<'_>) -> bool {
    let mut next = *cursor;
    // If fewer bytes are left than the shortest entry has, they are padding after the last entry.
    next.left() < SHORTEST || next.u64("addr").is_ok_and(|addr| code_offset(addr, lines).is_some())
}

/// True if a name of `len` bytes may be at the cursor: a NUL follows it, and after that the next entry or the end.
fn can_be_name(cursor: &Cursor<'_>, len: usize, lines: &Lines<'_>) -> bool {
    let mut next = *cursor;
    cursor.rest().get(len) == Some(&0) && next.bytes(len as u64 + 1, "").is_ok() && can_be_next(&next, lines)
}

/// Returns the script in the function's own name, if the bytes at `cursor` can be that script's name with an
/// overwritten beginning.
fn find_script<'data>(cursor: Cursor<'data>, lines: &Lines<'data>) -> Option<&'data [u8]> {
    possible_scripts(lines.function).find(|script| {
        let intact = script.len().min(OVERWRITTEN)..script.len();
        can_be_name(&cursor, script.len(), lines) && cursor.rest().get(intact.clone()) == Some(&script[intact])
    })
}

/// Finds the length of a damaged file name, to get past it: V8's allocator overwrote its beginning, perhaps with NULs,
/// and it isn't the script in the function's own name. The name starts at `cursor`. The length is without the NUL at
/// the end. `None` if no NUL is found after which another entry could begin.
fn find_name_len(cursor: Cursor<'_>, lines: &Lines<'_>) -> Option<usize> {
    let bytes = cursor.rest();
    let mut ends = memchr::memchr_iter(0, &bytes[..LONGEST.min(bytes.len())]);
    ends.find(|&len| can_be_name(&cursor, len, lines))
}

/// Candidates for the script in a function's name: the text from any space up to `:line:column`.
fn possible_scripts(function: &[u8]) -> impl Iterator<Item = &[u8]> {
    let name = strip_number(function).and_then(strip_number).unwrap_or_default();
    memchr::memchr_iter(b' ', name).map(|space| &name[space + 1..])
}

/// Removes `:number` from the end of a name. `None` if it doesn't end like that.
fn strip_number(name: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memrchr(b':', name)?;
    name[colon + 1..].iter().all(u8::is_ascii_digit).then_some(&name[..colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7f00_0000_1040;

    fn put(raw: &mut Vec<u8>, offset: u64, line: u32, name: &[u8]) {
        raw.extend((BASE + offset).to_le_bytes());
        raw.extend([line, 5].map(u32::to_le_bytes).concat());
        raw.extend(name);
        raw.push(0);
    }

    /// (offset, line, file) of each decoded entry.
    fn decoded(raw: &[u8], count: u64, function: &[u8]) -> Vec<(u64, u32, String)> {
        let lines = Lines { raw, decode: Some(decode), count, base: BASE, size: 0x40, function, ..Lines::default() };
        let shown = |line: &Line<'_>| (line.offset, line.line, String::from_utf8_lossy(line.file).into_owned());
        lines.entries().iter().map(shown).collect()
    }

    /// A name as V8 logs it from freed memory.
    fn freed(name: &[u8]) -> Vec<u8> {
        let mut name = name.to_vec();
        let pointers = *b"D\x16\x03\0\0\0\0\0{q\x10\x1d\xf7\xa93\r";
        let len = name.len().min(OVERWRITTEN);
        name[..len].copy_from_slice(&pointers[..len]);
        name
    }

    #[test]
    fn a_script_whose_name_was_overwritten_is_that_of_the_function() {
        for script in ["/home/someone/app/main.js", "file:///srv/with space/m.mjs", "/short.js"] {
            let mut raw = Vec::new();
            put(&mut raw, 0, 2, &freed(script.as_bytes()));
            put(&mut raw, 8, 3, &freed(b"/another/script/altogether.js"));
            put(&mut raw, 16, 4, script.as_bytes());
            put(&mut raw, 24, 5, &freed(script.as_bytes()));
            let function = format!("JS:*get size {script}:2:15");
            let expected = [(0, 2), (16, 4), (24, 5)].map(|(offset, line)| (offset, line, script.to_owned()));
            assert_eq!(decoded(&raw, 4, function.as_bytes()), expected, "the other script's name is lost");
        }
    }

    #[test]
    fn names_that_are_whole_stay_whatever_the_function_is_called() {
        let mut raw = Vec::new();
        put(&mut raw, 0, 2, b"a.js");
        put(&mut raw, 1, 3, SAME_FILE);
        put(&mut raw, 2, 4, "wörk/ö.js".as_bytes());
        let expected = [(0, 2, "a.js".to_owned()), (1, 3, "a.js".to_owned()), (2, 4, "wörk/ö.js".to_owned())];
        assert_eq!(decoded(&raw, 3, b"JS:*f b.js:1:1"), expected);
        raw.truncate(raw.len() - 1);
        assert_eq!(decoded(&raw, 3, b""), expected[..2], "a name that does not end");
        assert!(decoded(&raw[..20], u64::MAX, b"").is_empty());
    }
}
