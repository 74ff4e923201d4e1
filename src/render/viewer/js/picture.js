// The script of a flame graph as an SVG file: it makes the picture a page, whose boxes can be pointed at by mouse and
// keyboard, searched and zoomed into. The graph itself is drawn as in the page of `jitgraft view`. The search and the
// zoom are in the address after "#", so that it can be passed on. What the file holds is told in
// src/render/flamegraph/page.rs.

import { drawingOf, element, forgetColours, styleColour } from "./dom.js";
import { BoxRows, IDLE, LANE } from "./flame_layout.js";
import { FLAME_LOOK, MARGIN } from "./flame_paint.js";
import { FlameView, walkViews } from "./flame_view.js";
import { grouped, percent } from "./format.js";
import { matcherOf } from "./search.js";
import { currentShades } from "./shades.js";

/** Room for the times below a chart. */
const CHART_AXIS = 22;

/** Boxes narrower than this many pixels are drawn once in it. */
const NARROW_BOX = 0.3;
const NARROW_IN_CHART = 1;

/** Colors of JIT code, whose names have dots between packages. */
const JIT_LETTERS = "abmocswrj";

/** The boxes of the file: [{row, start, end, name, color, shares, before, node}]. */
function readBoxes(svg, isChart) {
  const boxes = [], lanes = [];
  for (const group of svg.querySelectorAll("g[data-b]")) {
    let start = 0;
    for (const record of group.getAttribute("data-b").split(" ")) {
      const [row, skip, width, name, color, shares, before] = record.split(",");
      start += Number(skip);
      const box = { row: Number(row), start, end: start + Number(width), name: Number(name), color, shares: sharesOf(shares), before };
      // Node 0 is the root, which a chart doesn't have.
      box.node = color[0] === "l" ? LANE - lanes.length : color[0] === "z" ? IDLE : boxes.length + (isChart ? 1 : 0);
      if (color[0] === "l") lanes.push(box);
      boxes.push(box);
    }
  }
  return { boxes, lanes };
}

/** `o30b12`: letters of tiers, each with its amount. */
function sharesOf(text) {
  return Array.from((text ?? "").matchAll(/([a-z])(\d+)/g), ([, letter, amount]) => [letter, Number(amount)]);
}

/** The boxes as a picture for a `FlameView`. */
class FilePicture {
  constructor(facts, names, { boxes, lanes }) {
    Object.assign(this, { facts, names, boxes, lanes, upward: !facts.inverted, root: 0 });
    this.whole = { start: 0, end: facts.total };
    this.rows = Array.from({ length: facts.rows }, () => []);
    for (const box of boxes) this.rows[box.row].push(box);
    /** By name, whether it was searched for; null: nothing is. */
    this.found = null;
  }

  /** The box of a node; of idle times, which have no own nodes, none. */
  boxOf(node) {
    return node <= LANE ? this.lanes[LANE - node] : this.boxes[node - (this.facts.chart ? 1 : 0)];
  }

  layout(view, pixel) {
    const placed = new BoxRows(), narrowest = pixel * (this.facts.chart ? NARROW_IN_CHART : NARROW_BOX);
    for (const row of this.rows) {
      let drawnTo = -Infinity;
      for (let at = firstBehind(row, view.start); at < row.length && row[at].start < view.end; at++) {
        const { node, start, end } = row[at];
        if (end - start < narrowest && end - drawnTo < narrowest) continue;
        placed.add(node, start, end);
        drawnTo = end;
      }
      placed.endRow();
    }
    return placed;
  }

  pathOf(node) {
    return [node];
  }

  /** The stretch of a node; the whole for none. */
  viewOf([node = 0]) {
    const box = this.boxOf(node);
    const isAll = !box || node === 0 || (!this.facts.chart && box.end - box.start === this.facts.total) || box.start === box.end;
    return isAll ? { ...this.whole, node: 0 } : { start: box.start, end: box.end, node };
  }

  nameOf(node) {
    return node === IDLE ? "idle" : this.names[this.boxOf(node).name];
  }

  isJit(node) {
    return node >= 0 && JIT_LETTERS.includes(this.boxOf(node).color[0]);
  }

  isSelected() {
    return false;
  }

  isFound(node) {
    return node > 0 && this.found !== null && this.found[this.boxOf(node).name];
  }

