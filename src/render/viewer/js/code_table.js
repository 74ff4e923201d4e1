// A table of listings: the hottest of the page, or the versions of one function.

import { element } from "./dom.js";
import { duration, grouped, percent } from "./format.js";
import { colorSquare } from "./shades.js";

/** The number of rows shown. More rows would make the page slow, and nobody reads them. */
const MOST_CODES = 2000;

/** A table of listings from which the user chooses one. */
export class CodeTable {
  #root;
  #chosen;

  /** @param {(listing: number) => void} chosen called with the listing that the user chose */
  constructor(root, chosen) {
    this.#root = root;
    this.#chosen = chosen;
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows the listings in `list`, the one with the highest cost first. Listings are numbers: indices of the columns of
   * `listings` (see `Listings`). `shown` is the listing that the page shows; `sumOf(listing)` returns the cost of a
   * listing as {part, count, whole}; `withNames` adds a column for the names of functions. */
  show({ listings, profile, list, shown, sumOf, withNames }) {
    const sums = new Map(list.map((listing) => [listing, sumOf(listing)]));
    const sorted = [...list].sort((a, b) => sums.get(b).part - sums.get(a).part || a - b).slice(0, MOST_CODES);
    // Some code has an entry, but no instructions to list. `missing` says why; it is empty if there are instructions.
    const lacksInstructions = (listing) => listings.missing[listing] !== "";
    const isAnyMissing = sorted.some(lacksInstructions);
    // True if nothing is known about a listing's cost.
    const isUnknown = (listing) => lacksInstructions(listing) && sums.get(listing).part === 0;
    const columns = [
      { head: "%", text: (listing) => (isUnknown(listing) ? "" : percent(sums.get(listing).part, sums.get(listing).whole)) },
      { head: profile.counted === "cost" ? "cost" : "samples", text: (listing) => (isUnknown(listing) || sums.get(listing).count === null ? "" : grouped(sums.get(listing).count)) },
      { head: "function", kind: "name", text: (listing) => (withNames ? listings.name[listing] : "") },
      { head: "tier", kind: "tier", text: (listing) => swatch(profile.categories[listings.category[listing]]) },
      { head: "version", text: (listing) => (listings.versions[listing] > 1 ? `${listings.version[listing]} of ${listings.versions[listing]}` : "") },
      { head: "bytes", text: (listing) => (lacksInstructions(listing) ? "" : grouped(listings.size[listing])) },
      { head: "written at", text: (listing) => (listings.loadedAt(listing) === null ? "" : writtenAt(listings.loadedAt(listing))) },
      { head: "process", text: (listing) => String(listings.pid[listing]) },
      { head: "no listing", kind: "why", text: (listing) => (isAnyMissing ? listings.missing[listing] : "") },
    ];
    const cells = columns.map(({ text }) => sorted.map(text));
    // Leave out columns in which all cells are empty.
    const withCells = columns.map((column, index) => ({ ...column, cells: cells[index] }));
    const shownColumns = withCells.filter(({ cells }) => cells.some((cell) => cell !== ""));
    // Only one row can be reached with Tab; arrow keys move from row to row.
    const tabStop = sorted.includes(shown) ? shown : sorted[0];
    const hadFocus = this.#root.contains(document.activeElement);
    const table = element("table", { class: "codes", role: "grid", "aria-label": withNames ? "Code" : "Versions of this function" },
      element("thead", {}, element("tr", {}, ...shownColumns.map(({ head, kind }) => element("th", { scope: "col", class: kind }, head)))),
      element("tbody", {}, ...sorted.map((listing, row) => element("tr", {
        tabIndex: listing === tabStop ? 0 : -1, "data-home": listing === tabStop ? "" : null, "data-listing": listing,
        "aria-selected": String(listing === shown), onclick: () => this.#chosen(listing),
      }, ...shownColumns.map(({ cells, kind }) => element("td", { class: kind, title: kind === "name" || kind === "why" ? cells[row] : null }, cells[row]))))));
    this.#root.replaceChildren(table);
    if (hadFocus) this.#root.querySelector("tbody tr[tabindex='0']")?.focus();
  }

  /** Handles a key in the table: arrows move from row to row, and Enter chooses the row's listing. */
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

/** The name of a kind of code, with a square in its color. */
export function swatch(category) {
  return element("span", { class: "swatch" }, colorSquare(category.letter), category.name);
}

/** The text for a time relative to the first sample. */
export function writtenAt(nanoseconds) {
  return nanoseconds < 0 ? `${duration(-nanoseconds)} before` : duration(nanoseconds);
}
