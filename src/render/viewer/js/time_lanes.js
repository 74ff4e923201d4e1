// Lays out stacks in order of time, with a lane for each thread, for a flame chart.
//
// A sample shows what ran when it was taken. It stands for the time since the thread's previous sample, provided that
// this isn't longer than what a sample usually covers: its weight if weights are times, otherwise the usual distance
// between samples. If the previous sample is longer ago, the thread was idle in between, within the functions that both
// samples have in common. Samples without times are placed in their order, each as wide as its weight.

import { BoxRows, IDLE, LANE } from "./flame_layout.js";

/** The usual distance between samples if it can't be computed: one millisecond, in nanoseconds. */
const USUAL_DISTANCE = 1e6;

/** The lanes for one event's rows; the thread that ran longest comes first. `takes(row)` tells whether a row is
 * selected. `rows.time` may be null. `unit` is the number of nanoseconds per unit of time. `weighsTime` tells whether
 * weights are nanoseconds. `rowsHaveDurations` tells whether a row starts at its time and lasts as long as its weight.
 * Each lane has {name, row, start, end}: the indices of its rows, and the time that each row covers. */
export function timeLanes(rows, tracks, { takes, unit, weighsTime, rowsHaveDurations, weight }) {
  const byThread = new Map();
  for (let row = 0; row < rows.length; row++) {
    if (!takes(row)) continue;
    const name = laneName(tracks[rows.track[row]]);
    if (!byThread.has(name)) byThread.set(name, []);
    byThread.get(name).push(row);
  }
  // How long a time a sample usually covers: as long as its weight, or else the usual distance between samples.
  const usual = rows.time && !weighsTime ? usualDistance(rows, unit) : 0;
  const covers = (row) => (weighsTime ? Math.max(rows.weight[row], 1) / unit : usual);
  const lanes = [];
  // Without times, all threads are placed one after the other; `nextStart` is where the next one starts.
  let nextStart = 0;
  for (const [name, numbers] of byThread) {
    const lane = {
      name,
      row: Uint32Array.from(numbers),
      start: new Float64Array(numbers.length),
      end: new Float64Array(numbers.length),
      ran: 0,
    };
    if (rows.time && rowsHaveDurations) coverLength(lane, rows, unit);
    else if (rows.time) coverTime(lane, rows.time, covers);
    else nextStart = coverWeights(lane, weight, nextStart);
    // For sorting: how long the thread ran in all.
    for (let sample = 0; sample < numbers.length; sample++) lane.ran += lane.end[sample] - lane.start[sample];
    lanes.push(lane);
  }
  return lanes.sort((a, b) => b.ran - a.ran || (a.name < b.name ? -1 : 1));
}

function laneName(track) {
  if (!track) return "";
  const numbers = track.pid === null && track.tid === null ? "" : `-${track.pid ?? "?"}/${track.tid ?? "?"}`;
  return (track.recording === null ? "" : `${track.recording}: `) + (track.comm ?? "") + numbers;
}

/** Cached by rows, which don't change. */
const USUAL_DISTANCES = new WeakMap();

/** The median distance between consecutive samples of a thread. */
function usualDistance(rows, unit) {
  if (!USUAL_DISTANCES.has(rows)) USUAL_DISTANCES.set(rows, medianDistance(rows) ?? USUAL_DISTANCE / unit);
  return USUAL_DISTANCES.get(rows);
}

/** The median time between a row and the previous row of the same track; null if there is none. */
function medianDistance({ track, time, length }) {
  const before = new Map(),
    distances = new Float64Array(length);
  let count = 0;
  for (let row = 0; row < length; row++) {
    // `before` has the time of each track's previous row. At its first row, the distance is NaN and isn't counted.
    const distance = time[row] - before.get(track[row]);
    if (distance > 0) distances[count++] = distance;
    before.set(track[row], time[row]);
  }
  return count > 0 ? distances.subarray(0, count).sort()[count >> 1] : null;
}

/** Sets the time that each sample stands for: the time since the thread's previous sample. If the previous sample is
 * longer ago than a sample usually covers (`covers(row)`), only as much time as that. */
function coverTime(lane, time, covers) {
  let before = -Infinity;
  for (let sample = 0; sample < lane.row.length; sample++) {
    const takenAt = time[lane.row[sample]],
      covered = covers(lane.row[sample]);
    // Timers sometimes fire late. A distance a little longer than a sample covers is no idle time.
    const isGapless = takenAt - before <= covered * 1.5;
    lane.start[sample] = isGapless ? before : Math.max(takenAt - covered, before);
    // The end is also where the next sample may start.
    lane.end[sample] = before = Math.max(takenAt, before);
  }
}

