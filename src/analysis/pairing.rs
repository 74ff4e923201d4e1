//! Pairs the functions of two profiles, even if their names differ from run to run.
//!
//! Functions are paired in three steps: by exact name, then ignoring addresses, then ignoring numbers that are specific
//! to a run ([`run_names`](crate::runtimes::run_names)). In each step, directories and lines only decide between
//! functions that are otherwise equal: editing code above a function or building in another directory doesn't make it a
//! new function. An unknown module or file in one of the profiles doesn't tell functions apart: if only one function on
//! the other side fits, they are paired. If several functions are left on both sides, those in the same file are paired
//! in the order of their lines; others by their callers and callees, then in the order of numbers in their names. A
//! function has at most one partner, so that two lambdas of a class stay two.

use crate::model::backing::base_name;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, NameId, Profile, UNKNOWN};
use crate::runtimes::run_names::{PlacedName, without_addresses, without_run_numbers};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// If a side has more functions of the same name than this, they are paired in order, because comparing each with each
/// would take too long.
const MOST_COMPARED: usize = 64;

/// What to ignore in names in one of the steps of pairing functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Exact,
    WithoutAddresses,
    WithoutRunNumbers,
}

/// Identifies a function within its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FunctionKey {
    name: NameId,
    module: Option<NameId>,
    start: FunctionStart,
    is_jit: bool,
}

/// A function, prepared for comparison.
#[derive(Debug)]
struct Function<'p> {
    key: FunctionKey,
    name: &'p [u8],
    /// The module's file name; `[JIT]` for JIT code, whose module is named after the process.
    module: &'p [u8],
    /// The path of its source file; empty if unknown.
    path: Cow<'p, [u8]>,
    /// The line and column where it starts; 0 if unknown.
    line: u32,
    column: u32,
    /// The function's name, without a source location that may be part of it.
    stem: Cow<'p, str>,
}

/// The functions of a profile.
struct Functions<'p> {
    profile: &'p Profile,
    list: Vec<Function<'p>>,
    /// The function of each frame.
    of_frames: Vec<u32>,
}

/// The weights of a function's callers and callees, by hash of their names.
type Neighbors = FxHashMap<(Side, u64), u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Caller,
    Callee,
}

/// Returns `before` with its functions renamed like their partners in `after`. With `exact_names`, names may only
/// differ in directories and lines.
pub fn align(before: &Profile, after: &Profile, exact_names: bool) -> Profile {
    let (old, new) = (Functions::of(before), Functions::of(after));
    let partners = pair(&old, &new, exact_names);
    before.with_frames(|aligned, id, frame| {
        let number = old.of_frames[id.index()] as usize;
        let Some(partner) = partners[number].map(|partner| &new.list[partner].key) else {
            return before.frame_in(aligned, frame);
        };
        let name = aligned.name(after.name_of(partner.name));
        let module = partner.module.map(|module| aligned.name(after.name_of(module)));
        let start_file = partner.start.file.map(|file| aligned.name(after.name_of(file)));
        let own_file = frame.file.map(|file| aligned.name(before.name_of(file)));
        let kind = match (frame.kind.is_jit(), partner.is_jit) {
            (false, true) => FrameKind::Jit,
            (true, false) => FrameKind::User,
            _ => frame.kind,
        };
        Frame {
            name,
            module,
            kind,
            file: start_file.or(own_file),
            start: FunctionStart { file: start_file, ..partner.start },
            build: frame.build.map(|build| aligned.name(before.name_of(build))),
            ..*frame
        }
    })
}

