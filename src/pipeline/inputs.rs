//! The inputs that a job reads.

use super::open::Opened;
use crate::io::InPath;

/// The inputs to read, in this order. The first one may already be open: if a command has looked at standard input, it
/// can't be opened again.
#[derive(Default)]
pub struct JobInputs<'a> {
    /// The first of the inputs, if it is already open.
    pub(super) first: Option<Opened>,
    pub(super) paths: &'a [InPath],
}

impl<'a> JobInputs<'a> {
    /// Creates the list of inputs. `first` is the first of `paths` if that has already been opened.
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
