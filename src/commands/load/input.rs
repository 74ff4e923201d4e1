//! Opens an input, takes off what it is packed in (gzip, zstd, by magic), and finds its format by its content.

use crate::error::{Error, Result};
use crate::formats::detect;
use crate::formats::format::Format;
use crate::io::{self, Bytes, InPath};
use flate2::read::MultiGzDecoder;
use std::path::{Path, PathBuf};

/// An input, unpacked.
#[derive(Debug)]
pub struct Input {
    /// What it holds.
    pub bytes: Bytes,
    /// What it is.
    pub format: &'static Format,
}

/// How much of an input a format may look at to know its own.
const HEAD: usize = 1 << 16;

/// Packed in packed in packed: enough for anybody, and an end for a file that unpacks to itself.
const MAX_WRAPPINGS: usize = 4;

impl Input {
    /// Opens it.
    pub fn open(path: &InPath) -> Result<Self> {
        let bytes = unpack(io::open(path)?)?;
        let format = detect(&bytes[..bytes.len().min(HEAD)]).ok_or_else(|| unknown(&bytes))?;
        Ok(Self { bytes, format })
    }
}

fn unknown(bytes: &[u8]) -> Error {
    if bytes.is_empty() {
        return Error::new("is empty");
    }
    Error::new(format!("is none of the formats that can be read: {}", super::readable()))
}

fn unpack(mut bytes: Bytes) -> Result<Bytes> {
    for _ in 0..MAX_WRAPPINGS {
        bytes = match &bytes[..] {
            [0x1f, 0x8b, ..] => io::spool(MultiGzDecoder::new(&bytes[..]))
                .map_err(|error| Error::new("cannot decompress (gzip)").because(error))?,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => unpack_zstd(&bytes)?,
            _ => return Ok(bytes),
        };
    }
    Err(Error::new(format!("is packed more than {MAX_WRAPPINGS} times")))
}

fn unpack_zstd(bytes: &[u8]) -> Result<Bytes> {
    let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
    let spooled = decoder.map_err(Error::from).and_then(io::spool);
    spooled.map_err(|error| Error::new("cannot decompress (zstd)").because(error))
}

/// How an input is called in messages.
pub(super) fn shown(path: &InPath) -> PathBuf {
    match path {
        InPath::Stdin => PathBuf::from("(standard input)"),
        InPath::Path(path) => path.clone(),
    }
}

/// What is read when no input is named: a pipe on standard input, else `perf.data`, as perf does it.
pub fn default_input() -> InPath {
    use std::os::fd::AsFd;
    let stdin = std::io::stdin();
    let stat = rustix::fs::fstat(stdin.as_fd());
    let piped = stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo());
    if piped { InPath::Stdin } else { InPath::Path(Path::new("perf.data").to_owned()) }
}
