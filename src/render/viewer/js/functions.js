// Sums by function, for tables: what ran itself, and what was on a stack.

/** The name that stands for the missing outer part of a stack. */
const CUT_STACK = "[truncated]";

/**
 * The functions that are one: those of equal name and module, whatever made their code, or each by itself.
 * @returns {{count: number, of: Uint32Array, first: Uint32Array, rank: Int32Array}} of: group by function; first: a function
 *   of each group; rank: its place among siblings
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

/** By group, its place in the order of siblings in a flame graph: by name, as `jitgraft flamegraph` draws them; stacks
 * without their outer part, which have no root, come last. */
function ranksOf(first, name) {
  const isCut = (group) => name[first[group]] === CUT_STACK;
  const compare = (a, b) => isCut(a) - isCut(b) || (name[first[a]] < name[first[b]] ? -1 : name[first[a]] > name[first[b]] ? 1 : a - b);
  const ranks = new Int32Array(first.length);
  Array.from(first, (_, group) => group).sort(compare).forEach((group, rank) => (ranks[group] = rank));
  return ranks;
}

/**
 * Self and total of each group, in the unit of the selection, and how much of self each category has.
 * @returns {{self, selfCount, total, totalCount: Float64Array, shares: Float64Array}} shares: [group * categories + category]
 */
export function functionSums(profile, groups, selection) {
  const { nodeParent, nodeFunction, nodeCount, functions, categories } = profile;
  const { own, ownCount } = selection;
  const [self, selfCount, total, totalCount] = [0, 0, 0, 0].map(() => new Float64Array(groups.count));
  const shares = new Float64Array(groups.count * categories.length);
  const [below, belowCount] = [own.slice(), ownCount.slice()];
  const { recursive } = walkedNodes(profile, groups);
  for (let node = nodeCount - 1; node >= 0; node--) {
    // Most stacks have no samples in a small selection.
    if (belowCount[node] === 0 && below[node] === 0) continue;
    const number = nodeFunction[node], group = groups.of[number], parent = nodeParent[node];
    if (ownCount[node] > 0 || own[node] > 0) {
      self[group] += own[node];
      selfCount[group] += ownCount[node];
      shares[group * categories.length + functions.category[number]] += own[node];
    }
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

/** The part that follows from the stacks alone, by the groups: it is found once. */
const WALKED = new WeakMap();

/**
 * The result of one walk along all stacks.
 * @returns {{recursive: Uint8Array, seen: Float64Array}} recursive: by node, whether its group is on its stack already; seen:
 *   [group * categories + category] when the walk came to such a function first, in the order in which report's does
 */
export function walkedNodes(profile, groups) {
  if (!WALKED.has(groups)) WALKED.set(groups, walkNodes(profile, groups));
  return WALKED.get(groups);
}

function walkNodes({ nodeParent, nodeFunction, nodeCount, functions, categories }, groups) {
  const { first, next } = childLists(nodeParent);
  const recursive = new Uint8Array(nodeCount);
  const seen = new Float64Array(groups.count * categories.length).fill(Infinity);
  const onStack = new Uint32Array(groups.count);
  let entered = 0;
  // Down to the first child, along its brothers, and up again if absent left.
  let node = nodeCount > 0 ? first[nodeCount] : -1;
  while (node >= 0) {
    const group = groups.of[nodeFunction[node]], sort = group * categories.length + functions.category[nodeFunction[node]];
    recursive[node] = onStack[group]++ > 0 ? 1 : 0;
    seen[sort] = Math.min(seen[sort], entered++);
    if (first[node] >= 0) {
      node = first[node];
      continue;
    }
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

/** The children of each node as lists; those without a parent are the children of the number behind the last. */
function childLists(nodeParent) {
  const count = nodeParent.length;
  const [first, next] = [new Int32Array(count + 1).fill(-1), new Int32Array(count).fill(-1)];
  for (let node = count - 1; node >= 0; node--) {
    const parent = nodeParent[node] < 0 ? count : nodeParent[node];
    next[node] = first[parent];
    first[parent] = node;
  }
  return { first, next };
}

/** By group, what ran itself in the stacks below a group. */
export function ownBelow({ nodeParent, nodeFunction, nodeCount }, groups, own, group) {
  const [isBelow, sums] = [new Uint8Array(nodeCount), new Map()];
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node], of = groups.of[nodeFunction[node]];
    isBelow[node] = of === group || (parent >= 0 && isBelow[parent]) ? 1 : 0;
    if (isBelow[node] && own[node] > 0) sums.set(of, (sums.get(of) ?? 0) + own[node]);
  }
  return sums;
}
