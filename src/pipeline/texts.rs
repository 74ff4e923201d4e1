//! Reads many small inputs, several at once per worker. Small folded stacks are concatenated and read as one text: that
//! reduces the fixed cost per input, and there is one profile to merge instead of many.

use super::complete::{Completion, Origin, complete};
use super::job::{Job, Outcome};
use super::lines::HEAD;
use super::open::{Opened, shown};
use crate::contract::format::{OpenLines, Read, ReadOptions};
use crate::error::{Result, Skipped};
use crate::io::InPath;
use crate::model::stacks::{Keep, Profile};
use crate::runtimes::jit_names::JitNames;
use std::io::{Cursor, Read as _};
use std::ops::Range;
use std::path::Path;

/// The path of an input, and the opened input if it is already open.
pub(super) type PathAndOpened<'a> = (&'a InPath, Option<Opened>);

/// What was read from one input, or from several inputs that were concatenated and read as one text.
pub(super) struct InputSums {
    /// The profile, in which the samples with equal stacks are added up. An error if the input can't be read.
    pub(super) profile: Result<Profile>,
    pub(super) outcome: Outcome,
}

/// Options for reading small texts.
#[derive(Clone, Copy)]
pub(super) struct TextOptions<'a> {
    /// Options for the reader of a text's format.
    pub(super) read: &'a ReadOptions,
    /// How names of JIT code are spelled.
    pub(super) jit_names: JitNames,
    /// What to do with a profile after it was read.
    pub(super) completion: Completion<'a>,
}

/// The total size in bytes of the inputs that a worker reads as one text. Larger inputs are read separately, so that
/// all workers are busy. Each worker holds this much text in memory.
const GROUP_BYTES: u64 = 2 << 20;

/// The capacity in bytes of the buffer in which a worker collects the inputs of one text. A group ends with the input
/// that reaches the limit [`GROUP_BYTES`], and up to as many bytes of that input are read, so the capacity is twice the
/// limit. Unused capacity doesn't take physical memory.
const BUFFER_CAPACITY: usize = 2 * GROUP_BYTES as usize;

/// Divides inputs into groups, each of which one worker reads. A group ends when its inputs together have
/// [`GROUP_BYTES`]. The order of inputs stays the same.
pub(super) fn groups<'a>(
    mut inputs: impl Iterator<Item = PathAndOpened<'a>>,
) -> impl Iterator<Item = Vec<PathAndOpened<'a>>> {
    std::iter::from_fn(move || {
        let mut group = Vec::new();
        let mut size = 0;
        while size < GROUP_BYTES
            && let Some(input) = inputs.next()
        {
            size += size_of(input.0);
            group.push(input);
        }
        (!group.is_empty()).then_some(group)
    })
}

/// The size of an input in bytes. If it is unknown, the result is so large that no further input is read with it.
fn size_of(path: &InPath) -> u64 {
    match path {
        InPath::Stdin => GROUP_BYTES,
        _ => path.metadata().map_or(0, |file| if file.is_file() { file.len() } else { GROUP_BYTES }),
    }
}

/// Reads the inputs in `group`, and returns results in the order of the inputs. Consecutive inputs of folded stacks
/// become one profile, which `from_sums` converts to a result. `from_sums` also gets the error of an input that can't
/// be opened. Any other input is read by `read_other`.
pub(super) fn read_texts<'a, T>(
    group: Vec<PathAndOpened<'a>>,
    options: TextOptions<'_>,
    job: &Job,
    from_sums: impl Fn(InputSums) -> T,
    read_other: impl Fn(&'a InPath, Opened) -> T,
) -> Vec<T> {
    let mut texts = FoldedTexts {
        options,
        format: None,
        directory: None,
        text: Vec::with_capacity(BUFFER_CAPACITY),
        inputs: Vec::new(),
        sums: Vec::new(),
    };
    let mut results = Vec::new();
    for (path, opened) in group {
        let opened = opened.map_or_else(|| Opened::open(path, job), Ok);
        // `None`: the input was added to the text in `texts`. `Some`: it must be read separately.
        let result = match opened.and_then(|opened| texts.take(path, opened)) {
            Ok(None) => continue,
            Ok(Some(opened)) => read_other(path, opened),
            Err(error) => {
                from_sums(InputSums { profile: Err(error.in_file(&shown(path))), outcome: Outcome::default() })
            }
        };
        // The results of earlier inputs come first, so parse the text that has been collected of them.
        texts.flush();
        results.extend(texts.sums.drain(..).map(&from_sums));
        results.push(result);
    }
    texts.flush();
    results.extend(texts.sums.into_iter().map(from_sums));
    results
}

