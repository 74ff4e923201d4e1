// Part "Call tree": the stacks as a table of rows that open, from their roots or from their ends on.

import { drawingOf, element } from "./dom.js";
import { amount, percent } from "./format.js";
import { foundGroups } from "./search_box.js";
import { childrenByWeight } from "./tree.js";
import { VirtualRows } from "./virtual_rows.js";

const ROW_PIXELS = 20;
const INDENT_PIXELS = 14;
/** Deeper rows are not indented further: their names would leave the window. */
const DEEPEST_INDENT = 40;
/** At the beginning rows are open down to the first one that has less than this share of its caller. */
const OPEN_SHARE = 0.5;

/** Mounts it. */
export function mountCallTree(root, page) {
  const part = new CallTreePart(root, page);
  const draw = drawingOf(page, () => root.hidden || part.draw());
  part.redraw = draw;
  page.store.subscribe(draw);
  draw();
}

class CallTreePart {
  constructor(root, page) {
    Object.assign(this, { page, redraw: () => {}, rows: [], open: new Set(), shape: null });
    this.kind = element("select", { id: "tree-kind", "aria-label": "Begin with", onchange: () => this.redraw() },
      element("option", { value: "calls" }, "Roots first: callees below"),
      element("option", { value: "bottomup" }, "Innermost first: callers below"));
    this.list = element("div", { id: "tree-rows", "aria-label": "Call tree" });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => this.clicked(event));
    root.classList.add("call-tree");
    const head = ["Total", "", "Self", "", "Function"].map((text, at) => element("span", { class: at < 4 ? "amount" : null }, text));
    root.append(element("div", { class: "functions-bar" }, this.kind), element("div", { class: "tree-head" }, ...head), this.list);
    this.virtual = new VirtualRows(this.list, ROW_PIXELS, (row) => this.rowOf(row));
  }

  draw() {
    this.tree = this.page.tree(this.kind.value);
    // Weights change with every selection; what is open stays open as long as the rows are the same.
    if (this.shape !== this.tree.parent) this.openHeaviest();
    this.shape = this.tree.parent;
    this.arrange();
  }

  /** Opens the heaviest path. */
  openHeaviest() {
    const { tree } = this;
    this.open = new Set();
    for (let node = 0; node >= 0;) {
      this.open.add(node);
      const [heaviest = -1] = childrenByWeight(tree, node);
      node = heaviest >= 0 && tree.total[heaviest] >= OPEN_SHARE * tree.total[node] ? heaviest : -1;
    }
  }

  /** The rows that are there: below each open one its children, the heaviest first. */
  arrange() {
    const { tree, open } = this, rows = [], todo = childrenByWeight(tree, 0).reverse();
    while (todo.length > 0) {
      const node = todo.pop();
      rows.push(node);
      if (open.has(node)) todo.push(...childrenByWeight(tree, node).reverse());
    }
    this.rows = rows;
    this.found = foundGroups(this.page)?.groups ?? null;
    this.virtual.reset(rows.length);
  }

  hasChildren(node) {
    const { tree } = this;
    for (let child = tree.first[node]; child >= 0; child = tree.next[child]) if (tree.total[child] > 0) return true;
    return false;
  }

  functionOf(node) {
    return this.page.groups().first[this.tree.group[node]];
  }

  rowOf(row) {
    const { tree, page } = this, node = this.rows[row], number = this.functionOf(node), { profile, unit } = page;
    const all = page.selection().total, isOpener = this.hasChildren(node), isOpen = this.open.has(node);
    const { selected } = page.state;
    const category = profile.categories[profile.functions.category[number]];
    const name = element("span", { class: "tree-name", title: profile.title(number) },
      element("span", { class: "opener", "aria-hidden": "true" }, isOpener ? (isOpen ? "▾" : "▸") : ""),
      profile.knowsCategories ? element("i", { style: `background:var(--fill-${category.letter},var(--code-${category.letter}))` }) : null,
      profile.functions.name[number]);
    name.style.paddingLeft = `${Math.min(tree.depth[node] - 1, DEEPEST_INDENT) * INDENT_PIXELS}px`;
    const amounts = [tree.total[node], tree.own[node]].flatMap((value) => [amount(value, unit), percent(value, all)]);
    return element("div", {
      class: ["tree-row", selected !== null && page.groups().of[selected] === tree.group[node] ? "selected" : "",
        this.found?.[tree.group[node]] ? "found" : "", row === this.virtual.cursor ? "cursor" : ""].join(" "),
      "aria-level": String(tree.depth[node]), "aria-expanded": isOpener ? String(isOpen) : null,
    }, ...amounts.map((text) => element("span", { class: "amount" }, text)), name);
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

  key(event) {
    const row = this.virtual.cursor, node = this.rows[row];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowRight" && row >= 0) {
      if (this.hasChildren(node) && !this.open.has(node)) this.toggle(row, true);
      else this.virtual.key("ArrowDown");
    } else if (event.key === "ArrowLeft" && row >= 0) {
      if (this.open.has(node)) this.toggle(row, false);
      else this.virtual.moveTo(Math.max(0, this.rows.indexOf(this.tree.parent[node])));
    } else if ((event.key === "Enter" || event.key === " ") && row >= 0) this.select(row);
    else if (!this.virtual.key(event.key)) return;
    event.preventDefault();
  }
}
