//! A progress bar with rate and remaining time, for long inputs.

use super::job::Job;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a job must run before the bar is shown.
const LONG: Duration = Duration::from_secs(1);

/// A progress bar. Clones show the same bar.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Bar>);

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    begun: Instant,
    /// How long the job must have run before the bar is shown.
    patience: Duration,
    /// True if the bar may be shown: stderr is a terminal, and the amount of work is known.
    wanted: bool,
    shown: AtomicBool,
}

impl Progress {
    /// A bar for a job that processes `len` bytes. It is only shown on a terminal, and only after [`LONG`].
    pub(crate) fn new(len: u64, job: &Job) -> Self {
        Self::shown_if(!job.quiet, len, job)
    }

    /// Creates a bar for `len` bytes. It is shown only if it is `wanted`, the length is known, and stderr is a
    /// terminal.
    fn shown_if(wanted: bool, len: u64, job: &Job) -> Self {
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {percent:>3} % {bytes_per_sec} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let wanted = wanted && len > 0 && io::stderr().is_terminal();
        // `patience` is how long the job must run before the bar appears. With `-v`, it appears immediately.
        let patience = if job.verbose { Duration::ZERO } else { LONG };
        Self(Arc::new(Bar { bar, begun: Instant::now(), patience, wanted, shown: AtomicBool::new(false) }))
    }

    /// A bar that advances while an input is read, and the reader through which to read `file`. The bar isn't shown if
    /// the output goes to the terminal as well, or if the input isn't a regular file, so that its length is unknown.
    pub(crate) fn for_reading(file: File, job: &Job) -> (Self, Box<dyn Read + Send>) {
        let len = file.metadata().ok().filter(|about| about.is_file()).map_or(0, |about| about.len());
        let progress = Self::shown_if(!job.quiet && !io::stdout().is_terminal(), len, job);
        let reader: Box<dyn Read + Send> = match progress.0.wanted {
            true => Box::new(ReadFile { file, progress: progress.clone() }),
            false => Box::new(file),
        };
        (progress, reader)
    }

    /// A bar for one of several passes, which processes `len` bytes. `what` describes the pass.
    pub(crate) fn for_pass(len: u64, what: &'static str, job: &Job) -> Self {
        let progress = Self::shown_if(!job.quiet && !io::stdout().is_terminal(), len, job);
        progress.phase(what);
        progress
    }

    /// Sets the text next to the bar that says what is being done.
    pub(crate) fn phase(&self, what: &'static str) {
        self.0.bar.set_message(what);
    }

    /// Advances the bar by this many bytes. It appears on the terminal once the job has run for the time `patience`.
    pub(crate) fn done(&self, bytes: u64) {
        let Bar { bar, begun, patience, wanted, shown } = &*self.0;
        bar.inc(bytes);
        if *wanted && begun.elapsed() >= *patience && !shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.tick();
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A reader that advances the bar by what is read from a file.
struct ReadFile<F> {
    file: F,
    progress: Progress,
}

impl<F: Read> Read for ReadFile<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(into)?;
        self.progress.done(len as u64);
        Ok(len)
    }
}
