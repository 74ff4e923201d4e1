//! Writes samples in perf script's layout (`process_event` in tools/perf/builtin-script.c).
//!
//! ```text
//! node 15670 [001]   466.577591:    1001001 cpu-clock:␣
//! ␉    7f600a1d69d1 do_lookup_x+0xca (/usr/lib/ld.so)
//! ```
//!
//! A sample without a call chain is one line, and its command name is padded to 16 columns. Addresses are absolute, as
//! perf prints them since about 6.17; older versions print addresses in files relative to the file.

use super::measured::{Measured, write_before_frames};
pub use super::output_fields::Fields;
use super::output_fields::put;
use crate::model::mapping_kind::base_name;
use crate::model::process::CpuMode;
use crate::model::{Nanos, Pid, Tid};

/// What is printed before the frames of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Command name of the thread.
    pub comm: &'a [u8],
    /// Process ID.
    pub pid: Option<Pid>,
    /// Thread ID.
    pub tid: Option<Tid>,
    /// The CPU on which the sample was taken; `None` if it wasn't recorded.
    pub cpu: Option<u32>,
    /// Time of the sample.
    pub time: Option<Nanos>,
    /// The sampling period, if the event has one.
    pub period: Option<u64>,
    /// Name of the event.
    pub event: &'a str,
    /// Length of the longest event name in the recording, in bytes; shorter names are padded to it.
    pub event_width: usize,
    /// The formatted fields of a tracepoint.
    pub trace: &'a [u8],
    /// The data address, if recorded.
    pub addr: Option<u64>,
    /// The symbol at `addr`, as formatted by [`write_symbol`]; empty if perf wouldn't print one.
    pub addr_symbol: &'a [u8],
    /// Other measured values of the sample, such as weight and latency.
    pub measured: Measured<'a>,
    /// The CPU mode (kernel, user, …) in which the sample was taken.
    pub mode: CpuMode,
    /// True if the sample has a call chain, whose frames follow on lines of their own.
    pub chain: bool,
    /// True if the command name is padded to 16 columns even though a call chain follows: perf pads it if the event
    /// itself records no call chains.
    pub pads_comm: bool,
}

/// A frame as it is printed.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Address in the process.
    pub addr: u64,
    /// The function; `None` prints `[unknown]`.
    pub symbol: Option<&'a [u8]>,
    /// Offset of the address in the function, in bytes.
    pub offset: u64,
    /// The object (file or mapping); `None` prints `[unknown]`.
    pub dso: Option<&'a [u8]>,
    /// The address in the file, for `-F +dsoff`. `None` if there is no such file, as for kernel symbols and BPF
    /// programs.
    pub file_offset: Option<u64>,
    /// True if this call was inlined into the function of the next frame. It is printed without offset and object.
    pub inlined: bool,
    /// Source file and line, if known.
    pub source: Option<(&'a [u8], u32)>,
}

/// Where a frame is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePosition {
    /// On a line of its own, as a frame of a call chain.
    OwnLine,
    /// On the header's line, as the only frame of the sample.
    HeaderLine,
}

/// Appends the header: the selected fields that were recorded, in perf's order and column widths. It ends with a line
/// break if the frames of a call chain follow, or with a blank if the only frame follows on the same line.
pub fn write_header(out: &mut Vec<u8>, fields: Fields, header: &Header<'_>) {
    const COMM_WIDTH: usize = 16;
    if fields.comm {
        // Like perf, pad the command name in samples that are printed on one line.
        let frames_follow_below = header.chain && fields.ip;
        if !frames_follow_below || header.pads_comm {
            out.resize(out.len() + COMM_WIDTH.saturating_sub(header.comm.len()), b' ');
        }
        put_in_line(out, header.comm);
        out.push(b' ');
    }
    let pid = header.pid.filter(|_| fields.pid);
    let tid = header.tid.filter(|_| fields.tid);
    match (pid, tid) {
        (Some(Pid(pid)), Some(Tid(tid))) => put(out, format_args!("{pid:5}/{tid:<5} ")),
        (Some(Pid(pid)), None) => put(out, format_args!("{pid:5} ")),
        (None, Some(Tid(tid))) => put(out, format_args!("{tid:5} ")),
        (None, None) => {}
    }
    if fields.cpu
        && let Some(cpu) = header.cpu
    {
        put(out, format_args!("[{cpu:03}] "));
    }
    if fields.misc {
        put(out, format_args!("{:<6}", mode_letters(header.mode)));
    }
    if fields.time
        && let Some(Nanos(time)) = header.time
    {
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        match fields.ns {
            true => put(out, format_args!("{seconds:5}.{nanos:09}: ")),
            false => put(out, format_args!("{seconds:5}.{:06}: ", nanos / 1000)),
        }
    }
    if fields.period
        && let Some(period) = header.period
    {
        put(out, format_args!("{period:10} "));
    }
    if fields.event {
        let (event, width) = (header.event, header.event_width);
        put(out, format_args!("{event:>width$}: "));
    }
    // Only samples of processor traces (Intel PT) have flags, and we don't read these traces. For other samples, perf
    // leaves the column empty.
    if fields.flags {
        put(out, format_args!("  {:21} ", ""));
    }
    if fields.trace {
        out.extend_from_slice(header.trace);
    }
    if fields.addr
        && let Some(addr) = header.addr
    {
        put(out, format_args!("{addr:16x}"));
        out.extend_from_slice(header.addr_symbol);
    }
    write_before_frames(out, fields, &header.measured);
    if fields.ip && header.chain {
        out.push(b'\n');
    } else if fields.ip {
        out.push(b' ');
    }
}

