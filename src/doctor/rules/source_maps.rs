//! Finds problems with the source maps of bundled JavaScript.

use super::super::context::DoctorContext;
use super::super::finding::{Finding, Share};
use super::super::kind::FindingKind;
use super::super::wording::printable;
use crate::jit::MapAccount;
use crate::model::chains::PlaceId;
use crate::pipeline::recording::Named;
use crate::runtimes::script_name::ScriptName;
use rustc_hash::FxHashMap;

/// Reports scripts whose source map is missing although they are minified, or was found but not used.
pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut accounts =
        context.examined.resolution.sources.source_maps.accounts.iter().filter(|account| lacks_map(account));
    // Counting samples takes time, so it is only done if there is something to report.
    let Some(first) = accounts.next() else { return Vec::new() };
    let samples_by_script = count_samples(context);
    let mut found = Vec::new();
    for account in std::iter::once(first).chain(accounts) {
        let samples = samples_by_script.get(&account.script).copied().unwrap_or_default();
        // 1.0: these samples count in full.
        found.push(explain(account, context.share_of_samples(samples, 1.0)));
    }
    found
}

/// True if the script has a source map that can't be used, or if it is minified and has no source map.
fn lacks_map(account: &MapAccount) -> bool {
    match account.map {
        Some(_) => account.trouble.is_some(),
        None => account.minified,
    }
}

/// Reports one script: it is minified and has no source map, or it has one that was not used.
fn explain(account: &MapAccount, share: Share) -> Finding {
    let script = printable(&account.script);
    let Some(map) = &account.map else {
        return Finding::new(
            FindingKind::SourceMapMissing,
            share,
            format!("{script} is minified and has no source map, so its functions show their minified names"),
            "make the build write a source map (esbuild --sourcemap; webpack devtool: 'source-map'; rollup \
             output.sourcemap; Vite build.sourcemap; tsc sourceMap; swc, Babel sourceMaps; terser --source-map), or \
             pass one that you have with --source-maps FILE=SCRIPT",
        );
    };
    let why = printable(account.trouble.as_deref().unwrap_or_default());
    Finding::new(
        FindingKind::SourceMapMisfit,
        share,
        format!("the source map {} of {script} was not used: {why}", printable(map)),
        "keep the script and map of the recorded build, and pass them with --source-maps FILE=SCRIPT and --symfs DIR",
    )
}

/// Counts samples by script. The script of a sample is that of its innermost JavaScript function.
fn count_samples(context: DoctorContext<'_>) -> FxHashMap<String, u64> {
    let samples = context.examined.samples;
    let place_count = samples.chains.places().len() as u32;
    let script_by_place: Vec<Option<String>> =
        (0..place_count).map(|place| innermost_script(context.examined.named, PlaceId(place))).collect();
    let mut sums = FxHashMap::default();
    for row in &samples.rows {
        // The locations of the sample's frames, innermost first.
        let mut places = samples.chains.places_up(row.chain);
        let innermost = places.find_map(|place| script_by_place[place.0 as usize].as_ref());
        if let Some(script) = innermost {
            *sums.entry(script.clone()).or_default() += 1;
        }
    }
    sums
}

/// The script of the JavaScript function at a location. If functions were inlined there, it is that of the innermost
/// one. `None` if none of them is a JavaScript function.
fn innermost_script(named: &Named, place: PlaceId) -> Option<String> {
    let names = named.frames(place).filter_map(|frame| frame.name);
    names.filter_map(ScriptName::parse).map(|name| name.script.to_owned()).next()
}
