//! The annotation of a whole profile: its events, the functions by name, and the listings.

use super::costs::{Cost, Costs};
use super::listing::Listing;
use crate::model::Nanos;
use crate::model::stacks::{Unit, Weight};

/// The hot code of a profile, with costs per instruction.
#[derive(Debug)]
pub struct Annotation {
    /// Which measure percentages are based on: the samples' weights or their number.
    pub weight: Weight,
    /// The events that have samples (in a callgrind file, that have costs).
    pub events: Vec<EventTotal>,
    /// The time of the first sample. Times in the output are relative to it. `None` for a callgrind file.
    pub first: Option<Nanos>,
    /// The functions whose code is listed, grouped by name, hottest first.
    pub names: Vec<NameSummary>,
    /// How many distinct function names have costs, whether listed or not.
    pub all_names: usize,
    /// How many code ranges have costs, whether listed or not.
    pub all_codes: usize,
    /// The listed code, hottest first.
    pub listings: Vec<Listing>,
    /// The names of the hottest functions, for a hint if the requested function isn't found.
    pub hottest: Vec<Vec<u8>>,
}

/// An event and its total cost.
#[derive(Debug)]
pub struct EventTotal {
    /// The event's index in [`Costs`].
    pub number: usize,
    /// The event's name in the recording.
    pub name: String,
    /// The unit of the event's weights.
    pub unit: Unit,
    /// The event's sum over all samples.
    pub total: Cost,
    /// How precisely the address of a sample identifies the instruction that caused it.
    pub precision: Precision,
}

impl EventTotal {
    /// The number to show for a cost of the event: the number of samples, or the exact cost, which may be negative.
    pub(crate) fn figure(&self, cost: Cost) -> i64 {
        match self.precision {
            Precision::Exact => cost.weight,
            _ => i64::try_from(cost.count).unwrap_or(i64::MAX),
        }
    }
}

/// How precisely the address of a sample identifies the instruction that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The processor recorded the instruction that caused the event, or one next to it. Holds the event's `precise_ip`.
    Precise(u8),
    /// A timer's interrupt. The address is that of the next instruction to execute.
    Timer,
    /// Costs are exact: callgrind counted every execution.
    Exact,
    /// The interrupt of a hardware counter, which arrives some instructions after the one that caused the event.
    Skids,
}

/// The total cost of all code ranges with the same function name. Runtimes may compile a function many times.
#[derive(Debug)]
pub struct NameSummary {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file with the hottest code range of this name, or a placeholder such as `[kernel.kallsyms]`; `None` if
    /// unknown.
    pub module: Option<Vec<u8>>,
    /// The cost of all code ranges of this name.
    pub costs: Costs,
    /// The cost of each code range, hottest first.
    pub codes: Vec<Costs>,
}

/// The words for costs in the output, which depend on whether costs are samples or exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// The name of a function's self cost: `self samples` or `self costs`.
    pub(crate) own: &'static str,
    /// The name of costs in general: `samples` or `costs`.
    pub(crate) any: &'static str,
}

impl Annotation {
    /// True if the costs were counted rather than sampled.
    pub(crate) fn is_exact(&self) -> bool {
        self.events.first().is_some_and(|event| event.precision == Precision::Exact)
    }

    /// What costs are called in texts about this annotation: samples or, if they are exact, costs.
    pub(crate) fn words(&self) -> Words {
        if self.is_exact() {
            Words { own: "self costs", any: "costs" }
        } else {
            Words { own: "self samples", any: "samples" }
        }
    }

    /// The number to show for a cost: the number of samples in all events. For exact costs, it is the cost in the first
    /// event, since costs of different events can't be added.
    pub(crate) fn number(&self, costs: &Costs) -> i64 {
        match self.events.first() {
            Some(first) if self.is_exact() => first.figure(costs.get(first.number)),
            _ => i64::try_from(costs.samples()).unwrap_or(i64::MAX),
        }
    }
}

impl Precision {
    /// A sentence about the precision, for text output.
    pub fn text(self) -> &'static str {
        match self {
            Self::Precise(_) => "Samples land on the instruction that the processor recorded for the event (precise).",
            Self::Exact => "Costs are exact, counted per instruction.",
            Self::Timer => {
                "Samples land on the next instruction to execute; the slow one is often the one just before."
            }
            Self::Skids => {
                "Samples land a few instructions after the one that caused the event (skid); record with :pp if the \
                 processor supports it."
            }
        }
    }

    /// The keyword for the precision in JSON and on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precise(_) => "precise",
            Self::Exact => "exact",
            Self::Timer => "timer",
            Self::Skids => "skids",
        }
    }
}
