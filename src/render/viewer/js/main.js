// The page: reads the data and mounts all parts.

import { mountCallTree } from "./call_tree.js";
import { callsTree, statedCalls, statedSums } from "./calls.js";
import { mountCode } from "./code.js";
import { readPack } from "./data.js";
import { mountDifference } from "./difference.js";
import { mountDoctor } from "./doctor.js";
import { element, forgetColors } from "./dom.js";
import { mountFlame } from "./flame.js";
import { keepFocus } from "./focus.js";
import { amount, counted, grouped } from "./format.js";
import { functionGroups, functionSums } from "./functions.js";
import { mountJitTime } from "./jit_time.js";
import { mountKeys } from "./keys.js";
import { Profile } from "./profile.js";
import { SumArrays, select, trackSet } from "./selection.js";
import { mountSearch } from "./search_box.js";
import { Store } from "./state.js";
import { mountTable } from "./table.js";
import { mountTimeline } from "./timeline.js";
import { bottomUpShape, calleesShape, callersShape, callTreeShape, weighed } from "./tree.js";

/** The data that every part uses: the profile, the state, and what is computed from both on demand. */
class PageModel {
  /** The values cached by `#remember`, by name. */
  #memo = new Map();

  /** `pack` has the unpacked data of the page. */
  constructor(pack) {
    this.pack = pack;
    this.profile = new Profile(pack);
    // If the page compares two profiles, it starts with the difference.
    this.store = new Store(this.profile.baseline ? { part: "difference" } : {});
    /** For each part, a function that moves to its next search match (1) or the previous one (−1). It returns {what,
     * at, count}, or null if there are no matches. */
    this.walkers = {};
    /** Where the timeline's lanes are, in pixels of the window: {left, width}; null if there are none. */
    this.lanes = null;
    /** The number of frames drawn so far. */
    this.painted = 0;
  }

  get state() {
    return this.store.state;
  }

  /** The chosen event: {name, unit, sampling}. */
  get event() {
    return this.profile.events[Math.min(this.state.event, this.profile.events.length - 1)];
  }

  /** The unit of the amounts shown. */
  get unit() {
    return this.state.weight === "samples" ? "samples" : this.event.unit;
  }

  /** The name of the visible part. */
  shownPart() {
    const parts = PARTS.filter((part) => part.has(this));
    return (parts.find((part) => part.name === this.state.part) ?? parts[0]).name;
  }

  /** The functions, grouped by whether the user sees them as one function. */
  groups() {
    return this.#remember("groups", ["mergeTiers"], () => functionGroups(this.profile, this.state.mergeTiers));
  }

  /** The selected samples, summed by stack. */
  selection() {
    return this.#remember("selection", SELECTION, () => select(this.profile, this.state, "profile", this.#arrays("selection")));
  }

  /** The samples of the earlier profile, summed by stack; null if the page compares nothing. The selection of time
   * and threads doesn't apply to them. */
  baseline() {
    if (!this.profile.baseline) return null;
    return this.#remember("baseline", ["event", "weight"], () => select(this.profile, this.state, "baseline"));
  }

