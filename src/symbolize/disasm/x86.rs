//! Disassembles 64-bit and 32-bit x86 code with iced-x86, in objdump's spelling.

use super::fields::bytes_text;
use super::instruction::{Instruction, Syntax, Target, TargetKind};
use iced_x86::{
    Code, Decoder, DecoderOptions, Formatter, GasFormatter, Instruction as Decoded, IntelFormatter, Mnemonic, OpKind,
};

/// Mnemonics that objdump shows without a size suffix, and their replacements. Each mnemonic is as the library prints
/// it: with the suffix (`q`, `l`) and a blank. The replacement has one more blank, so the operands stay in their
/// column.
const IMPLIED_SIZES: [(&str, &str); 8] = [
    ("jmpq ", "jmp  "),
    ("callq ", "call  "),
    ("pushq ", "push  "),
    ("popq ", "pop  "),
    ("jmpl ", "jmp  "),
    ("calll ", "call  "),
    ("pushl ", "push  "),
    ("popl ", "pop  "),
];

/// The decoder and formatter for x86 code.
pub struct X86 {
    /// 64 for 64-bit code, 32 for 32-bit code.
    bitness: u32,
    syntax: Syntax,
    formatter: Box<dyn Formatter>,
}

impl std::fmt::Debug for X86 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("X86").field("bitness", &self.bitness).finish_non_exhaustive()
    }
}

impl X86 {
    /// Sets iced-x86's options so that it prints like objdump. `bitness` is 64 or 32.
    pub(super) fn new(bitness: u32, syntax: Syntax) -> Self {
        let mut formatter: Box<dyn Formatter> = match syntax {
            Syntax::Att => Box::new(GasFormatter::new()),
            Syntax::Intel => Box::new(IntelFormatter::new()),
        };
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_branch_leading_zeros(false);
        options.set_rip_relative_addresses(true);
        options.set_always_show_scale(true);
        options.set_show_zero_displacements(true);
        options.set_show_branch_size(false);
        // The column in which objdump starts the operands.
        options.set_first_operand_char_index(7);
        Self { bitness, syntax, formatter }
    }

    /// Decodes code at address `addr`. As in objdump, an invalid byte is shown on a line of its own, and so are
    /// prefixes without effect (in 64-bit code, a REX prefix with another prefix after it).
    pub(super) fn decode(&mut self, code: &[u8], addr: u64) -> Vec<Instruction> {
        // An instruction that is invalid only because of a prefix (`lock` without a memory write) is still shown.
        let mut decoder = Decoder::with_ip(self.bitness, code, addr, DecoderOptions::NO_INVALID_CHECK);
        let mut instructions = Vec::new();
        while decoder.can_decode() {
            let start = decoder.position();
            let offset = start as u64;
            // Only a REX prefix can be without effect, and there is none in 32-bit code.
            let prefixes_len = if self.bitness == 64 { count_ineffective_prefixes(&code[start..]) } else { 0 };
            if prefixes_len > 0 {
                let text = prefixes_text(&code[start..start + prefixes_len]);
                instructions.push(Instruction { offset, len: prefixes_len as u64, text, target: None });
                // An error would mean a position after the end of the code, but the prefixes are within the code.
                let _ = decoder.set_position(start + prefixes_len);
                decoder.set_ip(addr.wrapping_add(offset + prefixes_len as u64));
                continue;
            }
            let decoded = decoder.decode();
            if decoded.is_invalid() {
                instructions.push(Instruction { offset, len: 1, text: bytes_text(&code[start..=start]), target: None });
                // Decoding resumes at the byte after the invalid one. That can't fail, because this position is in the
                // code or at its end.
                let _ = decoder.set_position(start + 1);
                decoder.set_ip(addr.wrapping_add(offset + 1));
                continue;
            }
            let target = target(&decoded);
            let text = self.text(&decoded, target);
            instructions.push(Instruction { offset, len: decoded.len() as u64, text, target });
        }
        instructions
    }

