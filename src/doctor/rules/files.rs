//! Finds problems with the ELF files that ran, and with the kernel's symbols.

use super::super::causes::Cause;
use super::super::context::DoctorContext;
use super::super::finding::{Finding, Highlight, PROCESS, Share};
use super::super::kind::FindingKind;
use super::super::tally::AffectedCounts;
use super::super::wording::{list_with_verb, printable_path};
use super::jit::UnnamedCode;
use super::neighbors::Neighbors;
use crate::model::code_file::image_process;
use crate::model::mapping_kind::base_name;
use crate::model::{Addr, Pid};
use crate::runtimes::{Runtime, RuntimeSet};
use crate::symbolize::Location;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::symbols::image::Image;
use crate::symbolize::symbols::no_elf::NoElf;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The problem that a file has, by which files are grouped: all files of a group are reported in one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileGroup {
    /// A missing ELF image with JIT code of this process, which `inject` wrote.
    Image(Pid),
    /// A missing file that isn't such an image.
    Gone,
    /// A file that exists, but not in the version that ran.
    OtherVersion,
    /// A file whose format isn't ELF, so that jitgraft can't read symbols from it.
    NotElf(NoElf),
    /// A stripped file that the user built.
    OwnBuild,
    /// A stripped file that Go's compiler built.
    Go,
    /// A stripped file that comes from a package, or a stripped runtime: the user didn't build it.
    Packaged,
    /// A file with symbols, but none for some of the code that ran.
    Symbolless,
}

/// Finds problems with the files and the kernel whose code ran. Files with the same problem are reported together.
pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut groups = BTreeMap::<FileGroup, Vec<(DsoId, AffectedCounts)>>::new();
    let mut found = Vec::new();
    let mut nowhere = AffectedCounts::default();
    for (&cause, &affected) in &context.tally.causes {
        match cause {
            Cause::Missing(id) | Cause::OtherVersion(id) if context.dso(id).is_vdso() => {
                found.push(report_vdso(context.dso(id).kind, context.share(affected), context));
            }
            // The missing file is memory that a program shares with its forked children. No such file can be found, so
            // its code is reported as JIT code.
            Cause::Missing(id)
                if is_memory(&context.dso(id).path)
                    && let Some(pid) = mapped_by(&[id], context) =>
            {
                let code = UnnamedCode::new(pid, context.share(affected), context);
                found.push(code.explain(&Neighbors::list(context)));
            }
            Cause::Missing(id) => groups.entry(missing_group(id, context)).or_default().push((id, affected)),
            // In a recording from another machine, it is normal that files of the same path differ here. So report the
            // file as missing.
            Cause::OtherVersion(id) if !context.origin.is_here => {
                groups.entry(missing_group(id, context)).or_default().push((id, affected));
            }
            Cause::OtherVersion(id) => groups.entry(FileGroup::OtherVersion).or_default().push((id, affected)),
            Cause::NotElf(id, what) => groups.entry(FileGroup::NotElf(what)).or_default().push((id, affected)),
            Cause::Stripped(id) => groups.entry(stripped_group(id, context)).or_default().push((id, affected)),
            Cause::Gap(id) => groups.entry(FileGroup::Symbolless).or_default().push((id, affected)),
            Cause::Kernel => found.push(report_kernel(context.share(affected), context)),
            Cause::Guest => found.push(Finding::new(
                FindingKind::Guest,
                context.share(affected),
                "samples are in the guest of a virtual machine",
                "the symbols are inside the guest; run perf record there",
            )),
            Cause::Nowhere(_) => nowhere.merge(affected),
            // `jit` reports unnamed code in memory that no file backs.
            Cause::Memory(_) => {}
        }
    }
    if nowhere.frames > 0 {
        found.push(report_nowhere(context.share(nowhere), context));
    }
    found.extend(groups.into_iter().map(|(group, files)| group_finding(group, files, context)));
    found
}

