//! The statements in front of a callee, held back until it is known what they lead to.

use super::draft::ChunkDraft;
use crate::records::callgrind::grammar::{NameField, NameRef, Statement, name_field};

/// The statements in front of a `cfn=`, held back until it is known what they lead to.
#[derive(Debug, Default)]
pub(super) struct PendingCallee<'a> {
    held: Vec<&'a [u8]>,
    pub(super) cob: Option<NameRef<'a>>,
}

impl<'a> PendingCallee<'a> {
    pub(super) fn hold(&mut self, text: &'a [u8], cob: Option<&'a [u8]>) {
        self.held.push(text);
        if let Some(value) = cob {
            self.cob = Some(NameRef::of(name_field(value)));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn release(&mut self, draft: &mut ChunkDraft<'_>) {
        for text in self.held.drain(..) {
            draft.put(text);
            draft.put(b"\n");
        }
    }

    /// Writes only those that define an id: later blocks may refer to it. Of repeated statements readers take the last.
    pub(super) fn release_definitions(&mut self, draft: &mut ChunkDraft<'_>) {
        self.held.retain(
            |text| matches!(Statement::parse(text), Statement::Spec(_, value) if matches!(name_field(value), NameField::Define(..))),
        );
        self.release(draft);
    }
}
