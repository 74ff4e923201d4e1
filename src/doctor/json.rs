//! Converts a diagnosis to JSON. `docs/doctor.md` explains each key. Keys may be added, but existing ones are never
//! removed or changed.

use super::bpf::BpfFrames;
use super::callgrind::CountedDiagnosis;
use super::context::RecordedStacks;
use super::finding::Finding;
use super::origin::Origin;
use super::recording::{Diagnosis, ProcessDiagnosis};
use super::running::{LiveDiagnosis, LiveSource};
use super::source::SourceFile;
use crate::analysis::code_shares::CodeShares;
use crate::jit::{Account, ClockUse, SourceState};
use crate::model::Nanos;
use crate::model::abi::machine_name;
use serde_json::{Value, json};

/// Converts the diagnosis of a recording to JSON.
pub(crate) fn recording(diagnosis: &Diagnosis) -> Value {
    let stacks = match diagnosis.stacks {
        RecordedStacks::Copies(bytes) => json!({"by": "copies", "bytes": bytes}),
        RecordedStacks::Chains => json!({"by": "call-chains"}),
        RecordedStacks::None => json!({"by": "none"}),
    };
    let mut value = json!({
        "file": diagnosis.file.to_string_lossy(),
        "what": "recording",
        "recorded_on": origin(&diagnosis.origin),
        "events": diagnosis.events,
        "stacks": stacks,
        "samples": diagnosis.samples,
        "frames": diagnosis.frames,
        "named_frames": diagnosis.named,
        "innermost": diagnosis.shares.iter().filter(|shares| shares.whole > 0).map(innermost).collect::<Vec<_>>(),
        "findings": findings(&diagnosis.findings),
        "minor": findings(&diagnosis.minor),
        "processes": diagnosis.processes.iter().map(process).collect::<Vec<_>>(),
    });
    let BpfFrames { all, with_code, with_lines } = diagnosis.bpf;
    if all > 0 {
        value["bpf"] = json!({"frames": all, "with_code": with_code, "with_lines": with_lines});
    }
    value
}

/// The recorded machine. Unknown values are null.
fn origin(Origin { machine, os_release, host, is_here }: &Origin) -> Value {
    json!({"machine": machine.map(machine_name), "os_release": os_release, "host": host, "is_this_machine": is_here})
}

/// Converts to JSON how the samples of one event are divided by the kind of code in which they were taken (their
/// innermost frame).
fn innermost(shares: &CodeShares) -> Value {
    let CodeShares { event, whole, named, jit, jit_named, no_file } = shares;
    json!({
        "event": event,
        "weight": whole,
        "named": named,
        "jit": jit,
        "named_jit": jit_named,
        "no_file": no_file,
        "said": shares.to_string(),
    })
}

/// Converts the diagnosis of a callgrind file to JSON.
pub(crate) fn counted(diagnosis: &CountedDiagnosis) -> Value {
    let mut sources = Vec::new();
    for account in &diagnosis.accounts {
        let mut value = source(account, 0, 0);
        // The costs of a callgrind file have no frames, so leave their number out.
        value.as_object_mut().map(|keys| keys.remove("named_frames"));
        sources.push(value);
    }
    json!({
        "file": diagnosis.file.to_string_lossy(),
        "what": "callgrind",
        "pid": diagnosis.process.pid.0,
        "comm": diagnosis.process.comm,
        "runtime": diagnosis.process.runtime.map(|runtime| runtime.name),
        "event": diagnosis.event,
        "cost": diagnosis.cost,
        "nameable_cost": diagnosis.nameable,
        "unnameable_cost": diagnosis.unnameable,
        "sources": sources,
        "findings": findings(&diagnosis.findings),
        "minor": findings(&diagnosis.minor),
    })
}

