//! Answers questions about spans, summed over all traces.
//!
//! The numbers equal the results of the queries in Miri's documentation when they are run in Perfetto. The queries
//! count the topmost spans of each track, ignoring spans with excluded names. Averages, standard deviations and
//! percentages are truncated, not rounded.

use super::preset::{Preset, Question};
use super::tables::{TitledTables, input_name};
use crate::analysis::filter::TimeRange;
use crate::analysis::quantity::grouped;
use crate::analysis::timeline::{GapRule, MIRI_FRAMES, NO_NAME, NameNo, Selection, Slice, SliceKind, Tally, Timeline};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::printable::list_some;
use crate::pipeline::table::{Cell, Table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The answers for all traces added so far.
pub(super) struct Answers<'p> {
    preset: &'p Preset,
    answers: Vec<QuestionAnswer>,
    several: bool,
    gap_rule: GapRule,
    /// The time range of all spans, in nanoseconds. `None` if there are none.
    extent: Option<(i64, i64)>,
    /// True if any span is in the time range that the user asked for.
    has_selected: bool,
    left_out: LeftOut,
    /// How many spans have each name, to say what there is if a question has no answer.
    names: BTreeMap<Vec<u8>, u64>,
    /// The same for spans whose arguments say what they did.
    names_with_action: BTreeMap<Vec<u8>, u64>,
    /// Some names of arguments that spans have.
    arguments: BTreeSet<String>,
}

/// By span name and argument value: the spans' durations and their total self time.
type ArgumentSums = BTreeMap<(Vec<u8>, Vec<u8>), (Tally, i128)>;

/// Counts of the slices that the sums leave out because they have no duration.
#[derive(Debug, Default)]
struct LeftOut {
    instants: u64,
    unfinished: u64,
    empty: u64,
}

enum QuestionAnswer {
    Spans(TopLevel),
    ByName(BTreeMap<Vec<u8>, Tally>),
    ByArg(ArgumentSums),
    Gaps(Vec<GapRow>),
}

/// The answer to [`Question::Spans`].
#[derive(Default)]
struct TopLevel {
    slices: u64,
    time: i128,
    spans: Tally,
    names: BTreeMap<Vec<u8>, Tally>,
}

struct GapRow {
    input: String,
    start: i64,
    duration: i64,
    thread: String,
    after: String,
    before: String,
}

impl<'p> Answers<'p> {
    /// Starts with no traces. If there are `several`, the table of gaps has a column for the input.
    pub(super) fn new(preset: &'p Preset, several: bool, gap_rule: GapRule) -> Self {
        let answers = preset.questions.iter().map(QuestionAnswer::new).collect();
        Self {
            preset,
            answers,
            several,
            gap_rule,
            extent: None,
            has_selected: false,
            left_out: LeftOut::default(),
            names: BTreeMap::new(),
            names_with_action: BTreeMap::new(),
            arguments: BTreeSet::new(),
        }
    }

