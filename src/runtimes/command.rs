//! Adds to a command the options and variables with which its runtime writes names. Those that the command already has
//! aren't repeated.

use super::runtime::{Runtime, Shape};
use super::switch::{Flag, Stacks, Switch, Version};
use crate::model::mapping_kind::base_name;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The environment variables of a command, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// The variables are unknown, as for a command in a recording, which contains only the words.
    Unknown,
    /// The variables that some runtime reads, by name, as far as they are set. A variable that isn't in the map isn't
    /// set.
    Known(BTreeMap<Vec<u8>, Vec<u8>>),
}

/// A command that was or will be run.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine<'a> {
    /// The program and its arguments.
    pub words: &'a [Vec<u8>],
    /// The environment variables.
    pub environment: &'a Environment,
}

/// The facts about a process that decide which of its runtime's switches for writing names it can use.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFacts<'a> {
    /// The version of the process's runtime. `None` if it is unknown.
    pub version: Option<Version>,
    /// The process's command line. `None` if it is unknown.
    pub command: Option<CommandLine<'a>>,
    /// The names of the process's memory mappings. Some JIT compilers of a runtime are recognized by the names that
    /// they give to their memory. May be empty.
    pub memory: &'a [&'a [u8]],
}

/// An environment variable to set for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable's name.
    pub name: &'static str,
    /// The variable's new value. With a separator, it is only the text to append to the existing value.
    pub value: String,
    /// The separator between the existing value and the appended text. `None` if the existing value is replaced.
    pub separator: Option<char>,
    /// Whether the variable has a value before the assignment; `None` if the environment is unknown.
    pub is_set: Option<bool>,
}

/// A command with all options and variables added that make its runtime write names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectedCommand {
    /// Environment variables to set.
    pub variables: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<Vec<u8>>,
}

/// Programs that run another command, which is given to them as their last arguments.
const WRAPPERS: &[&[u8]] = &[
    b"env", b"taskset", b"nice", b"ionice", b"chrt", b"timeout", b"setarch", b"nohup", b"stdbuf", b"time", b"unshare",
    b"numactl", b"setsid",
];

impl Assignment {
    /// The assignment in shell syntax, to be put before a command. If the value is to be appended, the existing value
    /// is written as `$NAME`. If it is unknown whether there is one, it is written with the separator as
    /// `${NAME:+$NAME:}`, which the shell replaces by nothing if the variable has no value.
    pub fn for_shell(&self) -> String {
        let Self { name, value, separator, is_set } = self;
        match (separator, is_set) {
            (None, _) | (Some(_), Some(false)) => {
                format!("{name}={}", crate::model::shell::quoted(value.as_bytes()))
            }
            (Some(separator), Some(true)) => format!("{name}=\"${name}{separator}{value}\""),
            (Some(separator), None) => format!("{name}=\"${{{name}:+${name}{separator}}}{value}\""),
        }
    }

    /// The value that the variable has after the assignment, given the `existing` one. An empty existing value is
    /// treated like none, so that the result doesn't begin with the separator.
    pub fn append_to(&self, existing: Option<&[u8]>) -> Vec<u8> {
        let mut whole = Vec::new();
        if let (Some(existing @ [_, ..]), Some(separator)) = (existing, self.separator) {
            whole.extend_from_slice(existing);
            whole.extend_from_slice(separator.encode_utf8(&mut [0; 4]).as_bytes());
        }
        whole.extend_from_slice(self.value.as_bytes());
        whole
    }
}

impl<'a> CommandLine<'a> {
    /// The value of an environment variable: the one that `env` at the start of the command line assigns or, failing
    /// that, the one in the environment.
    fn variable(&self, name: &str) -> Option<&'a [u8]> {
        if self.words.first().is_some_and(|first| base_name(first) == b"env") {
            // If `env` assigns a variable several times, the last assignment counts.
            for word in self.words.iter().rev() {
                if let Some(rest) = word.strip_prefix(name.as_bytes())
                    && let Some(value) = rest.strip_prefix(b"=")
                {
                    return Some(value);
                }
            }
        }
        self.environment.get(name)
    }
}

impl Environment {
    fn get(&self, name: &str) -> Option<&[u8]> {
        match self {
            Self::Unknown => None,
            Self::Known(variables) => variables.get(name.as_bytes()).map(|value| &value[..]),
        }
    }

