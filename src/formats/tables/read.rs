//! The table → stacks: what was exported, or what an engine made of it, as long as the columns have their names.
//!
//! `functions` must be there. Where `weight` or `count` is not, each row weighs, and counts, 1; all other columns add
//! what they tell.

use super::cells::{TextCells, numbers};
use super::schema::{VERSION, VERSION_KEY};
use super::writer::{HOST_KEY, NAMES_KEY, PERF_NAMES};
use crate::error::{Error, Result};
use crate::formats::options::ReadOptions;
use crate::model::category::Category;
use crate::model::label;
use crate::model::process::BuildId;
use crate::model::stacks::{Frame, FrameKind, NameId, Profile, Row, StackId, Track, TrackId, UNKNOWN, Unit};
use crate::model::tier::Tier;
use crate::model::{Nanos, Pid, Tid};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::{DataType, Schema};

/// The columns that are read.
pub(super) const COLUMNS: &[&str] = &[
    "host",
    "arch",
    "kernel",
    "command",
    "event",
    "unit",
    "comm",
    "pid",
    "tid",
    "cpu",
    "time",
    "time_ns",
    "weight",
    "count",
    "functions",
    "modules",
    "build_ids",
    "files",
    "lines",
    "kinds",
    "tiers",
    "addresses",
];

/// A table that becomes stacks, batch by batch.
#[derive(Debug)]
pub(super) struct TableReader {
    profile: Profile,
}

impl TableReader {
    /// For a table of these columns.
    pub(super) fn new(schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let said = |key: &str| schema.metadata().get(key).map(String::as_str);
        if let Some(version) = said(VERSION_KEY).filter(|version| *version != VERSION) {
            let message = format!("is a table of version {version}; this jitgraft reads version {VERSION}");
            return Err(Error::new(message));
        }
        if schema.column_with_name("functions").is_none() {
            let remedy = "jitgraft export --to parquet writes it; docs/sql.md tells the columns".to_owned();
            return Err(Error::new("is a table without a column called functions").with_remedy(Some(remedy)));
        }
        let mut profile = Profile::keeping(options.keep);
        profile.perf_names = said(NAMES_KEY) == Some(PERF_NAMES);
        profile.about.host = said(HOST_KEY).map(|host| host.as_bytes().to_vec());
        Ok(Self { profile })
    }

    /// Takes the rows of a batch.
    pub(super) fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = BatchColumns::new(batch, &mut self.profile)?;
        self.about(batch)?;
        let (mut before, mut stack) = (None, None);
        for row in 0..batch.num_rows() {
            // Rows of one stack stand side by side.
            if before.is_none_or(|before| !columns.frames.same(before, row)) {
                stack = columns.frames.stack(row, &mut self.profile);
            }
            before = Some(row);
            self.row(&columns, row, stack);
        }
        Ok(())
    }

    fn row(&mut self, columns: &BatchColumns, row: usize, stack: Option<StackId>) {
        let profile = &mut self.profile;
        let event = columns.event.at(row).unwrap_or("samples");
        let unit = match columns.unit.at(row) {
            Some("samples") | None => Unit::Samples,
            Some("nanoseconds") => Unit::Nanos,
            Some(name) => Unit::Named(name.to_owned()),
        };
        let series = profile.series_named(event, unit);
        let number = |column: &Numbers| column.at(row).and_then(|number| i32::try_from(number).ok());
        let track: TrackId = profile.track(Track {
            comm: columns.comm.at(row).unwrap_or_default().as_bytes().to_vec(),
            pid: number(&columns.pid).map(Pid),
            tid: number(&columns.tid).map(Tid),
            cpu: number(&columns.cpu).and_then(|cpu| u32::try_from(cpu).ok()),
        });
        let amount = |column: &Numbers| column.at(row).and_then(|number| u64::try_from(number).ok());
        let time = amount(&columns.time_ns).map(Nanos);
        let count = if columns.count.is_there() { amount(&columns.count).unwrap_or(0) } else { 1 };
        let weight = if columns.weight.is_there() { amount(&columns.weight).unwrap_or(0) } else { count };
        profile.push(series, Row { track, stack, weight, count, time });
    }

    /// Takes over what the first row tells of its recording.
    fn about(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let first = batch.slice(0, 1);
        let text = |name: &str| Ok::<_, Error>(Texts::of(&first, name)?.at(0).map(|text| text.as_bytes().to_vec()));
        let number = |name: &str| Ok::<_, Error>(Numbers::of(&first, name)?.at(0));
        let about = &mut self.profile.about;
        about.host = about.host.take().or(text("host")?);
        about.arch = about.arch.take().or(text("arch")?);
        about.os_release = about.os_release.take().or(text("kernel")?);
        if about.command.is_empty() {
            let command = text("command")?.unwrap_or_default();
            let words = command.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            about.command = words.map(<[u8]>::to_vec).collect();
        }
        let wall = moment(&first);
        let epoch = wall.zip(number("time_ns")?).map(|(wall, own)| i128::from(wall) * 1000 - i128::from(own));
        about.epoch = about.epoch.or(epoch);
        Ok(())
    }

    /// All that was read.
    pub(super) fn finish(self) -> Profile {
        self.profile
    }
}

