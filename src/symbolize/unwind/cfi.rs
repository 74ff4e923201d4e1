//! Reads call frame information: for each address, the rules that recover the caller's registers.
//!
//! The rules for an address are looked up once and kept ([`UnwindRow`]), so that a frame of a known function costs only
//! a hash lookup. All registers are tracked, not only the stack pointer and the frame pointer. Some code uses another
//! register to find its frame (realigned stacks, assembly).
//!
//! Spec: DWARF 5 section 6.4; LSB core, `.eh_frame` and `.eh_frame_hdr`.

use super::registers::{Machine, Registers};
use crate::symbolize::symbols::image::Image;
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, Expression,
    Format, FrameDescriptionEntry, Location, RegisterRule, RunTimeEndian, UnwindContext, UnwindSection, Value, Vendor,
};
use object::{Object, ObjectSection};
use std::borrow::Cow;

type SectionSlice<'a> = EndianSlice<'a, RunTimeEndian>;
/// Memory that gimli needs to execute a frame description. It is large, so it is allocated once and reused.
pub type Scratch = UnwindContext<usize>;

/// The call frame information of one file or one piece of JIT code.
#[derive(Debug)]
pub struct FrameTable<'a> {
    machine: Machine,
    eh_frame: Cow<'a, [u8]>,
    /// The contents of `.eh_frame_hdr`, which may have a search table for `.eh_frame`.
    header: Cow<'a, [u8]>,
    debug_frame: Cow<'a, [u8]>,
    /// The link-time addresses of the sections, to which pointers in frame descriptions are relative.
    bases: BaseAddresses,
    /// The frame descriptions sorted by address: those in `.debug_frame` and, if there is no search table, those in
    /// `.eh_frame`.
    index: Vec<IndexEntry>,
}

/// Where to find the frame description for a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IndexEntry {
    start: u64,
    end: u64,
    /// The offset of the frame description in its section.
    offset: usize,
    section: FrameSection,
}

/// A section with frame descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FrameSection {
    /// The description is in `.eh_frame`.
    EhFrame,
    /// The description is in `.debug_frame`.
    DebugFrame,
}

/// The rules that recover the registers of the caller, for a frame that is at a certain address.
#[derive(Debug, Clone)]
pub struct UnwindRow {
    cfa: Cfa,
    /// Rules by DWARF register number. A register without a rule has the same value in the caller.
    rules: Box<[(u16, Rule)]>,
    /// The DWARF number of the register that stands for the return address. Its rule tells how to recover the return
    /// address.
    return_register: u16,
    /// True if the kernel pushed this frame to run a signal handler. The function in the next frame didn't make a call
    /// then, but was interrupted by the signal.
    pub is_signal: bool,
    /// How numbers in the rules' expressions are encoded.
    encoding: Encoding,
}

/// How to compute the CFA (canonical frame address), to which the other rules refer. The CFA usually is the value that
/// the stack pointer had before the call.
#[derive(Debug, Clone)]
enum Cfa {
    /// The value of a register plus an offset.
    Register(u16, i64),
    /// The value of a DWARF expression.
    Expression(Box<[u8]>),
}

/// How to recover the value that a register had in the caller.
#[derive(Debug, Clone)]
enum Rule {
    /// The caller's value of the register is lost. If the register holds the return address, there is no caller.
    Undefined,
    /// The value was saved in memory, at this offset from the CFA.
    SavedAtOffset(i64),
    /// The value is the CFA plus this offset.
    CfaPlusOffset(i64),
    /// The value is in another register.
    Register(u16),
    /// The value was saved in memory, at the address that the DWARF expression yields.
    SavedAtExpression(Box<[u8]>),
    /// The value is what the DWARF expression yields.
    ValueExpression(Box<[u8]>),
}

impl<'a> FrameTable<'a> {
    /// Reads the call frame information of a file. `None` if it has none, if its machine isn't supported, or if the
    /// file can't be parsed.
    pub fn from_image(image: &'a Image) -> Option<Self> {
        let object = image.object().ok()?;
        let machine = Machine::from_elf(image.machine(), object.is_64())?;
        // Each machine is supported in one byte order only.
        if (machine.endian() == RunTimeEndian::Little) != object.is_little_endian() {
            return None;
        }
        let addr = |name: &str| object.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(addr(".eh_frame"))
            .set_eh_frame_hdr(addr(".eh_frame_hdr"))
            .set_text(addr(".text"))
            .set_got(addr(".got"));
        let eh_frame = image.section(&object, ".eh_frame");
        let header = image.section(&object, ".eh_frame_hdr");
        let debug_frame = image.section(&object, ".debug_frame");
        Self::new(machine, eh_frame, header, debug_frame, bases)
    }

