//! Everything that names JIT code, for all commands: finds files, decides which to trust, converts their times and
//! process IDs, and loads them into one [`CodeMap`](crate::resolve::code_map::CodeMap).
//!
//! A command passes what its input says about processes ([`Processes`](crate::model::process::Processes)) and the
//! user's options ([`SourceOptions`]). It gets the files that were found ([`Found`], which owns their bytes), from
//! these the code map, and an account of what became of each source. A missing, untrusted or broken source never
//! affects the others.
//!
//! ```text
//! let found = sources::find(&processes, &options, beside, &mut warnings);
//! let loaded = found.load(&processes, &pool, &mut warnings);
//! loaded.map.lookup(pid, addr, time)
//! ```

mod account;
mod clock;
mod discover;
mod dump;
mod evidence;
mod guest;
mod live;
mod load;
mod log_clock;
mod log_pairing;
mod logs;
mod native;
mod options;
mod placed_elf;
pub(crate) mod raw_code;
mod registered;
mod site;
mod source_maps;
mod trust;

pub use account::{Account, ClockUse, Kind, SourceState};
pub(crate) use discover::goes_with_recordings;
pub use discover::{Found, FoundFile, find, find_at, inner_pid};
pub(crate) use live::{open_inside, status_pid, status_user};
pub use load::Loaded;
pub use options::{GivenFile, SourceOptions};
pub use site::{Sampled, Site, is_this_machine};
pub use source_maps::{GivenMap, MapAccount, SourceMapOptions, SourceMaps};
pub(crate) use source_maps::{NativeFunctions, is_wasm_module};
pub(crate) use trust::{SOURCE, file_id};
