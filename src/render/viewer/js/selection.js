// The samples that count: by event, time and thread; summed by stack.

/**
 * The part of a row counts, by the state's threads and times: a function of a row's number, from 0 to 1. A row that
 * lasts is cut by ranges of time; a moment is in one or not.
 */
export function rowParts(profile, rows, state) {
  const wanted = trackSet(profile, state);
  const ranges = rows.time ? state.ranges : [];
  const { track, time, weight } = rows;
  if (!wanted && ranges.length === 0) return () => 1;
  const unit = profile.time?.unit ?? 1;
  return (row) => {
    if (wanted && !wanted[track[row]]) return 0;
    if (ranges.length === 0) return 1;
    const begin = time[row];
    const length = profile.rowsLast ? weight[row] / unit : 0;
    let inside = 0;
    for (const [from, to] of ranges) {
      if (length === 0) inside += begin >= from && begin < to ? 1 : 0;
      else inside += Math.max(0, Math.min(begin + length, to) - Math.max(begin, from)) / length;
    }
    return Math.min(1, inside);
  };
}

/** By track, whether it counts; null if all do. */
export function trackSet(profile, state) {
  if (state.tracks.length === 0) return null;
  const wanted = new Uint8Array(profile.tracks.length);
  for (const track of state.tracks) if (track >= 0 && track < wanted.length) wanted[track] = 1;
  return wanted;
}

/** The places of rows of those times: [from, to) of their numbers. Rows are in the order of their times. */
function rowSpans(rows, ranges) {
  if (!rows.time || ranges.length === 0) return [[0, rows.length]];
  // Ranges may overlap, and a row counts once.
  const spans = ranges.map(([from, to]) => [firstRowAt(rows.time, from), firstRowAt(rows.time, to)]).sort((a, b) => a[0] - b[0]);
  let counted = 0;
  return spans.map(([from, to]) => {
    const begin = Math.max(from, counted);
    counted = Math.max(counted, to);
    return [begin, to];
  });
}

/** The number of the first row at or after a time. */
function firstRowAt(time, wanted) {
  let [low, high] = [0, time.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Arrays of sums that are made again and again: each is one of two, in turns, so that those of the last result stay as
 * they are. New arrays of some megabytes for every move of a brush cost more than filling them, for they make the
 * browser collect its garbage.
 */
export class SumArrays {
  #arrays = new Map();

  /** An array of zeros for what is called so. */
  take(name, length) {
    const [before, other] = this.#arrays.get(name) ?? [];
    const array = other?.length === length ? other.fill(0) : new Float64Array(length);
    this.#arrays.set(name, [array, before]);
    return array;
  }
}

/**
 * The samples that count, summed by node.
 * @returns {{own: Float64Array, ownCount: Float64Array, empty: number, emptyCount: number, total: number, count: number}}
 *   own: weight by node, in the unit asked for; empty: that of samples without a stack; total: all of it
 */
export function select(profile, state, from = "profile", arrays = new SumArrays()) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1), from);
  const isProfile = from === "profile", wanted = isProfile ? trackSet(profile, state) : null;
  const sums = {
    own: arrays.take("own", profile.nodeCount), ownCount: arrays.take("count", profile.nodeCount),
    empty: 0, emptyCount: 0, total: 0, count: 0,
  };
  const ranges = isProfile ? state.ranges : [];
  if (profile.rowsLast && rows.time && ranges.length > 0) addParts(sums, rows, rowParts(profile, rows, state), state.weight);
  else for (const span of rowSpans(rows, ranges)) addRows(sums, rows, span, wanted, state.weight);
  return sums;
}

/** Adds rows of moments. */
function addRows(sums, rows, [from, to], wanted, by) {
  const { track, weight, count } = rows, weights = by === "samples" ? count : weight;
  for (let row = from; row < to; row++) {
    if (wanted === null || wanted[track[row]] === 1) addRow(sums, rows.node[row], weights[row], count[row]);
  }
}

/** Adds rows that last, as far as they count. */
function addParts(sums, { length, node, weight, count }, partOf, by) {
  for (let row = 0; row < length; row++) {
    const part = partOf(row);
    if (part === 0) continue;
    // A call that is cut is a call.
    addRow(sums, node[row], by === "samples" ? count[row] : Math.round(weight[row] * part), count[row]);
  }
}

function addRow(sums, node, weight, count) {
  sums.total += weight;
  sums.count += count;
  if (node < 0) {
    sums.empty += weight;
    sums.emptyCount += count;
  } else {
    sums.own[node] += weight;
    sums.ownCount[node] += count;
  }
}