/// The partner of each function of the earlier profile, if it has one.
fn pair(old: &Functions<'_>, new: &Functions<'_>, exact_names: bool) -> Vec<Option<usize>> {
    let mut pairs = Pairs { of_old: vec![None; old.list.len()], is_taken: vec![false; new.list.len()] };
    pairs.add_identical(old, new);
    let steps = [Step::Exact, Step::WithoutAddresses, Step::WithoutRunNumbers];
    let steps = if exact_names { &steps[..1] } else { &steps[..] };
    for step in steps {
        let mut groups = BTreeMap::<_, Candidates>::new();
        for (at, function) in old.list.iter().enumerate().filter(|(at, _)| pairs.of_old[*at].is_none()) {
            groups.entry(function.group(*step)).or_default().earlier.push(at);
        }
        for (at, function) in new.list.iter().enumerate().filter(|(at, _)| !pairs.is_taken[*at]) {
            groups.entry(function.group(*step)).or_default().later.push(at);
        }
        let mut several = Vec::new();
        for group in groups.into_values() {
            match (&group.earlier[..], &group.later[..]) {
                ([], _) | (_, []) => {}
                ([one], [other]) => pairs.add(*one, *other),
                _ => several.push(group),
            }
        }
        if several.is_empty() {
            continue;
        }
        let earlier = several.iter().flat_map(|group| &group.earlier).copied();
        let later = several.iter().flat_map(|group| &group.later).copied();
        let neighbors = (old.neighbors(earlier, *step), new.neighbors(later, *step));
        for Candidates { earlier, later } in several {
            pairs.add_group((old, earlier), (new, later), &neighbors);
        }
    }
    for step in steps {
        pairs.add_partly_known(old, new, *step);
    }
    pairs.of_old
}

/// Functions of both profiles that may be partners.
#[derive(Debug, Default)]
struct Candidates {
    earlier: Vec<usize>,
    later: Vec<usize>,
}

/// The pairs found so far.
struct Pairs {
    of_old: Vec<Option<usize>>,
    is_taken: Vec<bool>,
}

impl Pairs {
    fn add(&mut self, old: usize, new: usize) {
        self.of_old[old] = Some(new);
        self.is_taken[new] = true;
    }

    /// Pairs functions that agree in everything. Only done if most functions of that name agree: otherwise an edit may
    /// have moved a function to the line where another one was.
    fn add_identical(&mut self, old: &Functions<'_>, new: &Functions<'_>) {
        let places: FxHashMap<_, usize> =
            new.list.iter().enumerate().map(|(at, function)| (function.identity(), at)).collect();
        let mut groups = BTreeMap::<_, Vec<(usize, Option<usize>)>>::new();
        for (at, function) in old.list.iter().enumerate() {
            let same = places.get(&function.identity()).copied();
            groups.entry(function.group(Step::Exact)).or_default().push((at, same));
        }
        for group in groups.into_values() {
            let same = group.iter().filter(|(_, same)| same.is_some()).count();
            if same * 2 <= group.len() {
                continue;
            }
            for (at, same) in group {
                if let Some(same) = same.filter(|same| !self.is_taken[*same]) {
                    self.add(at, same);
                }
            }
        }
    }

    /// Pairs functions with the same name (ignoring what `step` ignores) whose modules and files don't contradict each
    /// other: an unknown module or file agrees with any. Both must have exactly one such candidate.
    fn add_partly_known(&mut self, old: &Functions<'_>, new: &Functions<'_>, step: Step) {
        let mut groups = BTreeMap::<_, Candidates>::new();
        for (at, function) in old.list.iter().enumerate().filter(|(at, _)| self.of_old[*at].is_none()) {
            groups.entry(function.called(step)).or_default().earlier.push(at);
        }
        for (at, function) in new.list.iter().enumerate().filter(|(at, _)| !self.is_taken[*at]) {
            groups.entry(function.called(step)).or_default().later.push(at);
        }
        for Candidates { earlier, later } in groups.into_values() {
            if earlier.len().max(later.len()) > MOST_COMPARED {
                continue;
            }
            for one in &earlier {
                let fits = |from: &[usize], test: &dyn Fn(usize) -> bool| {
                    let mut fitting = from.iter().copied().filter(|at| test(*at));
                    fitting.next().filter(|_| fitting.next().is_none())
                };
                let Some(other) = fits(&later, &|at| old.list[*one].may_be(&new.list[at])) else { continue };
                if fits(&earlier, &|at| old.list[at].may_be(&new.list[other])).is_some() {
                    self.add(*one, other);
                }
            }
        }
    }

