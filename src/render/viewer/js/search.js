// Searching for functions: part of a name, upper and lower case alike, or a regular expression.

/** The result of a search: {wrong: whether the text is not a regular expression, functions: 1 for each function found,
 * count}. `null` if nothing is searched for. */
export function findFunctions(names, text, isRegex) {
  if (!text) return null;
  const matches = matcherOf(text, isRegex);
  const functions = new Uint8Array(names.length);
  let count = 0;
  if (matches) {
    for (let at = 0; at < names.length; at++) {
      if (!matches(names[at])) continue;
      functions[at] = 1;
      count++;
    }
  }
  return { wrong: !matches, functions, count };
}

/** A test of names for a text or a regular expression; null if it is not one. */
export function matcherOf(text, isRegex) {
  if (!isRegex) {
    const lower = text.toLowerCase();
    return (name) => name.toLowerCase().includes(lower);
  }
  try {
    const pattern = new RegExp(text, "i");
    return (name) => pattern.test(name);
  } catch {
    return null;
  }
}

/** By group, whether one of its functions is among those. */
export function groupsFound(groups, functions) {
  const found = new Uint8Array(groups.count);
  for (let number = 0; number < functions.length; number++) if (functions[number]) found[groups.of[number]] = 1;
  return found;
}

/** The part of a tree that is in the groups found: a box inside of one that was found already counts once. It is the
 * weight of all stacks that have such a function, drawn or not. */
export function foundTotal(tree, found) {
  const isInside = new Uint8Array(tree.length);
  let sum = 0;
  for (let node = 1; node < tree.length; node++) {
    if (!isInside[tree.parent[node]] && !found[tree.group[node]]) continue;
    isInside[node] = 1;
    sum += tree.own[node];
  }
  return sum;
}
