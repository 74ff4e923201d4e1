//! Finds the file that ran, and other files with its symbols and debug information.
//!
//! | wanted | looked for, in this order |
//! |---|---|
//! | the file that ran | its path (below `--symfs`) · `DIR/.build-id/…/elf` · `DIR/.build-id/…` · `~/.cache/debuginfod_client/…/executable` |
//! | the kernel | `--vmlinux FILE` · `DIR/.build-id/…/vmlinux` · `DIR/.build-id/….debug` · `DIR/boot/vmlinux-RELEASE` · `DIR/lib/modules/RELEASE/vmlinux` · `/boot/vmlinux-RELEASE` · `/lib/modules/RELEASE/build/vmlinux` |
//! | its debug information | itself · `DIR/.build-id/…/debug` · `DIR/.build-id/….debug` · `~/.cache/debuginfod_client/…/debuginfo` · `.gnu_debuglink` next to it, in `.debug/` next to it, and below `DIR` |
//! | parts shared between files (dwz) | `.gnu_debugaltlink`: its path, relative to the file · `DIR/.build-id/…/debug` · `DIR/.build-id/….debug` |
//! | split debug information | `FILE.dwp` next to the file or its debug information |
//!
//! DIR is each `--debug-dir`, then `~/.debug` (perf's cache), then `/usr/lib/debug`. perf's cache, and archives made by
//! `perf archive`, have a directory per build ID; distribution packages have a file. Every file is checked by its build
//! ID, and a debug link of a file without a build ID by its checksum. Files of another build or machine are not used;
//! if nothing better is found, a warning names them.
//!
//! A directory with another machine's root (`--symfs`) may have a library in `/lib` where the recording says
//! `/usr/lib`, or the reverse, because one was a link to the other there. Absolute links are followed within that root.

use super::image::{Image, is_core_dump};
use super::no_elf::{self, NoElf};
use crate::error::{Warning, Warnings};
use crate::io;
use crate::io::door::{Door, Holes, Kind, Named, Start};
use crate::model::abi::machine_name;
use crate::model::process::{BuildId, FileId};
use crate::symbolize::dso::{Dso, DsoKind};
use object::{Object, elf};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where to look for the files that ran and for debug information, and which of them to trust.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Directories that contain the root file system of the recorded machine: each `--symfs DIR`, and files packed with
    /// a recording.
    pub symfs: Vec<PathBuf>,
    /// Each `--debug-dir DIR`: directories laid out like `/usr/lib/debug`, which itself is searched last.
    pub debug_dirs: Vec<PathBuf>,
    /// perf's cache of the files that it recorded, `~/.debug`. `None` if there is no home directory.
    pub cache: Option<PathBuf>,
    /// The cache of debuginfod's client, `$DEBUGINFOD_CACHE_PATH` or `~/.cache/debuginfod_client`. It has a directory
    /// per build ID with the files `executable` and `debuginfo`, which are empty if no server had them
    /// (debuginfod_find_debuginfo(3)). Nothing is downloaded.
    pub debuginfod: Option<PathBuf>,
    /// `--vmlinux FILE`: the image of the recorded kernel.
    pub vmlinux: Option<PathBuf>,
    /// The release of the recorded kernel, as printed by `uname -r`.
    pub os_release: Option<Vec<u8>>,
    /// The ELF machine number (`e_machine`) of the recorded machine; `None` if unknown. Files for other machines can't
    /// be the ones that ran.
    pub machine: Option<u16>,
    /// `-f`: also use files that other users own.
    pub force: bool,
    /// True if the recording comes from another machine and was packed with that machine's files. The source files on
    /// this machine then have nothing to do with the recording.
    pub is_packed: bool,
    /// `--trust-sources`: show any source file that a recording names, whatever its permissions and whichever machine
    /// made the recording.
    pub trust_sources: bool,
    /// True if the recorded kernel is running on this machine. Its vDSO can then be read from this process's own
    /// memory.
    pub kernel_runs_here: bool,
    /// When the recording was made. `None` if it is unknown or the recording was made on another machine.
    pub recorded_here: Option<RecordedTime>,
    /// For files that were first mapped during the recording: a time before which no recorded process had mapped the
    /// file. It is the time of the first mapping, or somewhat earlier.
    pub first_mapped: FxHashMap<FileId, SystemTime>,
}

/// When a recording was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTime {
    /// When recording began.
    pub began: SystemTime,
    /// When the recording's file was last written.
    pub ended: SystemTime,
}

