//! A bar on the terminal while a long recording is worked on.

use crate::commands::Job;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Records go by three times: told, looked at, written.
const PASSES: u64 = 3;
/// Shorter work is over before a bar is seen.
const LONG: u64 = 64 << 20;

/// How far it is.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar for a stream of so many bytes; hidden unless somebody sees it.
    pub(super) fn new(len: u64, job: &Job) -> Self {
        let seen = !job.quiet && len >= LONG && std::io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(len.saturating_mul(PASSES)), target);
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {bytes_per_sec} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if seen {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// What is being done from now on.
    pub(super) fn phase(&self, what: &'static str) {
        self.0.set_message(what);
    }

    /// So many bytes more are done.
    pub(super) fn done(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
