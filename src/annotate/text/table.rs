//! Writes the instructions of a function as rows: costs, address, jumps, disassembly, source line.

use super::super::listing::{self, Code, Instruction, Listing, SourceFile, TargetOwner};
use super::arrows::{Drawing, Jump, draw};
use super::row::{Paint, Row};
use super::sheet::{Sheet, base_name};
use crate::error::Result;
use crate::model::printable::printable;
use crate::symbolize::disasm::TargetKind;

/// The maximum width of the disassembly in characters, so that a few long instructions don't push source lines off the
/// screen.
const SOURCE_COLUMN: usize = 64;

/// Writes the shown instructions as rows, and a marker for each gap between them.
pub(super) fn write(sheet: &mut Sheet<'_>, listing: &Listing) -> Result<()> {
    let Code::Instructions { addr, bytes } = &listing.code else { return Ok(()) };
    let rows = &listing.rows;
    let shown = shown(rows, sheet.options.context);
    let Drawing { rows: arrows, left_out } = draw(shown.len(), &jumps(listing, &shown));
    if left_out > 0 {
        let message = format!("   jumps not drawn, because they overlap too many others: {left_out}");
        sheet.write_row(Row::default().with(message, Paint::Dim))?;
    }
    let instructions: Vec<String> = shown.iter().map(|&index| instruction_text(&rows[index])).collect();
    let column = instructions.iter().map(|text| text.chars().count()).max().unwrap_or(0).min(SOURCE_COLUMN);
    let last_offset = rows.last().and_then(|row| row.instruction.as_ref()).map_or(0, |last| last.offset);
    // The width of the column with addresses: that of the last address.
    let digits = format!("{:x}", addr.wrapping_add(last_offset)).len();
    // The index of the row after the last one that was written.
    let mut next = 0;
    let mut source_before = None;
    for ((&index, arrows), instruction) in shown.iter().zip(&arrows).zip(&instructions) {
        if index > next {
            write_gap(sheet, index - next, digits)?;
            // Show the source line again after the gap, even if it's the same as before.
            source_before = None;
        }
        let shown_row = &rows[index];
        let offset = shown_row.instruction.as_ref().map_or(bytes.len() as u64, |instruction| instruction.offset);
        let mut row = sheet.costs(listing, shown_row.costs.as_ref());
        row = row.with(format!(" {:>digits$x}  ", addr.wrapping_add(offset)), Paint::Dim);
        row = row.with(format!("{arrows}{instruction:<column$}"), Paint::Plain);
        if let Some(source) = shown_row.source
            && source_before != Some(source)
        {
            row = row.with(format!("  {}", source_text(&listing.files[source.file], source.line)), Paint::Dim);
        }
        source_before = shown_row.source;
        sheet.write_row(row)?;
        sheet.write_calls(&shown_row.calls)?;
        next = index + 1;
    }
    if next < rows.len() {
        write_gap(sheet, rows.len() - next, digits)?;
    }
    Ok(())
}

/// Writes the marker for a gap: how many instructions are not shown.
fn write_gap(sheet: &mut Sheet<'_>, count: usize, digits: usize) -> Result<()> {
    let blank = " ".repeat(sheet.annotation.events.len() * sheet.cost_width() + digits + 3);
    let s = if count == 1 { "" } else { "s" };
    let any = sheet.annotation.words().any;
    sheet.write_row(Row::default().with(format!("{blank}⋮ {count} instruction{s} without {any}"), Paint::Dim))
}

/// The indexes of the instructions to show: those with costs, and up to `context` before and after each. All if
/// `context` is `None`.
fn shown(rows: &[listing::Row], context: Option<usize>) -> Vec<usize> {
    let Some(context) = context else { return (0..rows.len()).collect() };
    let mut shown = Vec::new();
    // The first row that isn't in `shown` yet.
    let mut next = 0;
    for (index, row) in rows.iter().enumerate() {
        if row.costs.is_none() {
            continue;
        }
        let from = index.saturating_sub(context).max(next);
        let end = (index + context + 1).min(rows.len());
        shown.extend(from..end);
        next = end;
    }
    shown
}

/// The jumps of which both ends are among the shown instructions, as indexes in `shown`.
fn jumps(listing: &Listing, shown: &[usize]) -> Vec<Jump> {
    let mut jumps = Vec::new();
    for (from, &row) in shown.iter().enumerate() {
        // Draw the jump if it stays inside of the function and leads to the start of an instruction that is shown as
        // well.
        if let Some(Instruction { target: Some(target), .. }) = &listing.rows[row].instruction
            && target.kind == TargetKind::Jump
            && let TargetOwner::Inside(offset) = target.owner
            && let Some(target_row) = listing.find_start(offset)
            && let Ok(to) = shown.binary_search(&target_row)
        {
            jumps.push(Jump { from, to });
        }
    }
    jumps
}

/// The instruction as assembly text, with the name of what it refers to.
fn instruction_text(row: &listing::Row) -> String {
    let Some(Instruction { offset: own_offset, text, target, .. }) = &row.instruction else { return String::new() };
    let Some(target) = target else { return text.clone() };
    let is_branch = matches!(target.kind, TargetKind::Jump | TargetKind::Call);
    // The assembly text of a branch or of an immediate value contains the address already.
    let has_address = is_branch || target.kind == TargetKind::Immediate;
    let address = if has_address { String::new() } else { format!("  # {:x}", target.addr) };
    match &target.owner {
        TargetOwner::Inside(offset) if is_branch => {
            let direction = if offset > own_offset { '↓' } else { '↑' };
            format!("{text} {direction}")
        }
        TargetOwner::Function(name, 0) => format!("{text}{address} <{}>", printable(name)),
        TargetOwner::Function(name, offset) => format!("{text}{address} <{}+{offset:#x}>", printable(name)),
        TargetOwner::Inside(_) | TargetOwner::Unknown => format!("{text}{address}"),
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

    fn row(offset: u64, is_hot: bool) -> listing::Row {
        let instruction = Some(Instruction { offset, len: 1, text: "nop".into(), target: None });
        listing::Row { instruction, costs: is_hot.then(Costs::default), source: None, calls: Vec::new() }
    }

    #[test]
    fn hot_lines_are_shown_with_what_is_around_them() {
        let rows: Vec<listing::Row> = (0..12).map(|at| row(at, matches!(at, 1 | 3 | 9))).collect();
        assert_eq!(shown(&rows, Some(0)), [1, 3, 9]);
        assert_eq!(shown(&rows, Some(2)), [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]);
        assert_eq!(shown(&rows, None).len(), 12);
    }
}