/// True if the inputs should be read in groups: they are several files, to be added up, and the first one, which is
/// already open, is a text of lines. It is assumed that the others are, too. Those that turn out to have another
/// format are opened a second time.
pub(super) fn are_small_texts(first: &Opened, inputs: &[InPath], options: TextOptions<'_>, keep: Keep) -> bool {
    keep == Keep::Sums
        && may_join(options)
        && matches!(first.format().read, Read::Lines { .. })
        && inputs.len() > 1
        && inputs.iter().all(InPath::is_file)
}

/// True if inputs may be concatenated. That isn't possible if names are shortened, because that depends on the other
/// names in the same input, or if samples are filtered by time.
fn may_join(options: TextOptions<'_>) -> bool {
    options.jit_names == JitNames::Raw && !options.completion.filter.asks_time()
}

/// Folded stacks that were concatenated but not parsed yet, and the profiles of those parsed before.
struct FoldedTexts<'a, 'o> {
    options: TextOptions<'o>,
    /// The name of the format of the concatenated inputs, and the function that opens its reader. `None` before the
    /// first input.
    format: Option<(&'static str, OpenLines)>,
    /// The directory of the concatenated inputs, where source maps may be; `None` if no source maps are wanted.
    directory: Option<&'a Path>,
    /// The inputs that haven't been parsed yet, one after the other.
    text: Vec<u8>,
    /// The inputs in the text, each with the range of its bytes.
    inputs: Vec<(&'a InPath, Range<usize>)>,
    /// What was read from the texts that have been parsed, one element per text.
    sums: Vec<InputSums>,
}

impl<'a> FoldedTexts<'a, '_> {
    /// Appends an input to the text. If the input must be read separately, because it is large or its lines depend on
    /// each other, it is returned unread.
    fn take(&mut self, path: &'a InPath, opened: Opened) -> Result<Option<Opened>> {
        let Opened::Stream { mut reader, format, plain } = opened else { return Ok(Some(opened)) };
        let has_independent_lines = match format.read {
            Read::Lines { open, is_plain, .. } if may_join(self.options) => {
                // Source maps are searched for beside the input, so inputs of different directories are read apart.
                let source_maps = self.options.completion.source_maps;
                let wants_maps = source_maps.is_some_and(|options| options.source_maps.is_on());
                let directory = if wants_maps { path.path().and_then(Path::parent) } else { None };
                if self.format.is_some_and(|(name, _)| name != format.name) || self.directory != directory {
                    self.flush();
                }
                self.format = Some((format.name, open));
                self.directory = directory;
                is_plain
            }
            _ => return Ok(Some(Opened::Stream { reader, format, plain })),
        };
        let start = self.text.len();
        let len =
            (&mut reader).take(GROUP_BYTES).read_to_end(&mut self.text).inspect_err(|_| self.text.truncate(start))?;
        let input = &self.text[start..];
        // If as many bytes were read as a group may have, the input may have more.
        if len as u64 == GROUP_BYTES || !has_independent_lines(&input[..len.min(HEAD)]) {
            // The input must be read by another reader, from its start. So put the part that was read in front of the
            // rest.
            let head = Cursor::new(self.text.split_off(start));
            return Ok(Some(Opened::Stream { reader: Box::new(head.chain(reader)), format, plain }));
        }
        self.inputs.push((path, start..self.text.len()));
        // The next input must start on a line of its own.
        if !self.text.ends_with(b"\n") {
            self.text.push(b'\n');
        }
        Ok(None)
    }

    /// Parses the text collected so far, and adds the result to `sums`. If lines had to be skipped, parses each input
    /// separately instead, to report the file that these lines are in.
    fn flush(&mut self) {
        let (text, inputs) = (std::mem::take(&mut self.text), std::mem::take(&mut self.inputs));
        let Some((_, open)) = self.format.filter(|_| !inputs.is_empty()) else { return };
        let mut skipped = Skipped::new("line");
        let sum_of_all = self.sum(open, &text, None, &mut skipped);
        if skipped.count() == 0 {
            return self.sums.push(sum_of_all);
        }
        for (path, range) in inputs {
            let mut skipped = Skipped::new("line");
            let path = shown(path);
            let mut sum = self.sum(open, &text[range], Some(&path), &mut skipped);
            skipped.report(&path, &mut sum.outcome.warnings);
            self.sums.push(sum);
        }
    }

    /// Reads a text with the reader that `open` creates, and adds up the rows with equal stacks. `input` is the file
    /// that the text is from; `None` if the text consists of several files.
    fn sum(&self, open: OpenLines, text: &[u8], input: Option<&Path>, skipped: &mut Skipped) -> InputSums {
        let options = ReadOptions { keep: Keep::Sums, ..self.options.read.clone() };
        let mut reader = open(&options, &text[..text.len().min(HEAD)]);
        reader.read(text, skipped);
        let mut profile = std::mem::take(reader.profile());
        let mut outcome = Outcome::default();
        let origin = Origin { input, directory: self.directory };
        let completed = complete(&mut profile, self.options.completion, origin, &mut outcome);
        InputSums { profile: completed.map(|()| profile), outcome }
    }
}
