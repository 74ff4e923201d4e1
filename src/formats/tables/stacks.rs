//! The lists of a batch → the stacks of its rows.
//!
//! Each row's lists are of equal length, outermost frame first. Rows of one function that ran stand side by side in what
//! was exported, and share callers: what a row has in common with the one before is not looked at again.

use super::cells::{Meanings, NONE, numbers, wrong_type};
use crate::analysis::category::Category;
use crate::analysis::label;
use crate::analysis::named_frames::kind_of_unnamed;
use crate::error::Result;
use crate::model::process::BuildId;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, NameId, Profile, StackId, UNKNOWN};
use crate::model::tier::Tier;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A function's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FunctionName {
    name: NameId,
    /// True if it is spelled as what has no name is, after its module.
    may_be_unnamed: bool,
}

/// The state that is kept from batch to batch.
#[derive(Debug)]
pub(super) struct StackReader {
    functions: Meanings<Option<FunctionName>>,
    modules: Meanings<Option<NameId>>,
    files: Meanings<Option<NameId>>,
    builds: Meanings<Option<NameId>>,
    kinds: Meanings<FrameKind>,
    tiers: Meanings<Option<Tier>>,
    /// The builds of modules.
    built: FxHashSet<(NameId, NameId)>,
    /// The names of functions that may be unnamed.
    called: FxHashMap<(NameId, Option<NameId>), NameId>,
}

/// The frames of all rows of a batch.
#[derive(Debug)]
pub(super) struct BatchFrames {
    functions: Lists<Option<FunctionName>>,
    modules: Lists<Option<NameId>>,
    files: Lists<Option<NameId>>,
    builds: Lists<Option<NameId>>,
    kinds: Lists<FrameKind>,
    tiers: Lists<Option<Tier>>,
    lines: Lists<i64>,
    addresses: Lists<i64>,
}

/// The stack of the row before.
#[derive(Debug, Default)]
pub(super) struct OpenStack {
    row: Option<usize>,
    /// The stacks up to each of its frames.
    stacks: Vec<StackId>,
}

impl StackReader {
    pub(super) fn new() -> Self {
        Self {
            functions: Meanings::new(None),
            modules: Meanings::new(None),
            files: Meanings::new(None),
            builds: Meanings::new(None),
            kinds: Meanings::new(FrameKind::User),
            tiers: Meanings::new(None),
            built: FxHashSet::default(),
            called: FxHashMap::default(),
        }
    }

    pub(super) fn frames(&mut self, batch: &RecordBatch, profile: &mut Profile) -> Result<BatchFrames> {
        let function = |text: &str| {
            let may_be_unnamed = text.starts_with('[') && text.ends_with(']');
            Some(FunctionName { name: profile.name(text.as_bytes()), may_be_unnamed })
        };
        let functions = Lists::of(batch, "functions", |cells| self.functions.cells(cells, function))?;
        let mut names = |column: &str, meanings: &mut Meanings<Option<NameId>>| {
            let name = |text: &str| Some(profile.name(text.as_bytes()));
            Lists::of(batch, column, |cells| meanings.cells(cells, name))
        };
        Ok(BatchFrames {
            functions,
            modules: names("modules", &mut self.modules)?,
            files: names("files", &mut self.files)?,
            builds: names("build_ids", &mut self.builds)?,
            kinds: Lists::of(batch, "kinds", |cells| self.kinds.cells(cells, kind))?,
            tiers: Lists::of(batch, "tiers", |cells| self.tiers.cells(cells, Tier::named))?,
            lines: Lists::of(batch, "lines", numbers)?,
            addresses: Lists::of(batch, "addresses", numbers)?,
        })
    }

    /// The stack of a row.
    pub(super) fn stack(
        &mut self,
        frames: &BatchFrames,
        row: usize,
        open: &mut OpenStack,
        profile: &mut Profile,
    ) -> Option<StackId> {
        let shared = open.row.map_or(0, |before| frames.shared(before, row)).min(open.stacks.len());
        open.row = Some(row);
        open.stacks.truncate(shared);
        for at in shared..frames.functions.row(row).len() {
            let frame = self.frame(frames, (row, at), profile);
            let frame = profile.frame(frame);
            open.stacks.push(profile.stack(open.stacks.last().copied(), frame));
        }
        open.stacks.last().copied()
    }

