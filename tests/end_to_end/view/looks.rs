//! What the page looks like: squares have the colors of the boxes, and nothing that is to be read is cut.

use super::shown::Shown;
use serde_json::{Value, json};

const TIERS: &str = "tiers-recording/perf.data.zst";
const FOLDED: &str = "folded-node/input.folded";
const CALLS: &str = "callgrind-jit/php-tracing.callgrind.zst";
const MOARVM: &str = "callgrind-jit/moarvm-blocking.callgrind.zst";

/// The names and the colors of squares in rows: `[name, color]`.
fn squares(shown: &mut Shown, row: &str, name: &str, square: &str) -> Vec<(String, String)> {
    let rows = shown.page.evaluate(&format!(
        "Array.from(document.querySelectorAll({}), (row) => [row.querySelector({}).innerText.replace(/[▸▾]/, '').trim(), \
         getComputedStyle(row.querySelector({})).background])",
        json!(row),
        json!(name),
        json!(square)
    ));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_square_has_the_color_of_what_ran_most() {
    for input in [TIERS, FOLDED, CALLS] {
        let mut shown = Shown::fixture(input).part("functions");
        shown.page.settle();
        // The first part of a bar is the kind in which most of a function's own samples ran.
        let table = squares(&mut shown, ".functions-row", ".name", ".shares i");
        let mut shown = shown.part("tree");
        let choose = "{ const list = document.querySelector('#tree-kind'); list.value = 'bottomup'; list.dispatchEvent(new Event('change')) }";
        shown.page.evaluate(choose);
        shown.page.settle();
        shown.page.settle();
        let tree = squares(&mut shown, ".tree-row[aria-level='1']", ".tree-name", "i");
        assert!(tree.len() > 10, "{input}: {tree:?}");
        for (name, color) in &tree {
            let shown_once = table.iter().filter(|(other, _)| other == name).count() == 1;
            assert!(!shown_once || table.contains(&(name.clone(), color.clone())), "{input}: {name} is {color}");
        }
        let colors: std::collections::BTreeSet<&String> = tree.iter().map(|(_, color)| color).collect();
        assert!(colors.len() > 2, "{input}: {colors:?}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn boxes_of_callers_have_the_color_of_what_ran_most() {
    let mut shown = Shown::fixture(TIERS);
    shown.set(&json!({ "direction": "bottomup" }));
    let letters = shown.page.evaluate(
        "(() => { const { picture } = document.getElementById('flame').view; \
         return ['escape', 'neighbours', 'life-row'].map((name) => { \
         for (let node = 1; node < picture.tree.length; node++) \
         if (picture.nameOf(node) === name && picture.tree.depth[node] === 1) return picture.swatchOf(node)[0] }) })()",
    );
    // Optimized, optimized, baseline: the first code of each function was interpreted.
    assert_eq!(letters, json!(["o", "o", "b"]));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn amounts_are_never_cut() {
    for input in [TIERS, FOLDED, CALLS] {
        let mut shown = Shown::fixture(input).part("functions");
        shown.page.settle();
        let cut = shown.page.evaluate(
            "Array.from(document.querySelectorAll('.functions-row .amount:not(.part)')) \
             .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)",
        );
        assert_eq!(cut, json!([]), "{input}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn in_a_narrow_window_names_and_findings_are_in_sight() {
    let mut shown = Shown::fixture(TIERS);
    shown.page.resize((400, 800));
    for (part, selector) in [
        ("functions", ".functions-row .name"),
        ("code", "#code-list tbody .tier"),
        ("doctor", ".findings .cause"),
        ("doctor", ".findings .remedy"),
    ] {
        shown.set(&json!({ "part": part }));
        shown.page.settle();
        let edges = shown.page.evaluate(&format!(
            "(() => {{ const range = document.createRange(); range.selectNodeContents(document.querySelector('{selector}')); \
             const {{ left, right }} = range.getBoundingClientRect(); return [left, right] }})()"
        ));
        let (left, right) = (edges[0].as_f64().unwrap(), edges[1].as_f64().unwrap());
        assert!(left >= 0.0 && right > left && right <= 400.0, "{part} {selector}: {edges}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_picture_and_the_page_tell_the_same_of_a_box() {
    let dir = tempfile::tempdir().unwrap();
    let [before, after] = ["before.folded", "after.folded"].map(|name| dir.path().join(name));
    std::fs::write(&before, "main;f 300\nmain;f;g 400\nmain;gone 5\n").unwrap();
    std::fs::write(&after, "main;f 310\nmain;f;g 100\nmain;h 70\n").unwrap();
    let before = before.to_str().unwrap();
    for compare in [&["--sample-weight", "1"][..], &[]] {
        let options = [&["--diff", before], compare].concat();
        let mut page = Shown::with(&after, &[], &options);
        page.set(&json!({ "normalize": false }));
        let svg = dir.path().join("graph.svg");
        let drawn = crate::support::runner::stdout(&[&["flamegraph", "--quiet"], &options[..]].concat(), &after);
        std::fs::write(&svg, drawn).unwrap();
        let mut picture = crate::support::browser::Page::open(&svg);
        page.page.evaluate("document.querySelector('#difference-flame').focus()");
        picture.evaluate("document.querySelector('.scroll').focus()");
        for key in ["Home", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowLeft", "ArrowUp"] {
            page.page.press(key);
            picture.press(key);
            let told = page.text_of("#difference-flame-told");
            let shown = picture.text(
                "document.querySelector('.what').textContent + ', ' + document.querySelector('.much').textContent",
            );
            let words = |text: &str| text.replace(" · ", ", ");
            assert_eq!(words(&told), words(&shown), "{compare:?} {key}");
            assert!(key == "Home" || told.contains("self "), "{told}");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn in_a_narrow_window_everything_can_be_scrolled_into_sight() {
    for input in [TIERS, CALLS] {
        let mut shown = Shown::fixture(input);
        shown.page.resize((400, 800));
        for part in ["flame", "functions", "tree", "code", "jit", "doctor"] {
            if shown.page.evaluate(&format!("document.querySelector('#tab-{part}') === null")) == true {
                continue;
            }
            shown.set(&json!({ "part": part }));
            shown.page.settle();
            shown.page.settle();
            let cut = shown.page.evaluate(&format!(
                "[...document.querySelectorAll('#part-{part}, #part-{part} *:not(.off-screen)')].filter((node) => {{ \
                 const {{ overflowX, overflowY, textOverflow }} = getComputedStyle(node); \
                 const isCut = (style, needs, has) => style === 'hidden' && has > 0 && needs > has + 1; \
                 return (textOverflow !== 'ellipsis' && isCut(overflowX, node.scrollWidth, node.clientWidth)) \
                 || (node.matches('section') && isCut(overflowY, node.scrollHeight, node.clientHeight)) }}) \
                 .map((node) => node.outerHTML.slice(0, 80))"
            ));
            assert_eq!(cut, json!([]), "{input}: {part}");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn profiles_of_costs_show_kinds_of_code_and_no_samples() {
    let has_samples = |shown: &mut Shown| {
        shown.page.settle();
        let cells = "document.querySelectorAll('[data-column=samples], .functions-row > :nth-child(5)')";
        shown.page.evaluate(&format!("[...{cells}].some((cell) => cell.getClientRects().length > 0)"))
    };
    let mut shown = Shown::fixture(MOARVM);
    let legend =
        shown.page.evaluate("[...document.querySelectorAll('#flame-legend span')].map((one) => one.dataset.category)");
    assert!(legend.as_array().unwrap().contains(&json!("JIT, unnamed")), "{legend}");
    let mut shown = shown.part("functions");
    assert_eq!(has_samples(&mut shown), false);
    assert_eq!(has_samples(&mut Shown::fixture(TIERS).part("functions")), true);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn code_without_a_listing_has_its_cost() {
    let mut shown = Shown::fixture(MOARVM).part("code");
    shown.page.settle();
    let rows = shown.page.evaluate(
        "Array.from(document.querySelectorAll('#code-list tbody tr'), (row) => \
         [parseFloat(row.cells[0].textContent) || 0, row.cells[2].textContent, row.querySelector('.why')?.textContent])",
    );
    let rows = rows.as_array().unwrap();
    let percents: Vec<f64> = rows.iter().map(|row| row[0].as_f64().unwrap()).collect();
    assert!(percents.is_sorted_by(|before, after| before >= after), "{percents:?}");
    let unlisted: Vec<&Value> = rows.iter().filter(|row| row[2].as_str().is_some_and(|why| !why.is_empty())).collect();
    assert!(unlisted.iter().any(|row| row[0].as_f64().unwrap() > 0.0), "{unlisted:?}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn missing_callers_have_no_color_of_code() {
    let mut shown = Shown::folded("[truncated];a 5\nmain;b 5\n");
    let letters = shown.page.evaluate(
        "(() => { const { picture } = document.getElementById('flame').view; \
         return [1, 2, 3, 4].filter((node) => picture.swatchOf(node)[0] === 'q').map((node) => picture.nameOf(node)) })()",
    );
    assert_eq!(letters, json!(["[truncated]"]));
}
