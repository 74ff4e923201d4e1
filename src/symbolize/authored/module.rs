//! The functions of a WebAssembly module, with the name and position that each has in the source code that people
//! wrote (*authored*), as opposed to the compiled module.
//!
//! Names come from the name section, positions from DWARF. Tools ship modules without either, so the information may
//! come from another file than the module that ran. If several files disagree about a function, none of them is used
//! for it.

use super::module_places::ModulePlaces;
use super::script::{AuthoredPlace, Contradiction, FunctionAnswer};
use crate::model::wasm_module::WasmModule;
use crate::symbolize::symbols::demangle::demangle;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The functions of one module, with what is known about each.
#[derive(Debug, Default)]
pub struct AuthoredModule {
    /// What the engine calls the module.
    url: String,
    /// What is known about functions, by the function's number in the module. Functions without a known name or
    /// position are left out.
    functions: BTreeMap<u32, AuthoredFunction>,
    /// Function numbers by the offset in the module where the function starts.
    starts: BTreeMap<u32, u32>,
}

/// The name and position of one function of a module in its authors' source code.
#[derive(Debug, Clone, Default)]
struct AuthoredFunction {
    /// The function's demangled name; empty if it has none.
    name: String,
    /// The name of the source file; empty if unknown.
    file: String,
    line: u32,
    column: u32,
}

impl AuthoredModule {
    /// Combines what several files of one module say about its functions. `functions` gives the number and the start of
    /// each function; the start is an offset in the module. If the files name a function differently, nothing is taken
    /// from them for this function.
    pub fn new(url: &str, modules: &[Rc<WasmModule>], functions: impl Iterator<Item = (u32, u32)>) -> Self {
        let debug_infos: Vec<ModulePlaces<'_>> =
            modules.iter().filter_map(|module| ModulePlaces::new(module)).collect();
        let mut authored = Self { url: url.to_owned(), ..Self::default() };
        for (function, start) in functions {
            authored.starts.insert(start, function);
            let mut names: BTreeSet<&str> = BTreeSet::new();
            for module in modules {
                if let Some(name) = module.names.get(&function)
                    && is_showable(name)
                {
                    names.insert(name);
                }
            }
            if names.len() > 1 {
                continue;
            }
            let name = names.first().copied();
            let mut described = debug_infos.iter().find_map(|debug_info| read_dwarf(debug_info, function, name));
            // The name in the name section wins over the one in DWARF.
            if let Some(name) = name {
                let readable = demangle(name.as_bytes()).unwrap_or_else(|| name.to_owned());
                described.get_or_insert_default().name = readable;
            }
            if let Some(described) = described {
                authored.functions.insert(function, described);
            }
        }
        authored
    }

    /// The name and the authored position of the function with this number. `None` if the function isn't known. The
    /// name is empty and the position `None` if unknown.
    pub fn function(&self, number: u32) -> Option<(&str, Option<AuthoredPlace<'_>>)> {
        let AuthoredFunction { name, file, line, column } = self.functions.get(&number)?;
        let place = AuthoredPlace { file, line: *line, column: *column, is_third_party: false };
        Some((name, Some(place).filter(|place| !place.file.is_empty())))
    }

    /// The authored position and name of the function that the engine calls `name` and that starts at `column` (from 1)
    /// of the module: engines give the offset in the module as the column of line 1. If its authored position is
    /// unknown, the answer has its position in the module instead. [`Contradiction`] if no function starts there.
    pub(super) fn answer(&self, name: &str, column: u32) -> FunctionAnswer<'_> {
        let number = column.checked_sub(1).and_then(|start| self.starts.get(&start)).ok_or(Contradiction)?;
        let Some((authored, place)) = self.function(*number) else { return Ok(None) };
        let in_module = AuthoredPlace { file: &self.url, line: 1, column, is_third_party: false };
        Ok(Some((place.unwrap_or(in_module), Some(authored.to_owned()).filter(|authored| authored != name))))
    }
}

/// What DWARF says about the function with number `function`. `name` is its name in the name section, if it has one.
/// DWARF must agree with it, because linkers leave descriptions of removed functions behind. `None` if DWARF says
/// nothing or disagrees, or if its name can't be shown. The position is left out if DWARF doesn't state file and line,
/// or if the file's name can't be shown.
fn read_dwarf(places: &ModulePlaces<'_>, function: u32, name: Option<&str>) -> Option<AuthoredFunction> {
    let raw = places.name(function)?;
    let readable = demangle(raw.as_bytes()).unwrap_or_else(|| raw.clone());
    let disagrees = name.is_some_and(|name| name != raw && !is_readable_form(name, &readable));
    if disagrees || !is_showable(&readable) {
        return None;
    }
    let mut described = AuthoredFunction { name: readable, ..AuthoredFunction::default() };
    if let Some(place) = places.declared(function)
        && is_showable(&place.file)
        && place.line > 0
    {
        described.file = place.file;
        described.line = place.line;
        // In DWARF, column 0 is the left edge of the line.
        described.column = place.column.max(1);
    }
    Some(described)
}

/// True if `name`, once demangled, is `readable`, perhaps followed by parameters.
fn is_readable_form(name: &str, readable: &str) -> bool {
    let name = demangle(name.as_bytes()).unwrap_or_else(|| name.to_owned());
    name.strip_prefix(readable).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}

/// True if a name or path can be shown: it is a single line that isn't empty, and no longer than a path can be.
fn is_showable(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4096 && !text.chars().any(char::is_control)
}
