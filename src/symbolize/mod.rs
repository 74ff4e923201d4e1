//! Turns addresses into frames: which file or JIT code was at an address, and which functions and source lines that is.
//! [`symbolizer`] answers both questions.

pub mod address_space;
pub mod authored;
pub mod calls;
pub mod code_map;
#[cfg(feature = "cli")]
pub mod disasm;
pub mod dso;
pub mod frames;
pub mod kernel;
pub mod resolver;
pub mod symbolizer;
pub mod symbols;
pub mod unwind;

pub use symbolizer::Location;
