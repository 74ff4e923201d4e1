//! `meta`: what the profile is of, and how it was made.

use super::categories::Categories;
use super::markers;
use super::writing::{Counted, Writing, millis};
use crate::analysis::thread_rows::{ThreadRows, middle_distance};
use crate::contract::rows::command_line;
use crate::model::backing::base_name;
use crate::model::stacks::{Sampling, Series, Unit};
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    version: u32,
    preprocessed_profile_version: u32,
    product: String,
    /// Milliseconds.
    interval: f64,
    /// The time shown as 0, in milliseconds since 1970.
    start_time: f64,
    process_type: u32,
    stackwalk: u32,
    debug: bool,
    symbolicated: bool,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    extensions: Value,
    categories: Categories,
    marker_schema: Value,
    sample_units: Value,
    platform: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    oscpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<String>,
    #[serde(rename = "logicalCPUs", skip_serializing_if = "Option::is_none")]
    logical_cpus: Option<u32>,
    arguments: String,
    extra: Value,
    importer: &'a str,
}

impl<'a> Meta<'a> {
    pub(super) fn new(writing: &Writing<'_>, threads: &[ThreadRows<'_>], categories: Categories) -> Self {
        let about = &writing.profile.about;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let program = about.program().first().map(|path| text(base_name(path)));
        let epoch = about.epoch.map_or(0, |epoch| epoch + i128::from(writing.start));
        let units = json!({"time": "ms", "eventDelay": "ms", "threadCPUDelta": cpu_delta_unit(writing.counted)});
        Self {
            version: 24,
            preprocessed_profile_version: 55,
            product: program.unwrap_or_else(|| "jitgraft".to_owned()),
            interval: interval(writing.series, threads),
            start_time: epoch as f64 / 1e6,
            process_type: 0,
            stackwalk: 1,
            debug: false,
            // Names are as good as they get.
            symbolicated: true,
            uses_only_one_stack_type: false,
            source_code_is_not_on_searchfox: true,
            extensions: json!({"length": 0, "baseURL": [], "id": [], "name": []}),
            categories,
            marker_schema: markers::schema(),
            sample_units: units,
            platform: "Linux",
            oscpu: about.os_release.as_deref().map(|release| format!("Linux {}", text(release))),
            abi: about.arch.as_deref().map(text),
            logical_cpus: about.cpus,
            arguments: command_line(&about.command).unwrap_or_default().into(),
            extra: extra(writing),
            importer: concat!("jitgraft ", env!("CARGO_PKG_VERSION")),
        }
    }
}

fn cpu_delta_unit(counted: Counted) -> &'static str {
    match counted {
        Counted::Time | Counted::Other => "ns",
        Counted::Cycles => "variable CPU cycles",
    }
}

/// The information on the profile that the viewer shows.
fn extra(writing: &Writing<'_>) -> Value {
    let about = &writing.profile.about;
    let entry = |label: &str, value: Value| json!({"label": label, "format": "string", "value": value});
    let mut entries = vec![entry("Event", json!(writing.series.name))];
    let often = match writing.series.sampling {
        Some(Sampling::Frequency(hertz)) => Some(format!("{hertz} Hz")),
        Some(Sampling::Period(period)) => Some(format!("every {period}")),
        None => None,
    };
    entries.extend(often.map(|often| entry("Sampled", json!(often))));
    entries.extend(about.host.as_deref().map(|host| entry("Host", json!(String::from_utf8_lossy(host)))));
    entries.push(entry("Lost samples", json!(about.lost.to_string())));
    entries.extend(about.notes.iter().map(|note| entry("Note", json!(note))));
    json!([{"label": "Recording", "entries": entries}])
}

/// Milliseconds from sample to sample: as was requested, else the middle of the distances in a thread.
fn interval(series: &Series, threads: &[ThreadRows<'_>]) -> f64 {
    match (series.sampling, &series.unit) {
        (Some(Sampling::Frequency(hertz)), _) => return 1000.0 / hertz as f64,
        (Some(Sampling::Period(nanos)), Unit::Nanos) => return nanos as f64 / 1e6,
        _ => {}
    }
    middle_distance(threads).filter(|nanos| *nanos > 0).map_or(1.0, millis)
}
