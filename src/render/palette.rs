//! The colors of code. All runtimes share one palette, in which the color shows the kind of code.
//!
//! The tiers of JIT code are shades of blue, deeper for better compilers. Code of the system and code compiled ahead of
//! time is yellow or orange. All colors also differ in lightness, so that color-blind people can tell them apart; a
//! test simulates how people without red or green cones see them. Each color has three shades, to separate neighbors of
//! the same kind. All shades have a contrast of at least 1.6 with the page, so that the one-pixel gap between neighbors
//! is visible.

use crate::analysis::category::Category;
use crate::model::tier::Tier;
use std::fmt::Write;

/// A color: red, green, blue.
type Rgb = [u8; 3];

/// The number of shades of each color.
pub(super) const SHADES: u32 = 3;

/// What the color of a box means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Swatch {
    /// The root of the graph, or the process or thread to which the stacks belong.
    Owner,
    /// A kind of code.
    Code(Category),
    /// One of the warm colors, which is chosen by the function's name. Used if the profile doesn't state the kinds of
    /// code.
    Name(u8),
    /// A change since the earlier profile, from −[`STEPS`] (all gone) to [`STEPS`] (all new); 0 is no change.
    Change(i8),
    /// The name of a thread in a chart. It has no color.
    Lane,
    /// A time during which the thread did not run.
    Idle,
}

/// The number of colors for boxes that grew, from a small change to a large one. There are as many for boxes that
/// shrank.
pub(super) const STEPS: i8 = 4;

/// The number of warm colors for names.
pub(super) const NAMES: u8 = 4;

/// For each kind of code: the letter that stands for it, and its color on a light and on a dark page. Boxes of unnamed
/// code are also hatched.
const PAINTS: [(Category, char, [u32; 2]); 16] = [
    (Category::Kernel, 'k', [0xe3_86_29, 0x91_56_02]),
    (Category::Native, 'n', [0xe2_c3_48, 0xa7_8c_3c]),
    (Category::NativeUnnamed, 'v', [0xbd_a1_55, 0xd3_bf_71]),
    (Category::Inlined, 'i', [0xd0_c3_80, 0x5b_48_09]),
    (Category::Jit(Some(Tier::Interpreted)), 'a', [0xb1_ca_ca, 0x2d_5a_73]),
    (Category::Jit(Some(Tier::Baseline)), 'b', [0x7e_b5_ea, 0x11_6b_ac]),
    (Category::Jit(Some(Tier::MidTier)), 'm', [0x6d_8e_c5, 0x33_9e_ee]),
    (Category::Jit(Some(Tier::Optimized)), 'o', [0x1c_62_ae, 0x73_b8_fb]),
    (Category::Jit(Some(Tier::Builtin)), 'c', [0x3a_a4_7a, 0x02_59_33]),
    (Category::Jit(Some(Tier::Stub)), 's', [0xb6_ca_9c, 0x64_68_57]),
    (Category::Jit(Some(Tier::Wasm)), 'w', [0xaa_88_e9, 0x73_27_80]),
    (Category::Jit(Some(Tier::RegExp)), 'r', [0xce_a1_a2, 0x66_36_4f]),
    (Category::Jit(None), 'j', [0x4f_a1_ac, 0x1c_9a_ad]),
    (Category::JitUnnamed, 'x', [0x17_73_7f, 0x31_ba_d6]),
    (Category::Anonymous, 'y', [0xb6_13_70, 0xe3_58_97]),
    (Category::Unknown, 'u', [0xb4_c0_db, 0x66_78_7c]),
];

/// The letter and the two colors of a kind of code in [`PAINTS`].
fn paint(category: Category) -> (char, [u32; 2]) {
    let (_, letter, colors) =
        PAINTS.iter().find(|(painted, ..)| *painted == category).unwrap_or(&PAINTS[PAINTS.len() - 1]);
    (*letter, *colors)
}

