// How much of each box of a tree ran in which category: the tiers of one function are one box, which is of several.

/** What follows from a tree's shape alone, by its `at`: a brush that moves finds it. */
const MEMBERS = new WeakMap();

/** The nodes of the profile that are in each node of a tree. Most are there alone: only of the others it must be known
 * how much each weighs. */
class Members {
  constructor({ nodeParent, nodeCount }, tree) {
    const { at } = tree;
    /** Of nodes one below the other in the same box only the outermost counts. */
    this.isMember = (node) => at[node] > 0 && (nodeParent[node] < 0 || at[nodeParent[node]] !== at[node]);
    this.list(nodeCount, tree);
    this.findShared(nodeParent, nodeCount, at);
  }

  /** Those of a node of the tree are in `nodes` from `first[node]` on. */
  list(nodeCount, tree) {
    const { at } = tree, first = new Int32Array(tree.length + 1);
    for (let node = 0; node < nodeCount; node++) if (this.isMember(node)) first[at[node] + 1]++;
    for (let node = 0; node < tree.length; node++) first[node + 1] += first[node];
    const next = first.slice();
    this.nodes = new Int32Array(first[tree.length]);
    for (let node = 0; node < nodeCount; node++) if (this.isMember(node)) this.nodes[next[at[node]]++] = node;
    this.first = first;
  }

  /** Those that share their box, or are no members, from the outermost on: `shared`, with numbers in `number`; `below`
   * are their children. */
  findShared(nodeParent, nodeCount, at) {
    const shared = [], below = [];
    this.number = new Int32Array(nodeCount).fill(-1);
    for (let node = 0; node < nodeCount; node++) {
      if (nodeParent[node] >= 0 && this.number[nodeParent[node]] >= 0) below.push(node);
      if (this.isMember(node) && this.count(at[node]) === 1) continue;
      this.number[node] = shared.length;
      shared.push(node);
    }
    [this.shared, this.below] = [Int32Array.from(shared), Int32Array.from(below)];
  }

  count(treeNode) {
    return this.first[treeNode + 1] - this.first[treeNode];
  }
}

/** The categories of a tree's boxes. */
export class BoxCategories {
  constructor(profile, tree, selection) {
    Object.assign(this, { profile, tree });
    if (!MEMBERS.has(tree.at)) MEMBERS.set(tree.at, new Members(profile, tree));
    this.members = MEMBERS.get(tree.at);
    this.weights = this.weightsOfShared(selection);
    this.known = new Map();
  }

  /** By number of a shared node, the weight of what counts in it and below. */
  weightsOfShared(selection) {
    const { shared, below, number } = this.members, { at, place, total } = this.tree, { nodeParent } = this.profile;
    const weights = new Float64Array(shared.length);
    shared.forEach((node, at) => {
      if (place[node] >= 0) weights[at] = selection.own[node];
    });
    for (let index = below.length - 1; index >= 0; index--) {
      const node = below[index];
      weights[number[nodeParent[node]]] += number[node] >= 0 ? weights[number[node]] : total[at[node]];
    }
    return weights;
  }

  /** [[category, weight]] of a box of several members, the heaviest first. */
  of(node) {
    if (!this.known.has(node)) this.known.set(node, this.sumsOf(node));
    return this.known.get(node);
  }

  sumsOf(node) {
    const { members, weights } = this, sums = new Map();
    for (let at = members.first[node]; at < members.first[node + 1]; at++) {
      const weight = weights[members.number[members.nodes[at]]], category = this.categoryOfMember(at);
      if (weight > 0) sums.set(category, (sums.get(category) ?? 0) + weight);
    }
    return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  }

  categoryOfMember(at) {
    const { profile, members } = this;
    return profile.functions.category[profile.nodeFunction[members.nodes[at]]];
  }

  /** The categories of a box that is of several; else none. */
  mixOf(node) {
    if (this.members.count(node) < 2) return [];
    const shares = this.of(node);
    return shares.length > 1 ? shares : [];
  }

  /** The heaviest category of a node; `otherwise` where none is known. */
  heaviestOf(node, otherwise) {
    const count = this.members.count(node);
    if (count === 1) return this.categoryOfMember(this.members.first[node]);
    return count === 0 ? otherwise : (this.of(node)[0]?.[0] ?? otherwise);
  }
}

/** What is told of a sample's end: the category of its innermost frame that is shown, by node; −1: none is. */
const SHOWN = new WeakMap();

/** By category, what ran itself in the stacks of a tree of calls; what is hidden counts for its caller. */
export function ownByCategory(profile, tree, selection) {
  const sums = new Float64Array(profile.categories.length);
  if (!SHOWN.has(tree.at)) SHOWN.set(tree.at, shownCategories(profile, tree));
  const shown = SHOWN.get(tree.at);
  for (let node = 0; node < profile.nodeCount; node++) if (shown[node] >= 0) sums[shown[node]] += selection.own[node];
  return sums;
}

function shownCategories({ nodeParent, nodeFunction, functions, nodeCount }, tree) {
  const shown = new Int8Array(nodeCount).fill(-1);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node], above = parent < 0 ? 0 : tree.at[parent];
    if (tree.at[node] !== above) shown[node] = functions.category[nodeFunction[node]];
    else if (parent >= 0) shown[node] = shown[parent];
  }
  for (let node = 0; node < nodeCount; node++) if (tree.place[node] < 0) shown[node] = -1;
  return shown;
}
