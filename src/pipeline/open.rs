//! Opens an input, takes off what it is packed in (gzip, zstd, by magic; an archive of `jitgraft pack`), and finds its format
//! by its content.

use super::archive::{self, Packed};
use super::job::Job;
use super::mistaken;
use super::progress::Progress;
use crate::bytes::utf16::{ByteOrder, Utf16Decoder};
use crate::contract::format::Format;
use crate::error::{Error, Result};
use crate::formats::{detect, unread};
use crate::io::door::{Door, Holes, Kind};
use crate::io::{self, Bytes, InPath, Stream};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An input, unpacked.
#[derive(Debug)]
pub struct Input {
    /// Its content.
    pub bytes: Bytes,
    /// Its format.
    pub format: &'static Format,
    /// The further streams of records, if it is a recording's directory (`perf record --threads`).
    pub streams: Option<Vec<StreamFile>>,
    /// Its wrappings, the outermost first.
    pub(crate) wrappings: Vec<Wrapping>,
    /// Its other files, if it is an archive.
    pub(crate) packed: Option<Packed>,
}

/// A file of a recording's directory that holds records only.
#[derive(Debug)]
pub struct StreamFile {
    /// The path.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Bytes,
}

/// The part of an input that a format may look at to recognize itself.
const HEAD: usize = 1 << 16;

/// As much is looked at where less does not give: a first line may be that long.
const LONGEST_HEAD: usize = HEAD << 11;

/// So much of an archive is looked at: the name of its first file.
const ARCHIVE_HEAD: usize = 512;

/// A part of a recording's directory, whatever it holds.
const PART: Kind = Kind { holes: |_| Some(Holes::Any), otherwise: "" };

/// Packed in packed in packed: enough for anybody, and an end for a file that unpacks to itself.
const MAX_WRAPPINGS: usize = 4;

impl Input {
    /// Opens it, whole.
    pub fn open(path: &InPath) -> Result<Self> {
        match Looked::at(path)? {
            Looked::Directory(directory) => Self::open_directory(&directory),
            Looked::File(file) => file.into_whole(),
        }
    }

    /// A recording's directory: `data` is in file form, every `data.N` holds records only.
    pub(crate) fn open_directory(input: &InPath) -> Result<Self> {
        let path = &shown(input);
        let (main, door) = (path.join("data"), input.door_to_parts());
        if !door.look(&main).is_some_and(|about| about.is_file()) {
            return Err(no_recording(path));
        }
        io::opens_directory(path);
        let part = |part: &Path| match door.open(part, PART) {
            Some(opened) => Ok(opened?.bytes),
            None => Err(Error::new("is not there any more").in_file(part)),
        };
        let bytes = unpack(part(&main)?)?.bytes;
        let stream = |path: PathBuf| Ok(StreamFile { bytes: part(&path)?, path });
        let streams = stream_paths(door, path).into_iter().map(stream);
        let main = Unpacked { bytes, wrappings: Vec::new() };
        Ok(Self { streams: Some(streams.collect::<Result<_>>()?), ..Self::of(main, None)? })
    }

    /// The recording in an archive.
    fn packed(packed: Packed) -> Result<Self> {
        let main = Unpacked { bytes: packed.recording()?, wrappings: Vec::new() };
        let streams: Vec<_> = packed.streams().map(|(path, bytes)| StreamFile { path, bytes }).collect();
        let streams = (!streams.is_empty()).then_some(streams);
        Ok(Self { streams, packed: Some(packed), ..Self::of(main, None)? })
    }

    /// The rest of an unpacked stream.
    pub(crate) fn spooled(stream: Stream) -> Result<Self> {
        Self::of(Unpacked { bytes: io::spool(stream)?, wrappings: Vec::new() }, None)
    }

    /// An input that was read and unpacked already; its format is detected by its content, if it is not known yet.
    fn of(Unpacked { bytes, wrappings }: Unpacked, known: Option<&'static Format>) -> Result<Self> {
        let head = || head_of(&bytes);
        let format = known.or_else(|| detect(head())).ok_or_else(|| mistaken::refused(head()))?;
        Ok(Self { bytes, format, streams: None, wrappings, packed: None })
    }
}

/// The error for a directory that is not a recording's.
fn no_recording(path: &Path) -> Error {
    let names = io::typed_names(path).unwrap_or_default();
    match unread::known_directory(names.iter().map(|name| name.as_encoded_bytes())) {
        Some(known) => Error::new(format!("is {}, which is not read: {}", known.name, known.remedy)),
        None => Error::new("is a directory, and not a recording's: it has no file called data")
            .with_remedy(mistaken::directory(path)),
    }
}