impl RecordedTime {
    /// True if a file time (seconds and nanoseconds since 1970) lies between the start and the end of the recording.
    fn contains(&self, seconds: i64, nanos: i64) -> bool {
        let since = Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanos).unwrap_or(0));
        (self.began..=self.ended).contains(&(UNIX_EPOCH + since))
    }
}

/// The files that are accepted as programs and libraries: ELF files and PE images. They may contain only debug
/// information.
pub const ELF: Kind = Kind { holes: |head| is_code(head).then_some(Holes::Any), otherwise: NO_CODE };

/// The files that are accepted as debug information: like [`ELF`], but without large holes. Linkers leave none there,
/// so such a file was made to exhaust resources.
pub(super) const DEBUGGING: Kind = Kind { holes: |head| is_code(head).then_some(Holes::Small), otherwise: NO_CODE };

const NO_CODE: &str = "is neither an ELF file nor a PE image";

fn is_code(head: &[u8]) -> bool {
    head.starts_with(&elf::ELFMAG) || head.starts_with(b"MZ")
}

impl Default for SearchOptions {
    /// Searches the recorded paths, and the caches of perf and debuginfod's client where they usually are.
    fn default() -> Self {
        Self {
            symfs: Vec::new(),
            debug_dirs: Vec::new(),
            cache: std::env::var_os("HOME").map(|home| Path::new(&home).join(".debug")),
            debuginfod: debuginfod_cache(),
            vmlinux: None,
            os_release: None,
            machine: None,
            force: false,
            kernel_runs_here: false,
            recorded_here: None,
            first_mapped: FxHashMap::default(),
            is_packed: false,
            trust_sources: false,
        }
    }
}

/// Where debuginfod's client has its cache: `$DEBUGINFOD_CACHE_PATH`, or `debuginfod_client` in the user's directory
/// for caches (`$XDG_CACHE_HOME` or `~/.cache`). `None` if none of these variables, nor `$HOME`, is set.
fn debuginfod_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(cache) = variable("DEBUGINFOD_CACHE_PATH") {
        return Some(cache);
    }
    let caches = match variable("XDG_CACHE_HOME") {
        Some(caches) => caches,
        None => variable("HOME")?.join(".cache"),
    };
    Some(caches.join("debuginfod_client"))
}

impl SearchOptions {
    /// Finds the file that was mapped as `dso`. `None` if it is missing, was replaced, or is of another build or
    /// machine.
    pub fn find_running(&self, dso: &Dso, warnings: &mut Warnings) -> Option<Image> {
        if dso.kind == DsoKind::Kernel {
            return self.find_vmlinux(dso, warnings);
        }
        if self.was_replaced(dso) {
            let path = Path::new(OsStr::from_bytes(&dso.path));
            let message = match dso.build_id {
                Some(_) => {
                    "not used: it was replaced during the recording, so the recorded build ID may be that of the new \
                     file (perf record --buildid-mmap records the IDs of the files that ran)"
                }
                None => "not used: it was replaced during the recording",
            };
            warnings.push(Warning::new(message).in_file(path, None));
            return None;
        }
        // Warnings about files that may not be used are only reported if no usable file is found.
        let mut rejected = Warnings::new();
        for path in self.running_paths(dso) {
            if let Some(image) = self.open(&path, ELF, &mut rejected)
                && self.is_match(&image, dso, &mut rejected)
            {
                return Some(image);
            }
        }
        if let Some(vdso) = self.find_own_vdso(dso) {
            return Some(vdso);
        }
        warnings.append(rejected);
        if dso.kind == DsoKind::File {
            // The recorded path may lead to a file in another format, such as a .NET assembly, that contains the code
            // that ran. A warning names the format.
            for path in self.recorded_paths(&dso.path) {
                if let Some(kind) = self.no_elf(&path) {
                    let message = format!("is not an ELF file but {}, so there are no symbols to read", kind.name());
                    warnings.push(Warning::new(message).in_file(&path, None));
                }
            }
        }
        None
    }

