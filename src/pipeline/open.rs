//! Opens an input, unpacks it, and detects its format from the contents. Recognizes gzip and zstd by their magic
//! numbers, and archives that `jitgraft pack` made.

use super::archive::{self, Packed};
use super::job::Job;
use super::mistaken;
use super::progress::Progress;
use crate::bytes::utf16::{ByteOrder, Utf16Decoder};
use crate::contract::format::Format;
use crate::error::{Error, Result, STDIN};
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

/// An input that has been read completely and unpacked.
#[derive(Debug)]
pub struct Input {
    /// The unpacked content.
    pub bytes: Bytes,
    /// The format that was detected from the content.
    pub format: &'static Format,
    /// If the input is a recording's directory (`perf record --threads`), the files with records apart from its main
    /// file; otherwise `None`.
    pub streams: Option<Vec<StreamFile>>,
    /// How the input was packed, outermost layer first. Empty if it wasn't packed.
    pub(crate) wrappings: Vec<Wrapping>,
    /// The archive, if the input was one that `jitgraft pack` made.
    pub(crate) packed: Option<Packed>,
}

/// A file with records only (`data.N`), in a recording's directory.
#[derive(Debug)]
pub struct StreamFile {
    /// The path.
    pub path: PathBuf,
    /// The content.
    pub bytes: Bytes,
}

/// How many bytes at the start of the content are passed to the functions that recognize a format.
const HEAD: usize = 1 << 16;

/// The most bytes that are passed to the functions that recognize a format. More than [`HEAD`] are passed if the first
/// line is longer than that.
const LONGEST_HEAD: usize = HEAD << 11;

/// How many bytes are needed to recognize an archive, by the name of its first file.
const ARCHIVE_HEAD: usize = 512;

/// How files in a recording's directory are opened: with any content, because only reading their records shows whether
/// they are valid.
const PART: Kind = Kind { holes: |_| Some(Holes::Any), otherwise: "" };

/// The maximum number of layers of compression. The limit also stops at a file that decompresses to itself.
const MAX_WRAPPINGS: usize = 4;

impl Input {
    /// Opens an input and reads all of it.
    pub fn open(path: &InPath) -> Result<Self> {
        match PeekedInput::open(path)? {
            PeekedInput::Directory(directory) => Self::open_directory(&directory),
            PeekedInput::File(file) => file.into_whole(),
        }
    }

    /// Opens a recording's directory. Its file `data` is a complete recording; each `data.N` only contains records.
    pub(crate) fn open_directory(input: &InPath) -> Result<Self> {
        let path = &shown(input);
        let main = path.join("data");
        let door = input.door_to_parts();
        if !door.look(&main).is_some_and(|about| about.is_file()) {
            return Err(no_recording(path));
        }
        io::remember_input_directory(path);
        let bytes = unpack(open_part(&door, &main)?)?.bytes;
        let mut streams = Vec::new();
        for path in stream_paths(door, path) {
            streams.push(StreamFile { bytes: open_part(&door, &path)?, path });
        }
        // How `data` is packed isn't kept: an output that is made of a directory is a single plain file.
        let main = Unpacked { bytes, wrappings: Vec::new() };
        Ok(Self { streams: Some(streams), ..Self::from_unpacked(main, None, input)? })
    }

    /// Creates the input for the recording in an archive.
    fn from_archive(archive: Packed) -> Result<Self> {
        let main = Unpacked { bytes: archive.recording()?, wrappings: Vec::new() };
        let streams: Vec<_> = archive.streams().map(|(path, bytes)| StreamFile { path, bytes }).collect();
        let streams = (!streams.is_empty()).then_some(streams);
        Ok(Self { streams, packed: Some(archive), ..Self::from_unpacked(main, None, &InPath::Stdin)? })
    }

