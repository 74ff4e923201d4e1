//! Reads costs and calls from the lines of a callgrind file, and resolves the names of their functions.
//!
//! A function is identified by its name, file and object: those where its ID is defined or, if it has no ID, those at
//! each use. Each recursion level (`f'2`) is a function of its own here.

use super::grammar::{
    CallLine, CostLine, IdSpace, Keyword, Line, NameField, Position, Statement, name_field, number, statements,
};
use crate::error::{Error, Result};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;

/// Number of a text in [`CostReader::texts`]. 32 bits suffice, because memory runs out before there are 2^32 distinct
/// texts.
pub(super) type TextNumber = u32;

/// The number of the empty text. It is the name of the current object and file until the first `ob=` and `fl=` lines,
/// and of objects and files whose ID isn't defined.
const NO_TEXT: TextNumber = 0;

/// Identifies a function by its name, source file and object. The fields are numbers of texts in [`CostReader::texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FunctionName {
    pub(super) name: TextNumber,
    pub(super) file: TextNumber,
    pub(super) object: TextNumber,
}

/// What [`CostReader::read`] reports about a line. Lines that only name a file or an object have no record. Functions
/// are given as indices into [`CostReader::functions`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Record<'a> {
    Header {
        word: &'a [u8],
        value: &'a [u8],
    },
    /// A block of this function begins: the costs that follow belong to it, until the next block.
    Function(u32),
    /// Self cost of a source line. `file` contains the line; for inlined code, it isn't the file of the function.
    SelfCost {
        function: u32,
        file: TextNumber,
        cost: CostLine<'a>,
    },
    /// Calls from one position to one function, with their inclusive cost. `target` is the position that the file
    /// states for the callee; `None` if it is malformed.
    Call {
        caller: u32,
        callee: u32,
        count: u64,
        target: Option<Position>,
        cost: CostLine<'a>,
    },
}

/// Reads the lines of a file in order. Remembers which function, file and object the lines set, and numbers the
/// functions in order of appearance.
#[derive(Debug)]
pub(super) struct CostReader {
    /// Names of functions, files and objects.
    pub(super) texts: Texts<TextNumber>,
    /// The functions in order of appearance.
    pub(super) functions: Vec<FunctionName>,
    /// The index in `functions` of each function.
    function_numbers: FxHashMap<FunctionName, u32>,
    /// Names of objects and files by their IDs; the index of the array is an [`IdSpace`].
    text_ids: [FxHashMap<u32, TextNumber>; 2],
    /// For each function ID that is defined so far, the function's index in `functions`.
    function_ids: FxHashMap<u32, u32>,
    /// The names of all IDs in the file, for IDs that are used before the line that defines them. Filled in advance by
    /// [`CostReader::with_definitions`]; otherwise empty.
    later_names: FxHashMap<(IdSpace, u32), TextNumber>,
    /// The current object (`ob=`).
    pub(super) object: TextNumber,
    /// The file of the current function (`fl=`).
    fl: TextNumber,
    /// The source file of the next cost lines: `fl`, or the file of inlined code (`fi=`, `fe=`).
    file: TextNumber,
    /// The current function; `None` if the last `fn=` line is invalid.
    function: Option<u32>,
    /// The values of the `cob=`, `cfi=` and `cfn=` lines since the last call: object, file and function of the next
    /// callee.
    cob: Option<TextNumber>,
    cfi: Option<TextNumber>,
    callee: Option<u32>,
}

impl Default for CostReader {
    /// Creates a reader that has read no line yet.
    fn default() -> Self {
        // The empty text is interned first, so that its number is `NO_TEXT`.
        let mut texts = Texts::default();
        texts.intern(b"");
        Self {
            texts,
            functions: Vec::new(),
            function_numbers: FxHashMap::default(),
            text_ids: Default::default(),
            function_ids: FxHashMap::default(),
            later_names: FxHashMap::default(),
            object: NO_TEXT,
            fl: NO_TEXT,
            file: NO_TEXT,
            function: None,
            cob: None,
            cfi: None,
            callee: None,
        }
    }
}

impl CostReader {
    /// Creates a reader for a file that is completely in memory. It knows the names of all IDs in advance, because
    /// valgrind may write a part of a dump that uses an ID which only a later part defines.
    pub(super) fn with_definitions(text: &[u8]) -> Self {
        let mut reader = Self::default();
        for (_, statement) in statements(text) {
            if let Statement::Spec(keyword, value) = statement
                && let Some(space) = keyword.space()
                && let NameField::Define(id, name) = name_field(value)
            {
                let name = reader.texts.intern(name);
                reader.later_names.entry((space, id)).or_insert(name);
            }
        }
        reader
    }

