// The compilations of a runtime over time, summed from the section `jit` (src/commands/view/jit.rs). No drawing here.

import { rowParts } from "./selection.js";

/** Categories in which functions of the program run. Other JIT code, such as stubs, only helps these. */
const PROGRAM_SORTS = new Set(["interpreted", "baseline", "mid-tier", "optimized", "wasm", "JIT"]);

/** The compiled code ranges in order of time. Times are in the profile's units, from its start. */
export class Compilations {
  /** Reads the columns of the section. Each row is a code range, or the sum of several. */
  constructor(pack, profile) {
    /**
     * The section's JSON: {base, unit, codes, bytes, moves, whole, untimed: [{category, codes, bytes}], sources,
     * interpreters}
     */
    this.about = pack.json("jit");
    const numbers = (column) => pack.numbers(`jit/${column}`);
    const { time } = profile;
    // Converts times of the section, which are in other units from another start, to those of the profile.
    const shift = time ? Number(BigInt(this.about.base) - time.start) / time.unit : 0;
    const scale = time ? this.about.unit / time.unit : 1;
    const converted = (times) => Float64Array.from(times, (time) => time * scale + shift);
    this.time = converted(numbers("time"));
    this.category = numbers("category");
    this.bytes = numbers("bytes");
    const count = numbers("codes");
    /** How many code ranges a row stands for. Only in very large dumps a row is the sum of several. */
    this.codes = count.length > 0 ? count : new Uint32Array(this.time.length).fill(1);
    /** The index of the function plus 1; 0 if the row stands for several functions. */
    this.function = numbers("function");
    /** The index of the recording that each row belongs to. */
    this.input = numbers("input");
    this.name = pack.texts("jit/function.name");
    this.pid = numbers("function.pid");
    /** For each move of code: its time, and the index of the recording in which the code was moved (`moveInput`). */
    this.moveTime = converted(numbers("move.time"));
    this.moveInput = numbers("move.input");
    this.#interpreted = profile.categories.findIndex(({ name }) => name === "interpreted");
    /** How many code ranges of each row replaced earlier compiled code of their function. */
    this.again = this.#recompiled(numbers("again"));
  }

  #interpreted;

  get length() {
    return this.time.length;
  }

  /** How many code ranges of each row replaced earlier compiled code of their function: `given`, or computed if that is
   * empty, which means that each row is a single code range. */
  #recompiled(given) {
    if (given.length > 0) return given;
    const again = new Uint32Array(this.length);
    // For each function, whether an earlier row is compiled code of it.
    const compiled = new Uint8Array(this.name.length + 1);
    for (let row = 0; row < this.length; row++) {
      if (this.category[row] === this.#interpreted) continue;
      again[row] = compiled[this.function[row]];
      compiled[this.function[row]] = 1;
    }
    return again;
  }

