// Stacks → trees to be drawn. A tree's node 0 is its root, a node's number is greater than its parent's, and nothing
// recurses: stacks may be 10,000 frames deep.
//
// The shape of a tree depends on what is hidden, merged and focused; its weights on the samples that count. A brush
// that moves changes only weights, so these are apart.

import { SumArrays } from "./selection.js";

/**
 * @typedef {object} TreeShape
 * @property {number} length how many nodes
 * @property {Int32Array} parent -1 for the root
 * @property {Int32Array} group what is reported for a node: a number of `functionGroups`; -1 for the root
 * @property {Int32Array} depth 0 for the root
 * @property {Int32Array} first a child; -1: none. In the order of names
 * @property {Int32Array} next another child of the same parent; -1: none
 * @property {Int32Array} place by node of the profile, where samples that end there are; -1: they do not count
 * @property {Int32Array | null} at by node of the profile, where its frame is, be it that samples there do not count; the
 *   caller's place for what is cut out; null where a frame is at several places
 * @property {boolean} takesEmpty whether samples without a stack count
 *
 * @typedef {TreeShape & {own: Float64Array, total: Float64Array, count: Float64Array}} Tree
 *   own: weight of the node itself; total: with that of all below; count: samples, with those of all below
 */

/** Grows the shape of a tree: equal children of a node are one. */
class ShapeBuilder {
  #length = 1;
  #parent;
  #group;
  /** Nodes by parent and group, an open hash table at most half full; 0 is a free place. */
  #table;

