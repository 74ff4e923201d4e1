//! `pack`, and archives as inputs.

use super::{Elsewhere, FIXTURES, jitgraft, printed, said};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Every command that reads recordings, with its output on standard output.
const READERS: &[&str] = &[
    "collapse",
    "report",
    "report --sort sym --limit 5",
    "script",
    "flamegraph",
    "export --to speedscope",
    "export --to pprof",
    "annotate",
    "doctor --format csv",
];

/// The output of a command for an input, with the input's name left out.
fn output_of(dir: &Path, command: &str, options: &str, input: &str) -> Vec<u8> {
    let output = jitgraft(dir, &format!("{command} {options} {input}"));
    assert!(output.status.success(), "{command} {input}: {}", said(&output));
    // A remedy may contain the usual name.
    String::from_utf8_lossy(&output.stdout).replace(input, "INPUT").replace("perf.data", "INPUT").into_bytes()
}

#[test]
fn every_command_reads_an_archive_like_the_recording_on_its_machine() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    let packed = jitgraft(elsewhere.path(), "pack --symfs root perf.data -o away.tar.zst");
    assert!(packed.status.success(), "{}", said(&packed));
    let mode = fs::metadata(elsewhere.at("away.tar.zst")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let far = tempfile::tempdir().unwrap();
    fs::copy(elsewhere.at("away.tar.zst"), far.path().join("away.tar.zst")).unwrap();
    for command in READERS {
        let there = output_of(elsewhere.path(), command, "--symfs root", "perf.data");
        assert!(there.len() > 100, "{command}");
        let here = output_of(far.path(), command, "", "away.tar.zst");
        assert!(there == here, "{command}: {}", String::from_utf8_lossy(&here));
    }
    let without = output_of(elsewhere.path(), "collapse", "", "perf.data");
    assert_ne!(
        without,
        output_of(far.path(), "collapse", "", "away.tar.zst"),
        "the program's names come from the archive"
    );
    printed(far.path(), "inject --convert-callchain away.tar.zst -o plain.data");
    printed(elsewhere.path(), "inject --convert-callchain --symfs root perf.data -o plain.data");
    let [here, there] = [far.path(), elsewhere.path()].map(|dir| fs::read(dir.join("plain.data")).unwrap());
    assert!(here == there);
}

#[test]
fn names_of_jit_code_are_packed() {
    let dir = tempfile::tempdir().unwrap();
    // What others may not read is not packed.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let fixture = Path::new(FIXTURES).join("tiers-recording");
    super::unpack("tiers-recording/perf.data", &dir.path().join("perf.data"));
    fs::copy(fixture.join("jit-11463.dump"), dir.path().join("jit-11463.dump")).unwrap();
    let beside = printed(dir.path(), "collapse perf.data");
    let list = printed(dir.path(), "pack --list perf.data");
    assert!(list.contains("  data  (perf.data)") && list.contains("  jit-11463.dump  (jit-11463.dump)"), "{list}");
    assert!(!dir.path().join("perf.data.tar.zst").exists(), "--list writes nothing");
    printed(dir.path(), "pack perf.data");
    let far = tempfile::tempdir().unwrap();
    fs::rename(dir.path().join("perf.data.tar.zst"), far.path().join("away.tar.zst")).unwrap();
    assert_eq!(printed(far.path(), "collapse away.tar.zst"), beside);
    // Once more, packed from the archive, and through a pipe.
    printed(far.path(), "pack away.tar.zst -o again.tar.zst");
    let [first, again] = ["away", "again"].map(|name| fs::read(far.path().join(format!("{name}.tar.zst"))).unwrap());
    assert!(first == again, "the same files make the same archive");
    let mut piped = std::process::Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let file = fs::File::open(far.path().join("away.tar.zst")).unwrap();
    let output = piped.args(["collapse", "-"]).stdin(file).env("HOME", "/nonexistent").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), beside, "{}", String::from_utf8_lossy(&output.stderr));
    let said = printed(far.path(), "inject away.tar.zst -o jit.data --image-dir images");
    assert!(said.is_empty());
    assert_eq!(fs::read_dir(far.path().join("images")).unwrap().count(), 1);
}