    /// The paths where the file that ran may be, in the order in which they should be tried.
    fn running_paths<'a>(&'a self, dso: &'a Dso) -> impl Iterator<Item = PathBuf> + 'a {
        let mut paths = Vec::new();
        // No ordinary directory has the vDSO as a file, but a `--symfs` directory that was prepared for this recording
        // may have it.
        if dso.kind == DsoKind::File || !self.symfs.is_empty() {
            paths = self.recorded_paths(&dso.path);
        }
        // The path of a deleted file may belong to another file by now. It is therefore only tried if a build ID can
        // confirm that the file is the right one.
        if dso.build_id.is_some()
            && let Some(path) = dso.path.strip_suffix(b" (deleted)")
        {
            paths.extend(self.recorded_paths(path));
        }
        // `by_id` is lazy: directories with files by build ID are only searched if no recorded path leads to the file.
        let by_id = dso.build_id.into_iter().flat_map(|id| self.running_paths_by_id(dso, id));
        paths.into_iter().chain(by_id)
    }

    /// The paths where directories of files by build ID may have the file that ran: `ab/cdef…/elf`, or `ab/cdef…` if
    /// that is a file instead of a directory. Paths of directories are left out.
    fn running_paths_by_id(&self, dso: &Dso, id: BuildId) -> Vec<PathBuf> {
        let file_name = if dso.is_vdso() { "vdso" } else { "elf" };
        let mut paths = Vec::new();
        for dir in self.id_dirs() {
            let path = id_path(dir, id);
            paths.extend([path.join(file_name), path].into_iter().filter(|path| !self.is_directory(path)));
        }
        paths.extend(self.debuginfod_path(id, "executable"));
        paths
    }

    /// True if the file at the recorded path was replaced or rewritten during the recording. Build IDs match even then,
    /// because perf reads them when the recording ends. If the recorded file itself is still there, a changed ctime
    /// proves nothing, because perf links files into its cache. Then the time of its last write decides.
    fn was_replaced(&self, dso: &Dso) -> bool {
        /// A file's time may be this much earlier than the moment when the file was really written: one tick of the
        /// kernel's usual timer.
        const TICK: Duration = Duration::from_millis(4);
        // Nothing can be said if the recording doesn't state the device and inode of the file (`recorded`), or if it
        // wasn't made on this machine. `times` is the period in which it was made.
        let (Some(recorded), Some(times)) = (dso.file, self.recorded_here) else { return false };
        let path = Path::new(OsStr::from_bytes(&dso.path));
        // The times of files below a `--symfs` directory are those of the copy, so they say nothing about the
        // recording.
        if !self.symfs.is_empty() || dso.kind != DsoKind::File {
            return false;
        }
        // `look` returns the metadata of the file that is at the path now.
        let Some(metadata) = self.door(path).look(path) else { return false };
        let current = file_id(&metadata);
        if current == recorded {
            // The recorded file is still at the path, but may have been rewritten since. If it was last written before
            // it first ran, for example by a build during the recording, it has the code that ran.
            let mut was_written_before_it_ran = false;
            if let Ok(written) = metadata.modified()
                && let Some(first_mapped) = self.first_mapped.get(&recorded)
                && let Some(written) = written.checked_add(TICK)
            {
                was_written_before_it_ran = written <= *first_mapped;
            }
            return times.contains(metadata.mtime(), metadata.mtime_nsec()) && !was_written_before_it_ran;
        }
        // Another file is at the path now. If its ctime lies within the recording, it replaced the recorded file then.
        // If it is on another device, something else may simply be mounted at the path now.
        let is_same_device = (current.major, current.minor) == (recorded.major, recorded.minor);
        is_same_device && times.contains(metadata.ctime(), metadata.ctime_nsec())
    }

    /// Reads the vDSO from this process's own memory. The kernel gives the same vDSO to all processes of one word size.
    /// `None` unless it is the recorded vDSO. Equal build IDs prove that. Without a recorded build ID, the running
    /// kernel must be the recorded one and the word sizes equal.
    fn find_own_vdso(&self, dso: &Dso) -> Option<Image> {
        if !dso.is_vdso() {
            return None;
        }
        let image = read_running_vdso()?;
        let is_64 = image.object().is_ok_and(|object| object.is_64());
        let is_ours = match dso.build_id {
            Some(_) => image.has_build_id(dso.build_id),
            // A 32-bit process has another vDSO (`Vdso32`) than a 64-bit one, also on the same kernel.
            None => self.kernel_runs_here && is_64 == (dso.kind == DsoKind::Vdso),
        };
        is_ours.then_some(image)
    }

