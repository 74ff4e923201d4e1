//! The edits: locations get lines, or copies with lines where they mean several functions. Nothing of it depends on how
//! the message is written.

use super::uses::{LocationUse, LocationUses};
use crate::contract::unsymbolized::{BareAddress, NamedCall, meanings};
use crate::error::{Error, Result};
use crate::formats::otlp::message::Message;
use crate::model::Pid;
use crate::model::interner::Interner;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The functions at an address.
pub(super) type Asked<'a> = dyn Fn(&BareAddress) -> Vec<NamedCall<'a>> + 'a;

/// A line of a location.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewLine {
    pub(super) function: u64,
    /// Counted from 1; 0 if it is not known.
    pub(super) line: u32,
}

/// A function, by the places of its strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NewFunction {
    pub(super) name: u64,
    pub(super) file: u64,
}

/// The changes of a message.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// By location, the innermost call first.
    pub(super) lines: BTreeMap<u64, Vec<NewLine>>,
    /// Locations like others, with lines of their own, which come in behind all.
    pub(super) copies: Vec<(u64, Vec<NewLine>)>,
    /// Stacks that come in behind all.
    pub(super) stacks: Interner<Vec<u64>, u32>,
    /// The stacks that samples of a process have in place of others.
    pub(super) moved: FxHashMap<(u64, Option<Pid>), u64>,
    pub(super) functions: Interner<NewFunction, u32>,
    pub(super) strings: Interner<String, u32>,
}

/// The places of the strings that the message has, once one is requested.
type OldStrings<'d> = Option<FxHashMap<&'d [u8], u64>>;

impl Plan {
    /// Looks up the names.
    pub(super) fn of(message: &Message<'_>, uses: &LocationUses, asked: &Asked<'_>) -> Result<Self> {
        let (mut plan, mut old) = (Self::default(), None);
        // The locations that are in place of others.
        let mut moved: FxHashMap<LocationUse, u64> = FxHashMap::default();
        let calls = |one: &LocationUse| uses.address(one).map(|address| asked(&address)).unwrap_or_default();
        for of_location in uses.list.chunk_by(|a, b| a.location == b.location) {
            let mut meanings = meanings(of_location, calls).into_iter();
            let (Some(first), Some(one)) = (meanings.next(), of_location.first()) else { continue };
            if !first.calls.is_empty() {
                let lines = plan.named(&first.calls, &mut old, message)?;
                plan.lines.insert(one.location, lines);
            }
            for other in meanings {
                let at = behind(message.dictionary.locations.len(), plan.copies.len())?;
                let lines = plan.named(&other.calls, &mut old, message)?;
                plan.copies.push((one.location, lines));
                moved.extend(other.uses.iter().map(|one| (*one, at)));
            }
        }
        if !moved.is_empty() {
            plan.move_stacks(message, uses, &moved)?;
        }
        Ok(plan)
    }

    /// True if all stays.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.copies.is_empty()
    }

    fn move_stacks(
        &mut self,
        message: &Message<'_>,
        uses: &LocationUses,
        moved: &FxHashMap<LocationUse, u64>,
    ) -> Result<()> {
        for &(stack, pid) in &uses.stacks {
            let before = message.stack(stack);
            let new = |(depth, at): (usize, &u64)| {
                uses.at(&before, depth, pid).and_then(|one| moved.get(&one)).copied().unwrap_or(*at)
            };
            let after: Vec<u64> = before.iter().enumerate().map(new).collect();
            if after != before {
                let place = self.stacks.intern(after);
                self.moved.insert((stack, pid), behind(message.dictionary.stacks.len(), place as usize)?);
            }
        }
        Ok(())
    }

    fn named<'d>(
        &mut self,
        calls: &[NamedCall<'_>],
        old: &mut OldStrings<'d>,
        message: &Message<'d>,
    ) -> Result<Vec<NewLine>> {
        let line = |call: &NamedCall<'_>| {
            let name = self.string(call.name, old, message)?;
            let file = self.string(call.file, old, message)?;
            let place = self.functions.intern(NewFunction { name, file });
            let function = behind(message.dictionary.functions.len().max(1), place as usize)?;
            Ok(NewLine { function, line: call.line })
        };
        calls.iter().map(line).collect()
    }

    /// The place of a string. A value that is not text becomes text.
    fn string<'d>(&mut self, text: &[u8], old: &mut OldStrings<'d>, message: &Message<'d>) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        let strings = &message.dictionary.strings;
        let numbered = strings.iter().enumerate().rev().map(|(at, text)| (*text, at as u64));
        let old = old.get_or_insert_with(|| numbered.collect());
        let text = String::from_utf8_lossy(text);
        match old.get(text.as_bytes()) {
            Some(at) => Ok(*at),
            None => behind(strings.len(), self.strings.number(&*text) as usize),
        }
    }
}

/// The number behind the last one.
fn behind(count: usize, more: usize) -> Result<u64> {
    let at = count.checked_add(more).filter(|at| i32::try_from(*at).is_ok());
    at.map(|at| at as u64)
        .ok_or_else(|| Error::new("has as many elements as a table can have: no further one can be added"))
}
