// What ran when: weights of rows summed by time, for lanes (by category) and for the heat map. No drawing, no state.
//
// A sample of a clock stands for the time before it, a span for the time after its begin: their weights are spread over
// that time, so that a thread that was busy all the time looks so at any width. What else is counted stands at its time.

/** How the rows of an event stand for time: −1 before, 1 after, 0 not at all. */
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

/** The category of each row's innermost function; rows without a stack have the last one, which is "unknown". */
export function rowCategories(profile, rows) {
  const none = profile.categories.length - 1, categories = new Uint8Array(rows.length);
  for (let row = 0; row < rows.length; row++) {
    const node = rows.node[row];
    categories[row] = node < 0 ? none : profile.functions.category[profile.nodeFunction[node]];
  }
  return categories;
}

/** What is summed: `bins` equal parts of [from, to). `weights` is a column of the rows, `nsPerUnit` turns them into time. */
export function binning(rows, weights, from, to, bins, reach, unitNs) {
  return { rows, weights, from, to, bins, reach, scale: bins / (to - from), unitNs };
}

/** Adds one row to `sums[slot + stride × bin]`. */
function addToBins(job, row, sums, slot, stride) {
  const time = job.rows.time[row], weight = job.weights[row];
  const length = job.reach ? weight / job.unitNs : 0;
  const begin = ((job.reach < 0 ? time - length : time) - job.from) * job.scale;
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

/** One lane's weights: number category + categories × bin. */
export function laneActivity(job, tracks, index, categories, count) {
  const sums = new Float32Array(job.bins * count);
  for (const track of tracks) {
    for (let at = index.start[track]; at < index.start[track + 1]; at++) {
      const row = index.row[at];
      addToBins(job, row, sums, categories[row], count);
    }
  }
  return sums;
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
