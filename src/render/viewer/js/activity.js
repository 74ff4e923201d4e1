// Activity over time: weights of rows summed by time, for lanes (by category) and for the heat map. No drawing, no
// state.
//
// A sample of a clock stands for the time before it, a span for the time after its start: their weights are spread over
// that time, so that a thread that was busy all the time looks so at any width. Other events count at their time. In a
// large recording a row is the sum of a whole unit of time, and is spread over that unit.

import { hashOfName, warmLetter } from "./shades.js";

/** The unit of single samples, in nanoseconds, is at most this; a longer one is what samples are summed by. */
const SINGLE_UNIT = 1000;

/** The way the rows of an event stand for time: −1 before, 1 after, 0 not at all. */
export function reachOf(profile, event, weight) {
  if (profile.rowsLast) return weight === "period" ? 1 : 0;
  return event.unit === "nanoseconds" && weight === "period" ? -1 : 0;
}

/** The rows of each track: those of track t are `row[start[t]]` to before `row[start[t + 1]]`, in the order of time. */
export function rowsByTrack(rows, tracks) {
  const start = new Uint32Array(tracks + 1), row = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at++) start[rows.track[at] + 1]++;
  for (let track = 0; track < tracks; track++) start[track + 1] += start[track];
  const next = start.slice();
  for (let at = 0; at < rows.length; at++) row[next[rows.track[at]]++] = at;
  return { start, row };
}

/**
 * The meanings of the colors of bars: kinds of code, or, where none are known, colors of names as flame graphs have
 * them.
 * @returns {{sorts: [{name, letter}], ofFunction: Uint8Array, none: number}} none: the sort of rows without a stack
 */
export function barSorts({ functions, categories }) {
  const none = categories.length - 1;
  if (functions.category.some((category) => categories[category].name !== "native")) {
    return { sorts: categories, ofFunction: functions.category, none };
  }
  const sorts = Array.from("ABCD", (letter) => ({ name: "", letter }));
  const ofFunction = Uint8Array.from(functions.name, (name) => "ABCD".indexOf(warmLetter(hashOfName(name))));
  return { sorts: [...sorts, categories[none]], ofFunction, none: sorts.length };
}

/** The sort of each row's innermost function. */
export function rowSorts({ nodeFunction }, rows, { ofFunction, none }) {
  const sorts = new Uint8Array(rows.length);
  for (let row = 0; row < rows.length; row++) sorts[row] = rows.node[row] < 0 ? none : ofFunction[nodeFunction[rows.node[row]]];
  return sorts;
}

/** The sums: `bins` equal parts of [from, to). `weights` is a column of the rows, `nsPerUnit` turns them into time. */
export function binning(rows, weights, from, to, bins, reach, unitNs) {
  return { rows, weights, from, to, bins, reach, scale: bins / (to - from), unitNs };
}

/** Adds one row to `sums[slot + stride × bin]`. */
function addToBins(job, row, sums, slot, stride) {
  const time = job.rows.time[row], weight = job.weights[row];
  const isSum = job.unitNs > SINGLE_UNIT, length = isSum ? 1 : job.reach ? weight / job.unitNs : 0;
  const begin = ((job.reach < 0 && !isSum ? time - length : time) - job.from) * job.scale;
  if (length * job.scale < 0.01) {
    const bin = Math.floor((time - job.from) * job.scale);
    if (bin >= 0 && bin < job.bins) sums[slot + stride * bin] += weight;
    return;
  }
  const end = begin + length * job.scale, density = weight / (end - begin);
  const first = Math.max(0, Math.floor(begin)), last = Math.min(job.bins, Math.ceil(end));
  for (let bin = first; bin < last; bin++) {
    sums[slot + stride * bin] += density * (Math.min(bin + 1, end) - Math.max(bin, begin));
  }
}

/** One lane's weights: number sort + count × bin. */
export function laneActivity(job, tracks, index, sorts, count) {
  const sums = new Float32Array(job.bins * count);
  for (const track of tracks) {
    for (let at = index.start[track]; at < index.start[track + 1]; at++) {
      const row = index.row[at];
      addToBins(job, row, sums, sorts[row], count);
    }
  }
  return sums;
}

/** The activity of a lane in all bins of a job: functions and their weights, the heaviest first. */
export function laneFunctions(job, tracks, index, nodeFunction) {
  const sums = new Map();
  for (const track of tracks) {
    for (let at = index.start[track]; at < index.start[track + 1]; at++) {
      const row = index.row[at], node = job.rows.node[row], sum = [0];
      addToBins(job, row, sum, 0, 0);
      if (sum[0] > 0 && node >= 0) sums.set(nodeFunction[node], (sums.get(nodeFunction[node]) ?? 0) + sum[0]);
    }
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** By node, whether one of these functions is on its stack. */
export function nodesThrough({ nodeParent, nodeFunction, nodeCount }, isWanted) {
  const through = new Uint8Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node];
    through[node] = isWanted[nodeFunction[node]] || (parent >= 0 && through[parent]) ? 1 : 0;
  }
  return through;
}

/** One lane's bins in which there are rows with such a node. */
export function laneMarks(job, tracks, index, through) {
  const marks = new Uint8Array(job.bins), { node, time } = job.rows;
  for (const track of tracks) {
    for (let at = index.start[track]; at < index.start[track + 1]; at++) {
      const row = index.row[at], bin = Math.floor((time[row] - job.from) * job.scale);
      if (node[row] >= 0 && through[node[row]] && bin >= 0 && bin < job.bins) marks[bin] = 1;
    }
  }
  return marks;
}

/** A height for bars that most of them fit into: a few bursts do not make everything else flat. */
export function laneCeiling(job, laneOfTrack, lanes) {
  const sums = new Float32Array(job.bins * lanes);
  for (let row = 0; row < job.rows.length; row++) {
    const lane = laneOfTrack[job.rows.track[row]];
    if (lane >= 0) addToBins(job, row, sums, lane * job.bins, 1);
  }
  const some = sums.filter((sum) => sum > 0).sort();
  return some.length ? Math.min(some[some.length - 1], 2 * some[Math.floor(some.length * 0.95)]) : 0;
}

/** All weights of the tracks that count (`counts[track]`), by bin: the cells of the heat map. */
export function totalActivity(job, counts) {
  const sums = new Float64Array(job.bins);
  for (let row = 0; row < job.rows.length; row++) {
    if (counts[job.rows.track[row]]) addToBins(job, row, sums, 0, 1);
  }
  return sums;
}

/** About how far the samples of a busy thread stand from each other, in units of time. */
export function samplingInterval(event, lanes, rows, unitNs) {
  const told = event.sampling;
  if (told?.frequency) return 1e9 / told.frequency / unitNs;
  if (told?.period && event.unit === "nanoseconds") return told.period / unitNs;
  const busy = lanes.reduce((busy, lane) => lane.weight > (busy?.weight ?? -1) ? lane : busy, null);
  if (!busy || !rows.length) return 0;
  let count = 0;
  const own = new Set(busy.tracks);
  for (let row = 0; row < rows.length; row++) if (own.has(rows.track[row])) count++;
  return (busy.last - busy.first) / Math.max(count, 1);
}
