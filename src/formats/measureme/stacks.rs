//! The events as stacks: one pass backwards, or one for each half of the file ([`halves`]).

use super::halves;
use super::profile::MeasuremeFile;
use super::summing::LabelledSums;
use crate::analysis::timeline::{CallSums, Clock};
use crate::contract::format::ReadOptions;
use crate::contract::spans::SpanInput;
use crate::error::{Result, Warning, Warnings};
use crate::model::stacks::{Profile as Stacks, Unit};

/// Sums the intervals of each (virtual) thread by call path. Instants and numbers take no time and are left out.
pub(super) fn stacks(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Stacks> {
    let (bytes, done) = input.bytes.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let calls = options.calls_between(0, profile.last_time())?;
    let halves = match CallSums::can_be_joined(&calls) && input.workers.count() > 1 {
        true => {
            halves::cut(&profile).map(|cut| halves::sums(&profile, cut, calls, input.workers, &done)).transpose()?
        }
        false => None,
    };
    let LabelledSums { sums, labels, threads } = match halves.flatten() {
        Some(joined) => joined,
        None => LabelledSums::of(&profile, profile.pages(), calls, &done),
    };
    warn(&profile, &sums, options, warnings);
    let tracks = threads.tracks(&profile);
    let (series, unit) = profile.metadata().unit();
    let series = match options.calls.clock {
        Clock::Active(_) if unit == Unit::Nanos => "active-time",
        _ => series,
    };
    let mut stacks = sums.into_profile(&tracks, &labels, series, unit);
    stacks.cut_to_time = true;
    warnings.extend(profile.into_skipped().into_warning());
    Ok(stacks)
}

fn warn(profile: &MeasuremeFile<'_>, sums: &CallSums, options: &ReadOptions, warnings: &mut Warnings) {
    if profile.names_are_lost() {
        warnings.push(Warning::new(
            "there is no string table (the recorded process was killed?): functions are shown as fn# and a number",
        ));
    }
    let overlaps = sums.overlaps();
    if overlaps > 0 {
        let what = match options.calls.clock {
            Clock::Wall => "their wall times are not each thread's own",
            Clock::Active(_) => "active times are an estimate",
        };
        warnings.push(Warning::new(format!(
            "{overlaps} calls overlap another call of their thread id without lying inside it (several threads recorded under one id?): they begin stacks of their own, and {what}"
        )));
    }
}
