// Part "Doctor": problems of the recording and how to fix them. Each finding links to the frames that it is about.

import { swatch } from "./code_table.js";
import { drawingOf, element, scrollsByKeyboard } from "./dom.js";
import { amount, counted, grouped, percent } from "./format.js";
import { isUnnamedFunction } from "./functions.js";

/** The number of functions that a finding lists. Clicking the first one selects all of them in the flame graph. */
const MOST_FUNCTIONS = 6;

/** The maximum number of names in a link's search. With more names, the address would be too long to share. */
const MOST_NAMES = 40;

/** Mounts the part "Doctor" in `root`, and redraws it when the state that it depends on changes. */
export function mountDoctor(root, page) {
  const keys = ["part", "event", "weight", "ranges", "tracks", "theme", "mergeTiers"];
  const articles = () => page.pack.json("findings").map((report) => recordingArticle(page, report));
  // `draw` schedules a drawing for the next frame.
  const draw = drawingOf(page, () => root.replaceChildren(...articles()));
  root.classList.add("doctor");
  scrollsByKeyboard(root);
  page.store.subscribe((state, changed) => {
    if (state.part === "doctor" && keys.some((key) => changed.has(key))) draw();
  });
  if (page.state.part === "doctor") draw();
}

/** Shows what `doctor` found in one recording (`report`): facts, findings, processes with JIT code, and minor
 * findings. */
function recordingArticle(page, report) {
  const { samples, frames, named_frames: named } = report;
  const title = [
    `${grouped(samples)} samples of ${report.events.join(", ")}`,
    stacksBy(report.stacks),
    `${grouped(named)} of ${grouped(frames)} frames have a name (${percent(named, frames)})`,
  ];
  return element("article", {},
    element("h2", {}, report.file),
    element("p", {}, title.join(" · ")),
    ...report.innermost.map(({ event, said }) => element("p", { class: "innermost" }, `${event}: ${said}`)),
    report.findings.length === 0 ? element("p", { class: "well" }, "No problems found.")
      : element("p", {}, `${counted(report.findings.length, "finding")}, ${
        report.findings.length === 1 ? "" : "each "}with the share of samples affected:`),
    element("ol", { class: "findings" }, ...report.findings.map((found) => findingItem(page, found, "finding"))),
    ...report.processes.map(processItem),
    report.minor.length > 0 ? element("h3", {}, "Minor or expected") : null,
    element("ol", { class: "findings minor" }, ...report.minor.map((found) => findingItem(page, found, "minor"))));
}

function stacksBy({ by, bytes }) {
  if (by === "copies") return `stack copies of ${grouped(bytes)} bytes (--call-graph dwarf)`;
  return by === "call-chains" ? "call chains by frame pointer" : "no call chains";
}

/** A finding as an item of the list: share of samples, cause, remedy, and buttons that show the affected frames. */
function findingItem(page, found, sort) {
  const frames = found.show ? framesOf(page, found.show) : [];
  const facts = [found.samples > 0 ? counted(found.samples, "sample") : "", found.frames > 0 ? counted(found.frames, "frame") : ""];
  return element("li", { "data-problem": found.problem, "data-sort": sort },
    element("div", { class: "spoilt" },
      element("span", { class: "share", style: `--share:${Math.min(1, found.percent / 100)}` }, `${found.percent.toFixed(1)}%`)),
    element("div", {},
      element("p", { class: "cause" }, found.cause),
      found.command ? element("p", { class: "command" }, "→ record again: ", element("code", {}, found.command)) : null,
      element("p", { class: "remedy" }, `→ ${found.remedy}`),
      element("p", { class: "shows" }, facts.filter(Boolean).join(", "), " ", ...findingLinks(page, found, frames))));
}

/** The buttons of a finding: highlight its frames in the flame graph, select its process, or show one of its
 * functions. */
function findingLinks(page, found, frames) {
  const { store, profile } = page;
  const buttons = [];
  if (frames.length > 0) {
    const names = [...new Set(frames.map(({ number }) => profile.functions.name[number]))];
    const search = names.length === 1 ? { search: names[0], regex: false }
      : { search: `^(${names.slice(0, MOST_NAMES).map(quotedName).join("|")})$`, regex: true };
    buttons.push(element("button", {
      class: "show-frames", onclick: () => store.set({ ...search, part: "flame", zoom: [], sandwich: null, focus: null }),
    }, names.length > MOST_NAMES ? `Highlight the ${MOST_NAMES} hottest of these frames` : "Highlight these frames"));
  }
  const pid = found.show?.pid ?? found.pid;
  const tracks = pid === null || pid === undefined ? []
    : profile.tracks.map((_, track) => track).filter((track) => profile.tracks[track].pid === pid);
  if (tracks.length > 0 && tracks.length < profile.tracks.length) {
    buttons.push(element("button", { class: "show-process", onclick: () => store.set({ tracks }) }, `Only process ${pid}`));
  }
  const { categories, functions } = profile;
  buttons.push(...frames.slice(0, MOST_FUNCTIONS).map(({ number, weight }) => element("button", {
    class: "target", title: functions.module[number],
    onclick: () => store.set({ selected: number, sandwich: number, part: "flame" }),
  }, swatch(categories[functions.category[number]]), ` ${functions.name[number]} ${amount(weight, page.unit)}`)));
  return buttons;
}

