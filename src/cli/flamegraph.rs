//! The flags of `jitgraft flamegraph`.

use super::common::one_of;
use super::convert::{Convert, ConvertArgs};
use super::input::CompareArgs;
use super::output::check_name;
use super::report::percentage;
use crate::analysis::label::{RootFrame, Shortening};
use crate::commands::export;
use crate::commands::flamegraph::{self, FlamegraphOptions};
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::io::{self, OutPath};
use crate::pipeline::sink::Naming;
use crate::pipeline::{Job, Outcome};
use crate::render::flamegraph::{Cut, Difference, Look, Style};
use crate::runtimes::jit_names::JitNames;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use inferno::flamegraph::Palette;
use inferno::flamegraph::color::{BackgroundColor, Color, SearchColor, StrokeColor, parse_hex_color};
use std::path::{Path, PathBuf};

/// Flags of `flamegraph`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft flamegraph perf.data -o flame.svg\n  \
    jitgraft flamegraph --flamechart --title 'tsc' perf.data -o chart.svg\n  \
    jitgraft flamegraph --diff before.data after.data -o diff.svg\n  \
    jitgraft flamegraph --colors js --annotate jit,kernel perf.data -o inferno.svg")]
pub(super) struct FlamegraphArgs {
    #[command(flatten)]
    convert: ConvertArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Color by difference from this earlier profile
    ///
    /// Red is more, blue is less. Differences within sampling noise are not colored.
    #[arg(long, value_name = "BEFORE", help_heading = "Differences")]
    diff: Option<PathBuf>,
    /// Scale the earlier profile to the sum of the later one
    #[arg(long, requires = "diff", help_heading = "Differences", hide_short_help = true)]
    normalize: bool,
    /// Treat hexadecimal numbers in names as equal
    #[arg(long, requires = "diff", help_heading = "Differences", hide_short_help = true)]
    strip_hex: bool,
    /// Swap the colors: blue is more, red is less
    #[arg(long, requires = "diff", help_heading = "Differences", hide_short_help = true)]
    negate: bool,
    #[command(flatten)]
    compare: CompareArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Appearance")]
struct LookArgs {
    /// jitgraft's own page, or inferno-flamegraph's
    ///
    /// [default: page; inferno if a flag for inferno is given]
    #[arg(long, value_name = "STYLE", value_parser = one_of([("page".into(), Style::Page), ("inferno".into(), Style::Inferno)]))]
    style: Option<Style>,
    /// Title [default: the recorded command]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Second line below the title [default: event, amount, samples, time]
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    subtitle: Option<String>,
    /// Notes to store in the file
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    notes: Option<String>,
    /// Color by this palette instead of by kind of code
    ///
    /// java, js, perl, python and rust color by the annotations of a name (see --annotate).
    #[arg(short, long, value_name = "NAME", value_parser = palette(), conflicts_with = "color_diffusion")]
    #[arg(hide_short_help = true, help_heading = "Only for --style inferno (implied by these flags)")]
    colors: Option<Palette>,
    /// Background: yellow, blue, green, gray, or `#rrggbb`
    #[arg(long, value_name = "COLOR", hide_short_help = true)]
    #[arg(help_heading = "Only for --style inferno (implied by these flags)")]
    bgcolors: Option<BackgroundColor>,
    /// Give similar names similar colors
    #[arg(long, hide_short_help = true, help_heading = "Only for --style inferno (implied by these flags)")]
    hash: bool,
    /// Make wider frames redder
    #[arg(long, alias = "colordiffusion", hide_short_help = true)]
    #[arg(help_heading = "Only for --style inferno (implied by these flags)")]
    color_diffusion: bool,
    /// Color of search hits (`#rrggbb`)
    #[arg(long, value_name = "COLOR", hide_short_help = true)]
    search_color: Option<SearchColor>,
    /// Outline of frames (`#rrggbb` or none)
    #[arg(long, value_name = "COLOR", hide_short_help = true)]
    #[arg(help_heading = "Only for --style inferno (implied by these flags)")]
    stroke_color: Option<StrokeColor>,
    /// Color of text outside the graph (`#rrggbb`)
    #[arg(long, value_name = "COLOR", value_parser = hex_color, alias = "uicolor", hide_short_help = true)]
    #[arg(help_heading = "Only for --style inferno (implied by these flags)")]
    ui_color: Option<Color>,
    /// Put roots at the top (icicle graph)
    #[arg(long, visible_alias = "icicle")]
    inverted: bool,
    /// Start with the innermost functions, with callers above
    #[arg(long, conflicts_with = "flamechart")]
    reverse: bool,
    /// Draw time from left to right, one row per thread
    #[arg(long)]
    flamechart: bool,
    /// Start stacks at this function; omit stacks without it
    ///
    /// Repeatable.
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["flamechart", "reverse"])]
    base: Vec<String>,
    /// Width in pixels [default: the window's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..), hide_short_help = true)]
    width: Option<u32>,
    /// Height of a frame in pixels
    #[arg(long, value_name = "N", hide_short_help = true)]
    height: Option<usize>,
    /// Omit frames narrower than this percentage [default: 0.01]
    ///
    /// In flame charts the default is 0.001.
    #[arg(long, value_name = "PERCENT", value_parser = percentage, hide_short_help = true)]
    minwidth: Option<f64>,
    /// Font
    #[arg(long, value_name = "NAME", alias = "fonttype", hide_short_help = true)]
    font_type: Option<String>,
    /// Font size in pixels
    #[arg(long, value_name = "N", alias = "fontsize", hide_short_help = true)]
    font_size: Option<usize>,
    /// Average width of a letter, relative to the font size
    #[arg(long, value_name = "X", alias = "fontwidth", hide_short_help = true)]
    font_width: Option<f64>,
    /// Unit of weights; weights are then shown with all digits [default: the event's unit]
    #[arg(long, value_name = "TEXT", alias = "countname", hide_short_help = true)]
    count_name: Option<String>,
    /// Word to show before function names, such as Function:
    #[arg(long, value_name = "TEXT", alias = "nametype", hide_short_help = true)]
    name_type: Option<String>,
    /// Multiply shown weights by this
    #[arg(long, value_name = "X", hide_short_help = true)]
    factor: Option<f64>,
    /// Cut off the start of long names (default with --style inferno)
    #[arg(long, conflicts_with = "truncate_text_right", hide_short_help = true)]
    truncate_text_left: bool,
    /// Cut off the end of long names (default with --style page)
    #[arg(long, hide_short_help = true)]
    truncate_text_right: bool,
    /// Write the SVG with line breaks and indentation
    #[arg(long, hide_short_help = true, help_heading = "Only for --style inferno (implied by these flags)")]
    pretty_xml: bool,
    /// No zoom or search, only the picture
    #[arg(long, hide_short_help = true)]
    no_javascript: bool,
}

