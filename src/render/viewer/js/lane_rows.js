// Draws lanes. Each is a row of bars, stacked by category, on a band that shows how long the thread lived. Only visible
// rows are summed and drawn, so that a thousand threads scroll as smoothly as ten.

import {
  barSorts, binning, laneActivity, laneCeiling, laneFunctions, laneMarks, nodesThrough, reachOf, rowSorts, rowsByTrack,
  samplingInterval,
} from "./activity.js";
import { lanesOf } from "./lanes.js";
import { findFunctions } from "./search.js";

/** The height of a lane, in pixels. */
export const LANE_HEIGHT = 22;

/** The lanes and their sums. Sums are cached as long as they are valid. */
export class LaneSums {
  /** `clock` is null if the profile has no times. */
  constructor(profile, clock) {
    this.profile = profile;
    this.clock = clock;
    /** What the colors of bars mean. */
    this.coloring = barSorts(profile);
    /** The event and the kind of lanes that `arrange` was called with: {event, by}. */
    this.of = {};
  }

  /** Sets the event and the kind of lanes (`by`): "thread", "process", "cpu" or "recording". Returns whether anything
   * changed. */
  arrange(event, by) {
    if (this.of.event === event && this.of.by === by) return false;
    const { profile } = this, rows = profile.rows(event);
    const lanes = lanesOf(profile, rows, by);
    this.of = { event, by };
    Object.assign(this, { rows, lanes, shape: null, kept: new Map() });
    this.index = rowsByTrack(rows, profile.tracks.length);
    this.rowSorts = rowSorts(profile, rows, this.coloring);
    this.interval = this.clock ? samplingInterval(profile.events[event], lanes, rows, this.clock.unitNs) : 0;
    return true;
  }

  /** Sets the visible time and its width in pixels, and drops sums that are no longer valid. Returns whether anything
   * changed. `weight` is the state's: "samples" or "period". */
  fit(weight, [from, to], width) {
    const shape = [weight, from, to, width].join();
    if (this.shape === shape) return false;
    const { profile, rows, interval, clock } = this;
    // Whether a row stands for a time before it (−1), after it (1), or only for a moment (0).
    const reach = reachOf(profile, profile.events[this.of.event], weight);
    // A bar with only a few samples would show the beat of the sampling interval instead of the activity. So bars are
    // wide enough for several samples, but at least 2 and at most 16 pixels wide.
    const samples = reach ? 2 : 5, pixel = (to - from) / Math.max(width, 1);
    const pixels = Math.max(2, Math.min(16, Math.ceil(samples * interval / pixel)));
    const weights = weight === "samples" ? rows.count : rows.weight;
    const bins = Math.max(1, Math.ceil(width / pixels));
    this.job = binning(rows, weights, from, from + bins * pixels * pixel, bins, reach, clock.unitNs);
    Object.assign(this, { shape, pixels, kept: new Map() });
    this.measure();
    return true;
  }

  /** Computes the weight of a full bar. It is the same for all lanes of a kind, so that they can be compared. */
  measure() {
    const ceilings = { thread: 0, process: 0, cpu: 0, recording: 0 }, { lanes, job } = this;
    for (const kind of Object.keys(ceilings)) {
      // The lane of this kind to which each track belongs; −1 if there is none.
      const laneOfTrack = new Int32Array(this.profile.tracks.length).fill(-1);
      lanes.forEach((lane, number) => {
        if (lane.kind !== kind) return;
        for (const track of lane.tracks) laneOfTrack[track] = number;
      });
      if (laneOfTrack.some((lane) => lane >= 0)) ceilings[kind] = laneCeiling(job, laneOfTrack, lanes.length);
    }
    this.ceilings = ceilings;
  }

  /** The weights of a lane by bin and category. */
  activity(lane) {
    let sums = this.kept.get(lane);
    if (!sums) {
      sums = laneActivity(this.job, lane.tracks, this.index, this.rowSorts, this.coloring.sorts.length);
      this.kept.set(lane, sums);
    }
    return sums;
  }

  /**
   * The activity of a lane at a time: { from, to, amounts by category, functions with weights }; null if that time is
   * not visible.
   */
  at(lane, time) {
    const { job } = this, bin = Math.floor((time - job.from) * job.scale), count = this.coloring.sorts.length;
    if (bin < 0 || bin >= job.bins) return null;
    const [from, to] = [job.from + bin / job.scale, job.from + (bin + 1) / job.scale];
    const onlyThisBin = binning(job.rows, job.weights, from, to, 1, job.reach, job.unitNs);
    const functions = laneFunctions(onlyThisBin, lane.tracks, this.index, this.profile.nodeFunction);
    return { from, to, amounts: Array.from(this.activity(lane).subarray(bin * count, (bin + 1) * count)), functions };
  }
}

/**
 * For each node, whether the lanes mark it: its stack has a match of the search, or without a search, the selected
 * function. null if there is nothing to mark.
 */
export function markedNodes(profile, groups, { search, regex, selected }) {
  const wanted = findFunctions(profile.functions.name, search, regex)?.functions;
  if (wanted) return nodesThrough(profile, wanted);
  if (selected === null || selected >= profile.functionCount) return null;
  return nodesThrough(profile, groups.of.map((group) => (group === groups.of[selected] ? 1 : 0)));
}

