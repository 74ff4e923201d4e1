//! Writes samples in perf script's own layout (tools/perf/builtin-script.c, `process_event`).
//!
//! ```text
//! node 15670 [001]   466.577591:    1001001 cpu-clock:␣
//! ␉    7f600a1d69d1 do_lookup_x+0xca (/usr/lib/ld.so)
//! ```
//!
//! Without a call chain a sample is one line, and its name is padded to 16. Addresses are those of the process, as
//! perf has printed them since 6.17 or so; older ones print those of files relative to the file.

use super::measured::{Measured, before_frames};
use crate::error::Error;
use crate::model::backing::base_name;
use crate::model::process::CpuMode;
use crate::model::{Nanos, Pid, Tid};
use std::io::Write;
use std::str::FromStr;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $usual:literal),*) => {
        /// The printed fields (`-F`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Fields {
            $($(#[$doc])* pub $name: bool,)*
            /// True if times are to the nanosecond (`--ns`).
            pub ns: bool,
            /// True if `-F` was given.
            pub is_given: bool,
            /// True if `-F` names the period: tracepoints have none by themselves.
            pub asks_period: bool,
            /// True if `-F` names addresses: tracepoints have them by themselves only if they have call chains.
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
            /// perf's own for samples.
            fn default() -> Self {
                Self { $($name: $usual,)* ..Self::NONE }
            }
        }
    };
}

fields! {
    /// Name of the thread.
    comm: true,
    /// Process.
    pid: false,
    /// Thread.
    tid: true,
    /// Processor, where recorded.
    cpu: true,
    /// Seconds.
    time: true,
    /// The weight of the sample.
    period: true,
    /// The event's name.
    event: true,
    /// A tracepoint's fields.
    trace: true,
    /// Addresses; without them no frames are printed.
    ip: true,
    /// Functions.
    sym: true,
    /// The offset in the function.
    symoff: true,
    /// Files.
    dso: true,
    /// Source lines, each on a line of its own.
    srcline: false,
    /// The data address, or what else the event gives there.
    addr: false,
    /// The registers at the interrupt.
    iregs: false,
    /// The registers of the user's code.
    uregs: false,
    /// The branch stack, by address.
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

    /// `comm,ip,sym`: these only; `+srcline,-period`: the default with changes.
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
    /// Those that are printed of tracepoints.
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

/// The lines before the frames of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Name of the thread.
    pub comm: &'a [u8],
    /// Process and thread.
    pub pid: Option<Pid>,
    /// Thread.
    pub tid: Option<Tid>,
    /// Processor.
    pub cpu: Option<u32>,
    /// When.
    pub time: Option<Nanos>,
    /// The weight, if the event's samples have it.
    pub period: Option<u64>,
    /// Its event.
    pub event: &'a str,
    /// The longest name of an event of the recording.
    pub event_width: usize,
    /// The fields of a tracepoint.
    pub trace: &'a [u8],
    /// The data address, where recorded.
    pub addr: Option<u64>,
    /// What is there, as [`symbol`] writes it; empty if perf doesn't say.
    pub addr_symbol: &'a [u8],
    /// What else was measured.
    pub measured: Measured<'a>,
    /// The mode of the sample.
    pub mode: CpuMode,
    /// True if frames follow on lines of their own.
    pub chain: bool,
    /// True if the name is padded although frames follow.
    pub pads_comm: bool,
}

/// One frame.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The address in the process.
    pub addr: u64,
    /// The function; `None` is printed as `[unknown]`.
    pub symbol: Option<&'a [u8]>,
    /// The offset of the address in the function.
    pub offset: u64,
    /// The file; `None` is printed as `[unknown]`.
    pub dso: Option<&'a [u8]>,
    /// The address in the file; `None` if it is none that can be opened (the kernel's symbols, BPF programs).
    pub file_offset: Option<u64>,
    /// A call that was expanded into the next frame.
    pub inlined: bool,
    /// File and line.
    pub source: Option<(&'a [u8], u32)>,
}

/// Appends what precedes the frames, with the line break that a call chain wants.
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

/// Appends a frame of a call chain, a line of its own; or of a sample without one, behind the header.
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

/// Appends what is at an address: the function and the file, as far as these are fields to print.
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

/// Appends a name; one with a line break must not make two lines.
fn put_in_line(out: &mut Vec<u8>, name: &[u8]) {
    out.extend(name.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
}

/// Appends the end of a sample.
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
