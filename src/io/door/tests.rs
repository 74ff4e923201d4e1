use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::PathBuf;

const NOBODY: u32 = 65534;

const ANYTHING: Kind = Kind { holes: |_| Some(Holes::Small), otherwise: "is something else" };

/// A directory that other users can read.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn read(door: Door<'_>, path: &Path) -> Option<Result<Vec<u8>, String>> {
    let opened = door.open(path, ANYTHING)?;
    Some(opened.map(|opened| opened.bytes.to_vec()).map_err(|error| error.to_string()))
}

fn text(named: Named, path: &Path) -> Option<String> {
    Some(String::from_utf8(read(named.door(false), path)?.ok()?).unwrap())
}

fn refusal(named: Named, path: &Path) -> String {
    read(named.door(false), path).unwrap().unwrap_err()
}

#[test]
fn links_are_followed_as_far_as_any_user_who_named_the_path_is_trusted() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/file"), "text").unwrap();
    symlink("real", at("linked")).unwrap();
    symlink(at("real/../linked/file"), at("last")).unwrap();
    for named in [Named::User, Named::Convention, Named::Marker, Named::Recording, Named::Part] {
        assert_eq!(text(named, &at("real/file")).as_deref(), Some("text"), "{named:?}");
        assert_eq!(text(named, &at("linked/file")).as_deref(), Some("text"), "{named:?}: as merged /usr is");
        assert_eq!(text(named, &at("real/./../linked/../real/file")).as_deref(), Some("text"), "{named:?}");
        let ends_anywhere = matches!(named, Named::User | Named::Recording | Named::Part);
        assert_eq!(text(named, &at("last")).is_some(), ends_anywhere, "{named:?}");
        assert!(read(named.door(false), &at("none")).is_none());
        assert!(read(named.door(false), &at("real/file/below")).is_none());
        assert!(read(named.door(false), Path::new("")).is_none());
    }
    assert!(refusal(Named::Convention, &at("last")).contains("is a symbolic link"));
    symlink("loop", at("loop")).unwrap();
    assert!(refusal(Named::Recording, &at("loop")).contains("cannot open"));
}

#[test]
fn a_link_that_somebody_else_may_have_put_there_is_not_followed() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("secret"), "secret").unwrap();
    fs::create_dir(at("place")).unwrap();
    symlink("../secret", at("place/link")).unwrap();
    symlink("..", at("place/up")).unwrap();
    let paths = [at("place/link"), at("place/up/secret"), at("place/up/place/link")];
    let tell = || paths.iter().filter(|path| text(Named::Recording, path).is_some()).count();
    assert_eq!(tell(), 3);
    for mode in [0o1777, 0o777, 0o757, 0o1755] {
        fs::set_permissions(at("place"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(tell(), 0, "{mode:o}");
        let said = refusal(Named::Recording, &paths[1]);
        assert!(said.contains("is reached through the symbolic link") && said.contains("place/up"), "{said}");
        assert_eq!(text(Named::User, &paths[1]).as_deref(), Some("secret"), "what the user types is meant");
    }
    fs::set_permissions(at("place"), fs::Permissions::from_mode(0o755)).unwrap();
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give files away.
    }
    for name in ["place/link", "place/up"] {
        lchown(at(name), Some(NOBODY), None).unwrap();
    }
    assert_eq!(tell(), 0, "of somebody else");
    for name in ["place/link", "place/up"] {
        lchown(at(name), Some(0), None).unwrap();
    }
    chown(at("place"), Some(NOBODY), None).unwrap();
    assert_eq!(tell(), 0, "in somebody else's directory");
    chown(at("place"), Some(0), Some(NOBODY)).unwrap();
    assert_eq!(tell(), 3);
    fs::set_permissions(at("place"), fs::Permissions::from_mode(0o775)).unwrap();
    assert_eq!(tell(), 0, "in a directory that a group may write to");
}

#[test]
fn links_of_a_process_are_followed_for_users_only() {
    let dir = directory();
    fs::write(dir.path().join("file"), "text").unwrap();
    let root = PathBuf::from("/proc/self/root");
    let path = root.join(dir.path().strip_prefix("/").unwrap()).join("file");
    assert_eq!(text(Named::User, &path).as_deref(), Some("text"));
    let below = Door { start: Start::Typed(&root), ..Named::Recording.door(false) };
    assert!(read(below, &path).unwrap().is_ok(), "below a directory that the user typed");
    assert!(refusal(Named::Recording, &path).contains("not followed"));
    let exe = Path::new("/proc/self/exe");
    assert!(refusal(Named::Recording, exe).contains("not followed"), "it is this program, whoever was recorded");
}

#[test]
fn nothing_leads_out_of_the_root_of_a_process() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("root/tmp")).unwrap();
    fs::write(at("outside"), "outside").unwrap();
    fs::write(at("root/inside"), "inside").unwrap();
    symlink("/", at("root/tmp/absolute")).unwrap();
    symlink("../../../..", at("root/tmp/relative")).unwrap();
    let root = Root::open(&at("root"), 0).unwrap();
    let door = Door { named: Named::Convention, start: Start::Inside(&root), force: false };
    for way in ["", "/", "..", "tmp/absolute", "tmp/relative", "/../tmp/relative/.."] {
        let named = |name: &str| read(door, &Path::new(way).join(name));
        assert_eq!(named("inside"), Some(Ok(b"inside".to_vec())), "{way}");
        assert_eq!(named("outside"), None, "{way}");
    }
}

