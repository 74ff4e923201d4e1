// Displays a flame graph: a canvas that is as large as its window, on which only the visible part of the graph is
// drawn. Handles the pointer, zooming and the keyboard. What the boxes show is up to the picture (`flame_picture.js`).

import { element, onResize, drawingOf } from "./dom.js";
import { BoxRows, LANE } from "./flame_layout.js";
import { FLAME_LOOK, MARGIN, paintBoxes, paintVeil } from "./flame_paint.js";

/** Keys that move from box to box: [rows up, boxes to the right]. */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Keys that move the visible range, by this fraction of its length. */
const SHIFTS = { a: -0.2, d: 0.2 };

/** If a search leads to a box, the view is zoomed until the box is at least this many pixels wide. */
const SEEN_PIXELS = 4;

/** One graph. `handlers` are called with the view as their first argument: zoom({node, start, end, path});
 * menu({node, box, x, y}); key(event, node) and escape(), which return whether they did anything; painted();
 * pointed(box), when another box is pointed at (−1: none); empty(), which returns why there are no boxes. All of
 * them are optional. */
export class FlameView {
  /** `id` is the ID of the graph's element, `label` its name for screen readers, and `look` is like `FLAME_LOOK`. */
  constructor(page, id, label, handlers, look = FLAME_LOOK) {
    Object.assign(this, { page, handlers, label, look });
    this.picture = null;
    this.boxes = new BoxRows();
    /** The box under the pointer; −1 if there is none. */
    this.hovered = -1;
    /** The box at the keyboard cursor: {row, place, node}; null if there is none. */
    this.cursor = null;
    /** How much of the graph is below the window, in pixels. */
    this.below = 0;
    /** True if the last search step led to the box at the cursor. The box is then highlighted even without the
     * focus. */
    this.isWalked = false;
    /** The visible range of the picture. */
    this.view = { start: 0, end: 0 };
    /** The node that the view is zoomed to; 0 is the root. */
    this.zoomed = 0;
    this.build(id);
    this.draw = drawingOf(page, () => this.paint());
    this.point = drawingOf(page, () => this.paintPointed());
    onResize(this.scroll, this.draw);
  }

