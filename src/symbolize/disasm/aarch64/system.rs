//! Formats system registers, hints and cache operations from their bits. Names are from the Arm Architecture Reference
//! Manual.

use super::super::fields::bits;

/// System registers that programs read or write, each by its number: the fields `op0 op1 CRn CRm op2`, packed by
/// [`register`].
const REGISTERS: &[(u32, &str)] = &[
    (register([3, 3, 0, 0, 1]), "ctr_el0"),
    (register([3, 3, 0, 0, 7]), "dczid_el0"),
    (register([3, 3, 2, 4, 0]), "rndr"),
    (register([3, 3, 2, 4, 1]), "rndrrs"),
    (register([3, 3, 4, 2, 0]), "nzcv"),
    (register([3, 3, 4, 2, 1]), "daif"),
    (register([3, 3, 4, 2, 6]), "ssbs"),
    (register([3, 3, 4, 2, 5]), "dit"),
    (register([3, 3, 4, 4, 0]), "fpcr"),
    (register([3, 3, 4, 4, 1]), "fpsr"),
    (register([3, 3, 9, 13, 0]), "pmccntr_el0"),
    (register([3, 3, 13, 0, 2]), "tpidr_el0"),
    (register([3, 3, 13, 0, 3]), "tpidrro_el0"),
    (register([3, 3, 14, 0, 0]), "cntfrq_el0"),
    (register([3, 3, 14, 0, 1]), "cntpct_el0"),
    (register([3, 3, 14, 0, 2]), "cntvct_el0"),
    (register([3, 0, 0, 0, 0]), "midr_el1"),
    (register([3, 0, 0, 0, 5]), "mpidr_el1"),
    (register([3, 0, 4, 1, 0]), "sp_el0"),
    (register([3, 0, 4, 2, 2]), "currentel"),
    (register([3, 0, 13, 0, 4]), "tpidr_el1"),
];

/// Cache operations, each by its number: the fields `op0 op1 CRn CRm op2` with an `op0` of 1, packed by [`register`].
const CACHES: &[(u32, &str)] = &[
    (register([1, 3, 7, 4, 1]), "dc     zva"),
    (register([1, 3, 7, 4, 3]), "dc     gva"),
    (register([1, 3, 7, 4, 4]), "dc     gzva"),
    (register([1, 3, 7, 5, 1]), "ic     ivau"),
    (register([1, 3, 7, 10, 1]), "dc     cvac"),
    (register([1, 3, 7, 11, 1]), "dc     cvau"),
    (register([1, 3, 7, 12, 1]), "dc     cvap"),
    (register([1, 3, 7, 14, 1]), "dc     civac"),
    (register([1, 0, 7, 6, 1]), "dc     ivac"),
];

/// Hint instructions, each by the number in its bits 5 to 11. Processors that don't know a hint treat it as a `nop`.
const HINTS: &[(u32, &str)] = &[
    (0, "nop"),
    (1, "yield"),
    (2, "wfe"),
    (3, "wfi"),
    (4, "sev"),
    (5, "sevl"),
    (6, "dgh"),
    (7, "xpaclri"),
    (8, "pacia1716"),
    (10, "pacib1716"),
    (12, "autia1716"),
    (14, "autib1716"),
    (16, "esb"),
    (17, "psb    csync"),
    (18, "tsb    csync"),
    (20, "csdb"),
    (24, "paciaz"),
    (25, "paciasp"),
    (26, "pacibz"),
    (27, "pacibsp"),
    (28, "autiaz"),
    (29, "autiasp"),
    (30, "autibz"),
    (31, "autibsp"),
    (32, "bti"),
    (34, "bti    c"),
    (36, "bti    j"),
    (38, "bti    jc"),
];

/// Packs the fields `op0 op1 CRn CRm op2` into a number, in the same way as an instruction encodes them.
const fn register([op0, op1, crn, crm, op2]: [u32; 5]) -> u32 {
    op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

/// The text of an undefined instruction, a hint, a system register access or a cache operation. `None` for other
/// instructions.
pub(super) fn instruction(word: u32) -> Option<String> {
    let is_undefined = word >> 16 == 0;
    if is_undefined {
        return Some(format!("udf    #{word}"));
    }
    let is_hint = word & 0xffff_f01f == 0xd503_201f;
    if is_hint {
        let number = bits(word, 5, 7);
        return Some(name_of(HINTS, number).map_or_else(|| format!("hint   #{number:#x}"), str::to_owned));
    }
    // The upper ten bits are the same in all instructions that access system registers or caches.
    if word & 0xffc0_0000 != 0xd500_0000 {
        return None;
    }
    // The number of the system register or cache operation, as in `REGISTERS` and `CACHES`.
    let (number, is_read) = (bits(word, 5, 16), bits(word, 21, 1) == 1);
    // The general register. Its value is written to the system register, or the system register's value is read into
    // it.
    let value = match bits(word, 0, 5) {
        31 => "xzr".to_owned(),
        value => format!("x{value}"),
    };
    // Bit 20 is the upper bit of the field `op0`. In accesses to system registers, `op0` is 2 or 3. In other system
    // instructions, such as cache operations, it is 0 or 1.
    let is_register_access = bits(word, 20, 1) == 1;
    if is_register_access {
        let register = register_name(number);
        return Some(if is_read {
            format!("mrs    {value}, {register}")
        } else {
            format!("msr    {register}, {value}")
        });
    }
    // Cache operations only take a value; none of them returns one.
    if is_read {
        return None;
    }
    Some(format!("{}, {value}", name_of(CACHES, number)?))
}

/// The name of a system register. If it isn't in the table, the name consists of its fields, such as `s3_3_c13_c0_7`.
fn register_name(number: u32) -> String {
    let [op0, op1, crn, crm, op2] =
        [bits(number, 14, 2), bits(number, 11, 3), bits(number, 7, 4), bits(number, 3, 4), bits(number, 0, 3)];
    name_of(REGISTERS, number).map_or_else(|| format!("s{op0}_{op1}_c{crn}_c{crm}_{op2}"), str::to_owned)
}

fn name_of(table: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    table.iter().find(|(other, _)| *other == number).map(|(_, name)| *name)
}