/// The streams of a recording's directory, by their number: there may be gaps.
fn stream_paths(door: Door<'_>, directory: &Path) -> Vec<PathBuf> {
    let number = |name: &OsStr| name.to_str()?.strip_prefix("data.")?.parse::<u64>().ok();
    let entries = door.entries(directory, |name| number(name).is_some()).into_iter();
    let mut streams: Vec<_> = entries.filter_map(|(name, _)| Some((number(&name)?, directory.join(name)))).collect();
    streams.sort();
    streams.into_iter().map(|(_, path)| path).collect()
}

/// An input whose first bytes can be looked at before it is known how it is to be read.
pub(crate) enum Looked {
    /// A recording's directory, or any other.
    Directory(InPath),
    /// Anything else.
    File(LookedFile),
}

/// A file, a pipe or a device, open, of which nothing was taken yet.
pub(crate) struct LookedFile {
    /// From its start, as packed as it is.
    stream: Stream,
    /// The file behind the stream, if it is a regular one that was at its start.
    regular: Option<File>,
    /// Its name.
    path: InPath,
    /// The user that it belongs to.
    owner: u32,
    /// Its wrappings, and its format, once they were detected.
    known: Option<(Vec<Wrapping>, &'static Format)>,
}

impl Looked {
    /// Opens an input.
    pub(crate) fn at(path: &InPath) -> Result<Self> {
        Self::through(path, |file| Box::new(file))
    }

    /// The same; as far as it is streamed, it is read through what `wrap` makes of it.
    pub(crate) fn through(path: &InPath, wrap: impl FnOnce(File) -> Box<dyn Read + Send>) -> Result<Self> {
        let Some(mut file) = io::open_stream(path)? else {
            return match path {
                InPath::Path(_) | InPath::Found(_) => Ok(Self::Directory(path.clone())),
                InPath::Stdin => Err(Error::new("is a directory")),
            };
        };
        let about = file.metadata()?;
        let at_start = about.is_file() && file.stream_position()? == 0;
        let regular = if at_start { Some(file.try_clone()?) } else { None };
        let (stream, path, owner) = (Stream::new(wrap(file)), path.clone(), about.uid());
        Ok(Self::File(LookedFile { stream, regular, path, owner, known: None }))
    }
}

impl LookedFile {
    /// The first bytes as they are, which stay to be read; of a slow pipe, what it has given.
    pub(crate) fn peek(&mut self, most: usize) -> Result<&[u8]> {
        self.stream.peek(most)
    }

    /// True if it is an archive, by its first bytes.
    pub(crate) fn is_archive(&mut self) -> Result<bool> {
        let head = self.stream.peek(HEAD)?;
        let may_be = wrapping(head).is_some() || archive::is_archive(head);
        Ok(may_be && archive::is_archive(&look_inside(head, ARCHIVE_HEAD).1))
    }

    /// The stream inside its wrappings, to be read once; as it is, if it is not packed.
    pub(crate) fn into_stream(self) -> Result<Stream> {
        let mut stream = self.stream;
        for _ in 0..MAX_WRAPPINGS {
            let Some(one) = wrapping(stream.peek(HEAD)?) else { break };
            stream = Stream::new(unwrap(Box::new(stream), &[one])?);
        }
        Ok(stream)
    }

    /// Its wrappings and its format, by as many of its first bytes as that takes. An error if the format is unknown;
    /// `None` if only the whole of what it is packed in shows it.
    fn format(&mut self) -> Result<Option<&(Vec<Wrapping>, &'static Format)>> {
        if self.is_archive()? {
            return Ok(None);
        }
        let mut most = HEAD;
        loop {
            let head = self.stream.peek_all(most)?;
            if head.is_empty() {
                return Err(empty(&self.path));
            }
            let is_all = head.len() < most;
            let (wrappings, start) = look_inside(head, most);
            if let Some(format) = detect(&start) {
                self.known = Some((wrappings, format));
                return Ok(self.known.as_ref());
            }
            let is_packed_and_short = !wrappings.is_empty() && start.len() < HEAD;
            if !is_packed_and_short && !is_one_line(&start) || most >= LONGEST_HEAD {
                return Err(mistaken::refused(&start));
            }
            if is_all {
                return if wrappings.is_empty() { Err(mistaken::refused(&start)) } else { Ok(None) };
            }
            most = (most << 4).min(LONGEST_HEAD);
        }
    }

    /// The whole of it, unpacked. An input from a pipe is recognized by its start before the rest is waited for.
    pub(crate) fn into_whole(mut self) -> Result<Input> {
        if self.is_archive()? {
            let (path, owner) = (shown(&self.path), self.owner);
            return Input::packed(archive::read(self.into_stream()?, &path, owner)?);
        }
        let Some(file) = self.regular else {
            if self.known.is_none() {
                self.format()?;
            }
            let unpacked = unpack(io::spool(self.stream)?)?;
            let known = self.known.map(|(_, format)| format);
            return if unpacked.bytes.is_empty() { Err(empty(&self.path)) } else { Input::of(unpacked, known) };
        };
        if file.metadata()?.len() == 0 {
            return Err(empty(&self.path));
        }
        let packed = io::map_open_file(file)?;
        Input::of(unpack(packed)?, self.known.map(|(_, format)| format))
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
        /// Its format.
        format: &'static Format,
        /// True if it can be opened again, and is not packed.
        plain: bool,
    },
}

impl Opened {
    /// Its format.
    pub(crate) fn format(&self) -> &'static Format {
        match self {
            Self::Whole(Input { format, .. }) | Self::Stream { format, .. } => format,
        }
    }

