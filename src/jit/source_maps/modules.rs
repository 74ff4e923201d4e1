//! Finds the modules of WebAssembly functions, and the files that contain their names and source positions.
//!
//! | the runtime's name for the module | identified by |
//! |---|---|
//! | `wasm://wasm/NAME-a4fc059a` (V8, unless compiled from a stream) | hash, name, and the starts of functions |
//! | a path or URL that ends in `.wasm` | the file there, and the starts of functions |
//! | none: native code in jitdumps and perf maps | the user: `--source-maps FILE.wasm` |
//!
//! Files with the same code are considered the same module, because the file that ships often lacks names. If different
//! modules match, none is used.

use super::find::{Finder, Lookup, MAX_MAPS, MAX_SIZE, ModuleFile};
use super::options::GivenMap;
use super::paths::{file_from_url, path_on_server};
use crate::formats::wasm;
use crate::io;
use crate::io::door::{Door, Holes, Kind, Named};
use crate::model::file_bytes::FileBytes;
use crate::model::wasm_module::WasmModule;
use crate::runtimes::wasm_name::WasmName;
use crate::symbolize::authored::AuthoredModule;
use crate::symbolize::symbols::demangle::demangle;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const MODULE: Kind = Kind {
    holes: |head| head.starts_with(wasm::MAGIC).then_some(Holes::Small),
    otherwise: "is not a WebAssembly module",
};

/// A function as the runtime describes it: the offset of its code in the module's file, and its name.
pub(super) type StatedFunction<'n> = (u32, &'n str);

/// True if the name that a runtime gives a script is that of a WebAssembly module.
pub(crate) fn is_wasm_module(url: &str) -> bool {
    v8_url(url).is_some() || url.split(['?', '#']).next().is_some_and(|path| path.ends_with(".wasm"))
}

/// Parses a URL that V8 made up. Returns the module's name, if the URL contains one, and its hash. `None` for other
/// URLs.
fn v8_url(url: &str) -> Option<(Option<&str>, u32)> {
    let rest = url.strip_prefix("wasm://wasm/")?;
    let (name, hash) = match rest.rsplit_once('-') {
        Some((name, hash)) => (Some(name), hash),
        None => (None, rest),
    };
    if hash.len() != 8 {
        return None;
    }
    Some((name, u32::from_str_radix(hash, 16).ok()?))
}