#[test]
fn symbols_and_unwinding_are_enough() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    printed(elsewhere.path(), "pack --symfs root perf.data -o whole.tar.zst");
    printed(elsewhere.path(), "pack --symfs root --symbols-only perf.data -o some.tar.zst");
    assert_eq!(printed(elsewhere.path(), "script whole.tar.zst"), printed(elsewhere.path(), "script some.tar.zst"));
    let listed = String::from_utf8(jitgraft(elsewhere.path(), "annotate some.tar.zst").stdout).unwrap();
    assert!(!listed.contains("udf"), "no instruction is made of what was left out: {listed}");
    let program = fs::read(elsewhere.at("root/programs/deep-nofp")).unwrap();
    let archive = zstd::decode_all(&fs::read(elsewhere.at("some.tar.zst")).unwrap()[..]).unwrap();
    let object = object::File::parse(&program[..]).unwrap();
    use object::{Object, ObjectSection};
    let text = object.section_by_name(".text").unwrap().data().unwrap();
    assert!(memchr::memmem::find(&archive, &text[..64]).is_none(), "code is left out");
}

#[test]
fn a_missing_file_is_counted_and_fails_strict_runs() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    std::fs::create_dir(elsewhere.path().join("empty")).unwrap();
    let output = jitgraft(elsewhere.path(), "pack --strict --symfs empty perf.data");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("/programs/deep-nofp: not packed, because the version that ran is missing ("), "{said}");
}

#[test]
fn other_profiles_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    // What others may not read is not packed.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(dir.path().join("stacks.folded"), "a;b 1\n").unwrap();
    let output = jitgraft(dir.path(), "pack stacks.folded");
    assert!(said(&output).contains("pack reads perf.data"), "{}", said(&output));
}

