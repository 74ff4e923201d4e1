//! Addresses to frames: what was mapped, what JIT code was there, which function and line that is.

pub mod address_space;
pub mod code_map;
pub mod dso;
pub mod frames;
pub mod symbols;