  /**
   * Returns a function that takes a process ({input, pid}) and a name, and tells when the process first compiled a
   * function of this name; null if unknown. If nothing is known about the process's own compilations, the first one in
   * any process of the recording is taken.
   */
  firstCompiled() {
    // `writers` has the processes with compilations of their own.
    const times = new Map(), writers = new Set();
    // Rows are in order of time. Going backward, the first compilation overwrites the later ones.
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

/**
 * Returns a function that tells whether a time is in one of the ranges. Without ranges, every time is. If `recording`
 * is not null, only times of that recording count.
 */
export function timeFilter(ranges, recording) {
  const isIn = ranges.length === 0 ? () => true : (time) => ranges.some(([from, to]) => time >= from && time < to);
  return (time, input) => (recording === null || input === recording) && isIn(time);
}

/** Sums the code that was compiled at the times that `isIn` accepts: by category, and in total. */
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

/** The index of the bin that contains a time, if the axis {from, to} is cut into `bins` equal parts; -1 if the time is
 * outside of the axis. */
function binOf(time, { from, to }, bins) {
  if (time < from || time > to) return -1;
  return Math.min(bins - 1, Math.floor(((time - from) / (to - from)) * bins));
}

/** Sums the code that was compiled in each bin of the axis, at the times that `isIn` accepts. codes and bytes are
 * [category][bin]; again (recompiled functions) and moves are [bin]. */
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

/** Replaces each array of numbers by its running totals. */
export function accumulated(columns) {
  return columns.map((column) => {
    let sum = 0;
    return column.map((value) => (sum += value));
  });
}

/**
 * The functions that were compiled most often at the times that `isIn` accepts, by process and name.
 * @returns {{number, codes, again, bytes, tiers: Map<number, number>, first, last}[]} tiers: number of codes by
 *   category
 */
export function mostCompiled(compilations, isIn, most = 200) {
  const byFunction = new Map();
  for (let row = 0; row < compilations.length; row++) {
    // 0 stands for several functions, which can't be listed one by one.
    const number = compilations.function[row] - 1;
    const time = compilations.time[row];
    if (number < 0 || !isIn(time, compilations.input[row])) continue;
    let sums = byFunction.get(number);
    if (!sums) {
      sums = { number, codes: 0, again: 0, bytes: 0, tiers: new Map(), first: time, last: time };
      byFunction.set(number, sums);
    }
    const category = compilations.category[row];
    sums.codes++;
    sums.again += compilations.again[row];
    sums.bytes += compilations.bytes[row];
    sums.tiers.set(category, (sums.tiers.get(category) ?? 0) + 1);
    // Rows are in order of time.
    sums.last = time;
  }
  const sorted = [...byFunction.values()].sort((a, b) => b.codes - a.codes || b.bytes - a.bytes || a.number - b.number);
  return sorted.slice(0, most);
}

/**
 * For each node of the profile, the innermost function of the program on its stack. An interpreter's own functions
 * (`interpreters`) aren't the program's: they stand for the function that they run.
 * @returns {{category: Int16Array, function: Int32Array}} category: how the function ran, -1 if unknown; function: -1
 *   if an interpreter ran an unknown function
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
      // If the caller is the interpreted function's own frame, the interpreter runs that function.
      const isFunctionKnown = parent >= 0 && category[parent] === interpreted && nodeFunction[parent] === innermost[parent];
      innermost[node] = isFunctionKnown ? innermost[parent] : -1;
    } else if (isProgram[functions.category[number]]) {
      [category[node], innermost[node]] = [functions.category[number], number];
    // Other code, such as libraries and the kernel, runs on behalf of its caller's function.
    } else if (parent >= 0) {
      [category[node], innermost[node]] = [category[parent], innermost[parent]];
    }
  }
  return { category, function: innermost };
}

/**
 * The weight of samples over time, by how the program's innermost function ran. Returns one array per category, with
 * one number per bin of the time axis: [category][bin]. One more array at the end is for samples without a function of
 * the program.
 */
export function samplesOverTime(profile, frames, state, axis, bins) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1));
  const sums = Array.from({ length: profile.categories.length + 1 }, () => new Float64Array(bins));
  if (!rows.time) return sums;
  // Only the selected tracks count, but at all times. `partOf` returns 0 for the rows of other tracks.
  const partOf = rowParts(profile, rows, { ...state, ranges: [] });
  const weights = state.weight === "samples" ? rows.count : rows.weight;
  for (let row = 0; row < rows.length; row++) {
    const bin = partOf(row) > 0 ? binOf(rows.time[row], axis, bins) : -1;
    if (bin < 0) continue;
    const category = rows.node[row] < 0 ? -1 : frames.category[rows.node[row]];
    // The last array is for samples without a function of the program.
    sums[category < 0 ? sums.length - 1 : category][bin] += weights[row];
  }
  return sums;
}

/**
 * Divides the selected samples by how the program's innermost function ran.
 * @returns {{before, later, never, untold, unknown, compiled: Float64Array, none, total}} weights. Interpreted
 *   functions: before their first compilation (before), after it (later), never compiled (never), compiled at an
 *   unknown time or perhaps never (untold), unknown function (unknown). compiled: by category; none: no function of the
 *   program
 */
export function warmUp(profile, frames, compilations, state) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1));
  // `partOf` returns 0 for rows that aren't selected.
  const partOf = rowParts(profile, rows, state);
  const weights = state.weight === "samples" ? rows.count : rows.weight;
  const interpreted = profile.categories.findIndex(({ name }) => name === "interpreted");
  const firstCompiled = compilations.firstCompiled();
  const known = new Map();
  // When a function was first compiled in a thread's process. The answers are kept, because many samples ask for the
  // same.
  const whenCompiled = (track, number) => {
    const { input, pid } = profile.tracks[track];
    const key = `${input}/${pid}/${number}`;
    if (!known.has(key)) known.set(key, firstCompiled({ input, pid }, profile.functions.name[number]));
    return known.get(key);
  };
  const compiled = new Float64Array(profile.categories.length);
  const sums = { before: 0, later: 0, never: 0, untold: 0, unknown: 0, compiled, none: 0, total: 0 };
  for (let row = 0; row < rows.length; row++) {
    if (partOf(row) === 0) continue;
    const weight = weights[row];
    sums.total += weight;
    const node = rows.node[row];
    const category = node < 0 ? -1 : frames.category[node];
    if (category < 0) sums.none += weight;
    else if (category !== interpreted) sums.compiled[category] += weight;
    else if (frames.function[node] < 0) sums.unknown += weight;
    else {
      const compiledAt = whenCompiled(rows.track[row], frames.function[node]);
      // Perf maps without times, and sums of very large dumps, don't show when a function was compiled.
      if (compiledAt === null) sums[compilations.length > 0 && compilations.about.whole ? "never" : "untold"] += weight;
      else if (rows.time && rows.time[row] >= compiledAt) sums.later += weight;
      else sums.before += weight;
    }
  }
  return sums;
}
