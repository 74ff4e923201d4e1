//! The cells of columns, of whatever types an engine has made of them.

use crate::error::Error;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use std::sync::Arc;

/// Stands for no number.
pub(super) const NONE: i64 = i64::MIN;

/// What the texts of a column mean, of which each is looked up once where the column says that it is the same again.
#[derive(Debug)]
pub(super) struct Meanings<V> {
    /// What a cell without a text means.
    none: V,
    /// The texts that the last batch had, which the next one mostly has, too.
    dictionary: Option<ArrayRef>,
    of_dictionary: Vec<V>,
}

impl<V: Copy> Meanings<V> {
    pub(super) fn new(none: V) -> Self {
        Self { none, dictionary: None, of_dictionary: Vec::new() }
    }

    /// What the cells mean; `None` if the column holds something else than texts.
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

/// The whole numbers of a column, [`NONE`] where there is none; `None` if it holds something else.
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
        // What engines make of sums.
        DataType::Float64 => of!(Float64Type, |number| number.round() as i64),
        _ => return None,
    })
}

pub(super) fn wrong_type(name: &str, of: &DataType) -> Error {
    Error::new(format!("column {name} is of type {of}: docs/sql.md tells what it should be"))
}
