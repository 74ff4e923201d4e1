//! The inputs of a job.

use super::open::Opened;
use crate::io::InPath;

/// The inputs to read, in order. The first may already be open, because a command that has looked at standard input
/// can't open it again.
#[derive(Default)]
pub struct JobInputs<'a> {
    pub(super) first: Option<Opened>,
    pub(super) paths: &'a [InPath],
}

impl<'a> JobInputs<'a> {
    /// Inputs of which the first may already be open.
    pub(crate) fn with_first(first: Option<Opened>, paths: &'a [InPath]) -> Self {
        Self { first, paths }
    }
}

impl std::fmt::Debug for JobInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.paths.fmt(f)
    }
}

impl<'a, Paths: AsRef<[InPath]> + ?Sized> From<&'a Paths> for JobInputs<'a> {
    fn from(paths: &'a Paths) -> Self {
        Self { first: None, paths: paths.as_ref() }
    }
}