impl Finder<'_> {
    /// Finds the module that the runtime calls `url` and that has these functions. If V8 made up the URL, because the
    /// module wasn't loaded from one, all available modules are compared with the functions. If two modules with
    /// different code match, none is used.
    pub(super) fn find_module(&self, url: &str, functions: &[StatedFunction<'_>]) -> Lookup<AuthoredModule> {
        let is_v8_url = v8_url(url).is_some();
        // Declared here so that `candidates` can borrow from it.
        let module_at_url;
        let candidates = if is_v8_url {
            self.module_files()
        } else {
            module_at_url = self.read_module_at_url(url);
            module_at_url.as_slice()
        };
        // The files that have all of these functions, each with the functions' indices in it.
        let mut matching: Vec<(&ModuleFile, Vec<u32>)> = Vec::new();
        for file in candidates {
            if let Some(indices) = find_functions(&file.module, url, functions) {
                matching.push((file, indices));
            }
        }
        let Some((first, indices)) = matching.first() else {
            // A file at the module's own URL should match, so the user is told that it doesn't. Nobody expects that of
            // other files, so nothing is said about them.
            return match candidates.first() {
                Some(file) if !is_v8_url => {
                    refuse(file, "it is not the module that ran (its functions start elsewhere)")
                }
                _ => Lookup::Nothing,
            };
        };
        // Files with the same code are the same module, perhaps with more or fewer names.
        if let Some((other, _)) = matching.iter().find(|(other, _)| !other.module.has_code_of(&first.module)) {
            return refuse(first, &format!("{} matches too, with other code", other.path.display()));
        }
        let starts = functions.iter().map(|(start, _)| *start);
        self.combine_files(url, first, indices.iter().copied().zip(starts))
    }

    /// Reads the module from the file to which its URL leads, or from the file with the same name in the input's
    /// directory. `None` if there is no such file.
    fn read_module_at_url(&self, url: &str) -> Option<ModuleFile> {
        let mut paths = Vec::new();
        if let Some(recorded) = file_from_url(url) {
            paths = self.possible_paths(&recorded);
        }
        if let Some(recorded) = path_on_server(url) {
            paths.extend(self.path_in_input_dir(&recorded));
        }
        let door = Named::Recording.door(self.search.force);
        paths.into_iter().find_map(|path| self.read_module(ModulePath { path, door, is_given: false }))
    }

    /// Finds the module from the user that has these functions of native code. `functions` has the index and, if known,
    /// the name of each. If no module has all of them, the answer says why the first module doesn't match.
    pub(super) fn find_given_module(&self, functions: &BTreeSet<(u32, Option<&str>)>) -> Lookup<AuthoredModule> {
        let mut matching = Vec::new();
        let mut first_refusal = None;
        for file in self.module_files().iter().filter(|file| file.is_given) {
            match find_mismatch(&file.module, functions) {
                None => matching.push(file),
                Some(index) if first_refusal.is_none() => {
                    let why =
                        format!("the module's function {index} is missing, or its name differs from the recorded one");
                    first_refusal = Some(refuse(file, &why));
                }
                Some(_) => {}
            }
        }
        let Some(&first) = matching.first() else { return first_refusal.unwrap_or(Lookup::Nothing) };
        // Files with the same code are the same module, perhaps with more or fewer names.
        if let Some(other) = matching.iter().find(|other| !other.module.has_code_of(&first.module)) {
            return refuse(first, &format!("{} matches too, with other code", other.path.display()));
        }
        let indices: BTreeSet<u32> = functions.iter().map(|(index, _)| *index).collect();
        // Native code has no URL for its module, and states indices instead of offsets.
        self.combine_files("", first, indices.into_iter().map(|index| (index, index)))
    }

    /// Combines the information in all files that have the same code as `first`. `functions` has, for each function,
    /// its index in the module and the offset that the runtime states for it (or the index again, if the runtime states
    /// none).
    fn combine_files(
        &self,
        url: &str,
        first: &ModuleFile,
        functions: impl Iterator<Item = (u32, u32)>,
    ) -> Lookup<AuthoredModule> {
        let mut files = vec![first];
        for file in self.module_files() {
            if file.path != first.path && file.module.has_code_of(&first.module) {
                files.push(file);
            }
        }
        let modules: Vec<Rc<WasmModule>> = files.iter().map(|file| Rc::clone(&file.module)).collect();
        // Messages name the largest of the files: it probably has the most information.
        let best = files.iter().max_by_key(|file| file.module.file.bytes().len()).unwrap_or(&first);
        Lookup::Found {
            map: best.path.display().to_string(),
            found: AuthoredModule::new(url, &modules, functions),
            // For `pack`. On the recorded machine, a module is assumed to be at the same path as here.
            places: files.iter().map(|file| (file.path.clone(), file.path.clone())).collect(),
            size: modules.iter().map(|module| module.file.bytes().len()).sum(),
            is_given: false,
        }
    }

    /// All modules that the user named, that are in directories with debugging information, or that are in the input's
    /// directory, in this order. They are read at the first call. Those beyond the limits ([`MAX_MAPS`], [`MAX_SIZE`])
    /// are left out.
    fn module_files(&self) -> &[ModuleFile] {
        self.modules.get_or_init(|| {
            let mut files: Vec<ModuleFile> = Vec::new();
            let mut bytes_left = MAX_SIZE;
            let mut known: FxHashSet<PathBuf> = FxHashSet::default();
            for candidate in self.module_paths() {
                if files.len() < MAX_MAPS
                    && known.insert(candidate.path.clone())
                    && let Some(file) = self.read_module(candidate)
                    && let Some(rest) = bytes_left.checked_sub(file.module.file.bytes().len() as u64)
                {
                    bytes_left = rest;
                    files.push(file);
                }
            }
            files
        })
    }

    /// The files that may be WebAssembly modules with debugging information, in the order in which they are read: what
    /// the user passed with `--source-maps`, then the directories with debug files, then the input's directory. Each
    /// file comes with the checks (`door`) that it must pass to be opened. `is_given` is false for a file that the user
    /// passed for one particular script: it is not meant for native code.
    fn module_paths(&self) -> Vec<ModulePath<'_>> {
        let mut paths = Vec::new();
        for GivenMap { path, script } in &self.search.options.given {
            if io::is_directory(path) {
                paths.extend(list_modules(path, self.door_below(path)));
            } else {
                let door = Named::User.door(self.search.force);
                paths.push(ModulePath { path: path.clone(), door, is_given: script.is_none() });
            }
        }
        for directory in self.search.debug_dirs.iter().map(PathBuf::as_path).chain(self.search.input_dir) {
            paths.extend(list_modules(directory, Named::Recording.door(self.search.force)));
        }
        paths
    }

    fn read_module(&self, ModulePath { path, door, is_given }: ModulePath<'_>) -> Option<ModuleFile> {
        let bytes = self.read_through(door, &path, MODULE)?.ok()?;
        let module = wasm::parse(&FileBytes::new(bytes)).ok()?;
        Some(ModuleFile { path, module: Rc::new(module), is_given })
    }
}

