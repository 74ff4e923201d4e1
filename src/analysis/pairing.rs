//! Pairs the functions of two profiles, even if their names differ from run to run.
//!
//! Functions are paired in three steps: by exact name, then ignoring addresses in names, then ignoring numbers in names
//! that differ from run to run ([`run_names`](crate::runtimes::run_names)). In each step, directories and lines only
//! decide between functions that are otherwise equal: editing code above a function or building in another directory
//! doesn't make it a new function. An unknown module or file in one of the profiles doesn't tell functions apart: if
//! only one function on the other side fits, they are paired. If several functions are left on both sides, those in the
//! same file are paired in the order of their lines. If one side has more of them, they are paired so that their lines
//! have moved as evenly as possible. The functions that are still left are paired by their callers and callees, then in
//! the order of the numbers in their names. A function has at most one partner, so that two lambdas of a class stay
//! two.

use crate::model::mapping_kind::base_name;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, NameId, Profile, UNKNOWN};
use crate::runtimes::run_names::{LocatedName, without_addresses, without_run_numbers};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// If more functions than this have the same name in one profile, they are paired in order. Comparing each with each
/// would take too long.
const MOST_COMPARED: usize = 64;

/// A step of pairing functions, which says what to ignore in their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Ignore nothing.
    Exact,
    /// Ignore addresses.
    WithoutAddresses,
    /// Ignore numbers that differ from run to run.
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

/// A function of a profile, prepared for comparison.
#[derive(Debug)]
struct Function<'p> {
    key: FunctionKey,
    name: &'p [u8],
    /// The module's file name; `[JIT]` for JIT code, whose module is named after the process.
    module: &'p [u8],
    /// The path of the function's source file; empty if unknown.
    path: Cow<'p, [u8]>,
    /// The line and column where the function starts; 0 if unknown.
    line: u32,
    column: u32,
    /// The function's name without the source location that some runtimes put into it.
    stem: Cow<'p, str>,
}

/// All functions of a profile.
struct Functions<'p> {
    profile: &'p Profile,
    list: Vec<Function<'p>>,
    /// For each frame ID, the index of its function.
    by_frame: Vec<u32>,
}

/// How much weight a function has with each of its callers and callees, which are identified by their side and a hash
/// of their name.
type Neighbors = FxHashMap<(Side, u64), u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Caller,
    Callee,
}

/// The callers and callees of functions of both profiles, by the functions' indexes in the lists of their profiles.
/// Only functions that have to be compared are listed.
struct BothNeighbors {
    old: FxHashMap<usize, Neighbors>,
    new: FxHashMap<usize, Neighbors>,
}

impl BothNeighbors {
    /// How similar the callers and callees of two functions are ([`similarity`]); 0 if those of either function weren't
    /// collected.
    fn similarity(&self, earlier: usize, later: usize) -> u32 {
        match (self.old.get(&earlier), self.new.get(&later)) {
            (Some(earlier), Some(later)) => similarity(earlier, later),
            _ => 0,
        }
    }
}

/// Returns `before` with each function renamed like its partner in `after`. If `exact_names` is set, functions are only
/// partners if their names are equal, except for directories and lines in them.
pub fn align(before: &Profile, after: &Profile, exact_names: bool) -> Profile {
    let old = Functions::collect(before);
    let new = Functions::collect(after);
    let partners = pair(&old, &new, exact_names);
    before.with_frames(|aligned, id, frame| {
        let function = old.by_frame[id.index()] as usize;
        // A function without a partner keeps its name.
        let Some(partner) = partners[function] else { return before.frame_in(aligned, frame) };
        let partner = &new.list[partner].key;
        let name = aligned.name(after.name_of(partner.name));
        let module = partner.module.map(|module| aligned.name(after.name_of(module)));
        let start_file = partner.start.file.map(|file| aligned.name(after.name_of(file)));
        let own_file = frame.file.map(|file| aligned.name(before.name_of(file)));
        // A function that is JIT code and one that isn't count as two functions, so the frame must agree with its
        // partner in that.
        let kind = match (frame.kind.is_jit(), partner.is_jit) {
            (false, true) => FrameKind::Jit,
            (true, false) => FrameKind::User,
            _ => frame.kind,
        };
        Frame {
            name,
            module,
            kind,
            // The file of the executed line. It is usually the one where the function starts, so use the path that the
            // partner has for that.
            file: start_file.or(own_file),
            start: FunctionStart { file: start_file, ..partner.start },
            build: frame.build.map(|build| aligned.name(before.name_of(build))),
            ..*frame
        }
    })
}

