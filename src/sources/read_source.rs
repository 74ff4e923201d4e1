//! One source, read into code events.

use super::account::{Account, SourceState};
use super::logs::DatedLog;
use crate::error::Warnings;
use crate::resolve::code_map::CodeList;

/// One source, read.
pub(super) struct ReadSource<'data> {
    pub(super) list: CodeList<'data>,
    pub(super) account: Account,
    pub(super) machine: Option<u16>,
    pub(super) warnings: Warnings,
}

/// The code of a source, how it was read, and its machine (e_machine).
pub(super) type SourceEvents<'data> = (CodeList<'data>, SourceState, Option<u16>);

impl<'data> ReadSource<'data> {
    /// Takes what a log states, now that it has times. The number of the dump's functions for which it gives the lines.
    pub(super) fn take(&mut self, dated: DatedLog<'data>, lines_of: u64) {
        self.warnings.extend(dated.warning);
        self.list = dated.list;
        if let SourceState::Loaded { codes, clock, times, lent, .. } = &mut self.account.state {
            (*codes, *clock, *times, *lent) = (self.list.code_count() as u64, dated.clock, dated.times, lines_of);
        }
    }
}
