//! Disassembles 32-bit Arm and Thumb code with yaxpeax-arm, in objdump's spelling.
//!
//! The library's numbers, registers, branches and a few aliases are rewritten. Two things are computed here from the
//! encoding (Arm Architecture Reference Manual, ARMv7-A, A5 to A8): the target of each branch, and the conditions that
//! an `it` instruction gives to the instructions after it. The library doesn't track those.

use super::fields::{bits, bytes_text, signed_bits};
use super::instruction::{Instruction, Target, TargetKind};
use crate::symbolize::symbols::code_kinds::CodeKind;
use yaxpeax_arch::{Decoder, LengthedInstruction, U8Reader};
use yaxpeax_arm::armv7::InstDecoder;

/// objdump's names of the condition codes, by their 4-bit encoding. The last one is "always", which is the absence of a
/// condition, so it has no text.
const CONDITIONS: [&str; 15] = ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", ""];

/// objdump's names of the registers `r0` to `r15`.
const REGISTERS: [&str; 16] =
    ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "sl", "fp", "ip", "sp", "lr", "pc"];

/// Decodes one kind of code: Arm, Thumb or data.
#[derive(Debug)]
pub struct Arm {
    kind: CodeKind,
    decoder: InstDecoder,
}

/// A decoded instruction or piece of data. Its offset in the code is left to the caller.
struct Decoded {
    /// The length in bytes.
    len: usize,
    /// The text in objdump's spelling.
    text: String,
    /// The address to which the instruction refers. `None` if it refers to none, and for data.
    target: Option<Target>,
}

impl Decoded {
    /// Shows the last bytes of the code, which are too few for an instruction, as data.
    fn cut_off(bytes: &[u8]) -> Self {
        Self { len: bytes.len(), text: bytes_text(bytes), target: None }
    }
}

/// The conditions that an `it` instruction gives to the instructions after it (an `it` block), without those that have
/// been decoded already. They are in reverse order: the next instruction's condition is the last entry, so `pop` takes
/// it out.
type ItBlock = Vec<u16>;

impl Arm {
    pub(super) fn new(kind: CodeKind) -> Self {
        let decoder = if kind == CodeKind::Thumb { InstDecoder::default_thumb() } else { InstDecoder::armv7() };
        Self { kind, decoder }
    }

    /// Decodes code at address `addr`. Every byte of it is in one of the returned instructions.
    pub(super) fn decode(&self, code: &[u8], addr: u64) -> Vec<Instruction> {
        // The conditions that the last `it` instruction gives to the Thumb instructions after it.
        let mut block = ItBlock::new();
        let mut all = Vec::new();
        let mut offset = 0;
        while offset < code.len() {
            let rest = &code[offset..];
            let rest_addr = addr.wrapping_add(offset as u64);
            let Decoded { len, text, target } = match self.kind {
                CodeKind::Data => decode_data(rest, rest_addr),
                CodeKind::Code => self.decode_arm(rest, rest_addr),
                CodeKind::Thumb => self.decode_thumb(rest, rest_addr, &mut block),
            };
            all.push(Instruction { offset: offset as u64, len: len as u64, text, target });
            offset += len;
        }
        all
    }

    /// Decodes the Arm instruction at the start of `rest`. `addr` is its address.
    fn decode_arm(&self, rest: &[u8], addr: u64) -> Decoded {
        let Some(bytes) = rest.first_chunk::<4>() else { return Decoded::cut_off(rest) };
        let word = u32::from_le_bytes(*bytes);
        let target = arm_target(word, addr);
        let text = match self.text(bytes, target) {
            Some(text) => arm_text(&text, word),
            None => format!(".inst  {word:#010x}"),
        };
        Decoded { len: 4, text, target }
    }

    /// Decodes the Thumb instruction at the start of `rest`, which takes two or four bytes. `addr` is its address.
    /// `block` has the conditions for this instruction and the ones after it. The condition for this instruction is
    /// taken out. If the instruction is an `it`, `block` becomes the list of conditions that it gives.
    fn decode_thumb(&self, rest: &[u8], addr: u64, block: &mut ItBlock) -> Decoded {
        let Some(first) = read_half_word(rest, 0) else { return Decoded::cut_off(rest) };
        let is_wide = is_wide(first);
        let condition = block.pop();
        let (mut len, mut second) = (2, 0);
        if is_wide {
            let Some(half_word) = read_half_word(rest, 2) else { return Decoded::cut_off(rest) };
            (len, second) = (4, half_word);
        }
        if is_it(first) {
            *block = it_block(first);
            return Decoded { len: 2, text: it_text(first), target: None };
        }
        let target = thumb_target(first, second, addr);
        let text = match self.text(&rest[..len], target) {
            Some(text) => thumb_text(&text, first, second, condition),
            None if is_wide => format!(".inst.w {first:#06x}{second:04x}"),
            None => format!(".inst.n {first:#06x}"),
        };
        Decoded { len, text, target }
    }

