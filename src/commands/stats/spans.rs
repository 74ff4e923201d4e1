//! Answers questions about spans ([`Question`]), summed over all traces.
//!
//! The numbers equal the results of the queries in Miri's documentation when they are run in Perfetto. The queries
//! count the topmost spans of each track, ignoring spans with excluded names. Averages, standard deviations and
//! percentages are truncated, not rounded.

use super::preset::{Preset, Question};
use super::tables::{TitledTables, input_name};
use crate::analysis::filter::TimeRange;
use crate::analysis::quantity::grouped;
use crate::analysis::timeline::{
    GapRule, MIRI_FRAMES, NO_NAME, NameNumber, Selection, Slice, SliceKind, Tally, Timeline,
};
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
    /// The answers to the questions of the preset, in the same order.
    answers: Vec<QuestionAnswer>,
    /// True if there are several traces.
    has_several_traces: bool,
    gap_rule: GapRule,
    /// The time range of all spans, in nanoseconds. `None` if there are none.
    extent: Option<(i64, i64)>,
    /// True if any span is in the time range that the user asked for.
    has_selected: bool,
    left_out: LeftOut,
    /// The number of spans with each name. A message about a question without an answer lists the most frequent ones.
    names: BTreeMap<Vec<u8>, u64>,
    /// For each name, the number of spans that have an action: an argument that says what the span did. Mostly, that is
    /// the argument that is called like the span, such as `step` of a span `step`.
    names_with_action: BTreeMap<Vec<u8>, u64>,
    /// The names of arguments that were seen, up to a maximum per trace. The message that no span has the wanted
    /// argument lists them.
    arguments: BTreeSet<String>,
}

/// Sums for [`Question::ByArg`]. The key has the span's name and the argument's value.
type ArgumentSums = BTreeMap<(Vec<u8>, Vec<u8>), ArgumentSum>;

/// The spans of one name with one value of an argument.
#[derive(Debug, Default)]
struct ArgumentSum {
    durations: Tally,
    /// The self time of the spans, in nanoseconds: the time in them but not in spans that are nested in them.
    self_time: i128,
}

/// Counts of the slices that the table of all spans leaves out because they have no duration.
#[derive(Debug, Default)]
struct LeftOut {
    /// Events at a single moment.
    instants: u64,
    /// Spans without an end.
    unfinished: u64,
    /// Spans with a duration of zero.
    empty: u64,
}

/// The answer to a question, as sums over all traces so far.
enum QuestionAnswer {
    /// The answer to [`Question::Spans`].
    Spans(TopLevel),
    /// The answer to [`Question::All`] or [`Question::Action`]: durations by name.
    ByName(BTreeMap<Vec<u8>, Tally>),
    /// The answer to [`Question::ByArg`].
    ByArg(ArgumentSums),
    /// The answer to [`Question::Gaps`].
    Gaps(Vec<GapRow>),
}

/// The answer to [`Question::Spans`].
#[derive(Default)]
struct TopLevel {
    /// The number of slices of all kinds.
    slices: u64,
    /// The duration of the traces, in nanoseconds.
    time: i128,
    /// The durations of all top-level spans.
    spans: Tally,
    /// The durations of top-level spans, by name.
    names: BTreeMap<Vec<u8>, Tally>,
}

/// A row of the table of gaps. Times are in nanoseconds.
struct GapRow {
    /// The file name of the trace.
    input: String,
    start: i64,
    duration: i64,
    /// The thread of the span before the gap.
    thread: String,
    /// The name of the span after which the gap begins.
    after: String,
    /// The name of the span before which the gap ends.
    before: String,
}

impl<'p> Answers<'p> {
    /// Creates the answers for no traces yet. If there are going to be several, the table of gaps has a column for the
    /// input.
    pub(super) fn new(preset: &'p Preset, has_several_traces: bool, gap_rule: GapRule) -> Self {
        let answers = preset.questions.iter().map(QuestionAnswer::new).collect();
        Self {
            preset,
            answers,
            has_several_traces,
            gap_rule,
            extent: None,
            has_selected: false,
            left_out: LeftOut::default(),
            names: BTreeMap::new(),
            names_with_action: BTreeMap::new(),
            arguments: BTreeSet::new(),
        }
    }