impl Swatch {
    /// The letter that stands for this swatch in the page's data and style.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Owner => 'q',
            Self::Code(category) => paint(category).0,
            Self::Name(number) => ['A', 'B', 'C', 'D'][usize::from(number.min(NAMES - 1))],
            // Digits 1 to 4 stand for boxes that shrank, 5 to 8 for boxes that grew, 0 for no change.
            Self::Change(step) => {
                ['4', '3', '2', '1', '0', '5', '6', '7', '8'][(step.clamp(-STEPS, STEPS) + STEPS) as usize]
            }
            Self::Lane => 'l',
            Self::Idle => 'z',
        }
    }

    /// True if boxes of this color are hatched, because the code has no name.
    pub(super) fn is_hatched(self) -> bool {
        matches!(self, Self::Code(category) if category.is_unnamed())
    }

    /// The colors of this swatch on a light page and on a dark page.
    fn colors(self) -> [Rgb; 2] {
        match self {
            Self::Owner => split_rgb(0xe4_e4_e4, 0x3c_3f_43),
            Self::Lane => split_rgb(0xff_ff_ff, 0x1b_1d_20),
            Self::Idle => split_rgb(0xf3_f4_f5, 0x26_28_2c),
            Self::Code(category) => {
                let [light, dark] = paint(category).1;
                split_rgb(light, dark)
            }
            Self::Name(0) => split_rgb(0xf2_a3_4c, 0x90_50_0e),
            Self::Name(1) => split_rgb(0xee_8a_5a, 0x92_45_20),
            Self::Name(2) => split_rgb(0xf5_c2_5b, 0x7c_5a_10),
            Self::Name(_) => split_rgb(0xf0_7e_6e, 0x8c_38_30),
            // Gray mixed with blue if the box shrank, or with red if it grew. The greater the change, the less gray is
            // left.
            Self::Change(step) => {
                let [light, dark] =
                    if step < 0 { split_rgb(0x5b_9f_e0, 0x2f_78_c4) } else { split_rgb(0xe8_81_5f, 0xc4_53_2a) };
                let share = f64::from(step.unsigned_abs()) / f64::from(STEPS);
                [mix([0xec; 3], light, share), mix([0x40, 0x43, 0x47], dark, share)]
            }
        }
    }
}

/// Splits two colors, given as 0xRRGGBB, into red, green and blue. The first is for a light page, the second for a dark
/// page.
fn split_rgb(light: u32, dark: u32) -> [Rgb; 2] {
    [light, dark].map(|rgb| [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8])
}

/// Mixes two colors. `part` is the share of the second one, from 0 to 1.
fn mix(from: Rgb, to: Rgb, part: f64) -> Rgb {
    let mut mixture = from;
    for (channel, to) in mixture.iter_mut().zip(to) {
        let from = f64::from(*channel);
        *channel = (from + (f64::from(to) - from) * part).round() as u8;
    }
    mixture
}

/// A shade of a color. Depending on `shade`, it is the color itself, a little lighter, or a little darker.
fn apply_shade(color: Rgb, shade: u32) -> Rgb {
    match shade {
        0 => color,
        1 => mix(color, [255; 3], 0.10),
        _ => mix(color, [0; 3], 0.06),
    }
}

/// The color of the lines that hatch a box of this color. It is further from the color of the box's text than the box's
/// color is, so the text stays readable.
fn line_on(color: Rgb) -> Rgb {
    mix(color, if is_light(color) { [255; 3] } else { [0; 3] }, 0.40)
}

/// Black or white, whichever is easier to read on this color.
fn text_on(color: Rgb) -> &'static str {
    if is_light(color) { "#16181a" } else { "#fff" }
}

/// True if black text is easier to read on this color than white text.
fn is_light(color: Rgb) -> bool {
    luminance(color) > 0.196
}

