//! The flags of `jitgraft report`.

use super::common::one_of;
use super::input::{CompareArgs, InputArgs, OutputArgs, WeightArgs, check_comparison};
use super::output::{check_name, extension};
use super::stderr;
use crate::analysis::category::Category;
use crate::analysis::groups::{Key, Unnamed};
use crate::commands::report::{self, Limit, Order, Reader, ReportOptions, Rows, Selection};
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::io::{OutPath, Terminal, is_color_forced};
use crate::pipeline::sink::Naming;
use crate::pipeline::table::{Layout, TextStyle};
use crate::pipeline::{Job, Outcome};
use crate::runtimes::NamedRuntime;
use crate::runtimes::jit_names::JitNames;
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValue};
use regex::Regex;
use std::path::PathBuf;

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    jitgraft report perf.data\n  \
    jitgraft report --sort total --limit 20 perf.data\n  \
    jitgraft report --callers malloc perf.data\n  \
    jitgraft report --diff perf.data.old perf.data\n  \
    jitgraft report perf.data -o hot.csv")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// Maximum number of rows; 0: all [default: what fits]
    ///
    /// In files and pipes the default is all. On a terminal, names are also truncated, JIT names are pretty, and the
    /// tiers of a function are one row.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Leave out rows below this percentage [default: 0; 0.5 in trees]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, hide_short_help = true)]
    percent_limit: Option<f64>,
    /// Only functions that match this regular expression
    ///
    /// Percentages remain relative to the total.
    #[arg(long, value_name = "REGEX", alias = "symbol-filter", conflicts_with = "tree_of_calls")]
    symbol: Option<Regex>,
    /// Only functions with these names
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',', conflicts_with = "tree_of_calls")]
    #[arg(hide_short_help = true)]
    symbols: Vec<String>,
    /// Only code of these files, by name or path
    #[arg(short, long, alias = "dsos", value_name = "NAME,…", value_delimiter = ',', conflicts_with = "tree_of_calls")]
    dso: Vec<String>,
    /// Only code of this kind, such as JIT (see the column called kind)
    ///
    /// A runtime or language stands for its kind of code: js for JIT, rust for native. Repeatable.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["tree_of_calls", "diff"], hide_short_help = true)]
    #[arg(help_heading = "Filters")]
    kind: Vec<String>,
    /// Only JIT code of this tier (a value of the column tier), such as optimized
    ///
    /// Repeatable.
    #[arg(long, value_name = "TIER", conflicts_with_all = ["tree_of_calls", "diff"], hide_short_help = true)]
    #[arg(help_heading = "Filters")]
    tier: Vec<String>,
    /// List unnamed functions by address [default: one row per module]
    #[arg(long, hide_short_help = true)]
    addrs: bool,
    /// Format of the table [default: by the output's name, else text]
    #[arg(long, visible_alias = "format", value_parser = one_of(layouts()), value_name = "FORMAT")]
    to: Option<Layout>,
    /// Do not truncate names on a terminal
    #[arg(long, hide_short_help = true, conflicts_with = "width")]
    wide: bool,
    /// Line width; longer names are cut in the middle [default: the terminal's; none in files and pipes]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..), hide_short_help = true)]
    width: Option<u16>,
    /// Show the number of samples on a terminal
    #[arg(short = 'n', long, hide_short_help = true)]
    show_nr_samples: bool,
    /// Accepted for perf report compatibility (always on)
    #[arg(long, hide = true)]
    stdio: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
}

