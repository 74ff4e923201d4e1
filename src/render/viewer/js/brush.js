// Lets the user select time ranges with the pointer or the keyboard, in any element that shows time. During a drag, a
// draft is shown: the ranges as they would be selected if the drag ended now. The final ranges are stored in the state
// (`ranges`), and everything else follows from there.
//
// A surface describes such an element. Positions are in pixels of the element. A surface has: element; spanAt(x, y),
// which returns the time range [from, to) under a point, or null; edgeAt(x, y), which returns the edge { index, edge }
// of a selected range near a point, or null; tracksAt(y), which returns the tracks that a drag from there selects, or
// null (optional); isClickChoosing, which tells whether a click selects a range.

import { tracksWithoutRange } from "./recordings.js";
import { tidyRanges } from "./time_axis.js";
import { roundUnits } from "./time_ticks.js";

/** A pointer that moves by less than this many pixels clicks instead of dragging. */
const CLICK_SLACK = 4;

export class Brush {
  /** `length` is the length of the recording, in units of time. `redraw()` is called during a drag, to draw the ranges
   * as they would be if the drag ended now, and after it. */
  constructor({ store, profile }, length, redraw) {
    this.store = store;
    this.profile = profile;
    this.length = length;
    this.redraw = redraw;
    /** How long the pointer must rest during a drag before the rest of the page follows, in milliseconds. */
    this.pause = 0;
    /** The current drag, as made by `begin`; null if there is none. */
    this.drag = null;
    /** The timer that runs while the pointer rests. */
    this.timer = 0;
  }

  /** The ranges to show: during a drag, those that it would select if it ended now; otherwise the selected ones. */
  ranges() {
    return this.drag?.draft ?? this.store.state.ranges;
  }

  /** Selects ranges, and the tracks to which they apply. */
  choose(ranges, tracks = this.store.state.tracks) {
    const tidy = tidyRanges(ranges, this.length);
    this.store.set({ ranges: tidy, tracks: tidy.length ? tracks : tracksWithoutRange(this.profile, tracks) });
  }

