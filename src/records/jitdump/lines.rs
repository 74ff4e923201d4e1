//! The entries of a DEBUG_INFO record, decoded when somebody requests them.
//!
//! `addr u64 · line u32 · discriminator u32 · file name NUL`: entries have no length of their own, the name ends them.
//! V8 (node 20) logs names out of memory that it has freed already: the allocator has written its own pointers over the
//! first 16 bytes, NULs among them, in most records. The rest of the name is enough to show whether it was the script
//! that is in the function's own name (`JS:*inner /app/main.js:2:15`); then that is taken. Otherwise the entry has no
//! file and is left out, and the walk goes on where an entry can be.

use crate::bytes::cursor::{Cursor, Endian};
use crate::model::code::{Line, Lines};

/// "The same file as the entry before", instead of a name (`jitdump.h`, used by V8).
const SAME_FILE: &[u8] = b"\xff";

/// Address, line, discriminator and an empty name.
const SHORTEST: usize = 8 + 4 + 4 + 1;

/// The number of bytes of freed memory that the allocator overwrites: two pointers of its own.
const OVERWRITTEN: usize = 16;

/// The longest file name that is looked for behind overwritten bytes (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Decodes entries, up to the first that lies outside the code.
pub fn decode<'data>(lines: &Lines<'data>) -> Vec<Line<'data>> {
    let endian = if lines.big_endian { Endian::Big } else { Endian::Little };
    let mut cursor = Cursor::new(lines.raw, 0, endian);
    let room = (lines.raw.len() / SHORTEST) as u64;
    let mut entries: Vec<Line<'data>> = Vec::with_capacity(lines.count.min(room) as usize);
    let mut last_file = None;
    for _ in 0..lines.count {
        let Some((line, file)) = entry(&mut cursor, lines) else { break };
        let file = if file == Some(SAME_FILE) { last_file } else { file };
        if let Some(file) = file {
            entries.push(Line { file, ..line });
        }
        last_file = file;
    }
    entries.sort_by_key(|line| line.offset);
    entries
}

/// An entry, and its file unless that is lost.
fn entry<'data>(cursor: &mut Cursor<'data>, lines: &Lines<'data>) -> Option<(Line<'data>, Option<&'data [u8]>)> {
    let addr = cursor.u64("addr").ok()?;
    let line = cursor.u32("line").ok()?;
    let discriminator = cursor.u32("discriminator").ok()?;
    let offset = offset(addr, lines)?;
    let rest = *cursor;
    let name = cursor.cstr("file name").ok()?;
    let line = Line { offset, file: b"", line, discriminator, inlined: None };
    // Control characters come from pointers; a name that is whole is followed by an entry, or by nothing.
    let clean = !name.is_empty() && !has_control(name);
    if clean && follows(cursor, lines) {
        return Some((line, Some(name)));
    }
    let (len, file) = match script(rest, lines) {
        Some(script) => (script.len(), Some(script)),
        None if clean => (name.len(), Some(name)),
        None => (lost(rest, lines).unwrap_or(name.len()), None),
    };
    *cursor = rest;
    cursor.bytes(len as u64 + 1, "file name").ok()?;
    Some((line, file))
}

/// Looks at all of a name: so the compiler compares many bytes at once.
fn has_control(name: &[u8]) -> bool {
    name.iter().fold(false, |found, byte| found | byte.is_ascii_control())
}

fn offset(addr: u64, lines: &Lines<'_>) -> Option<u64> {
    addr.checked_sub(lines.base).filter(|offset| *offset <= lines.size)
}

/// True if an entry of this code can be here, or the end.
fn follows(cursor: &Cursor<'_>, lines: &Lines<'_>) -> bool {
    let mut next = *cursor;
    // Writers may pad the record.
    next.left() < SHORTEST || next.u64("addr").is_ok_and(|addr| offset(addr, lines).is_some())
}

/// True if a name of this many bytes can be here.
fn can_end(cursor: &Cursor<'_>, len: usize, lines: &Lines<'_>) -> bool {
    let mut behind = *cursor;
    cursor.rest().get(len) == Some(&0) && behind.bytes(len as u64 + 1, "").is_ok() && follows(&behind, lines)
}

/// The function's script, if what is here can be its name with the start overwritten.
fn script<'data>(cursor: Cursor<'data>, lines: &Lines<'data>) -> Option<&'data [u8]> {
    scripts(lines.function).find(|script| {
        let kept = script.len().min(OVERWRITTEN);
        can_end(&cursor, script.len(), lines) && cursor.rest().get(kept..script.len()) == Some(&script[kept..])
    })
}

/// The length of a name of which nothing can be determined.
fn lost(cursor: Cursor<'_>, lines: &Lines<'_>) -> Option<usize> {
    let bytes = cursor.rest();
    let mut ends = memchr::memchr_iter(0, &bytes[..LONGEST.min(bytes.len())]);
    ends.find(|&len| can_end(&cursor, len, lines))
}

/// The possible script in a function's name: all between a space and `:line:column`, for any space.
fn scripts(function: &[u8]) -> impl Iterator<Item = &[u8]> {
    let position = |name| -> Option<&[u8]> {
        let colon = memchr::memrchr(b':', name)?;
        name[colon + 1..].iter().all(u8::is_ascii_digit).then_some(&name[..colon])
    };
    let name = position(function).and_then(position).unwrap_or_default();
    memchr::memchr_iter(b' ', name).map(|space| &name[space + 1..])
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

    /// (offset, line, file) of the decoded entries.
    fn decoded(raw: &[u8], count: u64, function: &[u8]) -> Vec<(u64, u32, String)> {
        let lines = Lines { raw, decode: Some(decode), count, base: BASE, size: 0x40, function, ..Lines::default() };
        let shown = |line: &Line<'_>| (line.offset, line.line, String::from_utf8_lossy(line.file).into_owned());
        lines.entries().iter().map(shown).collect()
    }

    /// A name as V8 logs it out of freed memory.
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
