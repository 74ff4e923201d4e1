//! Logs of engines that report JIT code though nobody asked for a jitdump or a perf map: what was where and when, some
//! with lines, inlined calls and machine code.
//!
//! [`JIT_LOGS`] is the one table of them: how people call one, by which names it goes, how it is known and read. A new
//! log is its own file or folder here, a `mod` line and an entry; `sources` finds, dates and loads it.
//!
//! The content of a log becomes a [`CodeLog`], which owns it: engines spread a name over several fields and lines, so
//! that it is put together here.

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

/// Every log that is read.
pub const JIT_LOGS: &[JitLog] =
    &[v8::V8_LOG, hotspot::COMPILATION, hotspot::CODE_LIST, luajit::DUMP, pypy::LOG, gdb::CORE];

/// One sort of log, by its place in [`JIT_LOGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(u8);

impl LogId {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..JIT_LOGS.len() as u8).map(Self)
    }

    /// The facts about it.
    pub fn log(self) -> &'static JitLog {
        &JIT_LOGS[self.0 as usize]
    }

    /// The sort of a log that begins like this.
    pub fn detect(head: &[u8]) -> Option<Self> {
        Self::all().find(|id| (id.log().sniff)(head))
    }

    /// The sorts that go by this name, with the number of the process if the name gives one.
    pub fn named(name: &str) -> impl Iterator<Item = (Self, Option<i32>)> {
        let patterns = Self::all().flat_map(|id| id.log().files.iter().map(move |pattern| (id, *pattern)));
        let patterns = patterns.filter(|(_, pattern)| may_fit(pattern, name));
        patterns.filter_map(move |(id, pattern)| Some((id, number_in(pattern, name)?)))
    }
}

/// True if a name start and end as a pattern does: a directory may hold a hundred thousand names that do not.
fn may_fit(pattern: &str, name: &str) -> bool {
    let (begin, end) = (pattern.bytes().zip(name.bytes()), pattern.bytes().rev().zip(name.bytes().rev()));
    let same_until = |open: [u8; 2]| move |&(pattern, _): &(u8, u8)| !open.contains(&pattern);
    begin.take_while(same_until(*b"*P")).all(|(pattern, name)| pattern == name)
        && end.take_while(same_until(*b"*D")).all(|(pattern, name)| pattern == name)
}

/// True if a name fits a pattern, and the number that is in it for `PID`, if the pattern has that.
fn number_in(pattern: &str, name: &str) -> Option<Option<i32>> {
    let Some((before, behind)) = pattern.split_once("PID") else {
        return matches_glob(pattern.as_bytes(), name.as_bytes()).then_some(None);
    };
    // The number is all digits between its neighbors: a `*` before it takes none of them.
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
