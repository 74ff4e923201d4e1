// Compares two profiles by function, and tells which changes are real. Sampled amounts are tested for chance. Exactly
// measured amounts have no noise and are compared directly. If an input has only sums over an unknown number of
// samples, changes can't be judged.

import { lastPart } from "./box_actions.js";
import { functionSums } from "./functions.js";
import { isSignificant } from "./significance.js";

/** Two compared profiles: {total, count} of each, how changes are judged (`kind`: "samples", "exact" or "nothing"), the
 * weights of one sample in the two if the user stated them (`one`), and the factor for amounts of the earlier profile
 * (`scale`). */
export class Comparison {
  /** `before` and `after` are the samples of the two profiles, as `select` sums them. With `normalize`, amounts of the
   * earlier profile are scaled as if both had the same total. */
  constructor(before, after, { kind, one }, normalize) {
    const side = ({ total, count }) => ({ total, count });
    this.selections = { before, after };
    this.before = side(before);
    this.after = side(after);
    this.kind = kind;
    this.one = one;
    this.scale = normalize && before.total > 0 ? after.total / before.total : 1;
  }

  /** True if a change between two amounts {weight, count} is shown: it is more than chance, or exact, or can't be
   * judged. */
  isShown(before, after) {
    return this.kind === "samples" ? this.isSignificant(before, after) : before.weight !== after.weight;
  }

  /** True if the numbers of samples differ by more than chance. */
  isSignificant(before, after) {
    const [one, other] = this.one;
    return isSignificant(shareOf(before, this.before, one), shareOf(after, this.after, other));
  }

  /** The word for a change; empty if the change can't be judged. */
  wordOf(before, after, delta) {
    if (this.kind === "nothing") return "";
    if (this.kind === "samples" && !this.isSignificant(before, after)) return "noise";
    if (before.weight === 0 && before.count === 0) return "new";
    if (after.weight === 0 && after.count === 0) return "gone";
    if (this.kind === "samples") return delta > 0 ? "more" : "less";
    return after.weight === before.weight ? "same" : after.weight > before.weight ? "more" : "less";
  }
}

/** The number of samples in a part and in the whole. `one` is the weight of one sample, if the user stated it. */
function shareOf(part, { total, count }, one) {
  const samples = (weight) => Math.floor(weight / one);
  return one === null ? { part: part.count, whole: count } : { part: samples(part.weight), whole: samples(total) };
}

/** The functions of both sides with their total weights (`byTotal`) or self weights. The largest change comes first, as
 * in `report --diff`. Elements: [{name, module, before: {weight, count}, after, delta (percentage points), word,
 * number}]. */
export function changedFunctions(page, comparison, byTotal) {
  const { profile } = page,
    groups = page.groups(),
    byFunction = new Map();
  for (const side of ["before", "after"]) {
    const sums = functionSums(profile, groups, comparison.selections[side]);
    const [weights, counts] = byTotal ? [sums.total, sums.totalCount] : [sums.self, sums.selfCount];
    for (let group = 0; group < groups.count; group++) {
      if (weights[group] === 0 && counts[group] === 0) continue;
      // The function's amounts on this side.
      const sum = changeOf(byFunction, profile, groups.first[group])[side];
      sum.weight += weights[group];
      sum.count += counts[group];
    }
  }
  const changes = [...byFunction.values()];
  // Make equal names different, then set the size of each change and the word for it.
  tellApart(changes, profile);
  for (const change of changes) judge(change, comparison);
  // The functions that changed most come first. Exact weights are compared as they are, samples by their share.
  const size = ({ before, after, delta }) =>
    comparison.kind === "exact" ? Math.abs(after.weight - before.weight) : Math.abs(delta);
  return changes.sort((a, b) => size(b) - size(a) || (a.name < b.name ? -1 : 1));
}

/** The change of a function. A function has the same key on both sides: name and module without directories, because
 * a program may have moved and files of JIT code are named after the process. */
function changeOf(byFunction, { functions, categories }, number) {
  const key = functions.identity[number];
  if (!byFunction.has(key)) {
    byFunction.set(key, {
      name: functions.name[number],
      module: categories[functions.category[number]].jit ? "[JIT]" : lastPart(functions.module[number]),
      number,
      before: { weight: 0, count: 0 },
      after: { weight: 0, count: 0 },
      delta: 0,
      word: "noise",
    });
  }
  return byFunction.get(key);
}

/** Appends the source location, as far as it is known, to function names that occur several times. */
function tellApart(changes, { functions }) {
  // The number of functions with each name.
  const counts = new Map();
  for (const { name } of changes) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const change of changes) {
    const file = functions.file[change.number];
    const isNameUnique = counts.get(change.name) === 1;
    if (isNameUnique || !file) continue;
    const line = functions.line[change.number];
    change.name += ` (${lastPart(file)}${line > 0 ? `:${line}` : ""})`;
  }
}

function judge(change, comparison) {
  const { before, after } = change,
    part = (sum, whole) => (whole > 0 ? (100 * sum.weight) / whole : 0);
  change.delta = part(after, comparison.after.total) - part(before, comparison.before.total);
  change.word = comparison.wordOf(before, after, change.delta);
}
