//! The tables of a thread: strings, functions, resources, frames and stacks, as columns.

use super::categories::{Categories, CategoryPair};
use super::columns::{Column, Object};
use super::libraries::Libraries;
use super::writing::{FunctionKey, Writing, function_key};
use crate::analysis::category::Category;
use crate::analysis::label;
use crate::model::stacks::{Frame, FrameId, FrameKind, NameId, StackId};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::io;

/// The string table: distinct strings, numbered in the order of their first use.
#[derive(Default)]
pub(super) struct Strings {
    numbers: FxHashMap<String, u32>,
    pub(super) list: Column,
}

impl Strings {
    /// The number of a text in the list. Adds the text if it is new.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.list.json(text);
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

#[derive(Default)]
pub(super) struct FuncTable {
    length: u32,
    name: Column,
    is_js: Column,
    resource: Column,
    file_name: Column,
    line_number: Column,
    column_number: Column,
}

#[derive(Default)]
pub(super) struct ResourceTable {
    length: u32,
    lib: Column,
    name: Column,
}

#[derive(Default)]
pub(super) struct FrameTable {
    length: u32,
    /// Address in the library; -1 for none.
    address: Column,
    /// The number of inlined calls around the frame, itself included; 0 for the function that contains the code.
    inline_depth: Column,
    category: Column,
    subcategory: Column,
    func: Column,
    line: Column,
}

#[derive(Default)]
pub(super) struct StackTable {
    length: u32,
    prefix: Column,
    frame: Column,
}

/// Maps the profile's stacks and frames to their indices in the tables of the thread that is being built.
#[derive(Default)]
pub(super) struct ThreadNumbers {
    stacks: Numbers,
    /// The index of each frame that is neither inlined nor called by a garbage collector. The indices of all other
    /// frames are in `Tables::frame_numbers`.
    frames: Numbers,
    /// For each stack in the thread's stack table, the context of its innermost frame.
    contexts: Vec<FrameContext>,
    /// Scratch space of [`Tables::stack`]: a stack and its callers that are not in the table yet, innermost first.
    new_stacks: Vec<(StackId, FrameId)>,
}

impl ThreadNumbers {
    /// Forgets the numbers of the current thread, before another thread is built.
    fn clear(&mut self) {
        self.stacks.clear();
        self.frames.clear();
        self.contexts.clear();
    }
}

/// All tables of a thread, ready to be written.
#[derive(Default)]
pub(super) struct ThreadTables {
    pub(super) strings: Strings,
    pub(super) functions: FuncTable,
    pub(super) resources: ResourceTable,
    pub(super) frames: FrameTable,
    pub(super) stacks: StackTable,
}

/// The tables of a thread while they are filled.
pub(super) struct Tables<'k> {
    pub(super) own: ThreadTables,
    function_numbers: FxHashMap<FunctionKey, u32>,
    /// The source file of each function, by the function's index; `None` if unknown.
    function_files: Vec<Option<NameId>>,
    resource_numbers: FxHashMap<usize, u32>,
    /// The index of each frame that is inlined or called by a garbage collector, by the frame and its context. The
    /// indices of other frames are in [`ThreadNumbers`].
    frame_numbers: FxHashMap<(FrameId, FrameContext), u32>,
    known: &'k mut ThreadNumbers,
}

/// What the callers of a frame mean for its row in the frame table: how many inlined calls surround it, itself
/// included, and whether it is part of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct FrameContext {
    inline_depth: u32,
    in_gc: bool,
}

/// Tables that are common to all threads.
pub(super) struct Shared<'a> {
    pub(super) writing: &'a Writing<'a>,
    pub(super) libraries: &'a mut Libraries,
    pub(super) categories: &'a mut Categories,
}

impl<'k> Tables<'k> {
    /// Starts a thread with empty tables, and clears `known`.
    pub(super) fn new(known: &'k mut ThreadNumbers) -> Self {
        known.clear();
        Self {
            own: ThreadTables::default(),
            function_numbers: FxHashMap::default(),
            function_files: Vec::new(),
            resource_numbers: FxHashMap::default(),
            frame_numbers: FxHashMap::default(),
            known,
        }
    }

