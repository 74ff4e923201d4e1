// The keys of the page: a dialog that "?" opens, and a button beside the theme.

import { element } from "./dom.js";

/** The keys, by where they work. */
const KEYS = [
  ["Anywhere", [
    ["?", "show these keys"],
    ["Ctrl+F, F3, /", "search for functions"],
    ["Tab, Shift+Tab", "go to the next or previous control"],
  ]],
  ["Time", [
    ["← →", "move the range; with Shift its end, with Ctrl its start"],
    ["+ − 0", "zoom in, zoom out, show the whole recording"],
    ["↑ ↓, Space", "go from row to row, choose one"],
    ["Ctrl+A", "choose all rows"],
    ["Escape, Delete", "count all samples again"],
  ]],
  ["Flame graph", [
    ["← → ↑ ↓", "go from box to box"],
    ["Enter, Escape", "zoom to the box, go back"],
    ["+ −", "zoom in, zoom out"],
    ["Home", "go to the root"],
    ["s", "show callers and callees (sandwich)"],
    ["f", "show only stacks through the function"],
    ["h, m, t", "hide the function, its module, its kind of code"],
    ["l, o", "show the function in the table, show its code"],
    ["c, C", "copy the name, copy the stack"],
    ["Shift+F10", "open the menu of the box"],
  ]],
  ["Functions and call tree", [
    ["↑ ↓, Page, Home, End", "go from row to row"],
    ["→ ←", "open or close a row of the call tree"],
    ["Enter", "select the function in all parts"],
    ["Shift+Enter", "show callers and callees (table of functions)"],
    ["Ctrl+C", "copy the table of functions as CSV"],
  ]],
  ["Code", [
    ["↑ ↓", "go from instruction to instruction"],
    ["n, N", "go to the hottest instruction, to the next one"],
    ["Enter", "follow a jump or call"],
    ["/", "search in this code"],
  ]],
];

/** Makes the dialog; returns the button that opens it. */
export function mountKeys() {
  const dialog = element("dialog", { id: "keys", "aria-label": "Keys" },
    element("div", { class: "keys-columns" }, ...KEYS.map(([title, keys]) => keySection(title, keys))),
    element("button", { id: "keys-close", onclick: () => dialog.close() }, "Close"));
  document.body.append(dialog);
  const show = () => dialog.open || dialog.showModal();
  addEventListener("keydown", (event) => {
    const isTyped = event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey;
    if (event.key !== "?" || isTyped || event.defaultPrevented) return;
    event.preventDefault();
    show();
  });
  return element("button", { id: "keys-open", title: "Show the keys of this page (?)", "aria-haspopup": "dialog", onclick: show }, "?");
}

function keySection(title, keys) {
  return element("section", {},
    element("h2", {}, title),
    element("dl", {}, ...keys.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)])));
}
