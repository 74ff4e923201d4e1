//! Tests with a fake `/proc`: a recorded process in a container that is still running, or another process that reused
//! its ID.

use super::*;
use crate::bytes::cursor::Endian;
use crate::error::Warnings;
use crate::formats::elf_image::{Addressing, ImageBuilder, Target};
use crate::jit::{Found, Sampled, SourceOptions, find_at};
use crate::model::about::TimeExtent;
use crate::model::code::{Code, OriginId};
use crate::model::process::{Clock, FileId, Marker};
use crate::model::{Nanos, Tid};
use crate::parallel::Pool;
use std::fs;
use std::os::unix::fs::symlink;

const PID: Pid = Pid(4_000_077);
const AT: u64 = 0x7000_0000;
const BOOT: u64 = 1_700_000_000;
/// Time of the first sample on the recording's clock, which was 0 when the machine booted.
const FIRST: u64 = 1_000_000_000_000;

struct Fake {
    dir: tempfile::TempDir,
    processes: Processes,
}

/// A process that began 900 s after the boot and was sampled 100 s later.
fn fake() -> Fake {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join(PID.to_string());
    for directory in ["self/ns", "sys/kernel"] {
        fs::create_dir_all(dir.path().join(directory)).unwrap();
    }
    fs::create_dir_all(own.join("root/tmp")).unwrap();
    fs::create_dir_all(own.join("ns")).unwrap();
    symlink("mnt:[1]", dir.path().join("self/ns/mnt")).unwrap();
    symlink("mnt:[2]", own.join("ns/mnt")).unwrap();
    let rate = rustix::param::clock_ticks_per_second();
    let fields = vec!["0"; 18].join(" ");
    fs::write(own.join("stat"), format!("{PID} (a) b) S {fields} {} 0\n", 900 * rate)).unwrap();
    fs::write(dir.path().join("stat"), format!("cpu 1 2\nbtime {BOOT}\n")).unwrap();
    fs::write(dir.path().join("sys/kernel/hostname"), "here\n").unwrap();
    let uid = rustix::process::geteuid().as_raw();
    fs::write(own.join("status"), format!("Name:\ta\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{PID}\t1\n")).unwrap();
    fs::write(
        own.join("maps"),
        "00400000-00500000 r-xp 00000000 08:01 1234 /bin/a program\n70000000-70010000 rwxp 0 00:00 0\n",
    )
    .unwrap();
    let mapping = |addr, path: &str, file| Mapping {
        time: Nanos(0),
        addr: Addr(addr),
        len: 0x1_0000,
        pgoff: 0,
        path: path.into(),
        build_id: None,
        file,
        executable: true,
        cpumode: CpuMode::User,
        offset: 0,
    };
    let file = Some(FileId { major: 8, minor: 1, inode: 1234 });
    let mappings = vec![mapping(0x40_0000, "/bin/a program", file), mapping(AT, "//anon", None)];
    let process = Process { mappings, has_jit_memory: true, ..Process::default() };
    let clock = Clock { clockid: Some(1), reference: Some((Nanos(BOOT * 1_000_000_000), Nanos(0))), tsc: None };
    let processes = Processes { by_pid: [(PID, process)].into(), clock, is_recording: true, ..Processes::default() };
    Fake { dir, processes }
}

impl Fake {
    fn inside(&self, path: &str) -> PathBuf {
        self.dir.path().join(format!("{PID}/root/{path}"))
    }

    fn with_map(self) -> Self {
        fs::write(self.inside("tmp/perf-1.map"), format!("{AT:x} 40 inside\n")).unwrap();
        self
    }

    /// Makes the process's JIT memory shareable, with this inode.
    fn sharing(mut self, inode: u64) -> Self {
        let process = self.processes.by_pid.get_mut(&PID).unwrap();
        process.mappings[1].path = b"/dev/zero (deleted)".to_vec();
        process.mappings[1].file = Some(FileId { major: 0, minor: 1, inode });
        self
    }