    /// Adds the spans of one more trace.
    pub(super) fn add(&mut self, path: &Path, timeline: &Timeline) {
        let Preset { exclude, times, .. } = self.preset;
        let find_name = |name: &str| timeline.names.find(name.as_bytes());
        let exclude = match exclude {
            Some(names) => names.iter().filter_map(|name| find_name(name)).collect(),
            None if timeline.is_miri => MIRI_FRAMES.into_iter().filter_map(find_name).collect(),
            None => Vec::new(),
        };
        let selection = Selection { exclude, times: absolute_times(times, timeline) };
        if !timeline.slices.is_empty() {
            let (own_first, own_last) = timeline.bounds();
            let (first, last) = self.extent.unwrap_or((own_first, own_last));
            self.extent = Some((first.min(own_first), last.max(own_last)));
        }
        self.has_selected |= timeline.slices.iter().any(|slice| selection.overlaps(slice));
        if self.preset.questions.contains(&Question::All) {
            self.left_out.add(timeline, &selection);
        }
        if self.preset.questions.iter().any(|question| matches!(question, Question::Sub(_))) {
            self.count_names(timeline);
        }
        self.arguments.extend(timeline.argument_names.iter().cloned());
        let mut by_args = timeline.by_arg.iter();
        for (question, answer) in self.preset.questions.iter().zip(&mut self.answers) {
            match (question, answer) {
                (_, QuestionAnswer::Spans(top)) => top.add(timeline, &selection),
                (_, QuestionAnswer::ByArg(sums)) => {
                    if let Some(values) = by_args.next() {
                        sum_by_arg(timeline, values, &selection, sums);
                    }
                }
                (_, QuestionAnswer::Gaps(rows)) => rows.extend(gaps(path, timeline, &selection, self.gap_rule)),
                (Question::Sub(name), QuestionAnswer::ByName(tallies)) => {
                    let Some(name) = find_name(name) else { continue };
                    let mut by_number = ByNumber::new(timeline);
                    for slice in &timeline.slices {
                        if slice.name == name && slice.sub != NO_NAME && selection.overlaps(slice) {
                            by_number.add(slice.sub, slice.duration);
                        }
                    }
                    by_number.merge_into(timeline, tallies);
                }
                (_, QuestionAnswer::ByName(tallies)) => {
                    let mut by_number = ByNumber::new(timeline);
                    for slice in &timeline.slices {
                        if slice.duration > 0 && selection.overlaps(slice) {
                            by_number.add(slice.name, slice.duration);
                        }
                    }
                    by_number.merge_into(timeline, tallies);
                }
            }
        }
    }

    /// Fails if the limits of time select no span, and says which times there are.
    pub(super) fn check_selection(&self) -> Result<()> {
        if self.has_selected || self.preset.times.is_empty() {
            return Ok(());
        }
        let Some((first, last)) = self.extent else { return Ok(()) };
        let [first, last] = [first, last].map(|nanos| nanos as f64 / 1e9);
        Err(Error::new(format!("no spans match --time; times in this input: {first:.9} to {last:.9} s")))
    }

    /// A line about the slices that the table of all spans leaves out. `None` if there are none.
    pub(super) fn left_out(&self) -> Option<String> {
        let LeftOut { instants, unfinished, empty } = self.left_out;
        let mut parts = Vec::new();
        for (count, one, many) in [
            (instants, "instant", "instants"),
            (empty, "span of no duration", "spans of no duration"),
            (unfinished, "span that never ends", "spans that never end"),
        ] {
            match count {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                count => parts.push(format!("{} {many}", grouped(count))),
            }
        }
        if parts.is_empty() { None } else { Some(format!("all spans, without {}", parts.join(", "))) }
    }

    /// Counts the spans of each name.
    fn count_names(&mut self, timeline: &Timeline) {
        let mut counts = vec![(0, 0); timeline.names.len() + 1];
        let unnamed = timeline.names.len();
        for slice in &timeline.slices {
            let (all, with_action) = &mut counts[unnamed.min(slice.name as usize)];
            *all += 1;
            *with_action += u64::from(slice.sub != NO_NAME);
        }
        counts.truncate(unnamed);
        for (number, (all, with_action)) in counts.into_iter().enumerate().filter(|(_, (all, _))| *all > 0) {
            let name = timeline.names.text(number as NameNo);
            *self.names.entry(name.to_vec()).or_default() += all;
            if with_action > 0 {
                *self.names_with_action.entry(name.to_vec()).or_default() += with_action;
            }
        }
    }

    /// The questions without an answer, in words, with what there is instead: first those that may have none, then the
    /// others, which the user asked of these very inputs. Otherwise an empty table would be shown without an
    /// explanation.
    pub(super) fn unanswered(&self) -> (Vec<String>, Vec<String>) {
        let (mut optional, mut asked) = (Vec::new(), Vec::new());
        for (at, (question, answer)) in self.preset.questions.iter().zip(&self.answers).enumerate() {
            let lines = if at < self.preset.optional { &mut optional } else { &mut asked };
            match (question, answer) {
                (Question::ByArg(key), QuestionAnswer::ByArg(sums)) if sums.is_empty() => {
                    let there = list_some(self.arguments.iter().cloned());
                    lines.push(format!("no span has an argument '{key}'; arguments of spans in this input: {there}"));
                }
                (Question::Sub(name), QuestionAnswer::ByName(tallies)) if tallies.is_empty() => {
                    lines.push(self.without_action(name));
                }
                _ => {}
            }
        }
        (optional, asked)
    }

