//! What sort of code a frame is, as people ask for it: by whose it is, and for JIT code by the tier that made it.
//! Pictures colour by it, tables group by it, and viewers that know categories are told it.

use super::stacks::{Frame, FrameKind, Profile};
use super::tier::Tier;

/// The sort of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The kernel or a module of it.
    Kernel,
    /// Compiled code of a program or library.
    Native,
    /// A call that the compiler expanded into its caller.
    Inlined,
    /// JIT code, or code that a runtime interpreted; without a tier where that is not known.
    Jit(Option<Tier>),
    /// Neither a name nor a module is known.
    Unknown,
}

impl Category {
    /// All of them, in the order of legends.
    pub const ALL: [Self; 13] = [
        Self::Kernel,
        Self::Native,
        Self::Inlined,
        Self::Jit(Some(Tier::Interpreted)),
        Self::Jit(Some(Tier::Baseline)),
        Self::Jit(Some(Tier::MidTier)),
        Self::Jit(Some(Tier::Optimised)),
        Self::Jit(Some(Tier::Builtin)),
        Self::Jit(Some(Tier::Stub)),
        Self::Jit(Some(Tier::Wasm)),
        Self::Jit(Some(Tier::RegExp)),
        Self::Jit(None),
        Self::Unknown,
    ];

    /// That of a frame.
    pub fn of(frame: &Frame) -> Self {
        match frame.kind {
            FrameKind::Kernel => Self::Kernel,
            FrameKind::User => Self::Native,
            FrameKind::Inlined => Self::Inlined,
            FrameKind::Jit => Self::Jit(frame.tier),
            FrameKind::Unknown => Self::Unknown,
        }
    }

    /// Whether it is known of a profile what sort of code its frames are.
    pub fn are_known(profile: &Profile) -> bool {
        let told = |kind| matches!(kind, FrameKind::Kernel | FrameKind::Jit | FrameKind::Inlined);
        profile.perf_names || profile.frames().any(|(_, frame)| told(frame.kind) || frame.tier.is_some())
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Native => "native",
            Self::Inlined => "inlined",
            Self::Jit(Some(tier)) => tier.name(),
            Self::Jit(None) => "JIT",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_stands_once_in_legends_and_has_a_word_of_its_own() {
        let mut names: Vec<_> = Category::ALL.iter().map(|category| category.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Category::ALL.len());
    }
}
