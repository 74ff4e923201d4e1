//! Opens an input, takes off what it is packed in (gzip, zstd, by magic), and finds its format by its content.

use crate::error::{Error, Result};
use crate::formats::format::{Format, Read as How};
use crate::formats::{FORMATS, detect};
use crate::io::{self, Bytes, InPath};
use flate2::read::MultiGzDecoder;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An input, unpacked.
#[derive(Debug)]
pub struct Input {
    /// What it holds.
    pub bytes: Bytes,
    /// Further files of records, of a recording that is a directory (`perf record --threads`).
    pub parts: Vec<Bytes>,
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
        match path {
            InPath::Path(path) if path.is_dir() => Self::open_directory(path),
            _ => Self::of(io::open(path)?),
        }
    }

    /// A recording's directory: `data` is in file form, `data.0`, `data.1`, … hold records only.
    fn open_directory(path: &Path) -> Result<Self> {
        let mut input = Self::of(io::map_file(&recording_in(path)?)?)?;
        for number in 0.. {
            let part = path.join(format!("data.{number}"));
            if !part.is_file() {
                break;
            }
            input.parts.push(io::map_file(&part)?);
        }
        Ok(input)
    }

    /// Unpacks what was read already.
    pub(crate) fn of(bytes: Bytes) -> Result<Self> {
        let bytes = unpack(bytes)?;
        let format = detect(&bytes[..bytes.len().min(HEAD)]).ok_or_else(|| unknown(&bytes))?;
        Ok(Self { bytes, parts: Vec::new(), format })
    }
}

/// The main file of a recording that is a directory.
pub(crate) fn recording_in(directory: &Path) -> Result<PathBuf> {
    let main = directory.join("data");
    match main.is_file() {
        true => Ok(main),
        false => Err(Error::new("is a directory, and not a recording's: it has no file called data")),
    }
}

/// An input as its format wants it.
pub(crate) enum Opened {
    /// All of it.
    Whole(Input),
    /// One piece after the other: it may be larger than memory.
    Stream {
        /// The rest of it, unpacked.
        reader: Box<dyn Read + Send>,
        /// What it is.
        format: &'static Format,
        /// Whether it can be opened again, and is not packed.
        plain: bool,
    },
}

impl Opened {
    /// Looks at an input's first bytes, and opens it whole only if its format needs that.
    pub(crate) fn open(path: &InPath) -> Result<Self> {
        let Some(mut raw) = io::open_stream(path)? else { return Input::open(path).map(Self::Whole) };
        let begin = if raw.metadata()?.is_file() { Some(raw.stream_position()?) } else { None };
        let mut head = Vec::new();
        raw.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let (wrappings, start) = look_inside(&head);
        match (detect(&start), begin) {
            (Some(format), _) if matches!(format.read, How::Stream(_) | How::Spans(_)) => {
                let plain = wrappings.is_empty() && *path != InPath::Stdin && begin.is_some();
                let reader = unwrap(Box::new(Cursor::new(head).chain(raw)), &wrappings)?;
                Ok(Self::Stream { reader, format, plain })
            }
            (_, Some(begin)) => {
                // Standard input shares its position with us.
                raw.seek(SeekFrom::Start(begin))?;
                Input::open(path).map(Self::Whole)
            }
            (_, None) => Input::of(io::spool(Cursor::new(head).chain(raw))?).map(Self::Whole),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Wrapping {
    Gzip,
    Zstd,
}

fn wrapping(bytes: &[u8]) -> Option<Wrapping> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Wrapping::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Wrapping::Zstd),
        _ => None,
    }
}

/// What an input's first bytes are packed in, and the first bytes inside.
fn look_inside(head: &[u8]) -> (Vec<Wrapping>, Vec<u8>) {
    let (mut wrappings, mut start) = (Vec::new(), head.to_vec());
    while let Some(one) = wrapping(&start)
        && wrappings.len() < MAX_WRAPPINGS
    {
        let mut inside = Vec::new();
        let packed = std::mem::take(&mut start);
        // It ends somewhere inside, which is an error to the decoder and none to us.
        let _ = unwrap(Box::new(Cursor::new(packed)), &[one])
            .map(|reader| reader.take(HEAD as u64).read_to_end(&mut inside));
        wrappings.push(one);
        start = inside;
    }
    (wrappings, start)
}

fn unwrap(mut reader: Box<dyn Read + Send>, wrappings: &[Wrapping]) -> Result<Box<dyn Read + Send>> {
    for wrapping in wrappings {
        reader = match wrapping {
            Wrapping::Gzip => Box::new(MultiGzDecoder::new(reader)),
            Wrapping::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(reader);
                Box::new(decoder.map_err(|error| Error::new("cannot decompress (zstd)").because(error))?)
            }
        };
    }
    Ok(reader)
}

/// The stream inside of what a stream is packed in.
pub(crate) fn unpacked(mut stream: io::Stream) -> Result<io::Stream> {
    for _ in 0..MAX_WRAPPINGS {
        let Some(one) = wrapping(stream.peek(HEAD)?) else { break };
        stream = io::Stream::new(unwrap(Box::new(stream), &[one])?);
    }
    Ok(stream)
}

fn unknown(bytes: &[u8]) -> Error {
    if bytes.is_empty() {
        return Error::new("is empty");
    }
    Error::new(format!("is none of the formats that can be read: {}", readable()))
}

/// The names of all formats that can be read, for a message.
fn readable() -> String {
    let readable = FORMATS.iter().filter(|format| !matches!(format.read, How::No));
    readable.map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// What is inside of what bytes are packed in; the bytes themselves if they are not packed.
pub(crate) fn unpack(mut bytes: Bytes) -> Result<Bytes> {
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
pub fn shown(path: &InPath) -> PathBuf {
    match path {
        InPath::Stdin => PathBuf::from("(standard input)"),
        InPath::Path(path) => path.clone(),
    }
}

/// What is read when no input is named: standard input if it is a pipe or a file, else `perf.data`, as perf does it.
pub fn default_input() -> InPath {
    use std::os::fd::AsFd;
    let stdin = std::io::stdin();
    let stat = rustix::fs::fstat(stdin.as_fd());
    let kind = stat.map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    let piped = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file());
    if piped { InPath::Stdin } else { InPath::Path(Path::new("perf.data").to_owned()) }
}
