//! Expands directories and lists of paths to the files in them, for commands that read thousands of inputs.
//!
//! The user didn't type the names of these files. Therefore they are opened through [`crate::io::door`]: only regular
//! files are read, and symbolic links that somebody else may have created aren't followed.

use super::open::shown;
use crate::bytes::utf16::strip_mark;
use crate::error::{Error, Result};
use crate::io::{self, FoundPath, InPath};
use crate::jit::goes_with_recordings;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// How many levels of directories are searched below the one that the user typed. Nobody nests profiles that deep, and
/// each additional level makes every lookup of a path slower.
const DEEPEST: usize = 100;

/// The inputs, after directories and lists were replaced by the files in them.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) inputs: Vec<InPath>,
    /// Errors for directories that could not be read.
    pub(crate) unread: Vec<Error>,
}

/// Replaces each directory by the files in it, sorted by name, and each `@FILE` by the paths that this file lists (`@-`
/// reads the list from standard input). Fails if no input is left.
pub(crate) fn expand(inputs: &[InPath]) -> Result<Expanded> {
    let mut expanded = Expanded::default();
    for input in inputs {
        let path = input.path().unwrap_or(Path::new(""));
        match path.as_os_str().as_bytes().strip_prefix(b"@") {
            Some(list) => expanded.add_list(Path::new(OsStr::from_bytes(list)))?,
            None => expanded.add(input.clone(), 0),
        }
    }
    if expanded.inputs.is_empty() {
        return Err(match expanded.unread.into_iter().next() {
            Some(error) => error,
            None => Error::new("no input files: all lists (@FILE) and directories are empty"),
        });
    }
    Ok(expanded)
}

impl Expanded {
    /// Adds the inputs that a file lists.
    fn add_list(&mut self, list: &Path) -> Result<()> {
        let list = InPath::from(list.to_owned());
        let text = io::open(&list).map_err(|error| error.in_file(&shown(&list)))?;
        // Lists may come from Windows: editors and PowerShell there write UTF-16, or UTF-8 with a byte order mark.
        for path in paths(&strip_mark(&text)) {
            self.add(InPath::Found(FoundPath::listed(path.to_owned())), 0);
        }
        Ok(())
    }

    /// Adds an input: a file, or everything in a directory. A directory that `perf record` wrote is a single input.
    /// `depth` is the number of directories above it, counting from the one that the user typed.
    fn add(&mut self, input: InPath, depth: usize) {
        if !input.is_directory() || input.join("data").is_file() {
            self.inputs.push(input);
            return;
        }
        if depth > DEEPEST {
            let message = format!("left out: it is nested in more than {DEEPEST} directories");
            self.unread.push(Error::new(message).in_file(&shown(&input)));
            return;
        }
        match names_in(&input) {
            Ok(names) => {
                let typed = Arc::from(shown(&input));
                for name in names {
                    self.add(inside(&input, &typed, name), depth + 1);
                }
            }
            Err(error) => self.unread.push(error.in_file(&shown(&input))),
        }
    }
}

/// The input for the file `name` in `directory`. The user didn't type its path, so it is opened with care: the input
/// remembers which part of the path the user typed. If the user typed the path of `directory`, that part is `typed`.
/// Otherwise, `directory` was found in another one, and remembers the typed part already.
fn inside(directory: &InPath, typed: &Arc<Path>, name: OsString) -> InPath {
    match directory {
        InPath::Found(_) => directory.join(name),
        InPath::Path(_) | InPath::Stdin => InPath::Found(FoundPath::below(typed.clone(), typed.join(name))),
    }
}

/// The sorted names of the inputs in a directory. Skips hidden files, and files that start with `_`, which data engines
/// write for themselves (`_SUCCESS`). Also skips jitdumps, perf maps and logs, because they belong to the recordings
/// next to them, and links to directories, because they could lead back to this directory.
fn names_in(directory: &InPath) -> Result<Vec<OsString>> {
    let path = shown(directory);
    let is_input = |name: &OsStr| {
        let is_hidden = matches!(name.as_bytes().first(), Some(b'.' | b'_'));
        !is_hidden && !goes_with_recordings(name)
    };
    // A directory that is gone by now counts as empty.
    let listed = directory.door_to_parts().list(&path, is_input).unwrap_or_else(|| Ok(Vec::new()))?;
    let mut names = Vec::new();
    for (name, about) in listed {
        let is_link_to_directory =
            about.is_symlink() && inside(directory, &Arc::from(&*path), name.clone()).is_directory();
        if !is_link_to_directory {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The paths in a list: one per line, or separated by NUL as in the output of `find -print0`.
fn paths(text: &[u8]) -> impl Iterator<Item = &Path> {
    let end = if text.contains(&0) { 0 } else { b'\n' };
    text.split(move |&byte| byte == end).filter_map(move |line| {
        // Lines may end with CR LF if the list was written on Windows.
        let path = if end == b'\n' { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        (!path.is_empty()).then(|| Path::new(OsStr::from_bytes(path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inputs: &[InPath], below: &Path) -> Vec<String> {
        let name = |input: &InPath| match input.path() {
            None => "-".to_owned(),
            Some(path) => path.strip_prefix(below).unwrap_or(path).display().to_string(),
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
        assert_eq!(names(&expand(&inputs).unwrap().inputs, dir.path()), expected);
    }

    #[test]
    fn directories_are_followed_only_so_deep() {
        let dir = tempfile::tempdir().unwrap();
        let below = |levels: usize| dir.path().join("a/".repeat(levels));
        std::fs::create_dir_all(below(DEEPEST + 3)).unwrap();
        for levels in [0, DEEPEST, DEEPEST + 1, DEEPEST + 3] {
            std::fs::write(below(levels).join("x"), "x").unwrap();
        }
        let expanded = expand(&[InPath::Path(dir.path().to_owned())]).unwrap();
        let files = [below(DEEPEST).join("x"), below(0).join("x")];
        let files = files.map(|file| file.strip_prefix(dir.path()).unwrap().display().to_string());
        assert_eq!(names(&expanded.inputs, dir.path()), files);
        let [left_out] = &expanded.unread[..] else { panic!("{:?}", expanded.unread) };
        assert!(left_out.to_string().ends_with("left out: it is nested in more than 100 directories"), "{left_out}");
    }

    #[test]
    fn a_list_may_have_zero_bytes_between_its_paths() {
        let shown = |text: &'static [u8]| paths(text).map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(b"a\nb\0c\0"), ["a\nb", "c"]);
        assert_eq!(shown(b"a b\n c\n"), ["a b", " c"]);
    }

    #[test]
    fn a_list_may_be_utf_16() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        let inputs = [InPath::Path(format!("@{}", list.display()).into())];
        let text = "\u{feff}größe.data\r\nb c\r\n\r\n";
        for bytes in [
            text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            text.as_bytes().to_vec(),
        ] {
            std::fs::write(&list, bytes).unwrap();
            assert_eq!(names(&expand(&inputs).unwrap().inputs, dir.path()), ["größe.data", "b c"]);
        }
    }

    #[test]
    fn a_list_that_is_not_there_and_one_of_nothing_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().to_owned();
        let error = expand(&[InPath::Path(empty)]).unwrap_err();
        assert_eq!(error.to_string(), "no input files: all lists (@FILE) and directories are empty");
        let error = expand(&[InPath::Path("@/does/not/exist".into())]).unwrap_err().to_string();
        assert!(error.starts_with("/does/not/exist: cannot open"), "{error}");
    }
}