    /// Adds a parent process that has mapped memory with this inode.
    fn with_parent(self, parent: Pid, inode: u64) -> Self {
        let own = self.dir.path().join(parent.to_string());
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("status"), format!("Name:\tserver\nPPid:\t1\nNSpid:\t{parent}\t5\n")).unwrap();
        let maps =
            format!("00400000-00500000 r-xp 0 08:01 1234 /bin/a\n70000000-70010000 rwxs 0 00:01 {inode} /dev/zero\n");
        fs::write(own.join("maps"), maps).unwrap();
        let status = self.dir.path().join(format!("{PID}/status"));
        let said = fs::read_to_string(&status).unwrap();
        fs::write(status, format!("{said}PPid:\t{parent}\n")).unwrap();
        self
    }

    fn found(&self) -> Found {
        let times = Some(TimeExtent::from_moment(Nanos(FIRST)));
        let samples = || Sampled { times, ..Sampled::default() };
        let (proc, host) = (Some(self.dir.path()), Some(&b"here"[..]));
        let site = Site { proc, host, samples: Some(&samples), ..Site::default() };
        find_at(&self.processes, &SourceOptions::default(), &site, &mut Warnings::new())
    }

    /// The name of the code, and the remarks about sources.
    fn named(&self) -> (Option<String>, Vec<String>) {
        self.named_in(PID)
    }

    fn named_in(&self, pid: Pid) -> (Option<String>, Vec<String>) {
        let (found, pool) = (self.found(), Pool::new(None).unwrap());
        let loaded = found.load(&self.processes, &pool, &mut Warnings::new());
        let hit = loaded.map.lookup(pid, Addr(AT + 2), None);
        let name = hit.map(|hit| String::from_utf8_lossy(loaded.map.code(hit.code).name).into_owned());
        (name, loaded.remarks().collect())
    }
}

#[test]
fn files_below_the_root_of_a_running_process_are_used_and_reported() {
    let fake = fake().with_map();
    let (name, said) = fake.named();
    assert_eq!(name.as_deref(), Some("inside"));
    assert!(said.len() == 1 && said[0].contains("root/tmp/perf-1.map: used for process"), "{said:?}");
}

#[test]
fn a_worker_whose_memory_is_its_servers_is_named_by_the_servers_map() {
    for (inode, expected) in [(330_509, Some("of the server")), (330_510, None)] {
        let fake = fake().sharing(330_509).with_parent(Pid(4_000_070), inode);
        fs::write(fake.inside("tmp/perf-5.map"), format!("{AT:x} 40 of the server\n")).unwrap();
        let (name, said) = fake.named();
        assert_eq!(name.as_deref(), expected, "{inode}");
        let is_said = said.iter().any(|said| said.ends_with("shares its JIT memory with its parent, process 5"));
        assert_eq!(is_said, expected.is_some(), "{said:?}");
    }
}

#[test]
fn a_worker_that_has_the_memory_of_another_recorded_process_is_named_by_its_map() {
    let worker = Pid(PID.0 + 1);
    for (inode, expected) in [(330_509, Some("inside")), (330_510, None)] {
        let mut fake = fake().with_map().sharing(inode);
        let copy = fake.processes.by_pid[&PID].clone();
        fake.processes.by_pid.insert(worker, copy);
        fake = fake.sharing(330_509);
        assert_eq!(fake.named().0.as_deref(), Some("inside"));
        assert_eq!(fake.named_in(worker).0.as_deref(), expected, "{inode}");
    }
}

#[test]
fn dumps_are_looked_for_where_the_marker_states_below_the_root() {
    let mut fake = fake();
    let path = PathBuf::from("/tmp/jit-1.dump");
    fake.processes.markers.push(Marker {
        pid: PID,
        tid: Tid(1),
        path,
        time: Nanos(0),
        addr: Addr(0),
        file: None,
        offset: 0,
    });
    let mut dump: Vec<u8> = Vec::new();
    for word in [0x4A69_5444u32, 1, 40, 62, 0, 1, 0, 0, 0, 0] {
        dump.extend(word.to_le_bytes());
    }
    let record = [0u32.to_le_bytes(), 64u32.to_le_bytes()].concat();
    dump.extend(record);
    dump.extend([9u64, 1 | 1 << 32, 0, AT, 4, 0].map(u64::to_le_bytes).concat());
    dump.extend(*b"f\0\0\0code");
    fs::write(fake.inside("tmp/jit-1.dump"), dump).unwrap();
    assert_eq!(fake.named().0.as_deref(), Some("f"));
}

