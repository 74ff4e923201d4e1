//! The columns of section `code` for instructions, their targets and their source lines. Each text is stored once.

use super::super::names::PageNames;
use crate::annotate::{Instruction, Listing, Target, TargetOwner};
use crate::model::printable::readable;
use crate::render::viewer::Section;
use crate::symbolize::disasm::TargetKind;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum length of a source line; the rest is cut off. Minified scripts have all their code in one line.
const LONGEST_LINE: usize = 240;

/// Maximum number of source lines without instructions between two lines with instructions. A longer gap is left out.
const BETWEEN: u32 = 6;

/// The instructions of all listings in order.
#[derive(Debug, Default)]
pub(super) struct InstructionColumns {
    instructions: Vec<u32>,
    texts: NumberedValues<InstructionText>,
    targets: Vec<BranchTarget>,
    outs: NumberedValues<Out>,
    sources: Vec<SourceStart>,
    files: NumberedValues<Vec<u8>>,
    lines: BTreeMap<LinePlace, String>,
}

/// The text of an instruction, without the address of a branch target, and its length in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InstructionText {
    text: String,
    len: u64,
}

/// The target of a branch, or the address that another instruction refers to.
#[derive(Debug)]
struct BranchTarget {
    at: u64,
    kind: TargetKind,
    to: TargetTo,
}

#[derive(Debug)]
enum TargetTo {
    /// A target in the same listing: its distance in instructions from the branch.
    Inside(i64),
    Out(u32),
}

/// A target outside the listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Out {
    function: String,
    offset: u64,
    addr: u64,
}

/// The source line of all instructions from this one to the next entry. File 0 means unknown.
#[derive(Debug)]
struct SourceStart {
    at: u64,
    file: u32,
    line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinePlace {
    file: u32,
    line: u32,
}

/// Distinct values, numbered in order of their first occurrence.
#[derive(Debug)]
struct NumberedValues<T> {
    list: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for NumberedValues<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> NumberedValues<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.list.push(value);
        }
        number
    }
}

impl InstructionColumns {
    /// Appends the instructions of a listing.
    pub(super) fn add(&mut self, listing: &Listing, names: &PageNames) {
        let mut before = None;
        for (number, row) in listing.rows.iter().enumerate() {
            let Some(instruction) = &row.instruction else { continue };
            let at = self.instructions.len() as u64;
            let text = InstructionText { text: text_without_target(instruction), len: instruction.len };
            self.instructions.push(self.texts.number(text));
            self.add_target(at, number, instruction, listing, names);
            let (file, line) = match row.source {
                Some(source) => (self.files.number(listing.files[source.file].name.clone()) + 1, source.line),
                None => (0, 0),
            };
            // Each listing starts with a new entry for its source line.
            if before != Some((file, line)) {
                before = Some((file, line));
                self.sources.push(SourceStart { at, file, line });
            }
        }
        self.add_lines(listing);
    }

    /// Adds the address that an instruction refers to, if there is one and it is worth showing.
    fn add_target(&mut self, at: u64, number: usize, instruction: &Instruction, listing: &Listing, names: &PageNames) {
        let Some(Target { addr, kind, owner }) = &instruction.target else { return };
        let to = match owner {
            TargetOwner::Inside(offset) => match listing.find_start(*offset) {
                Some(to) => TargetTo::Inside(to as i64 - number as i64),
                // The target is in the middle of an instruction, so it has no number.
                None => self.out(String::new(), 0, *addr),
            },
            TargetOwner::Function(name, offset) => self.out(names.target(name), *offset, *addr),
            // The instruction's text already contains the number.
            TargetOwner::Unknown if *kind == TargetKind::Immediate => return,
            TargetOwner::Unknown => self.out(String::new(), 0, *addr),
        };
        self.targets.push(BranchTarget { at, kind: *kind, to });
    }

    fn out(&mut self, function: String, offset: u64, addr: u64) -> TargetTo {
        TargetTo::Out(self.outs.number(Out { function, offset, addr }))
    }