    /// The text of an instruction in objdump's spelling. `target` is the address to which it refers.
    fn text(&mut self, decoded: &Decoded, target: Option<Target>) -> String {
        let mut text = String::new();
        self.formatter.format(decoded, &mut text);
        // objdump leaves out the size suffix of some mnemonics, such as `pushq`.
        for (suffixed, plain) in IMPLIED_SIZES {
            if text.contains(suffixed) {
                text = text.replacen(suffixed, plain, 1);
            }
        }
        // The source register is the destination. iced-x86 prints the register once, objdump twice.
        if has_implied_source(decoded) {
            // `operands_start` is after the mnemonic and the blanks that follow it.
            let operands_start = text.len() - text.trim_start_matches(|c: char| c != ' ').trim_start().len();
            // The destination is the last operand in AT&T syntax, the first in Intel syntax.
            match self.syntax {
                Syntax::Att => {
                    let register = text.rsplit(',').next().unwrap_or_default();
                    text = format!("{text},{register}");
                }
                Syntax::Intel => {
                    let register = text[operands_start..].split(',').next().unwrap_or_default().to_owned();
                    text.insert_str(operands_start, &format!("{register},"));
                }
            }
        }
        // iced-x86 leaves a comma where an address has no index register.
        if text.contains(",)") {
            text = text.replace(",)", ")");
        }
        // objdump shows the targets of branches without `0x`.
        if let Some(Target { addr, kind: TargetKind::Jump | TargetKind::Call }) = target
            && let Some(before) = text.strip_suffix(&format!("0x{addr:x}"))
        {
            text = format!("{before}{addr:x}");
        }
        text
    }
}

/// The bytes that can be prefixes of an instruction, except REX prefixes, and objdump's name for each. In 64-bit code,
/// a REX prefix may follow them.
const LEGACY_PREFIXES: [(u8, &str); 11] = [
    (0x26, "es"),
    (0x2e, "cs"),
    (0x36, "ss"),
    (0x3e, "ds"),
    (0x64, "fs"),
    (0x65, "gs"),
    (0x66, "data16"),
    (0x67, "addr32"),
    (0xf0, "lock"),
    (0xf2, "repnz"),
    (0xf3, "repz"),
];

fn legacy_prefix(byte: u8) -> Option<&'static str> {
    LEGACY_PREFIXES.iter().find(|(prefix, _)| *prefix == byte).map(|(_, name)| *name)
}

fn is_rex(byte: u8) -> bool {
    byte & 0xf0 == 0x40
}

/// Counts the prefix bytes at the start of `code` that objdump shows on a line of their own; usually 0. A REX prefix
/// only has an effect directly before the opcode. If another prefix follows it, objdump shows all prefixes up to the
/// REX prefix on one line, and the rest as the next instruction. This happens in data between code.
fn count_ineffective_prefixes(code: &[u8]) -> usize {
    /// The maximum length of an x86 instruction in bytes.
    const LONGEST: usize = 15;
    let legacy_len = code.iter().take(LONGEST).take_while(|byte| legacy_prefix(**byte).is_some()).count();
    match code.get(legacy_len..) {
        Some(&[rex, next, ..]) if is_rex(rex) && (is_rex(next) || legacy_prefix(next).is_some()) => legacy_len + 1,
        _ => 0,
    }
}

/// objdump's text for a list of prefixes, such as `data16 rex.WB`.
fn prefixes_text(prefixes: &[u8]) -> String {
    let mut names = Vec::new();
    for &byte in prefixes {
        names.push(match legacy_prefix(byte) {
            Some(name) => name.to_owned(),
            None => rex_name(byte),
        });
    }
    names.join(" ")
}

/// objdump's name of a REX prefix, with a letter for each bit that is set: `rex.WB`, or `rex` if none is.
fn rex_name(byte: u8) -> String {
    let mut letters = String::new();
    for (bit, letter) in [(8, 'W'), (4, 'R'), (2, 'X'), (1, 'B')] {
        if byte & bit != 0 {
            letters.push(letter);
        }
    }
    if letters.is_empty() { "rex".to_owned() } else { format!("rex.{letters}") }
}

/// True for `imul` of a register by a number, with the result in the same register. objdump shows that register twice,
/// iced-x86 once.
fn has_implied_source(decoded: &Decoded) -> bool {
    decoded.mnemonic() == Mnemonic::Imul
        && decoded.op_count() == 3
        && decoded.op1_kind() == OpKind::Register
        && decoded.op0_register() == decoded.op1_register()
}

fn is_call(decoded: &Decoded) -> bool {
    matches!(decoded.code(), Code::Call_rel16 | Code::Call_rel32_32 | Code::Call_rel32_64)
}

