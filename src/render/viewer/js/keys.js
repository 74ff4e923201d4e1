// The keyboard help: a dialog that "?" or the button next to the theme opens.

import { element } from "./dom.js";

/** The keys, by the part in which they work. */
const KEYS = [
  ["Anywhere", [
    ["?", "show this list"],
    ["Ctrl+F, F3, /", "search for functions"],
    ["Enter, Shift+Enter", "in the search: go to the next or previous match"],
    ["Escape", "go back one step: leave the search, the zoom, or callers and callees"],
    ["Alt+← →", "the browser's Back and Forward"],
    ["Tab, Shift+Tab", "go to the next or previous control"],
    ["← →", "on a tab: go to the previous or next tab"],
  ]],
  ["Time", [
    ["← →", "move the range (Shift: its end; Ctrl: its start)"],
    ["W S, + −, 0", "zoom in, zoom out, show the whole recording"],
    ["A D", "move left, move right"],
    ["↑ ↓, Space", "go from row to row, select one"],
    ["Ctrl+A", "select all rows"],
    ["Escape, Delete", "clear the range, so that all samples count"],
  ]],
  ["Time (mouse)", [
    ["Drag", "select a range; drag its edges to resize it, its inside to move it"],
    ["Ctrl+drag", "add a range"],
    ["Double click", "clear the range, so that all samples count"],
    ["Click on a name", "select a row (Ctrl: add one; Shift: add all in between)"],
    ["Ctrl+wheel, Shift+wheel", "zoom, move"],
  ]],
  ["Flame graph", [
    ["← → ↑ ↓", "go from box to box"],
    ["Enter, Escape", "zoom into the box, go back"],
    ["W, + −", "zoom in, zoom out"],
    ["A D", "move left, move right"],
    ["Home", "go to the root"],
    ["s", "show callers and callees (sandwich)"],
    ["f", "show only stacks through the function"],
    ["h, m, t", "hide the function, its module, or its kind of code"],
    ["l, o", "show the function in the table, or its code"],
    ["c, C", "copy the name, or the stack"],
    ["Shift+F10", "open the box's menu"],
  ]],
  ["Flame graph (mouse)", [
    ["Click", "zoom into the box"],
    ["Right click", "open the box's menu"],
    ["Ctrl+wheel, Shift+wheel", "zoom, move"],
  ]],
  ["Functions and call tree", [
    ["↑ ↓, Page, Home, End", "go from row to row"],
    ["→ ←", "open or close a row of the call tree"],
    ["Enter, click", "select the function in all tabs"],
    ["Shift+Enter, double click", "show callers and callees (function table)"],
    ["Ctrl+C", "copy the function table as CSV"],
  ]],
  ["Code", [
    ["↑ ↓", "go from instruction to instruction"],
    ["n, N", "go to the hottest instruction, to the next hottest"],
    ["Enter, click", "follow a jump or call"],
    ["/", "search this code"],
  ]],
];

/** Creates the dialog, and returns the button that opens it. */
export function mountKeys() {
  const dialog = element("dialog", { id: "keys", "aria-label": "Keyboard and mouse" },
    // The button comes first, because the dialog scrolls to the button that gets the focus.
    element("button", { id: "keys-close", autofocus: "", onclick: () => dialog.close() }, "Close"),
    element("div", { class: "keys-columns" }, ...KEYS.map(([title, keys]) => keySection(title, keys))));
  document.body.append(dialog);
  const show = () => dialog.open || dialog.showModal();
  addEventListener("keydown", (event) => {
    // In a text field, "?" is a part of the text.
    const isTyping = event.target instanceof HTMLInputElement, hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    if (event.key !== "?" || isTyping || hasModifier || event.defaultPrevented) return;
    event.preventDefault();
    show();
  });
  return element("button", {
    id: "keys-open", title: "Show keyboard shortcuts (?)", "aria-label": "Keys", "aria-haspopup": "dialog", onclick: show,
  }, "?");
}

function keySection(title, keys) {
  return element("section", {},
    element("h2", {}, title),
    element("dl", {}, ...keys.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)])));
}
