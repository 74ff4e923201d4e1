//! Switches that make a runtime write names of its code, as data. Instructions for users and corrected commands are
//! both generated from this data.

use crate::model::shell::quoted;
use std::fmt;
use std::path::Path;

/// An option or variable to turn on, and the files that the runtime then writes.
#[derive(Debug)]
pub struct Switch {
    /// Command-line flags that follow the program. The first one that isn't [`Flag::Needed`] is the switch itself; the
    /// flags after it improve the result.
    pub flags: &'static [Flag],
    /// Environment variables as an alternative to the flags, or the only way if there are no flags. The first one is
    /// the switch itself. `DIR` in a value stands for a directory.
    pub variables: &'static [(&'static str, &'static str)],
    /// The first version that has the switch; `None` if every version in use has it.
    pub since: Option<Version>,
    /// True if only special builds, which distributions don't ship, have the switch. Other builds ignore its flags and
    /// variables.
    pub is_rare: bool,
    /// What the user must do besides setting flags and variables, such as running another program at the right moment.
    /// Empty if nothing.
    pub by_hand: &'static str,
    /// A remark for users, phrased as the end of a sentence.
    pub note: &'static str,
    /// The files that the runtime writes if the switch is on. `PID` and `TID` stand for IDs, `DIR` for a directory that
    /// the user chooses, and `*` for any text.
    pub leaves: &'static [&'static str],
    /// How `perf record` gets call chains through code that was compiled with the switch on.
    pub stacks: Stacks,
    /// True if the runtime's code keeps frame pointers only with the switch.
    pub keeps_frame_pointers: bool,
    /// True if the files are complete only after the process has exited normally.
    pub at_end: bool,
    /// Options that the runtime rejects if the switch is on. Each stands for all options that start with it: `--zjit`
    /// also stands for `--zjit-stats`.
    pub refused_beside: &'static [&'static str],
    /// Options that keep names out of the files that the switch writes. They are removed from corrected commands.
    pub in_place_of: &'static [&'static str],
    /// A part of the name of the memory in which the switch's compiler puts code, for runtimes with several compilers.
    /// Empty if it doesn't matter.
    pub memory: &'static str,
}

/// Default values for switches.
pub(super) const SWITCH: Switch = Switch {
    flags: &[],
    variables: &[],
    since: None,
    is_rare: false,
    by_hand: "",
    note: "",
    leaves: &[],
    stacks: Stacks::FramePointers,
    keeps_frame_pointers: false,
    at_end: false,
    refused_beside: &[],
    in_place_of: &[],
    memory: "",
};

/// A command-line flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// A single word: `--perf-prof`.
    Word(&'static str),
    /// A single word that other flags require. It turns on nothing by itself.
    Needed(&'static str),
    /// An option and its value, as two words: `-X perf`. The option may occur several times with different values.
    Pair(&'static str, &'static str),
    /// An option and its value, as two words: `+JPperf true`. If the option occurs several times, only the last value
    /// counts.
    Choice(&'static str, &'static str),
    /// An option that sets a key: `-d opcache.jit_debug=48`.
    Setting {
        /// `-d`
        option: &'static str,
        /// `opcache.jit_debug`
        key: &'static str,
        /// `48`
        value: &'static str,
        /// True if the key must have exactly this value; false if it may have any.
        exact: bool,
    },
    /// An item of a list that is a single word: `--v8-flags=--perf-prof,--x`.
    Item {
        /// `--v8-flags=`
        option: &'static str,
        /// `,`
        separator: char,
        /// `--perf-prof`
        item: &'static str,
    },
}

/// A major and minor version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// Finds the first version in a text: `Python 3.12.1`, `openjdk version "17.0.15"`, `v20.11.1`. Digits in a
    /// name, such as those of `qemu-x86_64 version 7.2`, don't count.
    pub fn find(text: &str) -> Option<Self> {
        let start = text.char_indices().find_map(|(at, c)| {
            let word = text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let begins_version = c.is_ascii_digit() && (word.is_empty() || word == "v");
            begins_version.then_some(at)
        })?;
        let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let has_minor = text[start..].trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.');
        let minor = numbers.next().filter(|_| has_minor).and_then(|minor| minor.parse().ok());
        // Java versions before 9 are called 1.8 and so on.
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

/// How `perf record` gets call chains through JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacks {
    /// The kernel follows frame pointers.
    FramePointers,
    /// perf copies part of each stack, to be unwound later. Needed if some code keeps no frame pointers.
    Copies,
}

impl Stacks {
    /// The corresponding options of `perf record`.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::FramePointers => &["-g"],
            Self::Copies => &["--call-graph", "dwarf"],
        }
    }
}

impl Switch {
    /// Instructions for the user: `run node with --perf-prof`. `called` is the program's name.
    pub fn instructions(&self, called: &str) -> String {
        self.write_instructions(&format!("run {called}"))
    }

    /// Instructions for a further switch of a runtime, after those for another one: `with --perf-basic-prof`. `called`
    /// is the program's name, which is repeated if the switch needs a certain version of it.
    pub fn further_instructions(&self, called: &str) -> String {
        self.write_instructions(if self.since.is_some() { called } else { "" })
    }

