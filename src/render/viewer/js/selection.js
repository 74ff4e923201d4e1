// Selects samples by event, time and thread, and sums them by stack.

/**
 * Returns a function that tells for a row's index which part of the row is selected, from 0 to 1. Ranges of time cut
 * rows that last; other rows are in a range or not.
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
    const length = profile.rowsHaveDurations ? weight[row] / unit : 0;
    let inside = 0;
    for (const [from, to] of ranges) {
      // A moment is inside or not. A duration counts with the part of it that is inside.
      if (length === 0) inside += begin >= from && begin < to ? 1 : 0;
      else inside += Math.max(0, Math.min(begin + length, to) - Math.max(begin, from)) / length;
    }
    return Math.min(1, inside);
  };
}

/** For each track, whether it is selected; null if all are. */
export function trackSet(profile, state) {
  if (state.tracks.length === 0) return null;
  const wanted = new Uint8Array(profile.tracks.length);
  for (const track of state.tracks) if (track >= 0 && track < wanted.length) wanted[track] = 1;
  return wanted;
}

/** The selected rows as spans [from, to) of indices. Rows are in order of time. */
function rowSpans(rows, ranges) {
  if (!rows.time || ranges.length === 0) return [[0, rows.length]];
  // Ranges may overlap, but each row counts only once.
  const spans = ranges.map(([from, to]) => [firstRowAt(rows.time, from), firstRowAt(rows.time, to)]).sort((a, b) => a[0] - b[0]);
  // Rows before this index were in an earlier range.
  let countedTo = 0;
  return spans.map(([from, to]) => {
    const begin = Math.max(from, countedTo);
    countedTo = Math.max(countedTo, to);
    return [begin, to];
  });
}

/** The index of the first row at or after a time. */
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
 * Recycles arrays of sums. Each name has two arrays, which are used in turn, so that the last result stays valid. New
 * arrays of some megabytes for every move of a brush would take longer than filling them, because of garbage
 * collection.
 */
export class SumArrays {
  #arrays = new Map();

  /** Returns an array of zeros for this name. */
  take(name, length) {
    const [before, other] = this.#arrays.get(name) ?? [];
    const array = other?.length === length ? other.fill(0) : new Float64Array(length);
    this.#arrays.set(name, [array, before]);
    return array;
  }
}

/**
 * Sums the selected samples by node. If `from` is "baseline", sums all samples of the earlier profile instead.
 * @returns {{own: Float64Array, ownCount: Float64Array, empty: number, emptyCount: number, total: number, count:
 *   number}} own: weight by node, in the selected unit; empty: weight of samples without a stack; total: weight of all;
 *   the counts: number of samples
 */
export function select(profile, state, from = "profile", arrays = new SumArrays()) {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1), from);
  const isProfile = from === "profile", wanted = isProfile ? trackSet(profile, state) : null;
  const sums = {
    own: arrays.take("own", profile.nodeCount), ownCount: arrays.take("count", profile.nodeCount),
    empty: 0, emptyCount: 0, total: 0, count: 0,
  };
  const ranges = isProfile ? state.ranges : [];
  // Ranges may cut rows that last, so only a part of their weight counts. Other rows count as a whole.
  if (profile.rowsHaveDurations && rows.time && ranges.length > 0) addParts(sums, rows, rowParts(profile, rows, state), state.weight);
  else for (const span of rowSpans(rows, ranges)) addRows(sums, rows, span, wanted, state.weight);
  return sums;
}

/** Adds rows without a duration. */
function addRows(sums, rows, [from, to], wanted, by) {
  const { track, weight, count } = rows, weights = by === "samples" ? count : weight;
  for (let row = from; row < to; row++) {
    if (wanted === null || wanted[track[row]] === 1) addRow(sums, rows.node[row], weights[row], count[row]);
  }
}

/** Adds rows that have a duration. Of the weight of each row, only the part in the selection counts; `partOf` returns
 * it as a fraction. */
function addParts(sums, { length, node, weight, count }, partOf, by) {
  for (let row = 0; row < length; row++) {
    const part = partOf(row);
    if (part === 0) continue;
    // Part of a call still counts as one call.
    addRow(sums, node[row], by === "samples" ? count[row] : Math.round(weight[row] * part), count[row]);
  }
}

/** Adds a row to the totals and to its node; `node` is −1 for a row without a stack. */
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