/// Reports all files of a group (files with the same problem) in one finding. Their counts are added up, and the files
/// with the most affected frames are listed first.
fn group_finding(group: FileGroup, mut files: Vec<(DsoId, AffectedCounts)>, context: DoctorContext<'_>) -> Finding {
    files.sort_by_key(|(id, affected)| (Reverse(affected.frames), *id));
    let mut sum = AffectedCounts::default();
    for (_, affected) in &files {
        sum.merge(*affected);
    }
    // A sample was added once for each file of the group in its stack, so the sum may exceed the number of samples.
    sum.samples = sum.samples.min(context.tally.samples);
    let ids: Vec<DsoId> = files.into_iter().map(|(id, _)| id).collect();
    let files = name_files(&ids, context);
    let share = context.share(sum);
    match group {
        FileGroup::Image(pid) => report_images(pid, &ids, share, context),
        FileGroup::Gone => {
            let same_machine = context.origin.is_here && has_recorded_file(context);
            files_missing(&files, share, same_machine, is_in_container(&ids, context))
        }
        FileGroup::OtherVersion => other_version(&files, share),
        FileGroup::NotElf(what) => {
            let runtime = mapped_by(&ids, context).and_then(|pid| context.process(pid).runtime);
            not_elf(&files, share, what, runtime)
        }
        FileGroup::OwnBuild => stripped(&files, share),
        FileGroup::Go => Finding::new(
            FindingKind::Stripped,
            share,
            format!("{} built without symbols or stripped", list_files(&files, "was", "were")),
            "build with plain go build (no -ldflags=-s, no strip) and record the new build. Without symbols, C code \
             (cgo) has no names; nor do Go functions in obfuscated or packed programs",
        )
        .with_highlight(unnamed_in(&files)),
        FileGroup::Packaged => stripped_packages(&files, share),
        FileGroup::Symbolless => Finding::new(
            FindingKind::NoSymbolThere,
            share,
            format!("{} no symbols at some addresses that were sampled", list_files(&files, "has", "have")),
            "these addresses may be padding, or code without symbols; files with debugging information may name more \
             (--debug-dir DIR)",
        )
        .with_highlight(unnamed_in(&files)),
    }
}

/// A file of the recording, as messages mention it.
pub(in super::super) struct NamedFile {
    /// The file's path as recorded.
    pub(in super::super) path: String,
    /// The file's build ID in hexadecimal digits; `None` if it wasn't recorded.
    pub(in super::super) build_id: Option<String>,
}

/// Looks up the paths and build IDs of the files. The same file from several containers has several numbers in the
/// recording, because each copy is another inode, but it is listed only once.
fn name_files(ids: &[DsoId], context: DoctorContext<'_>) -> Vec<NamedFile> {
    let mut files = Vec::new();
    let mut listed = BTreeSet::new();
    for dso in ids.iter().map(|id| context.dso(*id)) {
        if listed.insert((&dso.path, dso.build_id)) {
            let path = String::from_utf8_lossy(dso.label()).into_owned();
            let build_id = dso.build_id.map(|id| id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect());
            files.push(NamedFile { path, build_id });
        }
    }
    files
}

/// Lists the files, followed by the form of the verb (`singular` or `plural`) that agrees with their number, such as
/// `/bin/a and /bin/b are`.
fn list_files(files: &[NamedFile], singular: &str, plural: &str) -> String {
    list_with_verb(&paths(files), singular, plural)
}

fn paths(files: &[NamedFile]) -> Vec<String> {
    files.iter().map(|file| file.path.clone()).collect()
}

fn unnamed_in(files: &[NamedFile]) -> Highlight {
    Highlight::UnnamedInFiles(paths(files))
}

fn build_id(files: &[NamedFile]) -> Option<&str> {
    files.iter().find_map(|file| file.build_id.as_deref())
}

/// Reports that functions in the vdso have no names. `kind` says whether it is the vdso of 64-bit or of 32-bit
/// processes.
fn report_vdso(kind: DsoKind, share: Share, context: DoctorContext<'_>) -> Finding {
    let cause = "[vdso] is a page of the recorded kernel, not a file, and its symbols are not available here";
    let remedy = if kind == DsoKind::Vdso32 {
        "this is the vdso of 32-bit processes; neither perf nor jitgraft saves its symbols. The functions that call it \
         are named as usual"
    } else if context.origin.is_here {
        "this machine now runs another kernel, or perf recorded no build IDs (with -B, -z or a pipe, it leaves them \
         out); record again without these"
    } else {
        "run jitgraft pack perf.data on the recorded machine while it still runs the recorded kernel; the archive \
         keeps the symbols"
    };
    Finding::new(FindingKind::Vdso, share, cause, remedy)
}

