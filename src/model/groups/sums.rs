//! Own and total weights of groups.

use super::keys::{Grouping, Value, line};
use super::walk::{Step, Sum, Walk};
use crate::model::category::Category;
use crate::model::stacks::{FrameId, NameId, Profile, Row, Series, Weight};
use rustc_hash::FxHashMap;

/// One group with its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What it is called, by every key.
    pub values: Vec<Value>,
    /// What ends in it.
    pub own: Sum,
    /// What goes through it.
    pub total: Sum,
    /// What sorts of code its frames are, with how much ends in each, most first.
    pub categories: Vec<(Category, u64)>,
    /// File and line where most ends in it, or, if nothing does, of its first frame.
    pub source: Option<String>,
    /// The same, apart.
    pub place: Option<(NameId, u32)>,
}

/// Gathers a [`Group`].
#[derive(Debug, Default)]
struct Gathered {
    own: Sum,
    total: Sum,
    categories: Vec<(Category, u64)>,
    lines: FxHashMap<(NameId, u32), u64>,
    first_line: Option<(NameId, u32)>,
    /// How often it occurs among the callers of where one is.
    open: u32,
}

/// All groups of one event that have samples, in the order in which they appear.
pub fn groups(profile: &Profile, series: &Series, weight: Weight, grouping: &Grouping) -> Vec<Group> {
    let mut rows: Vec<Vec<&Row>> = vec![Vec::new(); grouping.track_parts()];
    for row in &series.rows {
        rows[grouping.of_tracks()[row.track.index()] as usize].push(row);
    }
    let mut walk = Walk::new(profile);
    let mut groups = Vec::new();
    for (track, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        let track = track as u32;
        if grouping.is_of_tracks_only() {
            let values = grouping.values(track, None);
            groups.extend(Some(of_a_track(values, rows, weight)).filter(|group| !group.total.is_zero()));
        } else {
            let of_frames = of_frames(profile, &mut walk, rows, weight, grouping);
            let found = of_frames.into_iter().filter(|(_, found)| !found.total.is_zero());
            groups.extend(found.map(|(part, found)| found.into_group(profile, grouping.values(track, Some(part)))));
        }
    }
    groups
}

fn sum_of(row: &Row, weight: Weight) -> Sum {
    Sum { weight: weight.of(row), count: row.count }
}

/// Samples without a stack belong to it, too.
fn of_a_track(values: Vec<Value>, rows: &[&Row], weight: Weight) -> Group {
    let mut sum = Sum::default();
    rows.iter().for_each(|row| sum += sum_of(row, weight));
    Group { values, own: sum, total: sum, categories: Vec::new(), source: None, place: None }
}

fn of_frames(
    profile: &Profile,
    walk: &mut Walk<'_>,
    rows: &[&Row],
    weight: Weight,
    grouping: &Grouping,
) -> Vec<(u32, Gathered)> {
    for row in rows {
        if let Some(stack) = row.stack {
            walk.add(stack, sum_of(row, weight));
        }
    }
    let mut places: Vec<u32> = vec![u32::MAX; grouping.frame_parts()];
    let mut found: Vec<(u32, Gathered)> = Vec::new();
    walk.run(|walk, step| {
        let (Step::Enter(stack) | Step::Leave(stack)) = step;
        let frame = profile.stack_of(stack).1;
        let part = grouping.of_frames()[frame.index()];
        let place = &mut places[part as usize];
        if *place == u32::MAX {
            *place = found.len() as u32;
            found.push((part, Gathered::default()));
        }
        let gathered = &mut found[*place as usize].1;
        if step == Step::Leave(stack) {
            gathered.open -= 1;
        } else {
            let (own, total) = walk.sums(stack);
            gathered.enter(profile, frame, own, total);
        }
    });
    found
}

impl Gathered {
    fn enter(&mut self, profile: &Profile, frame: FrameId, own: Sum, total: Sum) {
        if self.open == 0 {
            self.total += total;
        }
        self.open += 1;
        self.own += own;
        let frame = profile.frame_of(frame);
        let category = Category::of(frame);
        match self.categories.iter_mut().find(|(known, _)| *known == category) {
            Some((_, sum)) => *sum = sum.saturating_add(own.weight),
            None => self.categories.push((category, own.weight)),
        }
        if let Some(file) = frame.file {
            let place = (file, frame.line);
            self.first_line = self.first_line.or(Some(place));
            if !own.is_zero() {
                let sum = self.lines.entry(place).or_default();
                *sum = sum.saturating_add(own.weight);
            }
        }
    }

