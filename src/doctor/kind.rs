//! The kinds of findings. Each has a key, a line in `docs/doctor.md`, and a threshold.

/// The kind of problem that a finding reports. `docs/doctor.md` lists all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingKind {
    CallChainsCut,
    Clock,
    CopiesShort,
    DumpEndsEarly,
    DumpMissing,
    FewSamples,
    FilesMissing,
    FramePointers,
    Guest,
    InjectedImagesGone,
    Interpreted,
    JvmFramePointers,
    KernelSymbols,
    LogClock,
    NoCallChains,
    NoDumpOrMap,
    NoInstructionAddresses,
    NoSamples,
    NoSymbolThere,
    NoUnwinder,
    NotElf,
    NotNamedYet,
    NotUnwound,
    NotWritten,
    Nowhere,
    OtherVersion,
    RecordingDamaged,
    SamplesLost,
    SourceEmpty,
    SourceIncomplete,
    SourceMapMisfit,
    SourceMapMissing,
    SourceOfOtherProcess,
    SourceOfOtherRun,
    SourceOverwritten,
    SourceRefused,
    SourceReplaced,
    SourceTorn,
    StacksTooDeep,
    Stripped,
    StrippedPackages,
    Vdso,
}

/// Threshold in percent for code without names in a process whose JIT code otherwise has names. With a smaller impact,
/// it is probably code that runtimes never report, such as stubs and trampolines.
const STUBS: f64 = 5.0;

/// Threshold in percent for problems with code in which normally only few samples are, such as a library.
const SOME: f64 = 8.0;

/// Threshold in percent for problems with only a part of a program's code, such as minified scripts.
const PART: f64 = 10.0;

/// Threshold in percent for stacks that end early. Some do in every recording: in leaf functions, in libraries without
/// frame pointers, and in threads that begin in assembly code.
const ORDINARY: f64 = 15.0;

/// Threshold in percent for problems that nobody can fix, or that a runtime always has. They are worth reporting only
/// if their impact is large.
const MUCH: f64 = 25.0;

/// The properties of a kind of finding.
struct Entry {
    key: &'static str,
    about: &'static str,
    /// See [`FindingKind::threshold`].
    threshold: f64,
}

impl Entry {
    /// A kind of problem with the default threshold: it is worth reporting if its impact is at least 1%.
    const fn new(key: &'static str, about: &'static str) -> Self {
        Self { key, about, threshold: 1.0 }
    }

    /// Sets the threshold: findings of this kind are minor if their impact is below this percentage.
    const fn with_threshold(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }
}