    /// The library's text of the instruction in `bytes`, with the rewriting that Arm and Thumb code share. `None` if
    /// these bytes aren't exactly one instruction, or if one of its operands is invalid, which the library only says in
    /// its text.
    fn text(&self, bytes: &[u8], target: Option<Target>) -> Option<String> {
        let decoded = self.decoder.decode(&mut U8Reader::new(bytes)).ok()?;
        let is_whole = decoded.len().to_const() as usize == bytes.len();
        if !is_whole {
            return None;
        }
        let text = decoded.to_string();
        if text.contains("invalid") { None } else { Some(respell(&text, target)) }
    }
}

/// True if a Thumb instruction has four bytes, according to its first half word: the upper five bits of a two-byte
/// instruction are at most 11100.
fn is_wide(first: u16) -> bool {
    first >> 11 > 0b1_1100
}

fn read_half_word(code: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*code.get(offset..)?.first_chunk()?))
}

/// True for the 16-bit instruction `it`. The same encoding with a mask of 0 is `nop` or another hint.
fn is_it(first: u16) -> bool {
    first & 0xff00 == 0xbf00 && first & 15 != 0
}

/// Formats the piece of data at the start of `rest`, which has one to four bytes. `addr` is its address. Aligned words
/// are shown as `.word 0x12345678`, bytes before the first and after the last one as `.short` or `.byte`.
fn decode_data(rest: &[u8], addr: u64) -> Decoded {
    if addr.is_multiple_of(4)
        && let Some(word) = rest.first_chunk()
    {
        return Decoded { len: 4, text: format!(".word  {:#010x}", u32::from_le_bytes(*word)), target: None };
    }
    if addr.is_multiple_of(2)
        && let Some(half_word) = read_half_word(rest, 0)
    {
        return Decoded { len: 2, text: format!(".short {half_word:#06x}"), target: None };
    }
    Decoded { len: 1, text: bytes_text(&rest[..1]), target: None }
}

/// The address to which the Arm instruction `word` at `addr` refers: the target of a direct branch, or a constant that
/// it loads. `None` for other instructions.
fn arm_target(word: u32, addr: u64) -> Option<Target> {
    let condition = word >> 28;
    let (kind, distance) = match (condition, bits(word, 24, 4)) {
        // `blx` with an address, which switches to Thumb code. Bit 24 selects the upper half of a word, where Thumb
        // code may start.
        (15, 0b1010 | 0b1011) => (TargetKind::Call, signed_bits(word, 0, 24) * 4 + i64::from(bits(word, 24, 1)) * 2),
        (15, _) => return None,
        // `b` jumps, and `bl` (in the next line) calls. A condition may apply to both.
        (_, 0b1010) => (TargetKind::Jump, signed_bits(word, 0, 24) * 4),
        (_, 0b1011) => (TargetKind::Call, signed_bits(word, 0, 24) * 4),
        // `ldr register, [pc, #distance]` loads a constant. Bit 23 tells whether the constant is after or before the
        // instruction.
        (_, 0b0101) if bits(word, 16, 4) == 15 && bits(word, 20, 2) == 1 && bits(word, 22, 1) == 0 => {
            let distance = i64::from(bits(word, 0, 12));
            let is_forward = bits(word, 23, 1) == 1;
            (TargetKind::Memory, if is_forward { distance } else { -distance })
        }
        _ => return None,
    };
    // The program counter reads as the address of the instruction after the next one.
    Some(Target { addr: addr.wrapping_add(8).wrapping_add_signed(distance) & 0xffff_ffff, kind })
}

