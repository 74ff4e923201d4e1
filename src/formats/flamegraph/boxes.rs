//! The boxes of a flame graph, written without a detour over lines of text.
//!
//! inferno draws from folded stacks, which spell every stack out: of deep recordings a thousand times more bytes than
//! there are names. It gets the names only, each once, and draws a page with them. Head, script and colours are that
//! page's; the boxes are written here, in the places that the tree gives them. The result is byte for byte what
//! inferno makes of the lines.

use super::decimal::{fixed, grouped, whole};
use crate::error::{Error, Result};
use crate::model::call_tree::{CallTree, Placed};
use crate::model::printable::printable;
use inferno::flamegraph::color::PaletteMap;
use inferno::flamegraph::{self, Direction, Options};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How wide inferno takes a picture to be that may be stretched.
const FLUID_WIDTH: usize = 1200;

/// Boxes in a piece: about half a megabyte of text.
const PIECE: usize = 2048;

/// A picture whose boxes are placed and named, to be written piece by piece.
#[derive(Debug)]
pub struct Picture {
    page: PageLayout,
    boxes: Vec<Placed>,
    /// By number.
    labels: Vec<BoxLabel>,
    lowest: BoxLabel,
}

impl Picture {
    /// Of a tree; `None` if one of its names, or the look, needs inferno's own way.
    pub(super) fn new(
        tree: &CallTree,
        narrow: u64,
        options: Options<'_>,
        palette: &mut PaletteMap,
    ) -> Result<Option<Self>> {
        // Colours by width, and lines between elements.
        if options.color_diffusion || options.pretty_xml {
            return Ok(None);
        }
        let boxes = tree.boxes(narrow);
        let used: BTreeSet<u32> = boxes.iter().filter_map(|placed| placed.label).collect();
        let depth = boxes.iter().map(|placed| placed.depth as usize).max().unwrap_or(0);
        let printed: Vec<Cow<'_, str>> = used.iter().map(|&label| printable(tree.name(label).as_bytes())).collect();
        let names: Vec<&str> = printed.iter().map(Cow::as_ref).collect();
        if depth == 0 || !names.iter().all(|name| is_plain(name)) {
            return Ok(None);
        }
        let Some(page) = PageLayout::draw(&names, depth, tree.total(), options, palette)? else { return Ok(None) };
        let mut labels = vec![BoxLabel::default(); tree.label_count()];
        for (&label, name) in used.iter().zip(&names) {
            labels[label as usize] = BoxLabel::new(without_suffix(name), name, palette);
        }
        Ok(Some(Self { page, boxes, labels, lowest: BoxLabel::new("all", "", palette) }))
    }

    /// What stands before the boxes.
    pub fn head(&self) -> &[u8] {
        &self.page.head
    }

    /// All boxes, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[Placed]> + Send {
        self.boxes.chunks(PIECE)
    }

    /// A piece's text.
    pub fn text(&self, piece: &[Placed]) -> Vec<u8> {
        let mut text = Vec::with_capacity(PIECE * 256);
        for placed in piece {
            let label = placed.label.map_or(&self.lowest, |label| &self.labels[label as usize]);
            self.page.one(placed, label, &mut text);
        }
        text
    }

    /// What stands behind the boxes.
    pub fn tail(&self) -> &[u8] {
        b"</svg></svg>"
    }
}

/// Whether a name is itself again after its way through a line of text, and coloured by nothing but itself.
fn is_plain(name: &str) -> bool {
    let last = name.rsplit(' ').next().unwrap_or(name);
    let number = last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !(number || name.trim() != name || name.starts_with('#') || name == "-" || name == "--")
}

/// A picture without its boxes, and what they need.
#[derive(Debug)]
struct PageLayout {
    /// All before the boxes.
    head: Vec<u8>,
    /// Upper edge of the lowest box.
    bottom: u64,
    /// From one row of boxes to the next.
    rise: u64,
    inverted: bool,
    /// Width of the picture, in pixels.
    width: f64,
    /// Width of a letter, in percent of the picture's.
    letter: f64,
    factor: f64,
    /// Escaped.
    count_name: Vec<u8>,
    total: u64,
}

