//! Formats weights for people: `7.00 ms`, `1,234,567 cycles`.

use crate::model::printable::readable;
use crate::model::stacks::{Counting, MILLION, MILLIONTHS, Profile, Series, Unit, Weight};

/// Formats a weight with its unit. If `kind` is [`Weight::Samples`], `weight` is a number of samples, whatever the unit
/// is.
pub fn quantity(weight: u64, unit: &Unit, kind: Weight) -> String {
    match unit {
        _ if kind == Weight::Samples => counted(weight, "sample"),
        Unit::Nanos => duration(weight),
        Unit::Samples => counted(weight, "sample"),
        Unit::Named(name) if name == MILLIONTHS => fraction(weight),
        Unit::Named(name) => format!("{} {}", grouped(weight), readable(name.as_bytes())),
    }
}

/// What the rows of an event are called, in the singular: `sample` or `span`. `None` if the rows are costs of recorded
/// calls, which are exact amounts rather than samples.
pub fn row_word(profile: &Profile, series: &Series) -> Option<&'static str> {
    if !profile.calls.is_empty() {
        return None;
    }
    let is_trace = profile.cut_to_time || profile.rows_have_durations;
    // A trace may contain samples beside its spans. The event of the samples isn't measured exactly, so that its rows
    // aren't called spans.
    Some(if is_trace && series.counting == Counting::Exact { "span" } else { "sample" })
}

/// Formats a number with a noun whose plural ends in `s`: `1 sample`, `2 samples`.
pub fn counted(number: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a duration given in nanoseconds, with three significant digits and a fitting unit.
pub fn duration(nanos: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    // If rounding to three digits would give 1000 of a unit, use the next larger unit. That is the case from 999.5 on,
    // which is 1999 / 2000 of the larger unit.
    let unit = units.iter().find(|&&(unit, _)| u128::from(nanos) * 2000 >= unit * 1999);
    let Some(&(unit, name)) = unit else { return format!("{nanos} ns") };
    let number = nanos as f64 / unit as f64;
    // Two decimals for numbers below 10, one below 100, none above. The limits are slightly smaller, because a number
    // such as 9.996 is rounded to 10.0.
    let decimals = [9.995, 99.95].iter().filter(|&&limit| number < limit).count();
    format!("{number:.decimals$} {name}")
}

/// Formats a weight that is counted in millionths, with as many decimals as it needs: `1,250.5`.
pub fn fraction(millionths: u64) -> String {
    let decimals = format!("{:06}", millionths % MILLION);
    match decimals.trim_end_matches('0') {
        "" => grouped(millionths / MILLION),
        decimals => format!("{}.{decimals}", grouped(millionths / MILLION)),
    }
}

/// Formats a number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (7_004_999, "7.00 ms"),
            (997_000_000, "997 ms"),
            (999_400_000, "999 ms"),
            (999_500_000, "1.00 s"),
            (9_994_999_999, "9.99 s"),
            (12_345_000_000, "12.3 s"),
            (123_456_000_000, "123 s"),
            (4_567_800_000_000, "4568 s"),
            (u64::MAX, "18446744074 s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(nanos), text);
        }
    }

    #[test]
    fn millionths_are_shown_as_fractions() {
        let millionths = Unit::Named(MILLIONTHS.to_owned());
        for (weight, text) in
            [(0, "0"), (1, "0.000001"), (250_000, "0.25"), (1_234_500_000, "1,234.5"), (7_000_000, "7")]
        {
            assert_eq!(quantity(weight, &millionths, Weight::Period), text);
        }
    }

    #[test]
    fn counted_values_have_their_unit() {
        let cycles = Unit::Named("cycles".to_owned());
        assert_eq!(quantity(1_234_567, &cycles, Weight::Period), "1,234,567 cycles");
        assert_eq!(quantity(1, &cycles, Weight::Samples), "1 sample");
        assert_eq!(quantity(26_201, &Unit::Samples, Weight::Period), "26,201 samples");
        assert_eq!(quantity(7_000_000, &Unit::Nanos, Weight::Period), "7.00 ms");
        assert_eq!((grouped(0), grouped(100), grouped(1000)), ("0".to_owned(), "100".to_owned(), "1,000".to_owned()));
    }
}
