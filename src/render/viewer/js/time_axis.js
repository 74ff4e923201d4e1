// Converts times to text and back: ticks of an axis, times of the recording's clock, ranges. No drawing, no state.
//
// A time on the page is a whole number of units since the start of the recording (`clock.unitNs`, `clock.startNs`). A
// range is [from, to), without its end. The command line's `--time A,B` takes nanoseconds and includes both ends, so B
// is the last nanosecond of the last unit. Rows that last are cut at A and B.

const TICK_STEPS = [1, 2, 5];

/**
 * The clock of the page: nanoseconds per unit, start, length in units, and whether rows last. null if there are no
 * times.
 */
export function timeClock(profile) {
  if (!profile.time) return null;
  const { unit, start, last } = profile.time, lasts = profile.rowsLast;
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

/** Rounds up to 1, 2 or 5 times a power of ten. The result is at least 1. */
export function tickStep(least) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return TICK_STEPS.map((step) => step * ten).find((step) => step >= least * 0.999) ?? 10 * ten;
}

/** Rounds down to 1, 2 or 5 times a power of ten. The result is at least 1. */
export function roundUnits(most) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return TICK_STEPS.findLast((step) => step * ten <= most) * ten || 1;
}

/** The range [from, to) for the pixel at a time, rounded so that it is no wider than the pixel. */
export function spanOfPixel(time, pixel, length) {
  const step = roundUnits(pixel), down = (at) => Math.floor(at / step) * step;
  const from = Math.max(0, Math.min(down(time), length - 1));
  return [from, Math.min(length, Math.max(down(time + pixel), from + step))];
}

/** The ticks of an axis with this width in pixels. Their labels are as precise as their distance requires. */
export function timeTicks(from, to, width, unitNs) {
  const least = (to - from) * unitNs * 90 / Math.max(width, 90);
  const step = tickStep(least), ticks = [];
  const first = Math.ceil(from * unitNs / step);
  for (let tick = first; tick * step < to * unitNs; tick++) {
    ticks.push({ at: tick * step / unitNs, text: sinceStart(tick * step, step, to * unitNs) });
  }
  return ticks;
}

/**
 * A time since the start, rounded to `step` nanoseconds, in a unit that suits `largest`: `1.25 s`, `80 ms`, `12:05`.
 */
export function sinceStart(ns, step, largest = ns) {
  if (ns === 0) return "0";
  if (largest >= 600e9 && step >= 1e9) return minutes(Math.round(ns / 1e9));
  const [size, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([size]) => largest >= size) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return (ns / size).toFixed(Math.min(digits, 9)) + " " + name;
}

function minutes(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  return (hours ? hours + ":" + two(Math.floor(rest / 60)) : Math.floor(rest / 60)) + ":" + two(rest % 60);
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
  const beyond = clock.lasts ? 0n : 1n, last = (to) => secondsText(clock.startNs + nanoseconds(clock, to) - beyond);
  return ranges.map(([from, to]) => `--time ${clockText(clock, from)},${last(to)}`).join(" ");
}

/** The option that makes `jitgraft report` count exactly these tracks; empty for all tracks, or if no option can select
 * them. */
export function tracksOption(tracks, chosen) {
  if (!chosen.length) return "";
  for (const [key, flag] of [["tid", "--tid"], ["pid", "--pid"], ["cpu", "--cpu"]]) {
    const wanted = new Set(chosen.map((track) => tracks[track]?.[key] ?? null));
    const meant = tracks.filter((track) => wanted.has(track[key] ?? null)).length;
    if (!wanted.has(null) && meant === chosen.length) return `${flag} ${[...wanted].join(",")}`;
  }
  return "";
}

/** Sorts ranges by time, rounds them to whole units within the recording, and joins those that overlap or touch. */
export function tidyRanges(ranges, length) {
  const at = (time) => Math.max(0, Math.min(length, Math.round(time)));
  const inside = ranges.map(([from, to]) => [at(Math.min(from, to)), at(Math.max(from, to))]);
  const tidy = [];
  for (const [from, to] of inside.filter(([from, to]) => from < to).sort(([a], [b]) => a - b)) {
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
    const match = /^(\d*\.?\d*)\s*s?\s*(?:-|–|to|\.\.)\s*(\d*\.?\d*)\s*s?$/.exec(part);
    if (!match || !match[1] && !match[2]) return null;
    const at = (text, otherwise) => text ? Math.round(Number(text) * 1e9 / clock.unitNs) : otherwise;
    const range = [at(match[1], 0), at(match[2], clock.length)];
    if (range.some(Number.isNaN) || range[0] >= range[1]) return null;
    ranges.push(range);
  }
  return tidyRanges(ranges, clock.length);
}