    fn into_group(mut self, profile: &Profile, values: Vec<Value>) -> Group {
        self.categories.sort_by_key(|&(_, weight)| std::cmp::Reverse(weight));
        // Of equally heavy lines the one that was named first.
        let heaviest = self.lines.into_iter().max_by_key(|&(place, weight)| (weight, std::cmp::Reverse(place)));
        let place = heaviest.map(|(place, _)| place).or(self.first_line);
        let source = place.map(|(file, at)| line(String::from_utf8_lossy(profile.name_of(file)).into_owned(), at));
        Group { values, own: self.own, total: self.total, categories: self.categories, source, place }
    }
}

/// How much ends in frames of which `is` holds.
pub fn ending_in(profile: &Profile, series: &Series, weight: Weight, is: impl Fn(FrameId) -> bool) -> u64 {
    let counts = |row: &&Row| profile.frames_up(row.stack).next().is_some_and(&is);
    series.rows.iter().filter(counts).fold(0, |sum, row| sum.saturating_add(weight.of(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::groups::{Key, Unnamed};
    use crate::model::stacks::{Frame, FrameKind, Track, UNKNOWN, Unit};
    use crate::model::{Pid, Tid};

    const FUNCTIONS: &[Key] = &[Key::Module, Key::Function];

    /// A thread, functions with their lines, a weight.
    type Stack<'a> = (&'a str, &'a [(&'a str, u32)], u64);

    fn profile(stacks: &[Stack<'_>]) -> Profile {
        let mut profile = Profile::new();
        let file = profile.name(b"x.c");
        for &(comm, lines, weight) in stacks {
            let track = Track { comm: comm.into(), pid: Some(Pid(7)), tid: Some(Tid(8)), cpu: None };
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

    fn grouped(profile: &Profile, keys: &[Key]) -> Vec<Group> {
        let grouping = Grouping::new(profile, keys, Unnamed::ByModule);
        groups(profile, &profile.series[0], Weight::Period, &grouping)
    }

    #[test]
    fn recursion_counts_once_and_the_heaviest_line_is_told() {
        let profile = profile(&[
            ("", &[("main", 1), ("f", 2), ("f", 3)], 10),
            ("", &[("main", 1), ("f", 4)], 30),
            ("", &[("main", 5)], 1),
            ("", &[("main", 1), ("f", 2), ("g", 6), ("f", 4)], 100),
        ]);
        let found = grouped(&profile, FUNCTIONS);
        let seen: Vec<_> = found
            .iter()
            .map(|f| (f.values[1].text(), f.own.weight, f.total.weight, f.total.count, f.source.as_deref().unwrap()))
            .collect();
        assert_eq!(seen, [("main", 1, 141, 4, "x.c:5"), ("f", 140, 140, 3, "x.c:4"), ("g", 0, 100, 1, "x.c:6")]);
    }

    #[test]
    fn threads_and_functions_make_groups_of_both() {
        let profile =
            profile(&[("a", &[("f", 1)], 1), ("b", &[("f", 1), ("g", 2)], 2), ("a", &[("g", 1)], 4), ("b", &[], 8)]);
        let text = |group: &Group| {
            let values: Vec<_> = group.values.iter().map(|value| format!("{value:?}")).collect();
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
    fn what_has_no_name_is_one_by_module_or_each_by_its_address() {
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
        let seen = |unnamed| -> Vec<(String, u64)> {
            let grouping = Grouping::new(&profile, &[Key::Function], unnamed);
            let found = groups(&profile, &profile.series[0], Weight::Period, &grouping);
            found.into_iter().map(|group| (group.values[0].text().to_owned(), group.own.weight)).collect()
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
        assert_eq!(found[0].categories, [(Category::Inlined, 9), (Category::Native, 1)]);
    }

    /// Was quadratic: every stack asked all its callers.
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
        profile.series[series].rows.iter().for_each(|row| walk.add(row.stack.unwrap(), sum_of(row, Weight::Period)));
        walk.run(|_, _| steps += 1);
        assert_eq!(steps, 2 * depth);
        let found = grouped(&profile, FUNCTIONS);
        assert_eq!((found.len(), found[999].total.weight), (1000, u64::from(depth) - 999));
    }
}
