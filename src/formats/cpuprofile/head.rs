//! Converts the nested tree of profiles from before Chrome 57 to a list of nodes that refer to their parents.
//!
//! Recursive parsing could overflow the stack, since there is no limit to the tree's depth. Therefore the text is first
//! split into nodes, each with its own members but not its children.

use super::node::{CallFrame, LineTicks, ProfileNode, list_or_null};
use serde::Deserialize;

/// A node without its children.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct HeadNode {
    function_name: String,
    url: String,
    /// The line at which the function starts. Like the column, counted from 1; 0 if absent.
    line_number: i64,
    column_number: i64,
    hit_count: u64,
    id: u64,
    #[serde(deserialize_with = "list_or_null")]
    position_ticks: Vec<LineTicks>,
}

/// The JSON text of a node without its children, and the index of its parent.
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

/// Parses the nodes of a tree. The text must be valid JSON.
pub(super) fn nodes(tree: &[u8]) -> serde_json::Result<Vec<ProfileNode<'static>>> {
    let mut nodes: Vec<ProfileNode<'static>> = Vec::new();
    for NodeText { parent, json } in split_nodes(tree) {
        let node: HeadNode = serde_json::from_slice(&json)?;
        // Lines and columns count from 1 in old profiles, but from 0 in new ones and in `CallFrame`.
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

/// Splits a tree into the JSON texts of its nodes, without their children. Parents precede their children.
///
/// Each token is copied into the text of the innermost open node. Where a list of children starts, `"children":0` is
/// copied instead, and each element of the list is a new node.
fn split_nodes(tree: &[u8]) -> Vec<NodeText> {
    // `levels` has an entry for each bracket that is open, the innermost last: that of a node, of a list of children,
    // or another.
    let (mut nodes, mut levels): (Vec<NodeText>, Vec<Level>) = (Vec::new(), Vec::new());
    // Indices of the nodes that are open, innermost last.
    let mut open: Vec<usize> = Vec::new();
    let mut next = 0;
    while next < tree.len() {
        // A token is a string or a single byte.
        let start = next;
        next = if tree[start] == b'"' { end_of_string(tree, start) } else { start + 1 };
        let (top, token) = (levels.last().copied(), &tree[start..next]);
        // A node begins: the root, or an element of a list of children.
        if token == b"{" && matches!(top, None | Some(Level::Children)) {
            levels.push(Level::Node(nodes.len()));
            let parent = open.last().copied();
            open.push(nodes.len());
            nodes.push(NodeText { parent, json: b"{".to_vec() });
            continue;
        }
        if token == b"\"children\""
            && let Some(Level::Node(node)) = top
            && let Some(first_element) = start_of_list(tree, next)
        {
            // The member stays, so that the commas around it are right; nobody reads its value.
            nodes[node].json.extend_from_slice(b"\"children\":0");
            levels.push(Level::Children);
            next = first_element;
            continue;
        }
        match token {
            b"{" | b"[" => levels.push(Level::Other),
            b"}" | b"]" => _ = levels.pop(),
            _ => {}
        }
        // Leave out what is between the elements of a list of children, and the bracket at its end. These bytes belong
        // to no node.
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

/// The position after a string that starts at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut index = start + 1;
    while index < text.len() {
        match text[index] {
            b'"' => return index + 1,
            // Skip the escaped character, which may be a quote.
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
    text.len()
}

/// The position of the first element of the list that is the value of a key. `key_end` is the end of the key. `None` if
/// its value isn't a list.
fn start_of_list(text: &[u8], key_end: usize) -> Option<usize> {
    let rest = text.get(key_end..)?.trim_ascii_start();
    let value = rest.strip_prefix(b":")?.trim_ascii_start();
    let list = value.strip_prefix(b"[")?;
    Some(text.len() - list.len())
}
