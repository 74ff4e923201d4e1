use super::super::{RecordSurvey, Recording, kind, record};
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::error::Warnings;
use crate::model::process::Processes;

/// A BPF program with two functions of 16 and 8 bytes; the first has two lines, the second one.
struct Program {
    id: u32,
    tag: u8,
    btf: u32,
    addrs: [u64; 2],
    /// The byte that fills all of its machine code.
    fill: u8,
}

const STRINGS: &[u8] = b"\0main_of_it\0helper\0/src/prog.bpf.c\0\treturn 7;\0 x++;\0";
const FILE: u32 = 19;
const RETURN: u32 = 35;
const STEP: u32 = 46;

fn words(endian: Endian, words: &[u32]) -> Vec<u8> {
    let mut out = ByteWriter::new(endian);
    for word in words {
        out.u32(*word);
    }
    out.finish()
}

fn longs(endian: Endian, longs: &[u64]) -> Vec<u8> {
    let mut out = ByteWriter::new(endian);
    for long in longs {
        out.u64(*long);
    }
    out.finish()
}

impl Program {
    fn info(&self, endian: Endian) -> Vec<u8> {
        let [first, second] = self.addrs;
        let line = |at: u32, text, line: u32| [at, FILE, text, line << 10 | 3];
        let data = [
            vec![self.fill; 24],
            longs(endian, &self.addrs),
            words(endian, &[16, 8]),
            words(endian, &[0, 2, 5, 3]),
            words(endian, &[line(0, STEP, 7), line(1, RETURN, 8), line(5, STEP, 12)].concat()),
            longs(endian, &[first, first + 9, second]),
            [[self.tag + 100; 8], [self.tag + 1; 8]].concat(),
        ];
        let place = |number: usize| data[..number].iter().map(Vec::len).sum::<usize>() as u64;
        let mut info = ByteWriter::new(endian);
        info.u32(6).u32(self.id).bytes(&[self.tag; 8]).u32(24).u32(0).u64(0).u64(0);
        info.u64(1).u32(0).u32(3).u64(0).bytes(b"main_of_it\0\0\0\0\0\0").u32(0).u32(1).u64(0).u64(0);
        info.u32(2).u32(2).u64(place(1)).u64(place(2)).u32(self.btf).u32(8).u64(place(3)).u32(2).u32(3);
        info.u64(place(4)).u64(place(5)).u32(3).u32(16).u32(8).u32(2).u64(place(6));
        let (info, data) = (info.finish(), data.concat());
        let mut out = ByteWriter::new(endian);
        out.u32(info.len() as u32).u32(data.len() as u32).u64(0x1f9).bytes(&info).bytes(&data);
        out.finish()
    }
}

fn prog_info(programs: &[Program], endian: Endian) -> Vec<u8> {
    let each = programs.iter().map(|program| program.info(endian));
    [words(endian, &[programs.len() as u32]), each.collect::<Vec<_>>().concat()].concat()
}

/// A BPF_BTF section with one object: an integer type and two functions.
fn btf(id: u32, endian: Endian) -> Vec<u8> {
    let types = words(endian, &[1, 1 << 24, 4, 0x20, 1, 12 << 24, 1, 12, 12 << 24, 1]);
    let mut object = ByteWriter::new(endian);
    match endian {
        Endian::Little => object.bytes(&[0x9f, 0xeb, 1, 0]),
        Endian::Big => object.bytes(&[0xeb, 0x9f, 1, 0]),
    };
    object.u32(24).u32(0).u32(types.len() as u32).u32(types.len() as u32).u32(STRINGS.len() as u32);
    object.bytes(&types).bytes(STRINGS);
    let object = object.finish();
    [words(endian, &[1, id, object.len() as u32]), object].concat()
}

/// A recording in pipe form. Its events and records have times.
struct Pipe {
    endian: Endian,
    bytes: Vec<u8>,
}

impl Pipe {
    fn new(endian: Endian) -> Self {
        let mut head = ByteWriter::new(endian);
        head.u64(u64::from_be_bytes(*b"2ELIFREP")).u64(16);
        let mut pipe = Self { endian, bytes: head.finish() };
        let sample_id_all = match endian {
            Endian::Little => 1 << 18,
            Endian::Big => 1 << 45,
        };
        let mut attr = ByteWriter::new(endian);
        attr.u32(1).u32(112).u64(0).u64(1).u64(4).u64(0).u64(sample_id_all).bytes(&[0; 64]);
        pipe.push(kind::HEADER_ATTR, &attr.finish());
        pipe
    }

    fn push(&mut self, kind: u32, body: &[u8]) {
        self.bytes.extend(record(kind, 0, body, self.endian).unwrap());
    }

    fn feature(&mut self, number: u64, section: &[u8]) {
        let body = [longs(self.endian, &[number]), section.to_vec()].concat();
        self.push(kind::HEADER_FEATURE, &body);
    }