    /// Creates the input for bytes in memory.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::new("is empty"));
        }
        let (wrappings, start) = look_inside(&bytes[..bytes.len().min(HEAD)], ARCHIVE_HEAD);
        if archive::is_archive(&start) {
            let reader = unpack_layers(Box::new(Cursor::new(bytes)), &wrappings)?;
            // Bytes in memory have no owner. The current user counts as such, so that the files in the archive are
            // trusted.
            let owner = rustix::process::geteuid().as_raw();
            return Self::from_archive(archive::read(Stream::new(reader), &shown(&InPath::Stdin), owner)?);
        }
        Self::from_unpacked(unpack(Bytes::Owned(bytes))?, None, &InPath::Stdin)
    }

    /// Reads the rest of an unpacked stream into a temporary file.
    pub(crate) fn from_stream(stream: Stream) -> Result<Self> {
        Self::from_unpacked(Unpacked { bytes: io::spool(stream)?, wrappings: Vec::new() }, None, &InPath::Stdin)
    }

    /// Creates an input from unpacked contents. Detects the format, unless it is known. `path` is only needed for error
    /// messages.
    fn from_unpacked(unpacked: Unpacked, known_format: Option<&'static Format>, path: &InPath) -> Result<Self> {
        let Unpacked { bytes, wrappings } = unpacked;
        let format = match known_format {
            Some(format) => format,
            None => {
                let head = head_of(&bytes);
                detect(head).ok_or_else(|| mistaken::unknown_file(head, path))?
            }
        };
        Ok(Self { bytes, format, streams: None, wrappings, packed: None })
    }
}

/// Opens one of the files in a recording's directory.
fn open_part(door: &Door<'_>, path: &Path) -> Result<Bytes> {
    match door.open(path, PART) {
        Some(opened) => Ok(opened?.bytes),
        None => Err(Error::new("no longer exists").in_file(path)),
    }
}

/// The error for a directory that isn't a recording.
fn no_recording(path: &Path) -> Error {
    let names = io::typed_names(path).unwrap_or_default();
    match unread::recognize_directory(names.iter().map(|name| name.as_encoded_bytes())) {
        Some(known) => Error::new(format!("is {}, which jitgraft does not read", known.name))
            .with_remedy(Some(known.remedy.to_owned())),
        None => Error::new("is a directory, but not one that perf record wrote")
            .with_remedy(mistaken::suggest_recording(path)),
    }
}

/// The paths of the files `data.N` in a recording's directory, sorted by number. There may be gaps in the numbers.
fn stream_paths(door: Door<'_>, directory: &Path) -> Vec<PathBuf> {
    let mut streams: Vec<(u64, PathBuf)> = Vec::new();
    for (name, _) in door.entries(directory, |name| stream_number(name).is_some()) {
        if let Some(number) = stream_number(&name) {
            streams.push((number, directory.join(name)));
        }
    }
    streams.sort();
    streams.into_iter().map(|(_, path)| path).collect()
}

/// The number in a file name of the form `data.N`; `None` for other names.
fn stream_number(name: &OsStr) -> Option<u64> {
    name.to_str()?.strip_prefix("data.")?.parse().ok()
}

/// An input that is open and whose first bytes can be examined, before it is decided how to read it.
pub(crate) enum PeekedInput {
    /// A directory, whether it is a recording's or not.
    Directory(InPath),
    /// A file, pipe or device.
    File(PeekedFile),
}

/// A file, pipe or device that is open. Nothing has been taken from it yet.
pub(crate) struct PeekedFile {
    /// The input from its start, not yet unpacked.
    stream: Stream,
    /// The open file, if it is a regular file that was opened at its start. Such a file can be mapped into memory.
    regular: Option<File>,
    path: InPath,
    /// The ID of the user who owns the file.
    owner: u32,
    /// How the input is packed, and its format; `None` until [`format`](Self::format) has found out.
    detected: Option<(Vec<Wrapping>, &'static Format)>,
}

impl PeekedInput {
    /// Opens an input.
    pub(crate) fn open(path: &InPath) -> Result<Self> {
        Self::open_through(path, |file| Box::new(file))
    }

    /// Opens an input. If it is read as a stream, it is read through the reader that `wrap` makes of the file.
    pub(crate) fn open_through(path: &InPath, wrap: impl FnOnce(File) -> Box<dyn Read + Send>) -> Result<Self> {
        let Some(mut file) = io::open_stream(path)? else {
            return match path {
                InPath::Path(_) | InPath::Found(_) => Ok(Self::Directory(path.clone())),
                InPath::Stdin => Err(Error::new("is a directory")),
            };
        };
        let about = file.metadata()?;
        // A regular file can be mapped into memory as a whole, unless somebody has read a part of it already (standard
        // input).
        let at_start = about.is_file() && file.stream_position()? == 0;
        let regular = if at_start { Some(file.try_clone()?) } else { None };
        Ok(Self::File(PeekedFile {
            stream: Stream::new(wrap(file)),
            regular,
            path: path.clone(),
            owner: about.uid(),
            detected: None,
        }))
    }
}

impl PeekedFile {
    /// Returns up to `most` bytes from the start, still packed, without taking them. There may be fewer if a pipe is
    /// slow.
    pub(crate) fn peek(&mut self, most: usize) -> Result<&[u8]> {
        self.stream.peek(most)
    }

