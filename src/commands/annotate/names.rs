//! Functions by name: a runtime compiles one function again and again, and each time it is another piece of code.

use super::annotation::NameSummary;
use super::costs::Costs;
use super::functions::{CodePlace, Function};
use rustc_hash::FxHashMap;

/// The codes of one name, as numbers of functions, hottest first.
#[derive(Debug)]
pub(super) struct Name {
    codes: Vec<usize>,
}

/// All names, in the order of their hottest code.
#[derive(Debug)]
pub(super) struct Names {
    list: Vec<Name>,
    /// Of each function: its name's number, and which of that one's codes it is.
    of: Vec<(usize, usize)>,
}

impl Names {
    /// Functions are hottest first. Native functions of one name in two files are two; JIT code is one wherever it is.
    pub(super) fn new(functions: &[Function]) -> Self {
        let (mut list, mut of) = (Vec::<Name>::new(), Vec::new());
        let mut numbers = FxHashMap::default();
        for (at, function) in functions.iter().enumerate() {
            let module = function.module.as_deref().filter(|_| !matches!(function.place, CodePlace::Jit(_)));
            let number = *numbers.entry((&function.name[..], module)).or_insert(list.len());
            if number == list.len() {
                list.push(Name { codes: Vec::new() });
            }
            of.push((number, list[number].codes.len()));
            list[number].codes.push(at);
        }
        Self { list, of }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Which of the codes of its name a function is, counted from 1, and how many there are.
    pub(super) fn version(&self, function: usize) -> (usize, usize) {
        let (name, code) = self.of[function];
        (code + 1, self.list[name].codes.len())
    }

    /// The names of these functions, each once, in their order.
    pub(super) fn summaries(&self, picked: &[usize], functions: &[Function]) -> Vec<NameSummary> {
        let mut told = vec![false; self.list.len()];
        let names = picked.iter().map(|&function| self.of[function].0);
        let new = names.filter(|&name| !std::mem::replace(&mut told[name], true));
        new.map(|name| self.list[name].summary(functions)).collect()
    }
}

impl Name {
    fn summary(&self, functions: &[Function]) -> NameSummary {
        let codes: Vec<Costs> = self.codes.iter().map(|&at| functions[at].costs.clone()).collect();
        let mut costs = Costs::default();
        codes.iter().for_each(|code| costs.join(code));
        let hottest = &functions[self.codes[0]];
        NameSummary { name: hottest.name.clone(), module: hottest.module.clone(), costs, codes }
    }
}
