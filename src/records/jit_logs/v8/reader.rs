//! Reads a log record by record.

use super::names::{is_native, is_wasm, spell};
use super::positions::SourceInfo;
use super::records::{Creation, Fields, LogRecord, hexadecimal};
use super::sources::Sources;
use crate::bytes::digits::decimal;
use crate::error::{Error, Result};
use crate::records::jit_logs::{CodeLog, LogClock, LogCode, LogEvent, LogEventKind};
use rustc_hash::FxHashMap;

/// The kind of builtins, until the log shows it.
const BUILTINS: i64 = 2;

/// Reads a whole log of V8.
pub(super) fn read(file: &[u8]) -> Result<CodeLog> {
    let log = CodeLog::new(LogClock::SinceStart { began: None }, "line");
    let mut reader = V8LogReader {
        file,
        log,
        sources: Sources::default(),
        builtins: BUILTINS,
        time: 0,
        at_addr: FxHashMap::default(),
        last: None,
        scratch: Vec::new(),
    };
    let mut next = 0;
    while let Some(record) = LogRecord::at(file, next) {
        next = record.end();
        reader.log.torn = !record.whole;
        if record.whole
            && let Err(why) = reader.record(&record)
        {
            let word = String::from_utf8_lossy(record.word().unwrap_or(b"a line")).into_owned();
            reader.log.skipped.add(Error::new(format!("{word} {why}")).at(record.at as u64));
        }
    }
    let V8LogReader { mut log, sources, .. } = reader;
    log.positions = Some(Box::new(sources.finish()));
    Ok(log)
}

struct V8LogReader<'a> {
    file: &'a [u8],
    log: CodeLog,
    sources: Sources,
    /// The number that this version of V8 uses for the kind "builtin".
    builtins: i64,
    /// The time of the last record with a time, in nanoseconds.
    time: u64,
    /// Index of the last load event at each address.
    at_addr: FxHashMap<u64, u32>,
    last: Option<Created<'a>>,
    scratch: Vec<u8>,
}

/// The code that was created last; a `code-source-info` refers to it.
struct Created<'a> {
    at: usize,
    creation: Creation<'a>,
    /// Index of the load event, if it is machine code.
    load: Option<u32>,
    function: Option<u32>,
}

impl<'a> V8LogReader<'a> {
    fn record(&mut self, record: &LogRecord<'a>) -> Result<(), &'static str> {
        let fields = record.fields();
        match record.word() {
            Some(b"code-creation") => self.created(record.at, record.creation()?),
            Some(b"code-source-info") => {
                self.add_source_info(SourceInfo::parse(fields)?, record.at + record.text.len())
            }
            Some(b"script-source") => self.script(fields)?,
            Some(b"code-move") => self.moved(addresses(fields)?),
            Some(b"sfi-move") => {
                let (from, to) = addresses(fields)?;
                self.sources.moved(from, to, self.time);
            }
            Some(b"code-delete") => self.deleted(addresses_or_one(fields)?),
            Some(b"tick") => self.is_now({ fields }.nth(1)),
            Some(b"code-deopt") => self.is_now({ fields }.next()),
            Some(_) => {}
            None if record.text.is_empty() => {}
            None => return Err("has an unknown type"),
        }
        Ok(())
    }

    fn is_now(&mut self, micros: Option<&[u8]>) {
        let time = micros.and_then(decimal).and_then(|micros| micros.checked_mul(1000));
        self.time = self.time.max(time.unwrap_or(0));
    }

    fn created(&mut self, at: usize, creation: Creation<'a>) {
        self.time = creation.time;
        if creation.tag == b"Builtin" {
            self.builtins = creation.kind;
        }
        let is_script_code = !is_wasm(&creation, self.builtins);
        let function = is_script_code.then(|| self.sources.function(&creation, &mut self.scratch)).flatten();
        let load = is_native(&creation, self.builtins).then(|| self.load(&creation)).flatten();
        self.last = Some(Created { at, creation, load, function });
    }

    fn load(&mut self, creation: &Creation<'_>) -> Option<u32> {
        spell(creation, self.builtins, &mut self.scratch);
        let name = self.log.texts.intern(&self.scratch);
        self.push(LogCode::new(name, creation.addr, creation.size))
    }

    /// Adds a load event with the current time.
    fn push(&mut self, code: LogCode) -> Option<u32> {
        let load = u32::try_from(self.log.events.len()).ok()?;
        let addr = code.addr;
        self.log.load(Some(self.time), code);
        self.at_addr.insert(addr, load);
        Some(load)
    }

    /// Handles a `code-source-info`, which describes the code that was created last.
    fn add_source_info(&mut self, info: SourceInfo<'a>, end: usize) {
        let Some(last) = self.last.take_if(|last| last.creation.addr == info.addr) else { return };
        if let Some(function) = last.function {
            self.sources.is_of(function, info.script);
        }
        let load = last.load.filter(|_| !info.positions.is_empty());
        if let Some(load) = load
            && let LogEventKind::Load(code) = &mut self.log.events[load as usize].kind
        {
            code.positions = (last.at as u64, end as u64);
            self.sources.inlines(&info, &last.creation);
        }
    }

    fn script(&mut self, mut fields: Fields<'a>) -> Result<(), &'static str> {
        let id = fields.next().and_then(decimal).ok_or("has no number")?;
        let name = fields.next().ok_or("has no name")?;
        let text = fields.next().ok_or("has no text")?;
        let start = text.as_ptr().addr() - self.file.as_ptr().addr();
        self.sources.script(id, self.time, name, (start, start + text.len()));
        Ok(())
    }

    /// Records that code is now at another address as well. When it left the old one is unknown, so it is assumed to be
    /// at both until other code is created there.
    fn moved(&mut self, (from, to): (u64, u64)) {
        let Some(load) = self.at_addr.remove(&from) else { return };
        if let LogEventKind::Load(code) = self.log.events[load as usize].kind
            && to.checked_add(code.size).is_some()
        {
            self.push(LogCode { addr: to, ..code });
        }
    }

    fn deleted(&mut self, addr: u64) {
        if let Some(load) = self.at_addr.remove(&addr) {
            let kind = LogEventKind::Unload { load: load as usize, at: addr };
            self.log.events.push(LogEvent { time: Some(self.time), kind });
        }
    }
}

fn addresses(mut fields: Fields<'_>) -> Result<(u64, u64), &'static str> {
    let mut address = || fields.next().and_then(hexadecimal).ok_or("has no hexadecimal addresses");
    Ok((address()?, address()?))
}

fn addresses_or_one(mut fields: Fields<'_>) -> Result<u64, &'static str> {
    fields.next().and_then(hexadecimal).ok_or("has no hexadecimal address")
}
