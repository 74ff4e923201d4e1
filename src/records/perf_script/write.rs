//! Writes samples in perf script's layout (`process_event` in tools/perf/builtin-script.c).
//!
//! ```text
//! node 15670 [001]   466.577591:    1001001 cpu-clock:␣
//! ␉    7f600a1d69d1 do_lookup_x+0xca (/usr/lib/ld.so)
//! ```
//!
//! A sample without a call chain is one line, and its command name is padded to 16 columns. Addresses are absolute, as
//! perf prints them since about 6.17; older versions print addresses in files relative to the file.

use super::measured::{Measured, before_frames};
use crate::error::Error;
use crate::model::backing::base_name;
use crate::model::process::CpuMode;
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
    /// The branch stack, by function.
    brstacksym: false,
    /// Addresses in files, behind the files.
    dsoff: false,
    /// What a decoder of branch traces found out of the sample: nothing, without one.
    flags: false,
    /// Where the accessed data were, in words.
    data_src: false,
    /// What the event weighs the sample by, such as the access's latency.
    weight: false,
    /// The latency of the instruction.
    ins_lat: false,
    /// The latency of its retirement.
    retire_lat: false,
    /// The control group.
    cgroup: false,
    /// The bytes that a BPF program gave.
    bpf_output: true,
    /// The physical data address.
    phys_addr: false,
    /// The page size of the data address.
    data_page_size: false,
    /// The page size of the instruction address.
    code_page_size: false,
    /// The mode: user, kernel, guest.
    misc: false,
    /// Calls that a decoder of branch traces found: none, without one.
    callindent: false,
    /// The values of events that such a decoder makes: none, without one.
    synth: false,
    /// Instructions a cycle, by such a decoder: none, without one.
    ipc: false
}

/// perf's fields (7.3) that are not printed here: instructions, source text and what only hardware or guests have.
const UNSUPPORTED: &[&str] = &[
    "brstackinsn",
    "brstackinsnlen",
    "brstackdisasm",
    "brstackoff",
    "brcntr",
    "insn",
    "disasm",
    "insnlen",
    "metric",
    "srccode",
    "tod",
    "machine_pid",
    "vcpu",
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
        // As in perf, whose field bpf-output has the sign in its name.
        let changes = list.contains(['+', '-']);
        let mut fields = if changes { Self::default() } else { Self::NONE };
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (on, name) = match word.as_bytes() {
                [b'+', ..] => (true, &word[1..]),
                [b'-', ..] => (false, &word[1..]),
                _ => (true, word),
            };
            refuse_unsupported(name)?;
            let field = fields.field(&name.replace('-', "_")).ok_or_else(|| {
                Error::new(format!(
                    "no field is called {name}; there are comm, pid, tid, cpu, time, period, event, trace, ip, sym, symoff, \
                     dso, dsoff, srcline, addr, data_src, weight, ins_lat, retire_lat, cgroup, iregs, uregs, brstack, \
                     brstacksym, bpf-output, phys_addr, data_page_size, code_page_size, misc, flags, synth, callindent and ipc"
                ))
            })?;
            *field = on;
            fields.dso |= fields.dsoff && name == "dsoff";
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

    /// True if one of them is kept beside the frames of a sample.
    #[must_use]
    pub fn are_beside_frames(self) -> bool {
        let access = self.addr || self.data_src || self.weight || self.ins_lat || self.retire_lat || self.phys_addr;
        access || self.iregs || self.uregs || self.cgroup || self.misc || self.data_page_size || self.code_page_size
    }

    /// Those that are printed of the hardware's own events (`PERF_TYPE_RAW`): all that is known of an access.
    #[must_use]
    pub fn of_raw_events(self) -> Self {
        if self.is_given {
            return self;
        }
        Self {
            addr: true,
            data_src: true,
            weight: true,
            ins_lat: true,
            retire_lat: true,
            phys_addr: true,
            data_page_size: true,
            code_page_size: true,
            ..self
        }
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
    /// What else was measured.
    pub measured: Measured<'a>,
    /// The mode of the sample.
    pub mode: CpuMode,
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
    /// The address in the file; `None` if it is none that can be opened (the kernel's symbols, BPF programs).
    pub file_offset: Option<u64>,
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
    if fields.misc {
        put(out, format_args!("{:<6}", mode_letters(header.mode)));
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
    if fields.flags {
        put(out, format_args!("  {:21} ", ""));
    }
    if fields.trace {
        out.extend_from_slice(header.trace);
    }
    if let (true, Some(addr)) = (fields.addr, header.addr) {
        put(out, format_args!("{addr:16x}"));
        out.extend_from_slice(header.addr_symbol);
    }
    before_frames(out, fields, &header.measured);
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
        put_dso(out, fields, line);
    }
}

/// Appends the file, in parentheses; with the address in it, if that is asked for.
fn put_dso(out: &mut Vec<u8>, fields: Fields, line: &Line<'_>) {
    out.extend_from_slice(b" (");
    put_in_line(out, line.dso.unwrap_or(b"[unknown]"));
    if let (true, Some(offset)) = (fields.dsoff, line.file_offset) {
        put(out, format_args!("+{offset:#x}"));
    }
    out.push(b')');
}

/// Letters of all modes whose bits are in this one's number, as perf tests them.
fn mode_letters(mode: CpuMode) -> &'static str {
    match mode {
        CpuMode::Unknown => "",
        CpuMode::Kernel => "K",
        CpuMode::User => "U",
        CpuMode::Hypervisor => "KUH",
        CpuMode::GuestKernel => "G",
        CpuMode::GuestUser => "KGg",
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
        measured: Measured::NONE,
        mode: CpuMode::User,
        chain: true,
        pads_comm: false,
    };

    fn sample(fields: &str, chain: bool) -> String {
        let fields: Fields = if fields.is_empty() { Fields::default() } else { fields.parse().unwrap() };
        let mut out = Vec::new();
        header(&mut out, fields, &Header { chain, ..HEADER });
        let source = Some((&b"/src/ld.c"[..], 9));
        let leaf = Line {
            addr: 0x8e2a,
            symbol: Some(b"look"),
            offset: 0xca,
            dso: Some(b"/ld.so"),
            file_offset: Some(0x1e2a),
            inlined: false,
            source,
        };
        frame(&mut out, fields, chain, &leaf);
        if chain {
            let nothing =
                Line { addr: 0, symbol: None, offset: 0, dso: None, file_offset: None, inlined: false, source: None };
            frame(&mut out, fields, chain, &nothing);
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
        assert_eq!(
            sample("comm,misc,flags,ip,sym,dsoff", true),
            "node U                             \n\t            8e2a look (/ld.so+0x1e2a)\n\t               0 [unknown] ([unknown])\n\n"
        );
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
