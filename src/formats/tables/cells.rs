//! The cells of columns, of whatever types an engine has made of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

/// A column of texts: of each cell the number of its text, and the texts.
#[derive(Debug)]
pub(super) struct TextCells {
    /// Of each cell; `None` is no text.
    pub(super) numbers: Vec<Option<u32>>,
    pub(super) texts: Vec<Box<[u8]>>,
}

impl TextCells {
    /// `None` if the column holds something else.
    pub(super) fn of(array: &ArrayRef) -> Option<Self> {
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let values = Self::of(dictionary.values())?;
            let keys = dictionary.keys();
            // Without a text no cell has one, and its numbers cannot be asked for.
            let places = if values.numbers.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            let number = |at: usize| match keys.is_null(at) {
                true => None,
                false => values.numbers.get(*places.get(at)?).copied().flatten(),
            };
            return Some(Self { numbers: (0..keys.len()).map(number).collect(), texts: values.texts });
        }
        let texts: Vec<Option<&str>> = match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().collect(),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
            DataType::Utf8View => array.as_string_view().iter().collect(),
            _ => return None,
        };
        let numbers = texts.iter().zip(0..).map(|(text, number)| text.map(|_| number)).collect();
        let texts = texts.into_iter().map(|text| text.unwrap_or_default().as_bytes().into()).collect();
        Some(Self { numbers, texts })
    }
}

/// The whole numbers of a column; `None` if it holds something else.
pub(super) fn numbers(array: &ArrayRef) -> Option<Vec<Option<i64>>> {
    macro_rules! of {
        ($type:ty, $convert:expr) => {{
            let array: &PrimitiveArray<$type> = array.as_primitive();
            array.iter().map(|number| number.and_then($convert)).collect()
        }};
    }
    Some(match array.data_type() {
        DataType::Int8 => of!(Int8Type, |number| Some(number.into())),
        DataType::Int16 => of!(Int16Type, |number| Some(number.into())),
        DataType::Int32 => of!(Int32Type, |number| Some(number.into())),
        DataType::Int64 => of!(Int64Type, Some),
        DataType::UInt8 => of!(UInt8Type, |number| Some(number.into())),
        DataType::UInt16 => of!(UInt16Type, |number| Some(number.into())),
        DataType::UInt32 => of!(UInt32Type, |number| Some(number.into())),
        DataType::UInt64 => of!(UInt64Type, |number| i64::try_from(number).ok()),
        // What engines make of sums.
        DataType::Float64 => of!(Float64Type, |number| Some(number.round() as i64)),
        _ => return None,
    })
}
