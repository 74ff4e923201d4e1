//! A function's instructions as a table: costs, address, text with links to where it jumps, source.

use super::super::annotated::{
    Calls, Code, EventTotal, Line, Listing, SourceFile, SourceLine, SourceLineCosts, TargetPlace, Version,
};
use super::super::costs::Costs;
use super::{ListingPage, base_name, escaped};
use crate::analysis::quantity::counted;
use crate::error::Result;
use crate::resolve::disasm::TargetKind;
use std::io::Write;
use std::ops::Range;

impl ListingPage<'_> {
    /// The `number`th, counted from 1.
    pub(super) fn listing(&self, number: usize, listing: &Listing, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "<section id=\"l{number}\"><h2>{number}. {}</h2>", escaped(&listing.name))?;
        if listing.versions.len() > 1 {
            let shares = self.shares(&listing.costs).join(" · ");
            writeln!(out, "<p>{} compiled versions together · {shares}</p>", listing.versions.len())?;
        }
        for version in &listing.versions {
            writeln!(out, "<p>{}</p>", self.about(listing, version))?;
            expansion(version, out)?;
        }
        for inclusive in &listing.inclusive {
            writeln!(out, "<p>inclusive: {}</p>", self.with_shares(&inclusive.label(), &inclusive.costs))?;
        }
        match &listing.code {
            Code::Missing(why) => writeln!(out, "<p>No listing: {}.</p>", escaped(why.as_bytes()))?,
            Code::Listed { addr, lines, files, .. } => {
                ListingTable { page: self, number, listing, base: *addr, lines, files }.write(out)?;
            }
            Code::SourceLines { files, lines } => self.source_lines(listing, files, lines, out)?,
        }
        Ok(writeln!(out, "</section>")?)
    }

    /// Version, tier, file, process, place, time and share.
    fn about(&self, listing: &Listing, version: &Version) -> String {
        let about = listing.about(version, self.annotation.first);
        let mut parts: Vec<String> = about.iter().map(|part| escaped(part.as_bytes())).collect();
        parts.extend(self.shares(&version.costs));
        parts.join(" · ")
    }

    /// The shares of each event that has samples here.
    fn shares(&self, costs: &Costs) -> Vec<String> {
        let sampled = self.annotation.events.iter().filter(|event| costs.get(event.number).count > 0);
        sampled.map(|event| self.share(costs, event)).collect()
    }

    fn share(&self, costs: &Costs, event: &EventTotal) -> String {
        let cost = costs.get(event.number);
        let percent = cost.percent_of(event.total, self.annotation.weight);
        format!("{} {percent:.2}% ({})", escaped(event.name.as_bytes()), event.counted(cost.count))
    }

    /// Source lines alone.
    fn source_lines(
        &self,
        listing: &Listing,
        files: &[SourceFile],
        lines: &[SourceLineCosts],
        out: &mut dyn Write,
    ) -> Result<()> {
        write!(out, "<div class=\"scroll\"><table><thead><tr>")?;
        self.heads(out)?;
        writeln!(out, "<th>source</th></tr></thead><tbody>")?;
        for line in lines {
            write!(out, "<tr>")?;
            self.costs(Some(&line.costs), |event| listing.costs.get(event.number), out)?;
            let said = line.source.map_or_else(|| "no known line".to_owned(), |source| source_text(files, source));
            writeln!(out, "<td>{said}</td></tr>")?;
            self.calls(&line.calls, "", out)?;
        }
        Ok(writeln!(out, "</tbody></table></div>")?)
    }

    /// Calls as rows below what made them, with their shares of the whole, behind cells in between.
    fn calls(&self, calls: &[Calls], between: &str, out: &mut dyn Write) -> Result<()> {
        for calls in calls {
            write!(out, "<tr class=\"d\">")?;
            self.costs(None, |event| event.total, out)?;
            writeln!(out, "{between}<td>=&gt; {}</td></tr>", self.with_shares(&calls.label(), &calls.costs))?;
        }
        Ok(())
    }

    fn with_shares(&self, said: &str, costs: &Costs) -> String {
        [vec![escaped(said.as_bytes())], self.shares(costs)].concat().join(" · ")
    }
}

