//! Flame graphs as SVG, as inferno's library draws them, from a tree of labels.
//!
//! What would be too narrow to be seen is left out before the drawing begins: the picture is the same, but a deep
//! recording need not be spelled out stack by stack. Colours are a function of the name, so that equal inputs give
//! equal bytes.

mod boxes;
mod decimal;

pub use boxes::Picture;

use super::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::call_tree::{CallTree, Spelling};
use crate::model::printable::printable;
use crate::model::stacks::{Profile, Series, Unit, Weight};
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap, SearchColor, StrokeColor};
use inferno::flamegraph::{self, Direction, Palette, TextTruncateDirection};
use std::borrow::Cow;
use std::io::Write;

/// What a flame graph looks like. What is `None` is as inferno has it.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The first line.
    pub title: Option<String>,
    /// The second line.
    pub subtitle: Option<String>,
    /// Notes kept in the file.
    pub notes: Option<String>,
    /// The palette.
    pub colors: Palette,
    /// The background.
    pub bgcolors: Option<BackgroundColor>,
    /// Colour by a hash that gives similar names similar colours.
    pub hash: bool,
    /// Colour by width.
    pub color_diffusion: bool,
    /// Colours of names drawn before; those of new names are added.
    pub palette: Option<PaletteMap>,
    /// Colour of matches of a search.
    pub search_color: Option<SearchColor>,
    /// Outline of frames.
    pub stroke_color: Option<StrokeColor>,
    /// Colour of the texts outside the graph.
    pub ui_color: Option<Color>,
    /// Roots at the top (an icicle graph).
    pub inverted: bool,
    /// Leaves first, merged.
    pub reversed: bool,
    /// Time from left to right instead of merged stacks.
    pub flame_chart: bool,
    /// Begin stacks at these functions; stacks without them are left out.
    pub base: Vec<String>,
    /// In pixels; fluid if not given.
    pub width: Option<usize>,
    /// Height of a frame, in pixels.
    pub height: Option<usize>,
    /// Omit frames narrower than this percentage of the whole.
    pub min_width: Option<f64>,
    /// Name of the font.
    pub font_type: Option<String>,
    /// In pixels.
    pub font_size: Option<usize>,
    /// Average width of a letter, relative to the font's size.
    pub font_width: Option<f64>,
    /// What the weights count.
    pub count_name: Option<String>,
    /// What the frames are.
    pub name_type: Option<String>,
    /// Weights are shown multiplied by this.
    pub factor: Option<f64>,
    /// Cut names at their right instead of their left end.
    pub truncate_right: bool,
    /// Swap the colours of more and less.
    pub negate: bool,
    /// Break lines in the SVG.
    pub pretty_xml: bool,
    /// Leave the script out: a picture only.
    pub no_javascript: bool,
}

/// How a difference is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    /// Scale the profile before to the sum of the one after.
    pub normalize: bool,
    /// Take hexadecimal numbers in names for equal.
    pub strip_hex: bool,
}

/// Writes one event with the usual look.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    draw(profile, options, &mut Look::default(), out, &write_picture)
}

/// Draws one event. A picture that can be written piece by piece is left to `write`.
pub fn draw(
    profile: &Profile,
    options: &WriteOptions,
    look: &mut Look,
    out: &mut dyn Write,
    write: &dyn Fn(&Picture, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let series = profile.series.get(options.series).ok_or_else(nothing)?;
    look.count_name.get_or_insert_with(|| count_name(series, options.weight));
    let spelling = Spelling { by: options.by, annotate: options.annotate, reversed: look.reversed };
    let mut lines = Vec::new();
    if look.flame_chart {
        CallTree::in_time(profile, series, options.weight, spelling, |stack, weight| lines.push(line(stack, weight)));
    } else {
        let tree = CallTree::new(profile, series, options.weight, spelling);
        let picture = if look.base.is_empty() { picture(&tree, look)? } else { None };
        if let Some(picture) = picture {
            return write(&picture, out);
        }
        spell(&tree, narrowest(&tree, look), &mut lines);
    }
    draw_lines(lines.iter().map(String::as_str), look, out)
}

/// Writes a picture, one piece after the other.
fn write_picture(picture: &Picture, out: &mut dyn Write) -> Result<()> {
    out.write_all(picture.head())?;
    picture.pieces().try_for_each(|piece| out.write_all(&picture.text(piece)))?;
    Ok(out.write_all(picture.tail())?)
}

/// Draws `after`, coloured by what it has more (red) or less (blue) than `before`, both as folded stacks.
pub fn draw_difference(
    before: &[u8],
    after: &[u8],
    difference: Difference,
    look: &mut Look,
    out: &mut dyn Write,
) -> Result<()> {
    let Difference { normalize, strip_hex } = difference;
    let options = inferno::differential::Options { normalize, strip_hex };
    let mut lines = Vec::new();
    inferno::differential::from_readers(options, before, after, &mut lines)?;
    let lines = String::from_utf8_lossy(&lines);
    draw_lines(lines.lines(), look, out)
}

fn nothing() -> Error {
    Error::new("no samples to draw: no event of the input has any that the filters leave")
}

/// The smallest weight that is drawn, as inferno decides it.
fn narrowest(tree: &CallTree, look: &Look) -> u64 {
    // Of what the whole will be, only the drawing knows then.
    if !look.base.is_empty() {
        return 0;
    }
    let percent = look.min_width.unwrap_or(flamegraph::defaults::MIN_WIDTH);
    (percent / (100.0 / tree.total() as f64)).ceil() as u64
}

fn spell(tree: &CallTree, narrow: u64, lines: &mut Vec<String>) {
    let pushed: Result<(), std::convert::Infallible> = tree.stacks(narrow, |stack, weight| {
        lines.push(line(stack, weight));
        Ok(())
    });
    match pushed {
        Ok(()) => {}
    }
}

/// inferno takes a number at the end of a name for a second weight: a blank before one becomes one that it does
/// not know.
fn line(stack: &str, weight: u64) -> String {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let stack = match stack.rsplit_once(' ') {
        Some((name, last)) if number(last) => Cow::Owned(format!("{name}\u{a0}{last}")),
        _ => Cow::Borrowed(stack),
    };
    format!("{stack} {weight}")
}

fn count_name(series: &Series, weight: Weight) -> String {
    match (&series.unit, weight) {
        (Unit::Samples, _) | (_, Weight::Samples) => "samples".to_owned(),
        (Unit::Nanos, _) => "ns".to_owned(),
        (Unit::Named(name), _) => name.clone(),
    }
}

/// The picture, if it can be written box by box.
fn picture(tree: &CallTree, look: &mut Look) -> Result<Option<Picture>> {
    let mut palette = look.palette.take();
    let mut own = PaletteMap::default();
    let picture = Picture::new(tree, narrowest(tree, look), options(look), palette.as_mut().unwrap_or(&mut own));
    look.palette = palette;
    picture
}

fn draw_lines<'a>(lines: impl Iterator<Item = &'a str>, look: &mut Look, out: &mut dyn Write) -> Result<()> {
    let lines: Vec<Cow<'_, str>> = lines.map(|line| printable(line.as_bytes())).collect();
    if lines.is_empty() {
        return Err(nothing());
    }
    let mut palette = look.palette.take();
    let mut options = options(look);
    options.palette_map = palette.as_mut();
    flamegraph::from_lines(&mut options, lines.iter().map(Cow::as_ref), out)
        .map_err(|error| Error::new("cannot draw").because(error))?;
    look.palette = palette;
    Ok(())
}