    /// Pairs functions of equal name and module.
    fn add_group(
        &mut self,
        (old, mut earlier): (&Functions<'_>, Vec<usize>),
        (new, mut later): (&Functions<'_>, Vec<usize>),
        neighbors: &(FxHashMap<usize, Neighbors>, FxHashMap<usize, Neighbors>),
    ) {
        earlier.sort_by_cached_key(|at| old.list[*at].order());
        later.sort_by_cached_key(|at| new.list[*at].order());
        // Functions in the same file are in the same order in both profiles, even if their lines changed.
        let mut by_path = BTreeMap::<&[u8], (Vec<usize>, Vec<usize>)>::new();
        for at in &earlier {
            by_path.entry(&old.list[*at].path).or_default().0.push(*at);
        }
        for at in &later {
            by_path.entry(&new.list[*at].path).or_default().1.push(*at);
        }
        let moved =
            earlier.len() == later.len() && by_path.values().all(|(one, other)| one.is_empty() || other.is_empty());
        let has_lines = |function: &Function<'_>| function.line > 0;
        if moved && by_path.len() == 2 && earlier.iter().all(|at| has_lines(&old.list[*at])) {
            // All functions of one profile are in one path, and all of the other in another: the same file in another
            // directory.
            earlier.iter().zip(&later).for_each(|(one, other)| self.add(*one, *other));
            return;
        }
        for (one, other) in by_path.values().filter(|(one, other)| one.len() == other.len()) {
            if one.len() == 1 || one.iter().all(|at| has_lines(&old.list[*at])) {
                one.iter().zip(other).for_each(|(one, other)| self.add(*one, *other));
            }
        }
        earlier.retain(|at| self.of_old[*at].is_none());
        later.retain(|at| !self.is_taken[*at]);
        if earlier.len().max(later.len()) > MOST_COMPARED {
            earlier.iter().zip(&later).for_each(|(one, other)| self.add(*one, *other));
            return;
        }
        let none = Neighbors::default();
        let mut candidates = Vec::new();
        for (rank, one) in earlier.iter().enumerate() {
            for (other_rank, other) in later.iter().enumerate() {
                let (function, partner) = (&old.list[*one], &new.list[*other]);
                let same_place = (function.line, function.column) == (partner.line, partner.column);
                let known = [neighbors.0.get(one), neighbors.1.get(other)].map(|known| known.unwrap_or(&none));
                let key = (
                    Reverse(common_ending(&function.path, &partner.path)),
                    Reverse(same_place),
                    Reverse(similarity(known[0], known[1])),
                    rank.abs_diff(other_rank),
                    rank,
                    other_rank,
                );
                candidates.push((key, *one, *other));
            }
        }
        candidates.sort_by_key(|(key, ..)| *key);
        for (_, one, other) in candidates {
            if self.of_old[one].is_none() && !self.is_taken[other] {
                self.add(one, other);
            }
        }
    }
}

/// The number of path components that two paths have in common, counted from the end.
fn common_ending(one: &[u8], other: &[u8]) -> usize {
    let parts = |path| <[u8]>::rsplit(path, |byte: &u8| matches!(byte, b'/' | b'\\'));
    parts(one).zip(parts(other)).take_while(|(one, other)| one == other).count()
}

/// How similar two functions' callers and callees are, from 0 to 8. Finer differences would be chance.
fn similarity(one: &Neighbors, other: &Neighbors) -> u32 {
    let mut same = 0.0;
    for side in [Side::Caller, Side::Callee] {
        let whole = |neighbors: &Neighbors| {
            neighbors.iter().filter(|((of, _), _)| *of == side).map(|(_, weight)| *weight as f64).sum::<f64>()
        };
        let (whole_one, whole_other) = (whole(one), whole(other));
        if whole_one == 0.0 || whole_other == 0.0 {
            continue;
        }
        for (neighbor, weight) in one.iter().filter(|((of, _), _)| *of == side) {
            let other_weight = other.get(neighbor).copied().unwrap_or(0) as f64;
            same += (*weight as f64 / whole_one).min(other_weight / whole_other);
        }
    }
    (same * 4.0).round() as u32
}

impl<'p> Function<'p> {
    fn of(profile: &'p Profile, key: FunctionKey) -> Self {
        let name = profile.name_of(key.name);
        let text = std::str::from_utf8(name).unwrap_or_default();
        let module = match key.module {
            _ if key.is_jit => b"[JIT]",
            Some(module) => base_name(profile.name_of(module)),
            None => b"",
        };
        let stated = key.start.file.map(|file| profile.name_of(file)).unwrap_or_default();
        let FunctionStart { line, column, .. } = key.start;
        let unplaced =
            Self { key, name, module, path: Cow::Borrowed(stated), line, column, stem: String::from_utf8_lossy(name) };
        match PlacedName::parse(text) {
            Some(PlacedName { before, path, line, column, after }) => {
                let (path, stem) = (Cow::Borrowed(path.as_bytes()), Cow::Owned(format!("{before}{after}")));
                Self { path, line, column, stem, ..unplaced }
            }
            None => unplaced,
        }
    }

    /// What functions must have in common to be paired in this step: everything but directories and lines.
    fn group(&self, step: Step) -> (&[u8], &[u8], String) {
        (self.module, file_name(&self.path), self.called(step).into_owned())
    }

    /// True if the module and the file name agree as far as both are known. Lines and directories may differ.
    fn may_be(&self, other: &Self) -> bool {
        let fits = |one: &[u8], other: &[u8]| one.is_empty() || other.is_empty() || one == other;
        self.name != UNKNOWN && fits(self.module, other.module) && fits(file_name(&self.path), file_name(&other.path))
    }

    fn called(&self, step: Step) -> Cow<'_, str> {
        let called = match step {
            Step::Exact => Cow::Borrowed(&*self.stem),
            Step::WithoutAddresses => without_addresses(&self.stem),
            Step::WithoutRunNumbers => without_run_numbers(&self.stem),
        };
        // A name that consists only of an address identifies nothing.
        let is_name = called.replace("0x", "").contains(char::is_alphabetic);
        if is_name { called } else { Cow::Borrowed(&self.stem) }
    }

    fn identity(&self) -> (&[u8], &[u8], &[u8], u32, u32) {
        (self.module, self.name, &self.path, self.line, self.column)
    }

    /// Sort key: the order in which functions were written in a file, or numbered by a runtime.
    fn order(&self) -> (Vec<u8>, u32, u32, Vec<u64>, Vec<u8>) {
        (self.path.to_vec(), self.line, self.column, numbers(self.name), self.name.to_vec())
    }
}

/// The numbers in a name: decimal, or hexadecimal after `0x`.
fn numbers(name: &[u8]) -> Vec<u64> {
    let words = name.split(|byte| !byte.is_ascii_alphanumeric());
    let number = |word: &[u8]| {
        let word = std::str::from_utf8(word).ok()?;
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok(),
        }
    };
    words.filter_map(number).collect()
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(path)
}

