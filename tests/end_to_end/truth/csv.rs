//! `csv`: a line a sample under a line of names, as RFC 4180 quotes them.

use super::told::{Frame, Stack, Told};

/// The cells of all lines; a line break may be in a cell.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            _ => cell.push(letter),
        }
    }
    lines
}

pub(crate) fn read(text: &[u8], names: &[String]) -> Vec<Told> {
    let mut lines = cells(std::str::from_utf8(text).unwrap()).into_iter();
    let columns = lines.next().unwrap();
    let column = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let [event, unit, weight, count, stack] = ["event", "unit", "weight", "count", "stack"].map(column);
    let none = || Told { samples: Some(0), rows: Some(0), ..Told::default() };
    let mut told: Vec<Told> = names.iter().map(|_| none()).collect();
    for line in lines {
        let told = &mut told[names.iter().position(|name| *name == line[event]).unwrap()];
        told.unit = Some(line[unit].clone());
        told.samples = told.samples.map(|sum| sum + line[count].parse::<u64>().unwrap());
        told.rows = told.rows.map(|rows| rows + 1);
        // Before what a spreadsheet would take for a formula stands an apostrophe, behind each `;`, too.
        let name = |name: &str| name.strip_prefix('\'').unwrap_or(name).to_owned();
        let frames = line[stack].split(';').map(|frame| Frame { name: name(frame), module: None }).collect();
        told.stacks.push(Stack { frames, weight: line[weight].parse().unwrap() });
    }
    told
}
