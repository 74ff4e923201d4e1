//! Finds the text and the source map of a script.

use super::options::{GivenMap, MapSearch};
use super::paths::{authored, file_of, path_on_server, plain};
use crate::error::{Result, Warning, Warnings};
use crate::io;
use crate::io::Bytes;
use crate::io::door::{Door, Holes, Kind, Named, Start};
use crate::model::file_bytes::FileBytes;
use crate::model::script_map::{JsonString, ScriptMap};
use crate::model::wasm_module::WasmModule;
use crate::records::source_map;
use crate::records::source_map::{About, Mention, split_scheme};
use crate::resolve::authored::AuthoredScript;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The result of looking for a source map or a WebAssembly module.
pub(super) enum Lookup<T> {
    /// There is no source map, and no reason to expect one.
    Nothing,
    /// There is a source map, but it can't be used.
    Refused {
        /// The map's name.
        map: Option<String>,
        /// The reason.
        why: String,
    },
    Found {
        /// The name of the map, or of the file with names.
        map: String,
        /// The script with its source map, or the module.
        found: T,
        /// The files that were read: the path where each would be looked for, and where it actually is.
        places: Vec<(PathBuf, PathBuf)>,
        /// The number of bytes read.
        size: usize,
        /// True if the user named this file.
        is_given: bool,
    },
}

/// A WebAssembly module that was found.
#[derive(Debug, Clone)]
pub(super) struct ModuleFile {
    pub(super) path: PathBuf,
    pub(super) module: Rc<WasmModule>,
    /// True if the user named it for functions whose module isn't known.
    pub(super) is_given: bool,
}

/// The name of a source map, and why it isn't used.
type Refusal = (String, String);

/// Scripts and source maps are text files.
const TEXT: Kind =
    Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a script or a source map" };

/// Maximum size in bytes of a file, and of all files together. While a source map is parsed, it is in memory several
/// times.
pub(super) const LARGEST: u64 = 1 << 30;

/// The maximum number of modules, and of earlier scripts that a script was generated from, to read.
pub(super) const MOST_MAPS: usize = 1000;

/// How often a script may have been generated from another one: by a compiler, a bundler, a minifier.
const DEEPEST: usize = 3;

/// The path and text of a script.
type PlacedText = (PathBuf, String);

/// A source map that may belong to a script.
struct Candidate {
    name: String,
    /// Its path, if it is a file of its own.
    path: Option<PathBuf>,
    file: FileBytes,
    /// The directory that its sources are relative to.
    base: PathBuf,
    /// True if the user named this file.
    is_given: bool,
}

/// The source maps in a directory.
#[derive(Debug, Default)]
struct MapDirectory {
    /// Sorted by name.
    paths: Vec<PathBuf>,
    /// The first map for each `debugId`, in lower case.
    by_debug_id: FxHashMap<String, usize>,
    /// The first map for each script name, among maps without a `debugId`.
    by_script: FxHashMap<String, usize>,
}

