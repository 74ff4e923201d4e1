// Part "Code": the machine code of the selected function, instruction by instruction, with its source next to it. If no
// function is selected, a list of the hottest code to choose from.

import { MachinePane } from "./code_machine.js";
import { SourcePane } from "./code_source.js";
import { CodeTable } from "./code_table.js";
import { drawingOf, element } from "./dom.js";
import { amount, counted, grouped, percent } from "./format.js";
import { ownBelow } from "./functions.js";
import { instructionCosts, Listings, sumOf } from "./listings.js";

/** The number of events that have columns next to an instruction. More columns would leave no room for the
 * instruction. */
const MOST_EVENTS = 3;

/** The number of callees listed for a function without self time. */
const MOST_CALLEES = 12;

/** The keys of the state that change the costs of instructions. */
const COST_KEYS = ["ranges", "tracks"];

/** The keys of the state that change what this part shows. */
const CODE_KEYS = [...COST_KEYS, "part", "event", "weight", "selected", "code", "mergeTiers", "theme"];

/** Mounts the part in `root`, and redraws it when the state that it depends on changes. */
export function mountCode(root, page) {
  const part = new CodePart(root, page);
  const draw = drawingOf(page, () => part.draw());
  page.store.subscribe((state, changed) => {
    if (COST_KEYS.some((key) => changed.has(key))) part.forgetCosts();
    if (state.part === "code" && CODE_KEYS.some((key) => changed.has(key))) draw();
  });
  part.redraw = draw;
  if (page.store.state.part === "code") draw();
}

class CodePart {
  #page;
  #listings = null;
  #costs = null;
  #line = null;
  #found = null;
  #shown = -1;
  #nodes = {};

  constructor(root, page) {
    this.#page = page;
    this.redraw = () => {};
    const nodes = this.#nodes;
    const tool = (name, options) => {
      const list = element("select", { id: `code-${name}`, "aria-label": name === "lines" ? "Lines" : "Percentages", onchange: () => this.redraw() },
        ...options.map(([value, text]) => element("option", { value }, text)));
      nodes[name] = list;
      return list;
    };
    nodes.all = element("button", { id: "code-all", onclick: () => page.store.set({ selected: null, code: null }) },
      "All listings");
    nodes.search = element("input", {
      id: "code-search", type: "search", placeholder: "Search this code", "aria-label": "Search this code",
      oninput: () => this.#search(), onkeydown: (event) => this.#searchKey(event),
    });
    nodes.searched = element("span", { id: "code-found", "aria-live": "polite" });
    nodes.head = element("div", { id: "code-head" });
    nodes.tools = element("div", { id: "code-tools" }, nodes.all,
      tool("lines", [["hot", "hot lines"], ["whole", "whole code"]]),
      tool("percent", [["code", "% of this code"], ["all", "% of the selection"]]),
      nodes.search, nodes.searched,
      element("span", { class: "hint" }, "↑↓ move · n hottest, N next hottest · Enter follow jump · / search"));
    nodes.table = element("div", { id: "code-list" });
    nodes.source = element("div", { id: "code-source", "aria-label": "Source" });
    nodes.machine = element("div", { id: "code-machine", "aria-label": "Machine code", "data-home": "" });
    nodes.panes = element("div", { id: "code-panes" }, nodes.source, nodes.machine);
    nodes.note = element("div", { id: "code-note" });
    root.classList.add("code");
    root.append(nodes.head, nodes.tools, nodes.table, nodes.note, nodes.panes);
    this.machine = new MachinePane(nodes.machine, {
      follow: (at) => this.#follow(at),
      moved: (at) => this.#moved(at),
    });
    this.source = new SourcePane(nodes.source, (file, line) => this.#choseLine(file, line));
    this.table = new CodeTable(nodes.table, (listing) => this.#choose(listing));
    root.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target === nodes.search) return;
      nodes.search.focus();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  forgetCosts() {
    this.#costs = null;
  }

  /** The events whose costs are shown: the chosen one first, then others that have samples. */
  #events() {
    const { profile, state } = this.#page;
    const chosen = Math.min(state.event, profile.events.length - 1);
    const others = profile.events.map((_, event) => event)
      .filter((event) => event !== chosen && this.#costs[event].totalCount > 0);
    return [chosen, ...others].slice(0, MOST_EVENTS);
  }

  /** What a row of the profile counts: "sample" or "cost". */
  get #counted() {
    return this.#page.profile.counted;
  }

  /** The text for a number of samples, or for a cost. */
  #countText(count) {
    return this.#counted === "cost" ? amount(count, this.#page.unit) : counted(count, "sample");
  }

