//! Second readers of fixtures, to check the real ones. They are slow and obvious, and share no code with them.

pub(crate) mod gdb_core;
pub(crate) mod hotspot;
pub(crate) mod ready_to_run;