    /// Finds the image of the recorded kernel; `None` if there is none. It must have the recorded build ID. If the user
    /// chose an image, no other is tried, and it may be used if it or the recording has no build ID.
    fn find_vmlinux(&self, dso: &Dso, warnings: &mut Warnings) -> Option<Image> {
        if let Some(vmlinux) = &self.vmlinux {
            // The user typed the path, so the file may have any owner.
            let door = Door { named: Named::User, start: Start::Here, force: true };
            let Some(image) = open_image(door, vmlinux, ELF, warnings) else {
                let message = "not used: it cannot be read as an ELF file. A compressed kernel (vmlinuz) must be \
                               decompressed first";
                warnings.push(Warning::new(message).in_file(vmlinux, None));
                return None;
            };
            return self.is_match(&image, dso, warnings).then_some(image);
        }
        let id = dso.build_id?;
        let mut paths: Vec<PathBuf> = self.paths_by_id(id, "vmlinux").collect();
        if let Some(release) = &self.os_release {
            let release = Path::new(OsStr::from_bytes(release));
            let file_name = with_suffix("vmlinux-".into(), release);
            let modules = Path::new("lib/modules").join(release);
            for dir in self.id_dirs() {
                paths.push(dir.join("boot").join(&file_name));
                paths.push(dir.join(&modules).join("vmlinux"));
            }
            paths.push(Path::new("/boot").join(&file_name));
            paths.push(Path::new("/").join(&modules).join("build/vmlinux"));
        }
        // An image without a build ID proves nothing. `has_build_id` would accept it.
        let mut images = paths.into_iter().filter_map(|path| self.open(&path, ELF, warnings));
        images.find(|image| image.build_id().is_some() && image.has_build_id(Some(id)))
    }

    /// Finds the separate file with the debug information of `image`: by its build ID or, failing that, by the link in
    /// `.gnu_debuglink`. Otherwise, finds a copy of the file that was not stripped. `None` if there is none.
    pub fn find_debugging(&self, image: &Image, warnings: &mut Warnings) -> Option<Image> {
        if let Some(id) = image.build_id() {
            let paths = self.paths_by_id(id, "debug").chain(self.debuginfod_path(id, "debuginfo"));
            let mut images = paths.filter_map(|path| self.open(&path, DEBUGGING, warnings));
            if let Some(found) = images.find(|found| found.has_build_id(Some(id))) {
                return Some(found);
            }
        }
        self.find_by_debug_link(image, warnings).or_else(|| self.find_unstripped(image))
    }

    /// Finds a copy of the file of the same build that has symbols or debug information which `image` lacks. perf's
    /// cache keeps the first copy of a build that was recorded. Stripping a file doesn't change its build ID.
    fn find_unstripped(&self, image: &Image) -> Option<Image> {
        let id = image.build_id()?;
        for dir in self.id_dirs() {
            let folder = id_path(dir, id);
            for path in [folder.join("elf"), folder] {
                if self.is_directory(&path) {
                    continue;
                }
                // If the file at the path isn't such a copy, or can't be used, there is no warning: `image` itself was
                // found.
                let Some(copy) = self.open(&path, DEBUGGING, &mut Warnings::new()) else { continue };
                let adds_symbols = copy.has_symtab() && !image.has_symtab();
                let adds_dwarf = copy.has_dwarf() && !image.has_dwarf();
                if copy.has_build_id(Some(id)) && (adds_symbols || adds_dwarf) {
                    return Some(copy);
                }
            }
        }
        None
    }

