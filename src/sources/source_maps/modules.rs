//! Finds the modules of WebAssembly functions, and files with names and source positions for them.
//!
//! | the runtime's name for the module | identified by |
//! |---|---|
//! | `wasm://wasm/NAME-a4fc059a` (V8, unless compiled from a stream) | hash, name, and the starts of functions |
//! | a path or URL that ends in `.wasm` | the file there, and the starts of functions |
//! | none: native code in jitdumps and perf maps | the user: `--source-maps FILE.wasm` |
//!
//! Files with the same code are the same module: the one that ships often lacks names. If several modules are possible,
//! none is used.

use super::find::{Finder, LARGEST, Lookup, MOST_MAPS, ModuleFile};
use super::options::GivenMap;
use super::paths::{file_of, path_on_server};
use crate::io;
use crate::io::door::{Door, Holes, Kind, Named};
use crate::model::file_bytes::FileBytes;
use crate::model::wasm_module::WasmModule;
use crate::records::wasm;
use crate::resolve::authored::AuthoredModule;
use crate::resolve::symbols::demangle::demangle;
use crate::runtimes::wasm_name::WasmName;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const MODULE: Kind = Kind {
    holes: |head| head.starts_with(wasm::MAGIC).then_some(Holes::Small),
    otherwise: "is not a WebAssembly module",
};

/// A function as the runtime describes it: the offset of its code in the module, and its name.
pub(super) type StatedFunction<'n> = (u32, &'n str);

/// True if the runtime's name is a WebAssembly module's rather than a script's.
pub(crate) fn is_wasm_module(url: &str) -> bool {
    v8_url(url).is_some() || url.split(['?', '#']).next().is_some_and(|path| path.ends_with(".wasm"))
}

/// The module's name and hash in V8's URL.
fn v8_url(url: &str) -> Option<(Option<&str>, u32)> {
    let rest = url.strip_prefix("wasm://wasm/")?;
    let (name, hash) = rest.rsplit_once('-').map_or((None, rest), |(name, hash)| (Some(name), hash));
    (hash.len() == 8).then(|| Some((name, u32::from_str_radix(hash, 16).ok()?)))?
}

impl Finder<'_> {
    /// The module that the runtime names by a URL, with these functions.
    pub(super) fn module(&self, url: &str, functions: &[StatedFunction<'_>]) -> Lookup<AuthoredModule> {
        let mut at_url = Vec::new();
        let candidates = match v8_url(url) {
            Some(_) => self.module_files(),
            None => {
                let recorded = file_of(url);
                let places = recorded.iter().flat_map(|recorded| self.places(recorded));
                let beside = path_on_server(url).and_then(|recorded| self.beside(&recorded));
                at_url.extend(
                    places
                        .chain(beside)
                        .find_map(|path| self.module_file(path, Named::Recording.door(self.search.force), false)),
                );
                &at_url
            }
        };
        let mut found = Vec::new();
        for file in candidates {
            found.extend(starts(&file.module, url).into_iter().find_map(|code| {
                let numbers = functions.iter().map(|function| number(&file.module, *function, code));
                Some((file, numbers.collect::<Option<Vec<u32>>>()?))
            }));
        }
        let Some((first, numbers)) = found.first() else {
            return match candidates.iter().find(|_| v8_url(url).is_none()) {
                Some(file) => refused(file, "it is not the module that ran (its functions start elsewhere)"),
                None => Lookup::Nothing,
            };
        };
        if let Some((other, _)) = found.iter().find(|(other, _)| !other.module.has_code_of(&first.module)) {
            return refused(first, &format!("{} matches as well", other.path.display()));
        }
        let starts = functions.iter().map(|(start, _)| *start);
        self.authored(url, first, numbers.iter().copied().zip(starts))
    }

    /// The module of native functions, if the user named it. Functions are given by index and, if known, name.
    pub(super) fn given_module(&self, functions: &BTreeSet<(u32, Option<&str>)>) -> Lookup<AuthoredModule> {
        let given: Vec<&ModuleFile> = self.module_files().iter().filter(|file| file.is_given).collect();
        let misfit = |file: &&ModuleFile| {
            functions.iter().find(|(number, name)| !is_called(&file.module, *number, *name)).map(|(number, _)| *number)
        };
        let mut fitting = given.iter().filter(|file| misfit(file).is_none());
        let Some(first) = fitting.next() else {
            let misfit = given.first().and_then(|file| Some((file, misfit(file)?)));
            return misfit.map_or(Lookup::Nothing, |(file, number)| {
                refused(file, &format!("its function {number} is missing or has a different name"))
            });
        };
        if let Some(other) = fitting.find(|other| !other.module.has_code_of(&first.module)) {
            return refused(first, &format!("{} matches as well", other.path.display()));
        }
        let numbers: BTreeSet<u32> = functions.iter().map(|(number, _)| *number).collect();
        self.authored("", first, numbers.into_iter().map(|number| (number, number)))
    }

    /// Combines what all files with the same code say about a module.
    fn authored(
        &self,
        url: &str,
        first: &ModuleFile,
        functions: impl Iterator<Item = (u32, u32)>,
    ) -> Lookup<AuthoredModule> {
        let others = self.module_files().iter().filter(|file| file.path != first.path);
        let same: Vec<&ModuleFile> =
            [first].into_iter().chain(others.filter(|file| file.module.has_code_of(&first.module))).collect();
        let modules: Vec<Rc<WasmModule>> = same.iter().map(|file| Rc::clone(&file.module)).collect();
        // Name the largest file in messages: it probably has the most information.
        let best = same.iter().max_by_key(|file| file.module.file.bytes().len()).unwrap_or(&first);
        Lookup::Found {
            map: best.path.display().to_string(),
            found: AuthoredModule::new(url, &modules, functions),
            places: same.iter().map(|file| (file.path.clone(), file.path.clone())).collect(),
            size: modules.iter().map(|module| module.file.bytes().len()).sum(),
            is_given: false,
        }
    }

    /// All modules that the user named, and those in directories with debugging information or in the input's
    /// directory.
    fn module_files(&self) -> &[ModuleFile] {
        self.modules.get_or_init(|| {
            let mut files: Vec<ModuleFile> = Vec::new();
            let mut left = LARGEST;
            let mut known: FxHashSet<PathBuf> = FxHashSet::default();
            let mut add = |path: PathBuf, door: Door<'_>, is_given| {
                if files.len() < MOST_MAPS
                    && known.insert(path.clone())
                    && let Some(file) = self.module_file(path, door, is_given)
                    && let Some(rest) = left.checked_sub(file.module.file.bytes().len() as u64)
                {
                    left = rest;
                    files.push(file);
                }
            };
            for GivenMap { path, script } in &self.search.options.given {
                match io::is_directory(path) {
                    true => {
                        let door = self.door_below(path);
                        self.modules_in(path, door).for_each(|path| add(path, door, false));
                    }
                    false => add(path.clone(), Named::User.door(self.search.force), script.is_none()),
                }
            }
            for directory in self.search.debug_dirs.iter().map(PathBuf::as_path).chain(self.search.beside) {
                let door = Named::Recording.door(self.search.force);
                self.modules_in(directory, door).for_each(|path| add(path, door, false));
            }
            files
        })
    }

    fn modules_in(&self, directory: &Path, door: Door<'_>) -> impl Iterator<Item = PathBuf> + use<> {
        let is_module = |name: &OsStr| name.as_encoded_bytes().ends_with(b".wasm");
        let mut names = door.entries(directory, is_module);
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        let directory = directory.to_owned();
        names.into_iter().take(MOST_MAPS).map(move |(name, _)| directory.join(name))
    }

    fn module_file(&self, path: PathBuf, door: Door<'_>, is_given: bool) -> Option<ModuleFile> {
        let bytes = self.read_by(&path, door, MODULE)?.ok()?;
        let module = wasm::parse(&FileBytes::new(bytes)).ok()?;
        Some(ModuleFile { path, module: Rc::new(module), is_given })
    }
}