impl<'p> Functions<'p> {
    fn of(profile: &'p Profile) -> Self {
        let (mut list, mut numbers, mut of_frames) = (Vec::new(), FxHashMap::default(), Vec::new());
        for (_, frame) in profile.frames() {
            let key = FunctionKey::of(frame);
            let number = *numbers.entry(key).or_insert_with(|| {
                list.push(Function::of(profile, key));
                list.len() as u32 - 1
            });
            of_frames.push(number);
        }
        Self { profile, list, of_frames }
    }

    fn neighbors(&self, wanted: impl Iterator<Item = usize>, step: Step) -> FxHashMap<usize, Neighbors> {
        let mut found: FxHashMap<usize, Neighbors> = wanted.map(|at| (at, Neighbors::default())).collect();
        let mut weights = vec![0u64; self.profile.stack_count()];
        for row in self.profile.series.iter().flat_map(|series| &series.rows) {
            if let Some(stack) = row.stack {
                let weight = &mut weights[stack.index()];
                *weight = weight.saturating_add(row.weight.max(row.count));
            }
        }
        let hashes: Vec<u64> = self.list.iter().map(|function| hash_of(&function.called(step))).collect();
        // A callee's ID is larger than its caller's, so it has its total weight when it is visited.
        for (at, (parent, frame)) in self.profile.stacks().enumerate().collect::<Vec<_>>().into_iter().rev() {
            let Some(parent) = parent else { continue };
            let weight = weights[at];
            weights[parent.index()] = weights[parent.index()].saturating_add(weight);
            let callee = self.of_frames[frame.index()] as usize;
            let caller = self.of_frames[self.profile.stack_of(parent).1.index()] as usize;
            if let Some(neighbors) = found.get_mut(&callee) {
                let sum = neighbors.entry((Side::Caller, hashes[caller])).or_default();
                *sum = sum.saturating_add(weight);
            }
            if let Some(neighbors) = found.get_mut(&caller) {
                let sum = neighbors.entry((Side::Callee, hashes[callee])).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        found
    }
}

impl FunctionKey {
    fn of(frame: &Frame) -> Self {
        let Frame { name, module, start, .. } = *frame;
        Self { name, module, start, is_jit: frame.kind.is_jit() }
    }
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Row, Track, Unit};

    /// A profile of JIT functions, given as stacks (names separated by `|`, outermost first) with weights.
    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::new();
        let (series, track) = (profile.series_named("e", Unit::Samples), profile.track(Track::default()));
        for (names, weight) in stacks {
            let mut stack = None;
            for name in names.split('|') {
                let name = profile.name(name.as_bytes());
                let frame = profile.frame(Frame::new(name, FrameKind::Jit));
                stack = Some(profile.stack(stack, frame));
            }
            profile.push(series, Row { track, stack, weight: *weight, count: *weight, time: None });
        }
        profile
    }