  /** Self and total weight of each group of functions. */
  sums() {
    return this.#remember("sums", [...SELECTION, "mergeTiers"], () => {
      const stated = this.stated();
      if (stated) return statedSums(this.profile, this.groups(), stated);
      return functionSums(this.profile, this.groups(), this.selection());
    });
  }

  /** The calls that the input recorded for the chosen event and the selected threads; null if it recorded none. */
  stated() {
    const { event, ranges } = this.state;
    if (ranges.length > 0) return null;
    return this.#remember("stated", ["event", "mergeTiers", "tracks"], () => statedCalls(
      this.profile, this.groups(), Math.min(event, this.profile.events.length - 1), trackSet(this.profile, this.state)));
  }

  /** The stacks merged to a tree, starting from the outermost functions ("calls") or from the innermost ones
   * ("bottomup"). */
  tree(kind = this.state.direction === "bottomup" ? "bottomup" : "calls") {
    return this.#remember(`tree ${kind}`, [...SELECTION, ...SHAPE], () =>
      weighed(this.#shape(kind), this.selection(), this.#arrays(kind)));
  }

  /** The call tree with the weights of the earlier profile. Its nodes are the same as those of `tree("calls")`. */
  baselineTree() {
    return this.#remember("baseline tree", [...SHAPE, "event", "weight"], () => weighed(this.#shape("calls"), this.baseline()));
  }

  #shape(kind) {
    const shapeOf = kind === "bottomup" ? bottomUpShape : callTreeShape;
    return this.#remember(`shape ${kind}`, SHAPE, () => shapeOf(this.profile, this.groups(), this.state));
  }

  /** The callers and the callees of the function `state.sandwich`, as two trees. In both, the function is the root's
   * only child. */
  sandwich() {
    const number = this.state.sandwich;
    const stated = this.stated(), group = this.groups().of[number];
    // The input recorded the function's calls, so show these instead of what the stacks tell.
    if (stated?.named[group]) {
      return this.#remember("stated sandwich", [...SELECTION, "mergeTiers", "sandwich"], () => ({
        callers: callsTree(this.profile, stated, group, true), callees: callsTree(this.profile, stated, group, false),
      }));
    }
    const [callers, callees] = [callersShape, calleesShape].map((shapeOf, side) => {
      const make = () => shapeOf(this.profile, this.groups(), this.state, number);
      const shape = this.#remember(`sandwich shape ${side}`, [...SHAPE, "sandwich"], make);
      return this.#remember(`sandwich ${side}`, [...SELECTION, ...SHAPE, "sandwich"], () => weighed(shape, this.selection()));
    });
    return { callers, callees };
  }

  /** A tree with the stacks of `tree` that end in the node `top` or below it. Each unnamed frame is a node of its own.
   * `tree` is that of the callees if the page shows a sandwich, otherwise the whole tree in the chosen direction. */
  treeOfSingleFrames(tree, top) {
    const { profile, state } = this, groups = this.groups(), selection = this.selection();
    const shapeOf = state.direction === "bottomup" ? bottomUpShape : callTreeShape;
    const shape = state.sandwich === null
      ? shapeOf(profile, groups, state, false) : calleesShape(profile, groups, state, state.sandwich, false);
    // Which nodes are `top` or below it. A node comes after its parent, so the parent's answer is known.
    const isBelow = new Uint8Array(tree.length);
    isBelow[top] = 1;
    for (let node = top + 1; node < tree.length; node++) isBelow[node] = isBelow[tree.parent[node]];
    // Leave out the samples that end elsewhere. `tree.place` has the tree node in which a stack of the profile ends.
    const own = selection.own.map((amount, node) => (tree.place[node] >= 0 && isBelow[tree.place[node]] ? amount : 0));
    return weighed(shape, { ...selection, own });
  }

  /** The reusable arrays for sums with this name. */
  #arrays(name) {
    return this.#remember(`arrays ${name}`, [], () => new SumArrays());
  }

  /** Returns the value that is cached under a name, or calls `make()` if one of these keys of the state has changed. */
  #remember(name, keys, make) {
    const key = JSON.stringify(keys.map((key) => this.state[key]));
    const before = this.#memo.get(name);
    if (before?.key === key) return before.value;
    const value = make();
    this.#memo.set(name, { key, value });
    return value;
  }
}

const SELECTION = ["event", "weight", "ranges", "tracks"];
const SHAPE = ["mergeTiers", "mergeRecursion", "hiddenModules", "hiddenCategories", "hiddenFunctions", "focus"];

/** The parts below the timeline. `has` tells whether there is anything to show. */
const PARTS = [
  { name: "flame", title: "Flame graph", mount: mountFlame, has: () => true },
  { name: "functions", title: "Functions", mount: mountTable, has: () => true },
  { name: "tree", title: "Call tree", mount: mountCallTree, has: () => true },
  { name: "code", title: "Code", mount: mountCode, has: ({ pack }) => pack.json("code") !== null },
  { name: "jit", title: "JIT over time", mount: mountJitTime, has: ({ pack }) => pack.json("jit") !== null },
  { name: "difference", title: "Difference", mount: mountDifference, has: ({ profile }) => profile.baseline !== null },
  { name: "doctor", title: "Doctor", mount: mountDoctor, has: ({ pack }) => pack.json("findings") !== null, badge: findingCount },
];

