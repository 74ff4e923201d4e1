//! The files that callgrind saw mapped.

use crate::records::callgrind::InstructionCosts;
use crate::resolve::dso::{Dso, DsoId, DsoKind, Dsos};
use crate::resolve::symbols::image::Image;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// callgrind's word for memory that no file backs.
const UNKNOWN: &[u8] = b"???";

/// The object that `ob=` names.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) dsos: Dsos,
    of: FxHashMap<Vec<u8>, DsoId>,
}

impl Objects {
    /// A name without directories is that of a file beside the profile: so the command `callgrind` names its own.
    pub(super) fn new(costs: &InstructionCosts, beside: Option<&Path>) -> Self {
        let mut objects = Self::default();
        let names = costs.functions.iter().map(|function| &function.object);
        for name in names.filter(|name| !name.is_empty() && *name != UNKNOWN) {
            let path = match beside.filter(|_| !name.contains(&b'/')) {
                Some(beside) => beside.join(std::ffi::OsStr::from_bytes(name)).as_os_str().as_bytes().to_vec(),
                None => name.clone(),
            };
            let id = objects.dsos.intern(Dso { path, build_id: None, kind: DsoKind::File });
            objects.of.insert(name.clone(), id);
        }
        objects
    }

    /// Its number; `None` for memory that no file backs.
    pub(super) fn number(&self, name: &[u8]) -> Option<DsoId> {
        self.of.get(name).copied()
    }
}

/// The code at these addresses as linked. The command `callgrind` writes objects of sections alone.
pub(super) fn code(image: &Image, extent: Range<u64>) -> Option<&[u8]> {
    image.loaded(extent.clone()).or_else(|| {
        let object = image.object().ok()?;
        let sections = object.sections().filter(|section| section.address() > 0);
        sections.into_iter().find_map(|section| {
            let len = extent.end.checked_sub(extent.start)?;
            section.data_range(extent.start, len).ok().flatten()
        })
    })
}