/// A file that may be a module.
struct ModulePath<'a> {
    path: PathBuf,
    door: Door<'a>,
    /// True if the user passed the file with `--source-maps`; see [`ModuleFile::is_given`].
    is_given: bool,
}

/// Lists files in a directory that are named like modules, sorted by name.
fn list_modules<'a>(directory: &Path, door: Door<'a>) -> Vec<ModulePath<'a>> {
    let mut entries = door.entries(directory, |name| name.as_encoded_bytes().ends_with(b".wasm"));
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries.truncate(MAX_MAPS);
    let paths = entries.into_iter().map(|(name, _)| directory.join(name));
    paths.map(|path| ModulePath { path, door, is_given: false }).collect()
}

fn refuse<T>(file: &ModuleFile, why: &str) -> Lookup<T> {
    Lookup::Refused { map: Some(file.path.display().to_string()), why: why.to_owned() }
}

/// Finds these functions in a module and returns their indices. `None` if the module doesn't have all of them or
/// doesn't match the URL.
fn find_functions(module: &WasmModule, url: &str, functions: &[StatedFunction<'_>]) -> Option<Vec<u32>> {
    for code_section in possible_code_offsets(module, url) {
        let indices = functions.iter().map(|function| find_function(module, *function, code_section));
        if let Some(indices) = indices.collect::<Option<Vec<u32>>>() {
            return Some(indices);
        }
    }
    None
}

/// The possible offsets of the code section in the bytes that the runtime loaded. These bytes may be the whole file,
/// the file without custom sections, or the file without names and debug information. Empty if the module doesn't match
/// the URL.
fn possible_code_offsets(module: &WasmModule, url: &str) -> Vec<usize> {
    let forms = module.hashes.iter();
    match v8_url(url) {
        None => forms.map(|form| form.code).collect(),
        Some((name, _)) if name.is_some() && name != module.name.as_deref() => Vec::new(),
        Some((_, hash)) => forms.filter(|form| form.hash == hash).map(|form| form.code).collect(),
    }
}

/// The index of a function in a module. `start` is the function's offset in the bytes that the runtime loaded. In these
/// bytes, the code section starts at `code_section`, which may differ from where it starts in the file
/// ([`possible_code_offsets`]). `None` if no function starts there, or if the function there has another name.
fn find_function(module: &WasmModule, (start, name): StatedFunction<'_>, code_section: usize) -> Option<u32> {
    let index = module.function_starting_at((start as usize).checked_sub(code_section)?)?;
    let is_match = if let Some(index_in_name) = WasmName::nameless_index(name) {
        // For functions without a name, runtimes make up a name that contains the index.
        index_in_name == index
    } else if is_called(module, index, Some(name)) {
        true
    } else if let Some(function_name) = strip_module_name(module, name) {
        is_called(module, index, Some(function_name))
    } else {
        false
    };
    if is_match { Some(index) } else { None }
}

/// The function's name without the module's name and a dot, which SpiderMonkey puts before it. `None` if the name
/// doesn't start with these.
fn strip_module_name<'n>(module: &WasmModule, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(module.name.as_deref()?)?.strip_prefix('.')
}

