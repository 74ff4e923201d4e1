//! Writes samples in perf script's layout (`process_event` in tools/perf/builtin-script.c).
//!
//! ```text
//! node 15670 [001]   466.577591:    1001001 cpu-clock:␣
//! ␉    7f600a1d69d1 do_lookup_x+0xca (/usr/lib/ld.so)
//! ```
//!
//! A sample without a call chain is one line, and its command name is padded to 16 columns. Addresses are absolute, as
//! perf prints them since about 6.17; older versions print addresses in files relative to the file.

use crate::error::Error;
use crate::model::backing::base_name;
use crate::model::{Nanos, Pid, Tid};
use std::io::Write;
use std::str::FromStr;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $usual:literal),*) => {
        /// Which fields to print (`-F`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Fields {
            $($(#[$doc])* pub $name: bool,)*
            /// Print times with nanoseconds (`--ns`).
            pub ns: bool,
            /// True if the user gave `-F`.
            pub is_given: bool,
            /// True if `-F` explicitly lists the period; otherwise tracepoints are printed without it.
            pub asks_period: bool,
            /// True if `-F` explicitly lists addresses; otherwise tracepoints only have them if they have call chains.
            pub asks_ip: bool,
        }

        impl Fields {
            const NONE: Self = Self {
                $($name: false,)* ns: false, is_given: false, asks_period: false, asks_ip: false
            };

            fn field(&mut self, name: &str) -> Option<&mut bool> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }

        impl Default for Fields {
            /// The fields that perf prints for samples by default.
            fn default() -> Self {
                Self { $($name: $usual,)* ..Self::NONE }
            }
        }
    };
}

fields! {
    /// Command name of the thread.
    comm: true,
    /// Process ID.
    pid: false,
    /// Thread ID.
    tid: true,
    /// CPU, if recorded.
    cpu: true,
    /// Time in seconds.
    time: true,
    /// Period of the sample.
    period: true,
    /// Name of the event.
    event: true,
    /// Fields of a tracepoint.
    trace: true,
    /// Addresses. Without them no frames are printed.
    ip: true,
    /// Symbols.
    sym: true,
    /// Offset in the function.
    symoff: true,
    /// Object: the file or mapping of the code.
    dso: true,
    /// Source line, printed on a line of its own.
    srcline: false,
    /// Data address, or what else the event records there.
    addr: false,
    /// Registers at the interrupt.
    iregs: false,
    /// User-space registers.
    uregs: false,
    /// Branch stack with addresses.
    brstack: false,
    /// Branch stack with symbols.
    brstacksym: false
}

/// Fields of perf 7.2 that are not supported here.
const UNSUPPORTED: &[&str] = &[
    "dsoff",
    "flags",
    "data_src",
    "weight",
    "bpf-output",
    "brstackinsn",
    "brstackinsnlen",
    "brstackdisasm",
    "brstackoff",
    "callindent",
    "insn",
    "disasm",
    "insnlen",
    "synth",
    "phys_addr",
    "metric",
    "misc",
    "srccode",
    "ipc",
    "tod",
    "data_page_size",
    "code_page_size",
    "ins_lat",
    "machine_pid",
    "vcpu",
    "cgroup",
    "retire_lat",
    "brcntr",
];

fn refuse_unsupported(field: &str) -> Result<(), Error> {
    const REMEDY: &str = "perf script -F … | jitgraft script names the frames in perf's own text";
    if let Some((kind, _)) = field.split_once(':') {
        let message = format!("fields of one kind of event ({kind}:) are not supported: leave the kind out");
        return Err(Error::new(message));
    }
    if UNSUPPORTED.contains(&field) {
        return Err(Error::new(format!("perf's field {field} is not supported")).with_remedy(Some(REMEDY.to_owned())));
    }
    Ok(())
}

impl FromStr for Fields {
    type Err = Error;

    /// Parses `comm,ip,sym` as exactly these fields, and `+srcline,-period` as changes to the default.
    fn from_str(list: &str) -> Result<Self, Error> {
        let changes = list.starts_with(['+', '-']);
        let mut fields = if changes { Self::default() } else { Self::NONE };
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (on, name) = match word.as_bytes() {
                [b'+', ..] => (true, &word[1..]),
                [b'-', ..] => (false, &word[1..]),
                _ => (true, word),
            };
            refuse_unsupported(name)?;
            let field = fields.field(name).ok_or_else(|| {
                Error::new(format!(
                    "no field is called {name}; there are comm, pid, tid, cpu, time, period, event, trace, ip, sym, symoff, \
                     dso, srcline, addr, iregs, uregs, brstack and brstacksym"
                ))
            })?;
            *field = on;
            match name {
                "period" => fields.asks_period = on,
                "ip" => fields.asks_ip = on,
                _ => {}
            }
        }
        fields.is_given = true;
        Ok(fields)
    }
}

