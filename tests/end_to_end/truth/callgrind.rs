//! `callgrind`: a call graph, read as its manual describes it.

use super::told::{Frame, Told, Weights, function};
use std::collections::BTreeMap;

/// Functions are distinguished by object and name.
#[derive(Default)]
struct Graph {
    names: [BTreeMap<String, String>; 2],
    /// Self, and inclusive cost of the calls to others, by event.
    own: BTreeMap<String, Vec<u64>>,
    calls: BTreeMap<String, Vec<u64>>,
}

impl Graph {
    /// `(id) name` defines, `(id)` refers.
    fn name(&mut self, space: usize, text: &str) -> String {
        let (id, name) = text.split_once(')').unwrap();
        if !name.is_empty() {
            self.names[space].insert(id.to_owned(), name[1..].to_owned());
        }
        self.names[space][id].clone()
    }

    /// The function of that id is the one of the object that it was defined in.
    fn function(&mut self, object: &str, text: &str) -> String {
        let (id, name) = text.split_once(')').unwrap();
        if !name.is_empty() {
            let module = (object != "???").then(|| object.to_owned());
            let whole = function(&Frame { name: name[1..].to_owned(), module });
            self.names[1].insert(id.to_owned(), whole);
        }
        self.names[1][id].clone()
    }
}

fn add(sums: &mut Vec<u64>, costs: &[u64]) {
    sums.resize(sums.len().max(costs.len()), 0);
    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

/// The written costs: the `summary:` is the sum of them.
pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    let (told, summary) = stated(text);
    let sums: Vec<u64> = told.iter().map(Told::total).collect();
    assert_eq!(sums, summary, "summary:");
    told
}

/// The costs that a file states, and its `summary:`.
pub(crate) fn stated(text: &[u8]) -> (Vec<Told>, Vec<u64>) {
    let text = std::str::from_utf8(text).unwrap();
    let mut graph = Graph::default();
    let (mut positions, mut events, mut summary) = (1, 0, Vec::new());
    let (mut object, mut called_object) = (String::new(), None);
    let (mut current, mut callee) = (String::new(), None);
    for line in text.lines() {
        let (key, value) = line.split_once(['=', ':']).unwrap_or(("", ""));
        match key {
            "positions" => positions = value.split_whitespace().count(),
            "events" => events = value.split_whitespace().count(),
            "summary" => summary = value.split_whitespace().map(|cost| cost.parse::<u64>().unwrap()).collect(),
            "ob" => object = graph.name(0, value),
            "cob" => called_object = Some(graph.name(0, value)),
            "fn" => current = graph.function(&object, value),
            "cfn" => {
                let object = called_object.take().unwrap_or_else(|| object.clone());
                callee = Some(graph.function(&object, value));
            }
            _ if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) => {
                let costs: Vec<u64> =
                    line.split_whitespace().skip(positions).map(|cost| cost.parse().unwrap()).collect();
                let sums = if callee.take().is_some() { &mut graph.calls } else { &mut graph.own };
                add(sums.entry(current.clone()).or_default(), &costs);
            }
            _ => {}
        }
    }
    let told = |event: usize| {
        let of = |sums: &BTreeMap<String, Vec<u64>>| -> BTreeMap<String, u64> {
            let costs = sums.iter().map(|(name, costs)| (name.clone(), costs.get(event).copied().unwrap_or(0)));
            costs.filter(|(_, cost)| *cost > 0).collect()
        };
        let own = of(&graph.own);
        let mut total = own.clone();
        for (name, cost) in of(&graph.calls) {
            *total.entry(name).or_default() += cost;
        }
        Told { graph: Some(Weights { own, total }), ..Told::default() }
    };
    ((0..events).map(told).collect(), summary)
}
