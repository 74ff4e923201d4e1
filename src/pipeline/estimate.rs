//! The remark for stacks that were estimated from calls.

use crate::analysis::call_graph::{CallGraph, Deviation};
use crate::analysis::label;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Weight};

/// The largest deviation among all events.
struct Largest<'p> {
    percent: f64,
    deviation: Deviation,
    event: &'p str,
}

/// A remark that the stacks are an estimate, and by how much their inclusive costs deviate from the recorded ones.
/// `None` if the input recorded stacks.
pub(super) fn note(profile: &Profile) -> Option<String> {
    let (mut outside, mut inside) = (None, None);
    let mut is_estimate = false;
    for series in &profile.series {
        let Some(graph) = CallGraph::of(profile, series) else { continue };
        is_estimate = true;
        let whole = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(Weight::Period.of(row)));
        let found = graph.deviations(profile, series);
        for (largest, deviation) in [(&mut outside, found.outside_cycles), (&mut inside, found.in_cycles)] {
            let Some(deviation) = deviation.filter(|_| whole > 0) else { continue };
            let percent = 100.0 * deviation.cost as f64 / whole as f64;
            if largest.as_ref().is_none_or(|largest: &Largest<'_>| largest.percent < percent) {
                *largest = Some(Largest { percent, deviation, event: &series.name });
            }
        }
    }
    let said = |largest: Option<Largest<'_>>| {
        largest.filter(|largest| largest.percent >= 0.005).map(|Largest { percent, deviation, event }| {
            let name = label::function(profile, profile.frame_of(deviation.frame));
            format!("at most {percent:.2}% of {event} ({})", readable(name.as_bytes()))
        })
    };
    let outside = said(outside).unwrap_or_else(|| "less than 0.01%".to_owned());
    let inside = said(inside).map_or_else(String::new, |inside| format!(", in cycles of calls by {inside}"));
    is_estimate.then(|| {
        format!(
            "stacks are estimated from the calls between functions: self costs are exact, inclusive costs are off by \
             {outside}{inside}"
        )
    })
}