    /// Reads the call frame information of JIT code that runs at `start` and is `size` bytes long. Pointers in it are
    /// relative to where they are; jitdumps assume that the call frame information follows the code, from the next
    /// multiple of 8 on.
    pub fn from_code(machine: Machine, eh_frame: &'a [u8], start: u64, size: u64) -> Option<Self> {
        let eh_frame_addr = start.checked_add(size)?.checked_next_multiple_of(8)?;
        let bases = BaseAddresses::default().set_eh_frame(eh_frame_addr).set_text(start);
        Self::new(machine, eh_frame.into(), Cow::default(), Cow::default(), bases)
    }

    /// Builds the table from the contents of the sections. `None` if they contain no frame description.
    fn new(
        machine: Machine,
        eh_frame: Cow<'a, [u8]>,
        header: Cow<'a, [u8]>,
        debug_frame: Cow<'a, [u8]>,
        bases: BaseAddresses,
    ) -> Option<Self> {
        let mut table = Self { machine, eh_frame, header, debug_frame, bases, index: Vec::new() };
        let mut index = Vec::new();
        // With a search table, descriptions in `.eh_frame` are found without an index.
        if table.header().is_none() {
            index_section(&table.eh_frame_section(), &table.bases, FrameSection::EhFrame, &mut index);
        }
        index_section(&table.debug_frame_section(), &table.bases, FrameSection::DebugFrame, &mut index);
        index.sort_unstable();
        table.index = index;
        if table.header().is_none() && table.index.is_empty() {
            return None;
        }
        Some(table)
    }

    /// The instruction set of the code.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    fn vendor(&self) -> Vendor {
        match self.machine {
            Machine::Aarch64 => Vendor::AArch64,
            Machine::X86_64 | Machine::I386 | Machine::Arm | Machine::Riscv64 | Machine::S390x => Vendor::Default,
        }
    }

    fn eh_frame_section(&self) -> EhFrame<SectionSlice<'_>> {
        let mut section = EhFrame::new(&self.eh_frame, self.machine.endian());
        section.set_address_size(self.machine.word());
        section.set_vendor(self.vendor());
        section
    }

    fn debug_frame_section(&self) -> DebugFrame<SectionSlice<'_>> {
        let mut section = DebugFrame::new(&self.debug_frame, self.machine.endian());
        section.set_address_size(self.machine.word());
        section.set_vendor(self.vendor());
        section
    }

    /// The `.eh_frame_hdr` section; `None` if it is missing or damaged, or has no search table.
    fn header(&self) -> Option<gimli::ParsedEhFrameHdr<SectionSlice<'_>>> {
        /// Size in bytes of the smallest entry of the search table: two addresses of two bytes.
        const SMALLEST_ENTRY: usize = 4;
        let header = EhFrameHdr::new(&self.header, self.machine.endian());
        let header = header.parse(&self.bases, self.machine.word()).ok()?;
        // Rejects a search table that claims more entries than the section can hold. gimli multiplies the number of
        // entries by their size, which would overflow.
        let (entries, _) = header.table()?.iter(&self.bases).size_hint();
        (1..=self.header.len() / SMALLEST_ENTRY).contains(&entries).then_some(header)
    }

    /// The rules for a frame at this link-time address; `None` if the call frame information doesn't cover the address.
    /// Tries the search table in the header first, then the index.
    pub fn row(&self, addr: u64, scratch: &mut Scratch) -> Option<UnwindRow> {
        if let Some(header) = self.header() {
            let section = self.eh_frame_section();
            if let Some(entry) = self.find_in_header(&header, &section, addr) {
                return self.read_row(&entry, &section, addr, scratch);
            }
        }
        // The index has the descriptions in `.debug_frame`, and those in `.eh_frame` if there is no search table.
        let after = self.index.partition_point(|entry| entry.start <= addr);
        let &IndexEntry { end, offset, section, .. } = self.index[..after].last()?;
        if addr >= end {
            return None;
        }
        match section {
            FrameSection::DebugFrame => {
                let section = self.debug_frame_section();
                let entry = section.fde_from_offset(&self.bases, offset.into(), DebugFrame::cie_from_offset).ok()?;
                self.read_row(&entry, &section, addr, scratch)
            }
            FrameSection::EhFrame => {
                let section = self.eh_frame_section();
                let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
                self.read_row(&entry, &section, addr, scratch)
            }
        }
    }

    /// Finds the frame description of an address with the search table in `.eh_frame_hdr`. `None` if the table's
    /// nearest description doesn't cover the address, or if the table is damaged and leads out of the section.
    fn find_in_header<'s>(
        &self,
        header: &gimli::ParsedEhFrameHdr<SectionSlice<'s>>,
        section: &EhFrame<SectionSlice<'s>>,
        addr: u64,
    ) -> Option<FrameDescriptionEntry<SectionSlice<'s>>> {
        let entry_addr = header.table()?.lookup(addr, &self.bases).ok()?.direct().ok()?;
        let section_addr = header.eh_frame_ptr().direct().ok()?;
        let offset = usize::try_from(entry_addr.checked_sub(section_addr)?).ok()?;
        let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(addr).then_some(entry)
    }

    /// Executes a frame description up to `addr`, and converts the resulting rules. `None` if the description is
    /// damaged.
    fn read_row<'s, S: UnwindSection<SectionSlice<'s>>>(
        &self,
        entry: &FrameDescriptionEntry<SectionSlice<'s>>,
        section: &S,
        addr: u64,
        scratch: &mut Scratch,
    ) -> Option<UnwindRow> {
        let cie = entry.cie();
        let row = entry.unwind_info_for_address(section, &self.bases, scratch, addr).ok()?;
        let copy_expression = |expression: &gimli::UnwindExpression<usize>| {
            let expression = expression.get(section).ok()?;
            Some(expression.0.slice().into())
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
            CfaRule::Expression(expression) => Cfa::Expression(copy_expression(expression)?),
        };
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            let rule = match rule {
                // A register without a rule keeps its value.
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => Rule::SavedAtOffset(*offset),
                RegisterRule::ValOffset(offset) => Rule::CfaPlusOffset(*offset),
                RegisterRule::Register(other) => Rule::Register(other.0),
                RegisterRule::Expression(expression) => Rule::SavedAtExpression(copy_expression(expression)?),
                RegisterRule::ValExpression(expression) => Rule::ValueExpression(copy_expression(expression)?),
                // DWARF says that the register's value is lost, or has a rule that no supported machine uses.
                _ => Rule::Undefined,
            };
            rules.push((register.0, rule));
        }
        Some(UnwindRow {
            cfa,
            rules: rules.into(),
            return_register: cie.return_address_register().0,
            is_signal: cie.is_signal_trampoline(),
            // The format matters only for references to other DWARF sections, which these expressions don't have.
            encoding: Encoding {
                address_size: self.machine.word(),
                format: Format::Dwarf32,
                version: cie.encoding().version,
            },
        })
    }
}

