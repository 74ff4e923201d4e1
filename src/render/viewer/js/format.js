// Formats numbers in the same way as jitgraft's tables do.

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with thousands separators. */
export function grouped(number) {
  return GROUPED.format(number);
}

const TIME_STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

/** A duration with three significant digits. */
export function duration(nanoseconds) {
  // Switch to the next unit where rounding to three digits would need a fourth digit.
  const step = TIME_STEPS.find(([size]) => Math.abs(nanoseconds) * 2000 >= size * 1999);
  if (!step) return `${Math.round(nanoseconds)} ns`;
  const number = nanoseconds / step[0];
  const digits = [9.995, 99.95].filter((most) => Math.abs(number) < most).length;
  return `${number.toFixed(digits)} ${step[1]}`;
}

/** An amount in an event's unit. */
export function amount(value, unit) {
  return unit === "nanoseconds" ? duration(value) : `${grouped(value)} ${unit}`;
}

/** A percentage; 0.00% if the whole is 0. */
export function percent(part, whole) {
  return `${(whole > 0 ? (100 * part) / whole : 0).toFixed(2)}%`;
}

/** A number with its noun, in singular or plural. */
export function counted(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}
