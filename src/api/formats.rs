//! Writes profiles, and lists the formats: the built-in ones and those of the caller.

use super::profile::{Profile, ProfileBuilder};
use crate::contract::format::{self, Events, Read, WriteOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{FORMATS, find_format};
use crate::model::stacks::{self, Keep};
use crate::pipeline::sink::{Naming, Sink, Whole};
use crate::runtimes::jit_names::JitNames;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// A format of your own, to be used beside the built-in ones ([`Formats::with`]).
///
/// ```
/// use jitgraft::{Format, Formats, LoadOptions, Profile, ProfileBuilder, Result, Sample, load_bytes};
///
/// /// One sample per line, the innermost frame first: `3 parse main`.
/// struct Lines;
///
/// impl Format for Lines {
///     fn name(&self) -> &str {
///         "lines"
///     }
///     fn recognizes(&self, head: &[u8]) -> bool {
///         head.first().is_some_and(u8::is_ascii_digit)
///     }
///     fn read(&self, bytes: &[u8], into: &mut ProfileBuilder) -> Result<()> {
///         for line in String::from_utf8_lossy(bytes).lines() {
///             let mut words = line.split(' ');
///             match words.next().and_then(|word| word.parse().ok()) {
///                 Some(weight) => drop(into.add(Sample::new("samples", weight), words)),
///                 None => drop(into.warn(format!("a line has no weight: {line}"))),
///             }
///         }
///         Ok(())
///     }
///     fn write(&self, profile: &Profile, out: &mut dyn std::io::Write) -> Result<()> {
///         for sample in profile.samples() {
///             let names: Vec<String> = sample.frames().map(|frame| frame.to_string()).collect();
///             writeln!(out, "{} {}", sample.weight, names.join(" "))?;
///         }
///         Ok(())
///     }
/// }
///
/// let formats = Formats::new().with(Lines);
/// let profile = load_bytes("3 parse main\nx\n", &LoadOptions::new().formats(formats.clone()))?;
/// assert_eq!((profile.to_bytes("folded")?, profile.warnings().len()), (b"main;parse 3\n".to_vec(), 1));
/// assert_eq!(formats.to_bytes(&profile, "lines")?, b"3 parse main\n");
/// # Ok::<(), jitgraft::Error>(())
/// ```
pub trait Format: Send + Sync + 'static {
    /// The name, by which [`Formats::write`] finds the format.
    fn name(&self) -> &str;

    /// True if an input that starts with these bytes has this format. There are at least 64 KiB of them, or the whole
    /// input, unpacked. By default, no input has this format.
    fn recognizes(&self, _head: &[u8]) -> bool {
        false
    }

    /// Reads an input: adds its samples to a profile. Only called for inputs that the format recognizes. For errors of
    /// your own, see [`Error`].
    fn read(&self, _bytes: &[u8], _into: &mut ProfileBuilder) -> Result<()> {
        let message = format!("{} can't be read", self.name());
        Err(Error::new(message).with_kind(ErrorKind::InvalidArgument))
    }

    /// Writes a profile. By default, this fails.
    fn write(&self, _profile: &Profile, _out: &mut dyn Write) -> Result<()> {
        Err(unwritable(self.name()))
    }
}

/// The formats to read and write: the built-in ones, and your own.
///
/// ```
/// for format in jitgraft::Formats::new().list() {
///     println!("{}: {} (read: {}, write: {})", format.name, format.about, format.is_read, format.is_written);
/// }
/// ```
#[derive(Clone, Default)]
pub struct Formats {
    /// The caller's formats. The one that was added last comes first.
    own: Vec<Arc<dyn Format>>,
}

/// The description of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatInfo<'a> {
    /// The name, such as `pprof`.
    pub name: &'a str,
    /// What the format is, in one line. Empty for formats of your own.
    pub about: &'a str,
    /// True if profiles in this format can be read.
    pub is_read: bool,
    /// True if profiles can be written in this format.
    pub is_written: bool,
}

impl Formats {
    /// The built-in formats.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a format of your own. It is tried before those that were there, and hides one with the same name.
    #[must_use]
    pub fn with(mut self, format: impl Format) -> Self {
        self.own.insert(0, Arc::new(format));
        self
    }