    /// The names in the first profile after aligning it with the second.
    fn aligned(before: &[(&str, u64)], after: &[(&str, u64)], exact_names: bool) -> Vec<String> {
        let aligned = align(&profile(before), &profile(after), exact_names);
        let innermost = |row: &Row| aligned.frame_of(aligned.frames_up(row.stack).next().unwrap()).name;
        let rows = aligned.series[0].rows.iter();
        rows.map(|row| String::from_utf8_lossy(aligned.name_of(innermost(row))).into_owned()).collect()
    }

    #[test]
    fn lambdas_of_two_runs_are_paired_and_two_stay_two() {
        let (one, two) = ("L$$Lambda$1/0x00007f01e4000a08.f", "L$$Lambda$2/0x00007f01e4000c48.f");
        let (other_one, other_two) = ("L$$Lambda$1/0x00007fad04000a08.f", "L$$Lambda$2/0x00007fad04000c48.f");
        assert_eq!(
            aligned(&[(one, 80), (two, 17)], &[(other_two, 80), (other_one, 17)], false),
            [other_one, other_two]
        );
        assert_eq!(aligned(&[(one, 80), (two, 17)], &[(other_two, 80), (other_one, 17)], true), [one, two]);
        // Names of JDK 21 contain no numbers. Callees distinguish the lambdas, even if they were created in another
        // order.
        let (one, two) = ("L$$Lambda/0x00007f01e4000a08.f", "L$$Lambda/0x00007f01e4000c48.f");
        let before = [
            ("L$$Lambda/0x00007f01e4000a08.f|l$0", 80),
            ("L$$Lambda/0x00007f01e4000c48.f|l$1", 17),
            (one, 1),
            (two, 1),
        ];
        let after = [("L$$Lambda/0x0000000800000010.f|l$1", 80), ("L$$Lambda/0x0000000800000020.f|l$0", 17)];
        let names = aligned(&before, &after, false);
        assert_eq!(names[2..], ["L$$Lambda/0x0000000800000020.f", "L$$Lambda/0x0000000800000010.f"]);
        // One of the functions in the later profile is new.
        assert_eq!(aligned(&[("P$Proxy7.f", 1)], &[("P$Proxy9.f", 1), ("P$Proxy10.f", 5)], false), ["P$Proxy9.f"]);
    }

