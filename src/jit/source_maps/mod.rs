//! Finds, checks and loads the source maps of scripts whose functions occur in a profile.
//!
//! | tried in this order | |
//! |---|---|
//! | `--source-maps FILE=SCRIPT` | for scripts with this path, or whose path ends with it |
//! | `--source-maps FILE`, `DIR` | `SCRIPT.map`, else a map with the script's `debugId` or `file` |
//! | `//# sourceMappingURL=` in the script | a `data:` URL; a path or `file:` URL below the script's directory |
//! | `SCRIPT.map` next to the script | |
//!
//! For WebAssembly modules, see [`modules`].
//!
//! The script itself is where the runtime read it (below `--symfs`), or in the input's directory. Anybody may have
//! written the script. Therefore files that it names are opened through [`crate::io::door`] and only within its own
//! directory, and nothing is ever downloaded.

mod find;
mod modules;
mod native_functions;
pub(super) mod options;
mod paths;

pub(crate) use modules::is_wasm_module;
pub(crate) use native_functions::NativeFunctions;
pub use options::{GivenMap, SourceMapOptions};

use crate::error::{Warning, Warnings};
use crate::model::code::AuthoredLines;
use crate::model::script_map::Place;
use crate::runtimes::script_name::ScriptName;
use crate::runtimes::wasm_name::WasmName;
use crate::symbolize::authored::{Authored, AuthoredModule, AuthoredPlace, FunctionAnswer};
use find::{Finder, Lookup, MAX_SIZE};
use options::MapSearch;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The source maps for a profile's scripts, and what they say about its functions.
#[derive(Debug, Default)]
pub struct SourceMaps {
    authored: Authored,
    /// The WebAssembly module from the user for functions in native code. The profile doesn't say which module these
    /// belong to.
    native: Option<AuthoredModule>,
    /// For each generated name as it occurs in the profile, such as `JS:*f /a.js:1:2`, the authored name in the same
    /// spelling.
    names: FxHashMap<Box<[u8]>, String>,
    /// True if the text of authored files may be shown.
    shows_text: bool,
    /// The total size in bytes of all scripts and maps read so far; a file that has several paths counts several times.
    size: usize,
    /// What became of the search for each script's source map, for messages and for `pack`.
    pub accounts: Vec<MapAccount>,
}

/// What became of the search for a script's source map, for messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapAccount {
    /// The script, as the runtime names it.
    pub script: String,
    /// The source map, if one was found.
    pub map: Option<String>,
    /// How many of the script's functions occur in the profile.
    pub functions: usize,
    /// True if most of the script's functions start so far right in their lines that a tool must have written the
    /// script.
    pub minified: bool,
    /// How many of the script's functions got another name.
    pub renamed: usize,
    /// How many of the script's functions got an authored position. Includes all that got another name.
    pub placed: usize,
    /// How many of the script's functions are third-party code according to the source map (`ignoreList`).
    pub third_party: usize,
    /// How many of the script's functions keep their generated names, because script, map and profile contradict each
    /// other.
    pub contradicted: usize,
    /// Why the source map isn't used; `None` if it is used or there is no map.
    pub trouble: Option<String>,
    /// True if the source map doesn't seem to fit but is used because the user named it.
    pub is_doubtful: bool,
    /// The files of the script and its source map, for `pack`, which copies them. For each: the path where jitgraft
    /// would look for it on the recorded machine, and where it actually is.
    pub files: Vec<(PathBuf, PathBuf)>,
}

