//! Files as lists of build IDs call them.

use crate::model::backing;
use crate::model::process::CpuMode;
use crate::records::perf_data::Mmap;
use crate::resolve::dso::{Dso, DsoKind};

/// The facts about a file in a list of build IDs besides its ID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ListedFile {
    pub(super) path: Vec<u8>,
    pub(super) cpumode: CpuMode,
}

impl ListedFile {
    /// The file that a mapping record names.
    pub(super) fn of_mapping(mmap: &Mmap<'_>) -> Self {
        Self { path: listed(mmap.path, mmap.cpumode).to_vec(), cpumode: mmap.cpumode }
    }

    /// The file that something mapped is from; `None` for what has no build ID.
    pub(super) fn of_dso(dso: &Dso) -> Option<Self> {
        let cpumode = match dso.kind {
            DsoKind::File | DsoKind::Vdso => CpuMode::User,
            DsoKind::Kernel | DsoKind::Module => CpuMode::Kernel,
            _ => return None,
        };
        Some(Self { path: listed(&dso.path, cpumode).to_vec(), cpumode })
    }
}

/// The kernel is listed without the symbol behind its name.
pub(super) fn listed(path: &[u8], cpumode: CpuMode) -> &[u8] {
    if cpumode == CpuMode::Kernel { backing::split_reference_symbol(path).0 } else { path }
}
