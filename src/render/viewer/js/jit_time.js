// Part "JIT over time": what was compiled when, by tier; which functions were compiled repeatedly; and how much ran
// before it was compiled.

import { swatch, writtenAt } from "./code_table.js";
import { drawingOf, element, onResize, scrollsByKeyboard } from "./dom.js";
import { amount, byteCount, counted, grouped, percent } from "./format.js";
import {
  accumulated, Compilations, compiledIn, compiledOverTime, mostCompiled, programFrames, samplesOverTime, timeFilter, warmUp,
} from "./jit_model.js";
import { onlyRecording } from "./recordings.js";
import { shownTime, timeClock } from "./time_axis.js";
import { TimeBars } from "./time_bars.js";

/** The keys of the state that change what this part shows. */
const JIT_KEYS = ["part", "event", "weight", "ranges", "tracks", "theme", "timeView", "timeRows"];

/** The number of functions in the table. */
const JIT_ROWS = 200;

/** Mounts the part "JIT over time" in `root`, and redraws it when its size, or the state that it depends on,
 * changes. */
export function mountJitTime(root, page) {
  const part = new JitPart(root, page);
  // `draw` schedules a call of `part.draw()` for the next frame.
  const draw = drawingOf(page, () => part.draw());
  part.redraw = draw;
  page.store.subscribe((state, changed) => {
    if (state.part === "jit" && JIT_KEYS.some((key) => changed.has(key))) draw();
  });
  onResize(root, () => page.state.part === "jit" && draw());
  if (page.state.part === "jit") draw();
}

class JitPart {
  #page;
  #nodes = {};
  #compilations = null;
  /** The program's innermost function of each node (`programFrames`); null until it is needed. */
  #frames = null;
  /** The charts, and the elements that contain them, by ID. */
  #bars = {};
  #figures = {};
  /** The length of the recording in units of time; null if samples have no times. */
  #length = null;

  /** Creates the part's elements: facts, notes, charts and tables. */
  constructor(root, page) {
    this.#page = page;
    this.redraw = () => {};
    root.classList.add("jit");
    scrollsByKeyboard(root);
    const nodes = this.#nodes;
    // A drop-down list. `options` are pairs of value and text.
    const dropDown = (id, label, options) =>
      element("select", { id, "aria-label": label, onchange: () => this.redraw() },
        ...options.map(([value, text]) => element("option", { value }, text)));
    nodes.facts = element("p", { id: "jit-facts" });
    nodes.notes = element("div", { id: "jit-notes" });
    nodes.what = dropDown("jit-what", "Measure", [["bytes", "bytes of code"], ["codes", "functions"]]);
    nodes.how = dropDown("jit-how", "Sum", [["each", "per interval"], ["sum", "cumulative"]]);
    nodes.charts = element("div", { id: "jit-charts" });
    nodes.tiers = element("div", { id: "jit-tiers" });
    nodes.warm = element("div", { id: "jit-warm" });
    nodes.functions = element("div", { id: "jit-functions" });
    root.append(nodes.facts, nodes.notes, nodes.charts,
      element("div", { class: "jit-tables" },
        element("div", {}, nodes.tiers, nodes.warm), nodes.functions));
    this.#charts();
  }

