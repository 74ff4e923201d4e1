//! `about`: what is known of the profile as a whole.

use crate::model::about::About;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct AboutJson {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    lost: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<ModuleJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<ProcessJson>,
}

#[derive(Serialize)]
struct ModuleJson {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
}

#[derive(Serialize)]
struct ProcessJson {
    pid: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<u64>,
}

impl AboutJson {
    pub(super) fn new(about: &About) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let optional = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
        let modules = about.modules.iter().map(|(path, module)| ModuleJson {
            path: text(path),
            build_id: module.build_id.into_option().map(|id| id.to_string()),
        });
        let processes = about.processes.iter().map(|(pid, life)| ProcessJson {
            pid: pid.0,
            parent: life.parent.map(|parent| parent.0),
            started: life.started.map(|time| time.0),
            ended: life.ended.map(|time| time.0),
        });
        Self {
            command: about.command.iter().map(|word| text(word)).collect(),
            host: optional(&about.host),
            arch: optional(&about.arch),
            kernel: optional(&about.os_release),
            cpus: about.cpus,
            epoch: about.epoch.and_then(|epoch| i64::try_from(epoch).ok()),
            first: about.sampled.map(|sampled| sampled.first.0),
            last: about.sampled.map(|sampled| sampled.last.0),
            lost: about.lost,
            modules: modules.collect(),
            processes: processes.collect(),
        }
    }
}
