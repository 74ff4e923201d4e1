//! Writes the summary of what `inject` did, with warnings and hints.

use crate::analysis::quantity::{counted, grouped};
use crate::commands::inject::coverage::SampleCounts;
use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::{InjectContext, InjectOptions};
use crate::commands::inject::survey::{SurveyedRecording, describe_sources};
use crate::error::{Warning, Warnings};
use crate::jit::{Account, Loaded};
use crate::model::Pid;
use crate::model::frame_counts::FrameCounts;
use crate::model::programs::Programs;
use crate::pipeline::Job;
use crate::runtimes::{ProcessRuntimes, RuntimeSet};

/// The numbers and results that the summary reports.
#[derive(Debug)]
pub(in crate::commands::inject) struct Summary<'a> {
    pub(in crate::commands::inject) survey: &'a SurveyedRecording<'a>,
    pub(in crate::commands::inject) loaded: &'a Loaded<'a>,
    pub(in crate::commands::inject) samples: &'a SampleCounts,
    pub(in crate::commands::inject) images: &'a JitImages<'a, 'a>,
    /// The number of inserted mapping records.
    pub(in crate::commands::inject) inserted: usize,
}

impl Summary<'_> {
    /// Adds the summary, the warnings and the frame counts to the outcome.
    pub(in crate::commands::inject) fn report(&self, context: &mut InjectContext<'_>) {
        self.warn(&mut context.outcome.warnings);
        let SampleCounts { resolved, unresolved, .. } = self.samples;
        let jit_unnamed = unresolved.values().sum::<u64>();
        let other_time = self.samples.other_time.values().sum();
        let counts = FrameCounts { jit: resolved + jit_unnamed, jit_unnamed, other_time, ..FrameCounts::default() };
        // Without a request for JIT code, no source was read, and every JIT frame would count as unnamed.
        if context.options.jit {
            context.outcome.count_frames(counts, &self.survey.input.shown);
        }
        let lines = self.lines(context);
        context.outcome.summary.extend(lines);
    }

    /// Warns about samples and processes that were left unchanged.
    fn warn(&self, warnings: &mut Warnings) {
        let unreadable = self.samples.unreadable;
        if unreadable > 0 {
            let samples = counted(unreadable, "damaged sample");
            warnings.push(Warning::new(format!("passed through {samples} unchanged")));
        }
        for pid in &self.survey.injected {
            let message = format!("JIT code of process {pid} was injected before, so it is left as it is");
            warnings.push(Warning::new(message));
        }
    }

    /// The lines of the summary: what the input was, what named the code, how many frames have names, what was
    /// inserted.
    fn lines(&self, context: &InjectContext<'_>) -> Vec<String> {
        let output = context.options.output.shown();
        let output = output.display();
        let mut lines = Vec::new();
        if let Some(stored_as) = &self.survey.input.stored_as {
            lines.push(format!("the input was {stored_as}; {output} is a single plain file"));
        }
        if !context.options.jit {
            lines.push(format!("{output}: {}", counted(self.samples.samples, "sample")));
            lines.extend(self.describe_bad_chains(context.options));
            return lines;
        }
        lines.push(describe_sources(self.loaded));
        lines.extend(self.loaded.accounts.iter().filter_map(|account: &Account| account.remark.clone()));
        lines.push(self.describe_frames());
        lines.extend(self.describe_unresolved());
        lines.extend(self.describe_bad_chains(context.options));
        lines.push(match self.inserted {
            0 => format!("{output}: no JIT code to insert"),
            inserted => format!(
                "{output}: inserted {} for {}; the names are in {} with {}",
                counted(inserted as u64, "mapping record"),
                counted(self.images.selection.used_segments as u64, "code range"),
                counted(self.images.iter().count() as u64, "image"),
                counted(self.images.functions as u64, "function")
            ),
        });
        lines.extend(self.list_details(context.job));
        lines
    }

    /// A line that says how many samples there are, and how many JIT frames of them have names.
    fn describe_frames(&self) -> String {
        let SampleCounts { samples, resolved, unresolved, .. } = self.samples;
        let frames = resolved + unresolved.values().sum::<u64>();
        let samples = counted(*samples, "sample");
        if frames == 0 {
            return format!("{samples}, none with JIT frames");
        }
        if *resolved == 0 && !self.has_jit_process() {
            let frames = counted(frames, "frame");
            return format!(
                "{samples}; no process runs a known JIT compiler, although {frames} ran in memory that no file backs"
            );
        }
        let share = *resolved as f64 * 100.0 / frames as f64;
        let [resolved, frames] = [*resolved, frames].map(grouped);
        let innermost = self.describe_innermost().map_or_else(String::new, |innermost| format!(", {innermost}"));
        format!("{samples}{innermost}; {resolved} of {frames} JIT frames have names ({share:.1}%)")
    }

    /// The share of each event's weight that is in JIT code by innermost frame, as `report` computes it. `None` if no
    /// event has any. Also `None` if a process was injected before: its JIT code counts as native code here, so that
    /// the shares would be wrong.
    fn describe_innermost(&self) -> Option<String> {
        if !self.survey.injected.is_empty() {
            return None;
        }
        let mut runtimes = ProcessRuntimes::new(&self.survey.first_pass.processes);
        let events = &self.survey.input.recording.events;
        let (mut shares, mut has_jit_weight) = (Vec::new(), false);
        for (event, weights) in events.iter().zip(&self.samples.innermost).filter(|(_, weights)| weights.whole > 0) {
            let mut jit = weights.known;
            // In memory without a file, code that no source describes counts as JIT code only if the process may run
            // JIT code.
            for (pid, weight) in &weights.unknown {
                if self.may_run_jit_code(*pid, &mut runtimes) {
                    jit = jit.saturating_add(*weight);
                }
            }
            has_jit_weight |= jit > 0;
            shares.push((&event.name, format!("{:.2}%", jit as f64 * 100.0 / weights.whole as f64)));
        }
        if !has_jit_weight {
            return None;
        }
        let shown = match &shares[..] {
            [] => return None,
            [(_, share)] => share.clone(),
            shares => {
                let each: Vec<_> = shares.iter().map(|(event, share)| format!("{share} of {event}")).collect();
                each.join(" and ")
            }
        };
        Some(format!("{shown} in JIT code (by innermost frame)"))
    }

    /// True if some process with frames in memory without a file may run JIT code there ([`Self::may_run_jit_code`]).
    fn has_jit_process(&self) -> bool {
        let mut runtimes = ProcessRuntimes::new(&self.survey.first_pass.processes);
        self.samples.unresolved.keys().any(|pid| self.may_run_jit_code(*pid, &mut runtimes))
    }

    /// True if memory without a file may hold JIT code of the process: it runs a known runtime, or a dump or map of it
    /// was loaded.
    fn may_run_jit_code(&self, pid: Pid, runtimes: &mut ProcessRuntimes<'_>) -> bool {
        let has_source = self.loaded.accounts.iter().any(|account| account.pid == pid && account.is_loaded());
        has_source || runtimes.find(pid) != RuntimeSet::default()
    }

    /// A line about call chains that perf drops. `None` if there are none.
    fn describe_bad_chains(&self, options: &InjectOptions) -> Option<String> {
        let SampleCounts { samples, bad_chains, bad_entries, .. } = self.samples;
        if *bad_chains == 0 {
            return None;
        }
        if options.drop_bad_chain_entries {
            return Some(format!(
                "removed {bad_entries} invalid entries from {bad_chains} call chains, which perf would have dropped \
                 entirely"
            ));
        }
        Some(format!(
            "perf shows no frames for {bad_chains} of {samples} samples: their call chains contain invalid entries \
             (remove them with --drop-bad-chain-entries)"
        ))
    }

    /// One line for each process with unnamed JIT frames, with hints about the reason.
    fn describe_unresolved(&self) -> impl Iterator<Item = String> {
        let programs = Programs::new(&self.survey.first_pass.processes);
        self.samples.unresolved.iter().map(move |(pid, count)| {
            let name = programs.name(*pid);
            let process = self.survey.first_pass.processes.by_pid.get(pid);
            let has_file = self.loaded.accounts.iter().any(|account| account.pid == *pid && account.is_loaded());
            // In a container, the process has another ID, and its perf map is named after that one.
            let inner = process.and_then(|process| process.inner_pid).filter(|inner| inner != pid && !has_file);
            let container_hint = inner.map(|inner| {
                format!(
                    "; in its container it was process {inner} (docker cp CONTAINER:/tmp/perf-{inner}.map . while \
                         the container exists)"
                )
            });
            let late = self.samples.late.get(pid);
            let late = late.map(|late| format!("; {late} of them were sampled after the last record of its jitdump"));
            let other_time = self.samples.other_time.get(pid);
            let other_time = other_time.map(|count| {
                format!("; {count} of them were sampled before their code was logged or after it was replaced")
            });
            format!(
                "process {pid} ({name}): {} that no dump or map names{}{}{}",
                counted(*count, "frame"),
                other_time.unwrap_or_default(),
                late.unwrap_or_default(),
                container_hint.unwrap_or_default()
            )
        })
    }

    /// For `-v`: every image, and what happened to every source.
    fn list_details(&self, job: &Job) -> Vec<String> {
        if !job.verbose {
            return Vec::new();
        }
        let images = self.images.iter().map(|(_, image)| format!("image: {}", image.path.display()));
        let accounts = self.loaded.accounts.iter().map(|account| {
            format!("{} of process {}: {}: {}", account.kind, account.pid, account.path.display(), account.state)
        });
        images.chain(accounts).collect()
    }
}
