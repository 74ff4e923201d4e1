// A flame graph on the page: a canvas as large as its window, whatever the graph's height; only what is in view is
// drawn. Pointing, zooming and all keys of one graph are here; what a picture shows is `flame_picture.js`.

import { element, onResize, drawingOf } from "./dom.js";
import { BoxRows } from "./flame_layout.js";
import { MARGIN, ROW, paintBoxes, paintVeil } from "./flame_paint.js";
import { LANE } from "./time_lanes.js";

/** Keys that move from box to box: [rows up, neighbors to the right]. */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** One graph. The actions of its handlers, each given the view first: zoom({node, start, end, path}), menu({node, box,
 * x, y}), and key(event, node) and escape(), which show whether there was anything to do; painted(). */
export class FlameView {
  constructor(page, id, label, handlers) {
    Object.assign(this, { page, handlers, label });
    this.picture = null;
    this.boxes = new BoxRows();
    this.hovered = -1;
    this.cursor = null;
    this.view = { start: 0, end: 0 };
    this.zoomed = 0;
    this.build(id);
    this.draw = drawingOf(page, () => this.paint());
    this.point = drawingOf(page, () => this.paintPointed());
    onResize(this.scroll, this.draw);
  }

  build(id) {
    this.canvas = element("canvas", { id: `${id}-canvas`, role: "img", "aria-label": this.label });
    this.veil = element("canvas", { "aria-hidden": "true" });
    this.spacer = element("div");
    this.scroll = element(
      "div",
      {
        id,
        class: "flame-scroll",
        tabindex: "0",
        role: "application",
        "aria-describedby": `${id}-told`,
        "aria-label": `${this.label}: arrow keys move from box to box, Enter zooms, Escape leads back, Shift+F10 opens a menu`,
        onscroll: () => this.draw(),
        onmousemove: (event) => this.hover(event),
        onmouseleave: () => this.leave(),
        onclick: (event) => this.click(event),
        ondblclick: (event) => event.preventDefault(),
        oncontextmenu: (event) => this.menu(event),
        onkeydown: (event) => this.key(event),
        onfocus: () => this.point(),
        onblur: () => this.point(),
      },
      this.spacer,
    );
    this.scroll.view = this;
    this.scroll.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.told = element("p", { id: `${id}-told`, class: "off-screen", "aria-live": "polite" });
    this.tip = element("div", { id: `${id}-tip`, class: "flame-tip", hidden: true });
    this.root = element("div", { class: "flame-view" }, this.scroll, this.canvas, this.veil, this.told, this.tip);
  }

  /** Shows a picture, zoomed to a path of functions or a stretch of time. A box that was pointed at by keys stays so if it is still there. */
  show(picture, path, span = []) {
    this.isAtEdge = this.picture?.upward !== picture.upward;
    this.picture = picture;
    this.zoomTo(picture.viewOf(path, span));
  }

  zoomTo({ start, end, node }) {
    this.view = { start, end };
    this.zoomed = node;
    this.hovered = -1;
    this.tip.hidden = true;
    this.draw();
  }

  /** True if less than everything is in view. */
  isZoomed() {
    const { whole } = this.picture ?? { whole: this.view };
    return this.view.start > whole.start || this.view.end < whole.end;
  }

  /** Reports a reader who does not see the page. */
  say(text) {
    this.told.textContent = text;
  }

  /** Reads the window's size, which is slow: once a picture. */
  measure() {
    const { clientWidth, clientHeight } = this.scroll;
    Object.assign(this, { outerWidth: clientWidth, height: clientHeight, ...this.placeOfTime(clientWidth) });
    this.scale = this.width / (this.view.end - this.view.start);
    return clientWidth > 0;
  }

  /** Where places of the picture are drawn: what shows time stands below the lanes, at the same times. */
  placeOfTime(clientWidth) {
    const { lanes } = this.page;
    if (!this.picture.timeUnit || !lanes) return { left: MARGIN, width: Math.max(clientWidth - 2 * MARGIN, 1) };
    return { left: lanes.left - this.scroll.getBoundingClientRect().left, width: lanes.width };
  }

  /** Places the boxes, if that has not been done, and finds where the window is scrolled to. */
  layOut() {
    const { picture, view, width } = this,
      key = [view.start, view.end, width].join();
    if (this.layoutOf !== picture || this.layoutKey !== key) {
      this.boxes = view.end > view.start ? picture.layout(view, (view.end - view.start) / width) : new BoxRows();
      [this.layoutOf, this.layoutKey, this.hovered] = [picture, key, -1];
      this.growTo(this.boxes.rows * ROW + 2 * MARGIN);
    }
    if (this.isAtEdge) this.scroll.scrollTop = picture.upward ? this.contentHeight : 0;
    this.isAtEdge = false;
    this.scrolled = this.scroll.scrollTop;
  }

