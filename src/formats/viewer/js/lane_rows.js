// Draws lanes: of each a row with bars stacked by category, over a band for as long as it lived. Only the rows in view
// are summed and drawn, so that a thousand threads scroll like ten.

import { binning, laneActivity, laneCeiling, reachOf, rowCategories, rowsByTrack, samplingInterval } from "./activity.js";
import { lanesOf } from "./lanes.js";

/** How high a lane is. */
export const LANE_HEIGHT = 22;

/** Lanes with what is summed of them, kept as long as it holds. */
export class LaneSums {
  constructor(profile, clock) {
    this.profile = profile;
    this.clock = clock;
    this.of = {};
  }

  /** Takes an event and what its lanes are; whether anything changed. */
  arrange(event, by) {
    if (this.of.event === event && this.of.by === by) return false;
    const { profile } = this, rows = profile.rows(event);
    const lanes = lanesOf(profile, rows, by);
    this.of = { event, by };
    Object.assign(this, { rows, lanes, shape: null, kept: new Map() });
    this.index = rowsByTrack(rows, profile.tracks.length);
    this.categories = rowCategories(profile, rows);
    this.interval = this.clock ? samplingInterval(profile.events[event], lanes, rows, this.clock.unitNs) : 0;
    return true;
  }

  /** Takes what part of the time is shown at which width; forgets sums that no longer hold. */
  fit(weight, [from, to], width) {
    const shape = [weight, from, to, width].join();
    if (this.shape === shape) return false;
    const { profile, rows, interval, clock } = this;
    const reach = reachOf(profile, profile.events[this.of.event], weight);
    // A bar of less than some samples would show the sampling's beat instead of what ran.
    const samples = reach ? 2 : 5, pixel = (to - from) / Math.max(width, 1);
    const pixels = Math.max(2, Math.min(16, Math.ceil(samples * interval / pixel)));
    const weights = weight === "samples" ? rows.count : rows.weight;
    const bins = Math.max(1, Math.ceil(width / pixels));
    this.job = binning(rows, weights, from, from + bins * pixels * pixel, bins, reach, clock.unitNs);
    Object.assign(this, { shape, pixels, kept: new Map() });
    this.measure();
    return true;
  }

  /** How much a bar of full height is: lanes of one sort can be compared. */
  measure() {
    const ceilings = { thread: 0, process: 0, cpu: 0 }, { lanes, job } = this;
    for (const kind of Object.keys(ceilings)) {
      const laneOfTrack = new Int32Array(this.profile.tracks.length).fill(-1);
      lanes.forEach((lane, at) => lane.kind === kind && lane.tracks.forEach((track) => { laneOfTrack[track] = at; }));
      if (laneOfTrack.some((lane) => lane >= 0)) ceilings[kind] = laneCeiling(job, laneOfTrack, lanes.length);
    }
    this.ceilings = ceilings;
  }

  /** What a lane shows, by bin and category. */
  activity(lane) {
    let sums = this.kept.get(lane);
    if (!sums) {
      sums = laneActivity(this.job, lane.tracks, this.index, this.categories, this.profile.categories.length);
      this.kept.set(lane, sums);
    }
    return sums;
  }

  /** What a lane did at a time: { from, to, amounts by category }; null if that is not shown. */
  at(lane, time) {
    const { job } = this, bin = Math.floor((time - job.from) * job.scale), count = this.profile.categories.length;
    if (bin < 0 || bin >= job.bins) return null;
    const amounts = Array.from(this.activity(lane).subarray(bin * count, (bin + 1) * count));
    return { from: job.from + bin / job.scale, to: job.from + (bin + 1) / job.scale, amounts };
  }
}

/** Draws a lane's row at `top`; `place(time)` is a pixel from the left. */
export function drawLane(pen, sums, lane, top, place, colours) {
  const { job, pixels } = sums, count = sums.profile.categories.length, bars = sums.activity(lane);
  const height = LANE_HEIGHT - 2, left = place(job.from), most = sums.ceilings[lane.kind] || 1;
  pen.fillStyle = colours.idle;
  const [begin, end] = [place(lane.first), place(lane.last)];
  pen.fillRect(Math.max(begin, left), top + 1, Math.max(1, end - Math.max(begin, left)), height);
  for (let bin = 0; bin < job.bins; bin++) {
    let below = 0;
    for (let category = 0; category < count; category++) {
      const sum = bars[bin * count + category];
      if (!sum) continue;
      const [low, high] = [below, below + sum].map((sum) => Math.min(height, height * sum / most));
      pen.fillStyle = colours.categories[category];
      pen.fillRect(left + bin * pixels, top + 1 + height - high, pixels, high - low);
      below += sum;
    }
    if (below <= most * 1.001) continue;
    // It is more than can be shown.
    pen.fillStyle = colours.more;
    pen.fillRect(left + bin * pixels, top + 1, pixels, 1);
  }
}

/** Draws what a lane's rows weigh as one bar: of samples without times that is all there is. */
export function drawSumLane(pen, sums, lane, top, width, weight, colours) {
  const { rows, index, categories } = sums, shares = new Float64Array(sums.profile.categories.length);
  const weights = weight === "samples" ? rows.count : rows.weight;
  const most = sums.lanes.reduce((most, { weight }) => Math.max(most, weight), 0) || 1;
  let whole = 0;
  for (const track of lane.tracks) {
    for (let at = index.start[track]; at < index.start[track + 1]; at++) {
      shares[categories[index.row[at]]] += weights[index.row[at]];
      whole += weights[index.row[at]];
    }
  }
  let left = 0;
  shares.forEach((share, category) => {
    const wide = whole ? width * lane.weight / most * share / whole : 0;
    pen.fillStyle = colours.categories[category];
    pen.fillRect(left, top + 1, wide, LANE_HEIGHT - 2);
    left += wide;
  });
}

/** Which tracks count, by number: all if none is chosen. */
export function countingTracks(count, chosen) {
  const counts = new Uint8Array(count).fill(chosen.length ? 0 : 1);
  for (const track of chosen) if (track < count) counts[track] = 1;
  return counts;
}

/** How much of a lane is chosen: "all", "some" or "none". */
export function laneChosen(lane, counts) {
  const chosen = lane.tracks.filter((track) => counts[track]).length;
  return chosen === 0 ? "none" : chosen === lane.tracks.length ? "all" : "some";
}

/** The tracks after a click on a lane: alone, with Ctrl to or from the others, with Shift from the lane clicked before. */
export function tracksAfterClick(lanes, at, before, chosen, trackCount, keys) {
  const own = lanes[at].tracks, isOn = own.every((track) => chosen.includes(track));
  if (keys.shiftKey && before !== null) {
    const range = lanes.slice(Math.min(before, at), Math.max(before, at) + 1).flatMap((lane) => lane.tracks);
    return sortedTracks(keys.ctrlKey || keys.metaKey ? [...chosen, ...range] : range, trackCount);
  }
  if (keys.ctrlKey || keys.metaKey) {
    const others = chosen.filter((track) => !own.includes(track));
    return sortedTracks(isOn ? others : [...others, ...own], trackCount);
  }
  return isOn && chosen.length === own.length ? [] : sortedTracks(own, trackCount);
}

/** All tracks chosen are as good as none. */
function sortedTracks(tracks, trackCount) {
  const distinct = [...new Set(tracks)].sort((a, b) => a - b);
  return distinct.length === trackCount ? [] : distinct;
}
