// Sums by function, for tables: self and total.

import { CUT_STACK } from "./flame_picture.js";
import { grouped } from "./format.js";

/** True for a name that stands for all functions without a name, such as `[libc.so.6]`. */
export function isUnnamedFunction(name) {
  return name.startsWith("[") && name.endsWith("]") && name !== CUT_STACK;
}

/** A function's name for a box or row of a tree; one that stands for several unnamed frames in a row says how many. */
export function nameWithRun(name, frames = 1) {
  return frames > 1 ? `${name} (up to ${grouped(frames)} frames)` : name;
}

/**
 * Groups functions. With `mergeTiers`, functions with the same name and module are one group, whichever tier made their
 * code; otherwise each function is a group of its own.
 * @returns {{count: number, of: Uint32Array, first: Uint32Array, rank: Int32Array}} of: the group of each function;
 *   first: the first function of each group; rank: the position of each group among siblings in trees
 */
export function functionGroups(profile, mergeTiers) {
  const { name, identity } = profile.functions;
  const of = new Uint32Array(name.length);
  const first = [];
  const numbers = new Map();
  for (let number = 0; number < name.length; number++) {
    const key = mergeTiers ? identity[number] : number;
    let group = numbers.get(key);
    if (group === undefined) {
      group = first.length;
      first.push(number);
      numbers.set(key, group);
    }
    of[number] = group;
  }
  return { count: first.length, of, first: Uint32Array.from(first), rank: ranksOf(first, name) };
}

/** The position of each group among siblings in a flame graph: by name, as `jitgraft flamegraph` draws them. Truncated
 * stacks, which have no root, come last. */
function ranksOf(first, name) {
  const nameOf = (group) => name[first[group]];
  const isCut = (group) => nameOf(group) === CUT_STACK;
  const compare = (a, b) => {
    if (isCut(a) !== isCut(b)) return isCut(a) ? 1 : -1;
    if (nameOf(a) !== nameOf(b)) return nameOf(a) < nameOf(b) ? -1 : 1;
    return a - b;
  };
  const ranks = new Int32Array(first.length);
  Array.from(first, (_, group) => group).sort(compare).forEach((group, rank) => (ranks[group] = rank));
  return ranks;
}

/**
 * Self and total of each group, and the part of self that ran in each category.
 * @returns {{self, selfCount, total, totalCount: Float64Array, shares: Float64Array}} self and total are in the
 *   selection's unit, the counts in samples; shares: [group * categories + category]
 */
export function functionSums(profile, groups, selection) {
  const { nodeParent, nodeFunction, nodeCount, functions, categories } = profile;
  const { own, ownCount } = selection;
  const [self, selfCount, total, totalCount] = [0, 0, 0, 0].map(() => new Float64Array(groups.count));
  const shares = new Float64Array(groups.count * categories.length);
  // `below` becomes the sum of each node and everything below it. Callees come after their callers, so going backward,
  // the sum of a node is complete when the node is reached.
  const [below, belowCount] = [own.slice(), ownCount.slice()];
  const { recursive } = walkedNodes(profile, groups);
  for (let node = nodeCount - 1; node >= 0; node--) {
    // In a small selection, most stacks have no samples.
    if (belowCount[node] === 0 && below[node] === 0) continue;
    const number = nodeFunction[node], group = groups.of[number], parent = nodeParent[node];
    if (ownCount[node] > 0 || own[node] > 0) {
      self[group] += own[node];
      selfCount[group] += ownCount[node];
      shares[group * categories.length + functions.category[number]] += own[node];
    }
    // If a caller belongs to the same group, the weight already counts there.
    if (recursive[node] === 0) {
      total[group] += below[node];
      totalCount[group] += belowCount[node];
    }
    if (parent >= 0) {
      below[parent] += below[node];
      belowCount[parent] += belowCount[node];
    }
  }
  return { self, selfCount, total, totalCount, shares };
}

/** Results of `walkedNodes` by groups. They depend only on the stacks, not on the selection. */
const WALKED = new WeakMap();

/**
 * Walks along all stacks once.
 * @returns {{recursive: Uint8Array, seen: Float64Array}} recursive: for each node, whether the same group is also among
 *   its callers; seen: for each group and category ([group * categories + category]), how many nodes the walk had
 *   visited before the first one of these. The walk has the order of `jitgraft report`
 */
export function walkedNodes(profile, groups) {
  if (!WALKED.has(groups)) WALKED.set(groups, walkNodes(profile, groups));
  return WALKED.get(groups);
}

/** Computes what `walkedNodes` returns: for each node, whether its group is also among its callers (`recursive`), and
 * for each group and category, when its first node was visited (`seen`). Visits each node before its callees. */
function walkNodes({ nodeParent, nodeFunction, nodeCount, functions, categories }, groups) {
  const { first, next } = childLists(nodeParent);
  const recursive = new Uint8Array(nodeCount);
  const seen = new Float64Array(groups.count * categories.length).fill(Infinity);
  // How often each group is on the current stack.
  const onStack = new Uint32Array(groups.count);
  // How many nodes have been visited.
  let entered = 0;
  // Start at the first root: roots are listed as the children of an extra node with the index `nodeCount`. Go to the
  // first child, then to the next sibling. Go up after the last sibling.
  let node = nodeCount > 0 ? first[nodeCount] : -1;
  while (node >= 0) {
    const group = groups.of[nodeFunction[node]], index = group * categories.length + functions.category[nodeFunction[node]];
    recursive[node] = onStack[group] > 0 ? 1 : 0;
    onStack[group]++;
    seen[index] = Math.min(seen[index], entered);
    entered++;
    if (first[node] >= 0) {
      node = first[node];
      continue;
    }
    // The node has no callees. Leave it, and its callers as long as they have no further sibling.
    while (node >= 0) {
      onStack[groups.of[nodeFunction[node]]]--;
      if (next[node] >= 0) {
        node = next[node];
        break;
      }
      node = nodeParent[node];
    }
  }
  return { recursive, seen };
}

/** The children of each node as linked lists. Roots are the children of an extra node after the last one. */
function childLists(nodeParent) {
  const count = nodeParent.length;
  const [first, next] = [new Int32Array(count + 1).fill(-1), new Int32Array(count).fill(-1)];
  // Each child is put in front of the list. Going backward leaves the children in ascending order.
  for (let node = count - 1; node >= 0; node--) {
    const parent = nodeParent[node] < 0 ? count : nodeParent[node];
    next[node] = first[parent];
    first[parent] = node;
  }
  return { first, next };
}

/** What ran while a group of functions was on the stack: the self weight of each group there, including that group
 * itself.
 * @returns {Map<number, number>} weights by group */
export function ownBelow({ nodeParent, nodeFunction, nodeCount }, groups, own, group) {
  const [isBelow, sums] = [new Uint8Array(nodeCount), new Map()];
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node], groupOfNode = groups.of[nodeFunction[node]];
    isBelow[node] = groupOfNode === group || (parent >= 0 && isBelow[parent]) ? 1 : 0;
    if (isBelow[node] && own[node] > 0) sums.set(groupOfNode, (sums.get(groupOfNode) ?? 0) + own[node]);
  }
  return sums;
}
