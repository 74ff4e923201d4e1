//! Formats that commands refer to by name, unlike the exchange formats in [`crate::formats`]. jitgraft reads all of
//! them and rewrites most. Each module converts between bytes and typed records. It opens no files, starts no threads
//! and uses no other format's module.

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
