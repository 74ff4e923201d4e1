// The subsecond heat map. Each column is one second and each row a fiftieth of it; time runs upwards in a column.
// Activity that repeats every second, or a single burst of a few milliseconds, shows as a pattern. For long recordings
// a column is several seconds, so that columns stay visible; the legend shows the length.

import { binning, reachOf, totalActivity } from "./activity.js";
import { element, sharpened, styleColor } from "./dom.js";
import { amount } from "./format.js";
import { countingTracks } from "./lane_rows.js";

/** The number of rows in a column. */
const HEAT_ROWS = 50;

/** The minimum length, in seconds, of a recording with a heat map. Shorter ones have too few columns to show a
 * pattern. */
const HEAT_LEAST_SECONDS = 5;

/** The number of colors, besides the one for cells without weight. */
const HEAT_STEPS = 12;
/** The minimum width of a column, in pixels. */
const NARROWEST_COLUMN = 3;
/** The possible lengths of a column, in seconds. */
const COLUMN_SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];

/** Divides the time [from, to) into columns and cells that fit into a width in pixels.
 * @returns {{columnSeconds, column, cell, first, columns}} columnSeconds: the length of a column in seconds; column,
 *   cell: the length of each in units of time; first: the number of the first column; columns: how many there are */
export function heatShape(from, to, width, unitNs) {
  const mostColumns = Math.max(1, width / NARROWEST_COLUMN), seconds = (to - from) * unitNs / 1e9;
  const columnSeconds = COLUMN_SECONDS.find((each) => seconds / each <= mostColumns) ?? COLUMN_SECONDS[COLUMN_SECONDS.length - 1];
  const column = columnSeconds * 1e9 / unitNs;
  const first = Math.floor(from / column), end = Math.max(first + 1, Math.ceil(to / column));
  return { columnSeconds, column, cell: column / HEAT_ROWS, first, columns: end - first };
}

/** The weight in each cell, column by column, and the highest of these: {sums, most}. `weights` is a column of `rows`,
 * `shape` is from `heatShape`, `reach` from `reachOf` (activity.js), and `counts` tells which tracks count. */
export function heatCells(rows, weights, shape, reach, unitNs, counts) {
  const from = shape.first * shape.column, to = from + shape.columns * shape.column;
  const sums = totalActivity(binning(rows, weights, from, to, shape.columns * HEAT_ROWS, reach, unitNs), counts);
  return { sums, most: sums.reduce((most, sum) => Math.max(most, sum), 0) };
}

/** The cell at a time. */
export function heatCellAt(shape, time) {
  return Math.floor(time / shape.cell) - shape.first * HEAT_ROWS;
}

/** The time [from, to) of a cell, in whole units. */
export function heatSpan(shape, cell) {
  const number = cell + shape.first * HEAT_ROWS;
  return [Math.round(number * shape.cell), Math.round((number + 1) * shape.cell)];
}

/** Draws the cells. `place(time)` is a position in pixels; `colors` are steps from no weight to the most. */
export function drawHeat(pen, shape, heat, place, height, colors) {
  for (let column = 0; column < shape.columns; column++) {
    const left = Math.round(place((shape.first + column) * shape.column));
    const right = Math.round(place((shape.first + column + 1) * shape.column));
    // Leave a gap between columns if they are wide enough.
    const gap = right - left > 6 ? 1 : 0;
    for (let row = 0; row < HEAT_ROWS; row++) {
      const sum = heat.sums[column * HEAT_ROWS + row];
      if (!sum) continue;
      const [top, bottom] = [heatTop(row + 1, height), heatTop(row, height)];
      pen.fillStyle = colors[Math.min(colors.length - 1, Math.ceil(sum / heat.most * (colors.length - 1)))];
      pen.fillRect(left, top, right - left - gap, bottom - top);
    }
  }
}