    /// All of it, for readers that need it more than once. An input that is packed, or cannot be opened again, is
    /// copied to a temporary file.
    pub(crate) fn into_whole(self, path: &InPath) -> Result<Self> {
        Ok(match self {
            Self::Stream { reader, format, plain } => {
                let bytes = if plain { io::open(path)? } else { io::spool(reader)? };
                Self::Whole(Input { bytes, format, streams: None, wrappings: Vec::new(), packed: None })
            }
            whole => whole,
        })
    }

    /// Looks at an input's first bytes, and opens it whole only if its format needs that. A stream that takes long is
    /// seen to go by.
    pub(crate) fn open(path: &InPath, job: &Job) -> Result<Self> {
        let mut looked = match Looked::through(path, |file| Progress::of_reading(file, job).1)? {
            Looked::Directory(directory) => return Input::open_directory(&directory).map(Self::Whole),
            Looked::File(looked) => looked,
        };
        match looked.format()?.cloned() {
            Some((wrappings, format)) if format.read.is_streamed() => {
                let is_there_again = looked.regular.is_some() && looked.path != InPath::Stdin;
                let plain = wrappings.is_empty() && is_there_again;
                Ok(Self::Stream { reader: unwrap(looked.stream.into_reader(), &wrappings)?, format, plain })
            }
            _ => looked.into_whole().map(Self::Whole),
        }
    }
}

/// The ways in which an input can be packed, and the encodings of texts that are not read as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrapping {
    /// By gzip.
    Gzip,
    /// By zstd.
    Zstd,
    /// UTF-8 behind a byte order mark.
    Utf8Mark,
    /// UTF-16 behind a byte order mark, as PowerShell's `>` writes it.
    Utf16(ByteOrder),
}

/// The content of an input that was packed, or not.
struct Unpacked {
    bytes: Bytes,
    /// The outermost first.
    wrappings: Vec<Wrapping>,
}

fn wrapping(bytes: &[u8]) -> Option<Wrapping> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Wrapping::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Wrapping::Zstd),
        [0xef, 0xbb, 0xbf, ..] => Some(Wrapping::Utf8Mark),
        // UTF-32's mark begins with that of UTF-16.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(Wrapping::Utf16(ByteOrder::Little)),
        [0xfe, 0xff, ..] => Some(Wrapping::Utf16(ByteOrder::Big)),
        _ => None,
    }
}

/// The bytes by which a format is known: more of them if the first line is long.
fn head_of(bytes: &[u8]) -> &[u8] {
    let head = &bytes[..bytes.len().min(HEAD)];
    if !is_one_line(head) {
        return head;
    }
    let longer = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = memchr::memchr(b'\n', longer).map_or(longer.len(), |end| longer.len().min(end + HEAD));
    &longer[..end]
}

/// True if a text has not come to the end of its first line.
fn is_one_line(head: &[u8]) -> bool {
    memchr::memchr2(b'\n', 0, head).is_none()
}

/// The wrapping of an input's first bytes, and up to `most` of the first bytes inside.
fn look_inside(head: &[u8], most: usize) -> (Vec<Wrapping>, Cow<'_, [u8]>) {
    let (mut wrappings, mut start) = (Vec::new(), Cow::Borrowed(head));
    while let Some(one) = wrapping(&start)
        && wrappings.len() < MAX_WRAPPINGS
    {
        let mut inside = Vec::new();
        // It ends somewhere inside, which is an error to the decoder and none to us.
        let _ = unwrap(Box::new(Cursor::new(start.into_owned())), &[one])
            .map(|reader| reader.take(most as u64).read_to_end(&mut inside));
        wrappings.push(one);
        start = Cow::Owned(inside);
    }
    (wrappings, start)
}

fn unwrap<'a>(mut reader: Box<dyn Read + Send + 'a>, wrappings: &[Wrapping]) -> Result<Box<dyn Read + Send + 'a>> {
    for wrapping in wrappings {
        reader = match wrapping {
            Wrapping::Gzip => Box::new(Unpacking { reader: MultiGzDecoder::new(reader), packing: "gzip" }),
            Wrapping::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(reader);
                let reader = decoder.map_err(|error| undecoded("zstd", error))?;
                Box::new(Unpacking { reader, packing: "zstd" })
            }
            Wrapping::Utf8Mark => {
                let mut mark = [0; 3];
                reader.read_exact(&mut mark)?;
                reader
            }
            Wrapping::Utf16(order) => {
                let mut mark = [0; 2];
                reader.read_exact(&mut mark)?;
                Box::new(Utf16Reader { reader, decoder: Some(Utf16Decoder::new(*order)), text: Vec::new(), taken: 0 })
            }
        };
    }
    Ok(reader)
}