function quotedName(name) {
  return name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

/** The functions that a finding is about, the heaviest first, each with the weight of the stacks that contain it.
 * `show` is the part of the finding that says which functions these are. */
function framesOf(page, show) {
  const { profile } = page;
  const { functions, categories } = profile;
  const categoryOf = (number) => categories[functions.category[number]];
  const interpreters = new Set([...(page.pack.json("jit")?.interpreters ?? []), ...(show.names ?? [])]);
  const modules = new Set(show.modules ?? []);
  // Which functions a finding is about, by what it asks to show (`show.what`).
  const tests = {
    unnamed: (number) => isUnnamedFunction(functions.name[number]) && modules.has(functions.module[number]),
    kernel: (number) => isUnnamedFunction(functions.name[number]) && categoryOf(number).name === "kernel",
    images: (number) => isUnnamedFunction(functions.name[number]) && functions.module[number].includes("jitted-"),
    jit: (number) => categoryOf(number).jit,
    interpreters: (number) => interpreters.has(functions.name[number]) || categoryOf(number).name === "interpreted",
    outermost: outermostTest(page, show),
  };
  const test = tests[show.what] ?? (() => false);
  const total = show.what === "outermost" ? outermostSums(page) : page.sums().total;
  const groups = page.groups();
  const found = [];
  for (let number = 0; number < profile.functionCount; number++) {
    const group = groups.of[number];
    // List each group once, for its first function.
    if (groups.first[group] === number && test(number) && total[group] > 0) found.push({ number, weight: total[group] });
  }
  return found.sort((a, b) => b.weight - a.weight || a.number - b.number);
}

/** A test that is true for functions that are in one of the given files or in JIT code, unless threads start in
 * them. */
function outermostTest({ profile }, show) {
  const { functions, categories } = profile;
  const [files, beginnings] = [new Set(show.files ?? []), new Set(show.beginnings ?? [])];
  return (number) => !beginnings.has(functions.name[number])
    && (show.any || files.has(functions.module[number]) || (show.jit && categories[functions.category[number]].jit));
}

/** For each group, the weight of the samples in whose stacks it is the outermost known function: all its callers there
 * have the category "unknown". */
function outermostSums(page) {
  const { nodeParent, nodeFunction, nodeCount, functions, categories } = page.profile;
  const groups = page.groups();
  const below = page.selection().own.slice();
  const sums = new Float64Array(groups.count);
  for (let node = nodeCount - 1; node >= 0; node--) {
    if (nodeParent[node] >= 0) below[nodeParent[node]] += below[node];
  }
  // `below` is now the weight of all samples through each node.
  const isKnown = (node) => categories[functions.category[nodeFunction[node]]].name !== "unknown";
  const isBelowKnown = new Uint8Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node];
    // Callers come before their callees, so the caller's answer is known.
    isBelowKnown[node] = parent >= 0 && (isBelowKnown[parent] || isKnown(parent)) ? 1 : 0;
    if (isKnown(node) && !isBelowKnown[node]) sums[groups.of[nodeFunction[node]]] += below[node];
  }
  return sums;
}

/** A process with JIT code: how many of its frames have a name, and each file that may name them, with its state. */
function processItem({ pid, comm, runtime, jit_frames: frames, named_jit_frames: named, sources }) {
  const source = ({ kind, path, state, codes, why, looked_at: lookedAt, clock }) => {
    const words = [`${kind} ${path}`];
    if (state === "loaded") words.push(`${counted(codes, "piece")} of code`, clock === "none" ? "" : `clock: ${clock}`);
    else if (state === "missing") words.push(`not found (looked at ${lookedAt.join(", ")})`);
    else words.push(`not used: ${why}`);
    return element("li", {}, words.filter(Boolean).join(" · "));
  };
  return element("section", { class: "process" },
    element("h3", {}, `Process ${pid} (${comm}), ${runtime ?? "no runtime recognized"}: `
      + `${grouped(named)} of ${grouped(frames)} frames of JIT code have a name`),
    element("ul", {}, ...sources.map(source)));
}
