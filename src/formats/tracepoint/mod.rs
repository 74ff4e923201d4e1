//! Formats samples of tracepoints like perf script without plugins.
//!
//! The recorder copies the descriptions of the fields from the kernel's `events/*/*/format` into the recording
//! (TRACING_DATA):
//!
//! ```text
//! name: sched_wakeup
//! ID: 318
//! format:
//!         field:unsigned short common_type;  offset:0;  size:2;  signed:0;
//!         …
//!         field:char comm[16];  offset:8;  size:16;  signed:0;
//!
//! print fmt: "comm=%s", REC->comm
//! ```
//!
//! The print format is C, as the kernel's macros expand it. If any of it is not understood, nothing is guessed: the
//! fields are printed one by one, as perf does in such a case.
//!
//! The recording doesn't contain the values of the kernel's own constants and variables (`I_DIRTY`, `jiffies`). Like
//! perf, we take 0 for them in expressions, and -1 for those that stand alone in lists of names.
//!
//! TRACING_DATA: Documentation/trace/ in the kernel and trace-cmd.dat(5).

mod expression;
mod field;
mod format;
mod kernel;
mod print;

use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result, Skipped};
use format::TracepointFormat;
use kernel::RecordedKernel;
use rustc_hash::FxHashMap;

/// The formats of the tracepoints in a recording.
#[derive(Debug, Default)]
pub struct TracepointFormats {
    /// The format of each tracepoint, by its ID, which is `config` in the event's attr.
    formats: FxHashMap<u64, TracepointFormat>,
    kernel: RecordedKernel,
}

impl TracepointFormats {
    /// Parses TRACING_DATA. `base` is its file offset. Formats that can't be parsed are counted in `skipped`.
    pub fn parse(bytes: &[u8], base: u64, skipped: &mut Skipped) -> Result<Self> {
        // The byte order is stated below. Nothing before that depends on it.
        let mut cursor = Cursor::new(bytes, base, Endian::Little);
        if cursor.bytes(10, "magic")? != b"\x17\x08\x44tracing" {
            return Err(Error::new("the TRACING_DATA section does not start with its magic number").at_offset(base));
        }
        cursor.cstr("version")?;
        let head = cursor.bytes(2, "byte order and size of long")?;
        let endian = if head[0] == 0 { Endian::Little } else { Endian::Big };
        let long_size = head[1].into();
        let mut formats = Self::default();
        (formats.kernel.endian, formats.kernel.long_size) = (endian, long_size);
        let mut cursor = Cursor::new(cursor.rest(), cursor.offset(), endian);
        cursor.u32("page size")?;
        // Skip the two headers, which aren't needed. They always have these names.
        for _ in ["header_page", "header_event"] {
            cursor.cstr("name of a header")?;
            let size = cursor.u64("size of a header")?;
            cursor.bytes(size, "header")?;
        }
        // The formats of ftrace's own tracepoints are in one list, all others in a list per system, such as `sched`.
        for _ in 0..cursor.u32("number of ftrace formats")? {
            formats.add(&mut cursor, skipped)?;
        }
        for _ in 0..cursor.u32("number of systems")? {
            cursor.cstr("name of a system")?;
            for _ in 0..cursor.u32("number of events")? {
                formats.add(&mut cursor, skipped)?;
            }
        }
        // The parts that follow are optional.
        if let Ok(size) = cursor.u32("size of kallsyms")
            // The kernel's symbols aren't needed: functions are looked up by the symbolizer.
            && cursor.bytes(size.into(), "kallsyms").is_ok()
            && let Ok(size) = cursor.u32("size of printk formats")
            && let Ok(list) = cursor.bytes(size.into(), "printk formats")
        {
            formats.read_printk(list);
        }
        Ok(formats)
    }

    /// Reads the description of one tracepoint. A description that isn't understood is skipped. Fails if the
    /// description is truncated, because then nothing after it can be found.
    fn add(&mut self, cursor: &mut Cursor<'_>, skipped: &mut Skipped) -> Result<()> {
        let size = cursor.u64("size of a format")?;
        let offset = cursor.offset();
        let text = cursor.bytes(size, "format")?;
        match TracepointFormat::parse(&String::from_utf8_lossy(text), self.kernel.long_size) {
            Some((id, format)) => _ = self.formats.insert(id, format),
            None => skipped.add(Error::new("jitgraft cannot parse the format of a tracepoint").at_offset(offset)),
        }
        Ok(())
    }

    /// Parses the list of the kernel's strings and their addresses, for fields that point to such strings. A line is
    /// `0xffffffff8281a8ff : "thaw_processes"`. Other lines are ignored.
    fn read_printk(&mut self, list: &[u8]) {
        for line in String::from_utf8_lossy(list).lines() {
            let Some((addr, text)) = line.split_once(" : ") else { continue };
            let addr = addr.trim().trim_start_matches("0x");
            let text = text.trim().trim_matches('"');
            if let Ok(addr) = u64::from_str_radix(addr, 16) {
                self.kernel.printk.insert(addr, text.as_bytes().to_vec());
            }
        }
    }

    /// True if there are no formats.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    /// The addresses in a sample of the tracepoint `id` that are printed as names of functions, for instance by `%ps`.
    /// Look up these functions and pass them to [`Self::set_functions`] before [`Self::print`]. `raw` is the sample's
    /// raw data.
    pub fn function_addresses(&self, id: u64, raw: &[u8]) -> Vec<u64> {
        match self.formats.get(&id) {
            Some(format) => print::TracepointRecord { format, raw, kernel: &self.kernel }.function_addresses(),
            None => Vec::new(),
        }
    }

    /// Sets the names of kernel functions, by address. Each value is the function's name and the offset of the address
    /// in it.
    pub fn set_functions(&mut self, functions: FxHashMap<u64, (Vec<u8>, u64)>) {
        self.kernel.functions = functions;
    }

    /// Appends the fields of a sample of the tracepoint `id` as perf prints them. Appends nothing if the recording
    /// doesn't describe the tracepoint.
    pub fn print(&self, id: u64, raw: &[u8], out: &mut Vec<u8>) {
        if let Some(format) = self.formats.get(&id) {
            let record = print::TracepointRecord { format, raw, kernel: &self.kernel };
            record.print(out);
        }
    }
}
