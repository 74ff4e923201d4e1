//! Labels of samples: there are no agreed names for them. Those of this file are in use.

use super::tables::Tables;
use crate::bytes::protobuf::inner;

/// A label of a sample.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label<'d> {
    pub(super) key: &'d [u8],
    /// Empty if it is a number.
    pub(super) text: &'d [u8],
    pub(super) number: u64,
}

impl<'d> Label<'d> {
    pub(super) fn read(message: &[u8], tables: &Tables<'d>) -> Self {
        let mut label = Self::default();
        for (tag, value) in inner(message) {
            match tag {
                1 => label.key = tables.string(value.number()),
                2 => label.text = tables.string(value.number()),
                3 => label.number = value.number(),
                _ => {}
            }
        }
        label
    }

    /// Its text, or its number.
    pub(super) fn value(&self) -> String {
        if self.text.is_empty() { self.number.to_string() } else { String::from_utf8_lossy(self.text).into_owned() }
    }

    /// The number of a process, thread or processor, which may be written as a text.
    pub(super) fn id(&self) -> Option<i32> {
        let written = std::str::from_utf8(self.text).ok().and_then(|text| text.parse::<i32>().ok());
        written.or_else(|| i32::try_from(self.number).ok())
    }
}

/// True if a label gives the process: Parca's and ours, Datadog's, speedscope's, OpenTelemetry's, Pyroscope's.
pub(super) fn is_pid(key: &[u8]) -> bool {
    matches!(key, b"pid" | b"process_id" | b"process id" | b"process.pid" | b"__process_pid__")
}

/// True if a label gives the thread.
pub(super) fn is_tid(key: &[u8]) -> bool {
    matches!(key, b"tid" | b"thread_id" | b"thread id" | b"thread.id")
}
