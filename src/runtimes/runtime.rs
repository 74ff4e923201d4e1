//! What the table says about a runtime, and shapes of names, which indicate tiers.

use super::switch::{Flag, Switch, Version};
use crate::bytes::glob::matches_glob;
use crate::model::tier::Tier;
use std::fmt;

/// A runtime with a JIT compiler, or with an interpreter that names its functions for perf.
#[derive(Debug)]
pub struct Runtime {
    /// The name to show.
    pub name: &'static str,
    /// The command that runs programs with it, such as `node`.
    pub called: &'static str,
    /// Languages, libraries and launchers that use it; users may look it up by these.
    pub carries: &'static [&'static str],
    /// The `profile.frame.type` of its code: a well-known value of OpenTelemetry's semantic conventions
    /// (<https://opentelemetry.io/docs/specs/semconv/registry/attributes/profile/>), or a word of jitgraft's own if
    /// there is none.
    pub frame_type: &'static str,
    /// File names of its executables; a trailing `*` matches any suffix.
    pub programs: &'static [&'static str],
    /// File names of other files that only this runtime maps; `*` as in `programs`.
    pub libraries: &'static [&'static str],
    /// True if all kinds of programs load it but few of them compile with it. JIT code is then only ascribed to it if
    /// no other runtime can have produced the code.
    pub is_library: bool,
    /// True if it shares the memory for its code with child processes. JIT code elsewhere isn't its own.
    pub shares_memory: bool,
    /// Part of the name of the memory for its code; JIT code elsewhere isn't its own. Empty if its memory has no name.
    pub memory: &'static str,
    /// Names of threads that only this runtime has, whatever the program is called; `*` as in `programs`.
    pub threads: &'static [&'static str],
    /// Sections or exported symbols that only this runtime's executables have. Needed for runtimes that are bundled
    /// with an application in one executable, which has the application's name.
    pub in_elf: &'static [&'static str],
    /// Prefixes of functions that only this runtime has.
    pub functions: &'static [&'static str],
    /// Ways to make it report its code, best first; empty if there are none.
    pub switches: &'static [Switch],
    /// Environment variables that may contain command-line flags. The first one is used.
    pub flag_variables: &'static [FlagVariable],
    /// Options whose value is the next word.
    pub valued: &'static [&'static str],
    /// Short options (letters, which may be combined) that make it ignore environment variables.
    pub ignoring_variables: &'static str,
    /// Short options (letters) whose value is the rest of the word.
    pub letters_with_value: &'static str,
    /// Subcommands that may precede its options, such as `run`.
    pub subcommands: &'static [&'static str],
    /// The option that prints its version; empty if the version doesn't matter.
    pub version_flag: &'static str,
    /// What precedes the version in the path of one of its files, such as `libpython`.
    pub version_behind: &'static [&'static str],
    /// The flag that makes its code keep frame pointers, if there is one.
    pub frame_pointers: Option<Flag>,
    /// How callers of its code are found in stack copies.
    pub callers: Callers,
    /// How to run it in valgrind so that `jitgraft callgrind` finds names; `None` if that hasn't been tried.
    pub valgrind: Option<UnderValgrind>,
    /// Its interpreter, if profiles can contain it.
    pub interpreter: Option<Interpreter>,
    /// Code that stays unnamed with any switch; empty if unknown.
    pub unnamed: &'static str,
    /// Shapes of names that only this runtime writes. They indicate the tier in any process. The first match wins.
    pub marked_names: &'static [TierRule],
    /// Shapes of names that indicate the tier only in processes known to run this runtime.
    pub plain_names: &'static [TierRule],
    /// Shapes of names that don't indicate a tier. Exempt from `other_names`.
    pub untold_names: &'static [Shape],
    /// The tier of all other names, if there is only one.
    pub other_names: Option<Tier>,
    /// Names in its notation, and the tier that each indicates.
    pub examples: &'static [(&'static str, Option<Tier>)],
}

