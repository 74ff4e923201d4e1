//! The texts about problems of a recording as a whole, of its stacks, and of the files that ran.

use super::process;
use super::text::{ANY, BUILD, MUCH, PART, ProblemText, SOME, listed, text};
use crate::diagnosis::problem::{NamedFile, Problem};
use crate::model::abi::machine_name;
use crate::model::printable::readable;
use crate::resolve::symbols::no_elf::NoElf;

/// The greatest copy of a stack that perf takes.
const LARGEST_COPY: u32 = 65528;

/// All that is reported about a problem.
pub(crate) fn problem_text(problem: &Problem) -> ProblemText {
    match *problem {
        Problem::OfProcess(ref process, ref problem) => process::of(process, problem),
        Problem::NoSamples => ProblemText {
            key: "no-samples",
            about: "nothing was sampled",
            threshold: ANY,
            cause: "it contains no samples".to_owned(),
            remedy:
                "record for longer, while the program is busy (perf record -a records all processes), or another event: -e \
                     cpu-clock counts everywhere"
                    .to_owned(),
        },
        Problem::FewSamples { samples } => ProblemText {
            key: "few-samples",
            about: "there are too few samples: shares are chance",
            threshold: ANY,
            cause: format!("there are only {samples} samples in it: shares are chance"),
            remedy: "record longer, or more often: perf record -F 999".to_owned(),
        },
        Problem::Damaged { ref why } => ProblemText {
            key: "recording-damaged",
            about: "the recording is damaged, or its end is missing",
            threshold: ANY,
            cause: format!("it is damaged: {}", readable(why.as_bytes())),
            remedy: "let perf record end by itself (stop it by Ctrl-C, or kill -INT), with room on the disk; copy the whole file"
                .to_owned(),
        },
        Problem::Lost { lost } => ProblemText {
            key: "samples-lost",
            about: "perf lost samples: it did not keep up",
            threshold: ANY,
            cause: format!("perf record did not keep up and lost {lost} samples"),
            remedy: "record less: a lower -F, smaller copies (--call-graph dwarf,8192); or give perf more room: -m 1024"
                .to_owned(),
        },
        Problem::NoCallChains => ProblemText {
            key: "no-call-chains",
            about: "no call chains were recorded",
            threshold: ANY,
            cause: "no call chains were recorded: only the innermost functions are known".to_owned(),
            remedy: "record with perf record -g, or --call-graph dwarf".to_owned(),
        },
        Problem::Kernel { hidden } => {
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
            ProblemText {
                key: "kernel-symbols",
                about: "the kernel's functions have no names",
                threshold: ANY,
                cause: cause.to_owned(),
                remedy: remedy.to_owned(),
            }
        }
        Problem::Guest => ProblemText {
            key: "guest",
            about: "code of a virtual machine's guest ran",
            threshold: MUCH,
            cause: "code of a virtual machine's guest ran".to_owned(),
            remedy: "its symbols are inside the guest: record there".to_owned(),
        },
        Problem::Nowhere { example } => {
            let example = example.map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
            ProblemText {
                key: "nowhere",
                about: "frames are at addresses where nothing was mapped",
                threshold: MUCH,
                cause: format!("addresses where nothing was mapped{example}"),
                remedy: "no return addresses, most likely, or memory that was never reported: nothing can name these"
                    .to_owned(),
            }
        }
        Problem::MapMissing { ref script } => ProblemText {
            key: "source-map-missing",
            about: "minified JavaScript ran, and no [source map](recipes.md#source-maps-authored-names-for-bundled-javascript) was found for it",
            threshold: PART,
            cause: format!("{} is minified and has no source map: its functions have generated names", text(script)),
            remedy: "let the build write a source map (esbuild --sourcemap; webpack devtool: 'source-map'; rollup output.sourcemap; \
                     Vite build.sourcemap; tsc sourceMap; swc, Babel sourceMaps; terser --source-map), or pass it with \
                     --source-maps FILE=SCRIPT"
                .to_owned(),
        },
        Problem::MapMisfit { ref script, ref map, ref why } => ProblemText {
            key: "source-map-misfit",
            about: "a script's source map can't be read, belongs to another build, or the script isn't the one that ran",
            threshold: ANY,
            cause: format!("the source map {} of {} is not used: {}", text(map), text(script), text(why)),
            remedy: "keep script and map of the build that was recorded, and pass them with --source-maps FILE=SCRIPT and --symfs DIR"
                .to_owned(),
        },
        Problem::ChainsCut { limit } => ProblemText {
            key: "call-chains-cut",
            about: "stacks have more frames than the kernel may record (`kernel.perf_event_max_stack`, or `max-stack` of the event)",
            threshold: ANY,
            cause: format!("stacks are cut: they have more than the {limit} frames that the kernel was allowed to record"),
            remedy: format!(
                "as root: sysctl kernel.perf_event_max_stack={}, then record again (without max-stack={limit}, if that was given)",
                (u32::from(limit) * 8).max(1024)
            ),
        },
        Problem::TooDeep => ProblemText {
            key: "stacks-too-deep",
            about: "stacks have more frames than are unwound (`--max-stack`)",
            threshold: ANY,
            cause: "stacks are cut: they have more frames than are unwound".to_owned(),
            remedy: "give --max-stack 1024: this many frames are then unwound".to_owned(),
        },
        Problem::NoUnwinder { machine } => ProblemText {
            key: "no-unwinder",
            about: "stacks were copied on a machine whose copies cannot be unwound",
            threshold: ANY,
            cause: format!(
                "stacks were copied, but copies of {} cannot be unwound: callers are missing",
                machine_name(machine)
            ),
            remedy: format!("record with -g, and {BUILD}"),
        },
        Problem::CopiesShort { bytes } => {
            let remedy = match bytes.saturating_mul(2) > LARGEST_COPY {
                true => "no copy may be longer: build with -fno-omit-frame-pointer and record with -g instead".to_owned(),
                false => format!("record with longer copies: --call-graph dwarf,{LARGEST_COPY}"),
            };
            ProblemText {
                key: "stack-copies-short",
                about: "stacks are cut where their copies end (`--call-graph dwarf,BYTES`)",
                threshold: ANY,
                cause: format!("stacks are cut where their copies end: {bytes} bytes do not hold them"),
                remedy,
            }
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
            ProblemText {
                key: "files-missing",
                about: "files that ran are not here: deleted, of another machine, in a container",
                threshold: ANY,
                cause,
                remedy: remedy.to_owned(),
            }
        }
        Problem::OtherVersion { ref files } => ProblemText {
            key: "other-version",
            about: "files that ran are here in another version",
            threshold: ANY,
            cause: format!("{} here in another version than the one that ran", listed(files, "is", "are")),
            remedy: format!(
                "find the version that ran (perf archive on the recorded machine, or debuginfod-find executable {}), and put it into ~/.debug or pass its root with --symfs DIR; or record again",
                build_id(files)
            ),
        },
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
            ProblemText {
                key: "not-elf",
                about: "code ran in files of a format that is not read: SBCL's core, .NET's PE",
                threshold: ANY,
                cause: format!("{} not {kind} ({each}{}): no symbols can be read", listed(files, "is", "are"), what.name()),
                remedy: remedy.to_owned(),
            }
        }
        Problem::Stripped { ref files } => ProblemText {
            key: "stripped",
            about: "a program of one's own has no symbols",
            threshold: ANY,
            cause: format!("{} built without symbols, or stripped of them", listed(files, "was", "were")),
            remedy: "build with -g (Rust: debug = true in the profile), do not strip (no -s), and record that; or keep the file with \
                     the symbols beside it (objcopy --add-gnu-debuglink) or pass its directory with --debug-dir"
                .to_owned(),
        },
        Problem::StrippedPackages { ref files } => ProblemText {
            key: "stripped-packages",
            about: "programs and libraries of packages have no symbols",
            threshold: SOME,
            cause: format!("{} stripped: only the symbols for linking are left", listed(files, "is", "are")),
            remedy: format!(
                "install the debugging symbols of these (Debian: the packages' -dbgsym), or fetch them by build ID (debuginfod-find \
                 debuginfo {}) and pass their directory with --debug-dir",
                build_id(files)
            ),
        },
        Problem::Symbolless { ref files } => ProblemText {
            key: "no-symbol-there",
            about: "a file has symbols, and none at addresses that ran",
            threshold: MUCH,
            cause: format!("{} no symbol at some addresses", listed(files, "has", "have")),
            remedy:
                "padding, or code that its authors gave no symbol: debugging information may contain more (--debug-dir DIR)"
                    .to_owned(),
        },
    }
}

fn build_id(files: &[NamedFile]) -> &str {
    files.iter().find_map(|file| file.build_id.as_deref()).unwrap_or("BUILD-ID")
}
