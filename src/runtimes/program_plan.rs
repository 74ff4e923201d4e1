//! How `jitgraft record` changes the command line of a program so that its runtime writes names. `doctor` makes the
//! same plan, to find out whether `jitgraft record` with the recorded command line would solve a problem.

use super::command::{CommandLine, CorrectedCommand, RunFacts, find_program};
use super::runtime::Runtime;
use super::switch::{Stacks, Switch, Version};
use super::table::RUNTIMES;

/// How to record a program of a runtime.
#[derive(Debug)]
pub struct ProgramPlan {
    /// The switch that makes the runtime write names: one that the command already turns on or, failing that, the best
    /// one that can be turned on. `None` if flags and variables can't turn on any.
    pub switch: Option<&'static Switch>,
    /// The command line with everything added that is missing to turn on the switch. `None` without a switch, or if the
    /// program is one that passes neither flags nor variables on to the runtime.
    pub command: Option<CorrectedCommand>,
    /// How perf has to record stacks so that they don't end at JIT code. It depends on `switch`: some switches also
    /// make the runtime keep frame pointers.
    pub stacks: Stacks,
}

impl Runtime {
    /// Plans how to record the program of a command line. `version` is the runtime's version, if known, and `directory`
    /// is where the runtime should write its files.
    pub fn plan_program(
        &'static self,
        command: CommandLine<'_>,
        version: Option<Version>,
        directory: &str,
    ) -> ProgramPlan {
        // The program hasn't run yet, so it has no memory.
        let facts = RunFacts { version, command: Some(command), memory: &[] };
        let active = self.switches.iter().find(|switch| self.is_switched_on(switch, command));
        // A switch that is on, but that this version of the runtime doesn't have, has no effect. So choose another one.
        let Some(switch) = active.filter(|active| active.is_in(version)).or_else(|| self.best_switch(facts)) else {
            // No switch can be turned on. How stacks are recorded still depends on the runtime.
            return ProgramPlan { switch: None, command: None, stacks: self.stacks(facts) };
        };
        let mut corrected = self.correct(switch, command, directory);
        // If the command turns on the switch by an option, set the switch's environment variable, too: child processes
        // inherit only the variable.
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

/// The runtime whose executable a command line starts, judged by the executable's file name. `None` if it starts
/// another program.
pub fn runtime_of_command(words: &[Vec<u8>]) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| find_program(words, |name| runtime.is_program(name)).is_some())
}
