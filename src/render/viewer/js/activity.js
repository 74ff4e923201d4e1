// Activity over time: sums the weights of rows by time, for the lanes (by category) and the heat map. No drawing, no
// state.
//
// A sample of a clock event stands for the time before it, and a span for the time after its start. Their weights are
// spread over that time, so that a busy thread looks busy at any zoom. Other events count at their own time. In a large
// recording a row is the sum of one unit of time, and its weight is spread over that unit.

import { hashOfName, warmLetter } from "./shades.js";

/** If the profile's unit of time is at most this many nanoseconds long, each row is a single sample. If the unit is
 * longer, a row is the sum of many samples. */
const SINGLE_UNIT = 1000;

/** Which time the rows of an event stand for: the time before them (−1), the time after their start (1), or only the
 * moment itself (0). */
export function reachOf(profile, event, weight) {
  if (profile.rowsHaveDurations) return weight === "period" ? 1 : 0;
  return event.unit === "nanoseconds" && weight === "period" ? -1 : 0;
}

/**
 * Sorts rows by track. The rows of track t are `row[start[t]]` up to but not including `row[start[t + 1]]`, by time.
 */
export function rowsByTrack(rows, tracks) {
  // A counting sort: count the rows of each track, add up where the rows of each track start, then fill in the rows.
  const start = new Uint32Array(tracks + 1), row = new Uint32Array(rows.length);
  for (let number = 0; number < rows.length; number++) start[rows.track[number] + 1]++;
  for (let track = 0; track < tracks; track++) start[track + 1] += start[track];
  const next = start.slice();
  for (let number = 0; number < rows.length; number++) row[next[rows.track[number]]++] = number;
  return { start, row };
}

/**
 * What the colors of bars mean: kinds of code if they are known, otherwise the colors that flame graphs give to names.
 * @returns {{sorts: [{name, letter}], ofFunction: Uint8Array, none: number}} ofFunction: the color of each function;
 *   none: the color of rows without a stack
 */
export function barSorts({ functions, categories, knowsCategories }) {
  const none = categories.length - 1;
  if (knowsCategories) {
    return { sorts: categories, ofFunction: functions.category, none };
  }
  // No kinds of code are known, so functions have one of four warm colors (letters A to D), chosen by their names.
  const sorts = Array.from("ABCD", (letter) => ({ name: "", letter }));
  const ofFunction = Uint8Array.from(functions.name, (name) => "ABCD".indexOf(warmLetter(hashOfName(name))));
  return { sorts: [...sorts, categories[none]], ofFunction, none: sorts.length };
}

/** The color of each row, which is that of its innermost function. */
export function rowSorts({ nodeFunction }, rows, { ofFunction, none }) {
  const sorts = new Uint8Array(rows.length);
  for (let row = 0; row < rows.length; row++) sorts[row] = rows.node[row] < 0 ? none : ofFunction[nodeFunction[rows.node[row]]];
  return sorts;
}

/** Describes a sum of rows over time: [from, to) in `bins` equal parts. `weights` is a column of the rows. `reach` says
 * which time a row stands for (see `reachOf`), and `unitNs` is the number of nanoseconds per unit of time. */
export function binning(rows, weights, from, to, bins, reach, unitNs) {
  return { rows, weights, from, to, bins, reach, scale: bins / (to - from), unitNs };
}

/** Adds the weight of one row to `sums[slot + stride × bin]`, spread over the bins of the time that the row stands for.
 * The part of the weight outside of the job's time is left out. `job` is made by `binning`. Its `reach` is −1 if a
 * sample stands for the time before it, 1 for the time after its start, and 0 for only a moment. */
function addToBins(job, row, sums, slot, stride) {
  const time = job.rows.time[row], weight = job.weights[row];
  // Only large recordings have units of time this long. A row is then the sum of all samples in one unit.
  const isSum = job.unitNs > SINGLE_UNIT;
  // How long a time the row stands for, in units of time. The weight of a single sample is in nanoseconds, unless it
  // stands only for a moment.
  let length = 0;
  if (isSum) length = 1;
  else if (job.reach !== 0) length = weight / job.unitNs;
  // Where this time begins, in bins.
  const isTimeBefore = job.reach < 0 && !isSum;
  const begin = ((isTimeBefore ? time - length : time) - job.from) * job.scale;
  // A time much shorter than a bin isn't spread.
  if (length * job.scale < 0.01) {
    const bin = Math.floor((time - job.from) * job.scale);
    if (bin >= 0 && bin < job.bins) sums[slot + stride * bin] += weight;
    return;
  }
  // Spread the weight evenly: each bin gets as much as the part of the time that is in it.
  const end = begin + length * job.scale, density = weight / (end - begin);
  const first = Math.max(0, Math.floor(begin)), last = Math.min(job.bins, Math.ceil(end));
  for (let bin = first; bin < last; bin++) {
    sums[slot + stride * bin] += density * (Math.min(bin + 1, end) - Math.max(bin, begin));
  }
}

