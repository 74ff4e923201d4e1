//! What a job needs to run (threads, verbosity), and what it reports at the end.

use crate::analysis::code_shares::CodeShares;
use crate::error::{Error, Result, Warnings};
use crate::io::started::Ended;
use crate::model::frame_counts::FrameCounts;
use crate::parallel::Pool;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// What every job needs to run.
#[derive(Debug)]
pub struct Job {
    /// The worker threads.
    pub pool: Pool,
    /// Option `-q`: print neither a progress bar nor a summary.
    pub quiet: bool,
    /// Option `-v`: print details on stderr.
    pub verbose: bool,
    /// Option `--strict`: fail if there are problems, if possible before anything is written.
    pub strict: bool,
}

impl Job {
    /// For use as a library: prints nothing, and uses one thread per CPU.
    pub fn quiet() -> Result<Self> {
        Ok(Self { pool: Pool::new(None)?, quiet: true, verbose: false, strict: false })
    }
}

/// What a job reports at the end.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The warnings to print.
    pub warnings: Warnings,
    /// Failures that didn't stop the job.
    pub failed: Vec<Error>,
    /// Lines for stderr that summarize what was done.
    pub summary: Vec<String>,
    /// The files that were written, if `summary` doesn't name them.
    pub written: Vec<PathBuf>,
    /// For recordings: how many frames have names, and how many haven't.
    pub frames: FrameCounts,
    /// For recordings: for each event, how its weight is divided among kinds of code.
    pub shares: Vec<CodeShares>,
    /// The first recording in which so few frames have names that the user should look into it.
    pub lacking: Option<PathBuf>,
    /// True if there are findings and the user asked that the exit status says so (`doctor --exit-code`).
    pub found: bool,
    /// Why there were no samples; `None` if there were some.
    pub no_samples: Option<String>,
    /// How the program that the job started ended; `None` if it started none. jitgraft exits in the same way.
    pub ended: Option<Ended>,
    /// Remarks that stacks are estimates, to be shown with any output that contains stacks.
    pub estimates: Vec<String>,
}

impl Outcome {
    /// Adds the counts of named and unnamed frames of a recording.
    pub fn count_frames(&mut self, counts: FrameCounts, recording: &Path) {
        self.frames += counts;
        if counts.lacks_names() {
            self.lacking.get_or_insert_with(|| recording.to_owned());
        }
    }

    /// Adds a recording's weights by kind of code to those of earlier recordings. The weights of events with the same
    /// name are added up; an event with a new name is appended.
    pub fn count_code(&mut self, shares: Vec<CodeShares>) {
        let mut index_by_event: FxHashMap<String, usize> = FxHashMap::default();
        for (index, shares) in self.shares.iter().enumerate() {
            index_by_event.insert(shares.event.clone(), index);
        }
        for added in shares {
            let next = self.shares.len();
            let index = *index_by_event.entry(added.event.clone()).or_insert(next);
            match self.shares.get_mut(index) {
                Some(sum) => sum.merge(&added),
                None => self.shares.push(added),
            }
        }
    }
}
