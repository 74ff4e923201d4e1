// What the reader has chosen. All parts look at it, and change nothing else; what differs from the beginning is in the
// address, so that a link shows the same.

/** How the page begins. Values are plain JSON. */
export const BEGINNING = Object.freeze({
  part: "flame",
  event: 0,
  weight: "period",
  /** Stretches of time, in units since the start: from (belongs to it), to (does not). None: all. */
  ranges: [],
  /** Numbers of tracks. None: all. */
  tracks: [],
  /** What the rows of the time part are: "thread", "process" or "cpu". */
  lanes: "thread",
  /** What of the time is shown, as a range. Empty: all. */
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
  /** Functions from the root on. */
  zoom: [],
  /** The stretch of time that a flame graph in order of time is zoomed to: from, to. */
  span: [],
  direction: "icicle",
  order: "merged",
  sandwich: null,
  sort: "self",
  normalise: true,
  theme: "auto",
});

/** Holds the state and tells of changes. */
export class Store {
  #state;
  #listeners = new Set();

  constructor() {
    this.#state = { ...BEGINNING, ...readHash(location.hash) };
    addEventListener("hashchange", () => this.#change({ ...BEGINNING, ...readHash(location.hash) }, false));
  }

  get state() {
    return this.#state;
  }

  /** Changes some of it. */
  set(changes) {
    this.#change({ ...this.#state, ...changes }, true);
  }

  /** `listener(state, changed)` is called after each change, with the names of what changed. */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  #change(next, write) {
    const keys = Object.keys(next).filter((key) => !isEqual(next[key], this.#state[key]));
    if (keys.length === 0) return;
    this.#state = next;
    if (write) history.replaceState(null, "", writeHash(next));
    const changed = new Set(keys);
    for (const listener of this.#listeners) listener(next, changed);
  }
}

function isEqual(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** What differs from the beginning, as the part of an address behind "#". */
export function writeHash(state) {
  const words = [];
  for (const [key, value] of Object.entries(state)) {
    if (!isEqual(value, BEGINNING[key])) words.push(`${key}=${encodeURIComponent(JSON.stringify(value))}`);
  }
  return "#" + words.join("&");
}

/** What an address tells; what cannot be is left out. */
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

const NUMBER_OR_NOTHING = new Set(["focus", "selected", "sandwich"]);

function isOfSameSort(value, key) {
  const before = BEGINNING[key];
  if (NUMBER_OR_NOTHING.has(key)) return value === null || Number.isInteger(value);
  return typeof value === typeof before && Array.isArray(value) === Array.isArray(before) && value !== null;
}
