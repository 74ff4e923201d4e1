//! `export --to FORMAT`: any input → any format that can be written.

mod options;
mod partition;
mod rows;
mod spans;
mod synthetic_threads;

pub use options::{ExportOptions, TableOptions};

use crate::contract::format::{Detail, Events, WriteOptions, Writer};
use crate::error::{Error, Result};
use crate::formats::{FORMATS, named, not_for_terminals};
use crate::io::{OutPath, Output, Run};
use crate::model::stacks::Profile;
use crate::pipeline::any::{LoadOptions, load_opened};
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::outputs::each_event;
use crate::pipeline::sink::Naming;
use crate::pipeline::terminal::{refuse_terminal, write_text};
use crate::pipeline::{Job, Outcome};
use crate::runtimes::jit_names::JitNames;

/// Exports.
pub fn run(options: &ExportOptions, job: &Job) -> Result<Outcome> {
    let run = Run::begin();
    let writer = writer(&options.to)?;
    if let Some(why) = not_for_terminals(&options.to).filter(|_| options.output.is_terminal()) {
        return Err(refuse_terminal(&format!("{} is {why}", options.to)));
    }
    let mut first = first(options, job)?;
    // Spans of time need not become sums of stacks on their way to a format of spans.
    if let Some(start) = writer.spans
        && let Some(first) = first.take_if(|first| first.format().read.spans().is_some())
    {
        return spans::run(first, start, options, &run, job);
    }
    let load_options = load_options(&options.load, &writer);
    if let Some(start) = writer.stream {
        let load_options = rows::load_options(&load_options, options);
        return match options.table.partition {
            true => partition::run(first, start, (options, &load_options), &run, job),
            false => rows::run(first, start, (options, &load_options), &run, job),
        };
    }
    rows::refuse_options(options)?;
    let mut outcome = Outcome::default();
    let profile = load_opened(first, &options.inputs, writer.rows, &load_options, job, &mut outcome)?;
    write(&profile, &writer, (&options.output, &options.write), &run, &mut outcome)?;
    Ok(outcome)
}

/// Writes a profile to one output, or to one for each event.
pub(super) fn write(
    profile: &Profile,
    writer: &Writer,
    (to, how): (&OutPath, &WriteOptions),
    run: &Run,
    outcome: &mut Outcome,
) -> Result<()> {
    match writer.events {
        Events::One => each_event(profile, to, run, outcome, |series, out| {
            let write = WriteOptions { series, ..how.clone() };
            write_text(out, |out| (writer.run)(profile, &write, out))
        }),
        Events::All => {
            let mut output = Output::create(to, run)?;
            write_text(&mut output, |out| (writer.run)(profile, how, out))?;
            output.commit()
        }
    }
}

/// What the writer needs, and its own usage where the user asks for none.
pub(super) fn load_options(asked: &LoadOptions, writer: &Writer) -> LoadOptions {
    let usual = Naming { resolved: writer.jit_names, given: JitNames::Raw };
    LoadOptions {
        detail: Detail::max(writer.detail, asked.detail),
        by_cpu: asked.by_cpu || writer.by_cpu,
        jit_names: if asked.asks_for_names { asked.jit_names } else { usual },
        ..asked.clone()
    }
}

/// The first input.
fn first(options: &ExportOptions, job: &Job) -> Result<Option<Opened>> {
    let first = options.inputs.first();
    first.map(|path| Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))).transpose()
}

/// What writes the format of that name.
pub(super) fn writer(name: &str) -> Result<Writer> {
    let writer = named(name).and_then(|format| format.write);
    writer.ok_or_else(|| Error::usage(format!("no format called {name} can be written; there are: {}", writable())))
}

fn writable() -> String {
    let writable = FORMATS.iter().filter(|format| format.write.is_some());
    writable.map(|format| format.name).collect::<Vec<_>>().join(", ")
}
