//! Finds what a user means by a name on the command line: a runtime, a language, a library, or a tool that starts a
//! runtime. The names are in the table of runtimes ([`Runtime::aliases`], [`Runtime::launchers`]), except those of
//! [`COMPILED_LANGUAGES`].

use super::runtime::Runtime;
use super::set::RuntimeSet;
use super::table::RUNTIMES;
use crate::error::{Error, Result};
use std::path::Path;

/// Languages whose compilers write machine code to files before a program runs. Their programs need no runtime to write
/// names: the files have symbols.
const COMPILED_LANGUAGES: &[&str] = &[
    "ada", "c", "c++", "cpp", "cxx", "d", "fortran", "go", "golang", "haskell", "native", "nim", "objc", "ocaml",
    "rust", "swift", "zig",
];

/// What a name on the command line stands for.
#[derive(Debug, Clone, Copy)]
pub enum NamedRuntime {
    /// A runtime of the table.
    Runtime(&'static Runtime),
    /// A language that is compiled before it runs, such as Rust.
    CompiledLanguage,
}

impl NamedRuntime {
    /// Finds what a name stands for. Case doesn't matter. The error proposes a runtime with a similar name, or lists all
    /// known runtimes.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(runtime) = find_runtime(name) {
            return Ok(Self::Runtime(runtime));
        }
        if COMPILED_LANGUAGES.iter().any(|language| language.eq_ignore_ascii_case(name)) {
            return Ok(Self::CompiledLanguage);
        }
        let remedy = match find_similar(name) {
            Some(runtime) => format!("did you mean {} ({})?", runtime.typed_name(), runtime.name),
            None => {
                let all: Vec<_> = RUNTIMES.iter().map(|runtime| runtime.name).collect();
                format!("known runtimes: {}", all.join(", "))
            }
        };
        Err(Error::usage(format!("no runtime named {name}")).with_remedy(Some(remedy)))
    }
}

/// Finds a runtime by its name, by a language or library that uses it, by a program that starts it, or by the name of
/// its executable.
pub fn find_runtime(name: &str) -> Option<&'static Runtime> {
    let by_name = RUNTIMES.iter().find(|runtime| runtime.is_called(name));
    by_name.or_else(|| RuntimeSet::from_files(std::iter::once(name.as_bytes())).first())
}

/// True if `typed` may be a misspelling of `known`: both have four letters or more, and a single letter is wrong,
/// missing, superfluous, or swapped with the next one.
pub fn is_misspelled(typed: &str, known: &str) -> bool {
    typed.len().min(known.len()) >= 4 && strsim::osa_distance(typed, known) <= 1
}

/// Finds the runtime that a misspelled name (`pytohn`) or the first letters of a name (`nod`) stand for.
fn find_similar(name: &str) -> Option<&'static Runtime> {
    let name = name.to_ascii_lowercase();
    let is_similar = |known: &str| {
        let known = known.to_ascii_lowercase();
        let is_start = name.len() >= 3 && known.starts_with(&name);
        is_start || is_misspelled(&name, &known)
    };
    RUNTIMES.iter().find(|runtime| runtime.names().chain(runtime.programs.iter().copied()).any(is_similar))
}

impl Runtime {
    /// The shortest name by which users can state the runtime, such as `node`: usually that of its program.
    pub fn typed_name(&self) -> String {
        match find_runtime(self.called) {
            Some(found) if found.name == self.name => self.called.to_owned(),
            _ => self.name.to_lowercase(),
        }
    }
}

/// Finds the runtime that runs a source file, by the file's extension. `None` if no program of a runtime runs it.
pub fn find_runtime_of_source(file: &Path) -> Option<&'static Runtime> {
    let extension = file.extension()?.to_str()?.to_lowercase();
    RUNTIMES.iter().find(|runtime| runtime.source_extensions.contains(&&extension[..]))
}

/// Finds the runtime that this program starts. `None` if it isn't a known launcher.
pub fn find_launched_runtime(program: &str) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| runtime.launchers.contains(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_library_or_launcher_finds_its_runtime() {
        for (names, runtime) in [
            (&["jruby", "Clojure", "scala", "kotlin", "jvm", "JDK", "gradle", "/usr/lib/jvm/libjvm.so"][..], "OpenJDK"),
            (&["js", "JavaScript", "typescript", "v8", "npm", "nodejs"], "Node.js"),
            (&["python", "python3.13", "py"], "CPython"),
            (&["dotnet", "csharp", "C#", "coreclr", "pwsh"], ".NET"),
            (&["llvmlite"], "numba"),
            (&["elixir", "beam"], "Erlang"),
            (&["electron", "chrome"], "Chromium"),
            (&["raku", "perl6"], "MoarVM"),
            (&["rails", "irb"], "Ruby"),
            (&["postgres", "postgresql"], "PostgreSQL"),
            (&["webkit", "safari"], "JavaScriptCore"),
            (&["wasm", "WebAssembly"], "Wasmtime"),
        ] {
            for name in names {
                assert_eq!(find_runtime(name).map(|runtime| runtime.name), Some(runtime), "{name}");
            }
        }
        assert!(find_runtime("cobol").is_none() && NamedRuntime::find("cobol").is_err());
        // The program `lua` is another implementation than LuaJIT, and `hotspot` is a viewer.
        for (program, runtime) in
            [("jruby", Some("OpenJDK")), ("npm", Some("Node.js")), ("lua", None), ("hotspot", None)]
        {
            assert_eq!(find_launched_runtime(program).map(|runtime| runtime.name), runtime, "{program}");
        }
    }

    #[test]
    fn a_runtime_with_a_similar_name_is_proposed() {
        for (name, runtime) in [
            ("nod", Some("Node.js")),
            ("Pytohn", Some("CPython")),
            ("javascrpt", Some("Node.js")),
            ("openjd", Some("OpenJDK")),
            ("luajti", Some("LuaJIT")),
            ("no", None),
            ("cobol", None),
            ("forth", None),
        ] {
            assert_eq!(find_similar(name).map(|runtime| runtime.name), runtime, "{name}");
        }
    }

    #[test]
    fn compiled_languages_need_no_runtime() {
        for language in COMPILED_LANGUAGES {
            let found = NamedRuntime::find(&language.to_uppercase()).unwrap();
            assert!(matches!(found, NamedRuntime::CompiledLanguage), "{language}");
        }
    }

    #[test]
    fn the_typed_name_finds_the_runtime() {
        for runtime in RUNTIMES {
            let found = find_runtime(&runtime.typed_name()).unwrap();
            assert_eq!(found.name, runtime.name);
        }
        assert_eq!(find_runtime("Node.js").unwrap().typed_name(), "node");
    }

    #[test]
    fn a_name_stands_for_one_runtime() {
        let mut names = Vec::new();
        for runtime in RUNTIMES {
            names.extend(runtime.names().map(str::to_ascii_lowercase));
        }
        names.extend(COMPILED_LANGUAGES.iter().map(|name| (*name).to_owned()));
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{name} stands twice");
        }
    }
}