  /** Creates the graph's elements. Boxes are drawn on `canvas`, and `veil`, on top of it, highlights one of them.
   * `told` is read out by screen readers. */
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
        "data-home": "",
        role: "application",
        "aria-describedby": `${id}-told`,
        "aria-label": `${this.label}: use arrow keys to move between boxes, Enter to zoom, Escape to go back${this.handlers.menu ? ", Shift+F10 for a menu" : ""}`,
        onscroll: () => this.draw(),
        onmousemove: (event) => this.hover(event),
        onmouseleave: () => this.leave(),
        onclick: (event) => this.click(event),
        ondblclick: (event) => event.preventDefault(),
        oncontextmenu: (event) => this.menu(event),
        onkeydown: (event) => this.key(event),
        onfocus: () => this.focused(),
        onblur: () => this.point(),
      },
      this.spacer,
    );
    this.scroll.view = this;
    this.scroll.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.told = element("p", { id: `${id}-told`, class: "off-screen", "aria-live": "polite" });
    this.tip = element("div", { id: `${id}-tip`, class: "flame-tip", hidden: true });
    this.empty = element("p", { class: "flame-empty", hidden: true });
    this.root = element("div", { class: "flame-view" }, this.scroll, this.canvas, this.veil, this.empty, this.told, this.tip);
  }

  /** Called when the graph gets the focus. Keyboard users always have a box at the cursor. */
  focused() {
    if (this.cursorBox() < 0 && this.boxes.length > 0 && this.scroll.matches(":focus-visible")) this.pointTo(0);
    this.point();
  }

  /** Shows a picture, zoomed to a path of functions or to a range of time. The cursor stays at its box if the picture
   * still has the box. */
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

  /** True if only a part of the picture is in view. */
  isZoomed() {
    const { whole } = this.picture ?? { whole: this.view };
    return this.view.start > whole.start || this.view.end < whole.end;
  }

  /** Announces a text to screen readers. */
  say(text) {
    this.told.textContent = text;
  }

  /** Reads the size of the window. Called only once per frame, because it is slow. */
  measure() {
    const { clientWidth, clientHeight } = this.scroll;
    Object.assign(this, { outerWidth: clientWidth, height: clientHeight, ...this.placeOfTime(clientWidth) });
    this.scale = this.width / (this.view.end - this.view.start);
    return clientWidth > 0;
  }

  /** Where the picture is drawn horizontally. A picture over time is aligned with the lanes of the timeline. */
  placeOfTime(clientWidth) {
    const { lanes } = this.page;
    if (!this.picture.timeUnit || !lanes) return { left: MARGIN, width: Math.max(clientWidth - 2 * MARGIN, 1) };
    return { left: lanes.left - this.scroll.getBoundingClientRect().left, width: lanes.width };
  }

  /** Lays out the boxes unless this has already been done for the current view, and reads the scroll position. */
  layOut() {
    const { picture, view, width, height } = this,
      key = [view.start, view.end, width].join(),
      heightsBefore = [this.contentHeight, this.laidOutHeight].join();
    if (this.layoutOf !== picture || this.layoutKey !== key) {
      this.boxes = view.end > view.start ? picture.layout(view, (view.end - view.start) / width) : new BoxRows();
      [this.layoutOf, this.layoutKey, this.hovered] = [picture, key, -1];
      this.contentHeight = this.boxes.rows * this.look.row + 2 * MARGIN + this.look.below;
      this.spacer.style.height = `${this.contentHeight}px`;
    }
    this.laidOutHeight = height;
    // When the graph's direction has changed, scroll to the root.
    if (this.isAtEdge) this.scroll.scrollTop = picture.upward ? this.contentHeight : 0;
    else if (picture.upward && heightsBefore !== [this.contentHeight, height].join()) {
      // Keep the boxes at the bottom where they are, even if the window became lower or has fewer rows.
      this.scroll.scrollTop = this.contentHeight - height - this.below;
    }
    this.isAtEdge = false;
    this.scrolled = this.scroll.scrollTop;
    this.below = Math.max(0, this.contentHeight - height - this.scrolled);
  }

  /** The upper edge of a row, in pixels. */
  topOf(row) {
    const height = this.look.row;
    if (!this.picture.upward) return MARGIN + row * height - this.scrolled;
    return Math.max(0, this.height - this.contentHeight) + MARGIN + (this.boxes.rows - 1 - row) * height - this.scrolled;
  }

  /** Converts a place in the picture to pixels from the left edge. */
  leftOf(place) {
    return this.left + (place - this.view.start) * this.scale;
  }

  /** The middle of the widest visible box with this name, in pixels of the window; null if there is none. */
  placeOf(name) {
    const { node, start, end } = this.boxes;
    let widest = -1;
    for (let box = 0; box < node.length; box++) {
      if (this.picture.nameOf(node[box]) !== name) continue;
      if (widest < 0 || end[box] - start[box] > end[widest] - start[widest]) widest = box;
    }
    if (widest < 0) return null;
    const edge = this.scroll.getBoundingClientRect();
    const middle = (Math.max(start[widest], this.view.start) + Math.min(end[widest], this.view.end)) / 2;
    return { x: edge.left + this.leftOf(middle), y: edge.top + this.topOf(this.boxes.rowOf(widest)) + this.look.row / 2 };
  }

  /** Paints the boxes and what is highlighted. If there are no boxes, shows a text that says why. */
  paint() {
    if (!this.picture || !this.measure()) return;
    this.layOut();
    paintBoxes(this);
    this.paintPointed();
    const why = this.boxes.length > 0 ? "" : (this.handlers.empty?.(this) ?? "Nothing to show.");
    this.empty.hidden = why === "";
    if (this.empty.textContent !== why) this.empty.textContent = why;
    this.handlers.painted?.(this);
  }

  /** Highlights the box under the pointer. If there is none, highlights the one at the keyboard cursor, provided that
   * the graph has the focus or a search led to the box. */
  paintPointed() {
    if (!this.picture || !this.outerWidth) return;
    const isFocused = this.hovered < 0 && (this.isWalked || document.activeElement === this.scroll);
    paintVeil(this, isFocused ? this.cursorBox() : this.hovered, isFocused);
  }

  /** The box at the keyboard cursor; −1 if the box isn't in the layout. */
  cursorBox() {
    if (!this.cursor) return -1;
    const { row, place, node } = this.cursor;
    const box = this.boxes.at(row, place, 0);
    return box >= 0 && this.boxes.node[box] === node ? box : this.boxes.find(row, node);
  }

  /** The box under the pointer, or the nearest one within a pixel in the same row; −1 if there is none. */
  boxAt(event) {
    // The pointer may be here before the graph has been drawn for the first time.
    if (this.boxes.length === 0) return -1;
    const edge = this.scroll.getBoundingClientRect();
    const y = event.clientY - edge.top,
      x = event.clientX - edge.left;
    if (x > this.outerWidth) return -1;
    const row = Math.floor((y - this.topOf(0)) / this.look.row) * (this.picture.upward ? -1 : 1);
    return this.boxes.at(row, this.view.start + (x - this.left) / this.scale, 1 / this.scale);
  }

  /** Highlights the box under the pointer, and shows its tooltip there. */
  hover(event) {
    const box = this.boxAt(event);
    this.scroll.style.cursor = box >= 0 ? "pointer" : "";
    if (box !== this.hovered) {
      this.hovered = box;
      this.isWalked = false;
      this.tellTip(box);
      this.point();
    }
    if (box >= 0) placeBeside(this.tip, event.clientX, event.clientY);
  }

  leave() {
    this.hovered = -1;
    this.tip.hidden = true;
    this.handlers.pointed?.(this, -1);
    this.point();
  }

  tellOf(box) {
    const { node, start, end } = this.boxes;
    return this.picture.tell(node[box], this.zoomed, start[box], end[box]);
  }

  tellTip(box) {
    if (this.handlers.pointed) return this.handlers.pointed(this, box);
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

  /** Zooms to a box, and passes the path of its functions to the rest of the page. */
  enter(box) {
    const { node, start, end } = this.boxes;
    // The box with a thread's name has nothing to zoom to.
    if (node[box] <= LANE) return;
    const path = node[box] > 0 ? this.picture.pathOf(node[box]) : [];
    this.isWalked = false;
    this.tip.hidden = true;
    this.handlers.zoom(this, { node: node[box], start: start[box], end: end[box], path });
  }

  /** Moves the cursor to a box: to the middle of its visible part. Also says what the box is, for screen readers. */
  pointTo(box) {
    const { node, start, end } = this.boxes;
    this.cursor = {
      row: this.boxes.rowOf(box),
      place: (Math.max(start[box], this.view.start) + Math.min(end[box], this.view.end)) / 2,
      node: node[box],
    };
    if (this.handlers.pointed) this.handlers.pointed(this, box);
    else this.told.textContent = this.tellOf(box).join(", ").slice(0, 2000);
    this.point();
  }

  /** Opens the menu of the box under the pointer. */
  menu(event) {
    if (!this.handlers.menu) return;
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

  /** With Ctrl, zooms around the pointer. With Shift, or if the wheel turns sideways, moves the visible range. */
  wheel(event) {
    const { picture, view } = this,
      range = view.end - view.start;
    if (!picture || !(range > 0)) return;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const place = view.start + (event.clientX - this.scroll.getBoundingClientRect().left - this.left) / this.scale;
      this.widen(place, Math.exp(event.deltaY * 0.002));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      // The wheel turns more sideways than up or down.
      this.move((sideways / this.width) * range);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Multiplies the length of the visible range by `factor`. `place` stays at the same position. */
  widen(place, factor) {
    const { start, end } = this.view,
      { whole } = this.picture;
    // The shortest range that can be shown is a billionth of the picture.
    const shortest = (whole.end - whole.start) * 1e-9;
    if ((end - start) * factor < shortest) return;
    this.showRange(place - (place - start) * factor, place + (end - place) * factor);
  }

  /** Moves the visible range by an amount, but not beyond the ends of the picture. */
  move(by) {
    const { start, end } = this.view,
      { whole } = this.picture;
    const allowed = Math.min(Math.max(by, whole.start - start), whole.end - end);
    this.showRange(start + allowed, end + allowed);
  }

  showRange(start, end) {
    const { whole } = this.picture;
    this.view = { start: Math.max(start, whole.start), end: Math.min(end, whole.end) };
    this.tip.hidden = true;
    this.draw();
  }

  /** Handles a key: arrows move the cursor from box to box; `keyOfBox` handles the others. */
  key(event) {
    if (!this.picture || event.target !== this.scroll) return;
    const move = MOVES[event.key],
      plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    this.isWalked = false;
    if (move && plain) this.step(move[0] * (this.picture.upward ? -1 : 1), move[1]);
    else if (!this.keyOfBox(event, plain)) return;
    event.preventDefault();
  }

  /** Handles a key that applies to the box at the cursor or to the visible range. Returns true if there is an action
   * for the key. */
  keyOfBox(event, plain) {
    const box = this.cursorBox(),
      middle = box < 0 ? (this.view.start + this.view.end) / 2 : this.cursor.place;
    if (!plain) return false;
    if (event.key === "+" || event.key === "=" || event.key === "w") this.widen(middle, 0.5);
    else if (event.key === "-") this.widen(middle, 2);
    else if (event.key in SHIFTS) this.move(SHIFTS[event.key] * (this.view.end - this.view.start));
    else if (event.key === "Home") this.pointToFirst();
    else if (event.key === "Escape") return this.handlers.escape(this) || this.pointToNothing();
    else if (box < 0) return false;
    else if (event.key === "Enter" || event.key === " ") this.enter(box);
    else if (this.handlers.menu && (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey))) this.openMenuAt(box);
    else return this.handlers.key?.(this, event, this.boxes.node[box]) ?? false;
    return true;
  }

  /** Opens the menu of the box at the cursor, next to the box. */
  openMenuAt(box) {
    const edge = this.scroll.getBoundingClientRect();
    this.openMenu(
      box,
      edge.left + Math.max(this.leftOf(this.cursor.place), 0),
      edge.top + this.topOf(this.cursor.row) + this.look.row,
    );
  }

  /** The index of the search match at the cursor; −1 if there is none. */
  walkedPlace() {
    const { cursor } = this;
    if (!cursor) return -1;
    return this.picture.foundPlaces(this.boxes).findIndex(({ node, row, start, end }) =>
      node === cursor.node && row === cursor.row && start <= cursor.place && cursor.place <= end);
  }

  /** Moves the cursor to the search match with this index. Zooms if the match is out of view or too narrow to be
   * seen. */
  walkTo(index) {
    const { node, row, start, end } = this.picture.foundPlaces(this.boxes)[index], { view } = this;
    const isInView = start < view.end && end > view.start;
    if (!isInView || (end - start) * this.scale < SEEN_PIXELS) {
      // Put the match in the middle of a range in which it is twice as wide as it must be, but don't zoom out for this.
      const half = Math.min(view.end - view.start, ((end - start) * this.width) / (2 * SEEN_PIXELS)) / 2;
      this.showRange((start + end) / 2 - half, (start + end) / 2 + half);
    }
    this.paint();
    const box = this.boxes.find(row, node);
    if (box >= 0) this.pointTo(box);
    this.isWalked = true;
    this.reveal(row);
    this.draw();
  }

  /** Scrolls to the root, and moves the cursor there. */
  pointToFirst() {
    this.scroll.scrollTop = this.picture.upward ? 1e9 : 0;
    if (this.boxes.length > 0) this.pointTo(0);
  }

  /** Removes the cursor. Returns true if there was one. */
  pointToNothing() {
    const was = this.cursor !== null;
    this.cursor = null;
    this.point();
    return was;
  }

  /** Moves the cursor to the caller (`down` −1) or to the heaviest callee (`down` 1), or to a neighboring box
   * (`right`). */
  step(down, right) {
    const box = this.cursorBox();
    if (box < 0) return this.pointToFirst();
    const row = this.boxes.rowOf(box);
    const nextRow = right === 0 ? row + down : row;
    let next = -1;
    if (right !== 0) next = box + right;
    else if (down < 0) next = this.boxes.at(row - 1, this.cursor.place, 0);
    else next = this.firstBelow(box, row + 1);
    // Boxes are numbered across all rows, so the next number may be in another row.
    const isInNextRow = next >= 0 && next < this.boxes.length && this.boxes.rowOf(next) === nextRow;
    if (!isInNextRow) return;
    this.pointTo(next);
    this.reveal(nextRow);
  }

  /** The heaviest box of a row that lies within the range of another box (`box`); −1 if there is none. */
  firstBelow(box, row) {
    const { boxes } = this;
    if (row >= boxes.rows) return -1;
    const weight = (number) => boxes.end[number] - boxes.start[number];
    let heaviest = -1;
    for (let candidate = boxes.first[row]; candidate < boxes.first[row + 1]; candidate++) {
      const isWithin = boxes.start[candidate] >= boxes.start[box] && boxes.end[candidate] <= boxes.end[box];
      if (isWithin && (heaviest < 0 || weight(candidate) > weight(heaviest))) heaviest = candidate;
    }
    return heaviest;
  }

  /** Scrolls as little as necessary to show a row. */
  reveal(row) {
    const top = this.topOf(row);
    if (top < 0) this.scroll.scrollTop += top - MARGIN;
    else if (top + this.look.row > this.height) this.scroll.scrollTop += top + this.look.row + MARGIN - this.height;
  }
}

/** Moves to the next search match (`step` 1) or the previous one (−1) in several graphs. Returns {what, at, count},
 * where `at` counts from 1; null if there are no matches. */
export function walkViews(views, step) {
  const counts = views.map((view) => view.picture?.foundPlaces(view.boxes).length ?? 0);
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  // The view in which the last step led to a match; −1 if the search starts anew.
  const current = views.findIndex((view) => view.isWalked);
  // Matches are numbered across all views. `before` is how many are in the views before the current one.
  const before = counts.slice(0, Math.max(current, 0)).reduce((sum, count) => sum + count, 0);
  // `place` is the number of the current match in its view; −1 if the search starts anew.
  const place = current < 0 ? -1 : views[current].walkedPlace();
  const wanted = place < 0 ? (step > 0 ? 0 : all - 1) : (before + place + step + all) % all;
  // Find the view that contains the wanted match. `first` is the number of that view's first match.
  let [view, first] = [0, 0];
  while (wanted >= first + counts[view]) first += counts[view++];
  for (const other of views) {
    other.isWalked = false;
    other.point();
  }
  views[view].walkTo(wanted - first);
  return { what: "box", at: wanted + 1, count: all };
}

/** Places a tooltip next to the pointer, inside the window. */
function placeBeside(tip, x, y) {
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}