    /// The index of a stack, which is added if it is new.
    pub(super) fn stack(&mut self, stack: StackId, shared: &mut Shared<'_>) -> u32 {
        // Walk up to the nearest caller that is in the table, then add the stacks below it, the outermost first: a row
        // refers to the row of its caller.
        let (mut next, mut known_caller) = (Some(stack), None);
        while let Some(id) = next {
            known_caller = self.known.stacks.get(id.0);
            if known_caller.is_some() {
                break;
            }
            let (parent, frame) = shared.writing.profile.stack_of(id);
            self.known.new_stacks.push((id, frame));
            next = parent;
        }
        let mut last = known_caller;
        while let Some((id, frame)) = self.known.new_stacks.pop() {
            let caller_context = last.map(|caller| self.known.contexts[caller as usize]).unwrap_or_default();
            let context = context_of(shared.writing, frame, caller_context);
            let frame = self.frame(frame, context, shared);
            let table = &mut self.own.stacks;
            table.prefix.number_or_null(last);
            table.frame.number(frame);
            self.known.stacks.add(id.0, table.length);
            // Keep the row's context: the contexts of the stack's callees depend on it.
            self.known.contexts.push(context);
            last = Some(table.length);
            table.length += 1;
        }
        // Never `None`: the stack was either known or has just been added.
        last.unwrap_or(0)
    }

    /// The index of a frame, which is added if it is new. The same frame has another category inside garbage
    /// collection, and another depth if it is inlined, so `context` is part of its identity.
    fn frame(&mut self, id: FrameId, context: FrameContext, shared: &mut Shared<'_>) -> u32 {
        // Most frames are neither inlined nor called by a garbage collector. Their indices are in a faster table.
        let is_plain = context == FrameContext::default();
        let known =
            if is_plain { self.known.frames.get(id.0) } else { self.frame_numbers.get(&(id, context)).copied() };
        if let Some(known) = known {
            return known;
        }
        let profile = shared.writing.profile;
        let frame = profile.frame_of(id);
        let library = frame.module.map(|module| shared.libraries.number(profile, module));
        let func = self.function(frame, library, shared);
        // The table states files of functions, not of frames. A line in another file than the function's would be shown
        // in the wrong file, so it is left out.
        let is_line_in_function_file = frame.file == self.function_files[func as usize];
        let line = if is_line_in_function_file { unless_zero(frame.line) } else { None };
        let named_library = library.map(|library| (library, shared.libraries.name(library)));
        let CategoryPair { category, subcategory } =
            shared.categories.find(Category::from_frame(frame), context.in_gc, named_library);
        // The table states addresses in libraries. JIT code is in none, so its addresses are left out.
        let is_in_library = frame.module.is_some() && frame.kind != FrameKind::Jit;
        let table = &mut self.own.frames;
        table.address.number_or_minus_one(frame.addr.filter(|addr| is_in_library && i64::try_from(*addr).is_ok()));
        table.inline_depth.number(context.inline_depth);
        table.category.number(category as u64);
        table.subcategory.number(subcategory as u64);
        table.func.number(func);
        table.line.number_or_null(line);
        if is_plain {
            self.known.frames.add(id.0, table.length);
        } else {
            self.frame_numbers.insert((id, context), table.length);
        }
        table.length += 1;
        table.length - 1
    }

    /// The index of a frame's function.
    fn function(&mut self, frame: &Frame, library: Option<usize>, shared: &Shared<'_>) -> u32 {
        let key = function_key(frame);
        if let Some(&known) = self.function_numbers.get(&key) {
            return known;
        }
        let profile = shared.writing.profile;
        let resource = library.map(|library| self.resource(library, shared.libraries.name(library)));
        let name: Cow<'_, str> = label::function(profile, frame);
        let table = &mut self.own.functions;
        table.name.number(self.own.strings.number(&name));
        table.is_js.word(if frame.kind.is_jit() { "true" } else { "false" });
        table.resource.number_or_minus_one(resource.map(u64::from));
        let file = shared.writing.function_file(frame);
        let file_name = file.map(|file| String::from_utf8_lossy(profile.name_of(file)));
        table.file_name.number_or_null(file_name.map(|name| self.own.strings.number(&name)));
        table.line_number.number_or_null(unless_zero(frame.start.line));
        table.column_number.number_or_null(unless_zero(frame.start.column));
        table.length += 1;
        self.function_files.push(file);
        self.function_numbers.insert(key, table.length - 1);
        table.length - 1
    }

    /// The row of a library in the resource table. Adds a row if the library has none.
    fn resource(&mut self, library: usize, name: &str) -> u32 {
        let table = &mut self.own.resources;
        let number = *self.resource_numbers.entry(library).or_insert(table.length);
        if number == table.length {
            table.lib.number(library as u64);
            table.name.number(self.own.strings.number(name));
            table.length += 1;
        }
        number
    }
}

