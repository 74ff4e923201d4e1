//! Recognizes inputs that aren't profiles but may be mistaken for one, and says what the user should do.

use crate::contract::format::Read;
use crate::error::Error;
use crate::formats::{FORMATS, unread};
use crate::io;
use crate::records::{jitdump, perf_map};
use std::path::Path;

/// A message about an input in a known format that isn't a profile, recognized by its first bytes.
fn what(head: &[u8]) -> Option<&'static str> {
    KNOWN.iter().find(|(is, _)| is(head)).map(|(_, what)| *what)
}

/// Extensions of output files. An input with one of these was probably meant as the output.
pub(crate) const WRITTEN: &[&str] = &["svg", "html", "json", "folded", "txt", "csv", "gz", "pb"];

/// The error for an input whose first bytes no format recognizes.
pub(crate) fn refused(head: &[u8]) -> Error {
    if head.is_empty() {
        return Error::new("is empty");
    }
    if let Some(known) = unread::recognize(head) {
        return Error::new(format!("is {}, which is not read: {}", known.name, known.remedy));
    }
    let readable = FORMATS.iter().filter(|format| !matches!(format.read, Read::No)).map(|format| format.name);
    let general = || format!("is none of the formats that can be read: {}", readable.collect::<Vec<_>>().join(", "));
    Error::new(what(head).map_or_else(general, str::to_owned))
}

/// Recognizes a kind of file, and the message about it.
type KnownFile = (fn(&[u8]) -> bool, &'static str);

const KNOWN: &[KnownFile] = &[
    (
        jitdump::sniff,
        "is a jitdump: it names code but contains no samples; pass the recording it belongs to (perf.data), and this file with --jitdump",
    ),
    (
        perf_map::sniff,
        "is a perf map: it names code but contains no samples; pass the recording it belongs to (perf.data), and this file with --perf-map",
    ),
    (|head| head.starts_with(b"PERFFILE"), "is perf.data of a version that is not known: perf script prints it"),
    (|head| elf_type(head) == Some(ET_CORE), "is a core dump: a profile is made by perf record -g -- PROGRAM"),
    (
        |head| head.starts_with(b"\x7fELF"),
        "is a program or library (ELF), no profile of one: perf record -g -- PROGRAM makes perf.data",
    ),
    (
        |head| begins(head, b"<svg") || begins(head, b"<?xml") && contains(head, b"<svg"),
        "is a picture (SVG): give the profile that it was drawn from; the file to write is named by -o",
    ),
    (
        |head| begins(head, b"<!doctype html") || begins(head, b"<html"),
        "is a page (HTML): give the profile that it was made from; the file to write is named by -o",
    ),
    (
        |head| head.get(257..262) == Some(b"ustar"),
        "is an archive (tar): unpack it (tar xf), and give the profile in it; the output of perf archive belongs in ~/.debug, or is given as --debug-dir DIR once it is unpacked. jitgraft pack makes archives that are \
         read as they are",
    ),
    (|head| head.starts_with(b"PK\x03\x04"), "is an archive (zip): unpack it, and give the profile in it"),
    (|head| head.starts_with(b"\xfd7zXZ\0"), "is packed by xz: unpack it (xz -d); gzip and zstd are unpacked here"),
    (
        |head| head.starts_with(b"BZh"),
        "is packed by bzip2: unpack it (bzip2 -d); gzip and zstd are unpacked here. An archive of perf archive is given beside \
         the recording: mkdir DIR && tar xf FILE -C DIR, then --debug-dir DIR",
    ),
    (
        |head| begins(head, b"# To display the perf.data header info") || contains(head, b"# Overhead "),
        "is the text of perf report, which has sums and no stacks: give perf.data itself, or the text of perf script",
    ),
    (
        |head| contains(head, b"Performance counter stats for"),
        "is the text of perf stat, which has counts and no stacks: perf record -g -- PROGRAM makes perf.data",
    ),
    (
        |head| begins(head, b"{") || begins(head, b"["),
        "is JSON of none of the tools whose profiles are read: see jitgraft formats",
    ),
];

/// `ET_CORE` in <elf.h>.
const ET_CORE: u8 = 4;

/// The low byte of `e_type` for either byte order; relevant types are below 256.
fn elf_type(head: &[u8]) -> Option<u8> {
    let is_big = *head.strip_prefix(b"\x7fELF")?.get(1)? == 2;
    head.get(if is_big { 17 } else { 16 }).copied()
}

/// True if the text starts like this, ignoring case, leading whitespace and a byte order mark.
fn begins(head: &[u8], with: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    head.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

fn contains(head: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(&head[..head.len().min(4096)], part).is_some()
}

/// A suggestion for a directory that isn't a recording, if it contains one.
pub(crate) fn directory(path: &Path) -> Option<String> {
    let inside = path.join("perf.data");
    io::is_there(&inside).then(|| format!("it holds one: {}", inside.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_reported_by_their_beginnings() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: [(&[u8], &str); 12] = [
            (b"7f00 40 f\n7f40 20 LazyCompile:*g a.js:1\n7f80 1", "is a perf map"),
            (b"PERFFILE", "perf.data of a version"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0", "is a core dump"),
            (b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x03", "is a program or library"),
            (b"<?xml version=\"1.0\"?><!DOCTYPE svg><svg>", "is a picture"),
            (b"\n<!DOCTYPE HTML><html>", "is a page"),
            (&tar, "is an archive (tar)"),
            (b"\xfd7zXZ\0\0", "xz -d"),
            (b"# Samples: 4\n# Overhead  Command", "text of perf report"),
            (b"\n Performance counter stats for 'true':", "text of perf stat"),
            (b"{\"a\": 1}", "is JSON"),
            (b"[1]", "is JSON"),
        ];
        for (head, said) in cases {
            let what = what(head).unwrap_or("nothing known");
            assert!(what.contains(said), "{said}: {what}");
        }
        for other in [&b""[..], b"hello", b"a;b 3\n", b"\x7fEL", b"<xml>"] {
            assert_eq!(what(other), None, "{other:?}");
        }
    }
}