    /// Instructions that begin with `start`, the version that is needed and `with`. If everything has to be done by
    /// hand, only `by_hand` says how.
    fn write_instructions(&self, start: &str) -> String {
        let version = self.since.map_or_else(String::new, |since| format!(" ({since} or newer)"));
        let has_flags = !self.flags.is_empty();
        let has_variables = !self.variables.is_empty();
        if !has_flags && !has_variables {
            return format!("{}{}{}", version.trim_start(), self.by_hand, self.note);
        }
        let in_environment = format!("{} in its environment", assignments(self.variables));
        let settings = match (has_flags, has_variables) {
            (true, true) => format!("{} (or {in_environment})", joined(self.flags)),
            (true, false) => joined(self.flags),
            (false, _) => in_environment,
        };
        let by_hand = if self.by_hand.is_empty() { String::new() } else { format!(" {}", self.by_hand) };
        format!("{start}{version} with {settings}{by_hand}{}", self.note).trim_start().to_owned()
    }

    /// The flag that is the switch itself, not one that it needs. `None` if the switch has no such flag.
    pub fn main_flag(&self) -> Option<Flag> {
        self.flags.iter().copied().find(|flag| !matches!(flag, Flag::Needed(_)))
    }

    /// True if this version has the switch. If the version is unknown, assumes that it has.
    pub fn is_in(&self, version: Option<Version>) -> bool {
        self.since.zip(version).is_none_or(|(since, version)| version >= since)
    }

    /// True if flags or variables can turn on the switch in ordinary builds.
    pub fn can_be_set(&self) -> bool {
        let has_any = !self.flags.is_empty() || !self.variables.is_empty();
        !self.is_rare && has_any
    }

    /// True if the switch makes the runtime write a jitdump, perhaps among other files.
    pub fn writes_dump(&self) -> bool {
        self.leaves.iter().any(|file| is_jitdump(file))
    }

    /// True if the switch makes the runtime write nothing but jitdumps, which it also maps.
    pub fn writes_only_dumps(&self) -> bool {
        self.leaves.iter().all(|file| is_jitdump(file))
    }

    /// True if the switch may have made the runtime write this file, judged by the file's extension.
    pub fn leaves_like(&self, path: &Path) -> bool {
        self.leaves.iter().any(|file| Path::new(file).extension() == path.extension())
    }

    /// The switch's name: its first flag or variable.
    pub fn name(&self) -> String {
        match (self.main_flag(), self.variables) {
            (Some(flag), _) => flag.to_string(),
            (None, [(name, value), ..]) => format!("{name}={value}"),
            (None, []) => self.by_hand.to_owned(),
        }
    }
}

/// True if a file that a switch leaves is a jitdump. LuaJIT's `luajit.dump`, for example, is a text.
fn is_jitdump(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with("jit-") && name.ends_with(".dump")
}

/// Writes flags as part of a command line. Items of the same list are combined in one word.
fn joined(flags: &[Flag]) -> String {
    let mut words: Vec<String> = Vec::new();
    // The option of the list in the last word, if it is a list.
    let mut last_list = None;
    for flag in flags {
        let list = if let Flag::Item { option, .. } = flag { Some(*option) } else { None };
        if let Flag::Item { separator, item, .. } = flag
            && list == last_list
            && let Some(word) = words.last_mut()
        {
            word.push(*separator);
            word.push_str(item);
        } else {
            words.push(flag.to_string());
        }
        last_list = list;
    }
    // Quote lists that contain spaces.
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
            Self::Pair(option, value) | Self::Choice(option, value) => write!(f, "{option} {value}"),
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
        assert_eq!(find("v20.20.2").as_deref(), Some("20.20"));
        assert_eq!(find("qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)").as_deref(), Some("7.2"));
        assert_eq!(find("qemu-aarch64 version 8.1.0").as_deref(), Some("8.1"));
        assert_eq!(find("qemu-i386 version 10.0.2").as_deref(), Some("10"));
        assert_eq!(find("Erlang™ 26").as_deref(), Some("26"));
        assert_eq!(find("no number, and x86_64 is none"), None);
        assert!(Version(3, 9) < Version(3, 12));
    }

    #[test]
    fn a_way_is_distinguished_from_its_parts() {
        const LIST: Flag = Flag::Item { option: "--js-flags=", separator: ' ', item: "--a" };
        let switch = Switch { flags: &[Flag::Word("--x"), LIST, LIST], note: ", which tells more", ..SWITCH };
        assert_eq!(switch.instructions("chrome"), "run chrome with --x --js-flags='--a --a', which tells more");
        let switch = Switch { variables: &[("X", "1")], since: Some(Version(6, 0)), ..SWITCH };
        assert_eq!(switch.instructions("dotnet"), "run dotnet (6 or newer) with X=1 in its environment");
        let switch = Switch { by_hand: "with gcore PID while it runs", ..SWITCH };
        assert_eq!(switch.further_instructions("lli"), "with gcore PID while it runs");
    }
}
