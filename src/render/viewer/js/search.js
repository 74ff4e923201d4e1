// Searches functions by a part of their name, ignoring case, or by a regular expression.

/** Searches names: {wrong: whether the text is an invalid regular expression, functions: 1 for each function that
 * matches, count}. `null` if the text is empty. */
export function findFunctions(names, text, isRegex) {
  if (!text) return null;
  const matches = matcherOf(text, isRegex);
  const functions = new Uint8Array(names.length);
  let count = 0;
  if (matches) {
    for (let number = 0; number < names.length; number++) {
      if (!matches(names[number])) continue;
      functions[number] = 1;
      count++;
    }
  }
  return { wrong: !matches, functions, count };
}

/** Returns a function that tests names for a text or a regular expression; null if the regular expression is
 * invalid. */
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

/** For each group, whether it contains one of these functions. */
export function groupsFound(groups, functions) {
  const found = new Uint8Array(groups.count);
  for (let number = 0; number < functions.length; number++) if (functions[number]) found[groups.of[number]] = 1;
  return found;
}

/** The weight of all stacks that contain a matching group: the own weights of all matching nodes and of all nodes on
 * top of these. */
export function foundTotal(tree, found) {
  const isInside = new Uint8Array(tree.length);
  let sum = 0;
  for (let node = 1; node < tree.length; node++) {
    // Callers come before their callees, so it is known whether the caller matches or is on top of a match.
    if (!isInside[tree.parent[node]] && !found[tree.group[node]]) continue;
    isInside[node] = 1;
    sum += tree.own[node];
  }
  return sum;
}
