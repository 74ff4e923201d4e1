//! The content of an output about an event, whatever its format: weighted stacks, or a call graph.

use std::collections::{BTreeMap, BTreeSet};

/// A frame as an output names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) module: Option<String>,
}

/// Frames root first.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) frames: Vec<Frame>,
    pub(crate) weight: u64,
}

/// Self and total weight by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Weights {
    pub(crate) own: BTreeMap<String, u64>,
    pub(crate) total: BTreeMap<String, u64>,
}

/// The figures for one event.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// `nanoseconds`, or whatever the event counts, if the format has a word for it.
    pub(crate) unit: Option<String>,
    /// The number of samples, if the format gives beside the weights.
    pub(crate) samples: Option<u64>,
    /// The number of entries for them: as many, unless the profile is one of sums.
    pub(crate) rows: Option<u64>,
    pub(crate) stacks: Vec<Stack>,
    /// Instead of stacks: what a call graph states about each function.
    pub(crate) graph: Option<Weights>,
}

impl Told {
    pub(crate) fn total(&self) -> u64 {
        match &self.graph {
            // Samples without a stack are in no function.
            Some(graph) => graph.own.values().sum(),
            None => self.stacks.iter().map(|stack| stack.weight).sum(),
        }
    }

    /// By name alone.
    pub(crate) fn by_label(&self) -> Weights {
        self.weights(|frame| label(&frame.name))
    }

    /// By name and module, spelled in full.
    pub(crate) fn by_function(&self) -> Weights {
        self.weights(function)
    }

    /// With functions that have no name as one: some formats spell their place in its stead. What went through any of
    /// them is left out, for a stack may have several.
    fn weights(&self, key: impl Fn(&Frame) -> String) -> Weights {
        const NAMELESS: &str = "(anonymous)";
        let mut weights = self.all_weights(key);
        let nameless = weights.own.extract_if(.., |name, _| name.starts_with(NAMELESS)).map(|(_, own)| own).sum();
        weights.own.insert(NAMELESS.to_owned(), nameless);
        weights.total.retain(|name, _| !name.starts_with(NAMELESS));
        weights
    }

    fn all_weights(&self, key: impl Fn(&Frame) -> String) -> Weights {
        if let Some(graph) = &self.graph {
            return graph.clone();
        }
        let mut weights = Weights::default();
        for stack in self.stacks.iter().filter(|stack| stack.weight > 0) {
            if let Some(leaf) = stack.frames.last() {
                *weights.own.entry(key(leaf)).or_default() += stack.weight;
            }
            let names: BTreeSet<String> = stack.frames.iter().map(&key).collect();
            for name in names {
                *weights.total.entry(name).or_default() += stack.weight;
            }
        }
        weights
    }
}

/// The way a function is called among all functions of all modules.
pub(crate) fn function(frame: &Frame) -> String {
    let name = frame.name.replace(['\n', '\r'], " ");
    format!("{name} ({})", frame.module.as_deref().unwrap_or("???"))
}

/// A name as formats spell it that have one line and `;` between frames: without arguments. Formats with room for
/// more are brought down to it.
pub(crate) fn label(name: &str) -> String {
    let mut depth = 0i32;
    let mut end = name.len();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 && at > 0 && !name[..at].ends_with('.') && !name[at..].starts_with("(anonymous n") => {
                end = at;
                break;
            }
            b'<' | b'{' | b'[' | b'(' => depth += 1,
            b'>' | b'}' | b']' | b')' => depth -= 1,
            _ => {}
        }
    }
    name[..end].replace(';', ":").replace(['\n', '\r'], " ")
}

/// The heaviest differences, in words.
pub(crate) fn difference(what: &str, got: &BTreeMap<String, u64>, want: &BTreeMap<String, u64>) -> Vec<String> {
    let names: BTreeSet<&String> = got.keys().chain(want.keys()).collect();
    let weight = |weights: &BTreeMap<String, u64>, name: &String| weights.get(name).copied().unwrap_or(0);
    let pairs = names.into_iter().map(|name| (weight(got, name), weight(want, name), name));
    let mut differing: Vec<_> = pairs.filter(|(got, want, _)| got != want).collect();
    differing.sort_by_key(|(got, want, _)| std::cmp::Reverse(*got.max(want)));
    let all = differing.len();
    let shown = differing.into_iter().take(3);
    shown.map(|(got, want, name)| format!("{what} of {name}: {got} instead of {want} ({all} differ)")).collect()
}
