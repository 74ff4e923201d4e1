//! Categories of code as users see them: who owns the code (kernel, native, JIT) and, for JIT code, which tier produced
//! it. Categories determine colors in flame graphs, groups in tables, and the categories of formats that have
//! categories.

use crate::model::stacks::{Frame, FrameKind, Profile};
use crate::model::tier::Tier;

/// The category of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The kernel or a module of it.
    Kernel,
    /// Compiled code of a program or library.
    Native,
    /// Unnamed code of a program or library.
    NativeUnnamed,
    /// A call that the compiler inlined.
    Inlined,
    /// JIT code, or code that a runtime interpreted, with its tier if known.
    Jit(Option<Tier>),
    /// Unnamed code in memory that no file backs, in a process that runs a JIT compiler.
    JitUnnamed,
    /// Unnamed code in memory that no file backs, in a process without a known JIT compiler.
    Anonymous,
    /// Code of which neither the name nor the module is known.
    Unknown,
}

/// One kind of code and its names. All outputs take the names from here.
struct CodeKind {
    kind: FrameKind,
    /// The category of this kind. For JIT code, it has no tier.
    category: Category,
    /// The keyword in jitgraft's JSON.
    key: &'static str,
    /// The name for people, in legends and tables.
    name: &'static str,
}

const CODE_KINDS: [CodeKind; 8] = [
    CodeKind { kind: FrameKind::Kernel, category: Category::Kernel, key: "kernel", name: "kernel" },
    CodeKind { kind: FrameKind::User, category: Category::Native, key: "user", name: "native" },
    CodeKind {
        kind: FrameKind::NativeUnnamed,
        category: Category::NativeUnnamed,
        key: "user-unnamed",
        name: "native, unnamed",
    },
    CodeKind { kind: FrameKind::Inlined, category: Category::Inlined, key: "inlined", name: "inlined" },
    CodeKind { kind: FrameKind::Jit, category: Category::Jit(None), key: "jit", name: "JIT" },
    CodeKind { kind: FrameKind::JitUnnamed, category: Category::JitUnnamed, key: "jit-unnamed", name: "JIT, unnamed" },
    CodeKind {
        kind: FrameKind::Anonymous,
        category: Category::Anonymous,
        key: "no-file",
        name: "unnamed code (no file)",
    },
    CodeKind { kind: FrameKind::Unknown, category: Category::Unknown, key: "unknown", name: "unknown" },
];

impl CodeKind {
    fn from_kind(kind: FrameKind) -> &'static Self {
        // The last entry is never used for another kind: a test makes sure that the table has all kinds.
        CODE_KINDS.iter().find(|entry| entry.kind == kind).unwrap_or(&CODE_KINDS[CODE_KINDS.len() - 1])
    }
}

impl FrameKind {
    /// The keyword for this kind of code in jitgraft's JSON.
    #[doc(hidden)]
    pub fn key(self) -> &'static str {
        CodeKind::from_kind(self).key
    }
}

impl Category {
    /// All categories in the order of legends.
    pub const ALL: [Self; 16] = [
        Self::Kernel,
        Self::Native,
        Self::NativeUnnamed,
        Self::Inlined,
        Self::Jit(Some(Tier::Interpreted)),
        Self::Jit(Some(Tier::Baseline)),
        Self::Jit(Some(Tier::MidTier)),
        Self::Jit(Some(Tier::Optimized)),
        Self::Jit(Some(Tier::Builtin)),
        Self::Jit(Some(Tier::Stub)),
        Self::Jit(Some(Tier::Wasm)),
        Self::Jit(Some(Tier::RegExp)),
        Self::Jit(None),
        Self::JitUnnamed,
        Self::Anonymous,
        Self::Unknown,
    ];

    /// The category of a frame.
    pub fn from_frame(frame: &Frame) -> Self {
        match frame.kind {
            FrameKind::Jit => Self::Jit(frame.tier),
            kind => Self::from_kind(kind),
        }
    }

