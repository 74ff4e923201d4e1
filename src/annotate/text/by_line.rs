//! Writes a function as source lines with the cost of each, without instructions.

use super::super::listing::{self, Listing, SourceFile};
use super::row::{Paint, Row};
use super::sheet::{Sheet, base_name};
use crate::error::Result;
use crate::model::printable::printable;

/// Writes the source lines that have costs and, if the file is available, the lines around them.
pub(super) fn write(sheet: &mut Sheet<'_>, listing: &Listing) -> Result<()> {
    for unknown in listing.rows.iter().filter(|row| row.source.is_none()) {
        let row = sheet.costs(listing, unknown.costs.as_ref()).with(" (source line unknown)".to_owned(), Paint::Dim);
        sheet.write_row(row)?;
        sheet.write_calls(&unknown.calls)?;
    }
    for (number, file) in listing.files.iter().enumerate() {
        let mut hot: Vec<(u32, &listing::Row)> = Vec::new();
        for row in &listing.rows {
            if let Some(source) = row.source
                && source.file == number
            {
                hot.push((source.line, row));
            }
        }
        if !hot.is_empty() {
            sheet.write_row(Row::default().with(format!("   {}", printable(&file.name)), Paint::Title))?;
            write_file(sheet, listing, file, &hot)?;
        }
    }
    Ok(())
}

/// Prints the lines of a source file that have costs (`hot`), each with some lines around it. `⋮` stands for lines that
/// are left out. If the text of a line isn't known, its position (`FILE:LINE`) is printed instead.
fn write_file(sheet: &mut Sheet<'_>, listing: &Listing, file: &SourceFile, hot: &[(u32, &listing::Row)]) -> Result<()> {
    let shown = shown(hot.iter().map(|(line, _)| *line), file, sheet.options.context);
    let digits = shown.last().map_or(1, |line| line.to_string().len());
    let mut previous: Option<u32> = None;
    for line in shown {
        if previous.is_some_and(|previous| line > previous + 1) {
            let blank = " ".repeat(sheet.annotation.events.len() * sheet.cost_width());
            sheet.write_row(Row::default().with(format!("{blank} {:>digits$}", "⋮"), Paint::Dim))?;
        }
        let hot_row = hot.iter().find(|(hot, _)| *hot == line).map(|(_, row)| *row);
        let costs = hot_row.and_then(|row| row.costs.as_ref());
        let row = sheet.costs(listing, costs).with(format!(" {line:>digits$}  "), Paint::Dim);
        let text = file.line(line).map(|text| printable(text.replace('\t', "    ").as_bytes()).into_owned());
        let text = text.unwrap_or_else(|| format!("{}:{line}", base_name(&printable(&file.name))));
        sheet.write_row(row.with(text, Paint::Plain))?;
        sheet.write_calls(hot_row.map_or(&[], |row| &row.calls))?;
        previous = Some(line);
    }
    Ok(())
}

/// The numbers of the lines to show, ascending: those with costs (`hot`, also ascending), and up to `context` lines of
/// the file before and after each. If `context` is `None`, all lines from the first to the last one with costs.
fn shown(hot: impl Iterator<Item = u32>, file: &SourceFile, context: Option<usize>) -> Vec<u32> {
    let mut shown: Vec<u32> = Vec::new();
    for line in hot {
        // The first line that isn't shown yet.
        let next = shown.last().map_or(0, |last| last + 1);
        let (from, to) = match context {
            Some(context) => {
                let context = u32::try_from(context).unwrap_or(u32::MAX);
                (line.saturating_sub(context).max(1), line.saturating_add(context))
            }
            // Without a limit, everything between the previous line with costs and this one is shown.
            None if shown.is_empty() => (line, line),
            None => (next, line),
        };
        for candidate in from.max(next)..=to {
            // A line with costs is always shown. Other lines may not exist: the file may be missing, or shorter than
            // when the program was compiled.
            if candidate == line || file.line(candidate).is_some() {
                shown.push(candidate);
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_hot_ones_are_shown_as_far_as_the_file_goes() {
        let file = |lines: Option<usize>| {
            SourceFile::new(b"a.js", lines.map(|count| (1..=count).map(|line| format!("line {line}")).collect()))
        };
        let of = |hot: &[u32], file: SourceFile, context: Option<usize>| shown(hot.iter().copied(), &file, context);
        assert_eq!(of(&[2, 9], file(Some(10)), Some(2)), [1, 2, 3, 4, 7, 8, 9, 10]);
        assert_eq!(of(&[2, 9], file(None), Some(2)), [2, 9]);
        assert_eq!(of(&[2, 5], file(Some(8)), None), [2, 3, 4, 5]);
        assert_eq!(of(&[7], file(Some(3)), Some(1)), [7]);
    }
}
