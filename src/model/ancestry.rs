//! Finds the ancestors from which a process inherited its code and mappings when it was forked, and for each of them
//! the last moment that matters: what the ancestor did after it forked its child wasn't inherited.
//!
//! ```text
//! 7 ──┬─────────────────▶ time      asked about 9 at time d, the ancestors are 8 as of c and 7 as of a:
//!     a 8 ──┬──────────▶            what 7 does after a, and 8 after c, concerns only themselves
//!           c 9 ──d──▶
//! ```
//!
//! Process IDs are reused. If an ancestor was itself forked later than its child, its ID was reused, and the line of
//! ancestors ends there.

use super::process::Processes;
use super::{Nanos, Pid};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The maximum number of ancestors of a process. A longer line of ancestors is cut off at this length: it comes from
/// damage, or from an attempt to make every lookup slow. A genuine one would need this many forks in a row without an
/// exec.
const MAX_GENERATIONS: u32 = 1 << 14;

/// The forks of a recording, prepared for many lookups.
#[derive(Debug, Clone, Default)]
pub struct Ancestry {
    /// The fork of each process, by the ID of the child.
    forks: FxHashMap<Pid, Fork>,
    /// Processes whose fork was removed from `forks`, because they are their own ancestors or have too many ancestors.
    cut_off: Vec<Pid>,
}

/// How a process was forked, and from which ancestors it inherited code and mappings.
#[derive(Debug, Clone, Copy)]
struct Fork {
    parent: Pid,
    at: Nanos,
    /// When the process first called exec after the fork, and so discarded what it had inherited. `None` if it didn't.
    exec: Option<Nanos>,
    /// The number of the process's ancestors. Forks at the same time are sorted by it, so that a parent's fork comes
    /// before its child's.
    generation: u32,
    /// The step to the nearest ancestor from which the process inherited code and mappings. `None` if there is none.
    /// Ancestors that [`Ancestry::limited_to`] rejected are skipped.
    nearest: Option<Step>,
    /// Like `nearest`, but ignores that ancestors called exec. For lookups that cover all times together
    /// ([`Ancestry::ancestors`]), because the process may have inherited code before such an exec.
    nearest_ever: Option<Step>,
}

/// A fork: `parent` created `child`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkEvent {
    /// The new process.
    pub child: Pid,
    /// The process that the child was a copy of.
    pub parent: Pid,
    /// The time of the fork.
    pub at: Nanos,
}

impl Fork {
    /// True if the fork had happened by `time` (`None`: the end of the recording).
    fn happened_by(&self, time: Option<Nanos>) -> bool {
        time.is_none_or(|time| self.at <= time)
    }

    /// True if the child hadn't called exec by `time` (`None`: the end of the recording).
    fn still_inherits(&self, time: Option<Nanos>) -> bool {
        self.exec.is_none_or(|exec| time.is_some_and(|time| time < exec))
    }
}

/// A process in a line of ancestors, which begins with the process whose ancestors are looked up. What an ancestor did
/// after `time` wasn't inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor {
    /// The process.
    pub pid: Pid,
    /// The time up to which the process's code and mappings count; `None` means the end of the recording.
    pub time: Option<Nanos>,
}

/// A step from a process to an ancestor that it inherited from: its parent, or one further back if those in between are
/// skipped.
#[derive(Debug, Clone, Copy)]
struct Step {
    ancestor: Ancestor,
    /// The time when this ancestor forked the process that comes after it in the line of descent.
    forked: Nanos,
}

impl Step {
    /// The step to an ancestor that forked the next process in the line at the time `forked`. What the ancestor had at
    /// that time was inherited.
    fn as_of_fork(pid: Pid, forked: Nanos) -> Self {
        Self { ancestor: Ancestor { pid, time: Some(forked) }, forked }
    }
}