  #weightOf = (cost) => (this.#page.state.weight === "samples" ? cost.count : cost.weight);

  /** Draws everything: the head, the table of listings, and the shown listing or why there is none. */
  draw() {
    const { profile, pack, state } = this.#page;
    this.#listings ??= new Listings(pack, profile);
    this.#costs ??= instructionCosts(profile, this.#listings, state);
    const shown = this.#current();
    const nodes = this.#nodes;
    const isListed = shown >= 0 && this.#listings.missing[shown] === "";
    if (shown !== this.#shown) this.#line = null;
    nodes.tools.hidden = nodes.panes.hidden = !isListed;
    nodes.note.replaceChildren();
    this.#head(shown);
    this.#drawTable(shown);
    if (isListed) this.#drawListing(shown);
    else if (state.selected !== null) nodes.note.append(...this.#whyNot(shown));
    if (shown >= 0) nodes.note.append(...this.#expanded(shown));
    this.#shown = shown;
  }

  /** The listing to show: the chosen one, or else the hottest of the selected function; -1 if there is none. */
  #current() {
    const { state } = this.#page;
    const listings = this.#listings;
    const exists = state.code !== null && state.code >= 0 && state.code < listings.length;
    if (state.selected === null || state.selected >= this.#page.profile.functionCount) return exists ? state.code : -1;
    const own = listings.ofFunction(state.selected);
    if (exists && own.includes(state.code)) return state.code;
    const heat = (listing) => (listings.missing[listing] ? -1 : this.#sum(listing).part);
    return [...own].sort((a, b) => heat(b) - heat(a) || a - b)[0] ?? -1;
  }

  /** The cost of a listing for an event (by default the chosen one): {part, count, whole}. */
  #sum(listing, event = this.#events()[0]) {
    const cost = this.#costs[event];
    const [from, to] = [this.#listings.first[listing], this.#listings.first[listing + 1]];
    const whole = this.#page.state.weight === "samples" ? cost.totalCount : cost.total;
    if (from === to && event === this.#events()[0]) return { ...this.#sumWithoutListing(listing), whole };
    return { part: sumOf(this.#weightOf(cost), from, to), count: sumOf(cost.count, from, to), whole };
  }

  /** The cost of code that isn't listed, from the function's self cost in this tier. Zero if the cost is that of several
   * versions, because it isn't known how much of it each version has. `count` is null if it is unknown. */
  #sumWithoutListing(listing) {
    const { profile } = this.#page, category = this.#listings.category[listing], number = this.#listings.functionOf(listing);
    const versions = this.#listings.likes(listing).filter((other) => this.#listings.category[other] === category);
    if (number < 0 || versions.length > 1 || this.#listings.versions[listing] > 1) return { part: 0, count: 0 };
    const { self, selfCount, shares } = this.#page.sums(), group = this.#page.groups().of[number];
    // Unnamed code may be of another kind here than in stacks.
    const kind = profile.categories[category].jit ? category : profile.functions.category[number];
    const part = shares[group * profile.categories.length + kind];
    // Numbers of samples aren't known by tier. If all self weight is in this tier, it has all samples, too.
    return { part, count: part === self[group] ? selfCount[group] : null };
  }

  /** Draws the table of listings: those of the selected function or, if none is selected, of the shown listing's
   * function. If no listing is shown either, the table has all listings. */
  #drawTable(shown) {
    const { state, profile } = this.#page;
    const all = Array.from({ length: this.#listings.length }, (_, listing) => listing);
    const own = state.selected === null ? (shown >= 0 ? this.#listings.likes(shown) : all)
      : this.#listings.ofFunction(state.selected);
    const isWhole = state.selected === null && shown < 0;
    this.#nodes.table.classList.toggle("whole", isWhole);
    // A single listing without instructions needs no table: a note says why it has none.
    this.#nodes.table.hidden = own.length === 0 || (own.length === 1 && !isWhole && this.#listings.missing[own[0]] !== "");
    if (!this.#nodes.table.hidden) {
      this.table.show({
        listings: this.#listings, profile, list: own, shown, sumOf: (listing) => this.#sum(listing), withNames: isWhole,
      });
    }
  }

  /** Draws the head. If no function is selected and no listing is shown, it says how many listings there are and how
   * many samples they cover. Otherwise it has the function's name, module and share of the selection. */
  #head(shown) {
    const { state, profile } = this.#page;
    const head = this.#nodes.head;
    const { about } = this.#listings;
    if (state.selected === null && shown < 0) {
      const cost = this.#costs[this.#events()[0]];
      const hidden = about.codes - this.#listings.length;
      const missing = this.#listings.missing.filter((why) => why), whys = [...new Set(missing)];
      head.replaceChildren(
        element("h2", {}, "Hottest code"),
        element("p", {}, [
          hidden > 0 ? `Top ${grouped(this.#listings.length)} of ` : "",
          `${counted(about.codes, "code block")}; the listings cover ${percent(cost.listed, cost.totalCount)} of ${this.#counted}s`,
          hidden > 0 ? " (--code N for more)." : ".",
          missing.length > 0 ? ` ${grouped(missing.length)} ${missing.length === 1 ? "has" : "have"} no listing` : "",
          missing.length > 0 ? (whys.length === 1 ? `: ${whys[0]}.` : "; the last column says why.") : "",
        ].join("")));
      return;
    }
    const number = state.selected ?? this.#listings.functionOf(shown);
    const name = number >= 0 ? profile.functions.name[number] : this.#listings.name[shown];
    const module = number >= 0 ? profile.functions.module[number] : this.#listings.module[shown];
    const words = [module];
    const own = number >= 0 ? this.#listings.ofFunction(number) : this.#listings.likes(shown);
    // Without instructions, the amounts are those of the function's stacks, otherwise the sum over its listings.
    if (own.every((listing) => this.#listings.missing[listing])) {
      const { self, selfCount } = this.#page.sums();
      const group = this.#page.groups().of[number];
      const { total } = this.#page.selection();
      if (number >= 0) words.push(`${percent(self[group], total)} of the selection, ${this.#countText(selfCount[group])}`);
    } else {
      const sums = own.map((listing) => this.#sum(listing));
      const count = sums.reduce((sum, { count }) => sum + count, 0);
      const part = sums.reduce((sum, { part }) => sum + part, 0);
      words.push(`${percent(part, sums[0].whole)} of the selection, ${this.#countText(count)}`);
      words.push(this.#versionsOf(own));
    }
    head.replaceChildren(element("h2", { title: name }, name), element("p", {}, words.filter(Boolean).join(" · ")));
  }

  /** The text for the number of versions of a function. If the page lists only the hottest ones, it says so. Versions
   * of the same tier have the same name. */
  #versionsOf(own) {
    const all = new Map(own.map((listing) => [this.#listings.category[listing], this.#listings.versions[listing]]));
    const count = [...all.values()].reduce((sum, versions) => sum + versions, 0);
    return own.length < count ? `the hottest ${own.length} of ${count} compiled versions` : counted(own.length, "code");
  }

  /** Draws the machine code and source of a listing. If it wasn't shown before, goes to its hottest instruction. */
  #drawListing(shown) {
    const nodes = this.#nodes;
    const [listings, costs, events] = [this.#listings, this.#costs, this.#events()];
    const instructions = listings.instructions();
    const ofCode = nodes.percent.value === "code";
    const sums = costs.map((_, event) => this.#sum(shown, event));
    if (shown !== this.#shown) this.#found = null;
    const isChosen = (file, line) => this.#line?.file === file && this.#line.line === line;
    const view = {
      listings, instructions, listing: shown, costs, events,
      wholes: sums.map(({ part, whole }) => (ofCode ? part : whole)),
      weightOf: this.#weightOf,
      weighted: this.#page.state.weight !== "samples",
      hotOnly: nodes.lines.value === "hot" && sums.some(({ count }) => count > 0),
      found: this.#found,
      isChosen,
      marked: (at) => this.#line !== null && isChosen(instructions.file[at], instructions.line[at]),
    };
    nodes.panes.classList.toggle("exact", this.#counted === "cost");
    nodes.machine.style.setProperty("--events", events.length);
    this.machine.show(view);
    this.source.show(view);
    nodes.source.hidden = this.source.isEmpty;
    nodes.source.classList.toggle("without-text", !this.source.hasText);
    if (shown !== this.#shown) {
      this.#search(false);
      this.#toHottest(view);
    }
    nodes.note.replaceChildren(...this.#eventNotes(events));
  }

  #toHottest({ listings, listing, costs, events, weightOf }) {
    const weights = weightOf(costs[events[0]]);
    let hottest = listings.first[listing];
    for (let at = hottest; at < listings.first[listing + 1]; at++) if (weights[at] > weights[hottest]) hottest = at;
    if (weights[hottest] > 0) this.machine.moveTo(hottest);
  }

  /** For each event with columns: its name, and how precisely samples are attributed to instructions. */
  #eventNotes(events) {
    const { profile } = this.#page;
    const told = (event, column) => {
      const said = this.#listings.about.events[event]?.said;
      const which = events.length > 1 ? `${["Left", "Next", "Then"][column]}: ` : "";
      if (this.#listings.about.events[event]?.exact) return `${which}${profile.events[event].name}. Counts are exact.`;
      return `${which}${profile.events[event].name}. ${said ?? "Its precision is unknown."}`;
    };
    return events.map((event, column) => element("span", {}, told(event, column)));
  }

  /** Elements that say why the selected function has no listing: its code is missing, it was inlined into other code,
   * it has no samples of its own, or it isn't among the listed code blocks. */
  #whyNot(shown) {
    const { state, profile } = this.#page;
    const why = shown >= 0 ? this.#listings.missing[shown] : "";
    if (why) return [element("p", {}, `No listing: ${why}.`)];
    const hosts = this.#hostsOf(state.selected);
    if (hosts.length > 0) {
      const link = ([listing, count]) => element("li", {},
        element("button", { class: "target", "data-listing": listing, onclick: () => this.#choose(listing) },
          this.#listings.name[listing]), ` ${this.#countText(count)}`);
      return [element("p", {}, "It was inlined and has no code of its own. Its samples are in:"),
        element("ul", {}, ...hosts.map(link))];
    }
    const group = this.#page.groups().of[state.selected];
    if (this.#page.sums().selfCount[group] === 0) {
      return this.#calleesOf(group);
    }
    const more = this.#listings.about.codes > this.#listings.length;
    const name = profile.functions.name[state.selected];
    return [element("p", {}, more
      ? `It is not among the ${grouped(this.#listings.length)} hottest code blocks in this page (add more with --code N).`
      : `Nothing is known about the code of ${name}.`)];
  }

  /** Elements for a group without self time: links to the functions that it called, directly or indirectly, as far as
   * their code is listed; the hottest first. */
  #calleesOf(group) {
    const { profile, store, unit } = this.#page, groups = this.#page.groups();
    const sums = ownBelow(profile, groups, this.#page.selection().own, group);
    const hasCode = (number) => this.#listings.ofFunction(number).some((listing) => this.#listings.missing[listing] === "");
    const callees = [...sums].filter(([callee]) => hasCode(groups.first[callee])).sort((a, b) => b[1] - a[1]).slice(0, MOST_CALLEES);
    if (callees.length === 0) return [element("p", {}, "It has no self time, and this page has no code of the functions it called.")];
    const link = ([callee, weight]) => element("li", {},
      element("button", { class: "target", onclick: () => store.set({ selected: groups.first[callee], code: null }) },
        profile.functions.name[groups.first[callee]]), ` ${amount(weight, unit)}`);
    return [element("p", {}, "It has no self time. The time is in the functions it called:"),
      element("ul", { id: "code-callees" }, ...callees.map(link))];
  }

  /** The inlined calls of a listing for which the compiler didn't record addresses. */
  #expanded(shown) {
    const lines = this.#listings.expanded(shown);
    if (lines.length === 0) return [];
    const told = `Contains ${counted(lines.length, "inlined call")} (listed by bytecode offset, because their addresses were not recorded)`;
    return [element("details", { id: "code-expanded", open: "" }, element("summary", {}, told),
      element("pre", {}, lines.join("\n")))];
  }

  /** The listings that contain samples whose innermost frame is this function, each with the number of these samples.
   * The function was inlined into their code. */
  #hostsOf(number) {
    const { profile, state } = this.#page;
    const event = Math.min(state.event, profile.events.length - 1);
    const rows = profile.rows(event);
    const instructions = rows.instruction;
    const hosts = new Map();
    for (let row = 0; row < rows.length; row++) {
      if (!instructions[row] || rows.node[row] < 0 || profile.nodeFunction[rows.node[row]] !== number) continue;
      const listing = this.#listings.instructions().listingOf(instructions[row] - 1);
      hosts.set(listing, (hosts.get(listing) ?? 0) + rows.count[row]);
    }
    return [...hosts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  }

  #choose(listing) {
    const number = this.#listings.functionOf(listing);
    const { selected } = this.#page.state;
    const stays = selected !== null && this.#listings.ofFunction(selected).includes(listing);
    this.#page.store.set({ selected: stays ? selected : number < 0 ? null : number, code: listing });
  }

  /** Shows the other listing that an instruction's target is in. */
  #follow(at) {
    const out = this.#listings.instructions().out(at);
    const listing = out?.name ? this.#listings.at(out.name, out.address ?? 0n) : -1;
    if (listing >= 0) this.#choose(listing);
  }

  /** Selects the source line of the instruction at the cursor. */
  #moved(at) {
    const instructions = this.#listings.instructions();
    const file = instructions.file[at];
    this.#line = file ? { file, line: instructions.line[at] } : null;
    this.machine.draw();
    if (file) this.source.reveal(file, instructions.line[at]);
  }

  /** Selects a source line, and moves the cursor to its hottest instruction. */
  #choseLine(file, line) {
    this.#line = { file, line };
    const instructions = this.#listings.instructions();
    const weights = this.#weightOf(this.#costs[this.#events()[0]]);
    let hottest = -1;
    const [from, to] = [this.#listings.first[this.#shown], this.#listings.first[this.#shown + 1]];
    for (let at = from; at < to; at++) {
      if (instructions.file[at] !== file || instructions.line[at] !== line) continue;
      if (hottest < 0 || weights[at] > weights[hottest]) hottest = at;
    }
    if (hottest >= 0) this.machine.moveTo(hottest);
    else this.source.reveal(file, line);
  }

  /** Finds the instructions of the listing whose text, target or source line contains the search text. */
  #search(redraw = true) {
    const { search, searched } = this.#nodes;
    const word = search.value.toLowerCase();
    this.#found = null;
    if (word !== "") {
      this.#found = new Set();
      const instructions = this.#listings.instructions();
      const [from, to] = [this.#listings.first[this.#current()], this.#listings.first[this.#current() + 1]];
      for (let at = from; at < to; at++) {
        const source = instructions.file[at] ? instructions.lineText(instructions.file[at], instructions.line[at]) : "";
        const said = `${instructions.text(at)} ${instructions.out(at)?.name ?? ""} ${source ?? ""}`;
        if (said.toLowerCase().includes(word)) this.#found.add(at);
      }
    }
    searched.textContent = this.#found ? counted(this.#found.size, "instruction") : "";
    if (redraw) this.redraw();
  }

  /** Handles a key in the search field: Enter goes to the next match, Shift+Enter to the previous one, and Escape
   * clears the search. */
  #searchKey(event) {
    if (event.key === "Escape") {
      this.#nodes.search.value = "";
      this.#search();
    } else if (event.key === "Enter" && this.#found?.size > 0) {
      const found = [...this.#found];
      const before = this.machine.cursor;
      const next = event.shiftKey ? found.findLast((at) => at < before) : found.find((at) => at > before);
      this.machine.moveTo(next ?? (event.shiftKey ? found.at(-1) : found[0]));
    } else return;
    event.preventDefault();
  }
}
