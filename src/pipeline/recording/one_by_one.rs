//! Passes on a recording's samples one by one, each with the addresses of its frames.

use super::frame_location::FrameLocation;
use super::named::Named;
use super::options::RecordingOptions;
use super::profile::ProfileTables;
use super::resolution::Resolution;
use super::samples::{Merging, Samples};
use super::with_resolution;
use crate::error::{Result, Warnings};
use crate::model::Addr;
use crate::model::chains::PlaceId;
use crate::model::stacks::{Keep, Profile, Row};
use crate::pipeline::open::Input;
use crate::pipeline::{Job, Outcome};
use std::path::Path;

/// A sample of a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneSample<'a> {
    /// The profile with the stack and the thread to which `row` refers. It has no rows itself.
    pub(crate) tables: &'a Profile,
    /// The index of the event in the profile.
    pub(crate) event: usize,
    /// The sample, whose IDs are those of the profile.
    pub(crate) row: &'a Row,
    /// The CPU that the sample was taken on; `None` if it wasn't recorded.
    pub(crate) cpu: Option<u32>,
    /// The address of each of the stack's frames in the process's memory, innermost first; `None` for a frame that only
    /// marks that callers are missing. Empty if addresses aren't kept.
    pub(crate) addresses: &'a [Option<Addr>],
}

/// Symbolizes a recording and calls `each` with its samples, in the order of the recording. The recording is read
/// twice, so that the memory needed grows with the number of distinct stacks, not with the number of samples.
pub(crate) fn for_each_sample(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    each: &mut dyn FnMut(&OneSample<'_>) -> Result<()>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let Outcome { warnings, estimates, .. } = outcome;
    with_resolution(input, path, options, job, warnings, |resolution, warnings| {
        resolution.check_events()?;
        if !resolution.survey.recording.has_stacks() {
            let estimate = "no call chains were recorded, so stacks only have the innermost function";
            estimates.push(format!("{}: {estimate}", path.display()));
        }
        pass_samples(resolution, options.keep_addr, each, job, warnings)
    })
}

/// Reads and names the samples of a recording, and calls `each` with one after the other. With `keep_addr`, each sample
/// comes with the addresses of its frames.
fn pass_samples(
    resolution: &Resolution<'_>,
    keep_addr: bool,
    each: &mut dyn FnMut(&OneSample<'_>) -> Result<()>,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<()> {
    // The first pass only reads sums. When all stacks are known and named, a second pass reads the rows.
    let (samples, named) = resolution.named_samples(Keep::Sums, job, warnings)?;
    let tables = ProfileTables::new(resolution.survey.recording, &samples, &named, Keep::EachRow);
    tables.profile.check()?;
    let frames_by_place = if keep_addr { count_frames_by_place(&samples, &named) } else { Vec::new() };
    // `merged` gives the rows of the second pass the IDs of the first one, for which the tables were made.
    let mut merged = Merging::new(samples);
    let mut addresses: Vec<Option<Addr>> = Vec::new();
    resolution.read(Keep::EachRow, job, |mut chunk| {
        for row in merged.translate(&mut chunk)? {
            addresses.clear();
            if keep_addr {
                for place in merged.samples.chains.places_up(row.chain) {
                    let PlaceFrames { count, address } = frames_by_place[place.0 as usize];
                    // With inlined calls, a location becomes several frames, which all have its address.
                    addresses.extend(std::iter::repeat_n(address, count));
                }
            }
            each(&OneSample {
                tables: &tables.profile,
                event: row.event as usize,
                row: &tables.row(&row),
                cpu: row.cpu,
                addresses: &addresses,
            })?;
        }
        Ok(())
    })
}

/// What the stacks of the profile contain for a code location.
struct PlaceFrames {
    /// The number of frames: more than one if calls were inlined there.
    count: usize,
    /// The address, which all of these frames share; `None` if the location is only a mark that frames are missing.
    address: Option<Addr>,
}

/// For each code location, how many frames of a stack it becomes, and their address.
fn count_frames_by_place(samples: &Samples, named: &Named) -> Vec<PlaceFrames> {
    let mut places = Vec::with_capacity(samples.chains.places().len());
    for (id, place) in (0..).map(PlaceId).zip(samples.chains.places()) {
        let mut frames = PlaceFrames { count: 0, address: None };
        // There are two marks for missing outer frames, and neither has an address. `LIMIT` says that frames may be
        // missing. It isn't a frame in the profile ([`ProfileTables`]). The other mark says that frames are missing. It
        // becomes a frame named `[truncated]`, for which `frame.truncated` is true.
        if *place != FrameLocation::LIMIT {
            for frame in named.frames(id) {
                frames.count += 1;
                frames.address = (!frame.truncated).then_some(Addr(frame.ip));
            }
        }
        places.push(frames);
    }
    places
}
