//! Reads V8's log record by record.

use super::names::{is_native, is_wasm, spell};
use super::positions::SourceInfo;
use super::records::{Creation, Fields, LogRecord, hexadecimal};
use super::sources::Sources;
use crate::bytes::digits::decimal;
use crate::error::{Error, Result};
use crate::jit::engine_logs::{CodeLog, LogClock, LogCode, LogEvent, LogEventKind};
use rustc_hash::FxHashMap;

/// The number that is assumed for V8's code kind "builtin", until the log shows the actual one.
const BUILTINS: i64 = 2;

/// Reads a whole log of V8.
pub(super) fn read(file: &[u8]) -> Result<CodeLog> {
    let log = CodeLog::new(LogClock::SinceStart { began: None }, "line");
    let mut reader = V8LogReader {
        file,
        log,
        sources: Sources::default(),
        // Assumed until a record shows which number this version of V8 uses.
        builtin_kind: BUILTINS,
        time: 0,
        load_by_addr: FxHashMap::default(),
        last_created: None,
        scratch: Vec::new(),
    };
    let mut next = 0;
    while let Some(record) = LogRecord::parse(file, next) {
        next = record.end();
        // The log is torn if it ends within a record. Each record overwrites this; only the last one can be incomplete.
        reader.log.torn = !record.is_whole;
        if record.is_whole
            && let Err(why) = reader.read_record(&record)
        {
            let word = String::from_utf8_lossy(record.word().unwrap_or(b"no keyword")).into_owned();
            reader.log.skipped.add(Error::new(format!("{why} ({word})")).at_offset(record.offset as u64));
        }
    }
    let V8LogReader { mut log, sources, .. } = reader;
    log.line_decoder = Some(Box::new(sources.finish()));
    Ok(log)
}

struct V8LogReader<'a> {
    file: &'a [u8],
    log: CodeLog,
    sources: Sources,
    /// The number that this version of V8 uses for the kind "builtin".
    builtin_kind: i64,
    /// The time of the last record with a time, in nanoseconds.
    time: u64,
    /// Index of the last load event at each address.
    load_by_addr: FxHashMap<u64, u32>,
    /// The code that was created last, until a `code-source-info` for it was read.
    last_created: Option<Created<'a>>,
    /// A buffer for composing names, reused for each.
    scratch: Vec<u8>,
}

/// Code that a `code-creation` record reported. A `code-source-info` describes the code that was created last.
struct Created<'a> {
    /// Offset in the log of the `code-creation` record.
    offset: usize,
    creation: Creation<'a>,
    /// Index of the load event; `None` if the code isn't machine code.
    load: Option<u32>,
    /// Index of the function in [`Sources`]; `None` if the record doesn't identify one.
    function: Option<u32>,
}