    /// Whether a variable has a value. `None` if the environment is unknown.
    fn has(&self, name: &str) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Known(_) => Some(self.get(name).is_some_and(|value| !value.is_empty())),
        }
    }
}

/// Finds the program that a command runs: the first word or, if that is `env` or a similar program that runs the rest
/// of the command, the first later word for which `is_program` is true. `is_program` gets the file name of a word.
/// `None` if the command runs another program.
pub fn find_program(words: &[Vec<u8>], is_program: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let is_wrapped = words.first().is_some_and(|first| WRAPPERS.contains(&base_name(first)));
    let candidates = if is_wrapped { words.len() } else { 1 };
    words.iter().take(candidates).position(|word| is_program(base_name(word)))
}

/// The options of a runtime in a command line. The words after them belong to the program that the runtime runs.
struct OwnOptions<'a> {
    words: &'a [Vec<u8>],
    /// The index of the first option. If there are no options, the index where they would be.
    start: usize,
    /// The index after the last option.
    end: usize,
}

impl<'a> OwnOptions<'a> {
    /// Finds the options of the runtime's program. `None` if the command runs another program.
    fn find(runtime: &Runtime, words: &'a [Vec<u8>]) -> Option<Self> {
        let program = find_program(words, |name| runtime.is_program(name))?;
        let mut start = program + 1;
        let mut end = end_of_options(runtime, words, start);
        let is_subcommand = |word: &Vec<u8>| runtime.subcommands.iter().any(|name| name.as_bytes() == &word[..]);
        // A runtime with subcommands, as in `deno run`, takes options after the subcommand. Only these options are read
        // and changed.
        if words.get(end).is_some_and(is_subcommand) {
            start = end + 1;
            end = end_of_options(runtime, words, start);
        }
        Some(Self { words, start, end })
    }

    fn list(&self) -> &'a [Vec<u8>] {
        &self.words[self.start..self.end]
    }
}

/// The index of the first word from `start` on that is neither an option of the runtime nor an option's value. At this
/// index is the program that the runtime runs, or a subcommand.
fn end_of_options(runtime: &Runtime, words: &[Vec<u8>], start: usize) -> usize {
    let mut end = start;
    while let Some(word) = words.get(end)
        && is_option(word)
    {
        end += if runtime.takes_next_word(word) { 2 } else { 1 };
    }
    end.min(words.len())
}

/// True if the word looks like an option. Some options of Erlang begin with `+`.
fn is_option(word: &[u8]) -> bool {
    word.len() > 1 && matches!(word[0], b'-' | b'+') && word != b"--"
}

/// True if these words contain a flag. A flag with a value is only there if the words give it the same value. A
/// [`Flag::Setting`] with `exact` set to false is there with any value.
fn has_flag(words: &[Vec<u8>], flag: Flag) -> bool {
    match flag {
        // `is_option_called` also accepts `--option=VALUE`: some flags take an optional value.
        Flag::Word(option) | Flag::Needed(option) => words.iter().any(|word| is_option_called(word, option)),
        Flag::Pair(option, value) => {
            // The option and its value may be one word (`-Xperf`) or two (`-X perf`).
            let joined = [option, value].concat();
            words.iter().any(|word| word == joined.as_bytes())
                || words.windows(2).any(|pair| pair[0] == option.as_bytes() && pair[1] == value.as_bytes())
        }
        Flag::Choice(option, value) => {
            // If the option occurs several times, only its last value counts.
            let last = words.iter().rposition(|word| word == option.as_bytes());
            last.and_then(|index| words.get(index + 1)).is_some_and(|chosen| chosen == value.as_bytes())
        }
        Flag::Setting { option, key, value, exact } => match find_setting(words, option, key) {
            Some((index, key_start)) => !exact || words[index][key_start..] == *format!("{key}={value}").as_bytes(),
            None => false,
        },
        Flag::Item { option, separator, item } => words.iter().any(|word| match word.strip_prefix(option.as_bytes()) {
            Some(list) => items(list, separator).any(|other| is_option_called(other, item)),
            None => false,
        }),
    }
}

/// True if the word is this option, with or without `=VALUE`. V8 also accepts `_` instead of `-` in long options.
fn is_option_called(word: &[u8], option: &str) -> bool {
    if word == option.as_bytes() {
        return true;
    }
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    let is_same = |(one, other): (&u8, u8)| *one == other || (*one, other) == (b'_', b'-');
    word.starts_with(b"--") && name.len() == option.len() && name.iter().zip(option.bytes()).all(is_same)
}

