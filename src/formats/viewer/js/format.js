// Amounts as people read them, spelled as jitgraft's tables spell them.

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with its thousands apart. */
export function grouped(number) {
  return GROUPED.format(number);
}

const TIME_STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

/** A stretch of time, with three digits that count. */
export function duration(nanoseconds) {
  for (const [size, unit] of TIME_STEPS) {
    if (Math.abs(nanoseconds) >= size) return `${threeDigits(nanoseconds / size)} ${unit}`;
  }
  return `${threeDigits(nanoseconds)} ns`;
}

function threeDigits(number) {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.max(1, Math.abs(number)))));
  return digits === 0 ? grouped(Math.round(number)) : String(Number(number.toFixed(digits)));
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
