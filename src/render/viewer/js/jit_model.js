// The compilations of a runtime, by time: the section `jit` (src/commands/view/jit.rs), summed. No drawing here.

import { rowParts } from "./selection.js";

/** Sorts of code that a function of the program runs as; other JIT code helps these. */
const PROGRAM_SORTS = new Set(["interpreted", "baseline", "mid-tier", "optimised", "wasm", "JIT"]);

/** The code ranges that were written, in the order of time. Times are in the profile's units since its start. */
export class Compilations {
  constructor(pack, profile) {
    /** {base, unit, codes, bytes, moves, whole, untimed: [{category, codes, bytes}], sources, interpreters} */
    this.about = pack.json("jit");
    const numbers = (column) => pack.numbers(`jit/${column}`);
    const { time } = profile;
    const shift = time ? Number(BigInt(this.about.base) - time.start) / time.unit : 0;
    const scale = time ? this.about.unit / time.unit : 1;
    const placed = (times) => Float64Array.from(times, (at) => at * scale + shift);
    this.time = placed(numbers("time"));
    this.category = numbers("category");
    this.bytes = numbers("bytes");
    const count = numbers("codes");
    /** The number of functions that a row stands for: more than one only in stretches of time of a very large dump. */
    this.codes = count.length > 0 ? count : new Uint32Array(this.time.length).fill(1);
    /** The number of the function, + 1; 0: several. */
    this.function = numbers("function");
    /** The number of the recording that each row is of. */
    this.input = numbers("input");
    this.name = pack.texts("jit/function.name");
    this.pid = numbers("function.pid");
    this.moveTime = placed(numbers("move.time"));
    this.moveInput = numbers("move.input");
    this.#interpreted = profile.categories.findIndex(({ name }) => name === "interpreted");
    this.again = this.#recompiled(numbers("again"));
  }

  #interpreted;

  get length() {
    return this.time.length;
  }

  /** The number of functions of a row that had compiled code before. */
  #recompiled(given) {
    if (given.length > 0) return given;
    const again = new Uint32Array(this.length);
    const compiled = new Uint8Array(this.name.length + 1);
    for (let row = 0; row < this.length; row++) {
      if (this.category[row] === this.#interpreted) continue;
      again[row] = compiled[this.function[row]];
      compiled[this.function[row]] = 1;
    }
    return again;
  }

