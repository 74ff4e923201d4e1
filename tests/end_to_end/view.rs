//! The page of `jitgraft view` in a real browser, opened from disk without a network, used by mouse and keyboard, and
//! held against what `jitgraft report` states with the same filters.

use crate::support::page as picture;

mod difference;
mod flame;
mod functions;
mod hands;
mod looks;
mod recordings;
mod shown;
mod sums;
mod time;
mod whole;
