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
const MAX_LINE_GAP: u32 = 6;

/// The instructions of all listings in order.
#[derive(Debug, Default)]
pub(super) struct InstructionColumns {
    /// For each instruction of all listings, which of `texts` it has.
    instructions: Vec<u32>,
    texts: NumberedValues<InstructionText>,
    /// The branch targets and other addresses that instructions refer to, in the order of the instructions.
    targets: Vec<BranchTarget>,
    /// The distinct targets that aren't in the same listing as the instruction that refers to them.
    outs: NumberedValues<OutsideTarget>,
    /// An entry for each instruction whose source line differs from that of the instruction before it.
    sources: Vec<SourceStart>,
    /// The names of source files.
    files: NumberedValues<Vec<u8>>,
    /// The texts of the source lines to show.
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
    /// The number of the instruction that has the target.
    instruction: u64,
    kind: TargetKind,
    to: TargetTo,
}

/// Where a target is.
#[derive(Debug)]
enum TargetTo {
    /// A target in the same listing: its distance in instructions from the branch.
    Inside(i64),
    /// A target outside the listing: its number in [`InstructionColumns::outs`].
    Outside(u32),
}

/// The target of an instruction, if it is outside the listing that contains the instruction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OutsideTarget {
    /// The name of the function that contains the target; empty if unknown.
    function: String,
    /// The offset of the target in the function.
    offset: u64,
    addr: u64,
}

/// The source line of all instructions from this one to the next entry. Files are counted from 1; 0 means unknown.
#[derive(Debug)]
struct SourceStart {
    /// The number of the first instruction that has this source line.
    instruction: u64,
    file: u32,
    line: u32,
}

/// A line of a source file. Files are counted from 1.
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
    /// The number of a value, counted from 0. A new value gets the next number.
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
    /// Appends the instructions of a listing, with their targets and source lines. A source line is only stored for the
    /// first of consecutive instructions that have it.
    pub(super) fn add(&mut self, listing: &Listing, names: &PageNames) {
        let mut previous_source = None;
        for (row_index, row) in listing.rows.iter().enumerate() {
            let Some(instruction) = &row.instruction else { continue };
            // The number of the instruction among those of all listings.
            let number = self.instructions.len() as u64;
            let text = InstructionText { text: text_without_target(instruction), len: instruction.len };
            self.instructions.push(self.texts.number(text));
            self.add_target(number, row_index, instruction, listing, names);
            // File 0 means that the source is unknown, so files are numbered from 1.
            let (file, line) = match row.source {
                Some(source) => (self.files.number(listing.files[source.file].name.clone()) + 1, source.line),
                None => (0, 0),
            };
            // `previous_source` starts as `None` in each listing, so its first instruction always gets an entry.
            if previous_source != Some((file, line)) {
                previous_source = Some((file, line));
                self.sources.push(SourceStart { instruction: number, file, line });
            }
        }
        self.add_lines(listing);
    }

    /// Adds the address that an instruction refers to, if there is one and it is worth showing. `number` is the number
    /// of the instruction among those of all listings, and `row_index` its index in the listing.
    fn add_target(
        &mut self,
        number: u64,
        row_index: usize,
        instruction: &Instruction,
        listing: &Listing,
        names: &PageNames,
    ) {
        let Some(Target { addr, kind, owner }) = &instruction.target else { return };
        let to = match owner {
            TargetOwner::Inside(offset) => match listing.find_start(*offset) {
                Some(target_index) => TargetTo::Inside(target_index as i64 - row_index as i64),
                // The target is inside the listing, but no instruction starts there. So only its address is known.
                None => self.outside_target(String::new(), 0, *addr),
            },
            TargetOwner::Function(name, offset) => self.outside_target(names.target(name), *offset, *addr),
            // An immediate operand that is no known address adds nothing to the instruction's text, which shows the
            // number.
            TargetOwner::Unknown if *kind == TargetKind::Immediate => return,
            TargetOwner::Unknown => self.outside_target(String::new(), 0, *addr),
        };
        self.targets.push(BranchTarget { instruction: number, kind: *kind, to });
    }

    fn outside_target(&mut self, function: String, offset: u64, addr: u64) -> TargetTo {
        TargetTo::Outside(self.outs.number(OutsideTarget { function, offset, addr }))
    }

    /// Collects the texts of the source lines that have instructions, and of the lines in short gaps between them.
    fn add_lines(&mut self, listing: &Listing) {
        for (number, file) in listing.files.iter().enumerate() {
            if file.text.is_none() {
                continue;
            }
            let sources = listing.rows.iter().filter_map(|row| row.source).filter(|source| source.file == number);
            let mut lines: Vec<u32> = sources.map(|source| source.line).collect();
            lines.sort_unstable();
            lines.dedup();
            let short_gaps = lines.windows(2).filter(|pair| pair[1] - pair[0] <= MAX_LINE_GAP + 1);
            let lines_in_gaps: Vec<u32> = short_gaps.flat_map(|pair| pair[0] + 1..pair[1]).collect();
            let page_file = self.files.number(file.name.clone()) + 1;
            for line in lines.into_iter().chain(lines_in_gaps) {
                if let Some(text) = file.line(line) {
                    self.lines.entry(LinePlace { file: page_file, line }).or_insert_with(|| shorten(text));
                }
            }
        }
    }

    /// Writes all columns.
    pub(super) fn write(&self, section: Section) -> Section {
        // Renumber the texts of instructions so that the most frequent ones have the smallest numbers, which take less
        // space.
        let mut uses = vec![0u64; self.texts.list.len()];
        self.instructions.iter().for_each(|&text| uses[text as usize] += 1);
        let mut order: Vec<usize> = (0..uses.len()).collect();
        order.sort_by_key(|&text| Reverse(uses[text]));
        let mut new_numbers = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&text, new_number)| new_numbers[text] = new_number);
        let texts = || order.iter().map(|&text| &self.texts.list[text]);
        let section = section
            .numbers("text", self.instructions.iter().map(|&text| new_numbers[text as usize]))
            .texts("texts", texts().map(|spelling| &spelling.text))
            .numbers("texts.len", texts().map(|spelling| spelling.len));
        self.source_columns(self.target_columns(section))
    }

    /// Adds the columns for instructions that have a target (`target.…`), and for targets outside the listings
    /// (`out.…`).
    fn target_columns(&self, section: Section) -> Section {
        let outs = || self.outs.list.iter();
        section
            .numbers("target.gap", gaps(self.targets.iter().map(|target| target.instruction)))
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
            .numbers("source.gap", gaps(self.sources.iter().map(|source| source.instruction)))
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
            Self::Outside(number) => u64::from(number) << 1 | 1,
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
    numbers.scan(0, |previous, number| Some(number - std::mem::replace(previous, number)))
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