    /// True if the input is an archive that `jitgraft pack` made, whether it is compressed or not.
    pub(crate) fn is_archive(&mut self) -> Result<bool> {
        let head = self.stream.peek(HEAD)?;
        let may_be = recognize_wrapping(head).is_some() || archive::is_archive(head);
        Ok(may_be && archive::is_archive(&look_inside(head, ARCHIVE_HEAD).1))
    }

    /// Returns bytes from the start of the unpacked content, without taking them: as many as are needed to recognize
    /// most formats.
    pub(crate) fn peek_unpacked(&mut self) -> Result<Cow<'_, [u8]>> {
        Ok(look_inside(self.stream.peek_all(HEAD)?, HEAD).1)
    }

    /// Returns the unpacked content as a stream, which can be read once.
    pub(crate) fn into_stream(self) -> Result<Stream> {
        let mut stream = self.stream;
        for _ in 0..MAX_WRAPPINGS {
            let Some(one) = recognize_wrapping(stream.peek(HEAD)?) else { break };
            stream = Stream::new(unpack_layers(Box::new(stream), &[one])?);
        }
        Ok(stream)
    }

    /// Detects how the input is packed and its format, from as few bytes as possible, and stores both in `detected`.
    /// `None` for an archive, and if all of the input must be unpacked to find out. Fails if the format is unknown.
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
            let is_whole_input = head.len() < most;
            let (wrappings, start) = look_inside(head, most);
            if let Some(format) = detect(&start) {
                self.detected = Some((wrappings, format));
                return Ok(self.detected.as_ref());
            }
            // More bytes help if so far only little could be unpacked, or if the first line hasn't ended yet.
            let is_packed_and_short = !wrappings.is_empty() && start.len() < HEAD;
            let may_need_more = is_packed_and_short || is_one_line(&start);
            if !may_need_more || most >= LONGEST_HEAD {
                return Err(mistaken::unknown_file(&start, &self.path));
            }
            // The input has no more bytes. If it is packed, `look_inside` may not have unpacked all of them. In that
            // case, only unpacking everything can tell the format.
            if is_whole_input {
                return if wrappings.is_empty() { Err(mistaken::unknown_file(&start, &self.path)) } else { Ok(None) };
            }
            most = (most << 4).min(LONGEST_HEAD);
        }
    }

    /// Reads and unpacks all of the input. If it is a pipe, its format is detected first, so that a wrong format is
    /// reported at once and not only when the pipe ends.
    pub(crate) fn into_whole(mut self) -> Result<Input> {
        if self.is_archive()? {
            let path = shown(&self.path);
            let owner = self.owner;
            return Input::from_archive(archive::read(self.into_stream()?, &path, owner)?);
        }
        if self.regular.is_none() && self.detected.is_none() {
            self.format()?;
        }
        let known_format = self.detected.map(|(_, format)| format);
        // Anything but a regular file can't be mapped, so it is copied (`spool`).
        let Some(file) = self.regular else {
            let unpacked = unpack(io::spool(self.stream)?)?;
            if unpacked.bytes.is_empty() {
                return Err(empty(&self.path));
            }
            return Input::from_unpacked(unpacked, known_format, &self.path);
        };
        if file.metadata()?.len() == 0 {
            return Err(empty(&self.path));
        }
        Input::from_unpacked(unpack(io::map_open_file(file)?)?, known_format, &self.path)
    }
}

/// An open input in the form that its format needs: all of it in memory, or a stream.
pub(crate) enum Opened {
    /// An input that has been read completely.
    Whole(Input),
    /// An input to be read as a stream, which may be larger than memory.
    Stream {
        /// The unpacked content from its start.
        reader: Box<dyn Read + Send>,
        format: &'static Format,
        /// True if the input isn't packed and can be opened again.
        plain: bool,
    },
}

