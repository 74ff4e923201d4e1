//! Keeping one call for many: fewer stacks, the same total.

/// The calls of a track that stand for the others. Nothing is left to chance: the weight since the last kept call is
/// carried to the next one, and on to the last call at the end, so that every track's total stays exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Every call is kept.
    #[default]
    All,
    /// One of this many calls is kept.
    Calls(u64),
    /// A call is kept whenever so much time has been summed up since the last one.
    Time(u64),
}

/// The state that one track has carried so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Carry {
    weight: u64,
    calls: u64,
    last: Option<u32>,
}

impl Sampling {
    /// Takes a finished call of the track; gives what to add to its node, if it is kept.
    #[inline]
    pub(super) fn take(self, carry: &mut Carry, node: u32, weight: u64) -> Option<(u64, u64)> {
        carry.weight += weight;
        carry.calls += 1;
        carry.last = Some(node);
        let keep = match self {
            Self::All => true,
            Self::Calls(every) => carry.calls >= every,
            Self::Time(every) => carry.weight >= every,
        };
        keep.then(|| (std::mem::take(&mut carry.weight), std::mem::take(&mut carry.calls)))
    }
}

impl Carry {
    /// The rest at the end, and the last call, which gets it.
    pub(super) fn rest(self) -> Option<(u32, u64, u64)> {
        let node = self.last?;
        (self.weight > 0 || self.calls > 0).then_some((node, self.weight, self.calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stay() {
        for sampling in [Sampling::All, Sampling::Calls(3), Sampling::Time(50)] {
            let mut carry = Carry::default();
            let mut sums = (0, 0, 0);
            for node in 0..10 {
                if let Some((weight, calls)) = sampling.take(&mut carry, node, u64::from(node) * 10) {
                    sums = (sums.0 + weight, sums.1 + calls, sums.2 + 1);
                }
            }
            if let Some((node, weight, calls)) = carry.rest() {
                assert_eq!(node, 9);
                sums = (sums.0 + weight, sums.1 + calls, sums.2 + 1);
            }
            let kept = if sampling == Sampling::All { 10 } else { 6 };
            assert_eq!((sums.0, sums.1), (450, 10));
            assert!(sums.2 <= kept, "{sampling:?} kept {}", sums.2);
        }
    }
}
