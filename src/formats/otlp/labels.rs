//! Converts labels of rows to attributes and links of messages, and back.

use super::dictionary::{Attribute, Value};
use super::messages::{AnyValue, LinkMessage, number, text};
use crate::bytes::digits::hex_bytes;
use crate::model::recorded::Labels;
use prost::bytes::Bytes;

/// Labels whose attribute has another name in the semantic conventions: (label, attribute).
const NAMES: &[(&str, &str)] =
    &[("cgroup", "process.linux.cgroup"), ("container", "container.id"), ("pod", "k8s.pod.uid")];

/// Prefixes of attributes that describe a process, a service or where it runs, rather than a single sample.
const RESOURCE_PREFIXES: &[&str] =
    &["service.", "process.", "container.", "k8s.", "deployment.", "cloud.", "host.", "os.", "faas."];

/// Prefixes of attributes that don't become labels, because they describe processes, threads, machines or the profiler.
/// The attributes in [`NAMES`] become labels nevertheless.
const NO_LABEL_PREFIXES: &[&str] = &["process.", "thread.", "cpu.", "host.", "os.", "telemetry."];

/// Attributes whose value is a number in the semantic conventions.
const NUMBERS: &[&str] = &["process.pid", "thread.id", "cpu.logical_number"];

/// Label with the trace ID of a row's link to a trace span, in hexadecimal digits. [`SPAN`] is the label with the span
/// ID.
const TRACE: &str = "trace_id";
const SPAN: &str = "span_id";

/// The attribute name for a label.
pub(super) fn attribute_name(label: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == label).map_or(label, |(_, attribute)| attribute)
}

/// The attribute value for a label's text: a number if the conventions require one for this attribute.
pub(super) fn value(attribute: &str, label: &str) -> AnyValue {
    match label.parse() {
        Ok(id) if NUMBERS.contains(&attribute) => number(id),
        _ => text(label),
    }
}

/// Whether a label describes a process, a service or where it runs, so that it becomes an attribute of the resource.
pub(super) fn describes_resource(label: &str) -> bool {
    RESOURCE_PREFIXES.iter().any(|start| attribute_name(label).starts_with(start))
}

/// Whether a label holds a trace or span ID.
pub(super) fn is_link_id(label: &str) -> bool {
    [TRACE, SPAN].contains(&label)
}

/// Adds an attribute as a label. Attributes for which profiles have fields of their own, such as the process ID, are
/// left out.
pub(super) fn add(attribute: &Attribute, labels: &mut Labels) {
    let key = String::from_utf8_lossy(&attribute.key);
    let known_label = NAMES.iter().find(|(_, attribute_key)| *attribute_key == key).map(|(label, _)| *label);
    if known_label.is_none() && NO_LABEL_PREFIXES.iter().any(|start| key.starts_with(start)) {
        return;
    }
    let value = match &attribute.value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // A label is a single text, so a list doesn't become one.
        Value::List(_) | Value::Other => return,
    };
    if !key.is_empty() && !value.is_empty() {
        put(known_label.unwrap_or(&key), &value, labels);
    }
}

/// Adds the trace and span IDs of a link as labels. IDs that are all zero are left out.
pub(super) fn add_link(link: &LinkMessage, labels: &mut Labels) {
    for (key, id) in [(TRACE, &link.trace_id), (SPAN, &link.span_id)] {
        if id.iter().any(|byte| *byte != 0) {
            put(key, &id.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), labels);
        }
    }
}

fn put(key: &str, value: &str, labels: &mut Labels) {
    std::sync::Arc::make_mut(labels.get_or_insert_default()).insert(key.into(), value.into());
}

/// The link for a row with these labels; `None` unless both IDs are there and have the right length.
pub(super) fn link(labels: &Labels) -> Option<LinkMessage> {
    let labels = labels.as_ref()?;
    let trace_id = Bytes::from(hex_bytes(labels.get(TRACE)?.as_bytes())?);
    let span_id = Bytes::from(hex_bytes(labels.get(SPAN)?.as_bytes())?);
    if trace_id.len() != 16 || span_id.len() != 8 {
        return None;
    }
    Some(LinkMessage { trace_id, span_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_becomes_labels_and_is_a_link_again() {
        let mut labels = None;
        let id = |byte: u8, len: usize| Bytes::from(vec![byte; len]);
        let full = LinkMessage { trace_id: id(0xab, 16), span_id: id(1, 8) };
        add_link(&full, &mut labels);
        assert_eq!(&*labels.as_ref().unwrap()["trace_id"], "ab".repeat(16));
        assert_eq!(link(&labels), Some(full));
        let mut none = None;
        add_link(&LinkMessage { trace_id: id(0, 16), span_id: id(0, 8) }, &mut none);
        assert_eq!((none.is_none(), link(&none)), (true, None));
        for other in ["xyz", "+1020304050607+8"] {
            put("span_id", other, &mut labels);
            assert_eq!(link(&labels), None, "{other}");
        }
    }

    #[test]
    fn labels_of_containers_have_the_names_of_the_conventions() {
        let mut labels = None;
        let text = |key: &'static str, value: &'static str| {
            let (key, value) = (Bytes::from(key), Value::Text(Bytes::from(value)));
            Attribute { key, value }
        };
        for attribute in [text("k8s.pod.uid", "1-2"), text("process.pid", "7"), text("service.name", "shop")] {
            add(&attribute, &mut labels);
        }
        let labels = labels.unwrap();
        assert_eq!(labels.keys().map(|key| &**key).collect::<Vec<_>>(), ["pod", "service.name"]);
        assert!(
            attribute_name("pod") == "k8s.pod.uid" && describes_resource("pod") && describes_resource("service.name")
        );
        assert!(!describes_resource("request") && !describes_resource("trace_id"));
    }
}
