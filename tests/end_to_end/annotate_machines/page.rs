//! `annotate --format html` shows what the JSON states: the page is read back as XML.

use super::{annotate, json, recording};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;

/// Loads, a loop of three instructions, a call far away, and what no sample is near.
fn code() -> Vec<u8> {
    let mut code = vec![0x55, 0x48, 0x89, 0xe5, 0xff, 0xc0, 0x39, 0xc8, 0x75, 0xfa, 0xe8, 0, 0, 1, 0];
    code.extend([0x90; 100]);
    code
}

/// The texts of a row's cells, without the link's arrows.
fn cells<'a>(row: Node<'a, 'a>) -> Vec<String> {
    let text = |cell: Node<'a, 'a>| cell.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect();
    row.children().filter(Node::is_element).map(text).collect()
}

#[test]
fn the_page_states_what_the_json_states() {
    let (_dir, data) = recording((62, "x86_64"), &code(), &[4, 4, 6, 8]);
    let (all, page) = (json(&[], &data), annotate(&["--format", "html"], &data));
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).unwrap_or_else(|error| panic!("{error}: {page}"));
    let with = |name: &str, id: &str| {
        document.descendants().find(|node| node.has_tag_name(name) && node.attribute("id") == Some(id))
    };
    let section = with("section", "l1").expect("a listing");
    let instructions = all["listings"][0]["instructions"].as_array().unwrap();
    let rows: Vec<Node> =
        section.descendants().filter(|node| node.attribute("id").is_some_and(|id| id.starts_with("c1-"))).collect();
    assert_eq!(rows.len(), instructions.len());
    for (row, instruction) in rows.iter().zip(instructions) {
        let cells = cells(*row);
        let text = |key: &str| instruction[key].as_str().unwrap();
        assert_eq!(format!("0x{}", cells[2]), text("address"));
        assert!(cells[3].starts_with(text("text")), "{cells:?}");
        let samples = &instruction["costs"]["cpu-clock"]["samples"];
        assert_eq!(cells[1].parse::<u64>().ok(), samples.as_u64(), "{cells:?}");
    }
    assert_eq!(cells(rows[2])[0], "50.00%");
    assert_eq!(cells(rows[2])[4], "", "a source line is told once");
    assert_eq!(cells(rows[0])[4], "<loop>.js:7");
    // The jump back to the loop's first instruction.
    let link = rows[4].descendants().find(|node| node.has_tag_name("a")).unwrap().attribute("href").unwrap();
    assert_eq!(link, "#c1-4");
    assert!(with("tr", &link[1..]).is_some());
    assert!(!page.contains("<script"), "no script");
}

#[test]
fn every_link_of_the_page_leads_somewhere_and_cold_code_is_out_of_sight_unless_all_is_requested() {
    let (_dir, data) = recording((62, "x86_64"), &code(), &[4]);
    let hidden = |page: &str| page.matches("<tbody class=\"cold\">").count();
    let page = annotate(&["--format", "html"], &data);
    assert_eq!(hidden(&page), 1);
    assert_eq!(hidden(&annotate(&["--format", "html", "--whole"], &data)), 0);
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).unwrap();
    let links = document.descendants().filter_map(|node| node.attribute("href"));
    for link in links {
        let found = document.descendants().any(|node| node.attribute("id") == link.strip_prefix('#'));
        assert!(found, "{link}");
    }
    let all: Value = json(&[], &data);
    assert_eq!(page.matches("<section ").count(), all["listings"].as_array().unwrap().len());
}
