// The profile's tables, as typed arrays. src/render/viewer/profile.rs shows what is in them.

/** Functions, stacks of functions (nodes of a prefix tree), threads, and the samples of each event. */
export class Profile {
  #pack;
  #rows = new Map();

  constructor(pack) {
    this.#pack = pack;
    const json = pack.json("profile");
    /** [{name, unit, sampling}] */
    this.events = json.events;
    /** The kinds of code: [{name, letter, jit}]. */
    this.categories = json.categories;
    /** True if it is known which sort a function is of: folded stacks do not give. */
    this.knowsCategories = json.categories_known;
    /** The recordings of a page of several: [{name, path, start, last}], both times BigInt on its own clock (null: not
     * known). Empty for one. */
    this.recordings = json.recordings.map(recordingOf);
    /** [{comm, pid, tid, cpu, input, recording}], null where not known. input: the number of its recording; recording:
     * the name of that, where there are several. */
    this.tracks = json.tracks.map((track) => ({ ...track, recording: this.recordings[track.input]?.name ?? null }));
    /** Null if samples have no times; else nanoseconds a unit of the rows' times, and both ends as BigInt. */
    this.time = clockOf(json.time);
    /** True if rows begin at their time and last as long as they weigh (calls), instead of being of one moment. */
    this.rowsLast = json.rows_last;
    /** Measure: "sample", "call" or "cost" (of callgrind files, in which costs are counted themselves). */
    this.counted = json.counted;
    /** By event, whether calls are stated. */
    this.statesCalls = json.calls;
    /** The notes for a reader of the stacks. */
    this.notes = json.notes;
    /** The samples to compare with, if there are any: {events, time}. */
    this.baseline = pack.json("baseline") && { ...pack.json("baseline"), time: clockOf(pack.json("baseline").time) };

    const texts = pack.texts("profile/texts");
    const optional = (column) => Array.from(pack.numbers(column), (number) => (number ? texts[number - 1] : ""));
    this.functions = {
      name: Array.from(pack.numbers("profile/functions.name"), (number) => texts[number]),
      /** "" where not known. */
      module: optional("profile/functions.module"),
      /** Index into `categories`. */
      /** The first function that is the same but for its category: tiers of one function. */
      identity: pack.numbers("profile/functions.identity"),
      category: Uint8Array.from(pack.numbers("profile/functions.category")),
      /** "" where not known. */
      file: optional("profile/functions.file"),
      line: pack.numbers("profile/functions.line"),
    };
    /** By node: its function, and the node that called it (a smaller number; -1: none). */
    this.nodeFunction = pack.numbers("profile/nodes.function");
    const up = pack.numbers("profile/nodes.up");
    this.nodeParent = new Int32Array(up.length);
    for (let node = 0; node < up.length; node++) this.nodeParent[node] = up[node] ? node - up[node] : -1;
  }

  /** True if any function is several functions by its tiers: then they can be merged. */
  get hasTiers() {
    const { identity, category } = this.functions;
    const isTier = (number) => this.categories[category[number]].jit;
    return identity.some((one, number) => one !== number && category[one] !== category[number] && (isTier(one) || isTier(number)));
  }

  get functionCount() {
    return this.functions.name.length;
  }

  /** True if any event's calls are stated. */
  get hasCalls() {
    return this.statesCalls.includes(true);
  }

  /**
   * The calls of an event, if they are stated: costs of functions, and of calls between two, by thread.
   * @returns {{function, self, functionTrack, caller, callee, count, cost, track} | null}
   */
  calls(event) {
    if (!this.statesCalls[event]) return null;
    const column = (name) => this.#pack.numbers(`profile/calls.${event}.${name}`);
    const names = ["function", "self", "functionTrack", "caller", "callee", "count", "cost", "track"];
    return Object.fromEntries(names.map((name) => [name, column(name)]));
  }

  get nodeCount() {
    return this.nodeParent.length;
  }

  /**
   * The samples of an event in the order of their times; of the profile to compare with, if `from` is "baseline".
   * @returns {{length, node: Int32Array, track, weight, count, spot, time}} node -1: an empty stack; spot: the number of
   *   the instruction that it is at, + 1 (0 or undefined: not listed); time null: not known
   */
  rows(event, from = "profile") {
    const key = `${from}/rows.${event}`;
    if (!this.#rows.has(key)) {
      const column = (name) => this.#pack.numbers(`${key}.${name}`);
      const node = Int32Array.from(column("node"), (number) => number - 1);
      const time = this.#pack.has(`${key}.time`) ? column("time") : null;
      const [track, weight, count, spot] = ["track", "weight", "count", "spot"].map(column);
      this.#rows.set(key, { length: node.length, node, track, weight, count, spot, time });
    }
    return this.#rows.get(key);
  }

  /** The full name of a function with all that is known of it, for tooltips and lists. */
  title(number) {
    const { name, module } = this.functions;
    return module[number] ? `${name[number]} (${module[number]})` : name[number];
  }
}

function recordingOf({ name, path, start, last }) {
  return { name, path, start: start && BigInt(start), last: last && BigInt(last) };
}

function clockOf(time) {
  return time && { unit: time.unit, start: BigInt(time.start), last: BigInt(time.last) };
}
