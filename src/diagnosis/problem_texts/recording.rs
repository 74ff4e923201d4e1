//! The texts about problems of the recording as a whole, of its stacks, and of the files that ran.

use super::process::process_text;
use super::text::{BUILD, MUCH, PART, ProblemText, SOME, listed, text};
use crate::diagnosis::problem::{NamedFile, Problem};
use crate::model::abi::machine_name;
use crate::model::printable::readable;
use crate::resolve::symbols::no_elf::NoElf;

/// A sampling rate in samples per second. At this rate or above, we don't advise to sample more often.
const OFTEN: u64 = 900;

/// A size in bytes. We don't advise to reduce the size of stack copies if it is at most this.
const SMALL_COPY: u32 = 8192;

/// The largest stack copy that perf supports, in bytes.
const LARGEST_COPY: u32 = 65528;

/// The texts about any problem.
pub(crate) fn problem_text(problem: &Problem) -> ProblemText {
    match *problem {
        Problem::OfProcess(ref process, ref problem) => process_text(process, problem),
        Problem::NoSamples { is_clock } => {
            let event = if is_clock { "" } else { ", or record another event (-e cpu-clock works everywhere)" };
            ProblemText::new(
                "no-samples",
                "the recording has no samples",
                "the recording has no samples",
                format!(
                    "record for longer, while the program is busy (perf record -a records all processes){event}"
                ),
            )
        }
        Problem::FewSamples { samples, frequency } => ProblemText::new(
            "few-samples",
            "there are too few samples for meaningful percentages",
            format!("it has only {samples} samples, too few for meaningful percentages"),
            match frequency {
                Some(OFTEN..) => "record for longer",
                _ => "record for longer, or at a higher rate (perf record -F 999)",
            },
        ),
        Problem::Damaged { ref why } => ProblemText::new(
            "recording-damaged",
            "the recording is damaged or truncated",
            format!("it is damaged: {}", readable(why.as_bytes())),
            "let perf record finish (stop it with Ctrl-C or kill -INT), with enough disk space, and copy the whole \
             file",
        ),
        Problem::Lost { lost, copied } => ProblemText::new(
            "samples-lost",
            "perf did not keep up and lost samples",
            format!("perf record did not keep up and lost {lost} samples"),
            format!(
                "record less (a lower -F{}), or give perf larger buffers (-m)",
                if copied > SMALL_COPY { ", smaller copies (--call-graph dwarf,8192)" } else { "" }
            ),
        ),
        Problem::NoCallChains => ProblemText::new(
            "no-call-chains",
            "no call chains were recorded",
            "no call chains were recorded, so only the innermost functions are known",
            "record with perf record -g or --call-graph dwarf",
        ),
        Problem::Vdso { is_here } => ProblemText::new(
            "vdso",
            "functions in the vdso have no names",
            "[vdso] is a page of the recorded kernel, not a file, and its symbols are not available here",
            if is_here {
                "record again: this is not the recorded kernel, or perf recorded no build IDs (-B, -z or a pipe)"
            } else {
                "run jitgraft pack perf.data on the recorded machine while that kernel is running; the archive keeps \
                 its symbols"
            },
        )
        .above(SOME),
        Problem::Kernel { is_given: true, .. } => ProblemText::new(
            "kernel-symbols",
            "kernel functions have no names",
            "the kernel symbols you passed are not those of the recorded kernel",
            "pass a copy of the recorded machine's /proc/kallsyms, made by root while the recorded kernel is running",
        ),
        Problem::Kernel { hidden, is_given: false } => {
            let (cause, remedy) = if hidden {
                (
                    "kernel functions have no names: perf record was not allowed to see the kernel's addresses",
                    "record as root, or run sysctl kernel.kptr_restrict=0 first",
                )
            } else {
                (
                    "the recorded kernel's symbols are not available here",
                    "pass a copy of the recorded machine's /proc/kallsyms with --kallsyms, made by root \
                     (kernel.kptr_restrict hides addresses from others)",
                )
            };
            ProblemText::new(
                "kernel-symbols",
                "kernel functions have no names",
                cause,
                remedy,
            )
        }
        Problem::Guest => ProblemText::new(
            "guest",
            "samples are in the guest of a virtual machine",
            "samples are in the guest of a virtual machine",
            "its symbols are inside the guest; record there",
        )
        .above(MUCH),
        Problem::Nowhere { example } => {
            let example = example.map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
            ProblemText::new(
                "nowhere",
                "frames have addresses where nothing was mapped",
                format!("frames have addresses where nothing was mapped{example}"),
                "these are probably not return addresses, or their memory was never reported; nothing can name them",
            )
            .above(MUCH)
        }
        Problem::MapMissing { ref script } => ProblemText::new(
            "source-map-missing",
            "minified JavaScript ran, and no [source map](recipes.md#source-maps-authored-names-for-bundled-javascript) was found for it",
            format!("{} is minified and has no source map, so its functions have generated names", text(script)),
            "make the build write a source map (esbuild --sourcemap; webpack devtool: 'source-map'; rollup \
             output.sourcemap; \
                     Vite build.sourcemap; tsc sourceMap; swc, Babel sourceMaps; terser --source-map), or pass it with \
                     --source-maps FILE=SCRIPT",
        )
        .above(PART),
        Problem::MapMisfit { ref script, ref map, ref why } => ProblemText::new(
            "source-map-misfit",
            "a script's source map can't be read, belongs to another build, or the script isn't the one that ran",
            format!("the source map {} of {} was not used: {}", text(map), text(script), text(why)),
            "keep the script and map of the recorded build, and pass them with --source-maps FILE=SCRIPT and --symfs \
             DIR",
        ),
        Problem::ChainsCut { limit, is_chosen } => ProblemText::new(
            "call-chains-cut",
            "stacks have more frames than the kernel was set to record (`kernel.perf_event_max_stack`, or `max-stack` \
             of the event)",
            format!("stacks are cut off: the kernel was set to record at most {limit} frames"),
            if is_chosen {
                format!("record again without max-stack={limit}")
            } else {
                format!("run sysctl kernel.perf_event_max_stack={} as root, then record \
                         again", (u32::from(limit) * 8).max(1024))
            },
        ),
        Problem::TooDeep { limit } => ProblemText::new(
            "stacks-too-deep",
            "stacks have more frames than jitgraft unwinds (`--max-stack`)",
            "stacks are cut off: they have more frames than jitgraft unwinds",
            format!("unwind more frames with --max-stack {}", limit.saturating_mul(8).max(1024)),
        ),
        Problem::NoUnwinder { machine } => ProblemText::new(
            "no-unwinder",
            "stacks were copied on an architecture that jitgraft cannot unwind",
            format!(
                "callers are missing: stacks were copied, but jitgraft cannot unwind copies from {}",
                machine_name(machine)
            ),
            format!("record with -g, and {BUILD}"),
        ),
        Problem::CopiesShort { bytes } => {
            let remedy = match bytes.saturating_mul(2) > LARGEST_COPY {
                true => "perf cannot copy more; build with -fno-omit-frame-pointer and record with -g \
                         instead".to_owned(),
                false => format!("record larger copies with --call-graph dwarf,{LARGEST_COPY}"),
            };
            ProblemText::new(
                "stack-copies-short",
                "stacks are larger than their copies (`--call-graph dwarf,BYTES`)",
                format!("stacks are cut off: they are larger than their copies of {bytes} bytes"),
                remedy,
            )
        }
        Problem::FilesGone { ref files, same_machine, container } => {
            let is_deleted = files.iter().all(|file| file.path.ends_with(" (deleted)"));
            let cause = match (is_deleted, same_machine) {
                (true, _) => format!("{} deleted or replaced while running", listed(files, "was", "were")),
                (false, true) => format!("{} deleted or moved since the recording", listed(files, "was", "were")),
                (false, false) => format!("{} missing", listed(files, "is", "are")),
            };
            let remedy = match (container, is_deleted, same_machine) {
                (Some(_), ..) => "they are in a container; pass its root with --symfs DIR (/proc/PID/root while it \
                                  runs)",
                (_, true, _) => "don't rebuild during a recording; start the new version and record that",
                (.., true) => {
                    "restore the files that ran, pass a directory that has them at the recorded paths (--symfs DIR), \
                     or record again"
                }
                _ => {
                    "run jitgraft pack perf.data on the recorded machine and read the archive here, or pass that \
                     machine's root with --symfs DIR"
                }
            };
            ProblemText::new(
                "files-missing",
                "files that ran are missing: deleted, on another machine, or in a container",
                cause,
                remedy,
            )
        }
        Problem::OtherVersion { ref files } => ProblemText::new(
            "other-version",
            "files that ran exist only in a different version",
            format!("{} not the version that ran", listed(files, "is", "are")),
            format!(
                "find the version that ran (perf archive on the recorded machine{}) and put it into ~/.debug or pass \
                 its root with --symfs DIR, or record again",
                build_id(files).map_or_else(String::new, |id| format!(", or debuginfod-find executable {id}"))
            ),
        ),
        Problem::NotElf { ref files, what, runtime } => {
            let (kind, each) = if files.len() == 1 { ("an ELF file", "") } else { ("ELF files", "each ") };
            let unnamed = runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
            let remedy = match (unnamed, what) {
                (Some(unnamed), _) => unnamed,
                (None, NoElf::DotNet) => {
                    "run with DOTNET_PerfMapEnabled=1 DOTNET_ReadyToRun=0 in the environment (COMPlus_… before .NET \
                     6), so that code is compiled at run time and reported to perf"
                }
                (None, _) => "only the runtime that made them knows their names; it may be able to write a perf map \
                              or a jitdump",
            };
            ProblemText::new(
                "not-elf",
                "code ran in files of a format that jitgraft does not read, such as SBCL cores or .NET's PE files",
                format!("{} not {kind} but {each}{}, so it has no symbols to \
                         read", listed(files, "is", "are"), what.name()),
                remedy,
            )
        }
        Problem::Stripped { ref files, by_go } => ProblemText::new(
            "stripped",
            "a program of your own has no symbols",
            format!("{} built without symbols or stripped", listed(files, "was", "were")),
            if by_go {
                "build with plain go build (no -ldflags=-s, no strip) and record that. Go functions don't need \
                 symbols, but C code (cgo) and obfuscated or packed programs do"
            } else {
                "build with -g (Rust: debug = true in the profile) and don't strip (no -s), and record that. Or keep \
                 the file with the symbols next to it (objcopy --add-gnu-debuglink), or pass its directory with \
                 --debug-dir"
            },
        ),
        Problem::StrippedPackages { ref files } => ProblemText::new(
            "stripped-packages",
            "programs and libraries from packages have no symbols",
            format!("{} stripped, so only exported functions have names", listed(files, "is", "are")),
            match build_id(files) {
                Some(id) => format!(
                    "install their debugging symbols (on Debian, the -dbgsym packages), or fetch them by build ID \
                     (debuginfod-find debuginfo {id}) and pass the directory with --debug-dir"
                ),
                None => "install their debugging symbols (on Debian, the -dbgsym packages)".to_owned(),
            },
        )
        .above(SOME),
        Problem::Symbolless { ref files } => ProblemText::new(
            "no-symbol-there",
            "a file has symbols, but none at addresses that ran",
            format!("{} no symbols at some addresses", listed(files, "has", "have")),
            "it may be padding, or code without symbols; debugging information may name more (--debug-dir DIR)",
        )
        .above(MUCH),
    }
}

fn build_id(files: &[NamedFile]) -> Option<&str> {
    files.iter().find_map(|file| file.build_id.as_deref())
}
