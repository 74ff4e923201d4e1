//! Writes what perf script prints about a sample besides its frames (tools/perf/builtin-script.c, `process_event`): for
//! memory accesses, where the data were, latencies and page sizes; also the control group, and the bytes that a BPF
//! program wrote.

use super::output_fields::{Fields, put};

/// What was measured about a sample. Values that the event doesn't record are `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured<'a> {
    /// Where the accessed data came from (`union perf_mem_data_src`).
    pub data_src: Option<u64>,
    /// Width to which the text of `data_src` is padded, in columns: the length of the longest text so far, as in perf.
    pub data_src_width: usize,
    /// The weight that the event assigns to the sample, such as the access's latency.
    pub weight: Option<u64>,
    /// Latency of the instruction in cycles.
    pub ins_lat: Option<u16>,
    /// Latency of the instruction's retirement in cycles.
    pub retire_lat: Option<u16>,
    /// Path of the control group; `unknown` if the path wasn't recorded.
    pub cgroup: Option<&'a [u8]>,
    /// Bytes that a BPF program wrote.
    pub bpf_output: Option<&'a [u8]>,
    /// The physical data address.
    pub phys_addr: Option<u64>,
    /// Size in bytes of the page that holds the data address.
    pub data_page_size: Option<u64>,
    /// Size in bytes of the page that holds the instruction.
    pub code_page_size: Option<u64>,
}

impl Measured<'_> {
    /// No values.
    pub const NONE: Self = Self {
        data_src: None,
        data_src_width: 0,
        weight: None,
        ins_lat: None,
        retire_lat: None,
        cgroup: None,
        bpf_output: None,
        phys_addr: None,
        data_page_size: None,
        code_page_size: None,
    };
}

/// Appends the values that are printed on the sample's first line, in perf's order and in columns as wide as perf's.
/// Nothing is printed for a field that isn't selected, or that the event doesn't record.
pub(super) fn write_before_frames(out: &mut Vec<u8>, fields: Fields, measured: &Measured<'_>) {
    if fields.data_src
        && let Some(data_src) = measured.data_src
    {
        let (text, width) = (data_src_text(data_src), measured.data_src_width);
        put(out, format_args!("{text:width$}"));
    }
    if fields.weight
        && let Some(weight) = measured.weight
    {
        put(out, format_args!("{weight:16}"));
    }
    if fields.ins_lat
        && let Some(latency) = measured.ins_lat
    {
        put(out, format_args!("{latency:16}"));
    }
    if fields.retire_lat
        && let Some(latency) = measured.retire_lat
    {
        put(out, format_args!("{latency:16}"));
    }
    if fields.cgroup
        && let Some(cgroup) = measured.cgroup
    {
        out.push(b' ');
        out.extend_from_slice(cgroup);
    }
}

/// Appends the values that are printed after the frames, registers and branches.
pub fn write_after_frames(out: &mut Vec<u8>, fields: Fields, measured: &Measured<'_>) {
    if fields.bpf_output
        && let Some(bytes) = measured.bpf_output
    {
        put_bpf_output(out, bytes);
    }
    if fields.phys_addr
        && let Some(addr) = measured.phys_addr
    {
        put(out, format_args!("{addr:16x}"));
    }
    if fields.data_page_size
        && let Some(size) = measured.data_page_size
    {
        put_page_size(out, size);
    }
    if fields.code_page_size
        && let Some(size) = measured.code_page_size
    {
        put_page_size(out, size);
    }
}

/// Appends a page size in bytes as perf prints it, such as ` 4K` or ` 2M`. 0 means unknown.
fn put_page_size(out: &mut Vec<u8>, size: u64) {
    if size == 0 {
        out.extend_from_slice(b" N/A");
        return;
    }
    let (mut number, mut units) = (size, "BKMG".chars());
    let mut unit = units.next();
    // perf uses a larger unit only for two or more of it: 1 MiB is shown as 1024K.
    while number / 1024 > 1
        && let Some(next) = units.next()
    {
        number /= 1024;
        unit = Some(next);
    }
    put(out, format_args!(" {number}{}", unit.unwrap_or('B')));
}

