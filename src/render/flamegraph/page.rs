//! A flame graph as an SVG file. Any program that shows SVG shows the picture. Where scripts run, the file's own script
//! makes it searchable and zoomable.
//!
//! The picture has few elements: all boxes of one color are strokes of one path. The script doesn't use these paths. It
//! reads the boxes as numbers (see [`data`]), and draws what is in view on a canvas.

use super::amount::percent;
use super::data::{self, Color};
use super::decimal::push_fixed;
use super::drawing::{Drawing, PageBox};
use super::fit::{Cut, shorten};
use super::layout::{Extent, LEGEND_SWATCH, LEGEND_TEXT, Layout, MARGIN, facts_baseline, title_baseline};
use super::look::Look;
use crate::analysis::category::Category;
use crate::bytes::escapes::escape_markup;
use crate::model::stacks::TRUNCATED;
use crate::render::palette;
use crate::render::palette::{CLASS, Swatch};
use crate::render::viewer::picture_script;
use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");

/// The number of boxes in one [`Piece`]. A piece is about half a megabyte of text.
const PIECE: usize = 4096;

/// Maximum width, in pixels, of a box that is drawn without a gap to its neighbor.
const NARROW: f64 = 2.0;

/// The gap between two boxes, in pixels. The page's background is visible in it.
const GAP: f64 = 1.0;

/// Minimum width, in pixels, of a box that is drawn. Narrower ones would be invisible, even side by side.
const INVISIBLE: f64 = 0.1;

/// Minimum width, in pixels, of a box that shows stripes for the shares of tiers.
const WIDE_ENOUGH_FOR_TIERS: f64 = 8.0;

/// The number of times on the axis below a chart.
const AXIS_MARKS: u64 = 10;

/// A flame graph that is written as SVG piece by piece.
#[derive(Debug)]
pub struct Picture {
    drawing: Drawing,
    head: Vec<u8>,
    tail: Vec<u8>,
    layout: Layout,
    /// The number by which all amounts are divided in the data for the script; see [`Drawing::common_unit`].
    unit: u64,
    cut: Cut,
    /// False if the picture is static, without a script.
    has_script: bool,
}

/// A few thousand consecutive boxes ([`PIECE`]), which are written as one `<g>` element. With pieces, the picture's
/// text is made in parallel and never as a whole in memory.
#[derive(Debug)]
pub struct Piece<'a>(&'a [PageBox]);

impl Picture {
    /// Lays out the drawing, and writes the picture's text before and after the boxes. The boxes themselves are written
    /// later, piece by piece.
    pub(super) fn new(drawing: Drawing, look: &Look) -> Self {
        let mut picture = Self {
            unit: drawing.common_unit(),
            head: Vec::new(),
            tail: Vec::new(),
            layout: Layout::new(&drawing, look),
            cut: look.cut,
            has_script: !look.no_javascript,
            drawing,
        };
        picture.head = picture.write_head(look).into_bytes();
        picture.tail = picture.write_tail().into_bytes();
        picture
    }

