//! The facts about a runtime, and the shapes of its names, which show tiers.

use super::switch::{Flag, Switch, Version};
use crate::bytes::glob::matches_glob;
use crate::model::tier::Tier;
use std::fmt;

/// A runtime that compiles while it runs.
#[derive(Debug)]
pub struct Runtime {
    /// Its usual name.
    pub name: &'static str,
    /// The command that runs it: `node`.
    pub called: &'static str,
    /// Languages, libraries and launchers that run on it: it is found by their names, too.
    pub carries: &'static [&'static str],
    /// The `profile.frame.type` of its code: a well-known value of OpenTelemetry's semantic conventions
    /// (<https://opentelemetry.io/docs/specs/semconv/registry/attributes/profile/>), a word of ours where they have none.
    pub frame_type: &'static str,
    /// Programs that are it: whole base names; one that ends in `*` is a beginning.
    pub programs: &'static [&'static str],
    /// Other files that only it maps, spelled likewise.
    pub libraries: &'static [&'static str],
    /// True if programs of all sorts load it and seldom compile with it: only JIT code without another maker is its.
    pub is_library: bool,
    /// True if its code is in memory that a process shares with those that it forks; other JIT code is another one's.
    pub shares_memory: bool,
    /// A part of the name of the memory that its code is in; other JIT code is another one's. Empty if it has no name.
    pub memory: &'static str,
    /// Names of threads that no other runtime has, whatever its program is called; `*` as in those of programs.
    pub threads: &'static [&'static str],
    /// Sections or exported symbols that no other program has, whatever it is called: a runtime that contains an
    /// application is called like that.
    pub in_elf: &'static [&'static str],
    /// Beginnings of the names of functions that no other program has.
    pub functions: &'static [&'static str],
    /// The switches that make it report its code, the best first; empty if nothing does.
    pub switches: &'static [Switch],
    /// Variables from which it reads flags as from its command line; the first one is used.
    pub flag_variables: &'static [FlagVariable],
    /// Its options that take the next word for their value: what follows that word is an option again.
    pub valued: &'static [&'static str],
    /// Letters of its short options, which may stand together, that make it ignore variables.
    pub ignoring_variables: &'static str,
    /// Letters of its short options behind which the rest of the word is a value.
    pub letters_with_value: &'static str,
    /// Words behind which its options may stand, too: `run`.
    pub subcommands: &'static [&'static str],
    /// The flag that makes its program print its version; empty if that does not matter.
    pub version_flag: &'static str,
    /// The text before its version in the path of one of its files: `libpython`.
    pub version_behind: &'static [&'static str],
    /// The flag without which its code keeps no frame pointers, if there is one.
    pub frame_pointers: Option<Flag>,
    /// How the callers of its code are found in copies of stacks.
    pub callers: Callers,
    /// The way it is run under valgrind so that `jitgraft callgrind` finds names; `None` where nobody tried.
    pub valgrind: Option<UnderValgrind>,
    /// The interpreter of its programs, where that is seen in profiles.
    pub interpreter: Option<Interpreter>,
    /// The code that has no name even so; empty if nothing is known of that.
    pub unnamed: &'static str,
    /// Names that no other runtime writes: they give the tier wherever JIT code has them. The first match holds.
    pub marked_names: &'static [TierRule],
    /// Names that give the tier only where the process is known to run this runtime.
    pub plain_names: &'static [TierRule],
    /// Names that do not show a tier, though other names of no shape of their own do.
    pub untold_names: &'static [Shape],
    /// The tier of all its other code, if there is but one.
    pub other_names: Option<Tier>,
    /// Names as it spells them, and the tier that each gives.
    pub examples: &'static [(&'static str, Option<Tier>)],
}

/// The defaults of most entries.
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

/// How the callers of JIT code are found in copies of stacks (`perf record --call-graph dwarf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The code keeps frame pointers, or how to leave it can be read from it.
    Found,
    /// Only a dump contains how to leave it, not a map.
    InDump,
    /// They cannot be found, as far as is known.
    Unknown,
}

/// A command that valgrind runs.
#[derive(Debug, Clone, Copy)]
pub struct UnderValgrind {
    /// Variables, which stand before valgrind: it takes its first word for the program.
    pub variables: &'static str,
    /// Options of valgrind's besides those that all need.
    pub options: &'static str,
    /// The program with its switch.
    pub program: &'static str,
}

impl UnderValgrind {
    /// A program that needs no variable.
    pub(super) const fn program(program: &'static str) -> Self {
        Self { variables: "", options: "", program }
    }
}

