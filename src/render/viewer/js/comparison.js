// Two profiles side by side: what of a change is more than sampling noise, by function.

import { lastPart } from "./box_actions.js";
import { functionSums } from "./functions.js";
import { countOfOneSample, isSignificant } from "./significance.js";

/** Both sides: {total, count, one}, and by what amounts of before are multiplied. */
export class Comparison {
  constructor(before, after, rowsBefore, rowsAfter, normalise) {
    const side = ({ total, count }, rows) => ({ total, count, one: countOfOneSample(rows.count) });
    this.selections = { before, after };
    this.before = side(before, rowsBefore);
    this.after = side(after, rowsAfter);
    this.scale = normalise && before.total > 0 ? after.total / before.total : 1;
  }

  /** True if this many samples before and after differ by more than chance. */
  isSignificant(before, after) {
    const share = (part, { count, one }) => ({ part: Math.floor(part / one), whole: Math.floor(count / one) });
    return isSignificant(share(before, this.before), share(after, this.after));
  }
}

/** The functions of both sides, those first whose share changed most, as `report --diff` gives them: [{name, module,
 * before: {weight, count}, after, delta (percentage points), word, number}]. */
export function changedFunctions(page, comparison, byTotal) {
  const { profile } = page,
    groups = page.groups(),
    byName = new Map();
  for (const side of ["before", "after"]) {
    const sums = functionSums(profile, groups, comparison.selections[side]);
    const [weights, counts] = byTotal ? [sums.total, sums.totalCount] : [sums.self, sums.selfCount];
    for (let group = 0; group < groups.count; group++) {
      if (weights[group] === 0 && counts[group] === 0) continue;
      const sum = changeOf(byName, profile, groups.first[group])[side];
      sum.weight += weights[group];
      sum.count += counts[group];
    }
  }
  const changes = [...byName.values()];
  for (const change of changes) judge(change, comparison);
  return changes.sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta) || (a.name < b.name ? -1 : 1));
}

/** The change of a function. A program may have moved, and the files of JIT code are called after the process: the
 * module is the last part of its path. */
function changeOf(byName, { functions, categories }, number) {
  const name = functions.name[number];
  const module = categories[functions.category[number]].jit ? "[JIT]" : lastPart(functions.module[number]);
  const key = `${module}\n${name}`;
  if (!byName.has(key)) {
    byName.set(key, {
      name,
      module,
      number,
      before: { weight: 0, count: 0 },
      after: { weight: 0, count: 0 },
      delta: 0,
      word: "noise",
    });
  }
  return byName.get(key);
}

function judge(change, comparison) {
  const { before, after } = change,
    part = (sum, whole) => (whole > 0 ? (100 * sum.weight) / whole : 0);
  change.delta = part(after, comparison.after.total) - part(before, comparison.before.total);
  if (!comparison.isSignificant(before.count, after.count)) change.word = "noise";
  else if (before.count === 0) change.word = "new";
  else if (after.count === 0) change.word = "gone";
  else change.word = change.delta > 0 ? "more" : "less";
}