    /// Adds the spans of one more trace to the answers of all questions. Also collects what messages need: the time
    /// range, what the tables leave out, and the names of spans and arguments.
    pub(super) fn add(&mut self, path: &Path, timeline: &Timeline) {
        let selection = select(self.preset, timeline);
        if !timeline.slices.is_empty() {
            let (first, last) = timeline.bounds();
            let (earliest, latest) = self.extent.unwrap_or((first, last));
            self.extent = Some((earliest.min(first), latest.max(last)));
        }
        self.has_selected |= timeline.slices.iter().any(|slice| selection.overlaps(slice));
        // `left_out` is only needed for the table of all spans. A line above that table says what it leaves out.
        if self.preset.questions.contains(&Question::All) {
            self.left_out.add(timeline, &selection);
        }
        // An action question asks what the spans of one name did. If it has no answer, a message lists the names that
        // have one. `count_names` collects these.
        if self.preset.questions.iter().any(|question| matches!(question, Question::Action(_))) {
            self.count_names(timeline);
        }
        self.arguments.extend(timeline.argument_names.iter().cloned());
        // The timeline has a list of argument values for each question about an argument, in the order of the
        // questions.
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
                (Question::Action(name), QuestionAnswer::ByName(tallies)) => {
                    sum_by_action(timeline, name, &selection, tallies);
                }
                (_, QuestionAnswer::ByName(tallies)) => sum_by_name(timeline, &selection, tallies),
            }
        }
    }

    /// Fails if no span is in the time range that the user asked for. The error states the time range of the inputs.
    pub(super) fn check_selection(&self) -> Result<()> {
        if self.has_selected || self.preset.times.is_empty() {
            return Ok(());
        }
        let Some((first, last)) = self.extent else { return Ok(()) };
        let [first, last] = [first, last].map(|nanos| nanos as f64 / 1e9);
        Err(Error::new(format!("no spans match --time; times in this input: {first:.9} to {last:.9} s")))
    }

    /// A line with the numbers of slices that the table of all spans leaves out. `None` if it leaves out none.
    pub(super) fn describe_left_out(&self) -> Option<String> {
        let LeftOut { instants, unfinished, empty } = self.left_out;
        let mut parts = Vec::new();
        for (count, singular, plural) in [
            (instants, "instant", "instants"),
            (empty, "span of no duration", "spans of no duration"),
            (unfinished, "span that never ends", "spans that never end"),
        ] {
            match count {
                0 => {}
                1 => parts.push(format!("1 {singular}")),
                count => parts.push(format!("{} {plural}", grouped(count))),
            }
        }
        if parts.is_empty() { None } else { Some(format!("all spans, without {}", parts.join(", "))) }
    }

    /// Counts the spans of each name, and those of them that state an action.
    fn count_names(&mut self, timeline: &Timeline) {
        // How many spans have each name, by the ID of the name in the timeline. After the last ID, there is an
        // additional count for spans without a name (`NO_NAME` is larger than all IDs).
        let unnamed = timeline.names.len();
        let mut all = vec![0; unnamed + 1];
        let mut with_action = vec![0; unnamed + 1];
        for slice in &timeline.slices {
            let id = unnamed.min(slice.name as usize);
            all[id] += 1;
            with_action[id] += u64::from(slice.action != NO_NAME);
        }
        for id in 0..unnamed {
            let name = timeline.names.text(id as NameNumber);
            if all[id] > 0 {
                *self.names.entry(name.to_vec()).or_default() += all[id];
            }
            if with_action[id] > 0 {
                *self.names_with_action.entry(name.to_vec()).or_default() += with_action[id];
            }
        }
    }

    /// Explains for each question without an answer why its table is empty.
    pub(super) fn unanswered(&self) -> UnansweredQuestions {
        let mut unanswered = UnansweredQuestions::default();
        for (index, (question, answer)) in self.preset.questions.iter().zip(&self.answers).enumerate() {
            let lines = if index < self.preset.optional { &mut unanswered.optional } else { &mut unanswered.required };
            match (question, answer) {
                (Question::ByArg(key), QuestionAnswer::ByArg(sums)) if sums.is_empty() => {
                    let existing = list_some(self.arguments.iter().cloned());
                    lines.push(format!(
                        "no selected span has an argument '{key}'; arguments of spans in this input: {existing}"
                    ));
                }
                (Question::Action(name), QuestionAnswer::ByName(tallies)) if tallies.is_empty() => {
                    lines.push(self.explain_missing_action(name));
                }
                _ => {}
            }
        }
        unanswered
    }

    /// Says why [`Question::Action`] has no answer for this name.
    fn explain_missing_action(&self, name: &str) -> String {
        if !self.names.contains_key(name.as_bytes()) {
            return format!("no span is named '{name}'; spans in this input: {}", most_frequent(&self.names));
        }
        let others = if self.names_with_action.is_empty() {
            "no other span has an argument that says what it did, either (try --by-arg KEY)".to_owned()
        } else {
            format!("spans with an argument that says what they did: {}", most_frequent(&self.names_with_action))
        };
        format!("no selected span named '{name}' has an argument that says what it did; {others}")
    }

    /// The tables, each with a title that says what question it answers.
    pub(super) fn into_tables(self) -> TitledTables {
        let mut tables = Vec::new();
        for (question, answer) in self.preset.questions.iter().zip(self.answers) {
            tables.push(match (question, answer) {
                (_, QuestionAnswer::Spans(top)) => ("top-level spans".to_owned(), top.into_table()),
                (_, QuestionAnswer::Gaps(rows)) => ("gaps".to_owned(), gap_table(rows, self.has_several_traces)),
                (Question::Action(name), QuestionAnswer::ByName(tallies)) => {
                    let by_count = |tally: &Tally| (Reverse(tally.count), Reverse(tally.sum));
                    (format!("what {name} did"), name_table(&tallies, by_count))
                }
                (Question::ByArg(key), QuestionAnswer::ByArg(sums)) => (format!("time by {key}"), arg_table(sums)),
                (_, QuestionAnswer::ByArg(sums)) => {
                    ("time by the value of a span argument".to_owned(), arg_table(sums))
                }
                (_, QuestionAnswer::ByName(tallies)) => {
                    let by_sum = |tally: &Tally| (Reverse(tally.sum), Reverse(tally.count));
                    ("all spans".to_owned(), name_table(&tallies, by_sum))
                }
            });
        }
        tables
    }
}

