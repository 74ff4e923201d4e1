//! Section `jit` of the page: what the runtimes compiled, and when.
//!
//! Each row stands for a code range that was written, with its time, tier, size and function. If there are very many,
//! only the functions that were compiled most often have rows of their own. The code ranges of other functions are
//! summed by time bucket and tier. Two more columns then say how many code ranges a row stands for (`codes`), and how
//! many of them were recompilations (`again`).

use super::names::PageNames;
use crate::analysis::category::Category;
use crate::jit::SourceState;
use crate::model::printable::readable;
use crate::model::stacks::Profile;
use crate::model::tier::Tier;
use crate::model::{Nanos, Pid};
use crate::pipeline::Job;
use crate::pipeline::recording::Examined;
use crate::render::viewer::{Section, category_number};
use crate::runtimes::jit_names::ReadableNames;
use crate::runtimes::{ProcessRuntimes, RUNTIMES, tier};
use crate::symbolize::code_map::ListedCode;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of code ranges that all have rows of their own. If there are more, most are summed.
const ROWS: usize = 30_000;

/// If there are more than [`ROWS`] code ranges, this many of the most often compiled functions keep rows of their own.
const FUNCTIONS: usize = 2_000;

/// About how many time buckets the recording is divided into, if the code ranges of most functions are summed by
/// bucket.
const BUCKETS: u64 = 2_000;

/// Nanoseconds per unit of time in the page, which is a microsecond.
const UNIT: u64 = 1_000;

/// All code that the processes of one recording compiled.
#[derive(Debug, Default)]
pub(super) struct CompiledCode {
    /// The code ranges with known times, in the order of time.
    codes: Vec<WrittenCode>,
    moves: Vec<CodeMove>,
    /// The functions that the code ranges belong to.
    functions: Vec<CompiledFunction>,
    /// The amount of code whose time is unknown, by category.
    untimed: BTreeMap<Category, WrittenAmount>,
    /// The sources that the code is from, as JSON.
    sources: Vec<Value>,
}

/// A code range that a runtime wrote.
#[derive(Debug, Clone, Copy)]
struct WrittenCode {
    /// When the code was written.
    time: Nanos,
    category: Category,
    bytes: u64,
    /// The index of the function in [`CompiledCode::functions`]. When several recordings are combined for the page, it
    /// is changed to the index in [`Timed::functions`].
    function: u32,
    /// The index of the code's recording among the inputs.
    input: u32,
}

/// A time at which a runtime moved code.
#[derive(Debug, Clone, Copy)]
struct CodeMove {
    time: Nanos,
    /// The index of the recording among the inputs.
    input: u32,
}

/// A compiled function of a process.
#[derive(Debug)]
struct CompiledFunction {
    name: String,
    pid: Pid,
}

/// How much code was written.
#[derive(Debug, Default, Clone, Copy)]
struct WrittenAmount {
    /// The number of code ranges.
    codes: u64,
    bytes: u64,
    /// The number of code ranges for which a function was compiled again.
    again: u64,
}

/// A row of the section.
#[derive(Debug, Clone, Copy)]
struct CodeRow {
    /// The time in units of the page, or the start of the time bucket.
    time: u64,
    category: Category,
    written: WrittenAmount,
    /// The function's number among the listed functions, counted from 1; 0 for a sum over several functions.
    function: u32,
    input: u32,
}