/** The weights of one lane by bin and color: [color + count × bin]. `sorts` has the color of each row, and `count` is
 * the number of colors. `job` is made by `binning`, `index` by `rowsByTrack`. */
export function laneActivity(job, tracks, index, sorts, count) {
  const sums = new Float32Array(job.bins * count);
  for (const track of tracks) {
    for (let position = index.start[track]; position < index.start[track + 1]; position++) {
      const row = index.row[position];
      addToBins(job, row, sums, sorts[row], count);
    }
  }
  return sums;
}

/** The functions that ran in one lane during the job's time, each with its weight in that time, the heaviest first.
 * `job` is made by `binning`, `index` by `rowsByTrack`.
 * @returns {[number, number][]} pairs of function and weight */
export function laneFunctions(job, tracks, index, nodeFunction) {
  const sums = new Map();
  for (const track of tracks) {
    for (let position = index.start[track]; position < index.start[track + 1]; position++) {
      const row = index.row[position], node = job.rows.node[row], sum = [0];
      // With a stride of 0, all bins are added up in `sum[0]`.
      addToBins(job, row, sum, 0, 0);
      if (sum[0] > 0 && node >= 0) sums.set(nodeFunction[node], (sums.get(nodeFunction[node]) ?? 0) + sum[0]);
    }
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** For each node, whether one of the wanted functions is on its stack. */
export function nodesThrough({ nodeParent, nodeFunction, nodeCount }, isWanted) {
  const through = new Uint8Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node];
    through[node] = isWanted[nodeFunction[node]] || (parent >= 0 && through[parent]) ? 1 : 0;
  }
  return through;
}

/** For each bin of the job's time, whether the lane has rows in it whose node is in `through` (from `nodesThrough`).
 * `job` is made by `binning`, `index` by `rowsByTrack`. */
export function laneMarks(job, tracks, index, through) {
  const marks = new Uint8Array(job.bins), { node, time } = job.rows;
  for (const track of tracks) {
    for (let position = index.start[track]; position < index.start[track + 1]; position++) {
      const row = index.row[position], bin = Math.floor((time[row] - job.from) * job.scale);
      if (node[row] >= 0 && through[node[row]] && bin >= 0 && bin < job.bins) marks[bin] = 1;
    }
  }
  return marks;
}

/** The weight of a full bar, chosen so that most bars fit and a few bursts don't make all others flat. `laneOfTrack`
 * has the lane of each track; -1 if it is in none. */
export function laneCeiling(job, laneOfTrack, lanes) {
  const sums = new Float32Array(job.bins * lanes);
  for (let row = 0; row < job.rows.length; row++) {
    const lane = laneOfTrack[job.rows.track[row]];
    if (lane >= 0) addToBins(job, row, sums, lane * job.bins, 1);
  }
  // Twice the 95th percentile of all bars, but no more than the highest bar.
  const bars = sums.filter((sum) => sum > 0).sort();
  return bars.length ? Math.min(bars[bars.length - 1], 2 * bars[Math.floor(bars.length * 0.95)]) : 0;
}

/** The total weight in each bin of the tracks that are set in `counts`. The heat map shows these sums. */
export function totalActivity(job, counts) {
  const sums = new Float64Array(job.bins);
  for (let row = 0; row < job.rows.length; row++) {
    if (counts[job.rows.track[row]]) addToBins(job, row, sums, 0, 1);
  }
  return sums;
}

/** The typical time between two samples of a busy thread, in units of time of `unitNs` nanoseconds. 0 if there are
 * neither lanes nor rows. */
export function samplingInterval(event, lanes, rows, unitNs) {
  const stated = event.sampling;
  if (stated?.frequency) return 1e9 / stated.frequency / unitNs;
  if (stated?.period && event.unit === "nanoseconds") return stated.period / unitNs;
  // The input doesn't state the time between samples. So divide the time of the busiest lane by its number of samples.
  const busiest = lanes.reduce((busiest, lane) => lane.weight > (busiest?.weight ?? -1) ? lane : busiest, null);
  if (!busiest || !rows.length) return 0;
  let count = 0;
  const tracks = new Set(busiest.tracks);
  for (let row = 0; row < rows.length; row++) if (tracks.has(rows.track[row])) count++;
  return (busiest.last - busiest.first) / Math.max(count, 1);
}
