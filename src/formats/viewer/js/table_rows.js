// What the table of functions says, apart from how it is drawn: which rows there are, in which order, and their text as
// comma-separated values, spelled as `jitgraft report --format csv` spells them.

import { findFunctions, groupsFound } from "./search.js";

/** The columns: how they are sorted by, what they are called, whether they hold amounts (the largest come first). */
export const TABLE_COLUMNS = [
  { key: "self", title: "Self", isAmount: true, span: 2, tells: "What ran in the function itself" },
  { key: "total", title: "Total", isAmount: true, span: 2, tells: "With all that it called; recursion counts once" },
  { key: "samples", title: "Samples", isAmount: true, span: 1, tells: "Samples in the function itself" },
  { key: "kind", title: "Code", isAmount: false, span: 1, tells: "What sort of code it is; of several tiers the share of each" },
  { key: "name", title: "Function", isAmount: false, span: 1, tells: "Its name" },
  { key: "module", title: "Module", isAmount: false, span: 1, tells: "The program, library or JIT memory it is in" },
  { key: "source", title: "Source", isAmount: false, span: 1, tells: "Where it is written" },
];

/** How a state's `sort` is meant: a column's key, behind "-" the other way round. */
export function sortingOf(sort) {
  const reversed = sort.startsWith("-"), key = reversed ? sort.slice(1) : sort;
  const column = TABLE_COLUMNS.find((column) => column.key === key) ?? TABLE_COLUMNS[0];
  return { key: column.key, isDescending: column.isAmount !== reversed };
}

/** What `sort` becomes by a click on a column: the column's own order first, then the other way round. */
export function sortAfterClick(sort, key) {
  return sort === key ? `-${key}` : key;
}

/** Groups of functions with their texts and sums. */
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

  source(group) {
    const { file, line } = this.profile.functions, number = this.groups.first[group];
    return file[number] && line[number] ? `${file[number]}:${line[number]}` : file[number];
  }

  /** The categories of a group's own samples, the heaviest first; of a group without any, that of its first function. */
  shares(group) {
    const count = this.profile.categories.length, shares = [];
    for (let category = 0; category < count; category++) {
      const weight = this.sums.shares[group * count + category];
      if (weight > 0) shares.push({ category, weight });
    }
    shares.sort((a, b) => b.weight - a.weight);
    return shares.length ? shares : [{ category: this.profile.functions.category[this.groups.first[group]], weight: 0 }];
  }

  /** `optimised 81 %, baseline 19 %`; of one sort its name. */
  sharesText(group) {
    const shares = this.shares(group), whole = shares.reduce((sum, { weight }) => sum + weight, 0);
    const name = ({ category }) => this.profile.categories[category].name;
    return shares.length === 1 ? name(shares[0]) : shares.map((share) => `${name(share)} ${shareText(share.weight / whole)}`).join(", ");
  }

  /** The groups that samples go through and that are searched for, in the order asked for. */
  sorted(search, regex, sort) {
    const found = findFunctions(this.profile.functions.name, search, regex);
    const wanted = found && groupsFound(this.groups, found.functions), rows = [];
    for (let group = 0; group < this.groups.count; group++) {
      if (this.sums.totalCount[group] > 0 && (!wanted || wanted[group])) rows.push(group);
    }
    return rows.sort(this.order(sort));
  }

  /** Of equal rows the heavier comes first, then by name, as in jitgraft's tables. */
  order(sort) {
    const { key, isDescending } = sortingOf(sort), { self, total, selfCount } = this.sums;
    const heavier = (a, b) => self[b] - self[a] || total[b] - total[a];
    const alphabetic = (a, b) => byText(this.name(a), this.name(b)) || byText(this.module(a), this.module(b));
    const amounts = { self, total, samples: selfCount }[key];
    if (amounts) return (a, b) => (isDescending ? amounts[b] - amounts[a] : amounts[a] - amounts[b]) || heavier(a, b) || alphabetic(a, b);
    const text = { name: (group) => this.name(group), module: (group) => this.module(group), source: (group) => this.source(group), kind: (group) => this.sharesText(group) }[key];
    const sign = isDescending ? -1 : 1;
    return (a, b) => sign * byText(text(a), text(b)) || heavier(a, b) || alphabetic(a, b);
  }

  /** The rows as `jitgraft report --format csv` writes them. */
  csv(rows) {
    const lines = rows.map((group) => {
      const { self, total, selfCount } = this.sums, part = (weight) => (this.selection.total ? 100 * weight / this.selection.total : 0).toFixed(4);
      const cells = [part(self[group]), part(total[group]), self[group], total[group], selfCount[group], this.kind(group), this.tiers(group)];
      return [...cells, ...[this.module(group), this.name(group), this.source(group)].map(csvCell)].join(",");
    });
    return ["self%,total%,self,total,samples,kind,tier,module,symbol,source", ...lines, ""].join("\n");
  }

  kind(group) {
    const category = this.profile.categories[this.shares(group)[0].category];
    return category.jit ? "JIT" : category.name;
  }

  /** The tier of JIT code, or several with their shares. */
  tiers(group) {
    const { categories } = this.profile, jit = this.shares(group).filter(({ category }) => categories[category].jit);
    const known = jit.filter(({ category }) => categories[category].name !== "JIT");
    if (!known.length) return "";
    if (jit.length === 1) return categories[jit[0].category].name;
    const whole = jit.reduce((sum, { weight }) => sum + weight, 0);
    const name = ({ category }) => known.some((share) => share.category === category) ? categories[category].name : "no known tier";
    return csvCell(jit.map((share) => `${name(share)} ${shareText(share.weight / whole)}`).join(", "));
  }
}

/** A share is never told as nothing, or as all, if it is not. */
function shareText(share) {
  const percents = Math.round(100 * share);
  if (percents === 0 && share > 0) return "< 1 %";
  return percents === 100 && share < 1 ? "> 99 %" : `${percents} %`;
}

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** A name as a cell that a spreadsheet takes for text, never for a formula. */
export function csvCell(text) {
  const cell = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
