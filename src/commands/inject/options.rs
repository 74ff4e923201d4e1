//! The options of inject, and the context of its phases.

use crate::io::{self, InPath, OutPath, Run};
use crate::model::process::Processes;
use crate::pipeline::open::Input;
use crate::pipeline::progress::Progress;
use crate::pipeline::{Job, Outcome};
use crate::records::perf_data::Recording;
use crate::resolve::symbols::files::SearchOptions;
use crate::sources::SourceOptions;
use linux_perf_event_reader::constants::PERF_SAMPLE_STACK_USER;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The profile to inject into, and the output.
#[derive(Debug, Clone)]
pub struct InjectOptions {
    /// The recording.
    pub input: InPath,
    /// The recording that is written: in file form to a file, in pipe form to standard output.
    pub output: OutPath,
    /// The directory of the images; beside the output (for standard output, a device or a pipe: into the current
    /// directory) if not said.
    pub image_dir: Option<PathBuf>,
    /// True if the images have all functions, or those that samples use.
    pub all_functions: bool,
    /// True if the images also go to the build-ID cache.
    pub cache: bool,
    /// True if JIT code is injected.
    pub jit: bool,
    /// The kind of build IDs that are added for other files.
    pub build_ids: BuildIdMode,
    /// Build IDs by path, in place of looking into the files.
    pub known_build_ids: Option<KnownBuildIds>,
    /// True if copies of user stacks become plain call chains. Then all functions go into the images: which of them the
    /// chains use is known too late.
    pub convert_callchain: bool,
    /// True if JIT code gets addresses of its own, for readers that take an image for a library that is loaded once.
    /// Copies of user stacks, which have the old ones, then become plain call chains.
    pub relocate: bool,
    /// True if call chains lose the entries for which perf would drop them whole.
    pub drop_bad_chain_entries: bool,
    /// The root of the recorded machine that perf will be given (`--symfs`): images go below it, and the recording has their
    /// paths there.
    pub image_root: Option<PathBuf>,
    /// The sources of names.
    pub sources: SourceOptions,
}

impl InjectOptions {
    /// The directory of dumps and maps beside the recording.
    pub(super) fn beside_input(&self) -> Option<&Path> {
        // A directory holds the recording; what was left beside it is with it, not in it.
        io::beside(self.input.path()?)
    }

    /// The same for this input: an archive has files of its own.
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
    pub(super) fn to_pipe(&self) -> bool {
        self.output == OutPath::Stdout
    }

    /// True if copies of user stacks become call chains.
    pub(super) fn unwinds(&self, recording: &Recording) -> bool {
        self.convert_callchain || (self.relocate && has_user_stacks(recording))
    }
}

/// True if some samples have a copy of the user stack, which perf unwinds.
pub(super) fn has_user_stacks(recording: &Recording) -> bool {
    recording.events.iter().any(|event| event.attr.samples(PERF_SAMPLE_STACK_USER))
}

/// The context of every phase of a run.
#[derive(Debug)]
pub(super) struct InjectContext<'a> {
    pub(super) options: &'a InjectOptions,
    pub(super) job: &'a Job,
    /// Has the outputs, whose names nothing else may get.
    pub(super) run: &'a Run,
    pub(super) progress: &'a Progress,
    pub(super) outcome: &'a mut Outcome,
}

impl InjectContext<'_> {
    /// The place where the files are looked for that these processes ran.
    pub(super) fn search(&self, processes: &Processes) -> SearchOptions {
        let Processes { machine, os_release, .. } = processes;
        let search = &self.options.sources.search;
        SearchOptions { machine: *machine, os_release: os_release.clone(), ..search.clone() }
    }
}

/// The files that get a build ID, and its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildIdMode {
    /// None but the images of JIT code.
    #[default]
    None,
    /// `-b`: files with samples, by a record of its own before the first of them.
    Hit,
    /// `--buildid-all`: every mapped file, by a record of its own before its first mapping.
    All,
    /// `-B`: files with samples, in their mapping records.
    HitMappings,
    /// `--mmap2-buildid-all`: every mapped file, in its mapping records.
    AllMappings,
}

/// `--known-build-ids`: what is known of files that are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownBuildIds {
    /// `ID PATH`, separated by commas.
    List(String),
    /// A file with one of them on each line, as `perf buildid-list` prints them.
    File(PathBuf),
}

impl From<&str> for KnownBuildIds {
    /// As perf inject takes it; what has no space can be not a list, and is a file without the `file://`, too.
    fn from(text: &str) -> Self {
        match text.strip_prefix("file://") {
            None if text.contains(' ') => Self::List(text.to_owned()),
            path => Self::File(path.unwrap_or(text).into()),
        }
    }
}
