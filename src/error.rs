//! One error type that states what failed, where, and what to do, and warnings for problems that don't stop the job.
//!
//! An [`Error`] stops the job. A [`Warning`] reports what was skipped while everything else was kept. Equal warnings
//! are reported once, and with `--strict` any warning results in exit status 1.

use rustc_hash::FxHashSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// The result of anything that can stop a job.
///
/// In functions that return it, `?` also works on a [`std::io::Result`]: the error becomes the cause of an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure: what went wrong, in which file and at which byte (if known), the cause, and a remedy.
///
/// `{}` writes all of it on one line. `{:?}` writes the same, so that `fn main() -> jitgraft::Result<()>` and `unwrap`
/// print a message for people. Programs should look at [`kind`](Self::kind).
///
/// ```
/// use jitgraft::{ErrorKind, LoadOptions, load};
///
/// let error = load("missing.data", &LoadOptions::new()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("missing.data: "));
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
///
/// Errors of your own, such as those of a closure that [`for_each_sample`](crate::for_each_sample()) calls:
///
/// ```
/// use jitgraft::{Error, Result};
///
/// fn parse_weight(text: &str) -> Result<i64> {
///     text.parse().map_err(|error| Error::new("has a bad weight").because(error).in_file("weights.txt".as_ref()))
/// }
/// let message = parse_weight("3x").unwrap_err().to_string();
/// assert_eq!(message, "weights.txt: has a bad weight: invalid digit found in string");
/// ```
///
/// # Flags in messages
///
/// Errors and warnings are those of the program `jitgraft`, so their advice names its flags:
///
/// | flag | in the library |
/// |---|---|
/// | `--jitdump`, `--perf-map`, `--jit-log` | [`LoadOptions::jitdump`], [`LoadOptions::perf_map`], [`LoadOptions::jit_log`] |
/// | `FILE@PID` | [`CodeMapBuilder::jitdump_of`] and the other methods that take a process |
/// | `--symfs`, `--debug-dir` | [`LoadOptions::symfs`], [`LoadOptions::debug_dir`] |
/// | `-f` | [`LoadOptions::trust_all_owners`]; for a [`CodeMap`], read the file yourself and pass its bytes |
/// | `--event`, `--pid`, `--tid`, `--time` | [`LoadOptions::event`], [`process`], [`thread`], [`times`] |
/// | `--max-stack` | [`LoadOptions::max_stack`] |
/// | `jitgraft formats` | [`Formats::list`] |
/// | `--kallsyms`, `--source-maps`, `--guest`, `--elf`, `--map-pid` | only in the program |
///
/// [`CodeMap`]: crate::CodeMap
/// [`CodeMapBuilder::jitdump_of`]: crate::CodeMapBuilder::jitdump_of
/// [`Formats::list`]: crate::Formats::list
/// [`LoadOptions::jitdump`]: crate::LoadOptions::jitdump
/// [`LoadOptions::perf_map`]: crate::LoadOptions::perf_map
/// [`LoadOptions::jit_log`]: crate::LoadOptions::jit_log
/// [`LoadOptions::symfs`]: crate::LoadOptions::symfs
/// [`LoadOptions::debug_dir`]: crate::LoadOptions::debug_dir
/// [`LoadOptions::trust_all_owners`]: crate::LoadOptions::trust_all_owners
/// [`LoadOptions::event`]: crate::LoadOptions::event
/// [`process`]: crate::LoadOptions::process
/// [`thread`]: crate::LoadOptions::thread
/// [`times`]: crate::LoadOptions::times
/// [`LoadOptions::max_stack`]: crate::LoadOptions::max_stack
pub struct Error {
    file: Option<PathBuf>,
    offset: Option<u64>,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    remedy: Option<String>,
    usage: bool,
    refusal: RefusalReason,
    kind: Option<ErrorKind>,
}

/// What kind of failure an [`Error`] is, for callers that react differently ([`Error::kind`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What the caller asked for doesn't exist or makes no sense, such as a format that can't be written.
    InvalidArgument,
    /// A file or directory doesn't exist.
    NotFound,
    /// A file can't be opened because of its permissions.
    PermissionDenied,
    /// A file belongs to a user who isn't trusted.
    Untrusted,
    /// The input is in no known format.
    UnknownFormat,
    /// The input is damaged, or lacks what is needed.
    InvalidData,
    /// No sample is left, because of a filter or because there was none.
    NoSamples,
    /// Reading or writing failed for another reason, such as a full disk.
    Io,
}

/// The name of standard input in messages.
pub(crate) const STDIN: &str = "(standard input)";