impl PageLayout {
    /// Lets inferno draw one whose highest box has so many below it, and choose the colours of the names. `None` if
    /// it looks unlike what is known of inferno's.
    fn draw<'p>(
        names: &[&str],
        depth: usize,
        total: u64,
        mut options: Options<'p>,
        palette: &'p mut PaletteMap,
    ) -> Result<Option<Self>> {
        let highest = names.iter().cycle().take(depth).copied().collect::<Vec<_>>().join(";");
        let mut lines = vec![format!("{highest} {total}")];
        lines.extend(names.chunks(depth).map(|names| names.join(";") + " 0"));
        // What weighs nothing is to be coloured all the same.
        options.min_width = 0.0;
        let mut drawn = Vec::new();
        options.palette_map = Some(palette);
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)
            .map_err(|error| Error::new("cannot draw").because(error))?;
        let Some((head, bottom)) = Self::parse(&drawn) else { return Ok(None) };
        drawn.truncate(head);
        let width = options.image_width.unwrap_or(FLUID_WIDTH) as f64;
        Ok(Some(Self {
            head: drawn,
            bottom,
            rise: options.frame_height as u64,
            inverted: options.direction == Direction::Inverted,
            width,
            letter: 100.0 * options.font_size as f64 * options.font_width / width,
            factor: options.factor,
            count_name: escaped(&options.count_name),
            total,
        }))
    }

    /// Where the boxes begin, and the upper edge of the lowest one.
    fn parse(drawn: &[u8]) -> Option<(usize, u64)> {
        let frames = memchr::memmem::find(drawn, b"<svg id=\"frames\"")?;
        let head = frames + memchr::memchr(b'>', &drawn[frames..])? + 1;
        // All other boxes' percentages have digits behind the point.
        const LOWEST: &[u8] = b", 100%)</title><rect x=\"0.0000%\" y=\"";
        let edge = head + memchr::memmem::find(&drawn[head..], LOWEST)? + LOWEST.len();
        let digits = drawn[edge..].split(|&byte| byte == b'"').next()?;
        Some((head, std::str::from_utf8(digits).ok()?.parse().ok()?))
    }

    fn one(&self, placed: &Placed, label: &BoxLabel, out: &mut Vec<u8>) {
        let percent = 100.0 / self.total as f64;
        let (left, right) = (placed.start as f64 * percent, placed.end as f64 * percent);
        let climbed = u64::from(placed.depth) * self.rise;
        let top = if self.inverted { self.bottom + climbed } else { self.bottom.saturating_sub(climbed) };
        // Boxes leave a line of pixels free.
        let height = self.rise.saturating_sub(1);
        out.extend_from_slice(b"<g><title>");
        self.title(placed, label, out);
        out.extend_from_slice(b"</title><rect x=\"");
        fixed(out, left, 4);
        out.extend_from_slice(b"%\" y=\"");
        whole(out, top);
        out.extend_from_slice(b"\" width=\"");
        fixed(out, right - left, 4);
        out.extend_from_slice(b"%\" height=\"");
        whole(out, height);
        out.extend_from_slice(b"\" fill=\"");
        out.extend_from_slice(&label.color);
        out.extend_from_slice(b"\" fg:x=\"");
        whole(out, placed.start);
        out.extend_from_slice(b"\" fg:w=\"");
        whole(out, placed.end - placed.start);
        out.extend_from_slice(b"\"/><text x=\"");
        fixed(out, left + 100.0 * 3.0 / self.width, 4);
        out.extend_from_slice(b"%\" y=\"");
        fixed(out, 3.0 + (top + top + height) as f64 / 2.0, 2);
        out.extend_from_slice(b"\">");
        if placed.label.is_some() {
            self.text(right - left, label, out);
        }
        out.extend_from_slice(b"</text></g>");
    }

    /// `NAME (1,234 samples, 56.78%)`
    fn title(&self, placed: &Placed, label: &BoxLabel, out: &mut Vec<u8>) {
        let samples = ((placed.end - placed.start) as f64 * self.factor).round() as u64;
        out.extend_from_slice(&label.escaped);
        out.extend_from_slice(b" (");
        grouped(out, samples);
        out.push(b' ');
        out.extend_from_slice(&self.count_name);
        out.extend_from_slice(b", ");
        match placed.label {
            Some(_) => fixed(out, 100.0 * samples as f64 / (self.total as f64 * self.factor), 2),
            None => out.extend_from_slice(b"100"),
        }
        out.extend_from_slice(b"%)");
    }

    /// As much of the name as there is room for.
    fn text(&self, width: f64, label: &BoxLabel, out: &mut Vec<u8>) {
        let room = (width / self.letter).trunc() as usize;
        if room < 3 {
            return;
        }
        if label.name.len() < room {
            out.extend_from_slice(&label.escaped);
            return;
        }
        let end = label.name.char_indices().nth(room - 2).map_or(label.name.len(), |(end, _)| end);
        out.extend_from_slice(&escaped(&label.name[..end]));
        out.extend_from_slice(b"..");
    }
}

/// What stands in a box.
#[derive(Debug, Clone, Default)]
struct BoxLabel {
    name: String,
    escaped: Vec<u8>,
    /// `rgb(1,2,3)`
    color: Vec<u8>,
}

impl BoxLabel {
    /// `called` is its name to the palette.
    fn new(name: &str, called: &str, palette: &PaletteMap) -> Self {
        let color = palette.get(called).unwrap_or_default();
        let color = format!("rgb({},{},{})", color.r, color.g, color.b).into_bytes();
        Self { name: name.to_owned(), escaped: escaped(name), color }
    }
}

/// A name without the suffix that says what sort of code it is: that is told by the colour.
fn without_suffix(name: &str) -> &str {
    let bare = name.strip_suffix(']').and_then(|name| name.strip_suffix(['k', 'w', 'i', 'j']));
    bare.and_then(|name| name.strip_suffix("_[")).unwrap_or(name)
}