/// Default values for entries of the table.
pub(super) const PLAIN: Runtime = Runtime {
    name: "",
    called: "",
    carries: &[],
    frame_type: "",
    programs: &[],
    libraries: &[],
    is_library: false,
    shares_memory: false,
    memory: "",
    threads: &[],
    in_elf: &[],
    functions: &[],
    switches: &[],
    flag_variables: &[],
    valued: &[],
    ignoring_variables: "",
    letters_with_value: "",
    subcommands: &[],
    version_flag: "",
    version_behind: &[],
    frame_pointers: None,
    callers: Callers::Unknown,
    valgrind: None,
    interpreter: None,
    unnamed: "",
    marked_names: &[],
    plain_names: &[],
    untold_names: &[],
    other_names: None,
    examples: &[],
};

/// How callers of JIT code can be found in stack copies (`perf record --call-graph dwarf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The code keeps frame pointers or can be unwound by examining it.
    Found,
    /// Only with the unwinding information in a jitdump; a perf map has none.
    InDump,
    /// As far as is known, not at all.
    Unknown,
}

/// How to run a program in valgrind.
#[derive(Debug, Clone, Copy)]
pub struct UnderValgrind {
    /// Environment variables, to be put before `valgrind`, which takes its first argument for the program.
    pub variables: &'static str,
    /// Options of valgrind other than those that are always needed.
    pub options: &'static str,
    /// The program with its switch.
    pub program: &'static str,
}

impl UnderValgrind {
    /// For programs that need no environment variables.
    pub(super) const fn program(program: &'static str) -> Self {
        Self { variables: "", options: "", program }
    }
}

impl fmt::Display for UnderValgrind {
    /// The complete command for a shell, to be followed by the program's arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [self.variables, "valgrind --tool=callgrind --dump-instr=yes", self.options, self.program];
        let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}

/// An environment variable that contains command-line flags.
#[derive(Debug)]
pub struct FlagVariable {
    /// The variable's name, such as `NODE_OPTIONS`.
    pub name: &'static str,
    /// If set, the variable contains items of this option's list, separated by commas. Otherwise it contains flags
    /// separated by spaces.
    pub list_of: Option<&'static str>,
}

impl FlagVariable {
    pub(super) const fn flags(name: &'static str) -> Self {
        Self { name, list_of: None }
    }

    pub(super) fn separator(&self) -> &'static str {
        if self.list_of.is_some() { "," } else { " " }
    }
}

/// How a runtime's interpreter appears in profiles.
#[derive(Debug)]
pub struct Interpreter {
    /// The functions that interpret; complete names.
    pub functions: &'static [&'static str],
    /// True if each call of an interpreted function has a frame of the interpreter. If false, one frame stands for many
    /// calls, and only matters if nothing else of the program is visible.
    pub frame_a_call: bool,
    /// How to get names for interpreted functions, or why that is impossible.
    pub remedy: &'static str,
    /// The flag that makes the runtime name them, if there is one.
    pub flag: Option<Flag>,
}