impl Opened {
    /// The format of the input.
    pub(crate) fn format(&self) -> &'static Format {
        match self {
            Self::Whole(Input { format, .. }) | Self::Stream { format, .. } => format,
        }
    }

    /// Reads all of the input, for readers that need it more than once. If it is packed or can't be opened again, it is
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

    /// Opens an input. It is only read completely if its format requires that. While a stream is read, a progress bar
    /// is shown.
    pub(crate) fn open(path: &InPath, job: &Job) -> Result<Self> {
        match PeekedInput::open_through(path, |file| Progress::for_reading(file, job).1)? {
            PeekedInput::Directory(directory) => Input::open_directory(&directory).map(Self::Whole),
            PeekedInput::File(file) => Self::from_peeked(file),
        }
    }

    /// Detects the format of an open file. It is only read completely if its format requires that.
    pub(crate) fn from_peeked(mut file: PeekedFile) -> Result<Self> {
        match file.format()?.cloned() {
            Some((wrappings, format)) if format.read.is_streamed() => {
                // An input is opened again by its path, which standard input lacks even if it is a regular file.
                let can_be_opened_again = file.regular.is_some() && file.path != InPath::Stdin;
                let plain = wrappings.is_empty() && can_be_opened_again;
                Ok(Self::Stream { reader: unpack_layers(file.stream.into_reader(), &wrappings)?, format, plain })
            }
            // The whole input is needed: by the reader of its format, because it is an archive, or because only
            // unpacking all of it shows the format.
            _ => file.into_whole().map(Self::Whole),
        }
    }

    /// Detects the format of an input whose bytes are in memory.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let input = Input::from_bytes(bytes)?;
        if input.packed.is_some() || !input.format.read.is_streamed() {
            return Ok(Self::Whole(input));
        }
        Ok(Self::Stream { format: input.format, reader: Box::new(Cursor::new(input.bytes)), plain: false })
    }
}

/// A way in which an input may be packed: a compression, or a text encoding that must be converted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrapping {
    /// Compressed with gzip.
    Gzip,
    /// Compressed with zstd.
    Zstd,
    /// UTF-8 with a byte order mark.
    Utf8Mark,
    /// UTF-16 with a byte order mark, as PowerShell's `>` writes it.
    Utf16(ByteOrder),
    /// Text quoted in a mail: lines start with `>`.
    Quoted,
    /// Text pasted from an indented document.
    Indented(Indent),
}

/// The blanks or tabs that are in front of every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indent {
    blank: u8,
    count: usize,
}

/// The unpacked content of an input, whose format may be unknown.
struct Unpacked {
    bytes: Bytes,
    /// How the content was packed, outermost layer first.
    wrappings: Vec<Wrapping>,
}

/// Recognizes the outermost layer in which data is packed, by its first bytes. `None` if it isn't packed.
fn recognize_wrapping(bytes: &[u8]) -> Option<Wrapping> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Wrapping::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Wrapping::Zstd),
        [0xef, 0xbb, 0xbf, ..] => Some(Wrapping::Utf8Mark),
        // The byte order mark of UTF-32. Its first two bytes are the mark of UTF-16, so it has to be tested first.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(Wrapping::Utf16(ByteOrder::Little)),
        [0xfe, 0xff, ..] => Some(Wrapping::Utf16(ByteOrder::Big)),
        _ if is_quoted(bytes) => Some(Wrapping::Quoted),
        [b' ' | b'\t' | b'\r' | b'\n', ..] => common_indent(bytes).map(Wrapping::Indented),
        _ => None,
    }
}

/// True for text that was quoted in a mail: at least two lines, and more than two thirds of all lines, start with `>`.
/// Before and after them, there may be some text of the mail. Blank lines don't count.
fn is_quoted(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(QUOTED_HEAD)];
    // A quick test that rejects most inputs, as they have no `>` near their start.
    if memchr::memchr(b'>', &head[..head.len().min(QUOTED_START)]).is_none() {
        return false;
    }
    let (mut quoted, mut others) = (0, 0);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        // A line without a line break may be cut off by the end of `head`. It counts only if it is quoted.
        if line.starts_with(b">") {
            quoted += 1;
        } else if line.ends_with(b"\n") && !line.trim_ascii().is_empty() {
            others += 1;
        }
    }
    quoted >= 2 && quoted > 2 * others
}

/// How lines start in formats whose readers don't accept indented lines. In these formats, a text that is indented as a
/// whole is unindented first. perf script's text and folded stacks aren't listed, because their readers accept any
/// indentation.
const INDENTED_LINES: &[&[u8]] = &[
    b"# callgrind format",
    b"version: 1",
    b"creator:",
    b"events:",
    b"positions:",
    b"desc: ",
    b"Analysis of sampling ",
    b"Function Stack,",
    b"COST CENTRE ",
];