/// For each script, its functions by position and name. The innermost list has the spellings of one function.
type ScriptFunctions<'n> = BTreeMap<&'n str, BTreeMap<(Place, &'n str), Vec<ScriptName<'n>>>>;

impl SourceMaps {
    /// Finds the source maps of the scripts with these functions, and the modules of WebAssembly functions. `native`
    /// are the WebAssembly functions in native code.
    pub(crate) fn find<'n>(
        names: impl Iterator<Item = ScriptName<'n>>,
        native: &NativeFunctions<'n>,
        search: &MapSearch<'_>,
        warnings: &mut Warnings,
    ) -> Self {
        let mut scripts = ScriptFunctions::new();
        for name in names {
            // A line or column of 0 is unknown. A source map can't be asked about a function without a position.
            let Some(place) = Place::from_one(name.line, name.column) else { continue };
            let spellings = scripts.entry(name.script).or_default().entry((place, name.function)).or_default();
            if !spellings.contains(&name) {
                spellings.push(name);
            }
        }
        let mut maps = Self { shows_text: search.options.text, ..Self::default() };
        let finder = Finder::new(*search);
        let has_scripts = !scripts.is_empty();
        for (script, functions) in scripts {
            maps.add(script, &functions, &finder, warnings);
        }
        // Without scripts in the profile, no map could match, so a warning would be pointless.
        if has_scripts {
            for map in finder.unused_maps() {
                let map = map.display();
                warnings.push(Warning::new(format!(
                    "source map {map} matches none of the scripts; if it should, pass --source-maps {map}=SCRIPT"
                )));
            }
        }
        maps.add_native(native, &finder, warnings);
        warnings.append(finder.take_read_warnings());
        maps
    }

    /// The authored position of a function, and its authored name if that differs from the generated one. `None` if no
    /// source map contains the function.
    pub fn function(&self, name: &ScriptName<'_>) -> Option<(AuthoredPlace<'_>, Option<String>)> {
        self.authored.function(name.script, name.function, name.line, name.column).ok()?
    }

    /// The authored position for a position in a script, whose line and column count from 1. `None` if no source map
    /// has it.
    pub fn place(&self, script: &str, line: u32, column: u32) -> Option<AuthoredPlace<'_>> {
        self.authored.script(script)?.place(line, column)
    }

    /// Looks for the source map of a script and applies it. `functions` are the script's functions by position and
    /// name, each with all of its spellings in the profile.
    fn add(
        &mut self,
        script: &str,
        functions: &BTreeMap<(Place, &str), Vec<ScriptName<'_>>>,
        finder: &Finder<'_>,
        warnings: &mut Warnings,
    ) {
        if is_wasm_module(script) {
            return self.add_module(script, functions, finder, warnings);
        }
        let mut account = MapAccount::new(script, functions.len());
        account.minified = is_minified(functions.keys().map(|(place, _)| *place));
        match finder.find_script(script) {
            Lookup::Nothing => {}
            Lookup::Refused { map, why } => (account.map, account.trouble) = (map, Some(why)),
            Lookup::Found { map, size, .. } if (self.size + size) as u64 > MAX_SIZE => {
                account.map = Some(map);
                account.trouble = Some("all scripts and maps together are larger than 1 GiB".to_owned());
            }
            Lookup::Found { map, found: loaded, places, size, is_given } => {
                self.size += size;
                (account.map, account.files) = (Some(map), places);
                let names = functions.keys().map(|(place, name)| (*name, *place));
                // A map that the user named is used even if it doesn't seem to fit.
                if !is_given && !loaded.fits() {
                    account.trouble = Some("the map does not fit the script".to_owned());
                } else if let Some(answers) = loaded.functions(names) {
                    self.rename(functions, answers, &mut account);
                    account.is_doubtful = !loaded.fits() && account.placed > 0;
                    self.authored.add(script, *loaded);
                } else {
                    // Many functions aren't in the script's text at the positions that the profile states.
                    account.trouble = Some("the script is not the one that ran".to_owned());
                }
            }
        }
        warnings.extend(account.warning());
        self.accounts.push(account);
    }

    /// Looks for the debugging information of a WebAssembly module, and applies it. `functions` are the module's
    /// functions by position and name. In positions in a module, the line is always 1, and the column is the offset
    /// (from 0 in a [`Place`], and from 1 in what [`Authored`] is asked for).
    fn add_module(
        &mut self,
        url: &str,
        functions: &BTreeMap<(Place, &str), Vec<ScriptName<'_>>>,
        finder: &Finder<'_>,
        warnings: &mut Warnings,
    ) {
        let mut account = MapAccount::new(url, functions.len());
        let starts: Vec<_> = functions.keys().map(|(place, name)| (place.column, *name)).collect();
        if let Some(module) = account.take_found(finder.find_module(url, &starts)) {
            self.authored.add_module(url, module);
            for (column, name) in starts {
                let Ok(Some((place, name))) = self.authored.function(url, name, 1, column + 1) else { continue };
                account.renamed += usize::from(name.is_some());
                // For a function without a known authored position, `place` is its position in the module, with `url`
                // as the file. That doesn't count as placed.
                account.placed += usize::from(name.is_some() || place.file != url);
            }
        }
        warnings.extend(account.warning());
        self.accounts.push(account);
    }

    /// Finds authored names of WebAssembly functions in native code, if the user named their module. The profile
    /// doesn't say which module they belong to.
    fn add_native(
        &mut self,
        NativeFunctions { names, functions, is_repeated }: &NativeFunctions<'_>,
        finder: &Finder<'_>,
        warnings: &mut Warnings,
    ) {
        if functions.is_empty() {
            return;
        }
        let mut account = MapAccount::new("native WebAssembly code", functions.len());
        let found = account.take_found(finder.find_given_module(functions));
        if *is_repeated && found.is_some() {
            account.trouble = Some("some functions were compiled twice, so they may be from two modules".to_owned());
        } else if let Some(module) = found {
            self.native = Some(module);
            for name in names {
                let Some((spelled, _)) = self.native(name) else { continue };
                account.placed += 1;
                account.renamed += usize::from(spelled.as_bytes() != *name);
                self.names.insert((*name).into(), spelled);
            }
            // From here on, names are counted and not functions, as in `placed` and `renamed`: a function may occur
            // under several names.
            account.functions = names.len();
        }
        warnings.extend(account.warning());
        self.accounts.push(account);
    }

    /// Translates the name of a WebAssembly function that a runtime compiled to native code, such as a name in a perf
    /// map. Returns a name in the same style that contains the authored function's name, and where that function is
    /// defined in the authored source, if known. `None` if `name` isn't the name of a WebAssembly function, or if no
    /// source map or debug information knows the function.
    pub fn native(&self, name: &[u8]) -> Option<(String, Option<AuthoredPlace<'_>>)> {
        let parts = WasmName::parse(name)?;
        let (function, place) = self.native.as_ref()?.function(parts.number)?;
        let position = match place {
            Some(AuthoredPlace { file, line, column, .. }) => format!(" {file}:{line}:{column}"),
            None => String::new(),
        };
        Some((parts.spell(function, &position), place))
    }

    /// Stores the authored names of a script's functions. `answers` has what the source map says about each function,
    /// in the order of `functions`.
    fn rename(
        &mut self,
        functions: &BTreeMap<(Place, &str), Vec<ScriptName<'_>>>,
        answers: Vec<FunctionAnswer<'_>>,
        account: &mut MapAccount,
    ) {
        self.names.reserve(functions.len());
        for (((_, function), spellings), answer) in functions.iter().zip(answers) {
            match answer {
                Ok(Some((AuthoredPlace { file, line, column, is_third_party }, authored))) => {
                    account.placed += 1;
                    account.renamed += usize::from(authored.is_some());
                    account.third_party += usize::from(is_third_party);
                    let authored = authored.as_deref().unwrap_or(function);
                    for name in spellings {
                        self.names.insert(name.whole.into(), name.spell(authored, file, line, column));
                    }
                }
                // The source map doesn't cover the function, which keeps its name.
                Ok(None) => {}
                // Script, map and profile contradict each other about the function.
                Err(_) => account.contradicted += 1,
            }
        }
    }

    /// True if neither a source map nor a WebAssembly module is in use.
    pub fn is_empty(&self) -> bool {
        self.authored.is_empty() && self.native.is_none()
    }

    /// The authored name of a function in V8's spelling; the name itself if there is none.
    pub(crate) fn name_of<'n>(&'n self, name: &'n [u8]) -> &'n [u8] {
        self.names.get(name).map_or(name, String::as_bytes)
    }

    /// For each source map, a line about how many functions got names and positions from it.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.accounts.iter().filter_map(MapAccount::remark)
    }

    /// The text of an authored file. The outer `None` means that no map names the file; the inner one, that no map
    /// contains its text or that it may not be shown.
    pub fn source_text(&self, file: &[u8]) -> Option<Option<&str>> {
        let text = self.authored.source_text(std::str::from_utf8(file).ok()?)?;
        Some(text.filter(|_| self.shows_text))
    }
}

