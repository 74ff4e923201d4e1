//! Counts of named and unnamed frames.

use std::fmt;
use std::ops::AddAssign;

/// Counts of frames with and without names, over all samples. A frame that is in several samples counts once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameCounts {
    /// All frames; 0 if only frames in JIT memory were counted.
    pub frames: u64,
    /// Frames without a name.
    pub unnamed: u64,
    /// Frames in JIT memory: in code that a jitdump, perf map or ELF image reports, or in memory that no file backs.
    pub jit: u64,
    /// Frames in JIT memory without a name.
    pub jit_unnamed: u64,
    /// Of the frames in `jit_unnamed`, those at addresses where a jitdump or another source reports code, but only for
    /// other times. At the sample's time, the code hadn't been logged yet, or had been replaced by code that wasn't
    /// logged.
    pub other_time: u64,
}

/// If at least this percentage of all frames in JIT memory is unnamed, names are considered to be missing. Fewer
/// unnamed frames are normal: they are a runtime's own trampolines.
const JIT_PERCENT: u64 = 1;

/// If at least this percentage of all frames is unnamed, names are considered to be missing. A few percent are normal:
/// they are in stripped libraries.
const PERCENT: u64 = 10;

impl FrameCounts {
    /// True if so many JIT frames are unnamed that `--strict` fails.
    pub fn lacks_jit_names(&self) -> bool {
        self.jit_unnamed > 0 && self.jit_unnamed.saturating_mul(100) >= self.jit.saturating_mul(JIT_PERCENT)
    }

    /// True if so many frames are unnamed that the user should look into it.
    pub fn lacks_names(&self) -> bool {
        let many = self.unnamed > 0 && self.unnamed.saturating_mul(100) >= self.frames.saturating_mul(PERCENT);
        many || self.lacks_jit_names()
    }
}

impl AddAssign for FrameCounts {
    fn add_assign(&mut self, more: Self) {
        self.frames = self.frames.saturating_add(more.frames);
        self.unnamed = self.unnamed.saturating_add(more.unnamed);
        self.jit = self.jit.saturating_add(more.jit);
        self.jit_unnamed = self.jit_unnamed.saturating_add(more.jit_unnamed);
        self.other_time = self.other_time.saturating_add(more.other_time);
    }
}

impl fmt::Display for FrameCounts {
    /// Says how many frames have names: of all frames, and of those in JIT memory. If the number of all frames is
    /// unknown (0), only of those in JIT memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, unnamed, jit, jit_unnamed, other_time } = *self;
        let jit_frames = match (jit, jit_unnamed) {
            (1, 0) => "the only JIT frame".to_owned(),
            (_, 0) => format!("all {jit} JIT frames"),
            _ => format!("{} of {jit} JIT frames", jit.saturating_sub(jit_unnamed)),
        };
        if frames == 0 {
            write!(f, "resolved {jit_frames}")?;
        } else {
            write!(f, "resolved {} of {frames} frames", percent_named(frames, unnamed))?;
            if jit > 0 {
                write!(f, " ({jit_frames})")?;
            }
        }
        match other_time {
            0 => Ok(()),
            1 => write!(f, "; 1 JIT frame was sampled before its code was logged or after it was replaced"),
            _ => {
                write!(
                    f,
                    "; {other_time} JIT frames were sampled before their code was logged or after it was replaced"
                )
            }
        }
    }
}

/// The percentage of named frames as text. It is rounded down, so that it is only "100%" if no frame is unnamed.
fn percent_named(frames: u64, unnamed: u64) -> String {
    let per_mille = u128::from(frames.saturating_sub(unnamed)) * 1000 / u128::from(frames.max(1));
    format!("{}.{}%", per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_hundred_frames_of_jit_code_is_too_many() {
        let lacks = |jit_unnamed, jit| FrameCounts { jit, jit_unnamed, ..FrameCounts::default() }.lacks_jit_names();
        assert!(lacks(400, 400) && lacks(1, 100) && lacks(1, 1));
        assert!(!lacks(0, 0) && !lacks(0, 100) && !lacks(1, 101));
    }

    #[test]
    fn native_code_is_worth_a_look_and_no_failure() {
        let native = FrameCounts { frames: 1000, unnamed: 500, jit: 100, ..FrameCounts::default() };
        assert!(native.lacks_names() && !native.lacks_jit_names());
        assert_eq!(native.to_string(), "resolved 50.0% of 1000 frames (all 100 JIT frames)");
        assert_eq!(
            FrameCounts { unnamed: 1, frames: 10_000, jit: 0, ..native }.to_string(),
            "resolved 99.9% of 10000 frames"
        );
        assert_eq!(FrameCounts { frames: 0, jit_unnamed: 1, ..native }.to_string(), "resolved 99 of 100 JIT frames");
        assert!(!FrameCounts { unnamed: 99, ..native }.lacks_names());
        let early = FrameCounts { jit_unnamed: 3, other_time: 2, ..native };
        let said =
            "(97 of 100 JIT frames); 2 JIT frames were sampled before their code was logged or after it was replaced";
        assert!(early.to_string().ends_with(said), "{early}");
        let one = FrameCounts { jit: 1, other_time: 1, ..native };
        let said = "(the only JIT frame); 1 JIT frame was sampled before its code was logged or after it was replaced";
        assert!(one.to_string().ends_with(said), "{one}");
    }
}