/// The calls that were expanded somewhere in a version, folded away: there may be hundreds.
fn expansion(version: &Version, out: &mut dyn Write) -> Result<()> {
    if version.expanded.is_empty() {
        return Ok(());
    }
    let calls = counted(version.expanded.len() as u64, "inlined call");
    writeln!(
        out,
        "<details><summary>compiled with {calls}</summary><p>At bytecodes of their callers; their addresses are not recorded.</p><pre>"
    )?;
    for call in version.expansion() {
        writeln!(out, "{}", escaped(call.as_bytes()))?;
    }
    Ok(writeln!(out, "</pre></details>")?)
}

/// The file and line, and its text if the file is here.
fn source_text(files: &[SourceFile], source: SourceLine) -> String {
    let Some(file) = files.get(source.file) else { return String::new() };
    let place = format!("{}:{}", escaped(base_name(&file.name)), source.line);
    match file.line(source.line) {
        Some(text) => format!("{place}  {}", escaped(text.replace('\t', "    ").trim().as_bytes())),
        None => place,
    }
}

/// The instructions of a listing.
struct ListingTable<'a> {
    page: &'a ListingPage<'a>,
    number: usize,
    listing: &'a Listing,
    base: u64,
    lines: &'a [Line],
    files: &'a [SourceFile],
}

impl ListingTable<'_> {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let parts = parts(self.lines, self.page.context);
        if parts.iter().any(|part| part.cold) {
            let n = self.number;
            writeln!(out, "<label><input type=\"checkbox\" class=\"all\" id=\"a{n}\"/> all instructions</label>")?;
        }
        write!(out, "<div class=\"scroll\"><table><thead><tr>")?;
        self.page.heads(out)?;
        writeln!(out, "<th class=\"n\">address</th><th>instruction</th><th>source</th></tr></thead>")?;
        for part in parts {
            self.part(&part, out)?;
        }
        Ok(writeln!(out, "</table></div>")?)
    }

    fn part(&self, part: &ListingPart, out: &mut dyn Write) -> Result<()> {
        if part.cold {
            let columns = self.page.annotation.events.len() * 2 + 3;
            let count = counted(part.range.len() as u64, "instruction");
            let any = self.page.annotation.words().any;
            let gap = format!("<td colspan=\"{columns}\">⋮ {count} without {any}</td>");
            writeln!(out, "<tbody class=\"gap\"><tr>{gap}</tr></tbody><tbody class=\"cold\">")?;
        } else {
            writeln!(out, "<tbody>")?;
        }
        for at in part.range.clone() {
            self.row(at, part.range.start, out)?;
        }
        Ok(writeln!(out, "</tbody>")?)
    }

    /// One instruction of a part that begins at `first`.
    fn row(&self, at: usize, first: usize, out: &mut dyn Write) -> Result<()> {
        let line = &self.lines[at];
        write!(out, "<tr id=\"c{}-{:x}\">", self.number, line.offset)?;
        self.page.costs(line.costs.as_ref(), |event| self.listing.costs.get(event.number), out)?;
        let source =
            new_source(self.lines, first, at).map_or_else(String::new, |source| source_text(self.files, source));
        let address = self.base.wrapping_add(line.offset);
        let said = self.instruction(line);
        writeln!(out, "<td class=\"n d\">{address:x}</td><td>{said}</td><td class=\"d\">{source}</td></tr>")?;
        self.page.calls(&line.calls, "<td></td>", out)
    }

    /// The instruction; jumps within the function, and calls of functions that are listed, are links.
    fn instruction(&self, line: &Line) -> String {
        let text = escaped(line.text.as_bytes());
        let Some(target) = &line.target else { return text };
        let is_branch = matches!(target.kind, TargetKind::Jump | TargetKind::Call);
        let mark = match is_branch || target.kind == TargetKind::Immediate {
            true => String::new(),
            false => format!("  # {:x}", target.addr),
        };
        match &target.place {
            TargetPlace::Inside(offset) if is_branch => {
                let way = if *offset > line.offset { '↓' } else { '↑' };
                format!("<a href=\"#c{}-{offset:x}\">{text} {way}</a>", self.number)
            }
            TargetPlace::Function(name, offset) => {
                let plus = if *offset == 0 { String::new() } else { format!("+{offset:#x}") };
                format!("{text}{mark} {}", self.linked(name, &plus))
            }
            TargetPlace::Inside(_) | TargetPlace::Unknown => format!("{text}{mark}"),
        }
    }

    /// The name of a function; if it is listed, a link to its hottest code.
    fn linked(&self, name: &[u8], plus: &str) -> String {
        let shown = format!("&lt;{}{plus}&gt;", escaped(name));
        match self.page.annotation.listings.iter().position(|listing| listing.name == name) {
            Some(at) => format!("<a href=\"#l{}\">{shown}</a>", at + 1),
            None => shown,
        }
    }
}

