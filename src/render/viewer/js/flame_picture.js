// The shape of a flame graph of a tree: where its boxes are, their names, colors and what is reported for them.

import { amount, percent } from "./format.js";
import { IDLE, LANE, layoutTree, nodeOfPath, pathOfNode, startOfNode } from "./flame_layout.js";
import { hashOfName, warmLetter } from "./shades.js";
import { extentOfLanes, layoutLanes } from "./time_lanes.js";

/** Boxes of less pixels are not drawn, nor what is below them. */
const NARROWEST = 0.3;

/** The looks that follow from the groups of functions alone: their names, shades and categories. */
export class GroupLooks {
  constructor(profile, groups) {
    Object.assign(this, { profile, groups });
    this.hashes = new Float64Array(groups.count).fill(-1);
  }

  name(group) {
    return this.profile.functions.name[this.groups.first[group]];
  }

  hash(group) {
    if (this.hashes[group] < 0) this.hashes[group] = hashOfName(this.name(group));
    return this.hashes[group];
  }

  /** The category of a group's first function. */
  category(group) {
    return this.profile.functions.category[this.groups.first[group]];
  }

  isJit(group) {
    return this.profile.categories[this.category(group)].jit;
  }
}

/** A tree as a picture. `categories` is null where a box's tiers are not known apart; `endsFirst`: the tree begins with
 * the ends of stacks. */
export class TreePicture {
  constructor({ page, tree, looks, categories = null, upward = false, root = 0, showsRoot = true, endsFirst = false }) {
    Object.assign(this, { page, tree, looks, categories, upward, root, showsRoot, endsFirst });
    this.whole = { start: 0, end: tree.total[root] ?? 0 };
    this.all = page.selection().total;
    /** By group, whether it was searched for; null: nothing is. */
    this.found = null;
    /** The group that all parts of the page show; −1: none. */
    this.selected = -1;
  }

  /** The boxes of a view; `pixel` is how much is as wide as one. */
  layout(view, pixel) {
    const boxes = layoutTree(this.tree, view, NARROWEST * pixel, this.root);
    if (!this.showsRoot) boxes.dropFirstRow();
    return boxes;
  }

  /** The stretch of a path of functions, as far as it is there; the whole for none. */
  viewOf(functions) {
    const { tree, looks } = this;
    const node = nodeOfPath(
      tree,
      functions.map((number) => looks.groups.of[number]),
    );
    if (node <= this.root || !(tree.total[node] > 0)) return { ...this.whole, node: this.root };
    const start = startOfNode(tree, node);
    return { start, end: start + tree.total[node], node };
  }

  /** The functions from the root to a box's node. */
  pathOf(node) {
    return pathOfNode(this.tree, node).map((group) => this.looks.groups.first[group]);
  }

  /** The function of a box; −1 for the root. */
  functionOf(node) {
    return node > 0 ? this.looks.groups.first[this.tree.group[node]] : -1;
  }

  nameOf(node) {
    return node > 0 ? this.looks.name(this.tree.group[node]) : "all";
  }

  isSelected(node) {
    return node > 0 && this.tree.group[node] === this.selected;
  }

  isJit(node) {
    return node > 0 && this.looks.isJit(this.tree.group[node]);
  }

  isFound(node) {
    return node > 0 && this.found !== null && this.found[this.tree.group[node]] === 1;
  }

  categoryOf(node) {
    const otherwise = this.looks.category(this.tree.group[node]);
    return this.categories ? this.categories.heaviestOf(node, otherwise) : otherwise;
  }

  /** {fill, ink} */
  colourOf(node, shades) {
    if (node === 0) return shades.of("q", 0);
    const hash = this.looks.hash(this.tree.group[node]);
    if (!this.page.profile.knowsCategories) return shades.of(warmLetter(hash), hash);
    return shades.of(this.page.profile.categories[this.categoryOf(node)].letter, hash);
  }

  /** [[category, weight]] of a box that is of several tiers; else empty. */
  sharesOf(node) {
    if (node <= 0 || !this.categories) return [];
    return this.categories.mixOf(node);
  }

  /** The same as [[letter of a color, weight]], to be drawn. */
  stripesOf(node) {
    return this.sharesOf(node).map(([category, weight]) => [this.page.profile.categories[category].letter, weight]);
  }

  /** What ran in the function of a box itself; null where a box is a caller of what ran. */
  ownOf(node) {
    if (!this.endsFirst) return this.tree.own[node];
    return this.root === 0 && this.tree.depth[node] === 1 ? this.tree.total[node] : null;
  }

