// The content of the table of functions, apart from how it is drawn: which rows there are, in which order, and their
// text as comma-separated values, spelled as `jitgraft report --to csv` spells them.

import { walkedNodes } from "./functions.js";
import { withTwoDecimals } from "./format.js";
import { findFunctions, groupsFound } from "./search.js";

/** The columns. Amounts are sorted in descending order. */
export const TABLE_COLUMNS = [
  { key: "self", title: "Self", isAmount: true, span: 2, tells: "In the function itself" },
  { key: "total", title: "Total", isAmount: true, span: 2, tells: "Including everything it called; recursion counts once" },
  { key: "samples", title: "Samples", isAmount: true, span: 1, tells: "Samples in the function itself" },
  { key: "kind", title: "Code", isAmount: false, span: 1, tells: "Kind of code; with several tiers, the share of each" },
  { key: "name", title: "Function", isAmount: false, span: 1, tells: "Name" },
  { key: "module", title: "Module", isAmount: false, span: 1, tells: "Program, library or JIT memory" },
  { key: "source", title: "Source", isAmount: false, span: 1, tells: "Source location" },
];

/** Parses the `sort` of a state: the key of a column, preceded by "-" for the reverse order. */
export function sortingOf(sort) {
  const reversed = sort.startsWith("-"), key = reversed ? sort.slice(1) : sort;
  const column = TABLE_COLUMNS.find((column) => column.key === key) ?? TABLE_COLUMNS[0];
  return { key: column.key, isDescending: column.isAmount !== reversed };
}

/** The `sort` after a click on a column. The first click selects the column, the next one reverses the order. */
export function sortAfterClick(sort, key) {
  return sort === key ? `-${key}` : key;
}

/** The rows of the table: groups of functions with their texts and sums. */
export class FunctionRows {
  constructor(profile, groups, sums, selection) {
    Object.assign(this, { profile, groups, sums, selection });
  }

  name(group) {
    return this.profile.functions.name[this.groups.first[group]];
  }

  module(group) {
    return this.profile.functions.module[this.groups.first[group]];
  }

  /** The source location with the most self weight in the whole profile. */
  source(group) {
    const { file, line } = this.profile.functions, number = this.groups.first[group];
    return line[number] ? `${file[number]}:${line[number]}` : file[number];
  }

  /** The categories of a group, by self weight. Of equally heavy ones, the one that occurs first in the stacks comes
   * first. */
  categories(group) {
    // `seen` has the position in the stacks at which a group first occurs in a category; infinite if it doesn't.
    const count = this.profile.categories.length, { seen } = walkedNodes(this.profile, this.groups), found = [];
    for (let category = 0; category < count; category++) {
      const place = seen[group * count + category];
      if (place < Infinity) found.push({ category, weight: this.sums.shares[group * count + category], place });
    }
    // The function is in no stack: it is a level of recursion that only recorded calls distinguish.
    if (found.length === 0) found.push({ category: this.profile.functions.category[this.groups.first[group]], weight: this.sums.self[group], place: 0 });
    return found.sort((a, b) => b.weight - a.weight || a.place - b.place);
  }

  /** The categories with self weight; if there are none, the first category. */
  shares(group) {
    const categories = this.categories(group), some = categories.filter(({ weight }) => weight > 0);
    return some.length ? some : categories.slice(0, 1);
  }

  /** The group's kinds of code as text: `optimized 81.00%, baseline 19.00%`, or only the name if there is one kind. */
  sharesText(group) {
    const shares = this.shares(group), whole = shares.reduce((sum, { weight }) => sum + weight, 0);
    const name = ({ category }) => this.profile.categories[category].name;
    return shares.length === 1 ? name(shares[0]) : shares.map((share) => `${name(share)} ${shareText(share.weight / whole)}`).join(", ");
  }

  /** The groups that have samples and match the search, sorted. */
  sorted(search, regex, sort) {
    const found = findFunctions(this.profile.functions.name, search, regex);
    const wanted = found && groupsFound(this.groups, found.functions), rows = [];
    for (let group = 0; group < this.groups.count; group++) {
      if ((this.sums.total[group] > 0 || this.sums.totalCount[group] > 0) && (!wanted || wanted[group])) rows.push(group);
    }
    return rows.sort(this.order(sort));
  }

