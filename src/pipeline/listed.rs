//! Inputs by the thousand: directories and lists stand for the files in them.

use crate::error::{Error, Result};
use crate::io::{self, InPath};
use crate::sources::goes_with_recordings;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The inputs, with every directory replaced by the files in it, in the order of their names, and every `@FILE` by
/// the paths that the file lists (`@-`: that standard input lists).
pub(crate) fn expand(inputs: &[InPath]) -> Result<Vec<InPath>> {
    let mut all = Vec::new();
    for input in inputs {
        match input {
            InPath::Stdin => all.push(InPath::Stdin),
            InPath::Path(path) => match path.as_os_str().as_bytes().strip_prefix(b"@") {
                Some(list) => read_list(Path::new(OsStr::from_bytes(list)), &mut all)?,
                None => add(path, &mut all)?,
            },
        }
    }
    if all.is_empty() {
        return Err(Error::usage("there is nothing to read: the lists and directories name no file"));
    }
    Ok(all)
}

fn read_list(list: &Path, all: &mut Vec<InPath>) -> Result<()> {
    let list = InPath::from(list.to_owned());
    let shown = super::open::shown(&list);
    let text = io::open(&list).map_err(|error| error.in_file(&shown))?;
    for path in paths(&text) {
        add(path, all)?;
    }
    Ok(())
}

/// One path a line, or, as find -print0 has them, each with a zero byte behind it.
fn paths(text: &[u8]) -> impl Iterator<Item = &Path> {
    let end = if text.contains(&0) { 0 } else { b'\n' };
    let paths = text.split(move |&byte| byte == end).filter(|path| !path.is_empty());
    paths.map(|path| Path::new(OsStr::from_bytes(path)))
}

/// A recording's directory is one input.
fn add(path: &Path, all: &mut Vec<InPath>) -> Result<()> {
    if !io::is_directory(path) || io::is_file(&path.join("data")) {
        all.push(InPath::Path(path.to_owned()));
        return Ok(());
    }
    for inside in sorted(path).map_err(|error| Error::from(error).in_file(path))? {
        add(&inside, all)?;
    }
    Ok(())
}

/// What is in a directory and not hidden: engines' own files begin with `_` (`_SUCCESS`). Dumps, maps and logs that
/// name code are not inputs, but go with those beside them. A link to a directory is not followed: it may lead back
/// here.
fn sorted(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut inside = Vec::new();
    for name in io::typed_names(directory)? {
        let hidden = matches!(name.as_bytes().first(), Some(b'.' | b'_')) || goes_with_recordings(&name);
        let path = directory.join(name);
        let leads_away = path.is_symlink() && io::is_directory(&path);
        if !hidden && !leads_away {
            inside.push(path);
        }
    }
    inside.sort();
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inputs: &[InPath], below: &Path) -> Vec<String> {
        let name = |input: &InPath| match input {
            InPath::Stdin => "-".to_owned(),
            InPath::Path(path) => path.strip_prefix(below).unwrap_or(path).display().to_string(),
        };
        inputs.iter().map(name).collect()
    }

    #[test]
    fn directories_and_lists_stand_for_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let below = |name: &str| dir.path().join(name);
        for directory in ["set/day=2", "set/day=1", "recording", "set/.hidden"] {
            std::fs::create_dir_all(below(directory)).unwrap();
        }
        for file in [
            "set/day=2/b",
            "set/day=2/a",
            "set/day=1/c",
            "set/_SUCCESS",
            "set/jit-7.dump",
            "set/perf-7.map",
            "set/.hidden/x",
            "recording/data",
        ] {
            std::fs::write(below(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(below("set"), below("set/day=1/loop")).unwrap();
        std::os::unix::fs::symlink(below("recording/data"), below("set/linked")).unwrap();
        let list = format!("{}\n{}\n\nmissing\n", below("recording").display(), below("set/day=1").display());
        std::fs::write(below("list"), list).unwrap();
        let inputs =
            [InPath::Path(below("set")), InPath::Path(format!("@{}", below("list").display()).into()), InPath::Stdin];
        let set = ["set/day=1/c", "set/day=2/a", "set/day=2/b", "set/linked"];
        let expected = [&set[..], &["recording", "set/day=1/c", "missing", "-"]].concat();
        assert_eq!(names(&expand(&inputs).unwrap(), dir.path()), expected);
    }

    #[test]
    fn a_list_may_have_zero_bytes_between_its_paths() {
        let shown = |text: &'static [u8]| paths(text).map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(b"a\nb\0c\0"), ["a\nb", "c"]);
        assert_eq!(shown(b"a b\n c\n"), ["a b", " c"]);
    }

    #[test]
    fn a_list_that_is_not_there_and_one_of_nothing_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().to_owned();
        assert!(expand(&[InPath::Path(empty)]).unwrap_err().is_usage());
        let error = expand(&[InPath::Path("@/does/not/exist".into())]).unwrap_err().to_string();
        assert!(error.starts_with("/does/not/exist: cannot open"), "{error}");
    }
}
