//! The context in which jobs run, and what they report at the end.

use crate::analysis::code_shares::CodeShares;
use crate::error::{Error, Result, Warnings};
use crate::io::started::Ended;
use crate::model::frame_counts::FrameCounts;
use crate::parallel::Pool;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// The context in which a job runs.
#[derive(Debug)]
pub struct Job {
    /// The worker threads.
    pub pool: Pool,
    /// `-q`: no progress bar and no summary.
    pub quiet: bool,
    /// `-v`: details on stderr.
    pub verbose: bool,
    /// `--strict`: fail on problems, if possible before anything is written.
    pub strict: bool,
}

impl Job {
    /// A context that prints nothing and uses a thread per CPU.
    pub fn quiet() -> Result<Self> {
        Ok(Self { pool: Pool::new(None)?, quiet: true, verbose: false, strict: false })
    }
}

/// What a job reports at the end.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The warnings.
    pub warnings: Warnings,
    /// Failures that didn't stop the job.
    pub failed: Vec<Error>,
    /// Lines for stderr that summarize what was done.
    pub summary: Vec<String>,
    /// Counts of named and unnamed frames, for recordings.
    pub frames: FrameCounts,
    /// For each event, its weight by kind of code, for recordings.
    pub shares: Vec<CodeShares>,
    /// The first recording with so few names that the user should look into it.
    pub lacking: Option<PathBuf>,
    /// True if a finding should be reflected in the exit status, as the user asked.
    pub found: bool,
    /// Why there were no samples; `None` if there were some.
    pub no_samples: Option<String>,
    /// How the program that the job ran ended. jitgraft then exits in the same way.
    pub ended: Option<Ended>,
    /// Remarks that stacks are an estimate, to be shown with any output of stacks.
    pub estimates: Vec<String>,
}

impl Outcome {
    /// Adds the frame counts of a recording.
    pub fn count_frames(&mut self, counts: FrameCounts, recording: &Path) {
        self.frames += counts;
        if counts.lacks_names() {
            self.lacking.get_or_insert_with(|| recording.to_owned());
        }
    }

    /// Adds the weights by kind of code of a recording. Events with the same name are added up.
    pub fn count_code(&mut self, shares: Vec<CodeShares>) {
        let known = self.shares.iter().enumerate().map(|(at, shares)| (shares.event.clone(), at));
        let mut places: FxHashMap<String, usize> = known.collect();
        for more in shares {
            let next = self.shares.len();
            let at = *places.entry(more.event.clone()).or_insert(next);
            match self.shares.get_mut(at) {
                Some(shares) => shares.merge(&more),
                None => self.shares.push(more),
            }
        }
    }
}