/// Converts the diagnosis of a running process to JSON.
pub(crate) fn running(diagnosis: &LiveDiagnosis) -> Value {
    json!({
        "file": diagnosis.process.pid.to_string(),
        "what": "process",
        "pid": diagnosis.process.pid.0,
        "inner_pid": diagnosis.inner.map(|inner| inner.0),
        "comm": diagnosis.process.comm,
        "runtime": diagnosis.process.runtime.map(|runtime| runtime.name),
        "jit_bytes": diagnosis.jit_bytes,
        "sources": diagnosis.sources.iter().map(live_source).collect::<Vec<_>>(),
        "writes_at_end": diagnosis.at_end,
        "record": diagnosis.record,
        "findings": findings(&diagnosis.findings),
    })
}

/// Converts a jitdump or perf map of a running process.
fn live_source(source: &LiveSource) -> Value {
    json!({
        "kind": source.kind.id(),
        "path": source.path.to_string_lossy(),
        "state": "written",
        "codes": source.codes,
        "bytes": source.bytes,
    })
}

/// Converts a list of findings.
pub(super) fn findings(findings: &[Finding]) -> Vec<Value> {
    findings.iter().map(finding).collect()
}

/// Converts a finding to JSON. The percentage is rounded to two decimals.
fn finding(finding: &Finding) -> Value {
    let process = finding.process.as_ref();
    json!({
        "problem": finding.kind.key(),
        "about": finding.kind.about(),
        "percent": (finding.share.percent * 100.0).round() / 100.0,
        "samples": finding.share.samples,
        "frames": finding.share.frames,
        "pid": process.map(|process| process.pid.0),
        "processes": process.map(|process| process.others + 1),
        "cause": finding.cause(),
        "remedy": finding.remedy,
        "command": finding.command,
    })
}

/// Converts a process of a recording to JSON, with the files that name its JIT code.
fn process(process: &ProcessDiagnosis) -> Value {
    let mut sources = Vec::new();
    for (account, SourceFile { covered, doubtful, .. }) in &process.sources {
        sources.push(source(account, *covered, *doubtful));
    }
    json!({
        "pid": process.process.pid.0,
        "comm": process.process.comm,
        "runtime": process.process.runtime.map(|runtime| runtime.name),
        "jit_frames": process.named + process.unnamed,
        "named_jit_frames": process.named,
        "sources": sources,
    })
}

/// Converts to JSON what is known about a file that names JIT code: which file it is, and whether it was found, used or
/// refused. `named` is the number of frames that it names, and `doubtful` the number of those whose name may be wrong.
fn source(account: &Account, named: u64, doubtful: u64) -> Value {
    let mut value = json!({
        "kind": account.kind.id(),
        "path": account.path.to_string_lossy(),
        "named_frames": named,
        "doubtful_frames": doubtful,
        "remark": account.remark,
    });
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let looked_at: Vec<_> = looked_at.iter().map(|path| path.to_string_lossy()).collect();
            json!({"state": "missing", "looked_at": looked_at})
        }
        SourceState::Refused { why, .. } => json!({"state": "refused", "why": why}),
        SourceState::Offered(why) => json!({"state": "offered", "why": why}),
        SourceState::Loaded { codes, skipped, clock, torn, times, lent } => {
            let seconds = |time: Nanos| time.0 as f64 / 1e9;
            json!({
                "state": "loaded",
                "codes": codes,
                // How many functions of a jitdump got their lines from this log.
                "lends_lines": lent,
                "skipped": skipped,
                "torn": torn,
                "clock": clock_used(*clock),
                "first": times.map(|(first, _)| seconds(first)),
                "last": times.map(|(_, last)| seconds(last)),
            })
        }
    };
    // Adds the keys that describe the source's state to the keys that all sources have.
    if let (Value::Object(value), Value::Object(state)) = (&mut value, state) {
        value.extend(state);
    }
    value
}

/// The word for how a file's times were converted to the recording's clock.
fn clock_used(clock: Option<ClockUse>) -> &'static str {
    match clock {
        None => "none",
        Some(ClockUse::Same) => "same",
        Some(ClockUse::Tsc) => "tsc",
        Some(ClockUse::Estimated { .. }) => "estimated",
        Some(ClockUse::Dropped) => "dropped",
    }
}
