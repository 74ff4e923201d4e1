// A row of the table of functions. Its elements are reused for other functions when the table scrolls.

import { element } from "./dom.js";
import { amount, grouped, percent } from "./format.js";
import { colorSquare, letterOf } from "./shades.js";

/** The classes of the text cells, in the order of the columns. */
const ROW_CELLS = ["amount", "amount part", "amount", "amount part", "amount", "kind", "name", "module", "source"];

export class TableRow {
  /** Creates the elements of an empty row. `shown` has the values that `set` showed last, by name. */
  constructor() {
    this.cells = ROW_CELLS.map((kind) => element("div", { role: "gridcell", class: kind }));
    this.bar = element("span", { class: "shares", "aria-hidden": "true" });
    this.word = element("span");
    this.cells[5].append(this.bar, this.word);
    this.root = element("div", { role: "row", class: "functions-row" }, ...this.cells);
    this.shown = {};
  }

  /** Shows a group of functions in row number `row`, `top` pixels from the top of the table. `functions` has the
   * group's sums and texts. `isCursor`: the keyboard cursor is in this row. */
  fill(row, top, group, functions, unit, isSelected, isCursor) {
    const { root } = this;
    this.set("top", `${top}px`, (value) => { root.style.top = value; });
    this.set("row", row, (value) => {
      root.id = `function-${value}`;
      root.dataset.row = String(value);
      root.setAttribute("aria-rowindex", String(value + 2));
    });
    this.set("selected", String(isSelected), (value) => root.setAttribute("aria-selected", value));
    this.set("cursor", isCursor, (value) => root.classList.toggle("cursor", value));
    if (this.functions === functions && this.group === group) return;
    [this.functions, this.group] = [functions, group];
    root.dataset.group = String(group);
    this.fillAmounts(functions, group, unit);
    this.fillTexts(functions, group);
  }

  /** Fills in self and total, each with its share of the selection, and the number of samples. */
  fillAmounts({ sums, selection }, group, unit) {
    const whole = selection.total, { cells } = this;
    [sums.self[group], sums.total[group]].forEach((value, pair) => {
      this.text(cells[2 * pair], amount(value, unit));
      this.text(cells[2 * pair + 1], percent(value, whole));
      this.set(`part${pair}`, `${(whole ? 100 * value / whole : 0).toFixed(1)}% 2px`, (size) => { cells[2 * pair + 1].style.backgroundSize = size; });
    });
    this.text(cells[4], grouped(sums.selfCount[group]));
  }

  /** Fills in the kind of code with a bar of its shares, and the names of function, module and source file. */
  fillTexts(functions, group) {
    // The cells after the five amounts.
    const [kind, ...names] = this.cells.slice(5), sharesText = functions.sharesText(group);
    const texts = [functions.name(group), functions.module(group), functions.source(group)];
    texts.forEach((text, index) => {
      // Paths of modules and source files are shortened to the file name.
      this.text(names[index], index === 0 ? text : lastPartOf(text));
      this.set(`title${index}`, text, (value) => { names[index].title = value; });
    });
    this.set("kind", sharesText, (value) => {
      kind.title = value;
      kind.setAttribute("aria-label", value);
    });
    const shares = functions.shares(group), { profile } = functions;
    const { name } = profile.categories[shares[0].category];
    // If the input doesn't state kinds of code, "unknown" in every row would say nothing.
    this.text(this.word, !profile.knowsCategories && name === "unknown" ? "" : name);
    this.fillShares(shares, profile, texts[0]);
    const parts = [this.cells[1].textContent, this.cells[3].textContent];
    this.root.setAttribute("aria-label", [texts[0], `self ${parts[0]}`, `total ${parts[1]}`, sharesText, texts[1]].filter(Boolean).join(", "));
  }

  /** Fills the bar with one part per kind of code, as wide as the share of self weight that the function has there. */
  fillShares(shares, profile, name) {
    const whole = shares.reduce((sum, { weight }) => sum + weight, 0);
    const parts = shares.map(({ category, weight }) => [letterOf(profile, category, name), whole ? (100 * weight / whole).toFixed(1) : "100"]);
    this.set("shares", parts.join(), () => this.bar.replaceChildren(...parts.map(([letter, width]) => {
      const square = colorSquare(letter);
      square.style.width = `${width}%`;
      return square;
    })));
  }

  text(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  /** Calls `change` only if the value differs from what is shown. */
  set(what, value, change) {
    if (this.shown[what] === value) return;
    this.shown[what] = value;
    change(value);
  }
}

/** The last component of a path, since there is little room. */
function lastPartOf(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
