//! Recognizes files that aren't profiles but were given as one by mistake, and says what the user should do instead.

use crate::contract::format::Read;
use crate::error::{Error, ErrorKind};
use crate::formats::{FORMATS, unread};
use crate::io::{self, InPath};
use crate::jit::{jitdump, perf_map};
use crate::runtimes::find_runtime_of_source;
use std::path::Path;

/// For a known kind of file that isn't a profile, recognized by its first bytes: a message about it, and what the user
/// should do. `None` for other files.
fn known_message(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let (_, message, remedy) = KNOWN.iter().find(|(recognizes, ..)| recognizes(head))?;
    Some((message, remedy))
}

/// Extensions of output files. If an input that doesn't exist has one of these, the user probably meant it as the
/// output.
pub(crate) const OUTPUT_EXTENSIONS: &[&str] = &["svg", "html", "json", "folded", "txt", "csv", "gz", "pb"];

/// The error for an input that isn't in any format that jitgraft reads. If its first bytes show what it is, the error
/// says so; otherwise, it lists the formats that jitgraft reads.
pub(crate) fn unknown_format(head: &[u8]) -> Error {
    if head.is_empty() {
        return Error::new("is empty");
    }
    if let Some(known) = unread::recognize(head) {
        let message = format!("is {}, which jitgraft does not read", known.name);
        return Error::new(message).with_kind(ErrorKind::UnknownFormat).with_remedy(Some(known.remedy.to_owned()));
    }
    if let Some((message, remedy)) = known_message(head) {
        return Error::new(message).with_kind(ErrorKind::UnknownFormat).with_remedy(Some(remedy.to_owned()));
    }
    let readable = FORMATS.iter().filter(|format| !matches!(format.read, Read::No));
    let names: Vec<&str> = readable.map(|format| format.name).collect();
    let remedy = format!("jitgraft reads {}", names.join(", "));
    Error::new("is in an unknown format").with_kind(ErrorKind::UnknownFormat).with_remedy(Some(remedy))
}

/// The error for an input of this path that isn't in any format that jitgraft reads, as in [`unknown_format`]. Source
/// code is recognized by its extension: newcomers pass the program instead of a recording of it.
pub(crate) fn unknown_file(head: &[u8], path: &InPath) -> Error {
    let is_known = head.is_empty() || unread::recognize(head).is_some() || known_message(head).is_some();
    if !is_known
        && let InPath::Path(path) = path
        && let Some(runtime) = find_runtime_of_source(path)
    {
        let remedy = format!("record it with `jitgraft record -- {} {}`", runtime.called, path.display());
        let error = Error::new("is source code, not a profile").with_kind(ErrorKind::UnknownFormat);
        return error.with_remedy(Some(remedy));
    }
    unknown_format(head)
}

/// A kind of file: a function that recognizes its first bytes, a message about it, and what the user should do.
type KnownFile = (fn(&[u8]) -> bool, &'static str, &'static str);