    /// Adds the source lines that have instructions, and short gaps between them.
    fn add_lines(&mut self, listing: &Listing) {
        for (number, file) in listing.files.iter().enumerate() {
            if file.text.is_none() {
                continue;
            }
            let own = listing.rows.iter().filter_map(|row| row.source).filter(|source| source.file == number);
            let mut wanted: Vec<u32> = own.map(|source| source.line).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let between = wanted.windows(2).filter(|pair| pair[1] - pair[0] <= BETWEEN + 1);
            let between: Vec<u32> = between.flat_map(|pair| pair[0] + 1..pair[1]).collect();
            let known = self.files.number(file.name.clone());
            for line in wanted.into_iter().chain(between) {
                if let Some(text) = file.line(line) {
                    self.lines.entry(LinePlace { file: known + 1, line }).or_insert_with(|| shorten(text));
                }
            }
        }
    }

    /// Writes all columns.
    pub(super) fn write(&self, section: Section) -> Section {
        // Renumber the texts so that the most frequent ones have the smallest numbers, which take less space.
        let mut uses = vec![0u64; self.texts.list.len()];
        self.instructions.iter().for_each(|&text| uses[text as usize] += 1);
        let mut order: Vec<usize> = (0..uses.len()).collect();
        order.sort_by_key(|&text| Reverse(uses[text]));
        let mut place = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&text, new)| place[text] = new);
        let texts = || order.iter().map(|&text| &self.texts.list[text]);
        let section = section
            .numbers("text", self.instructions.iter().map(|&text| place[text as usize]))
            .texts("texts", texts().map(|spelling| &spelling.text))
            .numbers("texts.len", texts().map(|spelling| spelling.len));
        self.source_columns(self.target_columns(section))
    }

    /// Adds the columns for instructions that have a target (`target.…`), and for targets outside the listings
    /// (`out.…`).
    fn target_columns(&self, section: Section) -> Section {
        let outs = || self.outs.list.iter();
        section
            .numbers("target.gap", gaps(self.targets.iter().map(|target| target.at)))
            .numbers("target.kind", self.targets.iter().map(|target| kind_number(target.kind)))
            .numbers("target.to", self.targets.iter().map(|target| target.to.number()))
            .texts("out.function", outs().map(|out| &out.function))
            .numbers("out.offset", outs().map(|out| out.offset))
            .texts("out.address", outs().map(|out| format!("{:x}", out.addr)))
    }

    /// Adds the columns for instructions that start a source line (`source.…`), and for the texts of source lines
    /// (`line.…`).
    fn source_columns(&self, section: Section) -> Section {
        section
            .numbers("source.gap", gaps(self.sources.iter().map(|source| source.at)))
            .numbers("source.file", self.sources.iter().map(|source| source.file.into()))
            .deltas("source.line", self.sources.iter().map(|source| source.line.into()))
            .texts("files", self.files.list.iter().map(|file| readable(file)))
            .numbers("line.file", self.lines.keys().map(|place| place.file.into()))
            .deltas("line.number", self.lines.keys().map(|place| place.line.into()))
            .texts("line.text", self.lines.values())
    }
}

impl TargetTo {
    /// Encodes a target as a number. It is odd for a target outside the listing; otherwise it is even, with the
    /// distance in zigzag encoding.
    fn number(&self) -> u64 {
        match *self {
            Self::Inside(difference) => (((difference << 1) ^ (difference >> 63)) as u64) << 1,
            Self::Out(number) => u64::from(number) << 1 | 1,
        }
    }
}

fn kind_number(kind: TargetKind) -> u64 {
    match kind {
        TargetKind::Jump => 0,
        TargetKind::Call => 1,
        TargetKind::Memory => 2,
        TargetKind::Immediate => 3,
    }
}

/// The difference between each number and the previous one. The first number is kept as it is.
fn gaps(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    numbers.scan(0, |before, number| Some(number - std::mem::replace(before, number)))
}

/// An instruction's text without the address of a branch target, which the page adds itself.
fn text_without_target(instruction: &Instruction) -> String {
    let mut text = instruction.text.as_str();
    if let Some(target) = &instruction.target
        && matches!(target.kind, TargetKind::Jump | TargetKind::Call)
    {
        text = text.strip_suffix(&format!("{:x}", target.addr)).unwrap_or(text);
    }
    text.trim_end().trim_end_matches(" 0x").trim_end().to_owned()
}

/// A source line, cut if it is long, with control characters made visible.
fn shorten(text: &str) -> String {
    let text = text.replace('\t', "    ");
    let cut: String = text.chars().take(LONGEST_LINE).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    readable(format!("{cut}{dots}").as_bytes()).into_owned()
}
