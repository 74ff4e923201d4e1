// Amounts as people read them, spelled as jitgraft's tables spell them.

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with its thousands apart. */
export function grouped(number) {
  return GROUPED.format(number);
}

const TIME_STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

/** A stretch of time, with three digits that count. */
export function duration(nanoseconds) {
  // The next larger unit begins where three digits would be rounded up to four.
  const step = TIME_STEPS.find(([size]) => Math.abs(nanoseconds) * 2000 >= size * 1999);
  if (!step) return `${Math.round(nanoseconds)} ns`;
  const number = nanoseconds / step[0];
  const digits = [9.995, 99.95].filter((most) => Math.abs(number) < most).length;
  return `${number.toFixed(digits)} ${step[1]}`;
}

/** An amount of an event's unit. */
export function amount(value, unit) {
  return unit === "nanoseconds" ? duration(value) : `${grouped(value)} ${unit}`;
}

/** A part of a whole; of nothing, nothing. */
export function percent(part, whole) {
  return `${(whole > 0 ? (100 * part) / whole : 0).toFixed(2)}%`;
}

/** One thing, several things. */
export function counted(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}
