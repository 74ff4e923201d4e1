// The search: its text, whether that is a regular expression, and how much of everything is in what it finds.

import { drawingOf, element } from "./dom.js";
import { amount, counted, percent } from "./format.js";
import { Latest } from "./latest.js";
import { findFunctions, foundTotal, groupsFound } from "./search.js";

const FOUND = new Latest();
const SUM = new Latest();

/** The search, as every part sees it: {wrong, count, groups: 1 for each group found}; null: nothing. */
export function foundGroups(page) {
  const { search, regex } = page.state,
    groups = page.groups();
  return FOUND.get([search, regex, groups], () => {
    const found = findFunctions(page.profile.functions.name, search, regex);
    if (!found) return null;
    const byGroup = groupsFound(groups, found.functions);
    return { wrong: found.wrong, groups: byGroup, count: byGroup.reduce((sum, one) => sum + one, 0) };
  });
}

/** The search's elements. */
export function mountSearch(root, page) {
  const { store } = page;
  const text = element("input", {
    id: "search",
    type: "search",
    placeholder: "Search functions (Ctrl-F)",
    "aria-label": "Search functions",
    "aria-describedby": "search-matched",
    oninput: () => store.set({ search: text.value }),
  });
  const regex = element("input", {
    id: "search-regex",
    type: "checkbox",
    onchange: () => store.set({ regex: regex.checked }),
  });
  const matched = element("output", { id: "search-matched", for: "search" });
  const show = drawingOf(page, () => {
    if (document.activeElement !== text) text.value = store.state.search;
    regex.checked = store.state.regex;
    showMatched(page, text, matched);
  });
  addEventListener("keydown", (event) => {
    const isAsked = event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f");
    const isSlash = event.key === "/" && !(event.target instanceof HTMLInputElement) && !event.defaultPrevented;
    if (!isAsked && !isSlash) return;
    event.preventDefault();
    text.select();
    text.focus();
  });
  store.subscribe(show);
  root.append(text, element("label", { title: "The text is a regular expression" }, regex, " regex"), matched);
  show();
}

function showMatched(page, text, matched) {
  const found = foundGroups(page);
  text.setAttribute("aria-invalid", String(Boolean(found?.wrong)));
  matched.textContent = matched.title = "";
  if (!found) return;
  if (found.wrong) {
    matched.textContent = "no regular expression";
    return;
  }
  const tree = page.tree("calls"),
    sum = SUM.get([tree, found], () => foundTotal(tree, found.groups));
  matched.textContent = found.count > 0 ? `${percent(sum, tree.total[0])} matched` : "not found";
  matched.title = `${counted(found.count, "function")}, ${amount(sum, page.unit)}`;
}
