#![no_main]
//! Any target: `JITGRAFT_TARGET` names it. One program, so that all are built in the time of one.

use jitgraft::fuzz::{PAIRS, Run, TARGETS};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static CHOSEN: OnceLock<Run> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| CHOSEN.get_or_init(chosen)(bytes));

fn chosen() -> Run {
    let wanted = std::env::var("JITGRAFT_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let found = TARGETS.iter().chain([&PAIRS]).find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("JITGRAFT_TARGET must be one of {}", names.join(" "))).1
}