    fn frame(&mut self, frames: &BatchFrames, place: (usize, usize), profile: &mut Profile) -> Frame {
        let module = frames.modules.at(place).flatten();
        let name = match frames.functions.at(place).flatten() {
            None => profile.name(UNKNOWN),
            Some(FunctionName { name, may_be_unnamed: false }) => name,
            Some(FunctionName { name, .. }) => self.name(name, module, profile),
        };
        let build = frames.builds.at(place).flatten();
        if let (Some(module), Some(build)) = (module, build)
            && self.built.insert((module, build))
        {
            let (name, id) = (profile.name_of(module).to_vec(), BuildId::from_digits(profile.name_of(build)));
            profile.about.modules.entry(name).or_default().build_id.add(id);
        }
        let number = |list: &Lists<i64>| list.at(place).filter(|number| *number != NONE);
        let line = number(&frames.lines).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let addr = number(&frames.addresses).map(i64::cast_unsigned);
        let kind = match frames.kinds.at(place).unwrap_or(FrameKind::User) {
            // Version 1 had no kinds for code without a name.
            FrameKind::User | FrameKind::Unknown if profile.name_of(name) == UNKNOWN => {
                kind_of_unnamed(module.map_or(&[], |module| profile.name_of(module)))
            }
            kind => kind,
        };
        let (file, tier) = (frames.files.at(place).flatten(), frames.tiers.at(place).flatten());
        let start = FunctionStart { file, ..FunctionStart::default() };
        Frame { module, build, file, line, start, addr, tier, ..Frame::new(name, kind) }
    }

    /// Unnamed functions get their module's name there, as everywhere.
    fn name(&mut self, name: NameId, module: Option<NameId>, profile: &mut Profile) -> NameId {
        *self.called.entry((name, module)).or_insert_with(|| {
            let unnamed = label::called(UNKNOWN, module.map(|module| profile.name_of(module)));
            if profile.name_of(name) == unnamed.as_bytes() { profile.name(UNKNOWN) } else { name }
        })
    }
}

impl BatchFrames {
    /// The number of outermost frames that two rows share.
    fn shared(&self, one: usize, other: usize) -> usize {
        let columns = [
            self.functions.shared(one, other),
            self.modules.shared(one, other),
            self.files.shared(one, other),
            self.builds.shared(one, other),
            self.kinds.shared(one, other),
            self.tiers.shared(one, other),
            self.lines.shared(one, other),
            self.addresses.shared(one, other),
        ];
        columns.into_iter().min().unwrap_or(0).min(self.functions.row(other).len())
    }
}

/// A column of lists, none of which is reported, or all of which have the length of their row's stack.
#[derive(Debug)]
struct Lists<V> {
    ends: Vec<usize>,
    cells: Vec<V>,
}

impl<V: Copy + Eq> Lists<V> {
    fn of(batch: &RecordBatch, name: &str, cells: impl FnOnce(&ArrayRef) -> Option<Vec<V>>) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self { ends: Vec::new(), cells: Vec::new() }) };
        let list = column.as_list_opt::<i32>().ok_or_else(|| wrong_type(name, column.data_type()))?;
        let place = |offset: i32| usize::try_from(offset).unwrap_or(0);
        let offsets = list.value_offsets();
        let (first, last) =
            (offsets.first().map_or(0, |first| place(*first)), offsets.last().map_or(0, |end| place(*end)));
        let values = list.values().slice(first, last - first);
        let cells = cells(&values).ok_or_else(|| wrong_type(name, values.data_type()))?;
        Ok(Self { ends: offsets.iter().map(|end| place(*end) - first).collect(), cells })
    }

    fn range(&self, row: usize) -> Range<usize> {
        match (self.ends.get(row), self.ends.get(row + 1)) {
            (Some(&start), Some(&end)) => start..end,
            _ => 0..0,
        }
    }

    fn row(&self, row: usize) -> &[V] {
        self.cells.get(self.range(row)).unwrap_or_default()
    }

    fn at(&self, (row, at): (usize, usize)) -> Option<V> {
        self.row(row).get(at).copied()
    }

    /// The number of leading cells that two rows share; any number, if they are equal.
    fn shared(&self, one: usize, other: usize) -> usize {
        let (one, other) = (self.row(one), self.row(other));
        let shared = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        if shared == one.len() && shared == other.len() { usize::MAX } else { shared }
    }
}

fn kind(word: &str) -> FrameKind {
    Category::named(word).map_or(FrameKind::User, Category::kind)
}