/** The boxes that cover [from, to), one per column: [left, top, width, height]. */
export function heatBoxes(shape, [from, to], place, height) {
  // The cells from `first` up to, but not including, `last`. They are counted column by column, from the bottom up.
  const first = heatCellAt(shape, from), last = Math.ceil(to / shape.cell) - shape.first * HEAT_ROWS;
  const firstColumn = Math.floor(first / HEAT_ROWS), lastColumn = Math.floor((last - 1) / HEAT_ROWS), boxes = [];
  for (let column = Math.max(0, firstColumn); column <= Math.min(shape.columns - 1, lastColumn); column++) {
    // The first and the last column may be covered only in part.
    const low = column === firstColumn ? first - column * HEAT_ROWS : 0;
    const high = column === lastColumn ? last - column * HEAT_ROWS : HEAT_ROWS;
    const left = Math.round(place((shape.first + column) * shape.column));
    const right = Math.round(place((shape.first + column + 1) * shape.column));
    const [top, bottom] = [heatTop(high, height), heatTop(low, height)];
    boxes.push([left, top, right - left, bottom - top]);
  }
  return boxes;
}

/** The bottom edge of a row, where it starts, in pixels from the top. Rows are counted from the bottom. */
export const heatTop = (row, height) => Math.round(height * (HEAT_ROWS - row) / HEAT_ROWS);

/** Colors in even steps between two colors, which are given as `#rrggbb`. */
export function heatColors(from, to, steps) {
  const channelsOf = (color) => [1, 3, 5].map((index) => parseInt(color.slice(index, index + 2), 16));
  const [fromChannels, toChannels] = [channelsOf(from), channelsOf(to)];
  return Array.from({ length: steps + 1 }, (_, step) => {
    // The first step is clearly different from the background, so that small weights are visible.
    const share = step === 0 ? 0 : 0.12 + 0.88 * step / steps;
    const mixed = fromChannels.map((value, channel) => Math.round(value + (toChannels[channel] - value) * share));
    return "rgb(" + mixed.join(",") + ")";
  });
}

/** The heat map with its legend on the left. */
export class HeatMap {
  /** Creates the elements in `box`: the legend, a canvas for the cells, and on top of it one (`over`) for the frames
   * around ranges. `drawn` describes what the cells showed when they were drawn last. `isLong` tells whether the
   * recording is long enough for a heat map. */
  constructor(box, page, clock) {
    [this.box, this.page, this.clock] = [box, page, clock];
    this.isLong = clock.length * clock.unitNs / 1e9 >= HEAT_LEAST_SECONDS;
    this.cells = element("canvas", { id: "time-heat-cells" });
    this.over = element("canvas");
    this.rule = element("div", { class: "heat-rule" });
    this.scale = element("div", { class: "heat-scale" });
    [this.least, this.most] = [element("span"), element("span", { id: "time-heat-most" })];
    box.append(element("div", { class: "heat-legend" }, this.rule, this.scale,
      element("div", { class: "heat-ends" }, this.least, this.most)), this.cells, this.over);
    this.drawn = "";
  }

  get height() {
    return HEAT_ROWS * (innerHeight < 1100 ? 2 : 3);
  }

  /** Redraws what has changed. The cells depend on threads and event, the frames above them on the ranges. `view` is
   * the visible time, `place(time)` a position in pixels, and `hovered` the time range of the cell under the pointer,
   * or null. */
  draw(sums, state, view, width, place, ranges, hovered) {
    const { height } = this;
    this.box.style.height = `${height}px`;
    this.view = view;
    const drawn = JSON.stringify([view, width, height, state.event, state.weight, state.tracks, styleColor("--paper")]);
    if (drawn !== this.drawn) this.drawCells(sums, state, view, width, place, height);
    this.drawn = drawn;
    const pen = sharpened(this.over, width, height);
    if (ranges.length) this.dim(pen, ranges, width, height, place);
    if (hovered) this.frame(pen, hovered, place, height, "--faint");
  }

