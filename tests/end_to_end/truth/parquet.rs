//! `parquet`: a row a sample, read column by column without Arrow.

use super::told::{Frame, Stack, Told};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::HashMap;
use std::io::Write;

pub(crate) fn read(bytes: &[u8], names: &[String]) -> Vec<Told> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let none = || Told { samples: Some(0), rows: Some(0), ..Told::default() };
    let mut told: Vec<Told> = names.iter().map(|_| none()).collect();
    for row in reader.get_row_iter(None).unwrap() {
        add(&row.unwrap(), names, &mut told);
    }
    told
}

fn add(row: &Row, names: &[String], told: &mut [Told]) {
    let cells: HashMap<&str, &Field> = row.get_column_iter().map(|(name, field)| (&name[..], field)).collect();
    let told = &mut told[names.iter().position(|name| *name == text(cells["event"]).unwrap()).unwrap()];
    told.unit = text(cells["unit"]);
    told.samples = told.samples.map(|sum| sum + number(cells["count"]));
    told.rows = told.rows.map(|rows| rows + 1);
    let list = |name: &str| match cells[name] {
        Field::ListInternal(list) => list.elements().iter().map(text).collect::<Vec<_>>(),
        other => panic!("{name} is {other:?}"),
    };
    let (functions, modules) = (list("functions"), list("modules"));
    assert_eq!(functions.len(), modules.len());
    assert_eq!(functions.last().cloned().flatten(), text(cells["leaf"]));
    let frames = functions.into_iter().zip(modules).map(|(name, module)| Frame { name: name.unwrap(), module });
    told.stacks.push(Stack { frames: frames.collect(), weight: number(cells["weight"]) });
}

fn text(field: &Field) -> Option<String> {
    match field {
        Field::Str(text) => Some(text.clone()),
        Field::Null => None,
        other => panic!("{other:?} is not text"),
    }
}

fn number(field: &Field) -> u64 {
    match field {
        Field::Long(number) => u64::try_from(*number).unwrap(),
        other => panic!("{other:?} is no number"),
    }
}
