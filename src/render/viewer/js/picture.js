// The script of a flame graph in an SVG file. It replaces the picture by a page with the same boxes, which can be
// inspected with mouse and keyboard, searched and zoomed. The graph is drawn as on the page of `jitgraft view`. Search
// and zoom are kept in the address after "#", so that the address can be shared.

import { drawingOf, element, forgetColors, styleColor } from "./dom.js";
import { FilePicture } from "./file_picture.js";
import { FLAME_LOOK, MARGIN } from "./flame_paint.js";
import { FlameView, walkViews } from "./flame_view.js";
import { matchesText } from "./format.js";
import { matcherOf } from "./search.js";
import { SearchField } from "./search_field.js";
import { colorSquare } from "./shades.js";
import { timeTicks } from "./time_ticks.js";

/** The height of the time axis below a chart, in pixels. */
const CHART_AXIS = 22;

/** The page that replaces the picture. */
class PicturePage {
  /** Replaces the SVG document by the page. `field` is the search field, `reset` the button that resets the zoom. */
  constructor(svg) {
    this.picture = new FilePicture(svg);
    this.facts = this.picture.facts;
    this.view = new FlameView({ painted: 0, lanes: null }, "graph", "Flame graph", this.handlers(), this.look());
    this.view.scroll.classList.add("scroll");
    this.field = new SearchField({
      searched: () => this.search(),
      walk: (step) => walkViews([this.view], step),
      left: () => this.view.scroll.focus(),
    }, "search");
    this.reset = element("button", { title: "Show everything (Esc)", onclick: () => this.zoom([]) }, "Reset zoom");
    document.replaceChild(this.html(svg.querySelector("style").textContent), svg);
    this.redraw = drawingOf({ painted: 0 }, () => this.view.paint());
  }

  look() {
    const { row, font, family, cutBegin, chart } = this.facts;
    return { ...FLAME_LOOK, row, font, family, cutsStart: cutBegin, below: chart ? CHART_AXIS : 0 };
  }

  /** Creates the document: title, facts and legend above the graph, and below it the text about a box, and the
   * search. */
  html(style) {
    const { title, facts, legend, inverted } = this.facts;
    const entries = legend.map(([letter, text]) => element("span", {}, colorSquare(letter), text));
    return element("html", { lang: "en" },
      element("head", {}, element("title", {}, title), element("style", {}, style)),
      element("body", { class: inverted ? "inverted" : "" },
        element("header", {},
          element("h1", { title }, title),
          element("div", { class: "known" }, facts),
          element("div", { class: "legend" }, ...entries)),
        element("main", {}, this.view.root),
        element("footer", {}, this.status(), element("div", { class: "find" }, ...this.field.elements, this.reset))));
  }

  /** The element that describes the box under the pointer or cursor. */
  status() {
    this.what = element("div", { class: "what" });
    this.much = element("div", { class: "much" });
    return element("div", { class: "hover", role: "status", "aria-live": "polite" }, this.what, this.much);
  }

  /** What the graph calls when the user points at a box, zooms or presses Escape, and after it was painted. */
  handlers() {
    return {
      zoom: (view, { path }) => this.zoom(path),
      pointed: (view, box) => this.tell(box),
      escape: () => this.leave(),
      painted: (view) => this.painted(view),
    };
  }

