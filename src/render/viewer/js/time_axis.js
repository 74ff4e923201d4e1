// Converts times of the recording's clock and ranges to text and back. No drawing, no state.
//
// A time on the page is a whole number of units since the start of the recording (`clock.unitNs`, `clock.startNs`). A
// range is [from, to), without its end. The command line's `--time A,B` takes nanoseconds and includes both ends, so B
// is the last nanosecond of the last unit. Rows that last are cut at A and B.

import { roundUnits } from "./time_ticks.js";

/**
 * The clock of the page: nanoseconds per unit, start, length in units, and whether rows last. null if there are no
 * times.
 */
export function timeClock(profile) {
  if (!profile.time) return null;
  const { unit, start, last } = profile.time, lasts = profile.rowsHaveDurations;
  const length = lasts ? endOfRows(profile, unit) : Number((last - start) / BigInt(unit)) + 1;
  return { unitNs: unit, startNs: start, length, lasts };
}

/** When the last row ends, for rows that begin at their times. */
function endOfRows(profile, unit) {
  let end = 1;
  for (let event = 0; event < profile.events.length; event++) {
    const { time, weight, length } = profile.rows(event);
    for (let row = 0; row < length; row++) end = Math.max(end, Math.ceil(time[row] + weight[row] / unit));
  }
  return end;
}

/** The visible time of the lanes, [from, to]. */
export function shownTime({ timeView }, length) {
  const [from, to] = timeView;
  return from >= 0 && to > from && from < length ? [from, Math.min(to, length)] : [0, length];
}

/** The range [from, to) for the pixel at a time, rounded so that it is no wider than the pixel. */
export function spanOfPixel(time, pixel, length) {
  const step = roundUnits(pixel), down = (at) => Math.floor(at / step) * step;
  const from = Math.max(0, Math.min(down(time), length - 1));
  return [from, Math.min(length, Math.max(down(time + pixel), from + step))];
}

/** A time of the recording's clock in seconds, as `--time` takes it: `1178.049493709`. */
export function clockText(clock, at) {
  return secondsText(clock.startNs + nanoseconds(clock, at));
}

/** Nanoseconds since the start. Rounds up, since there are no rows between two units. */
function nanoseconds(clock, at) {
  return BigInt(Math.ceil(at)) * BigInt(clock.unitNs);
}

function secondsText(ns) {
  const part = String(ns % 1000000000n).padStart(9, "0").replace(/0+$/, "");
  return String(ns / 1000000000n) + (part ? "." + part : "");
}

/** The option that makes `jitgraft report` count exactly the samples of these ranges; empty for all samples. */
export function timeOption(clock, ranges) {
  // The option includes its end, which a range doesn't, so the last time is one nanosecond earlier. Rows that last are
  // cut at the end itself.
  const excess = clock.lasts ? 0n : 1n, last = (to) => secondsText(clock.startNs + nanoseconds(clock, to) - excess);
  return ranges.map(([from, to]) => `--time ${clockText(clock, from)},${last(to)}`).join(" ");
}

/** The option that makes `jitgraft report` count exactly these tracks; empty for all tracks, or if no option can select
 * them. */
export function tracksOption(tracks, chosen) {
  if (!chosen.length) return "";
  for (const [key, flag] of [["tid", "--tid"], ["pid", "--pid"], ["cpu", "--cpu"]]) {
    // An option fits if it selects exactly the chosen tracks: all have an ID, and no other track has one of these IDs.
    const wanted = new Set(chosen.map((track) => tracks[track]?.[key] ?? null));
    const selectedCount = tracks.filter((track) => wanted.has(track[key] ?? null)).length;
    if (!wanted.has(null) && selectedCount === chosen.length) return `${flag} ${[...wanted].join(",")}`;
  }
  return "";
}

/** Sorts ranges by time, rounds them to whole units within the recording, and joins those that overlap or touch. */
export function tidyRanges(ranges, length) {
  const rounded = (time) => Math.max(0, Math.min(length, Math.round(time)));
  const inside = ranges.map(([from, to]) => [rounded(Math.min(from, to)), rounded(Math.max(from, to))]);
  const sorted = inside.filter(([from, to]) => from < to).sort(([a], [b]) => a - b);
  const tidy = [];
  for (const [from, to] of sorted) {
    // A range that begins within the range before it, or at its end, extends that range.
    const before = tidy[tidy.length - 1];
    if (before && from <= before[1]) before[1] = Math.max(before[1], to);
    else tidy.push([from, to]);
  }
  return tidy;
}

/** Ranges as users type them, in seconds since the start: `1.2-1.5, 3-4`. */
export function rangesText(clock, ranges) {
  const seconds = (at) => secondsText(nanoseconds(clock, at));
  return ranges.map(([from, to]) => seconds(from) + "-" + seconds(to)).join(", ");
}

/** Parses typed ranges; null if the text is invalid. Either end of a range may be left out. */
export function typedRanges(clock, text) {
  const ranges = [];
  for (const part of text.split(/[,;]/).map((part) => part.trim()).filter(Boolean)) {
    // Two numbers of seconds with `-`, `–`, `to` or `..` between them.
    const match = /^(\d*\.?\d*)\s*s?\s*(?:-|–|to|\.\.)\s*(\d*\.?\d*)\s*s?$/.exec(part);
    if (!match) return null;
    const [, fromText, toText] = match;
    if (!fromText && !toText) return null;
    const units = (text, otherwise) => text ? Math.round(Number(text) * 1e9 / clock.unitNs) : otherwise;
    const [from, to] = [units(fromText, 0), units(toText, clock.length)];
    if (Number.isNaN(from) || Number.isNaN(to) || from >= to) return null;
    ranges.push([from, to]);
  }
  return tidyRanges(ranges, clock.length);
}
