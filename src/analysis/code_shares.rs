//! How much of an event's weight is in named functions and in JIT code. All outputs take these shares from here.
//!
//! Each sample counts with its weight for the code of its innermost frame, as in tables and legends. JIT code counts
//! even if it has no name. Unnamed code in memory without a file counts as JIT code only if a JIT compiler is known to
//! run in the process.

use crate::analysis::category::Category;
use crate::model::stacks::{Frame, FrameKind, Profile, Series, UNKNOWN, Weight};
use std::fmt;

/// The weight of an event's samples, by what their innermost frame is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeShares {
    /// The event's name.
    pub event: String,
    /// The weight of all samples, including those without a stack.
    pub whole: u64,
    /// The weight of samples in named functions.
    pub named: u64,
    /// The weight of samples in JIT code, named or not.
    pub jit: u64,
    /// The weight of samples in named JIT code.
    pub jit_named: u64,
    /// The weight of samples in unnamed code in memory without a file ([`FrameKind::Anonymous`]).
    pub no_file: u64,
}

impl CodeShares {
    /// The shares of an event to which no samples have been added yet.
    pub fn new(event: &str) -> Self {
        Self { event: event.to_owned(), ..Self::default() }
    }

    /// Computes the shares of an event. Samples with negative weights count with the absolute value.
    pub fn count(profile: &Profile, series: &Series, weight: Weight) -> Self {
        let mut shares = Self::new(&series.name);
        for row in series.rows.iter().chain(&series.negative) {
            let frame = profile.frames_up(row.stack).next().map(|frame| profile.frame_of(frame));
            shares.add(frame.map(|frame| (frame.kind, has_name(profile, frame))), weight.value(row));
        }
        shares
    }

    /// Counts the weight of a sample by its innermost frame, given by its kind and whether it has a name. `None` stands
    /// for a sample without a stack.
    pub fn add(&mut self, innermost: Option<(FrameKind, bool)>, weight: u64) {
        add(&mut self.whole, weight);
        let Some((kind, has_name)) = innermost else { return };
        if has_name {
            add(&mut self.named, weight);
        }
        match kind {
            kind if kind.is_jit() => {
                add(&mut self.jit, weight);
                if has_name {
                    add(&mut self.jit_named, weight);
                }
            }
            // Code in memory that no file backs. It may or may not be JIT code: no JIT compiler is known in its
            // process.
            FrameKind::Anonymous => add(&mut self.no_file, weight),
            _ => {}
        }
    }

    /// Adds the weights of another part of the same event's samples.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.whole, other.whole);
        add(&mut self.named, other.named);
        add(&mut self.jit, other.jit);
        add(&mut self.jit_named, other.jit_named);
        add(&mut self.no_file, other.no_file);
    }
}

fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}

/// True if the frame's function has a name of its own. Names like `[libc.so.6]` don't count, because some tools call
/// functions without a name after their module.
fn has_name(profile: &Profile, frame: &Frame) -> bool {
    let name = profile.name_of(frame.name);
    let is_bracketed = !profile.perf_names && name.starts_with(b"[") && name.ends_with(b"]");
    !Category::from_frame(frame).is_unnamed() && name != UNKNOWN && !is_bracketed
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

impl fmt::Display for CodeShares {
    /// Writes the shares as percentages. Those of JIT code and of memory without a file are only written if there is
    /// any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}% in functions with a name", percent(self.named, self.whole))?;
        if self.jit > 0 {
            let (of_whole, of_jit) = (percent(self.jit, self.whole), percent(self.jit_named, self.jit));
            write!(f, "; {of_whole:.2}% in JIT code, {of_jit:.2}% of it named")?;
        }
        if self.no_file > 0 {
            write!(f, "; {:.2}% in {}", percent(self.no_file, self.whole), Category::Anonymous.name())?;
        }
        f.write_str(" (by innermost frame)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_by_their_innermost_frame_and_those_without_one_in_the_whole() {
        let mut shares = CodeShares::new("e");
        for (kind, has_name, weight) in [
            (FrameKind::User, true, 1),
            (FrameKind::Kernel, false, 2),
            (FrameKind::Jit, true, 4),
            (FrameKind::JitUnnamed, false, 12),
            (FrameKind::Anonymous, false, 16),
        ] {
            shares.add(Some((kind, has_name)), weight);
        }
        shares.add(None, 5);
        assert_eq!(
            shares.to_string(),
            "12.50% in functions with a name; 40.00% in JIT code, 25.00% of it named; \
             40.00% in unnamed code (no file) (by innermost frame)"
        );
        assert_eq!(CodeShares::new("e").to_string(), "0.00% in functions with a name (by innermost frame)");
    }
}