  /** Draws the page for the first time. */
  start() {
    this.view.show(this.picture, []);
    this.view.paint();
    if (this.facts.chart) this.showFirstThread();
    this.tell(-1);
    this.recall();
    addEventListener("hashchange", () => this.recall());
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented) this.leave();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      forgetColors();
      this.view.paint();
    });
  }

  /** Scrolls so that the topmost thread's name and its outermost functions are in view. */
  showFirstThread() {
    // Rows are counted from the bottom, so the topmost thread is the last lane. In an inverted chart it is the first
    // one, which is in view without scrolling.
    const lane = this.picture.lanes.at(-1), { scroll } = this.view, { facts } = this;
    const lowerEdge = lane && !facts.inverted ? MARGIN + (facts.rows - lane.row) * facts.row + CHART_AXIS + 4 : 0;
    scroll.scrollTop = Math.max(0, lowerEdge - scroll.clientHeight);
    this.view.paint();
  }

  /** Called after boxes were painted: paints the axis of a chart, and the background behind everything. The button to
   * reset the zoom is only visible while the view is zoomed. */
  painted(view) {
    const pen = view.canvas.getContext("2d");
    if (this.facts.chart) this.drawAxis(pen, view);
    pen.globalCompositeOperation = "destination-over";
    pen.fillStyle = styleColor("--paper");
    pen.fillRect(0, 0, view.outerWidth, view.height);
    pen.globalCompositeOperation = "source-over";
    const isZoomed = view.isZoomed();
    if (!isZoomed && document.activeElement === this.reset) view.scroll.focus();
    this.reset.style.visibility = isZoomed ? "visible" : "hidden";
  }

  /** Draws the time axis below a chart, and vertical lines at its times behind the boxes. */
  drawAxis(pen, view) {
    const top = view.height - CHART_AXIS, { start, end } = view.view, ticks = timeTicks(start, end, view.width, this.facts.unit);
    pen.fillStyle = styleColor("--paper");
    pen.fillRect(0, top, view.outerWidth, CHART_AXIS);
    pen.fillStyle = styleColor("--faint");
    for (const { at, text } of ticks) pen.fillText(text, view.leftOf(at) + 4, top + CHART_AXIS / 2);
    pen.fillStyle = styleColor("--line");
    for (const { at } of ticks) pen.fillRect(view.leftOf(at), top, 1, CHART_AXIS);
    pen.globalCompositeOperation = "destination-over";
    for (const { at } of ticks) pen.fillRect(view.leftOf(at), 0, 1, top);
    pen.globalCompositeOperation = "source-over";
  }

  /** Describes a box or, if there is none, what the graph is zoomed to. */
  tell(box) {
    const { view, picture } = this, { zoomed } = view;
    let text = ["", "Point at a box to read it, click to zoom in"];
    if (box >= 0) text = view.tellOf(box);
    else if (zoomed > 0) text = picture.tell(zoomed, zoomed, view.view.start, view.view.end);
    const [name, ...lines] = text;
    this.what.textContent = this.what.title = name;
    this.much.textContent = this.much.title = lines.join(" · ");
  }

  zoom(path) {
    const { view, picture } = this;
    view.zoomTo(picture.viewOf(path));
    this.remember(true);
    this.tell(view.hovered >= 0 ? view.hovered : view.cursorBox());
  }

  /** Goes one step back: out of a zoom or a search. Returns true if there was one. */
  leave() {
    if (this.view.isZoomed()) this.zoom([]);
    else if (this.field.text) this.field.clear();
    else return false;
    return true;
  }

  /** Marks the functions that match the search field, and shows how many there are and how much they weigh. */
  search() {
    const { field, picture } = this, { text, isRegex } = field;
    // `matches` tests a name. It is null without a search, and if the text isn't a valid regular expression.
    const matches = text ? matcherOf(text, isRegex) : null, isWrong = text !== "" && matches === null;
    const { count, weight, whole } = picture.search(matches);
    if (isWrong) field.show("not a regular expression", "", true);
    else field.show(text ? matchesText(count, weight, whole) : "", count ? picture.amountText(weight) : "", false);
    this.view.isWalked = false;
    this.remember(false);
    this.redraw();
  }

  /** Stores the search and the zoom in the address. With `isStep`, as after a zoom, the browser's Back button leads to
   * the previous address. */
  remember(isStep) {
    if (this.isRecalling) return;
    const parameters = new URLSearchParams(), { zoomed } = this.view;
    if (this.field.text) parameters.set("search", this.field.text);
    if (this.field.isRegex) parameters.set("regex", "1");
    if (zoomed > 0) parameters.set("zoom", [this.picture.boxOf(zoomed).row, this.picture.boxOf(zoomed).start].join("-"));
    const address = "#" + parameters;
    try {
      if (isStep && address !== (location.hash || "#")) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch {
      // A picture embedded in another page may not change the address.
    }
  }

  /** Restores the search and the zoom that the address contains (see `remember`). A box is found by row and start. */
  recall() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const [row, start] = (parameters.get("zoom") || "").split("-").map(Number);
    const box = this.picture.rows[row]?.find((box) => box.start === start && box.node >= 0);
    // While the address is read, `remember` must not write it.
    this.isRecalling = true;
    this.field.input.value = parameters.get("search") || "";
    this.field.box.checked = parameters.get("regex") === "1";
    this.zoom(box ? [box.node] : []);
    this.search();
    this.isRecalling = false;
  }
}

new PicturePage(document.documentElement).start();