/// The index of the first of these functions that the module doesn't have or calls by another name; `None` if all
/// match.
fn find_mismatch(module: &WasmModule, functions: &BTreeSet<(u32, Option<&str>)>) -> Option<u32> {
    let (index, _) = functions.iter().find(|(index, name)| !is_called(module, *index, *name))?;
    Some(*index)
}

/// True if the module has a function with this index, and this function has the given name. Only the index has to match
/// if `name` is `None`, or if the module doesn't name the function.
fn is_called(module: &WasmModule, index: u32, name: Option<&str>) -> bool {
    if module.body(index).is_none() {
        return false;
    }
    let (Some(module_name), Some(name)) = (module.names.get(&index), name) else { return true };
    module_name == name || demangle_or_keep(module_name) == demangle_or_keep(name)
}

fn demangle_or_keep(name: &str) -> String {
    demangle(name.as_bytes()).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wasm_module::WasmHash;

    /// A module with an imported function and two functions of its own, whose code starts 2 and 12 bytes after the
    /// start of the code section, which is at offset 8.
    fn module(name: Option<&str>, names: &[(u32, &str)]) -> WasmModule {
        WasmModule {
            file: FileBytes::new(vec![0; 40]),
            imports: 1,
            bodies: vec![10..20, 20..30],
            code: 8..30,
            name: name.map(str::to_owned),
            names: names.iter().map(|&(index, name)| (index, name.to_owned())).collect(),
            custom: Vec::new(),
            hashes: vec![WasmHash { hash: 0xa4fc_059a, code: 8 }],
        }
    }

    #[test]
    fn a_function_is_the_one_that_starts_there_unless_its_name_contradicts() {
        let named = module(Some("app"), &[(1, "_ZN3app7collatz17h0123456789abcdefE"), (2, "run")]);
        for (start, name, index) in [
            (10, "app::collatz", Some(1)),
            (10, "_ZN3app7collatz17h0123456789abcdefE", Some(1)),
            (10, "wasm-function[1]", Some(1)),
            (20, "run", Some(2)),
            (20, "app.run", Some(2)),
            // Another function's name, or number.
            (10, "run", None),
            (20, "app::collatz", None),
            (20, "walk", None),
            (20, "other.run", None),
            (20, "wasm-function[1]", None),
            (20, "wasm-function[0]", None),
            // No function starts there.
            (11, "wasm-function[1]", None),
            (30, "run", None),
            (7, "run", None),
        ] {
            assert_eq!(find_function(&named, (start, name), 8), index, "{name} at {start}");
        }
        let unnamed = module(None, &[]);
        assert_eq!(find_function(&unnamed, (20, "walk"), 8), Some(2), "nothing contradicts");
    }

    #[test]
    fn a_module_is_refused_if_a_single_function_has_another_name() {
        let module = module(Some("app"), &[(1, "walk"), (2, "run")]);
        let both = |first, second| find_functions(&module, "wasm://wasm/app-a4fc059a", &[(10, first), (20, second)]);
        assert_eq!(both("walk", "run"), Some(vec![1, 2]));
        assert_eq!(both("walk", "wasm-function[2]"), Some(vec![1, 2]));
        assert_eq!(both("walk", "walk"), None);
        assert_eq!(both("run", "run"), None);
        for url in ["wasm://wasm/app-a4fc059b", "wasm://wasm/other-a4fc059a"] {
            assert_eq!(find_functions(&module, url, &[(10, "walk")]), None, "{url}");
        }
        assert_eq!(find_functions(&module, "/app/app.wasm", &[(10, "walk")]), Some(vec![1]));
    }

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
