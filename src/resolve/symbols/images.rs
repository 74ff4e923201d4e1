//! The files of a recording that are here, each opened once, for symbols and unwinding alike.

use super::files::SearchOptions;
use super::image::Image;
use crate::error::Warnings;
use crate::resolve::dso::{Dso, DsoId, DsoKind};
use std::sync::OnceLock;

/// Opens files when they are first asked for; shared by all threads.
#[derive(Debug)]
pub struct Images<'a> {
    wanted: Vec<&'a Dso>,
    options: SearchOptions,
    slots: Vec<OnceLock<(Option<Image>, Warnings)>>,
}

impl<'a> Images<'a> {
    /// Nothing is opened yet. `dsos` are in the order of their numbers.
    pub fn new(dsos: impl Iterator<Item = (DsoId, &'a Dso)>, options: SearchOptions) -> Self {
        let wanted: Vec<_> = dsos.map(|(_, dso)| dso).collect();
        let slots = wanted.iter().map(|_| OnceLock::new()).collect();
        Self { wanted, options, slots }
    }

    /// The number of a file.
    pub fn id_of(&self, dso: &Dso) -> Option<DsoId> {
        let at = self.wanted.iter().position(|wanted| *wanted == dso)?;
        u32::try_from(at).ok().map(DsoId)
    }

    /// The file that was running, if it is here.
    pub fn get(&self, id: DsoId) -> Option<&Image> {
        let dso = self.wanted.get(id.0 as usize)?;
        if !matches!(dso.kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::Kernel) {
            return None;
        }
        let (image, _) = self.slots[id.0 as usize].get_or_init(|| {
            let mut warnings = Warnings::new();
            (self.options.running(dso, &mut warnings), warnings)
        });
        image.as_ref()
    }

    /// Those that were requested and are here, in the order of the recording.
    pub fn opened(&self) -> impl Iterator<Item = (DsoId, &Image)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| {
            let (image, _) = slot.get()?;
            Some((DsoId(at as u32), image.as_ref()?))
        })
    }

    /// The oddities of the files opened so far, in the order of the recording.
    pub fn into_warnings(self) -> Warnings {
        let mut all = Warnings::new();
        for (_, own) in self.slots.into_iter().filter_map(OnceLock::into_inner) {
            all.append(own);
        }
        all
    }
}
