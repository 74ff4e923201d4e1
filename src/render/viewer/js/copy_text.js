// Stacks and trees as text, for the clipboard.

/** A function's name for folded stacks, in which ";" separates frames. */
function foldedName(name) {
  return name.replaceAll(";", ":");
}

/** The stack of a node, one frame per line, the outermost first. */
export function stackText(picture, node) {
  const names = [];
  for (let at = node; at > 0; at = picture.tree.parent[at]) names.push(picture.nameOf(at));
  return names.reverse().join("\n") + "\n";
}

/** The folded stacks of a node and everything below it. Each stack starts at the root of the tree. */
export function foldedText(picture, top) {
  const { tree } = picture,
    prefix = new Array(tree.length),
    lines = [];
  // `prefix` is the stack of each node as text, with `;` between functions. Start with the callers of `top`.
  const above = [];
  for (let caller = top; caller > 0; caller = tree.parent[caller]) above.push(foldedName(picture.nameOf(caller)));
  prefix[top] = above.reverse().join(";");
  for (let node = top; node < tree.length; node++) {
    if (node > top) {
      // Only nodes below `top` have a caller with a prefix. Callers come before their callees.
      const caller = prefix[tree.parent[node]];
      if (caller === undefined || !(tree.total[node] > 0)) continue;
      prefix[node] = (caller ? caller + ";" : "") + foldedName(picture.nameOf(node));
    }
    // Stacks that end at this node are one line: the stack and its weight.
    if (tree.own[node] > 0 && prefix[node]) lines.push(`${prefix[node]} ${tree.own[node]}`);
  }
  return lines
    .sort()
    .map((line) => line + "\n")
    .join("");
}
