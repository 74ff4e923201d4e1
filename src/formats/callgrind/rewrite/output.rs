//! The text of the rewritten file, and the IDs of names that the input doesn't have.
//!
//! A new name gets an ID above all IDs of the input, and is written in full at its first use. KCachegrind forgets all
//! IDs at the headers of a part of the dump, so names are defined again there.

use super::input_names::InputContext;
use crate::formats::callgrind::grammar::{IdSpace, Keyword, NameRef, Statement, name_field, push_id};
use rustc_hash::{FxHashMap, FxHashSet};

/// The name of an object or file in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputName<'a> {
    /// A name that the input already has.
    Input(NameRef<'a>),
    /// A name that the input doesn't have.
    New(&'a [u8]),
}

/// Collects the text of the rewritten file until it is written, and remembers which IDs readers of this text know.
#[derive(Debug)]
pub(super) struct RewrittenText {
    pub(super) text: Vec<u8>,
    /// The largest ID in use in each namespace; the index is an [`IdSpace`].
    last_ids: [u32; 3],
    /// The IDs of new names, by name; the index of the array is an [`IdSpace`].
    names: [FxHashMap<Vec<u8>, AssignedId>; 3],
    /// IDs of functions whose definitions were not copied from the input. The next use of such an ID has to define it.
    dropped: FxHashSet<u32>,
    /// The number of headers so far at which readers forget all IDs. See `AssignedId::era`.
    era: u32,
    /// True if there were not enough IDs for all new names.
    pub(super) ran_out_of_ids: bool,
}

#[derive(Debug, Clone, Copy)]
struct AssignedId {
    id: u32,
    /// The value of [`RewrittenText::era`] when the name was last written next to its ID. In a later era the name must
    /// be written again.
    era: u32,
}

impl RewrittenText {
    /// Creates an empty output. `max_ids` are the largest IDs in the input by [`IdSpace`]; new names get the IDs after
    /// them, so that they never clash with an ID of the input.
    pub(super) fn new(max_ids: [u32; 3]) -> Self {
        Self {
            text: Vec::new(),
            last_ids: max_ids,
            names: Default::default(),
            dropped: FxHashSet::default(),
            era: 0,
            ran_out_of_ids: false,
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    pub(super) fn put_id(&mut self, id: u32) {
        push_id(id, &mut self.text);
    }

    /// Appends `(id) name`, the definition of an ID. Line breaks in the name become blanks, because they would end the
    /// statement.
    pub(super) fn put_definition(&mut self, id: u32, name: &[u8]) {
        self.put_id(id);
        self.put(b" ");
        let one_line = name.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
        self.text.extend(one_line);
    }

    /// Appends `ob=name` or another statement that specifies an object.
    pub(super) fn put_object(&mut self, key: &[u8], name: OutputName<'_>) {
        self.put_statement(key, IdSpace::Object, name);
    }

    /// Appends `fl=name` or another statement that specifies a file.
    pub(super) fn put_file(&mut self, key: &[u8], name: OutputName<'_>) {
        self.put_statement(key, IdSpace::File, name);
    }

    /// Appends a line that sets an object, file or function, such as `fl=(3)`.
    fn put_statement(&mut self, key: &[u8], space: IdSpace, name: OutputName<'_>) {
        self.put(key);
        match name {
            OutputName::Input(NameRef::Id(id)) => self.put_id(id),
            OutputName::Input(NameRef::Name(name)) => self.put(name),
            OutputName::New(name) => self.put_new_name(space, name),
        }
        self.put(b"\n");
    }

    /// Appends the ID of a function name that the input doesn't have, and the name itself if readers don't know the ID.
    pub(super) fn put_function(&mut self, name: &[u8]) {
        self.put_new_name(IdSpace::Function, name);
    }

    /// Appends the ID of a name that the input doesn't have. The name follows unless readers know the ID already.
    /// Readers may forget all IDs at some headers, and with each of these headers a new `era` begins. So readers know
    /// the ID only if the name was already written in the current era.
    fn put_new_name(&mut self, space: IdSpace, name: &[u8]) {
        let (id, is_known) = match self.names[space as usize].get_mut(name) {
            Some(assigned) => {
                let is_known = assigned.era == self.era;
                assigned.era = self.era;
                (assigned.id, is_known)
            }
            None => (self.assign_id(space, name), false),
        };
        if is_known {
            self.put_id(id);
        } else {
            self.put_definition(id, name);
        }
    }

    /// Gives a name the next free ID. If there is none, sets `ran_out_of_ids` and returns the last ID.
    fn assign_id(&mut self, space: IdSpace, name: &[u8]) -> u32 {
        let last = &mut self.last_ids[space as usize];
        match last.checked_add(1) {
            Some(id) => *last = id,
            None => self.ran_out_of_ids = true,
        }
        self.names[space as usize].insert(name.to_vec(), AssignedId { id: *last, era: self.era });
        *last
    }

    /// Appends the ID of a function in the input. The name follows if its definition was not copied.
    pub(super) fn put_input_function(&mut self, id: u32, name: &[u8]) {
        if self.dropped.remove(&id) {
            self.put_definition(id, name);
        } else {
            self.put_id(id);
        }
    }

    /// Notes that the definition of a function's ID is not copied from the input, so that the next use of the ID has to
    /// define it.
    pub(super) fn drop_definition(&mut self, id: u32) {
        self.dropped.insert(id);
    }

    /// Notes that a definition of a function's ID is copied from the input.
    pub(super) fn keep_definition(&mut self, id: u32) {
        self.dropped.remove(&id);
    }

    /// Starts a new part. Must be called before a header at which readers forget all IDs.
    pub(super) fn begin_part(&mut self) {
        self.era += 1;
    }

    /// How many distinct new names of functions were written.
    pub(super) fn new_functions(&self) -> usize {
        self.names[IdSpace::Function as usize].len()
    }
}

/// The object and files in effect at the end of the output so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputContext<'a> {
    /// The object, from the last `ob=`.
    pub(super) object: Option<OutputName<'a>>,
    /// The file of the last `fl=`. The next `fn=` starts in this file, even after `fi=` or `fe=`.
    pub(super) fl: Option<OutputName<'a>>,
    /// The current file: the last `fl=`, `fi=` or `fe=`.
    pub(super) file: Option<OutputName<'a>>,
}

impl<'a> OutputContext<'a> {
    /// Updates the object and files that are in effect, after a line of the input was copied.
    pub(super) fn apply(&mut self, line: Statement<'a>) {
        let Statement::Spec(keyword, value) = line else { return };
        let name = Some(OutputName::Input(name_field(value).into()));
        match keyword {
            Keyword::Ob => self.object = name,
            Keyword::Fl => (self.fl, self.file) = (name, name),
            Keyword::Fi | Keyword::Fe => self.file = name,
            _ => {}
        }
    }
}

impl<'a> From<InputContext<'a>> for OutputContext<'a> {
    /// The context of the output if everything so far was copied from the input.
    fn from(context: InputContext<'a>) -> Self {
        Self {
            object: context.object.map(OutputName::Input),
            fl: context.fl.map(OutputName::Input),
            file: context.open_file.or(context.fl).map(OutputName::Input),
        }
    }
}
