// The timeline: lanes of threads, processes or processors that show what ran, a subsecond heat map for long recordings,
// and a brush over both. Profiles without times only get a list of threads.

import { Brush } from "./brush.js";
import { toClipboard } from "./clipboard.js";
import { drawingOf, element, onResize, sharpened, styleColor } from "./dom.js";
import { amount } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { LaneList } from "./lane_list.js";
import { LANE_HEIGHT, LaneSums, countingTracks, drawLane, drawMarks, drawSumLane, laneChosen, markedNodes } from "./lane_rows.js";
import { clockOfRecording, onlyRecording, tracksWithin } from "./recordings.js";
import { currentShades } from "./shades.js";
import { clockText, shownTime, spanOfPixel, timeClock } from "./time_axis.js";
import { sinceStart, tickStep, timeTicks } from "./time_ticks.js";
import { TimeBar } from "./time_bar.js";

/** The width of the names to the left of the lanes, in pixels, as in time.css. NARROW_GUTTER applies in narrow
 * windows. */
const GUTTER = 200;
const NARROW_GUTTER = 116;
const NARROW_GUTTER_WINDOW = "(max-width: 700px)";
/** The space to the right of the lanes, in pixels. Parts below may need it for a scroll bar, and their pictures
 * should be as wide as the lanes. */
const RIGHT = 24;
const AXIS_HEIGHT = 20;
const EDGE_SLACK = 4;
/** The maximum share of the window's height for the lanes. SEVERAL_SHARE applies if there are several recordings. */
const LANES_SHARE = 0.17;
const SEVERAL_SHARE = 0.3;
/** In windows lower than this many pixels, the timeline shows only a few lanes unless the user wants all. */
const LOW_WINDOW = 760;
/** The same for windows narrower than this many pixels, in which the controls need several lines. */
const NARROW_WINDOW = 700;
/** The number of lanes shown in a low or narrow window. */
const FEW_LANES = 2;
/** The number of functions listed in the tooltip of a bar. */
const TIP_FUNCTIONS = 3;
/** With more samples than this, the other parts follow a drag only when it pauses. */
const LIVE_ROWS = 100000;

/** The factor by which each key multiplies the visible time. */
const ZOOM_KEYS = { "+": 0.5, "=": 0.5, w: 0.5, "-": 2, s: 2 };
/** The fraction of the visible time by which each key moves it. */
const PAN_KEYS = { a: -0.2, d: 0.2 };

