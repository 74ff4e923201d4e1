//! The options of `report`.

use crate::analysis::category::Category;
use crate::analysis::comparison::CompareOptions;
use crate::analysis::groups::{Group, Key, Unnamed};
use crate::io::{InPath, OutPath};
use crate::model::mapping_kind::MappingKind;
use crate::model::stacks::Weight;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::table::{Layout, TextStyle};
use regex::Regex;

/// The options of `report`: what to show, and how.
#[derive(Debug)]
pub struct ReportOptions {
    /// The inputs. Several inputs are merged into one.
    pub inputs: Vec<InPath>,
    /// Where to write the table.
    pub output: OutPath,
    /// How to read the inputs.
    pub load: LoadOptions,
    /// Which weight of the samples to sum: the event's weight, or the number of samples.
    pub weight: Weight,
    /// What the rows of the table stand for.
    pub rows: Rows,
    /// How to keep apart functions that have no name.
    pub unnamed: Unnamed,
    /// How rows are sorted.
    pub order: Order,
    /// How to judge changes since an earlier profile.
    pub compare: CompareOptions,
    /// Which rows are shown.
    pub selection: Selection,
    /// The layout of the table: text, CSV or JSON.
    pub layout: Layout,
    /// Where text output goes, which decides how it is formatted.
    pub reader: Reader,
}

/// What the rows of the table stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// One row per function.
    Functions,
    /// One row per group of samples that agree in these keys.
    Groups(Vec<Key>),
    /// One row per function, with its change since this earlier profile.
    Changes(InPath),
    /// One row per node of the call tree.
    Tree,
    /// The functions with this name, each followed by the functions that call it.
    Callers(String),
    /// The functions with this name, each followed by the functions that it calls.
    Callees(String),
    /// One row per recursive cycle, and below it the functions in it.
    Cycles,
}

/// How rows are sorted. Rows with the same value are sorted by self weight, then by total weight, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By self weight, heaviest first.
    Own,
    /// By total weight (including callees), heaviest first.
    Total,
    /// By the number of samples in the function itself, most first.
    Samples,
    /// Alphabetically by name.
    Name,
}

/// Which rows are shown.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Maximum number of rows.
    pub limit: Limit,
    /// Only rows with at least this percentage of the event's total weight. `None` means the default, which depends on
    /// the kind of table.
    pub percent: Option<f64>,
    /// Only functions whose name matches.
    pub symbol: Option<Regex>,
    /// Only functions with one of these names. Empty means all.
    pub symbols: Vec<String>,
    /// Only code of these files, given by name or path; `[JIT]` means JIT code. Empty means all.
    pub modules: Vec<String>,
    /// Only these kinds of code, spelled as in tables. Empty means all.
    pub kinds: Vec<String>,
    /// Only these tiers, spelled as in tables. Empty means all.
    pub tiers: Vec<String>,
}

/// Maximum number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// On a terminal, as many rows as fit its height; otherwise all.
    #[default]
    Fitting,
    /// Show all rows.
    None,
    /// Show at most this many rows.
    Rows(usize),
}

/// Where text output goes (a terminal, or a file or pipe), which decides how it is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reader {
    /// Show sample counts even on a terminal.
    pub samples: bool,
    /// The width of lines, and whether to use colors.
    pub style: TextStyle,
    /// The number of lines of the terminal. `None` if text doesn't go to a terminal.
    pub height: Option<usize>,
}

/// The name that `report --diff` uses for the module of JIT code.
const JIT: &str = "[JIT]";

/// True if the user typed this name of a kind or tier. Case and the choice of British or American spelling don't
/// matter.
fn is_word(typed: &str, name: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace("iz", "is");
    plain(typed) == plain(name)
}

impl Selection {
    /// True if the user set a filter by name, module, kind or tier.
    pub(super) fn has_filters(&self) -> bool {
        self.symbol.is_some()
            || [&self.symbols, &self.modules, &self.kinds, &self.tiers].iter().any(|names| !names.is_empty())
    }

    /// True if any of the group's code has a selected kind and tier.
    pub(super) fn matches_code(&self, group: &Group) -> bool {
        let is_kind = |(category, _): (Category, u64)| {
            self.kinds.iter().any(|kind| is_word(kind, category.without_tier().name()))
        };
        let is_tier = |(category, _): (Category, u64)| self.tiers.iter().any(|tier| is_word(tier, category.name()));
        (self.kinds.is_empty() || group.categories.iter().any(is_kind))
            && (self.tiers.is_empty() || group.categories.iter().any(is_tier))
    }

    /// True if a group with this module and function name is selected. If samples aren't grouped by module (or by
    /// function), the value is `None`, and the filter for it doesn't apply.
    pub(super) fn matches(&self, module: Option<&str>, symbol: Option<&str>) -> bool {
        module.is_none_or(|module| self.matches_module(module))
            && symbol.is_none_or(|symbol| self.matches_symbol(symbol))
    }

    /// True if the filter for modules is unused, or lists this module by its path or file name.
    fn matches_module(&self, module: &str) -> bool {
        if self.modules.is_empty() {
            return true;
        }
        let file_name = module.rsplit('/').next();
        let is_jit = MappingKind::from_path(module.as_bytes()).is_jit_object();
        self.modules.iter().any(|wanted| wanted == module || Some(&wanted[..]) == file_name || wanted == JIT && is_jit)
    }

    /// True if the filters for function names are unused or match this name.
    fn matches_symbol(&self, symbol: &str) -> bool {
        let is_listed = self.symbols.is_empty() || self.symbols.iter().any(|wanted| wanted == symbol);
        is_listed && self.symbol.as_ref().is_none_or(|pattern| pattern.is_match(symbol))
    }
}
