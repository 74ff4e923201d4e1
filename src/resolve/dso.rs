//! The files and other things that addresses can belong to, numbered.

use crate::model::backing::{self, Backing};
use crate::model::bpf::BpfFunctionId;
use crate::model::process::{BuildId, FileId};
use rustc_hash::FxHashMap;

/// One [`Dso`] of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DsoId(pub u32);

/// Something that was mapped: a file in one version, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dso {
    /// The path as recorded.
    pub path: Vec<u8>,
    /// The build ID of the file, if the recording states it.
    pub build_id: Option<BuildId>,
    /// The device and inode of the file, if the recording states them.
    pub file: Option<FileId>,
    /// Its kind.
    pub kind: DsoKind,
}

/// The kind of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DsoKind {
    /// A file of a program.
    File,
    /// The kernel's page of functions for programs.
    Vdso,
    /// The same for programs of 32 bits.
    Vdso32,
    /// Memory without a file, where a JIT compiler may have put code; also huge pages, memfd and shared memory.
    Anonymous,
    /// The kernel itself.
    Kernel,
    /// A kernel module.
    Module,
    /// A piece of kernel code that has its own name (BPF programs, trampolines): the path is the name. The recording may
    /// hold its code and source.
    KernelSymbol(Option<BpfFunctionId>),
    /// The kernel or a program of a guest: its files are not here.
    Guest,
}

impl Dso {
    /// A file of a program, of which the recording states no more than its path and its build ID.
    pub fn of_path(path: Vec<u8>, build_id: Option<BuildId>) -> Self {
        let kind = Self::kind_of_user_path(&path);
        Self { path, build_id, file: None, kind }
    }

    /// True for the kernel's page of functions for programs.
    pub fn is_vdso(&self) -> bool {
        matches!(self.kind, DsoKind::Vdso | DsoKind::Vdso32)
    }

    /// The name in listings : the path, but the kernel without the reference symbol that perf appends.
    pub fn label(&self) -> &[u8] {
        match self.kind {
            DsoKind::Kernel | DsoKind::Guest => backing::split_reference_symbol(&self.path).0,
            _ => &self.path,
        }
    }

    /// The kind that the path of a program's mapping shows.
    pub fn kind_of_user_path(path: &[u8]) -> DsoKind {
        match Backing::of(path) {
            Backing::Vdso => DsoKind::Vdso,
            backing if backing.is_memory() => DsoKind::Anonymous,
            _ => DsoKind::File,
        }
    }
}

/// All of a recording, each once, by first appearance.
#[derive(Debug, Default)]
pub struct Dsos {
    list: Vec<Dso>,
    ids: FxHashMap<Dso, DsoId>,
}

impl Dsos {
    /// The number of one.
    pub fn intern(&mut self, dso: Dso) -> DsoId {
        *self.ids.entry(dso).or_insert_with_key(|dso| {
            self.list.push(dso.clone());
            DsoId((self.list.len() - 1) as u32)
        })
    }

    /// The one with this number.
    pub fn get(&self, id: DsoId) -> &Dso {
        &self.list[id.0 as usize]
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (DsoId, &Dso)> {
        self.list.iter().enumerate().map(|(index, dso)| (DsoId(index as u32), dso))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backing::tests::{PATHS, those};

    #[test]
    fn every_sort_of_path_has_its_kind() {
        let of = |kind| those(|path| Dso::kind_of_user_path(path) == kind);
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
