//! Layouts that jitgraft reads, and mostly rewrites, by name: bytes ↔ typed records. A layout opens no files, starts no
//! threads and uses no other layout.

pub mod callgrind;
pub mod elf_image;
pub mod jit_logs;
pub mod jitdump;
pub mod perf_data;
pub mod perf_map;
pub mod perf_script;
pub mod source_map;
pub mod tracepoint;
pub mod valgrind_text;
pub mod wasm;
