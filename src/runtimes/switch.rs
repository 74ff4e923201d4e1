//! The switch that makes a runtime write the names of its code, as data: text and commands are both made from it.

use crate::model::shell::quoted;
use std::fmt;
use std::path::Path;

/// Something to switch on, and the files that it leaves.
#[derive(Debug)]
pub struct Switch {
    /// The flags after the program on the command line. The first flag that is not only needed by the others is the
    /// switch; those behind it make it better.
    pub flags: &'static [Flag],
    /// Variables that are set instead of the flags, or, where there are no flags, the only way. The first one is the
    /// switch. `DIR` in a value stands for a directory.
    pub variables: &'static [(&'static str, &'static str)],
    /// The first version that has it; `None` if all have it that one meets.
    pub since: Option<Version>,
    /// True if only builds that were made for it have it: those of distributions do nothing with its flags and
    /// variables.
    pub is_rare: bool,
    /// The manual step instead of flags and variables, such as running another program at the right moment.
    pub by_hand: &'static str,
    /// A note about it, as the end of a sentence.
    pub note: &'static str,
    /// The files that it writes then. `PID` and `TID` stand for numbers, `DIR` for a directory that one names, `*` for
    /// any part of a name.
    pub leaves: &'static [&'static str],
    /// The way that `perf record` gets call chains through code that was compiled with it.
    pub stacks: Stacks,
    /// True if the files are only whole when the process has ended by itself.
    pub at_end: bool,
    /// Options beside which the runtime refuses it, with all that continue them: `--zjit` stands for `--zjit-stats`, too.
    pub refused_beside: &'static [&'static str],
    /// Options that keep names out of what it writes: it is given in their place.
    pub in_place_of: &'static [&'static str],
    /// A part of the name that its compiler gives to the memory for its code, where the runtime has several compilers.
    pub memory: &'static str,
}

/// The defaults of most switches.
pub(super) const SWITCH: Switch = Switch {
    flags: &[],
    variables: &[],
    since: None,
    is_rare: false,
    by_hand: "",
    note: "",
    leaves: &[],
    stacks: Stacks::FramePointers,
    at_end: false,
    refused_beside: &[],
    in_place_of: &[],
    memory: "",
};