#[test]
fn another_process_of_that_number_is_not_asked_and_that_is_reported() {
    type Change = fn(&mut Fake);
    let changes: [(&str, Change); 5] = [
        ("another file is mapped there", |fake| {
            let file = Some(FileId { major: 8, minor: 1, inode: 999 });
            fake.processes.by_pid.get_mut(&PID).unwrap().mappings[0].file = file;
        }),
        ("nothing is mapped there", |fake| {
            fs::write(fake.dir.path().join(format!("{PID}/maps")), "").unwrap();
        }),
        ("it began after the first sample", |fake| {
            let reference = (Nanos((BOOT - 200) * 1_000_000_000), Nanos(0));
            fake.processes.clock.reference = Some(reference);
        }),
        ("it was forked at another time", |fake| {
            fake.processes.by_pid.get_mut(&PID).unwrap().forked = Some((Pid(1), Nanos(FIRST)));
        }),
        ("nobody knows when it was recorded", |fake| fake.processes.clock.reference = None),
    ];
    for (why, change) in changes {
        let mut fake = fake().with_map();
        change(&mut fake);
        let (name, said) = fake.named();
        assert_eq!(name, None, "{why}");
        assert!(said.len() == 1 && said[0].starts_with("not matched: /proc/"), "{why}: {said:?}");
    }
}

#[test]
fn a_process_that_has_ended_and_that_nobody_has_waited_for_is_not_asked() {
    let fake = fake().with_map();
    let own = fake.dir.path().join(PID.to_string());
    fs::write(own.join("maps"), "").unwrap();
    fs::remove_file(own.join("ns/mnt")).unwrap();
    fs::write(own.join("status"), "Name:\ta\nState:\tZ (zombie)\nUid:\t0\t0\t0\t0\n").unwrap();
    assert_eq!(fake.named(), (None, Vec::new()));
}

#[test]
fn recordings_of_other_machines_have_nothing_running_here() {
    let fake = fake().with_map();
    fs::write(fake.dir.path().join("sys/kernel/hostname"), "elsewhere\n").unwrap();
    assert_eq!(fake.named(), (None, Vec::new()));
}

#[test]
fn no_link_leads_out_of_the_root() {
    // The file itself is a symbolic link.
    let one = fake();
    fs::write(one.inside("tmp/target"), format!("{AT:x} 40 led astray\n")).unwrap();
    symlink("target", one.inside("tmp/perf-1.map")).unwrap();
    assert_eq!(one.named().0, None);
    // A directory is a symbolic link that leads out of the root.
    for target in ["../../outside", "/outside"] {
        let one = fake();
        let outside = one.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("perf-1.map"), format!("{AT:x} 40 outside\n")).unwrap();
        fs::remove_dir(one.inside("tmp")).unwrap();
        let target = if target == "/outside" { outside.clone() } else { PathBuf::from(target) };
        symlink(target, one.inside("tmp")).unwrap();
        assert!(fs::metadata(one.inside("tmp/perf-1.map")).is_ok(), "the link leads out for who follows it");
        assert_eq!(one.named().0, None);
    }
}

#[test]
fn the_processs_own_user_may_own_the_file_and_nobody_else() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give files away. Without root, use a link to somebody else's file, which must not be trusted.
        let fake = fake();
        symlink("/etc/passwd", fake.inside("tmp/perf-1.map")).unwrap();
        assert_eq!(fake.named().0, None);
        return;
    }
    for (owner, expected) in [(100_000, Some("inside")), (100_001, None)] {
        let fake = fake().with_map();
        let status = fake.dir.path().join(format!("{PID}/status"));
        fs::write(status, "Uid:\t100000\t100000\t100000\t100000\nNSpid:\t77\t1\n").unwrap();
        std::os::unix::fs::chown(fake.inside("tmp/perf-1.map"), Some(owner), None).unwrap();
        assert_eq!(fake.named().0.as_deref(), expected, "{owner}");
    }
}

#[test]
fn build_ids_of_mapping_records_name_the_mapped_files() {
    let code = Code::new(b"answer", Addr(0x7000), &[0xc3], OriginId(0));
    let mut builder = ImageBuilder::new(Target::new(62, Endian::Little), Addressing::FileOffset);
    builder.add(&code, code.addr);
    let mut elf = std::io::Cursor::new(Vec::new());
    let own = builder.build().write(&mut elf).unwrap().build_id;
    for (recorded, expected) in [(own, Some("inside")), (BuildId::new(&[7; 20]).unwrap(), None)] {
        let mut fake = fake().with_map();
        fs::create_dir(fake.inside("bin")).unwrap();
        fs::write(fake.inside("bin/a program"), elf.get_ref()).unwrap();
        let mapping = &mut fake.processes.by_pid.get_mut(&PID).unwrap().mappings[0];
        (mapping.file, mapping.build_id) = (None, Some(recorded));
        assert_eq!(fake.named().0.as_deref(), expected);
    }
}