impl LookArgs {
    /// The first flag on the command line that only works with inferno's style. `None` if there is none.
    fn infernos(&self) -> Option<&'static str> {
        let given = [
            ("--colors", self.colors.is_some()),
            ("--bgcolors", self.bgcolors.is_some()),
            ("--hash", self.hash),
            ("--color-diffusion", self.color_diffusion),
            ("--stroke-color", self.stroke_color.is_some()),
            ("--ui-color", self.ui_color.is_some()),
            ("--pretty-xml", self.pretty_xml),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// The style of the picture: the one that the user chose. If the user chose none: inferno's if a flag only works
    /// with inferno's style, otherwise the page's. Fails if the chosen style doesn't support a flag.
    fn style(&self) -> Result<Style> {
        match (self.style, self.infernos()) {
            (Some(Style::Page), Some(flag)) => {
                Err(Error::usage(format!("{flag} only works with --style inferno; leave out --style page")))
            }
            (None, Some(_)) => Ok(Style::Inferno),
            (style, _) => Ok(style.unwrap_or(Style::Page)),
        }
    }
}

/// The spelling of JIT names in jitgraft's own style: all tiers of a function have the same name and so share a frame.
/// Names that the input already had stay as they are.
const NAMING: Naming = Naming { resolved: JitNames::Merged, given: JitNames::Raw };

fn palette() -> impl TypedValueParser<Value = Palette> {
    PossibleValuesParser::new(Palette::VARIANTS).try_map(|name| name.parse::<Palette>())
}

fn hex_color(text: &str) -> Result<Color, String> {
    parse_hex_color(text).ok_or_else(|| format!("expected #rrggbb, got {text}"))
}

impl FlamegraphArgs {
    /// Runs the command, or `export` if the output's name implies another format.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        match &self.diff {
            Some(_) => check_name(&self.convert.path().into(), "flamegraph --diff", &["svg"])?,
            None => self.convert.check_name("flamegraph")?,
        }
        if let Some(format) = self.convert.format_instead_of("flamegraph").filter(|_| self.diff.is_none()) {
            return export::run(&self.convert.into_options().export_to(format), job);
        }
        let style = self.look.style()?;
        let usual = if style == Style::Page { NAMING } else { Naming::default() };
        let by = self.roots(style);
        let Convert { inputs, output, mut load, write } = self.convert.into_options_with(usual, by);
        load.sources.source_maps.usual = style == Style::Page;
        let shortening = match style {
            Style::Inferno => Shortening::All,
            // The earlier profile may be folded stacks that jitgraft wrote, in which native names are already
            // shortened. Shorten those of the later profile as well, so that the names match.
            Style::Page if self.diff.is_some() => Shortening::Native,
            Style::Page => Shortening::Nothing,
        };
        let write = WriteOptions { shortening, ..write };
        // An SVG file on a terminal is of no use, so draw it to a file.
        let is_on_terminal = output.is_terminal();
        let output = if is_on_terminal { picture_file()? } else { output };
        let difference =
            Difference { normalize: self.normalize, strip_hex: self.strip_hex, compare: self.compare.options() };
        let options = FlamegraphOptions {
            inputs,
            output,
            load,
            write,
            look: Look { negate: self.negate, style, ..self.look.into() },
            before: self.diff.map(|before| (before.into(), difference)),
        };
        let mut outcome = flamegraph::run(&options, job)?;
        outcome.summary.extend(is_on_terminal.then(|| format!("drew {PICTURE}")));
        Ok(outcome)
    }
}

