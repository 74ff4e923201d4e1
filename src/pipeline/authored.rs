//! Profiles that came with names: the names and lines of generated scripts → those of their authors.
//!
//! What is resolved here has them from its code map already ([`crate::sources::SourceMaps`]). Other inputs have V8's names
//! of functions as they are (`JS:*i /app.min.js:1:679` in folded stacks), or name, script, line and column of each.

use super::job::Outcome;
use crate::model::stacks::{ChangedFrame, Frame, Profile};
use crate::runtimes::script_name::ScriptName;
use crate::sources::{SourceMaps, SourceOptions};
use std::path::Path;

/// What readers call a function without a name.
const ANONYMOUS: &str = "(anonymous)";

/// Changes the frames of a profile, if source maps are used. `beside` is the directory of the input.
pub(super) fn apply(profile: &mut Profile, options: &SourceOptions, beside: Option<&Path>, outcome: &mut Outcome) {
    if !options.source_maps.is_on() {
        return;
    }
    let functions = profile.frames().filter_map(|(_, frame)| named(profile, frame));
    let maps = SourceMaps::of(functions, &options.map_search(beside), &mut outcome.warnings);
    outcome.summary.extend(maps.remarks());
    if !maps.is_empty() || profile.frames().any(|(_, frame)| frame.column > 0) {
        profile.change_frames(|profile, frame| changed(profile, frame, &maps));
    }
}

/// The function of a frame and where it starts, in V8's terms.
fn named<'p>(profile: &'p Profile, frame: &Frame) -> Option<ScriptName<'p>> {
    let name = profile.name_of(frame.name);
    if frame.column == 0 {
        return ScriptName::parse(name);
    }
    let function = std::str::from_utf8(name).ok()?;
    let script = std::str::from_utf8(profile.name_of(frame.file?)).ok()?;
    let function = if function == ANONYMOUS { "" } else { function };
    Some(ScriptName { head: "", function, script, line: frame.line, column: frame.column })
}

fn changed(profile: &Profile, frame: &Frame, maps: &SourceMaps) -> Option<ChangedFrame> {
    let generated = named(profile, frame)?;
    let (place, function) = maps.function(&generated)?;
    let name = match frame.column {
        0 => generated.spell(function.as_deref().unwrap_or(generated.function), place.file, place.line, place.column),
        _ => function.unwrap_or_else(|| String::from_utf8_lossy(profile.name_of(frame.name)).into_owned()),
    };
    Some(ChangedFrame { name: name.into_bytes(), file: place.file.into(), line: place.line })
}