/// A tar file with the mark, a manifest, and what `more` adds.
fn archive(manifest: &str, more: impl Fn(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    add(&mut tar, "jitgraft-pack", b"");
    add(&mut tar, "manifest.json", manifest.as_bytes());
    more(&mut tar);
    zstd::encode_all(&tar.into_inner().unwrap()[..], 1).unwrap()
}

fn add(tar: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    // Names that tar itself refuses, too.
    let field = &mut header.as_old_mut().name;
    field[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    tar.append(&header, bytes).unwrap();
}

fn add_special(tar: &mut tar::Builder<Vec<u8>>, name: &str, kind: tar::EntryType, size: u64) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path(name).unwrap();
    header.set_link_name("/etc/passwd").unwrap();
    header.set_size(size);
    header.set_cksum();
    tar.append(&header, &vec![b'a'; size as usize][..]).unwrap();
}

fn manifest(path: &str, size: u64) -> String {
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    format!(
        "{{\"version\": 1, \"machine\": null, \"host\": null, \"files\": [{{\"path\": \"{path}\", \"role\": \"recording\", \
         \"modified\": [0, 0], \"size\": {size}, \"sha256\": \"{hash}\"}}]}}"
    )
}

#[test]
fn hostile_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    // What others may not read is not packed.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let cases = [
        ("above", archive(&manifest("../data", 0), |tar| add(tar, "../data", b"")), "which is outside the archive"),
        ("root", archive(&manifest("/data", 0), |tar| add(tar, "/data", b"")), "which is outside the archive"),
        (
            "unlisted",
            archive(&manifest("data", 0), |tar| add(tar, "../../data", b"")),
            "which its manifest does not list",
        ),
        ("twice", archive(&manifest("data", 0), |tar| (0..2).for_each(|_| add(tar, "data", b""))), "does not list"),
        ("larger", archive(&manifest("data", 0), |tar| add(tar, "data", b"more")), "does not match the manifest"),
        ("huge", archive(&manifest("data", 65 << 30), |_| {}), "the limits are 100000 files and 64 GiB"),
        ("cut", archive(&manifest("data", 0), |_| {}), "data is missing"),
        (
            "link",
            archive(&manifest("data", 0), |tar| add_special(tar, "data", tar::EntryType::Symlink, 0)),
            "is a link",
        ),
        ("hard", archive(&manifest("data", 0), |tar| add_special(tar, "data", tar::EntryType::Link, 0)), "is a link"),
        (
            "device",
            archive(&manifest("data", 0), |tar| add_special(tar, "data", tar::EntryType::Char, 0)),
            "is a device",
        ),
        ("pipe", archive(&manifest("data", 0), |tar| add_special(tar, "data", tar::EntryType::Fifo, 0)), "is a pipe"),
        (
            "pax",
            archive(&manifest("data", 0), |tar| add_special(tar, "x", tar::EntryType::XHeader, 9)),
            "a special tar entry",
        ),
        (
            "name",
            archive(&manifest("data", 0), |tar| add_special(tar, "x", tar::EntryType::GNULongName, 9000)),
            "too long",
        ),
        ("empty", archive(&manifest("data", 0), |tar| add(tar, "data", b"")), "is empty"),
        ("no-list", archive("[]", |_| {}), "manifest.json is damaged"),
    ];
    for (name, bytes, expected) in cases {
        let file = format!("{name}.tar.zst");
        fs::write(dir.path().join(&file), bytes).unwrap();
        let output = jitgraft(dir.path(), &format!("collapse {file}"));
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = said(&output);
        assert!(said.contains(&file) && said.contains(expected), "{name}: {said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 15, "nothing is unpacked there");
}

#[test]
fn a_cut_archive_is_an_error_and_any_byte_may_be_wrong() {
    let elsewhere = Elsewhere::new("aarch64", "deep-fp", "g");
    printed(elsewhere.path(), "pack --symfs root --symbols-only perf.data -o whole.tar.zst");
    let whole = fs::read(elsewhere.at("whole.tar.zst")).unwrap();
    let right = printed(elsewhere.path(), "collapse whole.tar.zst");
    for step in 1..20 {
        let at = whole.len() * step / 20;
        let mut wrong = whole.clone();
        wrong[at] ^= 1 << (step % 8);
        for (bytes, what) in [(&whole[..at], "cut"), (&wrong[..], "changed")] {
            fs::File::create(elsewhere.at("bad.tar.zst")).unwrap().write_all(bytes).unwrap();
            let output = jitgraft(elsewhere.path(), "collapse bad.tar.zst");
            let is_right = what == "changed" && output.stdout == right.as_bytes();
            assert!(output.status.code() == Some(1) || is_right, "{what} at {at}: {}", said(&output));
        }
    }
}

#[test]
fn the_files_in_a_strangers_archive_are_used_only_if_the_user_reports_it() {
    if !rustix::process::geteuid().is_root() {
        return; // Nobody else can give a file away.
    }
    let dir = tempfile::tempdir().unwrap();
    // What others may not read is not packed.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    super::unpack("tiers-recording/perf.data", &dir.path().join("perf.data"));
    fs::copy(Path::new(FIXTURES).join("tiers-recording/jit-11463.dump"), dir.path().join("jit-11463.dump")).unwrap();
    printed(dir.path(), "pack perf.data -o a.tar.zst");
    fs::remove_file(dir.path().join("jit-11463.dump")).unwrap();
    let own = printed(dir.path(), "collapse a.tar.zst");
    std::os::unix::fs::chown(dir.path().join("a.tar.zst"), Some(4711), None).unwrap();
    assert_eq!(fs::metadata(dir.path().join("a.tar.zst")).unwrap().uid(), 4711);
    let output = jitgraft(dir.path(), "collapse a.tar.zst");
    assert!(said(&output).contains("belongs to user 4711"), "{}", said(&output));
    assert_ne!(String::from_utf8(output.stdout).unwrap(), own);
    assert_eq!(printed(dir.path(), "collapse -f a.tar.zst"), own);
}