/// Reports kernel functions without names. There are three cases: the user passed symbols of another kernel, perf was
/// not allowed to see the kernel's addresses, or the recorded kernel's symbols are not here.
fn report_kernel(share: Share, context: DoctorContext<'_>) -> Finding {
    // The recording contains the address of a kernel symbol. It is 0 if the user was not allowed to see kernel
    // addresses.
    let reference = context.examined.resolution.spaces.kernel_reference();
    let is_hidden = reference.is_none_or(|reference| reference.addr.0 == 0);
    let (cause, remedy) = if context.examined.resolution.has_given_kernel() {
        (
            "the kernel symbols you passed are not those of the recorded kernel",
            "while the recorded machine still runs the recorded kernel, copy its /proc/kallsyms as root and pass the \
             copy with --kallsyms",
        )
    } else if is_hidden {
        (
            "kernel functions have no names: perf record was not allowed to see the kernel's addresses",
            "record as root, or run sysctl kernel.kptr_restrict=0 first",
        )
    } else {
        (
            "the recorded kernel's symbols are not available here",
            "copy the recorded machine's /proc/kallsyms as root and pass the copy with --kallsyms \
             (kernel.kptr_restrict hides the addresses from users other than root)",
        )
    };
    Finding::new(FindingKind::KernelSymbols, share, cause, remedy).with_highlight(Highlight::UnnamedKernel)
}

/// Reports frames that have no name because no code was mapped at their addresses.
fn report_nowhere(share: Share, context: DoctorContext<'_>) -> Finding {
    let example = nowhere_example(context).map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
    Finding::new(
        FindingKind::Nowhere,
        share,
        format!("frames have addresses where no code was mapped{example}"),
        "these addresses are probably not return addresses, or perf did not record what was mapped there; nothing can \
         name such frames",
    )
    .with_highlight(Highlight::UnnamedNowhere)
}

/// Reports missing ELF images of JIT code. `perf inject` or `jitgraft inject` replaced JIT code in the recording by
/// these images, so now only they have its names.
fn report_images(pid: Pid, ids: &[DsoId], share: Share, context: DoctorContext<'_>) -> Finding {
    let path = ids.first().map(|id| PathBuf::from(OsStr::from_bytes(&context.dso(*id).path))).unwrap_or_default();
    let more = if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { String::new() };
    Finding::new(
        FindingKind::InjectedImagesGone,
        share,
        format!(
            "names were injected for {PROCESS}, but the images jitted-*.so with the names are gone: {}{more}",
            printable_path(&path)
        ),
        "run jitgraft inject again on the original recording, with its dumps: jitgraft inject -i perf.data -o \
         new.data. Or put the images back where they were",
    )
    .with_process(&context.process(pid))
    .with_highlight(Highlight::UnnamedImages)
}

/// Reports missing files whose code ran. `same_machine` is true if other files of the recording are here in the version
/// that ran: then the missing ones were deleted or moved on this machine. `in_container` is true if the process that
/// mapped the first of them ran in a container.
fn files_missing(files: &[NamedFile], share: Share, same_machine: bool, in_container: bool) -> Finding {
    let is_deleted = files.iter().all(|file| file.path.ends_with(" (deleted)"));
    let cause = match (is_deleted, same_machine) {
        (true, _) => format!("{} deleted or replaced while running", list_files(files, "was", "were")),
        (false, true) => format!("{} deleted or moved since the recording", list_files(files, "was", "were")),
        (false, false) => format!("{} missing", list_files(files, "is", "are")),
    };
    let remedy = if in_container {
        "the files are in a container; pass its root with --symfs DIR (/proc/PID/root while the process is running)"
    } else if is_deleted {
        "don't rebuild or upgrade during a recording; start the new version and record it"
    } else if same_machine {
        "restore the files that ran, pass a directory that has them at the recorded paths (--symfs DIR), or record \
         again"
    } else {
        "run jitgraft pack perf.data on the recorded machine and read the archive here, or pass that machine's root \
         with --symfs DIR"
    };
    Finding::new(FindingKind::FilesMissing, share, cause, remedy).with_highlight(unnamed_in(files))
}