pub(super) struct Finder<'a> {
    pub(super) search: MapSearch<'a>,
    /// For files from the user that aren't named after a script: which script each says it belongs to. Read once per
    /// file rather than once per script.
    asked: RefCell<FxHashMap<PathBuf, Option<About>>>,
    /// The user's directories that have been read.
    directories: RefCell<FxHashMap<PathBuf, Rc<MapDirectory>>>,
    /// Warnings about files in these directories that could not be read.
    unread: RefCell<Warnings>,
    /// The user's source maps that were used for a script.
    used: RefCell<FxHashSet<PathBuf>>,
    /// All available WebAssembly modules.
    pub(super) modules: OnceCell<Vec<ModuleFile>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(search: MapSearch<'a>) -> Self {
        let (asked, directories, unread, used) = Default::default();
        Self { search, asked, directories, unread, used, modules: OnceCell::new() }
    }

    /// Takes the warnings about files in the user's directories that could not be read.
    pub(super) fn take_unread(&self) -> Warnings {
        self.unread.take()
    }

    /// Finds the text and the source map of a script by the name that the runtime gives it.
    pub(super) fn find(&self, script: &str) -> Lookup<Box<AuthoredScript>> {
        // Runtimes spell a script's path in only one way; ignoring other spellings avoids reading a file twice.
        let is_plain = |path: &Path| plain(path).as_os_str() == path.as_os_str();
        let (recorded, found) = match (file_of(script), path_on_server(script)) {
            (Some(recorded), _) if is_plain(&recorded) => {
                let found = self.script(self.places(&recorded));
                (recorded, found)
            }
            (None, Some(recorded)) => {
                let found = self.script(self.beside(&recorded).into_iter());
                (recorded, found)
            }
            _ => return Lookup::Nothing,
        };
        let (place, text) = match found {
            None => return Lookup::Nothing,
            Some(Ok(found)) => found,
            Some(Err((map, why))) => return Lookup::Refused { map: Some(map), why },
        };
        let mention = Mention::find(&text);
        let found = self.given(&recorded, &mention).or_else(|| self.own(&recorded, &place, &mention));
        match found {
            None => Lookup::Nothing,
            Some(Err((map, why))) => Lookup::Refused { map: Some(map), why },
            Some(Ok(found)) => {
                let (map, path, is_given) = (found.name.clone(), found.path.clone(), found.is_given);
                let debug_id = mention.debug_id.map(str::to_owned);
                match self.load(text, debug_id, found, (&recorded, &place), DEEPEST) {
                    Ok((script, size)) => {
                        let path = path.map(|path| (map_path(&recorded, &place, &path), path));
                        let places = [(recorded, place)].into_iter().chain(path).collect();
                        let script = if is_given { script.given() } else { script };
                        Lookup::Found { map, found: Box::new(script), places, size, is_given }
                    }
                    Err(why) => Lookup::Refused { map: Some(map), why },
                }
            }
        }
    }

    /// Parses a script's source map, and up to `deep` levels of source maps of the scripts that it was generated from.
    /// `debug_id` is the script's; `recorded` is the path that the runtime read, and `place` where the script is now.
    /// Also returns the number of bytes read.
    fn load(
        &self,
        text: String,
        debug_id: Option<String>,
        Candidate { file, base, is_given, .. }: Candidate,
        (recorded, place): (&Path, &Path),
        deep: usize,
    ) -> Result<(AuthoredScript, usize), String> {
        let parsed = source_map::parse(&file).map_err(|error| error.to_string())?;
        let paths = base.as_os_str().len().saturating_mul(parsed.sources.len());
        if paths > source_map::room_for_paths(file.bytes().len()) {
            return Err("the paths of its sources are too long".to_owned());
        }
        let mut size = text.len() + file.bytes().len();
        if let (Some(of_map), Some(of_script)) = (&parsed.debug_id, debug_id)
            && !is_given
            && !of_map.eq_ignore_ascii_case(&of_script)
        {
            return Err("its debugId is not the script's".to_owned());
        }
        let files: Vec<String> = parsed.sources.iter().map(|source| authored(&source.path, &base)).collect();
        let earlier = match deep {
            0 => Vec::new(),
            _ => self.earlier(&parsed, &files, (recorded, place), deep - 1),
        };
        size += earlier.iter().map(|(_, (_, size))| size).sum::<usize>();
        let earlier: Vec<_> = earlier.into_iter().map(|(at, (script, _))| (at, script)).collect();
        let script = AuthoredScript::new(text, parsed, files);
        Ok((if earlier.is_empty() { script } else { script.through(earlier) }, size))
    }

    /// Among the files that a script was generated from, those that are scripts with a matching source map of their
    /// own.
    fn earlier(
        &self,
        map: &ScriptMap,
        files: &[String],
        (recorded, place): (&Path, &Path),
        deep: usize,
    ) -> Vec<(u32, (AuthoredScript, usize))> {
        let is_script =
            |file: &Path| file.extension().is_some_and(|kind| kind == "js" || kind == "mjs" || kind == "cjs");
        let files = files.iter().map(Path::new).enumerate();
        let scripts = files.filter(|(_, file)| is_script(file) && *file != recorded).take(MOST_MAPS);
        let read = |(at, file): (usize, &Path)| {
            // Only files below the script's own directory: anybody may have written the map.
            let below = file.strip_prefix(plain(recorded.parent()?)).ok();
            let here = below.and_then(|below| Some(place.parent()?.join(below)));
            let content = map.sources.get(at)?.content.as_ref();
            // Texts are long, and mention their source map at the end.
            let ending = match content {
                Some(text) => text.ending(Mention::is_code)?,
                None => decoded(&self.read(here.as_ref()?, Named::Recording)?.ok()?),
            };
            let mention = Mention::find(&ending);
            let is_inline = mention.url.is_some_and(|url| url.starts_with("data:"));
            let here = here.or_else(|| is_inline.then(|| file.to_owned()))?;
            let found = self.own(file, &here, &mention)?.ok()?;
            let debug_id = mention.debug_id.map(str::to_owned);
            let text = content.map_or(Some(ending), JsonString::text)?;
            let script = self.load(text, debug_id, found, (file, &here), deep).ok()?;
            script.0.fits().then_some((u32::try_from(at).ok()?, script))
        };
        scripts.filter_map(read).collect()
    }

    /// Where a script may be that the runtime read from a file: below the `--symfs` directories, or at its own path if
    /// there are none; or in the input's directory.
    pub(super) fn places<'p>(&'p self, recorded: &'p Path) -> impl Iterator<Item = PathBuf> + 'p {
        let below = |root: &PathBuf| root.join(recorded.strip_prefix("/").unwrap_or(recorded));
        let own = self.search.symfs.is_empty().then(|| recorded.to_owned());
        self.search.symfs.iter().map(below).chain(own).chain(self.beside(recorded))
    }

    /// Where the script would be in the input's directory.
    pub(super) fn beside(&self, recorded: &Path) -> Option<PathBuf> {
        Some(self.search.beside?.join(recorded.file_name()?))
    }

    /// The script's text and location. A script that exists but can't be read is reported only if there is a source map
    /// next to it.
    fn script(&self, places: impl Iterator<Item = PathBuf>) -> Option<Result<PlacedText, Refusal>> {
        let mut refused = None;
        for place in places {
            match self.read(&place, Named::Recording) {
                None => {}
                Some(Ok(text)) => return Some(Ok((place, decoded(&text)))),
                Some(Err(why)) => refused = refused.or_else(|| Some((self.map_beside(&place)?, why))),
            }
        }
        refused.map(Err)
    }

    fn map_beside(&self, script: &Path) -> Option<String> {
        let map = script.with_file_name(with_map(script.file_name()?));
        Named::Recording.door(self.search.force).look(&map).map(|_| map.display().to_string())
    }

    fn read(&self, path: &Path, named: Named) -> Option<Result<Bytes, String>> {
        self.read_by(path, named.door(self.search.force), TEXT)
    }

    /// Reads a file; `None` if it doesn't exist.
    pub(super) fn read_by(&self, path: &Path, door: Door<'_>, kind: Kind) -> Option<Result<Bytes, String>> {
        if door.look(path).is_some_and(|about| about.len() > LARGEST) {
            return Some(Err("it is larger than 1 GiB".to_owned()));
        }
        let opened = door.open(path, kind)?;
        Some(opened.map(|opened| opened.bytes).map_err(|error| error.to_string()))
    }

    /// The source map that the user named for a script.
    fn given(&self, script: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, Refusal>> {
        for GivenMap { path, script: of } in &self.search.options.given {
            let found = match of {
                Some(of) if !script.ends_with(of) => None,
                Some(_) => self.candidate(path, Named::User).map(as_given),
                None if io::is_directory(path) => self.in_directory(path, script, mention),
                None => self.if_of(path, script, mention).map(as_given),
            };
            if found.is_some() {
                self.used.borrow_mut().insert(path.clone());
                return found;
            }
        }
        None
    }

    /// The user's source maps that weren't used for any script.
    pub(super) fn unused(&self) -> Vec<&Path> {
        let used = self.used.borrow();
        let is_unused = |path: &&Path| path.extension().is_some_and(|kind| kind == "map") && !used.contains(*path);
        let files = self.search.options.given.iter().map(|given| given.path.as_path());
        files.filter(|path| is_unused(path) && !io::is_directory(path)).collect()
    }

    fn in_directory(
        &self,
        directory: &Path,
        script: &Path,
        mention: &Mention<'_>,
    ) -> Option<Result<Candidate, Refusal>> {
        let name = script.file_name()?;
        let door = self.door_below(directory);
        if let Some(found) = self.candidate_by(&directory.join(with_map(name)), door) {
            return Some(found);
        }
        let debug_id = mention.debug_id?.to_ascii_lowercase();
        let known = self.directories.borrow().get(directory).cloned();
        let maps = known.unwrap_or_else(|| {
            let read = Rc::new(self.read_directory(directory));
            self.directories.borrow_mut().insert(directory.to_owned(), read.clone());
            read
        });
        let by_script = name.to_str().and_then(|name| maps.by_script.get(name));
        let first = maps.by_debug_id.get(&debug_id).into_iter().chain(by_script).min()?;
        self.candidate_by(&maps.paths[*first], door)
    }

    /// Reads what each source map in a directory says it belongs to. Links aren't followed, because the user didn't
    /// name these files.
    fn read_directory(&self, directory: &Path) -> MapDirectory {
        let mut maps = MapDirectory::default();
        let is_map = |name: &OsStr| name.as_encoded_bytes().ends_with(b".map");
        let door = self.door_below(directory);
        let listed = door.list(directory, is_map).unwrap_or_else(|| Ok(Vec::new()));
        let listed = listed.map_err(|error| self.unread.borrow_mut().push(error.into_warning()));
        let mut names: Vec<OsString> = listed.into_iter().flatten().map(|(name, _)| name).collect();
        names.sort();
        for name in names {
            let (path, at) = (directory.join(name), maps.paths.len());
            match self.read_by(&path, door, TEXT) {
                None => continue,
                Some(Err(why)) => {
                    let warning = Warning::new(format!("not used as a source map: {why}"));
                    self.unread.borrow_mut().push(warning.in_file(&path, None));
                    continue;
                }
                Some(Ok(bytes)) => match About::read(&bytes) {
                    Ok(About { debug_id: Some(id), .. }) => {
                        maps.by_debug_id.entry(id.to_ascii_lowercase()).or_insert(at);
                    }
                    Ok(About { script: Some(script), .. }) => _ = maps.by_script.entry(script).or_insert(at),
                    Ok(_) | Err(_) => {}
                },
            }
            maps.paths.push(path);
        }
        maps
    }

    /// How to open files in a directory that the user named.
    pub(super) fn door_below<'d>(&self, directory: &'d Path) -> Door<'d> {
        Door { named: Named::Recording, start: Start::Typed(directory), force: self.search.force }
    }

    /// A source map from the user, if it is named after the script or says that it belongs to it.
    fn if_of(&self, path: &Path, script: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, Refusal>> {
        let name = script.file_name()?;
        if path.file_name() == Some(&with_map(name)) {
            return self.candidate(path, Named::User);
        }
        let mut asked = self.asked.borrow_mut();
        let about =
            asked.entry(path.to_owned()).or_insert_with(|| About::read(&self.read(path, Named::User)?.ok()?).ok());
        let About { debug_id, script } = about.as_ref()?;
        let same_id = debug_id.as_deref().zip(mention.debug_id).map(|(own, of)| own.eq_ignore_ascii_case(of));
        let same_name = || script.as_deref().is_some_and(|own| OsStr::new(own) == name);
        same_id.unwrap_or_else(same_name).then(|| self.candidate(path, Named::User))?
    }

    fn candidate(&self, path: &Path, named: Named) -> Option<Result<Candidate, Refusal>> {
        self.candidate_by(path, named.door(self.search.force))
    }

    fn candidate_by(&self, path: &Path, door: Door<'_>) -> Option<Result<Candidate, Refusal>> {
        let name = path.display().to_string();
        let base = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned())).unwrap_or_default();
        let candidate = |bytes| Candidate {
            name: name.clone(),
            path: Some(path.to_owned()),
            file: FileBytes::new(bytes),
            base,
            is_given: false,
        };
        Some(self.read_by(path, door, TEXT)?.map_err(|why| (name.clone(), why)).map(candidate))
    }

    /// The source map that the script names, or the one next to it. `recorded` is the path that the runtime read,
    /// `place` where the script is now.
    fn own(&self, recorded: &Path, place: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, Refusal>> {
        let (directory, here) = (recorded.parent()?, place.parent()?);
        let beside = || {
            let path = here.join(with_map(place.file_name()?));
            Some(
                self.candidate(&path, Named::Recording)?.map(|found| Candidate { base: directory.to_owned(), ..found }),
            )
        };
        let Some(url) = mention.url else { return beside() };
        let named = match split_scheme(url) {
            Some(("data", rest)) => {
                let name = format!("in {}", place.display());
                let Some(bytes) = source_map::decode_data_url(rest) else {
                    return Some(Err((name, "cannot decode its data: URL".to_owned())));
                };
                let file = FileBytes::new(bytes);
                return Some(Ok(Candidate { name, path: None, file, base: directory.to_owned(), is_given: false }));
            }
            Some(("file", _)) => Cow::Owned(file_of(url)?),
            Some(_) => {
                let remedy = format!(
                    "jitgraft does not download it; pass a copy with --source-maps \
                                      FILE={}",
                    recorded.display()
                );
                return beside().or(Some(Err((url.to_owned(), remedy))));
            }
            None => {
                let path = OsString::from(String::from_utf8_lossy(&source_map::decode_percent(url)).into_owned());
                Cow::Owned(directory.join(path))
            }
        };
        let named = plain(&named);
        let Ok(below) = named.strip_prefix(plain(directory)) else {
            let why = format!(
                "it is outside the script's directory; if you trust it, pass --source-maps {}={}",
                named.display(),
                recorded.display()
            );
            return beside().or(Some(Err((named.display().to_string(), why))));
        };
        let base = named.parent().unwrap_or(directory).to_owned();
        let found = self.candidate(&here.join(below), Named::Recording);
        match found {
            Some(found) => Some(found.map(|found| Candidate { base, ..found })),
            None => beside(),
        }
    }
}

fn as_given(found: Result<Candidate, Refusal>) -> Result<Candidate, Refusal> {
    Ok(Candidate { is_given: true, ..found? })
}

/// The path where a source map would be looked for: it relates to the recorded path of the script as its actual path
/// (`map`) relates to the actual place of the script.
fn map_path(recorded: &Path, place: &Path, map: &Path) -> PathBuf {
    let (directory, here) = (recorded.parent().unwrap_or(recorded), place.parent().unwrap_or(place));
    let beside = || recorded.with_file_name(with_map(recorded.file_name().unwrap_or_default()));
    map.strip_prefix(here).map_or_else(|_| beside(), |below| directory.join(below))
}

/// Converts to text. Invalid UTF-8 is replaced, as runtimes do.
fn decoded(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned)
}

fn with_map(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".map");
    name
}