    /// The part of the SVG file before the boxes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// All boxes, in pieces that must be written in this order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> + Send {
        self.drawing.boxes.chunks(PIECE).map(Piece)
    }

    /// The part of the SVG file after the boxes.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// The SVG text up to the boxes: style, data for the script, title, facts and legend.
    fn write_head(&self, look: &Look) -> String {
        let Layout { width, height, .. } = self.layout;
        let title = escape(&self.drawing.title);
        let subtitle = look.subtitle.clone().unwrap_or_else(|| self.drawing.facts.join(" · "));
        let swatches = self.swatches();
        let mut head = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<title>{title}</title>\n<style>{}</style>\n",
            self.style(look, &swatches),
        );
        let patterns = palette::patterns(&swatches);
        if !patterns.is_empty() {
            head += &format!("<defs>{patterns}</defs>\n");
        }
        if let Some(notes) = &look.notes {
            head += &format!("<desc>{}</desc>\n", escape(notes));
        }
        if self.has_script {
            let facts = data::facts(&self.drawing, &self.layout, look, self.unit, &subtitle).to_string();
            head += &format!("<metadata id=\"facts\">{}</metadata>\n", escape(&facts));
            head += &format!("<metadata id=\"names\">{}</metadata>\n", escape(&self.drawing.names.join("\n")));
        }
        head += &format!("<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n");
        // `layout.letter` is the width of a letter in a box. Letters of the title are about a quarter wider.
        let room = ((width - 2.0 * MARGIN) / (self.layout.letter * 1.25)) as usize;
        let short_title = shorten(&self.drawing.title, room, false, Cut::End).unwrap_or_default();
        head += &text_element("title", MARGIN, title_baseline(), &short_title);
        head += &text_element("facts", MARGIN, facts_baseline(), &subtitle);
        head + &self.write_legend() + "<g id=\"boxes\">"
    }

    /// The SVG text of the legend. A color is drawn as a stroke that is as thick as it is long, because the colors'
    /// classes are for strokes.
    fn write_legend(&self) -> String {
        let mut legend = String::new();
        for entry in &self.layout.legend {
            let (letter, x, middle) = (entry.swatch.letter(), entry.x, entry.y - 4.0);
            legend += &format!(
                "<path class=\"{CLASS}{letter}0\" style=\"stroke-width:{LEGEND_SWATCH}\" \
                 d=\"M{x:.1} {middle:.1}h{LEGEND_SWATCH}\"/>"
            );
            let text_x = x + LEGEND_TEXT;
            legend +=
                &format!("<text class=\"facts\" x=\"{text_x:.1}\" y=\"{}\">{}</text>\n", entry.y, escape(&entry.text));
        }
        legend
    }

    /// The colors that occur in the legend, in boxes and in their tiers, without duplicates.
    fn swatches(&self) -> Vec<Swatch> {
        let mut swatches: Vec<Swatch> = self.drawing.legend.iter().map(|(swatch, _)| *swatch).collect();
        for page_box in &self.drawing.boxes {
            swatches.push(page_box.swatch);
            swatches.extend(page_box.shares.iter().map(|(swatch, _)| *swatch));
        }
        swatches.sort_unstable();
        swatches.dedup();
        swatches
    }

    /// The text of the style sheet: fonts, sizes and colors.
    fn style(&self, look: &Look, swatches: &[Swatch]) -> String {
        let (family, font) = (look.font_family(), self.layout.font);
        let mut style = format!(
            ":root{{--font:{family};--size:{font}px;font-family:{family};font-size:{font}px}}path{{stroke-width:{}}}",
            self.layout.row - 1.0
        );
        style += STYLE;
        #[cfg(feature = "cli")]
        if let Some(color) = look.search_color {
            style += &format!(":root{{--found:{color}}}");
        }
        style += &palette::rules(swatches);
        // If the page has a script, the colors are needed as CSS variables, too: the script draws on a canvas, where
        // classes don't work.
        if self.has_script { style + &palette::variables_of(swatches) } else { style }
    }

    /// The SVG text after the boxes: the time axis of a chart, and the script.
    fn write_tail(&self) -> String {
        let mut tail = String::from("</g>\n");
        if self.drawing.is_chart {
            tail += &self.axis();
        }
        if self.has_script {
            tail += &format!("<script><![CDATA[\n{}]]></script>\n", picture_script());
        }
        tail + "</svg>\n"
    }

    /// The time axis below a chart.
    fn axis(&self) -> String {
        let y = self.layout.height - MARGIN;
        let mut axis = String::new();
        // There is no mark at the right edge: its text would not fit into the picture.
        for mark in 0..AXIS_MARKS {
            let amount = self.drawing.total / AXIS_MARKS * mark;
            let x = self.layout.x_of(amount);
            let text = escape(&self.drawing.amounts.text(amount));
            axis += &format!("<text class=\"facts\" x=\"{x:.1}\" y=\"{y}\">{text}</text>");
        }
        axis
    }

    /// The SVG text for a piece of the picture. If the page has a script, the text consists of the data of all boxes,
    /// which the script reads, the paths that draw the boxes, and the boxes' labels. If the page has no script, each
    /// box is an element of its own with a tooltip.
    pub fn text(&self, piece: &Piece<'_>) -> Vec<u8> {
        let boxes = piece.0;
        let mut out = Vec::with_capacity(PIECE * 64);
        if self.has_script {
            out.extend_from_slice(b"<g data-b=\"");
            data::write_boxes(&self.drawing, boxes, self.unit, &mut out);
            out.extend_from_slice(b"\">\n");
            self.write_paths(boxes, &mut out);
            for page_box in boxes {
                self.write_label(page_box, &mut out);
            }
        } else {
            out.extend_from_slice(b"<g>\n");
            for page_box in boxes {
                self.write_with_tooltip(page_box, &mut out);
            }
        }
        out.extend_from_slice(b"</g>\n");
        out
    }

    /// Writes the boxes as paths, one path per color. On top of them come the stripes that mark tiers, one path per
    /// tier. The boxes of lanes are skipped: such a box only shows a thread's name, without a color.
    fn write_paths(&self, boxes: &[PageBox], out: &mut Vec<u8>) {
        let mut by_color: BTreeMap<Color, Vec<u8>> = BTreeMap::new();
        let mut stripes: BTreeMap<char, Vec<u8>> = BTreeMap::new();
        for page_box in boxes.iter().filter(|page_box| page_box.swatch != Swatch::Lane) {
            let path = by_color.entry(Color::new(&self.drawing, page_box)).or_default();
            self.add_bar(page_box, path);
            self.add_stripes(page_box, &mut stripes);
        }
        for (color, path) in by_color {
            open_colored(b"<path", color, out);
            out.extend_from_slice(b" d=\"");
            out.extend_from_slice(&path);
            out.extend_from_slice(b"\"/>\n");
        }
        for (letter, path) in stripes {
            out.extend_from_slice(format!("<path class=\"{CLASS}{letter}0 tier\" d=\"").as_bytes());
            out.extend_from_slice(&path);
            out.extend_from_slice(b"\"/>\n");
        }
    }

    /// Adds to a path a stroke that is as long and as thick as the box. There is a gap to the next box, unless this box
    /// is narrow.
    fn add_bar(&self, page_box: &PageBox, path: &mut Vec<u8>) {
        let Extent { left, width } = self.layout.extent(page_box);
        let width = if width > NARROW { width - GAP } else { width };
        // A box this narrow becomes visible only after zooming in. Then the script draws it from the data.
        if width < INVISIBLE {
            return;
        }
        // A box is 1 pixel lower than its row, because of the gap to the next row.
        let middle = self.layout.top_of(page_box) + (self.layout.row - 1.0) / 2.0;
        add_stroke(path, left, middle, width);
    }

    /// Adds stripes along the lower edge of a function's box that show the share of each tier. `stripes` has one path
    /// per tier's letter. Does nothing if the box has no shares or is too narrow.
    fn add_stripes(&self, page_box: &PageBox, stripes: &mut BTreeMap<char, Vec<u8>>) {
        let Extent { mut left, width } = self.layout.extent(page_box);
        if page_box.shares.is_empty() || width < WIDE_ENOUGH_FOR_TIERS {
            return;
        }
        let sum: f64 = page_box.shares.iter().map(|&(_, weight)| weight as f64).sum();
        for (swatch, weight) in &page_box.shares {
            // The stripes are as wide as the bar, without the gap to the next box.
            let stripe_width = (width - GAP) * *weight as f64 / sum;
            // The middle of a stripe, which is 3 pixels high. Its lower edge is that of the box, 1 pixel above the next
            // row.
            let y = self.layout.top_of(page_box) + self.layout.row - 2.5;
            add_stroke(stripes.entry(swatch.letter()).or_default(), left, y, stripe_width);
            left += stripe_width;
        }
    }

    /// Writes the name of a box, if there is room for it.
    fn write_label(&self, page_box: &PageBox, out: &mut Vec<u8>) {
        let Extent { left, width } = self.layout.extent(page_box);
        // A dot separates packages in the names of JIT code. In other names, such as `foo.cold`, it doesn't.
        let dots_qualify = matches!(page_box.swatch, Swatch::Code(Category::Jit(_)));
        // The text begins 3 pixels from the left edge (see below), and 1 pixel stays free on the right.
        let room = ((width - 4.0) / self.layout.letter).max(0.0) as usize;
        let Some(text) = shorten(self.drawing.name(page_box), room, dots_qualify, self.cut) else { return };
        // Places the baseline a third of the font's size below the row's middle, which centers the text.
        let baseline = self.layout.top_of(page_box) + self.layout.row / 2.0 + self.layout.font * 0.33;
        open_colored(b"<text", Color::new(&self.drawing, page_box), out);
        out.extend_from_slice(b" x=\"");
        push_fixed(out, left + 3.0, 1);
        out.extend_from_slice(b"\" y=\"");
        push_fixed(out, baseline, 1);
        out.extend_from_slice(b"\">");
        out.extend_from_slice(escape(&text).as_bytes());
        out.extend_from_slice(b"</text>\n");
    }

    /// Writes a box with a tooltip that shows its name, for pictures without the script.
    fn write_with_tooltip(&self, page_box: &PageBox, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<g><title>");
        out.extend_from_slice(escape(&self.tooltip(page_box)).as_bytes());
        out.extend_from_slice(b"</title>");
        // The box of a lane has no color: it only shows the name of a chart's thread.
        if page_box.swatch != Swatch::Lane {
            open_colored(b"<path", Color::new(&self.drawing, page_box), out);
            out.extend_from_slice(b" d=\"");
            self.add_bar(page_box, out);
            out.extend_from_slice(b"\"/>");
        }
        self.write_label(page_box, out);
        out.extend_from_slice(b"</g>\n");
    }

    /// The tooltip of a box, such as `name: 7.0 ms, 12.34%; self 1.5 ms, 2.64%`.
    fn tooltip(&self, page_box: &PageBox) -> String {
        let name = self.drawing.name(page_box);
        let mut tooltip = format!("{name}: {}", self.amount_with_share(page_box.end - page_box.start));
        if let Some(own) = page_box.own {
            tooltip += &format!("; self {}", self.amount_with_share(own));
        }
        // The box named `TRUNCATED` stands for the missing callers of truncated stacks. Say why they are missing.
        if let Some(truncation) = &self.drawing.truncation
            && name.as_bytes() == TRUNCATED
        {
            tooltip += &format!("; {truncation}");
        }
        tooltip
    }

    fn amount_with_share(&self, amount: u64) -> String {
        format!("{}, {}", self.drawing.amounts.text(amount), percent(amount as f64, self.drawing.total as f64))
    }
}

/// Writes the start of an element with the CSS class of a color. More attributes may follow.
fn open_colored(tag: &[u8], color: Color, out: &mut Vec<u8>) {
    out.extend_from_slice(tag);
    out.extend_from_slice(b" class=\"");
    out.extend_from_slice(CLASS.as_bytes());
    color.write(out);
    out.push(b'"');
}

/// Appends a stroke to a path, such as `M12.5 30h4.2`.
fn add_stroke(path: &mut Vec<u8>, x: f64, y: f64, width: f64) {
    path.push(b'M');
    push_fixed(path, x, 2);
    path.push(b' ');
    push_fixed(path, y, 1);
    path.push(b'h');
    push_fixed(path, width, 2);
}

fn text_element(class: &str, x: f64, y: f64, text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>\n", escape(text))
}

/// Escapes a text for XML, and removes the characters that XML forbids.
fn escape(text: &str) -> String {
    // XML forbids some characters even if they are escaped. Names have none of them, but titles may, because users type
    // titles.
    escape_markup(text.chars().filter(|letter| match letter {
        '\n' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => !letter.is_control(),
    }))
}
