//! The backing of a mapping: a file, or one of the many kinds of memory that none backs.
//!
//! A recording has a mapping's path for it and nothing else: the kernel writes names of its own where there is no file
//! (`perf_event_mmap_event` in kernel/events/core.c), and perf adds some. They are distinguished here and nowhere else.
//! Each question about a mapping is a method. Some differ in one kind only, and on purpose: the methods show why.

/// The kind of a mapping, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing<'a> {
    /// The record has no path.
    Unnamed,
    /// `//anon`: private memory.
    Anonymous,
    /// `[anon:NAME]`: private memory that its program has named (`PR_SET_VMA_ANON_NAME`).
    NamedAnonymous,
    /// `/anon_hugepage`: private memory in huge pages.
    HugePages,
    /// `[heap]`
    Heap,
    /// `[stack]`, in old kernels also `[stack:TID]`.
    Stack,
    /// `/dev/zero`: memory that processes share without a name for it.
    SharedAnonymous,
    /// `[anon_shmem:NAME]`: such memory that its program has named.
    NamedShared,
    /// `/memfd:NAME (deleted)`: memory by `memfd_create`. Runtimes map it twice, to write and to run.
    Memfd,
    /// `/SYSV0000002a (deleted)`: memory by `shmget`.
    SystemV,
    /// `/dev/shm/NAME (deleted)`, `/dev/ashmem/NAME`: memory by `shm_open`, or Android's. One that still has its name may
    /// as well be a library that somebody put there.
    PosixShared,
    /// `/tmp/#77 (deleted)`: a file that never had a name (`O_TMPFILE`).
    NamelessFile,
    /// `anon_inode:[perf_event]` and other things of the kernel's that are mapped.
    AnonInode,
    /// `[vdso]`, `[vdso32]`, `[vdsox32]`: the kernel's page of functions for programs.
    Vdso,
    /// `[vsyscall]`: what came before it.
    Vsyscall,
    /// `//toolong`, `//enomem`: a file whose name the kernel could not give.
    Untold,
    /// Anything else in brackets: `[kernel.kallsyms]_text`, a module's `[ext4]`, `[uprobes]`.
    Bracketed(&'a [u8]),
    /// A file, with its path.
    File(&'a [u8]),
    /// A name that is not a path.
    Other(&'a [u8]),
}

/// The start of a path of each kind. The first that fits decides.
const BEGINNINGS: &[(&[u8], Backing<'static>)] = &[
    (b"//anon", Backing::Anonymous),
    (b"//", Backing::Untold),
    (b"/anon_hugepage", Backing::HugePages),
    (b"/dev/zero", Backing::SharedAnonymous),
    (b"/memfd:", Backing::Memfd),
    (b"/SYSV", Backing::SystemV),
    (b"[anon:", Backing::NamedAnonymous),
    (b"[anon", Backing::NamedShared),
    (b"[heap", Backing::Heap),
    (b"[stack", Backing::Stack),
    (b"[vdso", Backing::Vdso),
    (b"[vsyscall]", Backing::Vsyscall),
    (b"anon_inode:", Backing::AnonInode),
    // Android's, up to version 9: `/dev/ashmem/dalvik-jit-code-cache (deleted)`.
    (b"/dev/ashmem/", Backing::PosixShared),
];

/// What the kernel writes behind the path of a file that has been unlinked.
const DELETED: &[u8] = b" (deleted)";

impl<'a> Backing<'a> {
    /// The kind that this path shows.
    pub fn of(path: &'a [u8]) -> Self {
        match path {
            [] => Self::Unnamed,
            _ => match BEGINNINGS.iter().find(|(beginning, _)| path.starts_with(beginning)) {
                Some((_, backing)) => *backing,
                None if path.starts_with(b"/dev/shm/") && path.ends_with(DELETED) => Self::PosixShared,
                None if is_nameless(path) => Self::NamelessFile,
                None if path.starts_with(b"/") => Self::File(path),
                None if path.starts_with(b"[") => Self::Bracketed(path),
                None => Self::Other(path),
            },
        }
    }

    /// True if it is a file, whatever may be in it.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File(_))
    }

    /// True if it is a file that was unlinked, or replaced by another, when it was mapped or while it was.
    pub fn is_deleted(self) -> bool {
        matches!(self, Self::File(path) if path.ends_with(DELETED))
    }

    /// True if a JIT compiler may have written the code in a file that can't be read here: it has no name any more, or
    /// lies where programs share memory.
    pub fn is_likely_jit_file(self) -> bool {
        self.is_deleted() || matches!(self, Self::File(path) if path.starts_with(b"/dev/shm/"))
    }

    /// True if it is memory that a process shares with others or with itself, elsewhere: what perf prints as an address
    /// in it may be counted from its start, as in a file.
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

    /// True if it is memory of one process: what perf prints as an address in it is one of the process.
    pub fn is_private_memory(self) -> bool {
        matches!(self, Self::Anonymous | Self::NamedAnonymous | Self::HugePages | Self::Heap | Self::Stack)
    }

    /// True if a JIT compiler may have put code there.
    pub fn may_hold_jit_code(self) -> bool {
        self.is_private_memory() || self.is_shared_memory() || self == Self::Unnamed
    }

    /// True if no file backs it, so that there are neither symbols for it nor versions of it. More than what [may hold
    /// JIT code](Self::may_hold_jit_code): a ring buffer of the kernel's is not a file either.
    pub fn is_memory(self) -> bool {
        self.may_hold_jit_code() || self == Self::AnonInode
    }

    /// True if it is memory that listings call by its own name. All other memory perf calls after the map that would
    /// report it, `/tmp/perf-PID.map`.
    pub fn has_own_name(self) -> bool {
        matches!(self, Self::Memfd | Self::AnonInode | Self::PosixShared | Self::NamelessFile)
    }

    /// True if JIT code ends where this is mapped over it. Memory does not end it, for that is mapped again when it
    /// grows; nor do dumps that a runtime maps as a marker, and images of JIT code, which show the code itself.
    pub fn ends_jit_code(self) -> bool {
        let Self::File(path) = self else { return false };
        let name = base_name(path);
        !name.starts_with(b"jitted-") && !name.starts_with(b"jit-")
    }

    /// True if it is something that no image of JIT code may reach over, since perf's unwinders know it as a library.
    /// Memory that has a name is none, and neither is a jitdump.
    pub fn is_library(self) -> bool {
        matches!(self, Self::File(path) if !path.ends_with(b".dump"))
    }

    /// True if a name that perf prints for an object is the kernel's or a module's.
    pub fn is_kernel_object(self) -> bool {
        match self {
            Self::Bracketed(name) => name.ends_with(b"]") && ![JIT_APP_CACHE, JIT_ZYGOTE_CACHE].contains(&name),
            Self::File(path) | Self::Other(path) => is_kernel_file(path),
            _ => false,
        }
    }

    /// True if a name that a profile has for an object is JIT code's: its memory, its image, the dump or map that
    /// reports it, or what eBPF agents call them all.
    pub fn is_jit_object(self) -> bool {
        let (Self::File(path) | Self::Other(path) | Self::Bracketed(path)) = self else {
            return self != Self::Unnamed && self.may_hold_jit_code();
        };
        let base = base_name(path);
        let is = |begin: &[u8], end: &[u8]| base.starts_with(begin) && base.ends_with(end);
        [&b"jit"[..], b"[jit]", b"[JIT]", JIT_APP_CACHE, JIT_ZYGOTE_CACHE].contains(&path)
            || is(b"jitted-", b"")
            || self.is_perf_map()
            || is(b"jit-", b".dump")
            || is(b"[JIT] tid ", b"")
    }

    /// True if it is a perf map, by its name.
    pub fn is_perf_map(self) -> bool {
        let (Self::File(path) | Self::Other(path)) = self else { return false };
        let base = base_name(path);
        base.starts_with(b"perf-") && base.ends_with(b".map")
    }

    /// True if it is the kernel itself, as perf records it: `[kernel.kallsyms]_text`.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Bracketed(name) if name.starts_with(b"[kernel"))
    }
}

/// What simpleperf's reports call ART's JIT code: of an app, and of the process that apps are forked from.
const JIT_APP_CACHE: &[u8] = b"[JIT app cache]";
const JIT_ZYGOTE_CACHE: &[u8] = b"[JIT zygote cache]";

/// The name in listings of the files that simpleperf lets JIT code be mapped from (`…_jit_app_cache:START-END`): they do
/// not exist, and offsets in them are addresses of the process. `None` for other paths.
pub fn simpleperf_jit_cache(path: &[u8]) -> Option<&'static [u8]> {
    let contains = |part: &[u8]| memchr::memmem::find(path, part).is_some();
    if contains(b"_jit_app_cache:") {
        Some(JIT_APP_CACHE)
    } else if contains(b"_jit_zygote_cache:") {
        Some(JIT_ZYGOTE_CACHE)
    } else {
        None
    }
}

