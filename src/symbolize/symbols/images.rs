//! The files that were mapped in a recording. Each is opened once, for both symbols and unwinding.

use super::files::SearchOptions;
use super::image::Image;
use crate::error::Warnings;
use crate::symbolize::dso::{Dso, DsoId, DsoKind};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// Opens each file when it is first needed. All threads share the opened files.
#[derive(Debug)]
pub struct Images<'a> {
    /// The DSOs by ID.
    dsos: Vec<&'a Dso>,
    /// The ID of each DSO.
    ids: FxHashMap<&'a Dso, DsoId>,
    options: SearchOptions,
    /// For each DSO that has been asked for, its file (`None` if it can't be used) and the warnings about it.
    slots: Vec<OnceLock<(Option<Image>, Warnings)>>,
}

impl<'a> Images<'a> {
    /// Prepares to open the files of these DSOs, which must be in the order of their IDs. Opens none yet.
    pub fn new(dsos: impl Iterator<Item = (DsoId, &'a Dso)>, options: SearchOptions) -> Self {
        let dsos: Vec<_> = dsos.map(|(_, dso)| dso).collect();
        let slots = dsos.iter().map(|_| OnceLock::new()).collect();
        let ids = dsos.iter().enumerate().map(|(index, &dso)| (dso, DsoId(index as u32))).collect();
        Self { dsos, ids, options, slots }
    }

    /// The ID of a DSO; `None` if it was not among the DSOs given to [`Images::new`].
    pub fn id_of(&self, dso: &Dso) -> Option<DsoId> {
        self.ids.get(dso).copied()
    }

    /// The file that was mapped as this DSO. `None` if it isn't on this machine, is only there in another build, or may
    /// not be used. Also `None` if the DSO is memory that isn't from a file.
    pub fn get(&self, id: DsoId) -> Option<&Image> {
        let dso = self.dsos.get(id.0 as usize)?;
        // Anonymous memory has no file. The files of kernel modules and guests aren't read.
        if !matches!(dso.kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::Kernel) {
            return None;
        }
        let (image, _) = self.slots[id.0 as usize].get_or_init(|| {
            let mut warnings = Warnings::new();
            (self.options.find_running(dso, &mut warnings), warnings)
        });
        image.as_ref()
    }

    /// All files that were opened successfully so far, in the order of their IDs.
    pub fn opened(&self) -> impl Iterator<Item = (DsoId, &Image)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let (image, _) = slot.get()?;
            Some((DsoId(index as u32), image.as_ref()?))
        })
    }

    /// The warnings about all files opened so far, in the order of their IDs.
    pub fn into_warnings(self) -> Warnings {
        let mut all = Warnings::new();
        for (_, own) in self.slots.into_iter().filter_map(OnceLock::into_inner) {
            all.append(own);
        }
        all
    }
}
