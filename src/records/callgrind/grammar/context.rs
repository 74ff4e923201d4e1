//! The context that a line inherits from those before it.

use super::names::{NameRef, name_field};
use super::positions::Columns;
use super::statements::{Keyword, Statement};

/// The context that the following lines inherit.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct BlockContext<'a> {
    /// The last `ob=`.
    pub(in super::super) ob: Option<NameRef<'a>>,
    /// The last `fl=`.
    pub(in super::super) fl: Option<NameRef<'a>>,
    /// An `fi=` or `fe=` after it: where some readers believe the next function to be.
    pub(in super::super) open_file: Option<NameRef<'a>>,
    /// The columns in front of the costs.
    pub(in super::super) columns: Columns,
}

impl<'a> BlockContext<'a> {
    /// Follows a statement.
    pub(in super::super) fn apply(&mut self, line: Statement<'a>) {
        match line {
            Statement::Spec(Keyword::Ob, value) => self.ob = Some(NameRef::of(name_field(value))),
            Statement::Spec(Keyword::Fl, value) => {
                self.fl = Some(NameRef::of(name_field(value)));
                self.open_file = None;
            }
            Statement::Spec(Keyword::Fi | Keyword::Fe, value) => self.open_file = Some(NameRef::of(name_field(value))),
            Statement::Header(b"positions", value) => self.columns = Columns::parse(value).unwrap_or_default(),
            _ => {}
        }
    }
}
