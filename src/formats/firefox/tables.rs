//! The tables of a thread: strings, functions, resources, frames, stacks, all in columns.

use super::categories::{Categories, CategoryPair, collects_garbage};
use super::libraries::Libraries;
use crate::model::category::Category;
use crate::model::label;
use crate::model::stacks::{Frame, FrameId, FrameKind, NameId, Profile, StackId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::borrow::Cow;

#[derive(Default, Serialize)]
pub(super) struct Strings {
    #[serde(skip)]
    numbers: FxHashMap<String, usize>,
    list: Vec<String>,
}

impl Strings {
    pub(super) fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    length: usize,
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    /// -1 for none.
    resource: Vec<i64>,
    file_name: Vec<Option<usize>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
pub(super) struct ResourceTable {
    length: usize,
    lib: Vec<usize>,
    name: Vec<usize>,
    host: Vec<Option<usize>>,
    r#type: Vec<u8>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    length: usize,
    /// In the library; -1 for none.
    address: Vec<i64>,
    /// How many calls that were expanded at this address are around it.
    inline_depth: Vec<u32>,
    category: Vec<usize>,
    subcategory: Vec<usize>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<u8>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
pub(super) struct StackTable {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) strings: Strings,
    pub(super) functions: FuncTable,
    pub(super) resources: ResourceTable,
    pub(super) frames: FrameTable,
    pub(super) stacks: StackTable,
    function_numbers: FxHashMap<(NameId, Option<NameId>), usize>,
    resource_numbers: FxHashMap<usize, usize>,
    frame_numbers: FxHashMap<(FrameId, InStack), usize>,
    stack_numbers: FxHashMap<StackId, (usize, InStack)>,
}

/// What a frame is by what is around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct InStack {
    inline_depth: u32,
    in_gc: bool,
}

/// What all threads share.
pub(super) struct Shared<'a> {
    pub(super) profile: &'a Profile,
    pub(super) libraries: &'a mut Libraries,
    pub(super) categories: &'a mut Categories,
}

impl Tables {
    pub(super) fn stack(&mut self, stack: StackId, shared: &mut Shared<'_>) -> usize {
        // Up to the nearest caller that is known, then down again.
        let mut down = Vec::new();
        let (mut at, mut last) = (Some(stack), None);
        while let Some(id) = at {
            if let Some(&known) = self.stack_numbers.get(&id) {
                last = Some(known);
                break;
            }
            let (parent, frame) = shared.profile.stack_of(id);
            down.push((id, frame));
            at = parent;
        }
        for (id, frame) in down.into_iter().rev() {
            let around = last.map(|(_, around)| around).unwrap_or_default();
            let inside = in_stack(shared.profile, frame, around);
            let frame = self.frame(frame, inside, shared);
            let table = &mut self.stacks;
            table.prefix.push(last.map(|(number, _)| number));
            table.frame.push(frame);
            table.length += 1;
            last = Some((table.length - 1, inside));
            self.stack_numbers.insert(id, (table.length - 1, inside));
        }
        last.map_or(0, |(number, _)| number)
    }

    fn frame(&mut self, id: FrameId, inside: InStack, shared: &mut Shared<'_>) -> usize {
        if let Some(&known) = self.frame_numbers.get(&(id, inside)) {
            return known;
        }
        let frame = shared.profile.frame_of(id);
        let library = frame.module.map(|module| shared.libraries.number(shared.profile, module));
        let func = self.function(frame, library, shared);
        let named = library.map(|library| (library, shared.libraries.name(library)));
        let CategoryPair { category, subcategory } = shared.categories.of(Category::of(frame), inside.in_gc, named);
        // The addresses of JIT code are in no file.
        let in_file = frame.module.is_some() && frame.kind != FrameKind::Jit;
        let address = frame.addr.filter(|_| in_file).and_then(|addr| i64::try_from(addr).ok());
        let table = &mut self.frames;
        table.address.push(address.unwrap_or(-1));
        table.inline_depth.push(inside.inline_depth);
        table.category.push(category);
        table.subcategory.push(subcategory);
        table.func.push(func);
        table.native_symbol.push(None);
        table.inner_window_id.push(0);
        table.line.push(Some(frame.line).filter(|line| *line > 0));
        table.column.push(None);
        table.length += 1;
        self.frame_numbers.insert((id, inside), table.length - 1);
        table.length - 1
    }

    /// A function is a name in a library: where its lines come from is told by its frames.
    fn function(&mut self, frame: &Frame, library: Option<usize>, shared: &Shared<'_>) -> usize {
        if let Some(&known) = self.function_numbers.get(&(frame.name, frame.module)) {
            return known;
        }
        let text = |id| String::from_utf8_lossy(shared.profile.name_of(id));
        let resource = library.map_or(-1, |library| self.resource(library, shared.libraries.name(library)) as i64);
        let name: Cow<'_, str> = label::function(shared.profile, frame);
        let table = &mut self.functions;
        table.name.push(self.strings.number(&name));
        table.is_js.push(frame.kind == FrameKind::Jit);
        table.relevant_for_js.push(false);
        table.resource.push(resource);
        table.file_name.push(frame.file.map(|file| self.strings.number(&text(file))));
        table.line_number.push(None);
        table.column_number.push(None);
        table.length += 1;
        self.function_numbers.insert((frame.name, frame.module), table.length - 1);
        table.length - 1
    }

    fn resource(&mut self, library: usize, name: &str) -> usize {
        /// `resourceTypes.library` of the viewer.
        const LIBRARY: u8 = 1;
        let table = &mut self.resources;
        let number = *self.resource_numbers.entry(library).or_insert(table.length);
        if number == table.length {
            table.lib.push(library);
            table.name.push(self.strings.number(name));
            table.host.push(None);
            table.r#type.push(LIBRARY);
            table.length += 1;
        }
        number
    }
}

fn in_stack(profile: &Profile, frame: FrameId, around: InStack) -> InStack {
    let frame = profile.frame_of(frame);
    let inline_depth = if frame.kind == FrameKind::Inlined { around.inline_depth + 1 } else { 0 };
    let jit = frame.kind == FrameKind::Jit;
    InStack { inline_depth, in_gc: !jit && (around.in_gc || collects_garbage(profile.name_of(frame.name))) }
}
