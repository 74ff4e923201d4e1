//! The colours of code, one palette for all runtimes: a colour says what sort of code a box is.
//!
//! The tiers of JIT code are steps of one blue, the better the compiler the deeper; what the system and compilers
//! made ahead of time is yellow and orange. All differ in lightness, too, so that they are told apart by those who
//! see fewer colours; a test asks how people without the red or the green cones see them. Each colour has three
//! shades, for neighbours of one sort.

use crate::model::category::Category;
use crate::model::tier::Tier;
use std::fmt::Write;

/// A colour: red, green, blue.
type Rgb = [u8; 3];

/// How many shades a colour has.
pub(in crate::formats) const SHADES: u32 = 3;

/// What the colour of a box says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::formats) enum Swatch {
    /// Whose stack it is: no code.
    Whose,
    /// The sort of its code.
    Code(Category),
    /// Nothing: of this profile no sort of code is known. One of several warm colours, by name.
    Name(u8),
    /// How much more or less there is than before: from −[`STEPS`] to [`STEPS`].
    Change(i8),
    /// The name of a thread, without a colour.
    Lane,
    /// A thread did not run.
    Idle,
}

/// How many colours there are for more, and for less.
pub(in crate::formats) const STEPS: i8 = 4;

/// How many warm colours there are.
pub(in crate::formats) const NAMES: u8 = 4;

const LETTERS: [(Category, char); 13] = [
    (Category::Kernel, 'k'),
    (Category::Native, 'n'),
    (Category::Inlined, 'i'),
    (Category::Jit(Some(Tier::Interpreted)), 'a'),
    (Category::Jit(Some(Tier::Baseline)), 'b'),
    (Category::Jit(Some(Tier::MidTier)), 'm'),
    (Category::Jit(Some(Tier::Optimised)), 'o'),
    (Category::Jit(Some(Tier::Builtin)), 'c'),
    (Category::Jit(Some(Tier::Stub)), 's'),
    (Category::Jit(Some(Tier::Wasm)), 'w'),
    (Category::Jit(Some(Tier::RegExp)), 'r'),
    (Category::Jit(None), 'j'),
    (Category::Unknown, 'u'),
];

impl Swatch {
    /// One letter for it, in the page's data and style.
    pub(in crate::formats) fn letter(self) -> char {
        match self {
            Self::Whose => 'q',
            Self::Code(category) => LETTERS.iter().find(|(of, _)| *of == category).map_or('u', |(_, letter)| *letter),
            Self::Name(number) => ['A', 'B', 'C', 'D'][usize::from(number.min(NAMES - 1))],
            Self::Change(step) => {
                ['4', '3', '2', '1', '0', '5', '6', '7', '8'][(step.clamp(-STEPS, STEPS) + STEPS) as usize]
            }
            Self::Lane => 'l',
            Self::Idle => 'z',
        }
    }

    /// On a light page and on a dark one.
    fn colors(self) -> [Rgb; 2] {
        let hex = |light: u32, dark: u32| [light, dark].map(|rgb| [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8]);
        match self {
            Self::Whose => hex(0xe4_e4_e4, 0x3c_3f_43),
            Self::Lane => hex(0xff_ff_ff, 0x1b_1d_20),
            Self::Idle => hex(0xf3_f4_f5, 0x26_28_2c),
            Self::Code(category) => match category {
                Category::Kernel => hex(0xe8_8a_2e, 0x90_55_00),
                Category::Native => hex(0xf5_d9_6b, 0xa2_88_38),
                Category::Inlined => hex(0xff_f9_ba, 0x46_37_09),
                Category::Jit(Some(Tier::Interpreted)) => hex(0xe0_f0_f2, 0x00_28_3e),
                Category::Jit(Some(Tier::Baseline)) => hex(0x91_c9_ff, 0x01_69_a9),
                Category::Jit(Some(Tier::MidTier)) => hex(0x78_9f_cd, 0x02_95_e5),
                Category::Jit(Some(Tier::Optimised)) => hex(0x1f_62_ae, 0x6c_b2_f5),
                Category::Jit(Some(Tier::Builtin)) => hex(0x46_ad_84, 0x00_4e_2f),
                Category::Jit(Some(Tier::Stub)) => hex(0xd9_e5_c7, 0x62_67_56),
                Category::Jit(Some(Tier::Wasm)) => hex(0xb3_8f_ed, 0x75_29_82),
                Category::Jit(Some(Tier::RegExp)) => hex(0xde_b0_b4, 0x6e_3d_57),
                Category::Jit(None) => hex(0x4f_a1_ac, 0x18_99_ac),
                Category::Unknown => hex(0xb9_c2_d8, 0x65_78_7c),
            },
            Self::Name(0) => hex(0xf2_a3_4c, 0x90_50_0e),
            Self::Name(1) => hex(0xee_8a_5a, 0x92_45_20),
            Self::Name(2) => hex(0xf5_c2_5b, 0x7c_5a_10),
            Self::Name(_) => hex(0xf0_7e_6e, 0x8c_38_30),
            Self::Change(step) => {
                let [light, dark] = if step < 0 { hex(0x5b_9f_e0, 0x2f_78_c4) } else { hex(0xe8_81_5f, 0xc4_53_2a) };
                let part = f64::from(step.unsigned_abs()) / f64::from(STEPS);
                [mixed([0xec; 3], light, part), mixed([0x40, 0x43, 0x47], dark, part)]
            }
        }
    }
}

/// `part` of the way from one colour to another.
fn mixed(from: Rgb, to: Rgb, part: f64) -> Rgb {
    let one = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round() as u8;
    [one(from[0], to[0]), one(from[1], to[1]), one(from[2], to[2])]
}