/// Explanations why questions have no answer.
#[derive(Debug, Default)]
pub(super) struct UnansweredQuestions {
    /// About questions that come from a list for many traces. A trace needn't answer all of these
    /// ([`Preset::optional`]).
    pub(super) optional: Vec<String>,
    /// About questions that the user asked about these very inputs.
    pub(super) required: Vec<String>,
}

/// Converts what a preset selects to the terms of a timeline: the IDs of the names that don't count as top-level spans,
/// and the selected time ranges on the timeline's own clock. By default, Miri's interpreted calls don't count.
fn select(preset: &Preset, timeline: &Timeline) -> Selection {
    let find_name = |name: &str| timeline.names.find(name.as_bytes());
    let exclude = match &preset.exclude {
        Some(names) => names.iter().filter_map(|name| find_name(name)).collect(),
        None if timeline.is_miri => MIRI_FRAMES.into_iter().filter_map(find_name).collect(),
        None => Vec::new(),
    };
    Selection { exclude, times: absolute_times(&preset.times, timeline) }
}

/// Lists the most frequent names, for a message.
fn most_frequent(names: &BTreeMap<Vec<u8>, u64>) -> String {
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by_key(|(_, count)| Reverse(**count));
    list_some(names.into_iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()))
}

/// Converts time ranges, which may be percentages of the trace, to start and end in nanoseconds of the trace's clock.
fn absolute_times(ranges: &[TimeRange], timeline: &Timeline) -> Vec<(i64, i64)> {
    if ranges.is_empty() {
        return Vec::new();
    }
    let (first, last) = timeline.bounds();
    // `TimeRange` has no negative times. Only damaged traces start or end before 0; such a start or end counts as 0.
    let [first, last] = [first, last].map(|time| Nanos(u64::try_from(time).unwrap_or(0)));
    let nanos = |Nanos(time): Nanos| i64::try_from(time).unwrap_or(i64::MAX);
    let times = ranges.iter().map(|range| {
        let (from, to) = range.times(first, last);
        // A range without a start has no lower bound, so that it also contains negative times.
        (range.from.map_or(i64::MIN, |_| nanos(from)), nanos(to))
    });
    times.collect()
}