/** Draws marks below a lane's bars where matches of the search, or the selected function, were on the stack. `top` is
 * the upper edge of the lane, `place(time)` a position in pixels, and `nodes` is from `markedNodes`. */
export function drawMarks(pen, { job, pixels, index }, lane, top, place, nodes, color) {
  const marks = laneMarks(job, lane.tracks, index, nodes), left = place(job.from);
  pen.fillStyle = color;
  for (let bin = 0; bin < job.bins; bin++) if (marks[bin]) pen.fillRect(left + bin * pixels, top + LANE_HEIGHT - 3, pixels, 3);
}

/** Draws one lane at `top`: a band for the time that it lived, and on it a bar for each bin of time. `sums` are the
 * `LaneSums`; `place(time)` is a position in pixels; `colors` are {idle, more, sorts}: for the band, for the mark of a
 * bar that is too high, and for each kind of code. */
export function drawLane(pen, sums, lane, top, place, colors) {
  const { job, pixels } = sums, count = sums.coloring.sorts.length, bars = sums.activity(lane);
  const height = LANE_HEIGHT - 2, left = place(job.from), most = sums.ceilings[lane.kind] || 1;
  pen.fillStyle = colors.idle;
  const [begin, end] = [place(lane.first), place(lane.last)];
  pen.fillRect(Math.max(begin, left), top + 1, Math.max(1, end - Math.max(begin, left)), height);
  for (let bin = 0; bin < job.bins; bin++) {
    let below = 0;
    // Stack the kinds of code (`sort`) of the bin, each on top of the ones before.
    for (let sort = 0; sort < count; sort++) {
      const sum = bars[bin * count + sort];
      if (!sum) continue;
      const [low, high] = [below, below + sum].map((sum) => Math.min(height, height * sum / most));
      pen.fillStyle = colors.sorts[sort];
      pen.fillRect(left + bin * pixels, top + 1 + height - high, pixels, high - low);
      below += sum;
    }
    if (below <= most * 1.001) continue;
    // The bar would be higher than its lane: mark its top.
    pen.fillStyle = colors.more;
    pen.fillRect(left + bin * pixels, top + 1, pixels, 1);
  }
}

/** Draws the whole weight of a lane as one bar. This is all that can be shown for samples without times. `sums` are the
 * `LaneSums`, `top` and `width` are in pixels, `weight` is the state's ("samples" or "period"), and `colors` are those
 * of `drawLane`. */
export function drawSumLane(pen, sums, lane, top, width, weight, colors) {
  const { rows, index, rowSorts } = sums, shares = new Float64Array(sums.coloring.sorts.length);
  const weights = weight === "samples" ? rows.count : rows.weight;
  const most = sums.lanes.reduce((most, { weight }) => Math.max(most, weight), 0) || 1;
  let whole = 0;
  for (const track of lane.tracks) {
    for (let position = index.start[track]; position < index.start[track + 1]; position++) {
      shares[rowSorts[index.row[position]]] += weights[index.row[position]];
      whole += weights[index.row[position]];
    }
  }
  let left = 0;
  shares.forEach((share, sort) => {
    // The bar of the heaviest lane fills the width. Within a bar, each kind of code gets its share.
    const wide = whole ? width * lane.weight / most * share / whole : 0;
    pen.fillStyle = colors.sorts[sort];
    pen.fillRect(left, top + 1, wide, LANE_HEIGHT - 2);
    left += wide;
  });
}

/** For each track, whether it counts. If none is selected, all do. */
export function countingTracks(count, chosen) {
  const counts = new Uint8Array(count).fill(chosen.length ? 0 : 1);
  for (const track of chosen) if (track < count) counts[track] = 1;
  return counts;
}

/** How much of a lane is selected: "all", "some" or "none". */
export function laneChosen(lane, counts) {
  const chosen = lane.tracks.filter((track) => counts[track]).length;
  return chosen === 0 ? "none" : chosen === lane.tracks.length ? "all" : "some";
}

/** The selected tracks after a click on lane number `number`. `chosen` are the tracks selected so far, and `before` is
 * the lane that was clicked last, or null. */
export function tracksAfterClick(lanes, number, before, chosen, trackCount, keys) {
  const clicked = lanes[number].tracks, isOn = clicked.every((track) => chosen.includes(track));
  // Shift selects the lanes from the last clicked one to this one. With Ctrl or Cmd, they are added to the selection.
  if (keys.shiftKey && before !== null) {
    const range = lanes.slice(Math.min(before, number), Math.max(before, number) + 1).flatMap((lane) => lane.tracks);
    return sortedTracks(keys.ctrlKey || keys.metaKey ? [...chosen, ...range] : range, trackCount);
  }
  if (keys.ctrlKey || keys.metaKey) {
    // Ctrl or Cmd adds the lane, or removes it if it is selected.
    const others = chosen.filter((track) => !clicked.includes(track));
    return sortedTracks(isOn ? others : [...others, ...clicked], trackCount);
  }
  // A plain click selects only this lane, or nothing if it was the only one.
  return isOn && chosen.length === clicked.length ? [] : sortedTracks(clicked, trackCount);
}

/** Sorts selected tracks. Selecting all tracks is the same as selecting none. */
function sortedTracks(tracks, trackCount) {
  const distinct = [...new Set(tracks)].sort((a, b) => a - b);
  return distinct.length === trackCount ? [] : distinct;
}
