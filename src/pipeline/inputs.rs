//! The inputs of a job, in their order.

use super::open::Opened;
use crate::io::InPath;

/// JobInputs to read. The first one may be open: a command that has looked into it cannot open standard input again.
#[derive(Default)]
pub struct JobInputs<'a> {
    pub(super) first: Option<Opened>,
    pub(super) paths: &'a [InPath],
}

impl<'a> JobInputs<'a> {
    /// JobInputs of which the first may be open.
    pub(crate) fn opened(first: Option<Opened>, paths: &'a [InPath]) -> Self {
        Self { first, paths }
    }
}

impl std::fmt::Debug for JobInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.paths.fmt(f)
    }
}

impl<'a> From<&'a [InPath]> for JobInputs<'a> {
    fn from(paths: &'a [InPath]) -> Self {
        Self { first: None, paths }
    }
}

impl<'a> From<&'a Vec<InPath>> for JobInputs<'a> {
    fn from(paths: &'a Vec<InPath>) -> Self {
        paths.as_slice().into()
    }
}

impl<'a, const COUNT: usize> From<&'a [InPath; COUNT]> for JobInputs<'a> {
    fn from(paths: &'a [InPath; COUNT]) -> Self {
        paths.as_slice().into()
    }
}