/** Fills the header: the title, facts about what is selected, and the choice of event, weight, theme and search. */
function mountHeader(root, page) {
  const { profile, store } = page;
  // A drop-down list for a key of the state. `fromText` converts the text of the chosen option to the state's value.
  const choice = (id, label, options, key, fromText = (text) => text) => {
    const list = element("select", { id, onchange: () => store.set({ [key]: fromText(list.value) }) },
      ...options.map(([value, text]) => element("option", { value }, text)));
    const show = () => (list.value = String(store.state[key]));
    store.subscribe(show);
    show();
    return element("label", {}, `${label} `, list);
  };
  const facts = element("p", { id: "facts" });
  const show = () => {
    const { total, count } = page.selection();
    const words = [page.event.name, amount(total, page.unit)];
    if (page.unit !== "samples" && profile.counted !== "cost") words.push(counted(count, profile.counted));
    // The text about truncated stacks states their share in the whole recording.
    const isWhole = store.state.ranges.length === 0 && store.state.tracks.length === 0;
    const truncation = isWhole || !profile.truncation ? profile.truncation : `in the whole recording, ${profile.truncation}`;
    facts.textContent = [...words, ...profile.notes, truncation].filter(Boolean).join(" · ");
  };
  store.subscribe(show);
  show();
  const events = profile.events.map((event, number) => [number, event.name]);
  const search = element("span", { class: "search" });
  mountSearch(search, page);
  root.append(
    element("h1", {}, document.title),
    facts,
    element("div", { id: "controls" },
      events.length > 1 ? choice("event", "Event:", events, "event", Number) : null,
      profile.counted !== "cost" && profile.events.some(({ unit }) => unit !== "samples")
        ? choice("weight", "Weight:", [["period", weightWord(page)], ["samples", `${profile.counted}s`]], "weight") : null,
      choice("theme", "Theme:", [["auto", "system"], ["light", "light"], ["dark", "dark"]], "theme"),
      mountKeys(), search));
}

/** The name for weights in the menu: samples weigh time, or other amounts. */
function weightWord({ profile }) {
  return profile.events.every(({ unit }) => unit === "nanoseconds") ? "time" : "amount";
}

/** Makes a tab and a panel for each part that this page has. Only the panel of the chosen part is visible. */
function mountTabs(root, page) {
  const { store } = page;
  const parts = PARTS.filter((part) => part.has(page));
  const tabs = element("div", { role: "tablist", id: "tabs", "aria-label": "Tabs", onkeydown: (event) => tabKey(event, parts, store) });
  root.append(tabs);
  for (const part of parts) {
    const panel = element("section", {
      id: `part-${part.name}`, role: "tabpanel", "aria-labelledby": `tab-${part.name}`, "data-part": part.name,
    });
    const tab = element("button", {
      id: `tab-${part.name}`, role: "tab", "aria-controls": panel.id, onclick: () => store.set({ part: part.name }),
    }, part.title, badgeOf(part.badge?.(page) ?? 0));
    tabs.append(tab);
    root.append(panel);
    part.mount(panel, page);
  }
  const show = () => {
    const shown = page.shownPart();
    for (const { name } of parts) {
      const tab = document.getElementById(`tab-${name}`);
      tab.setAttribute("aria-selected", String(name === shown));
      tab.tabIndex = name === shown ? 0 : -1;
      document.getElementById(`part-${name}`).hidden = name !== shown;
    }
  };
  store.subscribe(show);
  show();
}

/** Arrow keys move from tab to tab. */
function tabKey(event, parts, store) {
  const at = parts.findIndex(({ name }) => event.target.id === `tab-${name}`), last = parts.length - 1;
  const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
  if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  store.set({ part: parts[to].name });
  document.getElementById(`tab-${parts[to].name}`).focus();
}

/** A badge on a tab with the number of findings; null if there are none. */
function badgeOf(number) {
  return number > 0 ? element("span", { class: "badge", title: counted(number, "finding") }, grouped(number)) : null;
}

function findingCount({ pack }) {
  return pack.json("findings").reduce((sum, { findings }) => sum + findings.length, 0);
}

/** Applies the chosen theme to the page, and again whenever the choice changes. */
function mountTheme({ store }) {
  const show = () => {
    document.documentElement.dataset.theme = store.state.theme;
    forgetColors();
  };
  store.subscribe(show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetColors);
  // Paper is white, so print with the light theme. The parts redraw themselves after this.
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    forgetColors();
  });
  addEventListener("afterprint", show);
  show();
}

/** Reads the page's data, then makes the parts of the page from top to bottom. */
async function mountPage() {
  const root = document.getElementById("page");
  const page = new PageModel(await readPack());
  window.jitgraft.page = page;
  mountTheme(page);
  mountHeader(root.appendChild(element("header")), page);
  mountTimeline(root.appendChild(element("section", { id: "part-time", "aria-label": "Time", "data-part": "time" })), page);
  mountTabs(root.appendChild(element("main")), page);
  keepFocus(root);
}

/** For tests: the page's data, and a promise that resolves when the page is drawn. */
window.jitgraft = { page: null, ready: null };
window.jitgraft.ready = mountPage().catch((error) => {
  document.getElementById("page").textContent = `This page cannot be shown: ${error}`;
  throw error;
});
