//! Translates positions in generated scripts (minified, bundled, compiled) to positions in the files that their authors
//! wrote, using source maps. These files, and positions and names in them, are called *authored* here.
//!
//! ```text
//! JS:*i /app/dist/app.min.js:1:679 ─ script, line, column ─▶ segment ─▶ JS:*splitWords /app/src/words.ts:8:10
//!                                                               ▲
//!                          script's text ─ is `i` its name there? ┘
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `script` | one script and its source map: what they prove |
//! | `function` | which tokens of a script are a function's name, for every form that JavaScript has |
//! | `class` | which class a constructor belongs to |
//! | `declared` | which words of the authored text prove a name |
//! | `fit` | whether a source map belongs to a script |
//! | `text`, `words` | positions in texts; identifiers |
//! | `module`, `module_places` | a WebAssembly module: its functions, and what DWARF says about them |

mod class;
#[cfg(test)]
mod damage_tests;
mod declared;
mod fit;
mod function;
mod module;
mod module_places;
mod script;
mod text;
mod words;

pub use module::AuthoredModule;
pub use script::{AuthoredPlace, AuthoredScript, Contradiction, FunctionAnswer};

use crate::runtimes::script_name::ScriptName;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// All scripts that have source maps, and all WebAssembly modules that have names. Both are found by the path or URL
/// that the engine uses for them.
#[derive(Debug, Default)]
pub struct Authored {
    /// Scripts and modules by the path or URL that the engine uses for them.
    scripts: FxHashMap<Box<str>, AuthoredScript>,
    modules: FxHashMap<Box<str>, AuthoredModule>,
}

impl Authored {
    /// Adds a script by the path or URL that the engine uses for it.
    pub fn add(&mut self, path: &str, script: AuthoredScript) {
        self.scripts.insert(path.into(), script);
    }

    /// Adds a WebAssembly module by the URL that the engine uses for it.
    pub fn add_module(&mut self, url: &str, module: AuthoredModule) {
        self.modules.insert(url.into(), module);
    }

    /// The script for which the engine uses this path or URL; `None` if there is none.
    pub fn script(&self, path: &str) -> Option<&AuthoredScript> {
        self.scripts.get(path)
    }

    /// True if no script and no module was added.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.modules.is_empty()
    }

    /// The name that V8 would give to the function if the authored file were running. `name` is V8's name in the
    /// recording, which includes script, line and column. Returns `name` unchanged if nothing is known about the
    /// function.
    pub fn name<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        self.to_authored(name).map_or(Cow::Borrowed(name), |authored| Cow::Owned(authored.into_bytes()))
    }

    /// V8's name with the authored function, file and position in it. If only the position is known, the function keeps
    /// its name. `None` if nothing is known about the function, or if its script and source map contradict each other.
    fn to_authored(&self, name: &[u8]) -> Option<String> {
        if self.scripts.is_empty() {
            return None;
        }
        let parts = ScriptName::parse(name)?;
        let script = self.scripts.get(parts.script)?;
        let (AuthoredPlace { file, line, column, .. }, authored_name) =
            script.function(parts.function, parts.line, parts.column).ok()??;
        let function = authored_name.as_deref().unwrap_or(parts.function);
        Some(parts.spell(function, file, line, column))
    }

    /// The authored position and name of the function `name` that starts at this line and column (both from 1) of a
    /// script or WebAssembly module. `script` is the path or URL that the engine uses for it.
    pub fn function(&self, script: &str, name: &str, line: u32, column: u32) -> FunctionAnswer<'_> {
        match (self.scripts.get(script), self.modules.get(script)) {
            (Some(script), _) => script.function(name, line, column),
            (None, Some(module)) => module.answer(name, column),
            (None, None) => Ok(None),
        }
    }

    /// The text of an authored file, which is given by its name in a source map. `Some(None)` if a source map names the
    /// file but doesn't contain its text. `None` if no source map names it.
    pub fn source_text(&self, file: &str) -> Option<Option<&str>> {
        self.scripts.values().find_map(|script| script.source_text(file))
    }
}
