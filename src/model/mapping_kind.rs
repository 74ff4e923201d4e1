//! What backs a mapping: a file, or one of the many kinds of memory without a file.
//!
//! A recording distinguishes these only by the mapping's path. If there is no file, the path is a name that the kernel
//! (`perf_event_mmap_event` in kernel/events/core.c) or perf makes up. All knowledge of these names is here: whatever
//! others need to know about a mapping is a method of [`MappingKind`]. Some methods differ in a single kind only; that
//! is intended.

/// What backs a mapping, according to its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingKind<'a> {
    /// The record has no path.
    Unnamed,
    /// `//anon`: private anonymous memory.
    Anonymous,
    /// `[anon:NAME]`: private anonymous memory that the program named (`PR_SET_VMA_ANON_NAME`).
    NamedAnonymous,
    /// `/anon_hugepage`: private anonymous memory in huge pages.
    HugePages,
    /// `[heap]`: memory from `brk`.
    Heap,
    /// `[stack]`; in old kernels also `[stack:TID]`.
    Stack,
    /// `/dev/zero`: unnamed memory shared between processes.
    SharedAnonymous,
    /// `[anon_shmem:NAME]`: shared memory that the program named.
    NamedShared,
    /// `/memfd:NAME (deleted)`: memory from `memfd_create`. Runtimes map it twice, once writable and once executable.
    Memfd,
    /// `/SYSV0000002a (deleted)`: memory from `shmget`.
    SystemV,
    /// `/dev/shm/NAME (deleted)` or `/dev/ashmem/NAME`: memory from `shm_open`, or Android's. A path in `/dev/shm` that
    /// isn't deleted is a [`File`](Self::File): it may as well be a library that somebody put there.
    PosixShared,
    /// `/tmp/#77 (deleted)`: a file that never had a name (`O_TMPFILE`).
    NamelessFile,
    /// `anon_inode:[perf_event]` and other kernel objects that can be mapped.
    AnonInode,
    /// `[vdso]`, `[vdso32]`, `[vdsox32]`: code that the kernel maps into every program (vDSO).
    Vdso,
    /// `[vsyscall]`: the predecessor of the vDSO.
    Vsyscall,
    /// `//toolong`, `//enomem`: a file whose path the kernel couldn't state.
    UnknownPath,
    /// Any other name in brackets: `[kernel.kallsyms]_text`, a kernel module such as `[ext4]`, `[uprobes]`.
    Bracketed(&'a [u8]),
    /// A file, with its path.
    File(&'a [u8]),
    /// A name that is neither a path nor one of the kernel's.
    Other(&'a [u8]),
}

/// Beginnings of paths, and the kind of mapping that each indicates. The first match wins.
const BEGINNINGS: &[(&[u8], MappingKind<'static>)] = &[
    (b"//anon", MappingKind::Anonymous),
    (b"//", MappingKind::UnknownPath),
    (b"/anon_hugepage", MappingKind::HugePages),
    (b"/dev/zero", MappingKind::SharedAnonymous),
    (b"/memfd:", MappingKind::Memfd),
    (b"/SYSV", MappingKind::SystemV),
    (b"[anon:", MappingKind::NamedAnonymous),
    (b"[anon", MappingKind::NamedShared),
    (b"[heap", MappingKind::Heap),
    (b"[stack", MappingKind::Stack),
    (b"[vdso", MappingKind::Vdso),
    (b"[vsyscall]", MappingKind::Vsyscall),
    (b"anon_inode:", MappingKind::AnonInode),
    // Android up to version 9: `/dev/ashmem/dalvik-jit-code-cache (deleted)`.
    (b"/dev/ashmem/", MappingKind::PosixShared),
];

/// The kernel appends this to the path of a file that was unlinked.
const DELETED: &[u8] = b" (deleted)";

impl<'a> MappingKind<'a> {
    /// Classifies a mapping by its path.
    pub fn from_path(path: &'a [u8]) -> Self {
        if let Some((_, kind)) = BEGINNINGS.iter().find(|(beginning, _)| path.starts_with(beginning)) {
            return *kind;
        }
        match path {
            [] => Self::Unnamed,
            _ if path.starts_with(b"/dev/shm/") && path.ends_with(DELETED) => Self::PosixShared,
            _ if is_nameless(path) => Self::NamelessFile,
            [b'/', ..] => Self::File(path),
            [b'[', ..] => Self::Bracketed(path),
            _ => Self::Other(path),
        }
    }

    /// True for files, whatever they contain.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File(_))
    }

    /// True for a file that was unlinked or replaced, before it was mapped or during the recording.
    pub fn is_deleted(self) -> bool {
        matches!(self, Self::File(path) if path.ends_with(DELETED))
    }

    /// True for files that are likely to contain a JIT compiler's output, although they can't be read: deleted files,
    /// and those in `/dev`, where there is shared memory (`/dev/shm`, `/dev/hugepages`) but no libraries.
    pub fn is_likely_jit_file(self) -> bool {
        self.is_deleted() || matches!(self, Self::File(path) if path.starts_with(b"/dev/"))
    }

    /// True for memory that several processes, or several mappings in one process, can share. perf may print an address
    /// in it as an offset from the start of the memory, as in a file.
    pub fn is_shared_memory(self) -> bool {
        matches!(
            self,
            Self::SharedAnonymous
                | Self::NamedShared
                | Self::Memfd
                | Self::SystemV
                | Self::PosixShared
                | Self::NamelessFile
        )
    }

    /// True for memory that belongs to a single process. perf prints addresses in it as they are, not as offsets.
    pub fn is_private_memory(self) -> bool {
        matches!(self, Self::Anonymous | Self::NamedAnonymous | Self::HugePages | Self::Heap | Self::Stack)
    }

    /// True if JIT compilers may put code in a mapping of this kind.
    pub fn may_hold_jit_code(self) -> bool {
        self.is_private_memory() || self.is_shared_memory() || self == Self::Unnamed
    }

    /// True if no file backs the mapping, so that it has no symbols and no build ID. Besides the kinds for which
    /// [`may_hold_jit_code`](Self::may_hold_jit_code) is true, these are kernel objects such as perf's ring buffer.
    pub fn is_memory(self) -> bool {
        self.may_hold_jit_code() || self == Self::AnonInode
    }

    /// True if perf shows code in this kind of memory under the memory's own recorded name, such as `/memfd:NAME
    /// (deleted)`. Code in all other memory without a file is shown under the name of the process's perf map
    /// (`/tmp/perf-PID.map`).
    pub fn has_own_name(self) -> bool {
        matches!(self, Self::Memfd | Self::AnonInode | Self::PosixShared | Self::NamelessFile)
    }

    /// True if a new mapping of this kind means that JIT code at the same addresses is gone. Anonymous memory doesn't
    /// mean that, because runtimes map it again in order to grow it. Neither do jitdumps, which are mapped as markers,
    /// nor ELF images of JIT code, which contain the code itself.
    pub fn ends_jit_code(self) -> bool {
        let Self::File(path) = self else { return false };
        let name = base_name(path);
        !name.starts_with(b"jitted-") && !name.starts_with(b"jit-")
    }

    /// True if perf's unwinders treat the mapping as a library, so that no ELF image of JIT code may overlap it. Memory
    /// that has a name (such as `[anon:NAME]`) and jitdumps aren't libraries.
    pub fn is_library(self) -> bool {
        matches!(self, Self::File(path) if !path.ends_with(b".dump"))
    }

    /// True for the kernel and its modules, whether the path is the name that perf prints (`[kernel.kallsyms]`,
    /// `[ext4]`) or that of their file.
    pub fn is_kernel_object(self) -> bool {
        match self {
            Self::Bracketed(name) => {
                // A symbol may follow the bracket, as in `[kernel.kallsyms]_text`.
                let (object, _) = split_reference_symbol(name);
                object.ends_with(b"]") && ![JIT_APP_CACHE, JIT_ZYGOTE_CACHE].contains(&name)
            }
            Self::File(path) | Self::Other(path) => is_kernel_file(path),
            _ => false,
        }
    }

    /// True if profilers show this mapping as the module of JIT code. That is so for memory without a file, an ELF
    /// image of JIT code, a jitdump, a perf map, and names that eBPF agents use for JIT code.
    pub fn is_jit_object(self) -> bool {
        let (Self::File(path) | Self::Other(path) | Self::Bracketed(path)) = self else {
            // A record without a path says nothing about what was mapped.
            return self != Self::Unnamed && self.may_hold_jit_code();
        };
        let base = base_name(path);
        [&b"jit"[..], b"[jit]", b"[JIT]", JIT_APP_CACHE, JIT_ZYGOTE_CACHE].contains(&path)
            || base.starts_with(b"jitted-")
            || self.is_perf_map()
            || base.starts_with(b"jit-") && base.ends_with(b".dump")
            || base.starts_with(b"[JIT] tid ")
    }

    /// True if the file name has the form of a perf map's, `perf-PID.map`.
    pub fn is_perf_map(self) -> bool {
        let (Self::File(path) | Self::Other(path)) = self else { return false };
        let base = base_name(path);
        base.starts_with(b"perf-") && base.ends_with(b".map")
    }

    /// True for the kernel itself (not its modules), which perf records as `[kernel.kallsyms]_text`.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Bracketed(name) if name.starts_with(b"[kernel"))
    }
}

/// The names under which simpleperf shows ART's JIT code: that of an app, and that of the zygote, from which apps are
/// forked.
const JIT_APP_CACHE: &[u8] = b"[JIT app cache]";
const JIT_ZYGOTE_CACHE: &[u8] = b"[JIT zygote cache]";

/// The name to show for simpleperf's pseudo files with JIT code (`…_jit_app_cache:START-END`). These files don't exist,
/// and offsets in them are addresses in the process. `None` for other paths.
pub fn simpleperf_jit_cache(path: &[u8]) -> Option<&'static [u8]> {
    if memchr::memmem::find(path, b"_jit_app_cache:").is_some() {
        Some(JIT_APP_CACHE)
    } else if memchr::memmem::find(path, b"_jit_zygote_cache:").is_some() {
        Some(JIT_ZYGOTE_CACHE)
    } else {
        None
    }
}