  foundPlaces() {
    const found = this.boxes.filter(({ node }) => this.isFound(node));
    return found.sort((a, b) => b.end - b.start - (a.end - a.start) || a.start - b.start || a.row - b.row);
  }

  colourOf(node, shades) {
    if (node <= LANE) return null;
    return node === IDLE ? shades.of("z", 0) : shades.of(this.boxOf(node).color[0], Number(this.boxOf(node).color.slice(1)));
  }

  stripesOf(node) {
    return node >= 0 ? this.boxOf(node).shares : [];
  }

  /** The text about a box: its name and its amounts. */
  tell(node, zoomed, start, end) {
    const { facts } = this, name = (facts.nameType ? facts.nameType + " " : "") + this.nameOf(node);
    if (node <= LANE) return [name, "thread"];
    const parts = [amountText(facts, end - start)];
    if (facts.chart) parts.push(`from ${amountText(facts, start)}`);
    else parts.push(`${percent(end - start, facts.total)} of all`);
    if (zoomed > 0 && zoomed !== node && !facts.chart) {
      const outer = this.boxOf(zoomed);
      parts.push(`${percent(end - start, outer.end - outer.start)} of ${this.nameOf(zoomed)}`);
    }
    const box = node === IDLE ? null : this.boxOf(node);
    if (box) parts.push(...this.tiersOf(box), ...this.changeOf(box));
    return [name, parts.join(" · ")];
  }

  tiersOf({ shares, color }) {
    const { words } = this.facts, all = shares.reduce((sum, [, amount]) => sum + amount, 0);
    if (shares.length > 0) return [shares.map(([letter, amount]) => `${words[letter]} ${percent(amount, all)}`).join(", ")];
    return words[color[0]] ? [words[color[0]]] : [];
  }

  changeOf({ before, start, end }) {
    if (before === undefined) return [];
    const amount = parseInt(before, 10), chance = before.endsWith("~") ? ", may be noise" : "";
    if (!amount) return [`new${chance}`];
    const change = (100 * (end - start - amount)) / amount;
    return [`before ${amountText(this.facts, amount)}, ${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)}%${chance}`];
  }

  /** What names match: {count of functions, sum of all boxes with one of them around or in them, whole}. */
  search(matches) {
    this.found = matches ? this.names.map(matches) : null;
    const functions = new Set();
    let [sum, busy, foundTo, busyTo, last] = [0, 0, 0, 0, 0];
    for (const { node, name, start, end } of this.boxes) {
      // A thread of a chart begins anew.
      if (start < last || node <= LANE) [foundTo, busyTo] = [0, 0];
      last = start;
      if (node <= LANE) continue;
      if (start >= busyTo) [busy, busyTo] = [busy + end - start, end];
      if (!this.isFound(node)) continue;
      functions.add(name);
      // A box inside of one that was found already counts once.
      if (start >= foundTo) [sum, foundTo] = [sum + end - start, end];
    }
    return { count: functions.size, sum, whole: this.facts.chart ? busy : this.facts.total };
  }
}

/** The first box of a row that ends behind a place. */
function firstBehind(row, place) {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].end <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

const AMOUNT_UNITS = {
  time: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
  bytes: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "bytes"]],
  large: [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]],
};

/** An amount as the picture's legend spells them. */
function amountText({ unit, factor, scale, counts }, amount) {
  const value = amount * unit * factor, units = AMOUNT_UNITS[scale], name = counts ? " " + counts : "";
  if (!units || (scale === "large" && value < 10000)) return grouped(value) + name;
  const [size, word] = units.find(([size]) => value / size >= 0.9995) ?? units.at(-1);
  const number = value / size;
  return `${number.toFixed(number < 99.95 && size > 1 ? 1 : 0)} ${word}${name}`;
}

