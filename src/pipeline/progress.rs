//! A bar on the terminal while a long input is worked on.

use super::job::Job;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::time::Duration;

/// Shorter work is over before a bar is seen.
const LONG: u64 = 64 << 20;

/// How far it is.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for so many bytes that go by; hidden unless somebody sees it.
    pub(crate) fn new(len: u64, job: &Job) -> Self {
        Self::shown_if(!job.quiet, len)
    }

    fn shown_if(wanted: bool, len: u64) -> Self {
        let seen = wanted && len >= LONG && std::io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(len), target);
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {bytes_per_sec} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if seen {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// A bar that moves as a file is read, unless the result goes to the terminal, too. What is no regular file has no
    /// length to show.
    pub(crate) fn of_reading(file: File, job: &Job) -> (Self, Box<dyn Read + Send>) {
        let regular = file.metadata().ok().filter(|about| about.is_file());
        let wanted = !job.quiet && !std::io::stdout().is_terminal();
        let progress = Self::shown_if(wanted, regular.map_or(0, |about| about.len()));
        let reader: Box<dyn Read + Send> =
            if progress.0.is_hidden() { Box::new(file) } else { Box::new(progress.0.wrap_read(file)) };
        (progress, reader)
    }

    /// What is being done from now on.
    pub(crate) fn phase(&self, what: &'static str) {
        self.0.set_message(what);
    }

    /// So many bytes more are done.
    pub(crate) fn done(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
