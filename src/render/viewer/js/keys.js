// The keys of the page: a dialog that "?" opens, and a button beside the theme.

import { element } from "./dom.js";

/** The keys, by where they work. */
const KEYS = [
  ["Anywhere", [
    ["?", "show this list"],
    ["Ctrl+F, F3, /", "search for functions"],
    ["Enter, Shift+Enter", "in the search: go to the next match, to the one before"],
    ["Escape", "go one step back: from the search, a zoom, callers and callees"],
    ["Alt+← →", "Back and Forward, as everywhere in the browser"],
    ["Tab, Shift+Tab", "go to the next or previous control"],
    ["← →", "on a tab: go from part to part"],
  ]],
  ["Time", [
    ["← →", "move the range; with Shift its end, with Ctrl its start"],
    ["W S, + −, 0", "zoom in and out, show the whole recording"],
    ["A D", "move to the left, to the right"],
    ["↑ ↓, Space", "go from row to row, choose one"],
    ["Ctrl+A", "choose all rows"],
    ["Escape, Delete", "count all samples again"],
  ]],
  ["Time, with the mouse", [
    ["Drag", "choose a range; on its edges: change it; inside: move it"],
    ["Ctrl+drag", "add a range"],
    ["Double click", "count all samples again"],
    ["Click on a name", "choose a row; with Ctrl one more, with Shift all between"],
    ["Ctrl+wheel, Shift+wheel", "zoom, move"],
  ]],
  ["Flame graph", [
    ["← → ↑ ↓", "go from box to box"],
    ["Enter, Escape", "zoom to the box, go back"],
    ["W, + −", "zoom in, zoom out"],
    ["A D", "move to the left, to the right"],
    ["Home", "go to the root"],
    ["s", "show callers and callees (sandwich)"],
    ["f", "show only stacks through the function"],
    ["h, m, t", "hide the function, its module, its kind of code"],
    ["l, o", "show the function in the table, show its code"],
    ["c, C", "copy the name, copy the stack"],
    ["Shift+F10", "open the menu of the box"],
  ]],
  ["Flame graph, with the mouse", [
    ["Click", "zoom to the box"],
    ["Right click", "open the menu of the box"],
    ["Ctrl+wheel, Shift+wheel", "zoom, move"],
  ]],
  ["Functions and call tree", [
    ["↑ ↓, Page, Home, End", "go from row to row"],
    ["→ ←", "open or close a row of the call tree"],
    ["Enter, click", "select the function in all parts"],
    ["Shift+Enter, double click", "show callers and callees (table of functions)"],
    ["Ctrl+C", "copy the table of functions as CSV"],
  ]],
  ["Code", [
    ["↑ ↓", "go from instruction to instruction"],
    ["n, N", "go to the hottest instruction, to the next one"],
    ["Enter, click", "follow a jump or call"],
    ["/", "search in this code"],
  ]],
];

/** Makes the dialog; returns the button that opens it. */
export function mountKeys() {
  const dialog = element("dialog", { id: "keys", "aria-label": "Keys and mouse" },
    element("div", { class: "keys-columns" }, ...KEYS.map(([title, keys]) => keySection(title, keys))),
    element("button", { id: "keys-close", autofocus: "", onclick: () => dialog.close() }, "Close"));
  document.body.append(dialog);
  const show = () => dialog.open || dialog.showModal();
  addEventListener("keydown", (event) => {
    const isTyped = event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey;
    if (event.key !== "?" || isTyped || event.defaultPrevented) return;
    event.preventDefault();
    show();
  });
  return element("button", {
    id: "keys-open", title: "Show the keys of this page (?)", "aria-label": "Keys", "aria-haspopup": "dialog", onclick: show,
  }, "?");
}

function keySection(title, keys) {
  return element("section", {},
    element("h2", {}, title),
    element("dl", {}, ...keys.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)])));
}
