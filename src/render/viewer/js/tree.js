// Builds trees from stacks, for drawing. Node 0 is the root, and every node has a higher index than its parent. Nothing
// recurses, because stacks may be 10,000 frames deep.
//
// The shape of a tree depends on what is hidden, merged and focused; its weights depend on the selected samples. They
// are separate, because a moving brush only changes weights.

import { isUnnamedFunction } from "./functions.js";
import { SumArrays } from "./selection.js";

/**
 * @typedef {object} TreeShape
 * @property {number} length the number of nodes
 * @property {Int32Array} parent -1 for the root
 * @property {Int32Array} group the group (see `functionGroups`) of each node; -1 for the root
 * @property {Int32Array} depth 0 for the root
 * @property {Int32Array} first the first child, in the order of names; -1 if there is none
 * @property {Int32Array} next the next child of the same parent; -1 if there is none
 * @property {Int32Array} place for each node of the profile: the tree node for samples that end there; -1 if they don't
 *   count
 * @property {Int32Array | null} at for each node of the profile: the tree node of its frame, even if samples there
 *   don't count; for hidden frames the caller's; null if a frame can be in several tree nodes
 * @property {Map<number, number>} runs for each tree node that stands for several unnamed frames in a row, the number
 *   of frames in the longest run
 * @property {boolean} takesEmpty whether samples without a stack count
 *
 * @typedef {TreeShape & {own: Float64Array, total: Float64Array, count: Float64Array}} Tree own: weight of the node
 *   itself; total: weight including all nodes below; count: samples including all nodes below
 */

/** Builds the shape of a tree. Each node has at most one child per group. */
class ShapeBuilder {
  #length = 1;
  #parent;
  #group;
  /** Maps parent and group to a node: an open hash table, at most half full. 0 is a free slot. */
  #table;

