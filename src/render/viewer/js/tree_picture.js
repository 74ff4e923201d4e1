// Flame graphs of the page's profile: stacks merged to a tree, or in order of time.

import { amount, percent } from "./format.js";
import { IDLE, LANE, layoutTree, nodeOfPath, pathOfNode, startOfNode } from "./flame_layout.js";
import { CUT_STACK, FlamePicture } from "./flame_picture.js";
import { nameWithRun } from "./functions.js";
import { hashOfName, warmLetter } from "./shades.js";
import { extentOfLanes, layoutLanes } from "./time_lanes.js";

/** Boxes narrower than this many pixels are not drawn, and neither is anything on top of them. */
const NARROWEST = 0.3;

/** What depends only on the groups of functions: their names, the hashes for their shades, and whether they are JIT
 * code. */
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

  isJit(group) {
    return this.profile.categories[this.profile.functions.category[this.groups.first[group]]].jit;
  }
}

/** A picture of a tree. Labels are groups of functions. */
export class TreePicture extends FlamePicture {
  /** `looks` are the names and hashes of groups (`GroupLooks`), `categories` the categories of the tree's boxes.
   * `upward` tells whether roots are at the bottom. The picture shows the node `root`, with or without its own box
   * (`showsRoot`), and everything below it. `endsFirst` tells whether the tree starts with the innermost functions
   * (bottom-up). */
  constructor({ page, tree, looks, categories, upward = false, root = 0, showsRoot = true, endsFirst = false }) {
    super();
    Object.assign(this, { page, tree, looks, categories, upward, root, showsRoot, endsFirst });
    this.whole = { start: 0, end: tree.total[root] ?? 0 };
    this.all = page.selection().total;
    this.truncation = page.profile.truncation;
    this.kinds = new Map(page.profile.categories.map(({ letter, name }) => [letter, name]));
  }

  get unit() {
    return this.page.unit;
  }

  /** Lays out the boxes that are visible in `view`. `pixel` is the amount that is one pixel wide. */
  layout(view, pixel) {
    const boxes = layoutTree(this.tree, view, NARROWEST * pixel, this.root);
    if (!this.showsRoot) boxes.dropFirstRow();
    return boxes;
  }

  /** The range of a path of functions, as far as the tree has the path; the whole picture for an empty path. */
  viewOf(functions) {
    const { tree, looks } = this, path = functions.map((number) => looks.groups.of[number]);
    const node = nodeOfPath(tree, path);
    if (node <= this.root || !(tree.total[node] > 0)) return { ...this.whole, node: this.root };
    const start = startOfNode(tree, node);
    return { start, end: start + tree.total[node], node };
  }

  /** The functions on the path from the root to a node. */
  pathOf(node) {
    return pathOfNode(this.tree, node).map((group) => this.looks.groups.first[group]);
  }

  /** All boxes that match the search, even if they are not drawn, the heaviest first: [{node, row, start, end}]. */
  foundPlaces() {
    // `top` is the depth of the nodes in row 0.
    const { tree } = this, top = tree.depth[this.root] + (this.showsRoot ? 0 : 1), nodes = [];
    for (let node = this.root; node < tree.length; node++) {
      if (this.isFound(node) && tree.total[node] > 0 && tree.depth[node] >= top) nodes.push(node);
    }
    nodes.sort((a, b) => tree.total[b] - tree.total[a] || a - b);
    return nodes.map((node) => {
      const start = startOfNode(tree, node);
      return { node, row: tree.depth[node] - top, start, end: start + tree.total[node] };
    });
  }

  labelOf(node) {
    return this.tree.group[node];
  }

  /** The function of a node; −1 for the root. */
  functionOf(node) {
    return node > 0 ? this.looks.groups.first[this.labelOf(node)] : -1;
  }

  nameOf(node) {
    return node > 0 ? nameWithRun(this.looks.name(this.labelOf(node)), this.tree.runs?.get(node)) : "all";
  }

  isJit(node) {
    return node > 0 && this.looks.isJit(this.labelOf(node));
  }

  totalOf(node) {
    return this.tree.total[node];
  }

  /** The self weight of a box's function; null for a caller in a bottom-up tree, whose box doesn't tell it. */
  ownOf(node) {
    if (!this.endsFirst) return this.tree.own[node];
    return this.root === 0 && this.tree.depth[node] === 1 ? this.tree.total[node] : null;
  }

  categoryOf(node) {
    return this.categories.heaviestOf(node);
  }

  swatchOf(node) {
    // Missing callers are not code of any kind.
    if (node === 0 || this.nameOf(node) === CUT_STACK) return ["q", 0];
    const hash = this.looks.hash(this.labelOf(node)), { profile } = this.page;
    return [profile.knowsCategories ? profile.categories[this.categoryOf(node)].letter : warmLetter(hash), hash];
  }

  sharesOf(node) {
    if (node <= 0) return [];
    const { categories } = this.page.profile;
    return this.categories.mixOf(node).map(([category, weight]) => [categories[category].letter, weight]);
  }

  kindOf(letter) {
    return this.kinds.get(letter) ?? "";
  }

  whereOf(node) {
    if (node <= 0) return [];
    const { module, file, line } = this.page.profile.functions, number = this.functionOf(node);
    const source = line[number] ? `${file[number]}:${line[number]}` : file[number];
    return [module[number], source].map((text) => text ?? "");
  }
}

/** A picture of stacks in order of time, with a lane for each thread. */
export class LanesPicture extends TreePicture {
  /** `parts` are those of a `TreePicture`, `lanes` is from `timeLanes`. `nodeOf(row)` is the tree node of a row; 0 if
   * it has none. `timeUnit` is the number of nanoseconds per unit of time, and `shown` the visible time [from, to];
   * without times, `timeUnit` is 0 and `shown` doesn't matter. */
  constructor(parts, lanes, nodeOf, timeUnit, shown) {
    super(parts);
    Object.assign(this, { lanes, nodeOf, timeUnit });
    this.whole = timeUnit ? { start: shown[0], end: shown[1] } : extentOfLanes(lanes);
  }

  layout(view, pixel) {
    return layoutLanes(this.lanes, this.tree, this.nodeOf, view, pixel);
  }

  viewOf(path, [start, end]) {
    const { whole } = this, isInside = start < end && start < whole.end && end > whole.start;
    if (!isInside) return { ...whole, node: 0 };
    return { start: Math.max(start, whole.start), end: Math.min(end, whole.end), node: 0 };
  }

  /** The drawn boxes that match the search, from left to right. A function has a box for each time that it ran, so
   * not all of them are listed. */
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

  /** The time of a box, and the total and self weight of its function in all. */
  amountsOf(node, zoomed, start, end) {
    const { tree, timeUnit } = this, time = (at) => amount(at * timeUnit, "nanoseconds");
    // Without times, the width of a box is a weight.
    const words = [timeUnit ? `${time(end - start)} from ${time(start)}` : this.amountText(end - start)];
    if (node === IDLE) return words[0];
    for (const [word, value] of [["total", tree.total[node]], ["self", tree.own[node]]]) {
      words.push(`${word} ${this.amountText(value)}, ${percent(value, this.all)}`);
    }
    return words.join(" · ");
  }
}
