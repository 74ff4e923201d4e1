//! The cells of columns, of whatever types an engine has made of them.

use crate::error::{Error, Result};
use crate::model::interner::Interner;
use crate::model::recorded::{Labels, day, day_named};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Stands for no number.
pub(super) const NONE: i64 = i64::MIN;

/// The meanings of a column's texts, each of them looked up once where the column states that it is the same again.
#[derive(Debug)]
pub(super) struct Meanings<V> {
    /// The meaning of a cell without a text.
    none: V,
    /// The texts that the last batch had, which the next one mostly has, too.
    dictionary: Option<ArrayRef>,
    of_dictionary: Vec<V>,
}

impl<V: Copy> Meanings<V> {
    pub(super) fn new(none: V) -> Self {
        Self { none, dictionary: None, of_dictionary: Vec::new() }
    }

    /// The meanings of the cells; `None` if the column holds something else than texts.
    pub(super) fn cells(&mut self, array: &ArrayRef, mut of: impl FnMut(&str) -> V) -> Option<Vec<V>> {
        let none = self.none;
        let Some(dictionary) = array.as_any_dictionary_opt() else { return texts(array, none, of) };
        if !self.dictionary.as_ref().is_some_and(|known| Arc::ptr_eq(known, dictionary.values())) {
            self.of_dictionary = texts(dictionary.values(), none, &mut of)?;
            self.dictionary = Some(dictionary.values().clone());
        }
        let table = &self.of_dictionary;
        let meant = |place: usize| table.get(place).copied().unwrap_or(none);
        macro_rules! of_keys {
            ($($type:ty),*) => {
                $(if let Some(keys) = dictionary.keys().as_primitive_opt::<$type>() {
                    return Some(mapped(keys, none, |key| meant(usize::try_from(key).unwrap_or(usize::MAX))));
                })*
            };
        }
        of_keys!(Int32Type, Int8Type, Int16Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);
        None
    }
}

fn texts<V: Copy>(array: &ArrayRef, none: V, mut of: impl FnMut(&str) -> V) -> Option<Vec<V>> {
    let mut meant = |text: Option<&str>| text.map_or(none, &mut of);
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(&mut meant).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(&mut meant).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(&mut meant).collect(),
        // Some tools write a column without any text so.
        DataType::Null => vec![none; array.len()],
        _ => return None,
    })
}

fn mapped<T: ArrowPrimitiveType, V: Copy>(array: &PrimitiveArray<T>, none: V, of: impl Fn(T::Native) -> V) -> Vec<V> {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => array.values().iter().map(|cell| of(*cell)).collect(),
        Some(nulls) => {
            let cells = array.values().iter().zip(nulls);
            cells.map(|(cell, is_there)| if is_there { of(*cell) } else { none }).collect()
        }
    }
}

macro_rules! numbers_of {
    ($array:ident, $type:ty, $convert:expr) => {
        mapped::<$type, i64>($array.as_primitive(), NONE, $convert)
    };
}

/// The whole numbers of a column, [`NONE`] if absent; `None` if it holds something else.
pub(super) fn numbers(array: &ArrayRef) -> Option<Vec<i64>> {
    Some(match array.data_type() {
        DataType::Int8 => numbers_of!(array, Int8Type, i64::from),
        DataType::Int16 => numbers_of!(array, Int16Type, i64::from),
        DataType::Int32 => numbers_of!(array, Int32Type, i64::from),
        DataType::Int64 => numbers_of!(array, Int64Type, |number| number),
        DataType::UInt8 => numbers_of!(array, UInt8Type, i64::from),
        DataType::UInt16 => numbers_of!(array, UInt16Type, i64::from),
        DataType::UInt32 => numbers_of!(array, UInt32Type, i64::from),
        DataType::UInt64 => numbers_of!(array, UInt64Type, |number| i64::try_from(number).unwrap_or(NONE)),
        // Engines write sums, and whole numbers of which some are missing, in these types.
        DataType::Float64 => {
            numbers_of!(array, Float64Type, |number| if number.is_nan() { NONE } else { number.round() as i64 })
        }
        DataType::Decimal128(_, 0) => {
            numbers_of!(array, Decimal128Type, |number| i64::try_from(number).unwrap_or(NONE))
        }
        DataType::Null => vec![NONE; array.len()],
        _ => return None,
    })
}

/// The moments of a column, in microseconds since 1970.
pub(super) fn moments(array: &ArrayRef) -> Option<Vec<i64>> {
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            numbers_of!(array, TimestampSecondType, |time| time.saturating_mul(1_000_000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            numbers_of!(array, TimestampMillisecondType, |time| time.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers_of!(array, TimestampMicrosecondType, |time| time),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers_of!(array, TimestampNanosecondType, |time| time.div_euclid(1000))
        }
        DataType::Null => vec![NONE; array.len()],
        _ => return None,
    })
}

/// The days of a column, since 1970. As text they are `2026-11-22`: directories of data sets name them so.
pub(super) fn days(array: &ArrayRef) -> Option<Vec<i64>> {
    match array.data_type() {
        DataType::Date32 => Some(numbers_of!(array, Date32Type, i64::from)),
        DataType::Date64 => Some(numbers_of!(array, Date64Type, |ms| ms.div_euclid(86_400_000))),
        DataType::Null => Some(vec![NONE; array.len()]),
        _ => match moments(array) {
            Some(moments) => Some(moments.into_iter().map(|time| day(time).map_or(NONE, i64::from)).collect()),
            None => Meanings::new(NONE).cells(array, |text| day_named(text).map_or(NONE, i64::from)),
        },
    }
}

