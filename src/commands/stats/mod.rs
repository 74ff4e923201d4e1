//! `stats` prints tables about spans of time in measureme profiles and trace events. Each table answers a question that
//! the user chose, such as which spans took most time ([`Question`]). The spans of several inputs are summed.

mod options;
mod preset;
mod spans;
mod summary;
mod tables;

pub use options::{Compare, StatsOptions};
pub use preset::{CLANG, MIRI, Preset, Question};

use crate::analysis::timeline::{GapRule, Timeline};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Warnings};
use crate::io::{Output, Run};
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::outputs::commit;
use crate::pipeline::spans::read_spans;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use spans::Answers;
use tables::{TitledTables, formats_with, write};

/// Writes the tables that answer the user's questions about the inputs.
pub fn run(options: &StatsOptions, job: &Job) -> Result<Outcome> {
    if options.inputs.is_empty() {
        return Err(Error::usage("no input given"));
    }
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    // The preset was read when flags were parsed, before the run began. Registering it as an input here keeps the
    // output from replacing it.
    options.preset_file.iter().for_each(|file| run.has_read(file));
    let mut output = Output::create(&options.output, &run)?;
    let mut tables = match (options.compare, &options.preset.questions[..]) {
        (Compare::Merge, []) => default_tables(options, job, &mut outcome)?,
        (Compare::Merge, _) => answer_questions(None, &options.preset, options, job, &mut outcome)?,
        (compare, _) => {
            options.check_summary()?;
            summary::compare(compare, &options.inputs, job, &mut outcome)?
        }
    };
    for (_, table) in &mut tables {
        table.rows.truncate(options.limit.unwrap_or(usize::MAX));
    }
    write_text(&mut output, |out| write(&tables, options.layout, out))?;
    commit(output, &mut outcome)?;
    Ok(outcome)
}

/// The tables to write if the user asks no question: a summary by label if the format of the first input has labels,
/// otherwise the top-level spans.
fn default_tables(options: &StatsOptions, job: &Job, outcome: &mut Outcome) -> Result<TitledTables> {
    let Some(path) = options.inputs.first() else { return Ok(Vec::new()) };
    let first = Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))?;
    if first.format().read.spans().is_some_and(|readers| readers.summary.is_some()) {
        options.check_summary()?;
        return summary::merge(first, &options.inputs, job, outcome);
    }
    let preset = Preset { questions: vec![Question::Spans], ..options.preset.clone() };
    answer_questions(Some(first), &preset, options, job, outcome)
}

/// Answers the questions of the preset about the spans of all inputs. Reads one input after the other, and keeps only
/// the answers. `first` is the first input if it is already open.
fn answer_questions(
    mut first: Option<Opened>,
    preset: &Preset,
    options: &StatsOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<TitledTables> {
    let gap_rule = if options.perfetto_compat { GapRule::Perfetto } else { GapRule::AllTracks };
    let mut answers = Answers::new(preset, options.inputs.len() > 1, gap_rule);
    for path in &options.inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        let read = opened.and_then(|opened| read_timeline(opened, options, job));
        let (timeline, warnings) = read.map_err(|error| error.in_file(&shown(path)))?;
        outcome.warnings.append(warnings.in_file(&shown(path)));
        answers.add(&shown(path), &timeline);
    }
    answers.check_selection()?;
    outcome.summary.extend(answers.describe_left_out());
    let unanswered = answers.unanswered();
    for explanation in unanswered.optional {
        // The explanation of why a question wasn't answered says what the trace lacks and, after `; `, what it has
        // instead. An optional question comes from a file or built-in list that is used with many traces. The user
        // didn't ask it about this trace in particular, so the part before `; ` suffices.
        outcome.summary.extend(explanation.split("; ").next().map(str::to_owned));
    }
    let mut failed = unanswered.required.into_iter().map(Error::new);
    // If all questions fail, the job fails instead of writing an empty output.
    if failed.len() == preset.questions.len()
        && let Some(first) = failed.next()
    {
        return Err(first);
    }
    outcome.failed.extend(failed);
    Ok(answers.into_tables())
}

/// Reads the spans of one input. Fails if its format has none.
fn read_timeline(opened: Opened, options: &StatsOptions, job: &Job) -> Result<(Timeline, Warnings)> {
    let format = opened.format();
    let Some(readers) = format.read.spans() else {
        return Err(Error::new(format!(
            "stats reads {}; for {} use `jitgraft report`",
            formats_with(|_| true),
            format.name
        )));
    };
    let mut warnings = Warnings::new();
    let (perfetto_compat, by_args) = (options.perfetto_compat, options.preset.by_args());
    let options = ReadOptions { perfetto_compat, by_args, ..ReadOptions::default() };
    let timeline = read_spans(opened, job, |input| (readers.timeline)(input, &options, &mut warnings))?;
    Ok((timeline, warnings))
}