/// The line or column; `None` if it is 0, which stands for unknown.
fn unless_zero(number: u32) -> Option<u32> {
    if number > 0 { Some(number) } else { None }
}

impl FuncTable {
    /// Writes the columns of `funcTable`.
    pub(super) fn write(&self, object: &mut Object<'_>) -> io::Result<()> {
        object.field("length", &self.length)?;
        object.column("name", &self.name)?;
        object.column("isJS", &self.is_js)?;
        // The flag marks native functions that the viewer shows together with JavaScript. Only Firefox itself has such
        // functions.
        object.column("relevantForJS", &Column::repeated("false", self.length))?;
        object.column("resource", &self.resource)?;
        object.column("fileName", &self.file_name)?;
        object.column("lineNumber", &self.line_number)?;
        object.column("columnNumber", &self.column_number)
    }
}

impl ResourceTable {
    /// Writes the columns of `resourceTable`.
    pub(super) fn write(&self, object: &mut Object<'_>) -> io::Result<()> {
        /// The type of all resources here, a library: `resourceTypes.library` in the viewer's source.
        const LIBRARY: &str = "1";
        object.field("length", &self.length)?;
        object.column("lib", &self.lib)?;
        object.column("name", &self.name)?;
        object.column("host", &Column::repeated("null", self.length))?;
        object.column("type", &Column::repeated(LIBRARY, self.length))
    }
}

impl FrameTable {
    /// Writes the columns of `frameTable`.
    pub(super) fn write(&self, object: &mut Object<'_>) -> io::Result<()> {
        object.field("length", &self.length)?;
        object.column("address", &self.address)?;
        object.column("inlineDepth", &self.inline_depth)?;
        object.column("category", &self.category)?;
        object.column("subcategory", &self.subcategory)?;
        object.column("func", &self.func)?;
        // There are no native symbols (functions have names already), and window 0 stands for no browser page.
        object.column("nativeSymbol", &Column::repeated("null", self.length))?;
        object.column("innerWindowID", &Column::repeated("0", self.length))?;
        object.column("line", &self.line)?;
        object.column("column", &Column::repeated("null", self.length))
    }
}

impl StackTable {
    /// Writes the columns of `stackTable`.
    pub(super) fn write(&self, object: &mut Object<'_>) -> io::Result<()> {
        object.field("length", &self.length)?;
        object.column("prefix", &self.prefix)?;
        object.column("frame", &self.frame)
    }
}

/// The context of a frame. `caller` is the context of the frame that called it.
fn context_of(writing: &Writing<'_>, id: FrameId, caller: FrameContext) -> FrameContext {
    let frame = writing.profile.frame_of(id);
    let inline_depth = if frame.kind == FrameKind::Inlined { caller.inline_depth + 1 } else { 0 };
    // A collector may call back into JIT code, to run finalizers, for example. That isn't part of the collection.
    let in_gc = !frame.kind.is_jit() && (caller.in_gc || writing.collects_garbage(frame.name));
    FrameContext { inline_depth, in_gc }
}

/// A map from the profile's numbers to a thread's numbers, stored as a vector. It is cleared for each thread, and most
/// threads use few of the profile's numbers. So clearing it only visits its entries, not the whole vector.
#[derive(Debug, Default)]
struct Numbers {
    /// For each key, its value plus 1; 0 if it has none.
    values: Vec<u32>,
    /// The keys that have values.
    keys: Vec<u32>,
}

impl Numbers {
    #[inline]
    fn get(&self, key: u32) -> Option<u32> {
        self.values.get(key as usize)?.checked_sub(1)
    }

    /// Maps `key` to `value`. It must not be mapped yet.
    fn add(&mut self, key: u32, value: u32) {
        if self.values.len() <= key as usize {
            self.values.resize(key as usize + 1, 0);
        }
        self.values[key as usize] = value + 1;
        self.keys.push(key);
    }

    /// Removes all entries.
    fn clear(&mut self) {
        for key in self.keys.drain(..) {
            self.values[key as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_range_is_unknown() {
        let mut numbers = Numbers::default();
        numbers.add(7, 0);
        numbers.add(2, 1);
        assert_eq!([7, 2, 3, 90].map(|at| numbers.get(at)), [Some(0), Some(1), None, None]);
        numbers.clear();
        assert_eq!([7, 2].map(|at| numbers.get(at)), [None, None]);
        numbers.add(2, 0);
        assert_eq!([7, 2].map(|at| numbers.get(at)), [None, Some(0)]);
    }
}
