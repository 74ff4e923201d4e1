//! Parses `perf record` command lines: perf's own options, and the recorded program (perf-record(1)).

use crate::model::mapping_kind::base_name;

/// A parsed `perf record` command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfCommand<'a> {
    /// The words before the options: perf's own name or path, and `record`.
    pub perf_words: &'a [Vec<u8>],
    /// perf's options and their values.
    pub options: &'a [Vec<u8>],
    /// The program that perf started, and its arguments.
    pub program: &'a [Vec<u8>],
    /// True if perf recorded something other than the program (`-a`, `-p`, …). The program then only determines the
    /// duration.
    pub records_others: bool,
}

/// One of perf's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfOption<'a> {
    /// A letter, or a long name without dashes.
    pub name: &'a [u8],
    /// The value, whether it is in the same word or the next; `None` for flags.
    pub value: Option<&'a [u8]>,
    /// True for the long form: `--name`, `--name=value` or `--name value`.
    is_long: bool,
    /// True for `--name=value`: such an option stays a single word.
    has_equals_sign: bool,
}

impl<'a> PerfCommand<'a> {
    /// Parses a command line. `None` if it isn't one of `perf record`.
    pub fn parse(words: &'a [Vec<u8>]) -> Option<Self> {
        if is_simpleperf(words) {
            return None;
        }
        let record = words.iter().position(|word| word == b"record").filter(|at| *at <= 1)?;
        Some(Self::parse_options(&words[..=record], &words[record + 1..]))
    }

    /// Parses the words after `perf record`. `perf_words` are the words up to and including `record`.
    pub fn parse_options(perf_words: &'a [Vec<u8>], words: &'a [Vec<u8>]) -> Self {
        let (mut end, mut records_others) = (0, false);
        while let Some(word) = words.get(end)
            && word.starts_with(b"-")
            && word != b"--"
        {
            // Options such as `-a` and `-p` record other processes than those of the program.
            records_others |= names_others(word);
            // If the last option lacks its value, there is no next word to skip.
            end = (end + 1 + usize::from(takes_next_word(word))).min(words.len());
        }
        let (options, rest) = words.split_at(end);
        let program = rest.strip_prefix(&[b"--".to_vec()][..]).unwrap_or(rest);
        Self { perf_words, options, program, records_others }
    }

    /// Iterates over perf's options. The word `-ag` gives two, `a` and `g`.
    pub fn each_option(&self) -> impl Iterator<Item = PerfOption<'a>> + use<'a> {
        let (words, mut index) = (self.options, 0);
        let mut options = Vec::new();
        while let Some(word) = words.get(index) {
            let value = if takes_next_word(word) { words.get(index + 1) } else { None };
            options.extend(split_options(word, value.map(|value| &value[..])));
            // Skip the option and, if the next word is its value, that word.
            index += 1 + usize::from(value.is_some());
        }
        options.into_iter()
    }

    /// The value of the last option that has one of these names; `None` if there is none.
    pub fn value(&self, names: &[&str]) -> Option<&'a [u8]> {
        self.each_option().filter(|option| option.is(names)).last()?.value
    }

    /// True if an option with one of these names is given.
    pub fn has(&self, names: &[&str]) -> bool {
        self.each_option().any(|option| option.is(names))
    }
}

/// The recorded program and its arguments, from a command line of Android's `simpleperf record`. Empty if simpleperf
/// recorded processes that were running already. `None` if the command line isn't one of `simpleperf record`.
pub fn simpleperf_program(words: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    /// Options without a value; all others consume the next word (simpleperf/cmd_record.cpp).
    const ALONE: &[&str] = &[
        "-a",
        "-b",
        "-g",
        "-h",
        "--help",
        "--add-counter-id",
        "--decode-etm",
        "--exclude-perf",
        "--exit-with-parent",
        "--in-app",
        "--include-filters",
        "--keep-failed-unwinding-debug-info",
        "--keep-failed-unwinding-result",
        "--log-to-android-buffer",
        "--no-callchain-joiner",
        "--no-cut-samples",
        "--no-dump-build-id",
        "--no-dump-kernel-symbols",
        "--no-dump-symbols",
        "--no-inherit",
        "--no-unwind",
        "--post-unwind",
        "--post-unwind=yes",
        "--post-unwind=no",
        "--record-cycles",
        "--record-timestamp",
        "--trace-offcpu",
    ];
    /// Options that select what is recorded instead of the program on the command line.
    const OTHERS: &[&str] = &["-a", "-p", "-t", "--app", "--system-wide"];
    let is_record = is_simpleperf(words) && words.get(1).is_some_and(|word| word == b"record");
    if !is_record {
        return None;
    }
    let (mut index, mut records_others) = (2, false);
    while let Some(word) = words.get(index)
        && word.starts_with(b"-")
    {
        index += 1;
        if word == b"--" {
            break;
        }
        records_others |= contains_word(OTHERS, word);
        // Skip the option's value.
        if !contains_word(ALONE, word) {
            index += 1;
        }
    }
    if records_others {
        return Some(&[]);
    }
    Some(words.get(index..).unwrap_or_default())
}

fn contains_word(list: &[&str], word: &[u8]) -> bool {
    list.iter().any(|known| known.as_bytes() == word)
}

fn is_simpleperf(words: &[Vec<u8>]) -> bool {
    words.first().is_some_and(|word| base_name(word).starts_with(b"simpleperf"))
}