  growTo(height) {
    if (this.contentHeight === height) return;
    this.spacer.style.height = `${height}px`;
    // The boxes on the ground stay where they are.
    if (this.picture.upward && this.contentHeight) this.scroll.scrollTop += height - this.contentHeight;
    this.contentHeight = height;
  }

  /** The upper edge of a row. */
  topOf(row) {
    if (!this.picture.upward) return MARGIN + row * ROW - this.scrolled;
    return Math.max(0, this.height - this.contentHeight) + MARGIN + (this.boxes.rows - 1 - row) * ROW - this.scrolled;
  }

  /** The position of a place of the picture, in pixels from the left. */
  leftOf(place) {
    return this.left + (place - this.view.start) * this.scale;
  }

  /** The middle of the widest box of a name, in pixels of the window; null if none is drawn. */
  placeOf(name) {
    const { node, start, end } = this.boxes;
    let box = -1;
    for (let at = 0; at < node.length; at++) {
      if (this.picture.nameOf(node[at]) === name && (box < 0 || end[at] - start[at] > end[box] - start[box])) box = at;
    }
    if (box < 0) return null;
    const edge = this.scroll.getBoundingClientRect();
    const place = (Math.max(start[box], this.view.start) + Math.min(end[box], this.view.end)) / 2;
    return { x: edge.left + this.leftOf(place), y: edge.top + this.topOf(this.boxes.rowOf(box)) + ROW / 2 };
  }

  paint() {
    if (!this.picture || !this.measure()) return;
    this.layOut();
    paintBoxes(this);
    this.paintPointed();
    this.handlers.painted(this);
  }

  paintPointed() {
    if (!this.picture || !this.outerWidth) return;
    const isFocused = this.hovered < 0 && document.activeElement === this.scroll;
    paintVeil(this, isFocused ? this.cursorBox() : this.hovered, isFocused);
  }

  /** The box that keys point at; −1 if it is not drawn. */
  cursorBox() {
    if (!this.cursor) return -1;
    const { row, place, node } = this.cursor;
    const box = this.boxes.at(row, place, 0);
    return box >= 0 && this.boxes.node[box] === node ? box : this.boxes.find(row, node);
  }

  boxAt(event) {
    const edge = this.scroll.getBoundingClientRect();
    const y = event.clientY - edge.top,
      x = event.clientX - edge.left;
    if (x > this.outerWidth) return -1;
    const row = Math.floor((y - this.topOf(0)) / ROW) * (this.picture.upward ? -1 : 1);
    return this.boxes.at(row, this.view.start + (x - this.left) / this.scale, 1 / this.scale);
  }

  hover(event) {
    const box = this.boxAt(event);
    this.scroll.style.cursor = box >= 0 ? "pointer" : "";
    if (box !== this.hovered) {
      this.hovered = box;
      this.tellTip(box);
      this.point();
    }
    if (box >= 0) placeBeside(this.tip, event.clientX, event.clientY);
  }

  leave() {
    this.hovered = -1;
    this.tip.hidden = true;
    this.point();
  }

  tellOf(box) {
    const { node, start, end } = this.boxes;
    return this.picture.tell(node[box], this.zoomed, start[box], end[box]);
  }

  tellTip(box) {
    this.tip.hidden = box < 0;
    if (box < 0) return;
    const [name, ...lines] = this.tellOf(box);
    this.tip.replaceChildren(element("b", {}, name.slice(0, 2000)), ...lines.map((line) => element("div", {}, line)));
  }

  click(event) {
    const box = this.boxAt(event);
    if (box < 0) return;
    this.pointTo(box);
    this.enter(box);
  }

  /** Zooms to a box, and gives the other parts of its function. */
  enter(box) {
    const { node, start, end } = this.boxes;
    if (node[box] <= LANE) return;
    const path = node[box] > 0 ? this.picture.pathOf(node[box]) : [];
    this.tip.hidden = true;
    this.handlers.zoom(this, { node: node[box], start: start[box], end: end[box], path });
  }

  pointTo(box) {
    const { node, start, end } = this.boxes;
    this.cursor = {
      row: this.boxes.rowOf(box),
      place: (Math.max(start[box], this.view.start) + Math.min(end[box], this.view.end)) / 2,
      node: node[box],
    };
    this.told.textContent = this.tellOf(box).join(", ").slice(0, 2000);
    this.point();
  }

  menu(event) {
    event.preventDefault();
    const box = this.boxAt(event);
    if (box < 0) return;
    this.pointTo(box);
    this.openMenu(box, event.clientX, event.clientY);
  }

