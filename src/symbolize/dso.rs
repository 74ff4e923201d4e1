//! Numbers everything that can be mapped into memory: files, the vDSO, anonymous memory, the kernel and its modules.

use crate::model::bpf::BpfFunctionId;
use crate::model::mapping_kind::{self, MappingKind};
use crate::model::process::{BuildId, FileId};
use rustc_hash::FxHashMap;

/// The number of a [`Dso`] in the [`Dsos`] of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DsoId(pub u32);

/// What an address can belong to (perf calls it a DSO): one build of a file, or memory that isn't from a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dso {
    /// The path as it is in the recording. For [`DsoKind::KernelSymbol`], the name of the symbol.
    pub path: Vec<u8>,
    /// The file's build ID; `None` if the recording doesn't state it.
    pub build_id: Option<BuildId>,
    /// The file's device and inode; `None` if the recording doesn't state them.
    pub file: Option<FileId>,
    /// Whether the DSO is a file, anonymous memory, part of the kernel, and so on.
    pub kind: DsoKind,
}

/// What kind of memory a [`Dso`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DsoKind {
    /// A file, usually a program or library.
    File,
    /// The vDSO: the page of functions that the kernel maps into every process.
    Vdso,
    /// The vDSO of a 32-bit process.
    Vdso32,
    /// Memory that isn't from a file, so that a JIT compiler may have put code there. Includes huge pages, memfd and
    /// shared memory.
    Anonymous,
    /// Memory that isn't from a file and isn't executable. Only `perf record -d` records it. If a call chain contains
    /// an address in it, the kernel followed a register that wasn't used as a frame pointer: the address isn't code.
    Data,
    /// The kernel itself, without its modules.
    Kernel,
    /// A kernel module.
    Module,
    /// Kernel code that was registered under a name of its own, such as a BPF program or a trampoline. [`Dso::path`] is
    /// that name. The ID is `None` unless the recording also contains the BPF program's code and source lines.
    KernelSymbol(Option<BpfFunctionId>),
    /// The kernel or a program inside a virtual machine that was running on the recorded machine. Its files can't be
    /// found here.
    Guest,
}

impl DsoKind {
    /// True for memory that isn't from a file, executable or not.
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Anonymous | Self::Data)
    }
}

impl Dso {
    /// A user-space DSO of which only the path and perhaps the build ID are known. Its kind follows from the path.
    pub fn from_path(path: Vec<u8>, build_id: Option<BuildId>) -> Self {
        let kind = Self::kind_of_user_path(&path);
        Self { path, build_id, file: None, kind }
    }

    /// True for the 64-bit and the 32-bit vDSO.
    pub fn is_vdso(&self) -> bool {
        matches!(self.kind, DsoKind::Vdso | DsoKind::Vdso32)
    }

    /// The name to show. It is the path, except for the kernel: perf appends the name of a reference symbol, which is
    /// left out (`[kernel.kallsyms]_text` becomes `[kernel.kallsyms]`).
    pub fn label(&self) -> &[u8] {
        match self.kind {
            DsoKind::Kernel | DsoKind::Guest => mapping_kind::split_reference_symbol(&self.path).0,
            _ => &self.path,
        }
    }

    /// The kind of DSO for a mapping in user space, judging by its path.
    pub fn kind_of_user_path(path: &[u8]) -> DsoKind {
        match MappingKind::from_path(path) {
            MappingKind::Vdso => DsoKind::Vdso,
            kind if kind.is_memory() => DsoKind::Anonymous,
            _ => DsoKind::File,
        }
    }
}

/// All distinct [`Dso`]s of a recording, numbered in the order in which they first appear.
#[derive(Debug, Default)]
pub struct Dsos {
    list: Vec<Dso>,
    ids: FxHashMap<Dso, DsoId>,
}

impl Dsos {
    /// The number of a DSO. If the DSO is new, it is added.
    pub fn intern(&mut self, dso: Dso) -> DsoId {
        *self.ids.entry(dso).or_insert_with_key(|dso| {
            self.list.push(dso.clone());
            DsoId((self.list.len() - 1) as u32)
        })
    }

    /// The DSO with this number.
    pub fn get(&self, id: DsoId) -> &Dso {
        &self.list[id.0 as usize]
    }

    /// All DSOs, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (DsoId, &Dso)> {
        self.list.iter().enumerate().map(|(index, dso)| (DsoId(index as u32), dso))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mapping_kind::tests::{PATHS, paths_where};

    #[test]
    fn every_sort_of_path_has_its_kind() {
        let of = |kind| paths_where(|path| Dso::kind_of_user_path(path) == kind);
        let anonymous = [
            "",
            "//anon",
            "[anon:JIT code]",
            "[anon_shmem:JIT code]",
            "/anon_hugepage",
            "/anon_hugepage (deleted)",
            "/dev/zero",
            "/dev/zero (deleted)",
            "/memfd:doublemapper (deleted)",
            "/SYSV00000000 (deleted)",
            "[heap]",
            "[stack]",
            "[stack:77]",
            "anon_inode:[perf_event]",
            "/dev/shm/code (deleted)",
            "/dev/ashmem/dalvik-jit-code-cache (deleted)",
            "/tmp/#77 (deleted)",
        ];
        assert_eq!(of(DsoKind::Anonymous), anonymous);
        assert_eq!(of(DsoKind::Vdso), ["[vdso]", "[vdso32]"]);
        assert_eq!(of(DsoKind::File).len(), PATHS.len() - anonymous.len() - 2);
    }

    #[test]
    fn paths_show_what_is_mapped() {
        let kind = Dso::kind_of_user_path;
        assert_eq!(kind(b"/usr/bin/node"), DsoKind::File);
        assert_eq!(kind(b"[vdso]"), DsoKind::Vdso);
        for path in [&b"//anon"[..], b"/memfd:doublemapper (deleted)", b"[anon:v8]", b"[heap]", b""] {
            assert_eq!(kind(path), DsoKind::Anonymous);
        }
        let kernel = Dso { path: b"[kernel.kallsyms]_text".into(), build_id: None, file: None, kind: DsoKind::Kernel };
        assert_eq!(kernel.label(), b"[kernel.kallsyms]");
    }
}