impl Ancestry {
    /// Collects the forks of all processes, except those that would make a process its own ancestor, or a line of
    /// ancestors too long: recordings only contain them if they are damaged ([`Ancestry::cut_off`]).
    pub fn new(processes: &Processes) -> Self {
        let mut ancestry = Self { forks: FxHashMap::default(), cut_off: Vec::new() };
        ancestry.forks.reserve(processes.by_pid.len());
        for (&pid, process) in &processes.by_pid {
            let Some((parent, at)) = process.forked else { continue };
            // In damaged recordings, a process may be its own parent.
            if parent == pid {
                continue;
            }
            // The first exec after the fork: with it, the process discarded what it had inherited.
            let exec = process.execs.get(process.execs.partition_point(|exec| *exec < at)).copied();
            // At first, the nearest ancestor is the parent; `limited_to` may change that. `number_generations` sets the
            // generation.
            let nearest = Some(Step::as_of_fork(parent, at));
            ancestry.forks.insert(pid, Fork { parent, at, exec, generation: 0, nearest, nearest_ever: nearest });
        }
        ancestry.number_generations(processes.by_pid.keys().copied());
        ancestry
    }

    /// Leaves out ancestors that `can_answer` rejects, for example because nothing is known about their code. Lookups
    /// then go straight to the next ancestor that `can_answer` accepts.
    pub fn limited_to(mut self, can_answer: impl Fn(Pid) -> bool) -> Self {
        // `forks` returns a copy, in which parents come before their children. So when a child is visited, its parent
        // already has its final nearest ancestor.
        for ForkEvent { child, parent, at } in self.forks() {
            if can_answer(parent) {
                continue;
            }
            // The parent can't answer, so the child goes on to the ancestor that the parent would ask.
            // `nearest` is the ancestor whose code and mappings the child had when it was forked. `nearest_ever`
            // ignores that an exec may have discarded them, for lookups that cover all times.
            let (mut nearest, mut nearest_ever) = (None, None);
            // If the parent was forked later than the child, its process ID was reused, and the line of ancestors ends.
            if let Some(parent_fork) = self.forks.get(&parent)
                && parent_fork.at <= at
            {
                nearest_ever = parent_fork.nearest_ever;
                // If the parent called exec before it forked the child, the child inherited nothing from further back.
                if parent_fork.still_inherits(Some(at)) {
                    nearest = parent_fork.nearest;
                }
            }
            if let Some(fork) = self.forks.get_mut(&child) {
                (fork.nearest, fork.nearest_ever) = (nearest, nearest_ever);
            }
        }
        self
    }

    /// All forks, sorted by time. If a parent was forked at the same time as its child, the parent's fork comes first.
    pub fn forks(&self) -> impl Iterator<Item = ForkEvent> + use<> {
        let forks = self.forks.iter();
        let mut events: Vec<_> = forks.map(|(child, fork)| (fork.at, fork.generation, *child, fork.parent)).collect();
        events.sort_unstable();
        events.into_iter().map(|(at, _, child, parent)| ForkEvent { child, parent, at })
    }

    /// When a process was forked; `None` if the recording doesn't contain the fork, or if the process is one of
    /// [`cut_off`](Self::cut_off).
    pub fn forked(&self, pid: Pid) -> Option<Nanos> {
        self.forks.get(&pid).map(|fork| fork.at)
    }

    /// True if at `time` (`None`: the end) a process still runs the program that it was forked with, because it hasn't
    /// called exec.
    pub fn inherits(&self, pid: Pid, time: Option<Nanos>) -> bool {
        self.forks.get(&pid).is_some_and(|fork| fork.happened_by(time) && fork.still_inherits(time))
    }

