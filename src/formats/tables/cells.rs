//! The cells of columns, of whatever types an engine has made of them.

use crate::error::Error;
use crate::model::recorded::{day, day_named};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
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

/// The whole numbers of a column, [`NONE`] if absent; `None` if it holds something else.
pub(super) fn numbers(array: &ArrayRef) -> Option<Vec<i64>> {
    macro_rules! of {
        ($type:ty, $convert:expr) => {
            mapped::<$type, i64>(array.as_primitive(), NONE, $convert)
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => of!(Int8Type, i64::from),
        DataType::Int16 => of!(Int16Type, i64::from),
        DataType::Int32 => of!(Int32Type, i64::from),
        DataType::Int64 => of!(Int64Type, |number| number),
        DataType::UInt8 => of!(UInt8Type, i64::from),
        DataType::UInt16 => of!(UInt16Type, i64::from),
        DataType::UInt32 => of!(UInt32Type, i64::from),
        DataType::UInt64 => of!(UInt64Type, |number| i64::try_from(number).unwrap_or(NONE)),
        // Engines write sums, and whole numbers of which some are missing, in these types.
        DataType::Float64 => of!(Float64Type, |number| if number.is_nan() { NONE } else { number.round() as i64 }),
        DataType::Decimal128(_, 0) => of!(Decimal128Type, |number| i64::try_from(number).unwrap_or(NONE)),
        DataType::Null => vec![NONE; array.len()],
        _ => return None,
    })
}

/// The moments of a column, in microseconds since 1970.
pub(super) fn moments(array: &ArrayRef) -> Option<Vec<i64>> {
    macro_rules! of {
        ($type:ty, $convert:expr) => {
            mapped::<$type, i64>(array.as_primitive(), NONE, $convert)
        };
    }
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => of!(TimestampSecondType, |time| time.saturating_mul(1_000_000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            of!(TimestampMillisecondType, |time| time.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(TimestampMicrosecondType, |time| time),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(TimestampNanosecondType, |time| time.div_euclid(1000)),
        DataType::Null => vec![NONE; array.len()],
        _ => return None,
    })
}

/// The days of a column, since 1970. As text they are `2026-11-22`: directories of data sets name them so.
pub(super) fn days(array: &ArrayRef) -> Option<Vec<i64>> {
    match array.data_type() {
        DataType::Date32 => Some(mapped::<Date32Type, i64>(array.as_primitive(), NONE, i64::from)),
        DataType::Date64 => Some(mapped::<Date64Type, i64>(array.as_primitive(), NONE, |ms| ms.div_euclid(86_400_000))),
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
        DataType::Float64 => {
            Some(mapped::<Float64Type, i64>(array.as_primitive(), NONE, |of| of.to_bits().cast_signed()))
        }
        DataType::Null => Some(vec![NONE; array.len()]),
        _ => None,
    }
}

pub(super) fn wrong_type(name: &str, of: &DataType) -> Error {
    Error::new(format!("column {name} is of type {of}: see docs/sql.md for its type"))
}