    fn ksymbol(&mut self, time: u64, addr: u64, gone: bool, name: &[u8]) {
        let mut body = ByteWriter::new(self.endian);
        body.u64(addr).u32(16);
        let flags = match self.endian {
            Endian::Little => [1, 0, u8::from(gone), 0],
            Endian::Big => [0, 1, 0, u8::from(gone)],
        };
        body.bytes(&flags).bytes(name).bytes(&[0]).pad(8).u64(time);
        self.push(kind::KSYMBOL, &body.finish());
    }

    fn event(&mut self, time: u64, id: u32, tag: u8, gone: bool) {
        let mut body = ByteWriter::new(self.endian);
        let what = 1 + u8::from(gone);
        body.bytes(&if self.endian == Endian::Little { [what, 0, 0, 0] } else { [0, what, 0, 0] });
        body.u32(id).bytes(&[tag; 8]).u64(time);
        self.push(kind::BPF_EVENT, &body.finish());
    }

    /// The surveyed processes and the warnings.
    fn survey(&self) -> (Processes, Vec<String>) {
        let mut warnings = Warnings::new();
        let recording = Recording::parse(&self.bytes, &mut warnings).unwrap();
        let mut survey = RecordSurvey::default();
        recording.records(&self.bytes).for_each(|record| survey.add(&recording, &record));
        let (processes, _, skipped) = survey.finish(&recording);
        let skipped = skipped.into_iter().filter_map(|skipped| skipped.into_warning());
        (processes, skipped.map(|warning| warning.message).collect())
    }
}

const ADDRS: [u64; 2] = [0xffff_ffff_c000_1000, 0xffff_ffff_c000_2000];

fn first_program() -> Program {
    Program { id: 3, tag: 0x11, btf: 9, addrs: ADDRS, fill: 0x90 }
}

/// For each symbol, in time order: the ID of the program that it belongs to.
fn programs_of_symbols(processes: &Processes) -> Vec<Option<u32>> {
    let program = |id: crate::model::bpf::BpfFunctionId| processes.bpf_functions[id.0 as usize].program.id;
    processes.kernel_symbols.iter().map(|symbol| symbol.bpf.map(program)).collect()
}

#[test]
fn functions_have_names_code_and_lines_in_either_byte_order() {
    for endian in [Endian::Little, Endian::Big] {
        let mut pipe = Pipe::new(endian);
        pipe.feature(25, &prog_info(&[first_program()], endian));
        pipe.feature(26, &btf(9, endian));
        pipe.ksymbol(5, ADDRS[0], false, b"bpf_prog_1111111111111111");
        pipe.ksymbol(5, ADDRS[1], false, b"bpf_prog_1212121212121212_helper");
        pipe.event(6, 3, 0x11, false);
        let (processes, warnings) = pipe.survey();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(programs_of_symbols(&processes), [Some(3), Some(3)]);
        let [first, second] = &processes.bpf_functions[..] else { panic!("{processes:?}") };
        assert_eq!((first.addr.0, first.bytes.len(), second.bytes.len()), (ADDRS[0], 16, 8));
        let names = [first, second].map(|function| function.source_name().unwrap().to_vec());
        assert_eq!(names, [b"main_of_it".to_vec(), b"helper".to_vec()]);
        let line = |offset| {
            let line = first.line_at(offset).unwrap();
            (line.line, first.text(line.file).to_vec(), first.text(line.text).to_vec())
        };
        assert_eq!(line(8), (7, b"/src/prog.bpf.c".to_vec(), b" x++;".to_vec()));
        assert_eq!(line(9), (8, b"/src/prog.bpf.c".to_vec(), b"\treturn 7;".to_vec()));
        assert_eq!(second.line_at(0).map(|line| line.line), Some(12));
    }
}

/// Two programs use the same address one after the other. The second has a lower ID and comes first in the file.
#[test]
fn the_times_of_symbols_decide_whose_code_is_at_an_address() {
    let mut pipe = Pipe::new(Endian::Little);
    let second = Program { id: 2, tag: 0x33, fill: 0xc3, ..first_program() };
    pipe.feature(25, &prog_info(&[second, first_program()], Endian::Little));
    let mut life = |from: u64, id, tag: u8| {
        let name = format!("bpf_prog_{}", format!("{tag:02x}").repeat(8));
        pipe.ksymbol(from, ADDRS[0], false, name.as_bytes());
        pipe.event(from + 1, id, tag, false);
        pipe.ksymbol(from + 8, ADDRS[0], true, name.as_bytes());
        pipe.event(from + 9, id, tag, true);
    };
    life(30, 2, 0x33);
    life(10, 3, 0x11);
    // This program was gone before perf could ask for it.
    life(20, 4, 0x11);
    let (processes, _) = pipe.survey();
    assert_eq!(programs_of_symbols(&processes), [Some(3), None, None, None, Some(2), None]);
    let loaded = processes.kernel_symbols[4].bpf.and_then(|id| processes.bpf_loaded(id));
    assert_eq!(loaded.map(|time| time.0), Some(30));
}

