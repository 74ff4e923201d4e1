//! Finds the writer of a format by name, determines the load options that it needs, and writes one output, or one per
//! event.

use super::any::LoadOptions;
use super::job::Outcome;
use super::outputs::{self, each_event};
use super::sink::Naming;
use super::terminal::write_text;
use crate::analysis::quantity::counted;
use crate::contract::format::{Detail, Events, ReadOptions, WriteOptions, Writer};
use crate::error::{Error, Result};
use crate::formats::{FORMATS, find_format};
use crate::io::{OutPath, Output, Run};
use crate::model::stacks::Profile;
use crate::runtimes::jit_names::JitNames;

/// Writes a profile in the format of a writer: to one output, or to one output per event if the format requires that.
pub(crate) fn write(
    profile: &Profile,
    writer: &Writer,
    to: &OutPath,
    options: &WriteOptions,
    run: &Run,
    outcome: &mut Outcome,
) -> Result<()> {
    match writer.events {
        Events::One => {
            // Computing the timing takes a pass over all rows, so do it once for all events. With a single event, the
            // writer computes the timing itself, if it needs it.
            let timing = (profile.series.len() > 1).then(|| profile.timing());
            each_event(profile, to, run, outcome, |series, out| {
                let write = WriteOptions { series, timing, ..options.clone() };
                write_text(out, |out| (writer.run)(profile, &write, out))
            })
        }
        Events::All => {
            if !writer.signed {
                profile.series.iter().for_each(|series| outputs::report_negative(series, outcome));
            }
            let mut output = Output::create(to, run)?;
            write_text(&mut output, |out| (writer.run)(profile, options, out))?;
            outputs::commit(output, outcome)
        }
    }
}

/// The remark for an output in a format that can't hold the labels of the profile's samples. `None` if it has none.
pub(crate) fn labels_remark(profile: &Profile, format: &str) -> Option<String> {
    match profile.about.samples_without_labels {
        0 => None,
        samples => {
            Some(format!("left out the labels of {}, because {format} cannot store labels", counted(samples, "sample")))
        }
    }
}

/// The options for loading inputs for a writer: loads everything that the writer needs. If the user didn't choose how
/// names of JIT code are spelled, the writer's default is used. The default only applies to names that jitgraft found
/// itself: names that the input already had stay as they are (`Raw`).
pub(crate) fn load_options(user_options: &LoadOptions, writer: &Writer) -> LoadOptions {
    let default_names = Naming { resolved: writer.jit_names, given: JitNames::Raw };
    LoadOptions {
        detail: Detail::max(writer.detail, user_options.detail),
        by_cpu: user_options.by_cpu || writer.by_cpu,
        read: ReadOptions { labels: user_options.read.labels || writer.labels, ..user_options.read.clone() },
        jit_names: if user_options.asks_for_names { user_options.jit_names } else { default_names },
        ..user_options.clone()
    }
}

/// Finds the writer of the format with this name. Fails if there is none.
pub(crate) fn writer(name: &str) -> Result<Writer> {
    let writer = find_format(name).and_then(|format| format.write);
    writer.ok_or_else(|| Error::usage(format!("no output format named {name}; choose one of {}", writable())))
}

/// The names of all formats that can be written, separated by commas.
fn writable() -> String {
    let writable = FORMATS.iter().filter(|format| format.write.is_some());
    writable.map(|format| format.name).collect::<Vec<_>>().join(", ")
}
