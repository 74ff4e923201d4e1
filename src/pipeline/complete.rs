//! What is done to every profile after it was read, whatever its format. Recordings of addresses do the same while they
//! are symbolized.

use super::authored;
use super::demangled;
use super::estimate;
use super::job::Outcome;
use crate::analysis::filter::Filter;
use crate::analysis::quantity::grouped;
use crate::error::{Result, Warning, Warnings};
use crate::jit::SourceOptions;
use crate::model::printable::readable;
use crate::model::stacks::Profile;
use std::path::Path;

/// What the user wants to be done to a profile after it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion<'a> {
    /// The samples to keep.
    pub(super) filter: &'a Filter,
    /// True if mangled names are to be demangled.
    pub(super) demangle: bool,
    /// Where to find source maps. `None` if the reader has applied them.
    pub(super) source_maps: Option<&'a SourceOptions>,
}

/// Where a profile was read from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    /// What the input is called in messages; `None` if the profile is the sum of several inputs.
    pub(super) input: Option<&'a Path>,
    /// The directory of the input, where source maps may be.
    pub(super) directory: Option<&'a Path>,
}

/// Demangles names, applies source maps, and filters samples. Warns about sums that are too large for outputs, and
/// notes in the profile if its stacks are only estimates.
pub(super) fn complete(
    profile: &mut Profile,
    Completion { filter, demangle, source_maps }: Completion<'_>,
    Origin { input, directory }: Origin<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    profile.check()?;
    if demangle {
        demangled::apply(profile);
    }
    if let Some(options) = source_maps {
        authored::apply(profile, options, directory, outcome);
    }
    filter.apply(profile);
    let sum_warnings = warn_of_large_sums(profile);
    outcome.warnings.append(match input {
        Some(path) => sum_warnings.in_file(path),
        None => sum_warnings,
    });
    if let Some(note) = estimate::note(profile) {
        let input = input.unwrap_or(Path::new("the inputs"));
        outcome.estimates.push(format!("{}: {note}", input.display()));
        profile.about.notes.push(note);
    }
    Ok(())
}

/// Warnings for events whose weights add up to more than tables can show.
fn warn_of_large_sums(profile: &Profile) -> Warnings {
    let mut warnings = Warnings::new();
    for series in &profile.series {
        let weights = series.rows.iter().chain(&series.negative).map(|row| u128::from(row.weight));
        if weights.sum::<u128>() > u128::from(i64::MAX.unsigned_abs()) {
            let (event, largest) = (readable(series.name.as_bytes()), grouped(i64::MAX.unsigned_abs()));
            warnings.push(Warning::new(format!(
                "{event}: weights add up to more than {largest}; sums above that are shown as this number"
            )));
        }
    }
    warnings
}