/// The source line that begins at an instruction; at the `first` of a part its own, as the instruction before may not be
/// seen.
fn new_source(lines: &[Line], first: usize, at: usize) -> Option<SourceLine> {
    let before = at.checked_sub(1).filter(|_| at > first).and_then(|before| lines[before].source);
    lines[at].source.filter(|source| before != Some(*source))
}

/// Instructions that are seen, or that are not at first.
#[derive(Debug, PartialEq, Eq)]
struct ListingPart {
    range: Range<usize>,
    cold: bool,
}

/// All instructions, in order: those with samples and this many on either side are seen at first; `None`: all.
fn parts(lines: &[Line], context: Option<usize>) -> Vec<ListingPart> {
    let Some(context) = context else { return vec![ListingPart { range: 0..lines.len(), cold: false }] };
    let (mut parts, mut next) = (Vec::<ListingPart>::new(), 0);
    for at in (0..lines.len()).filter(|&at| lines[at].costs.is_some()) {
        let (from, to) = (at.saturating_sub(context).max(next), (at + context + 1).min(lines.len()));
        if from > next {
            parts.push(ListingPart { range: next..from, cold: true });
        }
        match parts.last_mut().filter(|last| !last.cold) {
            Some(last) => last.range.end = to,
            None => parts.push(ListingPart { range: from..to, cold: false }),
        }
        next = to;
    }
    if next < lines.len() {
        parts.push(ListingPart { range: next..lines.len(), cold: true });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(offset: u64, hot: bool) -> Line {
        let costs = hot.then(Costs::default);
        Line { offset, len: 1, text: "nop".into(), costs, target: None, source: None, calls: Vec::new() }
    }

    #[test]
    fn a_source_line_is_reported_where_it_begins_and_where_a_part_does() {
        let source = |number| Some(SourceLine { file: 0, line: number });
        let lines: Vec<Line> = [7, 7, 7, 8].map(|number| Line { source: source(number), ..line(0, false) }).into();
        let said = |first| (first..4).map(|at| new_source(&lines, first, at)).collect::<Vec<_>>();
        assert_eq!(said(0), [source(7), None, None, source(8)]);
        assert_eq!(said(2), [source(7), source(8)], "the rows before are folded away");
    }

    #[test]
    fn parts_are_all_instructions_and_those_near_hot_ones_are_seen() {
        let lines: Vec<Line> = (0..12).map(|at| line(at, matches!(at, 1 | 3 | 9))).collect();
        let of = |context| parts(&lines, context).into_iter().map(|part| (part.range, part.cold)).collect::<Vec<_>>();
        let seen = |range| (range, false);
        let cold = |range| (range, true);
        let alone = [cold(0..1), seen(1..2), cold(2..3), seen(3..4), cold(4..9), seen(9..10), cold(10..12)];
        assert_eq!(of(Some(0)), alone);
        assert_eq!(of(Some(2)), [seen(0..6), cold(6..7), seen(7..12)]);
        assert_eq!(of(None), [seen(0..12)]);
    }
}
