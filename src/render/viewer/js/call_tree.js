// Part "Call tree": the stacks as a table with expandable rows, starting from the outermost or from the innermost
// functions.

import { categoriesOf } from "./box_categories.js";
import { drawingOf, element } from "./dom.js";
import { whyEmpty } from "./flame.js";
import { amount, percent } from "./format.js";
import { nameWithRun } from "./functions.js";
import { foundGroups } from "./search_box.js";
import { colorSquare, letterOf } from "./shades.js";
import { childrenByWeight } from "./tree.js";
import { VirtualRows } from "./virtual_rows.js";

const ROW_PIXELS = 20;
/** Deeper rows are not indented further, because their names would move out of the window. */
const DEEPEST_INDENT = 40;
/** Initially, rows are expanded down to the first one that has less than this share of its caller's weight. */
const OPEN_SHARE = 0.5;

/** Mounts the part "Call tree" in `root`, and redraws it when the state of the page changes. */
export function mountCallTree(root, page) {
  const part = new CallTreePart(root, page);
  // `draw` schedules a drawing for the next frame. Nothing is drawn while the part is hidden.
  const draw = drawingOf(page, () => root.hidden || part.draw());
  part.redraw = draw;
  page.store.subscribe(draw);
  draw();
}

class CallTreePart {
  /** `open` has the expanded nodes, and `rows` the node of each visible row. `isWalked` is true if the cursor is where
   * a search step led. */
  constructor(root, page) {
    Object.assign(this, { root, page, redraw: () => {}, rows: [], open: new Set(), shape: null, isWalked: false });
    this.kind = element("select", { id: "tree-kind", "aria-label": "Start with", onchange: () => this.redraw() },
      element("option", { value: "calls" }, "Roots, with callees below"),
      element("option", { value: "bottomup" }, "Innermost functions, with callers below"));
    this.list = element("div", { id: "tree-rows", "aria-label": "Call tree", "data-home": "" });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => this.clicked(event));
    root.classList.add("call-tree");
    const head = ["Total", "", "Self", "", "Function"].map((text, column) => element("span", { class: column < 4 ? "amount" : null }, text));
    this.empty = element("p", { class: "empty", hidden: true });
    root.append(element("div", { class: "functions-bar" }, this.kind), element("div", { class: "tree-head", "aria-hidden": "true" }, ...head),
      this.empty, this.list);
    this.virtual = new VirtualRows(this.list, ROW_PIXELS, (row) => this.rowOf(row), { list: "tree", row: "treeitem" });
    page.walkers.tree = (step) => this.walk(step);
  }

  /** True if the tree starts with the innermost functions (bottom-up). */
  get endsFirst() {
    return this.kind.value === "bottomup";
  }

  /** Draws the tree for the current selection. */
  draw() {
    this.tree = this.page.tree(this.kind.value);
    this.root.style.setProperty("--letters-of-amount", amount(this.page.selection().total, this.page.unit).length);
    // Weights change with every selection. Rows stay expanded as long as the shape of the tree stays the same.
    if (this.shape !== this.tree.parent) this.openHeaviest();
    this.shape = this.tree.parent;
    this.arrange();
  }

  /** Expands the rows on the heaviest path. */
  openHeaviest() {
    const { tree } = this;
    this.open = new Set();
    // Start at the root (0), and stop at a node without a heavy child (-1).
    for (let node = 0; node >= 0;) {
      this.open.add(node);
      const [heaviest = -1] = childrenByWeight(tree, node);
      node = heaviest >= 0 && tree.total[heaviest] >= OPEN_SHARE * tree.total[node] ? heaviest : -1;
    }
  }

  /** Lists the visible rows: below each expanded row its children, the heaviest first. */
  arrange() {
    // `todo` has the nodes that still get rows. The last one comes next, so children are added in reverse.
    const { tree, open } = this, rows = [], todo = [];
    // The position of each row among its siblings, for screen readers.
    this.places = new Map();
    const enter = (parent) => {
      const children = childrenByWeight(tree, parent);
      children.forEach((node, index) => this.places.set(node, { at: index + 1, of: children.length }));
      todo.push(...children.reverse());
    };
    enter(0);
    while (todo.length > 0) {
      const node = todo.pop();
      rows.push(node);
      if (open.has(node)) enter(node);
    }
    this.rows = rows;
    this.found = foundGroups(this.page)?.groups ?? null;
    this.empty.textContent = whyEmpty(this.page);
    this.empty.hidden = rows.length > 0;
    this.virtual.reset(rows.length);
  }

  /** Moves to the next search match (`step` 1) or the previous one (−1), in the order that the rows would have if all
   * were expanded. */
  walk(step) {
    // `wanted` are the matching nodes, in the order of rows.
    const { tree, found } = this, wanted = [];
    if (!found) return null;
    const todo = childrenByWeight(tree, 0).reverse();
    while (todo.length > 0) {
      const node = todo.pop();
      if (found[tree.group[node]]) wanted.push(node);
      todo.push(...childrenByWeight(tree, node).reverse());
    }
    if (wanted.length === 0) return null;
    // If the cursor is at a match because of an earlier step, go on from there, otherwise to the first or last match.
    const before = this.isWalked ? wanted.indexOf(this.rows[this.virtual.cursor]) : -1;
    const match = before < 0 ? (step > 0 ? 0 : wanted.length - 1) : (before + step + wanted.length) % wanted.length;
    // Expand all callers of the match, so that it has a row.
    for (let above = tree.parent[wanted[match]]; above >= 0; above = tree.parent[above]) this.open.add(above);
    this.isWalked = true;
    this.arrange();
    this.virtual.moveTo(this.rows.indexOf(wanted[match]), true);
    return { at: match + 1, count: wanted.length, what: "row" };
  }

  hasChildren(node) {
    const { tree } = this;
    for (let child = tree.first[node]; child >= 0; child = tree.next[child]) if (tree.total[child] > 0) return true;
    return false;
  }

  functionOf(node) {
    return this.page.groups().first[this.tree.group[node]];
  }

  /** The element for a row: total and self weight, and the function's name, indented by its depth. */
  rowOf(row) {
    const { tree, page } = this, node = this.rows[row], number = this.functionOf(node), { profile, unit } = page;
    const all = page.selection().total, isOpener = this.hasChildren(node), isOpen = this.open.has(node);
    const { selected } = page.state;
    const name = element("span", { class: "tree-name", title: profile.title(number) },
      element("span", { class: "opener", "aria-hidden": "true" }, isOpener ? (isOpen ? "▾" : "▸") : ""),
      colorSquare(letterOf(profile, categoriesOf(page, tree).heaviestOf(node), profile.functions.name[number])),
      nameWithRun(profile.functions.name[number], tree.runs?.get(node)));
    name.style.paddingLeft = `calc(${Math.min(tree.depth[node] - 1, DEEPEST_INDENT)} * var(--indent))`;
    const textsOf = (value) => [amount(value, unit), percent(value, all)], self = this.selfOf(node);
    const amounts = [...textsOf(tree.total[node]), ...(self === null ? ["", ""] : textsOf(self))];
    const { at: position, of: siblings } = this.places.get(node);
    return element("div", {
      class: ["tree-row", selected !== null && page.groups().of[selected] === tree.group[node] ? "selected" : "",
        this.found?.[tree.group[node]] ? "found" : "", row === this.virtual.cursor ? "cursor" : ""].join(" "),
      "aria-level": String(tree.depth[node]), "aria-expanded": isOpener ? String(isOpen) : null,
      "aria-posinset": String(position), "aria-setsize": String(siblings),
    }, ...amounts.map((text, column) => element("span", { class: column % 2 ? "amount" : "amount unit" }, text)), name);
  }

  /** The self weight of a row's function; null for callers in a bottom-up tree. */
  selfOf(node) {
    if (!this.endsFirst) return this.tree.own[node];
    return this.tree.depth[node] === 1 ? this.tree.total[node] : null;
  }

  toggle(row, opens = !this.open.has(this.rows[row])) {
    const node = this.rows[row];
    if (opens) this.open.add(node);
    else this.open.delete(node);
    this.arrange();
  }

  clicked(event) {
    const row = VirtualRows.rowOf(event);
    if (row < 0) return;
    this.virtual.cursor = row;
    if (event.target.closest(".opener")) this.toggle(row);
    else this.select(row);
  }

  select(row) {
    this.page.store.set({ selected: this.functionOf(this.rows[row]) });
    this.redraw();
  }

  /** Handles a key as tree views usually do: Right expands the row or goes to its first child, Left collapses it or
   * goes to its parent, and Enter selects its function. */
  key(event) {
    const row = this.virtual.cursor, node = this.rows[row];
    this.isWalked = false;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowRight" && row >= 0) {
      if (this.hasChildren(node) && !this.open.has(node)) this.toggle(row, true);
      else if (this.open.has(node)) this.virtual.key("ArrowDown");
    } else if (event.key === "ArrowLeft" && row >= 0) {
      if (this.open.has(node)) this.toggle(row, false);
      else this.virtual.moveTo(Math.max(0, this.rows.indexOf(this.tree.parent[node])));
    } else if ((event.key === "Enter" || event.key === " ") && row >= 0) this.select(row);
    else if (!this.virtual.key(event.key)) return;
    event.preventDefault();
  }
}
