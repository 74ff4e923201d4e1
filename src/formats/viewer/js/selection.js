// Which samples count: by event, time and thread; summed by stack.

/** Whether a row counts, by the state's threads and times: a function of a row's number. */
export function rowFilter(profile, rows, state) {
  const wanted = trackSet(profile, state);
  const ranges = rows.time ? state.ranges : [];
  const { track, time } = rows;
  if (!wanted && ranges.length === 0) return () => true;
  return (row) => {
    if (wanted && !wanted[track[row]]) return false;
    if (ranges.length === 0) return true;
    for (const [from, to] of ranges) if (time[row] >= from && time[row] < to) return true;
    return false;
  };
}

/** By track, whether it counts; null if all do. */
export function trackSet(profile, state) {
  if (state.tracks.length === 0) return null;
  const wanted = new Uint8Array(profile.tracks.length);
  for (const track of state.tracks) if (track >= 0 && track < wanted.length) wanted[track] = 1;
  return wanted;
}

/**
 * The samples that count, summed by node.
 * @returns {{own: Float64Array, ownCount: Float64Array, empty: number, emptyCount: number, total: number, count: number}}
 *   own: weight by node, in the unit asked for; empty: that of samples without a stack; total: all of it
 */
export function select(profile, state, from = "profile") {
  const rows = profile.rows(Math.min(state.event, profile.events.length - 1), from);
  const own = new Float64Array(profile.nodeCount);
  const ownCount = new Float64Array(profile.nodeCount);
  const weights = state.weight === "samples" ? rows.count : rows.weight;
  const counts = rowFilter(profile, rows, from === "profile" ? state : { ...state, ranges: [], tracks: [] });
  const { node, count } = rows;
  const sums = { own, ownCount, empty: 0, emptyCount: 0, total: 0, count: 0 };
  for (let row = 0; row < rows.length; row++) {
    if (!counts(row)) continue;
    sums.total += weights[row];
    sums.count += count[row];
    const at = node[row];
    if (at < 0) {
      sums.empty += weights[row];
      sums.emptyCount += count[row];
    } else {
      own[at] += weights[row];
      ownCount[at] += count[row];
    }
  }
  return sums;
}