/// Why a file is refused, as far as it matters for what the user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusalReason {
    /// The file belongs to a user who isn't trusted.
    Owner,
    /// The file is empty.
    Empty,
    /// The file can't be used for another reason, such as what it contains.
    #[default]
    Content,
}

impl Error {
    /// An error with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            file: None,
            offset: None,
            message: message.into(),
            source: None,
            remedy: None,
            usage: false,
            refusal: RefusalReason::default(),
            kind: None,
        }
    }

    /// The kind of failure: the one that was set, or the one that follows from the cause.
    /// [`InvalidData`](ErrorKind::InvalidData) if neither says more.
    pub fn kind(&self) -> ErrorKind {
        if let Some(kind) = self.kind {
            return kind;
        }
        if self.usage {
            return ErrorKind::InvalidArgument;
        }
        if self.refusal == RefusalReason::Owner {
            return ErrorKind::Untrusted;
        }
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            if let Some(own_error) = error.downcast_ref::<Self>() {
                return own_error.kind();
            }
            if let Some(io) = error.downcast_ref::<std::io::Error>() {
                return match io.kind() {
                    std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                    std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
                    std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => ErrorKind::InvalidData,
                    _ => ErrorKind::Io,
                };
            }
            cause = error.source();
        }
        ErrorKind::InvalidData
    }

    /// Sets the kind of failure, if it doesn't follow from the cause. The first kind set is kept.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind.get_or_insert(kind);
        self
    }

    /// The file that was being read or written; `None` if the error isn't about a file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The byte offset in the file at which the broken part starts; `None` if unknown.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Removes the file from the error if it is standard input: that is how bytes in memory are called internally.
    #[must_use]
    pub(crate) fn without_stdin(mut self) -> Self {
        self.file = self.file.filter(|file| file != Path::new(STDIN));
        self
    }

    /// An error in what the user typed, which results in exit status 2.
    #[doc(hidden)]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { usage: true, ..Self::new(message) }
    }

    /// Sets the byte offset in the file where the broken part starts. The first offset set is kept.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.offset.get_or_insert(offset);
        self
    }

    /// Sets the file that was being read or written. The first file set is kept.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// Sets the error that caused this one. If it is an error of serde_json, the values that it quotes are left out.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(match source.into().downcast::<serde_json::Error>() {
            Ok(json) => Self::new(strip_values(&json)).into(),
            Err(other) => other,
        });
        self
    }

    /// Sets what the user can do about the error, which is printed after the cause. The first remedy set is kept.
    #[must_use]
    pub fn with_remedy(mut self, remedy: Option<String>) -> Self {
        self.remedy = self.remedy.or(remedy);
        self
    }

    /// Sets why the file is refused.
    #[must_use]
    pub(crate) fn with_refusal(mut self, refusal: RefusalReason) -> Self {
        self.refusal = refusal;
        self
    }

    /// Why the file is refused.
    pub(crate) fn refusal(&self) -> RefusalReason {
        self.refusal
    }

    /// Makes this an error that results in exit status 2, for commands in which status 1 has another meaning (`doctor
    /// --exit-code`).
    #[doc(hidden)]
    #[must_use]
    pub fn into_usage(mut self) -> Self {
        self.usage = true;
        self
    }

    /// What the user can do about the error. `None` if nothing is known.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Displays the error without the remedy.
    #[doc(hidden)]
    pub fn without_remedy(&self) -> impl fmt::Display + '_ {
        WithoutRemedy(self)
    }

    /// True if the error is in what the user typed, not in the input (exit status 2).
    #[doc(hidden)]
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// True if the reader of the output has closed the pipe, as `head` does. Programs usually end without a message then.
    pub fn is_closed_pipe(&self) -> bool {
        let io = self.source.as_deref().and_then(|source| source.downcast_ref::<std::io::Error>());
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Turns the error into a warning, for problems that don't stop the job.
    pub fn into_warning(self) -> Warning {
        Warning { file: self.file.clone(), offset: self.offset, message: CauseChain(&self).to_string() }
    }
}

/// The message of a JSON error without the values that it quotes. Somebody else may have chosen the file, and it may be
/// a private one, such as a list of passwords. For example, `invalid type: string "secret", expected u64` becomes
/// `invalid type: string, expected u64`.
pub fn strip_values(error: &serde_json::Error) -> String {
    const QUOTING: [&str; 4] = ["invalid type: ", "invalid value: ", "unknown variant ", "unknown field "];
    let text = error.to_string();
    let split = QUOTING.iter().find_map(|problem| Some((*problem, text.strip_prefix(problem)?)));
    let Some((problem, details)) = split else { return text };
    // What precedes the quoted value, such as `string`; empty for names of fields and variants.
    let kind = details.split(['`', '"', '\'', ',']).next().unwrap_or_default().trim_end();
    if let Some((_, expected)) = details.rsplit_once(", expected ") {
        return format!("{}, expected {expected}", format!("{problem}{kind}").trim_end());
    }
    match text.rsplit_once(" at line ") {
        Some((_, position)) => format!("{} at line {position}", problem.trim_end()),
        None => problem.trim_end().to_owned(),
    }
}