    /// Reads the next line and returns its record: a header, a function (`fn=`), a self cost or a call. `None` if the
    /// line only names something for the lines after it, or has no costs, such as a jump or a comment.
    pub(super) fn read<'a>(&mut self, line: Result<Line<'a>>) -> Result<Option<Record<'a>>> {
        match line {
            Ok(Line::Header { word, value }) => Ok(Some(Record::Header { word, value })),
            Ok(Line::Name(keyword, value)) => self.read_name(keyword, value),
            Ok(Line::SelfCost(cost)) => {
                let function = self.current_function()?;
                Ok(Some(Record::SelfCost { function, file: self.file, cost }))
            }
            Ok(Line::Call(call)) => self.read_call(call).map(Some),
            Ok(Line::Jump(_) | Line::Blank | Line::Unknown(_)) => Ok(None),
            Err(error) => {
                // The malformed line may have been a call, so the `cob=`, `cfi=` and `cfn=` lines before it don't
                // describe the next one.
                self.take_callee();
                Err(error)
            }
        }
    }

    fn current_function(&self) -> Result<u32> {
        self.function.ok_or_else(|| Error::new("a cost line has no valid fn= line before it"))
    }

    /// Returns the function of the last `cfn=` line, and forgets the callee's names, which only apply to one call.
    fn take_callee(&mut self) -> Option<u32> {
        (self.cob, self.cfi) = (None, None);
        self.callee.take()
    }

    /// Reads a call. Its callee is the function that the preceding `cfn=` line named. The `cfn=` line is used up even
    /// if the call is malformed, so that it can't name the callee of a later call.
    fn read_call<'a>(&mut self, call: CallLine<'a>) -> Result<Record<'a>> {
        let callee = self.take_callee();
        let count = number(call.count).ok_or_else(|| Error::new("the calls= line has no valid count"))?;
        Ok(Record::Call {
            caller: self.current_function()?,
            callee: callee.ok_or_else(|| Error::new("the calls= line has no valid cfn= line before it"))?,
            count,
            target: call.target,
            cost: call.cost,
        })
    }

    /// Reads a line that names a function, object or file, and makes this name the current one. Only a `fn=` line
    /// yields a record.
    fn read_name<'a>(&mut self, keyword: Keyword, value: &[u8]) -> Result<Option<Record<'a>>> {
        let field = name_field(value);
        match keyword {
            Keyword::Fn => {
                // A new function starts in its own file, even if the block before ended in a file of inlined code
                // (`fi=`, `fe=`). If the name is invalid, there is no current function.
                (self.file, self.function) = (self.fl, None);
                let function = self.function(field, self.object, self.fl)?;
                self.function = Some(function);
                return Ok(Some(Record::Function(function)));
            }
            Keyword::Cfn => {
                // If the name is invalid, the next call has no callee. The callee of an earlier `cfn=` line would be
                // wrong.
                self.callee = None;
                let (object, file) = (self.cob.unwrap_or(self.object), self.cfi.unwrap_or(self.file));
                self.callee = Some(self.function(field, object, file)?);
            }
            // Jumps have no costs, but the line may define the ID of a function.
            Keyword::Jfn => _ = self.function(field, self.object, self.file)?,
            _ => {
                // Never returns here: `keyword` comes from a `Line::Name`, and all keywords of such lines have a
                // namespace.
                let Some(space) = keyword.space() else { return Ok(None) };
                // If the ID isn't defined, the empty text becomes current, because the previous object or file no
                // longer applies.
                let text = self.object_or_file(space, field);
                self.apply_text(keyword, *text.as_ref().unwrap_or(&NO_TEXT));
                text?;
            }
        }
        Ok(None)
    }

    /// Makes `text` the current object or file or, for `cob=` and `cfi=`, the next callee's object or file. `keyword`
    /// is the keyword of the line that sets `text`.
    fn apply_text(&mut self, keyword: Keyword, text: TextNumber) {
        match keyword {
            Keyword::Ob => self.object = text,
            Keyword::Fl => (self.fl, self.file) = (text, text),
            Keyword::Fi | Keyword::Fe => self.file = text,
            Keyword::Cob => self.cob = Some(text),
            Keyword::Cfi => self.cfi = Some(text),
            // `jfi=`, the file of a jump's target: jumps have no costs, so only the ID that it may define matters.
            _ => {}
        }
    }

    /// The name of an object or file. Fails if it is given by an ID that no line has defined so far and that isn't in
    /// `later_names`.
    fn object_or_file(&mut self, space: IdSpace, field: NameField<'_>) -> Result<TextNumber> {
        match field {
            NameField::Define(id, name) => {
                let text = self.texts.intern(name);
                self.text_ids[space as usize].insert(id, text);
                Ok(text)
            }
            NameField::Refer(id) => match self.text_ids[space as usize].get(&id) {
                Some(text) => Ok(*text),
                None => self.later_name(space, id),
            },
            NameField::Plain(name) => Ok(self.texts.intern(name)),
        }
    }

    /// Returns the number of a function, which is added if it is new. `object` and `file` are those in effect at this
    /// line. They are ignored if `field` is an ID that is already defined, because the definition determined them.
    fn function(&mut self, field: NameField<'_>, object: TextNumber, file: TextNumber) -> Result<u32> {
        let (id, name) = match field {
            NameField::Refer(id) => match self.function_ids.get(&id) {
                Some(function) => return Ok(*function),
                // The definition of the ID comes later, perhaps with another object and file, so the ID isn't mapped to
                // this function yet.
                None => (None, self.later_name(IdSpace::Function, id)?),
            },
            NameField::Define(id, name) => (Some(id), self.texts.intern(name)),
            NameField::Plain(name) => (None, self.texts.intern(name)),
        };
        let key = FunctionName { name, file, object };
        let next =
            u32::try_from(self.functions.len()).map_err(|_| Error::new("the file has more than 2^32 functions"))?;
        let function = *self.function_numbers.entry(key).or_insert(next);
        if function == next {
            self.functions.push(key);
        }
        if let Some(id) = id {
            self.function_ids.insert(id, function);
        }
        Ok(function)
    }

    /// The name of an ID that is used before its definition. Fails if the file doesn't define the ID anywhere.
    fn later_name(&self, space: IdSpace, id: u32) -> Result<TextNumber> {
        let name = self.later_names.get(&(space, id)).copied();
        name.ok_or_else(|| Error::new(format!("the name ID ({id}) is not defined")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::grammar::{LineReader, PositionDecoder};
    use super::*;
    use proptest::prelude::*;

    /// Reads a text and lists what it says: functions, costs and calls, with `object/file/name` of each function.
    fn read_all(reader: &mut CostReader, text: &str) -> Vec<String> {
        let mut decoder = PositionDecoder::default();
        let mut found = Vec::new();
        for (_, line) in LineReader::new(text.as_bytes(), &mut decoder) {
            let record = reader.read(line);
            let shown = |function: u32| {
                let FunctionName { name, file, object } = reader.functions[function as usize];
                [object, file, name].map(|text| String::from_utf8_lossy(reader.texts.get(text)).into_owned()).join("/")
            };
            match record {
                Ok(Some(Record::Function(function))) => found.push(shown(function)),
                Ok(Some(Record::SelfCost { file, cost, .. })) => {
                    let [file, costs] = [reader.texts.get(file), cost.costs].map(String::from_utf8_lossy);
                    found.push(format!("{file}: {costs}"));
                }
                Ok(Some(Record::Call { caller, callee, count, .. })) => {
                    found.push(format!("{} -{count}> {}", shown(caller), shown(callee)));
                }
                Ok(Some(Record::Header { .. }) | None) => {}
                Err(error) => found.push(error.to_string()),
            }
        }
        found
    }

    #[test]
    fn object_and_file_of_a_callee_are_those_of_the_caller_unless_stated() {
        let text =
            "ob=o\nfl=a\nfn=f\n1 5\nfi=b\n2 6\ncob=p\ncfi=c\ncfn=g\ncalls=1 1\n2 7\ncfn=h\ncalls=2 1\n2 8\nfn=i\n1 9\n";
        let expected = ["o/a/f", "a: 5", "b: 6", "o/a/f -1> p/c/g", "o/a/f -2> o/b/h", "o/a/i", "a: 9"];
        assert_eq!(read_all(&mut CostReader::default(), text), expected);
    }

    #[test]
    fn what_a_call_without_costs_states_is_not_used_for_the_next() {
        let text = "fn=f\ncob=p\ncfn=g\ncalls=1 1\nfn=h\n1 5\ncalls=1 1\n1 6\ncfn=i\ncalls=x 1\n1 2\n";
        let no_line = "a calls= or jump= line is not followed by a line with its position";
        let expected = [
            "//f",
            no_line,
            "//h",
            ": 5",
            "the calls= line has no valid cfn= line before it",
            "the calls= line has no valid count",
        ];
        assert_eq!(read_all(&mut CostReader::default(), text), expected);
    }

    #[test]
    fn an_undefined_id_does_not_leave_the_name_before_it() {
        let text = "ob=o\nfl=a\nfn=f\nob=(9)\nfl=(9)\nfn=g\n1 5\nfn=(9)\n1 6\n";
        let undefined = "the name ID (9) is not defined";
        let expected =
            ["o/a/f", undefined, undefined, "//g", ": 5", undefined, "a cost line has no valid fn= line before it"];
        assert_eq!(read_all(&mut CostReader::default(), text), expected);
        // An ID may be defined later, if the whole file is known.
        let text = "ob=(1)\nfn=(1)\n1 5\nob=(1) o\nfn=(1) f\nfn=(1)\n";
        let mut reader = CostReader::with_definitions(text.as_bytes());
        assert_eq!(read_all(&mut reader, text), ["o//f", ": 5", "o//f", "o//f"]);
    }

    proptest! {
        #[test]
        fn ids_stand_for_what_they_were_last_defined_as(
            defined in prop::collection::vec((prop_oneof![0u32..200, any::<u32>()], 0u32..1000), 0..100),
        ) {
            let (mut reader, mut model) = (CostReader::default(), FxHashMap::default());
            for (id, name) in defined {
                model.insert(id, name);
                read_all(&mut reader, &format!("fn=({id}) f{name}\n"));
            }
            for id in (0..300).chain(model.keys().copied()) {
                let expected = match model.get(&id) {
                    Some(name) => format!("//f{name}"),
                    None => format!("the name ID ({id}) is not defined"),
                };
                prop_assert_eq!(read_all(&mut reader, &format!("fn=({id})\n")), [expected]);
            }
        }
    }
}