/// True if the word is the option `group` or another one whose name extends it: for `--zjit`, also `--zjit-stats` and
/// `--zjit=…`.
fn is_option_of(word: &[u8], group: &str) -> bool {
    word.strip_prefix(group.as_bytes()).is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'=')))
}

/// The items of a list such as `a,b`, between which `separator` stands. The option before the list isn't part of
/// `list`.
fn items(list: &[u8], separator: char) -> impl Iterator<Item = &[u8]> {
    list.split(move |byte| u32::from(*byte) == u32::from(separator))
}

/// Finds the word that sets a key of an option: `-dKEY=VALUE`, or `KEY=VALUE` after the word `-d`. If there are
/// several, the last. Returns the word's index, and the offset in it where the key starts. `None` if no word sets the
/// key.
fn find_setting(words: &[Vec<u8>], option: &str, key: &str) -> Option<(usize, usize)> {
    let is_key = |text: &[u8]| text.strip_prefix(key.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='));
    for (index, word) in words.iter().enumerate().rev() {
        // The option and the key may be in one word or in two.
        if word.strip_prefix(option.as_bytes()).is_some_and(is_key) {
            return Some((index, option.len()));
        }
        if index > 0 && words[index - 1] == option.as_bytes() && is_key(word) {
            return Some((index, 0));
        }
    }
    None
}

impl Runtime {
    /// A clause that says how to make the runtime write names. `None` if it can't write any.
    pub fn advice(&'static self) -> Option<String> {
        self.advice_for(RunFacts::default())
    }

    /// A clause that says how to make the runtime of a process write names: all switches that this process can use,
    /// best first. `None` if there are none.
    pub fn advice_for(&'static self, facts: RunFacts<'_>) -> Option<String> {
        let mut advice = String::new();
        for switch in self.usable_switches(facts) {
            if advice.is_empty() {
                advice += &switch.instructions(self.called);
            } else {
                advice += &format!(", or {}", switch.further_instructions(self.called));
            }
            advice += &format!(" (writes {})", switch.leaves.join(", "));
        }
        if advice.is_empty() { None } else { Some(advice) }
    }

    /// The switches for writing names that a process can use: the runtime's version has them, and no option of the
    /// process rules them out. If a runtime has several JIT compilers, some switches work for one of them only; the
    /// names of the process's memory show which compiler runs, and then only its switches are usable.
    pub fn usable_switches<'a>(&'static self, facts: RunFacts<'a>) -> impl Iterator<Item = &'static Switch> + use<'a> {
        let has_its_memory = |switch: &Switch| {
            !switch.memory.is_empty() && facts.memory.iter().any(|name| Shape::Holds(switch.memory).fits(name))
        };
        let is_compiler_known = self.switches.iter().any(has_its_memory);
        self.switches.iter().filter(move |switch| {
            let is_refused = facts.command.is_some_and(|command| self.refuses(switch, command));
            switch.is_in(facts.version) && !is_refused && (!is_compiler_known || has_its_memory(switch))
        })
    }

    /// The best of the switches for writing names that the process can use and that options or environment variables
    /// can turn on. It may be on already. If the version isn't known, a switch that older versions have, too, is
    /// preferred. `None` if there is no such switch.
    pub fn best_switch(&'static self, facts: RunFacts<'_>) -> Option<&'static Switch> {
        // `usable_switches` lists the best switch first.
        let mut switches = self.usable_switches(facts).filter(|switch| switch.can_be_set());
        let first = switches.next()?;
        if facts.version.is_some() {
            return Some(first);
        }
        let mut chosen = first;
        for switch in switches {
            // Prefer a switch that older versions have, too. But one that every version has (`since` is `None`) writes
            // another kind of file, such as the JVM's compilation log, so it doesn't replace the first one. No runtime
            // in the table has more than one switch that is older than its first, so the loop needn't compare these.
            if switch.since.is_some() && switch.since < first.since {
                chosen = switch;
            }
        }
        Some(chosen)
    }

    /// How `perf record` should record stacks so that they continue past JIT code of this runtime. It depends on the
    /// switch for writing names; the best usable one is assumed or, if none can be turned on, the first in the table.
    /// Frame pointers if the runtime has no switch.
    pub fn stacks(&'static self, facts: RunFacts<'_>) -> Stacks {
        let best = self.best_switch(facts).or_else(|| self.switches.first());
        best.map_or(Stacks::FramePointers, |switch| switch.stacks)
    }
}

