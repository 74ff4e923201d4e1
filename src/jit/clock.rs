//! Converts a jitdump's times to the recording's clock, and detects jitdumps that belong to another process.
//!
//! | jitdump's times | recording | conversion |
//! |---|---|---|
//! | nanoseconds | CLOCK_MONOTONIC (`perf record -k mono`) | none |
//! | time-stamp counter | has a TIME_CONV record | like `tsc_to_perf_time` in tools/perf/util/tsc.c |
//! | wall clock | relates its clock to the wall clock | the difference between the two |
//! | anything else | contains the marker's mmap | estimated: the jitdump starts when its marker is mapped |
//! | anything else | – | impossible: each address has the last code that was there |

use super::account::ClockUse;
use crate::model::process::{Clock, Processes, TscConversion};
use crate::model::{Nanos, Pid};

/// The value of CLOCK_MONOTONIC (linux/time.h).
pub(super) const MONOTONIC: i32 = 1;

/// One hour, in nanoseconds. If two times that should be nearly the same moment differ by more, they are from different
/// clocks.
const PLAUSIBLE: u64 = 3_600_000_000_000;

/// What is known about a jitdump's times.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpTimes {
    /// True if the header says that times are values of the CPU's time-stamp counter.
    pub(super) is_tsc: bool,
    /// The time in the header, which may be on another clock than the times of the records.
    pub(super) header_time: u64,
    /// The time of the first record; `None` if there is none.
    pub(super) first_time: Option<u64>,
    /// When the process mapped the jitdump as its marker, on the recording's clock. `None` if the process didn't, or if
    /// that was before the recording began.
    pub(super) marker_time: Option<Nanos>,
}

/// How to convert a source's times to the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Same,
    Tsc(TscConversion),
    /// Adds `offset` to each of the source's times. `error` is how far the result may be off; `None` if unknown. Both
    /// are in nanoseconds.
    Offset {
        offset: i64,
        error: Option<u64>,
    },
    None,
}

impl Conversion {
    /// Chooses how to convert a source's times to the recording's clock. If they can't be converted exactly, also
    /// returns a warning, to be shown after the name of the source's file. It says what is wrong with the file ("has
    /// processor time stamps, but …") or with the recording ("the recording uses clock 4, …").
    pub(super) fn choose(clock: &Clock, times: &DumpTimes) -> (Self, Option<String>) {
        let is_same_clock = is_monotonic(clock);
        if times.is_tsc {
            if let Some(tsc) = clock.tsc.filter(is_usable) {
                return (Self::Tsc(tsc), None);
            }
            // The header may wrongly claim that times are the time-stamp counter. Don't believe it if the time of the
            // first record is close to the time at which the process mapped the jitdump (`marker_time`), which is on
            // the recording's clock.
            if is_same_clock
                && let Some(marker) = times.marker_time
                && let Some(first) = times.first_time
                && marker.0.abs_diff(first) < PLAUSIBLE
            {
                let why = "claims to have processor time stamps, but the times match the recording's clock, so they \
                           were used unchanged";
                return (Self::Same, Some(why.to_owned()));
            }
            let why =
                "has processor time stamps, but the recording does not say how to convert them (no usable TIME_CONV)";
            return times.estimate(clock, why);
        }
        if is_same_clock {
            return (Self::Same, None);
        }
        let why = match clock.clockid {
            None => "the recording does not use the monotonic clock (record with -k mono)".to_owned(),
            Some(id) => format!("the recording uses clock {id}, not the monotonic one (record with -k mono)"),
        };
        times.estimate(clock, &why)
    }

    /// Converts a source's time to the recording's clock. `None` if the source's times can't be used.
    pub(super) fn apply(&self, time: u64) -> Option<Nanos> {
        match self {
            Self::Same => Some(Nanos(time)),
            Self::Tsc(tsc) => Some(Nanos(convert_tsc(tsc, time))),
            Self::Offset { offset, .. } => Some(Nanos(time.saturating_add_signed(*offset))),
            Self::None => None,
        }
    }

    /// The conversion, described for users.
    pub(super) fn to_clock_use(self) -> ClockUse {
        match self {
            Self::Same => ClockUse::Same,
            Self::Tsc(_) => ClockUse::Tsc,
            Self::Offset { error, .. } => ClockUse::Estimated { error },
            Self::None => ClockUse::Dropped,
        }
    }
}

