//! Sampling of calls: keeps one of many, which reduces the number of stacks without changing the total.

/// Which calls stand for others. Sampling isn't random: the weight since the last kept call is carried over to the next
/// one, and at the end to the last call, so that the total of each track stays exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Keep every call.
    #[default]
    All,
    /// Keep one in this many calls.
    Calls(u64),
    /// Keep a call whenever this much time has accumulated since the last one.
    Time(u64),
}

/// What a track carries over to its next kept call.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Carry {
    weight: u64,
    calls: u64,
    last: Option<u32>,
}

impl Sampling {
    /// Takes a finished call. Returns the weight and number of calls to add to its node if it is kept.
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
    /// What is left at the end, and the node of the last call, which gets it.
    pub(super) fn into_rest(self) -> Option<Rest> {
        let node = self.last?;
        if self.weight == 0 && self.calls == 0 {
            return None;
        }
        Some(Rest { node, weight: self.weight, calls: self.calls })
    }
}

/// Calls of a thread that were still skipped when it ended.
pub(super) struct Rest {
    pub(super) node: u32,
    pub(super) weight: u64,
    pub(super) calls: u64,
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
            if let Some(Rest { node, weight, calls }) = carry.into_rest() {
                assert_eq!(node, 9);
                sums = (sums.0 + weight, sums.1 + calls, sums.2 + 1);
            }
            let kept = if sampling == Sampling::All { 10 } else { 6 };
            assert_eq!((sums.0, sums.1), (450, 10));
            assert!(sums.2 <= kept, "{sampling:?} kept {}", sums.2);
        }
    }
}