impl Runtime {
    /// True if `word` is an option whose value is the next word.
    fn takes_next_word(&self, word: &[u8]) -> bool {
        let mut flags = self.switches.iter().flat_map(|switch| switch.flags);
        let is_flag_with_value = flags.any(|flag| match *flag {
            Flag::Pair(option, _) | Flag::Choice(option, _) | Flag::Setting { option, .. } => option.as_bytes() == word,
            Flag::Word(_) | Flag::Needed(_) | Flag::Item { .. } => false,
        });
        is_flag_with_value || self.options_with_value.iter().any(|option| option.as_bytes() == word)
    }

    /// The words of all options that the runtime receives, from the command line and from environment variables such as
    /// `NODE_OPTIONS`.
    fn received_options(&self, command: CommandLine<'_>) -> Vec<Vec<u8>> {
        let mut words = OwnOptions::find(self, command.words).map_or_else(Vec::new, |options| options.list().to_vec());
        for variable in self.flag_variables {
            let value = command.variable(variable.name).unwrap_or_default();
            match variable.list_of {
                // The value of such a variable is a list of items. Write it like the option for such a list on the
                // command line: as one word.
                Some(option) => words.push([option.as_bytes(), value].concat()),
                None => words.extend(value.split(u8::is_ascii_whitespace).map(<[u8]>::to_vec)),
            }
        }
        words
    }

    /// True if the runtime receives this flag, as far as the command line and the environment are known.
    pub fn receives(&self, flag: Flag, command: CommandLine<'_>) -> bool {
        has_flag(&self.received_options(command), flag)
    }

    /// True if flags or environment variables turn on the switch, as far as the command line and the environment are
    /// known.
    pub fn is_switched_on(&self, switch: &Switch, command: CommandLine<'_>) -> bool {
        switch.main_flag().is_some_and(|flag| self.receives(flag, command)) || self.is_set_by_variable(switch, command)
    }

    /// True if an environment variable turns on the switch, so that child processes inherit it. False if the command
    /// has an option that makes the runtime ignore environment variables.
    pub fn is_set_by_variable(&self, switch: &Switch, command: CommandLine<'_>) -> bool {
        if self.ignores_environment(command.words) {
            return false;
        }
        // Only the first variable turns on the switch; see `Switch::variables`.
        if switch.variables.first().is_some_and(|(name, value)| is_set(name, value, command)) {
            return true;
        }
        let Some(flag) = switch.main_flag() else { return false };
        // Variables such as `NODE_OPTIONS` may contain the switch's flag. Look for it in the environment and in the
        // assignments of `env` at the start of the command, but not among the options of the command: child processes
        // don't inherit these.
        let variables_only = CommandLine { words: &[], ..command };
        let with_env = CommandLine { words: env_and_assignments(command.words), ..command };
        has_flag(&self.received_options(variables_only), flag) || has_flag(&self.received_options(with_env), flag)
    }

    /// True if the runtime would reject the switch, because it also receives an option that is incompatible with it.
    pub fn refuses(&self, switch: &Switch, command: CommandLine<'_>) -> bool {
        let options = self.received_options(command);
        options.iter().any(|word| switch.incompatible_options.iter().any(|group| is_option_of(word, group)))
    }