impl DumpTimes {
    /// Finds the offset from the jitdump's clock to the recording's. It is exact if the jitdump uses the wall clock and
    /// the recording relates the wall clock to its own; otherwise it is estimated, or there is no conversion. The
    /// second result is a warning, which begins with `why`: the reason why a better conversion isn't possible. `None`
    /// if there is nothing to warn about.
    fn estimate(&self, clock: &Clock, why: &str) -> (Conversion, Option<String>) {
        // Without records, there is nothing to convert or to warn about.
        let Some(first) = self.first_time else { return (Conversion::None, None) };
        // The recording may state one moment on both the wall clock and its own clock. Times of the jitdump that are
        // near it are wall-clock times. Times of any other clock are decades away, so the limit is large: about six
        // weeks.
        if let Some((wall, recorded)) = clock.reference
            && wall.0.abs_diff(first) < 1000 * PLAUSIBLE
        {
            return (Conversion::Offset { offset: signed_difference(recorded.0, wall.0), error: Some(0) }, None);
        }
        // Ticks of a time-stamp counter aren't nanoseconds, so adding an offset to them would be wrong.
        let Some(marker) = self.marker_time.filter(|_| !self.is_tsc) else {
            let problem = format!(
                "{why}; the jitdump's times were ignored, and each address got the name of the last code loaded there"
            );
            return (Conversion::None, Some(problem));
        };
        // Usually, the jitdump's header is written when the marker is mapped. In some runtimes, however, the header's
        // time and the records' times are from different clocks. Then the first record's time is used.
        let header_fits = self.header_time.abs_diff(first) < PLAUSIBLE;
        // `error` is in nanoseconds: how long before or after the marker's mmap the header (1 ms) or the first record
        // (20 ms) may have been written.
        let (dump_start, error) = if header_fits { (self.header_time, 1_000_000) } else { (first, 20_000_000) };
        let problem = format!(
            "{why}; the jitdump's times were shifted to begin when the file was mapped, accurate to about {} ms",
            error / 1_000_000
        );
        (Conversion::Offset { offset: signed_difference(marker.0, dump_start), error: Some(error) }, Some(problem))
    }
}