/// As text in XML.
fn escaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text.as_bytes() {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'\'' => out.extend_from_slice(b"&apos;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Look, Spelling, draw_lines, narrowest, picture, spell, write_picture};
    use super::*;
    use crate::model::stacks::{Weight, profile_of};

    fn tree(stacks: &[(&str, u64)]) -> CallTree {
        let profile = profile_of(stacks);
        CallTree::new(&profile, &profile.series[0], Weight::Period, Spelling::default())
    }

    /// What is written here, and what inferno makes of the lines.
    fn both(tree: &CallTree, look: &Look) -> (Option<String>, String) {
        let (mut own, mut inferno, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let drawn = picture(tree, &mut look.clone()).unwrap();
        if let Some(picture) = &drawn {
            write_picture(picture, &mut own).unwrap();
        }
        spell(tree, narrowest(tree, look), &mut lines);
        draw_lines(lines.iter().map(String::as_str), &mut look.clone(), &mut inferno).unwrap();
        (drawn.map(|_| String::from_utf8(own).unwrap()), String::from_utf8(inferno).unwrap())
    }

    /// Deep and broad, with names of all lengths, and names that begin like their siblings.
    fn varied() -> CallTree {
        let mut stacks = vec![
            ("main;a".to_owned(), 7),
            ("main;a b".to_owned(), 500),
            ("main;a (x)".to_owned(), 300),
            ("main;a;below".to_owned(), 900),
            ("main;wörk<T, 'a>::\"q\" & co_[j]".to_owned(), 4000),
        ];
        let mut state = 1u64;
        for n in 0..400 {
            let mut stack = "main".to_owned();
            for depth in 0..n % 60 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let name = "nämé".repeat(state as usize >> 60);
                stack += &format!(";f{name}{}_[k]", (state >> 33) % (1 + depth % 3));
            }
            stacks.push((stack, state >> 50));
        }
        let stacks: Vec<_> = stacks.iter().map(|(names, weight)| (names.as_str(), *weight)).collect();
        tree(&stacks)
    }

    #[test]
    fn each_picture_is_infernos() {
        let mut palette = PaletteMap::default();
        palette.insert("main", inferno::flamegraph::color::Color::new(1, 2, 3));
        let looks = [
            Look::default(),
            Look { inverted: true, hash: true, ..Look::default() },
            Look { min_width: Some(0.0), count_name: Some("<ns>".to_owned()), ..Look::default() },
            Look { min_width: Some(3.0), subtitle: Some("sub".to_owned()), height: Some(22), ..Look::default() },
            Look { width: Some(777), font_size: Some(9), font_width: Some(0.7), ..Look::default() },
            Look { factor: Some(0.3), notes: Some("n & n".to_owned()), truncate_right: true, ..Look::default() },
            Look { palette: Some(palette), no_javascript: true, ..Look::default() },
            Look { colors: "rust".parse().unwrap(), ..Look::default() },
        ];
        let tree = varied();
        for look in looks {
            let (own, inferno) = both(&tree, &look);
            assert_eq!(own, Some(inferno), "{look:?}");
        }
    }

    #[test]
    fn a_root_that_is_too_narrow_counts_in_the_whole() {
        let tree = tree(&[("a;x", 1), ("b;y", 1000), ("c;z", 2)]);
        let look = Look { min_width: Some(1.0), ..Look::default() };
        let (own, inferno) = both(&tree, &look);
        let (mut all, mut lines) = (Vec::new(), Vec::new());
        spell(&tree, 0, &mut lines);
        draw_lines(lines.iter().map(String::as_str), &mut look.clone(), &mut all).unwrap();
        assert_eq!(inferno, String::from_utf8(all).unwrap());
        assert!(inferno.contains("all (1,003 samples") && inferno.contains("b (1,000 samples, 99.70%)"), "{inferno}");
        assert_eq!(own, Some(inferno));
    }

    #[test]
    fn colours_of_new_names_are_added_to_a_palette() {
        let mut palettes = [Some(PaletteMap::default()), Some(PaletteMap::default())];
        let tree = varied();
        let [own, inferno] = &mut palettes;
        let mut look = Look { palette: own.take(), ..Look::default() };
        assert!(picture(&tree, &mut look).unwrap().is_some());
        *own = look.palette.take();
        let mut lines = Vec::new();
        spell(&tree, narrowest(&tree, &look), &mut lines);
        look.palette = inferno.take();
        draw_lines(lines.iter().map(String::as_str), &mut look, &mut Vec::new()).unwrap();
        assert_eq!(own, &look.palette);
    }

    #[test]
    fn what_a_line_of_text_would_change_is_left_to_inferno() {
        for name in ["leaf 12", "7", " x", "x ", "-", "--", "# x", ""] {
            assert!(
                both(&tree(&[("main", 3), (&format!("main;{name};f"), 4)]), &Look::default()).0.is_none(),
                "{name}"
            );
        }
        let tree = tree(&[("main;f", 3)]);
        for look in [Look { color_diffusion: true, ..Look::default() }, Look { pretty_xml: true, ..Look::default() }] {
            assert!(both(&tree, &look).0.is_none());
        }
    }
}
