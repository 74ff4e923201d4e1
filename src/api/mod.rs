//! The public library: plain types around the crate's internal modules, for profilers, agents and symbolizers.
//!
//! | file | contents |
//! |---|---|
//! | `profile` | a profile, its events, samples and frames; building one |
//! | `load` | reading a profile from a file or from bytes, whole or sample by sample |
//! | `formats` | writing a profile, and the table of formats with those of the caller |
//! | `flame_graph` | drawing a profile |
//! | `code_map` | JIT code by process, address and time, independent of the files it was read from |
//! | `naming` | adding names to the bytes of a profile that has addresses only |
//!
//! Nothing here installs a signal handler or a panic hook, ends the process, or prints. Options have builders, and
//! structs that will grow are `#[non_exhaustive]`. Types of the internal modules are only passed on if they are plain
//! data.

mod code_map;
mod flame_graph;
mod formats;
mod load;
mod naming;
mod profile;
mod stored_lines;

pub use code_map::{CodeHit, CodeMap, CodeMapBuilder, JitFunction};
pub use flame_graph::FlameGraph;
pub use formats::{Format, FormatInfo, Formats};
pub use load::{LoadOptions, for_each_sample, load, load_bytes};
pub use naming::{NamedFile, add_names};
pub use profile::{Event, Frame, Frames, Profile, ProfileBuilder, Sample};

#[cfg(test)]
mod tests {
    use crate::test_writers::bytes::Order;
    use crate::test_writers::jitdump::{JitDump, Line, Load};
    use crate::test_writers::perf_data::{CONTEXT_USER, CPU, Event, Mmap, Mode, PerfData, Stamp, USER, USUAL};
    use std::path::Path;

    const PID: u32 = 77;

    /// Compares a file of the examples with what it should be. With `JITGRAFT_WRITE_EXAMPLES`, writes it.
    fn check(name: &str, bytes: &[u8]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/examples").join(name);
        if std::env::var_os("JITGRAFT_WRITE_EXAMPLES").is_some() {
            std::fs::write(&path, bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{}", path.display());
    }

    /// The files that the examples in the documentation read: three samples of a process with JIT code, of which two
    /// functions are at the same address one after the other.
    #[test]
    fn the_examples_are_what_the_writers_make() {
        let mut dump = JitDump::new(PID);
        let code = &[0x90; 0x40];
        let mut load = |time, addr, index, name: &str, line, file: &str| {
            dump.debug_info(time, addr, &[Line { addr, line, discriminator: 0, file: file.as_bytes() }]);
            dump.load(time, Load { tid: PID, addr, index, name: name.as_bytes(), code });
        };
        load(90, 0x1_0100, 0, "main", 3, "main.js");
        load(100, 0x1_0000, 1, "first", 12, "first.js");
        load(200, 0x1_0000, 2, "second", 5, "second.js");
        check("jit-77.dump", &dump.into_bytes());

        let stamp = |time| Stamp { cpu: 1, ..Stamp::new(PID, time) };
        let mut data = PerfData::new(Order::Little, Event { sample_type: USUAL | CPU, ..Event::usual() });
        data.comm(stamp(1), "program", true);
        data.mmap2(stamp(2), Mmap { addr: 0x1_0000, len: 0x1_0000, pgoff: 0, path: "//anon" });
        data.mmap2(stamp(3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: "/tmp/jit-77.dump" });
        for time in [150, 250, 260] {
            data.sample_of(0, USER, stamp(time), 0x1_0010, &[CONTEXT_USER, 0x1_0010, 0x1_0120]);
        }
        check("perf.data", &data.into_bytes(Mode::File));
    }
}