/// For each function of the earlier profile, the index of its partner in the later one; `None` if it has none.
fn pair(old: &Functions<'_>, new: &Functions<'_>, exact_names: bool) -> Vec<Option<usize>> {
    let mut pairs = Pairs { partners: vec![None; old.list.len()], is_taken: vec![false; new.list.len()] };
    pairs.add_identical(old, new);
    let steps = [Step::Exact, Step::WithoutAddresses, Step::WithoutRunNumbers];
    let steps = if exact_names { &steps[..1] } else { &steps[..] };
    // If a group has one function of each profile, these two are partners. Larger groups have to wait until the end of
    // a step: it takes time to find callers and callees, by which their functions are compared.
    for &step in steps {
        let groups = pairs.group_unpaired(old, new, |function| function.group(step));
        let mut ambiguous = Vec::new();
        for group in groups.into_values() {
            match (&group.earlier[..], &group.later[..]) {
                ([], _) | (_, []) => {}
                ([earlier], [later]) => pairs.add(*earlier, *later),
                _ => ambiguous.push(group),
            }
        }
        if ambiguous.is_empty() {
            continue;
        }
        let old_neighbors = old.neighbors(ambiguous.iter().flat_map(|group| &group.earlier).copied(), step);
        let new_neighbors = new.neighbors(ambiguous.iter().flat_map(|group| &group.later).copied(), step);
        let neighbors = BothNeighbors { old: old_neighbors, new: new_neighbors };
        for group in ambiguous {
            let unpaired = pairs.add_by_path(old, new, group, &neighbors);
            pairs.add_most_similar(old, new, &unpaired, &neighbors);
        }
    }
    // Functions that only fit because something about them is unknown must not take the partners of those that fit
    // better, so they come after all steps.
    for &step in steps {
        pairs.add_partly_known(old, new, step);
    }
    pairs.partners
}

/// Functions of both profiles that may be paired with each other, as indexes into the list of their own profile.
#[derive(Debug, Default)]
struct Candidates {
    earlier: Vec<usize>,
    later: Vec<usize>,
}

impl Candidates {
    /// True if comparing each earlier function with each later one would take too long.
    fn are_too_many(&self) -> bool {
        self.earlier.len().max(self.later.len()) > MOST_COMPARED
    }
}

/// The pairs found so far.
struct Pairs {
    /// For each function of the earlier profile, its partner in the later one, if found.
    partners: Vec<Option<usize>>,
    /// For each function of the later profile, whether it has a partner.
    is_taken: Vec<bool>,
}

impl Pairs {
    fn add(&mut self, old: usize, new: usize) {
        self.partners[old] = Some(new);
        self.is_taken[new] = true;
    }

    /// Pairs the first of both lists with each other, then the second, and so on. The rest of the longer list stays
    /// unpaired.
    fn add_in_order(&mut self, old: &[usize], new: &[usize]) {
        for (old, new) in old.iter().zip(new) {
            self.add(*old, *new);
        }
    }