/// The address to which the Thumb instruction at `addr` refers: the target of a direct branch, or a constant that it
/// loads. `None` for other instructions. `first` and `second` are its halves; `second` is 0 if it has only two bytes.
fn thumb_target(first: u16, second: u16, addr: u64) -> Option<Target> {
    let (first, second) = (u32::from(first), u32::from(second));
    // The program counter reads as the instruction's address plus 4.
    let pc = addr.wrapping_add(4);
    let (kind, base, distance) = match first >> 11 {
        // `b` without a condition, in two bytes.
        0b11100 => (TargetKind::Jump, pc, signed_bits(first, 0, 11) * 2),
        // `b` with a condition, in two bytes. Instead of a condition, 14 and 15 mean other instructions.
        0b11010 | 0b11011 if bits(first, 8, 4) < 14 => (TargetKind::Jump, pc, signed_bits(first, 0, 8) * 2),
        // `cbz` and `cbnz`, which jump forward if a register is zero or if it isn't.
        0b10110 | 0b10111 if first & 0xf500 == 0xb100 => {
            (TargetKind::Jump, pc, i64::from(bits(first, 9, 1) << 6 | bits(first, 3, 5) << 1))
        }
        // `ldr register, [pc, #distance]` loads a constant. The distance counts from the start of the word that
        // contains `pc`.
        0b01001 => (TargetKind::Memory, pc & !3, i64::from(bits(first, 0, 8)) * 4),
        // Branches of four bytes. The distance is spread over several fields; in branches with a condition, it has
        // fewer bits, and its parts are in another order.
        0b11110 if second >> 15 == 1 => {
            let (sign, bit_13, bit_11) = (bits(first, 10, 1), bits(second, 13, 1), bits(second, 11, 1));
            let low = bits(second, 0, 11) << 1;
            // Bits 23 and 22 of the distance are stored inverted, and inverted again if the distance is negative.
            let distance =
                sign << 24 | (1 ^ bit_13 ^ sign) << 23 | (1 ^ bit_11 ^ sign) << 22 | bits(first, 0, 10) << 12 | low;
            let distance = signed_bits(distance, 0, 25);
            match (bits(second, 14, 1), bits(second, 12, 1)) {
                // `bl` calls Thumb code.
                (1, 1) => (TargetKind::Call, pc, distance),
                // `blx` calls Arm code, which starts at a multiple of 4. So the distance counts from a multiple of 4,
                // too.
                (1, _) => (TargetKind::Call, pc & !3, distance),
                // `b` without a condition, in four bytes.
                (0, 1) => (TargetKind::Jump, pc, distance),
                // Not a branch but a system instruction.
                _ if bits(first, 7, 3) == 0b111 => return None,
                // `b` with a condition. Its distance has only 21 bits.
                _ => {
                    let distance = sign << 20 | bit_11 << 19 | bit_13 << 18 | bits(first, 0, 6) << 12 | low;
                    (TargetKind::Jump, pc, signed_bits(distance, 0, 21))
                }
            }
        }
        // `ldr.w register, [pc, #distance]` loads a constant. Bit 7 tells whether the constant is after or before the
        // instruction.
        0b11111 if first & 0xff7f == 0xf85f => {
            let distance = i64::from(bits(second, 0, 12));
            let is_forward = bits(first, 7, 1) == 1;
            (TargetKind::Memory, pc & !3, if is_forward { distance } else { -distance })
        }
        _ => return None,
    };
    Some(Target { addr: base.wrapping_add_signed(distance) & 0xffff_ffff, kind })
}

/// The conditions that an `it` instruction gives to the one to four instructions after it. The lowest set bit of its
/// mask marks the end; the bits above it are the lowest bits of the conditions of the second and later instructions.
fn it_block(it: u16) -> ItBlock {
    let (condition, mask) = (it >> 4 & 15, it & 15);
    let count = 4 - mask.trailing_zeros() as u16;
    let condition_at = |index: u16| if index == 0 { condition } else { condition & !1 | mask >> (4 - index) & 1 };
    // An `ItBlock` has the conditions in reverse order.
    (0..count).rev().map(condition_at).collect()
}

/// The text of an `it` instruction, such as `itet eq`. After `it`, there is a letter for each instruction but the
/// first: `t` if it has the same condition ("then"), `e` if it has the opposite one ("else").
fn it_text(it: u16) -> String {
    let block = it_block(it);
    let condition = it >> 4 & 15;
    let others = block.iter().rev().skip(1);
    let letters: String = others.map(|&other| if other == condition { 't' } else { 'e' }).collect();
    format!("{:<6} {}", format!("it{letters}"), CONDITIONS.get(usize::from(condition)).unwrap_or(&""))
}

/// For a mnemonic that ends in a condition that objdump spells differently (`hs`, `lo`): the part before the condition,
/// and the condition in objdump's spelling. `None` for other mnemonics.
fn respell_condition(mnemonic: &str) -> Option<(&str, &'static str)> {
    let stem = |old: &str| mnemonic.strip_suffix(old).filter(|stem| !stem.is_empty());
    stem("hs").map(|stem| (stem, "cs")).or_else(|| stem("lo").map(|stem| (stem, "cc")))
}