    /// The option that the runtime receives and that makes it leave code out of the files of the switch. `None` if it
    /// receives no such option.
    pub fn spoiler(&self, switch: &'static Switch, command: CommandLine<'_>) -> Option<&'static str> {
        let options = self.received_options(command);
        switch.spoiling_options.iter().copied().find(|option| options.iter().any(|word| is_option_called(word, option)))
    }

    /// True if the command runs this runtime with an option that makes it ignore environment variables, such as
    /// `python -I`.
    pub fn ignores_environment(&self, words: &[Vec<u8>]) -> bool {
        OwnOptions::find(self, words).is_some_and(|options| self.ignores_variables(options.list()))
    }

    /// True if one of these options makes the runtime ignore environment variables, such as `-I` of Python. Letters of
    /// short options may be combined in one word, such as `-sI`.
    fn ignores_variables(&self, options: &[Vec<u8>]) -> bool {
        for word in options.iter().filter(|word| !word.starts_with(b"--")) {
            for letter in word.iter().skip(1) {
                if self.letters_with_value.as_bytes().contains(letter) {
                    // This letter is an option with a value. The value is the rest of the word, so no more options
                    // follow in it.
                    break;
                }
                if self.ignoring_variables.as_bytes().contains(letter) {
                    return true;
                }
            }
        }
        false
    }

    /// Adds to a command the flags or variables that are missing to turn on the switch. `None` if neither can turn it
    /// on. `DIR` in the values of variables is replaced by `directory`.
    pub fn correct(&self, switch: &Switch, command: CommandLine<'_>, directory: &str) -> Option<CorrectedCommand> {
        self.correct_with_flag(switch, None, command, directory)
    }

    /// Adds to a command what is missing to turn on the switch: the switch's environment variables if it has any and
    /// the program doesn't ignore them, otherwise the switch's flags. Together with flags, also adds `flag`, which
    /// isn't part of the switch. A command of another program, which may start the runtime, only gets variables
    /// ([`Self::correct_by_variable`]). `DIR` in the values of variables is replaced by `directory`.
    pub fn correct_with_flag(
        &self,
        switch: &Switch,
        flag: Option<Flag>,
        command: CommandLine<'_>,
        directory: &str,
    ) -> Option<CorrectedCommand> {
        let Some(options) = OwnOptions::find(self, command.words) else {
            return self.correct_by_variable(switch, flag, command, directory);
        };
        // Remove the options that keep names out of the files that the switch writes. The runtime's other options are
        // then the words from `start` to `end`.
        let mut kept = options.list().to_vec();
        kept.retain(|word| !switch.spoiling_options.iter().any(|option| is_option_called(word, option)));
        let start = options.start;
        let end = start + kept.len();
        let mut words = command.words.to_vec();
        words.splice(start..options.end, kept);
        let received = self.received_options(CommandLine { words: &words, ..command });
        let missing = missing_flags(switch, flag, &received);
        let reads_variables = !switch.variables.is_empty() && !self.ignores_variables(options.list());
        // Prefer variables, because child processes inherit them. But if all flags are there already, nothing needs to
        // be added.
        if switch.flags.is_empty() || (reads_variables && !missing.is_empty()) {
            let variables = self.missing_variables(switch, command, directory);
            return Some(CorrectedCommand { variables: assign_within_env(variables, &mut words), words });
        }
        add_flags(&mut words, start, end, &missing);
        Some(CorrectedCommand { variables: Vec::new(), words })
    }

    /// Adds to a command the environment variables that are missing to turn on the switch; unlike flags, they also
    /// reach programs that the command starts. If the switch has no variables, its flags and `flag` are put into the
    /// runtime's first variable for flags. `None` if the runtime has none, or if an option of the command makes it
    /// ignore variables. `DIR` in values is replaced by `directory`.
    pub fn correct_by_variable(
        &self,
        switch: &Switch,
        flag: Option<Flag>,
        command: CommandLine<'_>,
        directory: &str,
    ) -> Option<CorrectedCommand> {
        let mut words = command.words.to_vec();
        if self.ignores_environment(command.words) {
            return None;
        }
        if !switch.variables.is_empty() {
            let variables = self.missing_variables(switch, command, directory);
            return Some(CorrectedCommand { variables: assign_within_env(variables, &mut words), words });
        }
        let variable = self.flag_variables.first().filter(|_| !switch.flags.is_empty())?;
        // Flags that the command line contains are added to the variable all the same: on the command line, they don't
        // reach child processes.
        let received = self.received_options(CommandLine { words: env_and_assignments(command.words), ..command });
        let mut value = String::new();
        for flag in missing_flags(switch, flag, &received) {
            let separator = if value.is_empty() { "" } else { variable.separator() };
            // Writing to a string can't fail.
            let _ = match (flag, variable.list_of) {
                // The variable's value is just the list, so only the item is added, without the option that precedes
                // the list on a command line.
                (Flag::Item { item, .. }, Some(_)) => write!(value, "{separator}{item}"),
                _ => write!(value, "{separator}{flag}"),
            };
        }
        let mut variables = Vec::new();
        if !value.is_empty() {
            let is_set = command.environment.has(variable.name);
            let separator = variable.separator().chars().next();
            variables.push(Assignment { name: variable.name, value, separator, is_set });
        }
        Some(CorrectedCommand { variables: assign_within_env(variables, &mut words), words })
    }

    /// Assignments for those variables of a switch that don't have the right value yet. `DIR` in the values is replaced
    /// by `directory`.
    fn missing_variables(&self, switch: &Switch, command: CommandLine<'_>, directory: &str) -> Vec<Assignment> {
        let mut missing = Vec::new();
        for &(name, value) in switch.variables {
            if !is_set(name, value, command) {
                missing.push(Assignment {
                    name,
                    value: value.replace("DIR", directory),
                    separator: None,
                    is_set: command.environment.has(name),
                });
            }
        }
        missing
    }
}