    /// All formats, your own first. For your own formats, `is_read` and `is_written` are always true: whether they can
    /// read and write only shows when they are used.
    pub fn list(&self) -> impl Iterator<Item = FormatInfo<'_>> {
        let own = self.own.iter().map(|format| FormatInfo {
            name: format.name(),
            about: "",
            is_read: true,
            is_written: true,
        });
        own.chain(FORMATS.iter().map(|format| FormatInfo {
            name: format.name,
            about: format.about,
            is_read: !matches!(format.read, Read::No),
            is_written: format.write.is_some(),
        }))
    }

    /// Writes a profile in the format with this name. Fails if no format has the name, if the format can only be read,
    /// or if it holds a single event and the profile has several ([`Profile::with_event`]).
    pub fn write(&self, profile: &Profile, format: &str, mut out: impl Write) -> Result<()> {
        match self.own.iter().find(|own| own.name() == format) {
            Some(own) => own.write(profile, &mut out),
            None => write_built_in(profile, format, &mut out),
        }
    }

    /// Like [`write`](Self::write), but returns the bytes.
    pub fn to_bytes(&self, profile: &Profile, format: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(profile, format, &mut bytes)?;
        Ok(bytes)
    }

    /// True if there are formats of the caller.
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The caller's format for an input that starts with these bytes; `None` if none of the caller's formats recognizes
    /// it.
    pub(super) fn recognize_own(&self, head: &[u8]) -> Option<Arc<dyn Format>> {
        self.own.iter().find(|format| format.recognizes(head)).cloned()
    }
}

impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().map(|format| format.name.to_owned())).finish()
    }
}

impl Profile {
    /// Writes the profile in a built-in format, such as `pprof`, `firefox`, `speedscope`, `folded` or `json`;
    /// [`Formats::list`] has all. Fails as [`Formats::write`] does.
    ///
    /// ```no_run
    /// use jitgraft::{LoadOptions, load};
    ///
    /// let profile = load("perf.data", &LoadOptions::new().addresses(true))?;
    /// profile.write("pprof", std::fs::File::create("profile.pb.gz")?)?;
    /// # Ok::<(), jitgraft::Error>(())
    /// ```
    pub fn write(&self, format: &str, mut out: impl Write) -> Result<()> {
        write_built_in(self, format, &mut out)
    }

    /// Like [`write`](Self::write), but returns the bytes.
    pub fn to_bytes(&self, format: &str) -> Result<Vec<u8>> {
        Formats::new().to_bytes(self, format)
    }
}

/// Writes a profile in the built-in format with this name.
fn write_built_in(profile: &Profile, format: &str, out: &mut dyn Write) -> Result<()> {
    let Some(writer) = find_format(format).and_then(|format| format.write) else { return Err(unwritable(format)) };
    let changed = prepare_for(&writer, &profile.stacks);
    let stacks = changed.as_ref().unwrap_or(&profile.stacks);
    if writer.events == Events::One && stacks.series.len() > 1 {
        let names: Vec<&str> = stacks.series.iter().map(|series| series.name.as_str()).collect();
        let message = format!(
            "{format} holds one event, but the profile has {}; choose one with Profile::with_event",
            names.join(", ")
        );
        return Err(Error::new(message).with_kind(ErrorKind::InvalidArgument));
    }
    (writer.run)(stacks, &WriteOptions::default(), out)
}

/// A copy of the profile as the writer needs it: names of JIT functions are spelled in the writer's default way, and
/// samples are added up if the writer lists sums. `None` if the profile is fine as it is.
fn prepare_for(writer: &format::Writer, stacks: &stacks::Profile) -> Option<stacks::Profile> {
    // Names that jitgraft has looked up are spelled in the writer's way; names that the input had stay as they are.
    let naming = Naming { resolved: writer.jit_names, given: JitNames::Raw };
    if naming.for_profile(stacks) == JitNames::Raw && writer.rows == Keep::EachRow {
        return None;
    }
    // `Whole` collects the rows of a profile, and spells its names.
    let mut whole = Whole::new(writer.rows, naming);
    // Taking a whole profile never fails, because nothing is written.
    whole.take(&mut stacks.clone()).ok()?;
    let mut changed = whole.into_profile();
    if writer.rows == Keep::Sums {
        changed.aggregate();
    }
    Some(changed)
}

/// The error for a name that isn't that of a format which can be written. The remedy lists those names.
fn unwritable(format: &str) -> Error {
    let names: Vec<&str> = FORMATS.iter().filter(|format| format.write.is_some()).map(|format| format.name).collect();
    let message = format!("no output format named {format}");
    let remedy = format!("choose one of {}", names.join(", "));
    Error::new(message).with_kind(ErrorKind::InvalidArgument).with_remedy(Some(remedy))
}
