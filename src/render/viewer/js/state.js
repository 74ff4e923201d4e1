// The reader's choices. All parts look at it, and change nothing else; what differs from the beginning is in the
// address, so that a link shows the same.

/** The way the page begins. Values are plain JSON. */
export const BEGINNING = Object.freeze({
  part: "flame",
  event: 0,
  weight: "period",
  /** Stretches of time, in units since the start: from (belongs to it), to (does not). None: all. */
  ranges: [],
  /** Numbers of tracks. None: all. */
  tracks: [],
  /** The rows of the time part: "thread", "process" or "cpu". */
  lanes: "thread",
  /** Whether the time part takes little room: "auto" (in low windows), "few" or "all". */
  timeRows: "auto",
  /** The visible part of the time, as a range. Empty: all. */
  timeView: [],
  search: "",
  regex: false,
  mergeTiers: true,
  mergeRecursion: false,
  /** Frames that are cut out of all stacks, by module, category (numbers) and function (numbers). */
  hiddenModules: [],
  hiddenCategories: [],
  hiddenFunctions: [],
  /** Only stacks through this function. */
  focus: null,
  selected: null,
  /** The shown listing, of the selected function's or of all. */
  code: null,
  /** Functions from the root on. */
  zoom: [],
  /** The stretch of time that a flame graph in order of time is zoomed to: from, to. */
  span: [],
  direction: "flame",
  order: "merged",
  sandwich: null,
  sort: "self",
  normalise: true,
  theme: "auto",
});

/** Changes that Back leads back from; of the others (a text that is typed, the theme) only the address is kept. */
const BACK_STEPS = new Set([
  "part", "event", "weight", "ranges", "tracks", "lanes", "mergeTiers", "mergeRecursion", "hiddenModules", "hiddenCategories",
  "hiddenFunctions", "focus", "selected", "code", "zoom", "span", "direction", "order", "sandwich", "sort", "normalise",
]);

/** Changes of a brush that follow each other faster are one step. */
const STEP_PAUSE = 700;

/** Browsers ignore the addresses of a page that writes more than 200 in ten seconds: above half of that it waits. */
const MOST_ADDRESSES = 100;
const ADDRESS_SECONDS = 10;
const ADDRESS_PAUSE = 300;

/** Holds the state and reports changes. */
export class Store {
  #beginning;
  #state;
  #listeners = new Set();
  #written = [];
  #timer = 0;
  #lastStep = { keys: "", time: -Infinity };

  /** `own`: how this page begins, where that differs from other pages. */
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

  /** Changes some of it. */
  set(changes) {
    this.#change({ ...this.#state, ...changes }, true);
  }

  /** `listener(state, changed)` is called after each change, with the names of the changes. */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  #change(next, write) {
    const keys = Object.keys(next).filter((key) => !isEqual(next[key], this.#state[key]));
    if (keys.length === 0) return;
    this.#state = next;
    if (write) this.#writeAddress(this.#isStep(keys));
    const changed = new Set(keys);
    for (const listener of this.#listeners) listener(next, changed);
  }

  /** True if Back is to lead to the state before this change. */
  #isStep(changed) {
    const keys = changed.filter((key) => BACK_STEPS.has(key)).join(), now = performance.now(), before = this.#lastStep;
    if (keys === "") return false;
    this.#lastStep = { keys, time: now };
    const isBrush = keys.split(",").every((key) => key === "ranges" || key === "tracks");
    return !isBrush || before.keys !== keys || now - before.time > STEP_PAUSE;
  }

  /** At once, or, while a brush moves for long, after a pause. */
  #writeAddress(isStep) {
    clearTimeout(this.#timer);
    const now = performance.now();
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
      // Inside of other pages the address may not be changed.
    }
  }
}

function isEqual(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** The differences from the beginning, as the part of an address behind "#". */
export function writeHash(state, beginning = BEGINNING) {
  const words = [];
  for (const [key, value] of Object.entries(state)) {
    if (!isEqual(value, beginning[key])) words.push(`${key}=${encodeURIComponent(JSON.stringify(value))}`);
  }
  return "#" + words.join("&");
}

/** The state in an address; impossible values are left out. */
export function readHash(hash) {
  const state = {};
  for (const word of hash.replace(/^#/, "").split("&")) {
    const [key, text = ""] = word.split("=", 2);
    if (!Object.hasOwn(BEGINNING, key)) continue;
    try {
      const value = JSON.parse(decodeURIComponent(text));
      if (isOfSameSort(value, key)) state[key] = value;
    } catch {
      // A link that was cut shows what is left of it.
    }
  }
  return state;
}

const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isRange = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isFinite) && value[0] < value[1];

/** The condition for an element of each list. */
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