    /// Says why [`Question::Sub`] has no answer for this name.
    fn without_action(&self, name: &str) -> String {
        if !self.names.contains_key(name.as_bytes()) {
            return format!("no span is named '{name}'; spans in this input: {}", most_frequent(&self.names));
        }
        let others = if self.names_with_action.is_empty() {
            "no span has an argument of its own name (try --by-arg KEY)".to_owned()
        } else {
            format!("spans that have one: {}", most_frequent(&self.names_with_action))
        };
        format!("no span '{name}' has an argument of that name; {others}")
    }

    /// The tables, each titled by its question.
    pub(super) fn into_tables(self) -> TitledTables {
        let mut tables = Vec::new();
        for (question, answer) in self.preset.questions.iter().zip(self.answers) {
            tables.push(match (question, answer) {
                (_, QuestionAnswer::Spans(top)) => ("top-level spans".to_owned(), top.into_table()),
                (_, QuestionAnswer::Gaps(rows)) => ("gaps".to_owned(), gap_table(rows, self.several)),
                (Question::Sub(name), QuestionAnswer::ByName(tallies)) => {
                    let by_count = |tally: &Tally| (Reverse(tally.count), Reverse(tally.sum));
                    (format!("what {name} did"), name_table(&tallies, by_count))
                }
                (Question::ByArg(key), QuestionAnswer::ByArg(sums)) => (format!("time by {key}"), arg_table(sums)),
                (_, QuestionAnswer::ByArg(sums)) => ("time by argument".to_owned(), arg_table(sums)),
                (_, QuestionAnswer::ByName(tallies)) => {
                    let by_sum = |tally: &Tally| (Reverse(tally.sum), Reverse(tally.count));
                    ("all spans".to_owned(), name_table(&tallies, by_sum))
                }
            });
        }
        tables
    }
}

/// The most frequent names.
fn most_frequent(names: &BTreeMap<Vec<u8>, u64>) -> String {
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by_key(|(_, count)| Reverse(**count));
    list_some(names.into_iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()))
}

/// The time ranges in nanoseconds of the trace's clock.
fn absolute_times(ranges: &[TimeRange], timeline: &Timeline) -> Vec<(i64, i64)> {
    if ranges.is_empty() {
        return Vec::new();
    }
    let (first, last) = timeline.bounds();
    // Ranges count from zero; only damaged traces have negative times.
    let [first, last] = [first, last].map(|time| Nanos(u64::try_from(time).unwrap_or(0)));
    let nanos = |Nanos(time): Nanos| i64::try_from(time).unwrap_or(i64::MAX);
    let times = ranges.iter().map(|range| {
        let (from, to) = range.times(first, last);
        (range.from.map_or(i64::MIN, |_| nanos(from)), nanos(to))
    });
    times.collect()
}

impl QuestionAnswer {
    fn new(question: &Question) -> Self {
        match question {
            Question::Spans => Self::Spans(TopLevel::default()),
            Question::All | Question::Sub(_) => Self::ByName(BTreeMap::new()),
            Question::ByArg(_) => Self::ByArg(BTreeMap::new()),
            Question::Gaps => Self::Gaps(Vec::new()),
        }
    }
}

/// Sums the spans that have an argument, by span name and argument value.
fn sum_by_arg(timeline: &Timeline, values: &[(u32, NameNo)], selection: &Selection, sums: &mut ArgumentSums) {
    let own_times = timeline.own_times();
    for (index, value) in values {
        let slice = &timeline.slices[*index as usize];
        if slice.duration < 0 || !selection.overlaps(slice) {
            continue;
        }
        let key = (timeline.names.text(slice.name).to_vec(), timeline.names.text(*value).to_vec());
        let (tally, own) = sums.entry(key).or_default();
        tally.add(slice.duration);
        *own += i128::from(own_times[*index as usize]);
    }
}

