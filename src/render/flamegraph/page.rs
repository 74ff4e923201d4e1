//! A flame graph as an SVG file. Any program that shows SVG shows the picture. Where scripts run, the file's own script
//! makes it searchable and zoomable.
//!
//! The picture has few elements: all boxes of one color are strokes of one path. The script doesn't use these paths. It
//! reads the names (element `names`, one per line), other facts (`facts`, JSON) and the boxes (attribute `data-b` of
//! the groups in `boxes`), and draws what is in view on a canvas.
//!
//! A box is written as `row,start,width,name,color[,shares[,before]]`; boxes are separated by blanks. `start` is
//! relative to the start of the previous box in the group. Amounts are multiples of the fact `unit`. `color` is a
//! letter and the number of a shade. `shares` are the letters of tiers, each followed by the tier's amount. `before` is
//! the amount in the earlier profile of a difference; it ends in `~` if the change may be chance.

use super::amount::{Scale, percent};
use super::decimal::push_fixed;
use super::drawing::{Drawing, PageBox};
use super::fit::{Cut, shorten};
use super::look::Look;
use crate::analysis::category::Category;
use crate::bytes::decimal::push_decimal;
use crate::bytes::escapes::escape_markup;
use crate::render::palette;
use crate::render::palette::{CLASS, Swatch, shade};
use crate::render::viewer::picture_script;
use serde_json::json;
use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");

/// The number of boxes in one [`Piece`]. A piece is about half a megabyte of text.
const PIECE: usize = 4096;

/// The picture's width in pixels if the user requests none. With the script, the picture fills the window instead.
const WIDTH: f64 = 1200.0;

/// The space between boxes and the picture's sides, and above the first line of text, in pixels.
const MARGIN: f64 = 8.0;

/// The distance between lines of the title, facts and legend, in pixels.
const LINE: f64 = 19.0;

/// The height of the time axis below a chart, in pixels.
const AXIS: f64 = 20.0;

/// Maximum width in pixels of boxes that have no gap to their neighbor.
const NARROW: f64 = 2.0;

/// The gap between two boxes, in pixels. The page's background is visible in it.
const GAP: f64 = 1.0;

/// Minimum width in pixels of boxes that are drawn. Even many narrower boxes side by side would not be visible.
const INVISIBLE: f64 = 0.1;

/// A flame graph that is written as SVG piece by piece.
#[derive(Debug)]
pub struct Picture {
    drawing: Drawing,
    head: Vec<u8>,
    tail: Vec<u8>,
    sizes: Sizes,
    /// All amounts are multiples of this number; see [`Drawing::common_unit`].
    unit: u64,
    cut: Cut,
    script: bool,
    name_type: String,
}

/// Dimensions of the picture, in pixels.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    width: f64,
    height: f64,
    /// The upper edge of the topmost row of boxes.
    top: f64,
    row: f64,
    rows: u32,
    font: f64,
    letter: f64,
    inverted: bool,
    /// Pixels per unit of the boxes' amounts.
    scale: f64,
}

impl Sizes {
    fn new(drawing: &Drawing, look: &Look, lines: usize) -> Self {
        let width = look.width.map_or(WIDTH, |width| width as f64);
        let font = look.font_size.unwrap_or(12) as f64;
        let row = look.height.map_or(font + 4.0, |height| height as f64).max(2.0);
        let top = MARGIN * 2.0 + LINE * lines as f64;
        let axis = if drawing.is_chart { AXIS } else { 0.0 };
        Self {
            width,
            height: top + row * f64::from(drawing.rows) + MARGIN + axis,
            top,
            row,
            rows: drawing.rows,
            font,
            letter: font * look.font_width.unwrap_or(0.62),
            inverted: look.inverted,
            scale: (width - 2.0 * MARGIN) / drawing.total as f64,
        }
    }

    /// The upper edge of a row.
    fn top_of_row(&self, row: u32) -> f64 {
        let above = if self.inverted { row } else { self.rows - 1 - row };
        self.top + self.row * f64::from(above)
    }
}

