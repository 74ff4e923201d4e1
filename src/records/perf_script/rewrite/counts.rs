//! The figures.

use std::ops::{AddAssign, Sub};

/// The findings in a block.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Frames named.
    pub named: u64,
    /// Frames at places that had several owners, in a text that does not give the time.
    pub ambiguous: u64,
    /// Frames in places of JIT code that nobody could name.
    pub unresolved: u64,
    /// Frames printed relative to a file whose base the text does not give.
    pub relative: u64,
    /// Frames of unknown processes.
    pub nobodys: u64,
    /// Frames of files that were named, where that is requested.
    pub native: u64,
    /// Frames of files that were not.
    pub native_left: u64,
    /// Samples with call chains.
    pub samples: u64,
    /// Samples without any frame.
    pub frameless: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.named += other.named;
        self.ambiguous += other.ambiguous;
        self.unresolved += other.unresolved;
        self.relative += other.relative;
        self.nobodys += other.nobodys;
        self.native += other.native;
        self.native_left += other.native_left;
        self.samples += other.samples;
        self.frameless += other.frameless;
    }
}

impl Sub for &Counts {
    type Output = Counts;

    fn sub(self, other: Self) -> Counts {
        Counts {
            named: self.named - other.named,
            ambiguous: self.ambiguous - other.ambiguous,
            unresolved: self.unresolved - other.unresolved,
            relative: self.relative - other.relative,
            nobodys: self.nobodys - other.nobodys,
            native: self.native - other.native,
            native_left: self.native_left - other.native_left,
            samples: self.samples - other.samples,
            frameless: self.frameless - other.frameless,
        }
    }
}
