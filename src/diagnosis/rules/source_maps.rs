//! Finds problems with the source maps of bundled JavaScript.

use super::super::context::DoctorContext;
use super::super::problem::{Finding, Problem};
use super::super::tally::percent;
use crate::model::chains::PlaceId;
use crate::runtimes::script_name::ScriptName;
use crate::sources::MapAccount;
use rustc_hash::FxHashMap;

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let accounts = &context.examined.resolution.sources.maps.accounts;
    let problems: Vec<(&MapAccount, Problem)> =
        accounts.iter().filter_map(|account| Some((account, problem(account)?))).collect();
    if problems.is_empty() {
        return Vec::new();
    }
    let samples = samples(context);
    let finding = |(account, problem): (&MapAccount, Problem)| {
        let samples = samples.get(&account.script).copied().unwrap_or_default();
        Finding::new(problem, percent(samples as f64, context.tally.samples), samples, 0)
    };
    problems.into_iter().map(finding).collect()
}

fn problem(account: &MapAccount) -> Option<Problem> {
    let MapAccount { script, map, minified, trouble, .. } = account;
    match (map, trouble) {
        (Some(map), Some(why)) => {
            Some(Problem::MapMisfit { script: script.clone(), map: map.clone(), why: why.clone() })
        }
        (None, _) if *minified => Some(Problem::MapMissing { script: script.clone() }),
        _ => None,
    }
}

/// The number of samples of each script. A sample counts for the script of its innermost JavaScript function.
fn samples(context: DoctorContext<'_>) -> FxHashMap<String, u64> {
    let (samples, named) = (context.examined.samples, context.examined.named);
    let script = |place| {
        let mut script = None;
        named.each(place, |frame| {
            script = script.take().or_else(|| Some(ScriptName::parse(frame.name?)?.script.to_owned()));
        });
        script
    };
    let scripts: Vec<Option<String>> =
        (0..samples.chains.places().len() as u32).map(|place| script(PlaceId(place))).collect();
    let mut sums = FxHashMap::default();
    for row in &samples.rows {
        let innermost = samples.chains.up(row.chain).find_map(|place| scripts[place.0 as usize].as_ref());
        if let Some(script) = innermost {
            *sums.entry(script.clone()).or_default() += 1;
        }
    }
    sums
}