    /// The process itself, then the ancestors whose code and mappings it still has at `time` (`None`: the end). The
    /// line ends where a process called exec before it forked the next one.
    pub fn inherited(&self, pid: Pid, time: Option<Nanos>) -> impl Iterator<Item = Ancestor> + Clone + '_ {
        self.line(Ancestor { pid, time }, |fork, time| {
            if fork.happened_by(time) && fork.still_inherits(time) { fork.nearest } else { None }
        })
    }

    /// The process itself, then the ancestors whose code it still has at `time` (`None`: the end). Unlike
    /// [`inherited`](Self::inherited), this is for code that was logged with timestamps. A sample may seem earlier than
    /// the fork of its process, for example because the clocks of CPUs differ. For such a sample, the next ancestor is
    /// the parent as of the sample's time, not as of the fork.
    pub fn inherited_code(&self, pid: Pid, time: Option<Nanos>) -> impl Iterator<Item = Ancestor> + Clone + '_ {
        self.line(Ancestor { pid, time }, |fork, time| match time {
            // The process has called exec by then, and discarded what it had inherited.
            _ if !fork.still_inherits(time) => None,
            // The sample seems earlier than the fork.
            Some(_) if !fork.happened_by(time) => {
                Some(Step { ancestor: Ancestor { pid: fork.parent, time }, forked: fork.at })
            }
            _ => fork.nearest,
        })
    }

    /// The time range around `time` in which [`inherited_code`](Self::inherited_code) returns the same ancestors.
    /// For a time before the fork, it is only `time` itself, because each time then has a different answer.
    pub fn inherited_code_period(&self, pid: Pid, time: Nanos) -> Range<Nanos> {
        let Some(&Fork { at, exec, .. }) = self.forks.get(&pid) else { return Nanos(0)..Nanos(u64::MAX) };
        match exec {
            // After the exec, the process has none of the code that it inherited.
            Some(exec) if time >= exec => exec..Nanos(u64::MAX),
            // From the fork until the exec (if there is one), the process has what its parent had at the fork.
            _ if time >= at => at..exec.unwrap_or(Nanos(u64::MAX)),
            // At this time, the process hadn't been forked yet.
            _ => time..Nanos(time.0.saturating_add(1)),
        }
    }

    /// The process itself, then every process that it may have inherited from at any time.
    pub fn ancestors(&self, pid: Pid) -> impl Iterator<Item = Pid> + '_ {
        let line = self.line(Ancestor { pid, time: None }, |fork, _| fork.nearest_ever);
        line.map(|ancestor| ancestor.pid)
    }

    /// Iterates over `first` and its ancestors. `step` chooses the next ancestor of a process; `None` ends the line. It
    /// gets the process's fork, and the time up to which the process counts ([`Ancestor::time`]).
    fn line(
        &self,
        first: Ancestor,
        step: impl Fn(&Fork, Option<Nanos>) -> Option<Step> + Clone,
    ) -> impl Iterator<Item = Ancestor> + Clone {
        // Each ancestor, with the time at which its descendant in this line was forked.
        let line = std::iter::successors(Some((first, None)), move |&(Ancestor { pid, time }, descendant_forked)| {
            let fork = self.forks.get(&pid)?;
            // An ancestor that was forked later than its descendant has a reused ID.
            if descendant_forked.is_some_and(|forked| fork.at > forked) {
                return None;
            }
            let Step { ancestor, forked } = step(fork, time)?;
            Some((ancestor, Some(forked)))
        });
        line.map(|(ancestor, _)| ancestor)
    }

    /// Processes that are their own ancestors, or that have more than `MAX_GENERATIONS` ancestors. They are treated as
    /// if they inherited nothing.
    pub fn cut_off(&self) -> &[Pid] {
        &self.cut_off
    }

    /// Sets the generation of each fork, which is the number of the process's ancestors. Removes forks where a line of
    /// ancestors is a cycle or too long.
    fn number_generations(&mut self, pids: impl Iterator<Item = Pid>) {
        // The number of ancestors of each process that was visited so far. It is still 0 for the processes on the line
        // that is being followed.
        let mut depths: FxHashMap<Pid, u32> = FxHashMap::default();
        let mut line = Vec::new();
        for pid in pids {
            // The parents of most processes weren't forked within the recording, so there is no line to follow.
            if self.forked_parent(pid).is_none() {
                continue;
            }
            let mut next = Some(pid);
            while let Some(pid) = next
                && !depths.contains_key(&pid)
            {
                depths.insert(pid, 0);
                line.push(pid);
                next = self.forked_parent(pid);
            }
            let mut depth = 0;
            if let Some(visited) = next {
                // If the line has reached a process that is already on it, it is a cycle.
                if line.contains(&visited) {
                    self.cut(visited);
                }
                // If the line is a cycle, the depth of `visited` is still 0. That is right: `visited` was just cut from
                // its parent, so it has no ancestors.
                depth = depths[&visited];
            }
            // Go back from the oldest ancestor to `pid`, counting.
            for pid in line.drain(..).rev() {
                if depth == MAX_GENERATIONS {
                    self.cut(pid);
                }
                // After `cut`, the process has no fork any more, so the count starts again at 0.
                depth = if self.forks.contains_key(&pid) { depth + 1 } else { 0 };
                depths.insert(pid, depth);
            }
        }
        for (pid, fork) in &mut self.forks {
            // A process that wasn't visited has a single ancestor: its parent, which wasn't forked within the
            // recording.
            fork.generation = depths.get(pid).copied().unwrap_or(1);
        }
    }

    /// The process's parent, if the parent was itself forked within the recording, and before this process.
    fn forked_parent(&self, pid: Pid) -> Option<Pid> {
        let fork = self.forks.get(&pid)?;
        let parent_fork = self.forks.get(&fork.parent)?;
        if parent_fork.at <= fork.at { Some(fork.parent) } else { None }
    }

    /// Removes the fork of a process, so that it has no ancestors.
    fn cut(&mut self, pid: Pid) {
        self.forks.remove(&pid);
        self.cut_off.push(pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::Process;

    /// Each fork is (child, parent, time).
    fn ancestry(forks: &[(i32, i32, u64)]) -> Ancestry {
        let process = |&(pid, parent, at): &(i32, i32, u64)| {
            (Pid(pid), Process { forked: Some((Pid(parent), Nanos(at))), ..Process::default() })
        };
        Ancestry::new(&Processes { by_pid: forks.iter().map(process).collect(), ..Processes::default() })
    }

    fn pids(ancestry: &Ancestry, pid: i32, time: Option<u64>) -> Vec<(i32, Option<u64>)> {
        let line = ancestry.inherited(Pid(pid), time.map(Nanos));
        line.map(|Ancestor { pid, time }| (pid.0, time.map(|time| time.0))).collect()
    }

    #[test]
    fn each_ancestor_is_queried_as_of_the_fork() {
        let ancestry = ancestry(&[(8, 7, 10), (9, 8, 20)]);
        assert_eq!(pids(&ancestry, 9, Some(30)), [(9, Some(30)), (8, Some(20)), (7, Some(10))]);
        assert_eq!(pids(&ancestry, 9, None), [(9, None), (8, Some(20)), (7, Some(10))]);
        assert_eq!(pids(&ancestry, 9, Some(19)), [(9, Some(19))]);
        assert_eq!(pids(&ancestry, 1, None), [(1, None)]);
    }

    #[test]
    fn a_started_program_inherits_nothing() {
        let mut processes = Processes::default();
        let process = |parent, at, execs: &[u64]| Process {
            forked: Some((Pid(parent), Nanos(at))),
            execs: execs.iter().copied().map(Nanos).collect(),
            ..Process::default()
        };
        processes.by_pid.insert(Pid(8), process(7, 10, &[5, 25]));
        processes.by_pid.insert(Pid(9), process(8, 20, &[40]));
        let ancestry = Ancestry::new(&processes);
        assert_eq!(pids(&ancestry, 9, Some(39)), [(9, Some(39)), (8, Some(20)), (7, Some(10))]);
        assert_eq!(pids(&ancestry, 9, Some(40)), [(9, Some(40))]);
        assert_eq!(pids(&ancestry, 9, None), [(9, None)]);
        assert_eq!(pids(&ancestry, 8, Some(25)), [(8, Some(25))]);
        assert_eq!(ancestry.ancestors(Pid(9)).collect::<Vec<_>>(), [9, 8, 7].map(Pid));
    }

    #[test]
    fn those_who_cannot_answer_are_passed_over_and_change_nothing_for_the_others() {
        let mut processes = Processes::default();
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for pid in 0..200 {
            let forked = Some((Pid(random(200) as i32), Nanos(random(50))));
            let execs = (0..random(3)).map(|n| Nanos(30 * n + random(30))).collect();
            processes.by_pid.insert(Pid(pid), Process { forked, execs, ..Process::default() });
        }
        let all = Ancestry::new(&processes);
        for every in [1, 2, 7] {
            let can_answer = |pid: Pid| pid.0 % every == 0;
            let some = all.clone().limited_to(can_answer);
            for (pid, time) in (0..200).flat_map(|pid| (0..60).map(move |time| (Pid(pid), Some(Nanos(time))))) {
                let time = time.filter(|time| time.0 < 55);
                let answers = |line: &mut dyn Iterator<Item = Ancestor>| -> Vec<Ancestor> {
                    line.skip(1).take(50).filter(|ancestor| can_answer(ancestor.pid)).collect()
                };
                assert_eq!(answers(&mut some.inherited(pid, time)), answers(&mut all.inherited(pid, time)));
                let (first, others) = (some.inherited_code(pid, time), all.inherited_code(pid, time));
                let short = answers(&mut { first });
                assert_eq!(short[..short.len().min(5)], answers(&mut { others })[..short.len().min(5)]);
                assert_eq!(all.inherits(pid, time), all.inherited(pid, time).nth(1).is_some());
            }
            for pid in (0..200).map(Pid) {
                let expected: Vec<Pid> = all.ancestors(pid).skip(1).filter(|pid| can_answer(*pid)).collect();
                assert_eq!(some.ancestors(pid).skip(1).filter(|pid| can_answer(*pid)).collect::<Vec<_>>(), expected);
            }
        }
        let (mut seen, mut last) = (Vec::new(), Nanos(0));
        for ForkEvent { child, parent, at } in all.forks() {
            assert!(last <= at && all.forked(child) == Some(at));
            let later = all.forked(parent).is_some_and(|forked| forked > at);
            assert!(later || all.forked(parent).is_none() || seen.contains(&parent));
            seen.push(child);
            last = at;
        }
    }

    #[test]
    fn a_line_is_as_short_as_those_who_can_answer_are_few() {
        let forks: Vec<_> = (1..10_000).map(|pid| (pid, pid - 1, pid as u64)).collect();
        let ancestry = ancestry(&forks).limited_to(|pid| pid == Pid(0));
        assert_eq!(pids(&ancestry, 9_999, None), [(9_999, None), (0, Some(1))]);
        assert_eq!(ancestry.inherited_code(Pid(9_999), Some(Nanos(20_000))).count(), 2);
    }

    #[test]
    fn a_number_that_is_used_again_ends_the_line() {
        // 7 forks 8 and exits; then 8 forks another process, which gets the ID 7 again.
        let ancestry = ancestry(&[(8, 7, 10), (7, 8, 20)]);
        assert_eq!(pids(&ancestry, 7, Some(30)), [(7, Some(30)), (8, Some(20)), (7, Some(10))]);
        assert_eq!(pids(&ancestry, 8, Some(30)), [(8, Some(30)), (7, Some(10))]);
        assert_eq!(ancestry.cut_off(), []);
    }

    #[test]
    fn circles_and_endless_lines_are_cut() {
        let circle = ancestry(&[(5, 5, 0), (7, 9, 0), (8, 7, 0), (9, 8, 0), (10, 9, 0)]);
        assert_eq!(circle.cut_off(), [Pid(7)]);
        assert_eq!(pids(&circle, 10, None), [(10, None), (9, Some(0)), (8, Some(0)), (7, Some(0))]);
        assert_eq!(pids(&circle, 5, None), [(5, None)]);
        let limit = MAX_GENERATIONS as i32;
        let forks: Vec<_> = (1..=limit + 2).map(|pid| (pid, pid - 1, 0)).collect();
        let line = ancestry(&forks);
        assert_eq!(line.cut_off(), [Pid(limit + 1)]);
        assert_eq!(line.ancestors(Pid(limit)).count(), limit as usize + 1);
        assert_eq!(line.ancestors(Pid(limit + 2)).count(), 2);
    }

    #[test]
    fn code_is_inherited_by_what_ran_before_its_fork_was_seen_and_no_line_is_endless() {
        let ancestry = ancestry(&[(9, 8, 100), (8, 9, 50)]);
        let line = |pid| -> Vec<_> { ancestry.inherited_code(Pid(pid), Some(Nanos(7))).take(100).collect() };
        let as_of = |pid, time| Ancestor { pid: Pid(pid), time: Some(Nanos(time)) };
        assert_eq!(line(9), [as_of(9, 7), as_of(8, 7), as_of(9, 7)]);
        assert_eq!(line(8), [as_of(8, 7), as_of(9, 7)]);
        assert_eq!(ancestry.inherited(Pid(9), Some(Nanos(7))).count(), 1);
    }
}
