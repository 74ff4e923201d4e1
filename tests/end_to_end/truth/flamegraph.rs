//! `flamegraph`: boxes of a page. A box lies on the one that spans it; what its callees leave it is its own.
//!
//! The page's script has all boxes in groups, each box a record: how many rows are below it, how far it begins behind
//! the one before it in the group, its width, the number of its name, and what its color states.

use super::told::{Frame, Stack, Told};
use roxmltree::Document;
use serde_json::Value;

struct Drawn {
    row: usize,
    end: u64,
    name: String,
    /// The weight that its callees leave it.
    own: u64,
}

pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    let document = Document::parse(std::str::from_utf8(text).unwrap()).unwrap();
    let named = |id: &str| document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
    let facts: Value = serde_json::from_str(named("facts").text().unwrap()).unwrap();
    // The weight of one unit of width.
    let unit = facts["unit"].as_u64().unwrap();
    let names: Vec<&str> = named("names").text().unwrap().split('\n').collect();
    let mut stacks = Vec::new();
    let mut open: Vec<Drawn> = Vec::new();
    let mut close = |open: &mut Vec<Drawn>| {
        // The outermost box is the whole picture.
        let frames = open[1..].iter().map(|drawn| Frame { name: drawn.name.clone(), module: None }).collect();
        stacks.push(Stack { frames, weight: open.pop().unwrap().own * unit });
    };
    for group in named("boxes").children().filter_map(|group| group.attribute("data-b")) {
        let mut start = 0;
        for record in group.split(' ') {
            let fields: Vec<&str> = record.split(',').collect();
            let number = |at: usize| fields[at].parse::<u64>().unwrap();
            start += number(1);
            let shown = names[number(3) as usize];
            // A run of unnamed frames is one box, which states how many there are.
            let run = shown.strip_suffix(" frames)").and_then(|shown| shown.rsplit_once(" (up to "));
            let (row, own, name) = (number(0) as usize, number(2), run.map_or(shown, |(name, _)| name).to_owned());
            while open.len() > row {
                close(&mut open);
            }
            if let Some(around) = open.last_mut() {
                assert!(around.row + 1 == row && start + own <= around.end, "{name} lies on {}", around.name);
                around.own -= own;
            }
            open.push(Drawn { row, end: start + own, name, own });
        }
    }
    while !open.is_empty() {
        close(&mut open);
    }
    vec![Told { stacks, ..Told::default() }]
}