/// Appends a dump of the bytes that a BPF program wrote, eight per line. If they are a text with zero bytes at its end,
/// the text follows on a line of its own.
fn put_bpf_output(out: &mut Vec<u8>, bytes: &[u8]) {
    const BYTES_PER_LINE: usize = 8;
    out.push(b'\n');
    let (mut has_ended, mut is_text) = (false, true);
    for (index, line) in bytes.chunks(BYTES_PER_LINE).enumerate() {
        let title = if index == 0 { "BPF output:" } else { "" };
        put(out, format_args!("{title:>17} {:04x}:", index * BYTES_PER_LINE));
        for byte in line {
            put(out, format_args!(" {byte:02x}"));
        }
        // Pad the last line, so that the column with the characters is aligned.
        out.resize(out.len() + 3 * (BYTES_PER_LINE - line.len()) + 2, b' ');
        // To be shown as a text, the bytes must be printable characters, followed by nothing but zero bytes.
        // `has_ended` is true from the first zero byte on.
        for &byte in line {
            let is_shown = byte == b' ' || byte.is_ascii_graphic();
            if byte != 0 {
                is_text &= is_shown && !has_ended;
            }
            has_ended |= byte == 0 && is_text;
            out.push(if is_shown { byte } else { b'.' });
        }
        out.resize(out.len() + BYTES_PER_LINE - line.len(), b' ');
        out.push(b'\n');
    }
    if is_text && has_ended {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        put(out, format_args!("{:>17} \"", "BPF string:"));
        out.extend_from_slice(text);
        out.extend_from_slice(b"\"\n");
    }
}

/// The `count` bits of a word from bit number `first` on.
const fn bits(word: u64, first: u32, count: u32) -> u64 {
    word >> first & ((1 << count) - 1)
}

/// Describes where the data of an access was, in perf's words (`union perf_mem_data_src` in
/// include/uapi/linux/perf_event.h).
pub fn data_src_text(word: u64) -> String {
    /// Length in bytes of the buffer into which perf writes the text, without the zero at its end.
    const LONGEST: usize = 99;
    let text = format!(
        "{word:16x} |OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}",
        operation(bits(word, 0, 5)),
        level(word),
        snoop(word),
        translation(bits(word, 26, 7)),
        lock(bits(word, 24, 2)),
        blocked(bits(word, 40, 3)),
    );
    text.chars().take(LONGEST).collect()
}

/// The text for what the access did. perf names the lowest bit that is set.
fn operation(bits: u64) -> &'static str {
    const NAMES: [&str; 5] = ["N/A", "LOAD", "STORE", "PFETCH", "EXEC"];
    NAMES.get(bits.trailing_zeros() as usize).unwrap_or(&"No")
}

/// The text for the level of memory that an access reached.
fn level(word: u64) -> String {
    const NOT_AVAILABLE: u64 = 0xf;
    /// The names of the levels that have a number. Empty for numbers without a meaning.
    const NUMBERED: [&str; 16] = [
        "",
        "L1",
        "L2",
        "L3",
        "L4",
        "L2 MHB",
        "Memory-side Cache",
        "",
        "Uncached",
        "CXL",
        "I/O",
        "Any cache",
        "LFB/MAB",
        "RAM",
        "PMEM",
        "N/A",
    ];
    /// How far away the data was, by the number of hops.
    const HOPS: [&str; 5] = ["", "core, same node", "node, same socket", "socket, same board", "board"];
    /// The names of the bits in the older form, which has a bit for each level.
    const LEVELS: [&str; 14] = [
        "N/A",
        "HIT",
        "MISS",
        "L1",
        "LFB/MAB",
        "L2",
        "L3",
        "Local RAM",
        "Remote RAM (1 hop)",
        "Remote RAM (2 hops)",
        "Remote Cache (1 hop)",
        "Remote Cache (2 hops)",
        "I/O",
        "Uncached",
    ];
    // The memory level has 14 bits, whose names are in `LEVELS`. Bits 1 and 2 say whether the access was a hit or a
    // miss, the higher bits at which level of memory.
    let levels = bits(word, 5, 14);
    let outcome = match levels & 6 {
        0 => "",
        _ if levels & 2 != 0 => "hit",
        _ => "miss",
    };
    let number = bits(word, 33, 4);
    if number != 0 && number != NOT_AVAILABLE {
        let remote = if bits(word, 37, 1) == 1 { "Remote " } else { "" };
        let hops = match HOPS.get(bits(word, 43, 3) as usize) {
            Some(&hops) if !hops.is_empty() => format!("{hops} "),
            _ => String::new(),
        };
        let name = match NUMBERED[number as usize] {
            "" => format!("Unknown level {number}"),
            name => name.to_owned(),
        };
        return format!("{remote}{hops}{name} {outcome}");
    }
    // Without a level number, the bits from number 3 on say where the data may have been.
    match levels & !7 {
        0 => "N/A".to_owned(),
        levels => format!("{} {outcome}", alternatives(levels, &LEVELS)),
    }
}

