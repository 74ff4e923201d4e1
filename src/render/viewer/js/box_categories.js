// How much of each box ran in which category. A function may run in several tiers; if these are merged into one box,
// the box belongs to several categories.

/** The `Members` of each tree, by the tree's `at` (see `TreeShape`). They depend only on the shape of the tree, so they
 * stay valid while the user drags a time range. */
const MEMBERS = new WeakMap();

/** Finds the nodes of the profile that are in each box of a tree (its members). Most boxes have a single member; only
 * for the others we need to know how much each member weighs. */
class Members {
  /** `at` is that of the tree: for each node of the profile, its box in the tree. */
  constructor({ nodeParent, nodeCount }, { at, length }) {
    /** For each box of the tree: the number of its members, and one of them. */
    this.count = new Int32Array(length);
    this.one = new Int32Array(length);
    for (let node = 0; node < nodeCount; node++) {
      // Node 0 of the tree is the root, which has no members. If nodes of the same box are above each other, only the
      // outermost one is a member.
      if (at[node] <= 0 || (nodeParent[node] >= 0 && at[nodeParent[node]] === at[node])) continue;
      this.count[at[node]]++;
      this.one[at[node]] = node;
    }
    this.findShared(nodeParent, nodeCount, at);
  }

  /**
   * Lists the nodes whose weight differs from that of their box, callers before callees: members of boxes with several
   * members, and nodes that aren't members. `shared` has these nodes, and `number` the index of each node in `shared`,
   * or -1. `below` has all nodes whose caller is in `shared`. `lists` has the members of each box with several members.
   */
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
      // The only member of a box weighs as much as the box.
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

/** The categories of boxes, by tree. */
const CATEGORIES = new WeakMap();

/** The categories of a tree's boxes. Cached, because several parts of the page ask for them. */
export function categoriesOf(page, tree) {
  if (!CATEGORIES.has(tree)) {
    const isKnownByBox = tree.at !== null;
    CATEGORIES.set(tree, isKnownByBox ? new BoxCategories(page, tree) : new FunctionCategories(page, tree));
  }
  return CATEGORIES.get(tree);
}

/** The categories of boxes in trees where only the function of a box is known: bottom-up trees, and trees of recorded
 * calls. A box has the category in which its function has the most self weight. */
class FunctionCategories {
  constructor(page, tree) {
    Object.assign(this, { tree, profile: page.profile, groups: page.groups(), sums: page.sums() });
  }

  /** The self weight of a group by category: [[category, weight]], the heaviest first. */
  ownOf(group) {
    const count = this.profile.categories.length, shares = [];
    for (let category = 0; category < count; category++) {
      const weight = this.sums.shares[group * count + category];
      if (weight > 0) shares.push([category, weight]);
    }
    return shares.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  }

  heaviestOf(node) {
    const group = this.tree.group[node], [heaviest] = this.ownOf(group);
    return heaviest ? heaviest[0] : this.profile.functions.category[this.groups.first[group]];
  }

  /** Always empty: it isn't known how the weight of a caller's box is divided among categories. */
  mixOf() {
    return [];
  }
}

/** The categories of a tree's boxes, from the samples in each box. */
class BoxCategories {
  /** `members` are the nodes in each box, and `weights` the selected weights of some of these (`weightsOfShared`).
   * `known` caches the results of `of`. */
  constructor(page, tree) {
    const { profile } = page, selection = page.selection();
    Object.assign(this, { profile, tree, groups: page.groups() });
    if (!MEMBERS.has(tree.at)) MEMBERS.set(tree.at, new Members(profile, tree));
    this.members = MEMBERS.get(tree.at);
    this.weights = this.weightsOfShared(selection);
    this.known = new Map();
  }

  /** For each node in `shared`, the weight of the samples in it and in the nodes below it. */
  weightsOfShared(selection) {
    const { shared, below, number } = this.members,
      { at, place, total } = this.tree,
      { nodeParent } = this.profile;
    const weights = new Float64Array(shared.length);
    // Samples that don't count have no place (-1).
    shared.forEach((node, index) => {
      if (place[node] >= 0) weights[index] = selection.own[node];
    });
    // Add the weight of each node to its caller's. Going backward, callees come before their callers, so a node's own
    // weight is complete when it is added. A node that isn't in `shared` weighs as much as its box.
    for (let index = below.length - 1; index >= 0; index--) {
      const node = below[index];
      weights[number[nodeParent[node]]] += number[node] >= 0 ? weights[number[node]] : total[at[node]];
    }
    return weights;
  }

  /** The weight by category of a box with several members: [[category, weight]], the heaviest first. */
  of(node) {
    if (!this.known.has(node)) this.known.set(node, this.sumsOf(node));
    return this.known.get(node);
  }

  /** Sums the weights of a box's members by category: [[category, weight]], the heaviest first. */
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

  /** The weight by category of a box with several categories: [[category, weight]]; empty if there is only one. */
  mixOf(node) {
    if (this.members.count[node] < 2) return [];
    const shares = this.of(node);
    return shares.length > 1 ? shares : [];
  }

  /** The heaviest category of a box. If the box has no samples, the category of its function. */
  heaviestOf(node) {
    const count = this.members.count[node];
    if (count === 1) return this.categoryOfMember(this.members.one[node]);
    const heaviest = count > 1 ? this.of(node)[0] : null;
    return heaviest ? heaviest[0] : this.profile.functions.category[this.groups.first[this.tree.group[node]]];
  }
}

/** For each node, the category of its innermost visible frame; −1 if all frames are hidden. Cached by a tree's `at`. */
const SHOWN = new WeakMap();

/** Self weight by category, over a whole call tree. The weight of hidden frames counts for their callers. */
export function ownByCategory(profile, tree, selection) {
  const sums = new Float64Array(profile.categories.length);
  if (!SHOWN.has(tree.at)) SHOWN.set(tree.at, shownCategories(profile, tree));
  const shown = SHOWN.get(tree.at);
  for (let node = 0; node < profile.nodeCount; node++) if (shown[node] >= 0) sums[shown[node]] += selection.own[node];
  return sums;
}

/** For each node, the category of its innermost visible frame; −1 if all frames are hidden. */
function shownCategories({ nodeParent, nodeFunction, functions, nodeCount }, tree) {
  const shown = new Int8Array(nodeCount).fill(-1);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node],
      above = parent < 0 ? 0 : tree.at[parent];
    // A node with another box than its caller is visible. A hidden node has its caller's box and its caller's category.
    if (tree.at[node] !== above) shown[node] = functions.category[nodeFunction[node]];
    else if (parent >= 0) shown[node] = shown[parent];
  }
  // Leave out nodes whose samples don't count.
  for (let node = 0; node < nodeCount; node++) if (tree.place[node] < 0) shown[node] = -1;
  return shown;
}
