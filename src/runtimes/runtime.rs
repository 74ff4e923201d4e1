//! The type of the table's entries, with everything that is known about a runtime, and patterns of names that indicate
//! tiers.

use super::switch::{Flag, Switch, Version};
use crate::bytes::glob::matches_glob;
use crate::model::tier::Tier;
use std::fmt;

/// A runtime with a JIT compiler, or with an interpreter that names its functions for perf.
#[derive(Debug)]
pub struct Runtime {
    /// The name of the runtime in messages, such as `Node.js`.
    pub name: &'static str,
    /// The command that runs programs with the runtime, such as `node`.
    pub called: &'static str,
    /// Other names by which users may look up the runtime: languages, libraries, abbreviations.
    pub aliases: &'static [&'static str],
    /// Programs that start the runtime, such as `npm`. Users may look it up by these names, too.
    pub launchers: &'static [&'static str],
    /// Extensions of source files that the runtime's program runs, without a dot.
    pub source_extensions: &'static [&'static str],
    /// The value of `profile.frame.type` for the runtime's code. It is a well-known value of OpenTelemetry's semantic
    /// conventions (<https://opentelemetry.io/docs/specs/semconv/registry/attributes/profile/>) or, if there is none, a
    /// word of jitgraft's own.
    pub frame_type: &'static str,
    /// File names of the runtime's executables. A trailing `*` matches any suffix.
    pub programs: &'static [&'static str],
    /// File names of other files that only this runtime maps, such as libraries. `*` is as in `programs`.
    pub libraries: &'static [&'static str],
    /// True if many kinds of programs load the runtime as a library, but few of them compile code with it. A process's
    /// JIT code is then only ascribed to this runtime if no other runtime of the process can have produced it.
    pub is_library: bool,
    /// True if the runtime shares the memory for its code with child processes. JIT code in memory that isn't shared is
    /// then another runtime's.
    pub shares_memory: bool,
    /// A part of the name that the runtime gives to the memory for its code; JIT code in other memory is then another
    /// runtime's. Empty if the runtime names no memory.
    pub memory: &'static str,
    /// Names of threads that only this runtime has, also if it is embedded in another program. `*` is as in `programs`.
    pub threads: &'static [&'static str],
    /// ELF sections or exported symbols that only executables with this runtime have. They reveal runtimes that are
    /// bundled with an application in one executable, which has the application's name.
    pub in_elf: &'static [&'static str],
    /// Prefixes of the names of native functions that only this runtime has.
    pub functions: &'static [&'static str],
    /// Ways to make the runtime write names of its code, best first. Empty if there are none.
    pub switches: &'static [Switch],
    /// Environment variables that may contain the runtime's command-line flags. jitgraft sets the first one.
    pub flag_variables: &'static [FlagVariable],
    /// Options of the runtime's program whose value is the next word, in addition to those in `switches`.
    pub options_with_value: &'static [&'static str],
    /// Letters of short options that make the runtime ignore environment variables, such as `I` of `python -I`. Several
    /// letters may be combined in one word.
    pub ignoring_variables: &'static str,
    /// Letters of short options that take the rest of the word as their value, so that it has no more letters of
    /// options.
    pub letters_with_value: &'static str,
    /// Subcommands that may precede the runtime's options, such as `run`.
    pub subcommands: &'static [&'static str],
    /// The option that makes the runtime's program print its version. Empty if the version doesn't matter.
    pub version_flag: &'static str,
    /// Texts in the paths of the runtime's files that the version follows, such as `libpython`. Empty if no path shows
    /// the version.
    pub version_prefixes: &'static [&'static str],
    /// The flag that makes code compiled by the runtime keep frame pointers. `None` if there is no such flag.
    pub frame_pointers: Option<Flag>,
    /// How the callers of the runtime's JIT code are found in stack copies.
    pub callers: Callers,
    /// How to run the runtime in valgrind so that `jitgraft callgrind` finds names. `None` if nobody has tried that.
    pub valgrind: Option<UnderValgrind>,
    /// The runtime's interpreter. `None` if it can't occur in profiles.
    pub interpreter: Option<Interpreter>,
    /// The code that the runtime doesn't name with any switch, as a noun phrase for messages. Empty if all is named or
    /// nothing is known.
    pub unnamed: &'static str,
    /// Patterns of names that no other runtime writes, by the tier that they indicate. They count in any process. The
    /// first match wins.
    pub marked_names: &'static [TierRule],
    /// Patterns of names by the tier that they indicate, for names that may mean something else elsewhere. They count
    /// only in processes that are known to run this runtime.
    pub plain_names: &'static [TierRule],
    /// Patterns of names of code that has no tier, although `other_names` would give it one.
    pub tierless_names: &'static [Shape],
    /// The tier of all code whose name matches no pattern. `None` if that isn't always the same tier.
    pub other_names: Option<Tier>,
    /// Examples of names in the runtime's notation. Each has the tier that it indicates, or `None` if it indicates
    /// none.
    pub examples: &'static [(&'static str, Option<Tier>)],
}

