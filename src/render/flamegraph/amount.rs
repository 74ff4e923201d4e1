//! Formats the amounts of a flame graph for people: `7.00 ms`, `12,345 samples`, `1.23 G cycles`.

use crate::analysis::quantity::{fraction, grouped};
use crate::model::printable::readable;
use crate::model::stacks::{MILLION, MILLIONTHS, Series, Unit, Weight};

/// The unit of a flame graph's weights, and how amounts are formatted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Amounts {
    /// The kind of number, which decides how amounts are formatted.
    pub(super) scale: Scale,
    /// The name of the unit, such as `cycles`. Empty for times and sizes, whose unit depends on the amount (see
    /// [`Scale`]).
    pub(super) name: String,
    /// The factor by which weights are multiplied before they are shown.
    pub(super) factor: f64,
}

/// The kinds of numbers that amounts can be, each with a format of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Nanoseconds, shown in the largest fitting unit (`7.00 ms`).
    Time,
    /// Bytes, shown in the largest fitting multiple of 1024 (`1.50 MiB`).
    Bytes,
    /// A whole number with all digits (`12,345`).
    Whole,
    /// A rounded number with a letter for thousands, millions and so on (`1.23 G`).
    Large,
    /// A number with a fraction (`12.5`).
    Fraction,
}

/// Units of time, the longest first, each with its length in nanoseconds.
const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// Units of size, the largest first, each with its number of bytes.
const BYTES: &[(f64, &str)] =
    &[(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "bytes")];
/// Letters for large numbers, the largest first, each with the number that it stands for.
const LARGE: &[(f64, &str)] = &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

impl Amounts {
    /// The format for the weights of one event. `name` is the unit that the user chose and `factor` the factor for
    /// weights; `None` means the event's own unit and 1. With a unit of the user's, amounts are whole numbers with all
    /// digits.
    pub(super) fn new(series: &Series, weight: Weight, name: Option<&str>, factor: Option<f64>) -> Self {
        let factor = factor.unwrap_or(1.0);
        if let Some(name) = name {
            return Self { scale: Scale::Whole, name: name.to_owned(), factor };
        }
        let mut factor = factor;
        let (scale, name) = match (&series.unit, weight) {
            // The user may have chosen to count samples instead of the event's own unit.
            (Unit::Samples, _) | (_, Weight::Samples) => (Scale::Whole, "samples"),
            (Unit::Nanos, _) => (Scale::Time, ""),
            (Unit::Named(name), _) if name == "bytes" => (Scale::Bytes, ""),
            (Unit::Named(name), _) if name == MILLIONTHS => {
                factor /= MILLION as f64;
                (Scale::Fraction, series.name.as_str())
            }
            // An event that only counts, such as `page-faults`, is itself the unit.
            (Unit::Named(name), _) if name == "count" && !series.name.is_empty() => {
                (Scale::Large, series.name.as_str())
            }
            (Unit::Named(name), _) => (Scale::Large, name.as_str()),
        };
        Self { scale, name: readable(name.as_bytes()).into_owned(), factor }
    }

    /// Formats an amount with its unit. Depending on the scale, the unit is the unit of time or bytes that fits the
    /// amount's size, or the event's name after the number.
    pub(super) fn text(&self, weight: u64) -> String {
        let amount = weight as f64 * self.factor;
        match self.scale {
            Scale::Time => format_in_unit(amount, TIMES).unwrap_or_else(|| "0 ns".to_owned()),
            Scale::Bytes => format_in_unit(amount, BYTES).unwrap_or_else(|| "0 bytes".to_owned()),
            Scale::Large if amount >= 10_000.0 => {
                format!("{} {}", format_in_unit(amount, LARGE).unwrap_or_default(), self.name)
            }
            Scale::Fraction => format!("{} {}", fraction((amount * MILLION as f64).round() as u64), self.name),
            Scale::Whole | Scale::Large => format!("{} {}", grouped(amount.round() as u64), self.name),
        }
    }
}

/// Formats an amount in the largest unit that is not larger than the amount, rounded to three digits as in tables and
/// on the page. `units` has each unit's size and name, the largest first. `None` for an amount of 0.
fn format_in_unit(amount: f64, units: &[(f64, &str)]) -> Option<String> {
    // 0.9995 and not 1: an amount that would be rounded up to 1000 of the smaller unit is shown as 1.00 of this one.
    let largest_fitting = units.iter().find(|(size, _)| amount / size >= 0.9995);
    // An amount that is less than 1 of the smallest unit is shown in this unit, unless it is 0.
    let smallest = units.last().filter(|_| amount > 0.0);
    let (size, unit) = largest_fitting.or(smallest)?;
    let number = amount / size;
    // Two decimals for numbers below 10, one below 100, none above, and none in units of one nanosecond or byte.
    let digits = if *size > 1.0 { [9.995, 99.95].iter().filter(|&&limit| number < limit).count() } else { 0 };
    Some(format!("{number:.digits$} {unit}"))
}

/// Formats a share of the whole as a percentage with two decimal places, as in tables: `12.34%`.
pub(super) fn percent(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    format!("{percent:.2}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(unit: Unit) -> Series {
        Series { unit, ..Series::default() }
    }

    #[test]
    fn amounts_have_units_that_people_read() {
        let format_amount = |unit: Unit, amount| Amounts::new(&series(unit), Weight::Period, None, None).text(amount);
        for (nanos, text) in [
            (0, "0 ns"),
            (850, "850 ns"),
            (12_345, "12.3 µs"),
            (7_000_000, "7.00 ms"),
            (999_600_000, "1.00 s"),
            (123_456_789_000, "123 s"),
        ] {
            assert_eq!(format_amount(Unit::Nanos, nanos), text);
        }
        assert_eq!(format_amount(Unit::Samples, 1_234_567), "1,234,567 samples");
        assert_eq!(format_amount(Unit::Named("cycles".to_owned()), 1_234_567_890), "1.23 G cycles");
        assert_eq!(format_amount(Unit::Named("cycles".to_owned()), 9_999), "9,999 cycles");
        assert_eq!(format_amount(Unit::Named("bytes".to_owned()), 1_572_864), "1.50 MiB");
        let fractions = Series { name: "samples".to_owned(), ..series(Unit::Named(MILLIONTHS.to_owned())) };
        let amounts = Amounts::new(&fractions, Weight::Period, None, None);
        assert_eq!(
            (amounts.text(15_750_000), amounts.text(1)),
            ("15.75 samples".to_owned(), "0.000001 samples".to_owned())
        );
    }

    #[test]
    fn weights_named_by_the_user_are_printed_in_full() {
        let amounts = Amounts::new(&series(Unit::Nanos), Weight::Period, Some("ticks"), Some(0.5));
        assert_eq!(amounts.text(7_000_001), "3,500,001 ticks");
        assert_eq!(Amounts::new(&series(Unit::Nanos), Weight::Samples, None, None).text(3), "3 samples");
        assert_eq!((percent(1.0, 3.0).as_str(), percent(1.0, 3000.0).as_str()), ("33.33%", "0.03%"));
    }
}