/// The blanks or tabs that all lines at the start of a text have in front, if the text is in one of the formats of
/// [`INDENTED_LINES`]. `None` for other texts.
fn common_indent(bytes: &[u8]) -> Option<Indent> {
    let head = &bytes[..bytes.len().min(QUOTED_HEAD)];
    // Blank lines don't count. So the last line doesn't either if the end of `head` cuts it off within its indentation.
    let lines = head.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut common: Option<Indent> = None;
    let mut is_known_format = false;
    for line in lines {
        let blank = line[0];
        if !matches!(blank, b' ' | b'\t') {
            return None;
        }
        let mut count = line.iter().take_while(|byte| **byte == blank).count();
        if let Some(earlier) = common {
            // A line that starts with a tab has no indentation in common with one that starts with a blank.
            if earlier.blank != blank {
                return None;
            }
            count = count.min(earlier.count);
        }
        common = Some(Indent { blank, count });
        is_known_format |= INDENTED_LINES.iter().any(|start| line.trim_ascii_start().starts_with(start));
    }
    common.filter(|_| is_known_format)
}

/// The number of bytes in which [`is_quoted`] and [`common_indent`] look for lines.
const QUOTED_HEAD: usize = 1 << 12;

/// The number of bytes at the start within which the first quoted line must start.
const QUOTED_START: usize = 1 << 10;

/// The bytes at the start of the content that are used to detect the format. More than [`HEAD`] if the first line is
/// long.
fn head_of(bytes: &[u8]) -> &[u8] {
    let head = &bytes[..bytes.len().min(HEAD)];
    if !is_one_line(head) {
        return head;
    }
    let longer = &bytes[..bytes.len().min(LONGEST_HEAD)];
    match memchr::memchr(b'\n', longer) {
        // The long first line, and up to `HEAD` bytes after it.
        Some(line_end) => &longer[..longer.len().min(line_end + HEAD)],
        None => longer,
    }
}

/// True if the bytes contain neither a line break nor NUL, so that the first line (of a text) may continue.
fn is_one_line(head: &[u8]) -> bool {
    memchr::memchr2(b'\n', 0, head).is_none()
}

/// Unpacks the first bytes of an input (`head`). Returns how it is packed, and up to `most` bytes of the contents.
/// Damage isn't reported: there are just fewer bytes.
fn look_inside(head: &[u8], most: usize) -> (Vec<Wrapping>, Cow<'_, [u8]>) {
    let mut wrappings = Vec::new();
    let mut start = Cow::Borrowed(head);
    while let Some(wrapping) = recognize_wrapping(&start)
        && wrappings.len() < MAX_WRAPPINGS
    {
        let mut inside = Vec::new();
        if let Ok(reader) = unpack_layers(Box::new(Cursor::new(start.into_owned())), &[wrapping]) {
            // The packed bytes end where we stopped reading the input. The decoder reports that as an error, but here
            // it is none.
            let _ = reader.take(most as u64).read_to_end(&mut inside);
        }
        wrappings.push(wrapping);
        start = Cow::Owned(inside);
    }
    (wrappings, start)
}

/// Returns a reader that unpacks what `reader` reads. `wrappings` are the layers, outermost first.
fn unpack_layers<'a>(
    mut reader: Box<dyn Read + Send + 'a>,
    wrappings: &[Wrapping],
) -> Result<Box<dyn Read + Send + 'a>> {
    for wrapping in wrappings {
        reader = match wrapping {
            Wrapping::Gzip => Box::new(Unpacking { reader: MultiGzDecoder::new(reader), packing: "gzip" }),
            Wrapping::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(reader);
                let reader = decoder.map_err(|error| decompression_error("zstd", error))?;
                Box::new(Unpacking { reader, packing: "zstd" })
            }
            // Drop the byte order mark, which is of no use in UTF-8.
            Wrapping::Utf8Mark => {
                let mut mark = [0; 3];
                reader.read_exact(&mut mark)?;
                reader
            }
            // The byte order is known already (`order`), so drop the mark here, too.
            Wrapping::Utf16(order) => {
                let mut mark = [0; 2];
                reader.read_exact(&mut mark)?;
                Box::new(Utf16Reader { reader, decoder: Some(Utf16Decoder::new(*order)), text: Vec::new(), taken: 0 })
            }
            Wrapping::Quoted => Box::new(QuotedReader { reader, place: QuotedPlace::Start }),
            Wrapping::Indented(indent) => Box::new(IndentedReader { reader, indent: *indent, removed: 0 }),
        };
    }
    Ok(reader)
}