    /// The paths at which a file of this build may be in the directories that are sorted by build ID. `file_name` is
    /// `debug` or `vmlinux`.
    fn paths_by_id<'a>(&'a self, id: BuildId, file_name: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
        self.id_dirs().flat_map(move |dir| [id_path(dir, id).join(file_name), with_suffix(id_path(dir, id), ".debug")])
    }

    /// The path of this build's file in debuginfod's cache. `None` if the cache doesn't have the file, or has an empty
    /// one, which means that no server has it.
    fn debuginfod_path(&self, id: BuildId, file_name: &str) -> Option<PathBuf> {
        let path = self.debuginfod.as_ref()?.join(hex(id)).join(file_name);
        let metadata = self.door(&path).look(&path)?;
        if metadata.len() > 0 { Some(path) } else { None }
    }

    /// Finds the debug file that the image names in its section `.gnu_debuglink`, by file name and checksum. `None` if
    /// there is no such section or file.
    fn find_by_debug_link(&self, image: &Image, warnings: &mut Warnings) -> Option<Image> {
        let object = image.object().ok()?;
        let (name, crc) = object.gnu_debuglink().ok().flatten()?;
        let name = Path::new(OsStr::from_bytes(name));
        let dir = image.path().parent()?;
        let relative_dir = dir.strip_prefix("/").unwrap_or(dir);
        let mut paths = vec![dir.join(name), dir.join(".debug").join(name)];
        for debug_dir in self.id_dirs() {
            paths.push(debug_dir.join(relative_dir).join(name));
        }
        for path in paths {
            let Some(found) = self.open(&path, DEBUGGING, warnings) else { continue };
            let belongs_to_image = match image.build_id() {
                Some(id) => found.has_build_id(Some(id)),
                // Computing the checksum means reading the whole file, so it is the last check.
                None => found.may_be_debugging(image) && found.crc32() == crc,
            };
            if belongs_to_image {
                return Some(found);
            }
            let message = format!("not used: it is not the debugging information of {}", image.path().display());
            warnings.push(Warning::new(message).in_file(&path, None));
        }
        None
    }

    /// Finds the supplementary file to which `debugging` refers (`.gnu_debugaltlink`). The tool dwz makes such files of
    /// the debug information that several files share. `None` if there is none.
    pub fn find_shared(&self, debugging: &Image, warnings: &mut Warnings) -> Option<Image> {
        let object = debugging.object().ok()?;
        let (name, id) = object.gnu_debugaltlink().ok().flatten()?;
        let id = BuildId::new(id);
        // A relative name is relative to the directory of `debugging`. Joining an absolute one gives that path itself.
        let mut paths = vec![debugging.path().parent()?.join(OsStr::from_bytes(name))];
        if let Some(id) = id {
            paths.extend(self.paths_by_id(id, "debug"));
        }
        let mut images = paths.into_iter().filter_map(|path| self.open(&path, DEBUGGING, warnings));
        // The file should have the build ID that the link states. `has_build_id` also accepts a file without a build
        // ID.
        images.find(|found| found.has_build_id(id))
    }

    /// Finds a package (`.dwp`) of split debug information next to one of these images. `None` if there is none.
    pub fn find_package(&self, images: &[&Image], warnings: &mut Warnings) -> Option<Image> {
        let mut paths = images.iter().map(|image| with_suffix(image.path().to_owned(), ".dwp"));
        paths.find_map(|path| self.open(&path, DEBUGGING, warnings))
    }

    /// Opens a file; `None` if it doesn't exist or may not be used. Warns if it may not be used.
    pub fn open(&self, path: &Path, kind: Kind, warnings: &mut Warnings) -> Option<Image> {
        open_image(self.door(path), path, kind, warnings)
    }

    /// Recognizes what a file is if it isn't an ELF file, for messages. `None` if it is an ELF file or can't be read.
    pub fn no_elf(&self, path: &Path) -> Option<NoElf> {
        NoElf::recognize(&self.door(path).head(path, no_elf::HEAD)?.ok()?)
    }

    /// True if a file or directory exists at the path.
    pub fn is_there(&self, path: &Path) -> bool {
        self.door(path).look(path).is_some()
    }

    /// The rules for opening a path that comes from a recording or another file. Below a directory that the user named,
    /// symbolic links can't lead out of that directory.
    fn door(&self, path: &Path) -> Door<'_> {
        let mut typed = self.symfs.iter().chain(&self.debug_dirs);
        let start = match typed.find(|directory| path.starts_with(directory)) {
            Some(directory) => Start::Typed(directory),
            None => Start::Here,
        };
        Door { named: Named::Recording, start, force: self.force }
    }

    /// The paths on this machine where the file with this recorded path may be: below each `--symfs` directory, or the
    /// path itself if there is none.
    pub fn recorded_paths(&self, path: &[u8]) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        if self.symfs.is_empty() {
            return vec![path.to_owned()];
        }
        let relative = path.strip_prefix("/").unwrap_or(path);
        // In a `--symfs` directory, `/lib` may be a link to `/usr/lib` or a directory of its own, whichever it was on
        // the recorded machine. So the path is tried with and without `usr/`.
        let other_form = toggle_usr(relative);
        let mut paths = Vec::new();
        for root in &self.symfs {
            paths.push(root.join(relative));
            if let Some(other_form) = &other_form {
                paths.push(root.join(other_form));
            }
        }
        paths
    }

    /// The directories that may have files by build ID: each `--debug-dir`, perf's cache, `/usr/lib/debug`.
    pub(crate) fn id_dirs(&self) -> impl Iterator<Item = &Path> {
        self.debug_dirs.iter().chain(&self.cache).map(PathBuf::as_path).chain([Path::new("/usr/lib/debug")])
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.door(path).look(path).is_some_and(|about| about.is_dir())
    }

    /// True if the image can be the file that ran: it has the recorded build ID and is for the recorded machine, as far
    /// as these are known. Otherwise adds a warning.
    fn is_match(&self, image: &Image, dso: &Dso, warnings: &mut Warnings) -> bool {
        let reason = if let (Some(wanted), Some(found)) = (dso.build_id, image.build_id())
            && !image.has_build_id(Some(wanted))
        {
            let (wanted, found) = (hex(wanted), hex(found));
            format!("not used: it is not the version that ran (build ID {found}, recorded {wanted})")
        } else if !self.is_of_machine(image) {
            let recorded = self.machine.map_or_else(|| "another".to_owned(), machine_name);
            format!("not used: it is for {}, but the recording is from {recorded}", machine_name(image.machine()))
        } else {
            return true;
        };
        warnings.push(Warning::new(reason).in_file(image.path(), None));
        false
    }

    /// True if the recorded machine can run programs in this file. 64-bit machines also run 32-bit programs.
    pub fn is_of_machine(&self, image: &Image) -> bool {
        match self.machine.map(elf::Machine) {
            None => true,
            Some(elf::EM_X86_64) => [elf::EM_X86_64.0, elf::EM_386.0].contains(&image.machine()),
            Some(elf::EM_AARCH64) => [elf::EM_AARCH64.0, elf::EM_ARM.0].contains(&image.machine()),
            Some(machine) => machine.0 == image.machine(),
        }
    }
}

