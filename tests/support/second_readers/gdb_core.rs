//! A second reader of the core dump in `fixtures/recording-gdb-jit`. It shares no code with `src/`: the address of
//! GDB's JIT descriptor is fixed, and nm and addr2line read the objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const CORE: &str = "core.24209";

/// The address of GDB's JIT descriptor, from `nm register`.
pub(crate) const DESCRIPTOR: u64 = 0x4a_60d0;

pub(crate) fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-gdb-jit").join(format!("{name}.zst"));
    zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap()
}

pub(crate) fn output(program: &str, arguments: &[&str], dir: &Path) -> Output {
    let output = Command::new(program).args(arguments).current_dir(dir).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

pub(crate) fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    String::from_utf8_lossy(&output(program, arguments, dir).stdout).into_owned()
}

/// The bytes of the core dump.
pub(crate) struct Core(pub(crate) Vec<u8>);

impl Core {
    pub(crate) fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    /// The file offset of the byte at an address.
    pub(crate) fn offset(&self, addr: u64) -> usize {
        let headers = (0..usize::from(self.0[56])).map(|header| 64 + header * 56);
        let mut loads = headers.filter(|header| self.0[*header] == 1);
        let load = loads.find(|header| addr.wrapping_sub(self.word(header + 16)) < self.word(header + 32));
        let load = load.unwrap_or_else(|| panic!("{addr:#x} is not in the core"));
        (addr - self.word(load + 16) + self.word(load + 8)) as usize
    }

    /// The registered object files, newest first.
    pub(crate) fn objects(&self) -> Vec<Vec<u8>> {
        let mut objects = Vec::new();
        let mut entry = self.word(self.offset(DESCRIPTOR) + 16);
        while entry != 0 {
            let at = self.offset(entry);
            let (start, size) = (self.offset(self.word(at + 16)), self.word(at + 24) as usize);
            objects.push(self.0[start..start + size].to_vec());
            entry = self.word(at);
        }
        objects
    }
}

/// A function as nm lists it, and the object file that it is from.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
    pub(crate) object: PathBuf,
}

pub(crate) fn functions(dir: &Path) -> Vec<Function> {
    let mut functions = Vec::new();
    for (number, bytes) in Core(unpacked(CORE)).objects().into_iter().enumerate() {
        let object = dir.join(format!("{number}.o"));
        fs::write(&object, bytes).unwrap();
        let symbols = run("nm", &["-S", object.to_str().unwrap()], dir);
        for line in symbols.lines() {
            let [addr, size, "T" | "t", name] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            functions.push(Function {
                addr: hex(addr),
                size: hex(size),
                name: name.to_owned(),
                object: object.clone(),
            });
        }
    }
    functions
}

/// The calls at an address according to addr2line, innermost first, as `function file:line`.
pub(crate) fn by_addr2line(function: &Function, addr: u64, dir: &Path) -> Vec<String> {
    let object = function.object.to_str().unwrap();
    let lines = run("addr2line", &["-f", "-i", "-e", object, &format!("{addr:#x}")], dir);
    let lines: Vec<&str> = lines.lines().map(|line| line.split(" (discriminator").next().unwrap()).collect();
    lines.chunks(2).map(|call| call.join(" ")).collect()
}
