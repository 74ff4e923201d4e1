//! Plans the changes to the text of the profile.

use super::bare::BareFunction;
use super::file::{RawFile, RawFuncs, Tables, number, range};
use super::strings::{Sources, Strings};
use crate::bytes::splices::Splices;
use crate::contract::unsymbolized::{BareAddress, FindCalls, NamedCall};
use crate::error::Result;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

/// The bit of `funcTable.flags` that says that a function's `source` is valid.
const HAS_SOURCE: u64 = 8;
/// The bit of `frameTable.flags` that says that a frame's `line` is valid.
const HAS_LINE: u64 = 16;

/// A row of the function table that gets a name.
#[derive(Debug, Clone, Copy)]
struct NamedRow<'a> {
    /// The name of the function, with its file and line.
    call: NamedCall<'a>,
    /// The row to which this row's frames will refer. If several rows turned out to be one function, it is the first of
    /// them, otherwise this row itself.
    target_row: usize,
}

/// Plans the changes to the profile's text.
pub(super) struct Edits<'e, 'd> {
    pub(super) bytes: &'d [u8],
    pub(super) file: &'e RawFile<'d>,
    /// The unnamed functions, in ascending order.
    pub(super) functions: &'e [BareFunction],
    /// The addresses to look up, each once, in ascending order.
    pub(super) addresses: &'e [BareAddress],
}

impl<'d> Edits<'_, 'd> {
    /// Looks up the names and returns all changes.
    pub(super) fn splices(&self, find_calls: &FindCalls<'_>) -> Result<Splices> {
        let bytes = self.bytes;
        let shared = &self.file.shared;
        let mut splices = Splices::default();
        let mut shared_strings = shared.string_array.map(Strings::read).transpose()?;
        let mut sources = Sources::read(&shared.sources);
        let all_tables = self.file.tables();
        // Each of these slices has the functions of one set of tables: those of a thread, or the shared ones.
        for functions in self.functions.chunk_by(|a, b| a.tables == b.tables) {
            let Some(tables) = all_tables.get(functions[0].tables) else { continue };
            let Some(raw_strings) = tables.strings else { continue };
            let named = self.named_rows(functions, find_calls);
            if let Some(strings) = &mut shared_strings
                && self.is_shared(raw_strings)
            {
                TableEdits { bytes, tables, strings }.rename(&named, sources.as_mut(), &mut splices);
            } else {
                let strings = &mut Strings::read(raw_strings)?;
                // The thread has its own strings, but the table of sources refers to the shared strings. So no sources
                // are added for this thread's functions.
                TableEdits { bytes, tables, strings }.rename(&named, None, &mut splices);
                strings.splice(bytes, &mut splices);
            }
        }
        // Several threads may have added to the shared strings and sources, so these are spliced at the end.
        if let Some(strings) = &shared_strings {
            strings.splice(bytes, &mut splices);
        }
        if let Some(sources) = &sources {
            sources.splice(bytes, &mut splices);
        }
        Ok(splices)
    }

    fn is_shared(&self, strings: &'d RawValue) -> bool {
        self.file.shared.string_array.is_some_and(|shared| range(shared, self.bytes) == range(strings, self.bytes))
    }

    /// The rows that get a name, each with its name. A row gets one if the lookup finds the same name in all processes
    /// that use the row; otherwise it keeps its address, because a row has only one name. `functions` must be sorted by
    /// row.
    fn named_rows<'a>(&self, functions: &[BareFunction], find_calls: &FindCalls<'a>) -> Vec<(usize, NamedRow<'a>)> {
        let mut rows = Vec::new();
        let mut first_rows = FxHashMap::default();
        for functions_of_row in functions.chunk_by(|a, b| a.row == b.row) {
            let [first, others @ ..] = functions_of_row else { continue };
            let Some(call) = self.look_up(first, find_calls) else { continue };
            let has_this_name = |function: &BareFunction| {
                self.look_up(function, find_calls).is_some_and(|found| found.name == call.name)
            };
            if others.iter().all(has_this_name) {
                // Rows with the same name and file are versions of one function. The first of these rows stands for it.
                let first_row = *first_rows.entry((call.name, call.file)).or_insert(first.row);
                rows.push((first.row, NamedRow { call, target_row: first_row }));
            }
        }
        rows
    }

    /// Looks up the function that contains the code at a function's address; `None` if it isn't known. Calls inlined in
    /// it are left out.
    fn look_up<'a>(&self, function: &BareFunction, find_calls: &FindCalls<'a>) -> Option<NamedCall<'a>> {
        let index = self.addresses.binary_search(&function.address()).ok()?;
        find_calls(index).last().copied()
    }
}