/// Adds the frame descriptions of a section to the index. Skips descriptions that can't be parsed. Stops at damage
/// after which it isn't known where the next description starts.
fn index_section<'s, S: UnwindSection<SectionSlice<'s>>>(
    section: &S,
    bases: &BaseAddresses,
    kind: FrameSection,
    index: &mut Vec<IndexEntry>,
) {
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        // Entries that aren't frame descriptions (CIEs) contain what several frame descriptions share. They are read
        // with the descriptions that refer to them.
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
        let start = entry.initial_address();
        let end = start.saturating_add(entry.len());
        index.push(IndexEntry { start, end, offset: entry.offset(), section: kind });
    }
}

/// The error if unwinding fails because the rules need a register or memory whose value is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl UnwindRow {
    /// Computes the registers that the caller had when it made the call, by applying the rules to the callee's
    /// registers. `read` reads the word at an address of the stack. `None` if there is no caller: the rules say that
    /// the return address is undefined. [`Lost`] if the CFA or the return address depends on a value that isn't known;
    /// other registers then only become unknown.
    pub fn caller(&self, callee: &Registers, read: &impl Fn(u64) -> Option<u64>) -> Result<Option<Registers>, Lost> {
        let machine = callee.machine();
        let cfa = match &self.cfa {
            // `register` usually is the stack pointer. Where the stack pointer isn't known exactly, the CFA is computed
            // from the frame pointer instead.
            Cfa::Register(register, offset) => match self.cfa_of_frame_record(callee, *register, read) {
                Some(cfa) => cfa,
                None => machine.plus(callee.get(*register).ok_or(Lost)?, *offset),
            },
            Cfa::Expression(bytes) => self.evaluate(bytes, None, callee, read).ok_or(Lost)?,
        };
        let mut caller = *callee;
        // The CFA is the caller's stack pointer, except on s390x: there it is 160 bytes higher, and the stack pointer
        // is saved like other registers.
        if machine != Machine::S390x {
            caller.set(machine.sp(), cfa);
        }
        // A register without a rule keeps its value. If the return address has no rule, it is still in the link
        // register, where the call left it.
        let mut return_address = callee.get(self.return_register);
        for (register, rule) in &self.rules {
            let value = match rule {
                Rule::Undefined => {
                    if *register == self.return_register {
                        return Ok(None);
                    }
                    None
                }
                Rule::SavedAtOffset(offset) => read(machine.plus(cfa, *offset)),
                Rule::CfaPlusOffset(offset) => Some(machine.plus(cfa, *offset)),
                Rule::Register(other) => callee.get(*other),
                Rule::SavedAtExpression(bytes) => self.evaluate(bytes, Some(cfa), callee, read).and_then(read),
                Rule::ValueExpression(bytes) => self.evaluate(bytes, Some(cfa), callee, read),
            };
            if *register == self.return_register {
                return_address = value;
            }
            match value {
                Some(value) => caller.set(*register, value),
                None => caller.forget(*register),
            }
        }
        caller.set(machine.pc(), machine.code_address(return_address.ok_or(Lost)?));
        // In glibc's lazy resolver on AArch64, the rules treat what the PLT stub has pushed as part of the caller's
        // frame. The return address is then saved above the CFA, and the caller's stack pointer is even higher. How
        // much higher isn't known, so only a lower bound is set.
        if machine == Machine::Aarch64
            && let Some(offset @ 0..) = self.saved_offset(self.return_register)
        {
            caller.set_low_sp(machine.plus(cfa, offset + 8));
        }
        if let Some(link) = machine.link()
            && !self.is_signal
        {
            // The call overwrote the link register with the return address, so the value that the caller had in it
            // before is lost.
            caller.forget(link);
        }
        Ok(Some(caller))
    }

    /// True if the rules say that the link register still holds the return address, as the call left it.
    pub fn returns_by_link(&self, machine: Machine) -> bool {
        if self.is_signal || Some(self.return_register) != machine.link() {
            return false;
        }
        match self.rule(self.return_register) {
            None => true,
            Some(Rule::Register(other)) => Some(*other) == machine.link(),
            Some(_) => false,
        }
    }

    /// The rule for a register; `None` if the caller has the same value in it.
    fn rule(&self, register: u16) -> Option<&Rule> {
        self.rules.iter().find(|(number, _)| *number == register).map(|(_, rule)| rule)
    }

    /// The offset from the CFA at which the caller's value of a register is saved. `None` if there is no rule that says
    /// so.
    fn saved_offset(&self, register: u16) -> Option<i64> {
        match self.rule(register) {
            Some(Rule::SavedAtOffset(offset)) => Some(*offset),
            _ => None,
        }
    }

    /// Computes the CFA from the frame pointer on AArch64. This is needed if the rules compute it from the stack
    /// pointer (`register`), of which only a lower bound is known ([`Registers::sp_is_low`]). That happens, for
    /// example, in the caller of JIT code, if the JIT code saved registers above its frame record (V8's entry from C++
    /// saves 144 bytes). The frame pointer `x29` points to a frame record: the caller's `x29`, and next to it the
    /// return address. The rules tell how far the record is from the CFA. `None` if the stack pointer is exact, or if
    /// the rules say that there is no frame record.
    fn cfa_of_frame_record(
        &self,
        callee: &Registers,
        register: u16,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let (machine, sp) = (callee.machine(), callee.sp()?);
        if machine != Machine::Aarch64 || !callee.sp_is_low() || register != machine.sp() {
            return None;
        }
        let fp_offset = self.saved_offset(machine.fp())?;
        // A frame record is on the stack, above the lower bound of the stack pointer, and is aligned like the stack
        // pointer.
        let fp = callee.fp().filter(|&fp| fp >= sp && fp % 16 == 0)?;
        let is_frame_record = self.saved_offset(self.return_register) == Some(fp_offset.checked_add(8)?);
        // The record must be in the part of the stack that was copied.
        if !is_frame_record || read(fp).is_none() {
            return None;
        }
        Some(fp.wrapping_sub(fp_offset as u64))
    }

    /// Evaluates a DWARF expression. If `initial` is given, the expression starts with it on its stack. `None` if the
    /// expression needs unknown values or is damaged.
    fn evaluate(
        &self,
        bytes: &[u8],
        initial: Option<u64>,
        registers: &Registers,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut evaluation =
            Expression(SectionSlice::new(bytes, registers.machine().endian())).evaluation(self.encoding);
        // Real expressions have about ten operations. The limit stops damaged ones that loop.
        evaluation.set_max_iterations(1000);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(registers.get(register.0)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let (word, size) = (registers.machine().word(), size.clamp(1, registers.machine().word()));
                    // The expression may need fewer bytes than the whole word that `read` reads. On big-endian
                    // machines, the first bytes in memory are the word's highest.
                    let shift = if registers.machine().endian() == RunTimeEndian::Big { (word - size) * 8 } else { 0 };
                    let mask = u64::MAX >> (64 - u32::from(size) * 8);
                    evaluation.resume_with_memory(Value::Generic(read(address)? >> shift & mask)).ok()?
                }
                _ => return None,
            };
        }
        // gimli returns the value on top of the stack as an address.
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::unwind::registers::x86_64::{RBP, RIP, RSP};
    use gimli::LittleEndian;
    use gimli::write::{
        Address, CallFrameInstruction, CommonInformationEntry, EhFrame as Out, EndianVec, FrameTable as Writing,
    };

    /// A frame description like a compiler's. At entry the return address is on top of the stack; after `push rbp` it
    /// is one word higher.
    fn eh_frame(start: u64, undefined: bool) -> Vec<u8> {
        let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
        let mut cie = CommonInformationEntry::new(encoding, 1, -8, gimli::Register(RIP));
        cie.add_instruction(CallFrameInstruction::Cfa(gimli::Register(RSP), 8));
        cie.add_instruction(CallFrameInstruction::Offset(gimli::Register(RIP), -8));
        let mut table = Writing::default();
        let cie = table.add_cie(cie);
        let mut fde = gimli::write::FrameDescriptionEntry::new(Address::Constant(start), 0x40);
        fde.add_instruction(1, CallFrameInstruction::CfaOffset(16));
        fde.add_instruction(1, CallFrameInstruction::Offset(gimli::Register(RBP), -16));
        if undefined {
            fde.add_instruction(8, CallFrameInstruction::Undefined(gimli::Register(RIP)));
        }
        table.add_fde(cie, fde);
        let mut out = Out::from(EndianVec::new(LittleEndian));
        table.write_eh_frame(&mut out).unwrap();
        out.0.into_vec()
    }

    fn registers(pc: u64, sp: u64, bp: u64) -> Registers {
        let mut registers = Registers::new(Machine::X86_64);
        for (register, value) in [(RIP, pc), (RSP, sp), (RBP, bp)] {
            registers.set(register, value);
        }
        registers
    }

    #[test]
    fn a_search_table_that_is_longer_than_its_section_is_not_used() {
        let bytes = eh_frame(0x1000, false);
        let mut table = FrameTable::from_code(Machine::X86_64, &bytes, 0x1000, 0x40).unwrap();
        let memory = |addr| Some(addr * 10);
        let caller = |table: &FrameTable<'_>| {
            let row = table.row(0x1000, &mut Scratch::new())?;
            row.caller(&registers(0x1000, 800, 7), &memory).ok()
        };
        let expected = caller(&table);
        assert!(expected.is_some());
        for count in [u64::MAX, u64::MAX / 4, 1 << 62, 1 << 60, 2, 1] {
            // Version 1; the section's address (8 bytes), the number of entries (8 bytes), entries of 4 bytes each.
            let mut header = vec![1, 0x04, 0x04, 0x02];
            header.extend(0_u64.to_le_bytes());
            header.extend(count.to_le_bytes());
            table.header = header.into();
            assert!(table.header().is_none_or(|_| count <= 5), "{count}");
            // The descriptions are found without the table.
            assert_eq!(caller(&table), expected, "{count}");
        }
    }

    #[test]
    fn rules_before_and_after_the_prologue() {
        let bytes = eh_frame(0x1000, true);
        let table = FrameTable::from_code(Machine::X86_64, &bytes, 0x1000, 0x40).unwrap();
        let mut scratch = Scratch::new();
        let read = |addr| Some(addr * 10);
        let mut caller = |pc: u64| table.row(pc, &mut scratch)?.caller(&registers(pc, 800, 7), &read).ok();
        assert_eq!(caller(0x1000), Some(Some(registers(8000, 808, 7))));
        assert_eq!(caller(0x1004), Some(Some(registers(8080, 816, 8000))));
        assert_eq!(caller(0x1010), Some(None));
        assert_eq!(caller(0x1040), None);
        assert_eq!(caller(0xfff), None);
    }

    #[test]
    fn memory_that_is_not_there_makes_no_caller() {
        let bytes = eh_frame(0x1000, false);
        let table = FrameTable::from_code(Machine::X86_64, &bytes, 0x1000, 0x40).unwrap();
        let row = table.row(0x1000, &mut Scratch::new()).unwrap();
        assert_eq!(row.caller(&registers(0x1000, 800, 7), &|_| None), Err(Lost));
        assert!(FrameTable::from_code(Machine::X86_64, &bytes[..10], 0x1000, 0x40).is_none());
    }
}
