//! Named samples → [`Profile`]: every place becomes its frames, every chain one stack.

use super::Loaded;
use super::named::Shown;
use crate::model::chains::PlaceId;
use crate::model::stacks::{Frame, FrameId, FrameKind, Profile, Row, Series, StackId, TrackId, UNKNOWN, Unit};

/// The profile of a recording: one series for each event, in the recording's order.
pub(crate) fn profile(loaded: &Loaded) -> Profile {
    let Loaded { recording, samples, .. } = loaded;
    let mut profile = Profile::new();
    profile.perf_names = true;
    let frames = frames(loaded, &mut profile);
    let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(samples.chains.len());
    for (caller, place) in samples.chains.nodes() {
        let caller = caller.and_then(|caller| stacks[caller.0 as usize]);
        let stack = frames[place.0 as usize].iter().fold(caller, |stack, &frame| Some(profile.stack(stack, frame)));
        stacks.push(stack);
    }
    let tracks: Vec<TrackId> = samples.tracks.items().iter().map(|track| profile.track(track.clone())).collect();
    profile.series = recording.events.iter().map(|event| series(&event.name)).collect();
    for row in &samples.rows {
        profile.series[row.event as usize].rows.push(Row {
            track: tracks[row.track as usize],
            stack: row.chain.and_then(|chain| stacks[chain.0 as usize]),
            weight: row.period,
            count: 1,
            time: row.time,
        });
    }
    profile
}

fn series(name: &str) -> Series {
    let base = name.split([':', '/']).next().unwrap_or(name);
    // The periods of the two clocks are nanoseconds (kernel/events/core.c, perf_swevent_init_hrtimer).
    let unit = if matches!(base, "cpu-clock" | "task-clock") { Unit::Nanos } else { Unit::Named(base.to_owned()) };
    Series { name: name.to_owned(), unit, rows: Vec::new() }
}

/// The frames of every place, outermost first.
fn frames(loaded: &Loaded, profile: &mut Profile) -> Vec<Box<[FrameId]>> {
    let places = 0..loaded.samples.chains.places().len() as u32;
    let frames = places.map(|place| {
        let mut frames = Vec::new();
        loaded.named.each(PlaceId(place), |shown| frames.push(frame(profile, shown)));
        frames.reverse();
        frames.into_boxed_slice()
    });
    frames.collect()
}

fn frame(profile: &mut Profile, shown: &Shown<'_>) -> FrameId {
    let name = profile.name(shown.name.unwrap_or(UNKNOWN));
    let module = shown.module.map(|module| profile.name(module));
    let file = shown.file.map(|file| profile.name(file));
    let kind = match (shown.name, shown.module) {
        (None, None) => FrameKind::Unknown,
        _ if shown.inlined => FrameKind::Inlined,
        _ => shown.kind,
    };
    profile.frame(Frame { module, file, line: shown.line, addr: shown.addr, ..Frame::new(name, kind) })
}
