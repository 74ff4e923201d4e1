//! Positions in generated scripts → positions in what their authors wrote, by source maps.
//!
//! ```text
//! JS:*i /app/dist/app.min.js:1:679 ─ script, line, column ─▶ segment ─▶ JS:*splitWords /app/src/words.ts:8:10
//!                                                               ▲
//!                          script's text ─ is `i` its name there? ┘
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `script` | one script and its map: what they prove |
//! | `function` | the tokens that are a function's name, in every form that JavaScript has |
//! | `class` | the class of a constructor |
//! | `declared` | the words of the authored text that prove a name |
//! | `fit` | whether the map belongs to the script |
//! | `text`, `words` | places in texts, identifiers |
//! | `module`, `module_places` | a WebAssembly module: its functions, and their descriptions in DWARF |

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

/// All scripts that have maps and all modules that have names, by the path or URL that the engine has for them.
#[derive(Debug, Default)]
pub struct Authored {
    scripts: FxHashMap<Box<str>, AuthoredScript>,
    modules: FxHashMap<Box<str>, AuthoredModule>,
}

impl Authored {
    /// Adds a script.
    pub fn add(&mut self, path: &str, script: AuthoredScript) {
        self.scripts.insert(path.into(), script);
    }

    /// Adds a WebAssembly module.
    pub fn add_module(&mut self, url: &str, module: AuthoredModule) {
        self.modules.insert(url.into(), module);
    }

    /// The script of that path or URL.
    pub fn script(&self, path: &str) -> Option<&AuthoredScript> {
        self.scripts.get(path)
    }

    /// True if no script has a map, and no module names.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.modules.is_empty()
    }

    /// The name that V8 would have given to a function if it had run what its author wrote; as it is if that isn't known.
    pub fn name<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        self.renamed(name).map_or(Cow::Borrowed(name), |renamed| Cow::Owned(renamed.into_bytes()))
    }

    fn renamed(&self, name: &[u8]) -> Option<String> {
        if self.scripts.is_empty() {
            return None;
        }
        let parts = ScriptName::parse(name)?;
        let script = self.scripts.get(parts.script)?;
        let (AuthoredPlace { file, line, column, .. }, function) =
            script.function(parts.function, parts.line, parts.column).ok()??;
        Some(parts.spell(function.as_deref().unwrap_or(parts.function), file, line, column))
    }

    /// What a script's map states about the function that starts at a place (from 1).
    pub fn function(&self, script: &str, name: &str, line: u32, column: u32) -> FunctionAnswer<'_> {
        match (self.scripts.get(script), self.modules.get(script)) {
            (Some(script), _) => script.function(name, line, column),
            (None, Some(module)) => module.answer(name, column),
            (None, None) => Ok(None),
        }
    }

    /// The text of an authored file, where a map contains it; `None` if no map names such a file.
    pub fn source_text(&self, file: &str) -> Option<Option<&str>> {
        self.scripts.values().find_map(|script| script.source_text(file))
    }
}