impl Fields {
    /// The fields to print for tracepoints.
    #[must_use]
    pub fn of_tracepoints(self, have_call_chains: bool) -> Self {
        let ip = if self.is_given { self.asks_ip } else { have_call_chains };
        Self { period: self.asks_period, ip, ..self }
    }
}

/// What is printed before the frames of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Command name of the thread.
    pub comm: &'a [u8],
    /// Process ID.
    pub pid: Option<Pid>,
    /// Thread ID.
    pub tid: Option<Tid>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Time of the sample.
    pub time: Option<Nanos>,
    /// The period, if the event's samples have one.
    pub period: Option<u64>,
    /// Name of the event.
    pub event: &'a str,
    /// Length of the longest event name in the recording; shorter names are padded to it.
    pub event_width: usize,
    /// The formatted fields of a tracepoint.
    pub trace: &'a [u8],
    /// Data address, if recorded.
    pub addr: Option<u64>,
    /// The symbol at `addr`, as formatted by [`symbol`]; empty if perf wouldn't print one.
    pub addr_symbol: &'a [u8],
    /// True if frames follow on lines of their own.
    pub chain: bool,
    /// True if the command name is padded although frames follow.
    pub pads_comm: bool,
}

/// A frame to print.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Address in the process.
    pub addr: u64,
    /// The function; `None` prints `[unknown]`.
    pub symbol: Option<&'a [u8]>,
    /// Offset of the address in the function.
    pub offset: u64,
    /// The object; `None` prints `[unknown]`.
    pub dso: Option<&'a [u8]>,
    /// True if this is a call inlined into the next frame.
    pub inlined: bool,
    /// Source file and line.
    pub source: Option<(&'a [u8], u32)>,
}

/// Appends the header. It ends with a line break if a call chain follows.
pub fn header(out: &mut Vec<u8>, fields: Fields, header: &Header<'_>) {
    if fields.comm && header.chain && fields.ip && !header.pads_comm {
        put_in_line(out, header.comm);
        out.push(b' ');
    } else if fields.comm {
        out.resize(out.len() + 16usize.saturating_sub(header.comm.len()), b' ');
        put_in_line(out, header.comm);
        out.push(b' ');
    }
    let (pid, tid) = (header.pid.map_or(-1, |pid| pid.0), header.tid.map_or(-1, |tid| tid.0));
    match (fields.pid && header.pid.is_some(), fields.tid && header.tid.is_some()) {
        (true, true) => put(out, format_args!("{pid:5}/{tid:<5} ")),
        (true, false) => put(out, format_args!("{pid:5} ")),
        (false, true) => put(out, format_args!("{tid:5} ")),
        (false, false) => {}
    }
    if let (true, Some(cpu)) = (fields.cpu, header.cpu) {
        put(out, format_args!("[{cpu:03}] "));
    }
    if let (true, Some(Nanos(time))) = (fields.time, header.time) {
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        match fields.ns {
            true => put(out, format_args!("{seconds:5}.{nanos:09}: ")),
            false => put(out, format_args!("{seconds:5}.{:06}: ", nanos / 1000)),
        }
    }
    if let (true, Some(period)) = (fields.period, header.period) {
        put(out, format_args!("{period:10} "));
    }
    if fields.event {
        put(out, format_args!("{:>1$}: ", header.event, header.event_width));
    }
    if fields.trace {
        out.extend_from_slice(header.trace);
    }
    if let (true, Some(addr)) = (fields.addr, header.addr) {
        put(out, format_args!("{addr:16x}"));
        out.extend_from_slice(header.addr_symbol);
    }
    if fields.ip && header.chain {
        out.push(b'\n');
    } else if fields.ip {
        out.push(b' ');
    }
}

/// Appends a frame: on a line of its own if it belongs to a call chain, else at the end of the header.
pub fn frame(out: &mut Vec<u8>, fields: Fields, chain: bool, line: &Line<'_>) {
    if !fields.ip {
        return;
    }
    if chain {
        out.push(b'\t');
    }
    put(out, format_args!("{:16x}", line.addr));
    symbol(out, fields, line);
    if fields.srcline {
        source(out, line);
    }
    if line.inlined {
        out.extend_from_slice(b" (inlined)");
    }
    if chain {
        out.push(b'\n');
    }
}