/// The relative luminance as defined by WCAG, from 0 to 1.
fn luminance(color: Rgb) -> f64 {
    let [red, green, blue] = color.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The linear intensity, from 0 to 1, of a color component in sRGB.
fn linear(component: u8) -> f64 {
    let component = f64::from(component) / 255.0;
    if component <= 0.04045 { component / 12.92 } else { ((component + 0.055) / 1.055).powf(2.4) }
}

/// The CSS rules that give boxes and texts the colors of these swatches. Hatched boxes refer to the patterns of
/// [`patterns`].
pub(super) fn rules(swatches: &[Swatch]) -> String {
    let [light, dark] = [LIGHT, DARK].map(|theme| theme_rules(swatches, theme));
    format!("{light}@media(prefers-color-scheme:dark){{{dark}}}")
}

/// Index of the colors for light pages in [`Swatch::colors`].
const LIGHT: usize = 0;

/// Index of the colors for dark pages in [`Swatch::colors`].
const DARK: usize = 1;

/// The CSS rules of swatches for one theme, [`LIGHT`] or [`DARK`]. A `path` is a box, drawn as a thick stroke. For
/// hatched swatches, a `rect` is the background of the pattern, and the class with the prefix [`HATCH`] is its line.
fn theme_rules(swatches: &[Swatch], theme: usize) -> String {
    let mut rules = String::new();
    for swatch in swatches {
        for shade in 0..SHADES {
            let rgb = apply_shade(swatch.colors()[theme], shade);
            let (letter, color, text) = (swatch.letter(), css_color(rgb), text_on(rgb));
            // Writing to a string cannot fail, so the results are ignored.
            if swatch.is_hatched() {
                // Programs that can't show patterns use the color after the pattern.
                let line = css_color(line_on(rgb));
                let _ = write!(rules, "path.{CLASS}{letter}{shade}{{stroke:url(#{HATCH}{letter}{shade}) {color}}}");
                let _ = write!(rules, "rect.{CLASS}{letter}{shade}{{fill:{color}}}");
                let _ = write!(rules, ".{HATCH}{letter}{shade}{{stroke:{line}}}");
            } else {
                let _ = write!(rules, "path.{CLASS}{letter}{shade}{{stroke:{color}}}");
            }
            let _ = write!(rules, "text.{CLASS}{letter}{shade}{{fill:{text}}}");
        }
    }
    rules
}

/// A color in CSS, such as `#1c62ae`.
fn css_color([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The SVG patterns of those swatches that are hatched, one pattern per shade.
pub(super) fn patterns(swatches: &[Swatch]) -> String {
    let mut patterns = String::new();
    for swatch in swatches.iter().filter(|swatch| swatch.is_hatched()) {
        let letter = swatch.letter();
        for shade in 0..SHADES {
            patterns += &format!(
                "<pattern id=\"{HATCH}{letter}{shade}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate(45)\"><rect class=\"{CLASS}{letter}{shade}\" width=\"6\" height=\"6\"/>\
                 <path class=\"{HATCH}{letter}{shade}\" style=\"stroke-width:2\" d=\"M1 0v6\"/></pattern>"
            );
        }
    }
    patterns
}

/// CSS variables for the colors of all swatches on light and dark pages. Each swatch has a character, here `x`: a small
/// letter for a kind of code, for owners of stacks or for idle time, a digit from 0 to 8 for a change, and a capital
/// letter for names if no kinds are known. `--code-x` is the swatch's color, and `--text-x` the color of text on it. A
/// hatched swatch also has the color of its lines (`--line-x`) and a background for elements with both colors
/// (`--fill-x`). The reader's system decides between light and dark, unless the root element has an attribute
/// `data-theme`.
pub(super) fn variables() -> String {
    let mut swatches: Vec<Swatch> = Category::ALL.into_iter().map(Swatch::Code).collect();
    swatches.extend((-STEPS..=STEPS).map(Swatch::Change));
    swatches.extend((0..NAMES).map(Swatch::Name));
    swatches.extend([Swatch::Owner, Swatch::Idle]);
    let [light, dark] = [LIGHT, DARK].map(|theme| theme_variables(&swatches, theme));
    format!(
        ":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n"
    )
}

/// The CSS variables of these swatches for light and dark pages (see [`variables`]). The reader's system always decides
/// between the two.
pub(super) fn variables_of(swatches: &[Swatch]) -> String {
    let swatches: Vec<Swatch> = swatches.iter().copied().filter(|swatch| *swatch != Swatch::Lane).collect();
    let [light, dark] = [LIGHT, DARK].map(|theme| theme_variables(&swatches, theme));
    format!(":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

/// The CSS variables of swatches for one theme, [`LIGHT`] or [`DARK`].
fn theme_variables(swatches: &[Swatch], theme: usize) -> String {
    let mut variables = String::new();
    for swatch in swatches {
        let (letter, rgb) = (swatch.letter(), swatch.colors()[theme]);
        let (color, text) = (css_color(rgb), text_on(rgb));
        // Writing to a string cannot fail.
        let _ = write!(variables, "--code-{letter}:{color};--text-{letter}:{text};");
        if swatch.is_hatched() {
            let (line, fill) = (css_color(line_on(rgb)), hatched_background(letter));
            let _ = write!(variables, "--line-{letter}:{line};--fill-{letter}:{fill};");
        }
    }
    variables
}

/// A CSS background with the box color and the line color of hatched code.
fn hatched_background(letter: char) -> String {
    format!("repeating-linear-gradient(135deg,var(--code-{letter}) 0 3px,var(--line-{letter}) 3px 5px)")
}

/// The letter that stands for a kind of code.
pub(super) fn letter(category: Category) -> char {
    Swatch::Code(category).letter()
}

/// The prefix of the CSS classes of colors, which the swatch's letter and the shade follow. Without it, a class could
/// begin with a digit, which CSS forbids.
pub(super) const CLASS: &str = "c";

/// The prefix of the names of hatching patterns, and of the classes of hatching lines.
const HATCH: &str = "h";

/// The number of the shade for a function with this name: the same in every picture.
pub(super) fn shade(name: &str) -> u32 {
    hash(name) % SHADES
}

/// The warm color for a function with this name: the same in every picture.
pub(super) fn warm(name: &str) -> Swatch {
    Swatch::Name((hash(name) / SHADES % u32::from(NAMES)) as u8)
}

/// The FNV-1a hash, because the standard library's hash may change between versions, and so would the colors.
fn hash(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The result is used modulo small numbers, so let higher bits affect the lower ones.
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a color looks to a person without red or green cones (Viénot, Brettel and Mollon 1999).
    fn without_cones(color: Rgb, red_missing: bool) -> [f64; 3] {
        let [r, g, b] = color.map(linear);
        let rows = if red_missing {
            [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]
        } else {
            [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]
        };
        rows.map(|[x, y, z]| (x * r + y * g + z * b).clamp(0.0, 1.0))
    }

    /// Converts linear RGB to CIE L*a*b*.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505;
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089;
        let [x, y, z] = [x, y, z].map(|t| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
        lab(a).iter().zip(lab(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn every_two_sorts_of_code_are_distinguished_by_all_readers() {
        let mut close = Vec::new();
        for theme in [0, 1] {
            for (at, one) in Category::ALL.into_iter().enumerate() {
                for other in &Category::ALL[at + 1..] {
                    let [a, b] = [one, *other].map(|category| Swatch::Code(category).colors()[theme]);
                    let seen = [
                        distance(a.map(linear), b.map(linear)),
                        distance(without_cones(a, false), without_cones(b, false)),
                        distance(without_cones(a, true), without_cones(b, true)),
                    ];
                    if seen.iter().any(|distance| *distance < 12.0) {
                        close.push(format!("{theme}: {} and {}: {seen:.1?}", one.name(), other.name()));
                    }
                }
            }
        }
        assert!(close.is_empty(), "{close:#?}");
    }

    #[test]
    fn boxes_stand_out_from_the_page() {
        for (theme, page) in [[0xff; 3], [0x1b, 0x1d, 0x20]].into_iter().enumerate() {
            for category in Category::ALL {
                let colors = (0..SHADES).map(|shade| apply_shade(Swatch::Code(category).colors()[theme], shade));
                for color in colors {
                    let (a, b) = (luminance(color) + 0.05, luminance(page) + 0.05);
                    let contrast = a.max(b) / a.min(b);
                    assert!(contrast >= 1.6, "{theme}: {}: {contrast:.2}", category.name());
                }
            }
        }
    }

    #[test]
    fn tiers_grow_deeper_from_the_interpreter_to_the_best_compiler() {
        let ladder = [Tier::Interpreted, Tier::Baseline, Tier::MidTier, Tier::Optimized];
        let light =
            |theme: usize| ladder.map(|tier| luminance(Swatch::Code(Category::Jit(Some(tier))).colors()[theme]));
        assert!(light(0).is_sorted_by(|a, b| a > b) && light(1).is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn text_is_read_on_every_color() {
        let shaded_ones = Category::ALL.into_iter().map(Swatch::Code).chain((0..NAMES).map(Swatch::Name));
        let shaded_ones = shaded_ones.chain([Swatch::Owner]).map(|swatch| (swatch, SHADES));
        for (swatch, shades) in shaded_ones.chain((-STEPS..=STEPS).map(|step| (Swatch::Change(step), 1))) {
            for color in swatch.colors() {
                for shade in 0..shades {
                    let color = apply_shade(color, shade);
                    let text = if text_on(color) == "#fff" { 1.0 } else { 0.008 };
                    let (a, b) = (luminance(color) + 0.05, text + 0.05);
                    assert!(a.max(b) / a.min(b) >= 4.5, "{swatch:?} {shade}: {:.2}", a.max(b) / a.min(b));
                    let line = luminance(line_on(color)) + 0.05;
                    assert!(
                        !swatch.is_hatched() || line.max(b) / line.min(b) >= 4.5,
                        "{swatch:?}: lines of its hatching"
                    );
                }
            }
        }
    }

    #[test]
    fn unnamed_code_is_hatched_and_the_lines_are_visible_for_all_readers() {
        let hatched = |category: &Category| Swatch::Code(*category).is_hatched();
        let names: Vec<_> = Category::ALL.into_iter().filter(hatched).map(Category::name).collect();
        assert_eq!(names, ["native, unnamed", "JIT, unnamed", "unnamed code (no file)", "unknown"]);
        for category in Category::ALL.into_iter().filter(hatched) {
            for color in Swatch::Code(category).colors() {
                let line = line_on(color);
                let seen = [
                    distance(color.map(linear), line.map(linear)),
                    distance(without_cones(color, false), without_cones(line, false)),
                    distance(without_cones(color, true), without_cones(line, true)),
                ];
                assert!(seen.iter().all(|distance| *distance >= 9.0), "{}: {seen:.1?}", category.name());
            }
        }
    }

    #[test]
    fn each_swatch_has_a_letter_of_its_own() {
        let all = Category::ALL.into_iter().map(Swatch::Code).chain((-STEPS..=STEPS).map(Swatch::Change));
        let all = all.chain((0..NAMES).map(Swatch::Name)).chain([Swatch::Owner, Swatch::Lane, Swatch::Idle]);
        let mut letters: Vec<char> = all.map(Swatch::letter).collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count);
    }
}