  /** Lets the user select ranges in a surface by dragging with the main button. A double click clears the selection. */
  attach(surface) {
    const element = surface.element;
    const point = (event) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && this.begin(surface, point(event), event)) element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      if (this.drag) this.move(surface, point(event));
      else element.style.cursor = cursorOf(surface, point(event));
    });
    element.addEventListener("pointerup", () => this.end(surface));
    element.addEventListener("pointercancel", () => this.cancel());
    element.addEventListener("dblclick", (event) => {
      if (surface.spanAt(...point(event))) this.choose([]);
    });
  }

  /** Begins a drag, if there is time under the pointer. Returns whether it does. The drag changes an end of a range if
   * it begins there, moves a range if it begins inside of it, and otherwise selects a new range. */
  begin(surface, [x, y], event) {
    const span = surface.spanAt(x, y);
    if (!span) return false;
    const { ranges, tracks } = this.store.state, chosen = surface.tracksAt?.(y) ?? tracks;
    // If the drag started over other tracks than the selected ones, it starts a new selection instead of changing the
    // ranges.
    const isElsewhere = JSON.stringify(chosen) !== JSON.stringify(tracks), before = isElsewhere ? [] : ranges;
    const edge = isElsewhere ? null : surface.edgeAt(x, y);
    const inside = before.findIndex(([from, to]) => from <= span[0] && span[0] < to);
    // With Ctrl or Cmd, a new range is added to the others. Where a click selects a range, ranges can't be moved.
    const adds = event.ctrlKey || event.metaKey;
    let kind = "new";
    if (edge) kind = edge.edge;
    else if (inside >= 0 && !adds && !surface.isClickChoosing) kind = "move";
    const index = edge ? edge.index : inside;
    // What is selected again if the drag is canceled.
    const left = { ranges, tracks };
    // `anchor` is the time where the drag begins, and `start` the point. `draft` has the ranges as they would be if the
    // drag ended now; null until the pointer has moved far enough.
    this.drag = { kind, index, adds, before, left, tracks: chosen, anchor: span, start: [x, y], draft: null };
    return true;
  }

  /** Continues a drag. There is no draft until the pointer has moved by more than a click may. */
  move(surface, [x, y]) {
    const drag = this.drag;
    const far = Math.hypot(x - drag.start[0], y - drag.start[1]) >= CLICK_SLACK;
    if (!drag.draft && !far) return;
    const span = surface.spanAt(x, y, true);
    if (!span) return;
    drag.draft = draftOf(drag, span, this.length);
    this.redraw();
    this.chooseSoon();
  }

  /** Lets the other parts of the page follow the drag: at once or, if `pause` is set, as soon as the pointer rests. */
  chooseSoon() {
    clearTimeout(this.timer);
    const drag = this.drag;
    this.timer = setTimeout(() => {
      // The drag may have ended by then.
      if (drag === this.drag && drag?.draft) this.choose(drag.draft, drag.tracks);
    }, this.pause);
  }

  /** Ends a drag, and selects its draft. Without one it was a click, which selects the range under the pointer where
   * clicks do so. */
  end(surface) {
    const drag = this.drag;
    clearTimeout(this.timer);
    this.drag = null;
    if (!drag) return;
    if (drag.draft) this.choose(drag.draft, drag.tracks);
    else if (surface.isClickChoosing) this.choose(draftOf(drag, drag.anchor, this.length), drag.tracks);
    this.redraw();
  }

  /** Ends a drag and restores what was selected before. Returns true if there was a drag. */
  cancel() {
    const drag = this.drag;
    clearTimeout(this.timer);
    this.drag = null;
    if (drag) this.store.set(drag.left);
    this.redraw();
    return drag !== null;
  }

  /** Handles a key, and returns true if it did. Arrows move the last range; with Shift only its end, with Ctrl only its
   * start. Escape cancels a drag or else clears the ranges, and Delete clears them. `view` is the visible time. */
  key(event, view) {
    const ranges = this.store.state.ranges;
    if (event.key === "Escape") {
      if (this.cancel()) return true;
      if (ranges.length === 0) return false;
      this.choose([]);
      return true;
    }
    if (event.key === "Delete" || event.key === "Backspace") {
      this.choose([]);
      return true;
    }
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction || event.altKey || event.metaKey) return false;
    const step = roundUnits((view[1] - view[0]) / 100);
    this.choose(steppedRanges(ranges, step * direction, view, event, this.length));
    return true;
  }
}

/** The ranges after an arrow key: the last one is moved, or changed at one end. If there is none, selects the first
 * tenth of the visible time. */
function steppedRanges(ranges, step, view, keys, length) {
  if (!ranges.length) return [[view[0], view[0] + roundUnits((view[1] - view[0]) / 10)]];
  const others = ranges.slice(0, -1), [from, to] = ranges[ranges.length - 1];
  if (keys.shiftKey) return [...others, [from, Math.max(from + 1, to + step)]];
  if (keys.ctrlKey) return [...others, [Math.min(to - 1, from + step), to]];
  return [...others, movedRange([from, to], step, length)];
}

/** Moves a range within the recording. Its length stays the same. */
function movedRange([from, to], by, length) {
  const most = length - to, step = Math.max(-from, Math.min(most, by));
  return [from + step, to + step];
}

/** The ranges that would be selected if the drag ended now. `span` is the time range under the pointer. */
function draftOf(drag, span, length) {
  // A drag makes a new range, moves one, or moves one of its ends. `anchor` is where the drag began, and `span` is
  // where the pointer is now; `before` has the ranges as they were before the drag.
  const [from, to] = [Math.min(drag.anchor[0], span[0]), Math.max(drag.anchor[1], span[1])];
  if (drag.kind === "new") return tidyRanges([...(drag.adds ? drag.before : []), [from, to]], length);
  const changed = drag.before.slice(), old = changed[drag.index];
  if (drag.kind === "move") changed[drag.index] = movedRange(old, span[0] - drag.anchor[0], length);
  if (drag.kind === "from") changed[drag.index] = [span[0], old[1]];
  if (drag.kind === "to") changed[drag.index] = [old[0], span[0]];
  return tidyRanges(changed, length);
}

function cursorOf(surface, [x, y]) {
  if (surface.edgeAt(x, y)) return "ew-resize";
  return surface.spanAt(x, y) ? "crosshair" : "default";
}
