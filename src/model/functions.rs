//! The hottest functions of a profile: self and total weights by function and module.
//!
//! A stack in which a function occurs more than once (recursion) counts once towards its total.

use super::label;
use super::stacks::{FrameKind, NameId, Profile, Series, StackId, Weight};
use rustc_hash::FxHashMap;

/// One function with its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// What it is called; an address where no name is known.
    pub name: String,
    /// Its module.
    pub module: Option<NameId>,
    /// What sort of code it is.
    pub kind: FrameKind,
    /// Where its heaviest own line is, or, without own weight, its first one seen.
    pub source: Option<(NameId, u32)>,
    /// Weight of the stacks that end in it.
    pub own: u64,
    /// Weight of the stacks that it occurs in.
    pub total: u64,
    /// How many samples end in it.
    pub own_count: u64,
    /// How many samples it occurs in.
    pub total_count: u64,
}

/// All functions of one event, in the order in which they appear.
pub fn functions(profile: &Profile, series: &Series, weight: Weight) -> Vec<Function> {
    let (mut functions, of_frame) = group(profile);
    let mut own_lines: FxHashMap<(u32, NameId, u32), u64> = FxHashMap::default();
    // Sums by stack first: there are fewer of them than samples.
    let mut sums: Vec<(StackId, u64, u64)> = Vec::new();
    let mut places: FxHashMap<StackId, usize> = FxHashMap::default();
    for row in &series.rows {
        let Some(stack) = row.stack else { continue };
        let at = *places.entry(stack).or_insert(sums.len());
        if at == sums.len() {
            sums.push((stack, 0, 0));
        }
        sums[at].1 = sums[at].1.saturating_add(weight.of(row));
        sums[at].2 += row.count;
    }
    // The last stack in which a function was counted, so that recursion counts once.
    let mut counted = vec![usize::MAX; functions.len()];
    for (number, &(stack, weight, count)) in sums.iter().enumerate() {
        for (depth, frame) in profile.frames_up(Some(stack)).enumerate() {
            let at = of_frame[frame.index()];
            let function = &mut functions[at as usize];
            if depth == 0 {
                function.own = function.own.saturating_add(weight);
                function.own_count += count;
                let frame = profile.frame_of(frame);
                if let Some(file) = frame.file {
                    *own_lines.entry((at, file, frame.line)).or_default() += weight;
                }
            }
            if std::mem::replace(&mut counted[at as usize], number) != number {
                function.total = function.total.saturating_add(weight);
                function.total_count += count;
            }
        }
    }
    let mut heaviest: Vec<_> =
        own_lines.into_iter().map(|((at, file, line), weight)| (weight, at, file, line)).collect();
    heaviest.sort_unstable_by(|a, b| (b.0, a).cmp(&(a.0, b)));
    // Lightest last line written first, so that the heaviest stays.
    for &(_, at, file, line) in heaviest.iter().rev() {
        functions[at as usize].source = Some((file, line));
    }
    functions.retain(|function| function.total_count > 0 || function.total > 0);
    functions
}

/// The functions of all frames, and which one each frame belongs to.
fn group(profile: &Profile) -> (Vec<Function>, Vec<u32>) {
    let mut functions: Vec<Function> = Vec::new();
    let mut places: FxHashMap<(String, Option<NameId>), u32> = FxHashMap::default();
    let mut of_frame = Vec::with_capacity(profile.frame_count());
    for (_, frame) in profile.frames() {
        let name = label::function(profile, frame).into_owned();
        let next = functions.len() as u32;
        let place = *places.entry((name, frame.module)).or_insert_with_key(|(name, module)| {
            let source = frame.file.map(|file| (file, frame.line));
            let (name, module) = (name.clone(), *module);
            let none =
                Function { name, module, kind: frame.kind, source, own: 0, total: 0, own_count: 0, total_count: 0 };
            functions.push(none);
            next
        });
        of_frame.push(place);
    }
    (functions, of_frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Frame, Row, Track, Unit};

    #[test]
    fn recursion_counts_once_and_the_heaviest_line_is_told() {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let file = profile.name(b"x.c");
        let mut push = |lines: &[(&str, u32)], weight| {
            let mut stack = None;
            for &(name, line) in lines {
                let name = profile.name(name.as_bytes());
                let file = Some(file);
                let frame = profile.frame(Frame { file, line, ..Frame::new(name, FrameKind::User) });
                stack = Some(profile.stack(stack, frame));
            }
            let row = Row { track, stack, weight, count: 1, time: None };
            let series = profile.series_named("cycles", Unit::Samples);
            profile.push(series, row);
        };
        push(&[("main", 1), ("f", 2), ("f", 3)], 10);
        push(&[("main", 1), ("f", 4)], 30);
        push(&[("main", 5)], 1);
        let found = functions(&profile, &profile.series[0], Weight::Period);
        let seen: Vec<_> =
            found.iter().map(|f| (&*f.name, f.own, f.total, f.total_count, f.source.unwrap().1)).collect();
        assert_eq!(seen, [("main", 1, 41, 3, 5), ("f", 40, 40, 2, 4)]);
    }
}