/// Displays the message, its causes and the remedy, but not the file and offset.
struct CauseChain<'a>(&'a Error);

impl fmt::Display for CauseChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_causes(f, self.0)?;
        self.0.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

/// Displays the file, the offset, the message and its causes.
struct WithoutRemedy<'a>(&'a Error);

impl fmt::Display for WithoutRemedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.0.file.as_deref(), self.0.offset)?;
        write_causes(f, self.0)
    }
}

/// Writes the message and its causes.
fn write_causes(f: &mut fmt::Formatter<'_>, error: &Error) -> fmt::Result {
    f.write_str(&error.message)?;
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

impl fmt::Debug for Error {
    /// Writes the same as `{}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    /// Writes the file, the offset, the message, the causes and the remedy, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.file.as_deref(), self.offset)?;
        CauseChain(self).fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    /// An error with this cause. But if the I/O error only carries an [`Error`] through code that returns I/O errors,
    /// such as a writer, returns the carried [`Error`] unchanged.
    fn from(error: std::io::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        let verb = if error.kind() == std::io::ErrorKind::BrokenPipe { "the output was closed" } else { "I/O error" };
        Self::new(verb).because(error)
    }
}

/// Something that was skipped, estimated or suspicious, but didn't stop the job.
///
/// `{}` writes the file, the offset and the message. Messages may name [flags of the
/// program](Error#flags-in-messages).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// The file that the warning is about, if known.
    pub file: Option<PathBuf>,
    /// The offset in bytes at which the problem first occurs in the file; `None` if unknown.
    pub offset: Option<u64>,
    /// What happened and, where it applies, how often and what to do.
    pub message: String,
}

impl Warning {
    /// A warning without file and offset.
    pub fn new(message: impl Into<String>) -> Self {
        Self { file: None, offset: None, message: message.into() }
    }

    /// Sets the file that the warning is about and, if known, the offset in bytes at which the problem first occurs.
    #[must_use]
    pub fn in_file(mut self, file: &Path, offset: Option<u64>) -> Self {
        self.file = Some(file.to_owned());
        self.offset = offset;
        self
    }
}

impl Warning {
    /// Turns the warning into an error, for problems that must stop the job after all.
    pub fn into_error(self) -> Error {
        Error { file: self.file, offset: self.offset, ..Error::new(self.message) }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.file.as_deref(), self.offset)?;
        f.write_str(&self.message)
    }
}

/// Writes the file and the offset that a message is about, each followed by a colon.
fn write_place(f: &mut fmt::Formatter<'_>, file: Option<&Path>, offset: Option<u64>) -> fmt::Result {
    if let Some(file) = file {
        write!(f, "{}: ", file.display())?;
    }
    if let Some(offset) = offset {
        write!(f, "at byte {offset:#x}: ")?;
    }
    Ok(())
}

/// The distinct warnings of a job, in the order in which they occurred. Parallel parts collect their own warnings,
/// which are appended in the order of the input.
#[derive(Debug, Default)]
pub struct Warnings {
    list: Vec<Warning>,
    /// A copy of all warnings, to find out quickly whether a warning is in `list` already: each of thousands of inputs
    /// may add some.
    said: FxHashSet<Warning>,
}

impl Warnings {
    /// An empty list of warnings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a warning unless there is an equal one already.
    pub fn push(&mut self, warning: Warning) {
        if self.said.insert(warning.clone()) {
            self.list.push(warning);
        }
    }

    /// Adds several warnings.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Warning>) {
        more.into_iter().for_each(|warning| self.push(warning));
    }

    /// Adds the warnings of a part of the job.
    pub fn append(&mut self, other: Self) {
        for warning in other.list {
            self.push(warning);
        }
    }

    /// Sets the file in all warnings that have none. Readers of bytes don't know their file.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        for warning in &mut self.list {
            warning.file.get_or_insert_with(|| file.to_owned());
        }
        self.list.into_iter().collect()
    }

    /// True if there are no warnings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The warnings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Warning> {
        self.list.iter()
    }
}

impl FromIterator<Warning> for Warnings {
    fn from_iter<I: IntoIterator<Item = Warning>>(warnings: I) -> Self {
        let mut all = Self::new();
        all.extend(warnings);
        all
    }
}

/// Counts records that couldn't be used, and remembers where and why for the first one.
#[derive(Debug)]
pub struct Skipped {
    what: &'static str,
    count: u64,
    first: Option<Error>,
}

