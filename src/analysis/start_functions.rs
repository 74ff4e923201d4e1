//! Functions in which threads start. A stack is complete if its outermost frame is one of them.

/// Names of functions of libc, of the kernel, and of languages with their own runtime. They have no callers, or only
/// callers that are in this list.
pub const START_FUNCTIONS: &[&[u8]] = &[
    b"main",
    b"_start",
    b"__libc_start_main",
    b"__libc_start_main_impl",
    b"__libc_start_call_main",
    b"__libc_start_main@@GLIBC_2.34",
    b"start_thread",
    b"clone",
    b"clone3",
    b"__clone",
    b"__clone3",
    b"__clone_internal",
    b"_dl_start",
    b"_dl_start_user",
    b"runtime.goexit",
    b"runtime.goexit.abi0",
    b"runtime.mstart",
    b"runtime.mstart.abi0",
    b"runtime.rt0_go",
    b"runtime.rt0_go.abi0",
    b"runtime.mcall",
    b"runtime.systemstack",
    b"runtime.systemstack.abi0",
    // Go's `morestack` runs on a stack of its own, like `mcall` and `systemstack` above. So a stack with it as the
    // outermost frame is complete.
    b"runtime.morestack",
    b"runtime.morestack.abi0",
    b"execute_native_thread_routine", // libstdc++
    // Erlang processes have separate stacks, whose outermost function is this one.
    b"erts_beamasm:normal_exit/0",
    b"$erts_beamasm:normal_exit/0",
    // Where kernel threads start, and where a CPU starts. The names depend on the kernel's release.
    b"ret_from_fork",
    b"ret_from_fork_asm",
    b"ret_from_kernel_thread",
    b"common_startup_64",
    b"secondary_startup_64",
    b"secondary_startup_64_no_verify",
    b"__secondary_switched",
    b"__primary_switched",
];

/// True if threads start in a function with this name.
pub fn starts_threads(name: &[u8]) -> bool {
    START_FUNCTIONS.contains(&name)
}
