// Part "Functions": a table of all functions, sorted by any column. Only the visible rows have elements in the page.
// The keyboard moves a cursor; Enter or a click selects a function for all parts.

import { toClipboard } from "./clipboard.js";
import { drawingOf, element, onResize } from "./dom.js";
import { amount, counted, grouped, percent } from "./format.js";
import { TableRow } from "./table_row.js";
import { FunctionRows, TABLE_COLUMNS, sortAfterClick, sortingOf } from "./table_rows.js";

const ROW_HEIGHT = 22;
const HEAD_HEIGHT = 24;
/** The maximum height of all rows in pixels, because browsers limit the height of elements. If the rows need more than
 * this, scrolling by one pixel moves them by several pixels. */
const TALLEST = 8e6;
/** The number of rows that are printed. */
const PRINTED_ROWS = 200;

/** Mounts the part "Functions" in `root`: creates the table, and redraws it when the state of the page or the size of
 * `root` changes. */
export function mountTable(root, page) {
  const table = new FunctionTable(root, page);
  // `draw` schedules a drawing for the next frame. Nothing is drawn while the part is hidden.
  const draw = drawingOf(page, () => root.hidden || table.draw());
  // Scrolling and key presses in the table also ask for a redraw.
  table.ask = draw;
  // The search box calls this to move the cursor to the next (1) or previous (−1) match.
  page.walkers.functions = (step) => table.walk(step);
  page.store.subscribe((state, changed) => {
    // The next drawing scrolls to the selected function.
    if (changed.has("selected")) table.follows = true;
    draw();
  });
  onResize(root, draw);
  addEventListener("beforeprint", () => root.hidden || table.print());
}