/// The wall clock's microseconds of the first row.
fn moment(batch: &RecordBatch) -> Option<i64> {
    let column = batch.column_by_name("time")?;
    let column = column.as_primitive_opt::<arrow_array::types::TimestampMicrosecondType>()?;
    column.iter().next().flatten()
}

/// A column of texts, or none.
#[derive(Debug)]
struct Texts(Option<TextCells>);

impl Texts {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(None)) };
        TextCells::of(column).map(|cells| Self(Some(cells))).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    fn at(&self, row: usize) -> Option<&str> {
        let cells = self.0.as_ref()?;
        let number = cells.numbers.get(row).copied().flatten()?;
        std::str::from_utf8(&cells.texts[number as usize]).ok()
    }
}

/// A column of numbers, or none.
#[derive(Debug)]
struct Numbers(Option<Vec<Option<i64>>>);

impl Numbers {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(None)) };
        numbers(column).map(|cells| Self(Some(cells))).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    fn is_there(&self) -> bool {
        self.0.is_some()
    }

    fn at(&self, row: usize) -> Option<i64> {
        self.0.as_ref()?.get(row).copied().flatten()
    }
}

fn wrong_type(name: &str, of: &DataType) -> Error {
    Error::new(format!("column {name} is of type {of}: docs/sql.md tells what it should be"))
}

/// The columns of a batch.
#[derive(Debug)]
struct BatchColumns {
    event: Texts,
    unit: Texts,
    comm: Texts,
    pid: Numbers,
    tid: Numbers,
    cpu: Numbers,
    time_ns: Numbers,
    weight: Numbers,
    count: Numbers,
    frames: Frames,
}

impl BatchColumns {
    fn new(batch: &RecordBatch, profile: &mut Profile) -> Result<Self> {
        Ok(Self {
            event: Texts::of(batch, "event")?,
            unit: Texts::of(batch, "unit")?,
            comm: Texts::of(batch, "comm")?,
            pid: Numbers::of(batch, "pid")?,
            tid: Numbers::of(batch, "tid")?,
            cpu: Numbers::of(batch, "cpu")?,
            time_ns: Numbers::of(batch, "time_ns")?,
            weight: Numbers::of(batch, "weight")?,
            count: Numbers::of(batch, "count")?,
            frames: Frames::new(batch, profile)?,
        })
    }
}

/// What is known of the frames of all stacks of a batch, list by list.
#[derive(Debug)]
struct Frames {
    functions: NameLists,
    modules: NameLists,
    files: NameLists,
    build_ids: TextLists,
    kinds: TextLists,
    tiers: TextLists,
    lines: NumberLists,
    addresses: NumberLists,
}