  /** Creates the three charts, without contents. */
  #charts() {
    const length = timeClock(this.#page.profile)?.length ?? null;
    this.#length = length;
    const chart = (id, label, height, ...tools) => {
      const box = element("figure", {}, element("figcaption", {}, label, ...tools));
      this.#nodes.charts.append(box);
      this.#figures[id] = box;
      this.#bars[id] = new TimeBars(box, { id: `jit-chart-${id}`, label, height, page: this.#page, length });
    };
    chart("written", "Code written, by tier ", 130, this.#nodes.what, " ", this.#nodes.how);
    chart("again", "Recompilations and moves ", 70);
    chart("samples", "Samples, by tier of the innermost function of the program ", 110);
  }

  /** Draws charts, notes and tables for the selected time and recording. The compilations are only read once. */
  draw() {
    const { profile, pack, state } = this.#page;
    this.#compilations ??= new Compilations(pack, profile);
    this.#frames ??= programFrames(profile, this.#compilations.about.interpreters);
    const ranges = profile.time ? state.ranges : [];
    const recording = onlyRecording(profile, state.tracks), isIn = timeFilter(ranges, recording);
    const sums = compiledIn(this.#compilations, profile.categories.length, isIn);
    this.#facts(sums, ranges);
    this.#notes();
    this.#nodes.charts.hidden = this.#compilations.length === 0 && !profile.time;
    for (const id of ["written", "again"]) this.#figures[id].hidden = this.#compilations.length === 0;
    // The charts mark the selected ranges, but show the whole time.
    if (!this.#nodes.charts.hidden) this.#draw(ranges, timeFilter([], recording));
    this.#tiers(sums);
    this.#warmUp();
    this.#functions(isIn);
  }

  /** The time axis of all charts: that of the lanes above or, if samples have no times, that of the compilations. */
  #axis() {
    if (this.#length !== null) {
      const [from, to] = shownTime(this.#page.state, this.#length);
      return { from, to };
    }
    const own = this.#compilations.time, first = own[0] ?? 0;
    return { from: first, to: Math.max(own.at(-1) ?? 0, first + 1) };
  }

  /** Says how much code was compiled in the selected time, and how much of it was recompiled or moved. */
  #facts(sums, ranges) {
    const { about } = this.#compilations;
    const words = [
      `${counted(sums.allCodes, "piece")} of code, ${byteCount(sums.allBytes)}`,
      counted(sums.again, "recompilation"),
      ...(sums.moves > 0 ? [counted(sums.moves, "move")] : []),
    ];
    const when = ranges.length > 0 ? "In the selected time: " : "";
    this.#nodes.facts.textContent = this.#compilations.length > 0 ? when + words.join(" · ")
      : `No compilation times are known (${counted(about.untimed.reduce((sum, { codes }) => sum + codes, 0), "piece")} of JIT code in total).`;
  }

  /** Notes about what the charts don't include. */
  #notes() {
    const { about, length, time } = this.#compilations;
    const { profile } = this.#page;
    const notes = [];
    const untimed = about.untimed.reduce((sum, { codes }) => sum + codes, 0);
    if (untimed > 0) {
      const bytes = about.untimed.reduce((sum, { bytes }) => sum + bytes, 0);
      const why = about.sources.some(({ kind }) => kind === "perf map") ? "perf maps have no times"
        : "the times in the file are unusable";
      notes.push(`${counted(untimed, "piece")} of code (${byteCount(bytes)}) compiled at an unknown time: ${why}.`);
    }
    if (!about.whole) notes.push("Only the most often compiled functions are shown separately, but all are counted.");
    const axis = this.#axis();
    const before = time.filter((moment) => moment < axis.from).length;
    if (before > 0) notes.push(`${piecesWere(before)} compiled before the time range shown.`);
    const after = time.filter((moment) => moment > axis.to).length;
    if (after > 0) notes.push(`${piecesWere(after)} compiled after the time range shown.`);
    for (const { clock, path } of about.sources) {
      // A text that begins like this says that the times in the file were converted or estimated, or are unusable.
      if (clock && clock.startsWith("its times")) notes.push(`${path}: ${clock}.`);
    }
    if (!profile.time && length > 0) notes.push("Samples have no times, so they cannot be compared with compilations.");
    this.#nodes.notes.replaceChildren(...notes.map((note) => element("p", {}, note)));
  }

  /** Draws the three charts: code written by tier, recompilations and moves, and samples by tier. Compilations count if
   * `isIn` accepts them; `ranges` are only marked. */
  #draw(ranges, isIn) {
    const { profile, state } = this.#page;
    const axis = this.#axis();
    const bins = this.#bars.samples.bins;
    const unit = profile.time?.unit ?? this.#compilations.about.unit;
    // Times have three decimals if the axis is shorter than five seconds, otherwise two.
    const decimals = (axis.to - axis.from) * unit < 5e9 ? 3 : 2;
    const time = (at) => `${((at * unit) / 1e9).toFixed(decimals)} s`;
    const over = compiledOverTime(this.#compilations, profile.categories.length, axis, bins, isIn);
    const what = this.#nodes.what.value;
    const seriesOf = (category) => ({ name: category.name, color: `--code-${category.letter}` });
    // Only categories in which something was compiled get a series.
    const used = profile.categories.map((_, number) => number).filter((number) => over.codes[number].some((codes) => codes > 0));
    const columns = used.map((number) => over[what][number]);
    // If nothing was compiled in the visible time, only the notes say so.
    this.#figures.written.hidden = used.length === 0;
    this.#figures.again.hidden = ![over.again, over.moves].some((column) => column.some((count) => count > 0));
    this.#bars.written.show({
      columns: this.#nodes.how.value === "sum" ? accumulated(columns) : columns,
      series: used.map((number) => seriesOf(profile.categories[number])),
      axis, ranges, unit, time, said: what === "bytes" ? byteCount : grouped,
    });
    this.#bars.again.show({
      columns: [over.again, over.moves],
      series: [{ name: "recompiled", color: "--accent" }, { name: "moved", color: "--found" }],
      axis, ranges, unit, time, said: grouped,
    });
    const samples = samplesOverTime(profile, this.#frames, state, axis, bins);
    const sampled = samples.map((_, number) => number).filter((number) => samples[number].some((weight) => weight > 0));
    this.#bars.samples.show({
      columns: sampled.map((number) => samples[number]),
      // The column after those of the categories is for samples outside the program.
      series: sampled.map((number) => number < profile.categories.length ? seriesOf(profile.categories[number])
        : { name: "outside the program", color: "--line" }),
      axis, ranges, unit, time, said: (value) => amount(value, this.#page.unit),
    });
  }

  /** Shows how much code each tier has, with and without known times. */
  #tiers(sums) {
    const { profile } = this.#page;
    const untimed = new Map();
    for (const { category, codes, bytes } of this.#compilations.about.untimed) {
      const sum = untimed.get(category) ?? { codes: 0, bytes: 0 };
      untimed.set(category, { codes: sum.codes + codes, bytes: sum.bytes + bytes });
    }
    // A perf map may report the same code as a jitdump, so their numbers aren't added up.
    const cellsOf = ({ codes, bytes }) => (codes > 0 ? [grouped(codes), byteCount(bytes)] : ["", ""]);
    const average = ({ codes, bytes }) => (codes > 0 ? byteCount(Math.round(bytes / codes)) : "");
    const none = { codes: 0, bytes: 0 };
    const rows = profile.categories.map((category, number) => {
      const timed = { codes: sums.codes[number], bytes: sums.bytes[number] };
      return { category, timed, withoutTime: untimed.get(number) ?? none };
    }).filter(({ timed, withoutTime }) => timed.codes + withoutTime.codes > 0);
    const heads = ["tier", "pieces", "bytes", "on average"];
    // If no time is known, one group of columns is enough; the line at the top says so.
    const knowsTimes = this.#compilations.length > 0;
    const hasSecondGroup = knowsTimes && untimed.size > 0;
    if (hasSecondGroup) heads.push("pieces of unknown time", "their bytes");
    const cells = rows.map(({ category, timed, withoutTime }) => {
      const first = knowsTimes ? timed : withoutTime;
      return [swatch(category), ...cellsOf(first), average(first), ...(hasSecondGroup ? cellsOf(withoutTime) : [])];
    });
    this.#nodes.tiers.replaceChildren(rows.length === 0 ? element("p", {}, "No code was compiled in the selected time.")
      : codesTable("Code by tier", heads, cells));
  }

  /** Shows how many samples were in functions that weren't compiled yet, and how many in functions that were. */
  #warmUp() {
    const { profile, state, unit } = this.#page;
    const sums = warmUp(profile, this.#frames, this.#compilations, state);
    // Each row: what ran, its weight, and the key by which tests find the row.
    const rows = [
      ["interpreted, before the first compilation", sums.before, "before"],
      ["interpreted, although compiled before", sums.later, "later"],
      ["interpreted, never compiled", sums.never, "never"],
      ["interpreted, unknown if or when compiled", sums.untold, "untold"],
      ["in the interpreter, function unknown", sums.unknown, "unknown"],
      ...profile.categories.map((category, number) => [swatch(category), sums.compiled[number], category.name]),
      ["outside the program's functions (startup, compiler, garbage collector …)", sums.none, "none"],
    ].filter(([, weight]) => weight > 0);
    if (rows.length === 0) return this.#nodes.warm.replaceChildren(element("p", {}, "No samples in the selected time and threads."));
    const cells = rows.map(([what, weight]) => [what, shareBar(weight, sums.total), amount(weight, unit)]);
    const table = codesTable("Samples, by innermost function of the program", ["innermost function", "share", "weight"], cells);
    rows.forEach(([, , key], row) => (table.tBodies[0].rows[row].dataset.run = key));
    this.#nodes.warm.replaceChildren(table);
  }

  /** Shows the most often compiled functions. Those that occur in samples are links to their code. */
  #functions(isIn) {
    const { profile, store } = this.#page;
    const compiled = mostCompiled(this.#compilations, isIn, JIT_ROWS);
    const unit = profile.time?.unit ?? this.#compilations.about.unit;
    const severalProcesses = new Set(this.#compilations.pid).size > 1;
    // The number of the first JIT function with each name, among the functions in samples.
    const numbers = new Map();
    profile.functions.name.forEach((name, number) => {
      if (profile.categories[profile.functions.category[number]].jit && !numbers.has(name)) numbers.set(name, number);
    });
    const rows = compiled.map((entry) => {
      const name = this.#compilations.name[entry.number];
      const number = numbers.get(name);
      const tiers = [...entry.tiers].sort(([a], [b]) => a - b).map(([category, codes]) => {
        const label = swatch(profile.categories[category]);
        if (codes > 1) label.append(` ×${codes}`);
        return label;
      });
      const nameCell = number === undefined ? element("span", { title: "not in any sample" }, name)
        : element("button", { class: "target", onclick: () => store.set({ selected: number, code: null, part: "code" }) }, name);
      const cells = [grouped(entry.codes), grouped(entry.again), element("span", { class: "tiers" }, ...tiers),
        byteCount(entry.bytes), writtenAt(entry.first * unit), writtenAt(entry.last * unit), nameCell];
      // The process comes before the name, which is the last of seven cells.
      if (severalProcesses) cells.splice(6, 0, String(this.#compilations.pid[entry.number]));
      return cells;
    });
    const heads = ["pieces", "recompilations", "tiers", "bytes", "first", "last", "function"];
    if (severalProcesses) heads.splice(6, 0, "process");
    this.#nodes.functions.hidden = this.#compilations.length === 0;
    this.#nodes.functions.replaceChildren(rows.length > 0
      ? codesTable("Most often compiled", heads, rows) : element("p", {}, "No function was compiled in the selected time."));
  }
}

/** `1 piece of code was`, `2 pieces of code were` */
function piecesWere(number) {
  return `${counted(number, "piece")} of code ${number === 1 ? "was" : "were"}`;
}

/** A table whose cells are texts or elements. */
function codesTable(caption, heads, rows) {
  return element("table", { class: "codes" },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))))));
}

/** A share as a bar with its percentage. */
function shareBar(part, whole) {
  return element("span", { class: "share", style: `--share:${whole > 0 ? part / whole : 0}` }, percent(part, whole));
}