impl Picture {
    pub(super) fn new(drawing: Drawing, look: &Look) -> Self {
        let facts = look.subtitle.clone().unwrap_or_else(|| drawing.facts.join(" · "));
        let legend = legend_lines(&drawing, look);
        let sizes = Sizes::new(&drawing, look, 2 + legend.len());
        let mut picture = Self {
            unit: drawing.common_unit(),
            head: Vec::new(),
            tail: Vec::new(),
            sizes,
            cut: look.cut,
            script: !look.no_javascript,
            name_type: look.name_type.clone().unwrap_or_default(),
            drawing,
        };
        picture.head = picture.write_head(look, &facts, &legend).into_bytes();
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

    fn write_head(&self, look: &Look, facts: &str, legend: &[Vec<(Swatch, String)>]) -> String {
        let Sizes { width, height, .. } = self.sizes;
        let (title, swatches) = (escape(&self.drawing.title), self.swatches());
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
        if self.script {
            let all = json!({
                "title": self.drawing.title,
                "facts": facts,
                "legend": self.drawing.legend.iter().map(|(of, text)| json!([of.letter(), text])).collect::<Vec<_>>(),
                "words": words(),
                "rows": self.drawing.rows,
                "total": self.drawing.total / self.unit,
                "unit": self.unit,
                "factor": self.drawing.amounts.factor,
                "scale": match self.drawing.amounts.scale {
                    Scale::Time => "time",
                    Scale::Bytes => "bytes",
                    Scale::Whole => "whole",
                    Scale::Large => "large",
                },
                "counts": self.drawing.amounts.name,
                "inverted": look.inverted,
                "chart": self.drawing.is_chart,
                "row": self.sizes.row,
                "font": self.sizes.font,
                "family": family(look),
                "width": look.width,
                "cutBegin": self.cut == Cut::Begin,
                "nameType": self.name_type,
            });
            head += &format!("<metadata id=\"facts\">{}</metadata>\n", escape(&all.to_string()));
            head += &format!("<metadata id=\"names\">{}</metadata>\n", escape(&self.drawing.names.join("\n")));
        }
        head += &format!("<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n");
        let mut y = MARGIN + LINE - 4.0;
        let room = ((width - 2.0 * MARGIN) / (self.sizes.letter * 1.25)) as usize;
        let title = shorten(&self.drawing.title, room, false, Cut::End).unwrap_or_default();
        head += &format!("<text class=\"title\" x=\"{MARGIN}\" y=\"{y}\">{}</text>\n", escape(&title));
        y += LINE;
        head += &format!("<text class=\"facts\" x=\"{MARGIN}\" y=\"{y}\">{}</text>\n", escape(facts));
        for line in legend {
            y += LINE;
            let mut x = MARGIN;
            for (swatch, text) in line {
                let letter = swatch.letter();
                head += &format!(
                    "<path class=\"{CLASS}{letter}0\" style=\"stroke-width:12\" d=\"M{x:.1} {:.1}h12\"/>\
                     <text class=\"facts\" x=\"{:.1}\" y=\"{y}\">{}</text>\n",
                    y - 4.0,
                    x + 17.0,
                    escape(text),
                );
                x += legend_width(text, self.sizes.letter);
            }
        }
        head + "<g id=\"boxes\">"
    }

    /// The colors that occur in the legend, in boxes and in their tiers, without duplicates.
    fn swatches(&self) -> Vec<Swatch> {
        let mut swatches: Vec<Swatch> = self.drawing.legend.iter().map(|(swatch, _)| *swatch).collect();
        for one in &self.drawing.boxes {
            swatches.push(one.swatch);
            swatches.extend(one.shares.iter().map(|(swatch, _)| *swatch));
        }
        swatches.sort_unstable();
        swatches.dedup();
        swatches
    }

    fn style(&self, look: &Look, swatches: &[Swatch]) -> String {
        let family = family(look);
        let Sizes { font, row, .. } = self.sizes;
        let mut style = format!(
            ":root{{--font:{family};--size:{font}px;font-family:{family};font-size:{font}px}}path{{stroke-width:{}}}",
            row - 1.0
        );
        style += STYLE;
        if let Some(color) = look.search_color {
            style += &format!(":root{{--found:{color}}}");
        }
        style += &palette::rules(swatches);
        // The script needs the colors as CSS variables, because it draws on a canvas instead of using classes.
        if self.script { style + &palette::variables_of(swatches) } else { style }
    }

    fn write_tail(&self) -> String {
        let mut tail = String::from("</g>\n");
        if self.drawing.is_chart {
            tail += &self.axis();
        }
        if self.script {
            tail += &format!("<script><![CDATA[\n{}]]></script>\n", picture_script());
        }
        tail + "</svg>\n"
    }

    /// The time axis below a chart.
    fn axis(&self) -> String {
        const MARKS: u64 = 10;
        let y = self.sizes.height - MARGIN;
        let mut axis = String::new();
        for number in 0..MARKS {
            let amount = self.drawing.total / MARKS * number;
            let x = MARGIN + amount as f64 * self.sizes.scale;
            let text = escape(&self.drawing.amounts.text(amount));
            axis += &format!("<text class=\"facts\" x=\"{x:.1}\" y=\"{y}\">{text}</text>");
        }
        axis
    }

    /// The SVG text for a piece of the picture.
    pub fn text(&self, piece: &Piece<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(PIECE * 64);
        out.extend_from_slice(b"<g");
        if self.script {
            out.extend_from_slice(b" data-b=\"");
            self.write_data(piece.0, &mut out);
            out.push(b'"');
        }
        out.extend_from_slice(b">\n");
        if self.script {
            self.write_paths(piece.0, &mut out);
            for one in piece.0 {
                self.write_label(one, &mut out);
            }
        } else {
            for one in piece.0 {
                self.write_with_tooltip(one, &mut out);
            }
        }
        out.extend_from_slice(b"</g>\n");
        out
    }

    fn write_data(&self, boxes: &[PageBox], out: &mut Vec<u8>) {
        let mut before = 0;
        for (index, one) in boxes.iter().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            push_decimal(one.row.into(), out);
            out.push(b',');
            // In a chart, each thread starts at the left again, so a difference to the previous start can be negative.
            let start = one.start / self.unit;
            if start < before {
                out.push(b'-');
            }
            push_decimal(start.abs_diff(before), out);
            before = start;
            out.push(b',');
            push_decimal((one.end - one.start) / self.unit, out);
            out.push(b',');
            push_decimal(one.name.into(), out);
            out.push(b',');
            self.color(one).write(out);
            if !one.shares.is_empty() || one.before.is_some() {
                out.push(b',');
            }
            for (swatch, weight) in &one.shares {
                out.push(swatch.letter() as u8);
                push_decimal(weight / self.unit, out);
            }
            if let Some(was) = one.before {
                let chance = if was.significant { "" } else { "~" };
                out.extend_from_slice(format!(",{}{chance}", was.amount / self.unit).as_bytes());
            }
        }
    }

