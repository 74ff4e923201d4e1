//! `arrow`: a row a sample, in the batches of a stream.

use super::told::{Frame, Stack, Told};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;

pub(crate) fn read(bytes: &[u8], names: &[String]) -> Vec<Told> {
    let none = || Told { samples: Some(0), rows: Some(0), ..Told::default() };
    let mut told: Vec<Told> = names.iter().map(|_| none()).collect();
    for batch in StreamReader::try_new(bytes, None).unwrap() {
        add(&batch.unwrap(), names, &mut told);
    }
    told
}

fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    let array = array.as_dictionary::<Int32Type>();
    let texts = array.downcast_dict::<StringArray>().unwrap();
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

fn add(batch: &RecordBatch, names: &[String], told: &mut [Told]) {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let (events, units) = (texts(column("event")), texts(column("unit")));
    let weights = column("weight").as_primitive::<Int64Type>();
    let counts = column("count").as_primitive::<Int64Type>();
    let (functions, modules) = (column("functions").as_list::<i32>(), column("modules").as_list::<i32>());
    for row in 0..batch.num_rows() {
        let told = &mut told[names.iter().position(|name| Some(name) == events[row].as_ref()).unwrap()];
        told.unit.clone_from(&units[row]);
        told.samples = told.samples.map(|sum| sum + counts.value(row).cast_unsigned());
        told.rows = told.rows.map(|rows| rows + 1);
        let stack = texts(&functions.value(row)).into_iter().zip(texts(&modules.value(row)));
        let frames = stack.map(|(name, module)| Frame { name: name.unwrap(), module }).collect();
        told.stacks.push(Stack { frames, weight: weights.value(row).cast_unsigned() });
    }
}