impl Runtime {
    /// All environment variables that the table says it reads.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        let set = self.switches.iter().flat_map(|switch| switch.variables).map(|(name, _)| *name);
        self.flag_variables.iter().map(|variable| variable.name).chain(set)
    }

    /// Determines its version from paths of mapped files.
    pub fn version_in<'p>(&self, paths: impl Iterator<Item = &'p [u8]>) -> Option<Version> {
        let mut versions = paths.filter_map(|path| {
            let path = std::str::from_utf8(path).ok()?;
            self.version_behind.iter().find_map(|before| {
                let behind = path.match_indices(before).map(|(at, before)| &path[at + before.len()..]);
                behind.filter(|rest| starts_with_version(rest)).find_map(Version::find)
            })
        });
        versions.next()
    }

    /// A message that this version can't write names, and which one can; `None` if it can or the version isn't known.
    pub fn too_old(&self, version: Option<Version>) -> Option<String> {
        let version = version?;
        let oldest = self.switches.iter().map(|switch| switch.since).min()??;
        let name = self.name;
        (version < oldest)
            .then(|| format!("{name} {version} cannot write names for perf; {oldest} is the first version that can"))
    }

    /// True if only this runtime has threads with this name.
    pub fn is_thread(&self, name: &[u8]) -> bool {
        self.threads.iter().any(|thread| matches_glob(thread.as_bytes(), name))
    }

    /// True if only this runtime has functions with this name.
    pub fn is_function(&self, name: &[u8]) -> bool {
        self.functions.iter().any(|start| name.starts_with(start.as_bytes()))
    }

    /// True if only this runtime has memory with this name.
    pub fn owns_memory(&self, name: &[u8]) -> bool {
        let of_switches = self.switches.iter().map(|switch| switch.memory);
        let mut names = of_switches.chain([self.memory]).filter(|own| !own.is_empty());
        names.any(|own| Shape::Holds(own).fits(name))
    }

    /// True if the function is its interpreter.
    pub fn interprets_in(&self, function: &[u8]) -> bool {
        let is = |interpreter: &Interpreter| interpreter.functions.iter().any(|own| own.as_bytes() == function);
        self.interpreter.as_ref().is_some_and(is)
    }

    /// True if another runtime has the same interpreter, because both embed the same engine.
    pub fn shares_interpreter(&self, other: &Self) -> bool {
        match (&self.interpreter, &other.interpreter) {
            (Some(one), Some(other)) => one.functions == other.functions,
            _ => false,
        }
    }

    /// True if this is the file name of one of its executables.
    pub fn is_program(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| matches_glob(program.as_bytes(), name))
    }

    pub(super) fn maps(&self, name: &[u8]) -> bool {
        self.is_program(name) || self.libraries.iter().any(|library| matches_glob(library.as_bytes(), name))
    }
}

/// True if the text starts with a version number that isn't part of a word: `17-openjdk` and `8u442`, but not `4py`.
fn starts_with_version(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, behind) = text.split_at(end);
    let is_word = behind.chars().take(2).filter(char::is_ascii_alphabetic).count() == 2;
    number.starts_with(|c: char| c.is_ascii_digit()) && (number.ends_with('.') || !is_word)
}

/// A pattern for names.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// The whole name.
    Is(&'static str),
    /// Names that start with this text.
    Starts(&'static str),
    /// Names that end with this text.
    Ends(&'static str),
    /// Names that start with the first text and end with the second.
    Around(&'static str, &'static str),
    /// Names that contain this text.
    Holds(&'static str),
    /// Names that start with one of the prefixes, followed by the text.
    After(&'static [&'static str], &'static str),
}

impl Shape {
    /// True if the name matches.
    pub(super) fn fits(self, name: &[u8]) -> bool {
        match self {
            Self::Is(whole) => name == whole.as_bytes(),
            Self::Starts(start) => name.starts_with(start.as_bytes()),
            Self::Ends(end) => name.ends_with(end.as_bytes()),
            Self::Around(start, end) => {
                name.strip_prefix(start.as_bytes()).is_some_and(|rest| rest.ends_with(end.as_bytes()))
            }
            Self::Holds(part) => memchr::memmem::find(name, part.as_bytes()).is_some(),
            Self::After(starts, mark) => starts
                .iter()
                .filter_map(|start| name.strip_prefix(start.as_bytes()))
                .any(|rest| rest.starts_with(mark.as_bytes())),
        }
    }
}

/// Names that match one of the shapes belong to this tier.
pub type TierRule = (Tier, &'static [Shape]);

/// The tier of the first rule that matches.
pub(super) fn tier_by(rules: &[TierRule], name: &[u8]) -> Option<Tier> {
    rules.iter().find(|(_, shapes)| shapes.iter().any(|shape| shape.fits(name))).map(|(tier, _)| *tier)
}