impl AuthoredLines for SourceMaps {
    fn position(&self, file: &[u8], line: u32, column: u32) -> Option<(&[u8], u32, u32)> {
        let AuthoredPlace { file, line, column, .. } = self.place(std::str::from_utf8(file).ok()?, line, column)?;
        Some((file.as_bytes(), line, column))
    }

    fn function<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        self.authored.name(name)
    }
}

/// True if most functions start further right in their lines than people write code.
fn is_minified(functions: impl ExactSizeIterator<Item = Place>) -> bool {
    /// Columns from here on are beyond the line length that any style guide permits.
    const FAR: u32 = 300;
    let all = functions.len();
    functions.filter(|place| place.column > FAR).count() * 2 > all
}

impl MapAccount {
    fn new(script: &str, functions: usize) -> Self {
        Self { script: script.to_owned(), functions, ..Self::default() }
    }

    /// Records the result of a lookup, and returns what was found, if anything.
    fn take_found<T>(&mut self, lookup: Lookup<T>) -> Option<T> {
        match lookup {
            Lookup::Nothing => None,
            Lookup::Refused { map, why } => {
                (self.map, self.trouble) = (map, Some(why));
                None
            }
            Lookup::Found { map, found, places, .. } => {
                (self.map, self.files) = (Some(map), places);
                Some(found)
            }
        }
    }

