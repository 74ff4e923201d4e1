//! The instruction that each sample is at, for those who add up samples themselves.

use super::annotated::{Code, Listing};
use super::functions::{FunctionPlace, Functions};
use crate::model::chains::PlaceId;
use crate::pipeline::recording::Examined;
use rustc_hash::FxHashMap;

/// An instruction of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Index into the listings.
    pub listing: u32,
    /// Index into the lines of that one.
    pub line: u32,
}

/// The places of an event's samples.
#[derive(Debug)]
pub struct EventSpots {
    /// The name of the event.
    pub event: String,
    /// One for each sample, in the order of the recording, which is that of a profile's rows; `None` if its code is not
    /// listed.
    pub rows: Vec<Option<Spot>>,
}

/// The spots of all events of the recording, in its order: those of a profile's series.
pub(super) fn spots(
    examined: &Examined<'_>,
    functions: &Functions,
    picked: &[usize],
    listings: &[Listing],
) -> Vec<EventSpots> {
    let numbers: FxHashMap<usize, usize> = picked.iter().enumerate().map(|(listing, &at)| (at, listing)).collect();
    let spot = |place: &Option<FunctionPlace>| {
        let FunctionPlace { function, offset } = (*place)?;
        let listing = *numbers.get(&function)?;
        let Code::Listed { lines, .. } = &listings[listing].code else { return None };
        let line = lines.partition_point(|line| line.offset + line.len <= offset);
        (line < lines.len()).then_some(Spot { listing: listing as u32, line: line as u32 })
    };
    let of_place: Vec<Option<Spot>> = functions.of_place.iter().map(spot).collect();
    let recording = &examined.resolution.survey.recording;
    let events = recording.events.iter().map(|event| EventSpots { event: event.name.clone(), rows: Vec::new() });
    let mut events: Vec<EventSpots> = events.collect();
    for row in &examined.samples.rows {
        let place: Option<PlaceId> = examined.samples.chains.up(row.chain).next();
        if let Some(event) = events.get_mut(row.event as usize) {
            event.rows.push(place.and_then(|place| of_place[place.0 as usize]));
        }
    }
    events
}
