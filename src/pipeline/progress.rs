//! A bar on the terminal, with rate and time left, while a long input is worked on.

use super::job::Job;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What takes less is over before a bar is read.
const LONG: Duration = Duration::from_secs(1);

/// How far it is.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Bar>);

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    begun: Instant,
    /// Whether there is somebody to see it, and a length to show.
    wanted: bool,
    shown: AtomicBool,
}

impl Progress {
    /// A bar for so many bytes that go by; hidden unless somebody sees it and it takes long.
    pub(crate) fn new(len: u64, job: &Job) -> Self {
        Self::shown_if(!job.quiet, len)
    }

    fn shown_if(wanted: bool, len: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {percent:>3} % {bytes_per_sec} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let wanted = wanted && len > 0 && io::stderr().is_terminal();
        Self(Arc::new(Bar { bar, begun: Instant::now(), wanted, shown: AtomicBool::new(false) }))
    }

    /// A bar that moves as a file is read, unless the result goes to the terminal, too. What is no regular file has no
    /// length to show.
    pub(crate) fn of_reading(file: File, job: &Job) -> (Self, Box<dyn Read + Send>) {
        let regular = file.metadata().ok().filter(|about| about.is_file());
        let wanted = !job.quiet && !io::stdout().is_terminal();
        let progress = Self::shown_if(wanted, regular.map_or(0, |about| about.len()));
        let reader: Box<dyn Read + Send> = match progress.0.wanted {
            true => Box::new(Reading { file, progress: progress.clone() }),
            false => Box::new(file),
        };
        (progress, reader)
    }

    /// What is being done from now on.
    pub(crate) fn phase(&self, what: &'static str) {
        self.0.bar.set_message(what);
    }

    /// So many bytes more are done.
    pub(crate) fn done(&self, bytes: u64) {
        let Bar { bar, begun, wanted, shown } = &*self.0;
        bar.inc(bytes);
        if *wanted && begun.elapsed() >= LONG && !shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A file whose bytes move the bar.
struct Reading {
    file: File,
    progress: Progress,
}

impl Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(into)?;
        self.progress.done(len as u64);
        Ok(len)
    }
}
