// A table of listings: the hottest of the page, or the versions of one function.

import { element } from "./dom.js";
import { duration, grouped, percent } from "./format.js";

/** More rows make the page slow, and nobody reads them. */
const MOST_CODES = 2000;

/** Listings to choose from. */
export class CodeTable {
  #root;
  #chosen;

  /** @param {(listing: number) => void} chosen */
  constructor(root, chosen) {
    this.#root = root;
    this.#chosen = chosen;
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows these listings, what cost most first. */
  show({ listings, profile, list, shown, sumOf, withNames }) {
    const sums = new Map(list.map((listing) => [listing, sumOf(listing)]));
    const sorted = [...list].sort((a, b) => sums.get(b).part - sums.get(a).part || a - b).slice(0, MOST_CODES);
    const heads = ["%", "samples", "tier", "version", "bytes", "written at", "process"];
    if (withNames) heads.push("function");
    // One stop of the tabulator: arrows go from row to row.
    const stop = sorted.includes(shown) ? shown : sorted[0];
    const focused = this.#root.contains(document.activeElement);
    const table = element("table", { class: "codes" },
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...sorted.map((listing) => this.#row(listings, profile, listing, {
        sum: sums.get(listing), isShown: listing === shown, isStop: listing === stop, withNames,
      }))));
    this.#root.replaceChildren(table);
    if (focused) this.#root.querySelector("tbody tr[tabindex='0']")?.focus();
  }

  #row(listings, profile, listing, { sum, isShown, isStop, withNames }) {
    const category = profile.categories[listings.category[listing]];
    const at = listings.loadedAt(listing);
    const why = listings.missing[listing];
    const cells = [
      why ? "" : percent(sum.part, sum.whole),
      why ? "" : grouped(sum.count),
      swatch(category),
      listings.versions[listing] > 1 ? `${listings.version[listing]} of ${listings.versions[listing]}` : "",
      why ? "no listing" : grouped(listings.size[listing]),
      at === null ? "" : writtenAt(at),
      String(listings.pid[listing]),
    ].map((content) => element("td", {}, content));
    if (withNames) cells.push(element("td", { class: "name", title: listings.name[listing] }, listings.name[listing]));
    return element("tr", {
      tabIndex: isStop ? 0 : -1, "data-listing": listing, "aria-current": isShown ? "true" : null, title: why || null,
      onclick: () => this.#chosen(listing),
    }, ...cells);
  }

  #key(event) {
    const row = event.target.closest("tr[data-listing]");
    if (!row) return;
    const beside = { ArrowDown: row.nextElementSibling, j: row.nextElementSibling, ArrowUp: row.previousElementSibling,
      k: row.previousElementSibling };
    if (event.key === "Enter" || event.key === " ") this.#chosen(Number(row.dataset.listing));
    else if (event.key in beside) beside[event.key]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A sort of code in its color. */
export function swatch(category) {
  return element("span", { class: "swatch" },
    element("i", { style: `background:var(--fill-${category.letter},var(--code-${category.letter}))` }), category.name);
}

/** A time since the first sample. */
export function writtenAt(nanoseconds) {
  return nanoseconds < 0 ? `${duration(-nanoseconds)} before` : duration(nanoseconds);
}
