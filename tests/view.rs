//! The page of `jitgraft view` in a real browser, opened from disk without a network, used by mouse and keyboard, and
//! held against what `jitgraft report` states with the same filters.

#[expect(dead_code, reason = "the flame graph's own page is driven by the rest of it")]
mod browser;
#[expect(dead_code, reason = "only the boxes are compared")]
#[path = "support/page.rs"]
mod picture;
#[path = "support/runner.rs"]
mod runner;

#[path = "view/difference.rs"]
mod difference;
#[path = "view/flame.rs"]
mod flame;
#[path = "view/functions.rs"]
mod functions;
#[path = "view/recordings.rs"]
mod recordings;
#[path = "view/shown.rs"]
mod shown;
#[path = "view/sums.rs"]
mod sums;
#[path = "view/time.rs"]
mod time;
#[path = "view/whole.rs"]
mod whole;