/// Reports files that exist here, but in another version than the one that ran.
fn other_version(files: &[NamedFile], share: Share) -> Finding {
    let debuginfod = build_id(files).map_or_else(String::new, |id| format!(", or debuginfod-find executable {id}"));
    Finding::new(
        FindingKind::OtherVersion,
        share,
        format!("{} not the version that ran", list_files(files, "is", "are")),
        format!(
            "get the version that ran (perf archive on the recorded machine{debuginfod}), then put it into ~/.debug, \
             or pass a directory that has it at the recorded path (--symfs DIR). Otherwise, record again"
        ),
    )
    .with_highlight(unnamed_in(files))
}

/// Reports files whose code ran but stays unnamed, because they aren't ELF files and jitgraft can't read symbols from
/// them. `what` is their format, and `runtime` is the runtime that generated them, if it is known.
fn not_elf(files: &[NamedFile], share: Share, what: NoElf, runtime: Option<&Runtime>) -> Finding {
    let (kind, each) = if files.len() == 1 { ("an ELF file", "") } else { ("ELF files", "each ") };
    let is_dotnet = what == NoElf::DotNet || runtime.is_some_and(|runtime| runtime.name == ".NET");
    let remedy = match runtime {
        _ if is_dotnet => "run with DOTNET_PerfMapEnabled=1 DOTNET_ReadyToRun=0 in the environment (COMPlus_… \
                               before .NET 6), so that code is compiled at run time and reported to perf"
            .to_owned(),
        Some(runtime) if runtime.switches.is_empty() => runtime.cannot_name(),
        _ => "only the runtime that made this code knows its names; it may be able to write a perf map or a jitdump"
            .to_owned(),
    };
    Finding::new(
        FindingKind::NotElf,
        share,
        format!(
            "{} not {kind} but {each}{}, so there are no symbols to read",
            list_files(files, "is", "are"),
            what.name()
        ),
        remedy,
    )
    .with_highlight(unnamed_in(files))
}

/// Reports files that the user has built and that have no symbols. The remedy is to build with them or to pass them.
pub(in super::super) fn stripped(files: &[NamedFile], share: Share) -> Finding {
    Finding::new(
        FindingKind::Stripped,
        share,
        format!("{} built without symbols or stripped", list_files(files, "was", "were")),
        "build with -g (Rust: debug = true in the profile), don't strip (no -s), and record the new build. Or, if you \
         have the symbols in another file, put that next to the stripped one (with objcopy --add-gnu-debuglink) or \
         pass its directory with --debug-dir",
    )
    .with_highlight(unnamed_in(files))
}

/// Reports files from packages that have no symbols. The remedy is to install or fetch their debugging symbols.
pub(in super::super) fn stripped_packages(files: &[NamedFile], share: Share) -> Finding {
    let remedy = match build_id(files) {
        Some(id) => format!(
            "install their debugging symbols (on Debian, the -dbgsym packages), or fetch them by build ID \
             (debuginfod-find debuginfo {id}) and pass the directory with --debug-dir"
        ),
        None => "install their debugging symbols (on Debian, the -dbgsym packages)".to_owned(),
    };
    Finding::new(
        FindingKind::StrippedPackages,
        share,
        format!("{} stripped, so only exported functions have names", list_files(files, "is", "are")),
        remedy,
    )
    .with_highlight(unnamed_in(files))
}

/// True if a mapping with this path is memory, not a file that the user could find: shared memory (`shm_open`), or a
/// temporary file that never had a name (`O_TMPFILE`).
fn is_memory(path: &[u8]) -> bool {
    let Some(path) = path.strip_suffix(b" (deleted)") else { return false };
    path.starts_with(b"/dev/shm/") || base_name(path).starts_with(b"#")
}

