// Sums by function, for tables: what ran itself, and what was on a stack.

/**
 * Which functions are told as one: those of equal name and module, whatever made their code, or each by itself.
 * @returns {{count: number, of: Uint32Array, first: Uint32Array}} of: group by function; first: a function of each group
 */
export function functionGroups(profile, mergeTiers) {
  const { name, module } = profile.functions;
  const of = new Uint32Array(name.length);
  const first = [];
  const numbers = new Map();
  for (let number = 0; number < name.length; number++) {
    const key = mergeTiers ? `${module[number]}\n${name[number]}` : number;
    let group = numbers.get(key);
    if (group === undefined) {
      group = first.length;
      first.push(number);
      numbers.set(key, group);
    }
    of[number] = group;
  }
  return { count: first.length, of, first: Uint32Array.from(first) };
}

/**
 * Self and total of each group, in the unit of the selection, and how much of self each category has.
 * @returns {{self, selfCount, total, totalCount: Float64Array, shares: Float64Array}} shares: [group * categories + category]
 */
export function functionSums(profile, groups, selection) {
  const { nodeParent, nodeFunction, nodeCount, functions, categories } = profile;
  const [self, selfCount, total, totalCount] = [0, 0, 0, 0].map(() => new Float64Array(groups.count));
  const shares = new Float64Array(groups.count * categories.length);
  const [below, belowCount] = [selection.own.slice(), selection.ownCount.slice()];
  for (let node = nodeCount - 1; node >= 0; node--) {
    const group = groups.of[nodeFunction[node]];
    self[group] += selection.own[node];
    selfCount[group] += selection.ownCount[node];
    shares[group * categories.length + functions.category[nodeFunction[node]]] += selection.own[node];
    if (nodeParent[node] >= 0) {
      below[nodeParent[node]] += below[node];
      belowCount[nodeParent[node]] += belowCount[node];
    }
  }
  const recursive = recursiveNodes(profile, groups);
  for (let node = 0; node < nodeCount; node++) {
    if (recursive[node]) continue;
    const group = groups.of[nodeFunction[node]];
    total[group] += below[node];
    totalCount[group] += belowCount[node];
  }
  return { self, selfCount, total, totalCount, shares };
}

const RECURSIVE = new WeakMap();

/** By node, whether its group is on its stack already. It depends on the stacks alone, so it is found once. */
export function recursiveNodes(profile, groups) {
  if (RECURSIVE.has(groups)) return RECURSIVE.get(groups);
  const { nodeParent, nodeFunction, nodeCount } = profile;
  const { first, next } = childLists(nodeParent);
  const recursive = new Uint8Array(nodeCount);
  const onStack = new Uint32Array(groups.count);
  // Down to the first child, along its brothers, and up again when there is none left.
  let node = first[nodeCount];
  while (node >= 0 && nodeCount > 0) {
    const group = groups.of[nodeFunction[node]];
    recursive[node] = onStack[group]++ > 0 ? 1 : 0;
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
  RECURSIVE.set(groups, recursive);
  return recursive;
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
