//! Finds problems with the ELF files that ran, and with the kernel's symbols.

use super::super::causes::Cause;
use super::super::context::DoctorContext;
use super::super::problem::{Finding, NamedFile, OfProcess, Problem};
use super::super::tally::Spoilt;
use super::jit;
use super::neighbours::Neighbours;
use crate::model::backing::base_name;
use crate::model::{Addr, Pid};
use crate::resolve::Location;
use crate::resolve::dso::{Dso, DsoId, DsoKind};
use crate::resolve::symbols::image::Image;
use crate::resolve::symbols::no_elf::NoElf;
use crate::runtimes::RuntimeSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The kind of problem that a file has. Files of the same group are reported as one finding. `Image` is an ELF image of
/// injected JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileGroup {
    Image(Pid),
    Gone,
    OtherVersion,
    NotElf(NoElf),
    /// A stripped file that the user built.
    OwnBuild,
    /// A stripped file that Go's compiler built.
    Go,
    /// A stripped file from a package.
    Packaged,
    Symbolless,
}

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut groups = BTreeMap::<FileGroup, Vec<(DsoId, Spoilt)>>::new();
    let mut found = Vec::new();
    let mut nowhere = Spoilt::default();
    for (&cause, &spoilt) in &context.tally.causes {
        match cause {
            Cause::Missing(id) | Cause::OtherVersion(id) if context.dso(id).kind == DsoKind::Vdso => {
                found.push(context.finding(Problem::Vdso { is_here: context.origin.is_here }, spoilt));
            }
            // This is memory that a program shares with its forked children, so there is no file to look for.
            Cause::Missing(id) if is_memory(&context.dso(id).path) && mapped_by(&[id], context).is_some() => {
                let process = context.who(mapped_by(&[id], context).unwrap_or_default());
                let problem = jit::explain_unnamed(&process, context, &Neighbours::list(context));
                found.push(context.finding(Problem::OfProcess(process, problem), spoilt));
            }
            Cause::Missing(id) => groups.entry(missing_group(id, context)).or_default().push((id, spoilt)),
            // If the recording is from another machine, it is normal that this one has other versions of the files.
            Cause::OtherVersion(id) if !context.origin.is_here => {
                groups.entry(missing_group(id, context)).or_default().push((id, spoilt));
            }
            Cause::OtherVersion(id) => groups.entry(FileGroup::OtherVersion).or_default().push((id, spoilt)),
            Cause::NotElf(id, what) => groups.entry(FileGroup::NotElf(what)).or_default().push((id, spoilt)),
            Cause::Stripped(id) => groups.entry(stripped_group(id, context)).or_default().push((id, spoilt)),
            Cause::Gap(id) => groups.entry(FileGroup::Symbolless).or_default().push((id, spoilt)),
            Cause::Kernel => {
                // The kernel appears at address 0 to users who may not see where it is.
                let reference = context.examined.resolution.spaces.kernel_reference();
                let hidden = reference.is_none_or(|reference| reference.addr.0 == 0);
                let is_given = context.examined.resolution.has_given_kernel();
                found.push(context.finding(Problem::Kernel { hidden, is_given }, spoilt));
            }
            Cause::Guest => found.push(context.finding(Problem::Guest, spoilt)),
            Cause::Nowhere(_) => nowhere.merge(spoilt),
            Cause::Memory(_) => {}
        }
    }
    if nowhere.frames > 0 {
        found.push(context.finding(Problem::Nowhere { example: nowhere_example(context) }, nowhere));
    }
    found.extend(groups.into_iter().map(|(group, files)| group_finding(group, files, context)));
    found
}

