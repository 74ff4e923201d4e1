//! Rewrites yaxpeax-arm's text into objdump's spelling: numbers, conditions, addresses, aliases.

use super::super::fields::bits;

/// The width in characters of the column with the mnemonic. A blank follows the column.
const COLUMN: usize = 6;

/// Instructions in which all numbers are decimal, because they count bits, bytes or lanes. In other instructions, only
/// address offsets and shift amounts are decimal.
const DECIMAL: &[&str] = &[
    "asr", "bfc", "bfi", "bfxil", "cmeq", "cmge", "cmgt", "cmle", "cmlt", "ext", "extr", "fcvtzs", "fcvtzu", "lsl",
    "lsr", "ror", "rshrn", "sbfiz", "sbfx", "scvtf", "shl", "shll", "shrn", "sli", "sqrshrn", "sqrshrun", "sqshl",
    "sqshlu", "sqshrn", "sqshrun", "sri", "srshr", "srsra", "sshll", "sshr", "ssra", "tbnz", "tbz", "ubfiz", "ubfx",
    "ucvtf", "uqrshrn", "uqshl", "uqshrn", "urshr", "ursra", "ushll", "ushr", "usra",
];

/// The operators that shift or extend a register. A shift amount follows them.
const SHIFTS: &[&str] =
    &["asr ", "lsl ", "lsr ", "msl ", "ror ", "sxtb ", "sxth ", "sxtw ", "sxtx ", "uxtb ", "uxth ", "uxtw ", "uxtx "];

/// Instructions that widen the elements of a vector and shift them left, each with the alias that objdump shows if the
/// shift is 0: `ushll v0.8h, v1.8b, #0` is `uxtl v0.8h, v1.8b`.
const WIDENING_SHIFTS: &[(&str, &str)] =
    &[("ushll", "uxtl"), ("ushll2", "uxtl2"), ("sshll", "sxtl"), ("sshll2", "sxtl2")];

/// Rewrites the library's text of the instruction `word` into objdump's spelling. `target` is the address to which the
/// instruction refers; `None` if it refers to none.
pub(super) fn respell(text: &str, word: u32, target: Option<u64>) -> String {
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let mut mnemonic = match mnemonic {
        "b.hs" => "b.cs",
        "b.lo" => "b.cc",
        // The form of `mov` that copies one lane of a vector into every lane. objdump calls it `dup`.
        "mov" if word & 0xbfe0_fc00 == 0x0e00_0400 => "dup",
        other => other,
    };
    // Instructions for the upper half of a vector end in a 2, such as `ushll2`. `DECIMAL` has their names without the
    // 2.
    let is_decimal = DECIMAL.contains(&mnemonic.strip_suffix('2').unwrap_or(mnemonic));
    let mut operands = respell_numbers(operands, is_decimal, target);
    // The last operand of a conditional select or compare is a condition. objdump has other names for two of them.
    for (condition, name) in [("hs", "cs"), ("lo", "cc")] {
        if let Some(stem) = operands.strip_suffix(condition).filter(|stem| stem.ends_with(' ')) {
            operands = format!("{stem}{name}");
        }
    }
    let widening_shift = WIDENING_SHIFTS.iter().find(|(name, _)| *name == mnemonic);
    // A widening shift by 0 only widens. objdump shows it by the name of that instruction, without the `#0`.
    if let (Some((_, alias)), Some(registers)) = (widening_shift, operands.strip_suffix(", #0")) {
        (mnemonic, operands) = (alias, registers.to_owned());
    }
    // In an add or sub, the extended register is respelled here. In a load or store (`[x0, w1, uxtw #2]`), only a shift
    // of 0 is left out, below.
    if let Some(extended) = spell_extended(&operands, word) {
        operands = extended;
    }
    // In a load or store, bit 12 says whether the extended register is shifted. If it isn't, objdump omits the shift of
    // 0 that the library prints.
    if bits(word, 12, 1) == 0 && operands.ends_with("xtw #0]") {
        operands = operands.replace(" #0]", "]");
    }
    if operands.is_empty() { mnemonic.to_owned() } else { format!("{mnemonic:<COLUMN$} {operands}") }
}