/** Places rows with a duration. They start at their times, but not before the previous call has ended. */
function coverLength(lane, { time, weight }, unit) {
  let before = -Infinity;
  lane.row.forEach((row, sample) => {
    lane.start[sample] = Math.max(time[row], before);
    lane.end[sample] = before = Math.max(lane.start[sample], time[row] + weight[row] / unit);
  });
}

/** Places rows without times one after the other, starting at `from`, each as wide as its weight. Returns the end. */
function coverWeights(lane, weight, from) {
  let at = from;
  for (let sample = 0; sample < lane.row.length; sample++) {
    lane.start[sample] = at;
    lane.end[sample] = at += weight(lane.row[sample]);
  }
  return at;
}

/** The range from the start of the first row to the end of the last one: {start, end}. */
export function extentOfLanes(lanes) {
  let [start, end] = [Infinity, -Infinity];
  for (const lane of lanes) {
    start = Math.min(start, lane.start[0]);
    end = Math.max(end, lane.end[lane.end.length - 1]);
  }
  return start < end ? { start, end } : { start: 0, end: 0 };
}

/** Lays out the boxes of lanes in the range `view`. Below each lane's name are the boxes of its stacks. `nodeOf(row)`
 * is the tree node of a row; 0 if it has none. Of several boxes narrower than `narrowest` within that distance, only
 * one is kept. */
export function layoutLanes(lanes, tree, nodeOf, view, narrowest) {
  const boxes = new BoxRows();
  lanes.forEach((lane, number) => {
    if (lane.name) {
      boxes.add(LANE - number, view.start, view.end);
      boxes.endRow();
    }
    for (const row of new LaneLayout(tree, view, narrowest).rowsOf(lane, nodeOf)) {
      for (let box = 0; box < row.node.length; box++) boxes.add(row.node[box], row.start[box], row.end[box]);
      boxes.endRow();
    }
  });
  return boxes;
}

/** Lays out one lane. Consecutive samples with the same callers share the boxes of these callers. */
class LaneLayout {
  /** `rows` are the boxes so far, by depth. `opened` has the start of the open box at each depth, and `last` is the end
   * of the previous sample. */
  constructor(tree, view, narrowest) {
    Object.assign(this, { tree, view, narrowest });
    this.rows = [];
    this.opened = [];
    this.last = 0;
  }

  /** The rows of boxes of a lane, the outermost functions first. Walks along the samples. A function's box stays open
   * as long as consecutive samples have the function on their stacks, with the same callers. */
  rowsOf(lane, nodeOf) {
    const { tree, opened } = this,
      depth = tree.depth;
    // The node of the previous sample: its box and those of its callers are open.
    let open = 0;
    this.last = lane.start[0];
    for (let sample = 0; sample < lane.row.length; sample++) {
      const node = nodeOf(lane.row[sample]),
        start = lane.start[sample];
      // From the previous node and the new one, go up to the node that both have in common. Close the boxes on the way
      // up from the previous node, and open those on the way up from the new one.
      let [closing, opening] = [open, node];
      while (closing !== opening) {
        if (depth[closing] >= depth[opening]) {
          this.add(depth[closing] - 1, closing, opened[depth[closing] - 1], this.last);
          closing = tree.parent[closing];
        } else {
          opened[depth[opening] - 1] = start;
          opening = tree.parent[opening];
        }
      }
      // If time has passed since the previous sample, the thread was idle within the common functions.
      if (start > this.last) this.add(depth[opening], IDLE, this.last, start);
      open = node;
      this.last = lane.end[sample];
    }
    // After the last sample, close all boxes.
    for (let node = open; node > 0; node = tree.parent[node])
      this.add(depth[node] - 1, node, opened[depth[node] - 1], this.last);
    return this.rows;
  }

  /** Adds a box to a row. Leaves it out if it is out of view, or narrow and close to the row's previous box. */
  add(depth, node, start, end) {
    while (this.rows.length <= depth) this.rows.push({ node: [], start: [], end: [], to: -Infinity });
    const row = this.rows[depth];
    if (end <= this.view.start || start >= this.view.end || end <= start) return;
    if (end - start < this.narrowest && end - row.to < this.narrowest) return;
    row.to = end;
    row.node.push(node);
    row.start.push(start);
    row.end.push(end);
  }
}
