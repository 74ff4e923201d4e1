// The tables of the profile, as typed arrays. Their columns are documented in src/render/viewer/profile.rs.

/** The profile: functions, stacks (nodes of a prefix tree), threads, and the samples of each event. */
export class Profile {
  #pack;
  #rows = new Map();

  /** Reads the tables, except for the samples, which `rows` reads when they are asked for. */
  constructor(pack) {
    this.#pack = pack;
    const json = pack.json("profile");
    /** [{name, unit, sampling}] */
    this.events = json.events;
    /** The kinds of code: [{name, kind, letter, jit}]. `name` includes the tier of JIT code, `kind` doesn't. */
    this.categories = json.categories;
    /** True if the profile states the kinds of code. Folded stacks usually don't. */
    this.knowsCategories = json.categories_known;
    /** If the page shows several recordings: [{name, path, start, last}]. The times are BigInt on the recording's own
     * clock; null if unknown. Empty if there is only one recording. */
    this.recordings = json.recordings.map(recordingOf);
    /** [{comm, pid, tid, cpu, input, recording}]; unknown values are null. input: the number of the track's
     * recording; recording: that recording's name, if there are several. */
    this.tracks = json.tracks.map((track) => ({ ...track, recording: this.recordings[track.input]?.name ?? null }));
    /** Null if samples have no times. Otherwise the nanoseconds per unit of the rows' times, and the times of the
     * first and last sample as BigInt. */
    this.time = clockOf(json.time);
    /** True if rows have a duration, such as calls: they start at their time, and their weight is their duration. */
    this.rowsHaveDurations = json.rows_have_durations;
    /** What rows count: "sample", "call", or "cost" (in callgrind files, which count costs directly). */
    this.counted = json.counted;
    /** For each event, whether the input recorded calls. */
    this.statesCalls = json.calls;
    /** Notes to show along with the stacks. */
    this.notes = json.notes;
    /** A sentence that says why stacks are truncated; null if none are, or if the reason is unknown. */
    this.truncation = json.truncation;
    /** The samples of the earlier profile: {events, time, evidence}; falsy if the page compares nothing. `evidence`
     * says for each event how changes are judged (see `Comparison`). */
    this.baseline = pack.json("baseline") && { ...pack.json("baseline"), time: clockOf(pack.json("baseline").time) };

    const texts = pack.texts("profile/texts");
    const optional = (column) => Array.from(pack.numbers(column), (number) => (number ? texts[number - 1] : ""));
    this.functions = {
      name: Array.from(pack.numbers("profile/functions.name"), (number) => texts[number]),
      /** "" if unknown. */
      module: optional("profile/functions.module"),
      /** The first function that differs only in its category. All tiers of a function thus have the same number. */
      identity: pack.numbers("profile/functions.identity"),
      /** Index into `categories`. */
      category: Uint8Array.from(pack.numbers("profile/functions.category")),
      /** "" if unknown. */
      file: optional("profile/functions.file"),
      line: pack.numbers("profile/functions.line"),
    };
    /** For each node, its function, and the node of its caller, which is always smaller; -1 for outermost functions. */
    this.nodeFunction = pack.numbers("profile/nodes.function");
    const up = pack.numbers("profile/nodes.up");
    this.nodeParent = new Int32Array(up.length);
    for (let node = 0; node < up.length; node++) this.nodeParent[node] = up[node] ? node - up[node] : -1;
  }

  /** True if any function ran in several tiers, so that merging tiers makes a difference. */
  get hasTiers() {
    const { identity, category } = this.functions;
    const isTier = (number) => this.categories[category[number]].jit;
    // `identity` has the first of the functions that differ only in their category.
    return identity.some((first, number) => {
      const isOtherCategory = first !== number && category[first] !== category[number];
      return isOtherCategory && (isTier(first) || isTier(number));
    });
  }

  get functionCount() {
    return this.functions.name.length;
  }

  /** True if the input recorded calls for any event. */
  get hasCalls() {
    return this.statesCalls.includes(true);
  }

  /**
   * The recorded calls of an event: the self costs of functions and the costs of calls, by thread. Null if there are
   * none.
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
   * The samples of an event in order of time; those of the earlier profile if `from` is "baseline".
   * @returns {{length, node: Int32Array, track, weight, count, instruction, time}} node: -1 for an empty stack;
   *   instruction: 1 + the number of the sample's instruction; 0 or undefined if it isn't listed; time: null if
   *   unknown
   */
  rows(event, from = "profile") {
    const key = `${from}/rows.${event}`;
    if (!this.#rows.has(key)) {
      const column = (name) => this.#pack.numbers(`${key}.${name}`);
      const node = Int32Array.from(column("node"), (number) => number - 1);
      const time = this.#pack.has(`${key}.time`) ? column("time") : null;
      const [track, weight, count, instruction] = ["track", "weight", "count", "instruction"].map(column);
      this.#rows.set(key, { length: node.length, node, track, weight, count, instruction, time });
    }
    return this.#rows.get(key);
  }

  /** The full name of a function with everything known about it, for tooltips and lists. */
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