  /** @param {number} nodes how many the profile has: about as many most trees have */
  constructor(nodes) {
    const room = 2 ** Math.ceil(Math.log2(nodes + 2));
    [this.#parent, this.#group, this.#table] = [room, room, 2 * room].map((length) => new Int32Array(length));
    this.place = new Int32Array(nodes).fill(-1);
    this.#parent[0] = this.#group[0] = -1;
  }

  /** The child of `parent` for that group. */
  child(parent, group) {
    const table = this.#table;
    const parents = this.#parent;
    const groups = this.#group;
    const mask = table.length - 1;
    let at = hashOfChild(parent, group) & mask;
    for (let node = table[at]; node !== 0; node = table[at]) {
      if (parents[node] === parent && groups[node] === group) return node;
      at = (at + 1) & mask;
    }
    const node = this.#length++;
    parents[node] = parent;
    groups[node] = group;
    table[at] = node;
    if (this.#length === parents.length) this.#grow();
    return node;
  }

  #grow() {
    this.#parent = enlarged(this.#parent);
    this.#group = enlarged(this.#group);
    const mask = this.#table.length * 2 - 1;
    const table = new Int32Array(mask + 1);
    for (let node = 1; node < this.#length; node++) {
      let at = hashOfChild(this.#parent[node], this.#group[node]) & mask;
      while (table[at] !== 0) at = (at + 1) & mask;
      table[at] = node;
    }
    this.#table = table;
  }

  /** @returns {TreeShape} */
  finish({ rank }, takesEmpty, at = null) {
    const length = this.#length;
    const [parent, group] = [this.#parent.subarray(0, length), this.#group.subarray(0, length)];
    return withLinks({ length, parent, group, place: this.place, at, takesEmpty }, rank);
  }
}

/** The shape of a tree whose nodes have parents, with their depths, and their children in the order of their groups'
 * ranks. @returns {TreeShape} */
export function withLinks(shape, rank) {
  const { length, parent } = shape;
  const depth = new Int32Array(length);
  const [first, next] = [new Int32Array(length).fill(-1), new Int32Array(length).fill(-1)];
  for (let node = 1; node < length; node++) depth[node] = depth[parent[node]] + 1;
  const order = nodesByRank(shape, rank);
  for (let at = order.length - 1; at >= 0; at--) {
    const node = order[at];
    next[node] = first[parent[node]];
    first[parent[node]] = node;
  }
  return { ...shape, depth, first, next };
}

/** All nodes but the root, by their groups' ranks; equal ones in the order of their numbers. */
function nodesByRank({ length, group }, rank) {
  const starts = new Uint32Array(rank.length + 1), order = new Uint32Array(length - 1);
  for (let node = 1; node < length; node++) starts[rank[group[node]] + 1]++;
  for (let at = 1; at < starts.length; at++) starts[at] += starts[at - 1];
  for (let node = 1; node < length; node++) order[starts[rank[group[node]]]++] = node;
  return order;
}

function hashOfChild(parent, group) {
  const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(group + 1, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}

function enlarged(array) {
  const larger = new Int32Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** A shape with the weights of the samples that count. @returns {Tree} */
export function weighed(shape, selection, arrays = new SumArrays()) {
  const own = sumsByPlace(shape, selection.own, selection.empty, arrays.take("own", shape.length));
  const total = arrays.take("total", shape.length);
  total.set(own);
  withBelow(shape, total);
  let count = null;
  return {
    ...shape, own, total,
    // Few ask for it, and a brush that moves does not wait for it.
    get count() {
      return (count ??= withBelow(shape, sumsByPlace(shape, selection.ownCount, selection.emptyCount, new Float64Array(shape.length))));
    },
  };
}

function sumsByPlace({ place, takesEmpty }, amounts, empty, sums) {
  for (let node = 0; node < place.length; node++) if (place[node] >= 0) sums[place[node]] += amounts[node];
  if (takesEmpty) sums[0] += empty;
  return sums;
}

/** Adds the sums of all nodes to those above. */
function withBelow({ length, parent }, sums) {
  for (let node = length - 1; node > 0; node--) sums[parent[node]] += sums[node];
  return sums;
}

/** The children of a node that have any weight, the heaviest first; of equal ones in the order of their numbers. */
export function childrenByWeight(tree, node) {
  const children = [];
  for (let child = tree.first[node]; child >= 0; child = tree.next[child]) {
    if (tree.total[child] > 0) children.push(child);
  }
  return children.sort((a, b) => tree.total[b] - tree.total[a] || a - b);
}

/**
 * For each node of the profile the group that is shown for it, or -1 if it is cut out of its stack, by what is hidden
 * and merged.
 */
export function shownGroups(profile, groups, state) {
  const byFunction = new Int32Array(profile.functionCount);
  const [modules, categories, functions] =
    [state.hiddenModules, state.hiddenCategories, state.hiddenFunctions].map((list) => new Set(list));
  for (let number = 0; number < byFunction.length; number++) {
    const { module, category } = profile.functions;
    const hidden = modules.has(module[number]) || categories.has(category[number])
      || functions.has(groups.first[groups.of[number]]);
    byFunction[number] = hidden ? -1 : groups.of[number];
  }
  const { nodeFunction, nodeParent } = profile;
  const shown = new Int32Array(profile.nodeCount);
  for (let node = 0; node < shown.length; node++) {
    const group = byFunction[nodeFunction[node]];
    const parent = nodeParent[node];
    // Only the outermost call of a recursive function is left.
    shown[node] = state.mergeRecursion && parent >= 0 && group >= 0 && isGroupAbove(profile, shown, parent, group) ? -1 : group;
  }
  return shown;
}

/** True if the nearest shown node from `node` up is of that group. */
function isGroupAbove({ nodeParent }, shown, node, group) {
  for (; node >= 0; node = nodeParent[node]) {
    // A node that was merged away is below one of its own group.
    if (shown[node] >= 0) return shown[node] === group;
  }
  return false;
}

/** By node, whether its stack goes through a group that is shown. */
function through(profile, shown, group) {
  const marked = new Uint8Array(profile.nodeCount);
  for (let node = 0; node < marked.length; node++) {
    const parent = profile.nodeParent[node];
    marked[node] = shown[node] === group || (parent >= 0 && marked[parent]) ? 1 : 0;
  }
  return marked;
}

/** The stacks from their roots on, equal ones merged. */
export function callTreeShape(profile, groups, state) {
  const shown = shownGroups(profile, groups, state);
  const inside = state.focus === null ? null : through(profile, shown, groups.of[state.focus]);
  const { nodeParent, nodeCount } = profile;
  const builder = new ShapeBuilder(nodeCount);
  const at = new Int32Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const above = nodeParent[node] < 0 ? 0 : at[nodeParent[node]];
    at[node] = shown[node] < 0 ? above : builder.child(above, shown[node]);
    if (!inside || inside[node]) builder.place[node] = at[node];
  }
  return builder.finish(groups, !inside, at);
}

/** The stacks from their ends on: what ran itself below the root, its callers below it. */
export function bottomUpShape(profile, groups, state) {
  const shown = shownGroups(profile, groups, state);
  const inside = state.focus === null ? null : through(profile, shown, groups.of[state.focus]);
  const ends = stackEnds(profile);
  const builder = new ShapeBuilder(profile.nodeCount);
  for (let node = 0; node < profile.nodeCount; node++) {
    if (ends[node] && (!inside || inside[node])) builder.place[node] = reversedPath(builder, profile, shown, node);
  }
  return builder.finish(groups, !inside);
}

/** By node, whether any sample of any event ends there. */
function stackEnds(profile) {
  const ends = new Uint8Array(profile.nodeCount);
  const sources = profile.baseline ? ["profile", "baseline"] : ["profile"];
  for (const from of sources) {
    for (let event = 0; event < profile.events.length; event++) {
      for (const node of profile.rows(event, from).node) if (node >= 0) ends[node] = 1;
    }
  }
  return ends;
}

/** The end of a stack that is entered from its end on. */
function reversedPath(builder, { nodeParent }, shown, node) {
  let place = 0;
  for (let up = node; up >= 0; up = nodeParent[up]) {
    if (shown[up] >= 0) place = builder.child(place, shown[up]);
  }
  return place;
}

/** The callees of a function, from its outermost call on: the root's only child is the function. */
export function calleesShape(profile, groups, state, number) {
  const shown = shownGroups(profile, groups, state);
  const group = groups.of[number];
  const builder = new ShapeBuilder(profile.nodeCount);
  const { place } = builder;
  for (let node = 0; node < place.length; node++) {
    const parent = profile.nodeParent[node];
    const above = parent < 0 ? -1 : place[parent];
    if (above < 0) place[node] = shown[node] === group ? builder.child(0, group) : -1;
    else place[node] = shown[node] < 0 ? above : builder.child(above, shown[node]);
  }
  return builder.finish(groups, false, place);
}

/** The callers of a function: the root's only child is the function, its callers below it. Each sample counts once,
 * where the function was called first. */
export function callersShape(profile, groups, state, number) {
  const shown = shownGroups(profile, groups, state);
  const inside = through(profile, shown, groups.of[number]);
  const builder = new ShapeBuilder(profile.nodeCount);
  const { place } = builder;
  for (let node = 0; node < place.length; node++) {
    if (!inside[node]) continue;
    const parent = profile.nodeParent[node];
    place[node] = parent >= 0 && inside[parent] ? place[parent] : reversedPath(builder, profile, shown, node);
  }
  return builder.finish(groups, false);
}
