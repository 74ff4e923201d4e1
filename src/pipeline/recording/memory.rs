//! The memory of the recorded processes.

use super::survey::Survey;
use crate::error::Warnings;
use crate::io;
use crate::resolve::address_space::AddressSpaces;
use crate::sources::{self, Found, SourceOptions};
use std::path::Path;

/// The mappings, and the files that list JIT code.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The mappings.
    pub(crate) spaces: AddressSpaces,
    /// Dumps and maps, opened but not read.
    pub(crate) found: Found,
}

impl Memory {
    /// Looks for dumps and maps.
    pub(crate) fn find(survey: &Survey<'_>, options: &SourceOptions, warnings: &mut Warnings) -> Self {
        let processes = &survey.processes;
        let samples = || survey.sampled();
        let site = survey.site(beside(survey.path), &samples);
        let found = sources::find_at(processes, options, &site, warnings);
        Self { spaces: AddressSpaces::new(processes), found }
    }
}

/// The directory that a recording is in, where dumps and maps may stand, too.
fn beside(path: &Path) -> Option<&Path> {
    io::beside(path).filter(|_| io::is_there(path))
}
