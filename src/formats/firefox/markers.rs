//! Markers: events other than samples, such as forks and exits, each in its thread and at its time.

use super::categories::OTHER;
use super::tables::Strings;
use super::writing::Writing;
use crate::model::process::{Moment, MomentKind};
use serde::Serialize;
use serde_json::{Value, json};

/// The name of the marker type that jitgraft defines.
const TYPE: &str = "record";

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MarkerTable {
    length: usize,
    category: Vec<usize>,
    data: Vec<MarkerData>,
    end_time: Vec<Option<f64>>,
    name: Vec<u32>,
    /// Whether a marker is an instant or has a duration. Always 0: an instant.
    phase: Vec<u8>,
    start_time: Vec<f64>,
}

#[derive(Serialize)]
struct MarkerData {
    r#type: &'static str,
    text: String,
}

impl MarkerTable {
    /// Makes one marker for each of `moments`: events other than samples, such as forks.
    pub(super) fn new(writing: &Writing<'_>, moments: &[&Moment], strings: &mut Strings) -> Self {
        let mut table = Self::default();
        for moment in moments {
            let (name, text) = name_and_description(&moment.kind);
            // Forks and the like aren't code, so no other category fits.
            table.category.push(OTHER);
            table.data.push(MarkerData { r#type: TYPE, text });
            table.end_time.push(None);
            table.name.push(strings.number(name));
            // Phase 0 is an instant.
            table.phase.push(0);
            table.start_time.push(writing.since_start(moment.time));
            table.length += 1;
        }
        table
    }
}

/// The name of the marker for an event, and the text that the viewer shows with it.
fn name_and_description(kind: &MomentKind) -> (&'static str, String) {
    match kind {
        MomentKind::Named(name) => ("comm", String::from_utf8_lossy(name).into_owned()),
        MomentKind::Executed(name) => ("exec", String::from_utf8_lossy(name).into_owned()),
        MomentKind::Forked(child) => ("fork", format!("process {child}")),
        MomentKind::Exited => ("exit", String::new()),
        MomentKind::Lost(count) => ("lost", format!("{count} records lost")),
    }
}

/// The value of `meta.markerSchema`.
pub(super) fn schema() -> Value {
    json!([{
        "name": TYPE,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "chartLabel": "{marker.name} {marker.data.text}",
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.data.text}",
        "fields": [{"key": "text", "label": "What", "format": "string"}],
    }])
}
