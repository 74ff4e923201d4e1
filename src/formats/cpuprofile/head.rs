//! The nested tree of old profiles, as a list of nodes that name their parents.
//!
//! A tree may be deeper than a reader can follow by calling itself, so its text is taken apart first: each node's own
//! members, without its children.

use super::node::{CallFrame, LineTicks, ProfileNode};
use serde::Deserialize;

/// A node without its children.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct HeadNode {
    function_name: String,
    url: String,
    /// From 1; 0 if absent.
    line_number: i64,
    column_number: i64,
    hit_count: u64,
    id: u64,
    position_ticks: Vec<LineTicks>,
}

/// The text of a node's own members.
struct NodeText {
    parent: Option<usize>,
    json: Vec<u8>,
}

/// What an open bracket belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Node(usize),
    Children,
    Other,
}

/// The nodes of a tree, given its text, which must be JSON.
pub(super) fn nodes(tree: &[u8]) -> serde_json::Result<Vec<ProfileNode<'static>>> {
    let mut nodes: Vec<ProfileNode<'static>> = Vec::new();
    for NodeText { parent, json } in texts(tree) {
        let node: HeadNode = serde_json::from_slice(&json)?;
        let call_frame = CallFrame {
            function_name: node.function_name.into(),
            url: node.url.into(),
            line_number: node.line_number - 1,
            column_number: node.column_number - 1,
        };
        nodes.push(ProfileNode {
            id: node.id,
            call_frame,
            hit_count: node.hit_count,
            children: Vec::new(),
            parent: parent.map(|parent| nodes[parent].id),
            position_ticks: node.position_ticks,
        });
    }
    Ok(nodes)
}

fn texts(tree: &[u8]) -> Vec<NodeText> {
    let (mut nodes, mut levels): (Vec<NodeText>, Vec<Level>) = (Vec::new(), Vec::new());
    // The nodes that are open, the innermost last.
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < tree.len() {
        let start = at;
        at = if tree[at] == b'"' { end_of_string(tree, at) } else { at + 1 };
        let (top, token) = (levels.last().copied(), &tree[start..at]);
        match (token, top) {
            (b"{", None | Some(Level::Children)) => {
                levels.push(Level::Node(nodes.len()));
                let parent = open.last().copied();
                open.push(nodes.len());
                nodes.push(NodeText { parent, json: b"{".to_vec() });
                continue;
            }
            (b"\"children\"", Some(Level::Node(node))) => {
                if let Some(list) = start_of_list(tree, at) {
                    nodes[node].json.extend_from_slice(b"\"children\":0");
                    levels.push(Level::Children);
                    at = list;
                    continue;
                }
            }
            (b"{" | b"[", _) => levels.push(Level::Other),
            (b"}" | b"]", _) => _ = levels.pop(),
            _ => {}
        }
        if top == Some(Level::Children) {
            continue;
        }
        if let Some(node) = open.last() {
            nodes[*node].json.extend_from_slice(token);
        }
        if token == b"}" && matches!(top, Some(Level::Node(_))) {
            open.pop();
        }
    }
    nodes
}

/// The place behind a string that begins here.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The place behind the bracket of a list that a key at this place has as its value.
fn start_of_list(text: &[u8], key_end: usize) -> Option<usize> {
    let behind = |at: usize, wanted: u8| {
        let rest = text.get(at..)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        (rest.get(blanks) == Some(&wanted)).then_some(at + blanks + 1)
    };
    behind(behind(key_end, b':')?, b'[')
}
