// The search: its text, whether that is a regular expression, and how much of everything is in what it finds.

import { drawingOf, element } from "./dom.js";
import { amount, grouped, percent } from "./format.js";
import { Latest } from "./latest.js";
import { findFunctions, foundTotal, groupsFound } from "./search.js";

const FOUND = new Latest();
const SUM = new Latest();

/** The search, as every part sees it: {wrong, groups: 1 for each group found}; null: nothing. */
export function foundGroups(page) {
  const { search, regex } = page.state,
    groups = page.groups();
  return FOUND.get([search, regex, groups], () => {
    const found = findFunctions(page.profile.functions.name, search, regex);
    if (!found) return null;
    return { wrong: found.wrong, groups: groupsFound(groups, found.functions) };
  });
}

/** The search's elements. */
export function mountSearch(root, page) {
  const { store } = page;
  const text = element("input", {
    id: "search",
    type: "search",
    placeholder: "Search functions (Ctrl-F)",
    title: "Enter: next match; Shift+Enter: previous match; Escape: back to the page",
    "aria-label": "Search functions",
    "aria-describedby": "search-matched",
    oninput: () => store.set({ search: text.value }),
    onkeydown: (event) => searchKey(event, page, text, matched),
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
  root.append(text, element("label", { title: "Use a regular expression" }, regex, " regex"), matched);
  show();
}

/** Enter goes through the matches of the part that is shown; Escape leaves the search, then its field. */
function searchKey(event, page, text, matched) {
  if (event.key === "Escape") {
    if (text.value) page.store.set({ search: (text.value = "") });
    else document.querySelector("[role=tabpanel]:not([hidden]) [data-home]")?.focus();
    event.preventDefault();
    event.stopPropagation();
  }
  if (event.key !== "Enter") return;
  event.preventDefault();
  const walked = page.state.search ? page.walkers[page.shownPart()]?.(event.shiftKey ? -1 : 1) : null;
  if (walked) matched.textContent = `${walked.what} ${grouped(walked.at)} of ${grouped(walked.count)} · ${matchedText(page)}`;
}

function showMatched(page, text, matched) {
  const found = foundGroups(page);
  text.setAttribute("aria-invalid", String(Boolean(found?.wrong)));
  const told = matchedText(page);
  if (matched.dataset.told === told) return;
  matched.textContent = matched.dataset.told = told;
  matched.title = found && !found.wrong ? amount(foundWeight(page, found), page.unit) : "";
}

/** `3 matches · 29.90%`: functions with samples, and the share of the stacks that have any of them. */
function matchedText(page) {
  const found = foundGroups(page);
  if (!found) return "";
  if (found.wrong) return "not a regular expression";
  const { total, totalCount } = page.sums();
  let count = 0;
  found.groups.forEach((isFound, group) => (count += isFound && (total[group] > 0 || totalCount[group] > 0) ? 1 : 0));
  if (count === 0) return "no matches";
  return `${grouped(count)} ${count === 1 ? "match" : "matches"} · ${percent(foundWeight(page, found), page.tree("calls").total[0])}`;
}

function foundWeight(page, found) {
  const tree = page.tree("calls");
  return SUM.get([tree, found], () => foundTotal(tree, found.groups));
}
