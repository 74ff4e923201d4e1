//! Adds names to a decoded message. Lines are added to locations. The functions, strings, copied locations and copied
//! stacks that this needs are appended to the dictionary's tables.

use super::uses::{LocationUses, SampleStack, sample_stacks};
use crate::contract::unsymbolized::{BareAddress, LocationNames, NamedCall};
use crate::error::{Error, Result};
use crate::formats::otlp::messages::{
    Dictionary, FunctionMessage, LineMessage, ProfilesData, ResourceProfiles, SampleMessage, StackMessage,
};
use crate::model::Pid;
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashMap;

/// Returns the functions at an address: inlined calls, from the innermost outwards, then the function that contains the
/// code.
pub(super) type LookUp<'a> = dyn Fn(&BareAddress) -> Vec<NamedCall<'a>> + 'a;

/// Adds all names that are found, and returns whether the message changed. A location can have several names: one as a
/// caller and another one as the innermost frame, or one per process. It is then copied for each further name. Samples
/// that need such a copy get a copy of their stack, in which it takes the place of the location.
pub(super) fn add_names(message: &mut ProfilesData, uses: &LocationUses, look_up: &LookUp<'_>) -> Result<bool> {
    let Some(dictionary) = &mut message.dictionary else { return Ok(false) };
    let names = LocationNames::new(&uses.list, |location_use| match uses.address(location_use) {
        Some(address) => look_up(&address),
        None => Vec::new(),
    });
    if names.is_empty() {
        return Ok(false);
    }
    // The copy at index i of `names.copies` is appended to the table as location `first_copy` + i.
    let first_copy = dictionary.location_table.len();
    let mut functions = NewFunctions::new(dictionary);
    // A location gets the name that was found for its first use. Each other name of it goes to a copy.
    for (location, calls) in &names.named {
        let lines = functions.lines(calls)?;
        if let Some(location) = functions.dictionary.location_table.get_mut(*location as usize) {
            location.lines = lines;
        }
    }
    for (location, calls) in &names.copies {
        let locations = &functions.dictionary.location_table;
        let mut copy = locations.get(*location as usize).cloned().unwrap_or_default();
        copy.lines = functions.lines(calls)?;
        push(copy, &mut functions.dictionary.location_table)?;
    }
    let (known, copies) = (FxHashMap::default(), FxHashMap::default());
    let mut stacks = StackCopier { uses, names: &names, first_copy, known, copies, dictionary };
    for resource in &mut message.resource_profiles {
        stacks.redirect_samples(resource)?;
    }
    Ok(true)
}

/// Appends an element to a table and returns its index. Fails if the index doesn't fit into `int32`.
fn push<T>(element: T, table: &mut Vec<T>) -> Result<i32> {
    let index = i32::try_from(table.len())
        .map_err(|_| Error::new("the dictionary of an OpenTelemetry message is full, so no names can be added"))?;
    table.push(element);
    Ok(index)
}

/// Adds functions and strings to a dictionary, each once.
struct NewFunctions<'m> {
    dictionary: &'m mut Dictionary,
    /// The index of each string in the string table. Of equal strings, the first one counts.
    strings: FxHashMap<Bytes, i32>,
    /// The indices of new functions, by the indices of their name and file.
    functions: FxHashMap<(i32, i32), i32>,
}

impl<'m> NewFunctions<'m> {
    fn new(dictionary: &'m mut Dictionary) -> Self {
        let mut strings = FxHashMap::default();
        for (index, string) in (0..).zip(&dictionary.string_table) {
            strings.entry(string.clone()).or_insert(index);
        }
        Self { dictionary, strings, functions: FxHashMap::default() }
    }