/// Plans the changes to one set of tables.
struct TableEdits<'e, 'f, 'd> {
    bytes: &'d [u8],
    tables: &'e Tables<'f, 'd>,
    strings: &'e mut Strings<'d>,
}

impl TableEdits<'_, '_, '_> {
    /// Names these rows of the function table and updates the frames that refer to them. `sources` is the file's table
    /// of source files, if it can be extended.
    fn rename(
        &mut self,
        named: &[(usize, NamedRow<'_>)],
        mut sources: Option<&mut Sources<'_, '_>>,
        splices: &mut Splices,
    ) {
        for (row, new) in named {
            self.rename_function(*row, &new.call, sources.as_deref_mut(), splices);
        }
        let by_old_row: FxHashMap<usize, NamedRow<'_>> = named.iter().copied().collect();
        for (frame, function) in self.tables.frames.func.iter().enumerate() {
            let Some(old_row) = number(function) else { continue };
            if let Some(new) = by_old_row.get(&old_row) {
                // Rows that turned out to be one function are merged: their frames refer to the first of them. The
                // other rows stay in the table, unused but with the same name.
                let new_row = if new.target_row == old_row { None } else { Some(new.target_row) };
                self.update_frame(frame, new_row, new.call.line, splices);
            }
        }
    }

    /// Plans to change the name and source file of the function in a row. Depending on the format's version, the
    /// function table has a column with the name of the file, or one that refers to the table of sources.
    fn rename_function(
        &mut self,
        row: usize,
        call: &NamedCall<'_>,
        sources: Option<&mut Sources<'_, '_>>,
        splices: &mut Splices,
    ) {
        let RawFuncs { name, file_name, source, flags, .. } = self.tables.funcs;
        let new_name = self.strings.add(call.name);
        self.replace(name.get(row), new_name, splices);
        // The file is unknown, so nothing but the name changes.
        if call.file.is_empty() {
            return;
        }
        if let Some(column) = file_name {
            let file = self.strings.add(call.file);
            self.replace(column.get(row), file, splices);
        } else if let Some(column) = source
            && let Some(sources) = sources
        {
            let source_row = sources.add(call.file, self.strings);
            self.replace(column.get(row), source_row, splices);
            self.set_flag(flags.as_deref(), row, HAS_SOURCE, splices);
        }
    }

    /// Sets the line of a frame, unless `line` is 0, which means that it is unknown. If `function` is given, moves the
    /// frame to this row of the function table.
    fn update_frame(&self, row: usize, function: Option<usize>, line: u32, splices: &mut Splices) {
        let frames = self.tables.frames;
        if let Some(function) = function {
            self.replace(frames.func.get(row), function, splices);
        }
        if line > 0
            && let Some(lines) = &frames.line
        {
            self.replace(lines.get(row), line as usize, splices);
            self.set_flag(frames.flags.as_deref(), row, HAS_LINE, splices);
        }
    }

    /// Sets a flag in a row of a column, if the table has that column.
    fn set_flag(&self, column: Option<&[&RawValue]>, row: usize, flag: u64, splices: &mut Splices) {
        let Some(cell) = column.and_then(|column| column.get(row)) else { return };
        if let Some(old) = number(cell) {
            self.replace(Some(cell), (old as u64 | flag) as usize, splices);
        }
    }

    /// Replaces the text of a cell by a number. Does nothing if the cell doesn't exist.
    fn replace(&self, cell: Option<&&RawValue>, number: usize, splices: &mut Splices) {
        if let Some(value) = cell {
            splices.replace(range(value, self.bytes), number.to_string().into_bytes());
        }
    }
}