fn options<'a>(look: &Look) -> flamegraph::Options<'a> {
    let mut options = flamegraph::Options::default();
    let title = match (look.flame_chart, look.inverted) {
        (true, _) => flamegraph::defaults::CHART_TITLE,
        (false, true) => "Icicle Graph",
        (false, false) => flamegraph::defaults::TITLE,
    };
    options.title = look.title.clone().unwrap_or_else(|| title.to_owned());
    options.subtitle = look.subtitle.clone();
    options.colors = look.colors;
    options.bgcolors = look.bgcolors;
    options.hash = look.hash;
    options.deterministic = !look.hash;
    options.color_diffusion = look.color_diffusion;
    options.flame_chart = look.flame_chart;
    options.base = look.base.clone();
    options.image_width = look.width;
    options.negate_differentials = look.negate;
    options.pretty_xml = look.pretty_xml;
    options.no_javascript = look.no_javascript;
    if look.inverted {
        options.direction = Direction::Inverted;
    }
    if look.truncate_right {
        options.text_truncate_direction = TextTruncateDirection::Right;
    }
    given(&mut options.notes, &look.notes);
    given(&mut options.search_color, &look.search_color);
    given(&mut options.stroke_color, &look.stroke_color);
    given(&mut options.uicolor, &look.ui_color);
    given(&mut options.frame_height, &look.height);
    given(&mut options.min_width, &look.min_width);
    given(&mut options.font_type, &look.font_type);
    given(&mut options.font_size, &look.font_size);
    given(&mut options.font_width, &look.font_width);
    given(&mut options.count_name, &look.count_name);
    given(&mut options.name_type, &look.name_type);
    given(&mut options.factor, &look.factor);
    options
}

fn given<T: Clone>(place: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::profile_of;

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = profile_of(stacks);
        profile.series[0].unit = Unit::Named("cycles".to_owned());
        profile
    }

    fn svg(profile: &Profile, look: &mut Look) -> String {
        let mut out = Vec::new();
        draw(profile, &WriteOptions::default(), look, &mut out, &write_picture).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_too_narrow_changes_nothing_in_the_picture() {
        let profile = profile(&[("main;hot;leaf 12", 1_000_000), ("main;cold;rare", 1), ("main;cold", 50_000)]);
        let drawn = svg(&profile, &mut Look::default());
        let all = "main;cold 50000\nmain;cold;rare 1\nmain;hot;leaf\u{a0}12 1000000\n";
        let mut reference = Vec::new();
        let mut look = Look { count_name: Some("cycles".to_owned()), ..Look::default() };
        draw_lines(all.lines(), &mut look, &mut reference).unwrap();
        assert_eq!(drawn, String::from_utf8(reference).unwrap());
        assert!(drawn.contains("leaf\u{a0}12 (1,000,000 cycles"), "{drawn}");
        assert!(!drawn.contains("rare"));
    }

    #[test]
    fn an_empty_profile_is_an_error_not_a_picture() {
        let nobody = write(&Profile::new(), &WriteOptions::default(), &mut Vec::new());
        assert!(nobody.unwrap_err().to_string().contains("no samples to draw"));
    }

    #[test]
    fn a_difference_is_coloured() {
        let mut out = Vec::new();
        let difference = Difference::default();
        draw_difference(b"a;b 10\na;c 10\n", b"a;b 30\na;c 5\n", difference, &mut Look::default(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("b (30 samples, 85.71%; +57.14%)"), "{out}");
    }
}