    /// Groups the functions of both profiles by a key. Functions that already have a partner are left out.
    fn group_unpaired<'f, K: Ord>(
        &self,
        old: &'f Functions<'_>,
        new: &'f Functions<'_>,
        key: impl Fn(&'f Function<'_>) -> K,
    ) -> BTreeMap<K, Candidates> {
        let mut groups = BTreeMap::<K, Candidates>::new();
        for (index, function) in old.list.iter().enumerate() {
            if self.partners[index].is_none() {
                groups.entry(key(function)).or_default().earlier.push(index);
            }
        }
        for (index, function) in new.list.iter().enumerate() {
            if !self.is_taken[index] {
                groups.entry(key(function)).or_default().later.push(index);
            }
        }
        groups
    }

    /// Pairs functions that agree in everything, including lines. For each name, this is only done if most functions of
    /// the name have such a partner. Otherwise, an edit may have moved a function to the line where another one used to
    /// be.
    fn add_identical(&mut self, old: &Functions<'_>, new: &Functions<'_>) {
        let new_indexes: FxHashMap<_, usize> =
            new.list.iter().enumerate().map(|(index, function)| (function.identity(), index)).collect();
        let mut groups = BTreeMap::<_, Vec<(usize, Option<usize>)>>::new();
        for (index, function) in old.list.iter().enumerate() {
            let identical = new_indexes.get(&function.identity()).copied();
            // Functions with the same name, module and file name are in the same group.
            groups.entry(function.group(Step::Exact)).or_default().push((index, identical));
        }
        for group in groups.into_values() {
            let identical_count = group.iter().filter(|(_, identical)| identical.is_some()).count();
            if identical_count * 2 <= group.len() {
                continue;
            }
            for (index, identical) in group {
                if let Some(identical) = identical
                    && !self.is_taken[identical]
                {
                    self.add(index, identical);
                }
            }
        }
    }

    /// Pairs functions with the same name (ignoring what `step` ignores) whose modules and files don't contradict each
    /// other: an unknown module or file fits any. A pair is only made if each of the two is the other's only candidate.
    fn add_partly_known(&mut self, old: &Functions<'_>, new: &Functions<'_>, step: Step) {
        for group in self.group_unpaired(old, new, |function| function.comparable_name(step)).into_values() {
            if group.are_too_many() {
                continue;
            }
            for &earlier in &group.earlier {
                let later = find_only(&group.later, |later| old.list[earlier].agrees_with(&new.list[later]));
                let Some(later) = later else { continue };
                // `earlier` fits `later`. `find_only` returns it unless other functions fit as well.
                let only_candidate =
                    find_only(&group.earlier, |earlier| old.list[earlier].agrees_with(&new.list[later]));
                if only_candidate.is_some() {
                    self.add(earlier, later);
                }
            }
        }
    }

    /// Pairs those functions of a group that have the same source file, in the order of their lines. All functions of a
    /// group have the same name and module. Returns the functions that are left, sorted by file and line.
    fn add_by_path(
        &mut self,
        old: &Functions<'_>,
        new: &Functions<'_>,
        group: Candidates,
        neighbors: &BothNeighbors,
    ) -> Candidates {
        let Candidates { mut earlier, mut later } = group;
        earlier.sort_by_cached_key(|index| old.list[*index].order());
        later.sort_by_cached_key(|index| new.list[*index].order());
        // Functions of a file are assumed to be in the same order in both profiles, even if their lines changed.
        let mut by_path = BTreeMap::<&[u8], Candidates>::new();
        for &index in &earlier {
            by_path.entry(&old.list[index].path).or_default().earlier.push(index);
        }
        for &index in &later {
            by_path.entry(&new.list[index].path).or_default().later.push(index);
        }
        let has_moved =
            by_path.len() == 2 && by_path.values().all(|file| file.earlier.is_empty() || file.later.is_empty());
        let mut files: Vec<Candidates> = by_path.into_values().collect();
        if has_moved {
            // In each profile, all functions of the group are in a single file, but the two paths differ. It is taken
            // to be the same file in another directory.
            files = vec![Candidates { earlier: earlier.clone(), later: later.clone() }];
        }
        for file in &files {
            let have_lines = old.have_lines(&file.earlier) && new.have_lines(&file.later);
            if file.earlier.len() == file.later.len() {
                // Without lines, the order of functions is unknown. Then two functions are only paired if there are no
                // others, and both are in a file of the same path.
                if have_lines || file.earlier.len() == 1 && !has_moved {
                    self.add_in_order(&file.earlier, &file.later);
                }
            } else if have_lines && !file.are_too_many() {
                self.add_moved_evenly(old, new, file, neighbors);
            }
        }
        earlier.retain(|index| self.partners[*index].is_none());
        later.retain(|index| !self.is_taken[*index]);
        Candidates { earlier, later }
    }

    /// Pairs the functions of a file if one profile has more of them than the other. Both lists are sorted by line, and
    /// every function of the shorter one gets a partner, in the same order. Of all ways to do so, takes the one in
    /// which callers and callees agree best, and among these the one in which lines moved most evenly: code that was
    /// added or removed moves all functions below it by the same number of lines.
    fn add_moved_evenly(
        &mut self,
        old: &Functions<'_>,
        new: &Functions<'_>,
        file: &Candidates,
        neighbors: &BothNeighbors,
    ) {
        let has_more_later = file.later.len() > file.earlier.len();
        let (short, long) = if has_more_later { (&file.earlier, &file.later) } else { (&file.later, &file.earlier) };
        // The two functions at these indexes of the lists: first that of the earlier profile, then that of the later.
        let sides = |at_short: usize, at_long: usize| {
            let (short, long) = (short[at_short], long[at_long]);
            if has_more_later { (short, long) } else { (long, short) }
        };
        // By how many lines the function would have moved down if these two were partners.
        let moved = |at_short: usize, at_long: usize| {
            let (earlier, later) = sides(at_short, at_long);
            i64::from(new.list[later].line) - i64::from(old.list[earlier].line)
        };
        // The cell in row N and column M is about the first N + 1 functions of the shorter list. It has the best way to
        // pair them if the last of them gets function M of the longer list as its partner.
        let mut best: Vec<Vec<Option<Alignment>>> = Vec::with_capacity(short.len());
        for at_short in 0..short.len() {
            let mut row = vec![None; long.len()];
            // The earlier functions of the shorter list need partners above this one's, so at least `at_short`
            // functions of the longer list come before its partner.
            for (at_long, cell) in row.iter_mut().enumerate().skip(at_short) {
                let (earlier, later) = sides(at_short, at_long);
                let shift = moved(at_short, at_long);
                let mut best_way: Option<Alignment> = None;
                // Extend each way to pair the functions before this one (`before`). The first function has none before
                // it, so its way begins empty (`start`), without a previous partner (`usize::MAX`, which nobody reads).
                let previous = best.last().map_or(&[][..], Vec::as_slice);
                let before = previous.iter().take(at_long).enumerate().filter_map(|(at, cell)| Some((at, (*cell)?)));
                let start = if at_short == 0 { Some((usize::MAX, Alignment::default())) } else { None };
                for (at_previous, alignment) in before.chain(start) {
                    let last_shift = if at_short == 0 { 0 } else { moved(at_short - 1, at_previous) };
                    // If functions were only added, each has moved down at least as far as the one above it. If
                    // functions were only removed, each has moved up at least as far.
                    let is_contrary = if has_more_later { shift < last_shift } else { shift > last_shift };
                    let next = Alignment {
                        disagreement: alignment.disagreement + MOST_SIMILAR - neighbors.similarity(earlier, later),
                        contrary: alignment.contrary + u32::from(is_contrary),
                        changes: alignment.changes + u32::from(shift != last_shift),
                        lines: alignment.lines + shift.abs_diff(last_shift),
                        previous: at_previous,
                    };
                    if best_way.is_none_or(|best_way| next.cost() < best_way.cost()) {
                        best_way = Some(next);
                    }
                }
                *cell = best_way;
            }
            best.push(row);
        }
        // Take the best way to pair all functions of the shorter list, and follow it back from its last pair.
        let last_row = best.last().map_or(&[][..], Vec::as_slice);
        let ends = last_row.iter().enumerate().filter_map(|(at, cell)| Some((at, (*cell)?)));
        let Some((mut at_long, _)) = ends.min_by_key(|(at, alignment)| (alignment.cost(), *at)) else { return };
        for at_short in (0..short.len()).rev() {
            let (earlier, later) = sides(at_short, at_long);
            self.add(earlier, later);
            if let Some(alignment) = best[at_short][at_long] {
                at_long = alignment.previous;
            }
        }
    }

    /// Pairs the functions of a group, the most similar first. Similarity counts directories, then lines, then callers
    /// and callees, then the order.
    fn add_most_similar(
        &mut self,
        old: &Functions<'_>,
        new: &Functions<'_>,
        group: &Candidates,
        neighbors: &BothNeighbors,
    ) {
        if group.are_too_many() {
            self.add_in_order(&group.earlier, &group.later);
            return;
        }
        let mut ranked = Vec::new();
        for (earlier_rank, &earlier) in group.earlier.iter().enumerate() {
            for (later_rank, &later) in group.later.iter().enumerate() {
                let (old_function, new_function) = (&old.list[earlier], &new.list[later]);
                let is_same_place =
                    (old_function.line, old_function.column) == (new_function.line, new_function.column);
                // `Reverse`: the larger value comes first. The two ranks at the end only make the order definite.
                let key = (
                    Reverse(common_ending(&old_function.path, &new_function.path)),
                    Reverse(is_same_place),
                    Reverse(neighbors.similarity(earlier, later)),
                    earlier_rank.abs_diff(later_rank),
                    earlier_rank,
                    later_rank,
                );
                ranked.push((key, earlier, later));
            }
        }
        ranked.sort_by_key(|(key, ..)| *key);
        for (_, earlier, later) in ranked {
            if self.partners[earlier].is_none() && !self.is_taken[later] {
                self.add(earlier, later);
            }
        }
    }
}

