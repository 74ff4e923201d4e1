//! The statements in effect at a line: object and source files.

use super::output::OutputName;
use crate::formats::callgrind::grammar::{Keyword, NameRef, Statement, name_field};

/// The object and files in effect at a line of the input.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InputContext<'a> {
    /// The object, from the last `ob=`.
    pub(super) object: Option<NameRef<'a>>,
    /// The file of the function, from the last `fl=`.
    pub(super) fl: Option<NameRef<'a>>,
    /// The file of inlined code, from the last `fi=` or `fe=` since the last `fl=`; `None` if there was none. It
    /// matters beyond the end of a block, because some readers assume that the next function is in this file.
    pub(super) open_file: Option<NameRef<'a>>,
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

impl<'a> InputContext<'a> {
    /// Updates the object and files that are in effect, after a line was read.
    pub(super) fn apply(&mut self, line: Statement<'a>) {
        let Statement::Spec(keyword, value) = line else { return };
        let name = Some(name_field(value).into());
        match keyword {
            Keyword::Ob => self.object = name,
            Keyword::Fl => (self.fl, self.open_file) = (name, None),
            Keyword::Fi | Keyword::Fe => self.open_file = name,
            _ => {}
        }
    }
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
