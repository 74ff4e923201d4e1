//! Writes the remark about stacks that are estimated, because the input only recorded calls.

use crate::analysis::call_graph::{CallGraph, Deviation};
use crate::analysis::label;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Weight};

/// The function and event in which the inclusive cost of estimated stacks differs most from the recorded cost.
struct Largest<'p> {
    percent: f64,
    deviation: Deviation,
    event: &'p str,
}

/// A remark that the stacks are estimated, and by how much their inclusive costs differ at most from the recorded ones.
/// Estimates are much worse for functions in cycles of calls, so the remark states the difference for those separately.
/// `None` if the input recorded stacks.
pub(super) fn note(profile: &Profile) -> Option<String> {
    let mut outside = None;
    let mut inside = None;
    let mut is_estimate = false;
    for series in &profile.series {
        // Only inputs that record calls between functions instead of stacks have a call graph.
        let Some(graph) = CallGraph::from_series(profile, series) else { continue };
        is_estimate = true;
        let total = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(Weight::Period.value(row)));
        let deviations = graph.deviations(profile, series);
        if let Some(deviation) = deviations.outside_cycles {
            Largest::keep_larger(&mut outside, deviation, total, &series.name);
        }
        if let Some(deviation) = deviations.in_cycles {
            Largest::keep_larger(&mut inside, deviation, total, &series.name);
        }
    }
    if !is_estimate {
        return None;
    }
    let outside_text = outside.and_then(|largest| largest.describe(profile));
    // `describe` returns nothing for deviations that would be shown as 0.00%.
    let outside_text = outside_text.unwrap_or_else(|| "less than 0.01%".to_owned());
    let inside_text = match inside.and_then(|largest| largest.describe(profile)) {
        Some(text) => format!("; for functions that call each other in a cycle, by {text}"),
        None => String::new(),
    };
    Some(format!(
        "stacks are estimated from the calls between functions: self costs are exact, inclusive costs are off by \
         {outside_text}{inside_text}"
    ))
}

impl<'p> Largest<'p> {
    /// Replaces `largest` if the deviation is a larger percentage of its event's total cost (`total`).
    fn keep_larger(largest: &mut Option<Self>, deviation: Deviation, total: u64, event: &'p str) {
        if total == 0 {
            return;
        }
        let percent = 100.0 * deviation.cost as f64 / total as f64;
        if largest.as_ref().is_none_or(|largest| largest.percent < percent) {
            *largest = Some(Self { percent, deviation, event });
        }
    }

    /// Describes the deviation for people; `None` if it is less than 0.005% of the event's total.
    fn describe(&self, profile: &Profile) -> Option<String> {
        if self.percent < 0.005 {
            return None;
        }
        let name = label::function(profile, profile.frame_of(self.deviation.frame));
        Some(format!("at most {:.2}% of all {} (in {})", self.percent, self.event, readable(name.as_bytes())))
    }
}
