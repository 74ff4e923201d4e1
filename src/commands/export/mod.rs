//! `export --to FORMAT` converts any input to any format that can be written.

mod options;
mod parted_file;
mod partition;
mod row_by_row;
mod spans;
mod synthetic_threads;

pub use options::{ExportOptions, TableOptions};

use crate::error::Result;
use crate::formats::not_for_terminals;
use crate::io::Run;
use crate::pipeline::any::load;
use crate::pipeline::inputs::JobInputs;
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::terminal::refuse_terminal;
use crate::pipeline::writers::{labels_remark, load_options, write, writer};
use crate::pipeline::{Job, Outcome};

/// Exports the inputs in the first of these ways that the options and both formats allow: as a partitioned data set, by
/// copying spans one by one, row by row while reading, or from the whole profile in memory.
pub fn run(options: &ExportOptions, job: &Job) -> Result<Outcome> {
    let run = Run::begin();
    let writer = writer(&options.to)?;
    if let Some(why) = not_for_terminals(&options.to).filter(|_| options.output.is_terminal()) {
        return Err(refuse_terminal(&format!("{} ({why})", options.to)));
    }
    if options.table.partition
        && writer.is_partitioned
        && let Some(start) = writer.stream
    {
        let load = row_by_row::load_options(&load_options(&options.load, &writer), options);
        return partition::run(start, options, &load, &run, job);
    }
    let mut first = open_first(options, job)?;
    // If both the input's and the output's format store spans, copy the spans instead of turning them into stacks.
    if let Some(start) = writer.spans
        && let Some(first) = first.take_if(|first| first.format().read.spans().is_some())
    {
        return spans::run(first, start, options, &run, job);
    }
    let load_options = load_options(&options.load, &writer);
    if let Some(start) = writer.stream {
        let load_options = row_by_row::load_options(&load_options, options);
        row_by_row::refuse_data_set(options)?;
        return row_by_row::run(first, start, options, &load_options, &run, job);
    }
    row_by_row::refuse_options(options)?;
    let mut outcome = Outcome::default();
    let profile = load(JobInputs::with_first(first, &options.inputs), writer.rows, &load_options, job, &mut outcome)?;
    write(&profile, &writer, &options.output, &options.write, &run, &mut outcome)?;
    outcome.summary.extend(labels_remark(&profile, &options.to));
    Ok(outcome)
}

/// Opens the first input, to detect its format. `None` if there are no inputs.
fn open_first(options: &ExportOptions, job: &Job) -> Result<Option<Opened>> {
    let first = options.inputs.first();
    first.map(|path| Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))).transpose()
}
