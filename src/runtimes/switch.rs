//! Switches that make a runtime write names of its code, as data. Instructions for users and corrected commands are
//! both generated from this data.

use crate::model::shell::quoted;
use std::fmt;
use std::path::Path;

/// A way to make a runtime write names, and the files that the runtime then writes. The way is to set options or
/// variables, or something that the user does by hand.
#[derive(Debug)]
pub struct Switch {
    /// Command-line flags that follow the program. All of them are set. The first one that isn't [`Flag::Needed`]
    /// decides whether the switch is on ([`Self::main_flag`]); those after it improve the result.
    pub flags: &'static [Flag],
    /// Environment variables and their values. They are an alternative to the flags, or the only way if there are no
    /// flags. All are set, but only the first decides whether the switch is on. `DIR` in a value stands for a
    /// directory.
    pub variables: &'static [(&'static str, &'static str)],
    /// The first version of the runtime that has the switch; `None` if all versions in use have it.
    pub since: Option<Version>,
    /// True if only special builds of the runtime have the switch, which distributions don't ship. Other builds ignore
    /// the switch's flags and variables.
    pub is_rare: bool,
    /// What the user must do besides setting flags and variables, such as running another program at the right moment.
    /// Empty if nothing.
    pub by_hand: &'static str,
    /// A remark for users, which is appended to the instructions as the end of their sentence. May be empty.
    pub note: &'static str,
    /// The files that the runtime writes if the switch is on. `PID` and `TID` stand for IDs, `DIR` for a directory that
    /// the user chooses, and `*` for any text.
    pub leaves: &'static [&'static str],
    /// How `perf record` gets call chains through code that was compiled with the switch on.
    pub stacks: Stacks,
    /// True if the code that the runtime compiles keeps frame pointers with this switch, but not without it. False if
    /// the switch makes no difference to frame pointers.
    pub keeps_frame_pointers: bool,
    /// True if the files are complete only after the process has exited normally.
    pub at_end: bool,
    /// Options with which the runtime refuses the switch. Each stands for all options that extend it: `--zjit` also for
    /// `--zjit-stats`.
    pub incompatible_options: &'static [&'static str],
    /// Options that keep names out of the files that the switch writes. They are removed from corrected commands.
    pub spoiling_options: &'static [&'static str],
    /// If the switch is for one of the runtime's compilers: a part of the name of the memory in which that compiler
    /// puts its code. Empty if the switch is for all code of the runtime.
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
    incompatible_options: &[],
    spoiling_options: &[],
    memory: "",
};

/// A command-line flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// A single word: `--perf-prof`.
    Word(&'static str),
    /// A single word without which another flag isn't accepted. It turns on nothing by itself.
    Needed(&'static str),
    /// An option and its value, as two words: `-X perf`. The option may occur several times with different values.
    Pair(&'static str, &'static str),
    /// An option and its value, as two words: `+JPperf true`. If the option occurs several times, only the last value
    /// counts.
    Choice(&'static str, &'static str),
    /// An option that sets a key: `-d opcache.jit_debug=48`.
    Setting {
        /// The option, such as `-d`.
        option: &'static str,
        /// The key that it sets, such as `opcache.jit_debug`.
        key: &'static str,
        /// The key's value, such as `48`.
        value: &'static str,
        /// True if only this value of the key turns on the switch; false if any value does.
        exact: bool,
    },
    /// An item of a list. An option and all items after it are a single word: `--v8-flags=--perf-prof,--x`.
    Item {
        /// The option that takes a list of flags as its value, such as `--v8-flags=`.
        option: &'static str,
        /// What separates the items, such as `,`.
        separator: char,
        /// The item, such as `--perf-prof`.
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
        let is_separator = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let start = text.char_indices().find_map(|(offset, letter)| {
            // The text before the digit in the same word. The digit begins a version if this text is empty or `v`.
            let word_before = text[..offset].rsplit(is_separator).next().unwrap_or_default();
            let begins_version = letter.is_ascii_digit() && (word_before.is_empty() || word_before == "v");
            begins_version.then_some(offset)
        })?;
        let mut numbers = text[start..].split(|letter: char| !letter.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        // A minor version follows only after a dot.
        let has_minor = text[start..].trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with('.');
        let minor = numbers.next().filter(|_| has_minor).and_then(|minor| minor.parse().ok());
        // Java versions before 9 call themselves 1.8 and so on; return the 8.
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
    /// perf copies a part of each stack, which is unwound later. This also works if some code keeps no frame pointers.
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

    /// Instructions for another switch of the same runtime, to be appended after `or`: `with --perf-basic-prof`.
    /// `called` is the program's name, which is repeated if the switch needs a certain version of the program.
    pub fn further_instructions(&self, called: &str) -> String {
        self.write_instructions(if self.since.is_some() { called } else { "" })
    }

    /// Instructions of the form `START (VERSION or newer) with FLAGS (or VARIABLES in its environment)`, followed by
    /// what the user must do besides (`by_hand`) and a remark (`note`). If the switch has neither flags nor variables,
    /// `START` and `with …` are left out. (No such switch has a version at present. If one had, its version would come
    /// first.)
    fn write_instructions(&self, start: &str) -> String {
        let version = self.since.map_or_else(String::new, |since| format!(" ({since} or newer)"));
        let has_flags = !self.flags.is_empty();
        let has_variables = !self.variables.is_empty();
        if !has_flags && !has_variables {
            // A switch without flags and variables has complete instructions in `by_hand`, such as "take a core dump".
            // So `start` ("run node") isn't put before them.
            return format!("{}{}{}", version.trim_start(), self.by_hand, self.note);
        }
        let in_environment = format!("{} in its environment", assignments(self.variables));
        let settings = match (has_flags, has_variables) {
            (true, true) => format!("{} (or {in_environment})", join_flags(self.flags)),
            (true, false) => join_flags(self.flags),
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

    /// True if flags or variables turn on the switch in the builds that users usually have.
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

    /// True if the switch may have made the runtime write this file, because one of the switch's files has the same
    /// extension.
    pub fn leaves_like(&self, path: &Path) -> bool {
        self.leaves.iter().any(|file| Path::new(file).extension() == path.extension())
    }

    /// The switch's name: the flag or variable that turns it on. If it has neither, what must be done by hand.
    pub fn name(&self) -> String {
        match (self.main_flag(), self.variables) {
            (Some(flag), _) => flag.to_string(),
            (None, [(name, value), ..]) => format!("{name}={value}"),
            (None, []) => self.by_hand.to_owned(),
        }
    }
}

/// True if a file in [`Switch::leaves`] is a jitdump, not another file called `.dump`, such as LuaJIT's `luajit.dump`,
/// which is text.
fn is_jitdump(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with("jit-") && name.ends_with(".dump")
}

/// Writes flags as part of a command line. Items of the same list that follow each other are combined in one word.
fn join_flags(flags: &[Flag]) -> String {
    let mut words: Vec<String> = Vec::new();
    // The option of the list in the last word; `None` if the last word is no list.
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
    // A list with spaces between its items needs quotes. They can be added only now that the lists are complete.
    words.iter().map(|word| quoted_list(word)).collect::<Vec<_>>().join(" ")
}

fn quoted_list(word: &str) -> String {
    match word.split_once('=') {
        Some((option, list)) if option.starts_with("--") && list.contains(' ') => format!("{option}='{list}'"),
        _ => word.to_owned(),
    }
}

/// Writes variables as assignments of a shell, with spaces between them.
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