/// Converts UTF-16 to UTF-8.
struct Utf16Reader<R> {
    reader: R,
    /// The decoder of UTF-16; `None` after the end of the input.
    decoder: Option<Utf16Decoder>,
    /// Text converted to UTF-8. Its first `taken` bytes have been returned already.
    text: Vec<u8>,
    taken: usize,
}

impl<R: Read> Read for Utf16Reader<R> {
    /// Reads UTF-16 and returns it as UTF-8.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // Decode until there is some text: returning 0 would mean the end of the input. A piece may consist of half a
        // character only.
        while self.taken == self.text.len() {
            // `None`: the input has ended, and all of its text was returned.
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

/// Removes the indentation of lines, or as much of it as a line has.
struct IndentedReader<R> {
    reader: R,
    indent: Indent,
    /// How many blanks were removed from the current line. Once a byte after the line's indentation was read, this is
    /// [`Indent::count`] even if fewer were removed, so that nothing more is removed from the line.
    removed: usize,
}

impl<R: Read> Read for IndentedReader<R> {
    /// Reads text and removes the indentation at the start of each line. `removed` counts the blanks that were removed
    /// from the current line. At the first byte that isn't a blank, it is set to the full number, so that nothing more
    /// is removed from this line.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let len = self.reader.read(buffer)?;
            let mut kept_len = 0;
            for index in 0..len {
                let byte = buffer[index];
                if self.removed < self.indent.count && byte == self.indent.blank {
                    self.removed += 1;
                    continue;
                }
                self.removed = if byte == b'\n' { 0 } else { self.indent.count };
                buffer[kept_len] = byte;
                kept_len += 1;
            }
            // If all bytes were indentation, read more: returning 0 would mean the end of the input.
            if kept_len > 0 || len == 0 {
                return Ok(kept_len);
            }
        }
    }
}

/// Removes the marks of quoted lines: each `>` at the start, with the blank after it.
struct QuotedReader<R> {
    reader: R,
    place: QuotedPlace,
}

/// Where in a quoted line the next byte is.
#[derive(Clone, Copy)]
enum QuotedPlace {
    /// At the start, or after the blank that follows a mark.
    Start,
    /// Directly after a mark. If the next byte is a blank, it belongs to the mark.
    Mark,
    /// In the text.
    Text,
}

impl<R: Read> Read for QuotedReader<R> {
    /// Reads text that was quoted in a mail, and removes the marks (`> `) at the start of each line. `place` says where
    /// in its line the next byte is.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let len = self.reader.read(buffer)?;
            let mut kept_len = 0;
            for index in 0..len {
                let byte = buffer[index];
                self.place = match (self.place, byte) {
                    // Marks and the blank after each are left out. Further marks may follow the blank (`> > text`).
                    (QuotedPlace::Start | QuotedPlace::Mark, b'>') => QuotedPlace::Mark,
                    (QuotedPlace::Mark, b' ') => QuotedPlace::Start,
                    (_, byte) => {
                        buffer[kept_len] = byte;
                        kept_len += 1;
                        if byte == b'\n' { QuotedPlace::Start } else { QuotedPlace::Text }
                    }
                };
            }
            // Returning 0 would mean the end of the input, so read on if only marks have been read.
            if kept_len > 0 || len == 0 {
                return Ok(kept_len);
            }
        }
    }
}

/// How many bytes are converted at once.
const UTF16_PIECE: usize = 1 << 16;

/// Marks read errors as errors of decompression, so that they can be told apart from errors in writing the output.
struct Unpacking<R> {
    reader: R,
    packing: &'static str,
}

impl<R: Read> Read for Unpacking<R> {
    /// Reads decompressed bytes, and turns errors into errors of decompression.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(buffer).map_err(|error| {
            // If the input is compressed twice, the error may come from the outer layer. That error already says what
            // is damaged, so pass it on as it is.
            let is_reported = error.get_ref().is_some_and(|inner| inner.is::<Error>());
            if is_reported || error.kind() == ErrorKind::Interrupted {
                return error;
            }
            std::io::Error::new(error.kind(), decompression_error(self.packing, error))
        })
    }
}

