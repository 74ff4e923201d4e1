// Stacks in order of time, a lane for each thread: what a flame chart is drawn from.
//
// A sample shows what ran when it was taken. It stands for the time since the thread's sample before, if that is no
// longer ago than the time it is taken to cover: its own weight where that is time, else the usual distance of samples.
// If the sample before is longer ago, the thread was idle between, in those functions that both samples were in.
// Without times samples are in their order, each as wide as its weight.

import { BoxRows, IDLE, LANE } from "./flame_layout.js";

/** The usual distance of samples where it cannot be seen: a millisecond, in nanoseconds. */
const USUAL_DISTANCE = 1e6;

/** The lanes of one event's rows, the thread first that ran longest. `takes(row)` shows whether a row is selected;
 * `rows.time` may be null; `unit` is how many nanoseconds one of the time's units has; `weighsTime` whether weights are
 * nanoseconds; `rowsLast` whether rows begin at their time and last as long as they weigh. Each lane has {name, row,
 * start, end}: the numbers of rows, and what each covers. */
export function timeLanes(rows, tracks, { takes, unit, weighsTime, rowsLast, weight }) {
  const byThread = new Map();
  for (let row = 0; row < rows.length; row++) {
    if (!takes(row)) continue;
    const name = laneName(tracks[rows.track[row]]);
    if (!byThread.has(name)) byThread.set(name, []);
    byThread.get(name).push(row);
  }
  const usual = rows.time && !weighsTime ? usualDistance(rows, unit) : 0;
  const covers = (row) => (weighsTime ? Math.max(rows.weight[row], 1) / unit : usual);
  const lanes = [];
  let at = 0;
  for (const [name, numbers] of byThread) {
    const lane = {
      name,
      row: Uint32Array.from(numbers),
      start: new Float64Array(numbers.length),
      end: new Float64Array(numbers.length),
      ran: 0,
    };
    if (rows.time && rowsLast) coverLength(lane, rows, unit);
    else if (rows.time) coverTime(lane, rows.time, covers);
    else at = coverWeights(lane, weight, at);
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

/** By rows: they do not change. */
const USUAL_DISTANCES = new WeakMap();

/** The median distance of neighboring samples of one thread. */
function usualDistance(rows, unit) {
  if (!USUAL_DISTANCES.has(rows)) USUAL_DISTANCES.set(rows, medianDistance(rows) ?? USUAL_DISTANCE / unit);
  return USUAL_DISTANCES.get(rows);
}

function medianDistance({ track, time, length }) {
  const before = new Map(),
    distances = new Float64Array(length);
  let count = 0;
  for (let row = 0; row < length; row++) {
    const distance = time[row] - before.get(track[row]);
    if (distance > 0) distances[count++] = distance;
    before.set(track[row], time[row]);
  }
  return count > 0 ? distances.subarray(0, count).sort()[count >> 1] : null;
}

function coverTime(lane, time, covers) {
  let before = -Infinity;
  for (let sample = 0; sample < lane.row.length; sample++) {
    const at = time[lane.row[sample]],
      covered = covers(lane.row[sample]);
    // Timers are late now and then: a little more than what the sample covers is not an idle time.
    lane.start[sample] = at - before <= covered * 1.5 ? before : Math.max(at - covered, before);
    lane.end[sample] = before = Math.max(at, before);
  }
}

/** A row that lasts begins at its time, and not before the call before it has ended. */
function coverLength(lane, { time, weight }, unit) {
  let before = -Infinity;
  lane.row.forEach((row, sample) => {
    lane.start[sample] = Math.max(time[row], before);
    lane.end[sample] = before = Math.max(lane.start[sample], time[row] + weight[row] / unit);
  });
}

function coverWeights(lane, weight, from) {
  let at = from;
  for (let sample = 0; sample < lane.row.length; sample++) {
    lane.start[sample] = at;
    lane.end[sample] = at += weight(lane.row[sample]);
  }
  return at;
}

/** The range that lanes cover: {start, end}. */
export function extentOfLanes(lanes) {
  let [start, end] = [Infinity, -Infinity];
  for (const lane of lanes) {
    start = Math.min(start, lane.start[0]);
    end = Math.max(end, lane.end[lane.end.length - 1]);
  }
  return start < end ? { start, end } : { start: 0, end: 0 };
}

/** The boxes of lanes in the range `view`, those of a lane below its name. `nodeOf(row)` is the tree's node of a row
 * (0: none). Boxes narrower than `narrowest` are there once for each such stretch. */
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

/** One walk along a lane: neighbors that share callers share these callers' boxes. */
class LaneLayout {
  constructor(tree, view, narrowest) {
    Object.assign(this, { tree, view, narrowest });
    this.rows = [];
    this.opened = [];
    this.last = 0;
  }

  rowsOf(lane, nodeOf) {
    const { tree, opened } = this,
      depth = tree.depth;
    let open = 0;
    this.last = lane.start[0];
    for (let sample = 0; sample < lane.row.length; sample++) {
      const node = nodeOf(lane.row[sample]),
        start = lane.start[sample];
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
      if (start > this.last) this.add(depth[opening], IDLE, this.last, start);
      open = node;
      this.last = lane.end[sample];
    }
    for (let node = open; node > 0; node = tree.parent[node])
      this.add(depth[node] - 1, node, opened[depth[node] - 1], this.last);
    return this.rows;
  }

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