    fn name(&self, one: &PageBox) -> &str {
        &self.drawing.names[one.name as usize]
    }

    fn color(&self, one: &PageBox) -> Color {
        let shade = if one.before.is_some() { 0 } else { shade(self.name(one)) };
        Color { letter: one.swatch.letter(), shade }
    }

    fn extent(&self, one: &PageBox) -> Extent {
        let start = one.start as f64 * self.sizes.scale;
        let end = one.end as f64 * self.sizes.scale;
        Extent { left: MARGIN + start, width: end - start }
    }

    /// Writes the boxes as paths, one path per color.
    fn write_paths(&self, boxes: &[PageBox], out: &mut Vec<u8>) {
        let mut by_color: BTreeMap<Color, Vec<u8>> = BTreeMap::new();
        let mut stripes: BTreeMap<char, Vec<u8>> = BTreeMap::new();
        for one in boxes.iter().filter(|one| one.swatch != Swatch::Lane) {
            let path = by_color.entry(self.color(one)).or_default();
            self.add_bar(one, path);
            self.add_stripes(one, &mut stripes);
        }
        for (color, path) in by_color {
            color.write_class(b"<path class=\"", out);
            out.extend_from_slice(b"\" d=\"");
            out.extend_from_slice(&path);
            out.extend_from_slice(b"\"/>\n");
        }
        for (letter, path) in stripes {
            out.extend_from_slice(format!("<path class=\"{CLASS}{letter}0 tier\" d=\"").as_bytes());
            out.extend_from_slice(&path);
            out.extend_from_slice(b"\"/>\n");
        }
    }

    /// Adds a stroke that is as long and as thick as the box. It leaves a gap to the next box, unless the box is
    /// narrow.
    fn add_bar(&self, one: &PageBox, path: &mut Vec<u8>) {
        let Extent { left, width } = self.extent(one);
        let width = if width > NARROW { width - GAP } else { width };
        // The box only becomes visible when zooming in. The script draws it from the data.
        if width < INVISIBLE {
            return;
        }
        add_stroke(path, left, self.sizes.top_of_row(one.row) + (self.sizes.row - 1.0) / 2.0, width);
    }

    /// Adds stripes along the lower edge of a function's box that show the share of each tier.
    fn add_stripes(&self, one: &PageBox, stripes: &mut BTreeMap<char, Vec<u8>>) {
        let Extent { mut left, width } = self.extent(one);
        if one.shares.is_empty() || width < 4.0 * NARROW {
            return;
        }
        let all: f64 = one.shares.iter().map(|&(_, weight)| weight as f64).sum();
        for (swatch, weight) in &one.shares {
            let share = (width - GAP) * *weight as f64 / all;
            let y = self.sizes.top_of_row(one.row) + self.sizes.row - 2.5;
            add_stroke(stripes.entry(swatch.letter()).or_default(), left, y, share);
            left += share;
        }
    }

