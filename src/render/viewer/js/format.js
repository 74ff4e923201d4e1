// Formats numbers in the same way as jitgraft's tables do.

const FRACTION = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "bytes"]];
const LARGE = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** Smaller numbers are written with all their digits; larger ones with a letter (`12.3 M`). */
const MOST_IN_FULL = 10_000;

/** A whole number with thousands separators. */
export function grouped(number) {
  return GROUPED.format(number);
}

/** A number with three significant digits, in the largest of the units that it reaches. */
function inLargestUnit(number, units) {
  // Switch to the larger unit where rounding to three digits would need a fourth digit.
  const [size, unit] = units.find(([size]) => Math.abs(number) * 2000 >= size * 1999) ?? units.at(-1);
  const amount = number / size;
  const digits = size === 1 ? 0 : [9.995, 99.95].filter((most) => Math.abs(amount) < most).length;
  return `${amount.toFixed(digits)} ${unit}`;
}

/** A duration. */
export function duration(nanoseconds) {
  return inLargestUnit(nanoseconds, TIMES);
}

/** A number of bytes. */
export function byteCount(bytes) {
  return inLargestUnit(bytes, BYTES);
}

/** An amount in an event's unit. */
export function amount(value, unit) {
  if (unit === "millionths") return FRACTION.format(value / 1e6);
  return unit === "nanoseconds" ? duration(value) : `${grouped(value)} ${unit}`;
}

/** An amount in one of the scales of SVG files: "time", "bytes", "fraction", or a count with the unit `name`, which is
 * rounded if the scale is "large". */
export function scaledAmount(value, scale, name) {
  if (scale === "time") return duration(value);
  if (scale === "bytes") return byteCount(value);
  if (scale === "fraction") return `${FRACTION.format(value)} ${name}`;
  const number = scale === "large" && value >= MOST_IN_FULL ? inLargestUnit(value, LARGE) : grouped(value);
  return `${number} ${name}`;
}

/** A number with two decimals. A number halfway between two, such as 0.125, is rounded to the one with an even digit,
 * as jitgraft's tables and SVG files do it; `toFixed` rounds it up. */
export function withTwoDecimals(number) {
  const eighths = Math.abs(number) * 8;
  // Only eighths are exactly halfway. Of these, 0.375 and 0.875 are rounded up to an even digit.
  const isRoundedDown = Number.isInteger(eighths) && eighths % 4 === 1;
  return (isRoundedDown ? number - Math.sign(number) * 0.005 : number).toFixed(2);
}

/** A percentage; 0.00% if the whole is 0. */
export function percent(part, whole) {
  return `${withTwoDecimals(whole > 0 ? (100 * part) / whole : 0)}%`;
}

/** A change relative to an amount above 0, such as `+12.3%`. */
export function relativeChange(before, after) {
  const change = (100 * (after - before)) / before;
  return `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)}%`;
}

/** A number with its noun, in singular or plural. */
export function counted(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** The text for a search result: `3 matches · 29.90%`. `part` is the weight of the stacks with a match. */
export function matchesText(count, part, whole) {
  if (count === 0) return "no matches";
  return `${grouped(count)} ${count === 1 ? "match" : "matches"} · ${percent(part, whole)}`;
}