impl Frames {
    fn new(batch: &RecordBatch, profile: &mut Profile) -> Result<Self> {
        Ok(Self {
            functions: NameLists::of(batch, "functions", profile)?,
            modules: NameLists::of(batch, "modules", profile)?,
            files: NameLists::of(batch, "files", profile)?,
            build_ids: TextLists::of(batch, "build_ids")?,
            kinds: TextLists::of(batch, "kinds")?,
            tiers: TextLists::of(batch, "tiers")?,
            lines: NumberLists::of(batch, "lines")?,
            addresses: NumberLists::of(batch, "addresses")?,
        })
    }

    /// Whether two rows have one stack.
    fn same(&self, one: usize, other: usize) -> bool {
        self.functions.list.same(one, other)
            && self.addresses.list.same(one, other)
            && self.lines.list.same(one, other)
            && self.modules.list.same(one, other)
            && self.files.list.same(one, other)
            && self.build_ids.list.same(one, other)
            && self.kinds.list.same(one, other)
            && self.tiers.list.same(one, other)
    }

    fn stack(&self, row: usize, profile: &mut Profile) -> Option<StackId> {
        let mut stack = None;
        for at in 0..self.functions.list.len(row) {
            let frame = self.frame(row, at, profile);
            let frame = profile.frame(frame);
            stack = Some(profile.stack(stack, frame));
        }
        stack
    }

    fn frame(&self, row: usize, at: usize, profile: &mut Profile) -> Frame {
        let module = self.modules.at(row, at);
        let name = self.functions.at(row, at).map_or(UNKNOWN, |name| profile.name_of(name)).to_vec();
        // What has no name is called after its module there, as everywhere.
        let unnamed = label::called(UNKNOWN, module.map(|module| profile.name_of(module)));
        let name = if name == unnamed.as_bytes() { profile.name(UNKNOWN) } else { profile.name(&name) };
        if let (Some(module), Some(id)) = (module, self.build_ids.at(row, at).and_then(build_id)) {
            let module = profile.name_of(module).to_vec();
            profile.about.modules.entry(module).or_default().build_id.get_or_insert(id);
        }
        let number = |list: &NumberLists| list.at(row, at);
        let line = number(&self.lines).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let kind = self.kinds.at(row, at).map_or(FrameKind::User, kind);
        let tier = self.tiers.at(row, at).and_then(tier);
        let (file, addr) = (self.files.at(row, at), number(&self.addresses).map(i64::cast_unsigned));
        Frame { module, file, line, addr, tier, ..Frame::new(name, kind) }
    }
}

/// A column of lists, none of which is told, or all of which have the length of their row's stack.
#[derive(Debug)]
struct Lists {
    ends: Vec<usize>,
    /// Of each cell of all lists, what tells it from others of the column.
    keys: Vec<i64>,
}

impl Lists {
    fn none() -> Self {
        Self { ends: Vec::new(), keys: Vec::new() }
    }

    fn of(list: &ListArray, keys: Vec<i64>) -> Self {
        let offsets = list.value_offsets();
        let first = offsets.first().copied().unwrap_or(0);
        let end = |at: usize| usize::try_from(offsets[at] - first).unwrap_or(0);
        Self { ends: (0..offsets.len()).map(end).collect(), keys }
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match (self.ends.get(row), self.ends.get(row + 1)) {
            (Some(&start), Some(&end)) => start..end,
            _ => 0..0,
        }
    }

    fn len(&self, row: usize) -> usize {
        self.range(row).len()
    }

    fn place(&self, row: usize, at: usize) -> Option<usize> {
        let range = self.range(row);
        (at < range.len()).then_some(range.start + at)
    }

    fn same(&self, one: usize, other: usize) -> bool {
        self.keys.get(self.range(one)) == self.keys.get(self.range(other))
    }
}