/// The address to which an instruction refers; `None` if it refers to none.
fn target(decoded: &Decoded) -> Option<Target> {
    if decoded.op_count() > 0
        && matches!(decoded.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
    {
        let kind = if is_call(decoded) { TargetKind::Call } else { TargetKind::Jump };
        return Some(Target { addr: decoded.near_branch_target(), kind });
    }
    if decoded.is_ip_rel_memory_operand() {
        return Some(Target { addr: decoded.ip_rel_memory_address(), kind: TargetKind::Memory });
    }
    // A 64-bit immediate may be an address, so it counts as a target.
    let operand = (0..decoded.op_count()).find(|&operand| decoded.op_kind(operand) == OpKind::Immediate64)?;
    Some(Target { addr: decoded.immediate(operand), kind: TargetKind::Immediate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::abi::EM_X86_64;
    use crate::symbolize::disasm::Disassembler;

    fn texts(syntax: Syntax, code: &[u8], addr: u64) -> Vec<String> {
        let lines = Disassembler::new(EM_X86_64, syntax).decode(code, addr);
        let end = lines.iter().fold(0, |end, line| {
            assert_eq!(line.offset, end, "nothing is left out");
            end + line.len
        });
        assert_eq!(end, code.len() as u64);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn instructions_are_spelled_as_objdump_spells_them() {
        let code = [
            &[0x55][..],                        // push
            &[0x48, 0x89, 0xe5],                // mov
            &[0xe8, 0x10, 0, 0, 0],             // call
            &[0x75, 0xfe],                      // jne to itself
            &[0x48, 0x8b, 0x05, 0x10, 0, 0, 0], // rip-relative
            &[0x8b, 0x04, 0x08],                // scale 1
            &[0x41, 0xff, 0x27],
            &[0x48, 0x6b, 0xc0, 0x1f],
            &[0xc3],
        ]
        .concat();
        let att = texts(Syntax::Att, &code, 0x1000);
        assert_eq!(
            att,
            [
                "push   %rbp",
                "mov    %rsp,%rbp",
                "call   1019",
                "jne    1009",
                "mov    0x10(%rip),%rax",
                "mov    (%rax,%rcx,1),%eax",
                "jmp    *(%r15)",
                "imul   $0x1f,%rax,%rax",
                "ret"
            ]
        );
        let intel = texts(Syntax::Intel, &code, 0x1000);
        assert_eq!((&intel[1][..], &intel[7][..]), ("mov    rbp,rsp", "imul   rax,rax,0x1f"));
    }

    #[test]
    fn sizes_of_32_bits_go_without_saying_too() {
        // The code: pushl -0x44(%ebp); call *0x8(%edx); jmp *(%eax); pop (%ecx)
        let code = [0xff, 0x75, 0xbc, 0xff, 0x52, 0x08, 0xff, 0x20, 0x8f, 0x01];
        let lines = Disassembler::new(crate::model::abi::EM_386, Syntax::Att).decode(&code, 0);
        let texts: Vec<_> = lines.iter().map(|line| &line.text[..]).collect();
        assert_eq!(texts, ["push   -0x44(%ebp)", "call   *0x8(%edx)", "jmp    *(%eax)", "pop    (%ecx)"]);
    }

    #[test]
    fn bytes_without_an_instruction_are_listed_and_decoding_goes_on_behind_them() {
        assert_eq!(texts(Syntax::Att, &[0x06, 0x90, 0x0f], 0), [".byte  0x06", "nop", ".byte  0x0f"]);
    }

    #[test]
    fn a_rex_prefix_before_another_prefix_is_a_line_of_its_own() {
        let code = [0x45, 0x45, 0x6f, 0x66, 0x48, 0x66, 0x90, 0x40, 0x90, 0x48];
        let told = texts(Syntax::Att, &code, 0);
        assert_eq!(told[..1], ["rex.RB"]);
        assert_eq!(told[2..], ["data16 rex.W", "xchg   %ax,%ax", "nop", ".byte  0x48"]);
    }

    #[test]
    fn addresses_in_instructions_are_those_of_the_place_where_the_code_lies() {
        let code = [0xe8, 0, 0, 0, 0, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 0, 0x41, 0xff, 0xd2];
        let lines = Disassembler::new(EM_X86_64, Syntax::Att).decode(&code, 0x7f00_0000_0000);
        assert_eq!(lines[0].target, Some(Target { addr: 0x7f00_0000_0005, kind: TargetKind::Call }));
        assert_eq!(lines[1].target, Some(Target { addr: 0x07_0605_0403_0201, kind: TargetKind::Immediate }));
        assert_eq!(lines[2].target, None);
    }
}