/// Default values for entries of the table.
pub(super) const PLAIN: Runtime = Runtime {
    name: "",
    called: "",
    aliases: &[],
    launchers: &[],
    source_extensions: &[],
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
    options_with_value: &[],
    ignoring_variables: "",
    letters_with_value: "",
    subcommands: &[],
    version_flag: "",
    version_prefixes: &[],
    frame_pointers: None,
    callers: Callers::Unknown,
    valgrind: None,
    interpreter: None,
    unnamed: "",
    marked_names: &[],
    plain_names: &[],
    tierless_names: &[],
    other_names: None,
    examples: &[],
};

/// How callers of JIT code can be found in stack copies (`perf record --call-graph dwarf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Callers are found, because the code keeps frame pointers, or because its instructions show where the return
    /// address is.
    Found,
    /// Callers are found only with the unwinding information in a jitdump. A perf map has none.
    InDump,
    /// As far as is known, callers can't be found.
    Unknown,
}

/// How to run a program in valgrind.
#[derive(Debug, Clone, Copy)]
pub struct UnderValgrind {
    /// Environment variables to set, as `NAME=VALUE` separated by spaces. They come before `valgrind` in the command
    /// line: valgrind takes its first argument that isn't an option for the program.
    pub variables: &'static str,
    /// Options of valgrind that this runtime needs in addition to the usual ones.
    pub options: &'static str,
    /// The program's command line, with the switch for names.
    pub program: &'static str,
}

impl UnderValgrind {
    /// A command for a program that needs no environment variables and no further options of valgrind.
    pub(super) const fn program(program: &'static str) -> Self {
        Self { variables: "", options: "", program }
    }
}

impl fmt::Display for UnderValgrind {
    /// Writes the complete command for a shell. The program's arguments can follow it.
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
    /// `None` if the variable contains flags as on the command line, separated by spaces. Otherwise, the variable
    /// contains the comma-separated list that follows this option on the command line, such as `--v8-flags=`.
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
    /// The functions that interpret code, with their complete names.
    pub functions: &'static [&'static str],
    /// True if each call of an interpreted function has an interpreter frame of its own. If false, one interpreter
    /// frame stands for many calls; it tells that functions were interpreted only if the stack has no other function of
    /// the program.
    pub has_frame_per_call: bool,
    /// How to get names for interpreted functions, or why nothing helps, for messages.
    pub remedy: &'static str,
    /// Why functions may be interpreted although the switch for their names is on, as a clause. Empty if there is
    /// nothing to add.
    pub why_uncompiled: &'static str,
    /// The flag that makes the runtime name interpreted functions. `None` if there is no such flag.
    pub flag: Option<Flag>,
}

