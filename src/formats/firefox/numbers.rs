//! The numbers of stacks and frames of a profile in the current thread.

/// Numbers by numbers. Looked up by place: a thread has most of what the profile has, or little, and drops no more than
/// it had.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// One more than the number; 0 for none.
    of: Vec<u32>,
    known: Vec<u32>,
}

impl Numbers {
    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<u32> {
        self.of.get(at as usize)?.checked_sub(1)
    }

    /// The next number becomes that of `at`, which has none.
    pub(super) fn add(&mut self, at: u32, number: u32) {
        if self.of.len() <= at as usize {
            self.of.resize(at as usize + 1, 0);
        }
        self.of[at as usize] = number + 1;
        self.known.push(at);
    }

    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.known.drain(..).for_each(|at| self.of[at as usize] = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_range_is_unknown() {
        let mut numbers = Numbers::default();
        numbers.add(7, 0);
        numbers.add(2, 1);
        assert_eq!([7, 2, 3, 90].map(|at| numbers.get(at)), [Some(0), Some(1), None, None]);
        numbers.clear();
        assert_eq!([7, 2].map(|at| numbers.get(at)), [None, None]);
        numbers.add(2, 0);
        assert_eq!([7, 2].map(|at| numbers.get(at)), [None, Some(0)]);
    }
}