  /** When each function of a recording got its first compiled code, by process and name; for processes that wrote none,
   * by name. */
  firstCompiled() {
    const times = new Map(), writers = new Set();
    for (let row = this.length - 1; row >= 0; row--) {
      const number = this.function[row] - 1, input = this.input[row];
      if (number < 0) continue;
      writers.add(`${input}/${this.pid[number]}`);
      if (this.category[row] === this.#interpreted) continue;
      times.set(`${input}/${this.pid[number]}\n${this.name[number]}`, this.time[row]);
      times.set(`${input}\n${this.name[number]}`, this.time[row]);
    }
    return ({ input, pid }, name) => {
      const process = `${input ?? 0}/${pid}`;
      return times.get(writers.has(process) ? `${process}\n${name}` : `${input ?? 0}\n${name}`) ?? null;
    };
  }
}

/** True if a time of a recording is in one of the ranges; without ranges all are. `recording` is the only one that
 * counts; null: all do. */
export function timeFilter(ranges, recording) {
  const isIn = ranges.length === 0 ? () => true : (time) => ranges.some(([from, to]) => time >= from && time < to);
  return (time, input) => (recording === null || input === recording) && isIn(time);
}

/** The code that was written at the times that count: by category, and in all. */
export function compiledIn(compilations, categories, isIn) {
  const sums = {
    codes: new Float64Array(categories), bytes: new Float64Array(categories), allCodes: 0, allBytes: 0, again: 0, moves: 0,
  };
  for (let row = 0; row < compilations.length; row++) {
    if (!isIn(compilations.time[row], compilations.input[row])) continue;
    sums.codes[compilations.category[row]] += compilations.codes[row];
    sums.bytes[compilations.category[row]] += compilations.bytes[row];
    sums.allCodes += compilations.codes[row];
    sums.allBytes += compilations.bytes[row];
    sums.again += compilations.again[row];
  }
  compilations.moveTime.forEach((time, move) => (sums.moves += isIn(time, compilations.moveInput[move]) ? 1 : 0));
  return sums;
}

/** The index of this time among this many equal stretches of an axis {from, to}; -1: none. */
function binOf(time, { from, to }, bins) {
  if (time < from || time > to) return -1;
  return Math.min(bins - 1, Math.floor(((time - from) / (to - from)) * bins));
}

/** The code that was written in each stretch of the axis: values[category][bin] of functions or bytes, and again, moves
 * by bin. */
export function compiledOverTime(compilations, categories, axis, bins, isIn) {
  const columns = () => Array.from({ length: categories }, () => new Float64Array(bins));
  const over = { codes: columns(), bytes: columns(), again: new Float64Array(bins), moves: new Float64Array(bins) };
  for (let row = 0; row < compilations.length; row++) {
    const bin = binOf(compilations.time[row], axis, bins);
    if (bin < 0 || !isIn(compilations.time[row], compilations.input[row])) continue;
    over.codes[compilations.category[row]][bin] += compilations.codes[row];
    over.bytes[compilations.category[row]][bin] += compilations.bytes[row];
    over.again[bin] += compilations.again[row];
  }
  compilations.moveTime.forEach((time, move) => {
    const bin = binOf(time, axis, bins);
    if (bin >= 0 && isIn(time, compilations.moveInput[move])) over.moves[bin]++;
  });
  return over;
}

/** Each sum with all before it. */
export function accumulated(columns) {
  return columns.map((column) => {
    let sum = 0;
    return column.map((value) => (sum += value));
  });
}

/**
 * The functions that were compiled most often at the times that count, by process and name.
 * @returns {{number, codes, again, bytes, tiers: Map<number, number>, first, last}[]} tiers: codes by category
 */
export function mostCompiled(compilations, isIn, most = 200) {
  const found = new Map();
  for (let row = 0; row < compilations.length; row++) {
    const number = compilations.function[row] - 1;
    const time = compilations.time[row];
    if (number < 0 || !isIn(time, compilations.input[row])) continue;
    let of = found.get(number);
    if (!of) {
      of = { number, codes: 0, again: 0, bytes: 0, tiers: new Map(), first: time, last: time };
      found.set(number, of);
    }
    of.codes++;
    of.again += compilations.again[row];
    of.bytes += compilations.bytes[row];
    of.tiers.set(compilations.category[row], (of.tiers.get(compilations.category[row]) ?? 0) + 1);
    of.last = time;
  }
  return [...found.values()].sort((a, b) => b.codes - a.codes || b.bytes - a.bytes || a.number - b.number).slice(0, most);
}

/**
 * By node of the profile, which function of the program was innermost there.
 * @returns {{category: Int16Array, function: Int32Array}} category: how it ran, -1: unknown; function: -1 where
 *   an interpreter ran one that is not known
 */
export function programFrames(profile, interpreters) {
  const { nodeParent, nodeFunction, nodeCount, functions, categories } = profile;
  const interpreted = categories.findIndex(({ name }) => name === "interpreted");
  const isProgram = categories.map(({ name }) => PROGRAM_SORTS.has(name));
  const names = new Set(interpreters);
  const interprets = Uint8Array.from(functions.name, (name) => (names.has(name) ? 1 : 0));
  const category = new Int16Array(nodeCount).fill(-1);
  const innermost = new Int32Array(nodeCount).fill(-1);
  for (let node = 0; node < nodeCount; node++) {
    const number = nodeFunction[node];
    const parent = nodeParent[node];
    if (interprets[number]) {
      category[node] = interpreted;
      // An interpreter that was entered by a frame of the function's own runs that one.
      const hasOwn = parent >= 0 && category[parent] === interpreted && nodeFunction[parent] === innermost[parent];
      innermost[node] = hasOwn ? innermost[parent] : -1;
    } else if (isProgram[functions.category[number]]) {
      [category[node], innermost[node]] = [functions.category[number], number];
    } else if (parent >= 0) {
      [category[node], innermost[node]] = [category[parent], innermost[parent]];
    }
  }
  return { category, function: innermost };
}

/** The weight of the samples of an event by how the program's innermost function ran, in each stretch of the axis:
 * values[category][bin]; the last column is that of samples without such a function. */
export function samplesOverTime(profile, frames, state, axis, bins) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1));
  const columns = Array.from({ length: profile.categories.length + 1 }, () => new Float64Array(bins));
  if (!rows.time) return columns;
  const counts = rowParts(profile, rows, { ...state, ranges: [] });
  const weights = state.weight === "samples" ? rows.count : rows.weight;
  for (let row = 0; row < rows.length; row++) {
    const bin = counts(row) ? binOf(rows.time[row], axis, bins) : -1;
    if (bin < 0) continue;
    const category = rows.node[row] < 0 ? -1 : frames.category[rows.node[row]];
    columns[category < 0 ? columns.length - 1 : category][bin] += weights[row];
  }
  return columns;
}

/**
 * The samples that count, by what the program's innermost function was when they were taken.
 * @returns {{before, later, never, unnamed, unknown, compiled: Float64Array, none, total}} weights: interpreted before
 *   its first compilation; interpreted although it had been compiled; interpreted and never compiled; interpreted, and
 *   when it was compiled is not known; interpreted, but which function is not known; compiled, by category; no function
 *   of the program
 */
export function warmUp(profile, frames, compilations, state) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1));
  const counts = rowParts(profile, rows, state);
  const weights = state.weight === "samples" ? rows.count : rows.weight;
  const interpreted = profile.categories.findIndex(({ name }) => name === "interpreted");
  const firstCompiled = compilations.firstCompiled();
  const known = new Map();
  const whenCompiled = (track, number) => {
    const { input, pid } = profile.tracks[track];
    const key = `${input}/${pid}/${number}`;
    if (!known.has(key)) known.set(key, firstCompiled({ input, pid }, profile.functions.name[number]));
    return known.get(key);
  };
  const compiled = new Float64Array(profile.categories.length);
  const sums = { before: 0, later: 0, never: 0, untold: 0, unknown: 0, compiled, none: 0, total: 0 };
  for (let row = 0; row < rows.length; row++) {
    if (!counts(row)) continue;
    const weight = weights[row];
    sums.total += weight;
    const node = rows.node[row];
    const category = node < 0 ? -1 : frames.category[node];
    if (category < 0) sums.none += weight;
    else if (category !== interpreted) sums.compiled[category] += weight;
    else if (frames.function[node] < 0) sums.unknown += weight;
    else {
      const at = whenCompiled(rows.track[row], frames.function[node]);
      // For maps without times, and for sums of a very large dump, it cannot be determined.
      if (at === null) sums[compilations.length > 0 && compilations.about.whole ? "never" : "untold"] += weight;
      else if (rows.time && rows.time[row] >= at) sums.later += weight;
      else sums.before += weight;
    }
  }
  return sums;
}