impl CompiledCode {
    /// Collects the code that was compiled in a recording. `names` spells function names as in the rest of the page.
    pub(super) fn new(examined: &Examined<'_>, names: &PageNames, job: &Job) -> Self {
        let mut compiled = Self { sources: sources(examined), ..Self::default() };
        let survey = examined.resolution.survey;
        let mut runtimes = ProcessRuntimes::new(&survey.processes);
        let mut function_numbers: FxHashMap<(Pid, Vec<u8>), u32> = FxHashMap::default();
        examined.resolution.found.each_code(&survey.processes, &job.pool, |listed: &ListedCode<'_>| {
            let ListedCode { time, pid, code, is_move } = *listed;
            if is_move {
                // A move without a time can't be shown.
                compiled.moves.extend(time.map(|time| CodeMove { time, input: 0 }));
                return;
            }
            let category = Category::Jit(tier(code.name, runtimes.find(pid)));
            let Some(time) = time else {
                // `false`: without times, it isn't known which code was compiled again.
                compiled.untimed.entry(category).or_default().add(code.size, false);
                return;
            };
            let next = compiled.functions.len() as u32;
            let key = (pid, ReadableNames::without_tier(code.name).into_owned());
            let function = *function_numbers.entry(key).or_insert(next);
            if function == next {
                compiled.functions.push(CompiledFunction { name: names.jit(code.name, None), pid });
            }
            compiled.codes.push(WrittenCode { time, category, bytes: code.size, function, input: 0 });
        });
        compiled.codes.sort_by_key(|code| code.time);
        compiled
    }

    /// Adds `shift` nanoseconds to all times, and marks the code as belonging to the input with this index.
    pub(super) fn move_to(&mut self, input: u32, shift: u64) {
        for code in &mut self.codes {
            code.time.0 += shift;
            code.input = input;
        }
        for code_move in &mut self.moves {
            code_move.time.0 += shift;
            code_move.input = input;
        }
    }
}

impl WrittenAmount {
    fn add(&mut self, bytes: u64, again: bool) {
        self.codes += 1;
        self.bytes += bytes;
        self.again += u64::from(again);
    }
}

/// The sources that the code is from, with the clock of their times (null if they have no times).
fn sources(examined: &Examined<'_>) -> Vec<Value> {
    let mut sources = Vec::new();
    for account in examined.accounts() {
        if let SourceState::Loaded { codes, clock, .. } = &account.state {
            sources.push(json!({
                "path": readable(account.path.as_os_str().as_encoded_bytes()),
                "kind": account.kind.name(),
                "pid": account.pid.0,
                "codes": codes,
                "clock": clock.map(|clock| clock.to_string()),
            }));
        }
    }
    sources
}

/// The page's section about compiled code in all recordings; `None` if there is no such code. Times on the page count
/// from `base`, the time when the first code was written or moved. Code without a time is only summed by category
/// (`untimed`).
pub(super) fn section<'a>(recordings: impl Iterator<Item = &'a CompiledCode>, profile: &Profile) -> Option<Section> {
    let recordings: Vec<&CompiledCode> = recordings.collect();
    let mut codes: Vec<WrittenCode> = Vec::new();
    let mut functions: Vec<&CompiledFunction> = Vec::new();
    for compiled in &recordings {
        let functions_before = functions.len() as u32;
        codes.extend(
            compiled.codes.iter().map(|code| WrittenCode { function: code.function + functions_before, ..*code }),
        );
        functions.extend(&compiled.functions);
    }
    let untimed: Vec<(&Category, &WrittenAmount)> = recordings.iter().flat_map(|compiled| &compiled.untimed).collect();
    if codes.is_empty() && untimed.is_empty() {
        return None;
    }
    codes.sort_by_key(|code| code.time);
    let mut moves: Vec<CodeMove> = recordings.iter().flat_map(|compiled| compiled.moves.iter().copied()).collect();
    moves.sort_by_key(|code_move| code_move.time);
    let first_code = codes.first().map(|code| code.time);
    let first_move = moves.first().map(|code_move| code_move.time);
    let base = first_code.into_iter().chain(first_move).min().unwrap_or_default();
    let timed = Timed { codes, functions, base };
    let untimed = untimed.into_iter().map(|(category, written)| {
        json!({ "category": category_number(*category), "codes": written.codes, "bytes": written.bytes })
    });
    let json = json!({
        "base": base.0.to_string(),
        "unit": UNIT,
        "codes": timed.codes.len(),
        "whole": timed.is_whole(),
        "functions": timed.functions.len(),
        "untimed": untimed.collect::<Vec<_>>(),
        "sources": recordings.iter().flat_map(|compiled| compiled.sources.clone()).collect::<Vec<_>>(),
        "interpreters": interpreters(profile),
    });
    let section = timed.columns(Section::new("jit").json(json));
    let section = section
        .deltas("move.time", moves.iter().map(|code_move| (code_move.time.0 - base.0) / UNIT))
        .numbers("move.input", moves.iter().map(|code_move| code_move.input.into()));
    Some(section)
}

