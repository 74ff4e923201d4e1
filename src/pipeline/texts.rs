//! Many inputs; one worker reads several at once. Small folded stacks are read as one text: what is looked up once for
//! each text is little beside it then, and one sum is added instead of many.

use super::job::{Job, Outcome};
use super::lines::HEAD;
use super::open::{Opened, shown};
use crate::analysis::filter::Filter;
use crate::contract::format::{OpenLines, Read, ReadOptions};
use crate::error::{Result, Skipped};
use crate::io::InPath;
use crate::model::stacks::{Keep, Profile};
use crate::runtimes::jit_names::JitNames;
use std::io::{Cursor, Read as _};
use std::ops::Range;

/// An input, and what it is if somebody had to open it before.
pub(super) type Given<'a> = (&'a InPath, Option<Opened>);

/// The sums of one input, or of several that were read as one.
pub(super) struct InputSums {
    /// The sums, or the reason for their absence.
    pub(super) profile: Result<Profile>,
    pub(super) outcome: Outcome,
}

/// The options for reading texts.
#[derive(Clone, Copy)]
pub(super) struct TextOptions<'a> {
    pub(super) read: &'a ReadOptions,
    pub(super) filter: &'a Filter,
    /// The way names of JIT code are written.
    pub(super) jit_names: JitNames,
}

/// The number of bytes of inputs that are read at once; a larger one by itself, so that all workers have something to
/// do. Each worker holds as much of texts.
const TOGETHER: u64 = 2 << 20;

/// Room for a group, whose last input may begin just before its end. Unused parts of it are not memory.
const ROOM: usize = 2 * TOGETHER as usize;

/// Takes inputs apart into groups, in their order.
pub(super) fn groups<'a>(mut inputs: impl Iterator<Item = Given<'a>>) -> impl Iterator<Item = Vec<Given<'a>>> {
    std::iter::from_fn(move || {
        let (mut group, mut size) = (Vec::new(), 0);
        while size < TOGETHER
            && let Some(input) = inputs.next()
        {
            size += size_of(input.0);
            group.push(input);
        }
        (!group.is_empty()).then_some(group)
    })
}

/// An input of unknown size counts as one that ends a group.
fn size_of(path: &InPath) -> u64 {
    match path {
        InPath::Stdin => TOGETHER,
        _ => path.about().map_or(0, |file| if file.is_file() { file.len() } else { TOGETHER }),
    }
}

/// Reads a group. Of folded stacks that stand together there is one sum; `other` is what becomes of another input.
pub(super) fn read_texts<'a, T>(
    group: Vec<Given<'a>>,
    options: TextOptions<'_>,
    job: &Job,
    summed: impl Fn(InputSums) -> T,
    other: impl Fn(&'a InPath, Opened) -> T,
) -> Vec<T> {
    let mut texts =
        FoldedTexts { options, read: None, text: Vec::with_capacity(ROOM), places: Vec::new(), sums: Vec::new() };
    let mut all = Vec::new();
    for (path, opened) in group {
        let opened = opened.map_or_else(|| Opened::open(path, job), Ok);
        let apart = match opened.and_then(|opened| texts.take(path, opened)) {
            Ok(None) => continue,
            Ok(Some(opened)) => other(path, opened),
            Err(error) => summed(InputSums { profile: Err(error.in_file(&shown(path))), outcome: Outcome::default() }),
        };
        texts.flush();
        all.extend(texts.sums.drain(..).map(&summed));
        all.push(apart);
    }
    texts.flush();
    all.extend(texts.sums.into_iter().map(summed));
    all
}

/// True if several inputs, the first of them this one, are best read in groups: small texts that become sums. Each may
/// be opened twice.
pub(super) fn shares(first: &Opened, inputs: &[InPath], options: TextOptions<'_>, keep: Keep) -> bool {
    let are_texts = keep == Keep::Sums && matches!(first.format().read, Read::Lines { .. }) && may_join(options);
    are_texts && inputs.len() > 1 && inputs.iter().all(InPath::is_file)
}

/// True if inputs can be read as parts of a larger text. Names that are shortened depend on those of their own input,
/// and times are distinguished before they are summed.
fn may_join(options: TextOptions<'_>) -> bool {
    options.jit_names == JitNames::Raw && !options.filter.asks_time()
}

/// Folded stacks that were not read yet, and the sums of all before them.
struct FoldedTexts<'a, 'o> {
    options: TextOptions<'o>,
    /// Their common format, and its reader.
    read: Option<(&'static str, OpenLines)>,
    text: Vec<u8>,
    /// The input of each range of the text.
    places: Vec<(&'a InPath, Range<usize>)>,
    sums: Vec<InputSums>,
}

impl<'a> FoldedTexts<'a, '_> {
    /// Takes an input, unless it has to be read by itself: only lines are each by themselves, and a large text is read
    /// in blocks.
    fn take(&mut self, path: &'a InPath, opened: Opened) -> Result<Option<Opened>> {
        let Opened::Stream { mut reader, format, plain } = opened else { return Ok(Some(opened)) };
        let is_plain = match format.read {
            Read::Lines { open: read, is_plain, .. } if may_join(self.options) => {
                if self.read.is_some_and(|(name, _)| name != format.name) {
                    self.flush();
                }
                self.read = Some((format.name, read));
                is_plain
            }
            _ => return Ok(Some(Opened::Stream { reader, format, plain })),
        };
        let start = self.text.len();
        let len =
            (&mut reader).take(TOGETHER).read_to_end(&mut self.text).inspect_err(|_| self.text.truncate(start))?;
        let head = &self.text[start..];
        if len as u64 == TOGETHER || !is_plain(&head[..len.min(HEAD)]) {
            let read = Cursor::new(self.text.split_off(start));
            return Ok(Some(Opened::Stream { reader: Box::new(read.chain(reader)), format, plain }));
        }
        self.places.push((path, start..self.text.len()));
        if !self.text.ends_with(b"\n") {
            self.text.push(b'\n');
        }
        Ok(None)
    }

    /// Reads them; those of which something is skipped one by one, to state in which file.
    fn flush(&mut self) {
        let (text, places) = (std::mem::take(&mut self.text), std::mem::take(&mut self.places));
        let Some((_, read)) = self.read.filter(|_| !places.is_empty()) else { return };
        let mut skipped = Skipped::new("line");
        let all = self.sum(read, &text, &mut skipped);
        if skipped.count() == 0 {
            return self.sums.push(all);
        }
        for (path, place) in places {
            let mut skipped = Skipped::new("line");
            let mut one = self.sum(read, &text[place], &mut skipped);
            skipped.report(&shown(path), &mut one.outcome.warnings);
            self.sums.push(one);
        }
    }

    fn sum(&self, open: OpenLines, text: &[u8], skipped: &mut Skipped) -> InputSums {
        let options = ReadOptions { keep: Keep::Sums, ..self.options.read.clone() };
        let mut reader = open(&options, &text[..text.len().min(HEAD)]);
        reader.read(text, skipped);
        let mut profile = std::mem::take(reader.profile());
        let whole = profile.check();
        self.options.filter.apply(&mut profile);
        InputSums { profile: whole.map(|()| profile), outcome: Outcome::default() }
    }
}