impl QuestionAnswer {
    /// The answer without any spans yet.
    fn new(question: &Question) -> Self {
        match question {
            Question::Spans => Self::Spans(TopLevel::default()),
            Question::All | Question::Action(_) => Self::ByName(BTreeMap::new()),
            Question::ByArg(_) => Self::ByArg(BTreeMap::new()),
            Question::Gaps => Self::Gaps(Vec::new()),
        }
    }
}

/// Sums the spans called `name` by action: what exactly a span did, as one of its arguments states. Spans without an
/// action are left out.
fn sum_by_action(timeline: &Timeline, name: &str, selection: &Selection, tallies: &mut BTreeMap<Vec<u8>, Tally>) {
    let Some(name) = timeline.names.find(name.as_bytes()) else { return };
    let mut tallies_by_id = TalliesById::new(timeline);
    for slice in &timeline.slices {
        if slice.name == name && slice.action != NO_NAME && selection.overlaps(slice) {
            tallies_by_id.add(slice.action, slice.duration);
        }
    }
    tallies_by_id.merge_into(timeline, tallies);
}

/// Sums all spans by name.
fn sum_by_name(timeline: &Timeline, selection: &Selection, tallies: &mut BTreeMap<Vec<u8>, Tally>) {
    let mut tallies_by_id = TalliesById::new(timeline);
    for slice in &timeline.slices {
        if slice.duration > 0 && selection.overlaps(slice) {
            tallies_by_id.add(slice.name, slice.duration);
        }
    }
    tallies_by_id.merge_into(timeline, tallies);
}

/// Sums the spans that have a certain argument, by span name and argument value. `values` has, for each of these spans,
/// its index in the timeline and the ID of the argument's value ([`Timeline::names`]).
fn sum_by_arg(timeline: &Timeline, values: &[(u32, NameNumber)], selection: &Selection, sums: &mut ArgumentSums) {
    let self_times = timeline.self_times();
    for (index, value) in values {
        let slice = &timeline.slices[*index as usize];
        // Skip a span that never ended (its duration is negative, `UNFINISHED`) or that isn't selected.
        if slice.duration < 0 || !selection.overlaps(slice) {
            continue;
        }
        let key = (timeline.names.text(slice.name).to_vec(), timeline.names.text(*value).to_vec());
        let sum = sums.entry(key).or_default();
        sum.durations.add(slice.duration);
        sum.self_time += i128::from(self_times[*index as usize]);
    }
}

impl LeftOut {
    /// Counts the selected slices of a timeline that have no duration.
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
    sums.sort_by_key(|(_, sum)| (Reverse(sum.self_time), Reverse(sum.durations.sum)));
    for ((name, value), sum) in sums {
        let mut row = tally_cells(&String::from_utf8_lossy(&name), &sum.durations);
        row.insert(1, Cell::text(String::from_utf8_lossy(&value).into_owned()));
        row.insert(4, signed_cell(sum.self_time));
        table.rows.push(row);
    }
    table
}

/// Sums of the durations in one timeline, by the ID of a name in it. The last entry is for slices without a name. Sums
/// of several timelines are merged by the texts of the names, because a name has another ID in each timeline.
struct TalliesById(Vec<Tally>);

impl TalliesById {
    fn new(timeline: &Timeline) -> Self {
        Self(vec![Tally::default(); timeline.names.len() + 1])
    }

    #[inline]
    fn add(&mut self, name: NameNumber, duration: i64) {
        // `NO_NAME` is larger than all IDs, so `min` turns it into the last index.
        let unnamed = self.0.len() - 1;
        self.0[unnamed.min(name as usize)].add(duration);
    }