impl PerfOption<'_> {
    /// True if the option has one of these names.
    pub fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.as_bytes() == self.name)
    }

    /// The option and its value as words of a command line: two words, or a single one for `--name=value`.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let dashed = [if self.is_long { &b"--"[..] } else { b"-" }, self.name].concat();
        match self.value {
            None => vec![dashed],
            Some(value) if self.has_equals_sign => vec![[&dashed[..], b"=", value].concat()],
            Some(value) => vec![dashed, value.to_vec()],
        }
    }
}

/// The options in one word: for example two in `-ag`. `next` is the following word, if it is the value of the last
/// option; otherwise `None`.
fn split_options<'a>(word: &'a [u8], next: Option<&'a [u8]>) -> Vec<PerfOption<'a>> {
    if let Some(long) = word.strip_prefix(b"--") {
        return vec![match long.iter().position(|byte| *byte == b'=') {
            Some(equals) => {
                let (name, value) = (&long[..equals], Some(&long[equals + 1..]));
                PerfOption { name, value, is_long: true, has_equals_sign: true }
            }
            None => PerfOption { name: long, value: next, is_long: true, has_equals_sign: false },
        }];
    }
    let letters = word.strip_prefix(b"-").unwrap_or(word);
    let mut options = Vec::new();
    for (index, letter) in letters.iter().enumerate() {
        let name = &letters[index..=index];
        // The value of such an option is the rest of the word or, if nothing is left, the next word.
        if SHORT_WITH_VALUE.contains(letter) {
            let rest_of_word = &letters[index + 1..];
            let value = if rest_of_word.is_empty() { next } else { Some(rest_of_word) };
            options.push(PerfOption { name, value, is_long: false, has_equals_sign: false });
            break;
        }
        options.push(PerfOption { name, value: None, is_long: false, has_equals_sign: false });
    }
    options
}

/// True if a word is an option that selects processes, threads, users or CPUs, so that perf doesn't record the program
/// that it starts.
fn names_others(word: &[u8]) -> bool {
    /// Options that select what is recorded instead of the program that perf starts.
    const OTHERS: &[&str] = &["a", "p", "t", "u", "C", "all-cpus", "pid", "tid", "uid", "cpu"];
    split_options(word, None).iter().any(|option| option.is(OTHERS))
}

/// Short options with a value, which is the rest of the word or the next word.
const SHORT_WITH_VALUE: &[u8] = b"eFcptuoCmkDjGrW";

/// True if the last option in a word takes the following word as its value.
fn takes_next_word(word: &[u8]) -> bool {
    /// Long options whose value may be the next word.
    const LONG: &[&str] = &[
        "event",
        "freq",
        "count",
        "pid",
        "tid",
        "uid",
        "output",
        "cpu",
        "mmap-pages",
        "clockid",
        "delay",
        "branch-filter",
        "cgroup",
        "realtime",
        "call-graph",
        "filter",
        "max-size",
        "control",
        "affinity",
        "switch-max-files",
        "vmlinux",
        "debuginfod",
        "num-thread-synthesize",
    ];
    if let Some(name) = word.strip_prefix(b"--") {
        return contains_word(LONG, name);
    }
    let Some(letters) = word.strip_prefix(b"-") else { return false };
    // In a word with several letters (`-agF`), the first option that takes a value takes the rest of the word. If
    // nothing is left of the word, the option takes the next word.
    let with_value = letters.iter().position(|letter| SHORT_WITH_VALUE.contains(letter));
    with_value.is_some_and(|index| index + 1 == letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn text(words: &[Vec<u8>]) -> String {
        String::from_utf8(words.join(&b' ')).unwrap()
    }

    #[test]
    fn perf_s_own_words_are_distinguished_from_the_program_s() {
        for (line, options, program) in [
            ("/usr/bin/perf record -k mono -F 999 -g -o x.data node -e 1", "-k mono -F 999 -g -o x.data", "node -e 1"),
            (
                "perf record --call-graph dwarf,4096 -ge cpu-clock -- php x.php",
                "--call-graph dwarf,4096 -ge cpu-clock",
                "php x.php",
            ),
            ("perf record --call-graph=fp -F999 -e cycles ./a.out -g", "--call-graph=fp -F999 -e cycles", "./a.out -g"),
            ("perf record -eapt:x node -a", "-eapt:x", "node -a"),
            ("perf record -o", "-o", ""),
        ] {
            let words = words(line);
            let command = PerfCommand::parse(&words).unwrap();
            assert_eq!((&*text(command.options), &*text(command.program)), (options, program), "{line}");
            assert!(!command.records_others, "{line}");
        }
        for line in ["perf record -g -p 77", "perf record -F 99 -ag -- sleep 5", "perf record --pid=7 sleep 5"] {
            assert!(PerfCommand::parse(&words(line)).unwrap().records_others, "{line}");
        }
        assert_eq!(PerfCommand::parse(&words("simpleperf x")), None);
    }

    #[test]
    fn options_have_values_in_their_word_or_behind_it() {
        let words = words("perf record -ago x.data -F99 --call-graph=dwarf --clockid mono -eapt:x -- node");
        let command = PerfCommand::parse(&words).unwrap();
        let all: Vec<_> = command.each_option().map(|option| (option.name, option.value)).collect();
        let wanted: [(&[u8], Option<&[u8]>); 7] = [
            (b"a", None),
            (b"g", None),
            (b"o", Some(b"x.data")),
            (b"F", Some(b"99")),
            (b"call-graph", Some(b"dwarf")),
            (b"clockid", Some(b"mono")),
            (b"e", Some(b"apt:x")),
        ];
        assert_eq!(all, wanted);
        assert_eq!(command.value(&["o", "output"]), Some(&b"x.data"[..]));
        assert!(command.has(&["g"]) && !command.has(&["p"]));
    }
}