/// A way to give each of the first few functions of the shorter list a partner in the longer one, in the same order.
#[derive(Debug, Clone, Copy, Default)]
struct Alignment {
    /// How much callers and callees of the pairs differ.
    disagreement: u32,
    /// How often a function moved up relative to the one above it, although the later profile has more functions; or
    /// down, although it has fewer.
    contrary: u32,
    /// How often a function moved by another number of lines than the one above it.
    changes: u32,
    /// By how many lines functions moved farther or less far than the ones above them, all added up.
    lines: u64,
    /// The partner of the last function but one, as an index in the longer list.
    previous: usize,
}

impl Alignment {
    /// The best alignment is the one with the smallest cost. Earlier numbers matter more.
    fn cost(&self) -> (u32, u32, u32, u64) {
        (self.disagreement, self.contrary, self.changes, self.lines)
    }
}

/// The only element of `indexes` for which `fits` is true. `None` if there is none or more than one.
fn find_only(indexes: &[usize], fits: impl Fn(usize) -> bool) -> Option<usize> {
    let mut fitting = indexes.iter().copied().filter(|index| fits(*index));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

/// How many components two paths have in common, counted from their ends.
fn common_ending(one: &[u8], other: &[u8]) -> usize {
    let parts = |path| <[u8]>::rsplit(path, |byte: &u8| matches!(byte, b'/' | b'\\'));
    parts(one).zip(parts(other)).take_while(|(one, other)| one == other).count()
}

/// The result of [`similarity`] for functions with the same callers and callees.
const MOST_SIMILAR: u32 = 8;

/// Compares the callers and callees of two functions, which are given as weights by side (caller or callee) and hash of
/// the name. Returns a number from 0 (nothing in common) to [`MOST_SIMILAR`] (the same callers and callees, with the
/// same shares of the weight). The number is rounded, because finer differences would be chance.
fn similarity(one: &Neighbors, other: &Neighbors) -> u32 {
    let mut common = 0.0;
    for side in [Side::Caller, Side::Callee] {
        let one_total = total_weight(one, side);
        let other_total = total_weight(other, side);
        if one_total == 0.0 || other_total == 0.0 {
            continue;
        }
        for (neighbor, weight) in one.iter().filter(|((neighbor_side, _), _)| *neighbor_side == side) {
            let other_weight = other.get(neighbor).copied().unwrap_or(0) as f64;
            common += (*weight as f64 / one_total).min(other_weight / other_total);
        }
    }
    // Callers and callees each contribute up to 1 to `common`, so 4 times that is at most `MOST_SIMILAR`.
    ((common * 4.0).round() as u32).min(MOST_SIMILAR)
}

fn total_weight(neighbors: &Neighbors, side: Side) -> f64 {
    let of_side = neighbors.iter().filter(|((neighbor_side, _), _)| *neighbor_side == side);
    of_side.map(|(_, weight)| *weight as f64).sum()
}

impl<'p> Function<'p> {
    /// Prepares a function for comparison. Some runtimes put the source location into the name; it is then used instead
    /// of the start that the profile states.
    fn new(profile: &'p Profile, key: FunctionKey) -> Self {
        let name = profile.name_of(key.name);
        let text = std::str::from_utf8(name).unwrap_or_default();
        let module = match key.module {
            // The module of JIT code is named after the process, so its name can't be compared.
            _ if key.is_jit => b"[JIT]",
            Some(module) => base_name(profile.name_of(module)),
            None => b"",
        };
        let FunctionStart { file, line, column } = key.start;
        let path = file.map(|file| profile.name_of(file)).unwrap_or_default();
        let function =
            Self { key, name, module, path: Cow::Borrowed(path), line, column, stem: String::from_utf8_lossy(name) };
        match LocatedName::parse(text) {
            Some(LocatedName { before, path, line, column, after }) => Self {
                path: Cow::Borrowed(path.as_bytes()),
                line,
                column,
                stem: Cow::Owned(format!("{before}{after}")),
                ..function
            },
            None => function,
        }
    }

    /// The key that functions must have in common to be paired in this step: the file names of module and source file,
    /// and the function's name without what the step ignores. Directories and lines don't matter.
    fn group(&self, step: Step) -> (&[u8], &[u8], String) {
        (self.module, file_name(&self.path), self.comparable_name(step).into_owned())
    }

    /// True if module and file name of both functions are equal, or unknown for one of them. Lines and directories are
    /// ignored.
    fn agrees_with(&self, other: &Self) -> bool {
        self.name != UNKNOWN
            && may_be_equal(self.module, other.module)
            && may_be_equal(file_name(&self.path), file_name(&other.path))
    }

    /// The function's name without what this step ignores: addresses, or numbers that differ from run to run.
    fn comparable_name(&self, step: Step) -> Cow<'_, str> {
        let name = match step {
            Step::Exact => Cow::Borrowed(&*self.stem),
            Step::WithoutAddresses => without_addresses(&self.stem),
            Step::WithoutRunNumbers => without_run_numbers(&self.stem),
        };
        // If a name consists of nothing but an address or a number, it has to be compared as it is.
        let has_letters = name.replace("0x", "").contains(char::is_alphabetic);
        if has_letters { name } else { Cow::Borrowed(&self.stem) }
    }

    /// A key that is only equal for functions that agree in everything: name, files, line and column.
    fn identity(&self) -> (&[u8], &[u8], &[u8], u32, u32) {
        (self.module, self.name, &self.path, self.line, self.column)
    }

    /// The sort key for pairing functions in order: the order in which they are in source files or, without lines, the
    /// order of the numbers that the runtime put into their names.
    fn order(&self) -> (Vec<u8>, u32, u32, Vec<u64>, Vec<u8>) {
        (self.path.to_vec(), self.line, self.column, numbers(self.name), self.name.to_vec())
    }
}