/// Opens and parses a program or library. `None` if there is no such file, if it can't be parsed, or if it is refused.
/// A file that is refused is reported as a warning; one that can't be parsed isn't.
fn open_image(door: Door<'_>, path: &Path, kind: Kind, warnings: &mut Warnings) -> Option<Image> {
    match door.open(path, kind)? {
        Ok(opened) => {
            // A file that is nearly all hole takes hours to read, so it was probably made to exhaust resources.
            // `blocks` counts units of 512 bytes.
            let on_disk = opened.about.blocks().saturating_mul(512);
            if is_mostly_hole(opened.about.len(), on_disk) {
                let len = opened.about.len();
                let message =
                    format!("not used: it is a sparse file of {len} bytes, of which only {on_disk} are on disk");
                warnings.push(Warning::new(message).in_file(path, None));
                return None;
            }
            if is_core_dump(&opened.bytes) {
                let message = "not used: it is a core dump, which contains all memory of its process, not a program";
                warnings.push(Warning::new(message).in_file(path, None));
                return None;
            }
            Image::from_opened(path, opened).ok()
        }
        Err(error) => {
            warnings.push(error.into_warning());
            None
        }
    }
}

/// True if so little of a file of `len` bytes is on the disk (`on_disk` bytes) that it was made to exhaust resources:
/// it takes little space but hours to read. In ordinary files, holes are a few pages, and file systems with compression
/// store debug information in about a tenth of its size.
fn is_mostly_hole(len: u64, on_disk: u64) -> bool {
    const UNSUSPICIOUS: u64 = 16 << 20;
    const LARGEST_RATIO: u64 = 16;
    len > UNSUSPICIOUS && len / LARGEST_RATIO > on_disk
}

/// Appends text to the last component of a path.
fn with_suffix(path: PathBuf, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut path = path.into_os_string();
    path.push(suffix);
    path.into()
}

/// The relative path with `usr/` added at its start, or removed if it is there. For systems where `/lib`, `/bin` and so
/// on are links into `/usr`. `None` if the path is not in such a directory.
fn toggle_usr(path: &Path) -> Option<PathBuf> {
    let without_usr = path.strip_prefix("usr").ok();
    let first = without_usr.unwrap_or(path).iter().next().and_then(OsStr::to_str).unwrap_or_default();
    if first != "bin" && first != "sbin" && !first.starts_with("lib") {
        return None;
    }
    match without_usr {
        Some(rest) => Some(rest.to_owned()),
        None => Some(Path::new("usr").join(path)),
    }
}

/// The path `DIR/.build-id/ab/cdef…` at which a directory has the file with this build ID.
fn id_path(dir: &Path, id: BuildId) -> PathBuf {
    let hex = hex(id);
    let (first, rest) = hex.split_at(2);
    dir.join(".build-id").join(first).join(rest)
}

