//! Decodes messages, and refuses those that are no profiles or of an older version of the protocol.

use super::messages::ProfilesData;
use super::version::{refuse_old, refuse_old_json};
use crate::bytes::protobuf::{Fields, inner};
use crate::error::{Error, Result};
use prost::Message;
use prost::bytes::Bytes;

impl ProfilesData {
    /// Decodes a message in the binary form. Fails if it is damaged or uses an older version of the protocol.
    pub(super) fn from_bytes(bytes: Bytes) -> Result<Self> {
        let (mut resources, mut dictionaries) = (Vec::new(), Vec::new());
        for field in Fields::new(&bytes) {
            match field? {
                (1, value) => resources.push(value.bytes()),
                (2, value) => dictionaries.push(value.bytes()),
                _ => {}
            }
        }
        let count = |table| dictionaries.iter().map(|dictionary| submessages(dictionary, table).count()).sum::<usize>();
        if count(5) == 0 && !resources.is_empty() {
            return Err(no_dictionary());
        }
        // Old versions have fields of other types under the same numbers, which can't be decoded.
        let scopes = resources.into_iter().flat_map(|resource| submessages(resource, 2));
        refuse_old(scopes.flat_map(|scope| submessages(scope, 2)), count(6))?;
        Self::decode(bytes).map_err(|error| Error::new("has a damaged message").because(error))
    }

    /// Checks a message that was read from JSON. Fails if it uses an older version of the protocol.
    pub(super) fn checked(self) -> Result<Self> {
        let strings = self.dictionary.as_ref().map_or(&[][..], |dictionary| &dictionary.string_table);
        if strings.is_empty() && !self.resource_profiles.is_empty() {
            return Err(no_dictionary());
        }
        let scopes = self.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        refuse_old_json(scopes.flat_map(|scope| &scope.profiles))?;
        Ok(self)
    }
}

fn no_dictionary() -> Error {
    Error::new("has no dictionary; it is another OpenTelemetry signal, or a profile of a protocol version before 1.7")
}

/// The encoded messages or strings in the field `tag`.
fn submessages(message: &[u8], tag: u32) -> impl Iterator<Item = &[u8]> {
    inner(message).filter(move |(number, _)| *number == tag).map(|(_, value)| value.bytes())
}