  /** @param {number} nodes the number of nodes in the profile; most trees have about as many */
  constructor(nodes) {
    const room = 2 ** Math.ceil(Math.log2(nodes + 2));
    [this.#parent, this.#group, this.#table] = [room, room, 2 * room].map((length) => new Int32Array(length));
    this.place = new Int32Array(nodes).fill(-1);
    this.runs = new Map();
    this.#parent[0] = this.#group[0] = -1;
  }

  /** The child of `parent` for this group. It is added if necessary. */
  child(parent, group) {
    const table = this.#table;
    const parents = this.#parent;
    const groups = this.#group;
    // The length of the table is a power of two, so `& mask` is the remainder of a division by the length.
    const mask = table.length - 1;
    // The child is in the slot that its hash selects, or in one of the next slots before a free one.
    let slot = hashOfChild(parent, group) & mask;
    for (let node = table[slot]; node !== 0; node = table[slot]) {
      if (parents[node] === parent && groups[node] === group) return node;
      slot = (slot + 1) & mask;
    }
    const node = this.#length++;
    parents[node] = parent;
    groups[node] = group;
    table[slot] = node;
    if (this.#length === parents.length) this.#grow();
    return node;
  }

  /** States that a tree node stands for this many frames in a row. The longest run of the node is kept. */
  addRun(node, frames) {
    if (frames > 1) this.runs.set(node, Math.max(frames, this.runs.get(node) ?? 0));
  }

  /** Doubles the room for nodes, and puts all of them into a hash table of twice the size. */
  #grow() {
    this.#parent = enlarged(this.#parent);
    this.#group = enlarged(this.#group);
    const mask = this.#table.length * 2 - 1;
    const table = new Int32Array(mask + 1);
    for (let node = 1; node < this.#length; node++) {
      let slot = hashOfChild(this.#parent[node], this.#group[node]) & mask;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = node;
    }
    this.#table = table;
  }

  /** Returns the finished shape. `rank` has the position of each group among siblings; see `TreeShape` for the other
   * parameters. @returns {TreeShape} */
  finish({ rank }, takesEmpty, at = null) {
    const length = this.#length;
    const [parent, group] = [this.#parent.subarray(0, length), this.#group.subarray(0, length)];
    return withLinks({ length, parent, group, place: this.place, at, runs: this.runs, takesEmpty }, rank);
  }
}

/** Completes a shape that has parents: adds depths, and links to children in the order of their groups' ranks.
 * @returns {TreeShape} */
export function withLinks(shape, rank) {
  const { length, parent } = shape;
  const depth = new Int32Array(length);
  const [first, next] = [new Int32Array(length).fill(-1), new Int32Array(length).fill(-1)];
  for (let node = 1; node < length; node++) depth[node] = depth[parent[node]] + 1;
  const order = nodesByRank(shape, rank);
  // Each node is put in front of its parent's list. Going backward leaves the children in the order of names.
  for (let index = order.length - 1; index >= 0; index--) {
    const node = order[index];
    next[node] = first[parent[node]];
    first[parent[node]] = node;
  }
  return { ...shape, depth, first, next };
}

/** All nodes except the root, sorted by the ranks of their groups, then by index. */
function nodesByRank({ length, group }, rank) {
  // A counting sort: first count the nodes of each rank, then add up where the nodes of each rank start in `order`.
  const starts = new Uint32Array(rank.length + 1), order = new Uint32Array(length - 1);
  for (let node = 1; node < length; node++) starts[rank[group[node]] + 1]++;
  for (let index = 1; index < starts.length; index++) starts[index] += starts[index - 1];
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

/** Adds the weights of the selected samples to a shape. @returns {Tree} */
export function weighed(shape, selection, arrays = new SumArrays()) {
  const own = sumsByPlace(shape, selection.own, selection.empty, arrays.take("own", shape.length));
  const total = arrays.take("total", shape.length);
  total.set(own);
  withBelow(shape, total);
  let count = null;
  return {
    ...shape, own, total,
    // Counts are rarely used, so they are not computed while a brush moves.
    get count() {
      return (count ??= withBelow(shape, sumsByPlace(shape, selection.ownCount, selection.emptyCount, new Float64Array(shape.length))));
    },
  };
}

function sumsByPlace({ place, takesEmpty }, amounts, empty, sums) {
  for (let node = 0; node < place.length; node++) if (place[node] >= 0) sums[place[node]] += amounts[node];
  // Samples without a stack count for the root.
  if (takesEmpty) sums[0] += empty;
  return sums;
}

/** Adds the sums of all nodes to their ancestors. */
function withBelow({ length, parent }, sums) {
  for (let node = length - 1; node > 0; node--) sums[parent[node]] += sums[node];
  return sums;
}

/** The children of a node that have any weight, the heaviest first, then by index. */
export function childrenByWeight(tree, node) {
  const children = [];
  for (let child = tree.first[node]; child >= 0; child = tree.next[child]) {
    if (tree.total[child] > 0) children.push(child);
  }
  return children.sort((a, b) => tree.total[b] - tree.total[a] || a - b);
}

/**
 * What is shown of the profile's nodes. Unless `joinsRuns` is false, equal frames without a name that follow each other
 * are joined.
 * @returns {{group: Int32Array, run: Int32Array}} group: for each node of the profile, the group that is shown for it,
 *   or -1 if it is hidden or merged into its caller; run: for a node without a name, its position in the run of equal
 *   frames that it belongs to, counted from 1 at the outermost frame, into which all others are merged; for other
 *   nodes 0
 */
export function shownNodes(profile, groups, state, joinsRuns = true) {
  const byFunction = new Int32Array(profile.functionCount), isUnnamed = new Uint8Array(profile.functionCount);
  // What the user has hidden.
  const [modules, categories, functions] =
    [state.hiddenModules, state.hiddenCategories, state.hiddenFunctions].map((list) => new Set(list));
  for (let number = 0; number < byFunction.length; number++) {
    const { module, category, name } = profile.functions;
    const isHidden = modules.has(module[number]) || categories.has(category[number])
      || functions.has(groups.first[groups.of[number]]);
    byFunction[number] = isHidden ? -1 : groups.of[number];
    isUnnamed[number] = joinsRuns && !isHidden && isUnnamedFunction(name[number]) ? 1 : 0;
  }
  const { nodeFunction, nodeParent } = profile;
  const [shown, run] = [new Int32Array(profile.nodeCount), new Int32Array(profile.nodeCount)];
  for (let node = 0; node < shown.length; node++) {
    const number = nodeFunction[node], group = byFunction[number];
    const parent = nodeParent[node];
    shown[node] = group;
    if (isUnnamed[number]) {
      const before = nearestFrame(nodeParent, shown, run, parent);
      // Like the frame before it, this one has no name and belongs to the same group: it joins that frame's run.
      const isSame = before >= 0 && run[before] > 0 && byFunction[nodeFunction[before]] === group;
      run[node] = isSame ? run[before] + 1 : 1;
      if (isSame) shown[node] = -1;
    } else if (state.mergeRecursion && parent >= 0 && group >= 0 && isGroupAbove(profile, shown, parent, group)) {
      // With merged recursion, a function's direct calls to itself are not shown.
      shown[node] = -1;
    }
  }
  return { group: shown, run };
}

/** The nearest node, from `node` upwards, that is visible or part of a run; −1 if there is none. */
function nearestFrame(nodeParent, shown, run, node) {
  while (node >= 0 && shown[node] < 0 && run[node] === 0) node = nodeParent[node];
  return node;
}

/** True if the nearest visible node, from `node` upwards, belongs to this group. */
function isGroupAbove({ nodeParent }, shown, node, group) {
  for (; node >= 0; node = nodeParent[node]) {
    // Merged nodes are invisible too, but they are always below a node of the same group.
    if (shown[node] >= 0) return shown[node] === group;
  }
  return false;
}

/** For each node, whether this group is visible on its stack. */
function through(profile, shown, group) {
  const marked = new Uint8Array(profile.nodeCount);
  for (let node = 0; node < marked.length; node++) {
    const parent = profile.nodeParent[node];
    marked[node] = shown[node] === group || (parent >= 0 && marked[parent]) ? 1 : 0;
  }
  return marked;
}

/**
 * The call tree: stacks merged from their roots. With a focus, only samples whose stack contains the focused function
 * count. Unless `joinsRuns` is false, equal frames without a name that follow each other share a tree node (see
 * `shownNodes`).
 */
export function callTreeShape(profile, groups, state, joinsRuns = true) {
  const { group: shown, run } = shownNodes(profile, groups, state, joinsRuns);
  const inside = state.focus === null ? null : through(profile, shown, groups.of[state.focus]);
  const { nodeParent, nodeCount } = profile;
  const builder = new ShapeBuilder(nodeCount);
  // For each node of the profile, its tree node. A caller has a lower index than its callees, so the caller's tree node
  // is known first.
  const at = new Int32Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const above = nodeParent[node] < 0 ? 0 : at[nodeParent[node]];
    // A node that is hidden or merged into its caller has the caller's tree node.
    at[node] = shown[node] < 0 ? above : builder.child(above, shown[node]);
    builder.addRun(at[node], run[node]);
    if (!inside || inside[node]) builder.place[node] = at[node];
  }
  return builder.finish(groups, !inside, at);
}

/** The bottom-up tree: stacks merged from their leaves, with callers below callees. With a focus, only samples whose
 * stack contains the focused function count. `joinsRuns` is that of `shownNodes`. */
export function bottomUpShape(profile, groups, state, joinsRuns = true) {
  const nodes = shownNodes(profile, groups, state, joinsRuns), shown = nodes.group;
  const inside = state.focus === null ? null : through(profile, shown, groups.of[state.focus]);
  const ends = stackEnds(profile);
  const builder = new ShapeBuilder(profile.nodeCount);
  for (let node = 0; node < profile.nodeCount; node++) {
    if (ends[node] && (!inside || inside[node])) builder.place[node] = reversedPath(builder, profile, nodes, node);
  }
  return builder.finish(groups, !inside);
}

/** For each node, whether samples of any event end there. */
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

/** Adds a stack of the profile to a bottom-up tree, from the stack's leaf to its root. Returns the tree node of the
 * outermost frame that is shown. */
function reversedPath(builder, { nodeParent }, { group, run }, node) {
  // `frames` is the number of frames in the current run of unnamed ones; 0 outside of a run.
  let place = 0, frames = 0;
  for (let up = node; up >= 0; up = nodeParent[up]) {
    // The innermost frame of a run comes first, and knows the length of the run.
    frames = Math.max(frames, run[up]);
    if (group[up] < 0) continue;
    place = builder.child(place, group[up]);
    builder.addRun(place, frames);
    frames = 0;
  }
  return place;
}

/** The callees of a function. All outermost calls of the function are merged to one node, which is the root's only
 * child. Recursive calls are below it. */
export function calleesShape(profile, groups, state, number, joinsRuns = true) {
  const { group: shown, run } = shownNodes(profile, groups, state, joinsRuns);
  const group = groups.of[number];
  const builder = new ShapeBuilder(profile.nodeCount);
  const { place } = builder;
  for (let node = 0; node < place.length; node++) {
    const parent = profile.nodeParent[node];
    const above = parent < 0 ? -1 : place[parent];
    // Outside of the function, only a call of the function itself gets a place. Inside, all nodes do.
    if (above < 0) place[node] = shown[node] === group ? builder.child(0, group) : -1;
    else place[node] = shown[node] < 0 ? above : builder.child(above, shown[node]);
    if (place[node] >= 0) builder.addRun(place[node], run[node]);
  }
  return builder.finish(groups, false, place);
}

/** The callers of a function. The function is the root's only child, and its callers are below it. Each sample counts
 * once, for the outermost call of the function. */
export function callersShape(profile, groups, state, number) {
  const nodes = shownNodes(profile, groups, state), shown = nodes.group;
  const group = groups.of[number];
  const inside = through(profile, shown, group);
  const builder = new ShapeBuilder(profile.nodeCount);
  const { place } = builder;
  for (let node = 0; node < place.length; node++) {
    if (!inside[node]) continue;
    const parent = profile.nodeParent[node];
    // The outermost call of the function: the tree gets the path of its callers, the innermost first. What this call
    // calls has the same place.
    place[node] = parent >= 0 && inside[parent] ? place[parent] : reversedPath(builder, profile, nodes, node);
    if (groups.of[profile.nodeFunction[node]] === group) builder.addRun(builder.child(0, group), nodes.run[node]);
  }
  return builder.finish(groups, false);
}