/// The text for how other caches were asked for the data.
fn snoop(word: u64) -> String {
    let first = alternatives(bits(word, 19, 5), &["N/A", "None", "Hit", "Miss", "HitM"]);
    let second = alternatives(bits(word, 38, 2), &["Fwd", "Peer"]);
    match (first.is_empty(), second.is_empty()) {
        (true, true) => "N/A".to_owned(),
        (false, false) => format!("{first} or {second}"),
        _ => first + &second,
    }
}

/// The text for how the address was translated (TLB).
fn translation(bits: u64) -> String {
    const NAMES: [&str; 7] = ["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"];
    // perf prints the names of bits 1 and 2 (hit, miss) after those of the other bits.
    let mut text = alternatives(bits & !6, &NAMES);
    if text.is_empty() {
        text.push_str("N/A");
    }
    if bits & 2 != 0 {
        text.push_str(" hit");
    }
    if bits & 4 != 0 {
        text.push_str(" miss");
    }
    text
}

fn lock(bits: u64) -> &'static str {
    match bits {
        0 => "No",
        2 => "Yes",
        _ => "N/A",
    }
}

/// The text for what blocked the access.
fn blocked(bits: u64) -> String {
    if bits == 0 || bits & 1 != 0 {
        return " N/A".to_owned();
    }
    let data = if bits & 2 != 0 { " Data" } else { "" };
    let addr = if bits & 4 != 0 { " Addr" } else { "" };
    format!("{data}{addr}")
}

/// The names of the bits that are set, joined by ` or `.
fn alternatives(bits: u64, names: &[&str]) -> String {
    let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_worded_as_perf_does() {
        // The kernel sets this value for samples of software events.
        assert_eq!(data_src_text(0x1e_0508_0021), "      1e05080021 |OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A");
        assert_eq!(
            data_src_text(2 | 0xa << 5 | 2 << 19 | 2 << 24 | 0x12 << 26 | 1 << 33),
            "       24a100142 |OP LOAD|LVL L1 hit|SNP None|TLB L2 hit|LCK Yes|BLK  N/A"
        );
        assert!(data_src_text(4 | 0x84 << 5).contains("|OP STORE|LVL Local RAM miss|"));
    }

    #[test]
    fn bytes_of_bpf_programs_are_shown_as_text_where_they_are_one() {
        let mut out = Vec::new();
        put_bpf_output(&mut out, b"hello, world\0");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n      BPF output: 0000: 68 65 6c 6c 6f 2c 20 77  hello, w\n                  0008: 6f 72 6c 64 00           orld.   \n\
             \x20     BPF string: \"hello, world\"\n"
        );
        let mut out = Vec::new();
        put_bpf_output(&mut out, &[0, 65]);
        assert!(!String::from_utf8(out).unwrap().contains("BPF string"));
    }

    #[test]
    fn page_sizes_have_units() {
        for (size, text) in [(0, " N/A"), (4096, " 4K"), (2 << 20, " 2M"), (1 << 30, " 1024M"), (1024, " 1024B")] {
            let mut out = Vec::new();
            put_page_size(&mut out, size);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