impl LeftOut {
    fn add(&mut self, timeline: &Timeline, selection: &Selection) {
        for slice in timeline.slices.iter().filter(|slice| slice.duration <= 0 && selection.overlaps(slice)) {
            match slice.kind {
                SliceKind::Instant => self.instants += 1,
                _ if slice.duration < 0 => self.unfinished += 1,
                _ => self.empty += 1,
            }
        }
    }
}

/// The table for [`Question::ByArg`], sorted by self time.
fn arg_table(sums: ArgumentSums) -> Table {
    let mut table = Table::new(&["name", "value", "count", "sum", "self", "min", "max", "avg", "stddev"]);
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (tally, own))| (Reverse(*own), Reverse(tally.sum)));
    for ((name, value), (tally, own)) in sums {
        let mut row = tally_cells(&String::from_utf8_lossy(&name), &tally);
        row.insert(1, Cell::text(String::from_utf8_lossy(&value).into_owned()));
        row.insert(4, signed_cell(own));
        table.rows.push(row);
    }
    table
}

/// Sums of durations by the name numbers of one timeline. They are merged by text, because each trace numbers its names
/// differently. The last entry is for slices without a name.
struct ByNumber(Vec<Tally>);

impl ByNumber {
    fn new(timeline: &Timeline) -> Self {
        Self(vec![Tally::default(); timeline.names.len() + 1])
    }

    #[inline]
    fn add(&mut self, name: NameNo, duration: i64) {
        let unnamed = self.0.len() - 1;
        self.0[unnamed.min(name as usize)].add(duration);
    }

    fn merge_into(&self, timeline: &Timeline, tallies: &mut BTreeMap<Vec<u8>, Tally>) {
        for (number, tally) in self.0.iter().enumerate().filter(|(_, tally)| tally.count > 0) {
            tallies.entry(timeline.names.text(number as NameNo).to_vec()).or_default().merge(tally);
        }
    }
}

impl TopLevel {
    fn add(&mut self, timeline: &Timeline, selection: &Selection) {
        let mut slices = 0;
        let mut start = i64::MAX;
        let mut end = i64::MIN;
        let mut by_number = ByNumber::new(timeline);
        // Compute all sums in one pass: the slices don't fit the CPU's caches.
        for slice in timeline.slices.iter().filter(|slice| selection.overlaps(slice)) {
            slices += 1;
            start = start.min(slice.start);
            end = end.max(slice.end());
            if selection.is_outermost(slice) {
                if slice.duration > 0 {
                    self.spans.add(slice.duration);
                }
                if slice.name != NO_NAME {
                    by_number.add(slice.name, slice.duration);
                }
            }
        }
        self.slices += slices;
        if slices > 0 {
            // Miri's clock starts with the program, so the time of the last event is the duration. Perfetto does the
            // same. The clocks of other traces count since boot or since 1970, so take the time since the trace's first
            // event.
            let since_start = start <= end.saturating_sub(start);
            self.time += i128::from(if since_start { end } else { end.saturating_sub(start) });
        }
        by_number.merge_into(timeline, &mut self.names);
    }

