//! Writes the instructions of a function as rows: costs, address, jumps, disassembly, source line.

use super::super::annotated::{Code, Line, Listing, SourceFile, TargetPlace};
use super::arrows::{Jump, draw};
use super::row::{Paint, Row};
use super::sheet::{Sheet, base_name};
use crate::error::Result;
use crate::model::printable::printable;
use crate::resolve::disasm::TargetKind;

/// The maximum width of the disassembly in characters, so that a few long instructions don't push source lines off the
/// screen.
const SOURCE_COLUMN: usize = 64;

/// Writes the shown instructions as rows, and a marker for each gap between them.
pub(super) fn write(text: &mut Sheet<'_>, listing: &Listing) -> Result<()> {
    let Code::Listed { addr, lines, files, .. } = &listing.code else { return Ok(()) };
    let shown = shown(lines, text.options.context);
    let arrows = draw(shown.len(), &jumps(lines, &shown));
    let column = shown.iter().map(|&at| instruction(&lines[at]).chars().count()).max().unwrap_or(0).min(SOURCE_COLUMN);
    let digits = format!("{:x}", addr.wrapping_add(lines.last().map_or(0, |line| line.offset))).len();
    let (mut next, mut before) = (0, None);
    for (&at, arrows) in shown.iter().zip(&arrows) {
        if at > next {
            gap(text, at - next, digits)?;
            before = None;
        }
        let line = &lines[at];
        let mut row = text.costs(listing, line.costs.as_ref());
        row = row.with(format!(" {:>digits$x}  ", addr.wrapping_add(line.offset)), Paint::Dim);
        row = row.with(format!("{arrows}{:<column$}", instruction(line)), Paint::Plain);
        if let Some(source) = line.source.filter(|source| before != Some(*source)) {
            row = row.with(format!("  {}", source_text(&files[source.file], source.line)), Paint::Dim);
        }
        before = line.source;
        text.row(row)?;
        text.calls(&line.calls)?;
        next = at + 1;
    }
    if next < lines.len() {
        gap(text, lines.len() - next, digits)?;
    }
    Ok(())
}

fn gap(text: &mut Sheet<'_>, count: usize, digits: usize) -> Result<()> {
    let blank = " ".repeat(text.annotation.events.len() * text.cost_width() + digits + 3);
    let s = if count == 1 { "" } else { "s" };
    let any = text.annotation.words().any;
    text.row(Row::default().with(format!("{blank}⋮ {count} instruction{s} without {any}"), Paint::Dim))
}

/// The indexes of the instructions to show: those with costs, and up to `context` before and after each. All if
/// `context` is `None`.
fn shown(lines: &[Line], context: Option<usize>) -> Vec<usize> {
    let Some(context) = context else { return (0..lines.len()).collect() };
    let mut shown = Vec::new();
    let mut next = 0;
    for (index, line) in lines.iter().enumerate() {
        if line.costs.is_none() {
            continue;
        }
        let from = index.saturating_sub(context).max(next);
        let end = (index + context + 1).min(lines.len());
        shown.extend(from..end);
        next = end;
    }
    shown
}

/// The jumps whose both ends are among the shown instructions.
fn jumps(lines: &[Line], shown: &[usize]) -> Vec<Jump> {
    let mut jumps = Vec::new();
    for (from, &line) in shown.iter().enumerate() {
        if let Some(target) = &lines[line].target
            && target.kind == TargetKind::Jump
            && let TargetPlace::Inside(offset) = target.place
            && let Ok(target_line) = lines.binary_search_by_key(&offset, |line| line.offset)
            && let Ok(to) = shown.binary_search(&target_line)
        {
            jumps.push(Jump { from, to });
        }
    }
    jumps
}

/// The instruction as assembly text, with the name of what it refers to.
fn instruction(line: &Line) -> String {
    let Some(target) = &line.target else { return line.text.clone() };
    let is_branch = matches!(target.kind, TargetKind::Jump | TargetKind::Call);
    let mark = if is_branch || target.kind == TargetKind::Immediate { "" } else { &format!("  # {:x}", target.addr) };
    match &target.place {
        TargetPlace::Inside(offset) if is_branch => {
            let way = if *offset > line.offset { '↓' } else { '↑' };
            format!("{} {way}", line.text)
        }
        TargetPlace::Function(name, 0) => format!("{}{mark} <{}>", line.text, printable(name)),
        TargetPlace::Function(name, offset) => format!("{}{mark} <{}+{offset:#x}>", line.text, printable(name)),
        TargetPlace::Inside(_) | TargetPlace::Unknown => format!("{}{mark}", line.text),
    }
}

fn source_text(file: &SourceFile, line: u32) -> String {
    let place = format!("{}:{line}", base_name(&printable(&file.name)));
    match file.line(line) {
        Some(text) => format!("{place}  {}", printable(text.replace('\t', "    ").trim().as_bytes())),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::costs::Costs;
    use super::*;

    fn line(offset: u64, hot: bool) -> Line {
        let costs = hot.then(Costs::default);
        Line { offset, len: 1, text: "nop".into(), costs, target: None, source: None, calls: Vec::new() }
    }

    #[test]
    fn hot_lines_are_shown_with_what_is_around_them() {
        let lines: Vec<Line> = (0..12).map(|at| line(at, matches!(at, 1 | 3 | 9))).collect();
        assert_eq!(shown(&lines, Some(0)), [1, 3, 9]);
        assert_eq!(shown(&lines, Some(2)), [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]);
        assert_eq!(shown(&lines, None).len(), 12);
    }
}