/// Rewrites the numbers, registers and condition of an Arm or Thumb instruction as objdump spells them. `target` is the
/// address to which the instruction refers.
fn respell(text: &str, target: Option<Target>) -> String {
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    // Of the addresses to which instructions refer, the text only contains the targets of branches.
    let branch_target = target.filter(|target| target.kind != TargetKind::Memory);
    // A mnemonic may end in a width, such as `.w`. The condition is before it.
    let (name, width) = mnemonic.split_once('.').map_or((mnemonic, ""), |(name, _)| (name, &mnemonic[name.len()..]));
    let mnemonic = match respell_condition(name) {
        Some((stem, condition)) => format!("{stem}{condition}{width}"),
        None => mnemonic.to_owned(),
    };
    let is_barrier = matches!(name, "dmb" | "dsb" | "isb");
    if is_barrier && let Some((_, option)) = BARRIERS.iter().find(|(number, _)| operands == *number) {
        return format!("{mnemonic:<6} {option}");
    }
    // Each round rewrites a register or number and copies the punctuation after it.
    let mut out = String::with_capacity(operands.len() + 8);
    let is_in_operand = |c: char| c.is_ascii_alphanumeric() || matches!(c, '$' | '+' | '_' | '-' | '#');
    let mut rest = operands;
    while !rest.is_empty() {
        let operand_len = rest.find(|c| !is_in_operand(c)).unwrap_or(rest.len());
        let (operand, after) = rest.split_at(operand_len);
        out.push_str(&respell_operand(operand, branch_target));
        let punctuation_len = after.find(is_in_operand).unwrap_or(after.len());
        let (punctuation, after) = after.split_at(punctuation_len);
        out.push_str(punctuation);
        rest = after;
    }
    if out.is_empty() { mnemonic } else { format!("{mnemonic:<6} {out}") }
}

/// The options of barrier instructions: the number that the library prints, and the name that objdump shows.
const BARRIERS: [(&str, &str); 8] = [
    ("0x2", "oshst"),
    ("0x3", "osh"),
    ("0x6", "nshst"),
    ("0x7", "nsh"),
    ("0xa", "ishst"),
    ("0xb", "ish"),
    ("0xe", "st"),
    ("0xf", "sy"),
];

/// Rewrites a register or number as objdump spells it: registers by its names, integers in decimal. The library shows
/// the target of a branch as a distance (`$+0x10`), which becomes the address in `branch_target`. Any other text, such
/// as the name of a shift, is kept.
fn respell_operand(operand: &str, branch_target: Option<Target>) -> String {
    // objdump and the library name these two registers differently.
    match operand {
        "sb" => return "r9".to_owned(),
        "r10" => return "sl".to_owned(),
        _ => {}
    }
    if operand.starts_with('$')
        && let Some(target) = branch_target
    {
        return format!("{:x}", target.addr);
    }
    let (sign, digits) = match operand.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", operand.strip_prefix('#').unwrap_or(operand)),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    match value {
        Some(value) => format!("#{sign}{value}"),
        None => operand.to_owned(),
    }
}

/// Rewrites what differs from objdump only in Arm code. For example, objdump shows a `mov` with a shifted source as a
/// shift and a `mov` of a 16-bit number as `movw`, and it shows only the first register of a pair.
fn arm_text(text: &str, word: u32) -> String {
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let operands = operands.trim_start();
    // The mnemonics that are rewritten here have three letters. After these, there may be a size, an addressing mode or
    // a condition.
    let (stem, ending) = mnemonic.split_at(mnemonic.len().min(3));
    let parts: Vec<&str> = operands.splitn(3, ", ").collect();
    let (name, operands) = match (stem, &parts[..]) {
        // objdump shows a `mov` with a shifted source (`r0, r1, lsl #2`) as a shift. The amount is a number or a
        // register.
        ("mov", [to, from, shift]) if bits(word, 25, 3) == 0 => match shift.split_once(' ') {
            Some((shift, by)) => (format!("{shift}{ending}"), format!("{to}, {from}, {by}")),
            None => (mnemonic.to_owned(), operands.to_owned()),
        },
        // objdump shows a `mov` of a 16-bit number as `movw`.
        ("mov", _) if bits(word, 20, 8) == 0x30 => (format!("movw{ending}"), operands.to_owned()),
        // The library prints a first source, which `mvn` doesn't have.
        ("mvn", [to, _, rest]) => (mnemonic.to_owned(), format!("{to}, {rest}")),
        // `ldrd` and `strd`: objdump omits the second register.
        ("ldr" | "str", [to, second, rest]) if ending.starts_with('d') && !second.starts_with('[') => {
            (mnemonic.to_owned(), format!("{to}, {rest}"))
        }
        ("ldm" | "stm", _) => (format!("{stem}{}", addressing_suffix(word, operands, ending)), operands.to_owned()),
        ("mov", _) if word == MOV_R0_R0 => return "nop".to_owned(),
        _ => return respell_immediate(mnemonic, operands, word),
    };
    if operands.is_empty() { name } else { format!("{name:<6} {operands}") }
}

/// The encoding of `mov r0, r0`, which objdump shows as `nop`.
const MOV_R0_R0: u32 = 0xe1a0_0000;

