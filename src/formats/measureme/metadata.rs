//! The recording's metadata, a JSON text in the string table.

use super::strings::{METADATA, Strings};
use crate::model::stacks::Unit;
use serde_json::Value;

/// Facts about the recorded program and the counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// `cmd`: the command line, with words joined by spaces; empty if unknown.
    pub(super) cmd: String,
    /// `process_id`; `None` if unknown.
    pub(super) process_id: Option<u32>,
    /// `start_time` in nanoseconds since 1970; `None` if unknown. Event times are relative to it.
    pub(super) start_time: Option<u64>,
    /// `counter.name`, such as `instructions:u`. `None` if the counter is wall-clock time.
    pub(super) counter: Option<String>,
}

impl Metadata {
    pub(super) fn read(strings: &Strings<'_>) -> Self {
        let text = strings.text(METADATA).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Parses the JSON text with facts about the recording. Facts that are missing or damaged stay empty.
    fn parse(text: &str) -> Self {
        let json: Value = serde_json::from_str(&rust_escapes_to_json(text)).unwrap_or_default();
        // The counter is an object with a name, or just the name.
        let counter = json["counter"]["name"].as_str().or(json["counter"].as_str());
        Self {
            cmd: json["cmd"].as_str().unwrap_or_default().to_owned(),
            process_id: json["process_id"].as_u64().and_then(|pid| pid.try_into().ok()),
            start_time: json["start_time"].as_u64(),
            // Wall-clock time is stored as `None`.
            counter: counter.filter(|name| *name != "wall-time").map(str::to_owned),
        }
    }

    /// The name of the program: the first word of the command line, without its directory.
    pub(super) fn program(&self) -> &str {
        let first = self.cmd.split(' ').next().unwrap_or_default();
        match first.rsplit('/').next() {
            None | Some("") => "measureme",
            Some(name) => name,
        }
    }

    /// The crate name, if the command line states it.
    pub(super) fn crate_name(&self) -> Option<&str> {
        let (_, rest) = self.cmd.split_once(" --crate-name ")?;
        rest.split(' ').next().filter(|name| !name.is_empty())
    }

    /// The name and the unit of what event times measure: wall-clock time or a counter.
    pub(super) fn unit(&self) -> (&str, Unit) {
        match &self.counter {
            None => ("wall-time", Unit::Nanos),
            Some(name) => (name, Unit::Named(name.clone())),
        }
    }
}

/// Replaces the escapes `\'` and `\u{e9}`, which JSON doesn't have, by the characters themselves. They occur in `cmd`,
/// which is written with Rust's `escape_default`.
fn rust_escapes_to_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        json.push_str(&rest[..backslash]);
        let escape = &rest[backslash..];
        if let Some(after_escape) = escape.strip_prefix(r"\'") {
            json.push('\'');
            rest = after_escape;
        } else if let Some((character, after_escape)) = escape.strip_prefix(r"\u{").and_then(unicode_escape) {
            json.push(character);
            rest = after_escape;
        } else {
            // Rust and JSON write all other escapes the same. Copy the backslash together with the character after it:
            // that may be a backslash too, and must not be taken for the start of the next escape.
            let len = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            json.push_str(&escape[..len]);
            rest = &escape[len..];
        }
    }
    json + rest
}

/// Parses what follows `\u{` in an escape. Returns the character and the text after the escape; `None` if it is
/// invalid.
fn unicode_escape(text: &str) -> Option<(char, &str)> {
    let (digits, after_escape) = text.split_once('}')?;
    Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, after_escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_are_rust_not_json() {
        let text = r#"{ "start_time": 17, "process_id": 4242, "cmd": "/opt/it\'s caf\u{e9}/rustc \"a\\b\" ", "counter": { "name": "instructions:u", "units": [["ns", 1]] } }"#;
        let metadata = Metadata::parse(text);
        assert_eq!(metadata.cmd, "/opt/it's café/rustc \"a\\b\" ");
        assert_eq!((metadata.process_id, metadata.start_time), (Some(4242), Some(17)));
        assert_eq!(metadata.unit(), ("instructions:u", Unit::Named("instructions:u".into())));
    }

    #[test]
    fn the_program_and_its_crate() {
        let metadata = Metadata::parse(r#"{"cmd":"/bin/rustc --crate-name syn src/lib.rs","counter":"wall-time"}"#);
        assert_eq!((metadata.program(), metadata.crate_name()), ("rustc", Some("syn")));
        assert_eq!(metadata.unit().1, Unit::Nanos);
        assert_eq!(Metadata::parse("not JSON").program(), "measureme");
    }
}
