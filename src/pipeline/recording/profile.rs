//! Converts symbolized samples to a [`Profile`]. Each code location becomes one or more frames, and each call chain a
//! stack.

use super::frame_location::FrameLocation;
use super::named::{FrameView, Named};
use super::samples::{SampleRow, Samples};
use crate::formats::perf_data::{Event, EventAttr, Recording};
use crate::model::chains::{ChainId, PlaceId};
use crate::model::stacks::{
    Frame, FrameId, FrameKind, Keep, Profile, Row, Sampling, Series, StackId, TRUNCATED, TrackId, UNKNOWN, Unit,
};
use crate::runtimes::Tiers;
use crate::runtimes::java_calls;

/// A profile with a recording's stacks and threads, and tables to translate the recording's IDs to those of the
/// profile.
#[derive(Debug)]
pub(super) struct ProfileTables {
    /// The profile. It has one series per event, in the recording's order.
    pub(super) profile: Profile,
    /// For each call chain of the recording, the ID of its stack in the profile; `None` for chains without frames.
    stacks: Vec<Option<StackId>>,
    /// For each thread of the recording, its ID in the profile.
    tracks: Vec<TrackId>,
}

impl ProfileTables {
    /// Converts locations to frames and call chains to stacks. The profile doesn't have any rows yet.
    pub(super) fn new(recording: &Recording, samples: &Samples, named: &Named, keep: Keep) -> Self {
        let mut profile = Profile::empty(keep);
        profile.perf_names = true;
        let stacks = stacks(samples, named, &mut profile);
        let tracks = samples.tracks.items().iter().map(|track| profile.track(track.clone())).collect();
        profile.series = recording.events.iter().map(series).collect();
        Self { profile, stacks, tracks }
    }

    /// Adds samples to the profile. The IDs of their call chains and threads are those of the recording, and are
    /// replaced by the profile's IDs of stacks and threads.
    pub(super) fn push(&mut self, rows: &[SampleRow]) {
        for row in rows {
            let new = self.row(row);
            self.profile.push(row.event as usize, new);
        }
    }

    /// A sample with the profile's IDs of stack and thread instead of the recording's.
    pub(super) fn row(&self, row: &SampleRow) -> Row {
        Row {
            track: self.tracks[row.track as usize],
            stack: row.chain.and_then(|chain| self.stacks[chain.0 as usize]),
            weight: row.period,
            count: row.count,
            time: row.time.filter(|time| time.is_valid()),
        }
    }

    /// Removes all rows. Stacks and threads stay.
    pub(super) fn clear(&mut self) {
        self.profile.series.iter_mut().for_each(|series| series.rows.clear());
    }
}

fn series(event: &Event) -> Series {
    let name = &event.name;
    let unit = Unit::from_event_name(name);
    Series { name: name.to_owned(), unit, sampling: sampling(&event.attr), ..Series::default() }
}

/// How an event was sampled (period or frequency). `None` if perf wrote 0, which means that the counter was only read.
fn sampling(attr: &EventAttr) -> Option<Sampling> {
    let sampling = if attr.is_frequency() { Sampling::Frequency } else { Sampling::Period };
    Some(attr.period_or_frequency).filter(|often| *often != 0).map(sampling)
}

/// The profile's stack for each call chain. If a chain has the maximum length, its outermost frame is only a mark
/// ([`LIMIT_FRAME`](super::frame_location::LIMIT_FRAME)). If threads start in the function of the next inner frame, the
/// chain is complete, and the mark is dropped. Otherwise a frame that says `[truncated]` replaces the mark.
fn stacks(samples: &Samples, named: &Named, profile: &mut Profile) -> Vec<Option<StackId>> {
    let frames = frames(samples, named, profile);
    let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(samples.chains.len());
    // The ID of the chain that consists only of `LIMIT_FRAME`. Chains that end in this mark have that chain as their
    // outermost caller. There is at most one such chain, because equal chains have the same ID.
    let mut limit_chain = None;
    // A chain is a code location and the chain of its callers. `nodes` lists the chains by their IDs, callers first.
    for (caller, place) in samples.chains.nodes() {
        let mut stack = caller.and_then(|caller| stacks[caller.0 as usize]);
        if samples.chains.places()[place.0 as usize] == FrameLocation::LIMIT {
            // `frames` has no frames for the mark, so this chain gets no stack (`None`).
            limit_chain = Some(ChainId(stacks.len() as u32));
        } else if caller.is_some() && caller == limit_chain && !named.starts_thread(place) {
            let name = profile.name(TRUNCATED);
            let truncated = profile.frame(Frame::new(name, FrameKind::User));
            stack = Some(profile.stack(None, truncated));
        }
        for &frame in &*frames[place.0 as usize] {
            stack = Some(profile.stack(stack, frame));
        }
        stacks.push(stack);
    }
    stacks
}

/// If more functions than this are at one code location, their frames don't keep addresses. Compilers don't inline that
/// deeply. With addresses, each such location would have hundreds of frames of its own.
const MOST_WITH_ADDRESS: usize = 64;

/// For each code location, its frames, outermost first. Empty for the mark that a chain may be truncated.
fn frames(samples: &Samples, named: &Named, profile: &mut Profile) -> Vec<Box<[FrameId]>> {
    let mut tiers = Tiers::default();
    let mut frames_by_place = Vec::with_capacity(samples.chains.places().len());
    for (id, place) in (0..).map(PlaceId).zip(samples.chains.places()) {
        let mut frames = Vec::new();
        if *place != FrameLocation::LIMIT {
            // Only a damaged file has so many inlined calls at one location. Frames with addresses are all different,
            // so each such location would add hundreds of them.
            let keeps_addr = named.frames(id).count() <= MOST_WITH_ADDRESS;
            for view in named.frames(id) {
                let addr = view.addr.filter(|_| keeps_addr);
                frames.push(frame(profile, &mut tiers, &FrameView { addr, ..view }));
            }
        }
        frames.reverse();
        frames_by_place.push(frames.into_boxed_slice());
    }
    frames_by_place
}

/// Adds a symbolized frame to the profile, with the tier of its JIT code. A frame without a name is called [`UNKNOWN`].
fn frame(profile: &mut Profile, tiers: &mut Tiers, view: &FrameView<'_>) -> FrameId {
    let name = profile.name(view.name.unwrap_or(UNKNOWN));
    let [module, build, file] = [view.module, view.build, view.file].map(|text| text.map(|text| profile.name(text)));
    // A function that is inlined into JIT code counts as JIT code: it has a tier, and it is the same function as where
    // it was compiled on its own.
    let kind = if view.inlined && !view.kind.is_jit() { FrameKind::Inlined } else { view.kind };
    let jit = view.name.filter(|_| kind == FrameKind::Jit);
    let tier = jit.and_then(|text| tiers.find(name, text, view.runtimes));
    // perf-map-agent lists inlined calls in the name of the code that contains them. They are recognized by the
    // notation that the agent uses for Java's methods.
    let from_joined_name = view.inlined && jit.is_some_and(java_calls::is_method);
    profile.frame(Frame {
        module,
        build,
        file,
        line: view.line,
        addr: view.addr,
        tier,
        from_joined_name,
        ..Frame::new(name, kind)
    })
}
