//! Self and total weights of groups.

use super::keys::{Grouping, Value, line};
use super::walk::{Step, Sum, Walk};
use crate::analysis::category::Category;
use crate::model::stacks::{FrameId, NameId, Profile, Row, Series, Weight};
use rustc_hash::FxHashMap;

/// A group of samples with its self and total weight.
#[derive(Debug, Clone)]
pub struct Group {
    /// The ID of the group's track part: its values of the keys that depend on the track (thread). [`Group::values`]
    /// looks up all values.
    pub(super) track: u32,
    /// The ID of the group's frame part: its values of the keys that depend on the frame. `None` if there are no such
    /// keys.
    pub frame: Option<u32>,
    /// Self weight.
    pub own: Sum,
    /// Total weight.
    pub total: Sum,
    /// The group's self weight by category of code.
    pub categories: CategoryShares,
    /// The source location (file, line) with most of the self weight or, without self weight, that of the first frame.
    /// `None` if no frame has a known location.
    pub place: Option<(NameId, u32)>,
}

/// Self weight by category of code. Nearly all groups have only one category, which is stored without allocating.
#[derive(Debug, Clone, Default)]
pub struct CategoryShares {
    /// The first category seen, with its weight.
    first: Option<(Category, u64)>,
    others: Vec<(Category, u64)>,
}

/// Self weight by source location (file, line). Many functions have only one location.
#[derive(Debug, Default)]
struct LineShares {
    /// The first location seen, with its weight. The weight is `None` as long as no sample's innermost frame was at
    /// this location.
    first: Option<((NameId, u32), Option<u64>)>,
    /// The weights of further locations.
    others: Option<Box<FxHashMap<(NameId, u32), u64>>>,
}

/// A [`Group`] while being built.
#[derive(Debug, Default)]
struct GatheredGroup {
    own: Sum,
    total: Sum,
    categories: CategoryShares,
    lines: LineShares,
    /// How many frames of the stack being added belong to this group. If it is more than one (recursion), the stack
    /// still counts once for the total weight.
    open: u32,
}

impl Group {
    /// A group for a single function whose weights are known already, from a call graph. There are no numbers of
    /// samples, so the weights take their place.
    pub fn of_function(profile: &Profile, grouping: &Grouping, function: FrameId, own: i64, total: i64) -> Self {
        let frame = profile.frame_of(function);
        let [own, total] = [own, total].map(|weight| Sum { weight, count: weight.unsigned_abs() });
        let mut categories = CategoryShares::default();
        let category = Category::for_table(frame, grouping.categories_known());
        categories.add(category, own.weight.unsigned_abs());
        let place = profile.definition_of(frame);
        Self { track: 0, frame: Some(grouping.frame_part_ids()[function.index()]), own, total, categories, place }
    }

    /// The group's values of the grouping's keys, one per key.
    pub fn values<'g>(&self, grouping: &'g Grouping) -> impl DoubleEndedIterator<Item = &'g Value> {
        grouping.values(self.track, self.frame)
    }

    /// The source location with most of the self weight as `file:line`; `None` if unknown.
    pub fn source(&self, profile: &Profile) -> Option<String> {
        self.place.map(|(file, at)| line(String::from_utf8_lossy(profile.name_of(file)), at))
    }
}

impl CategoryShares {
    /// Adds self weight to a category.
    fn add(&mut self, category: Category, weight: u64) {
        let first = self.first.get_or_insert((category, 0));
        match std::iter::once(first).chain(&mut self.others).find(|(known, _)| *known == category) {
            Some((_, sum)) => *sum = sum.saturating_add(weight),
            None => self.others.push((category, weight)),
        }
    }

    /// Sorts by weight, heaviest first. Equal weights keep their order.
    fn sorted(mut self) -> Self {
        if !self.others.is_empty() {
            // Put the category in `first` in front of those in `others`, sort all, and take the heaviest out again.
            self.others.splice(0..0, self.first);
            self.others.sort_by_key(|&(_, weight)| std::cmp::Reverse(weight));
            self.first = Some(self.others.remove(0));
        }
        self
    }

    /// All categories, heaviest first.
    pub fn iter(&self) -> impl Iterator<Item = (Category, u64)> + Clone + '_ {
        self.first.iter().chain(&self.others).copied()
    }
}