fn refused<T>(file: &ModuleFile, why: &str) -> Lookup<T> {
    Lookup::Refused { map: Some(file.path.display().to_string()), why: why.to_owned() }
}

/// Where the code section may start in the form of the module that the runtime loaded: the whole file, or the file
/// without custom sections. Empty if the module doesn't match the URL.
fn starts(module: &WasmModule, url: &str) -> Vec<usize> {
    let forms = module.hashes.iter();
    match v8_url(url) {
        None => forms.map(|form| form.code).collect(),
        Some((name, _)) if name.is_some() && name != module.name.as_deref() => Vec::new(),
        Some((_, hash)) => forms.filter(|form| form.hash == hash).map(|form| form.code).collect(),
    }
}

/// The index of the function that starts there; `None` if there is none or it has another name.
fn number(module: &WasmModule, (start, name): StatedFunction<'_>, code: usize) -> Option<u32> {
    let number = module.function_starting_at((start as usize).checked_sub(code)?)?;
    let name = match WasmName::nameless(name) {
        Some(own) if own != number => return None,
        Some(_) => None,
        None => Some(name),
    };
    (is_called(module, number, name) || is_called(module, number, name.and_then(|name| within(module, name))))
        .then_some(number)
}

/// The function's name without the module's name, which SpiderMonkey prepends.
fn within<'n>(module: &WasmModule, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(module.name.as_deref()?)?.strip_prefix('.')
}

/// True if the module has this function and doesn't contradict its name.
fn is_called(module: &WasmModule, number: u32, name: Option<&str>) -> bool {
    let readable = |name: &str| demangle(name.as_bytes()).unwrap_or_else(|| name.to_owned());
    let own = module.names.get(&number);
    let same = own.zip(name).is_none_or(|(own, name)| own == name || readable(own) == readable(name));
    module.body(number).is_some() && same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_urls_of_their_own() {
        assert_eq!(v8_url("wasm://wasm/a4fc059a"), Some((None, 0xa4fc_059a)));
        assert_eq!(v8_url("wasm://wasm/app-x.wasm-005a4576"), Some((Some("app-x.wasm"), 0x005a_4576)));
        for other in ["wasm://wasm/", "wasm://wasm/app", "/a/a4fc059a"] {
            assert_eq!(v8_url(other), None, "{other}");
        }
        assert!(
            is_wasm_module("https://a.org/x/app.wasm?v=2")
                && is_wasm_module("/x/app.wasm")
                && !is_wasm_module("/x/app.js")
        );
    }
}