/// objdump's suffix for the mnemonic of a load or store of several registers: an addressing mode, then the condition.
/// The mode says whether the address is incremented or decremented (`i`, `d`), and whether that happens after or before
/// each access (`a`, `b`). objdump omits `ia` if the base register isn't updated (an update is shown as `!`).
///
/// The library prints `ia` where `ib` is meant, so only the condition is taken from its suffix, `library_suffix`. The
/// mode is decoded from `word`.
fn addressing_suffix(word: u32, operands: &str, library_suffix: &str) -> String {
    let modes = ["da", "ia", "db"];
    let condition = modes.iter().find_map(|mode| library_suffix.strip_prefix(mode)).unwrap_or(library_suffix);
    match bits(word, 23, 2) {
        0 => format!("da{condition}"),
        1 if operands.contains('!') => format!("ia{condition}"),
        1 => condition.to_owned(),
        2 => format!("db{condition}"),
        _ => format!("ib{condition}"),
    }
}

/// Puts an instruction together from its mnemonic and operands. Rewrites the immediate of a data-processing
/// instruction, which is encoded as 8 bits and a rotation to the right. objdump shows the signed value or, if a smaller
/// rotation would give the same value, the 8 bits and the rotation. The library prints `adr` without the rotation;
/// objdump shows `adr` as an `add` to or a `sub` from `pc`.
fn respell_immediate(mnemonic: &str, operands: &str, word: u32) -> String {
    // Data-processing instructions with an immediate. The opcodes in the last line have another kind of immediate:
    // movw, movt and system instructions.
    let has_rotated_immediate = word >> 28 != 15
        && bits(word, 25, 3) == 1
        && !matches!(bits(word, 20, 5), 0b1_0000 | 0b1_0010 | 0b1_0100 | 0b1_0110);
    let Some((before, _)) = operands.rsplit_once(", ").filter(|_| has_rotated_immediate) else {
        return if operands.is_empty() { mnemonic.to_owned() } else { format!("{mnemonic:<6} {operands}") };
    };
    let (unrotated, rotation) = (bits(word, 0, 8), bits(word, 8, 4) * 2);
    let value = unrotated.rotate_right(rotation);
    let smallest_rotation = (0..32).step_by(2).find(|&rotation| value.rotate_left(rotation) <= 0xff);
    let immediate = if smallest_rotation == Some(rotation) {
        format!("#{}", value.cast_signed())
    } else {
        format!("#{unrotated}, {rotation}")
    };
    match mnemonic.strip_prefix("adr") {
        Some(condition) => {
            let is_sub = bits(word, 21, 4) == 2;
            let name = if is_sub { "sub" } else { "add" };
            let destination = REGISTERS[bits(word, 12, 4) as usize];
            format!("{:<6} {destination}, pc, {immediate}", format!("{name}{condition}"))
        }
        None => format!("{mnemonic:<6} {before}, {immediate}"),
    }
}

/// Thumb instructions that have a 16-bit and a 32-bit form, without the `s` at the end of their mnemonics. objdump
/// shows the 32-bit form with a `.w`, also for loads and stores of bytes and halfwords. A few more cases are in
/// [`ThumbText::respell`].
const WITH_BOTH_WIDTHS: [&str; 22] = [
    "adc", "add", "and", "asr", "bic", "eor", "lsl", "lsr", "mov", "mvn", "orr", "ror", "rsb", "sbc", "sub", "cmp",
    "cmn", "tst", "mul", "str", "ldr", "nop",
];

/// Mnemonics of 16-bit instructions that set the flags, except in an `it` block. There, objdump shows them without the
/// `s`.
const SETS_FLAGS: [&str; 16] = [
    "movs", "adds", "subs", "lsls", "lsrs", "asrs", "ands", "eors", "orrs", "bics", "mvns", "muls", "negs", "rsbs",
    "adcs", "sbcs",
];

/// True if the mnemonic is `base` (`ldr` or `str`) with a suffix for a byte or halfword.
fn is_narrow_access(mnemonic: &str, base: &str) -> bool {
    mnemonic.strip_prefix(base).is_some_and(|size| matches!(size, "b" | "h" | "sb" | "sh"))
}

/// Rewrites what differs from objdump only in Thumb code: conditions in `it` blocks, width suffixes, stack operations.
/// `condition` is the one that an `it` block gives to this instruction; `None` outside of a block.
fn thumb_text(text: &str, first: u16, second: u16, condition: Option<u16>) -> String {
    let is_wide = is_wide(first);
    let mut thumb = ThumbText::new(text, is_wide);
    thumb.respell(first, second, condition);
    // objdump shows a 32-bit `mov` of a shifted register as `mov`, the library as a shift.
    if first & 0xffef == 0xea4f {
        thumb.show_shift_as_move();
    }
    // objdump shows a 32-bit push or pop of a single register as a store or load.
    if first == 0xf84d && second & 0xfff == 0xd04 {
        thumb.show_single_register("str", "[sp, #-4]!");
    }
    if first == 0xf85d && second & 0xfff == 0xb04 {
        thumb.show_single_register("ldr", "[sp], #4");
    }
    if !is_wide {
        thumb.respell_narrow_operands(first);
    }
    if let Some(condition) = condition.and_then(|condition| CONDITIONS.get(usize::from(condition))) {
        thumb.add_condition(condition, first);
    }
    thumb.finish()
}