/// A build ID in hexadecimal, as it is used in paths: without the zeros that pad it in a recording.
pub fn hex(id: BuildId) -> String {
    let bytes = id.as_bytes();
    // Real build IDs have 8, 16 or 20 bytes. Zeros after these lengths are padding. A build ID that really ends in
    // zeros is rare; its file is only found by its own path.
    let len = [8, 16].into_iter().find(|&len| bytes.len() > len && bytes[len..].iter().all(|&byte| byte == 0));
    bytes[..len.unwrap_or(bytes.len())].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The device and inode of a file.
pub fn file_id(about: &Metadata) -> FileId {
    let device = about.dev();
    FileId { major: rustix::fs::major(device), minor: rustix::fs::minor(device), inode: about.ino() }
}

/// Reads the vDSO of the running kernel from this process's memory. `None` if that fails.
pub fn read_running_vdso() -> Option<Image> {
    use std::os::unix::fs::FileExt;
    let maps = io::read_system_text(Path::new("/proc/self/maps")).ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    // The line begins with the address range, such as `7ffd2b9f1000-7ffd2b9f3000`.
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    io::open_system_file(Path::new("/proc/self/mem")).ok()?.read_exact_at(&mut bytes, start).ok()?;
    Image::new(Path::new("[vdso]"), io::Bytes::Owned(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_binary() -> (PathBuf, Image) {
        let path = std::env::current_exe().unwrap();
        let image = SearchOptions::default().open(&path, ELF, &mut Warnings::new()).unwrap();
        (path, image)
    }

    #[test]
    fn another_version_is_reported_and_not_used() {
        let (path, image) = this_binary();
        let options = SearchOptions { cache: None, ..SearchOptions::default() };
        let dso =
            |build_id| Dso { path: path.as_os_str().as_bytes().into(), build_id, file: None, kind: DsoKind::File };
        let mut warnings = Warnings::new();
        assert!(options.find_running(&dso(image.build_id()), &mut warnings).is_some());
        assert!(options.find_running(&dso(None), &mut warnings).is_some());
        assert!(warnings.is_empty());
        let other = BuildId::new(&[7; 20]);
        assert!(image.build_id().is_some(), "the linker gives test binaries no build ID");
        assert!(options.find_running(&dso(other), &mut warnings).is_none());
        let said = warnings.iter().next().unwrap().to_string();
        assert!(said.contains("recorded 07070707"), "{said}");
        let foreign = SearchOptions { machine: Some(elf::EM_S390.0), ..options };
        assert!(foreign.find_running(&dso(None), &mut Warnings::new()).is_none());
    }

    #[test]
    fn symfs_and_the_cache_are_looked_at() {
        let (path, image) = this_binary();
        let dir = tempfile::tempdir().unwrap();
        let id = image.build_id().unwrap();
        let cached = id_path(dir.path(), id);
        std::fs::create_dir_all(&cached).unwrap();
        std::os::unix::fs::symlink(&path, cached.join("elf")).unwrap();
        std::os::unix::fs::symlink(&path, dir.path().join("prog")).unwrap();
        let mut options = SearchOptions { cache: Some(dir.path().into()), ..SearchOptions::default() };
        let gone = Dso { path: b"/gone/prog".into(), build_id: Some(id), file: None, kind: DsoKind::File };
        assert!(options.find_running(&gone, &mut Warnings::new()).is_some());
        options.cache = None;
        assert!(options.find_running(&gone, &mut Warnings::new()).is_none());
        options.symfs = vec![dir.path().into()];
        let below = Dso { path: b"/prog".into(), ..gone };
        assert!(options.find_running(&below, &mut Warnings::new()).is_some());
    }

    #[test]
    fn a_file_that_is_mostly_hole_is_reported_and_not_used() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), file.path()).unwrap();
        let open = |warnings: &mut Warnings| open_image(Named::Recording.door(false), file.path(), DEBUGGING, warnings);
        assert!(open(&mut Warnings::new()).is_some());
        let on_disk = std::fs::metadata(file.path()).unwrap().blocks() * 512;
        file.as_file().set_len(20 * on_disk.max(1 << 20)).unwrap();
        let mut warnings = Warnings::new();
        assert!(open(&mut warnings).is_none());
        let said = warnings.iter().next().unwrap().to_string();
        assert!(said.contains("not used: it is a sparse file") && said.ends_with(" on disk"), "{said}");
        // Not suspicious: a file of 16 MiB that takes no space on disk, and one that takes a sixteenth of its length.
        assert!(!is_mostly_hole(16 << 20, 0) && !is_mostly_hole(1 << 40, 1 << 36));
    }

    #[test]
    fn a_file_that_was_replaced_or_written_meanwhile_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libw.so");
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let about = std::fs::metadata(&path).unwrap();
        let (here, written) = (file_id(&about), about.modified().unwrap());
        let second = Duration::from_secs(1);
        let before = RecordedTime { began: written - 3 * second, ended: written - second };
        let during = RecordedTime { began: written - second, ended: written + second };
        let after = RecordedTime { began: written + second, ended: written + 3 * second };
        let is_used = |file: FileId, time: RecordedTime| {
            let options = SearchOptions { cache: None, recorded_here: Some(time), ..SearchOptions::default() };
            let dso = Dso { file: Some(file), ..Dso::from_path(path.as_os_str().as_bytes().into(), None) };
            let mut warnings = Warnings::new();
            let found = options.find_running(&dso, &mut warnings).is_some();
            assert_eq!(warnings.is_empty(), found);
            found
        };
        // What was written before the first process mapped it is what ran.
        let is_used_if_mapped = |first: SystemTime| {
            let first_mapped = [(here, first)].into_iter().collect();
            let options =
                SearchOptions { cache: None, recorded_here: Some(during), first_mapped, ..SearchOptions::default() };
            let dso = Dso { file: Some(here), ..Dso::from_path(path.as_os_str().as_bytes().into(), None) };
            options.find_running(&dso, &mut Warnings::new()).is_some()
        };
        let millisecond = Duration::from_millis(1);
        assert!(is_used_if_mapped(written + 5 * millisecond) && is_used_if_mapped(written + second));
        assert!(!is_used_if_mapped(written + millisecond) && !is_used_if_mapped(written - millisecond));
        let other = FileId { inode: here.inode + 1, ..here };
        let elsewhere = FileId { minor: here.minor + 1, ..other };
        assert_eq!([before, during, after].map(|time| is_used(here, time)), [true, false, true]);
        assert_eq!([before, during, after].map(|time| is_used(other, time)), [true, false, true]);
        assert_eq!([before, during, after].map(|time| is_used(elsewhere, time)), [true; 3]);
        // perf's cache makes hard links, which only change the ctime.
        std::thread::sleep(Duration::from_millis(20));
        let linked = SystemTime::now();
        std::fs::hard_link(&path, dir.path().join("cached")).unwrap();
        let since = RecordedTime { began: linked - Duration::from_millis(15), ended: linked + second };
        assert!(is_used(here, since) && !is_used(other, since));
    }

    #[test]
    fn the_vdso_of_this_kernel_is_that_of_its_own_recordings() {
        let vdso = |kind| Dso { kind, ..Dso::from_path(b"[vdso]".into(), None) };
        let found = |kernel_runs_here, kind| {
            let options = SearchOptions { cache: None, kernel_runs_here, ..SearchOptions::default() };
            options.find_running(&vdso(kind), &mut Warnings::new()).is_some()
        };
        let (own, other) = if cfg!(target_pointer_width = "64") {
            (DsoKind::Vdso, DsoKind::Vdso32)
        } else {
            (DsoKind::Vdso32, DsoKind::Vdso)
        };
        assert_eq!(
            [found(true, own), found(true, other), found(false, own)],
            [read_running_vdso().is_some(), false, false]
        );
    }

    #[test]
    fn a_core_dump_is_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("core");
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for (order, kind) in [(1, [4, 0]), (2, [0, 4])] {
            bytes[5] = order;
            bytes[16..18].copy_from_slice(&kind);
            std::fs::write(&path, &bytes).unwrap();
            let mut warnings = Warnings::new();
            assert!(SearchOptions::default().open(&path, ELF, &mut warnings).is_none());
            assert!(warnings.iter().next().unwrap().to_string().contains("is a core dump"));
        }
        assert!(!is_core_dump(b"\x7fELF") && !is_core_dump(&[0; 64]));
    }

    #[test]
    fn padded_build_ids_are_spelled_without_their_padding() {
        let mut padded = [1; 20];
        padded[16..].fill(0);
        assert_eq!(hex(BuildId::new(&padded).unwrap()), "01".repeat(16));
        assert_eq!(hex(BuildId::new(&[0xab; 20]).unwrap()), "ab".repeat(20));
    }
}