impl Default for Skipped {
    /// Starts with nothing skipped. In warnings, what is skipped is called a "record".
    fn default() -> Self {
        Self::new("record")
    }
}

impl Skipped {
    /// Starts with nothing skipped. `what` is a singular noun for the things that are counted, such as `jitdump
    /// record`.
    pub fn new(what: &'static str) -> Self {
        Self { what, count: 0, first: None }
    }

    /// Counts one skipped record. `error` says why it was skipped; only the first error is kept.
    pub fn add(&mut self, error: Error) {
        self.count += 1;
        self.first.get_or_insert(error);
    }

    /// The number of records skipped so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds what was skipped in a later part of the same file.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    /// Adds `by` bytes to the offset of the first error, for a part of a file that was read as if the file began there.
    #[must_use]
    pub fn shifted(mut self, by: u64) -> Self {
        if let Some(offset) = self.first.as_mut().and_then(|first| first.offset.as_mut()) {
            *offset += by;
        }
        self
    }

    /// Adds a single warning for everything that was skipped, if anything was.
    pub fn report(self, file: &Path, warnings: &mut Warnings) {
        if let Some(warning) = self.into_warning() {
            let offset = warning.offset;
            warnings.push(warning.in_file(file, offset));
        }
    }

    /// A single warning for everything that was skipped, without a file. `None` if nothing was.
    pub fn into_warning(self) -> Option<Warning> {
        let first = self.first?;
        let (offset, reason) = (first.offset, CauseChain(&first).to_string());
        let what = self.what;
        let message = match self.count {
            1 => format!("1 {what} skipped: {reason}"),
            n => format!("{n} {what}s skipped; the first one: {reason}"),
        };
        Some(Warning { file: None, offset, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        #[serde(rename = "version")]
        _version: u32,
        #[serde(rename = "kind")]
        _kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[test]
    fn what_is_skipped_is_counted_and_the_first_reason_given() {
        let mut skipped = Skipped::new("jitdump record");
        skipped.add(Error::new("total_size is 8, less than its 16-byte header").at_offset(0x1a40));
        let mut warnings = Warnings::new();
        skipped.report(Path::new("jit-77.dump"), &mut warnings);
        let said = warnings.iter().next().unwrap().to_string();
        let expected =
            "jit-77.dump: at byte 0x1a40: 1 jitdump record skipped: total_size is 8, less than its 16-byte header";
        assert_eq!(said, expected);
    }

    #[test]
    fn the_kind_of_an_error_follows_from_its_cause() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        assert_eq!(Error::new("cannot open").because(missing()).kind(), ErrorKind::NotFound);
        let wrapped = Error::new("cannot read").because(Error::new("cannot open").because(missing()));
        assert_eq!(wrapped.kind(), ErrorKind::NotFound);
        assert_eq!(Error::new("is no one's").with_refusal(RefusalReason::Owner).kind(), ErrorKind::Untrusted);
        assert_eq!(
            (Error::usage("x").kind(), Error::new("x").kind()),
            (ErrorKind::InvalidArgument, ErrorKind::InvalidData)
        );
    }

    #[test]
    fn no_value_of_json_is_quoted() {
        let cases = [
            ("\"s3cr3t\"", "invalid type: string, expected struct Known"),
            ("{\"version\": \"s3cr3t, expected `x` at line 9\"}", "invalid type: string, expected u32"),
            ("{\"version\": -7771}", "invalid value: integer, expected u32"),
            ("{\"version\": 77.71}", "invalid type: floating point, expected u32"),
            ("{\"version\": true}", "invalid type: boolean, expected u32"),
            ("{\"version\": [\"s3cr3t\"]}", "invalid type: sequence, expected u32"),
            ("{\"version\": null}", "invalid type: null, expected u32"),
            ("{\"version\": 3, \"kind\": \"s3cr3t\"}", "unknown variant, expected `one` or `two`"),
            ("{\"s3cr3t\": 3}", "unknown field, expected `version` or `kind`"),
            ("{\"version\": 3}", "missing field `kind`"),
            ("s3cr3t", "expected value"),
        ];
        for (text, expected) in cases {
            let error = serde_json::from_str::<Known>(text).unwrap_err();
            let said = Error::new("is broken").because(error).to_string();
            let (what, place) = said.split_once(" at line 1 column ").unwrap();
            assert_eq!(what, format!("is broken: {expected}"), "{text}");
            assert!(place.bytes().all(|byte| byte.is_ascii_digit()), "{said}");
        }
        assert!(matches!([Kind::One, Kind::Two], [Kind::One, Kind::Two]));
    }
}