  /** Returns the function that compares two groups for sorting by a column. As in jitgraft's other tables, rows that
   * are equal in this column are sorted by weight, then by name. */
  order(sort) {
    const { key, isDescending } = sortingOf(sort), { self, total, selfCount } = this.sums;
    const heavier = (a, b) => self[b] - self[a] || total[b] - total[a];
    // `places` has each group's position in alphabetical order.
    const places = alphabeticPlaces(this.profile, this.groups), alphabetic = (a, b) => places[a] - places[b];
    const amounts = { self, total, samples: selfCount }[key];
    if (amounts) return (a, b) => (isDescending ? amounts[b] - amounts[a] : amounts[a] - amounts[b]) || heavier(a, b) || alphabetic(a, b);
    const sign = isDescending ? -1 : 1;
    if (key === "name") return (a, b) => sign * (places[a] - places[b]);
    const makeText = { module: (group) => this.module(group), source: (group) => this.source(group), kind: (group) => this.sharesText(group) }[key];
    // Each text is made once, because sorting compares a group many times.
    const texts = new Map();
    const textOf = (group) => {
      if (!texts.has(group)) texts.set(group, makeText(group));
      return texts.get(group);
    };
    return (a, b) => sign * byText(textOf(a), textOf(b)) || heavier(a, b) || alphabetic(a, b);
  }

  /** The rows as `jitgraft report --to csv` writes them. */
  csv(rows) {
    const lines = rows.map((group) => {
      const { self, total, selfCount } = this.sums, whole = this.selection.total;
      const percentage = (weight) => (whole ? 100 * weight / whole : 0).toFixed(4);
      const cells = [percentage(self[group]), percentage(total[group]), self[group], total[group], selfCount[group], this.kind(group), this.tiers(group)];
      return [...cells, ...[this.module(group), this.name(group), this.source(group)].map(csvCell)].join(",");
    });
    return ["self%,total%,self,total,samples,kind,tier,module,symbol,source", ...lines, ""].join("\n");
  }

  kind(group) {
    const category = this.profile.categories[this.shares(group)[0].category];
    return csvCell(category.kind);
  }

  /** The tier of a function's JIT code. If it ran in several tiers, each with its share. */
  tiers(group) {
    const { categories } = this.profile, nameOf = ({ category }) => categories[category].name;
    const jit = this.categories(group).filter(({ category }) => categories[category].kind === "JIT");
    const isKnown = (share) => nameOf(share) !== "JIT", some = jit.filter(({ weight }) => weight > 0);
    if (some.length < 2) return jit.filter(isKnown).map(nameOf)[0] ?? "";
    const whole = some.reduce((sum, { weight }) => sum + weight, 0);
    // Of equal shares, the one without a known tier comes first.
    some.sort((a, b) => b.weight - a.weight || isKnown(a) - isKnown(b) || a.category - b.category);
    const name = (share) => (isKnown(share) ? nameOf(share) : "no known tier");
    return csvCell(some.map((share) => `${name(share)} ${shareText(share.weight / whole)}`).join(", "));
  }
}

const ALPHABETIC = new WeakMap();

/** The position of each group in the order of names, then modules. Cached, because it depends only on the names. */
function alphabeticPlaces({ functions }, groups) {
  if (!ALPHABETIC.has(groups)) {
    const name = (group) => functions.name[groups.first[group]], module = (group) => functions.module[groups.first[group]];
    const order = Uint32Array.from({ length: groups.count }, (_, group) => group);
    order.sort((a, b) => byText(name(a), name(b)) || byText(module(a), module(b)));
    // `order` lists the groups by name; `places` has each group's position in it.
    const places = new Uint32Array(groups.count);
    order.forEach((group, place) => { places[group] = place; });
    ALPHABETIC.set(groups, places);
  }
  return ALPHABETIC.get(groups);
}

/** Formats a share. It is only shown as 0 % or 100 % if it is exactly that. */
function shareText(share) {
  const parts = Math.round(10000 * share);
  if (parts === 0 && share > 0) return "<0.01%";
  return parts === 10000 && share < 1 ? ">99.99%" : `${withTwoDecimals(100 * share)}%`;
}

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** A name as a CSV cell that a spreadsheet takes for text, never for a formula. */
export function csvCell(text) {
  const cell = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
