//! Derives the format of an output from its file name. Rejects a name that implies a format which the command can't
//! write: nobody wants a table in a file called `out.svg`.

use crate::error::{Error, Result};
use crate::formats;
use crate::io::OutPath;

/// File name extensions. Each has a text that says what to use for such files, usually another command of
/// jitgraft. Messages show it after `use `.
const ENDINGS: &[(&str, &str)] = &[
    ("7z", ARCHIVES),
    ("bmp", PICTURES),
    ("bz2", "a name without .bz2, and compress the file with bzip2 afterwards"),
    ("callgrind", EXPORT),
    ("collapsed", "jitgraft collapse"),
    ("csv", "jitgraft report or export"),
    ("data", "jitgraft inject"),
    ("db", SHEETS),
    ("doc", PAGES),
    ("docx", PAGES),
    ("eps", PICTURES),
    ("folded", "jitgraft collapse"),
    ("gif", PICTURES),
    ("gz", "jitgraft export -o x.pb.gz; to compress other files, write them without .gz and run gzip"),
    ("htm", "jitgraft view"),
    ("html", "jitgraft view"),
    ("jpeg", PICTURES),
    ("jpg", PICTURES),
    ("json", "jitgraft report or export"),
    ("md", "jitgraft report -o x.txt"),
    ("ods", SHEETS),
    ("odt", PAGES),
    ("otlp", EXPORT),
    ("parquet", EXPORT),
    ("pb", "jitgraft export -o x.pb.gz"),
    ("pdf", PICTURES),
    ("png", PICTURES),
    ("pprof", EXPORT),
    ("ppt", PAGES),
    ("pptx", PAGES),
    ("ps", PICTURES),
    ("rar", ARCHIVES),
    ("rtf", PAGES),
    ("speedscope", EXPORT),
    ("sqlite", SHEETS),
    ("svg", "jitgraft flamegraph"),
    ("tar", ARCHIVES),
    ("tgz", ARCHIVES),
    ("tif", PICTURES),
    ("tiff", PICTURES),
    ("tsv", SHEETS),
    ("txt", "jitgraft report"),
    ("webp", PICTURES),
    ("xls", SHEETS),
    ("xlsx", SHEETS),
    ("xml", "jitgraft callgrind, which names JIT code in valgrind's XML reports"),
    ("xz", "a name without .xz, and compress the file with xz afterwards"),
    ("zip", ARCHIVES),
    ("zst", "jitgraft pack for .tar.zst; to compress other files, write them without .zst and run zstd"),
];

const ARCHIVES: &str = "jitgraft pack, as .tar.zst";

const EXPORT: &str = "jitgraft export";

const PAGES: &str = "jitgraft view -o x.html for a page, or jitgraft report -o x.txt for text";

const PICTURES: &str = "jitgraft flamegraph -o x.svg, then open x.svg in a browser and print or save it there";

const SHEETS: &str = "jitgraft report -o x.csv or jitgraft export -o x.csv, then import x.csv into the other program";

/// The extension of the output's file name, in lower case. `None` if it has none.
pub(super) fn extension(output: &OutPath) -> Option<String> {
    match output {
        OutPath::Path(path) => path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase),
        OutPath::Stdout => None,
    }
}

/// Fails if the output's file name has the extension of a format that `command` doesn't write. `own` has the extensions
/// of the formats that the command writes. An extension with two parts counts as a whole: a command that writes `json`
/// needn't be able to write `firefox.json`.
pub(super) fn check_name(output: &OutPath, command: &str, own: &[&str]) -> Result<()> {
    if let Some(double) = find_double_extension(output).filter(|ending| !own.contains(ending)) {
        let error = Error::usage(format!("jitgraft {command} does not write .{double} files"));
        return Err(error.with_remedy(Some(format!("use {EXPORT}"))));
    }
    let Some(ending) = extension(output) else { return Ok(()) };
    if own.contains(&&ending[..]) {
        return Ok(());
    }
    // An unknown extension implies no format, so any command may write such a file.
    let Some((_, instead)) = ENDINGS.iter().find(|(known, _)| *known == ending) else { return Ok(()) };
    let error = Error::usage(format!("jitgraft {command} does not write .{ending} files"));
    let remedy = match command {
        // Whoever runs `pack` wants an archive, so don't propose the command that writes files with this extension.
        "pack" => "use a name that ends in .tar.zst".to_owned(),
        _ => format!("use {instead}"),
    };
    Err(error.with_remedy(Some(remedy)))
}

/// The extension of an exchange format with two parts that the output's name ends with.
fn find_double_extension(output: &OutPath) -> Option<&'static str> {
    let OutPath::Path(path) = output else { return None };
    let pattern = formats::find_pattern_for_file(path.file_name()?.as_encoded_bytes())?;
    pattern.strip_prefix("*.").filter(|ending| ending.contains('.'))
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
            ("perf.data", false),
            ("out.speedscope.json", false),
            ("out.Firefox.JSON", false),
            ("out.v2.json", true),
            ("out.csv.gz", false),
            ("out.json", true),
            ("OUT.JSON", true),
            ("out.svg", false),
            ("a.b/out.Png", false),
            ("svg", true),
            ("x.y.html", false),
            ("x.xlsx", false),
            ("x.DOCX", false),
            ("x.tiff", false),
            ("x.tgz", false),
            ("x.tmp", true),
            ("x.out", true),
        ] {
            assert_eq!(check(name, &["csv", "json"]), is_taken, "{name}");
        }
        assert!(check("out.txt", &["txt"]) && !check("out.txt", &["html"]));
        assert!(!check("out.json", &[]) && check_name(&OutPath::Stdout, "report", &[]).is_ok());
        assert!(ENDINGS.is_sorted());
    }
}
