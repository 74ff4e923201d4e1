//! The labels of rows, of whatever type an engine has made of their map.

use super::cells::{Meanings, wrong_type};
use crate::error::Result;
use crate::model::recorded::Labels;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The keys and values of all rows.
#[derive(Default)]
struct Entries {
    keys: Vec<Box<str>>,
    values: Vec<Box<str>>,
}

/// The labels of each row; an empty list if no column has any.
pub(super) fn read(batch: &RecordBatch) -> Result<Vec<Labels>> {
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
            Some((columns(map.entries().columns())?, map.value_offsets().to_vec()))
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
        DataType::Struct(_) => columns(of.as_struct_opt()?.columns()),
        _ => {
            let pairs = of.as_list_opt::<i32>()?;
            let all = texts(pairs.values())?;
            let at = |place: i32| all.get(usize::try_from(place).ok()?).cloned();
            let starts = || pairs.value_offsets().windows(2).filter(|ends| ends[1] == ends[0] + 2).map(|ends| ends[0]);
            let keys: Vec<_> = starts().filter_map(at).collect();
            let values: Vec<_> = starts().filter_map(|start| at(start + 1)).collect();
            (keys.len() == pairs.len()).then_some(Entries { keys, values })
        }
    }
}

fn columns(columns: &[ArrayRef]) -> Option<Entries> {
    let [keys, values] = columns else { return None };
    Some(Entries { keys: texts(keys)?, values: texts(values)? })
}

fn texts(array: &ArrayRef) -> Option<Vec<Box<str>>> {
    let mut all: Vec<Box<str>> = Vec::new();
    let number = |text: &str| {
        all.push(text.into());
        Some(all.len() - 1)
    };
    let places = Meanings::new(None).cells(array, number)?;
    Some(places.into_iter().map(|place| place.map_or_else(Box::default, |place| all[place].clone())).collect())
}
