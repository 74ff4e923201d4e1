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

/** Mounts the part "Code" in `root`, and redraws it when the state that it depends on changes. */
export function mountCode(root, page) {
  const part = new CodePart(root, page);
  // `draw` schedules a call of `part.draw()` for the next frame.
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
  /** The costs of instructions, for each event (see `instructionCosts`); null until they are needed. */
  #costs = null;
  /** The selected source line: {file, line}; null if none is selected. */
  #line = null;
  /** The instructions that match the search; null without a search. */
  #found = null;
  /** The listing that was drawn last; -1 if there was none. */
  #shown = -1;
  /** The elements of this part, by name. */
  #nodes = {};

  /** Creates the elements of the part, and the panes that show machine code, source lines and a table of listings. */
  constructor(root, page) {
    this.#page = page;
    this.redraw = () => {};
    const nodes = this.#nodes;
    // A drop-down list. `options` are pairs of value and text.
    const dropDown = (name, options) => {
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
      dropDown("lines", [["hot", "hot lines"], ["whole", "whole code"]]),
      dropDown("percent", [["code", "% of this code"], ["all", "% of the selection"]]),
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
      follow: (instruction) => this.#follow(instruction),
      moved: (instruction) => this.#moved(instruction),
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
    // A shared address may name a function that this page doesn't have.
    const isFunctionSelected = state.selected !== null && state.selected < this.#page.profile.functionCount;
    if (!isFunctionSelected) return exists ? state.code : -1;
    const versions = listings.ofFunction(state.selected);
    if (exists && versions.includes(state.code)) return state.code;
    // Listings without instructions come last. `missing` says why a listing has none, and is empty if it has some.
    const heat = (listing) => (listings.missing[listing] !== "" ? -1 : this.#sum(listing).part);
    const [hottest = -1] = [...versions].sort((a, b) => heat(b) - heat(a) || a - b);
    return hottest;
  }

  /** The cost of a listing for an event (by default the chosen one): {part, count, whole}. `part` is the listing's
   * weight, `count` its number of samples, and `whole` the weight of all selected samples. */
  #sum(listing, event = this.#events()[0]) {
    const cost = this.#costs[event];
    // The instructions of the listing: from `from` up to, but not including, `to`.
    const [from, to] = [this.#listings.first[listing], this.#listings.first[listing + 1]];
    const whole = this.#page.state.weight === "samples" ? cost.totalCount : cost.total;
    if (from === to && event === this.#events()[0]) return { ...this.#sumWithoutListing(listing), whole };
    return { part: sumOf(this.#weightOf(cost), from, to), count: sumOf(cost.count, from, to), whole };
  }

  /** The cost of code without instructions, taken from the function's self cost in this tier: {part, count}, as in
   * `#sum`. Zero if the function has several versions in this tier, because it isn't known how much of the cost each
   * version has. `count` is null if it is unknown. */
  #sumWithoutListing(listing) {
    const { profile } = this.#page, category = this.#listings.category[listing], number = this.#listings.functionOf(listing);
    // `likes` returns all listings of the function to which this one belongs.
    const ofSameTier = this.#listings.likes(listing).filter((version) => this.#listings.category[version] === category);
    const hasSeveralVersions = ofSameTier.length > 1 || this.#listings.versions[listing] > 1;
    // A negative number: no sampled stack contains the function.
    if (number < 0 || hasSeveralVersions) return { part: 0, count: 0 };
    const { self, selfCount, shares } = this.#page.sums(), group = this.#page.groups().of[number];
    // Unnamed code may be of another kind here than in stacks.
    const kind = profile.categories[category].jit ? category : profile.functions.category[number];
    // `shares` has the self weight of each group in each kind of code.
    const part = shares[group * profile.categories.length + kind];
    // Numbers of samples aren't known by tier. If all self weight is in this tier, it has all samples, too.
    return { part, count: part === self[group] ? selfCount[group] : null };
  }

  /** Draws the table of listings: those of the selected function or, if none is selected, of the shown listing's
   * function. If no listing is shown either, the table has all listings. */
  #drawTable(shown) {
    const { state, profile } = this.#page;
    const isWhole = state.selected === null && shown < 0;
    let list;
    if (state.selected !== null) list = this.#listings.ofFunction(state.selected);
    // All listings of the function to which the shown one belongs.
    else if (shown >= 0) list = this.#listings.likes(shown);
    else list = Array.from({ length: this.#listings.length }, (_, listing) => listing);
    this.#nodes.table.classList.toggle("whole", isWhole);
    // A single listing without instructions needs no table: a note says why it has none.
    const isNoteEnough = list.length === 1 && !isWhole && this.#listings.missing[list[0]] !== "";
    this.#nodes.table.hidden = list.length === 0 || isNoteEnough;
    if (!this.#nodes.table.hidden) {
      this.table.show({
        listings: this.#listings, profile, list, shown, sumOf: (listing) => this.#sum(listing), withNames: isWhole,
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
      // `missing` says of each listing why it has no instructions; the text is empty if it has some.
      const missing = this.#listings.missing.filter((why) => why !== ""), reasons = [...new Set(missing)];
      head.replaceChildren(
        element("h2", {}, "Hottest code"),
        element("p", {}, [
          hidden > 0 ? `Top ${grouped(this.#listings.length)} of ` : "",
          `${counted(about.codes, "code block")}; the listings cover ${percent(cost.listed, cost.totalCount)} of ${this.#counted}s`,
          hidden > 0 ? " (--code N for more)." : ".",
          missing.length > 0 ? ` ${grouped(missing.length)} ${missing.length === 1 ? "has" : "have"} no listing` : "",
          missing.length > 0 ? (reasons.length === 1 ? `: ${reasons[0]}.` : "; the last column says why.") : "",
        ].join("")));
      return;
    }
    // The number of the function; negative if no sampled stack contains it. It is then only known from the listing.
    const number = state.selected ?? this.#listings.functionOf(shown);
    const name = number >= 0 ? profile.functions.name[number] : this.#listings.name[shown];
    const module = number >= 0 ? profile.functions.module[number] : this.#listings.module[shown];
    const words = [module];
    // All listings of the function. `likes` returns those that belong to the same function as a listing.
    const versions = number >= 0 ? this.#listings.ofFunction(number) : this.#listings.likes(shown);
    const hasInstructions = versions.some((listing) => this.#listings.missing[listing] === "");
    // If no version has instructions, the amounts are those of the function's stacks, otherwise the sum over its
    // listings. Without stacks, there are no amounts.
    if (!hasInstructions) {
      const { self, selfCount } = this.#page.sums();
      const group = this.#page.groups().of[number];
      const { total } = this.#page.selection();
      if (number >= 0) words.push(`${percent(self[group], total)} of the selection, ${this.#countText(selfCount[group])}`);
    } else {
      const sums = versions.map((listing) => this.#sum(listing));
      const count = sums.reduce((sum, { count }) => sum + count, 0);
      const part = sums.reduce((sum, { part }) => sum + part, 0);
      words.push(`${percent(part, sums[0].whole)} of the selection, ${this.#countText(count)}`);
      words.push(this.#versionsOf(versions));
    }
    head.replaceChildren(element("h2", { title: name }, name), element("p", {}, words.filter(Boolean).join(" · ")));
  }

  /** The text for the number of versions of a function, which has these listings. If the page lists only the hottest
   * versions, the text says so. */
  #versionsOf(listed) {
    // All listings of a tier state the same number: that of the function's versions in this tier.
    const byTier = new Map(listed.map((listing) => [this.#listings.category[listing], this.#listings.versions[listing]]));
    const count = [...byTier.values()].reduce((sum, versions) => sum + versions, 0);
    return listed.length < count ? `the hottest ${listed.length} of ${count} compiled versions` : counted(listed.length, "compiled version");
  }

  /** Draws the machine code and source of a listing. If it wasn't shown before, goes to its hottest instruction. */
  #drawListing(shown) {
    const nodes = this.#nodes;
    const [listings, costs, events] = [this.#listings, this.#costs, this.#events()];
    const instructions = listings.instructions();
    const isShareOfCode = nodes.percent.value === "code";
    const sums = costs.map((_, event) => this.#sum(shown, event));
    if (shown !== this.#shown) this.#found = null;
    const isChosen = (file, line) => this.#line?.file === file && this.#line.line === line;
    const view = {
      listings, instructions, listing: shown, costs, events,
      // For each event, the amount that is 100%.
      wholes: sums.map(({ part, whole }) => (isShareOfCode ? part : whole)),
      weightOf: this.#weightOf,
      weighted: this.#page.state.weight !== "samples",
      hotOnly: nodes.lines.value === "hot" && sums.some(({ count }) => count > 0),
      found: this.#found,
      isChosen,
      marked: (number) => this.#line !== null && isChosen(instructions.file[number], instructions.line[number]),
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

  /** Moves the cursor to the hottest instruction of the shown listing. Does nothing if none has samples. */
  #toHottest({ listings, listing, costs, events, weightOf }) {
    const weights = weightOf(costs[events[0]]);
    let hottest = listings.first[listing];
    for (let at = hottest; at < listings.first[listing + 1]; at++) if (weights[at] > weights[hottest]) hottest = at;
    if (weights[hottest] > 0) this.machine.moveTo(hottest);
  }

  /** For each event with columns: its name, and how precisely samples are attributed to instructions. */
  #eventNotes(events) {
    const { profile } = this.#page;
    const noteOf = (event, index) => {
      const { name } = profile.events[event];
      // What is known about the event. `said` is a sentence about its precision.
      const about = this.#listings.about.events[event];
      // With several events, the note starts with where the event's columns are. At most three events have columns.
      const position = events.length > 1 ? `${["Left", "Next", "Then"][index]}: ` : "";
      if (about?.exact) return `${position}${name}. Counts are exact.`;
      return `${position}${name}. ${about?.said ?? "Its precision is unknown."}`;
    };
    return events.map((event, index) => element("span", {}, noteOf(event, index)));
  }

  /** Elements that say why the selected function has no listing: its code is missing, it was inlined into other code,
   * it has no samples of its own, or it isn't among the listed code blocks. */
  #whyNot(shown) {
    const { state, profile } = this.#page;
    // `missing` says why a listing has no instructions; the text is empty if it has some.
    const why = shown >= 0 ? this.#listings.missing[shown] : "";
    if (why) return [element("p", {}, `No listing: ${why}.`)];
    // The listings of other functions into which this one was inlined.
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
    const isPageLimited = this.#listings.about.codes > this.#listings.length;
    const name = profile.functions.name[state.selected];
    return [element("p", {}, isPageLimited
      ? `It is not among the ${grouped(this.#listings.length)} hottest code blocks in this page (add more with --code N).`
      : `Nothing is known about the code of ${name}.`)];
  }

  /** Elements for a group without self time: links to the functions that it called, directly or indirectly, as far as
   * their code is listed; the hottest first. */
  #calleesOf(group) {
    const { profile, store, unit } = this.#page, groups = this.#page.groups();
    // The self weights of this group and of all groups that it called, by group.
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

  /** Elements that list the inlined calls of a listing for which the compiler didn't record addresses. */
  #expanded(shown) {
    const lines = this.#listings.expanded(shown);
    if (lines.length === 0) return [];
    const summary = `Contains ${counted(lines.length, "inlined call")} (listed by bytecode offset, because their addresses were not recorded)`;
    return [element("details", { id: "code-expanded", open: "" }, element("summary", {}, summary),
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
      const isInFunction = rows.node[row] >= 0 && profile.nodeFunction[rows.node[row]] === number;
      // Instruction 0 means that the sample's instruction isn't listed.
      if (!isInFunction || !instructions[row]) continue;
      const listing = this.#listings.instructions().listingOf(instructions[row] - 1);
      hosts.set(listing, (hosts.get(listing) ?? 0) + rows.count[row]);
    }
    // The 12 with the most samples.
    return [...hosts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  }

  /** Shows a listing that the user chose, and selects its function. */
  #choose(listing) {
    const { selected } = this.#page.state;
    const isOfSelected = selected !== null && this.#listings.ofFunction(selected).includes(listing);
    const number = this.#listings.functionOf(listing);
    // A negative number: no sampled stack contains the listing's function.
    const listedFunction = number < 0 ? null : number;
    this.#page.store.set({ selected: isOfSelected ? selected : listedFunction, code: listing });
  }

  /** Shows the listing that contains an instruction's target, which is outside of the shown listing. Does nothing if
   * the target's code isn't listed. */
  #follow(instruction) {
    const target = this.#listings.instructions().out(instruction);
    const listing = target?.name ? this.#listings.at(target.name, target.address ?? 0n) : -1;
    if (listing >= 0) this.#choose(listing);
  }

  /** Selects the source line of the instruction at the cursor. */
  #moved(instruction) {
    const instructions = this.#listings.instructions();
    const file = instructions.file[instruction];
    this.#line = file ? { file, line: instructions.line[instruction] } : null;
    this.machine.draw();
    if (file) this.source.reveal(file, instructions.line[instruction]);
  }

  /** Selects a source line, and moves the cursor to its hottest instruction in the shown listing. */
  #choseLine(file, line) {
    this.#line = { file, line };
    const instructions = this.#listings.instructions();
    const weights = this.#weightOf(this.#costs[this.#events()[0]]);
    let hottest = -1;
    const [from, to] = [this.#listings.first[this.#shown], this.#listings.first[this.#shown + 1]];
    for (let number = from; number < to; number++) {
      if (instructions.file[number] !== file || instructions.line[number] !== line) continue;
      if (hottest < 0 || weights[number] > weights[hottest]) hottest = number;
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
      for (let number = from; number < to; number++) {
        const source = instructions.file[number] ? instructions.lineText(instructions.file[number], instructions.line[number]) : "";
        const text = `${instructions.text(number)} ${instructions.out(number)?.name ?? ""} ${source ?? ""}`;
        if (text.toLowerCase().includes(word)) this.#found.add(number);
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
      // The matching instructions, in the order of the listing. After the last one, the search goes on at the first.
      const found = [...this.#found];
      const before = this.machine.cursor;
      const next = event.shiftKey ? found.findLast((at) => at < before) : found.find((at) => at > before);
      this.machine.moveTo(next ?? (event.shiftKey ? found.at(-1) : found[0]));
    } else return;
    event.preventDefault();
  }
}
