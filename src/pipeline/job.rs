//! The context of every job, and its results.

use crate::analysis::code_shares::CodeShares;
use crate::error::{Error, Result, Warnings};
use crate::io::started::Ended;
use crate::model::frame_counts::FrameCounts;
use crate::parallel::Pool;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// The context of every job.
#[derive(Debug)]
pub struct Job {
    /// The worker threads.
    pub pool: Pool,
    /// `-q`: no progress, no summary.
    pub quiet: bool,
    /// `-v`: details on stderr while it runs.
    pub verbose: bool,
    /// `--strict`: what can be known to fail it is looked for before anything is written.
    pub strict: bool,
}

impl Job {
    /// One that prints nothing, with a thread for each processor.
    pub fn quiet() -> Result<Self> {
        Ok(Self { pool: Pool::new(None)?, quiet: true, verbose: false, strict: false })
    }
}

/// The results that a job leaves to report when it is done.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The warnings.
    pub warnings: Warnings,
    /// The failures after which the job went on with the rest.
    pub failed: Vec<Error>,
    /// Lines for stderr: what was done, in figures.
    pub summary: Vec<String>,
    /// The number of frames of recordings have no name.
    pub frames: FrameCounts,
    /// The share of each event of recordings that ends in each kind of code.
    pub shares: Vec<CodeShares>,
    /// The first recording of which this many have none that one should ask why.
    pub lacking: Option<PathBuf>,
    /// True if something was found that the caller asked to be recognized by the exit status.
    pub found: bool,
    /// Why there were no samples, if there were none.
    pub no_samples: Option<String>,
    /// The way the program ended that was run, if one was: this one ends likewise.
    pub ended: Option<Ended>,
    /// That the stacks of an input are an estimate: said by whatever shows stacks.
    pub estimates: Vec<String>,
}

impl Outcome {
    /// Counts the frames of a recording.
    pub fn count_frames(&mut self, counts: FrameCounts, recording: &Path) {
        self.frames += counts;
        if counts.lacks_names() {
            self.lacking.get_or_insert_with(|| recording.to_owned());
        }
    }

    /// Adds what the events of a recording end in; events of one name are one.
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