/// The bits of the fractions of a column.
pub(super) fn fractions(array: &ArrayRef) -> Option<Vec<i64>> {
    match array.data_type() {
        DataType::Float64 => Some(numbers_of!(array, Float64Type, |of| of.to_bits().cast_signed())),
        DataType::Null => Some(vec![NONE; array.len()]),
        _ => None,
    }
}

pub(super) fn wrong_type(name: &str, of: &DataType) -> Error {
    Error::new(format!("column {name} is of type {of}: see docs/sql.md for its type"))
}

/// The number of a text that is not a function's.
pub(super) type WordNo = u32;

/// Texts that are not functions', numbered.
#[derive(Debug)]
pub(super) struct Words(Interner<Box<str>, WordNo>);

impl Words {
    pub(super) fn new() -> Self {
        Self(Interner::default())
    }

    pub(super) fn text(&self, word: Option<WordNo>) -> Option<&str> {
        self.0.items().get(word? as usize).map(|text| &**text)
    }
}

/// A column of texts, or none.
#[derive(Debug)]
pub(super) struct WordCells(Vec<Option<WordNo>>);

impl WordCells {
    pub(super) fn of(batch: &RecordBatch, name: &str, words: &mut Words) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(Vec::new())) };
        let cells = Meanings::new(None).cells(column, |text| Some(words.0.number(text)));
        cells.map(Self).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    pub(super) fn at(&self, row: usize) -> Option<WordNo> {
        self.0.get(row).copied().flatten()
    }
}

/// A column of numbers, or none.
#[derive(Debug)]
pub(super) struct Numbers(Option<Vec<i64>>);

impl Numbers {
    pub(super) fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        Self::by(batch, name, numbers)
    }

    pub(super) fn by(batch: &RecordBatch, name: &str, read: fn(&ArrayRef) -> Option<Vec<i64>>) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(None)) };
        read(column).map(|cells| Self(Some(cells))).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The number of a row, if it has one.
    pub(super) fn known_at(&self, row: usize) -> Option<i64> {
        Some(self.at(row)).filter(|number| *number != NONE)
    }

    /// The number of a row, or [`NONE`].
    pub(super) fn at(&self, row: usize) -> i64 {
        self.0.as_ref().and_then(|cells| cells.get(row)).copied().unwrap_or(NONE)
    }
}

/// The keys and values of all rows.
#[derive(Default)]
struct Entries {
    keys: Vec<Box<str>>,
    values: Vec<Box<str>>,
}

/// The labels of each row, of whatever type an engine has made of their map; an empty list if no column has any.
pub(super) fn labels(batch: &RecordBatch) -> Result<Vec<Labels>> {
    let Some(column) = batch.column_by_name("labels") else { return Ok(Vec::new()) };
    let Some((entries, offsets)) = parts(column) else { return Err(wrong_type("labels", column.data_type())) };
    let Entries { keys, values } = entries;
    type Pairs = Vec<(Box<str>, Box<str>)>;
    let mut known: FxHashMap<Pairs, Labels> = FxHashMap::default();
    let mut of = |row: Range<usize>| -> Labels {
        let pairs = keys.get(row.clone())?.iter().cloned().zip(values.get(row)?.iter().cloned());
        let pairs: Vec<_> = pairs.collect();
        let labels = || (!pairs.is_empty()).then(|| Arc::new(pairs.iter().cloned().collect::<BTreeMap<_, _>>()));
        known.entry(pairs.clone()).or_insert_with(labels).clone()
    };
    let place = |offset: i32| usize::try_from(offset).unwrap_or(0);
    let rows = offsets.windows(2).enumerate();
    let rows = rows.map(|(row, ends)| if column.is_null(row) { 0..0 } else { place(ends[0])..place(ends[1]) });
    Ok(rows.map(&mut of).collect())
}

/// The entries, and where those of each row are: of a map, a list of structures, or a list of lists of two.
fn parts(column: &ArrayRef) -> Option<(Entries, Vec<i32>)> {
    match column.data_type() {
        DataType::Null => Some((Entries::default(), Vec::new())),
        DataType::Map(..) => {
            let map = column.as_map_opt()?;
            Some((entries(map.entries().columns())?, map.value_offsets().to_vec()))
        }
        _ => {
            let list = column.as_list_opt::<i32>()?;
            Some((pairs(list.values())?, list.value_offsets().to_vec()))
        }
    }
}

fn pairs(of: &ArrayRef) -> Option<Entries> {
    match of.data_type() {
        // No row has any.
        DataType::Null => Some(Entries::default()),
        DataType::Struct(_) => entries(of.as_struct_opt()?.columns()),
        _ => {
            let pairs = of.as_list_opt::<i32>()?;
            let all = owned_texts(pairs.values())?;
            let at = |place: i32| all.get(usize::try_from(place).ok()?).cloned();
            let starts = || pairs.value_offsets().windows(2).filter(|ends| ends[1] == ends[0] + 2).map(|ends| ends[0]);
            let keys: Vec<_> = starts().filter_map(at).collect();
            let values: Vec<_> = starts().filter_map(|start| at(start + 1)).collect();
            (keys.len() == pairs.len()).then_some(Entries { keys, values })
        }
    }
}

fn entries(columns: &[ArrayRef]) -> Option<Entries> {
    let [keys, values] = columns else { return None };
    Some(Entries { keys: owned_texts(keys)?, values: owned_texts(values)? })
}

/// The texts of a column, empty where absent; `None` if it holds something else.
pub(super) fn owned_texts(array: &ArrayRef) -> Option<Vec<Box<str>>> {
    let mut all: Vec<Box<str>> = Vec::new();
    let number = |text: &str| {
        all.push(text.into());
        Some(all.len() - 1)
    };
    let places = Meanings::new(None).cells(array, number)?;
    Some(places.into_iter().map(|place| place.map_or_else(Box::default, |place| all[place].clone())).collect())
}