const KNOWN: &[KnownFile] = &[
    (
        jitdump::sniff,
        "is a jitdump, which has names but no samples",
        "pass the recording it belongs to (perf.data), and this file with --jitdump",
    ),
    (
        perf_map::sniff,
        "is a perf map, which has names but no samples",
        "pass the recording it belongs to (perf.data), and this file with --perf-map",
    ),
    (
        |head| head.starts_with(b"PERFFILE"),
        "is a perf.data file of an unknown version",
        "run perf script on it, and pass the output",
    ),
    (
        |head| elf_type(head) == Some(ET_CORE),
        "is a core dump, not a profile",
        "record one with `jitgraft record -- PROGRAM`",
    ),
    (
        |head| head.starts_with(b"\x7fELF"),
        "is an ELF file, not a profile",
        "record one with `jitgraft record -- PROGRAM`",
    ),
    (
        |head| begins(head, b"<svg") || begins(head, b"<?xml") && contains(head, b"<svg"),
        "is a picture (SVG), not a profile",
        "pass the profile it was drawn from (to write a picture, use -o FILE)",
    ),
    (
        |head| begins(head, b"<!doctype html") || begins(head, b"<html"),
        "is a page (HTML), not a profile",
        "pass the profile it was made from (to write a page, use -o FILE)",
    ),
    (
        |head| head.get(257..262) == Some(b"ustar"),
        "is an archive (tar)",
        "unpack it (tar xf) and pass the profile in it. If perf archive made it, unpack it into ~/.debug, or anywhere \
         and pass --debug-dir DIR. Only archives made by jitgraft pack are read without unpacking",
    ),
    (|head| head.starts_with(b"PK\x03\x04"), "is an archive (zip)", "unpack it and pass the profile in it"),
    (
        |head| head.starts_with(b"\xfd7zXZ\0"),
        "is compressed with xz",
        "decompress it with xz -d (jitgraft decompresses only gzip and zstd)",
    ),
    (
        |head| head.starts_with(b"BZh"),
        "is compressed with bzip2",
        "decompress it with bzip2 -d (jitgraft decompresses only gzip and zstd). If perf archive made it, run \
         mkdir DIR && tar xf FILE -C DIR instead, then pass --debug-dir DIR along with the recording",
    ),
    (
        |head| begins(head, b"# To display the perf.data header info") || contains(head, b"# Overhead "),
        "is output of perf report, which has no stacks",
        "pass perf.data itself, or the output of perf script",
    ),
    (
        |head| contains(head, b"Performance counter stats for"),
        "is output of perf stat, which has no stacks",
        "record a profile with `jitgraft record -- PROGRAM`",
    ),
    (
        |head| begins(head, b"{") || begins(head, b"["),
        "is JSON in an unknown format",
        "`jitgraft formats` lists the known ones",
    ),
];

/// `ET_CORE` in <elf.h>.
const ET_CORE: u8 = 4;

/// The type of an ELF file: the low byte of `e_type`, for either byte order. All types that matter are below 256.
/// `None` for other files.
fn elf_type(head: &[u8]) -> Option<u8> {
    // The second byte after the magic number is EI_DATA, in which 2 means big-endian.
    let is_big = *head.strip_prefix(b"\x7fELF")?.get(1)? == 2;
    head.get(if is_big { 17 } else { 16 }).copied()
}

/// True if a text starts with `prefix`, in upper or lower case. White space and a byte order mark before it are
/// ignored.
fn begins(head: &[u8], prefix: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    head.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn contains(head: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(&head[..head.len().min(4096)], part).is_some()
}

/// For a directory that isn't a recording: suggests a recording in it, if there is one.
pub(crate) fn suggest_recording(path: &Path) -> Option<String> {
    let inside = path.join("perf.data");
    io::is_there(&inside).then(|| format!("did you mean {}?", inside.display()))
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
            (b"PERFFILE", "a perf.data file of an unknown version"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0", "is a core dump"),
            (b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x03", "is an ELF file"),
            (b"<?xml version=\"1.0\"?><!DOCTYPE svg><svg>", "is a picture"),
            (b"\n<!DOCTYPE HTML><html>", "is a page"),
            (&tar, "is an archive (tar)"),
            (b"\xfd7zXZ\0\0", "xz -d"),
            (b"# Samples: 4\n# Overhead  Command", "output of perf report"),
            (b"\n Performance counter stats for 'true':", "output of perf stat"),
            (b"{\"a\": 1}", "is JSON"),
            (b"[1]", "is JSON"),
        ];
        for (head, said) in cases {
            let (message, remedy) = known_message(head).unwrap_or(("nothing known", ""));
            assert!(message.contains(said) || remedy.contains(said), "{said}: {message}; {remedy}");
        }
        for other in [&b""[..], b"hello", b"a;b 3\n", b"\x7fEL", b"<xml>"] {
            assert_eq!(known_message(other), None, "{other:?}");
        }
    }
}
