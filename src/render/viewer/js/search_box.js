// The page's search, and the share of all samples that matches.

import { drawingOf } from "./dom.js";
import { amount, matchesText } from "./format.js";
import { Latest } from "./latest.js";
import { findFunctions, foundTotal, groupsFound } from "./search.js";
import { SearchField } from "./search_field.js";

const FOUND = new Latest();
const SUM = new Latest();

/** The result of the page's search: {wrong, groups}; null if nothing is searched for. `wrong` is true if the text isn't
 * a valid regular expression; `groups` has a 1 for each matching group of functions. */
export function foundGroups(page) {
  const { search, regex } = page.state,
    groups = page.groups();
  return FOUND.get([search, regex, groups], () => {
    const found = findFunctions(page.profile.functions.name, search, regex);
    if (!found) return null;
    return { wrong: found.wrong, groups: groupsFound(groups, found.functions) };
  });
}

/** Mounts the search in `root`. */
export function mountSearch(root, page) {
  const { store } = page;
  const field = new SearchField({
    searched: (search, regex) => store.set({ search, regex }),
    walk: (step) => page.walkers[page.shownPart()]?.(step),
    left: () => document.querySelector("[role=tabpanel]:not([hidden]) [data-home]")?.focus(),
  }, "search");
  const show = drawingOf(page, () => {
    field.set(store.state.search, store.state.regex);
    showMatches(field, page);
  });
  store.subscribe(show);
  root.append(...field.elements);
  show();
}

/** Shows the number of matching functions that have samples, and the share of the stacks that contain one: `3 matches
 * · 29.90%`. */
function showMatches(field, page) {
  const found = foundGroups(page);
  if (!found) return field.show("", "", false);
  if (found.wrong) return field.show("not a regular expression", "", true);
  const { total, totalCount } = page.sums(), weight = foundWeight(page, found);
  let count = 0;
  found.groups.forEach((isFound, group) => (count += isFound && (total[group] > 0 || totalCount[group] > 0) ? 1 : 0));
  field.show(matchesText(count, weight, page.tree("calls").total[0]), amount(weight, page.unit), false);
}

function foundWeight(page, found) {
  const tree = page.tree("calls");
  return SUM.get([tree, found], () => foundTotal(tree, found.groups));
}
