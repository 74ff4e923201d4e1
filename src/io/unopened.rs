//! Error messages for files that can't be opened or created, with remedies.

use super::typed::{is_directory, read_system_text, typed_metadata, typed_names};
use crate::error::Error;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The error for an input that can't be opened, with a hint on what to do.
pub(crate) fn input_error(path: &Path, error: io::Error) -> Error {
    let remedy = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => hint_for_missing(path),
        ErrorKind::PermissionDenied => permission_hint(path, "run sudo chown $USER FILE, or run jitgraft with sudo"),
        _ => None,
    };
    Error::new("cannot open").because(error).with_remedy(remedy).in_file(path)
}

/// The error for a file that can't be opened, although jitgraft has found it. The user may not have typed the path, so
/// there is no hint about mistyped paths, only one about permissions.
pub(super) fn found_file_error(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied => input_error(path, error),
        _ => unnamed_file_error(error).in_file(path),
    }
}

/// The error for a file that can't be opened, without the file's path. The caller adds the path by which the user knows
/// the file.
pub(super) fn unnamed_file_error(error: io::Error) -> Error {
    Error::new("cannot open").because(error)
}

/// The error for a directory that can't be read.
pub(super) fn directory_error(error: io::Error) -> Error {
    Error::new("cannot list the directory").because(error)
}

/// The error for an output that can't be created in its directory.
pub(super) fn output_error(directory: &Path, error: io::Error) -> Error {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let shown = directory.display();
    let remedy = match error.kind() {
        ErrorKind::NotFound => Some(format!("create the directory with mkdir -p {shown}")),
        ErrorKind::PermissionDenied => permission_hint(directory, "choose another directory (-o FILE)"),
        _ => None,
    };
    Error::new("cannot write there").because(error).with_remedy(remedy)
}

/// The hint for a path that doesn't exist: that its directory is missing, which file has a similar name, or how to get
/// a perf.data. `None` if nothing fits.
fn hint_for_missing(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    if !is_directory(directory) {
        return Some(format!("no such directory: {}", directory.display()));
    }
    let name = path.file_name()?.to_str()?;
    // Comparing names takes time, so only a limited number of them is considered.
    let names = typed_names(directory).into_iter().flatten().take(NAMES);
    if let Some(similar) = nearest(name, names.filter_map(|name| name.into_string().ok())) {
        return Some(format!("did you mean {}?", path.with_file_name(similar).display()));
    }
    if name == "perf.data.old" {
        return Some(
            "perf makes this file by renaming perf.data when it records again; pass a recording that exists".to_owned(),
        );
    }
    if name == "perf.data" {
        return Some("record one with `jitgraft record -- PROGRAM`, or pass its path with -i FILE".to_owned());
    }
    None
}

/// Maximum number of names in a directory to compare with the typed one. A directory with more is hardly one that
/// people work in.
const NAMES: usize = 10_000;

/// The name that is most similar to `name`. It differs in at most two characters, and in at most a third of the length
/// of `name`. A name that only continues after `name` counts as different in one character. `None` if there is no such
/// name. Nothing is similar to a name with fewer than three characters.
fn nearest(name: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let longest_distance = (name.len() / 3).min(2);
    let mut similar = Vec::new();
    for candidate in names {
        // A longer name that starts with `name` counts as one difference, however much longer it is.
        let distance = if candidate.starts_with(name) { 1 } else { strsim::levenshtein(name, &candidate) };
        if distance <= longest_distance {
            similar.push((distance, candidate));
        }
    }
    similar.into_iter().min().map(|(_, candidate)| candidate)
}

/// The remedy for missing permissions: says who owns the file, or the directory that can't be searched, and suggests
/// `instead`.
fn permission_hint(path: &Path, instead: &str) -> Option<String> {
    let ancestors = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    // The file or, if that is in a directory that can't be searched, the directory: the nearest path with metadata.
    let (nearest, about) = ancestors.filter_map(|path| Some((path, typed_metadata(path)?))).next()?;
    let (owner, current_user) = (user(about.uid()), user(rustix::process::geteuid().as_raw()));
    let what = if nearest == path { "it".to_owned() } else { nearest.display().to_string() };
    let mode = about.mode() & 0o7777;
    Some(format!("{what} belongs to {owner} (mode {mode:04o}), and jitgraft runs as {current_user}; {instead}"))
}

/// A user's name, or the numeric ID if it has none on this machine.
fn user(uid: u32) -> String {
    let passwd = read_system_text(Path::new("/etc/passwd")).unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        // The fields of a line: name, password, user ID, and so on.
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_near_that_differ_in_few_letters_or_go_on() {
        let here = ["perf.data.old", "perf.dta", "app.folded", "x"];
        let near = |name| nearest(name, here.iter().map(|name| (*name).to_owned()));
        assert_eq!(near("perf.data").as_deref(), Some("perf.data.old"));
        assert_eq!(near("perf.dat").as_deref(), Some("perf.data.old"));
        assert_eq!(near("pref.dta").as_deref(), Some("perf.dta"));
        assert_eq!(near("app.fodled").as_deref(), Some("app.folded"));
        assert_eq!(near("y"), None);
        assert_eq!(near("something.else"), None);
    }

    #[test]
    fn only_for_a_file_that_the_user_names_another_one_is_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        fs::write(dir.path().join("perf.data.old"), b"").unwrap();
        let said = |error: fn(&Path, io::Error) -> Error| {
            let warning = error(&path, io::Error::from(ErrorKind::NotFound)).into_warning();
            warning.to_string()
        };
        assert!(
            said(input_error).contains("did you mean ") && said(input_error).contains("perf.data.old"),
            "{}",
            said(input_error)
        );
        assert!(!said(found_file_error).contains("perf.data.old"), "{}", said(found_file_error));
    }
}