/// The names of functions in the profile that are part of a runtime's interpreter, not of the program that it runs.
fn interpreters(profile: &Profile) -> Vec<String> {
    let names: FxHashSet<&[u8]> = profile.frames().map(|(_, frame)| profile.name_of(frame.name)).collect();
    let mut found = Vec::new();
    for name in names {
        // V8 calls the handlers of bytecodes `BytecodeHandler:…`. In a profile with readable names, they end with `
        // bytecode handler` instead.
        let is_handler = name.starts_with(b"BytecodeHandler:") || name.ends_with(b" bytecode handler");
        if is_handler || RUNTIMES.iter().any(|runtime| runtime.is_interpreter(name)) {
            found.push(readable(name).into_owned());
        }
    }
    found.sort_unstable();
    found
}

/// Code of all recordings with known times, ordered by time.
struct Timed<'a> {
    codes: Vec<WrittenCode>,
    functions: Vec<&'a CompiledFunction>,
    /// The time when the first code was written or moved. The page counts all times from it.
    base: Nanos,
}

impl Timed<'_> {
    /// True if each code range has a row of its own on the page. False if there are more than [`ROWS`] code ranges.
    /// Then the code ranges of most functions are summed.
    fn is_whole(&self) -> bool {
        self.codes.len() <= ROWS
    }

    /// The time since [`Timed::base`], in units of the page.
    fn page_time(&self, time: Nanos) -> u64 {
        (time.0 - self.base.0) / UNIT
    }

    /// Adds the columns with a value for each row (a code range, or a sum of code ranges), and those with a value for
    /// each listed function.
    fn columns(&self, section: Section) -> Section {
        let listed = self.listed_functions();
        let mut listed_numbers = vec![0u32; self.functions.len()];
        for (&function, number) in listed.iter().zip(1..) {
            listed_numbers[function as usize] = number;
        }
        let rows = self.rows(&listed_numbers);
        let functions = || listed.iter().map(|&function| self.functions[function as usize]);
        let section = section
            .deltas("time", rows.iter().map(|row| row.time))
            .numbers("category", rows.iter().map(|row| category_number(row.category)))
            .numbers("bytes", rows.iter().map(|row| row.written.bytes))
            .numbers("function", rows.iter().map(|row| row.function.into()))
            .numbers("input", rows.iter().map(|row| row.input.into()))
            .texts("function.name", functions().map(|function| &function.name))
            .numbers("function.pid", functions().map(|function| u64::try_from(function.pid.0).unwrap_or(0)));
        // If each code range has a row of its own, the page counts code ranges and recompilations itself.
        if self.is_whole() {
            return section;
        }
        section
            .numbers("codes", rows.iter().map(|row| row.written.codes))
            .numbers("again", rows.iter().map(|row| row.written.again))
    }

    /// The functions whose code ranges have rows of their own, in order of their first compilation.
    fn listed_functions(&self) -> Vec<u32> {
        let mut counts = vec![0u32; self.functions.len()];
        for code in &self.codes {
            counts[code.function as usize] += 1;
        }
        let mut listed: Vec<u32> = (0..counts.len() as u32).collect();
        // If there are too many code ranges for a row each, only the functions with the most code ranges are listed.
        if !self.is_whole() {
            listed.sort_by_key(|&function| Reverse(counts[function as usize]));
            listed.truncate(FUNCTIONS);
            listed.sort_unstable();
        }
        listed
    }

    /// The rows ordered by time. `numbers` has for each function its number among the listed functions, counted from 1;
    /// 0 if the function isn't listed. Code of functions that aren't listed is summed.
    fn rows(&self, numbers: &[u32]) -> Vec<CodeRow> {
        let last_time = self.codes.last().map_or(0, |last| self.page_time(last.time));
        // The length of a time bucket, which is at least 1.
        let bucket = last_time / BUCKETS + 1;
        let mut rows = Vec::new();
        let mut sums = BTreeMap::<(u64, Category, u32), WrittenAmount>::new();
        let mut was_compiled = vec![false; self.functions.len()];
        for code in &self.codes {
            let WrittenCode { category, input, .. } = *code;
            // Bytecode isn't a compilation, so the first compilation after it doesn't count as a recompilation.
            let is_compiled = category != Category::Jit(Some(Tier::Interpreted));
            let again = is_compiled && std::mem::replace(&mut was_compiled[code.function as usize], true);
            let time = self.page_time(code.time);
            let function = numbers[code.function as usize];
            if function > 0 {
                let mut written = WrittenAmount::default();
                written.add(code.bytes, again);
                rows.push(CodeRow { time, category, written, function, input });
            } else {
                let bucket_start = time / bucket * bucket;
                sums.entry((bucket_start, category, input)).or_default().add(code.bytes, again);
            }
        }
        for ((time, category, input), written) in sums {
            rows.push(CodeRow { time, category, written, function: 0, input });
        }
        rows.sort_by_key(|row| row.time);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(number: u32) -> CompiledFunction {
        CompiledFunction { name: format!("f{number}"), pid: Pid(1) }
    }

    /// Makes `count` code ranges. Half of them are of the first 100 functions, so these are compiled far more often
    /// than the other functions.
    fn codes(count: u32) -> Vec<WrittenCode> {
        let category = |at: u32| {
            Category::Jit(Some(match at % 4 {
                0 => Tier::Interpreted,
                _ => Tier::Optimized,
            }))
        };
        let function = |at: u32| if at.is_multiple_of(2) { at / 2 % 100 } else { 100 + at % 5_000 };
        let code = |at| WrittenCode {
            time: Nanos(7_000 + u64::from(at) * 1_500),
            category: category(at),
            bytes: u64::from(at % 7),
            function: function(at),
            input: 0,
        };
        (0..count).map(code).collect()
    }

    #[test]
    fn the_sums_of_a_large_dump_are_complete() {
        let functions: Vec<_> = (0..5_100).map(function).collect();
        for count in [ROWS as u32, ROWS as u32 + 10_001] {
            let (codes, base) = (codes(count), Nanos(7_000));
            let (mut compiled, mut again) = (FxHashSet::default(), 0);
            for code in codes.iter().filter(|code| code.category != Category::Jit(Some(Tier::Interpreted))) {
                again += u64::from(!compiled.insert(code.function));
            }
            let bytes: u64 = codes.iter().map(|code| code.bytes).sum();
            let timed = Timed { codes, functions: functions.iter().collect(), base };
            let listed = timed.listed_functions();
            let mut numbers = vec![0; functions.len()];
            listed.iter().zip(1..).for_each(|(&function, number)| numbers[function as usize] = number);
            let rows = timed.rows(&numbers);
            let sum = |of: fn(&WrittenAmount) -> u64| rows.iter().map(|row| of(&row.written)).sum::<u64>();
            assert_eq!(sum(|written| written.codes), u64::from(count));
            assert_eq!((sum(|written| written.bytes), sum(|written| written.again)), (bytes, again));
            assert!(rows.is_sorted_by_key(|row| row.time));
            let is_whole = count as usize == ROWS;
            assert_eq!(timed.is_whole(), is_whole);
            assert_eq!(rows.iter().all(|row| row.function > 0), is_whole);
            assert!(is_whole || (listed.len() == FUNCTIONS && rows.len() < count as usize));
            assert!(
                (0..100).all(|hot| listed.contains(&hot)),
                "the functions that were compiled most often are listed"
            );
        }
    }
}