/// Splits `[kernel.kallsyms]_text` into the kernel's name and the reference symbol. The mapping's page offset is the
/// address of that symbol. Other paths are returned whole, with an empty symbol.
pub fn split_reference_symbol(path: &[u8]) -> (&[u8], &[u8]) {
    if path.starts_with(b"[")
        && let Some(end) = path.iter().position(|&byte| byte == b']')
    {
        return path.split_at(end + 1);
    }
    (path, b"")
}

/// True for the names of kernel images (`vmlinux`, `vmlinux-RELEASE`, `vmlinuz-RELEASE`, `/proc/kcore`) and kernel
/// modules (`.ko`). Files of modules may be compressed (`.ko.xz`), or contain only debugging information (`.ko.debug`).
fn is_kernel_file(path: &[u8]) -> bool {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let base = base_name(path);
    let mut stem = base.strip_suffix(b".debug").unwrap_or(base);
    stem = [&b".gz"[..], b".xz", b".zst", b".lz4"].iter().find_map(|ending| stem.strip_suffix(*ending)).unwrap_or(stem);
    if stem.ends_with(b".ko") || path == b"/proc/kcore" {
        return true;
    }
    let release = base.strip_prefix(b"vmlinux").or_else(|| base.strip_prefix(b"vmlinuz"));
    release.is_some_and(|release| release.is_empty() || release.starts_with(b"-") || release.starts_with(b"."))
        // Kernel images that somebody renamed count, too, such as `6.1-vmlinux`.
        || path.ends_with(b"vmlinux")
}

