//! Paths and URLs in source maps and scripts: which files they mean, and how to name authored files.

use crate::formats::source_map::{decode_percent, split_scheme};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The path of a file, given a path or a `file:` URL; `None` for anything else.
pub(super) fn file_from_url(url: &str) -> Option<PathBuf> {
    if url.starts_with('/') {
        return Some(url.into());
    }
    let Some(("file", rest)) = split_scheme(url) else { return None };
    let path = rest.strip_prefix("//").unwrap_or(rest);
    path.starts_with('/').then(|| PathBuf::from(OsString::from_vec(decode_percent(path))))
}

/// The path in an HTTP URL. A copy of the file may be in the input's directory. `None` for other URLs.
pub(super) fn path_on_server(url: &str) -> Option<PathBuf> {
    let Some(("http" | "https", rest)) = split_scheme(url) else { return None };
    let server_and_path = rest.strip_prefix("//")?.split(['?', '#']).next()?;
    let slash = server_and_path.find('/')?;
    Some(PathBuf::from(&server_and_path[slash..]))
}

/// Removes `.` and `..` from a path without looking at symbolic links.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The name of an authored file: its full path, or its URL as developer tools show it. `base` is the directory of the
/// source map. Empty if the name would contain control characters or be longer than any path.
pub(super) fn authored_name(source: &str, base: &Path) -> String {
    const PATH_MAX: usize = 4096;
    let name = match split_scheme(source) {
        Some(("file", _)) => file_from_url(source).map_or_else(String::new, to_text),
        Some((scheme, rest)) => {
            let path = rest.trim_start_matches('/').split('?').next().unwrap_or_default();
            format!("{scheme}://{}", to_text(normalize(Path::new(path))))
        }
        // The script has a URL for a name, so the directory of its source map is a URL, too. A relative path is
        // appended to it.
        None if base.to_str().is_some_and(|base| split_scheme(base).is_some()) && !source.starts_with('/') => {
            return authored_name(&format!("{}/{source}", base.display()), base);
        }
        None => to_text(normalize(&base.join(source))),
    };
    if name.len() > PATH_MAX || name.chars().any(char::is_control) {
        return String::new();
    }
    name
}

fn to_text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_paths_or_file_urls() {
        assert_eq!(file_from_url("/a b/x.js"), Some("/a b/x.js".into()));
        assert_eq!(file_from_url("file:///a%20b/x.mjs"), Some("/a b/x.mjs".into()));
        for other in ["https://a/x.js", "node:fs", "x.js", "file:x.js", "evalmachine.<anonymous>"] {
            assert_eq!(file_from_url(other), None, "{other}");
        }
    }

    #[test]
    fn a_server_s_file_has_the_path_of_its_url() {
        assert_eq!(path_on_server("https://a.org:8080/d/x.js?v=1#2"), Some("/d/x.js".into()));
        for other in ["https://a.org", "file:///d/x.js", "/d/x.js", "chrome-extension://a/x.js"] {
            assert_eq!(path_on_server(other), None, "{other}");
        }
    }

    #[test]
    fn authored_files_are_called_as_developer_tools_call_them() {
        let base = Path::new("/app/dist");
        assert_eq!(authored_name("../src/words.ts", base), "/app/src/words.ts");
        assert_eq!(authored_name("/abs/./words.ts", base), "/abs/words.ts");
        assert_eq!(authored_name("file:///abs/a%20b.ts", base), "/abs/a b.ts");
        assert_eq!(authored_name("webpack://app/./src/words.ts?1f2e", base), "webpack://app/src/words.ts");
        assert_eq!(authored_name("webpack:///src/../words.ts", base), "webpack://words.ts");
        let within = Path::new("webpack://app/dist");
        assert_eq!(authored_name("../src/words.ts", within), "webpack://app/src/words.ts");
        assert_eq!(authored_name("/abs/words.ts", within), "/abs/words.ts");
        assert_eq!(authored_name("a\nb.ts", base), "");
        assert_eq!(authored_name(&"a".repeat(5000), base), "");
    }
}
