//! Exports to a format that is written row by row (Parquet, OTLP), while the inputs are being read.

use super::options::{ExportOptions, TableOptions};
use crate::contract::format::{ReadOptions, StartRowsFn};
use crate::error::{Error, Result};
use crate::io::{Output, Run};
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::{Opened, check_further, shown};
use crate::pipeline::outputs::commit;
use crate::pipeline::row_feeder::{RowFeeder, input_hash};
use crate::pipeline::{Job, Outcome};

/// Writes all inputs to one output, row by row while they are read. `first` is the first input if it is already open.
pub(super) fn run(
    mut first: Option<Opened>,
    start: StartRowsFn,
    options: &ExportOptions,
    load: &LoadOptions,
    run: &Run,
    job: &Job,
) -> Result<Outcome> {
    let (mut outcome, mut feeder) = (Outcome::default(), RowFeeder::new(load, options.row_origin()));
    check_further(&options.inputs)?;
    let mut output = Output::create(&options.output, run)?;
    let mut writer = start(&options.write, Box::new(&mut output))?;
    for path in &options.inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        let opened = opened.map_err(|error| error.in_file(&shown(path)))?;
        let hash = input_hash(&opened, path)?;
        feeder.push(opened, path, hash, &mut *writer, job, &mut outcome)?;
    }
    feeder.finish(&options.inputs, job, &mut outcome)?;
    writer.finish()?;
    drop(writer);
    commit(output, &mut outcome)?;
    Ok(outcome)
}

/// The options for reading the inputs when the output is a table. `usual` are the options for the output format. If
/// rows are sums per time bucket (`--bucket`), samples of different CPUs are summed unless the user asked to keep CPUs
/// apart.
pub(super) fn load_options(usual: &LoadOptions, options: &ExportOptions) -> LoadOptions {
    let detail = options.table.detail.unwrap_or(usual.detail);
    let by_cpu = if options.write.bucket.is_some() { options.load.by_cpu } else { usual.by_cpu };
    let read = ReadOptions { apart: true, ..usual.read.clone() };
    LoadOptions { detail, by_cpu, keep_modules: true, read, ..usual.clone() }
}

/// Rejects options that only work for a partitioned data set.
pub(super) fn refuse_data_set(options: &ExportOptions) -> Result<()> {
    match &options.table {
        TableOptions { partition: true, .. } => {
            Err(Error::usage(format!("--partition only works with parquet, not with {}", options.to)))
        }
        TableOptions { skip_existing: true, .. } => Err(Error::usage("--skip-existing only works with --partition")),
        _ => Ok(()),
    }
}

/// Rejects options that only work for tables.
pub(super) fn refuse_options(options: &ExportOptions) -> Result<()> {
    let flags = [
        ("--bucket", options.write.bucket.is_some()),
        ("--partition", options.table.partition),
        ("--skip-existing", options.table.skip_existing),
        ("--detail", options.table.detail.is_some()),
        ("--host", options.table.host.is_some()),
        ("--day", options.table.day.is_some()),
        ("--label", !options.table.labels.is_empty()),
    ];
    match flags.iter().find(|(_, is_used)| *is_used) {
        Some((flag, _)) => Err(Error::usage(format!("{flag} only works with parquet, not with {}", options.to))),
        None => Ok(()),
    }
}