/// The flags of a switch that are missing among the options that the runtime receives, followed by `flag` if that is
/// missing, too.
fn missing_flags(switch: &Switch, flag: Option<Flag>, received: &[Vec<u8>]) -> Vec<Flag> {
    let mut missing: Vec<Flag> = switch.flags.iter().copied().filter(|flag| !has_flag(received, *flag)).collect();
    if let Some(flag) = flag
        && !has_flag(received, flag)
        && !missing.contains(&flag)
    {
        missing.push(flag);
    }
    missing
}

/// Makes assignments in the command line itself if `env` at its start already assigns the same variable, as in `env
/// NODE_OPTIONS=-x npm test`: `env` would override an assignment before the command. Returns the other assignments,
/// which have to be put before the command. `words` is the whole command line.
fn assign_within_env(variables: Vec<Assignment>, words: &mut [Vec<u8>]) -> Vec<Assignment> {
    let mut remaining = Vec::new();
    let env_len = env_and_assignments(words).len();
    for variable in variables {
        let start = format!("{}=", variable.name);
        // If `env` assigns the variable several times, the last assignment counts.
        match words[..env_len].iter_mut().rev().find(|word| word.starts_with(start.as_bytes())) {
            Some(word) => {
                let whole = variable.append_to(Some(&word[start.len()..]));
                *word = [start.as_bytes(), &whole].concat();
            }
            None => remaining.push(variable),
        }
    }
    remaining
}

/// The start of a command line that begins with `env`: `env` itself and all options and assignments after it, up to the
/// command that `env` runs. Empty if the command line doesn't begin with `env`.
fn env_and_assignments(words: &[Vec<u8>]) -> &[Vec<u8>] {
    if words.first().is_none_or(|first| base_name(first) != b"env") {
        return &[];
    }
    let is_of_env = |word: &&Vec<u8>| word.contains(&b'=') || word.starts_with(b"-");
    let count = words[1..].iter().take_while(is_of_env).count();
    &words[..=count]
}

/// True if the variable already has this value. If the value contains `DIR`, any directory will do, so every value that
/// isn't empty counts.
fn is_set(name: &str, value: &str, command: CommandLine<'_>) -> bool {
    let set = command.variable(name).unwrap_or_default();
    if value.contains("DIR") { !set.is_empty() } else { set == value.as_bytes() }
}