impl fmt::Display for UnderValgrind {
    /// The whole command, for a shell; the program's own words follow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [self.variables, "valgrind --tool=callgrind --dump-instr=yes", self.options, self.program];
        let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}

/// A variable that contains flags.
#[derive(Debug)]
pub struct FlagVariable {
    /// `NODE_OPTIONS`
    pub name: &'static str,
    /// The option whose list it contains, with commas between the items; else it contains flags with blanks between.
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

/// The frames in a profile where a runtime interprets.
#[derive(Debug)]
pub struct Interpreter {
    /// Functions that stand for all that is interpreted, whole names.
    pub functions: &'static [&'static str],
    /// True if each call of an interpreted function has a frame of this name; else one is for many calls, and gives
    /// something only where nothing else of the program is seen.
    pub frame_a_call: bool,
    /// The way that interpreted functions get names of their own, or why they cannot have them.
    pub remedy: &'static str,
    /// The flag that gives them these, if one does.
    pub flag: Option<Flag>,
}

impl Runtime {
    /// The variables from which it reads what is in the table.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        let set = self.switches.iter().flat_map(|switch| switch.variables).map(|(name, _)| *name);
        self.flag_variables.iter().map(|variable| variable.name).chain(set)
    }

    /// Its version, by the paths of files that its process maps.
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

    /// Says that this version cannot write names, and which one can; `None` if it can.
    pub fn too_old(&self, version: Option<Version>) -> Option<String> {
        let version = version?;
        let oldest = self.switches.iter().map(|switch| switch.since).min()??;
        let name = self.name;
        (version < oldest)
            .then(|| format!("{name} {version} cannot write names for perf: {oldest} is the first version that can"))
    }

    /// True if a thread of this name is its, whatever the program is called.
    pub fn is_thread(&self, name: &[u8]) -> bool {
        self.threads.iter().any(|thread| matches_glob(thread.as_bytes(), name))
    }

    /// True if a function of this name is its, whatever the program is called.
    pub fn is_function(&self, name: &[u8]) -> bool {
        self.functions.iter().any(|start| name.starts_with(start.as_bytes()))
    }

    /// True if memory of this name is its alone.
    pub fn owns_memory(&self, name: &[u8]) -> bool {
        let of_switches = self.switches.iter().map(|switch| switch.memory);
        let mut names = of_switches.chain([self.memory]).filter(|own| !own.is_empty());
        names.any(|own| Shape::Holds(own).fits(name))
    }

    /// True if a function is its interpreter.
    pub fn interprets_in(&self, function: &[u8]) -> bool {
        let is = |interpreter: &Interpreter| interpreter.functions.iter().any(|own| own.as_bytes() == function);
        self.interpreter.as_ref().is_some_and(is)
    }

    /// True if it is interpreted by the same functions as another one: both embed the same engine.
    pub fn shares_interpreter(&self, other: &Self) -> bool {
        match (&self.interpreter, &other.interpreter) {
            (Some(one), Some(other)) => one.functions == other.functions,
            _ => false,
        }
    }

    /// True if it is the runtime's program that goes by this base name.
    pub fn is_program(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| matches_glob(program.as_bytes(), name))
    }

    pub(super) fn maps(&self, name: &[u8]) -> bool {
        self.is_program(name) || self.libraries.iter().any(|library| matches_glob(library.as_bytes(), name))
    }
}

/// True if a number begins a text, and is not part of a word: `17-openjdk` and `8u442`, but not `4py`.
fn starts_with_version(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, behind) = text.split_at(end);
    let is_word = behind.chars().take(2).filter(char::is_ascii_alphabetic).count() == 2;
    number.starts_with(|c: char| c.is_ascii_digit()) && (number.ends_with('.') || !is_word)
}

/// The shape of a name.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// It is this.
    Is(&'static str),
    /// It begins with this.
    Starts(&'static str),
    /// It ends in this.
    Ends(&'static str),
    /// It begins with the first and ends in the second.
    Around(&'static str, &'static str),
    /// It holds this.
    Holds(&'static str),
    /// It begins with one of the first, and the second follows that.
    After(&'static [&'static str], &'static str),
}

impl Shape {
    /// True if that name looks so.
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

/// Names of these shapes are of this tier.
pub type TierRule = (Tier, &'static [Shape]);

/// The tier that the first of the rules shows that fits.
pub(super) fn tier_by(rules: &[TierRule], name: &[u8]) -> Option<Tier> {
    rules.iter().find(|(_, shapes)| shapes.iter().any(|shape| shape.fits(name))).map(|(tier, _)| *tier)
}
