//! Replaces names and lines of generated scripts by those of the authored source, in profiles that other tools
//! symbolized.
//!
//! Code that jitgraft symbolizes itself has authored names already, from the code map ([`crate::jit::SourceMaps`]).
//! Other inputs contain V8's names unchanged (`JS:*i /app.min.js:1:679` in folded stacks), or have function, script,
//! line and column in separate fields.

use super::job::Outcome;
use crate::jit::{NativeFunctions, SourceMaps, SourceOptions, is_wasm_module};
use crate::model::stacks::{ChangedFrame, Frame, Profile};
use crate::runtimes::script_name::ScriptName;
use rustc_hash::FxHashSet;
use std::path::Path;

/// The names of anonymous functions start like this in readers and profilers, as in `(anonymous function)`.
const ANONYMOUS: &str = "(anonymous";

/// Applies source maps to the profile's frames, if the user wants that. `input_dir` is the directory of the input,
/// where source maps may be.
pub(super) fn apply(profile: &mut Profile, options: &SourceOptions, input_dir: Option<&Path>, outcome: &mut Outcome) {
    apply_to(Functions::All, profile, options, input_dir, outcome);
}

/// Like [`apply`], but WebAssembly functions in native code keep their names. It is for inputs whose native code was
/// named from a code map, in which source maps were applied already. A name alone isn't enough to apply them again: two
/// modules may have functions of the same name.
pub(super) fn apply_to_scripts(
    profile: &mut Profile,
    options: &SourceOptions,
    input_dir: Option<&Path>,
    outcome: &mut Outcome,
) {
    apply_to(Functions::OfScripts, profile, options, input_dir, outcome);
}

/// The functions to which source maps are applied: their generated names are replaced by those in the authored source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Functions {
    OfScripts,
    /// Functions of scripts, and WebAssembly functions in native code.
    All,
}

/// Replaces names, files and lines of generated code by those of the authored source, as source maps state them.
/// Changes the functions of scripts and, if `which` is [`Functions::All`], WebAssembly functions in native code. Source
/// maps of the latter are found by the functions' names.
fn apply_to(
    which: Functions,
    profile: &mut Profile,
    options: &SourceOptions,
    input_dir: Option<&Path>,
    outcome: &mut Outcome,
) {
    if !options.source_maps.is_on() {
        return;
    }
    let functions = profile.frames().filter_map(|(_, frame)| script_function(profile, frame));
    let mut native = NativeFunctions::default();
    if which == Functions::All {
        let names: FxHashSet<&[u8]> = profile.frames().map(|(_, frame)| profile.name_of(frame.name)).collect();
        native.add(names.into_iter());
    }
    let maps = SourceMaps::find(functions, &native, &options.map_search(input_dir), &mut outcome.warnings);
    outcome.summary.extend(maps.remarks());
    // Also change the frames if there are no source maps but some frames have columns. Columns only serve to look
    // something up in a source map, and changing drops them: frames that differ only by column become one.
    if !maps.is_empty() || profile.frames().any(|(_, frame)| frame.column > 0) {
        profile.change_frames(|profile, frame| translate_frame(profile, frame, &maps));
    }
}

/// The function of a frame in the form in which source maps are asked for it: name, script, and the line and column
/// where it starts. They are taken from the frame's fields or, if those lack the start, from its name. `None` if the
/// frame isn't a function of a script.
fn script_function<'p>(profile: &'p Profile, frame: &Frame) -> Option<ScriptName<'p>> {
    let name = profile.name_of(frame.name);
    let Some((line, column)) = find_start(profile, frame) else {
        // If no field says where the function starts, the name itself may say so, in the form that V8 gives it.
        return ScriptName::parse(name);
    };
    let function = std::str::from_utf8(name).ok()?;
    let script = std::str::from_utf8(profile.name_of(frame.file?)).ok()?;
    // Other tools have a name for anonymous functions; V8's names leave it empty.
    let function = if function.starts_with(ANONYMOUS) { "" } else { function };
    Some(ScriptName { whole: name, head: "", function, script, line, column })
}

/// The line and column where a frame's function starts, from other fields than the name. `None` if unknown. For
/// WebAssembly, SpiderMonkey stores the byte offset as the line, and V8 as the column.
///
/// If the start has no column but the frame has, the frame's column is used, because profilers for Node.js store the
/// start of the function there instead of the executed position. If it is the executed position after all, it doesn't
/// match the script's text, and is ignored later.
fn find_start(profile: &Profile, frame: &Frame) -> Option<(u32, u32)> {
    match (frame.start.line, frame.start.column) {
        (line @ 1.., column @ 1..) => return Some((line, column)),
        (byte @ 1.., 0) => {
            let module = std::str::from_utf8(profile.name_of(frame.file?)).ok()?;
            if is_wasm_module(module) {
                // Source maps treat a module as a single line. Its columns are byte offsets, which start at 1 here.
                return Some((1, byte.checked_add(1)?));
            }
        }
        _ => {}
    }
    (frame.line > 0 && frame.column > 0).then_some((frame.line, frame.column))
}

/// The frame with function, file and line of the authored source. `None` if no source map has them.
fn translate_frame(profile: &Profile, frame: &Frame, maps: &SourceMaps) -> Option<ChangedFrame> {
    // WebAssembly that was compiled to native code has no script and line, so source maps are asked for its name.
    if let Some((name, place)) = maps.native(profile.name_of(frame.name)) {
        let (file, line) = place.map_or((None, frame.line), |place| (Some(place.file.into()), place.line));
        return Some(ChangedFrame { name: name.into_bytes(), file, line, start: None });
    }
    let generated = script_function(profile, frame)?;
    // In the authored source, `place` is where the function starts, and `executed` is the line that was being executed.
    let (place, function) = maps.function(&generated)?;
    let executed = if frame.column > 0 { maps.place(generated.script, frame.line, frame.column) } else { None };
    let name = match find_start(profile, frame) {
        // The name has the form that V8 gives it, with the script, line and column in it. Spell it in the same form.
        None => {
            generated.spell(function.as_deref().unwrap_or(generated.function), place.file, place.line, place.column)
        }
        // The script, line and column are in fields of their own, so the name is only that of the function.
        Some(_) => function.unwrap_or_else(|| String::from_utf8_lossy(profile.name_of(frame.name)).into_owned()),
    };
    // If the frame doesn't state at which line its function starts, the changed frame doesn't either.
    let states_start = frame.start.line > 0;
    let start = frame.start.file.map(|_| if states_start { (place.line, place.column) } else { (0, 0) });
    let (file, line) = match executed {
        Some(executed) => (executed.file, executed.line),
        None if states_start => (place.file, 0),
        // The frame states neither where its function starts nor the executed line. Then its line is the only field
        // that can tell where the function starts in the authored source.
        None => (place.file, place.line),
    };
    Some(ChangedFrame { name: name.into_bytes(), file: Some(file.into()), line, start })
}