/// The text of a Thumb instruction while it is rewritten.
struct ThumbText {
    /// The mnemonic without its width, such as `ldr` of `ldr.w`.
    stem: String,
    /// The width with a dot (`.w`, `.n`), or nothing.
    width: String,
    operands: String,
    /// True if the instruction has 32 bits.
    is_wide: bool,
}

impl ThumbText {
    /// Splits the library's text. A 32-bit instruction that also has a 16-bit encoding gets a `.w`, others get none.
    /// Branches keep the width that the library prints.
    fn new(text: &str, is_wide: bool) -> Self {
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        let (stem, mut width) = match mnemonic.split_once('.') {
            Some((stem, width)) => (stem.to_owned(), format!(".{width}")),
            None => (mnemonic.to_owned(), String::new()),
        };
        // Branches start with `b` and keep their width. `respell` sets the width of the few other instructions that
        // start with `b`.
        if is_wide && !stem.starts_with('b') {
            let base = stem.strip_suffix('s').unwrap_or(&stem);
            let has_both_widths =
                WITH_BOTH_WIDTHS.contains(&base) || is_narrow_access(&stem, "str") || is_narrow_access(&stem, "ldr");
            width = if has_both_widths { ".w" } else { "" }.to_owned();
        }
        Self { stem, width, operands: operands.trim_start().to_owned(), is_wide }
    }

    /// Rewrites mnemonics, widths and operands that objdump spells differently. `first` and `second` are the halves of
    /// the encoded instruction; `condition` is the one that an `it` block gives to it.
    fn respell(&mut self, first: u16, second: u16, condition: Option<u16>) {
        let Self { stem, width, operands, is_wide } = self;
        // An add or sub whose immediate is a plain 12-bit number. objdump calls these `addw` and `subw`.
        let has_plain_number = first & 0xfbf0 == 0xf200 || first & 0xfbf0 == 0xf2a0;
        // The patterns have the library's spelling of the mnemonic. Each case changes it to objdump's.
        match (&stem[..], *is_wide) {
            ("bl" | "blx", true) => width.clear(),
            ("bic" | "bics", true) => *width = ".w".to_owned(),
            ("bfi" | "bfc", true) => {
                width.clear();
                let BitField { to, source, lowest, count } = BitField::decode(first, second);
                *operands = match &stem[..] {
                    "bfi" => format!("{to}, {source}, #{lowest}, #{count}"),
                    _ => format!("{to}, #{lowest}, #{count}"),
                };
            }
            // A `b` outside of an `it` block. In a block, `add_condition` adds the width.
            ("b", false) if condition.is_none() => *width = ".n".to_owned(),
            // A branch with a condition of its own. `svc` and `udf` have the same upper bits.
            (branch, false) if first >> 12 == 0b1101 && branch.starts_with('b') => *width = ".n".to_owned(),
            ("push", true) => {
                *stem = "stmdb".to_owned();
                *operands = format!("sp!, {operands}");
            }
            ("pop", true) => {
                *stem = "ldmia".to_owned();
                *width = ".w".to_owned();
                *operands = format!("sp!, {operands}");
            }
            // The library leaves out the addressing mode if it is "increment after".
            ("ldm" | "stm", _) => {
                stem.push_str("ia");
                *width = if *is_wide { ".w" } else { "" }.to_owned();
            }
            ("add" | "sub", true) if has_plain_number => {
                stem.push('w');
                width.clear();
            }
            // objdump shows a `mov` with a 16-bit immediate as `movw`.
            ("mov", true) if first & 0xfbf0 == 0xf240 => {
                *stem = "movw".to_owned();
                width.clear();
            }
            ("rsb" | "rsbs", true) => width.clear(),
            ("uxth" | "uxtb" | "sxth" | "sxtb" | "rev" | "rev16" | "revsh", true) => *width = ".w".to_owned(),
            // objdump shows the number without the `#`.
            ("svc", _) => *operands = operands.trim_start_matches('#').to_owned(),
            // The 16-bit `rsbs` always subtracts from 0, so objdump shows a negation.
            ("rsbs", false) => {
                *stem = "negs".to_owned();
                if let Some(registers) = operands.strip_suffix(", #0") {
                    *operands = registers.to_owned();
                }
            }
            // objdump shows `adr` as an `add` to `pc`.
            ("adr", false) => {
                *stem = "add".to_owned();
                *operands = operands.replacen(", ", ", pc, ", 1);
            }
            _ => {}
        }
    }