    fn into_table(self) -> Table {
        let mut table = Table::new(&["name", "count", "sum", "%", "min", "max", "avg", "stddev"]);
        let (time, percent) = match self.slices {
            0 => (Cell::None, Cell::None),
            _ => (signed_cell(self.time), Cell::Number(100.0, 1)),
        };
        table.rows.push(vec![
            Cell::Word("TOTAL PROGRAM DURATION"),
            Cell::Count(self.slices),
            time,
            percent,
            Cell::None,
            Cell::None,
            Cell::None,
            Cell::None,
        ]);
        table.rows.push(self.row("TOTAL OVER ALL SPANS (excluding events)", &self.spans));
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(_, tally)| (Reverse(tally.sum), Reverse(tally.count)));
        table.rows.extend(names.iter().map(|(name, tally)| self.row(&String::from_utf8_lossy(name), tally)));
        table
    }

    fn row(&self, name: &str, tally: &Tally) -> Vec<Cell> {
        let percent = match (tally.sum * 1000).checked_div(self.time) {
            Some(tenths) if tally.count > 0 => Cell::Number(tenths as f64 / 10.0, 1),
            _ => Cell::None,
        };
        let mut row = tally_cells(name, tally);
        row.insert(3, percent);
        row
    }
}

fn signed_cell(number: i128) -> Cell {
    match i64::try_from(number) {
        Ok(number) => Cell::Signed(number),
        Err(_) => Cell::Number(number as f64, 0),
    }
}

/// The cells for name, count, sum, min, max, avg and stddev.
fn tally_cells(name: &str, tally: &Tally) -> Vec<Cell> {
    let mut cells = vec![Cell::text(name.to_owned()), Cell::Count(tally.count)];
    if tally.count == 0 {
        cells.extend([Cell::None, Cell::None, Cell::None]);
    } else {
        cells.extend([signed_cell(tally.sum), Cell::Signed(tally.min), Cell::Signed(tally.max)]);
    }
    cells.push(tally.mean().map_or(Cell::None, Cell::Signed));
    cells.push(tally.deviation().map_or(Cell::None, Cell::Signed));
    cells
}

/// Makes a table with one row per name, sorted by `key`.
fn name_table<K: Ord>(tallies: &BTreeMap<Vec<u8>, Tally>, key: impl Fn(&Tally) -> K) -> Table {
    let mut table = Table::new(&["name", "count", "sum", "min", "max", "avg", "stddev"]);
    let mut tallies: Vec<_> = tallies.iter().collect();
    tallies.sort_by_key(|(_, tally)| key(tally));
    table.rows.extend(tallies.iter().map(|(name, tally)| tally_cells(&String::from_utf8_lossy(name), tally)));
    table
}

/// The gaps between the top-level spans of a trace.
fn gaps(path: &Path, timeline: &Timeline, selection: &Selection, rule: GapRule) -> Vec<GapRow> {
    let name = |slice: &Slice| String::from_utf8_lossy(timeline.names.text(slice.name)).into_owned();
    let input = input_name(path);
    let mut rows = Vec::new();
    for gap in timeline.gaps(selection, rule) {
        let after = &timeline.slices[gap.after];
        let before = &timeline.slices[gap.before];
        rows.push(GapRow {
            input: input.clone(),
            start: gap.start,
            duration: gap.duration,
            thread: thread_text(timeline, after),
            after: name(after),
            before: name(before),
        });
    }
    rows
}

/// The thread ID of a slice, as text. The text also shows if the slice is on a track of its own.
fn thread_text(timeline: &Timeline, slice: &Slice) -> String {
    let track = timeline.tracks.get(slice.track as usize);
    let tid = track.and_then(|track| track.tid).map_or_else(|| "?".to_owned(), |tid| tid.to_string());
    match slice.kind {
        SliceKind::Async => format!("{tid} (by id)"),
        SliceKind::Span | SliceKind::Instant => tid,
    }
}

fn gap_table(mut rows: Vec<GapRow>, several: bool) -> Table {
    rows.sort_by_key(|row| Reverse(row.duration));
    let mut columns = vec!["ts", "dur", "thread", "after", "before"];
    if several {
        columns.push("input");
    }
    let mut table = Table::new(&columns);
    table.rows.extend(rows.into_iter().map(|row| {
        let mut cells = vec![
            Cell::Signed(row.start),
            Cell::Signed(row.duration),
            Cell::text(row.thread),
            Cell::text(row.after),
            Cell::text(row.before),
        ];
        if several {
            cells.push(Cell::text(row.input));
        }
        cells
    }));
    table
}