/// One flag of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// One word: `--perf-prof`.
    Word(&'static str),
    /// One word without which the others are refused; it switches nothing on by itself.
    Needed(&'static str),
    /// Two words: `-X perf`.
    Pair(&'static str, &'static str),
    /// Two words, the second one being KEY=VALUE: `-d opcache.jit_debug=48`.
    Setting {
        /// `-d`
        option: &'static str,
        /// `opcache.jit_debug`
        key: &'static str,
        /// `48`
        value: &'static str,
        /// True if another value does not do.
        exact: bool,
    },
    /// An item of the list that one word contains: `--v8-flags=--perf-prof,--x`.
    Item {
        /// `--v8-flags=`
        option: &'static str,
        /// `,`
        separator: char,
        /// `--perf-prof`
        item: &'static str,
    },
}

/// A version: major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// The first one in a text: `Python 3.12.1`, `openjdk version "17.0.15"`.
    pub fn find(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let has_minor = text[start..].trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.');
        let minor = numbers.next().filter(|_| has_minor).and_then(|minor| minor.parse().ok());
        // Java's versions before 9 were 1.8 and the like.
        match (major, minor) {
            (1, Some(java @ 5..=8)) => Some(Self(java, 0)),
            _ => Some(Self(major, minor.unwrap_or(0))),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(major, 0) => write!(f, "{major}"),
            Self(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// The way that `perf record` gets the callers of JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacks {
    /// The kernel follows frame pointers.
    FramePointers,
    /// perf copies a piece of each stack, which is unwound later: some of the code keeps no frame pointers.
    Copies,
}

impl Stacks {
    /// The options of `perf record`.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::FramePointers => &["-g"],
            Self::Copies => &["--call-graph", "dwarf"],
        }
    }
}

impl Switch {
    /// The instruction, in words: `run node with --perf-prof`, or, of a second switch, `with --perf-basic-prof`.
    pub fn how(&self, called: &str, is_first: bool) -> String {
        let flags = joined(self.flags);
        let given = match (self.flags, self.variables, self.by_hand) {
            ([], [], by_hand) => by_hand.to_owned(),
            ([], variables, _) => format!("{} in its environment", assignments(variables)),
            _ => flags,
        };
        let or_set = match (self.flags, self.variables) {
            ([_, ..], [_, ..]) => format!(" (or {} in its environment)", assignments(self.variables)),
            _ => String::new(),
        };
        let version = self.since.map_or_else(String::new, |since| format!(" ({since} or newer)"));
        let by_hand = if self.by_hand.is_empty() || given == self.by_hand { "" } else { self.by_hand };
        let by_hand = if by_hand.is_empty() { String::new() } else { format!(" {by_hand}") };
        let start = match (given == self.by_hand, is_first) {
            (true, _) => version.trim_start().to_owned(),
            (false, true) => format!("run {called}{version} with "),
            (false, false) if self.since.is_some() => format!("{called}{version} with "),
            (false, false) => "with ".to_owned(),
        };
        format!("{start}{given}{or_set}{by_hand}{}", self.note)
    }

    /// The flag that is the switch.
    pub fn main_flag(&self) -> Option<Flag> {
        self.flags.iter().copied().find(|flag| !matches!(flag, Flag::Needed(_)))
    }

    /// True if it is available from a version on; unknown versions count.
    pub fn is_in(&self, version: Option<Version>) -> bool {
        self.since.zip(version).is_none_or(|(since, version)| version >= since)
    }

    /// True if a command line or an environment can switch it on, in most builds.
    pub fn can_be_set(&self) -> bool {
        let has_any = !self.flags.is_empty() || !self.variables.is_empty();
        !self.is_rare && has_any
    }

    /// True if a file is of the sort that it leaves, by the end of its name.
    pub fn leaves_like(&self, path: &Path) -> bool {
        self.leaves.iter().any(|file| Path::new(file).extension() == path.extension())
    }

    /// Its name: its first flag or variable.
    pub fn name(&self) -> String {
        match (self.main_flag(), self.variables) {
            (Some(flag), _) => flag.to_string(),
            (None, [(name, value), ..]) => format!("{name}={value}"),
            (None, []) => self.by_hand.to_owned(),
        }
    }
}

/// Flags as they are on a command line. Items of one list are in one word.
fn joined(flags: &[Flag]) -> String {
    let mut words: Vec<String> = Vec::new();
    for (at, flag) in flags.iter().enumerate() {
        match (flag, at.checked_sub(1).map(|before| flags[before])) {
            (Flag::Item { option, separator, item }, Some(Flag::Item { option: same, .. })) if *option == same => {
                words.last_mut().into_iter().for_each(|word| word.extend([&separator.to_string(), *item]));
            }
            _ => words.push(flag.to_string()),
        }
    }
    // A blank in a word would part it.
    words.iter().map(|word| quoted_list(word)).collect::<Vec<_>>().join(" ")
}

fn quoted_list(word: &str) -> String {
    match word.split_once('=') {
        Some((option, list)) if option.starts_with("--") && list.contains(' ') => format!("{option}='{list}'"),
        _ => word.to_owned(),
    }
}

fn assignments(variables: &[(&str, &str)]) -> String {
    let assigned = |(name, value): &(&str, &str)| format!("{name}={}", quoted(value.as_bytes()));
    variables.iter().map(assigned).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) | Self::Needed(word) => write!(f, "{word}"),
            Self::Pair(option, value) => write!(f, "{option} {value}"),
            Self::Setting { option, key, value, .. } => write!(f, "{option} {key}={value}"),
            Self::Item { option, item, .. } => write!(f, "{option}{item}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let find = |text: &str| Version::find(text).map(|version| version.to_string());
        assert_eq!(find("Python 3.12.1").as_deref(), Some("3.12"));
        assert_eq!(find("openjdk version \"17.0.15\" 2025-04-15").as_deref(), Some("17"));
        assert_eq!(find("openjdk version \"1.8.0_442\"").as_deref(), Some("8"));
        assert_eq!(find("openjdk version \"25\" 2025-09-16").as_deref(), Some("25"));
        assert_eq!(find("wasmer 6.0.1").as_deref(), Some("6"));
        assert_eq!(find("no number"), None);
        assert!(Version(3, 9) < Version(3, 12));
    }

    #[test]
    fn a_way_is_distinguished_from_its_parts() {
        const LIST: Flag = Flag::Item { option: "--js-flags=", separator: ' ', item: "--a" };
        let switch = Switch { flags: &[Flag::Word("--x"), LIST, LIST], note: ", which tells more", ..SWITCH };
        assert_eq!(switch.how("chrome", true), "run chrome with --x --js-flags='--a --a', which tells more");
        let switch = Switch { variables: &[("X", "1")], since: Some(Version(6, 0)), ..SWITCH };
        assert_eq!(switch.how("dotnet", true), "run dotnet (6 or newer) with X=1 in its environment");
        let switch = Switch { by_hand: "with gcore PID while it runs", ..SWITCH };
        assert_eq!(switch.how("lli", false), "with gcore PID while it runs");
    }
}