  /** The boxes that were searched for, drawn or not, the heaviest first: [{node, row, start, end}]. */
  foundPlaces() {
    const { tree } = this, nodes = [];
    for (let node = this.root; node < tree.length; node++) if (this.isFound(node) && tree.total[node] > 0) nodes.push(node);
    const top = tree.depth[this.root] + (this.showsRoot ? 0 : 1);
    return nodes.filter((node) => tree.depth[node] >= top).sort((a, b) => tree.total[b] - tree.total[a] || a - b).map((node) => {
      const start = startOfNode(tree, node);
      return { node, row: tree.depth[node] - top, start, end: start + tree.total[node] };
    });
  }

  /** The text about a box: [line], the name first. */
  tell(node, zoomed) {
    return [this.nameOf(node), ...this.whereOf(node), this.amountsOf(node, zoomed), ...this.tiersOf(node)];
  }

  whereOf(node) {
    if (node === 0) return [];
    const { module, file, line } = this.page.profile.functions,
      number = this.functionOf(node);
    const source = file[number] ? file[number] + (line[number] ? `:${line[number]}` : "") : "";
    return [module[number], source].filter((text) => text !== "");
  }

  amountsOf(node, zoomed) {
    const { tree, page } = this,
      total = tree.total[node],
      unit = page.unit;
    const words = [amount(total, unit), `${percent(total, this.all)} of all`];
    if (zoomed > 0 && zoomed !== node)
      words.push(`${percent(total, tree.total[zoomed])} of ${shortened(this.nameOf(zoomed))}`);
    const own = node > 0 ? this.ownOf(node) : null;
    if (own !== null) words.push(`self ${amount(own, unit)}, ${percent(own, this.all)}`);
    return words.join(" · ");
  }

  tiersOf(node) {
    if (node === 0 || !this.page.profile.knowsCategories) return [];
    const names = this.page.profile.categories,
      shares = this.sharesOf(node);
    if (shares.length === 0) return [names[this.categoryOf(node)].name];
    const all = shares.reduce((sum, [, weight]) => sum + weight, 0);
    return [shares.map(([category, weight]) => `${names[category].name} ${percent(weight, all)}`).join(", ")];
  }
}

function shortened(name) {
  return name.length > 60 ? name.slice(0, 59) + "…" : name;
}

/** Stacks in order of time, a lane for each thread. */
export class LanesPicture extends TreePicture {
  constructor(parts, lanes, nodeOf, timeUnit, shown) {
    super(parts);
    Object.assign(this, { lanes, nodeOf, timeUnit });
    this.whole = timeUnit ? { start: shown[0], end: shown[1] } : extentOfLanes(lanes);
  }

  layout(view, pixel) {
    return layoutLanes(this.lanes, this.tree, this.nodeOf, view, pixel);
  }

  viewOf(path, span) {
    const [start, end] = span,
      isInside = start < end && start < this.whole.end && end > this.whole.start;
    return isInside
      ? { start: Math.max(start, this.whole.start), end: Math.min(end, this.whole.end), node: 0 }
      : { ...this.whole, node: 0 };
  }

  /** A function has many boxes here: those that are drawn, from left to right. */
  foundPlaces({ node, start, end, rows, first }) {
    const places = [];
    for (let row = 0; row < rows; row++) {
      for (let box = first[row]; box < first[row + 1]; box++) {
        if (this.isFound(node[box])) places.push({ node: node[box], row, start: start[box], end: end[box] });
      }
    }
    return places.sort((a, b) => a.start - b.start || a.row - b.row);
  }

  nameOf(node) {
    if (node === IDLE) return "idle";
    return node <= LANE ? this.lanes[LANE - node].name : super.nameOf(node);
  }

  colourOf(node, shades) {
    if (node === IDLE) return shades.of("z", 0);
    return node <= LANE ? null : super.colourOf(node, shades);
  }

  tell(node, zoomed, start, end) {
    if (node <= LANE) return [this.nameOf(node), "thread"];
    const { unit } = this.page;
    const words = this.timeUnit
      ? [`${amount((end - start) * this.timeUnit, "nanoseconds")} from ${amount(start * this.timeUnit, "nanoseconds")}`]
      : [amount(end - start, unit)];
    if (node === IDLE) return ["idle", ...words];
    const told = (weight) => `${amount(weight, unit)}, ${percent(weight, this.all)}`;
    const all = [`total ${told(this.tree.total[node])}`, `self ${told(this.tree.own[node])}`];
    return [this.nameOf(node), ...this.whereOf(node), [...words, ...all].join(" · "), ...this.tiersOf(node)];
  }
}
