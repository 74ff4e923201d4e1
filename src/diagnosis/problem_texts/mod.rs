//! The texts about each problem: its key, the line of the documentation, the threshold from which it is a finding, its
//! cause and its remedy. A new problem does not compile without all five.
//!
//! All names in it are printable.

mod entry;
mod files;
mod jit;
mod source_maps;
mod stacks;
mod text;
mod whole;

use super::problem::{Finding, Problem};
pub(crate) use entry::ProblemText;
pub(super) use text::{number, source, who};

/// All that is reported about a problem.
pub(crate) fn problem_text(problem: &Problem) -> ProblemText {
    match problem {
        Problem::NoSamples => whole::no_samples(),
        Problem::FewSamples { samples } => whole::few_samples(*samples),
        Problem::Damaged { why } => whole::damaged(why),
        Problem::Lost { lost } => whole::lost(*lost),
        Problem::NoCallChains => whole::no_call_chains(),
        Problem::Kernel { hidden } => whole::kernel(*hidden),
        Problem::Guest => whole::guest(),
        Problem::Nowhere { example } => whole::nowhere(*example),
        Problem::MapMissing { script } => source_maps::missing(script),
        Problem::MapMisfit { script, map, why } => source_maps::misfit(script, map, why),
        Problem::Clock { process, source, error } => jit::clock(process, source, *error),
        Problem::Doubtful { process, source, error } => jit::doubtful(process, source, *error),
        Problem::Silent { process, inner, given } => jit::silent(process, *inner, *given),
        Problem::SilentUnderValgrind { process, path } => jit::silent_under_valgrind(process, path),
        Problem::NotNamedYet { process, path } => jit::not_named_yet(process, path),
        Problem::NoInstructions { process } => jit::no_instructions(process),
        Problem::NotWritten { process, word, leaves } => jit::not_written(process, word, leaves),
        Problem::Missing { process, path, inner } => jit::missing(process, path, *inner),
        Problem::OtherProcess { process, path, kind, of, fits } => jit::other_process(process, path, *kind, *of, *fits),
        Problem::Refused { process, path, kind, why } => jit::refused(process, path, *kind, why),
        Problem::Empty { process, source } => jit::empty(process, source),
        Problem::Torn { process, source, skipped, at_end } => jit::torn(process, source, *skipped, *at_end),
        Problem::OtherRun { process, source } => jit::other_run(process, source),
        Problem::Replaced { process, source } => jit::replaced(process, source),
        Problem::EndsEarly { process, source, before } => jit::ends_early(process, source, *before),
        Problem::Incomplete { process, source } => jit::incomplete(process, source),
        Problem::ImagesGone { process, path, count } => jit::images_gone(process, path, *count),
        Problem::Interpreted { process, too_old, switched_on } => {
            jit::interpreted(process, too_old.as_deref(), switched_on.as_deref())
        }
        Problem::JvmFramePointers { process, is_known } => stacks::jvm_frame_pointers(process, *is_known),
        Problem::FramePointers { process, files, in_jit, machine } => {
            stacks::frame_pointers(process, files, *in_jit, *machine)
        }
        Problem::ChainsCut { limit } => stacks::chains_cut(*limit),
        Problem::TooDeep => stacks::too_deep(),
        Problem::NoUnwinder { machine } => stacks::no_unwinder(*machine),
        Problem::CopiesShort { bytes } => stacks::copies_short(*bytes),
        Problem::NotUnwound { process, files, in_jit } => stacks::not_unwound(process, files, *in_jit),
        Problem::FilesGone { files, same_machine, container } => files::gone(files, *same_machine, *container),
        Problem::OtherVersion { files } => files::other_version(files),
        Problem::NotElf { files, what, runtime } => files::not_elf(files, *what, *runtime),
        Problem::Stripped { files } => files::stripped(files),
        Problem::StrippedPackages { files } => files::stripped_packages(files),
        Problem::Symbolless { files } => files::symbolless(files),
    }
}

impl Finding {
    /// True if it is worth a reader's time.
    pub fn is_significant(&self) -> bool {
        self.percent >= problem_text(&self.problem).threshold
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The quoted texts behind a field's name.
    fn values(source: &str, field: &str) -> Vec<String> {
        let start = format!(" {field}: \"");
        let behind = source.split(&start).skip(1);
        behind.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_documentation_has_what_is_reported_of_each_key() {
        let sources = [
            include_str!("files.rs"),
            include_str!("jit.rs"),
            include_str!("source_maps.rs"),
            include_str!("stacks.rs"),
            include_str!("whole.rs"),
        ];
        let source = sources.concat().split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
        let texts: BTreeSet<(String, String)> =
            values(&source, "key").into_iter().zip(values(&source, "about")).collect();
        assert_eq!(values(&source, "key").len(), values(&source, "about").len());
        assert!(texts.len() > 30, "{texts:?}");
        let document = include_str!("../../../docs/doctor.md");
        let rows = document.split("| problem | what was found |").nth(1).unwrap().split("\n\n").next().unwrap();
        let cells =
            rows.lines().skip(2).filter_map(|row| row.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
        let documented: BTreeSet<(String, String)> =
            cells.map(|(key, about)| (key.to_owned(), about.to_owned())).collect();
        assert_eq!(documented, texts);
    }
}
