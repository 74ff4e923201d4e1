//! What backs a mapping: a file, or one of the many kinds of memory that none backs.

#[cfg(test)]
pub(crate) mod tests {
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
}
