//! How `jitgraft record` changes the command line of a program so that its runtime writes names. `doctor` makes the
//! same plan, to find out whether `jitgraft record` with the recorded command line would solve a problem.

use super::command::{CommandLine, CorrectedCommand, RunFacts, find_program};
use super::runtime::Runtime;
use super::switch::{Stacks, Switch, Version};
use super::table::RUNTIMES;

/// How to record a program of a runtime.
#[derive(Debug)]
pub struct ProgramPlan {
    /// The switch that makes the runtime write names: the one that is already on or, failing that, the best one that
    /// can be turned on. `None` if no flag or variable turns on any.
    pub switch: Option<&'static Switch>,
    /// The command line with everything added that the switch lacks. `None` without a switch, or if the program passes
    /// neither flags nor variables on to the runtime.
    pub command: Option<CorrectedCommand>,
    /// How perf has to record stacks.
    pub stacks: Stacks,
}

impl Runtime {
    /// Plans how to record the program of a command line. `version` is the version of the runtime if it is known, and
    /// `directory` is where the runtime should write its files.
    pub fn plan_program(
        &'static self,
        command: CommandLine<'_>,
        version: Option<Version>,
        directory: &str,
    ) -> ProgramPlan {
        let facts = RunFacts { version, command: Some(command), memory: &[] };
        let active = self.switches.iter().find(|switch| self.is_switched_on(switch, command));
        let Some(switch) = active.filter(|active| active.is_in(version)).or_else(|| self.best_switch(facts)) else {
            return ProgramPlan { switch: None, command: None, stacks: self.stacks(facts) };
        };
        let mut corrected = self.correct(switch, command, directory);
        // Set the environment variable in addition to the option, because child processes inherit only the variable.
        if let Some(corrected) = &mut corrected
            && corrected.variables.is_empty()
            && !switch.variables.is_empty()
            && let Some(by_variable) = self.correct_by_variable(switch, None, command, directory)
        {
            corrected.variables = by_variable.variables;
        }
        ProgramPlan { switch: Some(switch), command: corrected, stacks: switch.stacks }
    }
}

/// The runtime of the first program in a command line that is an executable of a runtime, judged by its name.
pub fn runtime_of_command(words: &[Vec<u8>]) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| find_program(words, |name| runtime.is_program(name)).is_some())
}