/// Appends symbol and object, as far as these fields are printed.
pub fn symbol(out: &mut Vec<u8>, fields: Fields, line: &Line<'_>) {
    if fields.sym {
        out.push(b' ');
        match line.symbol {
            Some(symbol) => {
                put_in_line(out, symbol);
                if fields.symoff && !line.inlined {
                    put(out, format_args!("+{:#x}", line.offset));
                }
            }
            None => out.extend_from_slice(b"[unknown]"),
        }
    }
    if fields.dso && !line.inlined {
        out.extend_from_slice(b" (");
        put_in_line(out, line.dso.unwrap_or(b"[unknown]"));
        out.push(b')');
    }
}

fn source(out: &mut Vec<u8>, line: &Line<'_>) {
    out.extend_from_slice(b"\n  ");
    match (line.source, line.dso) {
        (Some((file, number)), _) => {
            put_in_line(out, base_name(file));
            put(out, format_args!(":{number}"));
        }
        (None, Some(dso)) => {
            put_in_line(out, base_name(dso));
            put(out, format_args!("[{:x}]", line.addr));
        }
        (None, None) => put(out, format_args!("[unknown][{:x}]", line.addr)),
    }
}

/// Appends a name. Line breaks in it become blanks.
fn put_in_line(out: &mut Vec<u8>, name: &[u8]) {
    out.extend(name.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
}

/// Appends the empty line that ends a sample.
pub fn end(out: &mut Vec<u8>) {
    out.push(b'\n');
}

pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header<'_> = Header {
        comm: b"node",
        pid: Some(Pid(7)),
        tid: Some(Tid(15670)),
        cpu: Some(1),
        time: Some(Nanos(466_577_591_999)),
        period: Some(1_001_001),
        event: "cpu-clock",
        event_width: 10,
        trace: b"",
        addr: Some(0x7ff0),
        addr_symbol: b"",
        chain: true,
        pads_comm: false,
    };

    fn sample(fields: &str, chain: bool) -> String {
        let fields: Fields = if fields.is_empty() { Fields::default() } else { fields.parse().unwrap() };
        let mut out = Vec::new();
        header(&mut out, fields, &Header { chain, ..HEADER });
        let source = Some((&b"/src/ld.c"[..], 9));
        let leaf =
            Line { addr: 0x8e2a, symbol: Some(b"look"), offset: 0xca, dso: Some(b"/ld.so"), inlined: false, source };
        frame(&mut out, fields, chain, &leaf);
        if chain {
            let (symbol, dso) = (None, None);
            frame(&mut out, fields, chain, &Line { addr: 0, symbol, offset: 0, dso, inlined: false, source: None });
        }
        end(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn perfs_layout() {
        assert_eq!(
            sample("", true),
            "node 15670 [001]   466.577591:    1001001  cpu-clock: \n\t            8e2a look+0xca (/ld.so)\n\
             \t               0 [unknown] ([unknown])\n\n"
        );
        assert_eq!(
            sample("", false),
            "            node 15670 [001]   466.577591:    1001001  cpu-clock:              8e2a look+0xca (/ld.so)\n"
        );
        assert_eq!(
            sample("comm,pid,tid,ip,sym", true),
            "node     7/15670 \n\t            8e2a look\n\t               0 [unknown]\n\n"
        );
        assert_eq!(sample("event,addr", false), "cpu-clock:             7ff0\n".replacen("cpu", " cpu", 1));
        assert_eq!(sample("comm,event", true), "            node  cpu-clock: \n");
        let lines = sample("+srcline,-period,-cpu,-event", true);
        assert!(lines.contains("look+0xca (/ld.so)\n  ld.c:9\n"), "{lines}");
    }

    #[test]
    fn fields_that_do_not_exist() {
        for field in UNSUPPORTED {
            let error = format!("+{field}").parse::<Fields>().unwrap_err().to_string();
            assert!(error.contains(&format!("perf's field {field} is not supported")), "{error}");
        }
        assert!("sw:comm,tid".parse::<Fields>().unwrap_err().to_string().contains("(sw:)"));
        assert!("comm,nosuch".parse::<Fields>().unwrap_err().to_string().contains("no field is called nosuch"));
        assert_eq!(
            "+srcline".parse::<Fields>().unwrap(),
            Fields { srcline: true, is_given: true, ..Fields::default() }
        );
    }
}
