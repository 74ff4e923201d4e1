//! Finds the text and the source map of a script.

use super::options::{GivenMap, MapSearch};
use super::paths::{authored_name, file_from_url, normalize, path_on_server};
use crate::bytes::utf16::{has_utf16_mark, strip_mark};
use crate::error::{Result, Warning, Warnings};
use crate::formats::source_map;
use crate::formats::source_map::{About, Mention, split_scheme};
use crate::io;
use crate::io::Bytes;
use crate::io::door::{Door, Holes, Kind, Named, Start};
use crate::model::file_bytes::FileBytes;
use crate::model::script_map::{JsonString, ScriptMap};
use crate::model::wasm_module::WasmModule;
use crate::symbolize::authored::AuthoredScript;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The result of looking for the source map of a script, or for the file of a WebAssembly module.
pub(super) enum Lookup<T> {
    /// There is no source map, and no reason to expect one.
    Nothing,
    /// There is a source map, but it can't be used.
    Refused {
        /// The source map's name in the warning.
        map: Option<String>,
        /// Why the source map can't be used.
        why: String,
    },
    Found {
        /// The path of the source map, or of the WebAssembly file with names.
        map: String,
        /// The script with its source map, or the module.
        found: T,
        /// The files that were read, for `pack`, which copies them. For each: the path where jitgraft would look for it
        /// on the recorded machine, and where it actually is.
        places: Vec<(PathBuf, PathBuf)>,
        /// The total size of the files that were read, in bytes.
        size: usize,
        /// True if the user passed this very file with `--source-maps`. A source map is then used even if it doesn't
        /// seem to fit.
        is_given: bool,
    },
}

/// A WebAssembly module that was found.
#[derive(Debug, Clone)]
pub(super) struct ModuleFile {
    pub(super) path: PathBuf,
    pub(super) module: Rc<WasmModule>,
    /// True if the user passed the file with `--source-maps` without naming a script. Native WebAssembly functions,
    /// whose module isn't recorded, get their names from such files.
    pub(super) is_given: bool,
}

/// A source map that exists but isn't used.
struct Refusal {
    /// The source map's name in the warning.
    map: String,
    /// Why the source map isn't used.
    why: String,
}

impl<T> From<Refusal> for Lookup<T> {
    fn from(Refusal { map, why }: Refusal) -> Self {
        Self::Refused { map: Some(map), why }
    }
}

/// The kind of file that is accepted: scripts and source maps are text, which has NUL bytes only in UTF-16.
const TEXT: Kind = Kind {
    holes: |head| (!head.contains(&0) || has_utf16_mark(head)).then_some(Holes::Small),
    otherwise: "is not a script or a source map",
};

/// The maximum size in bytes of one file, and of all scripts and source maps together. Memory would need several times
/// as much, because a source map is parsed into other forms.
pub(super) const MAX_SIZE: u64 = 1 << 30;

/// The maximum number of WebAssembly modules to read, and of earlier scripts per generated script.
pub(super) const MAX_MAPS: usize = 1000;

/// How many times a script may have been generated from another one. For example, a minifier may have read the output
/// of a bundler, and the bundler that of a compiler: that is two times.
const MAX_DEPTH: usize = 3;

/// A script's path in the recording and on this machine.
#[derive(Debug, Clone, Copy)]
struct ScriptPaths<'p> {
    /// The path that the runtime read.
    recorded: &'p Path,
    /// Where the script is now.
    actual: &'p Path,
}

/// A script's text, and where it was read.
struct ScriptFile {
    path: PathBuf,
    text: String,
}

/// A script with its source map, and the number of bytes read for both.
struct LoadedScript {
    script: AuthoredScript,
    size: usize,
}

/// A script that another script was generated from, and that has a source map of its own.
struct EarlierScript {
    /// The index of this earlier script among the files that the generated script's source map lists.
    file: u32,
    loaded: LoadedScript,
}

