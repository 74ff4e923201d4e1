//! Everything that names JIT code, for all commands: finds files, decides which to trust, converts their times and
//! process IDs, and loads them into one [`CodeMap`](crate::symbolize::code_map::CodeMap).
//!
//! A command passes what its input says about processes ([`Processes`](crate::model::process::Processes)) and the
//! user's options ([`SourceOptions`]). It gets the files that were found ([`Found`], which owns their bytes), the code
//! map that is built from these files, and an account of what became of each source. A missing, untrusted or broken
//! source never affects the others.
//!
//! | what names code | found by | read by | its format |
//! |---|---|---|---|
//! | jitdumps | `search` | `dump_reader`, `load` | [`jitdump`] |
//! | perf maps | `search` | `load` | [`perf_map`] |
//! | engines' logs, core dumps | `search` | `logs` | [`engine_logs`] |
//! | ELF objects that the user placed at an address (`--elf`) | `search` | `placed_elf` | |
//! | the functions of a guest in QEMU | `guest` | `guest` | |
//! | machine code in a directory (MoarVM) | `raw_code` | `raw_code` | |
//! | source maps and WebAssembly modules | `source_maps` | `source_maps` | [`crate::formats::source_map`], [`crate::formats::wasm`] |
//!
//! Every file is opened through [`crate::io::door`], which checks type, owner and links first. `clock` and `log_clock`
//! convert the times of the sources to the recording's clock. `log_pairing` combines a log with the jitdump or perf map
//! of the same process. `native` decides at which addresses in mapped files a source without times (such as a perf map)
//! may name code, so that it doesn't override the files' own symbols. `account` records what became of each source.
//!
//! ```text
//! let found = jit::find(&processes, &options, input_dir, &mut warnings);
//! let loaded = found.load(&processes, &pool, &mut warnings);
//! loaded.map.lookup(pid, addr, time)
//! ```

mod account;
mod clock;
mod dump_reader;
pub mod engine_logs;
mod evidence;
mod found;
mod guest;
pub mod jitdump;
mod live;
mod load;
mod log_clock;
mod log_pairing;
mod logs;
mod native;
mod options;
pub mod perf_map;
mod placed_elf;
pub(crate) mod raw_code;
mod registered;
mod search;
mod site;
mod source_maps;
mod trust;

pub use account::{Account, ClockUse, Kind, SourceState};
pub use found::{Found, FoundFile};
pub(crate) use live::{open_inside, status_pid, status_user};
pub use load::Loaded;
pub use options::{GivenFile, SourceOptions};
pub(crate) use search::goes_with_recordings;
pub use search::{find, find_at, inner_pid};
pub use site::{Sampled, Site, is_this_machine};
pub use source_maps::{GivenMap, MapAccount, SourceMapOptions, SourceMaps};
pub(crate) use source_maps::{NativeFunctions, is_wasm_module};
pub(crate) use trust::{SOURCE, file_id};