impl LineShares {
    /// Adds the self weight of a frame to its source location (`place`: file and line).
    fn add(&mut self, place: (NameId, u32), own: Sum) {
        // The first location is remembered even without self weight, for groups that have no self weight at all.
        let (first_place, first_weight) = self.first.get_or_insert((place, None));
        if own.is_zero() {
            return;
        }
        let weight = own.weight.unsigned_abs();
        if *first_place == place {
            *first_weight = Some(first_weight.unwrap_or(0).saturating_add(weight));
        } else {
            let sum = self.others.get_or_insert_default().entry(place).or_default();
            *sum = sum.saturating_add(weight);
        }
    }

    /// The location with the most weight; `None` if there are no locations. If several have the same weight, takes the
    /// one whose file was interned first and, of those in that file, the one with the lowest line.
    fn heaviest(self) -> Option<(NameId, u32)> {
        let others = self.others.into_iter().flat_map(|lines| lines.into_iter());
        let all = self.first.into_iter().chain(others.map(|(place, weight)| (place, Some(weight))));
        all.max_by_key(|&(place, weight)| (weight, std::cmp::Reverse(place))).map(|(place, _)| place)
    }
}

/// All groups of an event that have samples, in order of appearance. A group is identified by two IDs. Its track part
/// stands for the values of the keys that depend on the track (thread), such as the process. Its frame part stands for
/// the values of the keys that depend on the frame, such as the function.
pub fn groups(profile: &Profile, series: &Series, weight: Weight, grouping: &Grouping) -> Vec<Group> {
    // The rows of each track part, indexed by its ID.
    let mut rows: Vec<Vec<WeighedRow<'_>>> = vec![Vec::new(); grouping.track_parts()];
    for (row, weight) in series.signed_rows(weight) {
        let sum = Sum { weight, count: row.count };
        rows[grouping.track_part_ids()[row.track.index()] as usize].push(WeighedRow { row, sum });
    }
    let mut walk = Walk::new(profile);
    let mut groups = Vec::new();
    for (track, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        let track = track as u32;
        if grouping.is_of_tracks_only() {
            let group = sum_track(track, rows);
            if !group.total.is_zero() {
                groups.push(group);
            }
        } else {
            let gathered_groups = sum_frames(profile, &mut walk, rows, grouping);
            // Both lists are in memory here. Growing this one step by step would take half as much again for a moment.
            groups.reserve(gathered_groups.len());
            for (part, gathered) in gathered_groups {
                let GatheredGroup { own, total, categories, lines, .. } = gathered;
                if !total.is_zero() {
                    groups.push(Group {
                        track,
                        frame: Some(part),
                        own,
                        total,
                        categories: categories.sorted(),
                        place: lines.heaviest(),
                    });
                }
            }
        }
    }
    groups
}

/// A row of the profile with its weight and sample count.
#[derive(Clone, Copy)]
struct WeighedRow<'r> {
    row: &'r Row,
    sum: Sum,
}

