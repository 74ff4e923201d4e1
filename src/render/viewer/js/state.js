// The state: everything that the reader has chosen. All parts read it, and change nothing else. What differs from the
// initial state is kept in the address, so that a link shows the same view.

/** The initial state. All values are plain JSON. */
export const BEGINNING = Object.freeze({
  part: "flame",
  event: 0,
  weight: "period",
  /** Selected time ranges [from, to), in units since the start. If empty, all times are selected. */
  ranges: [],
  /** The numbers of the selected tracks. If empty, all are selected. */
  tracks: [],
  /** What each lane of the timeline stands for: "thread", "process", "cpu" or "recording". */
  lanes: "thread",
  /** How much room the timeline takes: "auto" (few lanes if the window is low), "few" or "all". */
  timeRows: "auto",
  /** The visible time range of the timeline. If empty, all of it. */
  timeView: [],
  search: "",
  regex: false,
  mergeTiers: true,
  mergeRecursion: false,
  /** Frames that are removed from all stacks: by module, by category (numbers) and by function (numbers). */
  hiddenModules: [],
  hiddenCategories: [],
  hiddenFunctions: [],
  /** If set, only stacks through this function count. */
  focus: null,
  selected: null,
  /** The listing to show, one of the selected function's or of all. */
  code: null,
  /** The functions on the path to the box that the flame graph is zoomed to, outermost first. */
  zoom: [],
  /** The time range that a flame graph in time order is zoomed to: [from, to]. */
  span: [],
  direction: "flame",
  order: "merged",
  sandwich: null,
  sort: "self",
  normalize: true,
  theme: "auto",
});

/** Changes that the browser's Back button undoes. Other changes (the theme, a text being typed) only update the
 * address. */
const BACK_STEPS = new Set([
  "part", "event", "weight", "ranges", "tracks", "lanes", "mergeTiers", "mergeRecursion", "hiddenModules", "hiddenCategories",
  "hiddenFunctions", "focus", "selected", "code", "zoom", "span", "direction", "order", "sandwich", "sort", "normalize",
]);

/** Changes made by a brush within this many milliseconds count as one step. */
const STEP_PAUSE = 700;

/** Browsers ignore address changes of a page that makes more than 200 in ten seconds. After half of that, wait before
 * writing. */
const MOST_ADDRESSES = 100;
const ADDRESS_SECONDS = 10;
const ADDRESS_PAUSE = 300;

/** Holds the state and reports changes to listeners. */
export class Store {
  #beginning;
  #state;
  #listeners = new Set();
  #written = [];
  #timer = 0;
  #lastStep = { keys: "", time: -Infinity };

  /** `own`: how the initial state of this page differs from other pages. */
  constructor(own = {}) {
    this.#beginning = Object.freeze({ ...BEGINNING, ...own });
    this.#state = { ...this.#beginning, ...readHash(location.hash) };
    addEventListener("hashchange", () => {
      clearTimeout(this.#timer);
      this.#lastStep = { keys: "", time: -Infinity };
      this.#change({ ...this.#beginning, ...readHash(location.hash) }, false);
    });
  }

  get state() {
    return this.#state;
  }

  /** Changes some keys of the state. */
  set(changes) {
    this.#change({ ...this.#state, ...changes }, true);
  }

  /** After each change, `listener(state, changed)` is called with the names of the changed keys. */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  /** Replaces the state by `next`, and tells the listeners. With `write`, also writes the address. */
  #change(next, write) {
    const keys = Object.keys(next).filter((key) => !isEqual(next[key], this.#state[key]));
    if (keys.length === 0) return;
    this.#state = next;
    if (write) this.#writeAddress(this.#isStep(keys));
    const changed = new Set(keys);
    for (const listener of this.#listeners) listener(next, changed);
  }

  /** True if the browser's Back button should lead to the state before a change of these keys. */
  #isStep(changed) {
    const keys = changed.filter((key) => BACK_STEPS.has(key)).join(), now = performance.now(), before = this.#lastStep;
    if (keys === "") return false;
    this.#lastStep = { keys, time: now };
    // Changes by a brush that follow each other quickly are one step.
    const isBrush = keys.split(",").every((key) => key === "ranges" || key === "tracks");
    const continuesLastStep = isBrush && before.keys === keys && now - before.time <= STEP_PAUSE;
    return !continuesLastStep;
  }

  /** Writes the address: at once or, during a long movement of a brush, after a pause. */
  #writeAddress(isStep) {
    clearTimeout(this.#timer);
    const now = performance.now();
    // The times of recent writes. If there were too many, try again later.
    this.#written = this.#written.filter((time) => time > now - ADDRESS_SECONDS * 1000);
    if (this.#written.length >= MOST_ADDRESSES) {
      this.#timer = setTimeout(() => this.#writeAddress(isStep), ADDRESS_PAUSE);
      return;
    }
    this.#written.push(now);
    const address = writeHash(this.#state, this.#beginning);
    try {
      if (isStep) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch {
      // A page embedded in another one may not change the address.
    }
  }
}

function isEqual(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** The differences from the initial state, in the form of the part of an address after "#". */
export function writeHash(state, beginning = BEGINNING) {
  const words = [];
  for (const [key, value] of Object.entries(state)) {
    if (!isEqual(value, beginning[key])) words.push(`${key}=${encodeURIComponent(JSON.stringify(value))}`);
  }
  return "#" + words.join("&");
}

/** Keys in the addresses of older pages, and the names of these keys today. */
const RENAMED_KEYS = { normalise: "normalize" };

/** Parses the state from an address. Leaves out invalid values. */
export function readHash(hash) {
  const state = {};
  for (const word of hash.replace(/^#/, "").split("&")) {
    const [name, text = ""] = word.split("=", 2);
    const key = RENAMED_KEYS[name] ?? name;
    if (!Object.hasOwn(BEGINNING, key)) continue;
    try {
      const value = JSON.parse(decodeURIComponent(text));
      if (isOfSameSort(value, key)) state[key] = value;
    } catch {
      // If a link was truncated, use the part that is left.
    }
  }
  return state;
}

const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isRange = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isFinite) && value[0] < value[1];

/** For each key with a list, a test for its elements. */
const ELEMENTS = {
  ranges: isRange,
  tracks: isNumber,
  timeView: Number.isFinite,
  hiddenModules: (value) => typeof value === "string",
  hiddenCategories: isNumber,
  hiddenFunctions: isNumber,
  zoom: isNumber,
};
const NUMBER_OR_NOTHING = new Set(["focus", "selected", "code", "sandwich"]);

function isOfSameSort(value, key) {
  if (NUMBER_OR_NOTHING.has(key)) return value === null || isNumber(value);
  if (key in ELEMENTS) return Array.isArray(value) && value.every(ELEMENTS[key]);
  return typeof value === typeof BEGINNING[key] && (typeof value !== "number" || isNumber(value));
}