/** The page that takes the picture's place. */
class PicturePage {
  constructor(svg) {
    const textOf = (id) => svg.querySelector(`#${id}`).textContent;
    this.facts = JSON.parse(textOf("facts"));
    this.picture = new FilePicture(this.facts, textOf("names").split("\n"), readBoxes(svg, this.facts.chart));
    const style = svg.querySelector("style").textContent, { facts } = this, title = facts.title;
    const look = {
      ...FLAME_LOOK, row: facts.row, font: facts.font, family: facts.family, cutsStart: facts.cutBegin, below: facts.chart ? CHART_AXIS : 0,
    };
    this.view = new FlameView({ painted: 0, lanes: null }, "graph", "Flame graph", this.handlers(), look);
    this.view.scroll.classList.add("scroll");
    this.legend = element("div", { class: "legend" });
    const html = element("html", { lang: "en" }, element("head", {}, element("title", {}, title), element("style", {}, style)),
      element("body", { class: facts.inverted ? "inverted" : "" },
        element("header", {}, element("h1", { title }, title), element("div", { class: "known" }, facts.facts), this.legend),
        element("main", {}, this.view.root),
        element("footer", {}, this.status(), this.finder())));
    document.replaceChild(html, svg);
    this.redraw = drawingOf({ painted: 0 }, () => this.view.paint());
  }

  /** What is told of the box that is pointed at. */
  status() {
    this.what = element("div", { class: "what" });
    this.much = element("div", { class: "much" });
    return element("div", { class: "hover", role: "status", "aria-live": "polite" }, this.what, this.much);
  }

  finder() {
    this.output = element("output", {});
    this.input = element("input", {
      type: "text", placeholder: "Search (Ctrl-F)", title: "Part of a name; Enter: next match; Shift+Enter: previous match",
      "aria-label": "Search functions", oninput: () => this.search(), onkeydown: (event) => this.searchKey(event),
    });
    this.regex = element("input", { type: "checkbox", onchange: () => this.search() });
    this.reset = element("button", { title: "Show everything (Esc)", onclick: () => this.zoom([]) }, "Reset zoom");
    return element("div", { class: "find" }, this.output, this.input,
      element("label", { title: "Use a regular expression" }, this.regex, " regex"), this.reset);
  }

  handlers() {
    return {
      zoom: (view, { path }) => this.zoom(path),
      pointed: (view, box) => this.tell(box),
      escape: () => this.leave(),
      painted: (view) => this.painted(view),
    };
  }