/// The name of the kernel in listings, and the symbol behind it: the mapping's page offset is that symbol's address.
/// Any other path is as it is, without a symbol.
pub fn split_reference_symbol(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().position(|&byte| byte == b']').filter(|_| path.starts_with(b"["));
    path.split_at(end.map_or(path.len(), |end| end + 1))
}

/// True if a file is a kernel's image (`vmlinux`, `vmlinux-RELEASE`, `vmlinuz-RELEASE`) or a module, which
/// distributions pack.
fn is_kernel_file(path: &[u8]) -> bool {
    let base = base_name(path);
    let packed = [&b".gz"[..], b".xz", b".zst", b".debug"].iter().find_map(|ending| base.strip_suffix(*ending));
    if packed.unwrap_or(base).ends_with(b".ko") {
        return true;
    }
    let release = base.strip_prefix(b"vmlinux").or_else(|| base.strip_prefix(b"vmlinuz"));
    release.is_some_and(|release| release.is_empty() || release.starts_with(b"-") || release.starts_with(b"."))
        || path.ends_with(b"vmlinux")
}

/// True if a path is that of a file that never had a name: its inode's number stands for one.
fn is_nameless(path: &[u8]) -> bool {
    let name = base_name(path).strip_prefix(b"#").and_then(|name| name.strip_suffix(DELETED));
    name.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// The last part of a path, behind its last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Paths of every sort that the kernel or perf writes, and some that only look like one. The rooms that ask what
    /// is mapped somewhere pin their answers for each of them.
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

    /// Those of [`PATHS`] of which something holds.
    pub(crate) fn those(holds: impl Fn(&[u8]) -> bool) -> Vec<&'static str> {
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
            "[nf_tables]",
        ];
        for path in kernel {
            assert!(Backing::of(path.as_bytes()).is_kernel_object(), "{path}");
        }
        for path in
            ["/usr/bin/vmlinux-to-elf.py.d/x", "/usr/lib/x.koz", "/usr/lib/libko.so.xz", "/bin/vmlinuxx", "x.gz"]
        {
            assert!(!Backing::of(path.as_bytes()).is_kernel_object(), "{path}");
        }
    }
}