#[test]
fn only_regular_files_are_opened() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .unwrap();
    for special in [&at("pipe"), Path::new("/dev/zero"), Path::new("/dev/tty"), dir.path()] {
        for named in [Named::User, Named::Convention, Named::Marker, Named::Recording, Named::Part] {
            assert!(refusal(named, special).contains("is not a regular file"), "{named:?} {special:?}");
        }
    }
    // Opening the pipe for writing fails with ENXIO as long as nobody has opened it for reading.
    let writer = rustix::fs::open(at("pipe"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
    assert_eq!(writer.unwrap_err(), rustix::io::Errno::NXIO);
    assert_eq!(text(Named::Recording, Path::new("/proc/self/status")).as_deref(), Some(""), "it says that it is empty");
}

#[test]
fn files_of_others_need_force_and_are_copied() {
    let dir = directory();
    let path = dir.path().join("file");
    fs::write(&path, "text").unwrap();
    if chown(&path, Some(NOBODY), None).is_err() {
        return; // Only root can give files away.
    }
    for named in [Named::User, Named::Convention, Named::Recording] {
        assert!(refusal(named, &path).contains("belongs to user 65534"), "{named:?}");
        assert!(named.door(false).head(&path, 1).unwrap().is_err(), "{named:?}");
        assert_eq!(read(named.door(true), &path).unwrap().unwrap(), b"text", "{named:?}");
    }
    let copy = Named::Marker.door(false).open(&path, ANYTHING).unwrap().unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(&copy.bytes[..], b"text", "a copy, whatever its owner does to it");
    fs::write(&path, "other").unwrap();
    let other = Kind { holes: |_| None, otherwise: "is something else" };
    let refused = Named::Marker.door(false).open(&path, other).unwrap().unwrap_err();
    assert!(refused.to_string().contains("is something else"));
}

#[test]
fn a_large_hole_is_not_read() {
    let dir = directory();
    let path = dir.path().join("file");
    fs::write(&path, "head").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(40 << 30).unwrap();
    assert_eq!(
        text(Named::Convention, &path).map(|text| text.trim_end_matches('\0').to_owned()).as_deref(),
        Some("head")
    );
    file.write_all_at(b"tail", (40 << 30) - 4).unwrap();
    assert!(refusal(Named::Convention, &path).contains("with a hole of"));
    assert!(refusal(Named::Recording, &path).contains("with a hole of"));
}

#[test]
fn every_directory_decides_whether_everybody_may_read_a_file() {
    let dir = directory();
    let path = dir.path().join("below/file");
    fs::create_dir(dir.path().join("below")).unwrap();
    fs::write(&path, "text").unwrap();
    for (of_directory, of_file, expected) in [
        (0o755, 0o644, true),
        (0o700, 0o644, false),
        (0o711, 0o644, true),
        (0o755, 0o640, false),
        (0o754, 0o644, false),
    ] {
        fs::set_permissions(dir.path().join("below"), fs::Permissions::from_mode(of_directory)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(of_file)).unwrap();
        let opened = Named::Recording.door(false).open(&path, ANYTHING).unwrap().unwrap();
        assert_eq!(opened.mode & 0o004 != 0, expected, "{of_directory:o} {of_file:o}");
    }
}

#[test]
fn a_directory_is_listed_by_the_names_that_are_wanted() {
    let dir = directory();
    for name in ["a.map", "b.map", "c"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    symlink("c", dir.path().join("d.map")).unwrap();
    let wanted = |name: &OsStr| name.as_encoded_bytes().ends_with(b".map");
    let mut entries = Named::Convention.door(false).entries(dir.path(), wanted);
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let entries: Vec<_> = entries.iter().map(|(name, about)| (name.to_str().unwrap(), about.is_symlink())).collect();
    assert_eq!(entries, [("a.map", false), ("b.map", false), ("d.map", true)]);
    assert!(Named::Convention.door(false).entries(Path::new("/nowhere"), wanted).is_empty());
    // The user typed the path of the directory, so links on the way to it are followed.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(dir.path().join("real/e.map"), "e").unwrap();
    let linked = dir.path().join("linked");
    symlink("real", &linked).unwrap();
    let typed = Door { start: Start::Typed(&linked), ..Named::Recording.door(false) };
    assert_eq!(typed.entries(&linked, wanted).len(), 1);
    assert!(Named::Recording.door(false).entries(&linked, wanted).is_empty());
    assert!(read(typed, &linked.join("e.map")).unwrap().is_ok());
}

#[test]
fn a_file_that_looks_empty_or_waits_for_a_writer_is_not_a_binary() {
    let dir = directory();
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let code =
        Kind { holes: |head| head.starts_with(b"\x7fELF").then_some(Holes::Any), otherwise: "is not an ELF file" };
    let open = |path: &Path| Named::Recording.door(false).open(path, code).unwrap().map(|opened| opened.bytes);
    for special in [&pipe, Path::new("/dev/zero"), dir.path()] {
        let refused = open(special).unwrap_err();
        assert!(refused.to_string().contains("is not a regular file"), "{refused}");
    }
    let status = format!("/proc/{}/status", std::process::id());
    assert!(open(Path::new(&status)).unwrap().is_empty());
    assert!(open(&std::env::current_exe().unwrap()).unwrap().starts_with(b"\x7fELF"));
}