/// True if two names are equal or one of them is empty (unknown).
fn may_be_equal(one: &[u8], other: &[u8]) -> bool {
    one.is_empty() || other.is_empty() || one == other
}

/// The numbers in a name: decimal ones, also at the end of a word (`Lambda12`), and hexadecimal ones after `0x`.
fn numbers(name: &[u8]) -> Vec<u64> {
    name.split(|byte| !byte.is_ascii_alphanumeric()).filter_map(parse_number).collect()
}

fn parse_number(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok(),
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(path)
}

impl<'p> Functions<'p> {
    /// True if the start lines of all these functions are known.
    fn have_lines(&self, indexes: &[usize]) -> bool {
        indexes.iter().all(|index| self.list[*index].line > 0)
    }

    /// Collects the functions of a profile, and assigns each frame to its function.
    fn collect(profile: &'p Profile) -> Self {
        let mut list = Vec::new();
        let mut function_numbers = FxHashMap::default();
        let mut by_frame = Vec::new();
        for (_, frame) in profile.frames() {
            let Frame { name, module, start, .. } = *frame;
            let key = FunctionKey { name, module, start, is_jit: frame.kind.is_jit() };
            let number = *function_numbers.entry(key).or_insert_with(|| {
                list.push(Function::new(profile, key));
                list.len() as u32 - 1
            });
            by_frame.push(number);
        }
        Self { profile, list, by_frame }
    }