/// The values of all lists of a column, if it is there.
fn lists<'b>(batch: &'b RecordBatch, name: &str) -> Result<Option<(&'b ListArray, ArrayRef)>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let list = column.as_list_opt::<i32>().ok_or_else(|| wrong_type(name, column.data_type()))?;
    let (first, last) = (list.value_offsets().first().copied(), list.value_offsets().last().copied());
    let place = |offset: Option<i32>| usize::try_from(offset.unwrap_or(0)).unwrap_or(0);
    let (first, last) = (place(first), place(last));
    Ok(Some((list, list.values().slice(first, last - first))))
}

const NONE: i64 = i64::MIN;

#[derive(Debug)]
struct TextLists {
    list: Lists,
    texts: Vec<Box<[u8]>>,
}

impl TextLists {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        let Some((list, values)) = lists(batch, name)? else {
            return Ok(Self { list: Lists::none(), texts: Vec::new() });
        };
        let cells = TextCells::of(&values).ok_or_else(|| wrong_type(name, values.data_type()))?;
        let keys = cells.numbers.iter().map(|number| number.map_or(NONE, i64::from)).collect();
        Ok(Self { list: Lists::of(list, keys), texts: cells.texts })
    }

    fn number(&self, row: usize, at: usize) -> Option<usize> {
        usize::try_from(self.list.keys[self.list.place(row, at)?]).ok()
    }

    fn at(&self, row: usize, at: usize) -> Option<&str> {
        std::str::from_utf8(&self.texts[self.number(row, at)?]).ok()
    }
}

/// Texts that are names of the profile.
#[derive(Debug)]
struct NameLists {
    list: Lists,
}

impl NameLists {
    fn of(batch: &RecordBatch, name: &str, profile: &mut Profile) -> Result<Self> {
        let TextLists { mut list, texts } = TextLists::of(batch, name)?;
        let names: Vec<NameId> = texts.iter().map(|text| profile.name(text)).collect();
        // Texts that are not told once each are one name all the same.
        let of = |key: &i64| usize::try_from(*key).ok().map_or(NONE, |key| i64::from(names[key].0));
        list.keys = list.keys.iter().map(of).collect();
        Ok(Self { list })
    }

    fn at(&self, row: usize, at: usize) -> Option<NameId> {
        let key = self.list.keys[self.list.place(row, at)?];
        u32::try_from(key).ok().map(NameId)
    }
}

#[derive(Debug)]
struct NumberLists {
    list: Lists,
}

impl NumberLists {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        let Some((list, values)) = lists(batch, name)? else { return Ok(Self { list: Lists::none() }) };
        let cells = numbers(&values).ok_or_else(|| wrong_type(name, values.data_type()))?;
        let keys = cells.into_iter().map(|number| number.unwrap_or(NONE)).collect();
        Ok(Self { list: Lists::of(list, keys) })
    }

    fn at(&self, row: usize, at: usize) -> Option<i64> {
        Some(self.list.keys[self.list.place(row, at)?]).filter(|number| *number != NONE)
    }
}

fn kind(word: &str) -> FrameKind {
    let is = |category: Category| category.name() == word;
    match word {
        _ if is(Category::Kernel) => FrameKind::Kernel,
        _ if is(Category::Inlined) => FrameKind::Inlined,
        _ if is(Category::Jit(None)) => FrameKind::Jit,
        _ if is(Category::Unknown) => FrameKind::Unknown,
        _ => FrameKind::User,
    }
}

fn tier(word: &str) -> Option<Tier> {
    let tiers = Category::ALL.iter().filter_map(|category| match category {
        Category::Jit(tier) => *tier,
        _ => None,
    });
    tiers.into_iter().find(|tier| tier.name() == word)
}

fn build_id(text: &str) -> Option<BuildId> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8);
    BuildId::new(&text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?)
}
