//! The options of `report`.

use crate::analysis::category::Category;
use crate::analysis::comparison::CompareOptions;
use crate::analysis::groups::{Group, Key, Unnamed};
use crate::io::{InPath, OutPath};
use crate::model::backing::Backing;
use crate::model::stacks::Weight;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::table::{Layout, TextStyle};
use regex::Regex;

/// The options of the report.
#[derive(Debug)]
pub struct ReportOptions {
    /// The inputs; several are merged.
    pub inputs: Vec<InPath>,
    /// The output.
    pub output: OutPath,
    /// How to read.
    pub load: LoadOptions,
    /// The weight to sum.
    pub weight: Weight,
    /// The rows.
    pub rows: Rows,
    /// The way that functions without a name are distinguished.
    pub unnamed: Unnamed,
    /// By what rows are sorted.
    pub order: Order,
    /// How changes are found.
    pub compare: CompareOptions,
    /// The rows that are reported.
    pub selection: Selection,
    /// Text, CSV or JSON.
    pub layout: Layout,
    /// The reader that text is fitted to.
    pub reader: Reader,
}

/// The kind of rows of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// Functions.
    Functions,
    /// Samples put together by these keys.
    Groups(Vec<Key>),
    /// Functions, compared with those of this input, which was recorded before.
    Changes(InPath),
    /// Functions below those that called them.
    Tree,
    /// The function of this name, and below it from where it was called.
    Callers(String),
    /// The function of this name, and below it what it called.
    Callees(String),
    /// Functions that call each other in cycles.
    Cycles,
}

/// By what rows are sorted; ties by the other weight, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Weight of its own, heaviest first.
    Own,
    /// Weight with callees, heaviest first.
    Total,
    /// Samples that end in it, most first.
    Samples,
    /// Rows by name.
    Name,
}

/// The rows that are reported.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The limit.
    pub limit: Limit,
    /// Those that have at least this many per cent of the whole.
    pub percent: Option<f64>,
    /// Functions whose name matches.
    pub symbol: Option<Regex>,
    /// Functions of these names; empty: all.
    pub symbols: Vec<String>,
    /// Code of these files, by name or path, or JIT code (`[JIT]`); empty: all.
    pub modules: Vec<String>,
    /// Code of these kinds, as tables call them; empty: all.
    pub kinds: Vec<String>,
    /// Code of these tiers, as tables call them; empty: all.
    pub tiers: Vec<String>,
}

/// The number of rows at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// All; on a terminal, as many as it has lines for.
    #[default]
    Fitting,
    /// All.
    None,
    /// This many.
    Rows(usize),
}

/// The reader that text is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reader {
    /// True if a terminal is reported the numbers of samples, too.
    pub samples: bool,
    /// The width of lines, and whether there are colors.
    pub style: TextStyle,
    /// The number of lines that a terminal has; `None` if it is none.
    pub height: Option<usize>,
}

/// What tables of others call JIT code.
const JIT: &str = "[JIT]";

/// True if a word is meant as a kind or tier of code: in upper or lower case, in British or American spelling.
fn is_word(typed: &str, name: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace("iz", "is");
    plain(typed) == plain(name)
}

impl Selection {
    /// True if some rows may be left out.
    pub(super) fn chooses(&self) -> bool {
        self.symbol.is_some()
            || [&self.symbols, &self.modules, &self.kinds, &self.tiers].iter().any(|names| !names.is_empty())
    }

    /// True if code of some kinds of a group is reported.
    pub(super) fn takes_code(&self, group: &Group) -> bool {
        let is_kind =
            |(category, _): (Category, u64)| self.kinds.iter().any(|kind| is_word(kind, category.of_any_tier().name()));
        let is_tier = |(category, _): (Category, u64)| self.tiers.iter().any(|tier| is_word(tier, category.name()));
        (self.kinds.is_empty() || group.categories.iter().any(is_kind))
            && (self.tiers.is_empty() || group.categories.iter().any(is_tier))
    }

    /// True if a function or another group is reported, by its module and its name, as far as it has them.
    pub(super) fn takes(&self, module: Option<&str>, symbol: Option<&str>) -> bool {
        let of_module = |module: &str| {
            let base = module.rsplit('/').next();
            self.modules.is_empty()
                || self.modules.iter().any(|wanted| {
                    let is_jit = wanted == JIT && Backing::of(module.as_bytes()).is_jit_object();
                    wanted == module || Some(&wanted[..]) == base || is_jit
                })
        };
        let of_symbol = |symbol: &str| {
            let listed = self.symbols.is_empty() || self.symbols.iter().any(|wanted| wanted == symbol);
            listed && self.symbol.as_ref().is_none_or(|pattern| pattern.is_match(symbol))
        };
        module.is_none_or(of_module) && symbol.is_none_or(of_symbol)
    }
}
