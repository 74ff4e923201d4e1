//! Keeps one of many calls, which stands for the others. This reduces the number of stacks without changing the total.

/// Which calls to keep. This isn't random: the weight of dropped calls is added to the next kept one. If calls were
/// dropped after the last kept one, their weight goes to the call path of the very last call of the track. The total of
/// each track therefore stays exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Keep every call.
    #[default]
    All,
    /// Keep one in this many calls.
    Calls(u64),
    /// Keep a call whenever the calls since the last kept one have accumulated this much time.
    Time(u64),
}

/// The weight and the number of a track's calls since the last kept one. The next call that is kept gets them.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Carry {
    weight: u64,
    calls: u64,
    /// The node of the track's last call, kept or not; `None` before the first one.
    last: Option<u32>,
}

impl Sampling {
    /// Adds a finished call to `carry`, which collects the calls since the last kept one. If this call is kept, empties
    /// `carry` and returns the collected weight and number of calls, to be added to the call's node, which is `node`.
    /// `None` if the call is dropped.
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
    /// What is left at the end of a track: the weight of the calls that were dropped after the last kept one. It goes
    /// to the node of the last of these dropped calls. `None` if no calls were dropped there.
    pub(super) fn into_rest(self) -> Option<Rest> {
        let node = self.last?;
        if self.weight == 0 && self.calls == 0 {
            return None;
        }
        Some(Rest { node, weight: self.weight, calls: self.calls })
    }
}

/// The weight and the number of calls that were dropped at the end of a track, and the node to which they are added.
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
