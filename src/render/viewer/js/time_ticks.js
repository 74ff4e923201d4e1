// The ticks of a time axis, and times as text. Times are whole numbers of units since the start of the recording.

/** Ticks are 1, 2 or 5 times a power of ten apart. */
const TICK_STEPS = [1, 2, 5];

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

/** The ticks of an axis with this width in pixels. Their labels are as precise as their distance requires. */
export function timeTicks(from, to, width, unitNs) {
  // Ticks are at least 90 pixels apart, at round times.
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
  // As many decimals as `step` needs in this unit.
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return (ns / size).toFixed(Math.min(digits, 9)) + " " + name;
}

function minutes(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  return (hours ? hours + ":" + two(Math.floor(rest / 60)) : Math.floor(rest / 60)) + ":" + two(rest % 60);
}
