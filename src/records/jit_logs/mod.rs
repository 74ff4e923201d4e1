//! Reads logs in which engines describe their JIT code even without a jitdump or perf map: what was where and when;
//! some also have lines, inlined calls and machine code.
//!
//! [`JIT_LOGS`] is the table of all kinds of logs: what people call them, their file names, how to recognize and read
//! them. A new kind of log is a file or folder here, a `mod` line and a table entry. `sources` finds, dates and loads
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
    CodeLog, JitLog, LogClock, LogCode, LogEvent, LogEventKind, LogPositions, LogProcess, MappedFile, TellsProcess,
    TextId, Texts,
};

use crate::bytes::glob::matches_glob;

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

    /// The table entry of this kind.
    pub fn log(self) -> &'static JitLog {
        &JIT_LOGS[self.0 as usize]
    }

    /// Detects the kind of a log by its beginning.
    pub fn detect(head: &[u8]) -> Option<Self> {
        Self::all().find(|id| (id.log().sniff)(head))
    }

    /// The kinds of logs that may have this file name, each with the process ID if the name contains it.
    pub fn named(name: &str) -> impl Iterator<Item = (Self, Option<i32>)> {
        let patterns = Self::all().flat_map(|id| id.log().files.iter().map(move |pattern| (id, *pattern)));
        let patterns = patterns.filter(|(_, pattern)| may_fit(pattern, name));
        patterns.filter_map(move |(id, pattern)| Some((id, number_in(pattern, name)?)))
    }
}

/// A quick test whether a name starts and ends like a pattern: a directory may contain a hundred thousand other names.
fn may_fit(pattern: &str, name: &str) -> bool {
    let (begin, end) = (pattern.bytes().zip(name.bytes()), pattern.bytes().rev().zip(name.bytes().rev()));
    let same_until = |open: [u8; 2]| move |&(pattern, _): &(u8, u8)| !open.contains(&pattern);
    begin.take_while(same_until(*b"*P")).all(|(pattern, name)| pattern == name)
        && end.take_while(same_until(*b"*D")).all(|(pattern, name)| pattern == name)
}

/// Matches a name with a pattern. The inner value is the number in place of `PID`, if the pattern contains it.
fn number_in(pattern: &str, name: &str) -> Option<Option<i32>> {
    let Some((before, behind)) = pattern.split_once("PID") else {
        return matches_glob(pattern.as_bytes(), name.as_bytes()).then_some(None);
    };
    // A number always includes all adjacent digits; a `*` before it doesn't take any of them.
    let mut starts = name.char_indices().filter(|(at, letter)| {
        letter.is_ascii_digit() && !name[..*at].ends_with(|letter: char| letter.is_ascii_digit())
    });
    starts.find_map(|(start, _)| {
        let len = name[start..].bytes().take_while(u8::is_ascii_digit).count();
        let (name_before, name_behind) = (&name.as_bytes()[..start], &name.as_bytes()[start + len..]);
        let fits = matches_glob(before.as_bytes(), name_before) && matches_glob(behind.as_bytes(), name_behind);
        name[start..start + len].parse().ok().filter(|_| fits).map(Some)
    })
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
                assert!(may_fit(pattern, name) || number_in(pattern, name).is_none(), "{pattern}: {name}");
            }
        }
        assert!(!may_fit("isolate-*-PID-v8.log", "jitted-1-2.so") && !may_fit("PID.log", "1.so"));
    }

    #[test]
    fn a_name_shows_its_process() {
        assert_eq!(number_in("isolate-*-PID-v8.log", "isolate-0x5581e0-4711-v8.log"), Some(Some(4711)));
        assert_eq!(number_in("isolate-*-PID-v8.log", "isolate-0x55-v8.log"), None);
        assert_eq!(number_in("hotspot_pidPID.log", "hotspot_pid77.log"), Some(Some(77)));
        assert_eq!(number_in("hotspot_pidPID.log", "hotspot_pid77.log.1"), None);
        assert_eq!(number_in("v8.log", "v8.log"), Some(None));
        assert_eq!(number_in("*.pypylog", "a.pypylog"), Some(None));
        assert_eq!(number_in("PID.log", "99999999999.log"), None);
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