/// The error for an empty input.
pub(crate) fn empty(path: &InPath) -> Error {
    let remedy = match path {
        InPath::Stdin if io::is_there(Path::new("perf.data")) => {
            Some("to read perf.data in this directory, use -i perf.data")
        }
        InPath::Stdin => None,
        InPath::Path(_) | InPath::Found(_) => Some("perhaps its writer was killed, or the disk was full"),
    };
    Error::new("is empty").with_remedy(remedy.map(str::to_owned))
}

/// The first bytes of the unpacked content of an input in memory: as many as are needed to recognize most formats.
pub(crate) fn peek_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    look_inside(&bytes[..bytes.len().min(HEAD)], HEAD).1
}

/// The unpacked content of an input in memory.
pub(crate) fn unpack_bytes(bytes: Vec<u8>) -> Result<Bytes> {
    Ok(unpack(Bytes::Owned(bytes))?.bytes)
}

/// Unpacks the content of an input, layer by layer, and returns it with the list of layers. Content that isn't packed
/// is returned unchanged. Fails if there are too many layers.
fn unpack(mut bytes: Bytes) -> Result<Unpacked> {
    let mut wrappings = Vec::new();
    while let Some(wrapping) = recognize_wrapping(&bytes) {
        if wrappings.len() == MAX_WRAPPINGS {
            return Err(Error::new(format!(
                "has more than {MAX_WRAPPINGS} layers of compression, encoding or quoting"
            )));
        }
        let unpacked = io::spool(unpack_layers(Box::new(&bytes[..]), &[wrapping])?)?;
        bytes = unpacked;
        wrappings.push(wrapping);
    }
    Ok(Unpacked { bytes, wrappings })
}

fn decompression_error(packing: &str, error: std::io::Error) -> Error {
    Error::new(format!("cannot decompress ({packing})")).because(error)
}

/// Checks that all inputs except the first can be read, before work on the first one starts. A user may have typed the
/// output as the last input, for example.
pub(crate) fn check_further(inputs: &[InPath]) -> Result<()> {
    for path in inputs.iter().skip(1).filter_map(InPath::path) {
        check_one(path).map_err(|error| error.in_file(path))?;
    }
    Ok(())
}

/// Fails if this input can't be read, or if its format is unknown. If it doesn't exist and has the extension of an
/// output, such as `.svg`, the error proposes `-o`.
fn check_one(path: &Path) -> Result<()> {
    if io::is_file(path) {
        let PeekedInput::File(mut file) = PeekedInput::open(&InPath::Path(path.to_owned()))? else { return Ok(()) };
        return file.format().map(drop);
    }
    // Directories and pipes are only opened when they are read.
    if io::is_there(path) {
        return Ok(());
    }
    let is_output =
        path.extension().is_some_and(|extension| mistaken::OUTPUT_EXTENSIONS.iter().any(|known| extension == *known));
    if is_output {
        let remedy = format!("to write the output to this file, use -o {}", path.display());
        return Err(Error::new("no such file").with_remedy(Some(remedy)));
    }
    // Opening the missing file fails with an error that has hints about its name.
    io::map_file(path).map(|_| ())
}

/// The path of an input in messages.
pub fn shown(path: &InPath) -> PathBuf {
    path.path().map_or_else(|| PathBuf::from(STDIN), Path::to_owned)
}

/// The input if the user names none: standard input if it is a pipe or a file, otherwise `perf.data`, as in perf.
pub fn default_input() -> InPath {
    use std::os::fd::AsFd;
    if let Ok(stat) = rustix::fs::fstat(std::io::stdin().as_fd()) {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        if kind.is_fifo() || kind.is_file() {
            return InPath::Stdin;
        }
    }
    InPath::Path(PathBuf::from("perf.data"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn an_input_may_be_packed_in_four_layers() {
        let mut bytes = b"main;f 7\n".to_vec();
        for layers in 0..=MAX_WRAPPINGS + 1 {
            let unpacked = unpack_bytes(bytes.clone());
            if layers <= MAX_WRAPPINGS {
                assert_eq!(&unpacked.unwrap()[..], b"main;f 7\n", "{layers}");
            } else {
                assert!(unpacked.unwrap_err().to_string().contains("more than 4 layers"));
            }
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes).unwrap();
            bytes = encoder.finish().unwrap();
        }
    }
}
