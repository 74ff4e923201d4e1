//! The figures of the summary.

use super::answers::AddressCounts;
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::LoadedSources;
use crate::model::frame_counts::FrameCounts;
use crate::pipeline::Outcome;
use crate::sources::Loaded;

/// Reports it.
pub(super) fn tell(loaded: Loaded<'_>, counts: &AddressCounts, options: &InjectOptions, outcome: &mut Outcome) {
    outcome.warnings.extend(counts.warnings());
    let AddressCounts { asked, named, in_files, named_in_files, .. } = *counts;
    let of_jit = asked - in_files;
    outcome.frames += FrameCounts { jit: of_jit, jit_unnamed: of_jit - named, ..FrameCounts::default() };
    let named = named + named_in_files;
    let summary = &mut outcome.summary;
    let maps: Vec<String> = loaded.maps.remarks().collect();
    let sources = LoadedSources::of(&loaded.map, loaded.accounts);
    summary.push(sources.told());
    summary.extend(sources.accounts.iter().filter_map(|account| account.remark.clone()));
    summary.extend(maps);
    if options.sources.source_maps.is_on() {
        let other = "names that the input contains stay as they are; jitgraft export maps these as well";
        summary.push(format!("source maps: only names that were added; {other}"));
    }
    let to = options.output.shown();
    summary.push(match asked {
        0 => format!("{}: nothing to name: no unresolved addresses", to.display()),
        _ => {
            let percent = named as f64 * 100.0 / asked as f64;
            format!("{}: {named} of {asked} addresses without a name have one now ({percent:.1} %)", to.display())
        }
    });
}
