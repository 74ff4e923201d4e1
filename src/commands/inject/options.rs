//! The options of `inject`, and the context that its phases share.

use crate::formats::perf_data::Recording;
use crate::io::{self, InPath, OutPath, Run};
use crate::jit::SourceOptions;
use crate::model::process::Processes;
use crate::pipeline::open::Input;
use crate::pipeline::progress::Progress;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::symbols::files::SearchOptions;
use linux_perf_event_reader::constants::PERF_SAMPLE_STACK_USER;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The options of `inject`: what to inject into, what to add, and where to write the result.
#[derive(Debug, Clone)]
pub struct InjectOptions {
    /// The recording, or a profile of another format, to inject into.
    pub input: InPath,
    /// Where to write the new recording. A file gets perf.data's file form, standard output its pipe form.
    pub output: OutPath,
    /// The directory of the images. By default they are written next to the output, or into the current directory if
    /// the output is standard output, a device or a pipe.
    pub image_dir: Option<PathBuf>,
    /// Put all functions into the images, not only those that samples use.
    pub all_functions: bool,
    /// Also copy the images to perf's build ID cache.
    pub cache: bool,
    /// Inject JIT code.
    pub jit: bool,
    /// Which files other than images get a build ID.
    pub build_ids: BuildIdMode,
    /// Build IDs by path, to use in place of those in the files.
    pub known_build_ids: Option<KnownBuildIds>,
    /// Unwind copies of user stacks, and replace them by plain call chains. The images then contain all functions, not
    /// only those that samples use: which ones samples use is determined before the stacks are unwound.
    pub convert_callchain: bool,
    /// Move JIT code to addresses of its own, for tools that treat an image as a library that is loaded once. Copies of
    /// user stacks contain the old addresses, so they become plain call chains.
    pub relocate: bool,
    /// Remove the call chain entries for which perf would drop the whole chain.
    pub drop_bad_chain_entries: bool,
    /// The root directory that perf will be called with (`--symfs`). Images are written below it, and their recorded
    /// paths start there.
    pub image_root: Option<PathBuf>,
    /// Where to find the names of JIT code.
    pub sources: SourceOptions,
}

impl InjectOptions {
    /// The directory with the recording, where jitdumps and perf maps may be as well.
    pub(super) fn input_directory(&self) -> Option<&Path> {
        // A recording that is a directory may be called `perf.data`, like a file. Jitdumps and perf maps are next to
        // it, not in it, so the parent directory is searched.
        match self.input.path() {
            Some(path) => io::companion_directory(path),
            None => self.input.directory(),
        }
    }

    /// The options, adapted to the opened input: if the input is an archive, jitdumps and other sources are looked for
    /// in the archive.
    pub(super) fn for_input(&self, input: &Input) -> Cow<'_, Self> {
        let Some(packed) = &input.packed else { return Cow::Borrowed(self) };
        let mut own = self.clone();
        packed.add_to_sources(&mut own.sources);
        Cow::Owned(own)
    }

    /// The directory of the images.
    pub(super) fn image_directory(&self) -> &Path {
        let beside_output = self.output.directory().filter(|directory| !directory.as_os_str().is_empty());
        let image_dir = self.image_dir.as_deref().or(self.image_root.as_deref());
        image_dir.or(beside_output).unwrap_or(Path::new("."))
    }

    /// True if the output is in pipe form.
    pub(super) fn writes_pipe(&self) -> bool {
        self.output == OutPath::Stdout
    }

    /// True if copies of user stacks become call chains.
    pub(super) fn unwinds(&self, recording: &Recording) -> bool {
        self.convert_callchain || (self.relocate && has_user_stacks(recording))
    }
}

/// True if any event copies the user stack, which perf then unwinds.
pub(super) fn has_user_stacks(recording: &Recording) -> bool {
    recording.events.iter().any(|event| event.attr.has_field(PERF_SAMPLE_STACK_USER))
}

/// What every phase of a run needs.
#[derive(Debug)]
pub(super) struct InjectContext<'a> {
    pub(super) options: &'a InjectOptions,
    pub(super) job: &'a Job,
    /// The current run, which knows the names of all outputs. Images must not be written to one of them.
    pub(super) run: &'a Run,
    pub(super) progress: &'a Progress,
    pub(super) outcome: &'a mut Outcome,
}

impl InjectContext<'_> {
    /// How to find the files that the recorded processes had mapped.
    pub(super) fn search(&self, processes: &Processes) -> SearchOptions {
        let Processes { machine, os_release, .. } = processes;
        let search = &self.options.sources.search;
        SearchOptions { machine: *machine, os_release: os_release.clone(), ..search.clone() }
    }
}

/// Which files other than images get a build ID, and where it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildIdMode {
    /// No files other than the images of JIT code.
    #[default]
    None,
    /// `-b`: files with samples. The build ID is in a separate record before the first sample of the file.
    Hit,
    /// `--buildid-all`: all mapped files. The build ID is in a separate record before the first mapping of the file.
    All,
    /// `-B`: files with samples. The build ID is in their mapping records.
    HitMappings,
    /// `--mmap2-buildid-all`: all mapped files. The build ID is in their mapping records.
    AllMappings,
}

/// `--known-build-ids`: build IDs of files that are not on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownBuildIds {
    /// `ID PATH` pairs, separated by commas.
    List(String),
    /// A file with one `ID PATH` pair per line, as printed by `perf buildid-list`.
    File(PathBuf),
}

impl From<&str> for KnownBuildIds {
    /// Takes the same syntax as perf inject. In addition, text without a space can't be a list, so it names a file even
    /// without `file://`.
    fn from(text: &str) -> Self {
        match text.strip_prefix("file://") {
            None if text.contains(' ') => Self::List(text.to_owned()),
            path => Self::File(path.unwrap_or(text).into()),
        }
    }
}