/// Sums all rows of a track part into one group, including samples without a stack. `track` is the part's ID.
fn sum_track(track: u32, rows: &[WeighedRow<'_>]) -> Group {
    let mut sum = Sum::default();
    rows.iter().for_each(|row| sum += row.sum);
    Group { track, frame: None, own: sum, total: sum, categories: CategoryShares::default(), place: None }
}

/// Sums the rows by frame part: frames with the same values of the grouping's keys have the same part and so belong to
/// the same group. A row counts once for the total of a group, even if several frames of its stack belong to the group.
/// Returns the groups in the order in which the walk first enters them, each with the ID of its frame part.
fn sum_frames(
    profile: &Profile,
    walk: &mut Walk<'_>,
    rows: &[WeighedRow<'_>],
    grouping: &Grouping,
) -> Vec<(u32, GatheredGroup)> {
    for WeighedRow { row, sum } in rows {
        if let Some(stack) = row.stack {
            walk.add(stack, *sum);
        }
    }
    // For each frame part, the index of its group; `u32::MAX` if it has none yet.
    let mut indices: Vec<u32> = vec![u32::MAX; grouping.frame_parts()];
    let mut groups: Vec<(u32, GatheredGroup)> = Vec::new();
    // The walk enters each stack after its callers, and leaves it after its callees.
    walk.run(|walk, step| {
        let (Step::Enter(stack) | Step::Leave(stack)) = step;
        let (_, frame) = profile.stack_of(stack);
        let part = grouping.frame_part_ids()[frame.index()];
        let index = &mut indices[part as usize];
        if *index == u32::MAX {
            *index = groups.len() as u32;
            groups.push((part, GatheredGroup::default()));
        }
        let (_, gathered) = &mut groups[*index as usize];
        if step == Step::Leave(stack) {
            // `open` is the number of the group's frames on the current path. `enter` has counted this frame.
            gathered.open -= 1;
        } else {
            let (own, total) = walk.sums(stack);
            gathered.enter(profile, frame, grouping.categories_known(), own, total);
        }
    });
    groups
}

impl GatheredGroup {
    /// Counts a frame of the group, which the walk has just entered. `total` only counts if no frame of the group is
    /// among the frame's callers.
    fn enter(&mut self, profile: &Profile, frame: FrameId, categories_known: bool, own: Sum, total: Sum) {
        if self.open == 0 {
            self.total += total;
        }
        self.open += 1;
        self.own += own;
        let frame = profile.frame_of(frame);
        self.categories.add(Category::for_table(frame, categories_known), own.weight.unsigned_abs());
        if let Some(place) = profile.definition_of(frame) {
            self.lines.add(place, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::groups::{Key, Unnamed};
    use crate::model::stacks::{Frame, FrameKind, Track, UNKNOWN, Unit};
    use crate::model::{Pid, Tid};

    const FUNCTIONS: &[Key] = &[Key::Module, Key::Function];

    /// A thread, its stack as pairs of function and line, and the weight.
    type Stack<'a> = (&'a str, &'a [(&'a str, u32)], u64);

    fn profile(stacks: &[Stack<'_>]) -> Profile {
        let mut profile = Profile::new();
        let file = profile.name(b"x.c");
        for &(comm, lines, weight) in stacks {
            let track = Track { comm: comm.into(), pid: Some(Pid(7)), tid: Some(Tid(8)), ..Track::default() };
            let track = profile.track(track);
            let mut stack = None;
            for &(name, line) in lines {
                let name = profile.name(name.as_bytes());
                let frame = Frame { file: Some(file), line, ..Frame::new(name, FrameKind::User) };
                let frame = profile.frame(frame);
                stack = Some(profile.stack(stack, frame));
            }
            let series = profile.series_named("cycles", Unit::Samples);
            profile.push(series, Row { track, stack, weight, count: 1, time: None });
        }
        profile
    }

    /// The groups and the values of their keys.
    fn grouped(profile: &Profile, keys: &[Key]) -> Vec<(Vec<Value>, Group)> {
        let grouping = Grouping::new(profile, keys, Unnamed::ByModule);
        let found = groups(profile, &profile.series[0], Weight::Period, &grouping);
        found.into_iter().map(|group| (group.values(&grouping).cloned().collect(), group)).collect()
    }

    #[test]
    fn recursion_counts_once_and_the_heaviest_line_is_reported() {
        let profile = profile(&[
            ("", &[("main", 1), ("f", 2), ("f", 3)], 10),
            ("", &[("main", 1), ("f", 4)], 30),
            ("", &[("main", 5)], 1),
            ("", &[("main", 1), ("f", 2), ("g", 6), ("f", 4)], 100),
        ]);
        let found = grouped(&profile, FUNCTIONS);
        let seen: Vec<_> = found
            .iter()
            .map(|(values, f)| {
                (values[1].text(), f.own.weight, f.total.weight, f.total.count, f.source(&profile).unwrap())
            })
            .collect();
        let source = |line: &str| format!("x.c:{line}");
        let expected =
            [("main", 1, 141, 4, source("5")), ("f", 140, 140, 3, source("4")), ("g", 0, 100, 1, source("6"))];
        assert_eq!(seen, expected);
    }

    #[test]
    fn threads_and_functions_make_groups_of_both() {
        let profile =
            profile(&[("a", &[("f", 1)], 1), ("b", &[("f", 1), ("g", 2)], 2), ("a", &[("g", 1)], 4), ("b", &[], 8)]);
        let text = |(values, group): &(Vec<Value>, Group)| {
            let values: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
            format!("{} {}/{}", values.join(" "), group.own.weight, group.total.weight)
        };
        let seen: Vec<_> = grouped(&profile, &[Key::Function, Key::Comm]).iter().map(text).collect();
        assert_eq!(
            seen,
            [
                r#"Text("f") Text("a") 1/1"#,
                r#"Text("g") Text("a") 4/4"#,
                r#"Text("f") Text("b") 0/2"#,
                r#"Text("g") Text("b") 2/2"#
            ]
        );
        let seen: Vec<_> = grouped(&profile, &[Key::Comm]).iter().map(text).collect();
        assert_eq!(seen, [r#"Text("a") 5/5"#, r#"Text("b") 10/10"#]);
        let seen: Vec<_> = grouped(&profile, &[Key::Pid, Key::Tid]).iter().map(text).collect();
        assert_eq!(seen, ["Number(7) Number(8) 15/15"]);
        let seen: Vec<_> = grouped(&profile, &[Key::Line]).iter().map(text).collect();
        assert_eq!(seen, [r#"Text("x.c:1") 5/7"#, r#"Text("x.c:2") 2/2"#]);
    }

    #[test]
    fn unnamed_code_is_one_by_module_or_each_by_its_address() {
        let mut profile = Profile::new();
        let (name, module) = (profile.name(UNKNOWN), profile.name(b"/lib/libc.so.6"));
        let track = profile.track(Track::default());
        let series = profile.series_named("cycles", Unit::Samples);
        for addr in [0x10, 0x20] {
            let unnamed = Frame::new(name, FrameKind::User);
            let frame = profile.frame(Frame { addr: Some(addr), module: Some(module), ..unnamed });
            let stack = Some(profile.stack(None, frame));
            profile.push(series, Row { track, stack, weight: addr, count: 1, time: None });
        }
        let seen = |unnamed| -> Vec<(String, i64)> {
            let grouping = Grouping::new(&profile, &[Key::Function], unnamed);
            let found = groups(&profile, &profile.series[0], Weight::Period, &grouping);
            let name = |group: &Group| group.values(&grouping).map(|value| value.text().to_owned()).collect();
            found.iter().map(|group| (name(group), group.own.weight)).collect()
        };
        assert_eq!(seen(Unnamed::ByModule), [("[libc.so.6]".to_owned(), 0x30)]);
        assert_eq!(seen(Unnamed::ByAddress), [("0x10".to_owned(), 0x10), ("0x20".to_owned(), 0x20)]);
    }

    #[test]
    fn a_function_is_of_the_sort_that_most_of_it_is() {
        let mut profile = Profile::new();
        let name = profile.name(b"f");
        let track = profile.track(Track::default());
        let series = profile.series_named("cycles", Unit::Samples);
        for (kind, weight) in [(FrameKind::User, 1), (FrameKind::Inlined, 9)] {
            let frame = profile.frame(Frame::new(name, kind));
            let stack = Some(profile.stack(None, frame));
            profile.push(series, Row { track, stack, weight, count: 1, time: None });
        }
        let found = grouped(&profile, FUNCTIONS);
        let shares: Vec<_> = found[0].1.categories.iter().collect();
        assert_eq!(shares, [(Category::Inlined, 9), (Category::Native, 1)]);
    }

    /// A regression test: visiting all callers again for each stack took quadratic time.
    #[test]
    fn deep_stacks_are_gone_through_once() {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let series = profile.series_named("cycles", Unit::Samples);
        let mut stack = None;
        let depth = 50_000u32;
        for level in 0..depth {
            let name = profile.name(format!("f{}", level % 1000).as_bytes());
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            stack = Some(profile.stack(stack, frame));
            profile.push(series, Row { track, stack, weight: 1, count: 1, time: None });
        }
        let mut steps = 0;
        let mut walk = Walk::new(&profile);
        profile.series[series].rows.iter().for_each(|row| walk.add(row.stack.unwrap(), Sum { weight: 1, count: 1 }));
        walk.run(|_, _| steps += 1);
        assert_eq!(steps, 2 * depth);
        let found = grouped(&profile, FUNCTIONS);
        assert_eq!((found.len(), found[999].1.total.weight), (1000, i64::from(depth) - 999));
    }
}