/// True for a file without a name: the kernel shows `#` and the inode number instead.
fn is_nameless(path: &[u8]) -> bool {
    let name = base_name(path).strip_prefix(b"#").and_then(|name| name.strip_suffix(DELETED));
    name.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// The part of a path after its last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Paths of every kind that the kernel or perf writes, and some that only look like one. Tests in other modules
    /// list for which of these their questions about mappings are true.
    pub(crate) const PATHS: &[&str] = &[
        "",
        "//anon",
        "//toolong",
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
        "[vdso]",
        "[vdso32]",
        "[vsyscall]",
        "[uprobes]",
        "[kernel.kallsyms]_text",
        "[guest.kernel.kallsyms]",
        "[ext4]",
        "/lib/modules/6.1/kernel/fs/ext4.ko",
        "/usr/bin/node",
        "/usr/lib/libc.so.6 (deleted)",
        "/dev/shm/code",
        "/dev/shm/code (deleted)",
        "/dev/ashmem/dalvik-jit-code-cache (deleted)",
        "/tmp/#77 (deleted)",
        "/tmp/jit-77.dump",
        "/usr/lib/jit-helper.so",
        "/x/core.dump",
        "/tmp/perf-77.map",
        "/run/jitted-77.so",
        "/run/jitted-77-3.so",
        "file",
        "anon",
        "[unknown]",
        "[JIT] tid 77",
    ];

    /// The paths in [`PATHS`] for which `holds` is true.
    pub(crate) fn paths_where(holds: impl Fn(&[u8]) -> bool) -> Vec<&'static str> {
        PATHS.iter().copied().filter(|path| holds(path.as_bytes())).collect()
    }

    #[test]
    fn kernel_images_and_modules_are_recognized_by_their_file_names() {
        let kernel = [
            "/boot/vmlinux-6.1.0-13-amd64",
            "/usr/lib/debug/boot/vmlinux-6.1.0-13-amd64",
            "/usr/lib/debug/lib/modules/6.8.0/vmlinux",
            "/usr/lib/debug/lib/modules/5.14.0-70.el9.x86_64/vmlinux.debug",
            "vmlinux",
            "/boot/vmlinuz-6.8.0",
            "/lib/modules/6.1.0-13-amd64/kernel/fs/ext4/ext4.ko.xz",
            "/lib/modules/6.8.0/kernel/net/nf_tables.ko.zst",
            "/lib/modules/5.4.0/kernel/net/nf_tables.ko.gz",
            "/usr/lib/debug/lib/modules/6.1.0/kernel/fs/xfs.ko.debug",
            "/usr/lib/debug/usr/lib/modules/5.14.0/kernel/fs/xfs.ko.xz.debug",
            "/system/lib/modules/wlan.ko (deleted)",
            "/proc/kcore",
            "[nf_tables]",
            "[kernel.kallsyms]_text",
            "[guest.kernel.kallsyms.77]",
        ];
        for path in kernel {
            assert!(MappingKind::from_path(path.as_bytes()).is_kernel_object(), "{path}");
        }
        for path in
            ["/usr/bin/vmlinux-to-elf.py.d/x", "/usr/lib/x.koz", "/usr/lib/libko.so.xz", "/bin/vmlinuxx", "x.gz"]
        {
            assert!(!MappingKind::from_path(path.as_bytes()).is_kernel_object(), "{path}");
        }
    }
}