    /// The weights of callers and callees for each of the `wanted` functions. Callers and callees are identified by
    /// their names, without what `step` ignores.
    fn neighbors(&self, wanted: impl Iterator<Item = usize>, step: Step) -> FxHashMap<usize, Neighbors> {
        let mut neighbors_of: FxHashMap<usize, Neighbors> =
            wanted.map(|function| (function, Neighbors::default())).collect();
        let mut weights = vec![0u64; self.profile.stack_count()];
        for row in self.profile.series.iter().flat_map(|series| &series.rows) {
            if let Some(stack) = row.stack {
                // A row may have samples but no weight. Then its number of samples counts.
                let weight = &mut weights[stack.index()];
                *weight = weight.saturating_add(row.weight.max(row.count));
            }
        }
        let hashes: Vec<u64> = self.list.iter().map(|function| hash_of(&function.comparable_name(step))).collect();
        // Visit callees before callers: a callee's stack ID is larger, so its total weight is complete when it is
        // visited.
        let stacks: Vec<_> = self.profile.stacks().collect();
        for (stack, (parent, frame)) in stacks.into_iter().enumerate().rev() {
            // An outermost frame has no caller.
            let Some(parent) = parent else { continue };
            let weight = weights[stack];
            weights[parent.index()] = weights[parent.index()].saturating_add(weight);
            let (_, parent_frame) = self.profile.stack_of(parent);
            let callee = self.by_frame[frame.index()] as usize;
            let caller = self.by_frame[parent_frame.index()] as usize;
            if let Some(neighbors) = neighbors_of.get_mut(&callee) {
                let sum = neighbors.entry((Side::Caller, hashes[caller])).or_default();
                *sum = sum.saturating_add(weight);
            }
            if let Some(neighbors) = neighbors_of.get_mut(&caller) {
                let sum = neighbors.entry((Side::Callee, hashes[callee])).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        neighbors_of
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

    /// Builds a profile of JIT functions from stacks (names separated by `|`, outermost first) and their weights.
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

    /// The names of the functions in `before` after it was aligned with `after`.
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
        // In JDK 21, these names contain addresses instead of numbers. Callees tell the lambdas apart, even if they
        // were created in another order.
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
        // Two functions have the same name and file. One of them moved to the line where the other one used to be.
        let before = [("JS:* /a.js:10:1", 1), ("JS:* /a.js:20:1", 1)];
        let after = [("JS:* /a.js:20:1", 1), ("JS:* /a.js:30:1", 1)];
        assert_eq!(aligned(&before, &after, false), ["JS:* /a.js:20:1", "JS:* /a.js:30:1"]);
        // A third one was added above, between or below them, and moved those below it.
        let old = [("JS:* /a.js:4:1", 1), ("JS:* /a.js:10:1", 1)];
        for (lines, first, second) in
            [(&[2, 5, 11][..], 5, 11), (&[4, 7, 13], 4, 13), (&[4, 10, 17], 4, 10), (&[1, 2, 24, 30], 24, 30)]
        {
            let new: Vec<String> = lines.iter().map(|line| format!("JS:* /b/a.js:{line}:1")).collect();
            let new: Vec<(&str, u64)> = new.iter().map(|name| (&**name, 1)).collect();
            let expected = [first, second].map(|line| format!("JS:* /b/a.js:{line}:1"));
            assert_eq!(aligned(&old, &new, false), expected, "{lines:?}");
            // One of them was removed.
            let kept = aligned(&new, &old, false);
            let partners =
                new.iter().zip(&kept).filter(|((name, _), partner)| name != partner).map(|((name, _), _)| *name);
            assert_eq!(partners.collect::<Vec<_>>(), expected, "{lines:?}");
        }
        // Callees count more than lines.
        let before = [("JS:* /a.js:4:1|f", 8), ("JS:* /a.js:10:1|g", 8), ("JS:* /a.js:4:1", 1), ("JS:* /a.js:10:1", 1)];
        let after = [("JS:* /a.js:2:1|f", 8), ("JS:* /a.js:5:1", 8), ("JS:* /a.js:11:1|g", 8), ("JS:* /a.js:2:1", 1)];
        assert_eq!(aligned(&before, &after, false)[2..], ["JS:* /a.js:2:1", "JS:* /a.js:11:1"]);
        // Two functions have the same name, in two files.
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
            pair(&Functions::collect(&before), &Functions::collect(&after), true)
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
