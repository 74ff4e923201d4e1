//! The fields of perf script's output that jitgraft prints (`-F`), with perf's names and defaults.

use crate::error::Error;
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
            /// True if `-F` explicitly lists addresses (`ip`), which are then also printed for tracepoints.
            pub asks_ip: bool,
        }

        impl Fields {
            pub(super) const NONE: Self = Self {
                $($name: false,)* ns: false, is_given: false, asks_period: false, asks_ip: false
            };

            /// The field with this name; `None` if there is none. Names are spelled as in perf, but with underscores
            /// instead of hyphens.
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
    /// The object (DSO): the file or memory that the code is in.
    dso: true,
    /// Source line, printed on a line of its own.
    srcline: false,
    /// Address of the accessed data, or whatever else the event records in that field.
    addr: false,
    /// Registers at the interrupt.
    iregs: false,
    /// User-space registers.
    uregs: false,
    /// Branch stack with addresses.
    brstack: false,
    /// Branch stack with functions.
    brstacksym: false,
    /// The address in the file, printed after the file's name.
    dsoff: false,
    /// Flags from a decoder of hardware traces. Always blank here, because jitgraft doesn't decode traces.
    flags: false,
    /// Where the accessed data was, in words.
    data_src: false,
    /// The weight that the event assigns to the sample, such as the access's latency.
    weight: false,
    /// Latency of the instruction in cycles.
    ins_lat: false,
    /// Latency of the instruction's retirement in cycles.
    retire_lat: false,
    /// Path of the control group.
    cgroup: false,
    /// Bytes that a BPF program wrote.
    bpf_output: true,
    /// The physical data address.
    phys_addr: false,
    /// The page size of the data address.
    data_page_size: false,
    /// The page size of the instruction address.
    code_page_size: false,
    /// The CPU mode: user, kernel, guest.
    misc: false,
    /// Calls found by a decoder of hardware traces. Always empty here.
    callindent: false,
    /// Values of events that a decoder of hardware traces synthesizes. Always empty here.
    synth: false,
    /// Instructions per cycle, from a decoder of hardware traces. Always empty here.
    ipc: false
}

/// The fields of perf script (7.3) that jitgraft doesn't print: instructions, metrics, source text, times of day, and
/// the IDs of guests.
pub(super) const UNSUPPORTED: &[&str] = &[
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

/// Fails if a field of `-F` isn't supported.
fn refuse_unsupported(field: &str) -> Result<(), Error> {
    const REMEDY: &str = "to print this field, let perf print it and let jitgraft add names to perf's output: \
                          perf script -F … | jitgraft script";
    if let Some((kind, _)) = field.split_once(':') {
        let message = format!("fields for one kind of event ({kind}:) are not supported; leave out {kind}:");
        return Err(Error::new(message));
    }
    if UNSUPPORTED.contains(&field) {
        return Err(Error::new(format!("the field {field} of perf script is not supported"))
            .with_remedy(Some(REMEDY.to_owned())));
    }
    Ok(())
}

impl FromStr for Fields {
    type Err = Error;

    /// Parses a list such as `comm,ip,sym`, which selects exactly these fields, or `+srcline,-period`, which changes
    /// the default.
    fn from_str(list: &str) -> Result<Self, Error> {
        // A sign anywhere in the list makes it a list of changes, as in perf, even if it is part of the name
        // `bpf-output`.
        let changes = list.contains(['+', '-']);
        let mut fields = if changes { Self::default() } else { Self::NONE };
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (on, name) = match word.as_bytes() {
                [b'+', ..] => (true, &word[1..]),
                [b'-', ..] => (false, &word[1..]),
                _ => (true, word),
            };
            refuse_unsupported(name)?;
            // `bpf-output` is the only name with a hyphen; its field in Rust has an underscore.
            let field = fields.field(&name.replace('-', "_")).ok_or_else(|| {
                Error::new(format!(
                    "no field named {name}; choose from comm, pid, tid, cpu, time, period, event, trace, ip, sym, \
                     symoff, \
                     dso, dsoff, srcline, addr, data_src, weight, ins_lat, retire_lat, cgroup, iregs, uregs, brstack, \
                     brstacksym, bpf-output, phys_addr, data_page_size, code_page_size, misc, flags, synth, callindent and ipc"
                ))
            })?;
            *field = on;
            // The file offset (`dsoff`) is printed as part of the object (`dso`), so it only appears if the object is
            // printed.
            fields.dso |= fields.dsoff && name == "dsoff";
            // For tracepoints, these two are off by default, so `tracepoint_fields` must know whether the user named
            // them.
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
    /// The fields to print for tracepoints. The period is only printed if `-F` lists it. Addresses are printed if `-F`
    /// lists them or, without `-F`, if the samples have call chains.
    #[must_use]
    pub fn tracepoint_fields(self, have_call_chains: bool) -> Self {
        let ip = if self.is_given { self.asks_ip } else { have_call_chains };
        Self { period: self.asks_period, ip, ..self }
    }

    /// True if any of the selected fields is neither in the header nor about frames, so that more of each sample must
    /// be kept.
    #[must_use]
    pub fn need_other_fields(self) -> bool {
        let access = self.addr || self.data_src || self.weight || self.ins_lat || self.retire_lat || self.phys_addr;
        access || self.iregs || self.uregs || self.cgroup || self.misc || self.data_page_size || self.code_page_size
    }

    /// The fields to print for raw hardware events (`PERF_TYPE_RAW`). Without `-F` these include everything about the
    /// memory access.
    #[must_use]
    pub fn raw_event_fields(self) -> Self {
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

/// Appends formatted text to `out`.
pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}