    /// A remark for the user on how many functions got authored names; `None` if there is nothing to say. If the source
    /// map was not used (`trouble`), there is a warning instead.
    fn remark(&self) -> Option<String> {
        let Self { map: Some(map), functions, renamed, third_party, contradicted, trouble: None, .. } = self else {
            return None;
        };
        // No function got an authored name or position (functions with a new name count as placed, too), and none
        // contradicts the script or the source map. So there is nothing to say.
        if self.placed == 0 && *contradicted == 0 {
            return None;
        }
        let third_party = match third_party {
            0 => String::new(),
            1 => "; 1 function is from a third-party source (ignoreList)".to_owned(),
            count => format!("; {count} functions are from third-party sources (ignoreList)"),
        };
        let contradicted = match contradicted {
            0 => String::new(),
            1 => "; 1 function doesn't match the script or the map and keeps its name".to_owned(),
            count => format!("; {count} functions don't match the script or the map and keep their names"),
        };
        Some(format!(
            "{map}: {renamed} of {functions} functions have names from the original source, {} more have only \
             positions from it{third_party}{contradicted}",
            self.placed - renamed
        ))
    }

    /// A warning that the source map was not used, or that it was used but may not fit; `None` if neither is the case.
    /// A map that may not fit is used only if the user named it.
    fn warning(&self) -> Option<Warning> {
        if self.is_doubtful
            && let Some(map) = &self.map
        {
            return Some(Warning::new(format!(
                "source map {map} doesn't seem to fit {}, but was used because you passed it with --source-maps",
                self.script
            )));
        }
        let Self { map: Some(map), script, functions, trouble: Some(why), .. } = self else { return None };
        let kind = if map.ends_with(".wasm") { "module" } else { "source map" };
        let functions = match functions {
            1 => format!("1 function of {script} keeps its generated name"),
            count => format!("{count} functions of {script} keep their generated names"),
        };
        Some(Warning::new(format!("{kind} {map} was not used: {why}. {functions}")))
    }
}
