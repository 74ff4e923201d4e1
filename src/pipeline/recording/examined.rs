//! A symbolized recording, for commands that inspect it. Also counts named and unnamed frames, and divides the weight
//! of events among kinds of code.

use super::named::Named;
use super::resolution::Resolution;
use super::samples::Samples;
use crate::analysis::code_shares::CodeShares;
use crate::formats::perf_data::Event;
use crate::jit::Account;
use crate::model::chains::PlaceId;
use crate::model::frame_counts::FrameCounts;

/// A symbolized recording with everything that its names came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examined<'a> {
    /// Processes, mappings, sources of JIT code, and files.
    pub(crate) resolution: &'a Resolution<'a>,
    /// The samples as rows: single samples or sums.
    pub(crate) samples: &'a Samples,
    /// The names of all code locations that occur in `samples`.
    pub(crate) named: &'a Named,
    /// The size of the unpacked input in bytes.
    pub(crate) input_len: u64,
}

impl Examined<'_> {
    /// What became of each source of JIT code.
    pub(crate) fn accounts(&self) -> &[Account] {
        &self.resolution.sources.accounts
    }

    /// How many frames of all samples have names, and how many haven't.
    pub(crate) fn frame_counts(&self) -> FrameCounts {
        count_frames(self.samples, self.named)
    }

    /// For each event, how its weight is divided among kinds of code, by innermost frame.
    pub(crate) fn code_shares(&self) -> Vec<CodeShares> {
        code_shares(self.samples, self.named, &self.resolution.survey.recording.events)
    }
}

/// For each event, how its weight is divided among kinds of code, by innermost frame.
pub(super) fn code_shares(samples: &Samples, named: &Named, events: &[Event]) -> Vec<CodeShares> {
    // For each code location, the kind of its innermost function, and whether that has a name.
    let mut innermost_by_place = Vec::new();
    for place in 0..samples.chains.places().len() as u32 {
        let innermost = named.frames(PlaceId(place)).next();
        innermost_by_place.push(innermost.map(|frame| (frame.kind, frame.name.is_some())));
    }
    let mut shares: Vec<_> = events.iter().map(|event| CodeShares::new(&event.name)).collect();
    for row in &samples.rows {
        let leaf = samples.chains.places_up(row.chain).next();
        shares[row.event as usize].add(leaf.and_then(|place| innermost_by_place[place.0 as usize]), row.period);
    }
    shares
}

/// Counts the named and unnamed frames of all samples.
pub(super) fn count_frames(samples: &Samples, named: &Named) -> FrameCounts {
    let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
    // For each chain, the number of samples whose stack contains it. First, count the samples whose stack is exactly
    // this chain.
    let mut through: Vec<u64> = vec![0; samples.chains.len()];
    for row in &samples.rows {
        if let Some(chain) = row.chain {
            add(&mut through[chain.0 as usize], row.count);
        }
    }
    // For each code location, how often it occurs in the stacks of samples. Go from callees to callers, that is, from
    // the largest chain ID down: a callee's ID is larger than its caller's. So the number of a chain is complete before
    // it is added to that of the caller.
    let mut hits: Vec<u64> = vec![0; samples.chains.places().len()];
    for (chain, (caller, place)) in samples.chains.nodes().enumerate().rev() {
        let count = through[chain];
        add(&mut hits[place.0 as usize], count);
        if let Some(caller) = caller {
            add(&mut through[caller.0 as usize], count);
        }
    }
    let mut total = FrameCounts::default();
    for (place, hits) in (0..).map(PlaceId).zip(hits) {
        let counts = count_place(place, named);
        total += FrameCounts {
            frames: counts.frames.saturating_mul(hits),
            unnamed: counts.unnamed.saturating_mul(hits),
            jit: counts.jit.saturating_mul(hits),
            jit_unnamed: counts.jit_unnamed.saturating_mul(hits),
            other_time: counts.other_time.saturating_mul(hits),
        };
    }
    total
}

/// Counts the named and unnamed functions at one code location. A mark that frames are missing doesn't count.
fn count_place(place: PlaceId, named: &Named) -> FrameCounts {
    let mut counts = FrameCounts::default();
    // Each of these numbers is 0 or 1, so `&` below means that both conditions hold.
    let jit = u64::from(named.is_in_jit_memory(place));
    // Counts only for unnamed frames: JIT code is known at the address, but for other times than the sample's.
    let other_time = u64::from(named.has_code_at_other_times(place));
    for frame in named.frames(place) {
        if !frame.truncated {
            let unnamed = u64::from(frame.name.is_none());
            let jit_unnamed = jit & unnamed;
            counts += FrameCounts { frames: 1, unnamed, jit, jit_unnamed, other_time: jit_unnamed & other_time };
        }
    }
    counts
}
