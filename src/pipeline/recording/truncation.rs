//! Finds out why stacks lack their outer frames, for outputs that show them as `[truncated]`.

use super::examined::Examined;
use super::frame_location::FrameLocation;
use super::samples::{SampleRow, StackEnd};
use crate::model::chains::PlaceId;
use crate::model::process::CpuMode;
use crate::model::stacks::TRUNCATED;
use crate::symbolize::Location;
use crate::symbolize::dso::{DsoKind, Dsos};
use std::collections::BTreeMap;

/// Why a stack is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// Code without frame pointers misled the kernel, so that the outermost recorded frames are not real. `in_jit` says
    /// whether it is JIT code.
    NoFramePointers { in_jit: bool },
    /// The stack has more frames than the kernel was set to record.
    FrameLimit(u16),
    /// The stack is larger than its copy.
    CopySize,
    /// Nothing says how to unwind the copy of the stack any further.
    NoUnwindData,
}

/// Outputs mention truncated stacks if at least this percentage of samples has such a stack.
const WORTH_STATING: f64 = 1.0;

/// A sentence with the share of samples whose stacks are truncated, and why. If there are several reasons, it states
/// the one that affects most samples. `None` if no stacks are truncated, or only a few.
pub(super) fn describe(examined: &Examined<'_>) -> Option<String> {
    let mut all = 0u64;
    let mut counts: BTreeMap<Reason, u64> = BTreeMap::new();
    for row in &examined.samples.rows {
        all = all.saturating_add(row.count);
        if let Some(reason) = find_reason(row, examined) {
            let count = counts.entry(reason).or_default();
            *count = count.saturating_add(row.count);
        }
    }
    let truncated: u64 = counts.values().fold(0, |sum, count| sum.saturating_add(*count));
    let (reason, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let percent = 100.0 * truncated as f64 / all as f64;
    if percent < WORTH_STATING {
        return None;
    }
    let mark = String::from_utf8_lossy(TRUNCATED);
    Some(format!(
        "stacks marked {mark} ({percent:.1}% of samples) lack outer callers, mostly because {}",
        reason.explain()
    ))
}

impl Reason {
    /// The reason as a clause, and what helps.
    fn explain(self) -> String {
        match self {
            Self::NoFramePointers { in_jit: false } => {
                "the code keeps no frame pointers; record with jitgraft record --call-graph dwarf".to_owned()
            }
            Self::NoFramePointers { in_jit: true } => {
                "their JIT code keeps no frame pointers (jitgraft doctor says what helps)".to_owned()
            }
            Self::FrameLimit(limit) => {
                format!("the kernel was set to record at most {limit} frames (jitgraft doctor says what helps)")
            }
            Self::CopySize => {
                "the stacks are larger than the copies that perf recorded (jitgraft doctor says what helps)".to_owned()
            }
            // Often nothing helps, but `doctor` always names the code.
            Self::NoUnwindData => "there is no unwind data for some code (jitgraft doctor says which)".to_owned(),
        }
    }
}

/// Why the stack of a row is truncated. `None` if it isn't, as far as is known.
fn find_reason(row: &SampleRow, examined: &Examined<'_>) -> Option<Reason> {
    match row.end {
        StackEnd::Limit(limit) => reason_for_limit(row, limit, examined),
        StackEnd::CopyEnd => Some(Reason::CopySize),
        StackEnd::NoWayOn => Some(Reason::NoUnwindData),
        StackEnd::Recorded | StackEnd::Whole | StackEnd::TooDeep => None,
    }
}

/// Why a call chain with as many frames as the kernel may record is truncated. `None` if it isn't, because threads
/// start in its outermost function.
fn reason_for_limit(row: &SampleRow, limit: u16, examined: &Examined<'_>) -> Option<Reason> {
    let Examined { samples, named, resolution, .. } = *examined;
    let places = samples.chains.places();
    let chain: Vec<PlaceId> = samples.chains.places_up(row.chain).collect();
    // The frames from the outermost one on. Marks that frames may be missing aren't frames.
    let outermost_first = || chain.iter().rev().filter(|place| !places[place.0 as usize].is_mark());
    let outermost = outermost_first().next()?;
    if named.starts_thread(*outermost) {
        return None;
    }
    let dsos = resolution.spaces.dsos();
    let is_nowhere = |place: &PlaceId| places[place.0 as usize].is_nowhere(dsos);
    // If the outermost frames are in code, the stack really is longer than the limit. If some are at addresses without
    // code, the kernel followed something that wasn't a frame pointer.
    if !goes_astray(outermost_first().map(is_nowhere)) {
        return Some(Reason::FrameLimit(limit));
    }
    // The outermost real frame is in the code that has no frame pointers.
    let last_real = outermost_first().find(|place| !is_nowhere(place));
    let in_jit = last_real.is_some_and(|place| match places[place.0 as usize].location {
        Location::Code(..) => true,
        Location::File(dso, _) => dsos.get(dso).kind == DsoKind::Anonymous,
        Location::Nothing(_) => false,
    });
    Some(Reason::NoFramePointers { in_jit })
}

/// True if the outer frames of a call chain are garbage, because the kernel followed a register that is not a frame
/// pointer. In code that uses this register for other things, the chain runs in a circle or from one object to the
/// next, until it has as many frames as the kernel may record. `is_nowhere` says for each frame, from the outermost one
/// on, whether no code was mapped at its address.
pub(crate) fn goes_astray(is_nowhere: impl Iterator<Item = bool>) -> bool {
    /// The number of outermost frames to check. The circles are shorter than this.
    const END: usize = 16;
    // No code was mapped at the address, so it can't be a return address, and the frames beyond it are not real either.
    is_nowhere.take(END).any(|is_nowhere| is_nowhere)
}

impl FrameLocation {
    /// True if the frame has an address outside of the kernel at which no code was mapped.
    fn is_nowhere(&self, dsos: &Dsos) -> bool {
        match self.location {
            Location::Nothing(_) => {
                !self.is_mark() && !matches!(self.mode, CpuMode::Kernel | CpuMode::Hypervisor | CpuMode::GuestKernel)
            }
            Location::File(dso, _) => dsos.get(dso).kind == DsoKind::Data,
            Location::Code(..) => false,
        }
    }
}