impl FindingKind {
    /// The key that identifies the kind in JSON. It never changes.
    pub fn key(self) -> &'static str {
        self.entry().key
    }

    /// A line about the kind, the same as in `docs/doctor.md`.
    pub fn about(self) -> &'static str {
        self.entry().about
    }

    /// A problem of this kind is reported as a finding if its impact ([`Share::impact`](super::finding::Share::impact))
    /// is at least this percentage. Otherwise it is listed as minor.
    pub fn threshold(self) -> f64 {
        self.entry().threshold
    }

    /// True for the kinds that explain why JIT code has no names: no file names it, or the file can't be used.
    pub(super) fn is_about_names(self) -> bool {
        matches!(
            self,
            Self::NoDumpOrMap
                | Self::DumpMissing
                | Self::SourceOfOtherProcess
                | Self::SourceRefused
                | Self::SourceEmpty
                | Self::SourceTorn
                | Self::SourceOfOtherRun
                | Self::SourceReplaced
                | Self::SourceOverwritten
                | Self::DumpEndsEarly
        )
    }

    /// True for the kinds that explain why stacks end too early.
    pub(super) fn is_about_stacks(self) -> bool {
        matches!(self, Self::JvmFramePointers | Self::FramePointers | Self::NotUnwound)
    }

    /// True for findings about files without symbols. Findings about JIT code come before these, because users mostly
    /// can't add the symbols themselves.
    pub(super) fn is_about_symbols(self) -> bool {
        matches!(self, Self::Stripped | Self::StrippedPackages | Self::NoSymbolThere)
    }

    /// The properties of a kind of finding: its key in JSON output, what it is about, and the impact from which on it
    /// is significant (1% unless `with_threshold` sets another one). A test compares all kinds with `docs/doctor.md`.
    fn entry(self) -> Entry {
        match self {
            Self::CallChainsCut => Entry::new(
                "call-chains-cut",
                "stacks have more frames than the kernel was set to record (`kernel.perf_event_max_stack`, or \
                 `max-stack` of the event)",
            ),
            Self::Clock => Entry::new(
                "clock",
                "a dump or log uses a different clock than the recording (often for lack of `-k mono`), so some frames \
                 may have the name of other code that was at the same address",
            ),
            Self::CopiesShort => {
                Entry::new("stack-copies-short", "stacks are larger than perf's copies (`--call-graph dwarf,BYTES`)")
            }
            Self::DumpEndsEarly => Entry::new(
                "dump-ends-early",
                "a dump ends before most of the unnamed code ran: the runtime was killed, or had not written everything \
                 yet",
            ),
            Self::DumpMissing => Entry::new("dump-missing", "the jitdump that a process mapped is gone"),
            Self::FewSamples => Entry::new("few-samples", "there are too few samples for meaningful percentages"),
            Self::FilesMissing => Entry::new(
                "files-missing",
                "programs or libraries that ran are missing: deleted, on another machine, or in a container",
            ),
            Self::FramePointers => {
                Entry::new("frame-pointers", "stacks end early in code without frame pointers").with_threshold(ORDINARY)
            }
            Self::Guest => Entry::new("guest", "samples are in the guest of a virtual machine").with_threshold(MUCH),
            Self::InjectedImagesGone => {
                Entry::new("injected-images-gone", "names were injected, but the images `jitted-*.so` are gone")
            }
            Self::Interpreted => {
                Entry::new("interpreted", "the profile shows a program's interpreter instead of its functions")
                    .with_threshold(MUCH)
            }
            Self::JvmFramePointers => Entry::new(
                "jvm-frame-pointers",
                "stacks end early in compiled Java code, which has no frame pointers without \
                 `-XX:+PreserveFramePointer`",
            )
            .with_threshold(ORDINARY),
            Self::KernelSymbols => Entry::new("kernel-symbols", "kernel functions have no names"),
            Self::LogClock => Entry::new(
                "log-clock",
                "the times of an engine's log are only approximate, so some frames may have the name of other code \
                 that was at the same address",
            ),
            Self::NoCallChains => Entry::new("no-call-chains", "no call chains were recorded"),
            Self::NoDumpOrMap => Entry::new(
                "no-dump-or-map",
                "a runtime wrote nothing that names its code, or its file is missing",
            ),
            Self::NoInstructionAddresses => {
                Entry::new("no-instruction-addresses", "a callgrind file was recorded without `--dump-instr=yes`")
            }
            Self::NoSamples => Entry::new("no-samples", "the recording has no samples"),
            Self::NoSymbolThere => {
                Entry::new("no-symbol-there", "a file has symbols, but none for some of the code that ran")
                    .with_threshold(MUCH)
            }
            Self::NoUnwinder => {
                Entry::new("no-unwinder", "stacks were copied on an architecture that jitgraft cannot unwind")
            }
            Self::NotElf => Entry::new(
                "not-elf",
                "code ran in files of a format that jitgraft does not read, such as SBCL cores or .NET's PE files",
            ),
            Self::NotNamedYet => Entry::new(
                "not-named-yet",
                "a callgrind file lacks names that `jitgraft callgrind` can add",
            ),
            Self::NotUnwound => {
                Entry::new("not-unwound", "copied stacks (`--call-graph dwarf`) cannot be unwound completely")
                    .with_threshold(SOME)
            }
            Self::NotWritten => Entry::new(
                "not-written",
                "a running process was started with the option to write names, but wrote none",
            ),
            Self::Nowhere => {
                Entry::new("nowhere", "frames have addresses where no code was mapped").with_threshold(MUCH)
            }
            Self::OtherVersion => {
                Entry::new("other-version", "programs or libraries that ran exist only in a different version")
            }
            Self::RecordingDamaged => Entry::new("recording-damaged", "the recording is damaged or truncated"),
            Self::SamplesLost => Entry::new("samples-lost", "perf did not keep up and lost samples"),
            Self::SourceEmpty => Entry::new("source-empty", "a dump or map contains no code"),
            Self::SourceIncomplete => {
                Entry::new("source-incomplete", "a dump or map is intact, but lacks code that ran")
                    .with_threshold(STUBS)
            }
            Self::SourceMapMisfit => Entry::new(
                "source-map-misfit",
                "a script's source map can't be read or belongs to another build, or the script isn't the one that ran",
            ),
            Self::SourceMapMissing => Entry::new(
                "source-map-missing",
                "minified JavaScript ran, and no [source map](recipes.md#source-maps-authored-names-for-bundled-javascript) \
                 was found for it",
            )
            .with_threshold(PART),
            Self::SourceOfOtherProcess => Entry::new(
                "source-of-other-process",
                "a dump or map next to the recording is from another process, but matches the addresses of unnamed \
                 code",
            ),
            Self::SourceOfOtherRun => {
                Entry::new("source-of-other-run", "the addresses in a dump or map don't match the process's JIT code")
            }
            Self::SourceOverwritten => Entry::new(
                "source-overwritten",
                "two runtimes in a process wrote the same map, and one overwrote the names of the other",
            ),
            Self::SourceRefused => Entry::new(
                "source-refused",
                "a dump or map cannot be used because of its owner, its format or the time when it was written",
            ),
            Self::SourceReplaced => Entry::new(
                "source-replaced",
                "a process ran another program (exec), which overwrote the dump or map of the first program",
            ),
            Self::SourceTorn => Entry::new("source-torn", "a dump or map is damaged or truncated"),
            Self::StacksTooDeep => {
                Entry::new("stacks-too-deep", "stacks have more frames than jitgraft unwinds (`--max-stack`)")
            }
            Self::Stripped => Entry::new("stripped", "a program of your own has no symbols"),
            Self::StrippedPackages => {
                Entry::new("stripped-packages", "programs and libraries from packages have no symbols")
                    .with_threshold(SOME)
            }
            Self::Vdso => Entry::new("vdso", "functions in the vdso have no names").with_threshold(SOME),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_documentation_has_what_is_reported_of_each_key() {
        let source = include_str!("kind.rs").split("mod tests").next().unwrap();
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
        let entries: Vec<&str> = source.split("Entry::new(").skip(1).collect();
        // The key and the line in the documentation are the two arguments of each call.
        let two = |entry: &str| {
            let (key, rest) = entry.trim_start().strip_prefix('"')?.split_once("\", \"")?;
            Some((key.to_owned(), rest.split_once('"')?.0.to_owned()))
        };
        let texts: BTreeSet<(String, String)> = entries.iter().map(|entry| two(entry).unwrap()).collect();
        assert!(texts.len() > 30 && texts.len() == entries.len(), "{texts:?}");
        let document = include_str!("../../docs/doctor.md");
        let rows = document.split("| problem | what was found |").nth(1).unwrap().split("\n\n").next().unwrap();
        let cells =
            rows.lines().skip(2).filter_map(|row| row.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
        let documented: BTreeSet<(String, String)> =
            cells.map(|(key, about)| (key.to_owned(), about.to_owned())).collect();
        assert_eq!(documented, texts);
    }
}