fn signed_difference(to: u64, from: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

fn is_usable(tsc: &TscConversion) -> bool {
    // Without `cap_zero`, the TIME_CONV record doesn't say which time on the recording's clock the counter's 0 stands
    // for.
    tsc.mult != 0 && tsc.shift < 64 && tsc.cap_zero
}

/// Converts a value of the time-stamp counter to the recording's clock, like perf's `tsc_to_perf_time`. With
/// `cap_short`, the counter has fewer than 64 bits, and only its difference from `tsc.cycles` is meaningful.
fn convert_tsc(tsc: &TscConversion, time: u64) -> u64 {
    let cycles = if tsc.cap_short { tsc.cycles.wrapping_add(time.wrapping_sub(tsc.cycles) & tsc.mask) } else { time };
    let whole = (cycles >> tsc.shift).wrapping_mul(tsc.mult);
    let fraction = (cycles & ((1 << tsc.shift) - 1)).wrapping_mul(tsc.mult) >> tsc.shift;
    tsc.zero.wrapping_add(whole).wrapping_add(fraction)
}

/// Tolerance in nanoseconds for checking whether a jitdump's times fit the recording. The clocks of several CPUs differ
/// by less. A runtime that starts logging before it maps its marker (Bun) is early by less than this.
pub(super) const SLACK: u64 = 1_000_000_000;

/// Formats a time for a message.
pub(super) fn format_seconds(time: Nanos) -> String {
    format!("{}.{:03} s", time.0 / 1_000_000_000, time.0 / 1_000_000 % 1000)
}

/// True if the recording uses the monotonic clock, which jitdumps are supposed to use, too.
pub(super) fn is_monotonic(clock: &Clock) -> bool {
    clock.clockid == Some(MONOTONIC)
}

/// Explains why a jitdump with records from `first` to `last` can't belong to the process for which it was found;
/// `None` if it can. Process IDs are reused, and a directory may contain the jitdumps of many runs. `first` and `last`
/// must be times on the recording's clock. `marker` is when the process mapped the jitdump, if known.
pub(super) fn explain_other_process(
    pid: Pid,
    marker: Option<Nanos>,
    processes: &Processes,
    first: u64,
    last: u64,
) -> Option<String> {
    let process = processes.by_pid.get(&pid)?;
    // The marker is the process's own, so its time is preferred. Without fork and marker, the first exec is the
    // earliest that is known of the process.
    let began = marker.or(process.forked.map(|(_, time)| time)).or(process.execs.first().copied());
    // A process that began after the last record, or ended before the first one, can't have written the jitdump.
    let (event, event_time) = if let Some(began) = began
        && last.saturating_add(SLACK) < began.0
    {
        ("began", began)
    } else if let Some(exited) = process.exited
        && first > exited.0.saturating_add(SLACK)
    {
        ("ended", exited)
    } else {
        return None;
    };
    Some(format!(
        "the code in the jitdump was loaded between {} and {}, but process {} {event} at {}; the jitdump seems to be \
         from another process with that PID",
        format_seconds(Nanos(first)),
        format_seconds(Nanos(last)),
        pid,
        format_seconds(event_time)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: DumpTimes =
        DumpTimes { is_tsc: false, header_time: 900, first_time: Some(1000), marker_time: Some(Nanos(5000)) };

    fn mono() -> Clock {
        Clock { clockid: Some(1), ..Clock::default() }
    }

    #[test]
    fn the_monotonic_clock_needs_no_conversion() {
        assert_eq!(Conversion::choose(&mono(), &TIMES), (Conversion::Same, None));
    }

    #[test]
    fn other_clocks_are_estimated_from_the_marker_and_said() {
        let (conversion, said) = Conversion::choose(&Clock::default(), &TIMES);
        assert_eq!(conversion.apply(1000), Some(Nanos(5100)));
        assert!(said.unwrap().contains("about 1 ms"));
        let wall_header = DumpTimes { header_time: 1_700_000_000_000_000, ..TIMES };
        assert_eq!(Conversion::choose(&Clock::default(), &wall_header).0.apply(1001), Some(Nanos(5001)));
        let attached = DumpTimes { marker_time: None, ..TIMES };
        let (conversion, said) = Conversion::choose(&Clock { clockid: Some(4), ..Clock::default() }, &attached);
        assert_eq!(conversion, Conversion::None);
        assert!(said.unwrap().contains("clock 4"));
        let wall = Clock { reference: Some((Nanos(1_700_000_000_000_000_000), Nanos(50))), ..Clock::default() };
        let wall_times = DumpTimes { first_time: Some(1_700_000_000_000_000_007), ..TIMES };
        assert_eq!(Conversion::choose(&wall, &wall_times).0.apply(1_700_000_000_000_000_007), Some(Nanos(57)));
    }

    #[test]
    fn processor_time_stamps_are_converted_as_the_recording_states() {
        let tsc = TscConversion { shift: 10, mult: 512, zero: 7, cycles: 0, mask: 0, cap_zero: true, cap_short: false };
        let arch = DumpTimes { is_tsc: true, ..TIMES };
        let (conversion, said) = Conversion::choose(&Clock { tsc: Some(tsc), ..mono() }, &arch);
        assert_eq!((conversion.apply(4096 + 3), said), (Some(Nanos(7 + 2048 + 1)), None));
        let short = TscConversion { cap_short: true, cycles: 0x1_0000_0000, mask: 0xffff_ffff, ..tsc };
        let (conversion, _) = Conversion::choose(&Clock { tsc: Some(short), ..mono() }, &arch);
        assert_eq!(conversion.apply(4096), Some(Nanos(7 + 2048 + (0x1_0000_0000u64 >> 1))));
        let unusable = TscConversion { cap_zero: false, ..tsc };
        let (conversion, said) = Conversion::choose(&Clock { tsc: Some(unusable), ..mono() }, &arch);
        assert_eq!(conversion, Conversion::Same);
        assert!(said.is_some());
        let (conversion, _) = Conversion::choose(&Clock::default(), &arch);
        assert_eq!(conversion, Conversion::None);
    }
}
