//! Plans the changes to a message: which locations get lines, and which get copies because they mean several functions.
//! Independent of how the message is encoded.

use super::uses::LocationUses;
use crate::contract::unsymbolized::{BareAddress, LocationNames, NamedCall};
use crate::error::{Error, Result};
use crate::formats::otlp::message::Message;
use crate::model::Pid;
use crate::model::interner::Interner;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Looks up an address: the function there preceded by the calls inlined in it, the innermost first.
pub(super) type LookUp<'a> = dyn Fn(&BareAddress) -> Vec<NamedCall<'a>> + 'a;

/// A line to add to a location.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewLine {
    /// Index in the function table.
    pub(super) function: u64,
    /// Starts at 1; 0 if unknown.
    pub(super) line: u32,
}

/// A function to add, with indices of its strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NewFunction {
    pub(super) name: u64,
    pub(super) file: u64,
}

/// All changes to a message.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Lines to add, by location, the innermost call first.
    pub(super) lines: BTreeMap<u64, Vec<NewLine>>,
    /// Locations to append: a copy of the location with this index, plus these lines.
    pub(super) copies: Vec<(u64, Vec<NewLine>)>,
    /// Stacks to append, each as a list of location indices.
    pub(super) stacks: Interner<Vec<u64>, u32>,
    /// The new stack index for samples of a process, by the old stack index and the process.
    pub(super) moved: FxHashMap<(u64, Option<Pid>), u64>,
    pub(super) functions: Interner<NewFunction, u32>,
    pub(super) strings: Interner<String, u32>,
}

/// The indices of the message's existing strings; `None` until they are needed.
type OldStrings<'d> = Option<FxHashMap<&'d [u8], u64>>;

impl Plan {
    /// Looks up the names and plans the changes.
    pub(super) fn new(message: &Message<'_>, uses: &LocationUses, look_up: &LookUp<'_>) -> Result<Self> {
        let (mut plan, mut old_strings) = (Self::default(), None);
        let names = LocationNames::new(&uses.list, |one| {
            uses.address(one).map(|address| look_up(&address)).unwrap_or_default()
        });
        for (location, calls) in &names.named {
            let lines = plan.new_lines(calls, &mut old_strings, message)?;
            plan.lines.insert((*location).into(), lines);
        }
        for (location, calls) in &names.copies {
            let lines = plan.new_lines(calls, &mut old_strings, message)?;
            plan.copies.push(((*location).into(), lines));
        }
        if !names.copies.is_empty() {
            plan.move_stacks(message, uses, &names)?;
        }
        Ok(plan)
    }

    /// Whether the message stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.copies.is_empty()
    }

    /// Adds copies of the stacks that contain replaced locations.
    fn move_stacks(
        &mut self,
        message: &Message<'_>,
        uses: &LocationUses,
        names: &LocationNames<'_>,
    ) -> Result<()> {
        for &(stack, pid) in &uses.stacks {
            let old_locations = message.stack(stack);
            let mut new_locations = old_locations.clone();
            for (depth, location) in new_locations.iter_mut().enumerate() {
                if let Some(one) = uses.get(&old_locations, depth, pid)
                    && let Some(copy) = names.copy_of(&one)
                {
                    *location = appended_index(message.dictionary.locations.len(), copy)?;
                }
            }
            if new_locations != old_locations {
                let number = self.stacks.intern(new_locations);
                let index = appended_index(message.dictionary.stacks.len(), number as usize)?;
                self.moved.insert((stack, pid), index);
            }
        }
        Ok(())
    }

    /// The lines for `calls`. Adds the functions and strings that the lines need.
    fn new_lines<'d>(
        &mut self,
        calls: &[NamedCall<'_>],
        old_strings: &mut OldStrings<'d>,
        message: &Message<'d>,
    ) -> Result<Vec<NewLine>> {
        let mut lines = Vec::with_capacity(calls.len());
        for call in calls {
            let name = self.string(call.name, old_strings, message)?;
            let file = self.string(call.file, old_strings, message)?;
            let number = self.functions.intern(NewFunction { name, file });
            let function = appended_index(message.dictionary.functions.len().max(1), number as usize)?;
            lines.push(NewLine { function, line: call.line });
        }
        Ok(lines)
    }

    /// The index of a string, which is added if it is new. Invalid UTF-8 is replaced.
    fn string<'d>(&mut self, text: &[u8], old: &mut OldStrings<'d>, message: &Message<'d>) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        let strings = &message.dictionary.strings;
        let old = old.get_or_insert_with(|| {
            // Of equal strings, the first one counts.
            strings.iter().enumerate().rev().map(|(index, text)| (*text, index as u64)).collect()
        });
        let text = String::from_utf8_lossy(text);
        match old.get(text.as_bytes()) {
            Some(index) => Ok(*index),
            None => appended_index(strings.len(), self.strings.number(&*text) as usize),
        }
    }
}

/// The index of an appended element: `count` elements existed before, and `more` were appended before this one. Fails
/// if the index doesn't fit into `int32`.
fn appended_index(count: usize, more: usize) -> Result<u64> {
    match count.checked_add(more) {
        Some(index) if i32::try_from(index).is_ok() => Ok(index as u64),
        _ => Err(Error::new("is full: no element can be added")),
    }
}
