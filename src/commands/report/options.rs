//! What is asked of `report`.

use crate::analysis::groups::{Key, Unnamed};
use crate::io::{InPath, OutPath};
use crate::model::stacks::Weight;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::table::{Layout, TextStyle};
use regex::Regex;

/// What to tell, and how.
#[derive(Debug)]
pub struct ReportOptions {
    /// What to read; several are merged.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub load: LoadOptions,
    /// What to sum.
    pub weight: Weight,
    /// What the rows are.
    pub rows: Rows,
    /// How functions without a name are told apart.
    pub unnamed: Unnamed,
    /// By what rows are sorted.
    pub order: Order,
    /// Which rows are told.
    pub selection: Selection,
    /// Text, CSV or JSON.
    pub layout: Layout,
    /// Whom text is fitted to.
    pub reader: Reader,
}

/// What the rows of the table are.
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
    /// What the rows are called.
    Name,
}

/// Which rows are told.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// So many at most.
    pub limit: Limit,
    /// Those that have at least so many per cent of the whole.
    pub percent: Option<f64>,
    /// Functions whose name matches.
    pub symbol: Option<Regex>,
    /// Functions of these names; empty: all.
    pub symbols: Vec<String>,
    /// Code of these files, by name or path; empty: all.
    pub modules: Vec<String>,
}

/// How many rows at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// All; on a terminal, as many as it has lines for.
    #[default]
    Fitting,
    /// All.
    None,
    /// So many.
    Rows(usize),
}

/// Whom text is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reader {
    /// Whether a terminal is told the numbers of samples, too.
    pub samples: bool,
    /// The width of lines, and whether there are colours.
    pub style: TextStyle,
    /// How many lines a terminal has; `None` if it is none.
    pub height: Option<usize>,
}

impl Selection {
    /// Whether a function or another group is told, by its module and its name, as far as it has them.
    pub(super) fn takes(&self, module: Option<&str>, symbol: Option<&str>) -> bool {
        let of_module = |module: &str| {
            let base = module.rsplit('/').next();
            self.modules.is_empty() || self.modules.iter().any(|wanted| wanted == module || Some(&wanted[..]) == base)
        };
        let of_symbol = |symbol: &str| {
            let listed = self.symbols.is_empty() || self.symbols.iter().any(|wanted| wanted == symbol);
            listed && self.symbol.as_ref().is_none_or(|pattern| pattern.is_match(symbol))
        };
        module.is_none_or(of_module) && symbol.is_none_or(of_symbol)
    }
}