    /// If this is a shift of a register by a number (`lsls r0, r1, #2`), rewrites it as a `mov` (`movs r0, r1, lsl
    /// #2`), as objdump shows it.
    fn show_shift_as_move(&mut self) {
        for shift in ["lsl", "lsr", "asr", "ror"] {
            // The mnemonic must be the shift alone, or with the `s` of an instruction that sets the flags.
            if let Some(flags @ ("" | "s")) = self.stem.strip_prefix(shift)
                && let Some((registers, by)) = self.operands.rsplit_once(", ")
                && by.starts_with('#')
            {
                // `flags` borrows the old stem, so the new one is put together before it is replaced.
                let stem = format!("mov{flags}");
                self.operands = format!("{registers}, {shift} {by}");
                self.stem = stem;
                return;
            }
        }
    }

    /// Rewrites a push or pop of a single register, which objdump shows as `str` or `ldr` (`stem`) with the operand
    /// `address`.
    fn show_single_register(&mut self, stem: &str, address: &str) {
        let register = self.operands.trim_start_matches("sp!, ").trim_matches(['{', '}']);
        self.operands = format!("{register}, {address}");
        self.stem = stem.to_owned();
        self.width = ".w".to_owned();
    }

    /// Rewrites operands of 16-bit instructions: adds an offset of 0 to addresses of loads and stores, and drops a
    /// repeated stack pointer.
    fn respell_narrow_operands(&mut self, first: u16) {
        let operands = &mut self.operands;
        let is_load_or_store = matches!(first >> 11, 0b01100..=0b10011);
        let address = &operands[operands.find('[').unwrap_or(0)..];
        let lacks_offset = address.ends_with(']') && !address.contains(',');
        if is_load_or_store && lacks_offset {
            // The offset goes before the bracket at the end.
            operands.insert_str(operands.len() - 1, ", #0");
        }
        if let Some(rest) = operands.strip_prefix("sp, sp, ") {
            *operands = format!("sp, {rest}");
        }
    }

    /// Appends the condition that an `it` block gives to the instruction. 16-bit instructions in such a block don't set
    /// flags, so they lose the `s` with which the library prints them. `first` is the first half of the instruction.
    fn add_condition(&mut self, condition: &str, first: u16) {
        if !self.is_wide && SETS_FLAGS.contains(&&self.stem[..]) {
            self.stem.pop();
        }
        self.stem.push_str(condition);
        let is_narrow_branch = !self.is_wide && first >> 11 == 0b11100;
        // The mnemonic of the branch is now `b` and two letters for the condition. It remains `b` alone if the
        // condition is "always"; then objdump shows no width.
        if is_narrow_branch && self.stem.starts_with('b') && self.stem.len() == 3 {
            self.width = ".n".to_owned();
        }
    }

    fn finish(self) -> String {
        let Self { stem, width, operands, .. } = self;
        let mnemonic = format!("{stem}{width}");
        if operands.is_empty() { mnemonic } else { format!("{mnemonic:<6} {operands}") }
    }
}

/// The operands of `bfi` or `bfc`, which overwrite a field of bits in a register.
struct BitField {
    /// The register with the field.
    to: &'static str,
    /// The register from which `bfi` copies the bits. `bfc` has none; for it, this has no meaning.
    source: &'static str,
    /// The number of the field's lowest bit.
    lowest: u32,
    /// How many bits the field has. The library prints the number of the highest bit instead.
    count: u32,
}

