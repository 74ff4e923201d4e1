// Long lists of which only the visible rows have elements in the page. All rows have the same height.

import { element } from "./dom.js";

/** The number of rows that are drawn above and below the visible ones. */
const BEYOND = 8;

/** A list with a cursor, for mouse, keyboard and screen readers. */
export class VirtualRows {
  #scroller;
  #inner;
  #window;
  #height;
  #drawRow;
  #count = 0;
  #asked = false;
  #roles;

  /**
   * @param {HTMLElement} scroller the element that scrolls; it becomes a list box
   * @param {number} height the height of a row, in pixels
   * @param {(row: number) => HTMLElement} drawRow creates the element of a row
   * @param {{list: string, row: string}} roles the ARIA roles of the list and its rows. Rows of a tree must state
   *   their positions among their siblings themselves
   */
  constructor(scroller, height, drawRow, roles = { list: "listbox", row: "option" }) {
    this.#roles = roles;
    this.#scroller = scroller;
    this.#height = height;
    this.#drawRow = drawRow;
    this.#window = element("div", { class: "rows-window", role: "presentation" });
    this.#inner = element("div", { class: "rows-inner", role: "presentation" }, this.#window);
    /** The row at the keyboard cursor; -1 if there is none. */
    this.cursor = -1;
    /** Called after drawing, with the range [first, last) of the drawn rows. */
    this.ondrawn = null;
    scroller.classList.add("rows");
    scroller.setAttribute("role", roles.list);
    scroller.tabIndex = 0;
    scroller.append(this.#inner);
    // Without a cursor, nothing would show where the keyboard focus is.
    scroller.addEventListener("focus", () => {
      if (this.cursor >= 0 || this.#count === 0 || !scroller.matches(":focus-visible")) return;
      this.cursor = Math.min(this.#count - 1, Math.ceil(scroller.scrollTop / this.#height));
      this.draw();
    });
    scroller.addEventListener("scroll", () => this.#ask());
    new ResizeObserver(() => this.#ask()).observe(scroller);
  }

  /** The number of rows. */
  get count() {
    return this.#count;
  }

  /** An element as high as all rows together, into which overlays can be put. */
  get inner() {
    return this.#inner;
  }

  /** Sets the number of rows, and redraws all of them. */
  reset(count) {
    this.#count = count;
    this.cursor = Math.min(this.cursor, count - 1);
    this.#inner.style.height = `${count * this.#height}px`;
    this.draw();
  }

  /** Draws the rows in the next frame. */
  #ask() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.draw();
    });
  }

  /** Draws the visible rows. */
  draw() {
    const { scrollTop, clientHeight } = this.#scroller;
    const from = Math.max(0, Math.floor(scrollTop / this.#height) - BEYOND);
    const to = Math.min(this.#count, Math.ceil((scrollTop + clientHeight) / this.#height) + BEYOND);
    const rows = [];
    for (let row = from; row < to; row++) {
      const made = this.#drawRow(row);
      made.id = `${this.#scroller.id}-${row}`;
      made.dataset.row = row;
      made.setAttribute("role", this.#roles.row);
      if (this.#roles.row === "option") {
        made.setAttribute("aria-posinset", row + 1);
        made.setAttribute("aria-setsize", this.#count);
      }
      made.setAttribute("aria-selected", String(row === this.cursor));
      rows.push(made);
    }
    this.#window.style.transform = `translateY(${from * this.#height}px)`;
    this.#window.replaceChildren(...rows);
    if (this.cursor >= from && this.cursor < to) {
      this.#scroller.setAttribute("aria-activedescendant", `${this.#scroller.id}-${this.cursor}`);
    } else {
      this.#scroller.removeAttribute("aria-activedescendant");
    }
    this.ondrawn?.(from, to);
  }

  /** Moves the cursor to a row, and scrolls the row into view. */
  moveTo(row, centered = false) {
    if (this.#count === 0) return;
    this.cursor = Math.max(0, Math.min(row, this.#count - 1));
    this.show(this.cursor, centered);
  }

  /** Scrolls a row into view. */
  show(row, centered = false) {
    const top = row * this.#height;
    const { scrollTop, clientHeight } = this.#scroller;
    if (centered) this.#scroller.scrollTop = top - (clientHeight - this.#height) / 2;
    else if (top < scrollTop) this.#scroller.scrollTop = top;
    else if (top + this.#height > scrollTop + clientHeight) this.#scroller.scrollTop = top + this.#height - clientHeight;
    this.draw();
  }

  /** The number of rows that are visible at once. */
  get page() {
    return Math.max(1, Math.floor(this.#scroller.clientHeight / this.#height) - 1);
  }

  /** The row in which an event happened; -1 if in none. */
  static rowOf(event) {
    const row = event.target.closest("[data-row]");
    return row ? Number(row.dataset.row) : -1;
  }

  /** Moves the cursor by a key. Returns true if the key is one that does that. */
  key(name) {
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: this.page, PageUp: -this.page };
    if (name in steps) this.moveTo(this.cursor + steps[name]);
    else if (name === "Home") this.moveTo(0);
    else if (name === "End") this.moveTo(this.#count - 1);
    else return false;
    return true;
  }
}