    /// Adds the sums of this timeline to `tallies`, which has those of other timelines by the text of the name.
    fn merge_into(&self, timeline: &Timeline, tallies: &mut BTreeMap<Vec<u8>, Tally>) {
        let unnamed = self.0.len() - 1;
        for (id, tally) in self.0.iter().enumerate().filter(|(_, tally)| tally.count > 0) {
            let id = if id == unnamed { NO_NAME } else { id as NameNumber };
            tallies.entry(timeline.names.text(id).to_vec()).or_default().merge(tally);
        }
    }
}

impl TopLevel {
    /// Adds the top-level spans of a timeline.
    fn add(&mut self, timeline: &Timeline, selection: &Selection) {
        let mut slices = 0;
        let mut start = i64::MAX;
        let mut end = i64::MIN;
        let mut tallies_by_id = TalliesById::new(timeline);
        // Compute all sums in one pass: the slices don't fit the CPU's caches.
        for slice in timeline.slices.iter().filter(|slice| selection.overlaps(slice)) {
            slices += 1;
            start = start.min(slice.start);
            end = end.max(slice.end());
            if selection.is_outermost(slice) {
                // Slices without a duration (instants, for example) are only counted in the sums by name, not in the
                // total over all spans.
                if slice.duration > 0 {
                    self.spans.add(slice.duration);
                }
                if slice.name != NO_NAME {
                    tallies_by_id.add(slice.name, slice.duration);
                }
            }
        }
        self.slices += slices;
        if slices > 0 {
            // If the trace starts nearer to 0 than to its own end, its clock is assumed to start with the program, as
            // Miri's does. The duration is then the time at the end, as Perfetto computes it. Otherwise, the clock
            // counts since boot or since 1970, and the duration is the time from the trace's start to its end.
            let clock_starts_with_program = start <= end.saturating_sub(start);
            self.time += i128::from(if clock_starts_with_program { end } else { end.saturating_sub(start) });
        }
        tallies_by_id.merge_into(timeline, &mut self.names);
    }

    /// The table, with two rows of totals above those of the names.
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

    /// The row of a name. The percentage is of the traces' duration.
    fn row(&self, name: &str, tally: &Tally) -> Vec<Cell> {
        // In tenths of a percent, truncated. `None` if the traces have no duration.
        let percent = match (tally.sum * 1000).checked_div(self.time) {
            Some(tenths) if tally.count > 0 => Cell::Number(tenths as f64 / 10.0, 1),
            _ => Cell::None,
        };
        let mut row = tally_cells(name, tally);
        row.insert(3, percent);
        row
    }
}

/// The cell for an integer that may be too large for [`Cell::Signed`].
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

/// The gaps between the top-level spans of a trace, as rows of the table.
fn gaps(path: &Path, timeline: &Timeline, selection: &Selection, rule: GapRule) -> Vec<GapRow> {
    let name = |slice: &Slice| String::from_utf8_lossy(timeline.names.text(slice.name)).into_owned();
    let input = input_name(path);
    let mut rows = Vec::new();
    for gap in timeline.gaps(selection, rule) {
        // The gap comes after the span `after` and before the span `before`.
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

/// The thread ID of a slice, as text. Asynchronous spans, which are on tracks with an ID instead of a thread, are
/// marked.
fn thread_text(timeline: &Timeline, slice: &Slice) -> String {
    let track = timeline.tracks.get(slice.track as usize);
    let tid = track.and_then(|track| track.tid).map_or_else(|| "?".to_owned(), |tid| tid.to_string());
    match slice.kind {
        SliceKind::Async => format!("{tid} (by id)"),
        SliceKind::Span | SliceKind::Instant => tid,
    }
}

/// The table of gaps, longest first. If there are several traces, it has a column for the input.
fn gap_table(mut rows: Vec<GapRow>, has_several_traces: bool) -> Table {
    rows.sort_by_key(|row| Reverse(row.duration));
    let mut columns = vec!["ts", "dur", "thread", "after", "before"];
    if has_several_traces {
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
        if has_several_traces {
            cells.push(Cell::text(row.input));
        }
        cells
    }));
    table
}
