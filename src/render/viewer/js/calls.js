// Calls as recorded in the input, for the tables of functions, callers and callees. Stacks built from such calls are
// only an estimate.

import { withLinks } from "./tree.js";

/**
 * The recorded calls of an event, by group of functions. `tracks` tells for each track whether it counts; null means
 * that all do.
 * @returns {{self, total, withCalls: Float64Array, named: Uint8Array, edges: Array, rank} | null} for each group, self:
 *   its own cost; total: the cost of the calls to it; withCalls: its own cost and that of the calls it makes; named:
 *   whether the input contains it. edges: {caller, callee, count, cost}. null if the input has no calls
 */
export function statedCalls(profile, groups, event, tracks) {
  const stated = profile.calls(event);
  if (!stated) return null;
  const [self, total, withCalls] = [0, 0, 0].map(() => new Float64Array(groups.count));
  const named = new Uint8Array(groups.count);
  // Sum by function first, because a group may have several functions: the own cost of each function, the cost of the
  // calls that it makes (`inside`), and the cost of the calls to it (`called`).
  const [own, inside, called] = [0, 0, 0].map(() => new Float64Array(profile.functionCount));
  const isCalled = new Uint8Array(profile.functionCount), functions = new Set(), edges = [];
  stated.function.forEach((number, index) => {
    if (tracks && !tracks[stated.functionTrack[index]]) return;
    functions.add(number);
    own[number] += stated.self[index];
  });
  stated.caller.forEach((caller, index) => {
    if (tracks && !tracks[stated.track[index]]) return;
    const [callee, cost] = [stated.callee[index], stated.cost[index]];
    inside[caller] += cost;
    called[callee] += cost;
    isCalled[callee] = 1;
    edges.push({ caller: groups.of[caller], callee: groups.of[callee], count: stated.count[index], cost });
  });
  for (const number of functions) {
    const group = groups.of[number], all = own[number] + inside[number];
    named[group] = 1;
    self[group] += own[number];
    // Nobody called a function such as `main`. Its total is its own cost and that of its calls.
    total[group] += isCalled[number] ? called[number] : all;
    withCalls[group] += all;
  }
  return { self, total, withCalls, named, edges, rank: groups.rank };
}

/** The sums of `statedCalls`, in the form in which `functionSums` returns those of stacks. The whole cost of a group
 * counts for the category of its first function. */
export function statedSums({ functions, categories }, groups, { self, total }) {
  const shares = new Float64Array(groups.count * categories.length);
  self.forEach((weight, group) => {
    shares[group * categories.length + functions.category[groups.first[group]]] = weight;
  });
  return { self, selfCount: self, total, totalCount: total, shares };
}

/**
 * The callers or callees of a group as a tree with two levels: the group's own box is the root's only child. The input
 * doesn't say in which order the calls happened.
 */
export function callsTree(profile, stated, group, isCallers) {
  // For each other group, the cost of its calls to this group (`isCallers`), or of this group's calls to it.
  const costs = new Map();
  for (const { caller, callee, cost } of stated.edges) {
    const [from, to] = isCallers ? [callee, caller] : [caller, callee];
    if (from === group) costs.set(to, (costs.get(to) ?? 0) + cost);
  }
  const others = [...costs].filter(([, cost]) => cost > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const inside = others.reduce((sum, [, cost]) => sum + cost, 0);
  // The weight of the group's box. Its calls can't weigh more than the box.
  const whole = isCallers ? Math.max(stated.total[group], inside) : stated.withCalls[group];
  // Node 0 is the root, node 1 the group, and all other nodes are its callers or callees. If the group weighs nothing,
  // there is only the root.
  const length = whole > 0 ? others.length + 2 : 1;
  const tree = withLinks({
    length,
    parent: Int32Array.from({ length }, (_, node) => Math.min(node - 1, 1)),
    group: Int32Array.from([-1, group, ...others.map(([other]) => other)].slice(0, length)),
    place: new Int32Array(profile.nodeCount).fill(-1),
    at: null,
    takesEmpty: false,
  }, stated.rank);
  const total = Float64Array.from([whole, whole, ...others.map(([, cost]) => cost)].slice(0, length));
  // The root has no own cost, and the group's is what its calls don't explain.
  const own = total.slice();
  if (length > 1) [own[0], own[1]] = [0, whole - inside];
  return { ...tree, own, total, count: total };
}