/// Appends a frame: its address, and symbol, object and source line if they are selected. Appends nothing if addresses
/// aren't selected, as in perf.
pub fn write_frame(out: &mut Vec<u8>, fields: Fields, position: FramePosition, line: &Line<'_>) {
    if !fields.ip {
        return;
    }
    if position == FramePosition::OwnLine {
        out.push(b'\t');
    }
    put(out, format_args!("{:16x}", line.addr));
    write_symbol(out, fields, line);
    if fields.srcline {
        write_source(out, line);
    }
    if line.inlined {
        out.extend_from_slice(b" (inlined)");
    }
    if position == FramePosition::OwnLine {
        out.push(b'\n');
    }
}

/// Appends the symbol and the object, if these fields are selected. A call that was inlined has no code of its own, so
/// it is printed without offset and object.
pub fn write_symbol(out: &mut Vec<u8>, fields: Fields, line: &Line<'_>) {
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

/// Appends the object in parentheses, with the address in the file if that field is selected.
fn put_dso(out: &mut Vec<u8>, fields: Fields, line: &Line<'_>) {
    out.extend_from_slice(b" (");
    put_in_line(out, line.dso.unwrap_or(b"[unknown]"));
    if let (true, Some(_), Some(offset)) = (fields.dsoff, line.dso, line.file_offset) {
        put(out, format_args!("+{offset:#x}"));
    }
    out.push(b')');
}

/// The letters that perf prints for a CPU mode. perf tests single bits of the mode's number, so some modes get several
/// letters.
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

/// Appends the line below a frame with the source file and line. If they are unknown, it shows object and address, as
/// in perf.
fn write_source(out: &mut Vec<u8>, line: &Line<'_>) {
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

/// Appends a name, with line breaks replaced by blanks.
fn put_in_line(out: &mut Vec<u8>, name: &[u8]) {
    out.extend(name.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
}

/// Appends the empty line that ends a sample.
pub fn write_end(out: &mut Vec<u8>) {
    out.push(b'\n');
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
        write_header(&mut out, fields, &Header { chain, ..HEADER });
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
        let position = if chain { FramePosition::OwnLine } else { FramePosition::HeaderLine };
        write_frame(&mut out, fields, position, &leaf);
        if chain {
            let nothing = Line {
                addr: 0,
                symbol: None,
                offset: 0,
                dso: None,
                file_offset: Some(7),
                inlined: false,
                source: None,
            };
            write_frame(&mut out, fields, position, &nothing);
        }
        write_end(&mut out);
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
        for field in super::super::output_fields::UNSUPPORTED {
            let error = format!("+{field}").parse::<Fields>().unwrap_err().to_string();
            assert!(error.contains(&format!("the field {field} of perf script is not supported")), "{error}");
        }
        assert!("sw:comm,tid".parse::<Fields>().unwrap_err().to_string().contains("(sw:)"));
        assert!("comm,nosuch".parse::<Fields>().unwrap_err().to_string().contains("no field named nosuch"));
        assert_eq!(
            "+srcline".parse::<Fields>().unwrap(),
            Fields { srcline: true, is_given: true, ..Fields::default() }
        );
    }
}