impl BitField {
    /// Decodes the operands of the instruction with these two halves.
    fn decode(first: u16, second: u16) -> Self {
        let (first, second) = (u32::from(first), u32::from(second));
        let lowest = bits(second, 12, 3) << 2 | bits(second, 6, 2);
        Self {
            to: REGISTERS[bits(second, 8, 4) as usize],
            source: REGISTERS[bits(first, 0, 4) as usize],
            lowest,
            // A field whose highest bit is below its lowest one is invalid; it is shown as empty.
            count: (bits(second, 0, 5) + 1).saturating_sub(lowest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: CodeKind, code: &[u8], addr: u64) -> Vec<String> {
        let lines = Arm::new(kind).decode(code, addr);
        let end = lines.iter().fold(0, |end, line| {
            assert_eq!(line.offset, end, "nothing is left out");
            end + line.len
        });
        assert_eq!(end, code.len() as u64);
        lines.iter().map(|line| line.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// The bytes of Thumb instructions, and the text that objdump (binutils 2.40) shows for each.
    const THUMB: &[(&[u8], &str)] = &[
        (&[0x47, 0x2a], "cmp r2, #71"),
        (&[0x09, 0x4c], "ldr r4, [pc, #36]"),
        (&[0x01, 0x60], "str r1, [r0, #0]"),
        (&[0x00, 0x92], "str r2, [sp, #0]"),
        (&[0x04, 0x20], "movs r0, #4"),
        (&[0x05, 0xe0], "b.n 1000e"),
        (&[0x20, 0xd1], "bne.n 10044"),
        (&[0x53, 0x46], "mov r3, sl"),
        (&[0x82, 0xb0], "sub sp, #8"),
        (&[0x5b, 0x42], "negs r3, r3"),
        (&[0x0b, 0xf0, 0x4a, 0xf8], "bl 1b098"),
        (&[0x00, 0xf0, 0xd8, 0x80], "beq.w 101b4"),
        (&[0xc0, 0xf0, 0xd4, 0x81], "bcc.w 103ac"),
        (&[0xd0, 0xf8, 0x28, 0xb0], "ldr.w fp, [r0, #40]"),
        (&[0x2d, 0xe9, 0xf0, 0x4f], "stmdb sp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}"),
        (&[0xbd, 0xe8, 0xf0, 0x87], "ldmia.w sp!, {r4, r5, r6, r7, r8, r9, sl, pc}"),
        (&[0x4e, 0xf2, 0x28, 0x10], "movw r0, #57640"),
        (&[0x4f, 0xea, 0x64, 0x04], "mov.w r4, r4, asr #1"),
        (&[0x61, 0xf3, 0x45, 0x19], "bfi r9, r1, #5, #1"),
        (&[0xbf, 0xf3, 0x5b, 0x8f], "dmb ish"),
        (&[0xd8, 0xf1, 0x00, 0x07], "rsbs r7, r8, #0"),
        (&[0x99, 0xfa, 0x89, 0xf9], "rev.w r9, r9"),
        (&[0x5d, 0xf8, 0x04, 0x4b], "ldr.w r4, [sp], #4"),
    ];
    const ARM: &[(u32, &str)] = &[
        (0xe1a0_308c, "lsl r3, ip, #1"),
        (0xe305_8555, "movw r8, #21845"),
        (0xe14b_03fc, "strd r0, [fp, #-60]"),
        (0xe8a3_0003, "stmia r3!, {r0, r1}"),
        (0xe88d_0180, "stm sp, {r7, r8}"),
        (0xe3e0_0000, "mvn r0, #0"),
        (0xeb00_0010, "bl 10048"),
        (0x1aff_fffe, "bne 10000"),
        (0xe59f_5198, "ldr r5, [pc, #408]"),
        (0xe12f_ff1e, "bx lr"),
        (0xe28f_c600, "add ip, pc, #0, 12"),
        (0xe24f_0001, "sub r0, pc, #1"),
        (0xe28f_0010, "add r0, pc, #16"),
        (0xe370_021f, "cmn r0, #-268435455"),
        (0xe3a0_0c01, "mov r0, #256"),
        (0xe98d_4080, "stmib sp, {r7, lr}"),
        (0xe810_0006, "ldmda r0, {r1, r2}"),
        (0xe910_0006, "ldmdb r0, {r1, r2}"),
        (0xe890_0006, "ldm r0, {r1, r2}"),
        (0xe8bd_8010, "pop {r4, pc}"),
        (0xe1a0_0000, "nop"),
        (0xed9f_8b2b, ".inst 0xed9f8b2b"),
    ];

    #[test]
    fn instructions_are_spelled_as_objdump_spells_them() {
        let thumb = THUMB.iter().map(|(code, known)| (texts(CodeKind::Thumb, code, 0x10000).join("; "), *known));
        let arm =
            ARM.iter().map(|(word, known)| (texts(CodeKind::Code, &word.to_le_bytes(), 0x10000).join("; "), *known));
        let wrong: Vec<_> = thumb.chain(arm).filter(|(own, known)| own != known).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn an_it_gives_conditions_and_takes_flags() {
        // The code: ite eq; moveq r0, #1; movne r0, #2; movs r0, #3
        let told = texts(CodeKind::Thumb, &[0x0c, 0xbf, 1, 0x20, 2, 0x20, 3, 0x20], 0);
        assert_eq!(told, ["ite eq", "moveq r0, #1", "movne r0, #2", "movs r0, #3"]);
    }

    #[test]
    fn cuts_and_numbers() {
        assert_eq!(texts(CodeKind::Thumb, &[0x2d, 0xe9, 7], 0), [".byte 0x2d,0xe9,0x07"]);
        assert_eq!(texts(CodeKind::Code, &[1, 2], 0), [".byte 0x01,0x02"]);
        let data = texts(CodeKind::Data, &[1, 0, 2, 0, 0, 0, 3], 0x1002);
        assert_eq!(data, [".short 0x0001", ".word 0x00000002", ".byte 0x03"]);
    }
}
