//! Functions in which threads start. A stack whose outermost frame is one of them is complete.

/// Functions without a caller, or with only such functions as callers: those of libc, the kernel, and languages with
/// their own runtime.
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
    // Like the two before, runs on a stack of its own.
    b"runtime.morestack",
    b"runtime.morestack.abi0",
    b"execute_native_thread_routine", // libstdc++
    // Erlang processes have stacks of their own, which end like this.
    b"erts_beamasm:normal_exit/0",
    b"$erts_beamasm:normal_exit/0",
    // Kernel threads, and the code in which a CPU starts; the name depends on the kernel's release.
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
