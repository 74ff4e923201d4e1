//! The texts about problems of the recording as a whole, of its stacks, and of the files that ran.

use super::process::process_text;
use super::text::{BUILD, MUCH, PART, ProblemText, SOME, listed, text};
use crate::diagnosis::problem::{NamedFile, Problem};
use crate::model::abi::machine_name;
use crate::model::printable::readable;
use crate::resolve::symbols::no_elf::NoElf;

/// Samples per second. At this rate or above, we don't advise to sample more often.
const OFTEN: u64 = 900;

/// In bytes. Stack copies up to this size need not be smaller.
const SMALL_COPY: u32 = 8192;

/// The largest stack copy that perf supports, in bytes.
const LARGEST_COPY: u32 = 65528;

/// The texts about a problem.
pub(crate) fn problem_text(problem: &Problem) -> ProblemText {
    match *problem {
        Problem::OfProcess(ref process, ref problem) => process_text(process, problem),
        Problem::NoSamples { is_clock } => {
            let event = if is_clock { "" } else { ", or another event: -e cpu-clock counts everywhere" };
            ProblemText::new(
                "no-samples",
                "nothing was sampled",
                "it contains no samples",
                format!(
                    "record for longer, while the program is busy (perf record -a records all processes){event}"
                ),
            )
        }
        Problem::FewSamples { samples, frequency } => ProblemText::new(
            "few-samples",
            "there are too few samples: shares are chance",
            format!("there are only {samples} samples in it: shares are chance"),
            match frequency {
                Some(OFTEN..) => "record longer",
                _ => "record longer, or more often: perf record -F 999",
            },
        ),
        Problem::Damaged { ref why } => ProblemText::new(
            "recording-damaged",
            "the recording is damaged, or its end is missing",
            format!("it is damaged: {}", readable(why.as_bytes())),
            "let perf record end by itself (stop it by Ctrl-C, or kill -INT), with room on the disk; copy the whole file",
        ),
        Problem::Lost { lost, copied } => ProblemText::new(
            "samples-lost",
            "perf lost samples: it did not keep up",
            format!("perf record did not keep up and lost {lost} samples"),
            format!(
                "record less: a lower -F{}; or give perf more room: a larger -m",
                if copied > SMALL_COPY { ", smaller copies (--call-graph dwarf,8192)" } else { "" }
            ),
        ),
        Problem::NoCallChains => ProblemText::new(
            "no-call-chains",
            "no call chains were recorded",
            "no call chains were recorded: only the innermost functions are known",
            "record with perf record -g, or --call-graph dwarf",
        ),
        Problem::Vdso { is_here } => ProblemText::new(
            "vdso",
            "the kernel's functions for programs (vdso) have no names",
            "[vdso] is a page of the recorded kernel, not a file, and its symbols are not known here",
            if is_here {
                "record again: this kernel is another one than the recorded one, or perf recorded no build ID (-B, -z, a pipe)"
            } else {
                "on the recorded machine, while that kernel runs, jitgraft pack perf.data keeps its symbols"
            },
        )
        .above(SOME),
        Problem::Kernel { is_given: true, .. } => ProblemText::new(
            "kernel-symbols",
            "the kernel's functions have no names",
            "the kernel symbols that were given are not those of the recorded kernel",
            "give the /proc/kallsyms of the recorded machine, read by root, while the kernel runs that was recorded",
        ),
        Problem::Kernel { hidden, is_given: false } => {
            let (cause, remedy) = if hidden {
                (
                    "the kernel's functions have no names: perf record was not shown where the kernel is",
                    "record as root, with sysctl kernel.kptr_restrict=0",
                )
            } else {
                (
                    "the recorded kernel's symbols are not known here",
                    "give --kallsyms a copy of the recorded machine's /proc/kallsyms, read by root (kernel.kptr_restrict hides its \
                     addresses from others)",
                )
            };
            ProblemText::new(
                "kernel-symbols",
                "the kernel's functions have no names",
                cause,
                remedy,
            )
        }
        Problem::Guest => ProblemText::new(
            "guest",
            "code of a virtual machine's guest ran",
            "code of a virtual machine's guest ran",
            "its symbols are inside the guest: record there",
        )
        .above(MUCH),
        Problem::Nowhere { example } => {
            let example = example.map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
            ProblemText::new(
                "nowhere",
                "frames are at addresses where nothing was mapped",
                format!("addresses where nothing was mapped{example}"),
                "no return addresses, most likely, or memory that was never reported: nothing can name these",
            )
            .above(MUCH)
        }
        Problem::MapMissing { ref script } => ProblemText::new(
            "source-map-missing",
            "minified JavaScript ran, and no [source map](recipes.md#source-maps-authored-names-for-bundled-javascript) was found for it",
            format!("{} is minified and has no source map: its functions have generated names", text(script)),
            "let the build write a source map (esbuild --sourcemap; webpack devtool: 'source-map'; rollup output.sourcemap; \
                     Vite build.sourcemap; tsc sourceMap; swc, Babel sourceMaps; terser --source-map), or pass it with \
                     --source-maps FILE=SCRIPT",
        )
        .above(PART),
        Problem::MapMisfit { ref script, ref map, ref why } => ProblemText::new(
            "source-map-misfit",
            "a script's source map can't be read, belongs to another build, or the script isn't the one that ran",
            format!("the source map {} of {} is not used: {}", text(map), text(script), text(why)),
            "keep script and map of the build that was recorded, and pass them with --source-maps FILE=SCRIPT and --symfs DIR",
        ),
        Problem::ChainsCut { limit, is_chosen } => ProblemText::new(
            "call-chains-cut",
            "stacks have more frames than the kernel may record (`kernel.perf_event_max_stack`, or `max-stack` of the event)",
            format!("stacks are cut: they have more than the {limit} frames that the kernel was allowed to record"),
            if is_chosen {
                format!("record again without max-stack={limit}")
            } else {
                format!("as root: sysctl kernel.perf_event_max_stack={}, then record again", (u32::from(limit) * 8).max(1024))
            },
        ),
        Problem::TooDeep { limit } => ProblemText::new(
            "stacks-too-deep",
            "stacks have more frames than are unwound (`--max-stack`)",
            "stacks are cut: they have more frames than are unwound",
            format!("give --max-stack {}: this many frames are then unwound", limit.saturating_mul(8).max(1024)),
        ),
        Problem::NoUnwinder { machine } => ProblemText::new(
            "no-unwinder",
            "stacks were copied on a machine whose copies cannot be unwound",
            format!(
                "stacks were copied, but copies of {} cannot be unwound: callers are missing",
                machine_name(machine)
            ),
            format!("record with -g, and {BUILD}"),
        ),
        Problem::CopiesShort { bytes } => {
            let remedy = match bytes.saturating_mul(2) > LARGEST_COPY {
                true => "no copy may be longer: build with -fno-omit-frame-pointer and record with -g instead".to_owned(),
                false => format!("record with longer copies: --call-graph dwarf,{LARGEST_COPY}"),
            };
            ProblemText::new(
                "stack-copies-short",
                "stacks are cut where their copies end (`--call-graph dwarf,BYTES`)",
                format!("stacks are cut where their copies end: {bytes} bytes do not hold them"),
                remedy,
            )
        }
        Problem::FilesGone { ref files, same_machine, container } => {
            let is_deleted = files.iter().all(|file| file.path.ends_with(" (deleted)"));
            let cause = match (is_deleted, same_machine) {
                (true, _) => format!("{} deleted or replaced while it ran", listed(files, "was", "were")),
                (false, true) => format!("{} deleted or moved since it ran", listed(files, "was", "were")),
                (false, false) => format!("{} not here", listed(files, "is", "are")),
            };
            let remedy = match (container, is_deleted, same_machine) {
                (Some(_), ..) => "they are in a container: pass its root with --symfs DIR (while it runs /proc/PID/root)",
                (_, true, _) => "do not build while it is recorded; start the new version, and record that",
                (.., true) => {
                    "put back what ran, or give the directory that holds it at the recorded path: --symfs DIR; or record again"
                }
                _ => {
                    "pack the recording there with all that it needs, and read the archive here: jitgraft pack perf.data; or give that \
                     machine's root: --symfs DIR"
                }
            };
            ProblemText::new(
                "files-missing",
                "files that ran are not here: deleted, of another machine, in a container",
                cause,
                remedy,
            )
        }
        Problem::OtherVersion { ref files } => ProblemText::new(
            "other-version",
            "files that ran are here in another version",
            format!("{} here in another version than the one that ran", listed(files, "is", "are")),
            format!(
                "find the version that ran (perf archive on the recorded machine{}), and put it into ~/.debug or pass its root with --symfs DIR; or record again",
                build_id(files).map_or_else(String::new, |id| format!(", or debuginfod-find executable {id}"))
            ),
        ),
        Problem::NotElf { ref files, what, runtime } => {
            let (kind, each) = if files.len() == 1 { ("an ELF file", "") } else { ("ELF files", "each ") };
            let unnamed = runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
            let remedy = match (unnamed, what) {
                (Some(unnamed), _) => unnamed,
                (None, NoElf::DotNet) => {
                    "run with DOTNET_PerfMapEnabled=1 DOTNET_ReadyToRun=0 (before .NET 6 COMPlus_…) in the environment: its code is then compiled at run time and reported to perf"
                }
                (None, _) => "only what made them can name their code: it may write a perf map or a jitdump",
            };
            ProblemText::new(
                "not-elf",
                "code ran in files of a format that is not read: SBCL's core, .NET's PE",
                format!("{} not {kind} ({each}{}): no symbols can be read", listed(files, "is", "are"), what.name()),
                remedy,
            )
        }
        Problem::Stripped { ref files, by_go } => ProblemText::new(
            "stripped",
            "a program of one's own has no symbols",
            format!("{} built without symbols, or stripped of them", listed(files, "was", "were")),
            if by_go {
                "build with plain go build (no -ldflags=-s, no strip), and record that: Go's own functions are named without \
                 symbols, but C code (cgo) is not, nor is a program that was obfuscated or packed"
            } else {
                "build with -g (Rust: debug = true in the profile), do not strip (no -s), and record that; or keep the file with \
                     the symbols beside it (objcopy --add-gnu-debuglink) or pass its directory with --debug-dir"
            },
        ),
        Problem::StrippedPackages { ref files } => ProblemText::new(
            "stripped-packages",
            "programs and libraries of packages have no symbols",
            format!("{} stripped: only the symbols for linking are left", listed(files, "is", "are")),
            match build_id(files) {
                Some(id) => format!(
                    "install the debugging symbols of these (Debian: the packages' -dbgsym), or fetch them by build ID \
                     (debuginfod-find debuginfo {id}) and pass their directory with --debug-dir"
                ),
                None => "install the debugging symbols of these (Debian: the packages' -dbgsym)".to_owned(),
            },
        )
        .above(SOME),
        Problem::Symbolless { ref files } => ProblemText::new(
            "no-symbol-there",
            "a file has symbols, and none at addresses that ran",
            format!("{} no symbol at some addresses", listed(files, "has", "have")),
            "padding, or code that its authors gave no symbol: debugging information may contain more (--debug-dir DIR)",
        )
        .above(MUCH),
    }
}

fn build_id(files: &[NamedFile]) -> Option<&str> {
    files.iter().find_map(|file| file.build_id.as_deref())
}