    /// The category of a frame for tables, which name it. `are_known` is what [`are_known`](Self::are_known) says of
    /// the profile. If it is false, all code looks native, so a frame that looks native is only counted as native if
    /// it has a module; otherwise its category is unknown.
    pub fn for_table(frame: &Frame, are_known: bool) -> Self {
        match Self::from_frame(frame) {
            Self::Native | Self::NativeUnnamed if !are_known && frame.module.is_none() => Self::Unknown,
            category => category,
        }
    }

    /// The category for a kind of code. For JIT code, it has no tier.
    pub fn from_kind(kind: FrameKind) -> Self {
        CodeKind::from_kind(kind).category
    }

    /// Finds the category with this name. The name of a tier means JIT code of that tier. `None` if there is no such
    /// category.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(tier) = Tier::from_name(name) {
            return Some(Self::Jit(Some(tier)));
        }
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// The kind of code that frames of this category have.
    pub fn kind(self) -> FrameKind {
        let category = self.without_tier();
        CODE_KINDS.iter().find(|entry| entry.category == category).map_or(FrameKind::Unknown, |entry| entry.kind)
    }

    /// The category with the tier removed, if it is JIT code with a tier.
    pub fn without_tier(self) -> Self {
        match self {
            Self::Jit(_) => Self::Jit(None),
            other => other,
        }
    }

    /// True for JIT code, with or without a name.
    pub fn is_jit(self) -> bool {
        self.kind().is_jit()
    }

    /// True if functions of this category have no names. Flame graphs hatch them.
    pub fn is_unnamed(self) -> bool {
        matches!(self, Self::NativeUnnamed | Self::JitUnnamed | Self::Anonymous | Self::Unknown)
    }

    /// True if the categories of this profile's frames can be relied on: names are from perf, or some frame is marked
    /// as kernel code, JIT code or an inlined call. Otherwise, the input's format doesn't say what kind of code a frame
    /// is, so that all code looks native.
    pub fn are_known(profile: &Profile) -> bool {
        let tells_kind =
            |kind| matches!(kind, FrameKind::Kernel | FrameKind::Jit | FrameKind::JitUnnamed | FrameKind::Inlined);
        profile.perf_names || profile.frames().any(|(_, frame)| tells_kind(frame.kind) || frame.tier.is_some())
    }

    /// The name of the category, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jit(Some(tier)) => tier.name(),
            other => CodeKind::from_kind(other.kind()).name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::NameId;

    #[test]
    fn each_category_stands_once_in_legends_and_has_a_word_of_its_own() {
        let mut names: Vec<_> = Category::ALL.iter().map(|category| category.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Category::ALL.len());
        assert!(Category::ALL.iter().all(|category| Category::from_name(category.name()) == Some(*category)));
    }

    #[test]
    fn each_kind_has_a_category_and_a_key_of_its_own() {
        use FrameKind::{Anonymous, Inlined, Jit, JitUnnamed, Kernel, NativeUnnamed, Unknown, User};
        let kinds = [User, Kernel, Jit, Inlined, NativeUnnamed, JitUnnamed, Anonymous, Unknown];
        for kind in kinds {
            let category = Category::from_frame(&Frame::new(NameId(0), kind));
            assert_eq!((category.kind(), CODE_KINDS.iter().filter(|entry| entry.key == kind.key()).count()), (kind, 1));
            assert!(Category::ALL.contains(&category));
            assert_eq!(category.is_jit(), kind.is_jit());
        }
        assert_eq!(CODE_KINDS.len(), kinds.len());
        assert_eq!(
            kinds.map(FrameKind::unnamed).map(|kind| kind.key()),
            ["user-unnamed", "kernel", "jit-unnamed", "inlined", "user-unnamed", "jit-unnamed", "no-file", "unknown"]
        );
    }
}
