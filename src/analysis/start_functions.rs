//! Functions that threads begin in: a stack that ends in one is whole.

/// Functions that nobody calls, or that stand right behind one: libc's, the kernel's, and those of languages that have
/// their own.
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
    // Runs on a stack of its own, too, as the two before.
    b"runtime.morestack",
    b"runtime.morestack.abi0",
    b"execute_native_thread_routine", // libstdc++
    // Erlang's processes have stacks of their own, which end so.
    b"erts_beamasm:normal_exit/0",
    b"$erts_beamasm:normal_exit/0",
    // Threads of the kernel, and what a processor begins with: by the name of the release.
    b"ret_from_fork",
    b"ret_from_fork_asm",
    b"ret_from_kernel_thread",
    b"common_startup_64",
    b"secondary_startup_64",
    b"secondary_startup_64_no_verify",
    b"__secondary_switched",
    b"__primary_switched",
];

/// True if threads begin in a function of this name.
pub fn starts_threads(name: &[u8]) -> bool {
    START_FUNCTIONS.contains(&name)
}
