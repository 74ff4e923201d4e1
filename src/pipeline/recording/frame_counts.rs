//! How many frames of the samples have a name.

use super::named::Named;
use super::samples::Samples;
use crate::model::chains::PlaceId;
use crate::model::frame_counts::FrameCounts;

/// Counts the frames of all samples.
pub(super) fn count(samples: &Samples, named: &Named) -> FrameCounts {
    let places: Vec<FrameCounts> =
        (0..samples.chains.places().len() as u32).map(|place| of_place(PlaceId(place), named)).collect();
    // A caller's chain stands before those that continue it.
    let mut chains: Vec<FrameCounts> = Vec::with_capacity(samples.chains.len());
    for (caller, place) in samples.chains.nodes() {
        let mut counts = places[place.0 as usize];
        counts += caller.map(|caller| chains[caller.0 as usize]).unwrap_or_default();
        chains.push(counts);
    }
    let mut all = FrameCounts::default();
    for (chain, count) in samples.rows.iter().filter_map(|row| Some((row.chain?, row.count))) {
        let FrameCounts { frames, unnamed, jit, jit_unnamed } = chains[chain.0 as usize];
        let times = |frames: u64| frames.saturating_mul(count);
        all += FrameCounts {
            frames: times(frames),
            unnamed: times(unnamed),
            jit: times(jit),
            jit_unnamed: times(jit_unnamed),
        };
    }
    all
}

fn of_place(place: PlaceId, named: &Named) -> FrameCounts {
    let mut counts = FrameCounts::default();
    let jit = u64::from(named.is_in_jit_memory(place));
    named.each(place, |frame| {
        if !frame.truncated {
            let unnamed = u64::from(frame.name.is_none());
            counts += FrameCounts { frames: 1, unnamed, jit, jit_unnamed: jit & unnamed };
        }
    });
    counts
}