/// Reports all files of a group in one finding.
fn group_finding(group: FileGroup, mut files: Vec<(DsoId, Spoilt)>, context: DoctorContext<'_>) -> Finding {
    files.sort_by_key(|(id, spoilt)| (Reverse(spoilt.frames), *id));
    let mut sum = Spoilt::default();
    for (_, spoilt) in &files {
        sum.merge(*spoilt);
    }
    sum.samples = sum.samples.min(context.tally.samples);
    let ids: Vec<DsoId> = files.into_iter().map(|(id, _)| id).collect();
    let mut files: Vec<NamedFile> = Vec::new();
    // Containers may have copies of the same build, which are mapped as different inodes. List each only once.
    let mut listed = BTreeSet::new();
    for dso in ids.iter().map(|id| context.dso(*id)) {
        if listed.insert((&dso.path, dso.build_id)) {
            files.push(named_file(dso));
        }
    }
    let problem = match group {
        FileGroup::Image(pid) => {
            let path = ids.first().map(|id| PathBuf::from(OsStr::from_bytes(&context.dso(*id).path)));
            let gone = OfProcess::ImagesGone { path: path.unwrap_or_default(), count: ids.len() };
            Problem::OfProcess(context.who(pid), gone)
        }
        FileGroup::Gone => {
            let same_machine = context.origin.is_here && has_recorded_file(context);
            Problem::FilesGone { files, same_machine, container: container(&ids, context) }
        }
        FileGroup::OtherVersion => Problem::OtherVersion { files },
        FileGroup::NotElf(what) => {
            let process = mapped_by(&ids, context).map(|pid| context.who(pid));
            Problem::NotElf { files, what, runtime: process.and_then(|process| process.runtime) }
        }
        FileGroup::OwnBuild => Problem::Stripped { files, by_go: false },
        FileGroup::Go => Problem::Stripped { files, by_go: true },
        FileGroup::Packaged => Problem::StrippedPackages { files },
        FileGroup::Symbolless => Problem::Symbolless { files },
    };
    context.finding(problem, sum)
}

fn named_file(dso: &Dso) -> NamedFile {
    let path = String::from_utf8_lossy(dso.label()).into_owned();
    let build_id = dso.build_id.map(|id| id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect());
    NamedFile { path, build_id }
}

/// True if the path stands for memory that no file backs: shared memory (`shm_open`), or a file that never had a name
/// (`O_TMPFILE`).
fn is_memory(path: &[u8]) -> bool {
    let Some(path) = path.strip_suffix(b" (deleted)") else { return false };
    path.starts_with(b"/dev/shm/") || base_name(path).starts_with(b"#")
}

/// The group of a missing file: an image that `inject` wrote for JIT code of a process, or an ordinary file.
fn missing_group(id: DsoId, context: DoctorContext<'_>) -> FileGroup {
    match image_pid(base_name(&context.dso(id).path)) {
        Some(pid) => FileGroup::Image(pid),
        None => FileGroup::Gone,
    }
}

/// The process ID in the name of an injected image, such as `jitted-77-3.so`.
fn image_pid(name: &[u8]) -> Option<Pid> {
    let middle = std::str::from_utf8(name.strip_prefix(b"jitted-")?.strip_suffix(b".so")?).ok()?;
    let pid = middle.split(['-', '.']).next()?;
    pid.parse().ok().map(Pid)
}

fn stripped_group(id: DsoId, context: DoctorContext<'_>) -> FileGroup {
    if context.examined.resolution.images.get(id).is_some_and(Image::is_go) {
        return FileGroup::Go;
    }
    // Runtimes count as packaged wherever they are, because nobody builds a runtime just to profile a program.
    let path = &context.dso(id).path;
    let is_runtime = RuntimeSet::from_files(std::iter::once(&path[..])).first().is_some();
    if is_runtime || is_packaged(path) { FileGroup::Packaged } else { FileGroup::OwnBuild }
}

/// True if the file comes from the system or a package manager, so that the user didn't build it.
pub(in super::super) fn is_packaged(path: &[u8]) -> bool {
    const OWN: &[&str] = &["/usr/local/", "/usr/src/"];
    const PACKAGED: &[&str] =
        &["/usr/", "/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/nix/store/", "/gnu/store/", "/snap/", "[vdso]"];
    let starts_with_any = |starts: &[&str]| starts.iter().any(|start| path.starts_with(start.as_bytes()));
    starts_with_any(PACKAGED) && !starts_with_any(OWN)
}

/// True if this machine has at least one file of the recording in the version that ran.
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

/// The process ID inside its container of a process that mapped the first of these files. `None` if no containerized
/// process did.
fn container(files: &[DsoId], context: DoctorContext<'_>) -> Option<Pid> {
    mapped_by(files, context).and_then(|pid| context.inner_pid(pid))
}

/// Any process that mapped the first of these files. `None` if there is none.
fn mapped_by(files: &[DsoId], context: DoctorContext<'_>) -> Option<Pid> {
    let path = &context.dso(*files.first()?).path;
    let mut processes = context.examined.resolution.survey.processes.by_pid.iter();
    let (pid, _) = processes.find(|(_, process)| process.mappings.iter().any(|map| map.path == *path))?;
    Some(*pid)
}

/// An address of a sample at which nothing was mapped. `None` if there is none.
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