class FunctionTable {
  /** Creates the table. `rows` has the group of functions of each row, and `pool` the elements for visible rows, which
   * are reused. `cursor` and `selected` are row numbers, −1 for none. `follows`: the next drawing scrolls to the
   * selected row. `shown` describes the search and order that `rows` were made for. */
  constructor(root, page) {
    [this.root, this.page] = [root, page];
    [this.rows, this.pool, this.cursor, this.selected, this.follows, this.shown] = [[], [], -1, -1, true, ""];
    this.build(root);
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.clicked(event, (row) => this.select(row)));
    this.body.addEventListener("dblclick", (event) => this.clicked(event, (row) => this.sandwich(row)));
    this.scroller.addEventListener("scroll", () => this.ask());
  }

  /** Creates the elements: the text above the table, the heads of columns, and the grid with the rows. */
  build(root) {
    const { store } = this.page;
    this.told = element("output", { id: "functions-told" });
    this.copy = element("button", { id: "functions-copy", title: "Same as jitgraft report --to csv (Ctrl+C)", onclick: () => this.copyRows() }, "Copy as CSV");
    const wordFor = (text) => (this.page.profile.counted === "call" ? text.replace("Samples", "Calls") : text);
    this.heads = TABLE_COLUMNS.map(({ key, title, isAmount, span, tells }) => element("div", {
      role: "columnheader", class: isAmount ? "amount" : null, "data-column": key, "aria-colspan": span > 1 ? String(span) : null,
    }, element("button", { id: `sort-${key}`, title: wordFor(tells), onclick: () => store.set({ sort: sortAfterClick(store.state.sort, key) }) },
      wordFor(title))));
    this.head = element("div", { role: "row", class: "functions-head", "aria-rowindex": "1" }, ...this.heads);
    this.body = element("div", { role: "rowgroup", class: "functions-body" });
    this.scroller = element("div", { class: "functions-scroll", role: "presentation" }, this.head, this.body);
    this.grid = element("div", { id: "functions-grid", role: "grid", tabindex: "0", "data-home": "", onfocus: () => this.focused(), "aria-label": "Functions", "aria-colcount": "9" }, this.scroller);
    const { module, file } = this.page.profile.functions;
    this.grid.classList.toggle("without-module", !module.some(Boolean));
    // A file of costs has no samples.
    this.grid.classList.toggle("without-samples", this.page.profile.counted === "cost");
    this.grid.classList.toggle("without-source", !file.some(Boolean));
    this.empty = element("p", { class: "empty", hidden: true });
    root.append(element("div", { class: "functions-bar" }, this.told, this.copy), this.empty, this.grid);
  }

  /** Called when the table gets the focus. Keyboard users always have a row at the cursor. */
  focused() {
    if (this.cursor >= 0 || this.rows.length === 0 || !this.grid.matches(":focus-visible")) return;
    this.cursor = Math.min(this.rows.length - 1, Math.ceil(this.scroller.scrollTop * this.stretch(this.scroller.clientHeight) / ROW_HEIGHT));
    this.ask();
  }

  /** Recomputes sums and order, if something that they depend on has changed. */
  arrange() {
    const { page } = this, { state } = page.store, sums = page.sums();
    const shown = JSON.stringify([state.search, state.regex, state.sort]);
    // Another order: scroll to the top.
    if (this.sort !== undefined && this.sort !== state.sort) this.scroller.scrollTop = 0;
    this.sort = state.sort;
    // Nothing that the rows depend on has changed.
    if (this.functions?.sums === sums && this.shown === shown) return;
    const searched = JSON.stringify([state.search, state.regex]), isNewSearch = this.searched !== undefined && this.searched !== searched;
    this.searched = searched;
    this.functions = new FunctionRows(page.profile, page.groups(), sums, page.selection());
    this.shown = shown;
    // The cursor stays at its group, wherever the group's row is now.
    const groupAtCursor = this.rows[this.cursor];
    this.rows = this.functions.sorted(state.search, state.regex, state.sort);
    // No amount is longer than the total.
    this.grid.style.setProperty("--letters-of-amount", amount(page.selection().total, page.unit).length);
    this.cursor = groupAtCursor === undefined ? -1 : this.rows.indexOf(groupAtCursor);
    // After a new search, start at the first match instead of the previous scroll position.
    if (isNewSearch) [this.cursor, this.scroller.scrollTop] = [-1, 0];
    this.empty.hidden = this.rows.length > 0;
    this.grid.hidden = this.rows.length === 0;
    this.empty.textContent = this.whyEmpty(state);
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    const { key, isDescending } = sortingOf(state.sort);
    for (const head of this.heads) {
      head.setAttribute("aria-sort", head.dataset.column !== key ? "none" : isDescending ? "descending" : "ascending");
    }
    this.told.textContent = this.rowsText(state);
  }

  /** The text above the table: the number of functions or, with a search, the number of matches and their self
   * weight. */
  rowsText(state) {
    const selection = this.page.selection(), { rows } = this;
    const self = rows.reduce((sum, group) => sum + this.functions.sums.self[group], 0);
    if (!state.search) return counted(rows.length, "function");
    if (rows.length === 0) return "no matches";
    const what = `${grouped(rows.length)} ${rows.length === 1 ? "match" : "matches"}`;
    return `${what}, self ${amount(self, this.page.unit)} (${percent(self, selection.total)})`;
  }

  whyEmpty({ search }) {
    if (!(this.page.selection().count > 0)) return "No samples in the selected time and threads.";
    return search ? `No function matches “${search.slice(0, 80)}”.` : "No function has samples.";
  }

  /** Moves the cursor to the next row (`step` 1) or the previous one (−1). */
  walk(step) {
    this.arrange();
    const count = this.rows.length;
    if (count === 0) return null;
    this.moveTo(this.cursor < 0 ? (step > 0 ? 0 : count - 1) : (this.cursor + step + count) % count);
    this.ask();
    return { at: this.cursor + 1, count, what: "row" };
  }

  /** Draws the visible rows. Browsers limit the height of elements. So in a very long table, one pixel of scrolling
   * moves the rows by several pixels (`stretch`). */
  draw() {
    this.arrange();
    const tall = `${Math.min(TALLEST, this.rows.length * ROW_HEIGHT)}px`;
    if (this.body.style.height !== tall) this.body.style.height = tall;
    this.selected = this.selectedRow();
    if (this.follows && this.selected >= 0) this.moveTo(this.selected);
    this.follows = false;
    const { scrollTop, clientHeight } = this.scroller, stretch = this.stretch(clientHeight);
    const from = Math.max(0, Math.min(this.rows.length - 1, Math.floor(scrollTop * stretch / ROW_HEIGHT)));
    const to = Math.min(this.rows.length, from + Math.ceil(clientHeight / ROW_HEIGHT) + 1);
    // Where the first row is drawn. In a stretched table, that is at the visible top, less the part of the row that has
    // been scrolled out.
    const base = stretch === 1 ? from * ROW_HEIGHT : scrollTop - scrollTop * stretch % ROW_HEIGHT;
    this.show(from, to, base);
  }

  /** Shows the rows from `from` up to, but not including, `to`. The first of them is at `base` pixels from the top. */
  show(from, to, base) {
    const count = Math.max(0, to - from), { pool, page } = this;
    while (pool.length < count) pool.push(new TableRow());
    for (let at = 0; at < count; at++) {
      const row = from + at;
      pool[at].fill(row, base + at * ROW_HEIGHT, this.rows[row], this.functions, page.unit, row === this.selected, row === this.cursor);
    }
    if (this.body.childElementCount !== count) this.body.replaceChildren(...pool.slice(0, count).map(({ root }) => root));
    const isInView = this.cursor >= from && this.cursor < to;
    this.grid.setAttribute("aria-activedescendant", isInView ? `function-${this.cursor}` : "");
  }

  /** The number of pixels of rows per pixel of scrolling. */
  stretch(clientHeight) {
    const room = clientHeight - HEAD_HEIGHT, tall = this.rows.length * ROW_HEIGHT;
    return tall <= TALLEST ? 1 : (tall - room) / (TALLEST - room);
  }

  selectedRow() {
    const { selected } = this.page.store.state, { of } = this.page.groups();
    return selected === null || selected >= of.length ? -1 : this.rows.indexOf(of[selected]);
  }

  /** Handles a key: arrows move the cursor, Enter selects the function, Shift+Enter shows it in the sandwich view, and
   * Ctrl+C copies all rows. */
  key(event) {
    if (event.target.closest("button")) return;
    const page = Math.max(1, Math.floor((this.scroller.clientHeight - HEAD_HEIGHT) / ROW_HEIGHT) - 1), last = this.rows.length - 1;
    const to = {
      ArrowUp: this.cursor - 1, ArrowDown: this.cursor + 1, PageUp: this.cursor - page, PageDown: this.cursor + page, Home: 0, End: last,
    }[event.key];
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (to !== undefined && !modified) this.moveTo(Math.max(0, Math.min(last, to)));
    else if ((event.key === "Enter" || event.key === " ") && this.cursor >= 0) event.shiftKey ? this.sandwich(this.cursor) : this.select(this.cursor);
    else if (event.key === "c" && (event.ctrlKey || event.metaKey) && String(getSelection()) === "") this.copyRows();
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.ask();
  }

  /** Moves the cursor to a row, and scrolls as little as necessary to show it. */
  moveTo(row) {
    this.cursor = row;
    const { scroller } = this, { scrollTop, clientHeight } = scroller, stretch = this.stretch(clientHeight);
    // The scroll positions at which the row is the first visible one, and the last visible one.
    const top = row * ROW_HEIGHT / stretch, bottom = ((row + 1) * ROW_HEIGHT - clientHeight + HEAD_HEIGHT) / stretch;
    scroller.scrollTop = Math.max(bottom, Math.min(scrollTop, top));
  }

  clicked(event, act) {
    const row = event.target.closest("[data-row]");
    if (row) act(Number(row.dataset.row));
  }

  select(row) {
    this.cursor = row;
    const number = this.functionOf(this.rows[row]);
    this.page.store.set({ selected: number });
    this.ask();
  }

  /** Shows the callers and callees of a row's function in the flame graph. */
  sandwich(row) {
    const number = this.functionOf(this.rows[row]);
    this.page.store.set({ selected: number, sandwich: number, part: "flame" });
  }

  functionOf(group) {
    return this.page.groups().first[group];
  }

  async copyRows() {
    this.arrange();
    await toClipboard(this.functions.csv(this.rows));
    this.told.textContent = `${counted(this.rows.length, "row")} copied`;
  }

  /** Shows the first rows, for printing. */
  print() {
    this.arrange();
    const count = Math.min(PRINTED_ROWS, this.rows.length);
    this.body.style.height = `${count * ROW_HEIGHT}px`;
    this.show(0, count, 0);
  }
}