    /// Writes the name of a box, if there is room for it.
    fn write_label(&self, one: &PageBox, out: &mut Vec<u8>) {
        let Extent { left, width } = self.extent(one);
        // In JIT code, runtimes separate packages by dots.
        let dots_qualify = matches!(one.swatch, Swatch::Code(Category::Jit(_)));
        let room = ((width - 4.0) / self.sizes.letter).max(0.0) as usize;
        let Some(text) = shorten(self.name(one), room, dots_qualify, self.cut) else { return };
        // The text stands on the baseline, about a third of its size below the middle of the row.
        let baseline = self.sizes.top_of_row(one.row) + self.sizes.row / 2.0 + self.sizes.font * 0.33;
        self.color(one).write_class(b"<text class=\"", out);
        out.extend_from_slice(b"\" x=\"");
        push_fixed(out, left + 3.0, 1);
        out.extend_from_slice(b"\" y=\"");
        push_fixed(out, baseline, 1);
        out.extend_from_slice(b"\">");
        out.extend_from_slice(escape(&text).as_bytes());
        out.extend_from_slice(b"</text>\n");
    }

    /// Writes a box with a tooltip that shows its name, for pages without the script.
    fn write_with_tooltip(&self, one: &PageBox, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<g><title>");
        out.extend_from_slice(escape(&self.tooltip(one)).as_bytes());
        out.extend_from_slice(b"</title>");
        if one.swatch != Swatch::Lane {
            self.color(one).write_class(b"<path class=\"", out);
            out.extend_from_slice(b"\" d=\"");
            self.add_bar(one, out);
            out.extend_from_slice(b"\"/>");
        }
        self.write_label(one, out);
        out.extend_from_slice(b"</g>\n");
    }

    /// The tooltip of a box, such as `name: 7.0 ms, 12.34%`.
    fn tooltip(&self, one: &PageBox) -> String {
        let amount = one.end - one.start;
        let share = percent(amount as f64, self.drawing.total as f64);
        format!("{}: {}, {share}", self.name(one), self.drawing.amounts.text(amount))
    }
}

/// The left and right edge of a box, in pixels.
struct Extent {
    left: f64,
    width: f64,
}

/// A color in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Color {
    /// The letter of the swatch (ASCII).
    letter: char,
    shade: u32,
}

impl Color {
    fn write(self, out: &mut Vec<u8>) {
        out.push(self.letter as u8);
        push_decimal(self.shade.into(), out);
    }

    /// Writes the CSS class name of the color, preceded by `before`.
    fn write_class(self, before: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(before);
        out.extend_from_slice(CLASS.as_bytes());
        self.write(out);
    }
}

/// Consecutive boxes that are written as one group.
#[derive(Debug)]
pub struct Piece<'a>(&'a [PageBox]);

/// The names of the kinds of code, by the letters that stand for them in the page.
fn words() -> serde_json::Map<String, serde_json::Value> {
    let mut words = serde_json::Map::new();
    for category in Category::ALL {
        words.insert(Swatch::Code(category).letter().to_string(), category.name().into());
    }
    words
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

fn legend_width(text: &str, letter: f64) -> f64 {
    17.0 + (text.chars().count() as f64 + 2.0) * letter
}

/// The font names in a form that works in style sheets as well as on canvases.
fn family(look: &Look) -> String {
    let family = look.font_type.as_deref().unwrap_or("Verdana, 'DejaVu Sans', sans-serif");
    family.chars().filter(|c| c.is_alphanumeric() || " ,'-_.".contains(*c)).collect()
}

/// Splits the legend into lines, with as many entries per line as fit.
fn legend_lines(drawing: &Drawing, look: &Look) -> Vec<Vec<(Swatch, String)>> {
    let sizes = Sizes::new(drawing, look, 0);
    let mut lines: Vec<Vec<(Swatch, String)>> = Vec::new();
    let mut x = f64::INFINITY;
    for entry in &drawing.legend {
        let width = legend_width(&entry.1, sizes.letter);
        if x + width > sizes.width - 2.0 * MARGIN {
            lines.push(Vec::new());
            x = 0.0;
        }
        x += width;
        if let Some(line) = lines.last_mut() {
            line.push(entry.clone());
        }
    }
    lines
}

/// Escapes a text for XML.
fn escape(text: &str) -> String {
    // XML forbids some characters. Names are printable already, but titles are as the user typed them.
    escape_markup(text.chars().filter(|letter| match letter {
        '\n' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => !letter.is_control(),
    }))
}