/// A colour's shade: as it is, a little lighter, a little darker.
fn shaded(color: Rgb, shade: u32) -> Rgb {
    match shade {
        0 => color,
        1 => mixed(color, [255; 3], 0.10),
        _ => mixed(color, [0; 3], 0.06),
    }
}

/// Black or white, whichever is read more easily on a colour.
fn text_on(color: Rgb) -> &'static str {
    if luminance(color) > 0.196 { "#16181a" } else { "#fff" }
}

/// As WCAG defines it: from 0 to 1.
fn luminance(color: Rgb) -> f64 {
    let [red, green, blue] = color.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn linear(part: u8) -> f64 {
    let part = f64::from(part) / 255.0;
    if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

/// The rules of a style sheet for these swatches: boxes are strokes of paths, their texts are filled.
pub(in crate::formats) fn rules(swatches: &[Swatch]) -> String {
    let [light, dark] = [0, 1].map(|theme| {
        let mut rules = String::new();
        for swatch in swatches {
            for shade in 0..SHADES {
                let color = shaded(swatch.colors()[theme], shade);
                let [red, green, blue] = color;
                let (class, text) = (swatch.letter(), text_on(color));
                // Writing to a string cannot fail.
                let _ = write!(rules, "path.{CLASS}{class}{shade}{{stroke:#{red:02x}{green:02x}{blue:02x}}}");
                let _ = write!(rules, "text.{CLASS}{class}{shade}{{fill:{text}}}");
            }
        }
        rules
    });
    format!("{light}@media(prefers-color-scheme:dark){{{dark}}}")
}

/// Variables of a style sheet: the colour of each sort of code and of the text on it (`--code-k`, `--text-k`), of change
/// (`--code-0` to `--code-8`) and of what has no sort (`--code-A` …), on light and dark pages. The theme is that of the
/// reader's system, or the one that the attribute `data-theme` of the root names.
pub(in crate::formats) fn variables() -> String {
    let all = Category::ALL.into_iter().map(Swatch::Code).chain((-STEPS..=STEPS).map(Swatch::Change));
    let all: Vec<Swatch> = all.chain((0..NAMES).map(Swatch::Name)).chain([Swatch::Whose, Swatch::Idle]).collect();
    let [light, dark] = [0, 1].map(|theme| {
        let mut variables = String::new();
        for swatch in &all {
            let ([red, green, blue], letter) = (swatch.colors()[theme], swatch.letter());
            let text = text_on(swatch.colors()[theme]);
            // Writing to a string cannot fail.
            let _ = write!(variables, "--code-{letter}:#{red:02x}{green:02x}{blue:02x};--text-{letter}:{text};");
        }
        variables
    });
    format!(
        ":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n"
    )
}

/// The letter of a sort of code.
pub(in crate::formats) fn letter(category: Category) -> char {
    Swatch::Code(category).letter()
}

/// Before a swatch's letter and its shade in names of classes, which must not begin with a digit.
pub(in crate::formats) const CLASS: &str = "c";

/// The shade of a name.
pub(in crate::formats) fn shade(name: &str) -> u32 {
    hash(name) % SHADES
}

/// The warm colour of a name.
pub(in crate::formats) fn warm(name: &str) -> Swatch {
    Swatch::Name((hash(name) / SHADES % u32::from(NAMES)) as u8)
}

/// FNV-1a: the colours of names stay the same from picture to picture.
fn hash(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a colour looks to a reader without green (or red) cones: Viénot, Brettel and Mollon 1999.
    fn without_cones(color: Rgb, red_missing: bool) -> [f64; 3] {
        let [r, g, b] = color.map(linear);
        let rows = if red_missing {
            [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]
        } else {
            [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]
        };
        rows.map(|[x, y, z]| (x * r + y * g + z * b).clamp(0.0, 1.0))
    }

    /// CIE L*a*b* of linear RGB.
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
    fn every_two_sorts_of_code_are_told_apart_by_all_readers() {
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
    fn tiers_grow_deeper_from_the_interpreter_to_the_best_compiler() {
        let ladder = [Tier::Interpreted, Tier::Baseline, Tier::MidTier, Tier::Optimised];
        let light =
            |theme: usize| ladder.map(|tier| luminance(Swatch::Code(Category::Jit(Some(tier))).colors()[theme]));
        assert!(light(0).is_sorted_by(|a, b| a > b) && light(1).is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn text_is_read_on_every_colour() {
        let shaded_ones = Category::ALL.into_iter().map(Swatch::Code).chain((0..NAMES).map(Swatch::Name));
        let shaded_ones = shaded_ones.chain([Swatch::Whose]).map(|swatch| (swatch, SHADES));
        for (swatch, shades) in shaded_ones.chain((-STEPS..=STEPS).map(|step| (Swatch::Change(step), 1))) {
            for color in swatch.colors() {
                for shade in 0..shades {
                    let color = shaded(color, shade);
                    let text = if text_on(color) == "#fff" { 1.0 } else { 0.008 };
                    let (a, b) = (luminance(color) + 0.05, text + 0.05);
                    assert!(a.max(b) / a.min(b) >= 4.5, "{swatch:?} {shade}: {:.2}", a.max(b) / a.min(b));
                }
            }
        }
    }

    #[test]
    fn each_swatch_has_a_letter_of_its_own() {
        let all = Category::ALL.into_iter().map(Swatch::Code).chain((-STEPS..=STEPS).map(Swatch::Change));
        let all = all.chain((0..NAMES).map(Swatch::Name)).chain([Swatch::Whose, Swatch::Lane, Swatch::Idle]);
        let mut letters: Vec<char> = all.map(Swatch::letter).collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count);
    }
}
