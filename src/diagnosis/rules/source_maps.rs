//! Finds problems with the source maps of bundled JavaScript.

use super::super::context::DoctorContext;
use super::super::problem::{Finding, Problem};
use super::super::tally::percent;
use crate::model::chains::PlaceId;
use crate::pipeline::recording::Named;
use crate::runtimes::script_name::ScriptName;
use crate::sources::MapAccount;
use rustc_hash::FxHashMap;

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let accounts = &context.examined.resolution.sources.maps.accounts;
    let mut problems: Vec<(&MapAccount, Problem)> = Vec::new();
    for account in accounts {
        problems.extend(find_problem(account).map(|problem| (account, problem)));
    }
    if problems.is_empty() {
        return Vec::new();
    }
    let samples_by_script = count_samples(context);
    let mut found = Vec::new();
    for (account, problem) in problems {
        let samples = samples_by_script.get(&account.script).copied().unwrap_or_default();
        found.push(Finding::new(problem, percent(samples as f64, context.tally.samples), samples, 0));
    }
    found
}

fn find_problem(account: &MapAccount) -> Option<Problem> {
    let MapAccount { script, map, minified, trouble, .. } = account;
    match (map, trouble) {
        (Some(map), Some(why)) => {
            Some(Problem::MapMisfit { script: script.clone(), map: map.clone(), why: why.clone() })
        }
        (None, _) if *minified => Some(Problem::MapMissing { script: script.clone() }),
        _ => None,
    }
}

/// The number of samples by script. A sample counts for the script of its innermost JavaScript function.
fn count_samples(context: DoctorContext<'_>) -> FxHashMap<String, u64> {
    let samples = context.examined.samples;
    let place_count = samples.chains.places().len() as u32;
    let scripts: Vec<Option<String>> =
        (0..place_count).map(|place| innermost_script(context.examined.named, PlaceId(place))).collect();
    let mut sums = FxHashMap::default();
    for row in &samples.rows {
        let innermost = samples.chains.up(row.chain).find_map(|place| scripts[place.0 as usize].as_ref());
        if let Some(script) = innermost {
            *sums.entry(script.clone()).or_default() += 1;
        }
    }
    sums
}

/// The script of the innermost JavaScript function at a location. `None` if no JavaScript function is there.
fn innermost_script(named: &Named, place: PlaceId) -> Option<String> {
    let mut script = None;
    named.each(place, |frame| {
        if let Some(name) = frame.name
            && script.is_none()
        {
            script = ScriptName::parse(name).map(|name| name.script.to_owned());
        }
    });
    script
}