/// objdump's spelling of the operands of an add or sub that extends its last register, such as `x0, x1, w2, uxtw #2`.
/// `None` for other instructions.
fn spell_extended(operands: &str, word: u32) -> Option<String> {
    let is_extended_add_or_sub = bits(word, 24, 5) == 0b0_1011 && bits(word, 21, 3) == 0b001;
    if !is_extended_add_or_sub {
        return None;
    }
    let (extension, shift, is_64_bit) = (bits(word, 13, 3), bits(word, 10, 3), bits(word, 31, 1) == 1);
    // Register 31 is the stack pointer if it is the first source, or the destination of an instruction that doesn't set
    // the flags (bit 29).
    let has_stack_pointer = bits(word, 5, 5) == 31 || (bits(word, 0, 5) == 31 && bits(word, 29, 1) == 0);
    let name = ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"][extension as usize];
    // An extension of a whole register (uxtx in 64-bit instructions, uxtw in 32-bit ones) changes nothing. If the stack
    // pointer is an operand, objdump shows only the shift for it (`lsl`), and nothing if the shift is 0.
    let whole_register = if is_64_bit { 3 } else { 2 };
    let is_only_shift = has_stack_pointer && extension == whole_register;
    let name = if is_only_shift { "lsl" } else { name };
    // The library may print the extension or shift as the last operand, which is then replaced. If it prints none, the
    // last operand is a register and is kept.
    let registers = match operands.rsplit_once(", ") {
        Some((registers, last)) if last.contains("xt") || last.starts_with("lsl") => registers,
        _ => operands,
    };
    if shift != 0 {
        return Some(format!("{registers}, {name} #{shift}"));
    }
    Some(if is_only_shift { registers.to_owned() } else { format!("{registers}, {name}") })
}

/// Rewrites all numbers in an instruction's operands as objdump spells them. If `all_decimal` is false, only address
/// offsets and shift amounts are shown in decimal. The library prints relative addresses as `$…`; they are replaced by
/// `target`.
fn respell_numbers(operands: &str, all_decimal: bool, target: Option<u64>) -> String {
    let mut out = String::with_capacity(operands.len());
    let mut rest = operands;
    while let Some(start) = rest.find(['#', '$']) {
        out.push_str(&rest[..start]);
        let end = rest[start + 1..].find([',', ']', ' ', '}', '!']).map_or(rest.len(), |len| start + 1 + len);
        let number = &rest[start..end];
        rest = &rest[end..];
        match (number.strip_prefix('$'), target) {
            (Some(_), Some(target)) => out.push_str(&format!("{target:x}")),
            _ => out.push_str(&spell_number(number, all_decimal || is_distance(&out))),
        }
    }
    out + rest
}

/// True if a number that follows the text `before` is an address offset or a shift amount. An offset is in brackets
/// (`[x0, #8]`) or directly after them (`[x0], #8`).
fn is_distance(before: &str) -> bool {
    let is_in_brackets = before.rfind('[').is_some_and(|open| !before[open..].contains(']'));
    is_in_brackets || before.ends_with("], ") || SHIFTS.iter().any(|shift| before.ends_with(shift))
}

/// Rewrites one number as objdump spells it. yaxpeax-arm writes `#0x10`, `#-0x10` or `#1.0`. Integers become decimal if
/// `is_decimal` is true. Numbers with a fraction get an exponent (`#1.000000000000000000e+00`), except for `#0.0`.
fn spell_number(number: &str, is_decimal: bool) -> String {
    let (sign, digits) = match number.strip_prefix("#-") {
        Some(digits) => ("-", digits),
        None => ("", number.strip_prefix('#').unwrap_or(number)),
    };
    if is_decimal
        && let Some(hex) = digits.strip_prefix("0x")
        && let Ok(value) = u64::from_str_radix(hex, 16)
    {
        return format!("#{sign}{value}");
    }
    match digits.parse::<f64>() {
        Ok(value) if digits.contains('.') && digits != "0.0" => {
            let text = format!("{value:.18e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (exponent_sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ("-", exponent),
                None => ("+", exponent),
            };
            format!("#{sign}{mantissa}e{exponent_sign}{exponent:0>2}")
        }
        _ => number.to_owned(),
    }
}
