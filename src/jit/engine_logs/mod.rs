//! Reads logs in which engines describe their JIT code even without a jitdump or perf map: what was where and when;
//! some also have lines, inlined calls and machine code.
//!
//! [`JIT_LOGS`] is the table of all kinds of logs: what people call them, their file names, how to recognize and read
//! them. A new kind of log is a file or folder here, a `mod` line and a table entry. `jit` finds, dates and loads
//! logs.
//!
//! The content of a log becomes a [`CodeLog`], which owns its data: engines spread a name over several fields and
//! lines, so it must be assembled here.

mod code_log;
pub mod gdb;
mod hotspot;
mod luajit;
mod pypy;
mod v8;

pub use code_log::{
    CodeLog, FindProcess, JitLog, LogClock, LogCode, LogEvent, LogEventKind, LogPositions, LogProcess, MappedFile,
    TextId, Texts,
};

use crate::bytes::glob::matches_glob;
use memchr::{memchr2, memrchr2};

/// All kinds of logs that can be read.
pub const JIT_LOGS: &[JitLog] =
    &[v8::V8_LOG, hotspot::COMPILATION, hotspot::CODE_LIST, luajit::DUMP, pypy::LOG, gdb::CORE];

/// A kind of log, as an index into [`JIT_LOGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(u8);

impl LogId {
    /// Iterates over all kinds of logs.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..JIT_LOGS.len() as u8).map(Self)
    }

    /// The entry of [`JIT_LOGS`] for this kind of log.
    pub fn log(self) -> &'static JitLog {
        &JIT_LOGS[self.0 as usize]
    }

    /// Detects the kind of a log by its beginning.
    pub fn detect(head: &[u8]) -> Option<Self> {
        Self::all().find(|id| (id.log().sniff)(head))
    }

    /// The kinds of logs that may have this file name, each with the process ID if the name contains it.
    pub fn find_by_name(name: &str) -> impl Iterator<Item = (Self, Option<i32>)> {
        let mut found = Vec::new();
        for id in Self::all() {
            for pattern in id.log().files {
                // `may_match` quickly rejects most names.
                if may_match(pattern, name)
                    && let Some(pid) = match_pattern(pattern, name)
                {
                    found.push((id, pid));
                }
            }
        }
        found.into_iter()
    }
}

/// A quick test whether a name starts and ends like a pattern: a directory may contain a hundred thousand other names.
fn may_match(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // The name must start like the pattern up to its first `*` or `PID`, and end like the pattern after its last one.
    let start = memchr2(b'*', b'P', pattern).unwrap_or(pattern.len());
    let end = memrchr2(b'*', b'D', pattern).map_or(0, |at| at + 1);
    name.starts_with(&pattern[..start]) && name.ends_with(&pattern[end..])
}

/// Matches a name with a pattern. `None` if it doesn't match. The inner value is the number in place of `PID`; `None`
/// if the pattern doesn't contain `PID`.
fn match_pattern(pattern: &str, name: &str) -> Option<Option<i32>> {
    let Some((before, after)) = pattern.split_once("PID") else {
        return matches_glob(pattern.as_bytes(), name.as_bytes()).then_some(None);
    };
    let mut end = 0;
    while let Some(skipped) = name[end..].find(|letter: char| letter.is_ascii_digit()) {
        // A number always includes all adjacent digits; a `*` before it doesn't take any of them.
        let start = end + skipped;
        end = start + name[start..].bytes().take_while(u8::is_ascii_digit).count();
        if matches_glob(before.as_bytes(), &name.as_bytes()[..start])
            && matches_glob(after.as_bytes(), &name.as_bytes()[end..])
            && let Ok(pid) = name[start..end].parse()
        {
            return Some(Some(pid));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_possible_fit_is_possible() {
        let names =
            ["isolate-0x5581e0-4711-v8.log", "hotspot_pid77.log", "core.4.x.5", "a.pypylog", "v8.log", "jit-1.dump"];
        for name in names {
            for pattern in JIT_LOGS.iter().flat_map(|log| log.files) {
                assert!(may_match(pattern, name) || match_pattern(pattern, name).is_none(), "{pattern}: {name}");
            }
        }
        assert!(!may_match("isolate-*-PID-v8.log", "jitted-1-2.so") && !may_match("PID.log", "1.so"));
    }

    #[test]
    fn a_name_shows_its_process() {
        assert_eq!(match_pattern("isolate-*-PID-v8.log", "isolate-0x5581e0-4711-v8.log"), Some(Some(4711)));
        assert_eq!(match_pattern("isolate-*-PID-v8.log", "isolate-0x55-v8.log"), None);
        assert_eq!(match_pattern("hotspot_pidPID.log", "hotspot_pid77.log"), Some(Some(77)));
        assert_eq!(match_pattern("hotspot_pidPID.log", "hotspot_pid77.log.1"), None);
        assert_eq!(match_pattern("v8.log", "v8.log"), Some(None));
        assert_eq!(match_pattern("*.pypylog", "a.pypylog"), Some(None));
        assert_eq!(match_pattern("PID.log", "99999999999.log"), None);
    }

    #[test]
    fn each_log_is_distinguished_from_the_others() {
        let mut ids: Vec<&str> = JIT_LOGS.iter().map(|log| log.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), JIT_LOGS.len());
        assert_eq!(LogId::detect(b""), None);
        assert_eq!(LogId::detect(b"7f00 10 f\n"), None, "a perf map is no log");
    }
}
