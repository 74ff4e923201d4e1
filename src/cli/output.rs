//! Derives the format of an output from its file name. Rejects a name that implies a format which the command can't
//! write: nobody wants a table in a file called `out.svg`.

use crate::error::{Error, Result};
use crate::io::OutPath;

/// File name extensions. Each has a text that says what writes such files, usually another command of jitgraft.
const ENDINGS: &[(&str, &str)] = &[
    ("csv", "jitgraft report or export"),
    ("folded", "jitgraft collapse"),
    ("gif", PICTURES),
    ("gz", "jitgraft export -o x.pb.gz"),
    ("htm", "jitgraft view"),
    ("html", "jitgraft view"),
    ("jpeg", PICTURES),
    ("jpg", PICTURES),
    ("json", "jitgraft report or export"),
    ("parquet", "jitgraft export"),
    ("pb", "jitgraft export -o x.pb.gz"),
    ("pdf", PICTURES),
    ("png", PICTURES),
    ("svg", "jitgraft flamegraph"),
    ("txt", "jitgraft report"),
    ("webp", PICTURES),
    ("zip", "jitgraft pack, as .tar.zst"),
];

const PICTURES: &str = "jitgraft flamegraph -o x.svg, then print or save it from a browser";

/// The extension of the output's file name, in lower case. `None` if it has none.
pub(super) fn extension(output: &OutPath) -> Option<String> {
    match output {
        OutPath::Path(path) => path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase),
        OutPath::Stdout => None,
    }
}

/// Fails if the output's file name has the extension of a format that `command` doesn't write. `own` are the extensions
/// of the formats that it does write.
pub(super) fn check_name(output: &OutPath, command: &str, own: &[&str]) -> Result<()> {
    let Some(ending) = extension(output).filter(|ending| !own.contains(&&ending[..])) else { return Ok(()) };
    let Some((_, writer)) = ENDINGS.iter().find(|(other, _)| *other == ending) else { return Ok(()) };
    let error = Error::usage(format!("jitgraft {command} does not write .{ending} files"));
    Err(error.with_remedy(Some(format!("use {writer}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_kinds_of_files_are_refused() {
        let check = |name: &str, own: &[&str]| check_name(&OutPath::Path(name.into()), "view", own).is_ok();
        for (name, is_taken) in [
            ("out", true),
            ("out.log", true),
            ("perf.data", true),
            ("out.json", true),
            ("OUT.JSON", true),
            ("out.svg", false),
            ("a.b/out.Png", false),
            ("svg", true),
            ("x.y.html", false),
        ] {
            assert_eq!(check(name, &["csv", "json"]), is_taken, "{name}");
        }
        assert!(check("out.txt", &["txt"]) && !check("out.txt", &["html"]));
        assert!(!check("out.json", &[]) && check_name(&OutPath::Stdout, "report", &[]).is_ok());
        assert!(ENDINGS.is_sorted());
    }
}
