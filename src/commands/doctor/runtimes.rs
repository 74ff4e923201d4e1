//! Runtimes with JIT compilers: how a process is known to be one, and how each is made to leave its names.

use crate::model::process::Process;

/// A runtime that compiles while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runtime {
    /// What people call it.
    pub(super) name: &'static str,
    /// Files that only it maps: whole base names; one that ends in `*` is a beginning.
    files: &'static [&'static str],
    /// How it is made to tell.
    pub(super) how: &'static str,
}

/// Asked in this order: what embeds another runtime stands before it.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "deno",
        files: &["deno"],
        how: "run deno with --v8-flags=--perf-prof,--interpreted-frames-native-stack (leaves jit-PID.dump in the current directory)",
    },
    Runtime {
        name: "Bun",
        files: &["bun"],
        how: "run bun with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=DIR in its environment (leaves DIR/jit-TID-PID.dump)",
    },
    Runtime {
        name: "Node.js",
        files: &["node", "nodejs", "libnode.so*"],
        how: "run node with --perf-prof --interpreted-frames-native-stack (leaves jit-PID.dump in the current directory), \
              or with --perf-basic-prof (/tmp/perf-PID.map)",
    },
    Runtime {
        name: "Chromium",
        files: &["chrome", "chromium", "libcef.so"],
        how: "run it with --no-sandbox --js-flags=--perf-prof",
    },
    Runtime {
        name: "Firefox",
        files: &["libxul.so", "libmozjs*"],
        how: "run it with IONPERF=func PERF_SPEW_DIR=DIR in its environment, the sandbox off",
    },
    Runtime {
        name: "OpenJDK",
        files: &["libjvm.so"],
        how: "run java with -XX:+PreserveFramePointer and -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
              (or `jcmd PID Compiler.perfmap` before it ends), or with the agent libperf-jvmti.so for a jitdump",
    },
    Runtime {
        name: "Erlang",
        files: &["beam.smp", "beam.debug.smp", "beam.frmptr.smp"],
        how: "run erl with +JPperf true (leaves /tmp/jit-PID.dump and /tmp/perf-PID.map)",
    },
    Runtime {
        name: "PHP",
        files: &["php", "php-fpm*", "php7*", "php8*", "libphp*", "opcache.so"],
        how: "run php with -d opcache.jit_debug=48 (16: /tmp/perf-PID.map, 32: /tmp/jit-PID.dump)",
    },
    Runtime {
        name: "PostgreSQL",
        files: &["llvmjit.so"],
        how: "set jit_profiling_support = on before the server starts (leaves a jitdump below $JITDUMPDIR or ~/.debug/jit)",
    },
    Runtime {
        name: "Wasmtime",
        files: &["wasmtime", "_wasmtime*", "libwasmtime*", "_libwasmtime*"],
        how: "run wasmtime with --profile=jitdump or --profile=perfmap (Config::profiler where it is embedded)",
    },
    Runtime {
        name: "MoarVM",
        files: &["libmoar.so*", "rakudo-m", "moar"],
        how: "run it with MVM_JIT_PERF_MAP=1 in its environment (leaves /tmp/perf-PID.map)",
    },
    Runtime {
        name: ".NET",
        files: &["libcoreclr.so"],
        how: "run it with DOTNET_PerfMapEnabled=1 in its environment (leaves /tmp/perf-PID.map)",
    },
    Runtime {
        name: "Mono",
        files: &["mono", "mono-sgen", "libmonosgen*"],
        how: "run mono with --jitmap (leaves /tmp/perf-PID.map)",
    },
    Runtime {
        name: "Julia",
        files: &["julia", "libjulia*"],
        how: "run julia with ENABLE_JITPROFILING=1 in its environment",
    },
    Runtime {
        name: "Ruby",
        files: &["ruby", "ruby2*", "ruby3*", "ruby4*", "libruby*"],
        how: "run ruby with --yjit --yjit-perf (leaves /tmp/perf-PID.map)",
    },
    Runtime {
        name: "PyPy",
        files: &["pypy*", "libpypy*"],
        how: "PyPy leaves no names; its own profiler vmprof has them",
    },
    Runtime {
        name: "LuaJIT",
        files: &["luajit*", "libluajit*"],
        how: "build LuaJIT with -DLUAJIT_USE_PERFTOOLS (leaves /tmp/perf-PID.map)",
    },
    Runtime {
        name: "CPython",
        files: &["python3*", "libpython3*"],
        how: "run python (3.12 or newer) with -X perf (/tmp/perf-PID.map), from 3.13 on with -X perf_jit (/tmp/jit-PID.dump)",
    },
];

/// The runtime that a process is, by what it mapped.
pub(super) fn of(process: &Process) -> Option<Runtime> {
    let names =
        || process.mappings.iter().map(|mapping| mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or(&[]));
    let is = |file: &str, name: &[u8]| match file.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => name == file.as_bytes(),
    };
    RUNTIMES.iter().find(|runtime| names().any(|name| runtime.files.iter().any(|file| is(file, name)))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::{CpuMode, Mapping};
    use crate::model::{Addr, Nanos};

    fn process(paths: &[&str]) -> Process {
        let mapping = |path: &&str| Mapping {
            time: Nanos(0),
            addr: Addr(0),
            len: 1,
            pgoff: 0,
            path: path.as_bytes().to_vec(),
            build_id: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        Process { mappings: paths.iter().map(mapping).collect(), ..Process::default() }
    }

    #[test]
    fn by_what_is_mapped() {
        let name = |paths: &[&str]| of(&process(paths)).map(|runtime| runtime.name);
        assert_eq!(name(&["/usr/bin/python3.13", "/x/_libwasmtime.so"]), Some("Wasmtime"));
        assert_eq!(name(&["/usr/bin/python3.13", "//anon"]), Some("CPython"));
        assert_eq!(name(&["/usr/lib/jvm/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"]), Some("OpenJDK"));
        assert_eq!(name(&["/usr/bin/nodemon", "/usr/lib/libc.so.6"]), None);
    }
}
