//! Any input → a writer of rows, as they are read.

use super::any::{LoadOptions, is_wanted, run_one, why_no_samples};
use super::job::{Job, Outcome};
use super::open::{Opened, shown};
use super::recording::check_events;
use super::sink::Sink;
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::{Result, Warning};
use crate::io::{self, InPath};
use crate::model::stacks::{Keep, Profile};
use sha1::{Digest, Sha1};
use std::collections::BTreeSet;
use std::io::Read;

/// What inputs had for a table.
#[derive(Debug, Default)]
pub(crate) struct RowsRead {
    rows: u64,
    events: BTreeSet<String>,
}

impl RowsRead {
    /// Pushes the rows of one input to a writer.
    pub(crate) fn push(
        &mut self,
        (opened, path): (Opened, &InPath),
        origin: RowOrigin,
        options: &LoadOptions,
        writer: &mut dyn RowWriter,
        (job, outcome): (&Job, &mut Outcome),
    ) -> Result<()> {
        let mut sink = RowSink { read: self, origin: Some(origin), options, writer };
        run_one(opened, path, options, (&mut sink, &mut |_, _, _| {}), job, outcome)
            .map_err(|error| error.in_file(&shown(path)))
    }

    /// Says it if there were none, and refuses names that no event had.
    pub(crate) fn finish(
        &self,
        inputs: &[InPath],
        options: &LoadOptions,
        (job, outcome): (&Job, &mut Outcome),
    ) -> Result<()> {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        check_events(&events, &options.event)?;
        if self.rows == 0 {
            let why = why_no_samples(inputs, &options.filter, !options.event.is_empty(), job);
            outcome.warnings.push(Warning::new(&why));
            outcome.no_samples = Some(why);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RowSink<'a> {
    read: &'a mut RowsRead,
    /// Until the writer knows it.
    origin: Option<RowOrigin>,
    options: &'a LoadOptions,
    writer: &'a mut dyn RowWriter,
}

impl RowSink<'_> {
    fn begin(&mut self, rows: &Profile) -> Result<()> {
        let Some(origin) = self.origin.take() else { return Ok(()) };
        self.read.events.extend(rows.series.iter().map(|series| series.name.clone()));
        let jit_names = self.options.jit_names.of(rows);
        self.writer.begin(RowOrigin { jit_names, ..origin }, rows)
    }
}

impl Sink for RowSink<'_> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    fn in_batches(&self) -> bool {
        true
    }

    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        let wanted = &self.options.event;
        for series in &mut rows.series {
            if !is_wanted(&series.name, wanted) {
                series.rows.clear();
            }
            self.read.rows += series.rows.len() as u64;
        }
        self.begin(rows)?;
        self.writer.rows(rows)
    }

    fn end(&mut self, tables: &Profile) -> Result<()> {
        self.begin(tables)?;
        self.writer.end(tables)
    }
}

/// The SHA-1 of an input as it lies there, packed or not: of a file what `sha1sum` says, of a recording's directory
/// that of its streams one after the other. Of standard input it is that of what was packed in it; `None` if that is
/// read only once.
pub(crate) fn input_hash(opened: &Opened, path: &InPath) -> Result<Option<String>> {
    let mut hash = Sha1::new();
    match (path, opened) {
        (_, Opened::Whole(input)) if input.streams.is_some() => {
            hash.update(&input.bytes);
            input.streams.iter().flatten().for_each(|stream| hash.update(&stream.bytes));
        }
        (InPath::Path(path), _) if io::is_file(path) => {
            let mut file = io::open_typed(path)?;
            let mut piece = vec![0; 1 << 18];
            loop {
                match file.read(&mut piece)? {
                    0 => break,
                    read => hash.update(&piece[..read]),
                }
            }
        }
        (_, Opened::Whole(input)) => hash.update(&input.bytes),
        (_, Opened::Stream { .. }) => return Ok(None),
    }
    Ok(Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