impl FlamegraphArgs {
    /// The outermost frames if the user chooses none. By default there is none, as on the page of `view`. There are
    /// three exceptions: inferno's style shows folded stacks, which start with a process or thread; when comparing, the
    /// earlier profile may be folded stacks; and the rows of a flame chart are named after threads.
    fn roots(&self, style: Style) -> RootFrame {
        let is_page = style == Style::Page && !self.look.flamechart && self.diff.is_none();
        if is_page { RootFrame::Nothing } else { RootFrame::Comm }
    }
}

/// The default file for the flame graph, used if standard output is a terminal.
const PICTURE: &str = "flamegraph.svg";

fn picture_file() -> Result<OutPath> {
    match io::is_there(Path::new(PICTURE)) {
        false => Ok(OutPath::Path(PICTURE.into())),
        true => Err(Error::usage(format!("{PICTURE} already exists; choose another file with -o FILE"))),
    }
}

impl From<LookArgs> for Look {
    /// Copies the flags to the options of the picture.
    fn from(args: LookArgs) -> Self {
        Self {
            style: Style::default(),
            title: args.title,
            subject: None,
            subtitle: args.subtitle,
            notes: args.notes,
            colors: args.colors,
            bgcolors: args.bgcolors,
            hash: args.hash,
            color_diffusion: args.color_diffusion,
            search_color: args.search_color,
            stroke_color: args.stroke_color,
            ui_color: args.ui_color,
            inverted: args.inverted,
            reversed: args.reverse,
            flame_chart: args.flamechart,
            base: args.base,
            width: args.width.map(|width| width as usize),
            height: args.height,
            min_width: args.minwidth,
            font_type: args.font_type,
            font_size: args.font_size,
            font_width: args.font_width,
            count_name: args.count_name,
            name_type: args.name_type,
            factor: args.factor,
            cut: if args.truncate_text_left { Cut::Begin } else { Cut::End },
            truncate_right: args.truncate_text_right,
            negate: false,
            pretty_xml: args.pretty_xml,
            no_javascript: args.no_javascript,
        }
    }
}