    /// Makes the lines of a location, one for each call. Adds functions that are new.
    fn lines(&mut self, calls: &[NamedCall<'_>]) -> Result<Vec<LineMessage>> {
        let mut lines = Vec::with_capacity(calls.len());
        for call in calls {
            let function_index = self.function(call)?;
            lines.push(LineMessage { function_index, line: call.line.into(), column: 0 });
        }
        Ok(lines)
    }

    /// The index of the call's function in the function table. Adds the function if it is new.
    fn function(&mut self, call: &NamedCall<'_>) -> Result<i32> {
        let (name, file) = (self.string(call.name)?, self.string(call.file)?);
        if let Some(&index) = self.functions.get(&(name, file)) {
            return Ok(index);
        }
        let table = &mut self.dictionary.function_table;
        if table.is_empty() {
            // Index 0 means "none", so the new function must not get it.
            table.push(FunctionMessage::default());
        }
        let function = FunctionMessage { name_strindex: name, filename_strindex: file, ..FunctionMessage::default() };
        let index = push(function, table)?;
        self.functions.insert((name, file), index);
        Ok(index)
    }

    /// The index of a string, which is added if it is new. Invalid UTF-8 is replaced.
    fn string(&mut self, text: &[u8]) -> Result<i32> {
        // Index 0 always stands for the empty string.
        if text.is_empty() {
            return Ok(0);
        }
        let text = String::from_utf8_lossy(text);
        if let Some(&index) = self.strings.get(text.as_bytes()) {
            return Ok(index);
        }
        let text = Bytes::from(text.into_owned());
        let index = push(text.clone(), &mut self.dictionary.string_table)?;
        self.strings.insert(text, index);
        Ok(index)
    }
}

/// Redirects samples to copies of their stacks if a location of the stack had to be copied.
struct StackCopier<'m> {
    uses: &'m LocationUses,
    names: &'m LocationNames<'m>,
    /// The index of the first copied location.
    first_copy: usize,
    /// The stack index to use for a sample, by its original stack index and its process.
    known: FxHashMap<(i32, Option<Pid>), i32>,
    /// The indices of the copied stacks, by the locations in the copy.
    copies: FxHashMap<Vec<i32>, i32>,
    dictionary: &'m mut Dictionary,
}

impl StackCopier<'_> {
    /// Makes the samples of a resource refer to copies of their stacks if these contain locations that were copied.
    fn redirect_samples(&mut self, resource: &mut ResourceProfiles) -> Result<()> {
        // One stack for each sample, in the order in which the loops below visit the samples.
        let mut stacks = sample_stacks(resource, self.dictionary).into_iter();
        for profile in resource.scope_profiles.iter_mut().flat_map(|scope| &mut scope.profiles) {
            for (bytes, stack) in profile.samples.iter_mut().zip(stacks.by_ref()) {
                // Damaged samples stay as they are.
                if let Ok(mut sample) = SampleMessage::decode(bytes.clone()) {
                    sample.stack_index = self.stack_index(&stack, sample.stack_index)?;
                    *bytes = sample.encode_to_vec().into();
                }
            }
        }
        Ok(())
    }

    /// The stack index for a sample. This is `old` unless a location of the stack was copied for the sample's process.
    fn stack_index(&mut self, stack: &SampleStack, old: i32) -> Result<i32> {
        if self.names.copies.is_empty() {
            return Ok(old);
        }
        if let Some(&index) = self.known.get(&(stack.stack_index, stack.pid)) {
            return Ok(index);
        }
        // `uses` also looks at the neighbors of a location, so it must see the original stack, not the one in which
        // some locations were replaced.
        let old_locations = self.dictionary.stack(stack.stack_index).to_vec();
        let mut locations = old_locations.clone();
        let mut has_copied_location = false;
        for (depth, location) in locations.iter_mut().enumerate() {
            // `get` returns `None` for a location that needs no name, `copy_of` for a use that stays with the original
            // location.
            if let Some(location_use) = self.uses.get(&old_locations, depth, stack.pid)
                && let Some(copy) = self.names.copy_of(&location_use)
            {
                *location = (self.first_copy + copy) as i32;
                has_copied_location = true;
            }
        }
        let index = match self.copies.get(&locations) {
            Some(&copy) => copy,
            None if has_copied_location => {
                let copy = StackMessage { location_indices: locations.clone() };
                let index = push(copy, &mut self.dictionary.stack_table)?;
                self.copies.insert(locations, index);
                index
            }
            // Nothing was copied for this process, so its samples keep their stack.
            None => old,
        };
        self.known.insert((stack.stack_index, stack.pid), index);
        Ok(index)
    }
}
