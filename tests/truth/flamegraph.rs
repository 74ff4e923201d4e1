//! `flamegraph`: boxes of an SVG. A box lies on the one that spans it; what its callees leave it is its own.

use crate::told::{Frame, Stack, Told};
use roxmltree::{Document, Node};

struct Drawn {
    y: i64,
    start: u64,
    width: u64,
    name: String,
}

fn drawn(group: Node<'_, '_>) -> Option<Drawn> {
    let rect = group.children().find(|node| node.has_tag_name("rect"))?;
    let number = |name: &str| {
        rect.attributes()
            .find(|attribute| attribute.namespace().is_some() && attribute.name() == name)?
            .value()
            .parse()
            .ok()
    };
    let title = group.children().find(|node| node.has_tag_name("title"))?.text()?;
    // `name (1,234 samples, 5.67%)`
    let name = title[..title.rfind(" (")?].to_owned();
    let y = rect.attribute("y")?.parse::<f64>().ok()? as i64;
    Some(Drawn { y, start: number("x")?, width: number("w")?, name })
}

pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    // Without its script, which is of no interest here and may hold anything.
    let text = std::str::from_utf8(text).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = Document::parse_with_options(text, options).unwrap();
    let groups = document.descendants().filter(|node| node.has_tag_name("g"));
    let mut boxes: Vec<Drawn> = groups.filter_map(drawn).collect();
    // From the root on: at the bottom of the picture.
    boxes.sort_by_key(|drawn| (drawn.start, -drawn.y));
    let mut stacks = Vec::new();
    let mut open: Vec<(Drawn, u64)> = Vec::new();
    let mut close = |open: &mut Vec<(Drawn, u64)>| {
        // The outermost box is the whole picture.
        let frames = open[1..].iter().map(|(drawn, _)| Frame { name: drawn.name.clone(), module: None }).collect();
        let (_, weight) = open.pop().unwrap();
        stacks.push(Stack { frames, weight });
    };
    for drawn in boxes {
        while open.last().is_some_and(|(around, _)| around.start + around.width <= drawn.start) {
            close(&mut open);
        }
        if let Some((_, left)) = open.last_mut() {
            *left -= drawn.width;
        }
        let width = drawn.width;
        open.push((drawn, width));
    }
    while !open.is_empty() {
        close(&mut open);
    }
    vec![Told { stacks, ..Told::default() }]
}