  openMenu(box, x, y) {
    this.leave();
    this.handlers.menu(this, { node: this.boxes.node[box], box, x, y });
  }

  /** With Ctrl the range in view grows or shrinks about the pointer, with Shift it moves. */
  wheel(event) {
    const { picture, view } = this,
      range = view.end - view.start;
    if (!picture || !(range > 0)) return;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const place = view.start + (event.clientX - this.scroll.getBoundingClientRect().left - this.left) / this.scale;
      this.widen(place, Math.exp(event.deltaY * 0.002));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      this.move((sideways / this.width) * range);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The range in view times `factor`, with `place` where it is. */
  widen(place, factor) {
    const { start, end } = this.view,
      { whole } = this.picture;
    const least = (whole.end - whole.start) * 1e-9;
    if ((end - start) * factor < least) return;
    this.look(place - (place - start) * factor, place + (end - place) * factor);
  }

  move(by) {
    const { start, end } = this.view,
      { whole } = this.picture;
    const allowed = Math.min(Math.max(by, whole.start - start), whole.end - end);
    this.look(start + allowed, end + allowed);
  }

  look(start, end) {
    const { whole } = this.picture;
    this.view = { start: Math.max(start, whole.start), end: Math.min(end, whole.end) };
    this.tip.hidden = true;
    this.draw();
  }

  key(event) {
    if (!this.picture || event.target !== this.scroll) return;
    const move = MOVES[event.key],
      plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (move && plain) this.step(move[0] * (this.picture.upward ? -1 : 1), move[1]);
    else if (!this.keyOfBox(event, plain)) return;
    event.preventDefault();
  }

  /** True if the key was for the box that is pointed at, or for the range in view. */
  keyOfBox(event, plain) {
    const box = this.cursorBox(),
      middle = box < 0 ? (this.view.start + this.view.end) / 2 : this.cursor.place;
    if (!plain) return false;
    if (event.key === "+" || event.key === "=") this.widen(middle, 0.5);
    else if (event.key === "-") this.widen(middle, 2);
    else if (event.key === "Home") this.pointToFirst();
    else if (event.key === "Escape") return this.handlers.escape(this) || this.pointToNothing();
    else if (box < 0) return false;
    else if (event.key === "Enter" || event.key === " ") this.enter(box);
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) this.openMenuAt(box);
    else return this.handlers.key(this, event, this.boxes.node[box]);
    return true;
  }

  openMenuAt(box) {
    const edge = this.scroll.getBoundingClientRect();
    this.openMenu(
      box,
      edge.left + Math.max(this.leftOf(this.cursor.place), 0),
      edge.top + this.topOf(this.cursor.row) + ROW,
    );
  }

  pointToFirst() {
    this.scroll.scrollTop = this.picture.upward ? 1e9 : 0;
    if (this.boxes.length > 0) this.pointTo(0);
  }

  /** True if something was pointed at. */
  pointToNothing() {
    const was = this.cursor !== null;
    this.cursor = null;
    this.point();
    return was;
  }

  /** Moves to the caller or the first callee (`down`), or to a neighbor (`right`). */
  step(down, right) {
    const box = this.cursorBox();
    if (box < 0) return this.pointToFirst();
    const row = this.boxes.rowOf(box);
    let next = -1;
    if (right !== 0) next = box + right;
    else if (down < 0) next = this.boxes.at(row - 1, this.cursor.place, 0);
    else next = this.firstBelow(box, row + 1);
    const isThere = next >= 0 && next < this.boxes.length && this.boxes.rowOf(next) === row + (right === 0 ? down : 0);
    if (!isThere) return;
    this.pointTo(next);
    this.reveal(row + (right === 0 ? down : 0));
  }

  /** The heaviest box of a row that is below another one. */
  firstBelow(box, row) {
    const { boxes } = this;
    if (row >= boxes.rows) return -1;
    let best = -1;
    for (let at = boxes.first[row]; at < boxes.first[row + 1]; at++) {
      const isBelow = boxes.start[at] >= boxes.start[box] && boxes.end[at] <= boxes.end[box];
      if (isBelow && (best < 0 || boxes.end[at] - boxes.start[at] > boxes.end[best] - boxes.start[best])) best = at;
    }
    return best;
  }

  reveal(row) {
    const top = this.topOf(row);
    if (top < 0) this.scroll.scrollTop += top - MARGIN;
    else if (top + ROW > this.height) this.scroll.scrollTop += top + ROW + MARGIN - this.height;
  }
}

/** Puts a tooltip beside the pointer, inside of the window. */
function placeBeside(tip, x, y) {
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}
