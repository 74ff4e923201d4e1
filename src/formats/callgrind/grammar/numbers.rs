//! Numbers and costs, read and written.

/// A number as the format writes it: decimal, or hexadecimal behind `0x`.
pub(in super::super) fn number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        Some(digits) => hex(digits),
        None => decimal(word),
    }
}

/// A hexadecimal number without prefix; `None` if it is empty, odd or does not fit.
pub(in super::super) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(u64::from(digit))
    })
}

/// A decimal number; `None` if it is empty, odd or does not fit.
pub(in super::super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// The names in the value of an `events:` line.
pub(in super::super) fn event_names(value: &[u8]) -> Vec<Vec<u8>> {
    value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Adds the numbers of a cost line to a sum for each event.
pub(in super::super) fn add_costs(costs: &[u8], sums: &mut Vec<u64>) -> Option<()> {
    let words = costs.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (event, word) in words.enumerate() {
        let cost = number(word)?;
        match sums.get_mut(event) {
            Some(sum) => *sum = sum.checked_add(cost)?,
            None => sums.push(cost),
        }
    }
    Some(())
}

/// The first number of a cost line.
pub(in super::super) fn first_cost(costs: &[u8]) -> u64 {
    let end = costs.iter().position(u8::is_ascii_whitespace).unwrap_or(costs.len());
    number(&costs[..end]).unwrap_or(0)
}

/// Appends a number. This is most of what is written: `format!` would take an allocation each.
pub(in super::super) fn push_number(mut value: u64, base: u64, out: &mut Vec<u8>) {
    let from = out.len();
    loop {
        // Less than 16.
        out.push(b"0123456789abcdef"[(value % base) as usize]);
        value /= base;
        if value == 0 {
            break;
        }
    }
    out[from..].reverse();
}
