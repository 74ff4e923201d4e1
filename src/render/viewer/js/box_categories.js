// The part of each box of a tree ran in which category: the tiers of one function that are one box, which is of
// several.

/** Facts that follow from a tree's shape alone, by its `at`: a brush that moves finds them. */
const MEMBERS = new WeakMap();

/** The nodes of the profile that are in each node of a tree. Most are there alone: only of the others it must be known
 * how much each weighs. */
class Members {
  constructor({ nodeParent, nodeCount }, { at, length }) {
    /** By node of the tree: how many, and one of them. */
    this.count = new Int32Array(length);
    this.one = new Int32Array(length);
    for (let node = 0; node < nodeCount; node++) {
      // Of nodes one below the other in the same box only the outermost is a member.
      if (at[node] <= 0 || (nodeParent[node] >= 0 && at[nodeParent[node]] === at[node])) continue;
      this.count[at[node]]++;
      this.one[at[node]] = node;
    }
    this.findShared(nodeParent, nodeCount, at);
  }

  /** Those that share their box, or are not members, from the outermost on: `shared`, with numbers in `number`; `below`
   * are their children, `lists` the members of each box that has several. */
  findShared(nodeParent, nodeCount, at) {
    const shared = [],
      below = [];
    this.lists = new Map();
    this.number = new Int32Array(nodeCount).fill(-1);
    for (let node = 0; node < nodeCount; node++) {
      const parent = nodeParent[node],
        box = at[node];
      if (parent >= 0 && this.number[parent] >= 0) below.push(node);
      const isMember = box > 0 && (parent < 0 || at[parent] !== box);
      if (isMember && this.count[box] === 1) continue;
      this.number[node] = shared.length;
      shared.push(node);
      if (!isMember) continue;
      if (this.lists.has(box)) this.lists.get(box).push(node);
      else this.lists.set(box, [node]);
    }
    [this.shared, this.below] = [Int32Array.from(shared), Int32Array.from(below)];
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

  /** By number of a shared node, the weight of the samples in it and below. */
  weightsOfShared(selection) {
    const { shared, below, number } = this.members,
      { at, place, total } = this.tree,
      { nodeParent } = this.profile;
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
    const { members, weights } = this,
      sums = new Map();
    for (const member of members.lists.get(node) ?? []) {
      const weight = weights[members.number[member]],
        category = this.categoryOfMember(member);
      if (weight > 0) sums.set(category, (sums.get(category) ?? 0) + weight);
    }
    return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  }

  categoryOfMember(member) {
    return this.profile.functions.category[this.profile.nodeFunction[member]];
  }

  /** The categories of a box that is of several; else none. */
  mixOf(node) {
    if (this.members.count[node] < 2) return [];
    const shares = this.of(node);
    return shares.length > 1 ? shares : [];
  }

  /** The heaviest category of a node; `otherwise` where none is known. */
  heaviestOf(node, otherwise) {
    const count = this.members.count[node];
    if (count === 1) return this.categoryOfMember(this.members.one[node]);
    return count === 0 ? otherwise : (this.of(node)[0]?.[0] ?? otherwise);
  }
}

/** The shown end of a sample: the category of its innermost frame that is shown, by node; −1: none is. */
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
    const parent = nodeParent[node],
      above = parent < 0 ? 0 : tree.at[parent];
    if (tree.at[node] !== above) shown[node] = functions.category[nodeFunction[node]];
    else if (parent >= 0) shown[node] = shown[parent];
  }
  for (let node = 0; node < nodeCount; node++) if (tree.place[node] < 0) shown[node] = -1;
  return shown;
}