/// Adds flags to a runtime's options, which are the words from `start` to `end`. If a word already has another value of
/// the same choice or key, or a list of the same option, that word is changed. All other flags are inserted at `start`,
/// in their order.
fn add_flags(words: &mut Vec<Vec<u8>>, start: usize, end: usize, missing: &[Flag]) {
    let mut added: Vec<Vec<u8>> = Vec::new();
    for flag in missing {
        match *flag {
            Flag::Word(word) | Flag::Needed(word) => added.push(word.into()),
            Flag::Pair(option, value) => added.extend([option.into(), value.into()]),
            Flag::Choice(option, value) => {
                match words[start..end].iter().rposition(|word| word == option.as_bytes()) {
                    // The option is there, but its value is missing: the value would be the word at `end`.
                    Some(index) if start + index + 1 >= end => words.insert(start + index + 1, value.into()),
                    Some(index) => words[start + index + 1] = value.into(),
                    None => added.extend([option.into(), value.into()]),
                }
            }
            Flag::Setting { option, key, value, .. } => match find_setting(&words[start..end], option, key) {
                Some((index, key_start)) => {
                    let word = &mut words[start + index];
                    word.truncate(key_start);
                    word.extend_from_slice(format!("{key}={value}").as_bytes());
                }
                None => added.extend([option.into(), format!("{key}={value}").into_bytes()]),
            },
            Flag::Item { option, separator, item } => {
                // The list may be among the runtime's options, or have been added for an earlier flag.
                let is_list = |word: &&mut Vec<u8>| word.starts_with(option.as_bytes());
                match words[start..end].iter_mut().chain(&mut added).find(is_list) {
                    Some(list) => list.extend_from_slice(format!("{separator}{item}").as_bytes()),
                    None => added.push([option, item].concat().into()),
                }
            }
        }
    }
    words.splice(start..start, added);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shell;
    use crate::runtimes::RUNTIMES;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn runtime(name: &str) -> &'static Runtime {
        RUNTIMES.iter().find(|runtime| runtime.name == name).unwrap()
    }

    fn known(variables: &[(&str, &str)]) -> Environment {
        let owned = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        Environment::Known(variables.iter().map(owned).collect())
    }

    fn corrected(name: &str, line: &str, environment: &Environment) -> String {
        let runtime = runtime(name);
        let words = words(line);
        let command = CommandLine { words: &words, environment };
        let switch = runtime.switches.iter().find(|switch| switch.can_be_set()).unwrap();
        let Some(CorrectedCommand { variables, words }) = runtime.correct(switch, command, "/run") else {
            return "cannot".to_owned();
        };
        let variables = variables.iter().map(|variable| variable.for_shell() + " ").collect::<String>();
        variables + &shell::line(words.iter().map(|word| &word[..]))
    }

    #[test]
    fn flags_go_behind_the_program_and_what_is_there_stays() {
        let none = &known(&[]);
        let node = "--perf-prof --interpreted-frames-native-stack";
        for (name, line, wanted) in [
            ("Node.js", "node app.js", format!("node {node} app.js")),
            ("Node.js", "node --perf-prof app.js", "node --interpreted-frames-native-stack --perf-prof app.js".to_owned()),
            // Arguments of the script aren't node's.
            ("Node.js", "node app.js --perf-prof", format!("node {node} app.js --perf-prof")),
            ("Node.js", "node -r x --perf-prof --interpreted-frames-native-stack a", format!("node -r x {node} a")),
            ("Node.js", "env A=b nice -n 5 node app.js", format!("env A=b nice -n 5 node {node} app.js")),
            ("deno", "deno run -A --v8-flags=--perf-prof x.ts", "deno run -A --v8-flags=--perf-prof,--interpreted-frames-native-stack x.ts".to_owned()),
            ("deno", "deno x.ts", "deno --v8-flags=--perf-prof,--interpreted-frames-native-stack x.ts".to_owned()),
            ("PHP", "php x.php", "php -d opcache.jit_debug=48 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=tracing -d opcache.file_update_protection=0 x.php".to_owned()),
            ("PHP", "php -dopcache.jit_debug=16 -d opcache.jit=function -d opcache.enable_cli=1 -d opcache.jit_buffer_size=1M x", "php -d opcache.file_update_protection=0 -dopcache.jit_debug=48 -d opcache.jit=function -d opcache.enable_cli=1 -d opcache.jit_buffer_size=1M x".to_owned()),
            ("Erlang", "erl -noshell -run hot", "erl +JPperf true -noshell -run hot".to_owned()),
            ("Erlang", "erl +JPperf true -noshell", "erl +JPperf true -noshell".to_owned()),
            ("Erlang", "erl -noshell +JPperf dump +S 1", "erl -noshell +JPperf true +S 1".to_owned()),
            ("Erlang", "erl +JPperf true +JPperf map", "erl +JPperf true +JPperf true".to_owned()),
            ("Erlang", "erl +JPperf map -s x +JPperf", "erl +JPperf true -s x +JPperf".to_owned()),
            ("OpenJDK", "java -cp a:b -XX:+PreserveFramePointer Main -XX:+DumpPerfMapAtExit", "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp a:b -XX:+PreserveFramePointer Main -XX:+DumpPerfMapAtExit".to_owned()),
            ("Bun", "bun run x.ts", "BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/run bun run x.ts".to_owned()),
        ] {
            assert_eq!(corrected(name, line, none), wanted, "{line}");
        }
    }

    #[test]
    fn through_other_programs_variables_do_it() {
        let npm = "npm test";
        let flags = "--perf-prof --interpreted-frames-native-stack";
        assert_eq!(corrected("Node.js", npm, &known(&[])), format!("NODE_OPTIONS='{flags}' npm test"));
        let some = known(&[("NODE_OPTIONS", "-r ./x --perf-prof")]);
        let wanted = "NODE_OPTIONS=\"$NODE_OPTIONS --interpreted-frames-native-stack\" npm test";
        assert_eq!(corrected("Node.js", npm, &some), wanted);
        let wanted = format!("NODE_OPTIONS=\"${{NODE_OPTIONS:+$NODE_OPTIONS }}{flags}\" npm test");
        assert_eq!(corrected("Node.js", npm, &Environment::Unknown), wanted);
        assert_eq!(
            corrected("deno", "make", &known(&[])),
            "DENO_V8_FLAGS=--perf-prof,--interpreted-frames-native-stack make"
        );
        assert_eq!(
            corrected("CPython", "make", &known(&[("PYTHONPERFSUPPORT", "1")])),
            "PYTHON_PERF_JIT_SUPPORT=1 make"
        );
        assert_eq!(corrected("PHP", "composer test", &known(&[])), "cannot", "PHP reads no variable for it");
        let all = known(&[("NODE_OPTIONS", flags)]);
        assert_eq!(corrected("Node.js", "node a.js", &all), "node a.js");
    }

    #[test]
    fn what_env_assigns_is_changed_in_place() {
        let flags = "--perf-prof --interpreted-frames-native-stack";
        for (name, line, wanted) in [
            ("Node.js", "env A=b NODE_OPTIONS=-x npm test", format!("env A=b 'NODE_OPTIONS=-x {flags}' npm test")),
            ("CPython", "env PYTHON_PERF_JIT_SUPPORT=0 make", "env PYTHON_PERF_JIT_SUPPORT=1 make".to_owned()),
            ("Node.js", "env A=b npm test", format!("NODE_OPTIONS='{flags}' env A=b npm test")),
        ] {
            assert_eq!(corrected(name, line, &known(&[])), wanted, "{line}");
        }
    }

    #[test]
    fn an_interpreter_that_ignores_variables_gets_an_option() {
        let set = known(&[("PYTHON_PERF_JIT_SUPPORT", "1")]);
        for (line, environment, wanted) in [
            ("python3 -I a.py", &set, "python3 -X perf_jit -I a.py"),
            ("python3 -sE a.py", &set, "python3 -X perf_jit -sE a.py"),
            ("python3 -I -X perf_jit a.py", &set, "python3 -I -X perf_jit a.py"),
            ("python3 a.py -I", &set, "python3 a.py -I"),
            (
                "env PYTHON_PERF_JIT_SUPPORT=1 python3 -I a.py",
                &known(&[]),
                "env PYTHON_PERF_JIT_SUPPORT=1 python3 -X perf_jit -I a.py",
            ),
        ] {
            assert_eq!(corrected("CPython", line, environment), wanted, "{line}");
            let python = runtime("CPython");
            let words = words(line);
            let is_on = python.is_switched_on(&python.switches[0], CommandLine { words: &words, environment });
            assert_eq!(is_on, line == wanted, "{line}");
        }
    }

    #[test]
    fn values_are_joined_or_set() {
        let joined = Assignment { name: "X", value: "b".into(), separator: Some(' '), is_set: Some(true) };
        assert_eq!(joined.append_to(Some(b"a")), b"a b");
        assert_eq!(joined.append_to(None), b"b");
        let set = Assignment { separator: None, ..joined };
        assert_eq!(set.append_to(Some(b"a")), b"b");
    }

    #[test]
    fn correcting_twice_adds_nothing() {
        for runtime in RUNTIMES {
            for switch in runtime.switches.iter().filter(|switch| switch.can_be_set()) {
                let own: Vec<u8> = runtime.called.into();
                for line in [vec![own.clone(), b"app".to_vec()], vec![b"make".to_vec()]] {
                    let environment = known(&[]);
                    let Some(first) =
                        runtime.correct(switch, CommandLine { words: &line, environment: &environment }, "/d")
                    else {
                        continue;
                    };
                    assert!(first.words != line || !first.variables.is_empty(), "{}: {line:?}", runtime.name);
                    let set = first.variables.iter().map(|set| (set.name.as_bytes().to_vec(), set.append_to(None)));
                    let environment = Environment::Known(set.collect());
                    let command = CommandLine { words: &first.words, environment: &environment };
                    assert!(runtime.is_switched_on(switch, command), "{}: {first:?}", runtime.name);
                    let again = runtime.correct(switch, command, "/d").unwrap();
                    assert_eq!((again.variables.len(), again.words), (0, first.words.clone()), "{}", runtime.name);
                }
            }
        }
    }
}
