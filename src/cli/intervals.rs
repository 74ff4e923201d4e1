//! Flags for inputs with time spans: measureme profiles and trace events.

use super::common::one_of;
use crate::analysis::filter::TimeRange;
use crate::analysis::timeline::{CallOptions, Clock, Owner, Sampling};
use crate::contract::format::ReadOptions;
use clap::Args;

/// Flags for turning time spans into stacks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Inputs with time spans (measureme, trace events)")]
pub(super) struct IntervalArgs {
    /// wall: from start to end; active: only while the thread ran
    ///
    /// active is for virtual threads that take turns, such as Miri's. Active times are estimates if the threads switch
    /// within a call.
    #[arg(long, default_value = "wall", value_name = "CLOCK", value_parser = one_of(
        [("wall".into(), Clock::Wall), ("active".into(), Clock::Active(Owner::Next))]
    ))]
    #[arg(hide_short_help = true)]
    clock: Clock,
    /// With --clock active: thread that gets the time between two events
    ///
    /// next: the thread of the later event; previous: the thread of the earlier one.
    #[arg(long, default_value = "next", value_name = "EDGE", value_parser = one_of(
        [("next".into(), Owner::Next), ("previous".into(), Owner::Previous)]
    ))]
    #[arg(hide_short_help = true)]
    owner: Owner,
    /// Only spans with this name [default: all]
    ///
    /// In stacks, these spans appear under the value of an argument, as with --sub-names. Repeatable.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    name: Vec<String>,
    /// Show spans called NAME under the value of one of their arguments
    ///
    /// The argument with the same name as the span is used, with three exceptions: `message` for Miri's spans called
    /// `frame`, `detail` in clang's traces, and the first argument in measureme profiles. If trace events are
    /// exported, asynchronous spans with this argument become calls on a separate thread. Repeatable.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    sub_names: Vec<String>,
    /// Add calls shorter than this (such as 2us) to their caller
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    min_duration: Option<u64>,
    /// Keep every Nth call of a thread, with the time of the calls skipped before it
    #[arg(long, value_name = "N", conflicts_with = "sample_time", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(hide_short_help = true)]
    sample_calls: Option<u64>,
    /// Keep a call each time the calls of its thread add up to TIME; the kept call gets the sum
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    sample_time: Option<u64>,
}

impl IntervalArgs {
    /// The options for reading spans. `times` are the time ranges of `--time`.
    pub(super) fn into_options(self, times: &[TimeRange]) -> ReadOptions {
        let clock = match self.clock {
            // The value of `--clock` has a placeholder for the owner, which `--owner` states.
            Clock::Active(_) => Clock::Active(self.owner),
            Clock::Wall => Clock::Wall,
        };
        let sampling = match (self.sample_calls, self.sample_time) {
            (Some(calls), _) => Sampling::Calls(calls),
            (_, Some(time)) => Sampling::Time(time),
            _ => Sampling::All,
        };
        let calls =
            CallOptions { clock, sampling, min_duration: self.min_duration.unwrap_or(0), ..CallOptions::default() };
        ReadOptions {
            calls,
            only: self.name,
            named_by_action: self.sub_names,
            times: times.to_vec(),
            ..ReadOptions::default()
        }
    }
}

/// Parses a duration such as `1us`, `2.5ms`, `300ns` or `1s`. Returns nanoseconds. A number without a unit is in
/// nanoseconds.
pub(super) fn duration(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    // How many decimals a number in this unit may have, so that it is a whole number of nanoseconds.
    let decimals = match unit.trim() {
        "" | "ns" => 0,
        "us" | "µs" => 3,
        "ms" => 6,
        "s" => 9,
        unit => return Err(format!("unknown unit {unit}; use ns, us, ms or s")),
    };
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.is_empty() {
        return Err(format!("{text} does not start with a number"));
    }
    if fraction.len() > decimals {
        return Err(format!("{text} is finer than a nanosecond"));
    }
    // Without the point, and padded with zeros, the digits are the number of nanoseconds.
    format!("{integer}{fraction:0<decimals$}").parse().map_err(|_| format!("{text} is not a time such as 2.5us"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [("7", 7), ("300ns", 300), ("2.5us", 2_500), ("1ms", 1_000_000), ("0.5 s", 500_000_000)];
        for (text, nanos) in cases {
            assert_eq!(duration(text), Ok(nanos), "{text}");
        }
        for wrong in ["", "us", "1.5", "1h", "1.2.3ms", "99999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