impl Runtime {
    /// The names of all environment variables that the runtime reads, as far as the table knows them.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        let set = self.switches.iter().flat_map(|switch| switch.variables).map(|(name, _)| *name);
        self.flag_variables.iter().map(|variable| variable.name).chain(set)
    }

    /// Determines the runtime's version from the paths of mapped files. `None` if no path contains it.
    pub fn find_version<'p>(&self, paths: impl Iterator<Item = &'p [u8]>) -> Option<Version> {
        for path in paths {
            let Ok(path) = std::str::from_utf8(path) else { continue };
            for prefix in self.version_prefixes {
                for (start, _) in path.match_indices(prefix) {
                    let rest = &path[start + prefix.len()..];
                    // The prefix may occur several times in a path. Only an occurrence that a version follows counts.
                    if starts_with_version(rest)
                        && let Some(version) = Version::find(rest)
                    {
                        return Some(version);
                    }
                }
            }
        }
        None
    }

    /// A message that this version of the runtime is too old to write names, and which version is the first that can.
    /// `None` if this version can, or if the version is unknown.
    pub fn too_old(&self, version: Option<Version>) -> Option<String> {
        let version = version?;
        // `since` is `None` if all versions have the switch, and counts as less than any version. Then no version is
        // too old.
        let oldest = self.switches.iter().map(|switch| switch.since).min()??;
        let name = self.name;
        (version < oldest)
            .then(|| format!("{name} {version} cannot write names for perf; {oldest} is the first version that can"))
    }

    /// The code that the runtime never names, as a noun phrase for messages. `None` if it names everything, or if
    /// nothing is known about that.
    pub fn never_names(&self) -> Option<&'static str> {
        if self.unnamed.is_empty() { None } else { Some(self.unnamed) }
    }

    /// A message that the code of a process can't be named: either the runtime has no option or variable for it, or the
    /// process can use none of those that it has.
    pub fn cannot_name(&self) -> String {
        match self.never_names() {
            Some(unnamed) => format!("there is no way to name {}", unnamed.strip_prefix("all ").unwrap_or(unnamed)),
            None => format!(
                "{} has options to write the names of its code, but none of them works with the version or the other \
                 options of this process",
                self.name
            ),
        }
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

    /// True if a function with this name is the runtime's interpreter.
    pub fn is_interpreter(&self, function: &[u8]) -> bool {
        let is = |interpreter: &Interpreter| interpreter.functions.iter().any(|own| own.as_bytes() == function);
        self.interpreter.as_ref().is_some_and(is)
    }

    /// True if this runtime and `other` have the same interpreter, because both embed the same engine.
    pub fn shares_interpreter(&self, other: &Self) -> bool {
        match (&self.interpreter, &other.interpreter) {
            (Some(one), Some(other)) => one.functions == other.functions,
            _ => false,
        }
    }

    /// The names by which users may look up the runtime.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.aliases.iter().chain(self.launchers).copied().chain([self.name])
    }

    /// True if users may look up the runtime by this name. Case doesn't matter.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// True if one of the runtime's executables has this file name.
    pub fn is_program(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| matches_glob(program.as_bytes(), name))
    }

    /// True if only processes of this runtime map files with this name.
    pub(super) fn maps(&self, name: &[u8]) -> bool {
        self.is_program(name) || self.libraries.iter().any(|library| matches_glob(library.as_bytes(), name))
    }
}

/// True if the text starts with a version number, as in `17-openjdk` and `8u442`. False for a word that starts with a
/// digit, such as `4py`, in which two letters follow the number. After a number that ends with a dot, letters don't
/// matter.
fn starts_with_version(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let is_word = rest.chars().take(2).filter(char::is_ascii_alphabetic).count() == 2;
    number.starts_with(|c: char| c.is_ascii_digit()) && (number.ends_with('.') || !is_word)
}

/// A pattern for names.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Names that are equal to this text.
    Is(&'static str),
    /// All names that start with this text.
    Starts(&'static str),
    /// All names that end with this text.
    Ends(&'static str),
    /// All names that start with the first text and end with the second.
    Around(&'static str, &'static str),
    /// All names that contain this text.
    Holds(&'static str),
    /// Names that consist of one of the prefixes, followed by this text and anything else.
    After(&'static [&'static str], &'static str),
}

impl Shape {
    /// True if the name has this shape. `After` stands for names that consist of one of the prefixes `starts`, followed
    /// by the text `mark` and anything else.
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

/// A rule for names: those that match one of the patterns belong to this tier.
pub type TierRule = (Tier, &'static [Shape]);

/// The tier of the first rule that matches the name. `None` if no rule does.
pub(super) fn find_tier(rules: &[TierRule], name: &[u8]) -> Option<Tier> {
    rules.iter().find(|(_, shapes)| shapes.iter().any(|shape| shape.fits(name))).map(|(tier, _)| *tier)
}