    #[test]
    fn lines_and_directories_make_no_new_function() {
        let names = aligned(&[("JS:*f /old/a.js:8:10", 1)], &[("JS:*f /new/lib/a.js:12:10", 1)], true);
        assert_eq!(names, ["JS:*f /new/lib/a.js:12:10"]);
        // Two functions with the same name in a file. One of them moved to the line where the other one used to be.
        let before = [("JS:* /a.js:10:1", 1), ("JS:* /a.js:20:1", 1)];
        let after = [("JS:* /a.js:20:1", 1), ("JS:* /a.js:30:1", 1)];
        assert_eq!(aligned(&before, &after, false), ["JS:* /a.js:20:1", "JS:* /a.js:30:1"]);
        // Two functions with the same name in two files.
        let before = [("py::init:/x/a.py", 1), ("py::init:/x/b.py", 1)];
        let after = [("py::init:/y/b.py", 1), ("py::init:/y/a.py", 1)];
        assert_eq!(aligned(&before, &after, false), ["py::init:/y/a.py", "py::init:/y/b.py"]);
        let before = [("py::init:/x/a/m.py", 1), ("py::init:/x/b/m.py", 1)];
        let after = [("py::init:/y/b/m.py", 1), ("py::init:/y/a/m.py", 1)];
        assert_eq!(aligned(&before, &after, false), ["py::init:/y/a/m.py", "py::init:/y/b/m.py"]);
        // A function in another file is another function.
        assert_eq!(aligned(&[("py::init:/x/a.py", 1)], &[("py::init:/x/b.py", 1)], false), ["py::init:/x/a.py"]);
    }

    #[test]
    fn a_module_or_file_that_one_side_lacks_tells_nothing_apart() {
        let functions = |functions: &[(&str, &str, &str)]| {
            let mut profile = profile(&[]);
            for (name, module, file) in functions {
                let mut known = |text: &str| (!text.is_empty()).then(|| profile.name(text.as_bytes()));
                let (module, file) = (known(module), known(file));
                let name = profile.name(name.as_bytes());
                let start = FunctionStart { file, line: 1, column: 0 };
                let frame = profile.frame(Frame { module, start, ..Frame::new(name, FrameKind::User) });
                let (track, stack) = (profile.track(Track::default()), Some(profile.stack(None, frame)));
                profile.push(0, Row { track, stack, weight: 1, count: 1, time: None });
            }
            profile
        };
        let paired = |before: &[(&str, &str, &str)], after: &[(&str, &str, &str)]| {
            let (before, after) = (functions(before), functions(after));
            pair(&Functions::of(&before), &Functions::of(&after), true)
        };
        assert_eq!(paired(&[("f", "", "")], &[("f", "app", "a.c")]), [Some(0)]);
        assert_eq!(paired(&[("f", "app", "")], &[("f", "app", "a.c"), ("f", "lib.so", "a.c")]), [Some(0)]);
        assert_eq!(paired(&[("f", "", "")], &[("f", "app", ""), ("f", "lib.so", "")]), [None]);
        assert_eq!(paired(&[("f", "app", "a.c")], &[("f", "app", "b.c")]), [None]);
    }

    #[test]
    fn exact_names_are_paired_before_others() {
        let names = aligned(&[("f<0x1>", 1), ("f<0x2>", 1)], &[("f<0x2>", 1), ("f<0x3>", 1)], false);
        assert_eq!(names, ["f<0x3>", "f<0x2>"]);
        assert_eq!(aligned(&[("f_1", 1)], &[("f_2", 1)], false), ["f_1"]);
        assert_eq!(aligned(&[("0x7f01", 1)], &[("0x7f02", 1)], false), ["0x7f01"]);
    }
}
