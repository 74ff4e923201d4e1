//! Rows → the arrays of a batch.

use super::input::{FrameCells, RecordingCells, TableInput, TextList, TextNo, TrackCells};
use super::schema;
use crate::contract::rows::clamp;
use crate::error::{Error, Result};
use crate::model::recorded::{Labels, micros};
use crate::model::stacks::{Profile, Row, StackId};
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{ArrowDictionaryKeyType, ArrowPrimitiveType, Int8Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, Date32Array, DictionaryArray, Float64Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use std::sync::Arc;

/// Texts as numbers into a list of those that occur.
#[derive(Debug)]
struct TextColumn<K: ArrowDictionaryKeyType> {
    keys: PrimitiveBuilder<K>,
    /// For each text of the input, its number here, plus one.
    places: Vec<u32>,
    used: Vec<TextNo>,
}

impl<K: ArrowDictionaryKeyType> Default for TextColumn<K> {
    fn default() -> Self {
        Self { keys: PrimitiveBuilder::new(), places: Vec::new(), used: Vec::new() }
    }
}

impl<K: ArrowDictionaryKeyType> TextColumn<K>
where
    K::Native: TryFrom<u32>,
{
    fn push(&mut self, text: Option<TextNo>) {
        let key = text.and_then(|text| K::Native::try_from(self.place(text)).ok());
        self.keys.append_option(key);
    }

    fn place(&mut self, text: TextNo) -> u32 {
        let at = text as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        if self.places[at] == 0 {
            self.used.push(text);
            self.places[at] = self.used.len() as u32;
        }
        self.places[at] - 1
    }

    fn finish(&mut self, texts: &TextList) -> Result<ArrayRef> {
        let values: StringArray = self.used.drain(..).map(|text| Some(&texts.items()[text as usize])).collect();
        self.places.clear();
        let array = DictionaryArray::<K>::try_new(self.keys.finish(), Arc::new(values));
        Ok(Arc::new(array.map_err(wrong_column)?))
    }
}

/// Numbers, as they are.
#[derive(Debug)]
struct NumberColumn<T: ArrowPrimitiveType>(PrimitiveBuilder<T>);

impl<T: ArrowPrimitiveType> Default for NumberColumn<T> {
    fn default() -> Self {
        Self(PrimitiveBuilder::new())
    }
}

impl<T: ArrowPrimitiveType> NumberColumn<T> {
    fn push(&mut self, number: Option<T::Native>) {
        self.0.append_option(number);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// The labels of rows.
#[derive(Debug, Default)]
pub(super) struct LabelColumn {
    keys: Vec<Box<str>>,
    values: Vec<Box<str>>,
    /// The end of each row's values.
    ends: Vec<i32>,
}

impl LabelColumn {
    pub(super) fn push(&mut self, labels: &Labels) {
        for (key, value) in labels.iter().flat_map(|labels| labels.iter()) {
            self.keys.push(key.clone());
            self.values.push(value.clone());
        }
        self.ends.push(self.keys.len() as i32);
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let texts =
            |texts: &mut Vec<Box<str>>| Arc::new(texts.drain(..).map(Some).collect::<StringArray>()) as ArrayRef;
        let entries = vec![texts(&mut self.keys), texts(&mut self.values)];
        let entries = StructArray::try_new(schema::label(), entries, None).map_err(wrong_column)?;
        let map = MapArray::try_new(schema::labels(), offsets(&mut self.ends), entries, None, false);
        Ok(Arc::new(map.map_err(wrong_column)?))
    }
}

/// The offsets of each row's parts, from their ends.
fn offsets(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let starts: ScalarBuffer<i32> = [0].into_iter().chain(ends.drain(..)).collect();
    OffsetBuffer::new(starts)
}

pub(super) fn wrong_column(error: ArrowError) -> Error {
    Error::new("cannot make a column").because(error)
}

/// Facts about frames: of those that ran, one a row, or of all of the stacks.
#[derive(Debug, Default)]
struct FrameColumns {
    functions: TextColumn<Int32Type>,
    modules: TextColumn<Int32Type>,
    build_ids: TextColumn<Int32Type>,
    files: TextColumn<Int32Type>,
    lines: NumberColumn<Int32Type>,
    kinds: TextColumn<Int8Type>,
    tiers: TextColumn<Int8Type>,
    addresses: NumberColumn<Int64Type>,
}

impl FrameColumns {
    fn push(&mut self, frame: Option<&FrameCells>) {
        self.functions.push(frame.map(|frame| frame.function));
        self.modules.push(frame.and_then(|frame| frame.module));
        self.build_ids.push(frame.and_then(|frame| frame.build_id));
        self.files.push(frame.and_then(|frame| frame.file));
        self.lines.push(frame.and_then(|frame| frame.line));
        self.kinds.push(frame.map(|frame| frame.kind));
        self.tiers.push(frame.and_then(|frame| frame.tier));
        self.addresses.push(frame.and_then(|frame| frame.address));
    }

    fn finish(&mut self, texts: &TextList) -> Result<[ArrayRef; 8]> {
        Ok([
            self.functions.finish(texts)?,
            self.modules.finish(texts)?,
            self.build_ids.finish(texts)?,
            self.files.finish(texts)?,
            self.lines.finish(),
            self.kinds.finish(texts)?,
            self.tiers.finish(texts)?,
            self.addresses.finish(),
        ])
    }
}

/// A batch under way.
#[derive(Debug, Default)]
pub(super) struct BatchBuilder {
    pub(super) rows: usize,
    events: TextColumn<Int32Type>,
    units: TextColumn<Int32Type>,
    comms: TextColumn<Int32Type>,
    pids: NumberColumn<Int32Type>,
    tids: NumberColumn<Int32Type>,
    cpus: NumberColumn<Int32Type>,
    labels: LabelColumn,
    times: NumberColumn<Int64Type>,
    wall_times: NumberColumn<Int64Type>,
    weights: NumberColumn<Int64Type>,
    counts: NumberColumn<Int64Type>,
    depths: NumberColumn<Int32Type>,
    unnamed: NumberColumn<Int32Type>,
    leaves: FrameColumns,
    stack_ids: NumberColumn<Int64Type>,
    frames: FrameColumns,
    /// The end of each row's frames.
    ends: Vec<i32>,
}

/// Time that a row gives: the wall clock's, if it is known, and the recording's.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowTime {
    wall: Option<i64>,
    own: Option<i64>,
}

impl RowTime {
    /// That of a time of the recording's clock, in nanoseconds.
    pub(super) fn new(recording: &RecordingCells, own: Option<i64>) -> Self {
        let wall = own.zip(recording.rest.epoch).and_then(|(own, epoch)| micros(i128::from(epoch) + i128::from(own)));
        Self { wall, own }
    }
}

impl BatchBuilder {
    /// The number of frames that the stacks of all rows have.
    pub(super) fn frames(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// Adds a row of the event of that index.
    pub(super) fn push(&mut self, input: &TableInput, profile: &Profile, event: usize, (row, time): (&Row, RowTime)) {
        self.rows += 1;
        let event = input.events[event];
        self.events.push(Some(event.name));
        self.units.push(Some(event.unit));
        self.thread(input.track(row.track));
        self.times.push(time.own);
        self.wall_times.push(time.wall);
        self.weights.push(Some(clamp(row.weight)));
        self.counts.push(Some(clamp(row.count)));
        self.leaves.push(input.leaf(profile, row));
        self.stack(input, profile, row);
    }

    fn thread(&mut self, track: &TrackCells) {
        self.comms.push(track.comm);
        self.pids.push(track.pid);
        self.tids.push(track.tid);
        self.cpus.push(track.cpu);
        self.labels.push(&track.labels);
    }

    fn stack(&mut self, input: &TableInput, profile: &Profile, row: &Row) {
        let mut frames: Vec<_> = profile.frames_up(row.stack).map(|frame| input.frame(frame)).collect();
        frames.reverse();
        let [mut depth, mut unnamed] = [0; 2];
        for frame in &frames {
            self.frames.push(Some(frame));
            depth += i32::from(!frame.is_mark);
            unnamed += i32::from(frame.unnamed);
        }
        self.depths.push(Some(depth));
        self.unnamed.push(Some(unnamed));
        self.stack_ids.push(Some(input.stack(row.stack)));
        self.ends.push((self.frames() + frames.len()) as i32);
    }

    /// The batch, and the builder is empty again.
    pub(super) fn finish(&mut self, input: &TableInput, schema: &SchemaRef) -> Result<RecordBatch> {
        let (texts, rows) = (&input.texts, std::mem::take(&mut self.rows));
        let mut columns = recording(&input.recording, texts, rows)?;
        columns.extend([self.events.finish(texts)?, self.units.finish(texts)?, self.comms.finish(texts)?]);
        columns.extend([self.pids.finish(), self.tids.finish(), self.cpus.finish(), self.labels.finish()?]);
        columns.extend([moments(self.wall_times.0.finish().iter()), self.times.finish()]);
        columns.extend([self.weights.finish(), self.counts.finish()]);
        columns.extend([self.depths.finish(), self.unnamed.finish()]);
        columns.extend(self.leaves.finish(texts)?);
        columns.push(self.stack_ids.finish());
        columns.extend(lists(self.frames.finish(texts)?, &mut self.ends, schema)?);
        batch(columns, schema)
    }
}

/// The lists of a schema, in its order, of these values; each row's end.
fn lists(values: impl IntoIterator<Item = ArrayRef>, ends: &mut Vec<i32>, schema: &SchemaRef) -> Result<Vec<ArrayRef>> {
    let elements = schema.fields().iter().filter_map(|field| match field.data_type() {
        DataType::List(element) => Some(element),
        _ => None,
    });
    let offsets = offsets(ends);
    let list = |(values, element): (ArrayRef, &FieldRef)| -> Result<ArrayRef> {
        let list = ListArray::try_new(element.clone(), offsets.clone(), values, None);
        Ok(Arc::new(list.map_err(wrong_column)?))
    };
    values.into_iter().zip(elements).map(list).collect()
}

fn batch(columns: Vec<ArrayRef>, schema: &SchemaRef) -> Result<RecordBatch> {
    let batch = RecordBatch::try_new(schema.clone(), columns);
    batch.map_err(|error| Error::new("cannot make a batch").because(error))
}

/// The columns that are equal in all rows.
fn recording(cells: &RecordingCells, texts: &TextList, rows: usize) -> Result<Vec<ArrayRef>> {
    let text = |text: Option<TextNo>| {
        let mut column = TextColumn::<Int32Type>::default();
        (0..rows).for_each(|_| column.push(text));
        column.finish(texts)
    };
    let rest = &cells.rest;
    let number = |number: Option<i64>| std::iter::repeat_n(number, rows).collect::<Int64Array>();
    let share_named = rest.share_named.map(f64::from_bits);
    let others: [ArrayRef; 5] = [
        moments(std::iter::repeat_n(rest.start, rows)),
        Arc::new(std::iter::repeat_n(rest.day, rows).collect::<Date32Array>()),
        Arc::new(std::iter::repeat_n(share_named, rows).collect::<Float64Array>()),
        Arc::new(number(rest.epoch)),
        Arc::new(number(rest.bucket)),
    ];
    cells.texts.into_iter().map(text).chain(others.map(Ok)).collect()
}

pub(super) fn moments(micros: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

/// A batch of distinct stacks under way.
#[derive(Debug, Default)]
pub(super) struct StackBatch {
    ids: NumberColumn<Int64Type>,
    functions: TextColumn<Int32Type>,
    modules: TextColumn<Int32Type>,
    frames: i32,
    ends: Vec<i32>,
}

impl StackBatch {
    /// The number of frames that they have.
    pub(super) fn frames(&self) -> usize {
        self.frames as usize
    }

    /// Adds one.
    pub(super) fn push(&mut self, input: &TableInput, profile: &Profile, stack: StackId) {
        self.ids.push(Some(input.stack(Some(stack))));
        let mut frames: Vec<_> = profile.frames_up(Some(stack)).map(|frame| input.frame(frame)).collect();
        frames.reverse();
        for frame in &frames {
            self.functions.push(Some(frame.function));
            self.modules.push(frame.module);
        }
        self.frames += frames.len() as i32;
        self.ends.push(self.frames);
    }

    /// The batch, and the builder is empty again.
    pub(super) fn finish(&mut self, input: &TableInput, schema: &SchemaRef) -> Result<RecordBatch> {
        self.frames = 0;
        let texts = &input.texts;
        let values = [self.functions.finish(texts)?, self.modules.finish(texts)?];
        let mut columns = vec![self.ids.finish()];
        columns.extend(lists(values, &mut self.ends, schema)?);
        batch(columns, schema)
    }
}