  /** Draws it for the first time. */
  start() {
    this.showLegend();
    this.view.show(this.picture, []);
    this.view.paint();
    if (this.facts.chart) this.showFirstThread();
    this.tell(-1);
    this.recall();
    addEventListener("hashchange", () => this.recall());
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      forgetColours();
      this.showLegend();
      this.view.paint();
    });
  }

  showLegend() {
    this.legend.replaceChildren(...this.facts.legend.map(([letter, text]) => {
      const [base, line] = [styleColour(`--code-${letter}`), styleColour(`--line-${letter}`)], swatch = element("i");
      swatch.style.background = line ? `repeating-linear-gradient(135deg,${base} 0 3px,${line} 3px 5px)` : base;
      return element("span", {}, swatch, text);
    }));
  }

  /** The outermost functions of the topmost thread, which are at its name, come into view. */
  showFirstThread() {
    const lane = this.picture.lanes.at(-1), { scroll } = this.view, { facts } = this;
    const lower = lane && !facts.inverted ? MARGIN + (facts.rows - lane.row) * facts.row + CHART_AXIS + 4 : 0;
    scroll.scrollTop = Math.max(0, lower - scroll.clientHeight);
    this.view.paint();
  }

  painted(view) {
    const pen = view.canvas.getContext("2d");
    if (this.facts.chart) this.drawAxis(pen, view);
    pen.globalCompositeOperation = "destination-over";
    pen.fillStyle = styleColour("--paper");
    pen.fillRect(0, 0, view.outerWidth, view.height);
    pen.globalCompositeOperation = "source-over";
    const isAll = !view.isZoomed();
    if (isAll && document.activeElement === this.reset) view.scroll.focus();
    this.reset.style.visibility = isAll ? "hidden" : "visible";
  }

  /** Times below a chart. */
  drawAxis(pen, view) {
    const { facts } = this, { start, end } = view.view, top = view.height - CHART_AXIS;
    const least = ((end - start) * facts.unit) / Math.max(2, Math.floor(view.outerWidth / 140)), ten = 10 ** Math.floor(Math.log10(least));
    const apart = [1, 2, 5, 10].map((step) => step * ten).find((step) => step >= least * 0.999) / facts.unit;
    pen.fillStyle = styleColour("--paper");
    pen.fillRect(0, top, view.outerWidth, CHART_AXIS);
    for (let at = Math.ceil(start / apart) * apart; at <= end; at += apart) {
      pen.fillStyle = styleColour("--line");
      pen.fillRect(view.leftOf(at), 0, 1, view.height);
      pen.fillStyle = styleColour("--faint");
      pen.fillText(amountText(facts, at), view.leftOf(at) + 4, top + CHART_AXIS / 2);
    }
  }

  /** What a box is, or, without one, what is zoomed to. */
  tell(box) {
    const { view, picture } = this, { zoomed } = view;
    let [name, amounts] = ["", "Point at a box to read it, click to zoom in"];
    if (box >= 0) [name, amounts] = view.tellOf(box);
    else if (zoomed > 0) [name, amounts] = picture.tell(zoomed, zoomed, view.view.start, view.view.end);
    [this.what.textContent, this.what.title, this.much.textContent] = [name, name, amounts];
  }

  zoom(path) {
    const { view, picture } = this;
    view.zoomTo(picture.viewOf(path));
    this.remember(true);
    this.tell(view.hovered >= 0 ? view.hovered : view.cursorBox());
  }

  /** One step back: out of a zoom, out of a search. True if there was one. */
  leave() {
    if (this.view.isZoomed()) this.zoom([]);
    else if (this.input.value) {
      this.input.value = "";
      this.search();
    } else return false;
    return true;
  }

  /** Part of a name, upper and lower case alike, or a regular expression. */
  search() {
    const { input, output, picture, facts } = this, wanted = input.value;
    const matches = wanted ? matcherOf(wanted, this.regex.checked) : null, isWrong = wanted !== "" && matches === null;
    const { count, sum, whole } = picture.search(matches);
    input.classList.toggle("wrong", isWrong);
    input.setAttribute("aria-invalid", String(isWrong));
    this.matched = "";
    if (isWrong) this.matched = "not a regular expression";
    else if (wanted) this.matched = count ? `${grouped(count)} ${count === 1 ? "match" : "matches"} · ${percent(sum, whole)}` : "no matches";
    output.textContent = this.matched;
    output.title = count ? amountText(facts, sum) : "";
    this.view.isWalked = false;
    this.remember(false);
    this.redraw();
  }

  /** Enter goes through the matches; Escape leaves the search, then its field. */
  searchKey(event) {
    if (event.key === "Escape" && !this.input.value) this.view.scroll.focus();
    else if (event.key === "Escape") {
      this.input.value = "";
      this.search();
    } else if (event.key === "Enter") {
      const walked = this.input.value ? walkViews([this.view], event.shiftKey ? -1 : 1) : null;
      if (walked) this.output.textContent = `box ${grouped(walked.at)} of ${grouped(walked.count)} · ${this.matched}`;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  key(event) {
    const isAsked = event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f");
    if (isAsked || (event.key === "/" && event.target !== this.input)) {
      event.preventDefault();
      this.input.select();
      this.input.focus();
    } else if (event.key === "Escape" && !event.defaultPrevented) this.leave();
  }

  /** The address keeps what is searched for and zoomed to; Back leads out of a zoom. */
  remember(isStep) {
    if (this.isRecalling) return;
    const kept = new URLSearchParams(), { zoomed } = this.view;
    if (this.input.value) kept.set("search", this.input.value);
    if (this.regex.checked) kept.set("regex", "1");
    if (zoomed > 0) kept.set("zoom", [this.picture.boxOf(zoomed).row, this.picture.boxOf(zoomed).start].join("-"));
    const address = "#" + kept;
    try {
      if (isStep && address !== (location.hash || "#")) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch {
      // Inside of other pages the address may not be changed.
    }
  }

  recall() {
    const kept = new URLSearchParams(location.hash.slice(1)), [row, start] = (kept.get("zoom") || "").split("-").map(Number);
    const box = this.picture.rows[row]?.find((box) => box.start === start && box.node >= 0);
    this.isRecalling = true;
    this.input.value = kept.get("search") || "";
    this.regex.checked = kept.get("regex") === "1";
    this.zoom(box ? [box.node] : []);
    this.search();
    this.isRecalling = false;
  }
}

new PicturePage(document.documentElement).start();