/// Flags for what the rows are and how they are sorted.
#[derive(Debug, Args)]
struct RowArgs {
    /// Sort by self, total, samples or name
    ///
    /// Other sort keys of perf report, such as comm or dso, are accepted, too: they group samples, as --by does.
    #[arg(short, long, value_parser = one_of(sort_keys()), value_delimiter = ',', value_name = "WHAT,…", hide_possible_values = true)]
    #[arg(help_heading = "Rows")]
    sort: Vec<SortKey>,
    /// Same as --sort total (as in perf report)
    #[arg(long, hide = true, conflicts_with = "sort")]
    children: bool,
    /// Same as --sort self (as in perf report)
    #[arg(long, hide = true, conflicts_with = "children")]
    no_children: bool,
    /// Group by comm, pid, tid, cpu, dso, sym, tier, line …
    ///
    /// Another key is kind, which says what kind of code ran (JIT, native, kernel …); tier also divides JIT code by
    /// tier. Without --by, each row is a function.
    #[arg(long, value_parser = one_of(group_keys()), value_delimiter = ',', value_name = "WHAT,…", hide_possible_values = true)]
    #[arg(conflicts_with_all = ["diff", "tree_of_calls"], help_heading = "Rows")]
    by: Vec<Key>,
    /// The former name of --by
    #[arg(long, value_parser = one_of(group_keys()), value_delimiter = ',', value_name = "WHAT,…", hide = true)]
    #[arg(conflicts_with_all = ["diff", "tree_of_calls"])]
    group_by: Vec<Key>,
    /// Compare with this profile [default: perf.data.old]
    ///
    /// Changes within sampling noise are marked. Exact measurements (callgrind, traces, measureme) have
    /// no noise: all their changes count.
    #[arg(long, value_name = "BEFORE", num_args = 0..=1, default_missing_value = "perf.data.old")]
    #[arg(help_heading = "Rows")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Flags for showing functions with their callers or callees.
#[derive(Debug, Args)]
#[group(id = "tree_of_calls", multiple = false, conflicts_with = "diff")]
struct TreeArgs {
    /// Show all calls as a tree
    #[arg(long, help_heading = "Rows")]
    tree: bool,
    /// Show what called a function (name or part of it)
    #[arg(long, value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new(), help_heading = "Rows")]
    callers: Option<String>,
    /// Show what a function called
    #[arg(long, value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new(), help_heading = "Rows")]
    callees: Option<String>,
    /// List functions that call each other in cycles (callgrind input)
    #[arg(long, help_heading = "Rows", hide_short_help = true)]
    cycles: bool,
}

/// A value of `--sort`. As in perf report, it is either an order of rows or a key to group samples by.
#[derive(Debug, Clone, Copy)]
enum SortKey {
    Order(Order),
    Group(Key),
}

/// The values of `--sort`.
fn sort_keys() -> Vec<(PossibleValue, SortKey)> {
    let orders = [
        (PossibleValue::new("self").alias("overhead"), Order::Own),
        (PossibleValue::new("total").alias("children"), Order::Total),
        (PossibleValue::new("samples").alias("sample"), Order::Samples),
        (PossibleValue::new("name"), Order::Name),
    ];
    let orders = orders.map(|(name, order)| (name, SortKey::Order(order)));
    orders.into_iter().chain(group_keys().map(|(name, key)| (name, SortKey::Group(key)))).collect()
}

/// The keys by which samples can be grouped, with their names.
fn group_keys() -> [(PossibleValue, Key); 9] {
    [
        (PossibleValue::new("comm"), Key::Comm),
        (PossibleValue::new("pid"), Key::Pid),
        (PossibleValue::new("tid"), Key::Tid),
        (PossibleValue::new("cpu"), Key::Cpu),
        (PossibleValue::new("dso").alias("module"), Key::Module),
        (PossibleValue::new("sym").aliases(["symbol", "function"]), Key::Function),
        (PossibleValue::new("kind"), Key::Kind),
        (PossibleValue::new("tier"), Key::Tier),
        (PossibleValue::new("line").aliases(["srcline", "source"]), Key::Line),
    ]
}

/// The output formats of a table.
pub(super) fn layouts() -> [(PossibleValue, Layout); 3] {
    [("text".into(), Layout::Text), ("csv".into(), Layout::Csv), ("json".into(), Layout::Json)]
}

/// The layout of a table: the one that the user requested or, failing that, the one that the output's file name
/// implies. Fails if the name implies a format that isn't a table.
pub(super) fn layout_of(command: &str, asked: Option<Layout>, output: &OutPath) -> Result<Layout> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    check_name(output, command, &["csv", "json", "txt"])?;
    Ok(match extension(output).as_deref() {
        Some("csv") => Layout::Csv,
        Some("json") => Layout::Json,
        _ => Layout::Text,
    })
}

/// Parses a number from 0 to 100, with or without `%`.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|error| format!("{error}"))?;
    if (0.0..=100.0).contains(&percent) { Ok(percent) } else { Err("expected 0 to 100".to_owned()) }
}

impl RowArgs {
    /// The order of the rows: the last one that the user chose.
    fn order(&self) -> Order {
        let mut orders = self.sort.iter().filter_map(|name| match name {
            SortKey::Order(order) => Some(*order),
            SortKey::Group(_) => None,
        });
        orders.next_back().unwrap_or(if self.children { Order::Total } else { Order::Own })
    }