  /** Draws the cells of the time [from, to), and the legend: what a column, a row and a color stand for. */
  drawCells(sums, state, [from, to], width, place, height) {
    const { rows } = sums, { profile } = this.page, { unitNs } = this.clock;
    const weights = state.weight === "samples" ? rows.count : rows.weight;
    const counts = countingTracks(profile.tracks.length, state.tracks);
    this.shape = heatShape(from, to, width, unitNs);
    this.heat = heatCells(rows, weights, this.shape, reachOf(profile, this.page.event, state.weight), unitNs, counts);
    const colors = heatColors(styleColor("--raised"), styleColor("--heat"), HEAT_STEPS);
    const pen = sharpened(this.cells, width, height);
    pen.fillStyle = colors[0];
    const end = Math.min(width, place(this.clock.length));
    pen.fillRect(Math.max(0, place(0)), 0, end - Math.max(0, place(0)), height);
    drawHeat(pen, this.shape, this.heat, place, height, colors);
    this.scale.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
    const seconds = this.shape.columnSeconds;
    this.rule.textContent = `each column is ${seconds} s, each row ${seconds * 1000 / HEAT_ROWS} ms`;
    this.least.textContent = "0";
    this.most.textContent = amount(Math.round(this.heat.most), this.page.unit);
    this.box.setAttribute("aria-label", `Heat map: ${this.rule.textContent}; at most ${this.most.textContent} per cell. Use arrow keys to move the range.`);
  }

  /** Dims everything outside the ranges. */
  dim(pen, ranges, width, height, place) {
    pen.globalAlpha = 0.65;
    pen.fillStyle = styleColor("--paper");
    pen.fillRect(0, 0, width, height);
    pen.globalAlpha = 1;
    // Cut the ranges out of what was painted.
    pen.globalCompositeOperation = "destination-out";
    for (const range of ranges) heatBoxes(this.shape, range, place, height).forEach((box) => pen.fillRect(...box));
    pen.globalCompositeOperation = "source-over";
    for (const range of ranges) this.frame(pen, range, place, height, "--accent");
  }

  /** Draws an outline around the cells of a range, without lines between its columns. */
  frame(pen, range, place, height, color) {
    const boxes = heatBoxes(this.shape, range, place, height);
    pen.fillStyle = styleColor(color);
    boxes.forEach(([left, top, wide, high], index) => {
      // The boxes of the neighboring columns.
      const [before, after] = [boxes[index - 1], boxes[index + 1]], bottom = top + high;
      pen.fillRect(left, top, wide, 1);
      pen.fillRect(left, bottom - 1, wide, 1);
      // The first column may start above the bottom, and the last may end below the top. The line at a side of a box is
      // only drawn where the neighboring column has no box.
      const from = before ? before[1] + before[3] : top, to = after ? after[1] : bottom;
      pen.fillRect(left, from, 1, bottom - from);
      pen.fillRect(left + wide - 1, top, 1, to - top);
    });
  }

  /**
   * The time [from, to) of the cell under a point. Outside of all cells, null or, with `always`, that of the nearest
   * cell.
   */
  spanAt(x, y, always) {
    const { shape } = this;
    // Nothing has been drawn yet, or the point is to the left of the cells.
    if (!shape || (!always && x < 0)) return null;
    const width = this.cells.clientWidth, height = this.cells.clientHeight;
    const [from, to] = this.view, time = from + Math.max(0, Math.min(width - 1, x)) / width * (to - from);
    const column = Math.floor(time / shape.column);
    const row = Math.max(0, Math.min(HEAT_ROWS - 1, HEAT_ROWS - 1 - Math.floor(y / height * HEAT_ROWS)));
    const span = heatSpan(shape, (column - shape.first) * HEAT_ROWS + row);
    if (!always && span[0] >= this.clock.length) return null;
    return [Math.min(span[0], this.clock.length - 1), Math.min(span[1], this.clock.length)];
  }

  /** The weight in the cell of this time range, as text. */
  textAt([from]) {
    return amount(Math.round(this.heat.sums[heatCellAt(this.shape, from)] ?? 0), this.page.unit);
  }
}