/// Reads UTF-16 as UTF-8.
struct Utf16Reader<R> {
    reader: R,
    /// `None` behind the end of the input.
    decoder: Option<Utf16Decoder>,
    /// Decoded, the first bytes of it taken already.
    text: Vec<u8>,
    taken: usize,
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.taken == self.text.len() {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            self.text.clear();
            self.taken = 0;
            let mut piece = vec![0; UTF16_PIECE];
            let len = self.reader.read(&mut piece)?;
            decoder.decode(&piece[..len], &mut self.text);
            if len == 0 {
                decoder.finish(&mut self.text);
                self.decoder = None;
            }
        }
        let len = buffer.len().min(self.text.len() - self.taken);
        buffer[..len].copy_from_slice(&self.text[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}

/// So many bytes are decoded at once.
const UTF16_PIECE: usize = 1 << 16;

/// Marks an error as coming from unpacking, and not from the place that the content is written to.
struct Unpacking<R> {
    reader: R,
    packing: &'static str,
}

impl<R: Read> Read for Unpacking<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(buffer).map_err(|error| {
            // Damage of an input that is packed twice is reported for the layer that is cut.
            let is_told = error.get_ref().is_some_and(|inner| inner.is::<Error>());
            match error.kind() {
                kind if !is_told && kind != ErrorKind::Interrupted => {
                    std::io::Error::new(kind, undecoded(self.packing, error))
                }
                _ => error,
            }
        })
    }
}

/// An input without a byte.
pub(crate) fn empty(path: &InPath) -> Error {
    let remedy = match path {
        InPath::Stdin if io::is_there(Path::new("perf.data")) => {
            Some("to read the perf.data that is here: -i perf.data")
        }
        InPath::Stdin => None,
        InPath::Path(_) | InPath::Found(_) => Some("its writer was stopped too early, or the disk was full"),
    };
    Error::new("is empty").with_remedy(remedy.map(str::to_owned))
}

/// The content of packed bytes; the bytes themselves if they are not packed.
fn unpack(mut bytes: Bytes) -> Result<Unpacked> {
    let mut wrappings = Vec::new();
    while wrappings.len() < MAX_WRAPPINGS {
        let Some(one) = wrapping(&bytes) else { return Ok(Unpacked { bytes, wrappings }) };
        let inside = io::spool(unwrap(Box::new(&bytes[..]), &[one])?)?;
        bytes = inside;
        wrappings.push(one);
    }
    Err(Error::new(format!("is packed more than {MAX_WRAPPINGS} times")))
}

fn undecoded(packing: &str, error: std::io::Error) -> Error {
    Error::new(format!("cannot decompress ({packing})")).because(error)
}

/// Looks whether all inputs but the first can be inputs at all, before the first is worked on: the last word of a
/// command is easily meant to be its output.
pub(crate) fn check_further(inputs: &[InPath]) -> Result<()> {
    for path in inputs.iter().skip(1).filter_map(InPath::path) {
        check_one(path).map_err(|error| error.in_file(path))?;
    }
    Ok(())
}

fn check_one(path: &Path) -> Result<()> {
    if io::is_file(path) {
        let Looked::File(mut looked) = Looked::at(&InPath::Path(path.to_owned()))? else { return Ok(()) };
        return looked.format().map(drop);
    }
    let written = path.extension().is_some_and(|extension| mistaken::WRITTEN.iter().any(|known| extension == *known));
    if written && !io::is_there(path) {
        let remedy = format!("to write it, pass -o {}", path.display());
        return Err(Error::new("is to be read, and is not there").with_remedy(Some(remedy)));
    }
    if io::is_there(path) { Ok(()) } else { io::map_file(path).map(|_| ()) }
}

/// The way an input is called in messages.
pub fn shown(path: &InPath) -> PathBuf {
    path.path().map_or_else(|| PathBuf::from("(standard input)"), Path::to_owned)
}

/// The input that is read if no input is named: standard input if it is a pipe or a file, else `perf.data`, like perf
/// it.
pub fn default_input() -> InPath {
    use std::os::fd::AsFd;
    let stdin = std::io::stdin();
    let stat = rustix::fs::fstat(stdin.as_fd());
    let kind = stat.map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    let piped = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file());
    if piped { InPath::Stdin } else { InPath::Path(Path::new("perf.data").to_owned()) }
}
