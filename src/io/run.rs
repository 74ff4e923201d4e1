//! A run of a job. Decides which outputs may be written.
//!
//! An output is refused (exit status 2) if it would replace a file that the run reads, or another output of the run.
//! Inputs may be opened after an output was started, so this is checked twice: when the output is created, before the
//! long work, and when it gets its name. In both cases nothing has been changed yet.
//!
//! | output | refused if |
//! |---|---|
//! | a file | it was opened as an input (under any name: links are followed), or is in a recording's directory |
//! | standard output, another descriptor | its file was opened as an input; cat refuses this, too |
//! | both | another output of this run goes there |

use super::modes::{self, Content};
use super::new_file::{NamedPlace, open_directory};
use super::opened::{self, FileId, RunStart};
use crate::error::{Error, Result};
use rustc_hash::FxHashSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A run of a job. Files that are opened after its start are its inputs; the files that it creates are its outputs.
#[derive(Debug, Clone)]
pub struct Run {
    state: Arc<RunState>,
    content: Content,
}

#[derive(Debug)]
struct RunState {
    start: RunStart,
    outputs: Mutex<ClaimedPlaces>,
}

/// The places of a run's outputs.
#[derive(Debug, Default)]
struct ClaimedPlaces {
    /// The directory and name of each output that is a new file.
    names: FxHashSet<(FileId, OsString)>,
    /// The existing files that outputs in `names` will replace.
    replaced: FxHashSet<FileId>,
    /// The files that were already open and that outputs are written to directly.
    open: FxHashSet<FileId>,
}

impl ClaimedPlaces {
    /// True if an output of the run already goes to this place.
    fn contains(&self, place: &OutputPlace) -> bool {
        match place {
            OutputPlace::Name(place) => {
                self.names.contains(&(place.directory, place.name.clone()))
                    || place.existing_file.is_some_and(|file| self.open.contains(&file))
            }
            OutputPlace::Open(file) => self.open.contains(file) || self.replaced.contains(file),
        }
    }

    /// Reserves a place. For a named output, this includes the file that it will replace: another output of the run must
    /// not be written to that file by its descriptor.
    fn insert(&mut self, place: OutputPlace) {
        match place {
            OutputPlace::Name(place) => {
                self.names.insert((place.directory, place.name));
                self.replaced.extend(place.existing_file);
            }
            OutputPlace::Open(file) => {
                self.open.insert(file);
            }
        }
    }
}

/// Where an output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputPlace {
    /// At a path. The output replaces the file that is there.
    Name(NamedPlace),
    /// Directly in a file that is already open, such as standard output.
    Open(FileId),
}

impl Run {
    /// Starts a run. Call it before any file is opened, because only later files count as inputs.
    pub fn begin() -> Self {
        let state = RunState { start: RunStart::now(), outputs: Mutex::default() };
        Self { state: Arc::new(state), content: Content::Summary }
    }

    /// Starts a run whose outputs contain data that is copied from the inputs. Only users who may read all inputs may
    /// then read the outputs.
    pub fn begin_copying() -> Self {
        Self { content: Content::OfInputs, ..Self::begin() }
    }

    /// What the outputs contain: a summary, or data of the inputs.
    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// The permissions for an output that has data of all inputs that were opened so far.
    pub(super) fn mode_of_inputs(&self) -> u32 {
        self.state.start.mode_of_inputs()
    }

    /// Counts a file as an input of this run, although it was read before the run began.
    pub fn has_read(&self, path: &Path) {
        if let Some(about) = super::typed_metadata(path) {
            opened::remember(&about, modes::mode_of_typed(path, &about));
        }
    }

    /// Fails if an output of this run goes to `path`. Call this before anything other than an output is created there.
    pub fn leave_outputs(&self, path: &Path) -> Result<()> {
        let place = OutputPlace::named(path).map_err(|error| error.in_file(path))?;
        if self.outputs(|outputs| outputs.contains(&place)) {
            return Err(twice().in_file(path));
        }
        Ok(())
    }

    /// Reserves a place for an output. Fails if the file there is an input, or if another output of the run goes there.
    pub(super) fn claim(&self, place: &OutputPlace) -> Result<()> {
        self.check(place)?;
        self.outputs(|outputs| {
            if outputs.contains(place) {
                return Err(twice());
            }
            outputs.insert(place.clone());
            Ok(())
        })
    }

    /// Fails if the file at this place has been opened as an input, or if the place is in the directory of an input
    /// recording.
    pub(super) fn check(&self, place: &OutputPlace) -> Result<()> {
        let start = &self.state.start;
        match place {
            // A recording may be a directory of files. The directory then counts as an input itself.
            OutputPlace::Name(NamedPlace { directory, .. }) if start.was_opened(*directory) => {
                Err(Error::usage("is in the directory of an input recording; choose another output"))
            }
            OutputPlace::Name(NamedPlace { existing_file: Some(file), .. }) | OutputPlace::Open(file)
                if start.was_opened(*file) =>
            {
                Err(Error::usage("is also an input; choose another output"))
            }
            OutputPlace::Name(_) | OutputPlace::Open(_) => Ok(()),
        }
    }

    fn outputs<T>(&self, f: impl FnOnce(&mut ClaimedPlaces) -> T) -> T {
        f(&mut self.state.outputs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn twice() -> Error {
    Error::usage("is also another output of this run; choose another output")
}

impl OutputPlace {
    /// The place of an output at `path`. If the path's last component is a link, the place is that of the link itself.
    pub(super) fn named(path: &Path) -> Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unwritable = |error| Error::new("cannot write there").because(error);
        let name = path.file_name().unwrap_or_default();
        let place = open_directory(parent).and_then(|directory| NamedPlace::look_up(&directory, name));
        Ok(Self::Name(place.map_err(unwritable)?))
    }

    /// The place of an open file. `None` for a device or pipe: nothing there could be overwritten.
    pub(super) fn open(file: &File) -> Option<Self> {
        let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Self::Open(FileId::new(&about)))
    }
}