/** Mounts the timeline in `root`, and redraws it when the state, its size or the colors change. */
export function mountTimeline(root, page) {
  const part = new TimePart(root, page);
  // `draw` schedules a call of `part.draw()` for the next frame.
  const draw = drawingOf(page, () => part.draw());
  part.ask = draw;
  // Draw at once, so that everything below is placed correctly.
  part.draw();
  page.store.subscribe(draw);
  onResize(root, draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return part;
}

class TimePart {
  /** Creates the part's elements and its pieces: lanes, brush, bar and heat map. Without times, `clock` is null, and
   * there is neither a brush in use nor a heat map. */
  constructor(root, page) {
    [this.page, this.root, this.clock] = [page, root, timeClock(page.profile)];
    this.length = this.clock?.length ?? 1;
    this.sums = new LaneSums(page.profile, this.clock);
    this.brush = new Brush(page, this.length, () => this.ask());
    this.bar = new TimeBar(page, this.clock, {
      fold: () => page.store.set({ timeRows: this.isFolded ? "all" : "few" }),
      clear: () => this.brush.choose([]), zoom: () => this.zoomToRanges(), whole: () => page.store.set({ timeView: [] }),
      copy: toClipboard,
    });
    this.build(root);
    this.heat = this.clock && new HeatMap(this.heatBox, page, this.clock);
    // `measure` sets the sizes before each drawing. `drawn` describes what the lanes showed when they were drawn last.
    [this.gutter, this.width, this.height, this.scrolled, this.drawn] = [GUTTER, 50, 0, 0, ""];
    if (this.clock) this.listen();
  }

  /** Creates the elements: the time axis, the scrolled lanes with their bars, the heat map and the tooltip. */
  build(root) {
    this.axis = element("canvas", { id: "time-axis", "aria-hidden": "true" });
    this.scroller = element("div", {
      id: "time-lanes", tabindex: "0", "data-home": "", role: "listbox", "aria-multiselectable": "true", "aria-label": "Threads",
    });
    this.bars = element("canvas", { id: "time-bars", "aria-hidden": "true" });
    this.over = element("canvas", { "aria-hidden": "true" });
    this.box = element("div", { class: "time-box" }, this.scroller, this.bars, this.over);
    this.heatBox = element("div", {
      id: "time-heat", tabindex: "0", role: "group", hidden: true,
      "aria-label": "Heat map of seconds: use arrow keys to move the range, + and − to zoom",
    });
    this.tip = element("div", { id: "time-tip", role: "tooltip", hidden: true });
    root.append(this.bar.root, this.axis, this.box, this.heatBox, this.tip);
    this.list = new LaneList(this.scroller, this.page, (event) => this.key(event));
    this.scroller.addEventListener("scroll", () => this.ask());
  }

  /** Connects lanes, axis and heat map with the brush, and handles the pointer, the wheel and keys. */
  listen() {
    const { page } = this;
    const lanes = this.surface(this.scroller, (x, y) => x >= this.gutter && x <= this.gutter + this.width && y >= 0);
    // A drag over the lanes of one of several recordings only selects tracks of this recording.
    lanes.tracksAt = (y) => {
      const recording = this.laneAt(y)?.recording ?? null;
      return recording === null ? null : tracksWithin(page.profile, recording, page.store.state.tracks);
    };
    const axis = this.surface(this.axis, (x) => x >= this.gutter);
    const heat = {
      element: this.heatBox, isClickChoosing: true, edgeAt: () => null,
      spanAt: (x, y, always) => this.heat.spanAt(x - this.gutter, y, always),
    };
    for (const surface of [lanes, axis, heat]) {
      this.brush.attach(surface);
      surface.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      surface.element.addEventListener("pointermove", (event) => this.point(surface, event));
      surface.element.addEventListener("pointerleave", () => this.point(null));
    }
    this.heatBox.addEventListener("keydown", (event) => {
      if (!this.key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** A surface for the brush (see brush.js), made of an element whose positions are aligned with the lanes. `holds(x,
   * y)` tells whether a point belongs to the surface. */
  surface(node, holds) {
    // During a drag (`always`), points outside of the surface also have a time.
    const spanAt = (x, y, always) => {
      if (!always && !holds(x, y)) return null;
      const laneX = Math.max(0, Math.min(this.width, x - this.gutter)), [from, to] = this.view;
      return spanOfPixel(this.timeAt(laneX), (to - from) / this.width, this.length);
    };
    const edgeAt = (x, y) => holds(x, y) || Math.abs(x - this.gutter) < EDGE_SLACK ? this.edgeAt(x - this.gutter) : null;
    return { element: node, spanAt, edgeAt, isClickChoosing: false };
  }

  /** The lane at `y` pixels below the upper edge of the list of lanes. */
  laneAt(y) {
    return this.sums.lanes[Math.floor((y + this.scroller.scrollTop) / LANE_HEIGHT)];
  }

  /** The edge of a selected range at a position in pixels from the left of the lanes: {index, edge}; null if there is
   * none. */
  edgeAt(x) {
    for (const [index, range] of this.page.store.state.ranges.entries()) {
      for (const [at, edge] of ["from", "to"].entries()) {
        if (Math.abs(this.place(range[at]) - x) <= EDGE_SLACK) return { index, edge };
      }
    }
    return null;
  }

  /** The visible time range: [from, to]. */
  get view() {
    return shownTime(this.page.store.state, this.length);
  }

  get isFolded() {
    const { timeRows } = this.page.store.state;
    return timeRows === "few" || (timeRows === "auto" && (innerHeight < LOW_WINDOW || innerWidth < NARROW_WINDOW));
  }

  get isZoomed() {
    const [from, to] = this.view;
    return from > 0 || to < this.length;
  }

  /** Reads the width of the lanes and the height of the visible ones. Called once per frame, before anything is
   * changed, because reading them later would be slow. */
  measure() {
    const { clientWidth, clientHeight, scrollTop } = this.scroller;
    this.gutter = matchMedia(NARROW_GUTTER_WINDOW).matches ? NARROW_GUTTER : GUTTER;
    this.width = Math.max(50, clientWidth - this.gutter - RIGHT);
    [this.height, this.scrolled] = [clientHeight, scrollTop];
    this.page.lanes = { left: this.scroller.getBoundingClientRect().left + this.gutter, width: this.width };
  }

  /** Converts a time to pixels from the left edge of the lanes. */
  place(time) {
    const [from, to] = this.view;
    return (time - from) / (to - from) * this.width;
  }

  timeAt(x) {
    const [from, to] = this.view;
    return from + x / this.width * (to - from);
  }

  /** Handles a key that zooms or moves the visible time, or that changes the selected ranges. Returns true if there is
   * an action for the key. */
  key(event) {
    if (!this.clock) return false;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey, key = plain ? event.key : "";
    if (key in ZOOM_KEYS) this.zoomBy(ZOOM_KEYS[key], this.width / 2);
    else if (key in PAN_KEYS) this.pan(PAN_KEYS[key]);
    else if (key === "0") this.page.store.set({ timeView: [] });
    else return this.brush.key(event, this.view);
    return true;
  }

  /** With Ctrl, zooms around the pointer. With Shift, or if the wheel turns sideways, moves the visible time. */
  wheel(event) {
    const x = event.clientX - this.box.getBoundingClientRect().left - this.gutter;
    if (event.ctrlKey) this.zoomBy(1.2 ** Math.sign(event.deltaY), Math.max(0, Math.min(this.width, x)));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.width);
    else return;
    event.preventDefault();
  }

  /** Multiplies the length of the visible time by `factor`. The time at `x` (pixels) stays there. At least 20 units of
   * time stay visible. */
  zoomBy(factor, x) {
    const [from, to] = this.view, at = this.timeAt(x), least = Math.min(this.length, 20);
    const length = Math.max(least, Math.min(this.length, (to - from) * factor));
    this.show(at - (at - from) / (to - from) * length, length);
  }

  /** Moves the visible time by a part of its length. */
  pan(part) {
    const [from, to] = this.view;
    this.show(from + part * (to - from), to - from);
  }

  /** Shows the time from the start of the first selected range to the end of the last one, and a little around it. */
  zoomToRanges() {
    const { ranges } = this.page.store.state;
    if (!ranges.length) return;
    const from = ranges[0][0], length = ranges[ranges.length - 1][1] - from;
    this.show(from - length * 0.05, Math.max(20, length * 1.1));
  }

  /** Makes this time visible, as far as it is in the recording. */
  show(from, length) {
    const begin = Math.round(Math.max(0, Math.min(this.length - length, from)));
    const end = Math.min(this.length, begin + Math.round(length));
    this.page.store.set({ timeView: begin === 0 && end === this.length ? [] : [begin, end] });
  }

  /** Draws the timeline: lanes, axis, ranges and heat map. Lanes are only drawn again if something in them changed. */
  draw() {
    const { state } = this.page.store, { sums } = this;
    const event = Math.min(state.event, this.page.profile.events.length - 1);
    sums.arrange(event, state.lanes);
    this.brush.pause = sums.rows.length > LIVE_ROWS ? 150 : 0;
    // `recordings` is 0 if the page has only one.
    const { isFolded } = this, recordings = this.page.profile.recordings.length;
    const share = recordings ? SEVERAL_SHARE : LANES_SHARE;
    const mostLanes = isFolded ? FEW_LANES * Math.max(1, recordings) : Math.max(3, Math.floor(innerHeight * share / LANE_HEIGHT));
    // Without times, a single lane shows nothing of interest.
    const isAlone = !this.clock && sums.lanes.length < 2;
    this.box.hidden = isAlone;
    this.box.style.height = `${Math.min(mostLanes, sums.lanes.length) * LANE_HEIGHT}px`;
    this.axis.hidden = !this.clock;
    this.heatBox.hidden = isFolded || !this.heat?.isLong;
    this.bar.showFold(isFolded, sums.lanes.length > FEW_LANES || Boolean(this.heat?.isLong));
    this.bar.show(this.brush.ranges(), this.isZoomed);
    this.bar.rows.parentElement?.toggleAttribute("hidden", isAlone);
    if (!this.clock) this.bar.told.textContent = "No timeline: the profile only has totals.";
    if (isAlone) return;
    this.measure();
    this.list.show(sums.lanes);
    if (this.clock) sums.fit(state.weight, this.view, this.width);
    // What the lanes depend on. If it hasn't changed, they needn't be drawn again.
    const { weight, lanes, tracks, timeView, search, regex, selected, mergeTiers } = state;
    const marked = [search, regex, selected, mergeTiers], shown = [state.event, weight, lanes, tracks, timeView];
    const drawn = JSON.stringify([...marked, ...shown, this.width, this.height, this.scrolled, styleColor("--paper")]);
    if (drawn !== this.drawn) this.drawLanes(state);
    this.drawn = drawn;
    if (this.clock) this.drawTimes(state);
  }

  /** Draws the bars of the visible lanes. Lanes that aren't selected are pale. */
  drawLanes(state) {
    const { sums, list, page, width, height } = this, [from, to] = list.inView();
    const colors = laneColors(sums), marked = this.clock && markedNodes(page.profile, page.groups(), state);
    const counts = countingTracks(page.profile.tracks.length, state.tracks);
    const pen = sharpened(this.bars, width, height);
    for (let number = from; number < to; number++) {
      const lane = sums.lanes[number], top = number * LANE_HEIGHT - this.scrolled;
      pen.globalAlpha = laneChosen(lane, counts) === "none" ? 0.25 : 1;
      const place = (time) => this.place(time);
      if (this.clock) drawLane(pen, sums, lane, top, place, colors);
      else drawSumLane(pen, sums, lane, top, width, state.weight, colors);
      if (marked) drawMarks(pen, sums, lane, top, place, marked, styleColor("--found"));
    }
    pen.globalAlpha = 1;
  }

  /** Draws what only profiles with times have: the axis, the selected ranges, and the heat map. */
  drawTimes(state) {
    const ranges = this.brush.ranges(), { width, height } = this;
    const place = (time) => this.place(time);
    this.drawAxis();
    this.drawRanges(sharpened(this.over, width, height), ranges, this.rowsOfRanges(state.tracks));
    if (!this.heatBox.hidden) this.heat.draw(this.sums, state, this.view, width, place, ranges, this.hovered?.heat ?? null);
  }

  /** Draws the time axis above the lanes, with a line at its lower edge for each selected range. */
  drawAxis() {
    const pen = sharpened(this.axis, this.gutter + this.width + RIGHT, AXIS_HEIGHT), [from, to] = this.view;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = styleColor("--faint");
    pen.fillText("since the start", 12, AXIS_HEIGHT / 2);
    for (const { at, text } of timeTicks(from, to, this.width, this.clock.unitNs)) {
      const x = this.gutter + this.place(at);
      pen.fillStyle = styleColor("--line");
      pen.fillRect(Math.round(x), 0, 1, AXIS_HEIGHT);
      pen.fillStyle = styleColor("--faint");
      if (x + pen.measureText(text).width + 4 < this.gutter + this.width + RIGHT) pen.fillText(text, x + 4, AXIS_HEIGHT / 2);
    }
    pen.fillStyle = styleColor("--accent");
    for (const range of this.brush.ranges()) {
      const [left, right] = this.clipped(range);
      if (right > left) pen.fillRect(this.gutter + left, AXIS_HEIGHT - 3, Math.max(1, right - left), 3);
    }
  }

  /** The edges of a range in pixels from the left of the lanes, cut at the ends of the visible time. */
  clipped([from, to]) {
    return [Math.max(0, this.place(from)), Math.min(this.width, this.place(to))];
  }

  /** Where ranges are drawn vertically: {top, height}. A range in a single recording is only drawn over its lanes. */
  rowsOfRanges(tracks) {
    const recording = onlyRecording(this.page.profile, tracks), { lanes } = this.sums;
    if (recording === null) return { top: 0, height: this.height };
    const first = lanes.findIndex((lane) => lane.recording === recording), count = lanes.filter((lane) => lane.recording === recording).length;
    return { top: first * LANE_HEIGHT - this.scrolled, height: count * LANE_HEIGHT };
  }

  /** Draws the ranges by dimming everything outside them. */
  drawRanges(pen, ranges, { top, height }) {
    const { width } = this;
    if (this.hovered) {
      pen.fillStyle = styleColor("--faint");
      pen.fillRect(Math.round(this.place(this.hovered.time)), 0, 1, this.height);
    }
    if (!ranges.length) return;
    // Everything from the left edge to here has been drawn. `dim` covers the gap before the next range.
    let dimmedTo = 0;
    const dim = (to) => {
      pen.globalAlpha = 0.65;
      pen.fillStyle = styleColor("--paper");
      if (to > dimmedTo) pen.fillRect(dimmedTo, top, to - dimmedTo, height);
      pen.globalAlpha = 1;
    };
    for (const range of ranges) {
      const [left, right] = this.clipped(range);
      if (right < 0 || left > width) continue;
      dim(left);
      pen.fillStyle = styleColor("--accent");
      pen.fillRect(left - 1, top, 1, height);
      pen.fillRect(Math.max(right, left + 1), top, 1, height);
      dimmedTo = right;
    }
    dim(width);
  }

  /** Called when the pointer moves over a surface, or has left all of them (`surface` is null). */
  point(surface, event) {
    this.hovered = surface && this.hoveredAt(surface, event);
    const { tip } = this;
    tip.hidden = !this.hovered?.lines.length;
    if (this.hovered) {
      tip.replaceChildren(...this.hovered.lines.map((line) => element("div", {}, line)));
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(innerWidth - box.width - 4, event.clientX + 14))}px`;
      tip.style.top = `${Math.max(4, Math.min(innerHeight - box.height - 4, event.clientY + 16))}px`;
    }
    this.ask();
  }

  /** Describes what is under the pointer: {time, lines, heat}; null if there is no time under the pointer. `lines` are
   * those of the tooltip; `heat`, only set in the heat map, is the time range of the cell. */
  hoveredAt(surface, event) {
    const box = surface.element.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const span = surface.spanAt(x, y);
    if (!span) return null;
    if (surface.element === this.heatBox) return { time: span[0], heat: span, lines: [this.spanText(span), this.heat.textAt(span)] };
    const time = this.timeAt(x - this.gutter);
    const lane = surface.element === this.scroller && this.laneAt(y);
    const bar = lane && this.sums.at(lane, time);
    if (!bar) return { time, lines: [this.spanText(span)] };
    const name = `${lane.name} ${lane.detail}`;
    return { time, lines: [name, this.spanText([bar.from, bar.to], lane.recording), ...this.barLines(bar)] };
  }

  /** The text for a time range: `1.25 s to 1.26 s, clock 1179.3`. Without the clock if the range isn't of a single
   * recording. */
  spanText([from, to], recording = null) {
    const { clock, page: { profile } } = this, step = tickStep((to - from) * clock.unitNs / 10);
    const since = (at) => sinceStart(Math.round(at) * clock.unitNs, step), text = `${since(from)} to ${since(to)}`;
    if (recording === null && profile.recordings.length > 1) return text;
    const rangeClock = recording === null ? clock : clockOfRecording(profile, clock, recording);
    return `${text}, clock ${clockText(rangeClock, Math.max(0, from))}`;
  }

  /** The lines of a bar's tooltip: the share of each kind of code, and the functions that ran most. */
  barLines({ amounts, functions }) {
    const { profile, unit } = this.page, text = (value) => amount(Math.round(value), unit);
    const byKind = amounts.map((value, kind) => ({ value, name: this.sums.coloring.sorts[kind].name }));
    // If the profile states no kinds of code, they have no names.
    const named = byKind.filter(({ value, name }) => value > 0 && name).sort((a, b) => b.value - a.value);
    const kinds = named.map(({ value, name }) => `${name} ${text(value)}`).join(", ");
    const hottest = functions.slice(0, TIP_FUNCTIONS).map(([number, value]) => `${text(value)} ${profile.functions.name[number]}`);
    return kinds || hottest.length ? [kinds, ...hottest].filter(Boolean) : ["idle"];
  }
}

function laneColors({ coloring }) {
  return { idle: styleColor("--raised"), more: styleColor("--ink"), sorts: coloring.sorts.map(({ letter }) => currentShades().of(letter, 0).fill) };
}