impl<'a> V8LogReader<'a> {
    /// Applies one record of the log. The error says what is wrong with it.
    fn read_record(&mut self, record: &LogRecord<'a>) -> Result<(), &'static str> {
        let mut fields = record.fields();
        match record.word() {
            Some(b"code-creation") => self.create_code(record.offset, record.creation()?),
            Some(b"code-source-info") => {
                self.add_source_info(SourceInfo::parse(fields)?, record.offset + record.text.len())
            }
            Some(b"script-source") => self.read_script(fields)?,
            Some(b"code-move") => {
                let (from, to) = two_addresses(fields)?;
                self.move_code(from, to);
            }
            // The garbage collector has moved a function's description (`SharedFunctionInfo`), whose address is the
            // function's ID.
            Some(b"sfi-move") => {
                let (from, to) = two_addresses(fields)?;
                self.sources.move_function(from, to, self.time);
            }
            Some(b"code-delete") => self.delete_code(one_address(fields)?),
            // A tick states its time after the sampled address, a deoptimization states it first.
            Some(b"tick") => self.advance_time(fields.nth(1)),
            Some(b"code-deopt") => self.advance_time(fields.next()),
            // Other records say nothing about code.
            Some(_) => {}
            None if record.text.is_empty() => {}
            None => return Err("the record has an unknown type"),
        }
        Ok(())
    }

    /// Parses a time in microseconds. An invalid one is ignored.
    fn advance_time(&mut self, micros: Option<&[u8]>) {
        let time = micros.and_then(decimal).and_then(|micros| micros.checked_mul(1000));
        self.time = self.time.max(time.unwrap_or(0));
    }

    /// Adds the code that a `code-creation` record reports. For interpreted functions, adds only the function and its
    /// name: they have no native code of their own, but may be inlined elsewhere.
    fn create_code(&mut self, offset: usize, creation: Creation<'a>) {
        self.time = creation.time;
        // Kinds are numbers that differ between versions. This record shows which one means "builtin".
        if creation.tag == b"Builtin" {
            self.builtin_kind = creation.kind;
        }
        let mut function = None;
        // The function's ID in the record identifies the function, except for WebAssembly.
        if !is_wasm(&creation, self.builtin_kind) {
            function = self.sources.intern_function(&creation, &mut self.scratch);
        }
        let mut load = None;
        if is_native(&creation, self.builtin_kind) {
            spell(&creation, self.builtin_kind, &mut self.scratch);
            let name = self.log.texts.intern(&self.scratch);
            load = self.add_load(LogCode::new(name, creation.addr, creation.size));
        }
        self.last_created = Some(Created { offset, creation, load, function });
    }

    /// Adds a load event with the current time. Returns its index.
    fn add_load(&mut self, code: LogCode) -> Option<u32> {
        let load = u32::try_from(self.log.events.len()).ok()?;
        let addr = code.addr;
        self.log.load(Some(self.time), code);
        self.load_by_addr.insert(addr, load);
        Some(load)
    }

    /// Handles a `code-source-info`, which describes the code that was created last. `end` is the offset of the
    /// record's end in the log.
    fn add_source_info(&mut self, info: SourceInfo<'a>, end: usize) {
        // A record about other code is ignored. The `code-creation` that it belongs to may have been damaged.
        let Some(last) = self.last_created.take_if(|last| last.creation.addr == info.addr) else { return };
        if let Some(function) = last.function {
            self.sources.set_script(function, info.script);
        }
        if info.positions.is_empty() {
            return;
        }
        if let Some(load) = last.load
            && let LogEventKind::Load(code) = &mut self.log.events[load as usize].kind
        {
            code.line_range = (last.offset as u64, end as u64);
            self.sources.add_inlined(&info, &last.creation);
        }
    }

    /// Reads a `script-source` record. Only the text's range in the log is kept.
    fn read_script(&mut self, mut fields: Fields<'a>) -> Result<(), &'static str> {
        let id = fields.next().and_then(decimal).ok_or("the record has no valid script ID")?;
        let name = fields.next().ok_or("the record has no script name")?;
        let text = fields.next().ok_or("the record has no script source text")?;
        let start = text.as_ptr().addr() - self.file.as_ptr().addr();
        self.sources.add_script(id, self.time, name, start..start + text.len());
        Ok(())
    }

    /// Records that code is now at another address as well. It is unknown when the code left its old address. So it is
    /// assumed to be at both until other code is created at the old one.
    fn move_code(&mut self, from: u64, to: u64) {
        let Some(load) = self.load_by_addr.remove(&from) else { return };
        if let LogEventKind::Load(code) = self.log.events[load as usize].kind
            && to.checked_add(code.size).is_some()
        {
            self.add_load(LogCode { addr: to, ..code });
        }
    }

    fn delete_code(&mut self, addr: u64) {
        if let Some(load) = self.load_by_addr.remove(&addr) {
            let kind = LogEventKind::Unload { load: load as usize, addr };
            self.log.events.push(LogEvent { time: Some(self.time), kind });
        }
    }
}

fn two_addresses(mut fields: Fields<'_>) -> Result<(u64, u64), &'static str> {
    let first = fields.next().and_then(hexadecimal).ok_or("the record does not have two hexadecimal addresses")?;
    let second = fields.next().and_then(hexadecimal).ok_or("the record does not have two hexadecimal addresses")?;
    Ok((first, second))
}

fn one_address(mut fields: Fields<'_>) -> Result<u64, &'static str> {
    fields.next().and_then(hexadecimal).ok_or("the record has no hexadecimal address")
}
