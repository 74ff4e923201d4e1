//! Second readers of fixtures: slow, obvious, and without a line in common with the readers that they check.

pub(crate) mod gdb_core;
pub(crate) mod hotspot;
pub(crate) mod ready_to_run;