/// A source map that may belong to a script.
struct Candidate {
    /// The source map's name in messages.
    name: String,
    /// The path of the source map; `None` if it is part of the script.
    path: Option<PathBuf>,
    file: FileBytes,
    /// The directory that paths in the source map are relative to.
    base: PathBuf,
    /// True if the user passed this very file with `--source-maps`.
    is_given: bool,
}

/// An index of the source maps in a directory.
#[derive(Debug, Default)]
struct MapDirectory {
    /// The paths of the source maps, sorted by file name.
    paths: Vec<PathBuf>,
    /// For each `debugId`, in lower case, the index in `paths` of the first map with it.
    by_debug_id: FxHashMap<String, usize>,
    /// For each script name that a map without a `debugId` states, the index in `paths` of the first such map.
    by_script: FxHashMap<String, usize>,
}

pub(super) struct Finder<'a> {
    pub(super) search: MapSearch<'a>,
    /// What files from the user say about themselves: to which script each belongs. Only has files that were passed
    /// without naming a script. Each file is read once instead of once per script.
    about_maps: RefCell<FxHashMap<PathBuf, Option<About>>>,
    /// What has been read of the directories that the user passed, so that each is read only once.
    directories: RefCell<FxHashMap<PathBuf, Rc<MapDirectory>>>,
    /// Warnings about files in the user's directories that could not be read.
    read_warnings: RefCell<Warnings>,
    /// The source maps from the user that were found to belong to a script. The others are reported in a warning.
    used_maps: RefCell<FxHashSet<PathBuf>>,
    /// All WebAssembly modules in the places that are searched. They are read when they are first needed.
    pub(super) modules: OnceCell<Vec<ModuleFile>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(search: MapSearch<'a>) -> Self {
        let (about_maps, directories, read_warnings, used_maps) = Default::default();
        Self { search, about_maps, directories, read_warnings, used_maps, modules: OnceCell::new() }
    }

    /// Returns and clears the warnings about files in the user's directories that could not be read.
    pub(super) fn take_read_warnings(&self) -> Warnings {
        self.read_warnings.take()
    }

    /// Finds the text and the source map of a script by the name that the runtime gives it.
    pub(super) fn find_script(&self, name: &str) -> Lookup<Box<AuthoredScript>> {
        // `recorded` is the script's path on the recorded machine, `paths` are those where it may be on this machine.
        // The name is a `file:` URL, or an HTTP URL of a script of which there may be a copy in the input's directory.
        let (recorded, paths) = if let Some(recorded) = file_from_url(name) {
            // A runtime spells a script's path without `.` and `..`. Ignoring other spellings avoids reading a script
            // twice.
            if normalize(&recorded).as_os_str() != recorded.as_os_str() {
                return Lookup::Nothing;
            }
            let paths = self.possible_paths(&recorded);
            (recorded, paths)
        } else if let Some(recorded) = path_on_server(name) {
            let paths = self.path_in_input_dir(&recorded).into_iter().collect();
            (recorded, paths)
        } else {
            return Lookup::Nothing;
        };
        let ScriptFile { path: actual, text } = match self.read_script(paths) {
            None => return Lookup::Nothing,
            Some(Ok(file)) => file,
            Some(Err(refusal)) => return refusal.into(),
        };
        let paths = ScriptPaths { recorded: &recorded, actual: &actual };
        // What comments in the script say about its source map: a URL and an ID.
        let mention = Mention::find(&text);
        // What the user named takes precedence over what the script says.
        let found = self.find_given_map(&recorded, &mention).or_else(|| self.find_map(paths, &mention));
        let candidate = match found {
            None => return Lookup::Nothing,
            Some(Ok(candidate)) => candidate,
            Some(Err(refusal)) => return refusal.into(),
        };
        let (map, map_file, is_given) = (candidate.name.clone(), candidate.path.clone(), candidate.is_given);
        let debug_id = mention.debug_id.map(str::to_owned);
        let LoadedScript { script, size } = match self.load(text, debug_id, candidate, paths, MAX_DEPTH) {
            Ok(loaded) => loaded,
            Err(why) => return Refusal { map, why }.into(),
        };
        let recorded_map = map_file.as_ref().map(|map_file| recorded_map_path(paths, map_file));
        // For `pack`: where to look for each file on the recorded machine, and where it is here.
        let mut places = vec![(recorded, actual)];
        places.extend(recorded_map.zip(map_file));
        let script = if is_given { script.given() } else { script };
        Lookup::Found { map, found: Box::new(script), places, size, is_given }
    }

    /// Parses a script's source map. If the script was generated from other scripts, their source maps are loaded, too,
    /// up to `max_depth` levels deep. `debug_id` is the ID that the script states. The error says why the map can't be
    /// used.
    fn load(
        &self,
        text: String,
        debug_id: Option<String>,
        Candidate { file, base, is_given, .. }: Candidate,
        paths: ScriptPaths<'_>,
        max_depth: usize,
    ) -> Result<LoadedScript, String> {
        let map = source_map::parse(&file).map_err(|error| error.to_string())?;
        // Each path will begin with the source map's directory. If that is long, even a short map with very many
        // sources could use up all memory.
        let len_of_paths = base.as_os_str().len().saturating_mul(map.sources.len());
        if len_of_paths > source_map::room_for_paths(file.bytes().len()) {
            return Err("the paths of its sources are too long".to_owned());
        }
        // A map that the user passed for the script is used in spite of another ID.
        if let (Some(map_id), Some(script_id)) = (&map.debug_id, debug_id)
            && !is_given
            && !map_id.eq_ignore_ascii_case(&script_id)
        {
            return Err("the map's debugId differs from the script's".to_owned());
        }
        let files: Vec<String> = map.sources.iter().map(|source| authored_name(&source.path, &base)).collect();
        let mut size = text.len() + file.bytes().len();
        let mut earlier = Vec::new();
        if max_depth > 0 {
            for EarlierScript { file, loaded } in self.load_earlier_scripts(&map, &files, paths, max_depth - 1) {
                size += loaded.size;
                earlier.push((file, loaded.script));
            }
        }
        let script = AuthoredScript::new(text, map, files);
        let script = if earlier.is_empty() { script } else { script.compose(earlier) };
        Ok(LoadedScript { script, size })
    }

    /// Loads the scripts that a script was generated from, if they have a matching source map of their own. `files` are
    /// the authored files of the script's `map`, `paths` the script's own paths. `max_depth` is how many more times a
    /// script may have been generated from another.
    fn load_earlier_scripts(
        &self,
        map: &ScriptMap,
        files: &[String],
        paths: ScriptPaths<'_>,
        max_depth: usize,
    ) -> Vec<EarlierScript> {
        let mut earlier = Vec::new();
        let mut tried = 0;
        for (index, file) in files.iter().map(Path::new).enumerate() {
            // A map may list its own script, which would then be loaded again.
            if !is_script(file) || file == paths.recorded {
                continue;
            }
            if tried == MAX_MAPS {
                break;
            }
            tried += 1;
            earlier.extend(self.load_earlier_script(map, index, file, paths, max_depth));
        }
        earlier
    }

    /// Loads `file`, a script that another script was generated from. `index` is the index of `file` among the sources
    /// of the generated script's `map`, and `generated` are the generated script's paths. `None` if `file` can't be
    /// read or has no matching source map.
    fn load_earlier_script(
        &self,
        map: &ScriptMap,
        index: usize,
        file: &Path,
        generated: ScriptPaths<'_>,
        max_depth: usize,
    ) -> Option<EarlierScript> {
        // Anybody may have written the generated script's source map. So only files in the generated script's own
        // directory or below it are read, unless the map itself contains the text.
        let actual = match file.strip_prefix(normalize(generated.recorded.parent()?)) {
            Ok(relative) => generated.actual.parent().map(|directory| directory.join(relative)),
            Err(_) => None,
        };
        // The text of `file`, if the generated script's map contains it.
        let content = map.sources.get(index)?.content.as_ref();
        // A script mentions its source map at the end, so the rest of its long text needn't be unescaped.
        let ending = match content {
            Some(text) => text.ending(Mention::is_code)?,
            None => decode(&self.read(actual.as_ref()?, Named::Recording)?.ok()?),
        };
        let mention = Mention::find(&ending);
        let actual = match actual {
            Some(actual) => actual,
            // `file` is outside the generated script's directory, but no file has to be read for it: its text is in the
            // generated script's map, and its own source map is a `data:` URL in that text.
            None if mention.url.is_some_and(|url| url.starts_with("data:")) => file.to_owned(),
            None => return None,
        };
        let paths = ScriptPaths { recorded: file, actual: &actual };
        let candidate = self.find_map(paths, &mention)?.ok()?;
        let debug_id = mention.debug_id.map(str::to_owned);
        // The whole text: from the map, or else from the file, of which `ending` already is the whole text.
        let text = content.map_or(Some(ending), JsonString::text)?;
        let loaded = self.load(text, debug_id, candidate, paths, max_depth).ok()?;
        if !loaded.script.fits() {
            return None;
        }
        Some(EarlierScript { file: u32::try_from(index).ok()?, loaded })
    }

    /// The paths where a file that the runtime read may be: below each `--symfs` directory, or at its own path if there
    /// are none, and finally in the input's directory.
    pub(super) fn possible_paths(&self, recorded: &Path) -> Vec<PathBuf> {
        let relative = recorded.strip_prefix("/").unwrap_or(recorded);
        let mut paths: Vec<PathBuf> = self.search.symfs.iter().map(|root| root.join(relative)).collect();
        if paths.is_empty() {
            paths.push(recorded.to_owned());
        }
        paths.extend(self.path_in_input_dir(recorded));
        paths
    }

    /// The path of a file with this name in the input's directory; `None` if there is no such directory.
    pub(super) fn path_in_input_dir(&self, recorded: &Path) -> Option<PathBuf> {
        Some(self.search.input_dir?.join(recorded.file_name()?))
    }

    /// Reads the first script in `paths` that exists and can be read. If none can be read, but there is a source map
    /// next to an unreadable one, returns the reason as an error. `None` if there is neither a script nor such a
    /// reason.
    fn read_script(&self, paths: Vec<PathBuf>) -> Option<Result<ScriptFile, Refusal>> {
        let mut refusal = None;
        for path in paths {
            match self.read(&path, Named::Recording) {
                None => {}
                Some(Ok(text)) => return Some(Ok(ScriptFile { path, text: decode(&text) })),
                Some(Err(why)) => {
                    if refusal.is_none()
                        && let Some(map) = self.name_adjacent_map(&path)
                    {
                        refusal = Some(Refusal { map, why });
                    }
                }
            }
        }
        refusal.map(Err)
    }

    /// The path of the source map next to a script, for messages; `None` if there is none.
    fn name_adjacent_map(&self, script: &Path) -> Option<String> {
        let map = script.with_file_name(map_name(script.file_name()?));
        Named::Recording.door(self.search.force).look(&map)?;
        Some(map.display().to_string())
    }

    /// Reads a script or source map; `None` if it doesn't exist. The error is the reason why it can't be read.
    fn read(&self, path: &Path, named: Named) -> Option<Result<Bytes, String>> {
        self.read_text(named.door(self.search.force), path)
    }

    /// Reads a script or source map by the rules of `door`, and converts UTF-16 to UTF-8. `None` if it doesn't exist.
    /// The error is the reason why it can't be read.
    fn read_text(&self, door: Door<'_>, path: &Path) -> Option<Result<Bytes, String>> {
        let bytes = match self.read_through(door, path, TEXT)? {
            Ok(bytes) => bytes,
            Err(why) => return Some(Err(why)),
        };
        // A text that already is UTF-8 isn't copied: a large file stays mapped, and needs no memory of its own.
        let converted = match strip_mark(&bytes) {
            Cow::Owned(converted) => Some(converted),
            Cow::Borrowed(_) => None,
        };
        Some(Ok(match converted {
            Some(converted) => Bytes::Owned(converted),
            None => bytes,
        }))
    }

    /// Reads a file by the rules of `door`; `None` if it doesn't exist. The error is the reason why it can't be read.
    pub(super) fn read_through(&self, door: Door<'_>, path: &Path, kind: Kind) -> Option<Result<Bytes, String>> {
        if door.look(path).is_some_and(|about| about.len() > MAX_SIZE) {
            return Some(Err("the file is larger than 1 GiB".to_owned()));
        }
        let opened = door.open(path, kind)?;
        Some(opened.map(|opened| opened.bytes).map_err(|error| error.to_string()))
    }

    /// Finds the first source map from the user that belongs to a script; `None` if none of them does. A map that the
    /// user named itself, not only its directory, is marked as given: it will be used even if it doesn't seem to fit
    /// the script. `mention` is what comments in the script say about its map.
    fn find_given_map(&self, script: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, Refusal>> {
        for GivenMap { path, script: suffix } in &self.search.options.given {
            let found = match suffix {
                Some(suffix) if !script.ends_with(suffix) => None,
                // The user stated the script for which the map is (`MAP=SCRIPT`), so it doesn't matter what the map
                // says about its script.
                Some(_) => self.read_map(path, Named::User).map(mark_as_given),
                // The user named only the directory, so its maps aren't marked as given.
                None if io::is_directory(path) => self.find_in_directory(path, script, mention),
                // The user stated no script, so the map is read only if it belongs to this one by what it says.
                None => self.read_map_if_matching(path, script, mention).map(mark_as_given),
            };
            if found.is_some() {
                self.used_maps.borrow_mut().insert(path.clone());
                return found;
            }
        }
        None
    }

    /// The source maps from the user that belong to none of the scripts.
    pub(super) fn unused_maps(&self) -> Vec<&Path> {
        let used = self.used_maps.borrow();
        let mut unused = Vec::new();
        for GivenMap { path, .. } in &self.search.options.given {
            // Only files named like source maps are reported: a WebAssembly module belongs to no script, and a
            // directory may have maps of other scripts.
            let is_map = path.extension().is_some_and(|extension| extension == "map");
            if is_map && !used.contains(path) && !io::is_directory(path) {
                unused.push(path.as_path());
            }
        }
        unused
    }

    /// Finds the source map for a script in a directory from the user. This is the map named after the script. If there
    /// is none, and the script states a `debugId`, the first map that states this ID is taken, or that states the
    /// script's name and no ID. `mention` is what comments in the script say about its map. `None` if no map is found.
    fn find_in_directory(
        &self,
        directory: &Path,
        script: &Path,
        mention: &Mention<'_>,
    ) -> Option<Result<Candidate, Refusal>> {
        let name = script.file_name()?;
        let door = self.door_below(directory);
        if let Some(found) = self.read_map_through(door, &directory.join(map_name(name))) {
            return Some(found);
        }
        let debug_id = mention.debug_id?.to_ascii_lowercase();
        let maps = self.maps_in_directory(directory);
        let by_script = name.to_str().and_then(|name| maps.by_script.get(name));
        // Two maps may match: one states the script's `debugId`, another the script's name. The one with the lower file
        // name wins.
        let first = maps.by_debug_id.get(&debug_id).into_iter().chain(by_script).min()?;
        self.read_map_through(door, &maps.paths[*first])
    }

    fn maps_in_directory(&self, directory: &Path) -> Rc<MapDirectory> {
        if let Some(known) = self.directories.borrow().get(directory) {
            return Rc::clone(known);
        }
        let maps = Rc::new(self.read_directory(directory));
        self.directories.borrow_mut().insert(directory.to_owned(), Rc::clone(&maps));
        maps
    }

    /// Indexes the source maps in a directory by what they say about their script. Links in the directory aren't
    /// followed, because the user didn't name them.
    fn read_directory(&self, directory: &Path) -> MapDirectory {
        let mut maps = MapDirectory::default();
        let door = self.door_below(directory);
        let mut entries = match door.list(directory, |name| name.as_encoded_bytes().ends_with(b".map")) {
            Some(Ok(entries)) => entries,
            Some(Err(error)) => {
                self.read_warnings.borrow_mut().push(error.into_warning());
                return maps;
            }
            None => return maps,
        };
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, _) in entries {
            let path = directory.join(name);
            let bytes = match self.read_text(door, &path) {
                None => continue,
                Some(Ok(bytes)) => bytes,
                Some(Err(why)) => {
                    let warning = Warning::new(format!("not used as a source map: {why}"));
                    self.read_warnings.borrow_mut().push(warning.in_file(&path, None));
                    continue;
                }
            };
            let index = maps.paths.len();
            maps.paths.push(path);
            // A map that can't be parsed is found neither by an ID nor by a script.
            let Ok(About { debug_id, script }) = About::read(&bytes) else { continue };
            // A map that states an ID is found only by that ID, even if it states a script, too.
            if let Some(id) = debug_id {
                maps.by_debug_id.entry(id.to_ascii_lowercase()).or_insert(index);
            } else if let Some(script) = script {
                maps.by_script.entry(script).or_insert(index);
            }
        }
        maps
    }

    /// The rules for opening files in a directory from the user.
    pub(super) fn door_below<'d>(&self, directory: &'d Path) -> Door<'d> {
        Door { named: Named::Recording, start: Start::Typed(directory), force: self.search.force }
    }

    /// Reads a source map from the user, if it is named after the script or says that it belongs to the script.
    /// Otherwise `None`. `mention` is what comments in the script say about its map.
    fn read_map_if_matching(
        &self,
        path: &Path,
        script: &Path,
        mention: &Mention<'_>,
    ) -> Option<Result<Candidate, Refusal>> {
        let name = script.file_name()?;
        if path.file_name() == Some(&map_name(name)) {
            return self.read_map(path, Named::User);
        }
        // Reads the file unless it was read before for another script. `None` if it can't be read as a source map.
        let mut about_maps = self.about_maps.borrow_mut();
        let about =
            about_maps.entry(path.to_owned()).or_insert_with(|| About::read(&self.read(path, Named::User)?.ok()?).ok());
        let About { debug_id: map_id, script: map_script } = about.as_ref()?;
        let is_matching = match (map_id, mention.debug_id) {
            (Some(map_id), Some(script_id)) => map_id.eq_ignore_ascii_case(script_id),
            _ => map_script.as_deref().is_some_and(|map_script| OsStr::new(map_script) == name),
        };
        if is_matching { self.read_map(path, Named::User) } else { None }
    }

    /// Reads a source map; `None` if it doesn't exist.
    fn read_map(&self, path: &Path, named: Named) -> Option<Result<Candidate, Refusal>> {
        self.read_map_through(named.door(self.search.force), path)
    }

    /// Reads a source map by the rules of `door`. `None` if there is no file at this path.
    fn read_map_through(&self, door: Door<'_>, path: &Path) -> Option<Result<Candidate, Refusal>> {
        let name = path.display().to_string();
        let bytes = match self.read_text(door, path)? {
            Ok(bytes) => bytes,
            Err(why) => return Some(Err(Refusal { map: name, why })),
        };
        let absolute = std::path::absolute(path).unwrap_or_default();
        let base = absolute.parent().unwrap_or(Path::new("")).to_owned();
        Some(Ok(Candidate { name, path: Some(path.to_owned()), file: FileBytes::new(bytes), base, is_given: false }))
    }

    /// Finds the source map that a script refers to, or else the one next to the script. `None` if there is neither. A
    /// file is used only if it is in the script's directory or below it, because anybody may have written the script.
    /// If the script refers to another place, and there is no map next to it, returns the reason as an error. `mention`
    /// is what comments in the script say about the map.
    fn find_map(&self, paths: ScriptPaths<'_>, mention: &Mention<'_>) -> Option<Result<Candidate, Refusal>> {
        let ScriptPaths { recorded, actual } = paths;
        let (recorded_dir, actual_dir) = (recorded.parent()?, actual.parent()?);
        let Some(url) = mention.url else { return self.read_adjacent_map(paths) };
        // `map` is the path of the source map on the recorded machine.
        let map = match split_scheme(url) {
            Some(("data", data)) => {
                let name = format!("in {}", actual.display());
                let Some(bytes) = source_map::decode_data_url(data) else {
                    let why = "cannot decode the data: URL of the script's source map".to_owned();
                    return Some(Err(Refusal { map: name, why }));
                };
                let (file, base) = (FileBytes::new(bytes), recorded_dir.to_owned());
                return Some(Ok(Candidate { name, path: None, file, base, is_given: false }));
            }
            Some(("file", _)) => file_from_url(url)?,
            Some(_) => {
                let why = format!(
                    "jitgraft does not download source maps; pass a copy with --source-maps FILE={}",
                    recorded.display()
                );
                let refusal = Refusal { map: url.to_owned(), why };
                return self.read_adjacent_map(paths).or(Some(Err(refusal)));
            }
            None => recorded_dir.join(&*String::from_utf8_lossy(&source_map::decode_percent(url))),
        };
        let map = normalize(&map);
        let Ok(relative) = map.strip_prefix(normalize(recorded_dir)) else {
            let why = format!(
                "the map is outside the script's directory; if you trust the map, pass --source-maps {}={}",
                map.display(),
                recorded.display()
            );
            let refusal = Refusal { map: map.display().to_string(), why };
            return self.read_adjacent_map(paths).or(Some(Err(refusal)));
        };
        match self.read_map(&actual_dir.join(relative), Named::Recording) {
            Some(Ok(candidate)) => {
                // The paths in a source map are relative to the map's directory on the recorded machine (`base`), not
                // to its directory on this machine.
                Some(Ok(Candidate { base: map.parent().unwrap_or(recorded_dir).to_owned(), ..candidate }))
            }
            Some(Err(refusal)) => Some(Err(refusal)),
            None => self.read_adjacent_map(paths),
        }
    }

    /// Reads the source map next to a script, called `SCRIPT.map`; `None` if there is none.
    fn read_adjacent_map(&self, paths: ScriptPaths<'_>) -> Option<Result<Candidate, Refusal>> {
        let base = paths.recorded.parent()?.to_owned();
        let path = paths.actual.parent()?.join(map_name(paths.actual.file_name()?));
        let found = self.read_map(&path, Named::Recording)?;
        Some(found.map(|candidate| Candidate { base, ..candidate }))
    }
}

/// Marks a map as one that the user named, so that it will be used even if it doesn't seem to fit its script.
fn mark_as_given(found: Result<Candidate, Refusal>) -> Result<Candidate, Refusal> {
    Ok(Candidate { is_given: true, ..found? })
}

fn is_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "js" || extension == "mjs" || extension == "cjs")
}

/// Where the source map would have been on the recorded machine, for archives. `map` is its actual path. If it is below
/// the script's actual directory, the result is at the same place below the script's recorded directory. Otherwise the
/// result is the usual path of a source map next to the script.
fn recorded_map_path(ScriptPaths { recorded, actual }: ScriptPaths<'_>, map: &Path) -> PathBuf {
    match map.strip_prefix(actual.parent().unwrap_or(actual)) {
        Ok(relative) => recorded.parent().unwrap_or(recorded).join(relative),
        Err(_) => recorded.with_file_name(map_name(recorded.file_name().unwrap_or_default())),
    }
}

/// Converts bytes to text. Replaces invalid UTF-8, as runtimes do.
fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The usual file name of a script's source map: `SCRIPT.map`.
fn map_name(script: &OsStr) -> OsString {
    let mut name = script.to_owned();
    name.push(".map");
    name
}