#[test]
fn programs_that_were_there_before_are_reported_at_time_0_and_may_be_reported_twice() {
    let mut pipe = Pipe::new(Endian::Little);
    pipe.feature(25, &prog_info(&[first_program()], Endian::Little));
    for time in [0, 40] {
        pipe.ksymbol(time, ADDRS[0], false, b"bpf_prog_1111111111111111_main_of_it");
        pipe.event(time, 3, 0x11, false);
    }
    let (processes, _) = pipe.survey();
    assert_eq!(programs_of_symbols(&processes), [Some(3), Some(3)]);
}

#[test]
fn without_events_the_hash_in_the_name_decides_and_a_trampoline_has_none() {
    let mut pipe = Pipe::new(Endian::Little);
    pipe.feature(25, &prog_info(&[first_program()], Endian::Little));
    pipe.ksymbol(1, ADDRS[0], false, b"bpf_prog_1111111111111111_main_of_it");
    pipe.ksymbol(2, ADDRS[1], false, b"bpf_prog_1212121212121212_helper");
    pipe.ksymbol(3, ADDRS[1], false, b"bpf_prog_5555555555555555_other");
    pipe.ksymbol(4, ADDRS[0], false, b"bpf_trampoline_6442");
    // perf itself names the first function like this.
    pipe.ksymbol(5, ADDRS[0], false, b"bpf_prog_7575757575757575_main_of_it");
    let (processes, _) = pipe.survey();
    assert_eq!(programs_of_symbols(&processes), [Some(3), Some(3), None, None, Some(3)]);
}

/// A different program with the same ID has a different hash.
#[test]
fn a_number_that_was_given_again_is_another_program() {
    let mut pipe = Pipe::new(Endian::Little);
    pipe.feature(25, &prog_info(&[first_program()], Endian::Little));
    pipe.ksymbol(1, ADDRS[0], false, b"bpf_prog_7777777777777777_main_of_it");
    pipe.event(2, 3, 0x77, false);
    let (processes, _) = pipe.survey();
    assert_eq!(programs_of_symbols(&processes), [None]);
}

fn two_programs() -> Vec<u8> {
    let second = Program { id: 4, tag: 0x22, btf: 9, addrs: [ADDRS[0] + 64, ADDRS[1] + 64], fill: 0xcc };
    prog_info(&[first_program(), second], Endian::Little)
}

/// Surveys a recording that has these feature sections.
fn survey_of(programs: &[u8], types: &[u8]) -> (Processes, Vec<String>) {
    let mut pipe = Pipe::new(Endian::Little);
    pipe.feature(25, programs);
    pipe.feature(26, types);
    pipe.survey()
}

#[test]
fn a_cut_section_is_read_up_to_the_cut_and_the_rest_is_one_warning() {
    let (programs, types) = (two_programs(), btf(9, Endian::Little));
    let one = 4 + first_program().info(Endian::Little).len();
    for len in 1..programs.len() {
        let (processes, warnings) = survey_of(&programs[..len], &types);
        let whole = if len < one { 0 } else { 2 };
        assert_eq!((processes.bpf_functions.len(), warnings.len()), (whole, 1), "{len}: {warnings:?}");
    }
    for len in 1..types.len() {
        let (processes, warnings) = survey_of(&programs, &types[..len]);
        assert_eq!((processes.bpf_functions.len(), warnings.len()), (4, 1), "{len}: {warnings:?}");
        assert!(processes.bpf_functions.iter().all(|function| function.bytes.len() >= 8));
    }
}

#[test]
fn a_changed_byte_distorts_no_more_than_what_it_states() {
    let (programs, types) = (two_programs(), btf(9, Endian::Little));
    for (at, flip) in (0..programs.len()).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
        let mut bytes = programs.clone();
        bytes[at] ^= flip;
        let (processes, warnings) = survey_of(&bytes, &types);
        assert!(warnings.len() <= 1, "{at}: {warnings:?}");
        let entries: usize = processes.bpf_functions.iter().map(|function| function.lines.len()).sum();
        let code: usize = processes.bpf_functions.iter().map(|function| function.bytes.len()).sum();
        assert!(entries <= 6 && code <= 2 * programs.len(), "{at}: {entries} lines, {code} bytes");
    }
    for (at, flip) in (0..types.len()).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
        let mut bytes = types.clone();
        bytes[at] ^= flip;
        let (processes, warnings) = survey_of(&programs, &bytes);
        assert_eq!(processes.bpf_functions.len(), 4);
        assert!(warnings.len() <= 1, "{at}: {warnings:?}");
    }
}

#[test]
fn counts_that_no_file_can_hold_take_no_memory() {
    let mut programs = two_programs();
    programs[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    // The length of the second array of the first program.
    programs[20 + 104..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let (processes, warnings) = survey_of(&programs, &btf(9, Endian::Little));
    assert_eq!(processes.bpf_functions.len(), 2);
    assert!(
        warnings[0].starts_with("2 BPF tables skipped; the first one: jited_ksyms needs 34359738360 bytes"),
        "{warnings:?}"
    );
}