    /// The keys by which to group samples, without repetitions. Empty if the user requested none.
    fn keys(&self) -> Vec<Key> {
        let of_sort = self.sort.iter().filter_map(|name| match name {
            SortKey::Order(_) => None,
            SortKey::Group(key) => Some(*key),
        });
        let mut keys: Vec<Key> = Vec::new();
        for key in self.by.iter().chain(&self.group_by).copied().chain(of_sort) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// What the rows of the table are.
    fn rows(self, keys: Vec<Key>) -> Result<Rows> {
        let Self { diff, tree: TreeArgs { tree, callers, callees, cycles }, .. } = self;
        // clap lets the user pass at most one of these flags, so their order doesn't matter.
        let rows = match (diff, callers, callees) {
            (Some(before), ..) => Rows::Changes(before.into()),
            (_, Some(function), _) => Rows::Callers(function),
            (_, _, Some(function)) => Rows::Callees(function),
            _ if tree => Rows::Tree,
            _ if cycles => Rows::Cycles,
            _ if keys.is_empty() => return Ok(Rows::Functions),
            _ => return Ok(Rows::Groups(keys)),
        };
        if keys.is_empty() {
            Ok(rows)
        } else {
            Err(Error::usage(
                "--sort KEYS groups samples by these keys, which does not work with --diff, --tree, --callers, \
                 --callees or --cycles",
            ))
        }
    }
}

/// Fails if the user filters rows by `key` but groups them by other `keys` only: then no row has a value for the
/// filter.
fn check_selection(chooses: bool, key: Key, keys: &[Key]) -> Result<()> {
    if !chooses || keys.is_empty() || keys.contains(&key) {
        return Ok(());
    }
    let (options, word) = if key == Key::Module { ("--dso", "dso") } else { ("--symbol and --symbols", "sym") };
    Err(Error::usage(format!("{options} can only select rows that are grouped by {word}: add {word} to --by")))
}

/// How names are spelled by default. `terminal` is the terminal that text goes to, or `None`.
fn usual_naming(terminal: Option<Terminal>) -> Naming {
    match terminal {
        // Names that the input already had stay raw: what looks like a tier at their end may be a part of the name.
        Some(_) => Naming { resolved: JitNames::Merged, given: JitNames::Raw },
        None => Naming::default(),
    }
}

/// The width and colors of a report. `width` and `is_wide` are flags. `terminal` is the terminal that the text goes to;
/// `None` for files and pipes.
fn choose_style(layout: Layout, terminal: Option<Terminal>, width: Option<u16>, is_wide: bool) -> TextStyle {
    if layout != Layout::Text {
        return TextStyle::default();
    }
    // Without a terminal, text only has colors if the environment forces them, and only `width` limits its width.
    let mut style = TextStyle { width: width.map(usize::from), color: is_color_forced() };
    if let Some(terminal) = terminal {
        style.color = terminal.color;
        if style.width.is_none() && !is_wide {
            style.width = Some(terminal.columns);
        }
    }
    style
}

impl ReportArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let output = OutPath::from(self.output);
        let layout = layout_of("report", self.to, &output)?;
        // Only text is laid out for a terminal; CSV and JSON on a terminal are written as to a file.
        let terminal = Terminal::from_output(&output).filter(|_| layout == Layout::Text);
        let (order, keys) = (self.rows.order(), self.rows.keys());
        if !self.rows.group_by.is_empty() && !job.quiet {
            stderr::say(format_args!("hint: --group-by is now called --by, as in the other commands"));
        }
        let compare = self.rows.compare.options();
        check_selection(self.symbol.is_some() || !self.symbols.is_empty(), Key::Function, &keys)?;
        check_selection(!self.dso.is_empty(), Key::Module, &keys)?;
        let naming = self.input.naming(usual_naming(terminal));
        let style = choose_style(layout, terminal, self.width, self.wide);
        // Addresses are for unnamed functions (`--addrs`).
        let detail = if keys.contains(&Key::Line) { Detail::Lines } else { Detail::Addresses };
        let (inputs, mut load) = self.input.into_options(detail, keys.contains(&Key::Cpu));
        load.jit_names = naming;
        load.sources.source_maps.usual = true;
        let options = ReportOptions {
            inputs,
            output,
            load,
            weight: self.weight.weight,
            rows: self.rows.rows(keys)?,
            unnamed: if self.addrs { Unnamed::ByAddress } else { Unnamed::ByModule },
            order,
            compare,
            selection: Selection {
                limit: match self.limit {
                    None => Limit::Fitting,
                    Some(0) => Limit::None,
                    Some(rows) => Limit::Rows(rows),
                },
                percent: self.percent_limit,
                symbol: self.symbol,
                symbols: self.symbols,
                modules: self.dso,
                kinds: self.kind.into_iter().map(kind_of_code).collect(),
                tiers: self.tier,
            },
            layout,
            reader: Reader { samples: self.show_nr_samples, style, height: terminal.map(|terminal| terminal.rows) },
        };
        if let Rows::Changes(before) = &options.rows {
            check_comparison(Some(before), &options.inputs)?;
        }
        report::run(&options, job)
    }
}

/// The kind of code that the user means: the word itself, or the kind of the runtime or language with this name.
fn kind_of_code(typed: String) -> String {
    match NamedRuntime::find(&typed) {
        Ok(NamedRuntime::Runtime(_)) => Category::Jit(None).name().to_owned(),
        Ok(NamedRuntime::CompiledLanguage) => Category::Native.name().to_owned(),
        Err(_) => typed,
    }
}
