//! Groups code ranges by function name, because a runtime may compile a function many times, and selects the functions
//! to list.

use super::costs::Costs;
use super::functions::{Function, FunctionCode};
use super::options::{CodeOptions, FunctionPattern};
use super::overview::NameSummary;
use crate::model::printable::printable;
use crate::model::stacks::Weight;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A function name, with the total cost of all its code ranges.
#[derive(Debug, Default)]
struct Name {
    /// The indexes of the name's code ranges in the list of functions, hottest first.
    codes: Vec<usize>,
    costs: Costs,
}

/// All function names, by falling total cost.
#[derive(Debug)]
pub(super) struct Names {
    list: Vec<Name>,
    /// For each function, the index of its name, and its rank among the code ranges of that name, from 0.
    positions: Vec<(usize, usize)>,
}

impl Names {
    /// Groups functions by name, so that the code ranges of one name are together. Native functions with the same name
    /// in different files stay separate; JIT code is grouped by name alone. `functions` must be sorted hottest first.
    pub(super) fn new(functions: &[Function], weight: Weight) -> Self {
        let mut list = Vec::<Name>::new();
        let mut numbers = FxHashMap::default();
        for (index, function) in functions.iter().enumerate() {
            let module = function.module.as_deref().filter(|_| !matches!(function.code, FunctionCode::Jit(_)));
            let number = *numbers.entry((&function.name[..], module)).or_insert(list.len());
            let is_new = number == list.len();
            if is_new {
                list.push(Name::default());
            }
            list[number].codes.push(index);
            list[number].costs.join(&function.costs);
        }
        list.sort_by_cached_key(|name| Reverse(name.costs.heat(weight)));
        let mut positions = vec![(0, 0); functions.len()];
        for (number, name) in list.iter().enumerate() {
            for (rank, &function) in name.codes.iter().enumerate() {
                positions[function] = (number, rank);
            }
        }
        Self { list, positions }
    }

    /// Selects the functions to list: single code ranges or, with `by_name`, all code ranges of a name. Functions whose
    /// code isn't available are selected, too, so that the reason can be shown; they don't count toward the limit.
    pub(super) fn pick(&self, functions: &[Function], options: &CodeOptions) -> Vec<usize> {
        let wanted = WantedFunctions::new(options.function.as_ref(), functions);
        let every: Vec<usize> = (0..functions.len()).collect();
        // A group is a single code range or, with `by_name`, all code ranges of a name.
        let groups: Vec<&[usize]> = if options.by_name {
            self.list.iter().map(|name| &name.codes[..]).collect()
        } else {
            every.chunks(1).collect()
        };
        let limit = options.limit.unwrap_or(usize::MAX);
        let mut picked = Vec::new();
        let mut picked_groups = 0;
        let mut available_groups = 0;
        for group in groups {
            let Some(&first) = group.first() else { continue };
            if !wanted.contains(&functions[first]) {
                continue;
            }
            // Groups whose code isn't available are picked in addition to the limit, because users should see the
            // reason. All groups together are at most twice the limit.
            if available_groups == limit || picked_groups == limit.saturating_mul(2) {
                break;
            }
            // `codes` limits how many code ranges of a name are listed. The hottest come first in a group.
            picked.extend(group.iter().take(options.codes));
            picked_groups += 1;
            if group.iter().any(|&index| !matches!(functions[index].code, FunctionCode::Unknown(_))) {
                available_groups += 1;
            }
        }
        picked
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The rank of a function by cost among the versions of its name, starting at 1, and the number of these versions.
    pub(super) fn version(&self, function: usize) -> (usize, usize) {
        let (name, code) = self.positions[function];
        (code + 1, self.list[name].codes.len())
    }

    /// The names of the hottest functions, for a hint if the requested one isn't found.
    pub(super) fn hottest(&self, functions: &[Function]) -> Vec<Vec<u8>> {
        /// How many names a hint lists.
        const HINTED: usize = 5;
        let mut hottest: Vec<Vec<u8>> = Vec::new();
        for name in &self.list {
            // Skip names that are listed already: functions in several modules may have the same name.
            if let Some(&first) = name.codes.first()
                && hottest.len() < HINTED
                && !hottest.contains(&functions[first].name)
            {
                hottest.push(functions[first].name.clone());
            }
        }
        hottest
    }

    /// For each name among the functions with the indexes `picked`, its total costs. The hottest name comes first.
    pub(super) fn summaries(&self, picked: &[usize], functions: &[Function]) -> Vec<NameSummary> {
        let names: BTreeSet<usize> = picked.iter().map(|&function| self.positions[function].0).collect();
        names.into_iter().map(|name| self.list[name].summary(functions)).collect()
    }
}

impl Name {
    fn summary(&self, functions: &[Function]) -> NameSummary {
        let codes: Vec<Costs> = self.codes.iter().map(|&index| functions[index].costs.clone()).collect();
        let hottest = &functions[self.codes[0]];
        NameSummary { name: hottest.name.clone(), module: hottest.module.clone(), costs: self.costs.clone(), codes }
    }
}

/// Which functions the user asked for with a name or a pattern.
enum WantedFunctions<'a> {
    All,
    /// Only functions with exactly this name.
    Name(&'a str),
    Regex(&'a FunctionPattern),
}

impl<'a> WantedFunctions<'a> {
    /// Decides what a pattern selects. If some function's name is exactly the text that the user typed, only functions
    /// of this name are selected, even if the text is also a regular expression: it may have been copied from some
    /// output.
    fn new(pattern: Option<&'a FunctionPattern>, functions: &[Function]) -> Self {
        let Some(pattern) = pattern else { return Self::All };
        let is_name = functions.iter().any(|function| printable(&function.name) == pattern.text.as_str());
        if is_name { Self::Name(&pattern.text) } else { Self::Regex(pattern) }
    }

    fn contains(&self, function: &Function) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => printable(&function.name) == *name,
            Self::Regex(pattern) => pattern.regex.is_match(&printable(&function.name)),
        }
    }
}