/// Decides by its name whether a missing file is an image that `inject` wrote for JIT code, or an ordinary file.
fn missing_group(id: DsoId, context: DoctorContext<'_>) -> FileGroup {
    match image_process(&context.dso(id).path) {
        Some(Some(pid)) => FileGroup::Image(pid),
        _ => FileGroup::Gone,
    }
}

/// The group of a file without symbols, by who built it: Go's compiler, a distribution or the user. The remedies
/// differ.
fn stripped_group(id: DsoId, context: DoctorContext<'_>) -> FileGroup {
    if context.examined.resolution.images.get(id).is_some_and(Image::is_go) {
        return FileGroup::Go;
    }
    // A runtime counts as packaged wherever its file is, because nobody builds a runtime just to profile a program.
    let path = &context.dso(id).path;
    let is_runtime = RuntimeSet::from_files(std::iter::once(&path[..])).first().is_some();
    if is_runtime || is_packaged(path) { FileGroup::Packaged } else { FileGroup::OwnBuild }
}

/// True if the file comes from the system or a package manager, so that the user didn't build it.
pub(in super::super) fn is_packaged(path: &[u8]) -> bool {
    // Directories below `/usr` whose files don't come from the package manager.
    const OWN: &[&str] = &["/usr/local/", "/usr/src/"];
    const PACKAGED: &[&str] =
        &["/usr/", "/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/nix/store/", "/gnu/store/", "/snap/", "[vdso]"];
    let starts_with_any = |starts: &[&str]| starts.iter().any(|start| path.starts_with(start.as_bytes()));
    starts_with_any(PACKAGED) && !starts_with_any(OWN)
}

/// True if at least one of the files in which samples are is on this machine, in the version that ran.
fn has_recorded_file(context: DoctorContext<'_>) -> bool {
    let mut files = BTreeSet::new();
    for place in context.examined.samples.chains.places() {
        if let Location::File(id, _) = place.location
            && context.dso(id).kind == DsoKind::File
        {
            files.insert(id);
        }
    }
    let images = &context.examined.resolution.images;
    files.into_iter().any(|id| images.get(id).is_some())
}

/// True if a process that mapped the first of these files ran in a container.
fn is_in_container(files: &[DsoId], context: DoctorContext<'_>) -> bool {
    mapped_by(files, context).is_some_and(|pid| context.inner_pid(pid).is_some())
}

/// Any process that mapped the first of these files. `None` if there is none.
fn mapped_by(files: &[DsoId], context: DoctorContext<'_>) -> Option<Pid> {
    let path = &context.dso(*files.first()?).path;
    let mut processes = context.examined.resolution.survey.processes.by_pid.iter();
    let (pid, _) = processes.find(|(_, process)| process.mappings.iter().any(|map| map.path == *path))?;
    Some(*pid)
}

/// Any sampled address at which nothing was mapped, as an example in a message. `None` if there is none.
fn nowhere_example(context: DoctorContext<'_>) -> Option<Addr> {
    context.examined.samples.chains.places().iter().find_map(|place| match place.location {
        Location::Nothing(addr) if addr.0 != u64::MAX => Some(addr),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_distinguished_from_files_that_were_deleted() {
        for memory in ["/dev/shm/ZendAccelerator.7 (deleted)", "/tmp/#1234 (deleted)"] {
            assert!(is_memory(memory.as_bytes()), "{memory}");
        }
        for file in ["/dev/shm/code", "/opt/app (deleted)", "/opt/#1"] {
            assert!(!is_memory(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn own_builds_are_distinguished_from_packages() {
        for own in ["/home/x/app", "/usr/local/bin/app", "/tmp/libx.so", "/opt/x/app", "app"] {
            assert!(!is_packaged(own.as_bytes()), "{own}");
        }
        for packaged in ["/usr/bin/php8.2", "/lib/x86_64-linux-gnu/libc.so.6", "/nix/store/x-y/bin/z", "[vdso]"] {
            assert!(is_packaged(packaged.as_bytes()), "{packaged}");
        }
    }
}
